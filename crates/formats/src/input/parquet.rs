//! Tables in Parquet, as data sets have them: each row as one JSON text.
//!
//! The library allocates what a table declares, before it reads it. So the size of its schema is looked at first, and pages are
//! decompressed here, each to a size that its bytes allow.

use std::{
    fs::File,
    io::{self, Read},
    iter, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use flate2::bufread::MultiGzDecoder;
use knowledgepulse_json::{Value, parse_str};
use parquet::{
    basic::{Compression, ConvertedType},
    bloom_filter::Sbbf,
    column::page::{Page, PageMetadata, PageReader},
    errors::{ParquetError, Result as ParquetResult},
    file::{
        metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData},
        reader::{ChunkReader, Length, RowGroupReader},
        serialized_reader::SerializedPageReader,
    },
    record::{
        Row,
        reader::{RowIter, TreeBuilder},
    },
    schema::types::{ColumnDescriptor, Type},
};
use ruzstd::decoding::StreamingDecoder;

use super::{Lines, unreadable};

/// The first bytes of a table.
pub const MAGIC: &[u8] = b"PAR1";

/// A conversation of a data set may take a megabyte, so few rows are decoded at a time.
const ROWS_AT_A_TIME: usize = 16;

/// The end of a file: the length of its metadata, and [`MAGIC`].
const FOOTER: u64 = 8;
/// More elements of a schema are of no sessions. The library calls itself for each level of them.
const MOST_COLUMNS: u64 = 2_000;
const MOST_LEVELS: usize = 64;
/// How often a page may be longer than its compressed bytes, and by how many bytes more.
const MOST_TIMES: u64 = 256;
const MOST_MORE: u64 = 1 << 20;
/// So many values for each byte of a file, and for a file, are all that tables with empty columns have. A billion nulls fit into 100 bytes.
const VALUES_OF_BYTE: u64 = 4;
const VALUES_OF_FILE: u64 = 1 << 18;

/// Returns the rows of a table, a line each.
///
/// # Errors
/// If the file cannot be read, or is broken.
pub fn lines_of_file(path: &Path) -> io::Result<Lines> {
    lines_of(File::open(path)?).map_err(io::Error::other)
}

/// Returns the rows as lines. After one that cannot be read, there is only a line that says so.
fn lines_of(file: File) -> ParquetResult<Lines> {
    let budget = Arc::new(AtomicU64::new(VALUES_OF_FILE + VALUES_OF_BYTE * file.len()));
    let file = Arc::new(file);
    let metadata = guarded(|| metadata_of(&file))?;
    let schema = metadata.file_metadata().schema_descr_ptr();
    let columns = schema.columns();
    if columns
        .iter()
        .any(|column| column.path().parts().len() > MOST_LEVELS)
    {
        return Err(refused("is nested more deeply than sessions are"));
    }
    let is_json = |column: &&Arc<ColumnDescriptor>| column.converted_type() == ConvertedType::JSON;
    let json = columns.iter().filter(is_json);
    let json: Vec<Vec<String>> = json.map(|column| column.path().parts().to_vec()).collect();
    let groups = metadata.row_groups().to_vec().into_iter();
    let values = Arc::clone(&budget);
    let rows_in = move |metadata| -> Box<dyn Iterator<Item = ParquetResult<Row>> + Send> {
        let group = Group {
            file: Arc::clone(&file),
            metadata,
            budget: Arc::clone(&values),
        };
        let builder = TreeBuilder::new().with_batch_size(ROWS_AT_A_TIME);
        match builder.as_iter(Arc::clone(&schema), &group) {
            Ok(rows) => Box::new(rows),
            Err(error) => Box::new(iter::once(Err(error))),
        }
    };
    let mut rows = Some(groups.flat_map(rows_in));
    Ok(Box::new(iter::from_fn(move || {
        let row = guarded(|| rows.as_mut().and_then(Iterator::next).transpose()).transpose()?;
        // A row without columns takes nothing of the file.
        Some(match row.and_then(|row| spend(&budget, 1).map(|()| row)) {
            Ok(row) => line_of(&row, &json),
            Err(error) => {
                rows = None;
                unreadable(&error)
            }
        })
    })))
}

fn refused(why: &str) -> ParquetError {
    ParquetError::General(format!("the table {why}"))
}

