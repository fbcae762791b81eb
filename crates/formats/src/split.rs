//! Splits a text into JSON values and what is between them, as its bytes come: a line, else a value to its closing bracket, else text.
//! It takes linear time and bounded memory.

use std::{collections::HashMap, mem, ops::Range};

use knowledgepulse_json::{ParseError, Value, parse_str, trim};
use memchr::{memchr, memchr_iter, memchr3};
use rayon::prelude::*;

/// So often, and so many bytes more, the bytes of a text may be followed in vain for the end of a value. After that a line is a value:
/// hostile input takes linear time too.
const MOST_VAIN: usize = 4;
const FREE_VAIN: usize = 64 * 1024;

/// So many bytes tell what stands behind a bracket: more blanks are followed by anything.
const MOST_NEAR: usize = 4096;

const NEWLINE: u8 = b'\n';
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a text is no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// It is not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// It is nested more deeply than JSON is read.
    #[error("it is nested too deeply")]
    TooDeep,
    /// It is no JSON.
    #[error("not JSON: {0}")]
    NoJson(ParseError),
    /// Its array ends with the text.
    #[error("not JSON: the array ends without its bracket")]
    CutOff,
}

/// What a piece of a text is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A list or an object, or an element of an array.
    Value(Value),
    /// What has the brackets of a value and is none.
    Broken(Broken),
    /// A line, or the rest of one, that is not in brackets.
    Text,
    /// White space, a sign of an array that stands between values, or the byte order mark at the beginning of a text.
    Between,
    /// The beginning of a value that is longer than the limit. Its text is dropped.
    TooLong,
}

/// A piece of a text. The pieces follow each other and leave nothing out, except values that are too long.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
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
pub(crate) struct Splitter {
    limit: usize,
    /// Whether a value of several lines that is too long is text.
    keeps_long: bool,
    text: Vec<u8>,
    at: usize,
    is_over: bool,
    /// The line of `at`, from 1.
    line: u64,
    /// The number of the next element, in an array.
    index: Option<u64>,
    /// How far the value was followed that begins at `at`, and whether it is a line.
    scan: Option<Scan>,
    is_line: bool,
    /// How many bytes from `at` on have no end of a line.
    searched: usize,
    /// Whether the rest of a value that is too long is dropped.
    skips: bool,
    /// By where they begin, the whole lines of the text that are objects, parsed on all cores.
    parsed: HashMap<usize, Value>,
    /// How many bytes were split off, and how many were followed in vain.
    done: usize,
    vain: usize,
}

