//! Finds the JSON values of an input, one at a time: JSON Lines, arrays, values that span lines, and any mix of them; and the rows of
//! a table in CSV.
//!
//! Not a parser: it only finds where a value ends, and leaves the rest to `json`. A streaming parser would end at the first syntax
//! error (a NaN from Python is one), where this one loses a value; and it would forget how numbers were written.

use std::{collections::VecDeque, mem, ops::Range};

use knowledgepulse_json::{ParseError, Value, parse_str, trim};
use memchr::{memchr, memchr_iter, memchr2, memchr2_iter, memchr3};
use rayon::prelude::*;

use crate::{
    DEFAULT_LIMIT,
    archive::{Archive, File},
    encoding::{Decoder, Foreign, ZIP},
    table::Header,
};

/// One value of an input, or why it could not be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Record<T = (Value, Option<String>)> {
    /// The line on which it begins, from 1, or the number of a file in an archive; `None` where the input is neither.
    pub line: Option<u64>,
    /// The position in the array that it is an element of, from 0.
    pub index: Option<u64>,
    /// Its size in the input, in bytes.
    pub size: u64,
    /// What became of the value, or the problem.
    pub content: Result<T, String>,
}

/// The values of an input whose bytes are pushed as they come. It holds one value at a time, of at most `limit` bytes, and the bytes
/// that were pushed and not read yet. Lines end in LF, CRLF or CR. Of an archive it holds all bytes, and the values come once it is whole.
///
/// A value that begins with `[` is an array, whose elements are the values. An object ends where its brackets are closed: others
/// may follow it on the line. Anything else is a value to the end of its line. Blank lines are skipped. A value ends broken at the end
/// of a line within a string, and before a line that cannot belong to it (`Open::is_cut_off_by`); after that, reading goes on with the
/// next line that begins with a bracket and is indented no further.
///
/// If the first line is the header of a table in CSV, each row is a value: an object with the names of the header. A cell that is an
/// object or a list in JSON is that value, an empty cell is left out, and another one is a string.
pub struct Records<T = (Value, Option<String>)> {
    parser: Parser<T>,
    decoder: Decoder,
    /// The files that are the values, where the input is an archive and was pushed.
    archive: Option<Archive>,
    /// The text that was pushed, and where the part begins that is still to be read.
    text: Vec<u8>,
    at: usize,
    is_over: bool,
    /// Whether the text ended in a return that was held back, because it may be one with the line feed that comes next.
    holds_return: bool,
    /// The line that the next byte is in, from 1.
    line: u64,
    /// How many blanks that line begins with, as far as it has been read.
    indentation: usize,
    /// Whether something else than blanks has been read of it.
    is_in_line: bool,
    /// Whether anything was read.
    has_begun: bool,
    array: Option<Array>,
    open: Option<Open>,
    header: Option<Header>,
    /// Lines are skipped up to one that begins with a bracket and is indented no further than this.
    skipped_to: Option<usize>,
    /// The line whose rest says nothing new: something in it was bad already.
    bad_line: Option<u64>,
    /// The lines of the text that are objects, and where they are; they were parsed on all cores, up to the end of `looked_at`.
    objects: VecDeque<(Range<usize>, Record<T>)>,
    looked_at: usize,
    found: VecDeque<Record<T>>,
}

/// The array whose elements are read.
struct Array {
    line: u64,
    indentation: usize,
    /// The line of the last comma, or of the bracket.
    separator_line: u64,
    /// The position of the next element.
    index: u64,
    /// Whether an element was read, and neither a comma nor the bracket yet.
    is_after: bool,
    /// Whether all elements were whole.
    is_whole: bool,
}

/// What an open value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An object, to its last bracket.
    Object,
    /// An element of an array.
    Element,
    /// Anything else, to the end of the line.
    Line,
    /// Anything else beside an object, to the next object or the end of the line.
    Between,
    /// A row of a table, to the end of a line outside of quotes.
    Row,
}

/// A value whose end has not been found.
struct Open {
    kind: Kind,
    line: u64,
    indentation: usize,
    /// How far it was searched, and whether the beginning was dropped because it is too long.
    seen: usize,
    is_too_long: bool,
    /// How many line ends were seen, where the last line begins, and how far it is indented; `None` once it has something else than blanks.
    lines: u64,
    line_at: usize,
    blanks: Option<usize>,
    last_indentation: usize,
    /// Whether the second line was indented further than the first.
    is_indented: Option<bool>,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The last byte that is not blank.
    before: u8,
}

/// How an open value ends.
enum End {
    /// At this place.
    At(usize),
    /// Broken, at the end of a line.
    Broken(usize),
    /// Broken, before a line that begins here.
    Before(usize),
    /// The text is over within it.
    CutOff,
}

impl Default for Records {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl Records {
    /// Creates an input of values of at most `limit` bytes. A record has the value and its text, which a row of a table lacks.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self::with(limit, |value, text, _| (value, text.map(str::to_owned)))
    }
}

