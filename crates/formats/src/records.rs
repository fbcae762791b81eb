//! Reads the JSON values of an input: JSON Lines, arrays, values that span lines, and any mix of them.

use std::sync::LazyLock;

use knowledgepulse_json::Value;
use regex::Regex;

pub use crate::common::Record;

use crate::{
    DEFAULT_LIMIT, Place,
    common::too_long,
    encoding::{Decoder, Foreign},
    input::Lines,
    split::{Broken, Kind, Piece, Splitter, parse},
    values::regex,
};

/// A file of which so many records at the beginning are of no format is refused. Sessions may begin with such records.
pub const MOST_FIRST_RECORDS: usize = 10;

/// The values of an input whose bytes are pushed as they come. It holds the bytes that were pushed and not read yet, of a value at
/// most `limit`. Of an archive, a database or a table it holds all bytes, and the values come once it is whole.
///
/// A value that begins with `[` is an array, whose elements are the values. An object ends where its brackets are closed. Anything else is a
/// value to the end of its line. Blank lines are skipped. After a value that is broken, reading goes on with the next line.
pub struct Records {
    limit: usize,
    pub(crate) decoder: Decoder,
    /// The lines that are still to be split, once all was pushed.
    lines: Option<Lines>,
    splitter: Splitter,
}

impl Default for Records {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl Records {
    /// Creates an input of values of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            decoder: Decoder::default(),
            lines: None,
            splitter: Splitter::new(limit, false),
        }
    }

    /// Takes the next bytes of the input. All values that are there must have been taken before.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Foreign> {
        let text = self.decoder.push(bytes)?;
        self.splitter.push(&text);
        Ok(())
    }

    /// Ends the input.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn finish(&mut self) -> Result<(), Foreign> {
        let (rest, lines) = self.decoder.finish()?;
        self.splitter.push(&rest);
        self.lines = Some(lines);
        Ok(())
    }

    /// Reads a piece of the text; `None` if it has no value.
    fn read(&mut self, piece: Piece) -> Option<Record> {
        let text = &self.splitter.text()[piece.range.clone()];
        let content = match piece.kind {
            Kind::Between => return None,
            Kind::TooLong => Err(too_long(self.limit as u64)),
            Kind::Value(value) => Ok(value),
            Kind::Broken(broken) => Err(problem_of(&broken, text)),
            Kind::Text => read_value(data_of_event(text).unwrap_or(Some(text))?),
        };
        let place = Place {
            line: Some(piece.line),
            index: piece.index,
            size: piece.range.len() as u64,
        };
        Some(Record { place, content })
    }
}

/// Yields the values that are there so far; more may come after more was pushed.
impl Iterator for Records {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            if let Some(piece) = self.splitter.next() {
                match self.read(piece) {
                    Some(record) => return Some(record),
                    None => continue,
                }
            }
            if let Some(line) = self.lines.as_mut()?.next() {
                self.splitter.push(line.as_bytes());
                continue;
            }
            self.lines = None;
            self.splitter.finish();
        }
    }
}

/// Returns a value of JSON.
///
/// # Errors
/// The problem, if it is none.
pub fn read_value(bytes: &[u8]) -> Result<Value, String> {
    parse(bytes).map_err(|broken| problem_of(&broken, bytes))
}

/// How an object begins that Python has printed, alone or in a list.
static OF_PYTHON: LazyLock<Regex> = LazyLock::new(|| regex(r"^\[?[A-Z][A-Za-z0-9_]*\([a-z_]+="));

/// Returns why a text is no value.
fn problem_of(broken: &Broken, text: &[u8]) -> String {
    if str::from_utf8(text).is_ok_and(|text| OF_PYTHON.is_match(text)) {
        return "an object as Python prints it, not JSON: write its `model_dump_json()` or `dataclasses.asdict`".into();
    }
    broken.to_string()
}

/// Returns the value of a line of server-sent events, or `None` within where it has none; `None` for another line.
fn data_of_event(line: &[u8]) -> Option<Option<&[u8]>> {
    let line = line.trim_ascii();
    match line.strip_prefix(b"data:").map(<[u8]>::trim_ascii) {
        Some(b"[DONE]") => Some(None),
        Some(data) if data.starts_with(b"{") || data.starts_with(b"[") => Some(Some(data)),
        _ => line.starts_with(b"event: ").then_some(None),
    }
}

/// Returns whether a value says that it is a trace of this package.
#[must_use]
pub fn is_trace(value: &Value) -> bool {
    value.get("@type").and_then(Value::as_str) == Some("ReasoningTrace")
}

/// Returns whether a value is a trace, which need not say so.
pub(crate) fn may_be_trace(value: &Value) -> bool {
    is_trace(value) || (value.get("task").is_some() && value.get("steps").is_some())
}
