//! Splits a text into JSON values and what is between them, as its bytes come: a line, else a value to its closing bracket, else text.
//! It parses nothing.

use std::{mem, ops::Range};

use memchr::{memchr, memchr_iter, memchr2_iter, memchr3, memrchr};

/// So often, and so many bytes more, the bytes of a text may be followed in vain for the end of a value. After that a line is a value:
/// hostile input takes linear time too.
const MOST_VAIN: usize = 4;
const FREE_VAIN: usize = 64 * 1024;

const NEWLINE: u8 = b'\n';
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a piece of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An object or an element of an array, which may still be no JSON.
    Value,
    /// A line, or the rest of one, that is no value in brackets.
    Text,
    /// White space, a sign of an array that stands between values, or the byte order mark at the beginning of a text.
    Between,
    /// A row of a table, after [`Splitter::split_rows`].
    Row,
    /// The beginning of a value that is longer than the limit. Its text is dropped.
    TooLong,
    /// The place where an array ends without its bracket. It has no text.
    CutOff,
}

/// A piece of a text. The pieces follow each other and leave nothing out, except values that are too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: Kind,
    /// Where it is in [`Splitter::text`], until more is pushed.
    pub range: Range<usize>,
    /// The line on which it begins, from 1.
    pub line: u64,
    /// The position in the array that it is an element of, from 0.
    pub index: Option<u64>,
}

/// Splits a text whose bytes are pushed as they come. Holds what was pushed and not split, of a value at most the limit. Lines end in LF or
/// CRLF.
#[derive(Debug, Default)]
pub struct Splitter {
    limit: usize,
    text: Vec<u8>,
    at: usize,
    is_over: bool,
    /// The line of `at`, from 1, and whether something else than blanks is before it.
    line: u64,
    is_in_line: bool,
    array: Option<Array>,
    /// How far the line, value or row was followed that begins at `at`.
    scan: Option<Scan>,
    /// What is left of a value that is too long.
    skip: Option<Scan>,
    has_rows: bool,
    /// Whether a value of several lines that is too long is text.
    keeps_long: bool,
    /// How many bytes were split off, and how many were followed in vain.
    done: usize,
    vain: usize,
}

/// The array that values are elements of.
#[derive(Debug)]
struct Array {
    index: u64,
    needs_comma: bool,
}

/// What is followed to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Until {
    #[default]
    Line,
    Value,
    Row,
}

/// Decides whether the line at a place of the text is a value.
type IsValue<'f> = dyn FnMut(&[u8], usize) -> bool + 'f;

/// A piece; as an error, one that is too long, or nothing if the text of the next piece is not there yet.
type Found = Result<Piece, Option<Piece>>;

