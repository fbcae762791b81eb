//! Turns records of agents into traces, by the module of each format.

use std::{
    fmt, mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    Entry, FormatName, Found, Given, Known, Place, Wrong,
    adapters::{self, ADAPTERS, Kind, adapter_of},
    encoding::Foreign,
    input::UNREADABLE,
    messages::is_message,
    records::{Record, Records},
};

/// Options of an input.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The format of every record; without it, each record is recognised by its content.
    pub format: Option<FormatName>,
    /// The caller's settings for the traces.
    pub given: Arc<Given>,
    /// The path of the input.
    pub file: Option<PathBuf>,
}

impl Settings {
    /// Returns the format of a record by its contents and the path of the input; `None` for a record of no format.
    #[must_use]
    pub fn recognise(&self, value: &Value) -> Option<FormatName> {
        format_at(value, self.file.as_deref())
    }
}

/// The result of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The line on which it begins, from 1.
    pub line: Option<u64>,
    /// The position in the array that it is an element of, from 0.
    pub index: Option<u64>,
    /// Its size in the input, in bytes.
    pub size: u64,
    /// The format; `None` if no format recognises the value.
    pub format: Option<FormatName>,
    /// The trace, or the reason for its absence.
    pub content: Content,
}

/// A result whose trace may not be built yet.
pub struct Unbuilt(State);

enum State {
    Built(Item),
    Found(Found, FormatName, Place, Arc<Given>),
}

impl Unbuilt {
    /// Builds the trace, which needs no other record: so on any core.
    #[must_use]
    pub fn build(self) -> Item {
        let (found, format, place, given) = match self.0 {
            State::Built(item) => return item,
            State::Found(found, format, place, given) => (found, format, place, given),
        };
        let builder = match found.build() {
            Ok(builder) => builder,
            Err(wrong) => {
                let place = Place { size: 0, ..place };
                return place.item(Some(format), Content::Wrong(wrong_of(format, wrong)));
            }
        };
        let place = builder.place;
        let content = match (builder.is_empty(), builder.is_conversation) {
            (true, true) => Content::Wrong(builder.empty_reason()),
            (true, false) => Content::Skipped(builder.empty_reason()),
            (false, _) => {
                let (trace, known) = builder.finish(&given);
                Content::Converted(trace, known)
            }
        };
        place.item(Some(format), content)
    }
}

/// The trace of a record, or the reason for its absence.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A trace that was converted, and which parts of its outcome are known.
    Converted(Value, Known),
    /// A value that is a trace already, or that no format recognises, and the text that it was read from.
    Plain(Value, Option<String>),
    /// The problem.
    Wrong(Text),
    /// Why there is no trace: the records are not of a conversation.
    Skipped(Text),
}

/// Returns whether a value says that it is a trace of this package.
#[must_use]
pub fn is_trace(value: &Value) -> bool {
    value.get("@type").and_then(Value::as_str) == Some("ReasoningTrace")
}

/// Returns the format of a record by its contents, the first of [`FormatName::ALL`] that it may be of; `None` for a record of no format.
#[must_use]
pub fn format_of(value: &Value) -> Option<FormatName> {
    format_at(value, None)
}

fn format_at(value: &Value, path: Option<&Path>) -> Option<FormatName> {
    if is_trace(value) {
        return Some(FormatName::Trace);
    }
    let mut adapters = ADAPTERS.iter();
    let (format, ..) = adapters.find(|(.., adapter)| adapter.recognises(value, path))?;
    Some(*format)
}

/// How many keys of a record are named, and how long they may be.
const MAX_KEYS: usize = 12;
const KEY_LENGTH: usize = 40;

/// The problem of a record that no format recognises. Its text names the keys of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfNoFormat {
    kind: &'static str,
    /// Of an object, the first keys: one more than are named, if there are so many.
    keys: Vec<Text>,
}

impl OfNoFormat {
    /// Notes what the text of the problem is made of.
    #[must_use]
    pub fn new(value: &Value) -> Self {
        let keys = value.as_object().into_iter().flat_map(Object::keys);
        Self {
            kind: value.kind(),
            keys: keys.take(MAX_KEYS + 1).cloned().collect(),
        }
    }
}

impl fmt::Display for OfNoFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only names of fields are quoted: the message may be shared.
        let is_name = |key: &&str| {
            let mut bytes = key.bytes();
            key.len() <= KEY_LENGTH
                && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.@$:/ ".contains(&byte))
        };
        let keys = self
            .keys
            .iter()
            .map(|key| Some(key.as_str()).filter(is_name).unwrap_or("…"));
        let mut keys: Vec<_> = keys.collect();
        if let Some(more) = keys.get_mut(MAX_KEYS) {
            *more = "…";
        }
        let found = match self.kind {
            "object" if keys.is_empty() => "its keys are none".into(),
            "object" => format!("its keys are {}", keys.join(", ")),
            "array" => "it is an array".into(),
            kind => format!("it is a {kind}"),
        };
        write!(
            formatter,
            "of no format that is known: {found}; docs/formats.md lists the formats"
        )
    }
}

