//! Splits a file into the parts that are cleaned by themselves, in bounded memory: JSON values, and the text between them.

use knowledgepulse_clean::block_of;
use knowledgepulse_formats::DEFAULT_LIMIT;
use knowledgepulse_json::{Value, parse_str};

use crate::error::{Failure, Result};

/// So many bytes of text may wait for more.
const MOST_TEXT: usize = 1024 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A part of a file.
pub(super) enum Part<'t> {
    /// A JSON object or array, and its text.
    Json(&'t str, Value),
    /// Lines of text.
    Text(&'t str),
    /// Signs between JSON values, in which nothing is to be cleaned.
    Between(&'t str),
}

/// Takes a part and the line on which it begins, from 1.
pub(super) type Take<'t> = dyn FnMut(Part, usize) -> Result<()> + 't;

/// The bytes of a file on their way to its parts.
pub(super) struct Parts<'n> {
    /// The name of the file in messages.
    name: &'n str,
    /// The most bytes of a value, or of a line of text.
    limit: u64,
    bytes: Vec<u8>,
    /// The bytes before `start` are through; those from there to `next` are text, and the rest was not looked at.
    start: usize,
    next: usize,
    /// The line of `start`.
    line: usize,
    is_begun: bool,
    /// Whether a value of several lines may begin: at the beginning of the file, and behind a value.
    may_begin: bool,
    /// Whether the elements of an array are handed on one by one, because it is too long.
    in_array: bool,
    scan: Scan,
}

/// How far a JSON value was followed.
#[derive(Default)]
struct Scan {
    /// In bytes from its beginning.
    at: usize,
    depth: usize,
    in_string: bool,
}

impl Scan {
    /// Follows the object or array at the beginning of these bytes. Returns its end, once that is there.
    fn end_of_value(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'\\' if self.in_string => {
                    // The next byte may not be there yet.
                    bytes.get(self.at + 1)?;
                    self.at += 1;
                }
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if self.depth == 0 {
                return Some(self.at);
            }
        }
        None
    }

    /// Returns the end of the line at the beginning of these bytes, once that is there.
    fn end_of_line(&mut self, bytes: &[u8]) -> Option<usize> {
        let end = memchr::memchr(b'\n', &bytes[self.at.min(bytes.len())..]);
        let end = end.map(|end| self.at + end + 1);
        self.at = end.unwrap_or(bytes.len());
        end
    }
}

/// What is next in a file.
enum Next {
    Json(usize, Value),
    Text(usize),
    Between(usize),
}

impl<'n> Parts<'n> {
    pub(super) fn new(name: &'n str) -> Self {
        Self {
            name,
            limit: DEFAULT_LIMIT,
            bytes: Vec::new(),
            start: 0,
            next: 0,
            line: 1,
            is_begun: false,
            may_begin: true,
            in_array: false,
            scan: Scan::default(),
        }
    }

    /// Hands on the parts that end in more bytes of the file.
    pub(super) fn push(&mut self, bytes: &[u8], take: &mut Take) -> Result<()> {
        self.bytes.drain(..self.start);
        self.next -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
        self.advance(false, take)
    }

    /// Hands on the rest of the file.
    pub(super) fn finish(&mut self, take: &mut Take) -> Result<()> {
        self.advance(true, take)?;
        self.give_text(0, take)
    }

    fn advance(&mut self, is_over: bool, take: &mut Take) -> Result<()> {
        if !self.is_begun && (self.bytes.len() >= BYTE_ORDER_MARK.len() || is_over) {
            self.is_begun = true;
            self.next = if self.bytes.starts_with(BYTE_ORDER_MARK) {
                BYTE_ORDER_MARK.len()
            } else {
                0
            };
            self.give(self.next, take, Part::Between)?;
        }
        while self.is_begun && self.next < self.bytes.len() {
            let Some(next) = self.next(is_over)? else {
                return Ok(());
            };
            self.scan = Scan::default();
            match next {
                Next::Text(length) => {
                    self.next += length;
                    self.give_text(MOST_TEXT, take)?;
                }
                Next::Between(length) => {
                    self.give_text(0, take)?;
                    self.give(length, take, Part::Between)?;
                }
                Next::Json(length, value) => {
                    self.give_text(0, take)?;
                    self.give(length, take, |text| Part::Json(text, value))?;
                }
            }
        }
        Ok(())
    }