/// Takes values from those that may still be decoded.
fn spend(budget: &AtomicU64, values: u64) -> ParquetResult<()> {
    let take = |left: u64| left.checked_sub(values);
    match budget.fetch_update(Relaxed, Relaxed, take) {
        Ok(_) => Ok(()),
        Err(_) => Err(refused("declares more values than its size allows")),
    }
}

/// Reads the metadata of a table, unless its schema is too large.
fn metadata_of(file: &File) -> ParquetResult<ParquetMetaData> {
    let end = file.len().saturating_sub(FOOTER);
    let footer = file.get_bytes(end, FOOTER as usize)?;
    let length = footer
        .first_chunk()
        .map_or(0, |length| u32::from_le_bytes(*length));
    let start = end
        .checked_sub(length.into())
        .ok_or_else(|| refused(BROKEN_TABLE))?;
    let metadata = file.get_bytes(start, length as usize)?;
    if columns_of(&metadata).ok_or_else(|| refused(BROKEN_TABLE))? > MOST_COLUMNS {
        return Err(refused("has more columns than sessions have"));
    }
    ParquetMetaDataReader::decode_metadata(&metadata)
}

/// Returns how many elements the schema has: the list behind the number of the version, in Thrift's compact protocol.
fn columns_of(metadata: &[u8]) -> Option<u64> {
    const NUMBER: u8 = 0x15;
    const LIST: u8 = 0x19;
    let varint = |bytes: &[u8]| bytes.iter().position(|byte| *byte < 0x80);
    let version = metadata.strip_prefix(&[NUMBER])?;
    let list = version.get(varint(version)? + 1..)?.strip_prefix(&[LIST])?;
    let (size, long) = list.split_first()?;
    if size >> 4 < 15 {
        return Some(u64::from(size >> 4));
    }
    let digits = long[..=varint(long)?].iter().rev();
    digits
        .map(|byte| u64::from(byte & 0x7f))
        .try_fold(0, |number: u64, digit| {
            number.checked_mul(0x80)?.checked_add(digit)
        })
}

/// A group of rows.
struct Group {
    file: Arc<File>,
    metadata: RowGroupMetaData,
    /// How many values may still be decoded.
    budget: Arc<AtomicU64>,
}

impl RowGroupReader for Group {
    fn metadata(&self) -> &RowGroupMetaData {
        &self.metadata
    }

    fn num_columns(&self) -> usize {
        self.metadata.num_columns()
    }

    fn get_column_page_reader(&self, at: usize) -> ParquetResult<Box<dyn PageReader>> {
        let column = self.metadata.column(at);
        let (start, length) = column.byte_range();
        if start.saturating_add(length) > self.file.len() {
            return Err(refused(BROKEN_TABLE));
        }
        let plain = column.clone().into_builder();
        let plain = plain.set_compression(Compression::UNCOMPRESSED).build()?;
        let rows = self.metadata.num_rows().try_into()?;
        Ok(Box::new(Pages {
            inner: SerializedPageReader::new(Arc::clone(&self.file), &plain, rows, None)?,
            compression: column.compression(),
            budget: Arc::clone(&self.budget),
        }))
    }

    fn get_column_bloom_filter(&self, _: usize) -> Option<&Sbbf> {
        None
    }

    fn get_row_iter(&self, projection: Option<Type>) -> ParquetResult<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}

/// The pages of a column, which are decompressed once the library has their bytes.
struct Pages<P> {
    inner: P,
    compression: Compression,
    budget: Arc<AtomicU64>,
}

impl<P: PageReader> PageReader for Pages<P> {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let Some(mut page) = self.inner.get_next_page()? else {
            return Ok(None);
        };
        let values = page.num_values();
        // Levels stand before the compressed bytes, in pages of the second version.
        let (buffer, levels) = match &mut page {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => (buf, Some(0)),
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                ..
            } => {
                let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                (buf, is_compressed.then_some(levels))
            }
        };
        if let Some((levels, packed)) = levels.and_then(|levels| buffer.split_at_checked(levels))
            && !packed.is_empty()
            && self.compression != Compression::UNCOMPRESSED
        {
            *buffer = [levels, &unpacked(self.compression, packed)?].concat().into();
        }
        // Each value of a dictionary takes a byte, and is allocated before it is read.
        if page.is_dictionary_page() && values as usize > page.buffer().len() {
            return Err(refused("has a page that cannot be"));
        }
        spend(&self.budget, values.into())?;
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.inner.skip_next_page()
    }
}

