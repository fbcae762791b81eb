//! Reads one input: says by its first records what it holds, and hands each record to the reader of its format.

use std::{mem, sync::Arc};

use knowledgepulse_json::{Text, Value};

pub use crate::{
    records::{MOST_FIRST_RECORDS, is_trace},
    run::{Content, EARLIER_COPIES, Item, Run, Settings},
};

use crate::{
    FormatName, Place,
    agent::Kind,
    conversations::{updates_of, usual_row},
    encoding::Foreign,
    input::{NOT_READ, UNREADABLE},
    messages::is_message,
    records::{Record, Records, may_be_trace},
    run::{Row, Runs, Snapshots, item_of},
    shapes::is,
    values::{list_at, object_of, text_at},
    words::{row_where, words},
};

/// How many keys of a record are named, and how long they may be.
const MAX_KEYS: usize = 12;
const KEY_LENGTH: usize = 40;

/// Returns the problem of a record that no format recognises. It names the keys of the record.
#[must_use]
pub fn of_no_format(record: &Value) -> String {
    // Only names of fields are quoted: the message may be shared.
    let is_name = |key: &&str| {
        let mut bytes = key.bytes();
        key.len() <= KEY_LENGTH
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.@$:/ ".contains(&byte))
    };
    let fields = object_of(Some(record));
    let keys = fields.keys().take(MAX_KEYS).map(Text::as_str);
    let keys = keys.map(|key| Some(key).filter(is_name).unwrap_or("…"));
    let more = (fields.len() > MAX_KEYS).then_some("…");
    let keys: Vec<_> = keys.chain(more).collect();
    let unread = row_where("unread", |shape| is(record, shape));
    let found = match record.kind() {
        _ if let Some([_, what]) = unread => format!("it is {what}"),
        "object" if keys.is_empty() => "its keys are none".into(),
        "object" => format!("its keys are {}", keys.join(", ")),
        "array" => "it is an array".into(),
        kind => format!("it is a {kind}"),
    };
    format!("of no format that is known: {found}; docs/formats.md lists the formats")
}

/// Reads one input, record by record. Its first record of a known format says what the file is.
pub struct TraceReader {
    settings: Arc<Settings>,
    file: FileKind,
    reader: Option<Runs>,
    rows: Snapshots,
}