/// Formats whose rows are read on any core.
const MAY_STAND_ALONE: [FormatName; 5] = [
    FormatName::SweAgent,
    FormatName::Openhands,
    FormatName::Langchain,
    FormatName::Sharegpt,
    FormatName::OpenaiChat,
];

/// Reads a record that is a trace by itself, whatever the records around it are: so on any core. `recognised` is its [format](format_of).
/// Returns its format, and the trace as [`TraceReader`] would return it, which must be told ([`TraceReader::pass`]).
///
/// # Errors
/// The record, if [`TraceReader`] must read it.
pub fn read_alone(
    settings: &Settings,
    value: Value,
    recognised: Option<FormatName>,
) -> Result<(FormatName, Content), Value> {
    let may_go_on = || is_message(&value);
    let format = match settings.format.or_else(|| recognised.filter(|_| !may_go_on())) {
        Some(FormatName::Trace) => return Ok((FormatName::Trace, Content::Plain(value, None))),
        Some(format) if MAY_STAND_ALONE.contains(&format) => format,
        _ => return Err(value),
    };
    let entry = Entry {
        value: &value,
        place: Place::default(),
    };
    let Some(mut reader) = reader_of(format, settings) else {
        return Err(value);
    };
    let (mut found, mut open) = (Vec::new(), Vec::new());
    let read = reader.read(&entry, &mut found);
    reader.end(&mut open);
    match (
        read,
        found.pop().map(Found::build),
        found.is_empty() && open.is_empty(),
    ) {
        (Ok(()), Some(Ok(builder)), true) if !builder.is_empty() => {
            let (trace, known) = builder.finish(&settings.given);
            Ok((format, Content::Converted(trace, known)))
        }
        _ => Err(value),
    }
}

fn reader_of(format: FormatName, settings: &Settings) -> Option<adapters::Reader> {
    let file = settings.file.clone();
    adapters::Reader::of(format, file, settings.format.is_some())
}

/// A file of which so many records at the beginning are of no format is refused. Sessions may begin with such records.
pub const MOST_FIRST_RECORDS: usize = 10;

/// Reads one input, record by record. Its first record of a known format says what the file is.
pub struct TraceReader {
    settings: Settings,
    file: FileKind,
    readers: Vec<(FormatName, adapters::Reader)>,
}

/// What a file is.
enum FileKind {
    /// These first records are of no format.
    Undecided(Vec<(Value, Option<String>, Place)>),
    /// Records of one agent or platform, which all of the file is.
    Of(FormatName),
    /// Rows of a data set, each of which is recognised by itself.
    Rows,
    /// A file of no format.
    Refused,
}

impl Place {
    fn item(self, format: Option<FormatName>, content: Content) -> Item {
        Item {
            line: self.line,
            index: self.index,
            size: self.size,
            format,
            content,
        }
    }
}

fn built(place: Place, format: Option<FormatName>, content: Content) -> Unbuilt {
    Unbuilt(State::Built(place.item(format, content)))
}

/// Returns whether a record is a trace, which need not say so.
fn may_be_trace(value: &Value) -> bool {
    is_trace(value) || (value.get("task").is_some() && value.get("steps").is_some())
}

