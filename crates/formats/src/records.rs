//! Finds the JSON values of an input, one at a time: JSON Lines, arrays, values that span lines, and any mix of them; and the rows of
//! a table in CSV.
//!
//! Not a parser: it only finds where a value ends, and leaves the rest to `json`. A streaming parser would end at the first syntax
//! error (a NaN from Python is one), where this one loses a value.

use std::{collections::VecDeque, mem, ops::Range};

use knowledgepulse_json::{ParseError, Value, parse_str, trim};
use memchr::{memchr, memchr_iter, memchr2, memchr2_iter, memchr3, memrchr};
use rayon::prelude::*;

use crate::{
    DEFAULT_LIMIT,
    archive::{Archive, File},
    encoding::{Decoder, Foreign, ZIP},
    table::Header,
};

/// So much of an input may be read again after values over several lines were broken, in bytes, where a line costs as much as
/// some more of them. After that a line is a value: hostile input takes linear time too.
const RESCAN_LIMIT: u64 = 4 * DEFAULT_LIMIT;
const LINE_COST: u64 = 256;

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

/// The values of an input whose bytes are pushed as they come. It holds the bytes that were pushed and not read yet, of a value at
/// most `limit`. Lines end in LF, CRLF or CR. Of an archive it holds all bytes, and the values come once it is whole.
///
/// A value that begins with `[` is an array, whose elements are the values. An object ends where its brackets are closed: others
/// may follow it on the line. Anything else is a value to the end of its line. Blank lines are skipped. After an object that its
/// line breaks, reading goes on with the next line; after one over several lines, or in an array, with the next line that begins with a
/// bracket and is indented no further.
///
/// If the first line is the header of a table in CSV, each row is a value: an object with the names of the header. A cell that is an
/// object or a list in JSON is that value, an empty cell is left out, and another one is a string.
pub struct Records<T = (Value, Option<String>)> {
    parser: Parser<T>,
    decoder: Decoder,
    /// The files that are the values, where the input is an archive and was pushed.
    archive: Option<Archive>,
    /// The text that was pushed; what is before `at` was read.
    text: Vec<u8>,
    at: usize,
    /// Where the last whole line of the text ends.
    lines_end: usize,
    is_over: bool,
    /// Whether the text ended in a return that was held back, because it may be one with the line feed that comes next.
    holds_return: bool,
    /// The lines of the text that are objects, and where they begin and end; they were parsed on all cores.
    objects: VecDeque<(Range<usize>, Record<T>)>,
    /// What was found and not taken yet.
    found: VecDeque<Record<T>>,
    position: Position,
    around: Around,
    /// How far the value or row was followed that is being read.
    scan: Option<Scan>,
    /// After a broken value: how far the line may be indented that begins the next one.
    resumes_at: Option<usize>,
    /// Whether the rest of the line is skipped.
    skips_line: bool,
    read_again: u64,
}

/// Where `at` is.
struct Position {
    /// The line, from 1.
    line: u64,
    /// How many blanks that line begins with, as far as it has been read.
    indentation: usize,
    /// Whether something else than blanks has been read of it.
    is_in_line: bool,
    /// Whether something in it was wrong already, so that its rest says nothing new.
    is_wrong: bool,
}

/// What the next value is part of.
enum Around {
    /// The beginning of the input.
    Start,
    /// Nothing.
    Nothing,
    Array(Array),
    Table(Header),
}