    /// Finds out what the bytes from `next` on are; `None` if the bytes that are there do not tell.
    fn next(&mut self, is_over: bool) -> Result<Option<Next>> {
        let bytes = &self.bytes[self.next..];
        let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let first = bytes.get(blank).copied();
        if self.in_array {
            return self.next_in_array(blank, first, is_over);
        }
        let is_indented = !bytes[..blank].contains(&b'\n');
        if self.may_begin && is_indented && matches!(first, Some(b'{' | b'[')) {
            if let Some(next) = self.whole_value(blank, is_over) {
                return next;
            }
            self.scan = Scan::default();
        }
        let bytes = &self.bytes[self.next..];
        let Some(length) = self.scan.end_of_line(bytes).or(is_over.then_some(bytes.len())) else {
            return self.wait(bytes.len());
        };
        // Blank lines between values change nothing.
        self.may_begin &= bytes[..length].trim_ascii().is_empty();
        let line = &bytes[..length];
        let value = line.starts_with(b"{").then(|| value_of(line)).flatten();
        self.may_begin |= value.is_some();
        Ok(Some(
            value.map_or(Next::Text(length), |value| Next::Json(length, value)),
        ))
    }

    /// Finds the end of a value of any number of lines. Returns `None` if there is no such value.
    fn whole_value(&mut self, blank: usize, is_over: bool) -> Option<Result<Option<Next>>> {
        let bytes = &self.bytes[self.next..];
        let end = self.scan.end_of_value(&bytes[blank..]);
        if end.unwrap_or(bytes.len() - blank) as u64 > self.limit {
            let inner = bytes[blank + 1..].trim_ascii_start().first();
            self.in_array = bytes[blank] == b'[' && inner == Some(&b'{');
            return match bytes[blank] {
                _ if self.in_array => Some(Ok(Some(Next::Between(blank + 1)))),
                // Text begins so too.
                b'[' => None,
                _ => Some(Err(self.too_long())),
            };
        }
        let Some(end) = end else {
            return (!is_over).then_some(Ok(None));
        };
        let end = blank + end;
        let rest = &bytes[end..];
        let line = memchr::memchr(b'\n', rest).map(|at| at + 1);
        let line = line.or(is_over.then_some(rest.len()));
        if line.is_none() && rest.trim_ascii().is_empty() {
            // The line may go on.
            self.scan.at -= 1;
            self.scan.depth = 1;
            return Some(self.wait(rest.len()));
        }
        let line = line.unwrap_or(rest.len());
        if !rest[..line].trim_ascii().is_empty() {
            return None;
        }
        value_of(&bytes[..end]).map(|value| Ok(Some(Next::Json(end + line, value))))
    }

    /// Finds the next element of an array, or the signs before it.
    fn next_in_array(&mut self, blank: usize, first: Option<u8>, is_over: bool) -> Result<Option<Next>> {
        let bytes = &self.bytes[self.next..];
        match first {
            Some(b',') => return Ok(Some(Next::Between(blank + 1))),
            Some(b']') => {
                (self.in_array, self.may_begin) = (false, true);
                return Ok(Some(Next::Between(blank + 1)));
            }
            _ if blank > 0 => return Ok(Some(Next::Between(blank))),
            Some(b'{' | b'[') => {}
            // A number or a text.
            _ => {
                (self.in_array, self.may_begin) = (false, false);
                return self.next(is_over);
            }
        }
        let Some(end) = self.scan.end_of_value(bytes).or(is_over.then_some(bytes.len())) else {
            return self.wait(bytes.len());
        };
        let value = value_of(&bytes[..end]);
        Ok(Some(
            value.map_or(Next::Text(end), |value| Next::Json(end, value)),
        ))
    }

    /// Asks for more bytes, unless there are too many already.
    fn wait(&self, length: usize) -> Result<Option<Next>> {
        if length as u64 <= self.limit {
            Ok(None)
        } else {
            Err(self.too_long())
        }
    }

    fn too_long(&self) -> Failure {
        let before = &self.bytes[self.start..self.next];
        let line = self.line + memchr::memchr_iter(b'\n', before).count();
        let megabytes = DEFAULT_LIMIT / 1024 / 1024;
        Failure::file(format!("{}:{line}: longer than {megabytes} MB", self.name))
    }

    /// Hands on the text before `next` in blocks, until no more than so many bytes wait.
    fn give_text(&mut self, most: usize, take: &mut Take) -> Result<()> {
        while self.next - self.start > most {
            let text = text_of(self.name, &self.bytes[self.start..self.next])?;
            let block = block_of(text);
            take(Part::Text(&text[..block]), self.line)?;
            self.line += memchr::memchr_iter(b'\n', &text.as_bytes()[..block]).count();
            self.start += block;
        }
        Ok(())
    }