impl<T: Send + 'static> Records<T> {
    /// Creates an input of values of at most `limit` bytes. A record has what `take` returns for the value, its text, which a row of
    /// a table lacks, and whether other cores take values meanwhile: those that are lines of the same chunk.
    #[must_use]
    pub fn with(limit: u64, take: impl Fn(Value, Option<&str>, bool) -> T + Send + Sync + 'static) -> Self {
        Self {
            parser: Parser {
                limit: usize::try_from(limit).unwrap_or(usize::MAX),
                take: Box::new(take),
            },
            decoder: Decoder::default(),
            archive: None,
            text: Vec::new(),
            at: 0,
            is_over: false,
            holds_return: false,
            line: 1,
            indentation: 0,
            is_in_line: false,
            has_begun: false,
            array: None,
            open: None,
            header: None,
            skipped_to: None,
            bad_line: None,
            objects: VecDeque::new(),
            looked_at: 0,
            found: VecDeque::new(),
        }
    }

    /// Takes the next bytes of the input.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Foreign> {
        let text = self.decoder.push(bytes)?;
        self.add(&text);
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
        self.add(&rest);
        self.is_over = true;
        if mem::take(&mut self.holds_return) || !self.text.ends_with(&[NEWLINE]) {
            self.text.push(NEWLINE);
        }
        Ok(())
    }

    /// Adds text, in which every line ends in a line feed. No valid JSON has a return but between values.
    fn add(&mut self, text: &[u8]) {
        let Some((last, text_before)) = text.split_last() else {
            return;
        };
        if mem::take(&mut self.holds_return) && text.first() != Some(&NEWLINE) {
            self.text.push(NEWLINE);
        }
        self.holds_return = *last == b'\r';
        let mut from = self.text.len();
        self.text
            .extend_from_slice(if self.holds_return { text_before } else { text });
        while let Some(at) = memchr(b'\r', &self.text[from..]) {
            from += at + 1;
            // The one after it may have been held back.
            if self.text.get(from) != Some(&NEWLINE) {
                self.text[from - 1] = NEWLINE;
            }
        }
    }
}

/// Yields the values that are there so far; more may come after more was pushed.
impl<T: Send + 'static> Iterator for Records<T> {
    type Item = Record<T>;

    fn next(&mut self) -> Option<Record<T>> {
        if let Some(archive) = &mut self.archive {
            let file = archive.next(self.parser.limit)?;
            return Some(self.parser.read_file(file));
        }
        while self.found.is_empty() && self.step() {}
        if self.found.is_empty() {
            self.text.drain(..self.at);
            (self.at, self.looked_at) = (0, 0);
            self.objects.clear();
        }
        self.found.pop_front()
    }
}

const NEWLINE: u8 = b'\n';
const CUT_OFF: &str = "not JSON: it is cut off";