/// The array that values are elements of.
struct Array {
    line: u64,
    /// The line of what was read of it last.
    last_line: u64,
    indentation: usize,
    /// The position of the next element.
    index: u64,
    /// Whether the next element belongs to it for sure: after a broken element, the array may have been cut off.
    is_sure: bool,
    /// Whether an element was read since the last comma, and whether it was a value.
    element: Option<bool>,
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

impl<T: Send> Records<T> {
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
            lines_end: 0,
            is_over: false,
            holds_return: false,
            objects: VecDeque::new(),
            found: VecDeque::new(),
            position: Position {
                line: 1,
                indentation: 0,
                is_in_line: false,
                is_wrong: false,
            },
            around: Around::Start,
            scan: None,
            resumes_at: None,
            skips_line: false,
            read_again: 0,
        }
    }

    /// Takes the next bytes of the input.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Foreign> {
        let text = self.decoder.push(bytes)?;
        self.add_text(text);
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
        self.add_text(rest);
        if mem::take(&mut self.holds_return) {
            self.text.push(NEWLINE);
        }
        self.is_over = true;
        Ok(())
    }

    fn add_text(&mut self, more: Vec<u8>) {
        let more = self.with_line_feeds(more);
        if self.next_object().is_none() {
            self.text.drain(..self.at);
            self.lines_end -= self.at.min(self.lines_end);
            self.at = 0;
        }
        let lines_start = self.lines_end;
        let end = memrchr(NEWLINE, &more).map(|at| self.text.len() + at + 1);
        self.text.extend_from_slice(&more);
        self.lines_end = end.unwrap_or(lines_start);
        if self.scan.is_none() && matches!(self.around, Around::Start | Around::Nothing) {
            let lines = lines_start..self.lines_end;
            self.objects.extend(self.parser.parse_lines(&self.text, lines));
        }
    }

    /// Has every line of a text end in a line feed. No valid JSON has a return but between values.
    fn with_line_feeds(&mut self, mut text: Vec<u8>) -> Vec<u8> {
        if text.is_empty() {
            return text;
        }
        if mem::take(&mut self.holds_return) {
            text.insert(0, b'\r');
        }
        self.holds_return = text.pop_if(|last| *last == b'\r').is_some();
        let mut from = 0;
        while let Some(at) = memchr(b'\r', &text[from..]) {
            let at = from + at;
            if text.get(at + 1) != Some(&NEWLINE) {
                text[at] = NEWLINE;
            }
            from = at + 1;
        }
        text
    }
}

/// Yields the values that are there so far; more may come after more was pushed.
impl<T: Send> Iterator for Records<T> {
    type Item = Record<T>;

    fn next(&mut self) -> Option<Record<T>> {
        if let Some(archive) = &mut self.archive {
            let file = archive.next(self.parser.limit)?;
            return Some(self.parser.read_file(file));
        }
        while self.found.is_empty() && self.read_on() {}
        self.found.pop_front()
    }
}

const NEWLINE: u8 = b'\n';
const CUT_OFF: &str = "not JSON: it is cut off";

impl<T: Send> Records<T> {
    /// Reads up to the end of the next value, bracket or line; returns whether there may be more in the text.
    fn read_on(&mut self) -> bool {
        if mem::take(&mut self.skips_line) {
            self.skip_line();
        }
        if matches!(self.around, Around::Table(_)) {
            return self.read_row();
        }
        if self.scan.is_some() {
            return self.read_value();
        }
        self.skip_blank();
        let Some(&byte) = self.text.get(self.at) else {
            if self.is_over {
                self.end_array();
            }
            return false;
        };
        let position = &self.position;
        if let Some(indentation) = self.resumes_at {
            let is_bracket = matches!(byte, b'{' | b'[') && !position.is_in_line;
            if !is_bracket || position.indentation > indentation {
                self.skip_line();
                return true;
            }
            self.resumes_at = None;
        }
        let Around::Array(array) = &mut self.around else {
            if byte != b'[' && self.waits_for_line() {
                return false;
            }
            return match byte {
                b'[' => self.begin_array(),
                b'{' => self.read_whole_line() || self.read_value(),
                _ => self.read_rest(),
            };
        };
        let begins_line = !position.is_in_line;
        match byte {
            b',' | b']' => {
                array.is_sure |= array.element == Some(true);
                array.element = None;
                array.last_line = position.line;
                if byte == b']' {
                    self.around = Around::Nothing;
                }
                self.advance(1);
                true
            }
            _ if begins_line && array.is_sure && array.element.is_some() => self.end_array(),
            // No trace is an array, but this may be the next array.
            b'[' if begins_line && position.indentation <= array.indentation => self.end_array(),
            b'{' | b'[' | b'"' => self.read_value(),
            _ => self.read_rest(),
        }
    }

    fn begin_array(&mut self) -> bool {
        self.around = Around::Array(Array {
            line: self.position.line,
            last_line: self.position.line,
            indentation: self.position.indentation,
            index: 0,
            is_sure: true,
            element: None,
        });
        self.advance(1);
        true
    }

    /// Ends the array, which was cut off.
    fn end_array(&mut self) -> bool {
        if let Around::Array(array) = &self.around
            && array.is_sure
        {
            let Array {
                line,
                last_line,
                index,
                ..
            } = *array;
            let error = format!("not JSON: the array that begins in line {line} is cut off");
            let record = Record::new(0, Err(error)).at(last_line, Some(index));
            self.found.push_back(record);
        }
        self.around = Around::Nothing;
        true
    }

