//! Splits a file into its JSON values and the text between them, in linear time and bounded memory.
//!
//! A value is a line, an element of an array, or what stands from a brace at the beginning of a line to the one that closes it. Everything
//! else is text. The parts follow each other without a gap.

use std::str;

use knowledgepulse_json::{Value, parse_str};
use memchr::memchr_iter;

use crate::pieces::{self, Kind};

/// So many bytes of text may wait for more.
const MOST_TEXT: usize = 1024 * 1024;

/// A part of a file.
#[derive(Debug)]
pub enum Part<'t> {
    /// A JSON value, and its text with the end of its line.
    Json(&'t str, Value),
    /// Text that is no JSON.
    Text(&'t str),
}

/// Why a file cannot be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitError {
    /// It is not UTF-8.
    NotUtf8,
    /// The line or the element that begins on this line is longer than the limit.
    TooLong(usize),
    /// The value on this line is nested more deeply than JSON is read.
    TooDeep(usize),
}

/// Takes a part and the line on which it begins, from 1.
pub type Take<'t, E> = dyn FnMut(Part, usize) -> Result<(), E> + 't;

/// Returns how many bytes of a text, at least one, may be handed on by themselves: where more than a megabyte waits, and at its end.
pub type Cut = fn(&str) -> usize;

/// The bytes of a file on their way to its parts.
pub struct Splitter {
    pieces: pieces::Splitter,
    cut: Cut,
    /// Bytes before `start` were handed on; those from there to `next` are text.
    start: usize,
    next: usize,
    /// The line of `start`.
    line: usize,
}

impl Splitter {
    /// Creates a splitter of values and lines of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: u64, cut: Cut) -> Self {
        Self {
            pieces: pieces::Splitter::of_whole_text(limit),
            cut,
            start: 0,
            next: 0,
            line: 1,
        }
    }

    /// Hands on the parts that end in more bytes of the file.
    ///
    /// # Errors
    /// A [`SplitError`], or the error of `take`.
    pub fn push<E: From<SplitError>>(&mut self, bytes: &[u8], take: &mut Take<E>) -> Result<(), E> {
        self.pieces.push_after(bytes, self.start);
        self.next -= self.start;
        self.start = 0;
        self.advance(take)
    }

    /// Hands on the rest of the file.
    ///
    /// # Errors
    /// Those of [`Splitter::push`].
    pub fn finish<E: From<SplitError>>(&mut self, take: &mut Take<E>) -> Result<(), E> {
        self.pieces.finish();
        self.advance(take)?;
        self.give_text(0, take)
    }

    fn advance<E: From<SplitError>>(&mut self, take: &mut Take<E>) -> Result<(), E> {
        loop {
            let mut read = None;
            let piece = self.pieces.next(&mut |line, _| {
                let value = value_of(line);
                let is_value = !matches!(value, Ok(None));
                read = Some(value);
                is_value
            });
            let Some(piece) = piece else {
                return Ok(());
            };
            let line = usize::try_from(piece.line).unwrap_or(usize::MAX);
            let text = &self.pieces.text()[piece.range.clone()];
            let value = match piece.kind {
                Kind::TooLong => return Err(SplitError::TooLong(line).into()),
                Kind::Value => match read {
                    None | Some(Ok(None)) => value_of(text),
                    Some(read) => read,
                },
                Kind::Text if text.starts_with(b"[") => value_of(text),
                Kind::Text | Kind::Between | Kind::Row | Kind::CutOff => Ok(None),
            };
            let value = value.map_err(|error| error.at(line))?;
            self.next = piece.range.start;
            match value {
                Some(value) => {
                    self.give_text(0, take)?;
                    let rest = if piece.index.is_none() {
                        self.pieces.end_line()
                    } else {
                        0
                    };
                    let end = piece.range.end + rest;
                    let text = text_of(&self.pieces.text()[piece.range.start..end])?;
                    take(Part::Json(text, value), line)?;
                    self.line += memchr_iter(b'\n', text.as_bytes()).count();
                    (self.start, self.next) = (end, end);
                }
                None => {
                    self.next = piece.range.end;
                    self.give_text(MOST_TEXT, take)?;
                }
            }
        }
    }

    /// Hands on the text before `next` in blocks, until no more than so many bytes wait.
    fn give_text<E: From<SplitError>>(&mut self, most: usize, take: &mut Take<E>) -> Result<(), E> {
        while self.next - self.start > most {
            let text = text_of(&self.pieces.text()[self.start..self.next])?;
            let (block, _) = text.split_at((self.cut)(text));
            take(Part::Text(block), self.line)?;
            self.line += memchr_iter(b'\n', block.as_bytes()).count();
            self.start += block.len();
        }
        Ok(())
    }
}

impl SplitError {
    fn at(self, line: usize) -> Self {
        match self {
            Self::TooDeep(_) => Self::TooDeep(line),
            error => error,
        }
    }
}