impl Splitter {
    /// Creates a splitter of values of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            line: 1,
            ..Self::default()
        }
    }

    /// Creates a splitter that takes a value of several lines for text if it is longer than the limit, and drops nothing.
    #[must_use]
    pub fn of_whole_text(limit: u64) -> Self {
        Self {
            keeps_long: true,
            ..Self::new(limit)
        }
    }

    /// Takes the next bytes, and drops those that were split.
    pub fn push(&mut self, bytes: &[u8]) {
        self.push_after(bytes, self.at);
    }

    /// Takes the next bytes, and drops so many of those that were split.
    pub fn push_after(&mut self, bytes: &[u8], dropped: usize) {
        self.text.drain(..dropped);
        self.at -= dropped;
        self.text.extend_from_slice(bytes);
    }

    /// Splits off the end of the line if nothing else is left of it; returns its length.
    pub fn end_line(&mut self) -> usize {
        let rest = &self.text[self.at..];
        let blanks = rest
            .iter()
            .take_while(|byte| is_blank(**byte) && **byte != NEWLINE)
            .count();
        let length = if rest.get(blanks) == Some(&NEWLINE) {
            blanks + 1
        } else {
            0
        };
        self.advance(length);
        length
    }

    /// Ends the text.
    pub fn finish(&mut self) {
        self.is_over = true;
    }

    /// Returns the text that pieces are ranges of.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Splits the rest of the text into the rows of a table.
    pub fn split_rows(&mut self) {
        self.has_rows = true;
    }

    /// Returns what was pushed and not split, if it begins with a line.
    pub(crate) fn lines(&self) -> Option<Range<usize>> {
        let is_at_line = self.array.is_none() && self.is_at_line() && self.skip.is_none();
        (is_at_line && !self.has_rows && !self.is_in_line).then_some(self.at..self.text.len())
    }

    /// Returns the next piece; `None` if it is not there yet. `is_value` says whether a line that begins with a brace is JSON: where it is
    /// not, the value goes on in the next line.
    pub fn next(&mut self, is_value: &mut IsValue) -> Option<Piece> {
        self.find(is_value).map_or_else(|early| early, Some)
    }

    fn find(&mut self, is_value: &mut IsValue) -> Found {
        if !self.skip_rest() {
            return Err(None);
        }
        if self.has_rows {
            return match self.follow(Until::Row)? {
                (0, _) => Err(None),
                (length, _) => Ok(self.take(Kind::Row, length)),
            };
        }
        let rest = &self.text[self.at..];
        if self.done == 0 && !rest.is_empty() {
            let length = rest.len().min(BYTE_ORDER_MARK.len());
            let may_be_mark = BYTE_ORDER_MARK.starts_with(&rest[..length]);
            if may_be_mark && length == BYTE_ORDER_MARK.len() {
                return Ok(self.take(Kind::Between, length));
            }
            if may_be_mark && !self.is_over {
                return Err(None);
            }
        }
        let Some(&byte) = rest.first() else {
            let is_cut_off = self.is_over && self.array.is_some();
            return Err(is_cut_off.then(|| self.end_array()));
        };
        if is_blank(byte) {
            let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
            return Ok(self.take(Kind::Between, blanks));
        }
        let Some(array) = &mut self.array else {
            return match byte {
                b',' | b']' => Ok(self.take(Kind::Between, 1)),
                b'[' => match self.begins_array().ok_or(None)? {
                    true => {
                        self.array = Some(Array {
                            index: 0,
                            needs_comma: false,
                        });
                        Ok(self.take_sign())
                    }
                    false => self.line(byte, is_value),
                },
                _ => self.line(byte, is_value),
            };
        };
        match byte {
            b',' => array.needs_comma = false,
            b']' => self.array = None,
            // The next value belongs to no array, or to another one.
            _ if array.needs_comma && !self.is_in_line => return Ok(self.end_array()),
            b'{' | b'[' | b'"' => return self.value(),
            _ => return self.bare_element(is_value),
        }
        Ok(self.take_sign())
    }

    /// Returns whether a bracket begins an array, and no line of text; `None` if what follows is not there yet.
    fn begins_array(&self) -> Option<bool> {
        let inner = self.text[self.at + 1..].iter().find(|byte| !is_blank(**byte));
        match inner {
            Some(inner) => Some(b"{[\"]".contains(inner)),
            None => self.is_over.then_some(true),
        }
    }

    /// Returns whether no more than a line was followed from here.
    fn is_at_line(&self) -> bool {
        self.scan.as_ref().is_none_or(|scan| scan.until == Until::Line)
    }

    /// Returns the length of the line, or of as much of it as is there, without the blanks at its end.
    fn line_length(&self) -> usize {
        let rest = &self.text[self.at..];
        trimmed(&rest[..memchr(NEWLINE, rest).unwrap_or(rest.len())])
    }

    /// Splits off a value of any number of lines, or a line of text.
    fn line(&mut self, byte: u8, is_value: &mut IsValue) -> Found {
        if self.is_at_line() {
            self.follow(Until::Line)?;
            let length = self.line_length();
            if byte != b'{' {
                return Ok(self.take(Kind::Text, length));
            }
            if is_value(&self.text[self.at..self.at + length], self.at) {
                return Ok(self.take(Kind::Value, length));
            }
        }
        self.value()
    }

    /// Splits off a value in brackets or quotes: an element, or one that nothing or another one follows on its line. Another one is a line of text.
    fn value(&mut self) -> Found {
        let (followed, is_closed) = self.follow(Until::Value)?;
        let rest = &self.text[self.at + followed..];
        // Two programs that append to one file may write two records on a line.
        let is_alone = self.array.is_some() || is_begun(rest) || {
            // What follows on the line decides, and is mostly a line feed.
            let end = memchr(NEWLINE, rest).or((self.is_over || !is_closed).then_some(rest.len()));
            let mut behind = rest[..end.ok_or(None)?].iter();
            behind.all(|byte| is_blank(*byte) || b",]".contains(byte))
        };
        if is_closed && is_alone {
            return Ok(self.take(Kind::Value, followed));
        }
        let line = self.line_length();
        if line > self.limit {
            return Ok(self.too_long(0, Some(Scan::default())));
        }
        self.vain += followed.saturating_sub(line);
        let piece = self.take(Kind::Text, line);
        self.array = None;
        Ok(piece)
    }

    /// Splits off an element without brackets.
    fn bare_element(&mut self, is_value: &mut IsValue) -> Found {
        let rest = &self.text[self.at..];
        let Some(end) = memchr3(b',', b']', NEWLINE, rest).or(self.is_over.then_some(rest.len())) else {
            let is_too_long = rest.len() > self.limit;
            return Err(is_too_long.then(|| self.too_long(0, Some(Scan::default()))));
        };
        let length = trimmed(&rest[..end]);
        let ends_line = matches!(rest.get(end), None | Some(&NEWLINE));
        let is_broken = ends_line && !is_value(&rest[..length], self.at);
        let piece = self.take(Kind::Value, length);
        if is_broken {
            self.array = None;
        }
        Ok(piece)
    }

    /// Follows what begins at `at`. Returns its length, and whether it is whole: what is not cannot become JSON any more.
    fn follow(&mut self, until: Until) -> Result<(usize, bool), Option<Piece>> {
        let scan = self.scan.take().filter(|scan| scan.until == until);
        let mut scan = Scan {
            until,
            ..scan.unwrap_or_default()
        };
        let spans_lines = self.vain <= MOST_VAIN * self.done + FREE_VAIN;
        let end = scan.follow(&self.text[self.at..], spans_lines);
        let length = scan.length;
        if length > self.limit && !(until == Until::Value && self.keeps_long) {
            let is_bracket = end == Some(false) && self.text[self.at + length - 1] != NEWLINE;
            let rest = end.is_none().then_some(Scan { length: 0, ..scan });
            return Err(Some(self.too_long(length - usize::from(is_bracket), rest)));
        }
        if end.is_none() && length <= self.limit && !self.is_over {
            self.scan = Some(scan);
            return Err(None);
        }
        Ok((length, end == Some(true) && length <= self.limit))
    }

    fn end_array(&mut self) -> Piece {
        let piece = self.take(Kind::CutOff, 0);
        self.array = None;
        piece
    }

    /// Drops so many bytes of a value that is too long, and what is left of it once it comes.
    fn too_long(&mut self, length: usize, rest: Option<Scan>) -> Piece {
        let piece = self.take(Kind::TooLong, 0);
        self.advance(length);
        self.skip = rest;
        piece
    }

    /// Drops the rest of what is too long; returns whether all of it was there.
    fn skip_rest(&mut self) -> bool {
        let Some(mut scan) = self.skip.take() else {
            return true;
        };
        let end = scan.follow(&self.text[self.at..], true);
        self.advance(mem::take(&mut scan.length));
        self.skip = match end {
            Some(true) => None,
            Some(false) => Some(Scan::default()),
            None => Some(scan),
        };
        self.skip.is_none()
    }

    /// Splits off a sign of an array.
    fn take_sign(&mut self) -> Piece {
        let piece = self.take(Kind::Between, 1);
        Piece { index: None, ..piece }
    }

    /// Splits off so many bytes.
    fn take(&mut self, kind: Kind, length: usize) -> Piece {
        self.scan = None;
        let is_element = !matches!(kind, Kind::Between | Kind::Row);
        let index = self.array.as_mut().filter(|_| is_element).map(|array| {
            array.needs_comma = true;
            array.index += 1;
            array.index - 1
        });
        let piece = Piece {
            kind,
            range: self.at..self.at + length,
            line: self.line,
            index,
        };
        self.advance(length);
        piece
    }

    fn advance(&mut self, length: usize) {
        let text = &self.text[self.at..self.at + length];
        let after = memrchr(NEWLINE, text).map(|last| &text[last + 1..]);
        if after.is_some() {
            self.line += memchr_iter(NEWLINE, text).count() as u64;
            self.is_in_line = false;
        }
        self.is_in_line |= after.unwrap_or(text).iter().any(|byte| !is_blank(*byte));
        self.at += length;
        self.done += length;
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Returns whether an object begins behind the blanks of a line.
fn is_begun(rest: &[u8]) -> bool {
    rest.iter().find(|byte| **byte != b' ') == Some(&b'{')
}

/// Returns the length of a line without the blanks at its end.
fn trimmed(line: &[u8]) -> usize {
    line.iter()
        .rposition(|byte| !is_blank(*byte))
        .map_or(0, |last| last + 1)
}

/// Follows a line, or the brackets and quotes of a value or a row, as its text comes.
#[derive(Debug, Default)]
struct Scan {
    until: Until,
    /// How many bytes were followed.
    length: usize,
    depth: usize,
    /// The last byte outside of strings that is not blank, and whether a line has begun since.
    before: u8,
    begins_line: bool,
    in_string: bool,
    is_escaped: bool,
}

impl Scan {
    /// Follows the text, of which a value may take up several lines if `spans_lines`. Returns whether it ends or is broken; `None` if it is
    /// open.
    fn follow(&mut self, text: &[u8], spans_lines: bool) -> Option<bool> {
        match self.until {
            Until::Line => {
                let end = memchr(NEWLINE, &text[self.length..]);
                self.length = end.map_or(text.len(), |end| self.length + end);
                end.map(|_| true)
            }
            Until::Value => self.follow_value(text, spans_lines),
            Until::Row => self.follow_row(text).then_some(true),
        }
    }

    fn follow_value(&mut self, value: &[u8], spans_lines: bool) -> Option<bool> {
        while let Some(&byte) = value.get(self.length) {
            if self.in_string && !self.is_escaped && !matches!(byte, b'"' | b'\\' | NEWLINE) {
                let rest = &value[self.length..];
                self.length += memchr3(b'"', b'\\', NEWLINE, rest).unwrap_or(rest.len());
                continue;
            }
            self.length += 1;
            match byte {
                // No string goes on in the next line.
                NEWLINE if self.in_string || !spans_lines => return Some(false),
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' if self.in_string => {
                    self.in_string = false;
                    if self.depth == 0 {
                        return Some(true);
                    }
                }
                _ if is_blank(byte) => {
                    self.begins_line |= byte == NEWLINE;
                    continue;
                }
                // The next value of a file whose last line was cut off.
                b'{' | b'[' if self.begins_line && !b":,{[".contains(&self.before) => return Some(false),
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(true);
                    }
                }
                _ => {}
            }
            (self.before, self.begins_line) = (byte, false);
        }
        None
    }

    /// Follows a row of a table; returns whether it ends.
    fn follow_row(&mut self, text: &[u8]) -> bool {
        let from = self.length;
        for at in memchr2_iter(b'"', NEWLINE, &text[from..]) {
            self.length = from + at + 1;
            if text[from + at] == b'"' {
                self.in_string = !self.in_string;
            } else if !self.in_string {
                return true;
            }
        }
        self.length = text.len();
        false
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_json::parse;
    use proptest::prelude::*;

    use super::*;
    use crate::DEFAULT_LIMIT;

    /// Returns the pieces of a text that is pushed in parts of so many bytes, each as its line, its kind and its text.
    fn pieces(text: &str, size: usize, limit: u64) -> Vec<String> {
        let mut splitter = Splitter::new(limit);
        let mut found = Vec::new();
        let mut parts = text.as_bytes().chunks(size);
        loop {
            while let Some(piece) = splitter.next(&mut |line, _| parse(line).is_ok()) {
                let text = String::from_utf8_lossy(&splitter.text()[piece.range]).into_owned();
                found.push(format!("{} {:?} {text}", piece.line, piece.kind));
            }
            match parts.next() {
                Some(part) => splitter.push(part),
                None if splitter.is_over => return found,
                None => splitter.finish(),
            }
        }
    }

    fn values(text: &str) -> Vec<String> {
        let is_between = |piece: &String| piece.contains(" Between ");
        pieces(text, 7, 1000)
            .into_iter()
            .filter(|piece| !is_between(piece))
            .collect()
    }

    #[test]
    fn a_text_is_split_into_lines_values_over_several_lines_elements_and_text() {
        for (text, expected) in [
            ("", &[][..]),
            (
                "a\n{\"b\":1}\r\n\n c ",
                &["1 Text a", "2 Value {\"b\":1}", "4 Text c"][..],
            ),
            (
                "{\n\"a\": [\"}\\\"\"]\n}\n{\n}",
                &["1 Value {\n\"a\": [\"}\\\"\"]\n}", "4 Value {\n}"],
            ),
            (
                "[{\"a\":1},\n[2] ,\"]\", 3]",
                &["1 Value {\"a\":1}", "2 Value [2]", "2 Value \"]\"", "2 Value 3"],
            ),
            ("[x] log\n{}", &["1 Text [x] log", "2 Value {}"]),
            (
                "[[1]\n[[2]",
                &["1 Value [1]", "2 CutOff ", "2 Value [2]", "2 CutOff "],
            ),
            (
                "{\"a\":{\"b\":\n{}\n{}",
                &["1 Text {\"a\":{\"b\":", "2 Value {}", "3 Value {}"],
            ),
            ("{} x\n{}", &["1 Text {} x", "2 Value {}"]),
            (
                "{\"a\":1}{} {}\n{}",
                &["1 Value {\"a\":1}", "1 Value {}", "1 Value {}", "2 Value {}"],
            ),
        ] {
            assert_eq!(values(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_value_that_is_too_long_is_dropped_and_what_follows_is_split() {
        let long = "x".repeat(50);
        for text in [
            format!("{{\"a\":\"{long}\"}}\n{{}}"),
            format!("{long}\n{{}}"),
            format!("[{{\"a\":\"{long}\"}},{{}}]"),
        ] {
            let found = pieces(&text, 5, 40);
            assert!(found.contains(&"1 TooLong ".to_owned()), "{found:?}");
            assert!(
                found.iter().any(|piece| piece.ends_with(" Value {}")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn values_that_nothing_closes_cost_no_more_than_a_few_times_their_length() {
        for unit in [
            "{\n",
            "[{\n",
            "{\"a\":[\n",
            "{\"a\": 1\n",
            "{\"a\":{},\n",
            "[[1,\n",
        ] {
            for count in [10_000, 20_000, 40_000, 80_000] {
                let mut splitter = Splitter::new(DEFAULT_LIMIT);
                let text = unit.repeat(count);
                splitter.push(text.as_bytes());
                splitter.finish();
                while splitter.next(&mut |_, _| false).is_some() {}
                let vain = splitter.vain;
                assert!(
                    vain <= (MOST_VAIN + 2) * text.len() + FREE_VAIN,
                    "{unit:?} × {count}: {vain}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn pieces_are_all_of_the_text_however_it_is_cut(
            parts in prop::collection::vec(prop::sample::select(vec![
                "{\"a\":1}", "{\n  \"b\": [\n    {}\n  ]\n}", "[", "]", ",", "\n", "\n", "\r", "{", "}", "\"", "\\", "x", " ",
            ]), 0..14),
            size in 1_usize..9,
        ) {
            let text = parts.concat();
            let whole = pieces(&text, usize::MAX, 1000);
            let texts: String = whole.iter().map(|piece| piece.splitn(3, ' ').nth(2).unwrap()).collect();
            prop_assert_eq!(texts, text.clone());
            let is_split = |piece: &&String| !piece.contains(" Between ");
            let cut = pieces(&text, size, 1000);
            prop_assert_eq!(cut.iter().filter(is_split).collect::<Vec<_>>(), whole.iter().filter(is_split).collect::<Vec<_>>());
        }
    }
}