    /// Takes the object that takes up the whole line, as most do: its end need not be searched for. Returns whether there is one.
    fn read_whole_line(&mut self) -> bool {
        if self.position.is_in_line || self.next_object() != Some(self.at) {
            return false;
        }
        if let Some((range, record)) = self.objects.pop_front() {
            self.emit(record, self.position.line);
            self.advance(range.len());
        }
        true
    }

    /// Returns where the next line begins that was parsed, after it has let go of those that were read otherwise.
    fn next_object(&mut self) -> Option<usize> {
        while self.objects.front()?.0.start < self.at {
            self.objects.pop_front();
        }
        Some(self.objects.front()?.0.start)
    }

    /// Returns whether the rest of the line is not there yet. What is too long is not waited for.
    fn waits_for_line(&self) -> bool {
        self.at >= self.lines_end && !self.is_over && self.text.len() - self.at <= self.parser.limit
    }

    /// Reads an object, or an array or a string in an array, as far as it is there.
    fn read_value(&mut self) -> bool {
        let mut scan = self.scan.take().unwrap_or_else(|| Scan::new(self.position.line));
        let value = &self.text[self.at..];
        let followed = scan.follow(value, self.read_again <= RESCAN_LIMIT && !scan.is_too_long);
        let is_too_long = scan.length > self.parser.limit;
        if is_too_long && memchr(NEWLINE, &value[..scan.length]).is_some() {
            self.give_up(scan.length, self.parser.too_long());
            return true;
        }
        if self.let_go(&mut scan) {
            match followed {
                Followed::Open if !self.is_over => {
                    self.scan = Some(scan);
                    return false;
                }
                Followed::Broken => self.resumes_at = Some(usize::MAX),
                Followed::Open | Followed::Closed => {}
            }
            self.emit(self.parser.too_long(), scan.line);
            return true;
        }
        let value = &self.text[self.at..self.at + scan.length];
        match followed {
            Followed::Open if !self.is_over => {
                self.scan = Some(scan);
                return false;
            }
            Followed::Open => self.give_up(scan.length, Record::new(0, Err(CUT_OFF.into()))),
            Followed::Broken => {
                let lines = memchr_iter(NEWLINE, &value[..value.len() - 1]).count() as u64;
                let record = if lines == 0 {
                    let line = &self.text[self.at..];
                    self.parser.parse(&line[..line_length(line)])
                } else {
                    Record::new(0, Err(broken_before(self.position.line + lines)))
                };
                self.give_up(scan.length, record);
            }
            Followed::Closed => {
                let record = self.parser.parse(value);
                // A bracket of a later value may have closed it, with whole values in between.
                if record.content.is_err() && has_value_line(value, self.position.indentation) {
                    self.give_up(scan.length, record);
                } else {
                    self.advance(scan.length);
                    self.emit(record, scan.line);
                }
            }
        }
        true
    }

    /// Lets go of the text of a value that is too long; returns whether it is.
    fn let_go(&mut self, scan: &mut Scan) -> bool {
        scan.is_too_long |= scan.length > self.parser.limit;
        if scan.is_too_long {
            self.advance(mem::take(&mut scan.length));
        }
        scan.is_too_long
    }

    /// Gives up a value of so many bytes, whose record is an error: reading goes on after its first line, where others may begin.
    fn give_up(&mut self, length: usize, record: Record<T>) {
        let text = &self.text[self.at..];
        let first = line_length(text);
        let again = text.get(first..length).unwrap_or_default();
        let lines = memchr_iter(NEWLINE, again).count() as u64;
        self.read_again += again.len() as u64 + lines * LINE_COST;
        let size = first as u64;
        let record = Record { size, ..record };
        let is_in_array = matches!(self.around, Around::Array(_));
        if !again.is_empty() || is_in_array {
            self.resumes_at = Some(self.position.indentation);
        }
        self.emit(record, self.position.line);
        self.doubt_array();
        self.skip_line();
    }

    /// Notes that the array may have been cut off before the next value.
    fn doubt_array(&mut self) {
        if let Around::Array(array) = &mut self.around {
            (array.is_sure, array.element) = (false, None);
        }
    }