impl<P: PageReader> Iterator for Pages<P> {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// Decompresses a page, at most to the size that its bytes allow.
fn unpacked(compression: Compression, bytes: &[u8]) -> ParquetResult<Vec<u8>> {
    let most = MOST_TIMES * bytes.len() as u64 + MOST_MORE;
    let mut plain = Vec::new();
    match compression {
        Compression::SNAPPY if snap::raw::decompress_len(bytes)? as u64 <= most => {
            plain = snap::raw::Decoder::new().decompress_vec(bytes)?;
        }
        Compression::SNAPPY => return Err(refused("has a page that cannot be")),
        Compression::GZIP(_) => drop(MultiGzDecoder::new(bytes).take(most).read_to_end(&mut plain)?),
        Compression::ZSTD(_) => {
            let decoder = StreamingDecoder::new(bytes).map_err(io::Error::other)?;
            decoder.take(most).read_to_end(&mut plain)?;
        }
        other => {
            let name = other.to_string().to_lowercase();
            let name = name.split('(').next().unwrap_or_default();
            return Err(refused(&format!(
                "is compressed with {name}, which is not read: write it with snappy, as to_parquet of pandas does"
            )));
        }
    }
    Ok(plain)
}

/// Why a table is refused that no library reads.
const BROKEN_TABLE: &str = "is broken";

fn line_of(row: &Row, json: &[Vec<String>]) -> String {
    let line = row.to_json_value().to_string();
    let parsed = (!json.is_empty()).then(|| parse_str(&line).ok()).flatten();
    let read = |value| json.iter().fold(value, |value, path| with_json(value, path));
    parsed.map_or(line, |value| read(value).to_json()) + "\n"
}

/// Returns a value in which the texts of a column of JSON are values. A list is two names of a path.
fn with_json(value: Value, path: &[String]) -> Value {
    match (value, path) {
        (Value::String(text), []) => parse_str(&text).unwrap_or(Value::String(text)),
        (Value::Array(list), path) => {
            let rest = path.get(2..).unwrap_or_default();
            list.into_iter()
                .map(|each| with_json(each, rest))
                .collect::<Vec<_>>()
                .into()
        }
        (Value::Object(mut fields), [name, rest @ ..]) => {
            if let Some(inner) = fields.get_mut(name) {
                *inner = with_json(mem::take(inner), rest);
            }
            fields.into()
        }
        (value, _) => value,
    }
}

/// Returns what `read` does; an error where the library panics, as on some broken tables.
fn guarded<T>(read: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(refused(BROKEN_TABLE)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::input::lines_of_bytes;

    fn text_of(table: &[u8]) -> Option<String> {
        lines_of_bytes(table).map(Iterator::collect)
    }

    /// A field of 32 bits, and a list, each behind the field before it.
    const NUMBER: u8 = 0x15;
    const LIST: u8 = 0x19;

    fn table() -> Vec<u8> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../__test__/formats/agents");
        fs::read(folder.join("openai-chat-parquet/rows.parquet")).unwrap()
    }

    #[test]
    fn lines_of_bytes_names_the_way_out_of_a_compression_that_is_not_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../__test__/formats/brotli.parquet");
        let lines = text_of(&fs::read(path).unwrap()).unwrap();
        assert!(lines.contains("write it with snappy"), "{lines}");
    }

