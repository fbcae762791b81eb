//! Tables in Parquet, as data sets have them: each row as one JSON text.

use std::{
    fs::File,
    io, iter,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use bytes::Bytes;
use parquet::{
    errors::ParquetError,
    file::{reader::ChunkReader, serialized_reader::SerializedFileReader},
    record::{Row, reader::RowIter},
};

use super::{Foreign, Lines, unreadable};

/// The first bytes of a table.
pub const MAGIC: &[u8] = b"PAR1";

/// A conversation of a data set may take a megabyte, so few rows are decoded at a time.
const ROWS_AT_A_TIME: usize = 16;

const BROKEN: Foreign = Foreign::new("a table in Parquet that cannot be read", "pqrs cat --json");

/// Returns the rows of a table, a line each.
///
/// # Errors
/// If the file cannot be read, or is broken.
pub fn lines_of_file(path: &Path) -> io::Result<Lines> {
    lines_of(File::open(path)?).map_err(io::Error::other)
}

/// Returns the rows in the bytes of a table, a line each.
///
/// # Errors
/// If it is broken.
pub fn lines_of_bytes(bytes: Vec<u8>) -> Result<String, Foreign> {
    lines_of(Bytes::from(bytes)).map_or(Err(BROKEN), |lines| Ok(lines.collect()))
}

/// Returns the rows as lines. After one that cannot be read, there is only a line that says so.
fn lines_of(file: impl ChunkReader + 'static) -> Result<Lines, ParquetError> {
    let reader = guarded(|| SerializedFileReader::new(file))?;
    let mut rows = Some(RowIter::from_file_into(Box::new(reader)).with_batch_size(ROWS_AT_A_TIME));
    Ok(Box::new(iter::from_fn(move || {
        let row = guarded(|| rows.as_mut().and_then(Iterator::next).transpose()).transpose()?;
        Some(match row {
            Ok(row) => line_of(&row),
            Err(error) => {
                rows = None;
                unreadable(&error)
            }
        })
    })))
}

fn line_of(row: &Row) -> String {
    format!("{}\n", row.to_json_value())
}

/// Returns what `read` does; an error where the library panics, as on some broken tables.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let panicked = |_| Err(ParquetError::General("the table is broken".into()));
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(panicked)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn table() -> Vec<u8> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../__test__/formats/agents");
        fs::read(folder.join("openai-chat-parquet/rows.parquet")).unwrap()
    }

    #[test]
    fn lines_of_bytes_and_of_a_file_are_the_rows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.parquet");
        fs::write(&path, table()).unwrap();
        let lines = lines_of_bytes(table()).unwrap();
        assert_eq!(lines, lines_of_file(&path).unwrap().collect::<String>());
        let last = r#"{"instance_id":"shop-2","messages":[{"content":"List the routes","role":"user","tool_call_id":null,"#;
        assert!(lines.lines().last().unwrap().starts_with(last), "{lines}");
    }

    #[test]
    fn lines_of_bytes_that_are_broken_anywhere_are_an_error_or_end() {
        let table = table();
        for at in (4..table.len()).step_by(7) {
            let mut broken = table.clone();
            broken[at] ^= 0xff;
            if let Ok(lines) = lines_of_bytes(broken) {
                assert!(lines.lines().count() <= 3, "{at}: {lines}");
            }
        }
        assert_eq!(lines_of_bytes(table[..table.len() / 2].to_vec()), Err(BROKEN));
    }
}