fn value_of(bytes: &[u8]) -> Result<Option<Value>, SplitError> {
    match parse_str(text_of(bytes)?.trim()) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_too_deep() => Err(SplitError::TooDeep(0)),
        Err(_) => Ok(None),
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, SplitError> {
    str::from_utf8(bytes).map_err(|_| SplitError::NotUtf8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the parts of a text that is pushed in pieces of so many bytes.
    fn parts_of(text: &[u8], size: usize, limit: u64) -> Result<Vec<String>, SplitError> {
        let mut found = Vec::new();
        let mut take = |part: Part, line: usize| {
            found.push(match part {
                Part::Json(text, _) => format!("{line}J{text}"),
                Part::Text(text) => format!("{line}T{text}"),
            });
            Ok(())
        };
        let mut splitter = Splitter::new(limit, str::len);
        let mut push = || {
            for bytes in text.chunks(size) {
                splitter.push(bytes, &mut take)?;
            }
            splitter.finish(&mut take)
        };
        push().map(|()| found)
    }

    fn parts(text: &str, size: usize, limit: u64) -> Result<Vec<String>, SplitError> {
        parts_of(text.as_bytes(), size, limit)
    }

    #[test]
    fn parts_are_values_of_any_number_of_lines_and_the_text_between_them() {
        for (text, expected) in [
            ("", &[][..]),
            ("{\"a\":1}", &["1J{\"a\":1}"]),
            (
                "\u{feff}{}\n\n[1]\n",
                &["1T\u{feff}", "1J{}\n", "2T\n", "3J[1]\n"],
            ),
            (
                "{\n\"a\": [\"}\\\"\"]\n}\n{\n}\nend",
                &["1J{\n\"a\": [\"}\\\"\"]\n}\n", "4J{\n}\n", "6Tend"],
            ),
            ("a\n{\"b\":1}\nc\n{\nd", &["1Ta\n", "2J{\"b\":1}\n", "3Tc\n{\nd"]),
            ("a\n{\n\"b\":1}\nc", &["1Ta\n", "2J{\n\"b\":1}\n", "4Tc"]),
            ("[x] log\n{\"a\":1}\n", &["1T[x] log\n", "2J{\"a\":1}\n"]),
            ("{} end\n{}{}", &["1T{} end\n", "2J{}", "2J{}"]),
            ("{\"a\":\n", &["1T{\"a\":\n"]),
            // A cut-off line hides no value behind it.
            ("{\"a\":\"b\n{\"c\":1}\n", &["1T{\"a\":\"b\n", "2J{\"c\":1}\n"]),
            ("{\"a\":[1\n{\"c\":1}\n", &["1T{\"a\":[1\n", "2J{\"c\":1}\n"]),
            (
                "[\n {\"a\":1},\n {\"b\":[2]}\n]\n{}\n",
                &[
                    "1T[\n ",
                    "2J{\"a\":1}",
                    "2T,\n ",
                    "3J{\"b\":[2]}",
                    "3T\n]\n",
                    "5J{}\n",
                ],
            ),
            ("[{'a': 1}, x]\n{}", &["1T[{'a': 1}, x]\n", "2J{}"]),
        ] {
            for size in 1..=text.len().max(1) {
                assert_eq!(parts(text, size, 1000).unwrap(), expected, "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn lines_that_are_too_long_are_refused_and_longer_values_are_text() {
        let long = "x".repeat(50);
        for (text, line) in [
            (format!("{{}}\n{{\"a\":\"{long}\"}}"), 2),
            (format!("a\nb\n{long}"), 3),
            (format!("[\n{{\"a\":\"{long}\"}}]"), 2),
        ] {
            assert_eq!(parts(&text, 7, 40), Err(SplitError::TooLong(line)), "{text}");
        }
        let lines = "1,\n".repeat(30);
        let text = format!("{{\"a\":[\n{lines}\n{{}}\n");
        assert_eq!(parts(&text, 7, 40).unwrap().last().unwrap(), "33J{}\n");
        let elements = format!("[{}]", ["{\"a\":\"xxxxxxxx\"}"; 9].join(","));
        assert_eq!(parts(&elements, 7, 40).unwrap().len(), 19);
    }

    #[test]
    fn text_that_is_not_utf8_and_values_that_are_nested_too_deeply_are_refused() {
        assert_eq!(parts_of(b"a\xff\n", 9, 99), Err(SplitError::NotUtf8));
        let deep = "a\n".to_owned() + &"[".repeat(2000) + &"]".repeat(2000);
        assert_eq!(parts(&deep, 99, 9999), Err(SplitError::TooDeep(2)));
    }

    proptest! {
        #[test]
        fn parts_make_up_the_text_whatever_it_is(
            pieces in proptest::collection::vec(r#"[\[\]{}":,a1\\ \n\r]{1,4}|\{"a":1\}|\[\{|é|\u{feff}"#, 0..20),
            size in 1_usize..9,
        ) {
            let text = pieces.concat();
            let parts = parts(&text, size, 1000).unwrap();
            let whole: String = parts.iter().map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()).split_at(1).1).collect();
            prop_assert_eq!(&whole, &text);
            prop_assert_eq!(parts.len(), self::parts(&text, text.len().max(1), 1000).unwrap().len());
        }
    }
}