    #[test]
    fn lines_of_bytes_and_of_a_file_are_the_rows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.parquet");
        fs::write(&path, table()).unwrap();
        let lines = text_of(&table()).unwrap();
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
            if let Some(lines) = text_of(&broken) {
                assert!(lines.lines().count() <= 3, "{at}: {lines}");
            }
        }
        assert_eq!(text_of(&table[..table.len() / 2]), None);
    }

    /// Writes a number as Thrift's compact protocol does.
    fn varint(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    fn field(kind: u8, number: u64) -> Vec<u8> {
        [vec![kind], varint(number * 2)].concat()
    }

    fn text(text: &str) -> Vec<u8> {
        [varint(text.len() as u64), text.as_bytes().to_vec()].concat()
    }

    fn group(children: u64) -> Vec<u8> {
        [vec![0x48], text("g"), field(NUMBER, children), vec![0]].concat()
    }

    /// Makes a table of a schema, of row groups with such columns, and of so many rows in each group.
    fn table_of(pages: &[u8], schema: &[Vec<u8>], columns: &[Vec<u8>], groups: usize, rows: u64) -> Vec<u8> {
        let list = |elements: &[Vec<u8>]| {
            [vec![LIST, 0xfc], varint(elements.len() as u64), elements.concat()].concat()
        };
        let group = [list(columns), field(0x16, 1), field(0x16, rows), vec![0]].concat();
        let metadata = [
            field(NUMBER, 1),
            list(schema),
            field(0x16, rows),
            list(&vec![group; groups]),
            vec![0],
        ]
        .concat();
        let length = u32::try_from(metadata.len()).unwrap().to_le_bytes();
        [MAGIC, pages, &metadata, &length, MAGIC].concat()
    }

    /// A column of numbers, compressed by this codec, that one page of the file has.
    fn column(size: u64, codec: u64) -> Vec<u8> {
        let metadata = [
            field(NUMBER, 1),
            vec![LIST, 0x15, 0],
            vec![LIST, 0x18],
            text("n"),
            field(NUMBER, codec),
            field(0x16, 1),
            field(0x16, size),
            field(0x16, size),
            field(0x26, 4),
            vec![0],
        ];
        [field(0x26, 4), vec![0x1c], metadata.concat(), vec![0]].concat()
    }

    fn page(kind: u64, size: u64, values: u64, data: &[u8]) -> Vec<u8> {
        let of_kind = [vec![0x2c], vec![], vec![0x4c]][kind as usize].clone();
        let levels = match kind {
            0 => [field(NUMBER, 0), field(NUMBER, 3), field(NUMBER, 3)].concat(),
            _ => field(NUMBER, 0),
        };
        [
            field(NUMBER, kind),
            field(NUMBER, size),
            field(NUMBER, data.len() as u64),
            of_kind,
            field(NUMBER, values),
            levels,
            vec![0, 0],
            data.to_vec(),
        ]
        .concat()
    }

    fn number_schema() -> Vec<Vec<u8>> {
        let number = [field(NUMBER, 1), field(0x25, 1), vec![0x18], text("n"), vec![0]].concat();
        vec![group(1), number]
    }

    fn last_of(table: Vec<u8>) -> (usize, String) {
        let lines = text_of(&table).unwrap_or_else(|| "broken\n".into());
        (
            lines.lines().count(),
            lines.lines().last().unwrap_or_default().to_owned(),
        )
    }

    #[test]
    fn lines_of_bytes_reads_a_page_and_refuses_rows_that_nothing_in_the_file_has() {
        // Levels of one bit: a run of two ones. Then two numbers.
        let data = [
            &[2, 0, 0, 0, 4, 1][..],
            &7_i32.to_le_bytes(),
            &8_i32.to_le_bytes(),
        ]
        .concat();
        let one = page(0, data.len() as u64, 2, &data);
        let whole = table_of(&one, &number_schema(), &[column(one.len() as u64, 0)], 1, 2);
        assert_eq!(last_of(whole), (2, r#"{"n":8}"#.to_owned()));

        // The same page for each of many groups, and rows of a group that has no columns.
        let run = [&[4, 0, 0, 0][..], &varint(200_000 * 2), &[0]].concat();
        let nulls = page(0, run.len() as u64, 200_000, &run);
        let column = [column(nulls.len() as u64, 0)];
        for (table, most) in [
            (
                table_of(&nulls, &number_schema(), &column, 1_000, 200_000),
                1_000_000,
            ),
            (table_of(b"", &[group(0)], &[], 1, 1 << 50), 1_000_000),
        ] {
            let (count, last) = last_of(table);
            assert!(
                count < most && last.contains("more values than its size allows"),
                "{count}: {last}"
            );
        }
    }

    #[test]
    fn lines_of_bytes_refuses_pages_and_schemas_that_take_all_memory() {
        let huge = page(0, 1 << 30, 2, &[varint(1 << 30), vec![0; 40]].concat());
        let dictionary = page(2, 40, 1 << 30, &[0; 40]);
        for (pages, codec) in [(&huge, 1), (&dictionary, 0)] {
            let columns = [column(pages.len() as u64, codec)];
            let table = table_of(pages, &number_schema(), &columns, 1, 2);
            let (count, last) = last_of(table);
            assert!(count == 1 && last.contains("a page that cannot be"), "{last}");
        }
        let deep = |levels: usize| [vec![group(1); levels], number_schema()[1..].to_vec()].concat();
        for levels in [100, 100_000] {
            assert_eq!(text_of(&table_of(b"", &deep(levels), &[], 1, 2)), None);
        }
    }
}