impl<T: Send + 'static> Records<T> {
    /// Reads on. Returns whether there is more that can be read now.
    fn step(&mut self) -> bool {
        if let Some(open) = self.open.take() {
            return self.go_on(open);
        }
        if self.header.is_some() {
            self.begin(Kind::Row);
            return self.at < self.text.len();
        }
        if let Some(most) = self.skipped_to {
            return self.skip_line(most);
        }
        let Some(byte) = self.skip_blank() else {
            self.end_array(self.is_over);
            return false;
        };
        let Some(array) = &mut self.array else {
            self.begin_value(byte);
            return true;
        };
        // Further arrays begin where this one is broken, or no further indented.
        let is_another = !array.is_whole || (!self.is_in_line && self.indentation <= array.indentation);
        match byte {
            b',' => {
                (array.is_after, array.separator_line) = (false, self.line);
                self.skip_byte();
            }
            b']' => {
                self.array = None;
                self.skip_byte();
            }
            b'[' if is_another => self.end_array(true),
            _ if !array.is_after => self.begin(Kind::Element),
            // Without a comma they are still two.
            b'{' if self.is_in_line || !array.is_whole => self.begin(Kind::Element),
            _ if array.is_whole => self.end_array(true),
            _ => self.skipped_to = Some(array.indentation),
        }
        true
    }

    /// Begins a value that is no element.
    fn begin_value(&mut self, byte: u8) {
        match byte {
            b'[' => {
                self.array = Some(Array {
                    line: self.line,
                    indentation: self.indentation,
                    separator_line: self.line,
                    index: 0,
                    is_after: false,
                    is_whole: true,
                });
                self.has_begun = true;
                self.skip_byte();
            }
            b'{' => match self.whole_line() {
                Some(record) => self.found.push_back(record),
                None => self.begin(Kind::Object),
            },
            _ if self.is_in_line => self.begin(Kind::Between),
            _ => self.begin(Kind::Line),
        }
    }

    fn begin(&mut self, kind: Kind) {
        self.open = Some(Open {
            kind,
            line: self.line,
            indentation: self.indentation,
            seen: 0,
            is_too_long: false,
            lines: 0,
            line_at: 0,
            blanks: None,
            last_indentation: self.indentation,
            is_indented: None,
            depth: 0,
            in_string: false,
            is_escaped: false,
            before: b',',
        });
    }

    /// Leaves the array that is open. One that lacks its end is named, unless an element of it was.
    fn end_array(&mut self, is_over: bool) {
        if let Some(array) = self.array.take_if(|_| is_over)
            && array.is_whole
        {
            let line = array.line;
            let error = format!("not JSON: the array that begins in line {line} is cut off");
            self.found
                .push_back(Record::new(0, Err(error)).at(array.separator_line, Some(array.index)));
        }
    }

    /// Looks for the end of an open value in the text that is there.
    fn go_on(&mut self, mut open: Open) -> bool {
        let rest = &self.text[self.at..];
        let end = match open.end_in(rest, self.is_over, self.parser.limit) {
            Some(end) => end,
            None if self.is_over && open.seen == 0 && rest.is_empty() => return false,
            None if self.is_over => End::CutOff,
            None => {
                if open.seen > self.parser.limit {
                    open.is_too_long = true;
                    self.at += mem::take(&mut open.seen);
                    open.line_at = 0;
                }
                self.open = Some(open);
                return false;
            }
        };
        let (length, error) = match end {
            End::At(length) => (length, None),
            End::Broken(length) | End::Before(length) => {
                let last = open.line + open.lines;
                let last = if matches!(end, End::Before(_)) {
                    last - 1
                } else {
                    last
                };
                let error = format!("not JSON: it is cut off or broken before the end of line {last}");
                (length, Some(error).filter(|_| open.lines > 0))
            }
            End::CutOff => (rest.len(), Some(CUT_OFF.into())),
        };
        let is_too_long = open.is_too_long || length > self.parser.limit;
        let bytes = self.at..self.at + length;
        self.at += length;
        self.line = open.line + open.lines;
        self.is_in_line = true;
        match end {
            End::Broken(_) => self.skipped_to = Some(open.indentation),
            End::Before(_) => (self.is_in_line, self.indentation) = (false, 0),
            End::At(_) if open.kind == Kind::Row => self.is_in_line = false,
            _ => self.indentation = open.last_indentation,
        }
        if open.kind == Kind::Row && !is_too_long {
            self.add_rows(bytes, open.line);
            return true;
        }
        let record = match error {
            _ if is_too_long => Record::new(self.parser.limit as u64, Err(self.parser.too_long())),
            Some(error) => Record::new(bytes.len() as u64, Err(error)),
            None => self.parser.parse_text(&self.text[bytes.clone()], false),
        };
        self.add_value(record, &open, bytes);
        true
    }

    /// Adds the rows in some lines.
    fn add_rows(&mut self, lines: Range<usize>, line: u64) {
        let rows = self
            .header
            .iter()
            .flat_map(|header| header.rows(&self.text[lines.clone()]));
        let take = &self.parser.take;
        self.found.extend(rows.map(|row| {
            let content = row.value.map(|value| take(value, None, false));
            Record::new(row.size, content).at(line + row.line, None)
        }));
    }

    /// Adds a value that was open, with its place.
    fn add_value(&mut self, record: Record<T>, open: &Open, bytes: Range<usize>) {
        let is_wrong = record.content.is_err();
        let is_first = !mem::replace(&mut self.has_begun, true);
        match open.kind {
            Kind::Element => {
                let Some(array) = &mut self.array else { return };
                let index = array.index;
                array.index += 1;
                array.is_after = true;
                array.is_whole &= !is_wrong;
                self.found.push_back(record.at(open.line, Some(index)));
                return;
            }
            Kind::Line if is_wrong && is_first => {
                self.header = Header::read(&self.text[bytes]);
                if self.header.is_some() {
                    (self.at, self.line, self.is_in_line) = (self.at + 1, self.line + 1, false);
                    return;
                }
            }
            _ => {}
        }
        if !is_wrong || open.kind == Kind::Object || self.bad_line != Some(open.line) {
            self.found.push_back(record.at(open.line, None));
        }
        if is_wrong {
            self.bad_line = self.is_in_line.then_some(self.line);
        }
    }

    /// Returns the object that takes up the whole line, as most do, if all of the line is there: its end need not be searched for.
    fn whole_line(&mut self) -> Option<Record<T>> {
        if self.is_in_line {
            return None;
        }
        if self.at >= self.looked_at {
            self.objects = self.parser.parse_lines(&self.text, self.at);
            self.looked_at = self.text.len();
        }
        let (range, record) = loop {
            let (range, _) = self.objects.front()?;
            if range.start > self.at {
                return None;
            }
            let object = self.objects.pop_front()?;
            if object.0.start == self.at {
                break object;
            }
        };
        self.at = range.end;
        self.is_in_line = true;
        self.has_begun = true;
        Some(record.at(self.line, None))
    }

    /// Skips a byte that is not blank.
    fn skip_byte(&mut self) {
        self.at += 1;
        self.is_in_line = true;
    }

    /// Skips white space; returns the byte after it, which is still to be read.
    fn skip_blank(&mut self) -> Option<u8> {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                NEWLINE => {
                    self.line += 1;
                    self.indentation = 0;
                    self.is_in_line = false;
                }
                _ if is_blank(byte) => self.indentation += usize::from(!self.is_in_line),
                _ => return Some(byte),
            }
            self.at += 1;
        }
        None
    }

    /// Skips what is left of a line, unless it begins with a bracket and is indented no further than `most`.
    fn skip_line(&mut self, most: usize) -> bool {
        if !self.is_in_line {
            match self.skip_blank() {
                None => return false,
                Some(b'{' | b'[') if self.indentation <= most => {
                    self.skipped_to = None;
                    return true;
                }
                Some(_) => self.is_in_line = true,
            }
        }
        let end = memchr(NEWLINE, &self.text[self.at..]).map_or(self.text.len(), |at| self.at + at);
        self.at = end;
        self.skip_blank().is_some()
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

impl Open {
    /// Returns how it ends in the bytes from its beginning; `None` if that is not decided yet.
    fn end_in(&mut self, bytes: &[u8], is_all: bool, limit: usize) -> Option<End> {
        let from = self.seen;
        let end = match self.kind {
            Kind::Object | Kind::Element => return self.end_of_value(bytes, is_all, limit),
            Kind::Line => memchr(NEWLINE, &bytes[from..]),
            Kind::Between => memchr2(b'{', NEWLINE, &bytes[from..]),
            Kind::Row => memchr2_iter(b'"', NEWLINE, &bytes[from..]).find(|&at| {
                let byte = bytes[from + at];
                self.in_string ^= byte == b'"';
                self.lines += u64::from(byte == NEWLINE);
                byte == NEWLINE && !self.in_string
            }),
        };
        self.seen = bytes.len();
        // The line feed is a part of a row.
        let more = usize::from(self.kind == Kind::Row);
        match end {
            Some(at) => Some(End::At(from + at + more)),
            None => (is_all && !bytes.is_empty()).then_some(End::At(bytes.len())),
        }
    }

    fn end_of_value(&mut self, bytes: &[u8], is_all: bool, limit: usize) -> Option<End> {
        let mut at = self.seen;
        let end = loop {
            self.seen = at;
            let byte = *bytes.get(at)?;
            if byte == NEWLINE {
                if self.in_string {
                    break End::Broken(at);
                }
                if self.depth == 0 {
                    break End::At(at);
                }
                self.lines += 1;
                self.line_at = at + 1;
                self.blanks = Some(0);
            } else if self.in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.in_string = false,
                    _ => {
                        let rest = &bytes[at..];
                        at += memchr3(b'\\', b'"', NEWLINE, rest).unwrap_or(rest.len());
                        continue;
                    }
                }
            } else if is_blank(byte) {
                self.blanks = self.blanks.map(|blanks| blanks + 1);
            } else {
                if let Some(blanks) = self.blanks {
                    let is_indented = *self.is_indented.get_or_insert(blanks > self.indentation);
                    if matches!(byte, b'{' | b'[') && blanks <= self.indentation {
                        let line = &bytes[at..];
                        let end = memchr(NEWLINE, line);
                        if end.is_none() && !is_all && line.len() <= limit {
                            return None;
                        }
                        if is_indented
                            || self.indentation > 0
                            || self.is_cut_off_by(&line[..end.unwrap_or(line.len())])
                        {
                            break End::Before(self.line_at);
                        }
                    }
                    self.last_indentation = blanks;
                    self.blanks = None;
                }
                match byte {
                    b',' | b']' if self.depth == 0 => break End::At(at),
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            break End::At(at + 1);
                        }
                    }
                    _ => {}
                }
                self.before = byte;
            }
            at += 1;
        };
        Some(end)
    }

    /// Returns whether a line that begins with a bracket and is indented no further cannot belong to the value: no value may begin there,
    /// or it is a value by itself.
    fn is_cut_off_by(&self, line: &[u8]) -> bool {
        let text = || {
            std::str::from_utf8(line)
                .ok()
                .map(|line| trim(line).trim_end_matches(','))
        };
        !matches!(self.before, b':' | b',' | b'[') || text().is_some_and(|text| parse_str(text).is_ok())
    }
}