    /// Reads a value without brackets: all of the line; in an array and beside an object, up to the next one.
    fn read_rest(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let end = match &self.around {
            Around::Array(_) => memchr3(b',', b']', NEWLINE, rest),
            _ if self.position.is_in_line => memchr2(b'{', NEWLINE, rest),
            _ => memchr(NEWLINE, rest),
        };
        let line = self.position.line;
        if rest.len() > self.parser.limit && end.is_none_or(|end| end > self.parser.limit) {
            self.emit(self.parser.too_long(), line);
            self.skip_line();
            return true;
        }
        if end.is_none() && !self.is_over {
            return false;
        }
        let text = &rest[..end.unwrap_or(rest.len())];
        let (length, header) = (text.len(), self.header_of(text));
        if let Some(header) = header {
            self.around = Around::Table(header);
        } else {
            let record = self.parser.parse(text);
            let is_wrong = record.content.is_err();
            if !is_wrong || !self.position.is_wrong {
                self.emit(record, line);
            }
            if is_wrong && self.text.get(self.at + length) == Some(&NEWLINE) {
                self.doubt_array();
            }
        }
        self.advance(length);
        true
    }

    fn header_of(&self, line: &[u8]) -> Option<Header> {
        matches!(self.around, Around::Start)
            .then(|| Header::read(line))
            .flatten()
    }

    /// Reads a row of the table: up to the first end of a line outside of quotes.
    fn read_row(&mut self) -> bool {
        let mut scan = self.scan.take().unwrap_or_else(|| Scan::new(self.position.line));
        let is_whole = scan.follow_row(&self.text[self.at..]) || self.is_over;
        let is_too_long = self.let_go(&mut scan);
        if !is_whole {
            self.scan = Some(scan);
            return false;
        }
        if is_too_long {
            self.found.push_back(self.parser.too_long().at(scan.line, None));
        } else if let Around::Table(header) = &self.around {
            for row in header.rows(&self.text[self.at..self.at + scan.length]) {
                let content = row.value.map(|value| (self.parser.take)(value, None, false));
                let record = Record::new(row.size, content);
                self.found.push_back(record.at(scan.line + row.line, None));
            }
        }
        self.advance(scan.length);
        self.at < self.text.len()
    }

    /// Hands over a record that begins on this line.
    fn emit(&mut self, record: Record<T>, line: u64) {
        let is_wrong = record.content.is_err();
        self.position.is_wrong |= is_wrong;
        let index = match &mut self.around {
            Around::Array(array) => {
                array.last_line = self.position.line;
                let index = array.is_sure.then_some(array.index);
                array.index += 1;
                array.element = Some(!is_wrong);
                index
            }
            around => {
                *around = Around::Nothing;
                None
            }
        };
        self.found.push_back(record.at(line, index));
    }

    /// Goes on by so many bytes.
    fn advance(&mut self, length: usize) {
        let text = &self.text[self.at..self.at + length];
        let position = &mut self.position;
        if let Some(last) = memrchr(NEWLINE, text) {
            position.is_wrong = false;
            position.line += memchr_iter(NEWLINE, text).count() as u64;
            let line = &text[last + 1..];
            position.indentation = line.iter().take_while(|byte| is_blank_byte(**byte)).count();
            position.is_in_line = position.indentation < line.len();
        } else {
            position.is_in_line |= length > 0;
        }
        self.at += length;
    }

    /// Skips white space.
    fn skip_blank(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                NEWLINE => self.position.begin_line(),
                _ if is_blank_byte(byte) => {
                    self.position.indentation += usize::from(!self.position.is_in_line);
                }
                _ => return,
            }
            self.at += 1;
        }
    }

    /// Skips the rest of the line, also what is not there yet.
    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        let length = line_length(rest);
        self.skips_line = rest[..length].last() != Some(&NEWLINE);
        self.advance(length);
    }
}

impl Position {
    fn begin_line(&mut self) {
        self.line += 1;
        self.indentation = 0;
        self.is_in_line = false;
        self.is_wrong = false;
    }
}

