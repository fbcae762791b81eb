//! Tables in CSV (RFC 4180): a row is a record, an object with the names of the header.

use csv::{ByteRecord, ReaderBuilder};
use knowledgepulse_json::{Object, Text, Value, parse_str, trim};

/// The names of the columns.
pub(crate) struct Header(Vec<Text>);

/// A row of a table.
pub(crate) struct Row {
    /// The lines before it, in the text that it was read from.
    pub line: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The object, or the problem.
    pub value: Result<Value, String>,
}

impl Header {
    /// Reads a header from a line: two or more different names without spaces. `None` if the line is something else.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let row = read_rows(line).next()?.1;
        let names: Vec<Text> = row
            .iter()
            .map(|cell| Some(trim(std::str::from_utf8(cell).ok()?)).filter(|name| is_name(name)))
            .map(|name| name.map(Text::from))
            .collect::<Option<_>>()?;
        let is_repeated = |(at, name)| names[..at].contains(name);
        (names.len() > 1 && !names.iter().enumerate().any(is_repeated)).then_some(Self(names))
    }

    /// Reads the rows of some lines. A cell that is an object or a list in JSON is that value, an empty one is left out, another one is
    /// a string.
    pub(crate) fn rows(&self, lines: &[u8]) -> impl Iterator<Item = Row> {
        let mut rows = read_rows(lines).peekable();
        std::iter::from_fn(move || {
            let (line, row) = rows.next()?;
            let start = row.position().map_or(0, csv::Position::byte);
            let end = rows.peek().and_then(|(_, next)| next.position());
            Some(Row {
                line,
                size: end.map_or(lines.len() as u64, csv::Position::byte) - start,
                value: self.value_of(&row),
            })
        })
    }

    fn value_of(&self, row: &ByteRecord) -> Result<Value, String> {
        let (cells, names) = (row.len(), self.0.len());
        if cells != names {
            return Err(format!("cells in the row: {cells}, in the header: {names}"));
        }
        let mut object = Object::default();
        for (name, cell) in self.0.iter().zip(row) {
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
