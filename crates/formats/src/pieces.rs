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
    /// White space, or a sign of an array that stands between values.
    Between,
    /// The byte order mark at the beginning of a text.
    Mark,
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
    /// How far the value or row was followed that begins at `at`.
    scan: Option<Scan>,
    /// What is left of a value that is too long.
    skip: Option<Skip>,
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
#[derive(Debug, Clone, Copy)]
enum Until {
    Line,
    Value,
    Row,
}

/// What is left of something, and how far it was followed.
type Skip = (Until, Scan);

/// Decides whether the line at a place of the text is a value.
type IsValue<'f> = dyn FnMut(&[u8], usize) -> bool + 'f;

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
        let is_at_line = self.array.is_none() && self.scan.is_none() && self.skip.is_none() && !self.has_rows;
        (is_at_line && !self.is_in_line).then_some(self.at..self.text.len())
    }

    /// Returns the next piece; `None` if it is not there yet. `is_value` says whether a line that begins with a brace is JSON: where it is
    /// not, the value goes on in the next line.
    pub fn next(&mut self, is_value: &mut IsValue) -> Option<Piece> {
        if !self.skip_rest() {
            return None;
        }
        if self.has_rows {
            return self.row();
        }
        let rest = &self.text[self.at..];
        if self.done == 0 && !rest.is_empty() {
            let length = rest.len().min(BYTE_ORDER_MARK.len());
            let may_be_mark = BYTE_ORDER_MARK.starts_with(&rest[..length]);
            if may_be_mark && length == BYTE_ORDER_MARK.len() {
                return Some(self.take(Kind::Mark, length));
            }
            if may_be_mark && !self.is_over {
                return None;
            }
        }
        let Some(&byte) = rest.first() else {
            let is_cut_off = self.is_over && self.array.is_some();
            return is_cut_off.then(|| self.end_array());
        };
        if is_blank(byte) {
            let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
            return Some(self.take(Kind::Between, blanks));
        }
        let Some(array) = &mut self.array else {
            return match byte {
                b',' | b']' => Some(self.take(Kind::Between, 1)),
                b'[' => match self.begins_array()? {
                    true => {
                        self.array = Some(Array {
                            index: 0,
                            needs_comma: false,
                        });
                        Some(self.take_sign())
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
            _ if array.needs_comma && !self.is_in_line => return Some(self.end_array()),
            b'{' | b'[' | b'"' => return self.element(),
            _ => return self.bare_element(is_value),
        }
        Some(self.take_sign())
    }

    /// Returns whether a bracket begins an array, and no line of text; `None` if what follows is not there yet.
    fn begins_array(&self) -> Option<bool> {
        let inner = self.text[self.at + 1..].iter().find(|byte| !is_blank(**byte));
        match inner {
            Some(inner) => Some(b"{[\"]".contains(inner)),
            None => self.is_over.then_some(true),
        }
    }

    /// Splits off a value of any number of lines, or a line of text.
    fn line(&mut self, byte: u8, is_value: &mut IsValue) -> Option<Piece> {
        let rest = &self.text[self.at..];
        let end = memchr(NEWLINE, rest).or(self.is_over.then_some(rest.len()));
        let Some(end) = end else {
            return (rest.len() > self.limit).then(|| self.long_line());
        };
        let length = trimmed(&rest[..end]);
        if length > self.limit {
            return Some(self.long_line());
        }
        if byte != b'{' {
            return Some(self.take(Kind::Text, length));
        }
        if self.scan.is_none() && is_value(&rest[..length], self.at) {
            return Some(self.take(Kind::Value, length));
        }
        match self.follow() {
            Followed::Open(_) if !self.is_over => None,
            Followed::Closed(value) => {
                let rest = &self.text[self.at + value..];
                let Some(end) = memchr(NEWLINE, rest).or(self.is_over.then_some(rest.len())) else {
                    // What follows on the line decides, and is mostly a line feed.
                    return None;
                };
                let is_alone = rest[..end]
                    .iter()
                    .all(|byte| is_blank(*byte) || b",]".contains(byte));
                Some(if is_alone {
                    self.take(Kind::Value, value)
                } else {
                    self.give_up(value, length)
                })
            }
            Followed::Open(followed) | Followed::Broken(followed) => Some(self.give_up(followed, length)),
            Followed::TooLong(length, rest) => Some(self.too_long(length, rest)),
        }
    }

    /// Splits off an element in brackets or quotes.
    fn element(&mut self) -> Option<Piece> {
        match self.follow() {
            Followed::Open(_) if !self.is_over => None,
            Followed::Closed(length) => Some(self.take(Kind::Value, length)),
            Followed::Open(followed) | Followed::Broken(followed) => {
                let rest = &self.text[self.at..];
                let line = memchr(NEWLINE, rest).unwrap_or(rest.len());
                let length = trimmed(&rest[..line]);
                if length > self.limit {
                    return Some(self.long_line());
                }
                let piece = self.give_up(followed, length);
                self.array = None;
                Some(piece)
            }
            Followed::TooLong(length, rest) => Some(self.too_long(length, rest)),
        }
    }

    /// Splits off an element without brackets.
    fn bare_element(&mut self, is_value: &mut IsValue) -> Option<Piece> {
        let rest = &self.text[self.at..];
        let Some(end) = memchr3(b',', b']', NEWLINE, rest).or(self.is_over.then_some(rest.len())) else {
            return (rest.len() > self.limit).then(|| self.long_line());
        };
        let length = trimmed(&rest[..end]);
        let ends_line = matches!(rest.get(end), None | Some(&NEWLINE));
        let is_broken = ends_line && !is_value(&rest[..length], self.at);
        let piece = self.take(Kind::Value, length);
        if is_broken {
            self.array = None;
        }
        Some(piece)
    }

    /// Splits off a row: up to the first end of a line outside of quotes.
    fn row(&mut self) -> Option<Piece> {
        let mut scan = self.scan.take().unwrap_or_default();
        let is_whole = scan.follow_row(&self.text[self.at..]);
        let length = scan.length;
        if length > self.limit {
            let rest = (!is_whole).then_some((Until::Row, Scan { length: 0, ..scan }));
            return Some(self.too_long(length, rest));
        }
        if length > 0 && (is_whole || self.is_over) {
            return Some(self.take(Kind::Row, length));
        }
        self.scan = (length > 0).then_some(scan);
        None
    }

    /// Follows the value at `at` as far as it is there.
    fn follow(&mut self) -> Followed {
        let mut scan = self.scan.take().unwrap_or_default();
        let end = scan.follow(
            &self.text[self.at..],
            self.vain <= MOST_VAIN * self.done + FREE_VAIN,
        );
        let length = scan.length;
        if length > self.limit && self.keeps_long {
            return Followed::Broken(length);
        }
        if length > self.limit {
            let is_bracket = end == Some(false) && self.text[self.at + length - 1] != NEWLINE;
            let rest = end
                .is_none()
                .then_some((Until::Value, Scan { length: 0, ..scan }));
            return Followed::TooLong(length - usize::from(is_bracket), rest);
        }
        match end {
            Some(true) => Followed::Closed(length),
            Some(false) => Followed::Broken(length),
            None => {
                if !self.is_over {
                    self.scan = Some(scan);
                }
                Followed::Open(length)
            }
        }
    }

    /// Splits off a line of a value that does not end, after so many bytes of it were followed.
    fn give_up(&mut self, followed: usize, line: usize) -> Piece {
        self.vain += followed.saturating_sub(line);
        self.take(Kind::Text, line)
    }

    fn end_array(&mut self) -> Piece {
        let piece = self.take(Kind::CutOff, 0);
        self.array = None;
        piece
    }

    /// Drops so many bytes of a value that is too long, and what is left of it once it comes.
    fn too_long(&mut self, length: usize, rest: Option<Skip>) -> Piece {
        let piece = self.take(Kind::TooLong, 0);
        self.advance(length);
        self.skip = rest;
        piece
    }

    /// Drops a line.
    fn long_line(&mut self) -> Piece {
        self.too_long(0, Some((Until::Line, Scan::default())))
    }

    /// Drops the rest of a value that is too long; returns whether all of it was there.
    fn skip_rest(&mut self) -> bool {
        let Some((until, mut scan)) = self.skip.take() else {
            return true;
        };
        let rest = &self.text[self.at..];
        let end = match until {
            Until::Line => {
                let end = memchr(NEWLINE, rest);
                scan.length = end.unwrap_or(rest.len());
                end.map(|_| true)
            }
            Until::Row => scan.follow_row(rest).then_some(true),
            Until::Value => scan.follow(rest, true),
        };
        let length = mem::take(&mut scan.length);
        self.skip = match end {
            Some(true) => None,
            Some(false) => Some((Until::Line, Scan::default())),
            None => Some((until, scan)),
        };
        self.advance(length);
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

/// Returns the length of a line without the blanks at its end.
fn trimmed(line: &[u8]) -> usize {
    line.iter()
        .rposition(|byte| !is_blank(*byte))
        .map_or(0, |last| last + 1)
}

/// Where following a value has ended, after so many bytes.
enum Followed {
    /// It goes on behind the text.
    Open(usize),
    /// It ends.
    Closed(usize),
    /// It cannot become JSON any more.
    Broken(usize),
    /// It is longer than the limit: so many bytes of it are there, and this is left.
    TooLong(usize, Option<Skip>),
}

/// Follows the brackets and quotes of a value or a row as its text comes.
#[derive(Debug, Default)]
struct Scan {
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
    /// Follows a value, which may take up several lines if `spans_lines`. Returns whether it ends or is broken; `None` if it is open.
    fn follow(&mut self, value: &[u8], spans_lines: bool) -> Option<bool> {
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
            ("{} {}\n{}", &["1 Text {} {}", "2 Value {}"]),
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