impl Splitter {
    /// Creates a splitter of values of at most `limit` bytes. A longer value of several lines is text if `keeps_long`.
    pub fn new(limit: u64, keeps_long: bool) -> Self {
        Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            keeps_long,
            line: 1,
            ..Self::default()
        }
    }

    /// Takes the next bytes, and drops those that were split.
    pub fn push(&mut self, bytes: &[u8]) {
        self.text.drain(..mem::take(&mut self.at));
        let spans_lines = self.line_end().is_some();
        self.text.extend_from_slice(bytes);
        let is_at_line = self.index.is_none() && !self.skips && !spans_lines;
        self.parsed = match is_at_line {
            true => self.parse_lines(),
            false => HashMap::new(),
        };
    }

    /// Ends the text.
    pub fn finish(&mut self) {
        self.is_over = true;
    }

    /// Returns whether the text has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the text that pieces are ranges of.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the whole lines in braces that are JSON.
    fn parse_lines(&self) -> HashMap<usize, Value> {
        let mut start = 0;
        let lines: Vec<_> = memchr_iter(NEWLINE, &self.text[self.searched..])
            .filter_map(|newline| {
                let newline = self.searched + newline;
                let line = mem::replace(&mut start, newline + 1)..newline;
                let first = line.start + self.text[line.clone()].iter().position(|byte| !is_blank(*byte))?;
                let last = line.start + trimmed(&self.text[line.clone()]);
                let is_read =
                    line.len() <= self.limit && self.text[first] == b'{' && self.text[last - 1] == b'}';
                is_read.then_some(first..last)
            })
            .collect();
        let lines = lines.into_par_iter();
        let parsed = lines.filter_map(|line| Some((line.start, parse(&self.text[line]).ok()?)));
        parsed.collect()
    }

    /// Returns the next piece; `None` if it is not there yet.
    pub fn next(&mut self) -> Option<Piece> {
        self.skip_rest();
        let rest = &self.text[self.at..];
        let Some(&byte) = rest.first() else {
            let is_cut_off = self.is_over && self.index.is_some();
            let end = is_cut_off.then(|| self.take(Kind::Broken(Broken::CutOff), 0));
            self.index = self.index.filter(|_| !is_cut_off);
            return end;
        };
        let mark = rest.len().min(BYTE_ORDER_MARK.len());
        if self.done == 0 && BYTE_ORDER_MARK.starts_with(&rest[..mark]) {
            let is_whole = mark == BYTE_ORDER_MARK.len() || self.is_over;
            return is_whole.then(|| self.take(Kind::Between, mark));
        }
        if is_blank(byte) {
            let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
            return Some(self.take(Kind::Between, blanks));
        }
        match byte {
            _ if self.is_line => self.broken_line(),
            b',' => Some(self.take(Kind::Between, 1)),
            b']' => {
                self.index = None;
                Some(self.take(Kind::Between, 1))
            }
            _ if self.index.is_some() => self.value(),
            b'[' if self.begins_array()? => {
                let sign = self.take(Kind::Between, 1);
                self.index = Some(0);
                Some(sign)
            }
            b'{' => self.value(),
            _ => self.line(),
        }
    }

    /// Returns whether a bracket begins an array, and no line of text; `None` if what follows is not there yet.
    fn begins_array(&self) -> Option<bool> {
        let behind = near(&self.text[self.at + 1..]);
        match behind.iter().find(|byte| !is_blank(**byte)) {
            Some(inner) => Some(b"{[\"]".contains(inner)),
            None => (self.is_over || behind.len() == MOST_NEAR).then_some(true),
        }
    }

    /// Returns where the line ends, if its end is there.
    fn line_end(&mut self) -> Option<usize> {
        let rest = &self.text[self.at..];
        let end = memchr(NEWLINE, &rest[self.searched..]).map(|end| self.searched + end);
        self.searched = end.unwrap_or(rest.len());
        end
    }

    /// Returns the length of the line, or of as much of it as is there, without the blanks at its end.
    fn line_length(&mut self) -> usize {
        self.line_end();
        trimmed(&self.text[self.at..][..self.searched])
    }

    /// Splits off a line.
    fn line(&mut self) -> Option<Piece> {
        let end = self.line_end();
        let length = self.searched;
        if length > self.limit {
            return Some(self.too_long(length, end.is_none()));
        }
        if end.is_none() && !self.is_over {
            return None;
        }
        let is_list = self.text.get(self.at) == Some(&b'[');
        let length = self.line_length();
        match is_list.then(|| self.parsed(length)) {
            None | Some(Kind::Broken(Broken::NoJson(_))) => Some(self.take(Kind::Text, length)),
            Some(list) => Some(self.take(list, length)),
        }
    }

    /// Splits off a value: an element, or one that nothing or another one follows on its line. Another one is a line of text.
    fn value(&mut self) -> Option<Piece> {
        if let Some(value) = self.parsed.remove(&self.at) {
            let length = self.line_length();
            return Some(self.take(Kind::Value(value), length));
        }
        let mut scan = self.scan.take().unwrap_or_default();
        let spans_lines = self.vain <= MOST_VAIN * self.done + FREE_VAIN;
        let end = scan.follow(&self.text[self.at..], spans_lines);
        let length = scan.length;
        let is_long = length > self.limit;
        if is_long && !self.keeps_long && end != Some(false) {
            return Some(self.too_long(length, end.is_none()));
        }
        if end.is_none() && !is_long && !self.is_over {
            self.scan = Some(scan);
            return None;
        }
        if end == Some(true) && !is_long && self.is_alone(length)? {
            let length = trimmed(&self.text[self.at..][..length]);
            let kind = self.parsed(length);
            return Some(self.take(kind, length));
        }
        self.vain += length.saturating_sub(self.line_length());
        self.is_line = true;
        self.broken_line()
    }

    /// Splits off the line of what is no value, with which an array ends.
    fn broken_line(&mut self) -> Option<Piece> {
        let line = self.line();
        self.index = self.index.filter(|_| line.is_none());
        line
    }

    /// Returns whether nothing or another value follows so many bytes on their line, as where two programs append to one file; `None` if what
    /// follows is not there yet.
    fn is_alone(&self, length: usize) -> Option<bool> {
        let rest = &self.text[self.at + length..];
        let behind = near(rest);
        if self.index.is_some() || behind.iter().find(|byte| **byte != b' ') == Some(&b'{') {
            return Some(true);
        }
        let next = behind
            .iter()
            .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b',' | b']'));
        match next {
            Some(next) => Some(*next == NEWLINE),
            None => (self.is_over || behind.len() == MOST_NEAR).then_some(true),
        }
    }

    /// Returns what so many bytes from here are.
    fn parsed(&self, length: usize) -> Kind {
        parse(&self.text[self.at..self.at + length]).map_or_else(Kind::Broken, Kind::Value)
    }

    /// Drops so many bytes of a value that is too long, and, where it `goes_on`, all before the next line that begins with a value.
    fn too_long(&mut self, length: usize, goes_on: bool) -> Piece {
        let piece = self.take(Kind::TooLong, 0);
        self.advance(length);
        self.skips = goes_on;
        self.index = self.index.filter(|_| !goes_on);
        piece
    }

    /// Drops as much as is there of the rest of what is too long.
    fn skip_rest(&mut self) {
        if !self.skips {
            return;
        }
        let rest = &self.text[self.at..];
        let begins = |end: &usize| matches!(rest.get(end + 1), Some(b'{' | b'['));
        let next = memchr_iter(NEWLINE, rest).find(begins);
        self.skips = next.is_none();
        // A value may begin behind the end of the last line.
        let last = rest.len() - usize::from(rest.ends_with(b"\n"));
        self.advance(next.unwrap_or(last));
    }

    /// Splits off so many bytes.
    fn take(&mut self, kind: Kind, length: usize) -> Piece {
        (self.scan, self.is_line) = (None, false);
        let next = self.index.as_mut().filter(|_| !matches!(kind, Kind::Between));
        let index = next.map(|next| mem::replace(next, *next + 1));
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
        self.line += memchr_iter(NEWLINE, text).count() as u64;
        self.at += length;
        self.searched = self.searched.saturating_sub(length);
        self.done += length;
    }
}

