//! Finds the JSON values of an input, one at a time: JSON Lines, arrays, values that span lines, and any mix of them; and the rows of
//! a table in CSV.
//!
//! Not a parser: it only finds where a value ends, and leaves the rest to `json`. A streaming parser would end at the first syntax
//! error (a NaN from Python is one), where this one loses a value; and it would forget how numbers were written.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    mem,
    ops::Range,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use knowledgepulse_json::{ParseError, Value, parse_str, trim};
use memchr::{memchr, memchr_iter, memchr2, memchr2_iter, memchr3};
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

/// The values of an input whose bytes are pushed as they come. It holds one value at a time, of at most `limit` bytes, and the bytes
/// that were pushed and not read yet. Lines end in LF, CRLF or CR. Of an archive it holds all bytes, and the values come once it is whole.
///
/// A value that begins with `[` is an array, whose elements are the values. An object ends where its brackets are closed: others
/// may follow it on the line. Anything else is a value to the end of its line. Blank lines are skipped. After an object that its
/// line breaks, reading goes on with the next line; after one over several lines, with the next line that begins with a bracket,
/// in an array with the next that is indented no further than the broken element.
///
/// If the first line is the header of a table in CSV, each row is a value: an object with the names of the header. A cell that is an
/// object or a list in JSON is that value, an empty cell is left out, and another one is a string.
pub struct Records<T = (Value, Option<String>)> {
    shared: Arc<Shared<T>>,
    parser: Arc<Parser<T>>,
    decoder: Decoder,
    /// Reads the pushed bytes. Waits if it needs more, and after each record until that is taken.
    reading: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// The files that are the values, where the input is an archive and was pushed.
    archive: Option<Archive>,
}

struct Shared<T>(Mutex<Exchange<T>>);

struct Exchange<T> {
    chunks: VecDeque<Vec<u8>>,
    is_over: bool,
    record: Option<Record<T>>,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Exchange<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let exchange = Exchange {
            chunks: VecDeque::new(),
            is_over: false,
            record: None,
        };
        let shared = Arc::new(Shared(Mutex::new(exchange)));
        let parser = Arc::new(Parser {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            take: Box::new(take),
        });
        let reading = read_records(Reader::new(Arc::clone(&shared), Arc::clone(&parser)));
        Self {
            shared,
            parser,
            decoder: Decoder::default(),
            reading: Some(Box::pin(reading)),
            archive: None,
        }
    }

    /// Takes the next bytes of the input.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Foreign> {
        let text = self.decoder.push(bytes)?;
        self.shared.lock().chunks.push_back(text);
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
        let mut exchange = self.shared.lock();
        exchange.chunks.push_back(rest);
        exchange.is_over = true;
        Ok(())
    }
}

/// Yields the values that are there so far; more may come after more was pushed.
impl<T> Iterator for Records<T> {
    type Item = Record<T>;

    fn next(&mut self) -> Option<Record<T>> {
        if let Some(archive) = &mut self.archive {
            let file = archive.next(self.parser.limit)?;
            return Some(self.parser.read_file(file));
        }
        let reading = self.reading.as_mut()?;
        let mut context = std::task::Context::from_waker(Waker::noop());
        if reading.as_mut().poll(&mut context).is_ready() {
            self.reading = None;
        }
        self.shared.lock().record.take()
    }
}

const NEWLINE: u8 = b'\n';