impl<T> Record<T> {
    /// A value before its place is known.
    fn new(size: u64, content: Result<T, String>) -> Self {
        Self {
            line: None,
            index: None,
            size,
            content,
        }
    }

    fn at(self, line: u64, index: Option<u64>) -> Self {
        Self {
            line: Some(line),
            index,
            ..self
        }
    }
}

/// Makes records of texts.
struct Parser<T> {
    /// The most bytes of a value.
    limit: usize,
    take: Box<Take<T>>,
}

/// Takes a value, its text, and whether other cores take values meanwhile.
type Take<T> = dyn Fn(Value, Option<&str>, bool) -> T + Send + Sync;

impl<T> Parser<T> {
    fn parse_text(&self, bytes: &[u8], is_parallel: bool) -> Record<T> {
        let content = match std::str::from_utf8(bytes) {
            Err(_) => Err("not UTF-8".into()),
            Ok(text) => {
                let text = trim(text);
                match parse_str(text) {
                    Ok(value) => Ok((self.take)(value, Some(text), is_parallel)),
                    Err(error) => Err(reason_of(&error)),
                }
            }
        };
        Record::new(bytes.len() as u64, content)
    }

    /// Returns the value that a file holds.
    fn read_file(&self, file: File) -> Record<T> {
        let parsed = match file.contents {
            Ok(Some(bytes)) => self.parse_text(&bytes, false),
            Ok(None) => Record::new(self.limit as u64, Err(self.too_long())),
            Err(error) => Record::new(0, Err(error)),
        };
        Record {
            line: file.number,
            content: parsed.content.map_err(|error| format!("{}: {error}", file.name)),
            ..parsed
        }
    }