/// Parses a value, with white space around it.
///
/// # Errors
/// If it is none.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, Broken> {
    let text = std::str::from_utf8(bytes).map_err(|_| Broken::NotUtf8)?;
    parse_str(trim(text)).map_err(|error| match error.is_too_deep() {
        true => Broken::TooDeep,
        false => Broken::NoJson(error),
    })
}

/// Returns as much of a text as is looked at before the rest of it is there.
fn near(text: &[u8]) -> &[u8] {
    &text[..text.len().min(MOST_NEAR)]
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

/// Follows the brackets and quotes of a value as its text comes.
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
    /// Follows the text, of which the value may take up several lines if `spans_lines`. Returns whether it ends or is broken; `None` if it
    /// is open.
    fn follow(&mut self, value: &[u8], spans_lines: bool) -> Option<bool> {
        while let Some(&byte) = value.get(self.length) {
            if self.in_string && !self.is_escaped && !matches!(byte, b'"' | b'\\' | NEWLINE) {
                let rest = &value[self.length..];
                self.length += memchr3(b'"', b'\\', NEWLINE, rest).unwrap_or(rest.len());
                continue;
            }
            self.length += 1;
            match byte {
                // An element without brackets ends before what follows it.
                b',' | b']' | NEWLINE if self.depth == 0 && !self.in_string => {
                    self.length -= 1;
                    return Some(true);
                }
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
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::DEFAULT_LIMIT;

    /// Returns the pieces of a text that is pushed in parts of so many bytes, each as its line, its kind and its text.
    fn pieces(text: &str, size: usize, limit: u64) -> Vec<String> {
        let mut splitter = Splitter::new(limit, false);
        let mut found = Vec::new();
        let mut parts = text.as_bytes().chunks(size);
        loop {
            while let Some(piece) = splitter.next() {
                let text = String::from_utf8_lossy(&splitter.text()[piece.range]).into_owned();
                let kind = match piece.kind {
                    Kind::Value(_) => "Value",
                    Kind::Broken(Broken::CutOff) => "CutOff",
                    Kind::Broken(_) => "Broken",
                    Kind::Text => "Text",
                    Kind::Between => "Between",
                    Kind::TooLong => "TooLong",
                };
                found.push(format!("{} {kind} {text}", piece.line));
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
            ("[[1]\n[[2]", &["1 Value [1]", "2 Text [[2]"]),
            (
                "{\"a\":{\"b\":\n{}\n{}",
                &["1 Text {\"a\":{\"b\":", "2 Value {}", "3 Value {}"],
            ),
            (
                "[{\n\"a\":1,\n}, 2\n",
                &["1 Broken {\n\"a\":1,\n}", "3 Value 2", "4 CutOff "],
            ),
            (
                "[1, 2]\n{} x\n{}",
                &["1 Value [1, 2]", "2 Text {} x", "3 Value {}"],
            ),
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
            format!("[\n{{\"a\":\"{long}\"}},\n{{}}]"),
        ] {
            let found = pieces(&text, 5, 40);
            assert!(
                found.iter().any(|piece| piece.ends_with(" TooLong ")),
                "{found:?}"
            );
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
                let mut splitter = Splitter::new(DEFAULT_LIMIT, false);
                let text = unit.repeat(count);
                splitter.push(text.as_bytes());
                splitter.finish();
                while splitter.next().is_some() {}
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
