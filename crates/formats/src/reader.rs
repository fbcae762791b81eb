//! Turns records of agents into traces, by the module of each format.

use std::{
    fmt, mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use knowledgepulse_json::{Object, Text, Value};

pub use crate::records::is_trace;

use crate::{
    Entry, FormatName, Given, Known, Place, Wrong,
    agent::Kind,
    copies::{Copies, Print},
    encoding::Foreign,
    event::Fact,
    input::{NOT_READ, UNREADABLE},
    messages::is_message,
    records::{Record, Records, may_be_trace},
    runs::{Found, Runs},
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
    /// Returns the format of a record: the named one, or that of its contents and the path of the input. `None` for a record of no format.
    fn format_of(&self, value: &Value) -> Option<FormatName> {
        self.format.or_else(|| format_at(value, self.file.as_deref()))
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

/// The field of `metadata.imported` that says how many earlier copies of it a trace stands for.
pub const EARLIER_COPIES: &str = "earlier_copies";

/// A record whose traces may not be built yet.
pub struct Unbuilt(State);

enum State {
    Built(Item),
    Found(Found, FormatName, Place, Arc<Given>),
    Row(Value, Option<String>, Place, Arc<Settings>),
}

impl Unbuilt {
    /// Returns itself if it is no run that a later one of its group may contain, or another one that was waiting.
    #[must_use]
    pub fn beside(self, source: String, copies: &mut Copies<(Self, String)>) -> Option<(Self, String)> {
        let found = copies.take((self, source), |(unbuilt, source), shared| match &unbuilt.0 {
            State::Found(Found::Run(session), format, ..) => {
                let mut print = Print::of(*format, session, shared)?;
                print.store = Path::new(source).extension().map(Into::into);
                Some(print)
            }
            _ => None,
        });
        found.map(Self::standing_for)
    }

    /// Returns the runs of a group that are contained in no other.
    pub fn all_of(copies: Copies<(Self, String)>) -> impl Iterator<Item = (Self, String)> {
        copies.end().map(Self::standing_for)
    }

    /// Notes how many earlier copies a run stands for.
    fn standing_for(((mut unbuilt, source), copies): ((Self, String), u64)) -> (Self, String) {
        if let State::Found(Found::Run(session), ..) = &mut unbuilt.0
            && copies > 0
        {
            #[expect(clippy::cast_precision_loss)] // There are not so many.
            session.fact(Fact::Last(EARLIER_COPIES, (copies as f64).into()));
        }
        (unbuilt, source)
    }

    /// Builds the traces, which need no other record: so on any core.
    #[must_use]
    pub fn build(self) -> Vec<Item> {
        match self.0 {
            State::Built(item) => vec![item],
            State::Found(found, format, place, given) => vec![item_of(found, format, place, &given)],
            State::Row(value, text, place, settings) => {
                let mut items = Vec::new();
                let format = settings.format_of(&value);
                if let Some(mut reader) = format.and_then(|format| reader_of(format, &settings)) {
                    read_with(&mut reader, &value, place, &settings, &mut items);
                    let mut found = Vec::new();
                    reader.end(&mut found);
                    items.extend(unbuilt(found, reader.format, Place::default(), &settings));
                } else {
                    items.push(plain(value, text, format, place));
                }
                items.into_iter().flat_map(Self::build).collect()
            }
        }
    }
}

/// Builds the trace of a run.
fn item_of(found: Found, format: FormatName, place: Place, given: &Given) -> Item {
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
            let (trace, known) = builder.finish(given);
            Content::Converted(trace, known)
        }
    };
    place.item(Some(format), content)
}

/// Returns the results of runs of a format, which a record or the end of the records ends.
fn unbuilt(
    found: Vec<Found>,
    format: FormatName,
    place: Place,
    settings: &Settings,
) -> impl Iterator<Item = Unbuilt> {
    let given = Arc::clone(&settings.given);
    found
        .into_iter()
        .map(move |found| Unbuilt(State::Found(found, format, place, Arc::clone(&given))))
}

/// Appends the results of a record of the reader's format.
fn read_with(reader: &mut Runs, value: &Value, place: Place, settings: &Settings, items: &mut Vec<Unbuilt>) {
    let format = reader.format;
    let mut found = Vec::new();
    let read = reader.read(&Entry { value, place }, &mut found);
    items.extend(unbuilt(found, format, place, settings));
    if let Err(wrong) = read {
        let mut reason = wrong_of(format, wrong);
        let other = format_of(value).filter(|&other| other != format);
        if let Some(other) = other.filter(|_| settings.format.is_some()) {
            reason.push_str(&format!("; it looks like {other}"));
        }
        items.push(built(place, Some(format), Content::Wrong(reason)));
    }
}

/// Returns a record that no reader takes: a trace, or one of no format.
fn plain(value: Value, text: Option<String>, format: Option<FormatName>, place: Place) -> Unbuilt {
    let is_native = format.is_some() || is_trace(&value);
    let format = is_native.then_some(FormatName::Trace);
    built(place, format, Content::Plain(value, text))
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

/// Returns the format of a record by its contents, the first of [`FormatName::ALL`] that it may be of; `None` for a record of no format.
#[must_use]
pub fn format_of(value: &Value) -> Option<FormatName> {
    format_at(value, None)
}

pub(crate) fn format_at(value: &Value, path: Option<&Path>) -> Option<FormatName> {
    if is_trace(value) {
        return Some(FormatName::Trace);
    }
    let mut formats = FormatName::ALL.iter().copied();
    formats.find(|format| {
        let read_by = format.read_by();
        read_by.is_some_and(|format| format.adapter.recognises(value, path))
    })
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

fn reader_of(format: FormatName, settings: &Settings) -> Option<Runs> {
    let file = settings.file.clone();
    Runs::of(format, file, settings.format.is_some())
}

/// A file of which so many records at the beginning are of no format is refused. Sessions may begin with such records.
pub const MOST_FIRST_RECORDS: usize = 10;

/// Reads one input, record by record. Its first record of a known format says what the file is.
pub struct TraceReader {
    settings: Arc<Settings>,
    file: FileKind,
    readers: Vec<Runs>,
}

/// What a file is.
enum FileKind {
    /// These first records are of no format.
    Undecided(Vec<(Value, Option<String>, Place)>),
    /// Records of one agent or platform, which all of the file is. They are read in their order.
    Of(FormatName),
    /// Rows of a data set, each of which is recognised by itself, on any core.
    Rows,
    /// A file of no format.
    Refused,
}

impl FileKind {
    /// Returns what a file is by the format of one of its records.
    fn of(format: Option<FormatName>) -> Self {
        match format.and_then(|format| Some((format, format.read_by()?.kind))) {
            Some((format, Kind::Sessions | Kind::Spans)) => Self::Of(format),
            _ => Self::Rows,
        }
    }
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

impl TraceReader {
    /// Creates a reader of one input.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let file = match settings.format {
            None => FileKind::Undecided(Vec::new()),
            format => FileKind::of(format),
        };
        Self {
            settings: Arc::new(settings),
            file,
            readers: Vec::new(),
        }
    }

    /// Returns the results of a record: none, if its trace goes on, or several traces.
    pub fn read(&mut self, record: Record) -> Vec<Unbuilt> {
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
        if let Some(Value::String(tables)) = value.get(NOT_READ) {
            let reason = format!("tables of a newer version are not read: {tables}");
            return vec![built(place, None, Content::Skipped(reason.into()))];
        }
        let mut items = Vec::new();
        if let FileKind::Undecided(first) = &mut self.file {
            let format = self.settings.format_of(&value);
            if format.is_none() && !may_be_trace(&value) {
                first.push((value, text, place));
                return if first.len() < MOST_FIRST_RECORDS {
                    items
                } else {
                    self.refuse()
                };
            }
            let first = mem::take(first);
            self.file = FileKind::of(format);
            for (value, text, place) in first {
                self.read_value(value, text, place, &mut items);
            }
        }
        self.read_value(value, text, place, &mut items);
        items
    }

    /// Appends the results of a record of a file whose kind is known.
    fn read_value(&mut self, value: Value, text: Option<String>, place: Place, items: &mut Vec<Unbuilt>) {
        let format = match &self.file {
            // What says that it is a trace is one in any file.
            FileKind::Of(_) | FileKind::Refused if self.settings.format.is_none() && is_trace(&value) => {
                return items.push(plain(value, text, None, place));
            }
            FileKind::Of(format) => *format,
            // Messages that follow each other are one conversation.
            FileKind::Rows if is_message(&value) => match self.settings.format_of(&value) {
                Some(format) => format,
                None => return items.push(plain(value, text, None, place)),
            },
            FileKind::Rows => {
                items.extend(self.end_readers());
                return items.push(Unbuilt(State::Row(
                    value,
                    text,
                    place,
                    Arc::clone(&self.settings),
                )));
            }
            FileKind::Refused | FileKind::Undecided(_) => return,
        };
        let at = self.readers.iter().position(|reader| reader.format == format);
        let at = at.unwrap_or_else(|| {
            self.readers.extend(reader_of(format, &self.settings));
            self.readers.len() - 1
        });
        match self.readers.get_mut(at) {
            Some(reader) => read_with(reader, &value, place, &self.settings, items),
            None => items.push(plain(value, text, Some(format), place)),
        }
    }

    /// Refuses the file, if it has records, by the first of them.
    fn refuse(&mut self) -> Vec<Unbuilt> {
        let FileKind::Undecided(first) = mem::replace(&mut self.file, FileKind::Refused) else {
            return Vec::new();
        };
        let first = first.into_iter().take(1);
        first
            .map(|(value, text, place)| plain(value, text, None, place))
            .collect()
    }

    /// Reads a whole input, and returns the results of all its records.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn read_all(mut self, bytes: &[u8]) -> Result<Vec<Item>, Foreign> {
        let mut records = Records::default();
        records.push(bytes)?;
        records.finish()?;
        let mut items: Vec<_> = records.flat_map(|record| self.read(record)).collect();
        items.extend(self.end());
        Ok(items.into_iter().flat_map(Unbuilt::build).collect())
    }

    /// Returns the traces that the end of the input ends.
    pub fn end(&mut self) -> Vec<Unbuilt> {
        let mut items = match self.file {
            FileKind::Undecided(_) => self.refuse(),
            _ => Vec::new(),
        };
        items.extend(self.end_readers());
        items
    }

    fn end_readers(&mut self) -> Vec<Unbuilt> {
        let mut items = Vec::new();
        for mut reader in mem::take(&mut self.readers) {
            let mut found = Vec::new();
            reader.end(&mut found);
            items.extend(unbuilt(found, reader.format, Place::default(), &self.settings));
        }
        items
    }
}

/// Returns the problem of a record of a format.
fn wrong_of(format: FormatName, wrong: Wrong) -> Text {
    format!("not {format}: {}", wrong.reason()).into()
}