/// What a file is.
enum FileKind {
    /// These first records are of no format.
    Undecided(Vec<Row>),
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
        match format {
            Some(format) if matches!(format.format().kind, Kind::Sessions | Kind::Spans) => Self::Of(format),
            _ => Self::Rows,
        }
    }
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
            reader: None,
            rows: Snapshots::default(),
        }
    }

    /// Returns the runs that a record ends: none, if its run goes on, or several.
    pub fn read(&mut self, record: Record) -> Vec<Run> {
        let Record { place, content } = record;
        let value = match content {
            Ok(content) => content,
            Err(error) => return self.done(place, Content::Wrong(error.into())),
        };
        if let Some(Value::String(error)) = value.get(UNREADABLE) {
            let reason = format!("this part of the input cannot be read: {error}");
            return self.done(place, Content::Wrong(reason.into()));
        }
        if let Some(Value::String(tables)) = value.get(NOT_READ) {
            let reason = format!("tables of a newer version are not read: {tables}");
            return self.done(place, Content::Skipped(reason.into()));
        }
        let is_row = !matches!(self.file, FileKind::Of(_));
        if let Some(rows) = self.rows_in(&value).filter(|_| is_row) {
            let size = place.size / rows.len() as u64;
            let place = |index| Place {
                index: Some(index),
                size,
                ..place
            };
            let rows = (0..).zip(rows.into_iter().map(Ok));
            let rows = rows.map(|(at, content)| Record {
                place: place(at),
                content,
            });
            return rows.flat_map(|row| self.read(row)).collect();
        }
        let usual = is_row.then(|| usual_row(&value)).flatten();
        let row = Row {
            value: usual.unwrap_or(value),
            place,
            copies: 0,
        };
        let mut runs = Vec::new();
        if let FileKind::Undecided(first) = &mut self.file {
            let format = self.settings.format_of(&row.value);
            if format.is_none() && !may_be_trace(&row.value) {
                first.push(row);
                return if first.len() < MOST_FIRST_RECORDS {
                    runs
                } else {
                    self.refuse()
                };
            }
            let first = mem::take(first);
            self.file = FileKind::of(format);
            for row in first {
                self.read_row(row, &mut runs);
            }
        }
        self.read_row(row, &mut runs);
        runs
    }

    /// Returns the rows around which a record of no format is: pages of the Hub, groups of trajectories, the file of the AI SDK's tools.
    fn rows_in(&self, value: &Value) -> Option<Vec<Value>> {
        let mut lists = words("rows-field").map(|name| list_at(value, name));
        let list = lists.find(|list| !list.is_empty())?;
        let is_of_none = self.settings.format_of(value).is_none() && !may_be_trace(value);
        let rows = list.iter().map(|row| row.get("row").unwrap_or(row).clone());
        let rows: Vec<_> = rows.filter(|_| is_of_none).collect();
        let usual = usual_row(rows.first()?);
        let format = self.settings.format_of(usual.as_ref().unwrap_or(&rows[0]))?;
        (format.format().kind == Kind::Rows).then_some(rows)
    }

    /// Returns what became of a record that is not read, behind the row that was waiting.
    fn done(&mut self, place: Place, content: Content) -> Vec<Run> {
        let mut runs = Vec::new();
        self.release(&mut runs);
        runs.push(Run::done(place, None, content));
        runs
    }

    /// Appends the runs that a record of a file ends whose kind is known.
    fn read_row(&mut self, row: Row, runs: &mut Vec<Run>) {
        let format = match &self.file {
            // What says that it is a trace is one in any file.
            FileKind::Of(_) | FileKind::Refused if self.settings.format.is_none() && is_trace(&row.value) => {
                return runs.push(row.plain(None));
            }
            FileKind::Of(format) => *format,
            // Messages that follow each other are one conversation.
            FileKind::Rows if is(&row.value, "langgraph-stream") => {
                return self.reader.iter_mut().for_each(Runs::join);
            }
            FileKind::Rows if is_message(&row.value) || !updates_of(&row.value).is_empty() => {
                self.release(runs);
                let format = self.settings.format_of(&row.value);
                format.unwrap_or(FormatName::OpenaiChat)
            }
            FileKind::Rows => {
                self.end_messages(runs);
                let rows = self.rows.take(row).into_iter();
                return runs.extend(rows.map(|row| Run::Row(row, Arc::clone(&self.settings))));
            }
            FileKind::Refused | FileKind::Undecided(_) => return,
        };
        if self.reader.as_ref().is_none_or(|reader| reader.format != format) {
            self.end_messages(runs);
            self.reader = Runs::of(format, &self.settings);
        }
        match &mut self.reader {
            Some(reader) => reader.read(&row.value, row.place, runs),
            None => runs.push(row.plain(Some(format))),
        }
    }

    /// Refuses the file, if it has records, by the first of them.
    fn refuse(&mut self) -> Vec<Run> {
        let FileKind::Undecided(first) = mem::replace(&mut self.file, FileKind::Refused) else {
            return Vec::new();
        };
        let first = first.into_iter().take(1);
        first.map(|row| row.plain(None)).collect()
    }

    /// Reads a whole input, and returns the results of all its records.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn read_all(mut self, bytes: &[u8]) -> Result<Vec<Item>, Foreign> {
        let mut records = Records::default();
        records.push(bytes)?;
        records.finish()?;
        let mut runs: Vec<_> = records.flat_map(|record| self.read(record)).collect();
        runs.extend(self.end());
        Ok(runs.into_iter().flat_map(Run::build).collect())
    }

    /// Returns the runs that the end of the input ends.
    pub fn end(&mut self) -> Vec<Run> {
        let mut runs = match self.file {
            FileKind::Undecided(_) => self.refuse(),
            _ => Vec::new(),
        };
        self.release(&mut runs);
        self.end_messages(&mut runs);
        runs
    }

    /// Appends the rows that wait for others.
    fn release(&mut self, runs: &mut Vec<Run>) {
        let rows = self.rows.end();
        runs.extend(rows.map(|row| Run::Row(row, Arc::clone(&self.settings))));
    }

    /// Ends the conversations whose messages are records.
    fn end_messages(&mut self, runs: &mut Vec<Run>) {
        if let Some(mut reader) = self.reader.take() {
            reader.end(runs);
        }
    }
}

impl Run {
    /// Builds the traces.
    #[must_use]
    pub fn build(self) -> Vec<Item> {
        match self {
            Self::Done(item) => vec![item],
            Self::Session(session, format, given) => vec![item_of(session.finish(), format, &given)],
            Self::Row(row, settings) if let Some(items) = session_in(&row, &settings) => items,
            Self::Row(row, settings) => {
                let copies = row.copies;
                let mut runs = Vec::new();
                let format = settings.format_of(&row.value);
                match format.and_then(|format| Runs::of(format, &settings)) {
                    Some(mut reader) => {
                        reader.read(&row.value, row.place, &mut runs);
                        reader.end(&mut runs);
                    }
                    None => runs.push(row.plain(format)),
                }
                runs.iter_mut().for_each(|run| run.stand_for(copies));
                runs.into_iter().flat_map(Self::build).collect()
            }
        }
    }
}

/// Builds the traces of the session whose lines a row of `datasets` has; `None` without a session of an agent that is known. They are of
/// the row's format, because the session has no file.
fn session_in(row: &Row, settings: &Settings) -> Option<Vec<Item>> {
    let text = text_at(&row.value, "trace").filter(|_| is(&row.value, "session-row"))?;
    let inner = Settings {
        given: Arc::clone(&settings.given),
        ..Settings::default()
    };
    let mut items = TraceReader::new(inner).read_all(text.as_bytes()).ok()?;
    items.retain(|item| item.format.is_some_and(FormatName::is_of_sessions));
    let format = settings.format_of(&row.value);
    for item in &mut items {
        (item.place, item.format) = (row.place, format);
    }
    let is_read = |item: &Item| matches!(item.content, Content::Read(_));
    items.iter().any(is_read).then_some(items)
}
