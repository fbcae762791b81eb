//! Splits a file into its JSON values and the text between them, in linear time and bounded memory.
//!
//! A value is a line, an element of an array of objects, or what stands from a bracket at the beginning of a line to the bracket that closes
//! it. Everything else is text. The parts follow each other without a gap.

use std::str;

use knowledgepulse_json::{Value, parse_str};
use memchr::{memchr, memchr_iter, memchr3};

/// So many bytes of text may wait for more.
const MOST_TEXT: usize = 1024 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// So often, and so many bytes more, the bytes of a file may be followed in vain for the end of a value.
const MOST_VAIN: usize = 4;
const FREE_VAIN: usize = 64 * 1024;

/// A part of a file.
#[derive(Debug)]
pub enum Part<'t> {
    /// A JSON value, and its text with the white space around it.
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
    /// The most bytes of a value, and of a line of text.
    limit: usize,
    cut: Cut,
    bytes: Vec<u8>,
    /// Bytes before `start` were handed on; those from there to `next` are text, and the rest was not looked at.
    start: usize,
    next: usize,
    /// The line of `start`.
    line: usize,
    is_begun: bool,
    in_array: bool,
    /// How far the line at `next` was searched for its end.
    searched: usize,
    scan: Option<Scan>,
    /// How many bytes were handed on, and how many were followed in vain.
    done: usize,
    vain: usize,
}

/// What is next in a file.
enum Next {
    Json(usize, Value),
    Text(usize),
    /// The bytes that are there do not tell.
    Unknown,
}

