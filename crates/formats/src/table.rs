//! Tables in CSV (RFC 4180): a row is a record, an object with the names of the header.

use std::mem;

use csv::{ByteRecord, ReaderBuilder};
use knowledgepulse_json::{Object, Text, Value, parse_str, trim};
use memchr::memchr2_iter;

use crate::common::{Place, Record, too_long};

/// A table whose bytes are pushed as they come. Holds those of a row, of at most the limit.
pub(crate) struct Table {
    /// The names of the columns.
    names: Vec<Text>,
    limit: usize,
    /// The bytes of the row that is not whole, the line on which it begins, and its line breaks so far.
    rest: Vec<u8>,
    line: u64,
    breaks: u64,
    is_quoted: bool,
    is_too_long: bool,
}

impl Table {
    /// Reads a header from a line: two or more different names without spaces. `None` if the line is something else.
    pub fn of(header: &[u8], line: u64, limit: usize) -> Option<Self> {
        let row = read_rows(header).next()?.1;
        let names: Vec<Text> = row
            .iter()
            .map(|cell| Some(trim(std::str::from_utf8(cell).ok()?)).filter(|name| is_name(name)))
            .map(|name| name.map(Text::from))
            .collect::<Option<_>>()?;
        let is_repeated = |(at, name)| names[..at].contains(name);
        let is_one = names.len() > 1 && !names.iter().enumerate().any(is_repeated);
        is_one.then_some(Self {
            names,
            limit,
            rest: Vec::new(),
            line,
            breaks: 0,
            is_quoted: false,
            is_too_long: false,
        })
    }

    /// Returns the rows that end in more bytes of the table.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Record> {
        let (mut rows, mut start) = (Vec::new(), 0);
        for at in memchr2_iter(b'"', b'\n', bytes) {
            if bytes[at] == b'"' {
                self.is_quoted = !self.is_quoted;
                continue;
            }
            self.breaks += 1;
            if !self.is_quoted {
                self.add(&bytes[start..=at]);
                rows.extend(self.finish());
                start = at + 1;
            }
        }
        self.add(&bytes[start..]);
        rows
    }

    fn add(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        self.is_too_long |= self.rest.len() > self.limit;
        if self.is_too_long {
            self.rest.clear();
        }
    }

    /// Returns the rows in the bytes that are left. A cell that is an object or a list in JSON is that value, an empty one is left out,
    /// another one is a string.
    pub fn finish(&mut self) -> Vec<Record> {
        let rest = mem::take(&mut self.rest);
        let line = self.line;
        self.line += mem::take(&mut self.breaks);
        let record = |line, size, content: Result<Value, String>| Record {
            place: Place {
                line: Some(line),
                index: None,
                size,
            },
            content,
        };
        if mem::take(&mut self.is_too_long) {
            return vec![record(line, 0, Err(too_long(self.limit as u64)))];
        }
        let mut rows = read_rows(&rest).peekable();
        let next = || {
            let (before, row) = rows.next()?;
            let start = row.position().map_or(0, csv::Position::byte);
            let end = rows.peek().and_then(|(_, next)| next.position());
            let size = end.map_or(rest.len() as u64, csv::Position::byte) - start;
            Some(record(line + before, size, self.value_of(&row)))
        };
        std::iter::from_fn(next).collect()
    }

    fn value_of(&self, row: &ByteRecord) -> Result<Value, String> {
        let (cells, names) = (row.len(), self.names.len());
        if cells != names {
            return Err(format!("cells in the row: {cells}, in the header: {names}"));
        }
        let mut object = Object::default();
        for (name, cell) in self.names.iter().zip(row) {
            let cell = std::str::from_utf8(cell).map_err(|_| "not UTF-8")?;
            if !cell.is_empty() {
                object.insert(name.clone(), read_cell(cell));
            }
        }
        Ok(Value::Object(object))
    }
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte))
}

fn read_cell(cell: &str) -> Value {
    let json = trim(cell);
    let value = json.starts_with(['{', '[']).then(|| parse_str(json).ok());
    value.flatten().unwrap_or_else(|| cell.into())
}

/// Returns the rows of some lines, each with the number of lines before it.
fn read_rows(lines: &[u8]) -> impl Iterator<Item = (u64, ByteRecord)> {
    let reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(lines);
    // Bytes in memory can be read, and rows may have any number of cells: there are no errors.
    let rows = reader.into_byte_records().map_while(Result::ok);
    rows.map(|row| (row.position().map_or(0, |position| position.line() - 1), row))
}