impl TraceReader {
    /// Creates a reader of one input.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            file: FileKind::Undecided(Vec::new()),
            readers: Vec::new(),
        }
    }

    /// Returns the results of a record: none, if its trace goes on, or several traces.
    pub fn read(&mut self, record: Record) -> Vec<Unbuilt> {
        self.read_with(record, Settings::recognise)
    }

    /// Returns what [`TraceReader::read`] does for a record whose [format](format_of) is known.
    pub fn read_recognised(&mut self, record: Record, format: Option<FormatName>) -> Vec<Unbuilt> {
        self.read_with(record, |_, _| format)
    }

    fn read_with(
        &mut self,
        record: Record,
        recognise: impl FnOnce(&Settings, &Value) -> Option<FormatName>,
    ) -> Vec<Unbuilt> {
        let Record {
            line,
            index,
            size,
            content,
        } = record;
        let place = Place { line, index, size };
        let (value, text) = match content {
            Ok(content) => content,
            Err(error) => return vec![built(place, None, Content::Wrong(error.into()))],
        };
        if let Some(Value::String(error)) = value.get(UNREADABLE) {
            let reason = format!("this part of the database cannot be read: {error}");
            return vec![built(place, None, Content::Wrong(reason.into()))];
        }
        if let Some(format) = self.settings.format {
            return self.read_as(Some(format), value, text, place);
        }
        let format = match &self.file {
            // What says that it is a trace is one in any file.
            FileKind::Of(_) | FileKind::Refused if is_trace(&value) => Some(FormatName::Trace),
            FileKind::Of(format) => Some(*format),
            FileKind::Refused => return Vec::new(),
            // Most records are recognised in the task that parsed them, others at most once.
            FileKind::Undecided(_) | FileKind::Rows => recognise(&self.settings, &value),
        };
        let mut items = Vec::new();
        if let FileKind::Undecided(first) = &mut self.file {
            if format.is_none() && !may_be_trace(&value) {
                first.push((value, text, place));
                return if first.len() < MOST_FIRST_RECORDS {
                    items
                } else {
                    self.refuse()
                };
            }
            let kind = format.and_then(adapter_of).map(|(kind, _)| kind);
            items = self.decide(format.filter(|_| matches!(kind, Some(Kind::Sessions | Kind::Spans))));
        }
        items.extend(self.read_as(format, value, text, place));
        items
    }

    /// Decides that the file is of a format, or has rows. Returns the results of its first records.
    fn decide(&mut self, format: Option<FormatName>) -> Vec<Unbuilt> {
        let kind = format.map_or(FileKind::Rows, FileKind::Of);
        let FileKind::Undecided(first) = mem::replace(&mut self.file, kind) else {
            return Vec::new();
        };
        let first = first.into_iter();
        first
            .flat_map(|(value, text, place)| self.read_as(format, value, text, place))
            .collect()
    }

    /// Refuses the file, if it has records, by the first of them.
    fn refuse(&mut self) -> Vec<Unbuilt> {
        let FileKind::Undecided(first) = mem::replace(&mut self.file, FileKind::Refused) else {
            return Vec::new();
        };
        let first = first.into_iter().take(1);
        first
            .flat_map(|(value, text, place)| self.read_as(None, value, text, place))
            .collect()
    }

    /// Returns the results of a record of a format.
    fn read_as(
        &mut self,
        format: Option<FormatName>,
        value: Value,
        text: Option<String>,
        place: Place,
    ) -> Vec<Unbuilt> {
        let Some(format) = format.filter(|format| *format != FormatName::Trace) else {
            let is_native = is_trace(&value) || self.settings.format.is_some();
            let format = is_native.then_some(FormatName::Trace);
            return vec![built(place, format, Content::Plain(value, text))];
        };
        let entry = Entry { value: &value, place };
        let mut found = Vec::new();
        let Some(reader) = self.reader_of(format) else {
            return Vec::new();
        };
        let read = reader.read(&entry, &mut found);
        let mut items = self.unbuilt(format, place, found);
        if let Err(wrong) = read {
            let mut reason = wrong_of(format, wrong);
            let other = format_of(&value).filter(|&other| other != format);
            if let Some(other) = other.filter(|_| self.settings.format.is_some()) {
                reason.push_str(&format!("; it looks like {other}"));
            }
            items.push(built(place, Some(format), Content::Wrong(reason)));
        }
        items
    }

    /// Notes that the next record is of this format and was [read alone](read_alone). Returns the traces that it ends.
    pub fn pass(&mut self, format: FormatName) -> Vec<Unbuilt> {
        let mut items = self.decide(None);
        let mut found = Vec::new();
        if let Some((_, reader)) = self.readers.iter_mut().find(|(other, _)| *other == format) {
            reader.end(&mut found);
        }
        items.extend(self.unbuilt(format, Place::default(), found));
        items
    }

    /// Reads a whole input, and returns the results of all its records.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn read_all(mut self, bytes: &[u8]) -> Result<Vec<Unbuilt>, Foreign> {
        let mut records = Records::default();
        records.push(bytes)?;
        records.finish()?;
        let mut items: Vec<_> = records.flat_map(|record| self.read(record)).collect();
        items.extend(self.end());
        Ok(items)
    }

    /// Returns the traces that the end of the input ends.
    pub fn end(&mut self) -> Vec<Unbuilt> {
        let mut items = self.refuse();
        for (format, mut reader) in mem::take(&mut self.readers) {
            let mut found = Vec::new();
            reader.end(&mut found);
            items.extend(self.unbuilt(format, Place::default(), found));
        }
        items
    }

    fn reader_of(&mut self, format: FormatName) -> Option<&mut adapters::Reader> {
        if !self.readers.iter().any(|(other, _)| *other == format) {
            self.readers.push((format, reader_of(format, &self.settings)?));
        }
        let mut readers = self.readers.iter_mut();
        readers
            .find(|(other, _)| *other == format)
            .map(|(_, reader)| reader)
    }

    /// Returns the results of a record of a format, or of the end of the records.
    fn unbuilt(&self, format: FormatName, place: Place, found: Vec<Found>) -> Vec<Unbuilt> {
        let result = |found| State::Found(found, format, place, Arc::clone(&self.settings.given));
        found.into_iter().map(result).map(Unbuilt).collect()
    }
}

/// Returns the problem of a record of a format.
fn wrong_of(format: FormatName, wrong: Wrong) -> Text {
    format!("not {format}: {}", wrong.reason()).into()
}