impl Splitter {
    /// Creates a splitter of values and lines of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: u64, cut: Cut) -> Self {
        Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            cut,
            bytes: Vec::new(),
            start: 0,
            next: 0,
            line: 1,
            is_begun: false,
            in_array: false,
            searched: 0,
            scan: None,
            done: 0,
            vain: 0,
        }
    }

    /// Hands on the parts that end in more bytes of the file.
    ///
    /// # Errors
    /// A [`SplitError`], or the error of `take`.
    pub fn push<E: From<SplitError>>(&mut self, bytes: &[u8], take: &mut Take<E>) -> Result<(), E> {
        self.bytes.drain(..self.start);
        self.next -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
        self.advance(false, take)
    }

    /// Hands on the rest of the file.
    ///
    /// # Errors
    /// Those of [`Splitter::push`].
    pub fn finish<E: From<SplitError>>(&mut self, take: &mut Take<E>) -> Result<(), E> {
        self.advance(true, take)?;
        self.give_text(0, take)
    }

    fn advance<E: From<SplitError>>(&mut self, is_over: bool, take: &mut Take<E>) -> Result<(), E> {
        if !self.is_begun {
            if self.bytes.len() < BYTE_ORDER_MARK.len() && !is_over {
                return Ok(());
            }
            self.is_begun = true;
            if self.bytes.starts_with(BYTE_ORDER_MARK) {
                self.next = BYTE_ORDER_MARK.len();
            }
        }
        while self.next < self.bytes.len() {
            match self.next(is_over)? {
                Next::Unknown => return Ok(()),
                Next::Text(length) => {
                    self.next += length;
                    self.give_text(MOST_TEXT, take)?;
                }
                Next::Json(length, value) => {
                    self.give_text(0, take)?;
                    let end = self.next + length;
                    let text = text_of(&self.bytes[self.next..end])?;
                    let line = self.line;
                    self.line += memchr_iter(b'\n', text.as_bytes()).count();
                    take(Part::Json(text, value), line)?;
                    (self.start, self.next) = (end, end);
                    self.done += length;
                }
            }
            (self.searched, self.scan) = (0, None);
        }
        Ok(())
    }

    /// Hands on the text before `next` in blocks, until no more than so many bytes wait.
    fn give_text<E: From<SplitError>>(&mut self, most: usize, take: &mut Take<E>) -> Result<(), E> {
        while self.next - self.start > most {
            let text = text_of(&self.bytes[self.start..self.next])?;
            let (block, _) = text.split_at((self.cut)(text));
            take(Part::Text(block), self.line)?;
            self.line += memchr_iter(b'\n', block.as_bytes()).count();
            self.done += block.len();
            self.start += block.len();
        }
        Ok(())
    }

    /// Finds out what the bytes from `next` on are.
    fn next(&mut self, is_over: bool) -> Result<Next, SplitError> {
        let bytes = &self.bytes[self.next..];
        let is_between = |byte: &&u8| byte.is_ascii_whitespace() || self.in_array && **byte == b',';
        let before = bytes.iter().take_while(is_between).count();
        let first = bytes.get(before).copied();
        if self.in_array {
            match first {
                _ if before > 0 => return Ok(Next::Text(before)),
                Some(b'{') => {
                    if let Some(next) = self.value(is_over)? {
                        return Ok(next);
                    }
                    // It is a line like any other.
                    (self.in_array, self.scan) = (false, None);
                }
                Some(b']') => {
                    self.in_array = false;
                    return Ok(Next::Text(1));
                }
                _ => self.in_array = false,
            }
        }
        let bytes = &self.bytes[self.next..];
        let is_bracket = matches!(first, Some(b'{' | b'['));
        if first == Some(b'[') && self.scan.is_none() {
            let inner = &bytes[before + 1..];
            match inner.iter().position(|byte| !byte.is_ascii_whitespace()) {
                None if !is_over && inner.len() < self.limit => return Ok(Next::Unknown),
                Some(at) if inner[at] == b'{' => {
                    self.in_array = true;
                    return Ok(Next::Text(before + 1 + at));
                }
                _ => {}
            }
        }
        // A value may begin behind blank lines.
        if before > 0 && bytes[..before].contains(&b'\n') {
            let blank = bytes[..before].iter().rposition(|byte| *byte == b'\n');
            return Ok(Next::Text(blank.unwrap_or_default() + 1));
        }
        if self.scan.is_none() {
            let Some(length) = self.line_length(is_over)? else {
                return Ok(Next::Unknown);
            };
            let line = &self.bytes[self.next..self.next + length];
            if !is_bracket {
                return Ok(Next::Text(length));
            }
            if let Some(value) = self.value_of(line)? {
                return Ok(Next::Json(length, value));
            }
        }
        if let Some(next) = self.value(is_over)? {
            return Ok(next);
        }
        let rest = &self.bytes[self.next..];
        Ok(Next::Text(memchr(b'\n', rest).map_or(rest.len(), |at| at + 1)))
    }

    /// Returns the length of the line at `next`, once its end is there.
    fn line_length(&mut self, is_over: bool) -> Result<Option<usize>, SplitError> {
        let line = &self.bytes[self.next..];
        let end = memchr(b'\n', &line[self.searched..]).map(|at| self.searched + at + 1);
        self.searched = line.len();
        let length = end.or(is_over.then_some(line.len()));
        if length.unwrap_or(line.len()) > self.limit {
            return Err(SplitError::TooLong(self.line_of_next()));
        }
        Ok(length)
    }

    /// Follows the value at `next`, which may have several lines, to the bracket that closes it. Returns `None` if there is no such value.
    fn value(&mut self, is_over: bool) -> Result<Option<Next>, SplitError> {
        let bytes = &self.bytes[self.next..];
        if self.vain > MOST_VAIN * self.done + FREE_VAIN {
            return Ok(None);
        }
        let scan = self.scan.get_or_insert_default();
        let followed = scan.follow(bytes);
        let length = scan.length;
        match followed {
            Followed::Open if !is_over && length <= self.limit => return Ok(Some(Next::Unknown)),
            Followed::Closed => {
                if let Some(value) = self.value_of(&self.bytes[self.next..self.next + length])? {
                    return Ok(Some(Next::Json(length, value)));
                }
            }
            Followed::Open | Followed::Broken => {}
        }
        self.vain += length;
        Ok(None)
    }

    fn value_of(&self, bytes: &[u8]) -> Result<Option<Value>, SplitError> {
        let Ok(text) = str::from_utf8(bytes) else {
            return Err(SplitError::NotUtf8);
        };
        match parse_str(text.trim()) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_too_deep() => Err(SplitError::TooDeep(self.line_of_next())),
            Err(_) => Ok(None),
        }
    }

    fn line_of_next(&self) -> usize {
        self.line + memchr_iter(b'\n', &self.bytes[self.start..self.next]).count()
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, SplitError> {
    str::from_utf8(bytes).map_err(|_| SplitError::NotUtf8)
}

/// Where following a value has ended.
enum Followed {
    /// It goes on behind the bytes.
    Open,
    /// It ends.
    Closed,
    /// It cannot become JSON any more.
    Broken,
}

/// How far a value was followed.
#[derive(Default)]
struct Scan {
    length: usize,
    depth: usize,
    in_string: bool,
    /// The last byte outside of strings that is no white space, and whether a line has ended since.
    before: u8,
    is_new_line: bool,
}

impl Scan {
    /// Follows the value that these bytes begin with.
    fn follow(&mut self, bytes: &[u8]) -> Followed {
        while let Some(&byte) = bytes.get(self.length) {
            if self.in_string {
                let rest = &bytes[self.length..];
                let Some(at) = memchr3(b'"', b'\\', b'\n', rest) else {
                    self.length = bytes.len();
                    return Followed::Open;
                };
                self.length += at;
                match rest[at] {
                    b'"' => self.in_string = false,
                    b'\\' if self.length + 1 == bytes.len() => return Followed::Open,
                    b'\\' => self.length += 1,
                    // No string goes on in the next line.
                    _ => return Followed::Broken,
                }
                self.length += 1;
                continue;
            }
            self.length += 1;
            match byte {
                b'\n' => self.is_new_line = true,
                _ if byte.is_ascii_whitespace() => {}
                b'{' | b'[' if self.is_new_line && !matches!(self.before, b':' | b',' | b'{' | b'[') => {
                    // Another value begins before this one has ended.
                    return Followed::Broken;
                }
                _ => {
                    match byte {
                        b'"' => self.in_string = true,
                        b'{' | b'[' => self.depth += 1,
                        b'}' | b']' => {
                            self.depth = self.depth.saturating_sub(1);
                            if self.depth == 0 {
                                return Followed::Closed;
                            }
                        }
                        _ => {}
                    }
                    (self.before, self.is_new_line) = (byte, false);
                }
            }
        }
        Followed::Open
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::DEFAULT_LIMIT;

    /// Returns the parts of a text that is pushed in pieces of so many bytes, and how many bytes were followed in vain.
    fn parts_and_cost(text: &[u8], size: usize, limit: u64) -> (Result<Vec<String>, SplitError>, usize) {
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
        let pushed = push();
        (pushed.map(|()| found), splitter.vain)
    }

    fn parts(text: &str, size: usize, limit: u64) -> Result<Vec<String>, SplitError> {
        parts_and_cost(text.as_bytes(), size, limit).0
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
                &["1J{\n\"a\": [\"}\\\"\"]\n}", "3T\n", "4J{\n}", "5T\nend"],
            ),
            ("a\n{\"b\":1}\nc\n{\nd", &["1Ta\n", "2J{\"b\":1}\n", "3Tc\n{\nd"]),
            ("a\n{\n\"b\":1}\nc", &["1Ta\n", "2J{\n\"b\":1}", "3T\nc"]),
            ("[x] log\n{\"a\":1}\n", &["1T[x] log\n", "2J{\"a\":1}\n"]),
            ("{} end\n{}{}", &["1J{}", "1T end\n", "2J{}", "2J{}"]),
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
        assert_eq!(parts_and_cost(b"a\xff\n", 9, 99).0, Err(SplitError::NotUtf8));
        let deep = "a\n".to_owned() + &"[".repeat(2000) + &"]".repeat(2000);
        assert_eq!(parts(&deep, 99, 9999), Err(SplitError::TooDeep(2)));
    }

    #[test]
    fn broken_values_cost_no_more_than_a_few_times_their_length() {
        for unit in [
            "{\n",
            "[\n",
            "{\"a\":[\n",
            "[{\n",
            "{\"a\": 1\n",
            "{\"a\":{},\n",
            "[1,\n",
        ] {
            for count in [10_000, 20_000, 40_000, 80_000, 160_000] {
                let text = unit.repeat(count);
                let (_, vain) = parts_and_cost(text.as_bytes(), 4096, DEFAULT_LIMIT);
                assert!(
                    vain <= (MOST_VAIN + 1) * text.len() + FREE_VAIN,
                    "{unit:?} × {count}: {vain}"
                );
            }
        }
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
