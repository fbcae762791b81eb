//! Tables in Parquet, as data sets have them: each row as one JSON text.
//!
//! The library allocates what a table declares, before it reads it. So [`Bounded`] looks at each header first.

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

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use knowledgepulse_json::{Value, parse_str};
use parquet::{
    basic::{Compression, ConvertedType},
    bloom_filter::Sbbf,
    column::page::{Page, PageMetadata, PageReader},
    errors::{ParquetError, Result as ParquetResult},
    file::{
        metadata::{ParquetMetaDataReader, RowGroupMetaData},
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

use super::{Foreign, Lines, unreadable};

/// The first bytes of a table.
pub const MAGIC: &[u8] = b"PAR1";

/// A conversation of a data set may take a megabyte, so few rows are decoded at a time.
const ROWS_AT_A_TIME: usize = 16;

/// The end of a file: the length of its metadata, and [`MAGIC`].
const FOOTER: u64 = 8;
/// More elements of a schema are of no sessions. The library calls itself for each level of them.
const MOST_COLUMNS: u64 = 2_000;
const MOST_LEVELS: usize = 64;
/// How often a page may be longer than its compressed bytes, and by how many bytes more. Snappy copies 64 bytes by three at most; zstd and
/// gzip have no bound of their own.
const OF_SNAPPY: [u64; 2] = [24, FOOTER];
const OF_OTHERS: [u64; 2] = [256, 1 << 20];
/// So many values for each byte of a file, and for a file, are all that tables with empty columns have. A billion nulls fit into 100 bytes.
const VALUES_OF_BYTE: u64 = 4;
const VALUES_OF_FILE: u64 = 1 << 18;

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
fn lines_of(file: impl ChunkReader + 'static) -> ParquetResult<Lines> {
    let budget = VALUES_OF_FILE + VALUES_OF_BYTE * file.len();
    let file = Arc::new(Bounded {
        file: Arc::new(file),
        budget: Arc::new(budget.into()),
        most: OF_SNAPPY,
    });
    let budget = Arc::clone(&file.budget);
    let metadata = guarded(|| ParquetMetaDataReader::new().parse_and_finish(&*file))?;
    let schema = metadata.file_metadata().schema_descr_ptr();
    let columns = schema.columns();
    if columns
        .iter()
        .any(|column| column.path().parts().len() > MOST_LEVELS)
    {
        return Err(too_much("is nested more deeply than sessions are"));
    }
    let is_json = |column: &&Arc<ColumnDescriptor>| column.converted_type() == ConvertedType::JSON;
    let json = columns
        .iter()
        .filter(is_json)
        .map(|column| column.path().parts().to_vec());
    let json: Vec<Vec<String>> = json.collect();
    let groups = metadata.row_groups().to_vec().into_iter();
    let rows_in = move |metadata| -> Box<dyn Iterator<Item = ParquetResult<Row>>> {
        let group = Group {
            file: Arc::clone(&file),
            metadata,
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

fn too_much(what: &str) -> ParquetError {
    ParquetError::General(format!("the table {what}"))
}

/// Takes values from those that may still be decoded.
fn spend(budget: &AtomicU64, values: u64) -> ParquetResult<()> {
    let take = |left: u64| left.checked_sub(values);
    match budget.fetch_update(Relaxed, Relaxed, take) {
        Ok(_) => Ok(()),
        Err(_) => Err(too_much("declares more values than its size allows")),
    }
}

/// A file whose headers are looked at before the library follows them.
struct Bounded<R> {
    file: Arc<R>,
    /// How many values may still be decoded.
    budget: Arc<AtomicU64>,
    /// How long a page may be.
    most: [u64; 2],
}

impl<R: ChunkReader> Length for Bounded<R> {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl<R: ChunkReader> ChunkReader for Bounded<R> {
    type T = BoundedRead<R::T>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let is_page = start + FOOTER < self.len();
        Ok(BoundedRead {
            rest: self.file.get_read(start)?,
            beginning: io::Cursor::default(),
            budget: is_page.then(|| Arc::clone(&self.budget)),
            most: self.most,
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let bytes = self.file.get_bytes(start, length)?;
        let is_metadata = start + bytes.len() as u64 + FOOTER == self.len();
        if is_metadata {
            let columns = columns_of(&bytes).ok_or_else(|| ParquetError::General(UNREADABLE.into()))?;
            if columns > MOST_COLUMNS {
                return Err(too_much("has more columns than sessions have"));
            }
        }
        Ok(bytes)
    }
}

/// A part of a file that begins with the header of a page.
struct BoundedRead<R> {
    /// The bytes of the header that were looked at.
    beginning: io::Cursor<Vec<u8>>,
    rest: R,
    /// There until the header was looked at.
    budget: Option<Arc<AtomicU64>>,
    most: [u64; 2],
}

impl<R: Read> Read for BoundedRead<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        // The fields that count take no more.
        const MOST_BYTES: u64 = 32;
        if let Some(budget) = self.budget.take() {
            let beginning = self.beginning.get_mut();
            self.rest.by_ref().take(MOST_BYTES).read_to_end(beginning)?;
            let values =
                values_of_page(beginning, self.most).ok_or_else(|| too_much("has a page that cannot be"));
            values
                .and_then(|values| spend(&budget, values))
                .map_err(io::Error::other)?;
        }
        match self.beginning.read(bytes)? {
            0 => self.rest.read(bytes),
            length => Ok(length),
        }
    }
}

/// A group of rows, whose pages are decompressed here where the library would need C for it.
struct Group<R> {
    file: Arc<Bounded<R>>,
    metadata: RowGroupMetaData,
}

impl<R: ChunkReader + 'static> RowGroupReader for Group<R> {
    fn metadata(&self) -> &RowGroupMetaData {
        &self.metadata
    }

    fn num_columns(&self) -> usize {
        self.metadata.num_columns()
    }

    fn get_column_page_reader(&self, at: usize) -> ParquetResult<Box<dyn PageReader>> {
        let (column, rows) = (self.metadata.column(at), self.metadata.num_rows().try_into()?);
        let pages = |column: &_, most| {
            let file = Bounded {
                file: Arc::clone(&self.file.file),
                budget: Arc::clone(&self.file.budget),
                most,
            };
            SerializedPageReader::new(Arc::new(file), column, rows, None)
        };
        let unpack: fn(&[u8]) -> io::Result<Vec<u8>> = match column.compression() {
            Compression::ZSTD(_) => |bytes| {
                let decoder = StreamingDecoder::new(bytes).map_err(io::Error::other)?;
                read_page(decoder, bytes.len())
            },
            Compression::GZIP(_) => |bytes| read_page(MultiGzDecoder::new(bytes), bytes.len()),
            _ => return Ok(Box::new(pages(column, OF_SNAPPY)?)),
        };
        let plain = column.clone().into_builder();
        let plain = plain.set_compression(Compression::UNCOMPRESSED).build()?;
        let inner = pages(&plain, OF_OTHERS)?;
        Ok(Box::new(UnpackedPages { inner, unpack }))
    }

    fn get_column_bloom_filter(&self, _: usize) -> Option<&Sbbf> {
        None
    }

    fn get_row_iter(&self, projection: Option<Type>) -> ParquetResult<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}

/// Reads a page of so many compressed bytes.
fn read_page(page: impl Read, length: usize) -> io::Result<Vec<u8>> {
    let [ratio, more] = OF_OTHERS;
    let mut bytes = Vec::new();
    page.take(ratio * length as u64 + more).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The pages of a column, which are decompressed once the library has their bytes.
struct UnpackedPages<P> {
    inner: P,
    unpack: fn(&[u8]) -> io::Result<Vec<u8>>,
}

impl<P: PageReader> PageReader for UnpackedPages<P> {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let Some(mut page) = self.inner.get_next_page()? else {
            return Ok(None);
        };
        // Levels stand before the compressed bytes, in pages of the second version.
        let (buffer, levels) = match &mut page {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => (buf, 0),
            Page::DataPageV2 { is_compressed, .. } if !*is_compressed => return Ok(Some(page)),
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => (buf, *def_levels_byte_len as usize + *rep_levels_byte_len as usize),
        };
        if levels < buffer.len() {
            let (levels, packed) = buffer.split_at(levels);
            let plain = (self.unpack)(packed)?;
            *buffer = [levels, &plain].concat().into();
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.inner.skip_next_page()
    }
}

impl<P: PageReader> Iterator for UnpackedPages<P> {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// Why a table is refused that no library reads.
const UNREADABLE: &str = "the table is broken";

/// Returns how many elements the schema has, by the first fields of `FileMetaData` in Thrift's compact protocol.
fn columns_of(metadata: &[u8]) -> Option<u64> {
    let mut fields = Fields(metadata);
    fields.number(NUMBER)?;
    (fields.byte()? == LIST).then_some(())?;
    let list = fields.byte()?;
    match list >> 4 {
        15 => fields.varint(),
        short => Some(short.into()),
    }
}

/// Returns how many values a page declares, by the first fields of its `PageHeader`; `None` if its size or its dictionary cannot be.
fn values_of_page(header: &[u8], [ratio, more]: [u64; 2]) -> Option<u64> {
    const DICTIONARY: u64 = 2;
    let mut fields = Fields(header);
    let kind = fields.number(NUMBER)?;
    let size = fields.number(NUMBER)?;
    let compressed = fields.number(NUMBER)?;
    let mut next = fields.byte()?;
    // The checksum.
    if next == NUMBER {
        fields.varint()?;
        next = fields.byte()?;
    }
    let values = fields.number(NUMBER).filter(|_| next & 0xf == STRUCT)?;
    let is_possible = size <= ratio * compressed + more && (kind != DICTIONARY || values <= size);
    is_possible.then_some(values)
}

/// A field behind the one before it: a number of 32 bits, or a list.
const NUMBER: u8 = 0x15;
const LIST: u8 = 0x19;
/// The kind of a field that is a structure.
const STRUCT: u8 = 0xc;

/// Fields of Thrift's compact protocol.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a field that is no negative number.
    fn number(&mut self, field: u8) -> Option<u64> {
        let number = (self.byte()? == field).then(|| self.varint())??;
        number.is_multiple_of(2).then_some(number / 2)
    }
}

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
    let panicked = |_| Err(ParquetError::General(UNREADABLE.into()));
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(panicked)
        .map_err(plain)
}

/// Returns the problem of columns whose compression is not read, with the way out.
fn plain(error: ParquetError) -> ParquetError {
    let text = error.to_string();
    match text.split_once("Disabled feature at compile time: ") {
        Some((_, name)) => too_much(&format!(
            "is compressed with {name}, which is not read: write it with snappy, as to_parquet of pandas does"
        )),
        None => error,
    }
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
    fn lines_of_bytes_names_the_way_out_of_a_compression_that_is_not_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../__test__/formats/brotli.parquet");
        let lines = lines_of_bytes(fs::read(path).unwrap()).unwrap();
        assert!(lines.contains("write it with snappy"), "{lines}");
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

    /// A column of numbers that one page of the file has, perhaps behind a dictionary.
    fn column(size: u64, dictionary: Option<u64>) -> Vec<u8> {
        let place = |kind, at| field(kind, at);
        let metadata = [
            field(NUMBER, 1),
            vec![LIST, 0x15, 0],
            vec![LIST, 0x18],
            text("n"),
            field(NUMBER, 0),
            field(0x16, 1),
            field(0x16, size),
            field(0x16, size),
            place(0x26, 4),
            dictionary.map_or_else(Vec::new, |at| place(0x26, at)),
            vec![0],
        ];
        [field(0x26, 4), vec![0x1c], metadata.concat(), vec![0]].concat()
    }

    fn page(kind: u64, size: u64, values: u64, data: &[u8]) -> Vec<u8> {
        let of_kind = [vec![0x2c], vec![], vec![0x4c]][kind as usize].clone();
        let levels = [field(NUMBER, 0), field(NUMBER, 3), field(NUMBER, 3)].concat();
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
        let lines = lines_of_bytes(table).unwrap_or_else(|_| "broken\n".into());
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
        let whole = table_of(&one, &number_schema(), &[column(one.len() as u64, None)], 1, 2);
        assert_eq!(last_of(whole), (2, r#"{"n":8}"#.to_owned()));

        // The same page for each of many groups, and rows of a group that has no columns.
        let run = [&[4, 0, 0, 0][..], &varint(200_000 * 2), &[0]].concat();
        let nulls = page(0, run.len() as u64, 200_000, &run);
        let column = [column(nulls.len() as u64, None)];
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
        let huge = page(0, 1 << 30, 2, &[0; 40]);
        let dictionary = page(2, 40, 1 << 30, &[0; 40]);
        for pages in [&huge, &dictionary] {
            let table = table_of(pages, &number_schema(), &[column(pages.len() as u64, None)], 1, 2);
            let (count, last) = last_of(table);
            assert!(count == 1 && last.contains("a page that cannot be"), "{last}");
        }
        let deep = |levels: usize| [vec![group(1); levels], number_schema()[1..].to_vec()].concat();
        for levels in [100, 100_000] {
            assert_eq!(
                lines_of_bytes(table_of(b"", &deep(levels), &[], 1, 2)),
                Err(BROKEN)
            );
        }
    }
}
