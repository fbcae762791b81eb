//! Tables in CSV (RFC 4180) as lines of JSON: a row is an object with the names of the header.

use std::io::Cursor;

use csv::{Reader, ReaderBuilder, StringRecord};
use knowledgepulse_json::{Object, Text, Value, parse_str, trim};

use super::{Foreign, Lines, unreadable};

/// Returns whether a text begins with the header of a table: a line of two or more different names without spaces.
pub fn begins_table(beginning: &[u8]) -> bool {
    let names = Reader::from_reader(beginning)
        .headers()
        .cloned()
        .unwrap_or_default();
    let is_one =
        |(at, name): (usize, &str)| is_name(name) && !names.iter().take(at).any(|other| other == name);
    names.len() > 1 && names.iter().enumerate().all(is_one)
}

fn is_name(text: &str) -> bool {
    let mut bytes = trim(text).bytes();
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    bytes.next().is_some_and(is_first)
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte))
}

/// Returns the rows, a line each behind one for the header. An empty cell is left out.
///
/// # Errors
/// None: it is a reader of inputs that are whole.
#[expect(clippy::unnecessary_wraps)] // Other readers of whole inputs may fail.
pub fn lines_of(bytes: Vec<u8>) -> Result<Lines, Foreign> {
    let mut reader = ReaderBuilder::new()
        .flexible(true)
        .from_reader(Cursor::new(bytes));
    let names = reader.headers().cloned().unwrap_or_default();
    let names: Vec<Text> = names.iter().map(|name| trim(name).into()).collect();
    let line_of = move |row: csv::Result<StringRecord>| match row {
        Ok(row) if row.len() != names.len() => {
            let (cells, names) = (row.len(), names.len());
            unreadable(&format!("cells in the row: {cells}, in the header: {names}"))
        }
        Ok(row) => {
            let cells = names.iter().zip(&row).filter(|(_, cell)| !cell.is_empty());
            let fields: Object = cells
                .map(|(name, cell)| (name.clone(), read_cell(cell)))
                .collect();
            fields.to_json() + "\n"
        }
        Err(error) => unreadable(&error),
    };
    let rows = reader.into_records().map(line_of);
    Ok(Box::new([String::from("\n")].into_iter().chain(rows)))
}

/// Returns the object or list that a cell is in JSON, or else its text.
fn read_cell(cell: &str) -> Value {
    let json = trim(cell);
    let value = json.starts_with(['{', '[']).then(|| parse_str(json).ok());
    value.flatten().unwrap_or_else(|| cell.into())
}