fn is_blank_byte(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
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

fn wrong<T>(line: u64, index: Option<u64>, size: u64, error: String) -> Record<T> {
    Record::new(size, Err(error)).at(line, index)
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
    /// Returns the value of these bytes; `None` is for too many bytes.
    fn parse(&self, bytes: Option<&[u8]>) -> Record<T> {
        match bytes {
            Some(bytes) => self.parse_text(bytes, false),
            None => Record::new(self.limit as u64, Err(self.too_long())),
        }
    }

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
            Ok(bytes) => self.parse(bytes.as_deref()),
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
    /// Returns the lines of a chunk that begin with a bracket and are JSON, parsed on all cores.
    fn parse_lines(&self, chunk: &[u8]) -> VecDeque<(Range<usize>, Record<T>)> {
        let mut end = 0;
        let lines: Vec<_> = memchr_iter(NEWLINE, chunk)
            .filter_map(|newline| {
                let start = mem::replace(&mut end, newline + 1);
                let blanks = chunk[start..newline]
                    .iter()
                    .position(|byte| !is_blank_byte(*byte))?;
                (chunk[start + blanks] == b'{').then_some(start + blanks..end)
            })
            .collect();
        let parsed = lines.into_par_iter().filter_map(|line| {
            let record = self.parse_text(&chunk[line.clone()], true);
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

const CUT_OFF: &str = "not JSON: it is cut off";

fn broken_before(line: u64) -> String {
    format!("not JSON: it is cut off or broken before the end of line {line}")
}

async fn read_records<T: Send>(mut reader: Reader<T>) {
    // The line whose rest says nothing new: something in it was bad already.
    let mut bad_line = None;
    let mut is_first = true;
    while let Some(byte) = reader.skip_blank().await {
        let may_be_header = mem::take(&mut is_first);
        if byte == b'[' {
            read_elements(&mut reader).await;
            continue;
        }
        if let Some(record) = reader.whole_line() {
            reader.emit(record).await;
            continue;
        }
        let line = reader.line;
        let record = if byte == b'{' {
            read_object(&mut reader).await
        } else {
            let bytes = read_rest(&mut reader).await;
            let header = bytes.as_deref().filter(|_| may_be_header).and_then(Header::read);
            if let Some(header) = header {
                return read_rows(&mut reader, &header).await;
            }
            reader.parser.parse(bytes.as_deref()).at(line, None)
        };
        if record.content.is_ok() {
            reader.emit(record).await;
            continue;
        }
        if byte == b'{' || Some(line) != bad_line {
            reader.emit(record).await;
        }
        bad_line = reader.is_in_line.then_some(reader.line);
    }
}

/// All of the line; beside an object, up to the next object.
async fn read_rest<T: Send>(reader: &mut Reader<T>) -> Option<Vec<u8>> {
    if reader.is_in_line {
        reader.read_between().await
    } else {
        reader.read_line(reader.parser.limit).await
    }
}

/// The rows of a table, up to the end of the input.
async fn read_rows<T: Send>(reader: &mut Reader<T>, header: &Header) {
    while reader.more().await {
        let line = reader.line;
        let Some(lines) = reader.read_row().await else {
            reader.emit(reader.parser.parse(None).at(line, None)).await;
            continue;
        };
        for row in header.rows(&lines) {
            let content = row.value.map(|value| (reader.parser.take)(value, None, false));
            let record = Record::new(row.size, content);
            reader.emit(record.at(line + row.line, None)).await;
        }
    }
}

/// The object that the reader is at.
async fn read_object<T: Send>(reader: &mut Reader<T>) -> Record<T> {
    let line = reader.line;
    let mut nesting = Nesting::default();
    let first = reader.read_object(reader.parser.limit, &mut nesting).await;
    let first = match first {
        Next::Bytes(first) if nesting.is_open() && reader.may_read_again() => first,
        Next::Bytes(first) => return reader.parser.parse(Some(&first)).at(line, None),
        Next::TooLong | Next::Nothing => return reader.parser.parse(None).at(line, None),
    };
    let size = first.len();
    let (bytes, error) = read_open_object(reader, first, &mut nesting).await;
    let error = match error {
        Some(error) => error,
        None => {
            let complete = reader.parser.parse(Some(&bytes));
            match complete.content {
                Ok(_) => return complete.at(line, None),
                Err(error) => error,
            }
        }
    };
    // It was broken, and the bracket that closed it may be that of a later object.
    reader.unread(bytes.get(size..).unwrap_or_default(), 0);
    reader.skip_to_bracket(0).await;
    wrong(line, None, size as u64, error)
}

/// Reads the lines after `first` until they close its brackets, or cannot any more. Returns all of them, and the problem if the
/// brackets are not closed.
async fn read_open_object<T: Send>(
    reader: &mut Reader<T>,
    first: Vec<u8>,
    nesting: &mut Nesting,
) -> (Vec<u8>, Option<String>) {
    let mut bytes = first;
    loop {
        let line = reader.line;
        let error = match reader
            .read_object(reader.parser.limit.saturating_sub(bytes.len()), nesting)
            .await
        {
            Next::TooLong => {
                // A part of it is gone already; nothing is read twice.
                bytes.clear();
                Some(reader.parser.too_long())
            }
            Next::Nothing => Some(CUT_OFF.into()),
            Next::Bytes(next) => {
                bytes.extend_from_slice(&next);
                if nesting.is_open() {
                    continue;
                }
                (!nesting.is_closed()).then(|| broken_before(line))
            }
        };
        return (bytes, error);
    }
}

/// The elements of the current array. Text may have been cut off, from an element or from the array itself; then the next
/// value is in the array if a comma or the bracket comes after it, and otherwise stands for itself.
async fn read_elements<T: Send>(reader: &mut Reader<T>) {
    let array_line = reader.line;
    let cut_off = |line, index| {
        let error = format!("not JSON: the array that begins in line {array_line} is cut off");
        wrong(line, Some(index), 0, error)
    };
    reader.skip_byte();
    let mut is_whole = true;
    for index in 0.. {
        let mut separator_line = reader.line;
        let mut byte = reader.skip_blank().await;
        while byte == Some(b',') {
            reader.skip_byte();
            separator_line = reader.line;
            byte = reader.skip_blank().await;
        }
        if byte == Some(b']') {
            return reader.skip_byte();
        }
        let (line, indentation) = (reader.line, reader.indentation);
        if byte.is_none() {
            if is_whole {
                reader.emit(cut_off(separator_line, index)).await;
            }
            return;
        }
        // In a broken array, `[` begins no element, because no trace is an array, but perhaps the next array.
        if byte == Some(b'[') && !is_whole {
            return;
        }

        let (bytes, end) = reader.read_element(indentation).await;
        let element = reader.parser.parse(bytes.as_deref());
        let is_wrong = element.content.is_err();
        let place = is_whole.then_some(index);
        // A bracket of the broken part may have closed it, with whole values in between.
        let swallows = |bytes: &Vec<u8>| has_value_line(bytes, indentation);
        let is_swallowing = is_wrong && bytes.as_ref().is_some_and(swallows) && reader.may_read_again();
        if end == End::Separator && !is_swallowing {
            reader.emit(element.at(line, Some(index))).await;
            is_whole |= !is_wrong;
        } else if is_wrong {
            is_whole = false;
            let all = bytes.as_deref().unwrap_or_default();
            let size = memchr(NEWLINE, all).map_or(all.len(), |at| at + 1);
            let rest = &all[size..];
            if end == End::Line && rest.iter().all(|&byte| is_blank_byte(byte)) {
                reader.emit(element.at(line, place)).await;
                continue;
            }
            let last_line = if end == End::Separator {
                reader.line
            } else {
                reader.line - 1
            };
            if bytes.is_none() {
                reader.emit(element.at(line, place)).await;
            } else {
                let error = if end == End::Input {
                    CUT_OFF.into()
                } else {
                    broken_before(last_line)
                };
                reader.emit(wrong(line, place, size as u64, error)).await;
            }
            reader.unread(rest, 0);
            reader.skip_to_bracket(indentation).await;
        } else {
            // The element is whole, and the array was cut off before it or after it.
            let begins_line = line > separator_line;
            if is_whole && begins_line {
                reader.emit(cut_off(separator_line, index)).await;
            }
            match bytes {
                Some(bytes) if begins_line && byte == Some(b'[') => reader.unread(&bytes, indentation),
                _ => {
                    let place = place.filter(|_| !begins_line);
                    reader.emit(element.at(line, place)).await;
                }
            }
            if is_whole && !begins_line {
                reader.emit(cut_off(line, index + 1)).await;
            }
            return;
        }
    }
}

/// Returns whether a line after the first begins with a bracket and is indented no further, as where a value begins that is
/// not part of this one.
fn has_value_line(bytes: &[u8], indentation: usize) -> bool {
    memchr_iter(NEWLINE, bytes).any(|newline| {
        let line = &bytes[newline + 1..];
        let line = &line[..line.len().min(indentation + 1)];
        let last = line.len().saturating_sub(1);
        let blanks = line[..last]
            .iter()
            .take_while(|&&byte| byte == b' ' || byte == b'\t')
            .count();
        matches!(line.get(blanks), Some(b'{' | b'['))
    })
}

/// Returns whether a value may begin after this byte, be it in an array or in an object.
fn may_begin(before: u8) -> bool {
    matches!(before, b':' | b',' | b'{' | b'[')
}

/// Follows the brackets of an object from line to line.
struct Nesting {
    depth: usize,
    before: u8,
    in_string: bool,
    is_escaped: bool,
    is_broken: bool,
}

impl Default for Nesting {
    fn default() -> Self {
        Self {
            depth: 0,
            before: b':',
            in_string: false,
            is_escaped: false,
            is_broken: false,
        }
    }
}

impl Nesting {
    /// Returns whether brackets are open, and the text so far can still become JSON.
    fn is_open(&self) -> bool {
        self.depth > 0 && !self.is_broken
    }

    fn is_closed(&self) -> bool {
        self.depth == 0
    }

    /// Follows the bytes; returns where the object ends there, or the line, or else the chunk.
    fn follow(&mut self, chunk: &[u8]) -> usize {
        for (at, &byte) in chunk.iter().enumerate() {
            if byte == NEWLINE {
                // No string goes on in the next line.
                self.is_broken |= self.in_string;
                return at + 1;
            }
            if self.is_broken {
                return memchr(NEWLINE, chunk).map_or(chunk.len(), |at| at + 1);
            }
            if self.in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b' ' | b'\t' | b'\r' => continue,
                b'{' | b'[' | b'"' if !may_begin(self.before) => {
                    self.is_broken = true;
                    return memchr(NEWLINE, &chunk[at..]).map_or(chunk.len(), |end| at + end + 1);
                }
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
            self.before = byte;
        }
        chunk.len()
    }
}

/// The end of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// A comma, a bracket or the next object on its line.
    Separator,
    /// A line that begins with something else.
    Line,
    /// The end of the input.
    Input,
    /// Nothing sound.
    Broken,
}

/// The next value, if it is not longer than a limit.
enum Next {
    Bytes(Vec<u8>),
    TooLong,
    Nothing,
}

/// Where the input has been read to.
struct Reader<T> {
    shared: Arc<Shared<T>>,
    parser: Arc<Parser<T>>,
    /// The line that the next byte is in, from 1.
    line: u64,
    /// How many blanks that line begins with, as far as it has been read.
    indentation: usize,
    /// Whether something else than blanks has been read of it.
    is_in_line: bool,
    chunk: Vec<u8>,
    at: usize,
    /// The lines of the chunk that are objects, and where they begin and end; they were parsed on all cores.
    objects: VecDeque<(Range<usize>, Record<T>)>,
    /// Whether the chunk ended in a return that was held back, because it may be one with the line feed that comes next.
    holds_return: bool,
    read_again: u64,
}

impl<T: Send> Reader<T> {
    fn new(shared: Arc<Shared<T>>, parser: Arc<Parser<T>>) -> Self {
        Self {
            shared,
            parser,
            line: 1,
            indentation: 0,
            is_in_line: false,
            chunk: Vec::new(),
            at: 0,
            objects: VecDeque::new(),
            holds_return: false,
            read_again: 0,
        }
    }

    /// Hands over a record, and waits until it is taken.
    async fn emit(&mut self, record: Record<T>) {
        self.shared.lock().record = Some(record);
        poll_fn(|_| match self.shared.lock().record {
            None => Poll::Ready(()),
            Some(_) => Poll::Pending,
        })
        .await;
    }

    /// Whether there is another byte. Waits for one.
    async fn more(&mut self) -> bool {
        while self.at == self.chunk.len() {
            let chunk = poll_fn(|_| {
                let mut exchange = self.shared.lock();
                match exchange.chunks.pop_front() {
                    None if !exchange.is_over => Poll::Pending,
                    chunk => Poll::Ready(chunk),
                }
            });
            self.chunk = match chunk.await {
                Some(chunk) => self.with_line_feeds(chunk),
                None if mem::take(&mut self.holds_return) => vec![NEWLINE],
                None => return false,
            };
            self.at = 0;
            self.objects = self.parser.parse_lines(&self.chunk);
        }
        true
    }

    /// Has every line of a chunk end in a line feed. No valid JSON has a return but between values.
    fn with_line_feeds(&mut self, mut chunk: Vec<u8>) -> Vec<u8> {
        if chunk.is_empty() {
            return chunk;
        }
        if mem::take(&mut self.holds_return) {
            chunk.insert(0, b'\r');
        }
        self.holds_return = chunk.pop_if(|last| *last == b'\r').is_some();
        let mut from = 0;
        while let Some(at) = memchr(b'\r', &chunk[from..]) {
            let at = from + at;
            if chunk.get(at + 1) != Some(&NEWLINE) {
                chunk[at] = NEWLINE;
            }
            from = at + 1;
        }
        chunk
    }

    fn begin_line(&mut self) {
        self.line += 1;
        self.indentation = 0;
        self.is_in_line = false;
    }

    /// Skips a byte that is not blank.
    fn skip_byte(&mut self) {
        self.at += 1;
        self.is_in_line = true;
    }

    /// Skips white space; returns the byte after it, which is still to be read, or `None` at the end.
    async fn skip_blank(&mut self) -> Option<u8> {
        loop {
            while let Some(&byte) = self.chunk.get(self.at) {
                match byte {
                    NEWLINE => self.begin_line(),
                    b' ' | b'\t' | b'\r' => self.indentation += usize::from(!self.is_in_line),
                    _ => return Some(byte),
                }
                self.at += 1;
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Returns the object that takes up the whole line, as most do, if all of the line is there: its end need not be
    /// searched for.
    fn whole_line(&mut self) -> Option<Record<T>> {
        while self
            .objects
            .front()
            .is_some_and(|(range, _)| range.start < self.at)
        {
            self.objects.pop_front();
        }
        let (range, _) = self.objects.front()?;
        if self.is_in_line || range.start != self.at || range.len() > self.parser.limit {
            return None;
        }
        let (range, parsed) = self.objects.pop_front()?;
        let record = parsed.at(self.line, None);
        self.at = range.end;
        self.begin_line();
        Some(record)
    }

    /// The bytes up to the end that `find` returns for what is left of a chunk; `None` if they are more than `limit`.
    async fn read_to(
        &mut self,
        limit: usize,
        mut find: impl FnMut(&[u8]) -> Option<usize>,
    ) -> Option<Vec<u8>> {
        let mut parts = Parts::new(limit);
        while self.more().await {
            let rest = &self.chunk[self.at..];
            let end = find(rest);
            let length = end.unwrap_or(rest.len());
            parts.push(&rest[..length]);
            self.at += length;
            if end.is_some() {
                break;
            }
        }
        parts.join()
    }

    /// The rest of the line, which is not empty, with its end; `None` if it is longer than `limit`.
    async fn read_line(&mut self, limit: usize) -> Option<Vec<u8>> {
        let end = |rest: &[u8]| memchr(NEWLINE, rest).map(|at| at + 1);
        let line = self.read_to(limit, end).await;
        if self.chunk[..self.at].ends_with(&[NEWLINE]) {
            self.begin_line();
        }
        line
    }

    /// The lines up to the first whose end is outside of quotes; `None` if they are longer than `limit`.
    async fn read_row(&mut self) -> Option<Vec<u8>> {
        let (mut is_quoted, mut lines) = (false, 0);
        let end = |rest: &[u8]| {
            let end = memchr2_iter(b'"', NEWLINE, rest).find(|&at| {
                is_quoted ^= rest[at] == b'"';
                lines += u64::from(rest[at] == NEWLINE);
                rest[at] == NEWLINE && !is_quoted
            });
            end.map(|at| at + 1)
        };
        let row = self.read_to(self.parser.limit, end).await;
        self.line += lines;
        row
    }

    /// The text on the line before the next object; `None` if it is longer than `limit`.
    async fn read_between(&mut self) -> Option<Vec<u8>> {
        let end = |rest: &[u8]| memchr2(b'{', NEWLINE, rest);
        self.read_to(self.parser.limit, end).await
    }

    /// The next part of the object that `nesting` follows, up to its end or that of the line, to which a broken one goes on.
    async fn read_object(&mut self, limit: usize, nesting: &mut Nesting) -> Next {
        let mut parts = Parts::new(limit);
        let mut is_empty = true;
        while self.more().await {
            is_empty = false;
            let end = self.at + nesting.follow(&self.chunk[self.at..]);
            parts.push(&self.chunk[self.at..end]);
            self.at = end;
            self.is_in_line = true;
            if nesting.is_closed() {
                break;
            }
            if self.chunk[..end].last() == Some(&NEWLINE) {
                self.begin_line();
                break;
            }
        }
        match parts.join() {
            _ if is_empty => Next::Nothing,
            Some(bytes) => Next::Bytes(bytes),
            None => Next::TooLong,
        }
    }

    /// The current element, up to its end; its bytes are `None` if they are more than `limit`. A line that is indented no
    /// further than `indentation` tells where one that is too long may be over.
    async fn read_element(&mut self, indentation: usize) -> (Option<Vec<u8>>, End) {
        let mut parts = Parts::new(self.parser.limit);
        let mut depth = 0_usize;
        let mut in_string = false;
        let mut is_escaped = false;
        let mut before = b',';
        let mut end = None;
        self.is_in_line = true;
        while end.is_none() && self.more().await {
            let start = self.at;
            let mut at = start;
            while let Some(&byte) = self.chunk.get(at) {
                if byte == NEWLINE {
                    self.begin_line();
                    at += 1;
                    // No string goes on in the next line.
                    if !in_string && (depth == 0 || self.may_read_again()) {
                        continue;
                    }
                    end = Some(End::Broken);
                    break;
                }
                if in_string {
                    let rest = &self.chunk[at..];
                    at += if is_escaped || matches!(byte, b'\\' | b'"') {
                        1
                    } else {
                        memchr3(b'\\', b'"', NEWLINE, rest).unwrap_or(rest.len())
                    };
                    in_string = is_escaped || byte != b'"';
                    is_escaped = !is_escaped && byte == b'\\';
                    continue;
                }
                if matches!(byte, b' ' | b'\t' | b'\r') {
                    self.indentation += usize::from(!self.is_in_line);
                    at += 1;
                    continue;
                }
                if depth == 0 {
                    // Without a comma they are still two.
                    let is_next = byte == b'{' && before == b'}';
                    end = match byte {
                        b',' | b']' => Some(End::Separator),
                        _ if !self.is_in_line => Some(End::Line),
                        _ => is_next.then_some(End::Separator),
                    };
                    if end.is_some() {
                        break;
                    }
                }
                match byte {
                    b'"' => in_string = true,
                    b'{' | b'[' => {
                        let is_over = if parts.are_too_many() {
                            self.indentation <= indentation
                        } else {
                            !may_begin(before)
                        };
                        if !self.is_in_line && is_over {
                            end = Some(End::Broken);
                            break;
                        }
                        depth += 1;
                    }
                    b'}' | b']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                before = byte;
                self.is_in_line = true;
                at += 1;
            }
            parts.push(&self.chunk[start..at]);
            self.at = at;
        }
        (parts.join(), end.unwrap_or(End::Input))
    }

    /// Puts the last text back, whole lines, or all after the `indentation` of the first one.
    fn unread(&mut self, bytes: &[u8], indentation: usize) {
        if bytes.is_empty() {
            return;
        }
        // Copying a possibly large chunk for each of many broken values would take long.
        if self.chunk[..self.at].ends_with(bytes) {
            self.at -= bytes.len();
        } else {
            self.chunk = [bytes, &self.chunk[self.at..]].concat();
            self.at = 0;
            self.objects.clear();
        }
        let lines = memchr_iter(NEWLINE, bytes).count() as u64;
        self.line -= lines;
        self.indentation = indentation;
        self.is_in_line = false;
        self.read_again += bytes.len() as u64 + lines * LINE_COST;
    }

    /// Returns whether a broken value may still cost reading its lines again.
    fn may_read_again(&self) -> bool {
        self.read_again <= RESCAN_LIMIT
    }

    /// Skips lines up to one that begins with a bracket and is indented no further.
    async fn skip_to_bracket(&mut self, indentation: usize) {
        while let Some(byte) = self.skip_blank().await {
            if matches!(byte, b'{' | b'[') && self.indentation <= indentation {
                return;
            }
            self.read_line(0).await;
        }
    }
}

/// Bytes that are put together, unless they become too many.
struct Parts {
    bytes: Vec<u8>,
    length: usize,
    limit: usize,
}

impl Parts {
    fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            length: 0,
            limit,
        }
    }

    fn push(&mut self, part: &[u8]) {
        self.length = self.length.saturating_add(part.len());
        if self.are_too_many() {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(part);
        }
    }

    fn are_too_many(&self) -> bool {
        self.length > self.limit
    }

    fn join(self) -> Option<Vec<u8>> {
        (!self.are_too_many()).then_some(self.bytes)
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
                    "1 not JSON: it is cut off or broken before the end of line 3",
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
            // After a whole element, a broken array counts as whole again.
            (
                "[x,\n{\"a\":1},\n{\"b\":2}\n",
                vec![
                    "1[0] not JSON: no value at byte 0",
                    "2[1] {\"a\":1}",
                    "2[2] not JSON: the array that begins in line 1 is cut off",
                    "3 {\"b\":2}",
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
                    "2[2] not JSON: the array that begins in line 1 is cut off",
                    "3 not JSON: key must be a string at byte 6",
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
                vec!["1 not JSON: trailing characters at byte 1", "2 {}"],
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
                    "3 not JSON: trailing characters at byte 1",
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
            assert!(found.last().unwrap().ends_with(" {\"end\":1}"), "{input}");
        }
        let unfinished = read("{\"a\":[\n".repeat(100_000).as_bytes(), 64 * 1024, DEFAULT_LIMIT);
        assert_eq!(unfinished.len(), 100_000);
        assert!(unfinished[99_999].starts_with("100000 not JSON"));
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