fn is_blank_byte(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Returns the length of the first line with its end, or of all the text.
fn line_length(text: &[u8]) -> usize {
    memchr(NEWLINE, text).map_or(text.len(), |at| at + 1)
}

fn broken_before(line: u64) -> String {
    format!("not JSON: it is cut off or broken before the end of line {line}")
}

/// Returns whether a line after the first begins with a bracket and is indented no further, as where a value begins that is
/// not part of this one.
fn has_value_line(value: &[u8], indentation: usize) -> bool {
    memchr_iter(NEWLINE, value).any(|newline| {
        let line = &value[newline + 1..];
        let blanks = line.iter().take(indentation);
        let blanks = blanks.take_while(|&&byte| byte == b' ' || byte == b'\t').count();
        matches!(line.get(blanks), Some(b'{' | b'['))
    })
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
    fn parse(&self, bytes: &[u8]) -> Record<T> {
        self.parse_beside(bytes, false)
    }

    fn parse_beside(&self, bytes: &[u8], is_parallel: bool) -> Record<T> {
        let content = match std::str::from_utf8(bytes).map(trim) {
            Err(_) => Err("not UTF-8".into()),
            Ok(text) => match parse_str(text) {
                Ok(value) => Ok((self.take)(value, Some(text), is_parallel)),
                Err(error) => Err(reason_of(&error)),
            },
        };
        Record::new(bytes.len() as u64, content)
    }

    /// Returns the value that a file holds.
    fn read_file(&self, file: File) -> Record<T> {
        let parsed = match file.contents {
            Ok(Some(bytes)) => self.parse(&bytes),
            Ok(None) => self.too_long(),
            Err(error) => Record::new(0, Err(error)),
        };
        Record {
            line: file.number,
            content: parsed.content.map_err(|error| format!("{}: {error}", file.name)),
            ..parsed
        }
    }

    fn too_long(&self) -> Record<T> {
        #[allow(clippy::cast_precision_loss)] // For a message.
        let megabytes = self.limit as f64 / 1024.0 / 1024.0;
        let error = format!("longer than {} MB", knowledgepulse_json::number(megabytes));
        Record::new(self.limit as u64, Err(error))
    }
}

impl<T: Send> Parser<T> {
    /// Returns the lines of a text that begin with a bracket and are JSON, parsed on all cores.
    fn parse_lines(&self, text: &[u8], lines: Range<usize>) -> Vec<(Range<usize>, Record<T>)> {
        let mut end = lines.start;
        let objects: Vec<_> = memchr_iter(NEWLINE, &text[lines.clone()])
            .filter_map(|newline| {
                let newline = lines.start + newline;
                let start = mem::replace(&mut end, newline + 1);
                let blanks = text[start..newline]
                    .iter()
                    .position(|byte| !is_blank_byte(*byte))?;
                (text[start + blanks] == b'{').then_some(start + blanks..newline)
            })
            .filter(|line| line.len() <= self.limit)
            .collect();
        let parsed = objects.into_par_iter().filter_map(|line| {
            let record = self.parse_beside(&text[line.clone()], true);
            record.content.is_ok().then_some((line, record))
        });
        parsed.collect()
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

/// Follows the brackets and quotes of a value or a row as its text comes.
struct Scan {
    /// The line on which it begins.
    line: u64,
    /// How many bytes were followed.
    length: usize,
    is_too_long: bool,
    depth: usize,
    /// The last byte outside of strings that is not blank, and whether it is in the same line.
    before: u8,
    is_in_line: bool,
    in_string: bool,
    is_escaped: bool,
}

/// Where following a value has ended.
enum Followed {
    /// It goes on behind the text.
    Open,
    /// It ends.
    Closed,
    /// It cannot become JSON any more.
    Broken,
}

impl Scan {
    fn new(line: u64) -> Self {
        Self {
            line,
            length: 0,
            is_too_long: false,
            depth: 0,
            before: b':',
            is_in_line: true,
            in_string: false,
            is_escaped: false,
        }
    }

    /// Follows a value, which may take up several lines if `spans_lines`.
    fn follow(&mut self, value: &[u8], spans_lines: bool) -> Followed {
        while let Some(&byte) = value.get(self.length) {
            if self.in_string && !self.is_escaped && !matches!(byte, b'"' | b'\\' | NEWLINE) {
                let rest = &value[self.length..];
                self.length += memchr3(b'"', b'\\', NEWLINE, rest).unwrap_or(rest.len());
                continue;
            }
            self.length += 1;
            match byte {
                // No string goes on in the next line.
                NEWLINE if self.in_string || !spans_lines => return Followed::Broken,
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' if self.in_string => {
                    self.in_string = false;
                    if self.depth == 0 {
                        return Followed::Closed;
                    }
                }
                _ if is_blank_byte(byte) => {
                    self.is_in_line &= byte != NEWLINE;
                    continue;
                }
                b'{' | b'[' if !self.is_in_line && !matches!(self.before, b':' | b',' | b'{' | b'[') => {
                    return Followed::Broken;
                }
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
            (self.before, self.is_in_line) = (byte, true);
        }
        Followed::Open
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