    /// Hands on so many bytes from `start` on.
    fn give<'t>(
        &'t mut self,
        length: usize,
        take: &mut Take,
        part: impl FnOnce(&'t str) -> Part<'t>,
    ) -> Result<()> {
        let range = self.start..self.start + length;
        let lines = memchr::memchr_iter(b'\n', &self.bytes[range.clone()]).count();
        let line = self.line;
        self.line += lines;
        self.start = range.end;
        self.next = range.end;
        if range.is_empty() {
            return Ok(());
        }
        take(part(text_of(self.name, &self.bytes[range])?), line)
    }
}

fn text_of<'t>(name: &str, bytes: &'t [u8]) -> Result<&'t str> {
    std::str::from_utf8(bytes)
        .map_err(|_| Failure::file(format!("{name} is not UTF-8 text; iconv makes it so")))
}

fn value_of(bytes: &[u8]) -> Option<Value> {
    parse_str(std::str::from_utf8(bytes).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts of a text that is pushed in pieces of so many bytes.
    fn parts(text: &str, size: usize, limit: u64) -> std::result::Result<Vec<String>, String> {
        let mut found = Vec::new();
        let mut take = |part: Part, line: usize| {
            let (kind, text) = match part {
                Part::Json(text, _) => ('J', text),
                Part::Text(text) => ('T', text),
                Part::Between(text) => ('-', text),
            };
            found.push(format!("{line}{kind}{text}"));
            Ok(())
        };
        let mut parts = Parts {
            limit,
            ..Parts::new("in")
        };
        let mut push = || {
            for bytes in text.as_bytes().chunks(size) {
                parts.push(bytes, &mut take)?;
            }
            parts.finish(&mut take)
        };
        push().map_err(|failure| failure.message)?;
        Ok(found)
    }

    #[test]
    fn parts_are_values_of_any_number_of_lines_and_the_text_between_them() {
        for (text, expected) in [
            ("", &[][..]),
            ("{\"a\":1}", &["1J{\"a\":1}"]),
            (
                "\u{feff}{}\n\n[1]\n",
                &["1-\u{feff}", "1J{}\n", "2T\n", "3J[1]\n"],
            ),
            (
                "{\n\"a\": [\"}\\\"\"]\n}\n{\n}\nend",
                &["1J{\n\"a\": [\"}\\\"\"]\n}\n", "4J{\n}\n", "6Tend"],
            ),
            ("a\n{\"b\":1}\nc\n{\nd", &["1Ta\n", "2J{\"b\":1}\n", "3Tc\n{\nd"]),
            ("[x] log\n{\"a\":1}\n", &["1T[x] log\n", "2J{\"a\":1}\n"]),
            ("{} trailing\n{}", &["1T{} trailing\n", "2J{}"]),
            ("{\"a\":\n", &["1T{\"a\":\n"]),
        ] {
            for size in 1..=text.len().max(1) {
                assert_eq!(parts(text, size, 1000).unwrap(), expected, "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn elements_of_an_array_that_is_too_long_are_parts() {
        let text = "[\n {\"a\":\"xxxxxxxx\"},\n {\"b\":[2]}\n]\n{}\n";
        let expected = [
            "1-[",
            "1-\n ",
            "2J{\"a\":\"xxxxxxxx\"}",
            "2-,",
            "2-\n ",
            "3J{\"b\":[2]}",
            "3-\n]",
            "4T\n",
            "5J{}\n",
        ];
        assert_eq!(parts(text, 30, 28).unwrap(), expected);
        assert_eq!(parts(text, 30, 1000).unwrap().len(), 2);
        for size in 1..60 {
            let parts = parts(text, size, 28).unwrap();
            let whole: String = parts.iter().map(|part| &part[2..]).collect();
            assert_eq!(whole, text, "by {size}");
        }
    }

    #[test]
    fn values_and_lines_that_are_too_long_are_refused() {
        let too_long = |line| Err(format!("in:{line}: longer than 64 MB"));
        assert_eq!(
            parts(&format!("{{}}\n{{\"a\":\"{}\"}}", "x".repeat(50)), 7, 40),
            too_long(2)
        );
        assert_eq!(parts(&format!("a\nb\n{}", "x".repeat(50)), 7, 40), too_long(3));
        assert_eq!(
            parts(&format!("[{{\"a\":\"{}\"}}]", "x".repeat(50)), 7, 40),
            too_long(1)
        );
    }

    #[test]
    fn text_that_is_not_utf8_is_refused() {
        let mut parts = Parts::new("in");
        let pushed = parts
            .push(b"a\xff\n", &mut |_, _| Ok(()))
            .and_then(|()| parts.finish(&mut |_, _| Ok(())));
        assert_eq!(
            pushed.unwrap_err().message,
            "in is not UTF-8 text; iconv makes it so"
        );
    }
}