    fn too_long(&self) -> String {
        #[allow(clippy::cast_precision_loss)] // For a message.
        let megabytes = self.limit as f64 / 1024.0 / 1024.0;
        format!("longer than {} MB", knowledgepulse_json::number(megabytes))
    }
}

impl<T: Send> Parser<T> {
    /// Returns the lines of a text from here that begin with a bracket and are JSON, parsed on all cores.
    fn parse_lines(&self, text: &[u8], from: usize) -> VecDeque<(Range<usize>, Record<T>)> {
        let mut start = from;
        let ends = memchr_iter(NEWLINE, &text[from..]).map(|at| from + at);
        let lines: Vec<_> = ends
            .filter_map(|end| {
                let line = mem::replace(&mut start, end + 1)..end;
                let blanks = text[line.clone()].iter().position(|byte| !is_blank(*byte))?;
                let line = line.start + blanks..end;
                (text[line.start] == b'{' && line.len() <= self.limit).then_some(line)
            })
            .collect();
        let parsed = lines.into_par_iter().filter_map(|line| {
            let record = self.parse_text(&text[line.clone()], true);
            record.content.is_ok().then_some((line, record))
        });
        parsed.collect::<Vec<_>>().into()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{
        collection::{btree_map, vec},
        prelude::*,
    };
    use serde_json::Value as Json;

    /// Returns the records of an input that comes in chunks of this size, each as its line, its index and its value or
    /// error.
    fn read(input: &[u8], size: usize, limit: u64) -> Vec<String> {
        let mut records = Records::new(limit);
        let mut found = Vec::new();
        for chunk in input.chunks(size) {
            records.push(chunk).unwrap();
            found.extend(&mut records);
        }
        records.finish().unwrap();
        found.extend(records);
        let told = found.into_iter().map(|record| {
            let content = match record.content {
                Ok((value, _)) => value.to_json(),
                Err(error) => error,
            };
            let index = record.index.map(|index| format!("[{index}]")).unwrap_or_default();
            format!("{}{index} {content}", record.line.unwrap_or_default())
        });
        told.collect()
    }

    #[test]
    fn records_are_found_in_any_mix() {
        for (input, records) in [
            (
                "{\"a\":1}\n\n{\"b\":2} {\"c\":3}",
                vec!["1 {\"a\":1}", "3 {\"b\":2}", "3 {\"c\":3}"],
            ),
            ("[1,\n{\"a\":\n2}]\r3", vec!["1[0] 1", "2[1] {\"a\":2}", "4 3"]),
            (
                "{\"a\":\n1\n{\"b\":2}",
                vec![
                    "1 not JSON: it is cut off or broken before the end of line 2",
                    "3 {\"b\":2}",
                ],
            ),
            (
                "[{\"a\":1}\n{\"b\":2}",
                vec![
                    "1[0] {\"a\":1}",
                    "1[1] not JSON: the array that begins in line 1 is cut off",
                    "2 {\"b\":2}",
                ],
            ),
            (
                "{\"a\":NaN}\n{}",
                vec!["1 not JSON: NaN, which JSON does not have, at byte 5", "2 {}"],
            ),
            ("{\"a\":\n", vec!["1 not JSON: it is cut off"]),
            // An array that was broken before is not named at its end.
            (
                "[x,\n{\"a\":1},\n{\"b\":2}\n",
                vec![
                    "1[0] not JSON: no value at byte 0",
                    "2[1] {\"a\":1}",
                    "3[2] {\"b\":2}",
                ],
            ),
            (
                "[1,\n[{\"a\":1}]\n{\"b\":2}",
                vec![
                    "1[0] 1",
                    "1[1] not JSON: the array that begins in line 1 is cut off",
                    "2[0] {\"a\":1}",
                    "3 {\"b\":2}",
                ],
            ),
            (
                "[\n{\"a\":1}{\"a\":1}\n{\n\n\r\r\n{\"a\":1}}\r",
                vec![
                    "2[0] {\"a\":1}",
                    "2[1] {\"a\":1}",
                    "1[2] not JSON: the array that begins in line 1 is cut off",
                    "3 not JSON: it is cut off or broken before the end of line 6",
                    "7 {\"a\":1}",
                    "7 not JSON: no value at byte 0",
                ],
            ),
        ] {
            for size in 1..=input.len() {
                assert_eq!(
                    read(input.as_bytes(), size, DEFAULT_LIMIT),
                    records,
                    "{input:?} by {size}"
                );
            }
        }
    }

    #[test]
    fn rows_of_a_table_are_objects() {
        for (input, records) in [
            (
                "\u{feff}id,\"name\",input\r\n1,\"a \"\"b\"\"\",\"{\"\"x\"\":\n[1]}\"\r\n\r\n2,,{broken\n",
                vec![
                    r#"2 {"id":"1","name":"a \"b\"","input":{"x":[1]}}"#,
                    r#"5 {"id":"2","input":"{broken"}"#,
                ],
            ),
            (
                "a, b\n1\n1,2,3\n,\n\"1,2",
                vec![
                    "2 cells in the row: 1, in the header: 2",
                    "3 cells in the row: 3, in the header: 2",
                    "4 {}",
                    "5 cells in the row: 1, in the header: 2",
                ],
            ),
            // A quotation mark in a cell without quotation marks.
            (
                "a,b\n5\",1\n2,3\"\n4,5",
                vec![
                    r#"2 {"a":"5\"","b":"1"}"#,
                    r#"3 {"a":"2","b":"3\""}"#,
                    r#"4 {"a":"4","b":"5"}"#,
                ],
            ),
            // No headers.
            ("a,a\n{}", vec!["1 not JSON: no value at byte 0", "2 {}"]),
            (
                "1a,b\n{}",
                vec!["1 not JSON: more after the value at byte 1", "2 {}"],
            ),
            (
                "Starting, please wait\n{}",
                vec!["1 not JSON: no value at byte 0", "2 {}"],
            ),
            (
                "{}\na,b\n1,2",
                vec![
                    "1 {}",
                    "2 not JSON: no value at byte 0",
                    "3 not JSON: more after the value at byte 1",
                ],
            ),
        ] {
            for size in 1..=input.len() {
                assert_eq!(
                    read(input.as_bytes(), size, DEFAULT_LIMIT),
                    records,
                    "{input:?} by {size}"
                );
            }
        }
        let long = format!("a,b\n1,\"{}\"\n3,4\n", "\n".repeat(1 << 20));
        assert_eq!(
            read(long.as_bytes(), 1000, 1 << 20),
            ["2 longer than 1 MB", r#"1048579 {"a":"3","b":"4"}"#]
        );
        for input in ["a,b\n", "a,b\n\""] {
            read(input.repeat(50_000).as_bytes(), 64 * 1024, DEFAULT_LIMIT);
        }
    }

    #[test]
    fn a_good_line_stays_between_brackets_that_no_value_closes() {
        let good = r#"{"id":"good"}"#;
        for (first, indent, last) in [
            ("{\n", "", &b"\x1f\xff}\n"[..]),
            ("{\n", "", b"x}\n"),
            ("[[\n", "", b"\x1f]\xff]\n"),
            ("[{\n", "", b"x}]\n"),
            ("[\n  {\"a\":[\n", "  ", b"  x]}\n]\n"),
            ("[\n\t{\"a\":[\n", "\t", b"\tx]}\n]\n"),
        ] {
            let before = format!("{first}{indent}{good}\n");
            let input = [before.as_bytes(), last, b"{\"id\":\"last\"}\n"].concat();
            let lines = 1 + input.iter().filter(|&&byte| byte == b'\n').count();
            let line = before.lines().count();
            for size in [1, 7, 4096] {
                let found = read(&input, size, DEFAULT_LIMIT);
                let values: Vec<_> = found
                    .iter()
                    .map(|record| line_of(record))
                    .filter(|(_, content)| content.starts_with('{'))
                    .collect();
                assert_eq!(
                    values,
                    [(line, good), (lines - 1, r#"{"id":"last"}"#)],
                    "{first:?}"
                );
            }
        }
    }

    #[test]
    fn values_that_are_too_long_are_left_out() {
        let long = format!("{{\"x\":\"{}\"}}", "x".repeat(1 << 20));
        for (input, next) in [
            (format!("{long}\n{{\"a\":1}}"), "2 {\"a\":1}"),
            (format!("[{long},\n{{\"a\":1}}]"), "2[1] {\"a\":1}"),
            (format!("{{\n{}\n{{\"a\":1}}", &long[1..]), "3 {\"a\":1}"),
            // Cut off, with another line within it.
            (
                format!(
                    "[\n  {}\n    {{\"b\":1}},\n  {{\"a\":1}}\n]",
                    &long[..long.len() - 1]
                ),
                "4[1] {\"a\":1}",
            ),
        ] {
            for size in [1000, 10_000_000] {
                let found = read(input.as_bytes(), size, 1 << 20);
                assert_eq!(found.len(), 2);
                assert!(found[0].ends_with(" longer than 1 MB"), "{}", found[0]);
                assert_eq!(found[1], next);
            }
        }
        let longest = format!("\"{}\"", "x".repeat((1 << 20) - 2));
        assert_eq!(read(longest.as_bytes(), 1000, 1 << 20), [format!("1 {longest}")]);
    }

    #[test]
    fn hostile_inputs_take_linear_time() {
        let on_a_line = ["[", "{", "{}", "{},", "{\"x\":NaN} {\"a\":1}"];
        let lines = [
            "{\"a\":\n",
            "[{\n",
            "{\"a\":[\n",
            "{\"a\":[\n{\n",
            "]}\n",
            "[\n",
            "[{\"a\":[\n",
            "[1,\n[2]\n",
            "[x\ny\n",
        ];
        for (input, count) in on_a_line
            .map(|input| (input, 20_000))
            .into_iter()
            .chain(lines.map(|input| (input, 100_000)))
        {
            let text = format!("{}\n{{\"end\":1}}", input.repeat(count));
            let found = read(text.as_bytes(), 64 * 1024, DEFAULT_LIMIT);
            // It may be in an array that is cut off after it.
            let last = &found[found.len().saturating_sub(2)..];
            assert!(
                last.iter().any(|record| record.ends_with(" {\"end\":1}")),
                "{input}"
            );
        }
        let unfinished = read("{\"a\":[\n".repeat(100_000).as_bytes(), 64 * 1024, DEFAULT_LIMIT);
        assert_eq!(unfinished, ["1 not JSON: it is cut off"]);
    }

    fn json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            (-9..99i32).prop_map(Json::from),
            "[a-c{}\\[\\]\",:\\\\ ]{0,6}".prop_map(Json::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![vec(inner.clone(), 0..4).prop_map(Json::from), object_of(inner)]
        })
    }

    fn object_of(value: impl Strategy<Value = Json>) -> impl Strategy<Value = Json> {
        btree_map("[a-d{\\[\"]{1,3}", value, 0..4)
            .prop_map(|fields| Json::Object(fields.into_iter().collect()))
    }

    /// Objects, and how each is written.
    fn objects() -> impl Strategy<Value = Vec<Json>> {
        vec(object_of(json()), 0..6)
    }

    /// A line, and the values on it; none for a line that is broken.
    type Line = (String, Option<Vec<Json>>);

    fn good_line() -> impl Strategy<Value = Line> {
        prop_oneof![
            object_of(json()).prop_map(|value| (value.to_string(), Some(vec![value]))),
            objects().prop_map(|values| (Json::from(values.clone()).to_string(), Some(values))),
        ]
    }

    /// The beginning of a text, which is not all of it.
    fn cut(text: &str, at: prop::sample::Index) -> String {
        text[..1 + at.index(text.len() - 1)].to_owned()
    }

    fn texts(values: &[Json]) -> Vec<String> {
        values.iter().map(Json::to_string).collect()
    }

    /// The number of the line of a record and its content, as `read` tells them.
    fn line_of(record: &str) -> (usize, &str) {
        let (place, content) = record.split_once(' ').unwrap();
        (place.split('[').next().unwrap().parse().unwrap(), content)
    }

    /// Asserts that the good lines have their values and no others, and that one of the broken lines is named.
    fn assert_lines(lines: &[Line], size: usize) -> std::result::Result<(), TestCaseError> {
        let text: String = lines.iter().map(|(text, _)| format!("{text}\n")).collect();
        let mut found = vec![Vec::new(); lines.len()];
        for record in &read(text.as_bytes(), size, DEFAULT_LIMIT) {
            let (line, content) = line_of(record);
            found[line - 1].push(content.to_owned());
        }
        for ((_, values), found) in lines.iter().zip(&found) {
            if let Some(values) = values {
                prop_assert_eq!(found, &texts(values), "{:?}", &text);
            }
        }
        let mut broken = lines
            .iter()
            .zip(&found)
            .filter(|((_, values), _)| values.is_none());
        let is_bad = |content: &String| content.starts_with("not JSON");
        let is_whole = lines.iter().all(|(_, values)| values.is_some());
        prop_assert!(
            is_whole || broken.any(|(_, found)| found.iter().any(is_bad)),
            "{:?}",
            &text
        );
        Ok(())
    }

    proptest! {
        #[test]
        fn values_are_found_in_any_layout(
            parts in vec((objects(), 0..4, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..6),
            ends_in_line: bool,
            size in 1_usize..40,
        ) {
            let (mut text, mut values) = (String::new(), Vec::new());
            for (objects, layout, separator, blank) in parts {
                let array = Json::from(objects.clone());
                match (layout, objects.first()) {
                    (0, Some(first)) => text += &first.to_string(),
                    (1, Some(first)) => text += &format!("{first:#}").replace('\n', "\r\n"),
                    (2, _) => text += &format!("{array:#}"),
                    _ => text += &array.to_string(),
                }
                let count = if layout < 2 { 1 } else { objects.len() };
                values.extend(objects.into_iter().take(count));
                text += *separator.get(&["\n", "\r\n", "\r", "", " "]);
                text += *blank.get(&["", "\n", "\r\n", "\r", " \n\t\n"]);
            }
            let text = if ends_in_line { &text } else { text.trim_end() };
            let records = read(text.as_bytes(), size, DEFAULT_LIMIT);
            let found: Vec<_> = records.iter().map(|record| line_of(record).1).collect();
            prop_assert_eq!(found, texts(&values), "{:?}", text);
        }

        #[test]
        fn a_broken_line_costs_no_other(
            lines in vec(
                prop_oneof![
                    3 => good_line(),
                    1 => (good_line(), any::<prop::sample::Index>()).prop_map(|((text, _), at)| (cut(&text, at), None)),
                    1 => "\\[x [\\[\\]{}\",: a\\\\]{0,9}".prop_map(|text| (text, None)),
                ],
                0..8,
            ),
            size in 1_usize..40,
        ) {
            assert_lines(&lines, size)?;
        }

        #[test]
        fn an_element_that_is_cut_off_on_its_line_costs_no_other(
            before in objects(),
            broken in object_of(json()),
            at: prop::sample::Index,
            has_comma: bool,
            after in objects(),
            others in vec(good_line(), 0..4),
            size in 1_usize..40,
        ) {
            let line_of = |value: Json| (format!("{value},"), Some(vec![value]));
            let comma = if has_comma && !after.is_empty() { "," } else { "" };
            let mut lines = vec![("[".to_owned(), Some(Vec::new()))];
            lines.extend(before.into_iter().map(line_of));
            lines.push((cut(&broken.to_string(), at) + comma, None));
            lines.extend(after.into_iter().map(line_of));
            let last = &mut lines.last_mut().unwrap().0;
            *last = last.trim_end_matches(',').to_owned();
            lines.push(("]".to_owned(), Some(Vec::new())));
            lines.extend(others);
            assert_lines(&lines, size)?;
        }

        #[test]
        fn an_element_that_is_broken_over_lines_costs_no_other(
            before in objects(),
            broken in object_of(json()),
            kind in 0..5,
            after in objects(),
            size in 1_usize..40,
        ) {
            let lay_out = |value: &Json| format!(" {}", format!("{value:#}").replace('\n', "\n "));
            let text = lay_out(&broken);
            let broken = match kind {
                0 => text.replacen(": \"", ": \"\nx", 1),
                1 => text.replacen(",\n", "\n", 1),
                2 => text.replacen("}\n", "\n", 1),
                3 => text.replacen(": ", ": NaN", 1),
                _ => text[..text.rfind('}').unwrap()].to_owned(),
            };
            let first: Vec<_> = before.iter().map(lay_out).collect();
            let all: Vec<_> = first.iter().cloned().chain([broken.clone()]).chain(after.iter().map(lay_out)).collect();
            let text = format!("[\n{}\n]\n{{\"end\":1}}\n", all.join(",\n"));
            let lines_before = 1 + first.iter().map(|text| text.lines().count()).sum::<usize>();
            let is_broken = lines_before + 1..=lines_before + broken.split('\n').count();
            let records = read(text.as_bytes(), size, DEFAULT_LIMIT);
            let others: Vec<_> = records
                .iter()
                .map(|record| line_of(record))
                .filter(|(line, _)| !is_broken.contains(line))
                .map(|(_, content)| content)
                .collect();
            let mut expected = texts(&[before, after].concat());
            expected.push("{\"end\":1}".into());
            prop_assert_eq!(others, expected, "{:?}", text);
        }

        #[test]
        fn chunks_change_nothing(input in "([\\[\\]{},:\"\\\\ \n\r1a]|\\{\"a\":1\\}|\n){0,40}", size in 1_usize..20) {
            let whole = read(input.as_bytes(), usize::MAX, DEFAULT_LIMIT);
            prop_assert_eq!(read(input.as_bytes(), size, DEFAULT_LIMIT), whole);
        }
    }
}
