//! Splits a file into its JSON values and the text between them, which are cleaned each by itself.

use knowledgepulse_json::Value;
use memchr::memchr_iter;

use crate::split::{Broken, Kind, Splitter};

/// So many bytes of text may wait for more.
const MOST_TEXT: usize = 1024 * 1024;

/// A section of a file.
#[derive(Debug)]
pub enum Section {
    /// A JSON value, and its text.
    Json(String, Value),
    /// Text that is no JSON.
    Text(String),
}

/// Why a file cannot be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitError {
    /// It is not UTF-8.
    NotUtf8,
    /// The line or the element that begins on this line is longer than the limit.
    TooLong(u64),
    /// The value on this line is nested more deeply than JSON is read.
    TooDeep(u64),
}

/// Returns how many bytes of a text, at least one, may be handed on by themselves: where more than a megabyte waits, and at its end.
pub type Cut = fn(&str) -> usize;

/// The bytes of a file on their way to its sections. Yields those that are there so far, each with its line, from 1; more may come after
/// more was pushed.
pub struct Sections {
    splitter: Splitter,
    cut: Cut,
    /// The text that waits, how much of it was handed on, and the line of the rest.
    text: String,
    given: usize,
    line: u64,
    /// The value behind the text.
    value: Option<(u64, Section)>,
}

impl Sections {
    /// Creates a splitter of values and lines of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: u64, cut: Cut) -> Self {
        Self {
            splitter: Splitter::new(limit, true),
            cut,
            text: String::new(),
            given: 0,
            line: 1,
            value: None,
        }
    }

    /// Takes more bytes of the file. All sections that are there must have been taken before.
    pub fn push(&mut self, bytes: &[u8]) {
        self.text.drain(..std::mem::take(&mut self.given));
        self.splitter.push(bytes);
    }

    /// Ends the file.
    pub fn finish(&mut self) {
        self.splitter.finish();
    }

    /// Hands on a block of the text that waits, unless it has only so many bytes.
    fn block(&mut self, most: usize) -> Option<(u64, Section)> {
        let rest = &self.text[self.given..];
        if rest.len() <= most {
            return None;
        }
        let block = rest[..(self.cut)(rest)].to_owned();
        let line = self.line;
        self.given += block.len();
        self.line += memchr_iter(b'\n', block.as_bytes()).count() as u64;
        Some((line, Section::Text(block)))
    }

    /// Takes the next piece; `None` if it is not there yet.
    fn take(&mut self) -> Option<Result<(), SplitError>> {
        let piece = self.splitter.next()?;
        let Ok(text) = std::str::from_utf8(&self.splitter.text()[piece.range]) else {
            return Some(Err(SplitError::NotUtf8));
        };
        match piece.kind {
            Kind::TooLong => return Some(Err(SplitError::TooLong(piece.line))),
            Kind::Broken(Broken::TooDeep) => return Some(Err(SplitError::TooDeep(piece.line))),
            Kind::Value(value) => self.value = Some((piece.line, Section::Json(text.to_owned(), value))),
            Kind::Broken(_) | Kind::Text | Kind::Between => {
                if self.text.len() == self.given {
                    self.line = piece.line;
                }
                self.text.push_str(text);
            }
        }
        Some(Ok(()))
    }
}

impl Iterator for Sections {
    type Item = Result<(u64, Section), SplitError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let most = if self.value.is_some() { 0 } else { MOST_TEXT };
            if let Some(section) = self.block(most).or_else(|| self.value.take()) {
                return Some(Ok(section));
            }
            match self.take() {
                Some(Ok(())) => {}
                Some(Err(error)) => return Some(Err(error)),
                None if self.splitter.is_over() => return self.block(0).map(Ok),
                None => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the sections of a text that is pushed in pieces of so many bytes.
    fn parts_of(text: &[u8], size: usize, limit: u64) -> Result<Vec<String>, SplitError> {
        let told = |section| {
            let (line, section) = section?;
            Ok(match section {
                Section::Json(text, _) => format!("{line}J{text}"),
                Section::Text(text) => format!("{line}T{text}"),
            })
        };
        let mut sections = Sections::new(limit, str::len);
        let mut found = Vec::new();
        for bytes in text.chunks(size) {
            sections.push(bytes);
            found.extend(sections.by_ref().map(told).collect::<Result<Vec<_>, _>>()?);
        }
        sections.finish();
        found.extend(sections.map(told).collect::<Result<Vec<_>, _>>()?);
        Ok(found)
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
                &["1T\u{feff}", "1J{}", "1T\n\n", "3J[1]", "3T\n"],
            ),
            (
                "{\n\"a\": [\"}\\\"\"]\n}\n{\n}\nend",
                &["1J{\n\"a\": [\"}\\\"\"]\n}", "3T\n", "4J{\n}", "5T\nend"],
            ),
            ("a\n{\"b\":1}\nc\n{\nd", &["1Ta\n", "2J{\"b\":1}", "2T\nc\n{\nd"]),
            ("a\n{\n\"b\":1}\nc", &["1Ta\n", "2J{\n\"b\":1}", "3T\nc"]),
            ("[x] log\n{\"a\":1}\n", &["1T[x] log\n", "2J{\"a\":1}", "2T\n"]),
            ("{} end\n{}{}", &["1T{} end\n", "2J{}", "2J{}"]),
            ("{}{}\u{feff}\n", &["1J{}", "1T{}\u{feff}\n"]),
            ("{}\u{feff}\n{}", &["1T{}\u{feff}\n", "2J{}"]),
            ("{\"a\":\n", &["1T{\"a\":\n"]),
            // A cut-off line hides no value behind it.
            (
                "{\"a\":\"b\n{\"c\":1}\n",
                &["1T{\"a\":\"b\n", "2J{\"c\":1}", "2T\n"],
            ),
            (
                "{\"a\":[1\n{\"c\":1}\n",
                &["1T{\"a\":[1\n", "2J{\"c\":1}", "2T\n"],
            ),
            (
                "[\n {\"a\":1},\n {\"b\":[2]}\n]\n{}\n",
                &[
                    "1T[\n ",
                    "2J{\"a\":1}",
                    "2T,\n ",
                    "3J{\"b\":[2]}",
                    "3T\n]\n",
                    "5J{}",
                    "5T\n",
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
        assert!(parts(&text, 7, 40).unwrap().contains(&"33J{}".to_owned()));
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
