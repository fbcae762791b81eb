//! Reads the JSON values of an input: JSON Lines, arrays, values that span lines, and any mix of them; and the rows of a table in CSV.

use std::{collections::VecDeque, ops::Range};

use knowledgepulse_json::{ParseError, Value, parse_str, trim};
use memchr::memchr_iter;
use rayon::prelude::*;

use crate::{
    DEFAULT_LIMIT, Place,
    archive::{Archive, File},
    encoding::{Decoder, Foreign, ZIP},
    pieces::{Kind, Piece, Splitter},
    table::Header,
};

/// One value of an input, or why it could not be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Where it is.
    pub place: Place,
    /// The value, or the problem.
    pub content: Result<Content, String>,
}

/// The values of an input whose bytes are pushed as they come. It holds the bytes that were pushed and not read yet, of a value at
/// most `limit`. Of an archive it holds all bytes, and the values come once it is whole.
///
/// A value that begins with `[` is an array, whose elements are the values. An object ends where its brackets are closed. Anything else is a
/// value to the end of its line. Blank lines are skipped. After a value that is broken, reading goes on with the next line.
///
/// If the first line is the header of a table in CSV, each row is a value: an object with the names of the header. A cell that is an
/// object or a list in JSON is that value, an empty cell is left out, and another one is a string.
pub struct Records {
    limit: usize,
    decoder: Decoder,
    /// The files that are the values, where the input is an archive and was pushed.
    archive: Option<Archive>,
    splitter: Splitter,
    /// The lines of the text that are objects, which were parsed on all cores, and where they are in it.
    lines: VecDeque<(Range<usize>, Content)>,
    /// The rows of the table that were read together.
    rows: VecDeque<Record>,
    table: Option<Header>,
    is_begun: bool,
}

const NEWLINE: u8 = b'\n';

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
            archive: None,
            splitter: Splitter::new(limit),
            lines: VecDeque::new(),
            rows: VecDeque::new(),
            table: None,
            is_begun: false,
        }
    }

    /// Takes the next bytes of the input. All values that are there must have been taken before.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Foreign> {
        let text = self.decoder.push(bytes)?;
        self.add_text(&text);
        Ok(())
    }

    /// Ends the input.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn finish(&mut self) -> Result<(), Foreign> {
        let rest = self.decoder.finish()?;
        if let Some(bytes) = self.decoder.take_archive() {
            self.archive = Some(Archive::open(bytes).ok_or(ZIP)?);
        }
        self.add_text(&rest);
        self.splitter.finish();
        Ok(())
    }

    fn add_text(&mut self, text: &[u8]) {
        self.splitter.push(text);
        // Ranges of the text before are none of this one.
        self.lines = self
            .splitter
            .lines()
            .map(|lines| self.parse_lines(lines))
            .unwrap_or_default();
    }

    /// Returns the whole lines of a range that begin with a brace and are JSON, parsed on all cores.
    fn parse_lines(&self, range: Range<usize>) -> VecDeque<(Range<usize>, Content)> {
        let text = self.splitter.text();
        let mut start = range.start;
        let lines: Vec<_> = memchr_iter(NEWLINE, &text[range.clone()])
            .filter_map(|newline| {
                let line = start..range.start + newline;
                start = line.end + 1;
                let blanks = text[line.clone()].iter().position(|byte| !is_blank(*byte))?;
                let is_read = text[line.start + blanks] == b'{' && line.len() <= self.limit;
                is_read.then_some(line.start + blanks..line.end)
            })
            .collect();
        let parsed = lines.into_par_iter().filter_map(|line| {
            let content = parse(&text[line.clone()]).ok()?;
            Some((line, content))
        });
        let parsed: Vec<_> = parsed.collect();
        parsed.into()
    }

    /// Reads a piece of the text; `None` if it has no value. `content` is that of a line which was parsed to see whether it is a value.
    fn read(&mut self, piece: Piece, content: Option<Content>) -> Option<Record> {
        let size = piece.range.len() as u64;
        let text = &self.splitter.text()[piece.range];
        let is_first = !self.is_begun && piece.index.is_none();
        self.is_begun |= piece.kind != Kind::Between;
        let content = match (piece.kind, content) {
            (Kind::Between, _) => return None,
            (Kind::Text, _) if is_first && let Some(header) = Header::read(text) => {
                self.table = Some(header);
                self.splitter.split_rows();
                return None;
            }
            (Kind::Row, _) => {
                let rows = self.table.iter().flat_map(|table| table.rows(text));
                let rows = rows.map(|row| Record {
                    place: Place {
                        line: Some(piece.line + row.line),
                        index: None,
                        size: row.size,
                    },
                    content: row.value.map(|value| (value, None)),
                });
                self.rows.extend(rows);
                return self.rows.pop_front();
            }
            (Kind::TooLong, _) => Err(too_long(self.limit)),
            (Kind::CutOff, _) => Err("not JSON: the array ends without its bracket".into()),
            (Kind::Value | Kind::Text, Some(content)) => Ok(content),
            (Kind::Text, None) if let Some(data) = data_of_event(text) => parse(data?),
            (Kind::Value | Kind::Text, None) => parse(text),
        };
        let place = Place {
            line: Some(piece.line),
            index: piece.index,
            size,
        };
        Some(Record { place, content })
    }

    /// Returns the value that a file of an archive holds.
    fn read_file(&self, file: File) -> Record {
        let (size, content) = match file.contents {
            Ok(Some(bytes)) => (bytes.len() as u64, parse(&bytes)),
            Ok(None) => (self.limit as u64, Err(too_long(self.limit))),
            Err(error) => (0, Err(error)),
        };
        Record {
            place: Place {
                line: file.number,
                index: None,
                size,
            },
            content: content.map_err(|error| format!("{}: {error}", file.name)),
        }
    }
}

/// Yields the values that are there so far; more may come after more was pushed.
impl Iterator for Records {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if let Some(archive) = &mut self.archive {
            let file = archive.next(self.limit)?;
            return Some(self.read_file(file));
        }
        if let Some(row) = self.rows.pop_front() {
            return Some(row);
        }
        loop {
            let mut content = None;
            let lines = &mut self.lines;
            let piece = self.splitter.next(&mut |line, at| {
                while lines.front().is_some_and(|(range, _)| range.start < at) {
                    lines.pop_front();
                }
                content = match lines.front() {
                    Some((range, _)) if range.start == at => lines.pop_front().map(|(_, content)| content),
                    _ => parse(line).ok(),
                };
                content.is_some()
            })?;
            if let Some(record) = self.read(piece, content) {
                return Some(record);
            }
        }
    }
}

/// A value, and its text if it may be a trace.
pub type Content = (Value, Option<String>);

fn parse(bytes: &[u8]) -> Result<Content, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8")?;
    let text = trim(text);
    let value = parse_str(text).map_err(|error| reason_of(&error))?;
    let text = may_be_trace(&value).then(|| text.to_owned());
    Ok((value, text))
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

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

fn too_long(limit: usize) -> String {
    #[allow(clippy::cast_precision_loss)] // For a message.
    let megabytes = limit as f64 / 1024.0 / 1024.0;
    format!("longer than {} MB", knowledgepulse_json::number(megabytes))
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

/// Returns the problem of a text that is not read as JSON.
#[must_use]
pub fn reason_of(error: &ParseError) -> String {
    if error.is_too_deep() {
        "it is nested too deeply".into()
    } else {
        format!("not JSON: {error}")
    }
}
