//! Tables in CSV (RFC 4180): a row is a record, an object with the names of the header.

use std::mem;

use csv::{ByteRecord, ReaderBuilder, Terminator};
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
        let row = read_row(header)?;
        let names = row.iter().map(|cell| Some(trim(std::str::from_utf8(cell).ok()?)));
        let names = names.map(|name| name.filter(|name| is_name(name)).map(Text::from));
        let names: Vec<Text> = names.collect::<Option<_>>()?;
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

    /// Returns the row in the bytes that are left, if there is one. A cell that is an object or a list in JSON is that value, an empty one
    /// is left out, another one is a string.
    pub fn finish(&mut self) -> Option<Record> {
        let rest = mem::take(&mut self.rest);
        let line = self.line;
        self.line += mem::take(&mut self.breaks);
        let (size, content) = if mem::take(&mut self.is_too_long) {
            (0, Err(too_long(self.limit as u64)))
        } else {
            (rest.len() as u64, self.value_of(&read_row(&rest)?))
        };
        let place = Place {
            line: Some(line),
            index: None,
            size,
        };
        Some(Record { place, content })
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

/// Returns the row that a text is; `None` of a blank one.
fn read_row(text: &[u8]) -> Option<ByteRecord> {
    let line = text.strip_suffix(b"\n").unwrap_or(text);
    let reader = ReaderBuilder::new()
        .has_headers(false)
        .terminator(Terminator::Any(b'\n'))
        .from_reader(line.strip_suffix(b"\r").unwrap_or(line));
    // Bytes in memory can be read, and rows may have any number of cells: there are no errors.
    reader.into_byte_records().next()?.ok()
}
