//! The adapters of agents, each in a file of its own, and the reader that they share.

mod aider;
mod amp;
mod antigravity;
mod atif;
pub mod chat;
mod claude_code;
mod cline;
mod codex;
mod continue_dev;
mod copilot_chat;
mod copilot_cli;
mod crush;
mod cursor;
mod droid;
mod gemini_cli;
mod goose;
mod grok;
mod hermes;
pub mod inspect;
mod kimi;
mod kiro;
mod letta;
mod opencode;
mod openhands;
mod otel;
mod pi;
mod platforms;
mod qwen_code;
mod swe_agent;
mod zed;

use std::{
    borrow::Cow,
    collections::HashMap,
    mem,
    path::{Path, PathBuf},
};

use knowledgepulse_json::{Text, Value};

use crate::{
    Entry, FormatName, Found, Place, Wrong,
    event::{Agent, Event, Events, Fact, Parent, Undo, What},
    open_traces::{OpenTraces, check},
    session::{Session, is_said},
    trace::TraceBuilder,
    values::{joined, object_of, str_of},
};

use Kind::{Rows, Sessions, Spans};

/// The adapter of a module that has nothing but these two functions.
macro_rules! plain {
    ($module:ident) => {
        &Plain($module::recognises, $module::decode)
    };
}

/// The adapters, in the order of [`FormatName::ALL`]: in this they are asked whether a file is theirs.
pub static ADAPTERS: &[(FormatName, Kind, &dyn Adapter)] = &[
    (FormatName::Atif, Rows, &atif::Atif),
    (FormatName::SweAgent, Rows, plain!(swe_agent)),
    (FormatName::GeminiCli, Sessions, plain!(gemini_cli)),
    (FormatName::QwenCode, Sessions, plain!(qwen_code)),
    (FormatName::Pi, Sessions, plain!(pi)),
    (FormatName::Cursor, Sessions, plain!(cursor)),
    (FormatName::CopilotCli, Sessions, plain!(copilot_cli)),
    (FormatName::CopilotChat, Sessions, &copilot_chat::CopilotChat),
    (FormatName::Opencode, Sessions, plain!(opencode)),
    (FormatName::Cline, Sessions, plain!(cline)),
    (FormatName::Goose, Sessions, plain!(goose)),
    (FormatName::Droid, Sessions, plain!(droid)),
    (FormatName::Hermes, Sessions, plain!(hermes)),
    (FormatName::Kimi, Sessions, plain!(kimi)),
    (FormatName::Grok, Sessions, plain!(grok)),
    (FormatName::Crush, Sessions, plain!(crush)),
    (FormatName::Kiro, Sessions, plain!(kiro)),
    (FormatName::Antigravity, Sessions, plain!(antigravity)),
    (FormatName::Continue, Sessions, plain!(continue_dev)),
    (FormatName::Zed, Sessions, plain!(zed)),
    (FormatName::Amp, Sessions, plain!(amp)),
    (FormatName::Letta, Sessions, plain!(letta)),
    (FormatName::Aider, Sessions, plain!(aider)),
    (FormatName::Openhands, Sessions, plain!(openhands)),
    (FormatName::Inspect, Rows, &inspect::Inspect),
    (FormatName::Langsmith, Spans, &platforms::LANGSMITH),
    (FormatName::Langfuse, Spans, &platforms::LANGFUSE),
    (FormatName::Phoenix, Spans, &platforms::PHOENIX),
    (FormatName::Mlflow, Spans, &platforms::MLFLOW),
    (FormatName::Weave, Spans, &platforms::WEAVE),
    (FormatName::Braintrust, Spans, &platforms::BRAINTRUST),
    (FormatName::Logfire, Spans, &platforms::LOGFIRE),
    (FormatName::Langchain, Rows, &chat::LANGCHAIN),
    (FormatName::Sharegpt, Rows, &chat::SHAREGPT),
    (FormatName::OpenaiChat, Rows, &chat::OPENAI_CHAT),
    (FormatName::ClaudeCode, Sessions, plain!(claude_code)),
    (FormatName::Codex, Sessions, plain!(codex)),
    (FormatName::Otel, Spans, plain!(otel)),
];

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// It begins a run, and ends the one before it.
    Begins,
    /// It goes on with its run.
    GoesOn,
    /// It is a whole run.
    Whole,
    /// The adapter does not know records of this kind, which are counted.
    Unknown,
}

/// What the records of a format are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Sessions of a program that writes code, or parts of them. A file is of one agent.
    Sessions,
    /// Rows: conversations, or the messages of one. Each is recognised by itself.
    Rows,
    /// Spans of traces, which may be mixed.
    Spans,
}

/// Decodes the records of an agent. It keeps no state: `session` puts the events of a run together.
pub trait Adapter: Send + Sync {
    /// Returns whether a file is of this agent, by one of its first records and its path.
    fn recognises(&self, record: &Value, path: Option<&Path>) -> bool;

    /// Returns the runs within a record, which are decoded by themselves.
    fn inner<'v>(&self, _record: &'v Value) -> Vec<Inner<'v>> {
        Vec::new()
    }

    /// Says what files beside the input of this path tell of its runs.
    fn beside(&self, _path: &Path, _say: &mut Events) {}

    /// Carries a record out as a change of the file's one value, where a file is a log of changes. Returns whether it is one.
    fn patch(&self, _whole: &mut Value, _record: &Value) -> bool {
        false
    }

    /// Says what a record means.
    ///
    /// # Errors
    /// If a record of a kind that is known is wrong.
    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong>;
}

/// An adapter that recognises and decodes records by these functions.
struct Plain(
    fn(&Value, Option<&Path>) -> bool,
    fn(&Value, &mut Events) -> Result<Decoded, Wrong>,
);

impl Adapter for Plain {
    fn recognises(&self, record: &Value, path: Option<&Path>) -> bool {
        self.0(record, path)
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        self.1(record, say)
    }
}

/// A run within a record.
pub struct Inner<'v> {
    /// Its record.
    pub value: Cow<'v, Value>,
    /// Its name in the outer record.
    pub name: Text,
    /// Its position in a list of such runs; `None` for a sub-agent of the outer run.
    pub index: Option<u64>,
}

/// Returns what the records of a format are, and its adapter; `None` for formats that are read otherwise.
#[must_use]
pub fn adapter_of(format: FormatName) -> Option<(Kind, &'static dyn Adapter)> {
    let (_, kind, adapter) = ADAPTERS.iter().find(|(name, ..)| *name == format)?;
    Some((*kind, *adapter))
}

/// The number of records that are remembered of all open runs, to recognise repeated records and chains of parents.
const MAX_RECORDS: usize = 1_000_000;

/// So many records before the first run are counted.
const MOST_UNKNOWN: usize = 1000;

/// The name of the run in files whose records do not name theirs.
const CURRENT: &str = "";

/// Reads the runs of an input by an adapter.
pub struct Reader {
    /// The format of the input.
    pub format: FormatName,
    kind: Kind,
    adapter: &'static dyn Adapter,
    file: Option<PathBuf>,
    /// Whether the caller has named the format, so that records of others are wrong.
    is_named: bool,
    /// Whether a record was a whole run: then one that is none is wrong.
    has_whole: bool,
    /// What is said of records before the first run.
    unknown: Vec<Event>,
    has_begun: bool,
    /// What files beside the input say of its run.
    beside: Vec<Event>,
    open: OpenTraces<Session>,
    /// By the name of a record, the run that it is of.
    records: HashMap<Text, Text>,
    /// The run that the last record was of.
    last: Text,
    /// The names of the current run, and of those that it has a copy of.
    names: Vec<Text>,
    copied: Vec<Text>,
    /// Whether something was said since the last header: copies come before all else.
    has_said: bool,
    /// The value that the records change, if the file is a log of changes, and where it is.
    whole: Value,
    place: Option<Place>,
    /// Where the record before stood in its array.
    index: Option<u64>,
}

impl Reader {
    /// Reads one input of a format; `None` for [`FormatName::Trace`], which needs no reader.
    pub fn of(format: FormatName, file: Option<PathBuf>, is_named: bool) -> Option<Self> {
        let (kind, adapter) = adapter_of(format)?;
        Some(Self {
            format,
            kind,
            adapter,
            file,
            is_named,
            has_whole: false,
            unknown: Vec::new(),
            has_begun: false,
            beside: Vec::new(),
            open: OpenTraces::default(),
            records: HashMap::new(),
            last: CURRENT.into(),
            names: Vec::new(),
            copied: Vec::new(),
            has_said: false,
            whole: Value::Null,
            place: None,
            index: None,
        })
    }

    /// Returns whether the header of a run is that of a run of its own.
    fn begins(&mut self, header: &mut [Event]) -> bool {
        let whats = || header.iter().flat_map(|event| &event.what);
        let id = whats().find_map(|what| match what {
            What::Fact(Fact::Id(id)) => Some(id.clone()),
            _ => None,
        });
        let has_said = mem::replace(&mut self.has_said, false);
        if id
            .as_ref()
            .is_some_and(|id| !has_said && self.copied.contains(id))
        {
            for event in header {
                event.what = vec![What::LeftOut("session that was copied".into())];
            }
            return false;
        }
        let base = whats().find_map(|what| match what {
            What::Continues { of, until } => Some((of.clone(), *until)),
            _ => None,
        });
        self.copied = whats()
            .find_map(|what| match what {
                What::Copies { of, .. } => Some(of.clone()),
                _ => None,
            })
            .unwrap_or_default();
        // A segment is named by its rollout, which only the first has for its own name too.
        let is_known = |name: &Text| self.names.contains(name);
        let goes_on =
            base.filter(|(of, _)| is_known(of) || id.as_ref().is_some_and(is_known) || self.names.len() > 1);
        let begins = goes_on.is_none();
        if let (Some((_, until)), Some(first)) = (goes_on, header.first_mut()) {
            first.what.insert(0, What::Undo(Undo::Ordinal(until)));
        }
        if begins {
            self.names.clear();
        }
        self.names.extend(id);
        begins
    }

    /// Returns the key of the run of an event.
    fn run_of(&mut self, event: &Event) -> Text {
        let origin = &event.origin;
        if origin.run.is_none() && origin.agent == Agent::Main {
            return CURRENT.into();
        }
        let known = origin.id.as_ref().and_then(|id| self.records.get(id)).cloned();
        let run = known.unwrap_or_else(|| {
            let run = origin.run.clone().unwrap_or_else(|| CURRENT.into());
            match &origin.agent {
                Agent::Main => run,
                Agent::Named(name) => joined([run, name.clone()], " "),
                Agent::Unnamed => self.run_of_parent(event, run),
            }
        });
        if let Some(id) = &origin.id {
            if self.records.len() >= MAX_RECORDS {
                self.records.clear();
            }
            self.records.insert(id.clone(), run.clone());
        }
        run
    }

    /// Returns the run of a sub-agent without a name: that of its parent, or a new one where the parent is of the session itself.
    fn run_of_parent(&self, event: &Event, session: Text) -> Text {
        let parent = match &event.origin.parent {
            Parent::Of(id) => self.records.get(id),
            Parent::Before | Parent::None => None,
        };
        let name = || event.origin.id.clone().unwrap_or_else(|| "sidechain".into());
        parent
            .filter(|parent| **parent != session)
            .cloned()
            .unwrap_or_else(|| joined([session, name()], " "))
    }

    fn add(&mut self, entry: &Entry, event: Event, size: u64, decoded: Decoded) -> Result<(), Wrong> {
        let key = match decoded {
            Decoded::Unknown => self.last.clone(),
            _ => self.run_of(&event),
        };
        self.has_said |= is_said(&event);
        self.last = key.clone();
        let begin = || begin(self.format, self.kind, entry, &event, &key);
        let session = self.open.add(&key, size, begin)?;
        session.add(mem::take(&mut self.unknown), 0);
        session.add([event], size);
        Ok(())
    }

    fn end_all(&mut self, found: &mut Vec<Found>) {
        let sessions = self.open.take_all();
        found.extend(sessions.into_iter().map(found_of));
        self.open = OpenTraces::default();
    }

    /// Returns whether a record is next to the one before: the elements of one array follow each other, and so do lines.
    fn follows(&mut self, entry: &Entry) -> bool {
        let index = entry.place.index;
        let before = mem::replace(&mut self.index, index);
        index == before.map(|before| before + 1)
    }
}

fn found_of(session: Session) -> Found {
    Found::Run(Box::new(session))
}

/// Begins the run of an event.
fn begin(format: FormatName, kind: Kind, entry: &Entry, event: &Event, key: &Text) -> Session {
    let builder = match kind {
        Kind::Sessions => TraceBuilder::of_coding_agent(format, entry),
        Kind::Rows | Kind::Spans => TraceBuilder::new(format, entry),
    };
    let mut session = Session::new(builder);
    let origin = &event.origin;
    if let Some(run) = &origin.run {
        session.fact(Fact::Id(key.clone()));
        let name = if kind == Kind::Spans {
            "trace_id"
        } else {
            "session_id"
        };
        session.fact(Fact::Last(name, run.clone().into()));
    }
    if origin.agent != Agent::Main {
        session.fact(Fact::Last("is_subagent", true.into()));
    }
    session
}

/// Whose run a record is.
#[derive(PartialEq)]
enum Of {
    /// One of the input itself.
    Own,
    /// A sub-agent of such a run.
    SubAgent,
}

impl Reader {
    /// Notes what files beside the input say, before the first record.
    fn look_around(&mut self) {
        if mem::replace(&mut self.has_begun, true) {
            return;
        }
        if let Some(file) = &self.file {
            let mut say = Events::default();
            self.adapter.beside(file, &mut say);
            self.beside = say.into_list();
        }
    }

    /// Reads a record, without the runs within it.
    fn read_record(&mut self, entry: &Entry, of: Of, found: &mut Vec<Found>) -> Result<Decoded, Wrong> {
        let mut say = Events::default();
        // Of several spans, those beside a wrong one are read.
        let (decoded, mut outcome) = match self.adapter.decode(entry.value, &mut say) {
            Ok(decoded) => (decoded, Ok(())),
            Err(wrong) if self.kind == Kind::Spans => (Decoded::GoesOn, Err(wrong)),
            Err(wrong) => return Err(wrong),
        };
        let is_session = self.kind == Kind::Sessions;
        let decoded = match decoded {
            // A value of any kind may be decoded as a run without words.
            Decoded::Whole if is_session && !self.is_named && !self.adapter.recognises(entry.value, None) => {
                say = Events::default();
                Decoded::Unknown
            }
            decoded => decoded,
        };
        self.has_whole |= decoded == Decoded::Whole;
        if decoded == Decoded::Unknown {
            let kind = str_of(object_of(Some(entry.value)).get("type")).unwrap_or("of an unknown kind");
            let is_before = self.open.get(&self.last).is_none();
            if is_before && (self.is_named || self.has_whole) {
                return Err(Wrong::new("it is no record of a session"));
            }
            if say.is_empty() {
                say.leave_out(format!("record {kind}"));
            }
            if is_before {
                self.unknown.extend(
                    say.into_list()
                        .into_iter()
                        .take(MOST_UNKNOWN - self.unknown.len()),
                );
                return Ok(decoded);
            }
        }
        if of == Of::SubAgent {
            say.add(What::Fact(Fact::Last("is_subagent", true.into())));
        }
        let mut events = say.into_list();
        let begins = match decoded {
            Decoded::Whole => true,
            Decoded::Begins => self.begins(&mut events),
            // Another list is another file in the same input.
            Decoded::GoesOn => is_session && entry.place.index == Some(0),
            Decoded::Unknown => false,
        };
        if begins {
            self.end_all(found);
        }
        if decoded == Decoded::Whole && of == Of::Own && !events.is_empty() {
            events.extend(self.beside.iter().cloned());
        }
        // Of each event its share.
        let share = entry.place.size / events.len().max(1) as u64;
        let rest = entry.place.size - share * (events.len().max(1) as u64 - 1);
        for (at, event) in events.into_iter().enumerate() {
            let added = self.add(entry, event, if at == 0 { rest } else { share }, decoded);
            outcome = outcome.and(added);
        }
        if decoded == Decoded::Whole {
            self.end_all(found);
        }
        found.extend(self.open.overflow().into_iter().map(found_of));
        outcome.map(|()| decoded)
    }

    /// Reads the runs within a record.
    fn read_inner(&mut self, entry: &Entry, found: &mut Vec<Found>) {
        let mut seen = entry.value;
        // Not recursive: a file may nest them more deeply than the stack is.
        let mut waiting: Vec<Inner> = Vec::new();
        loop {
            let mut inner = self.adapter.inner(seen);
            let count = inner.len() as u64;
            inner.reverse();
            waiting.append(&mut inner);
            let next = loop {
                let Some(Inner { value, name, index }) = waiting.pop() else {
                    return;
                };
                let of = index.map_or(Of::SubAgent, |_| Of::Own);
                let size = index.map_or(0, |_| entry.place.size / count.max(1));
                let place = Place {
                    index: index.or(entry.place.index),
                    size,
                    ..entry.place
                };
                let inner = Entry { value: &value, place };
                if let Err(wrong) = self.read_record(&inner, of, found) {
                    found.push(Found::Wrong(wrong.within(name)));
                } else if let Cow::Borrowed(value) = value {
                    break value;
                }
            };
            seen = next;
        }
    }
}

impl Reader {
    /// Appends the traces that this record ends, and the problems of its parts.
    ///
    /// # Errors
    /// If all of it is wrong.
    pub fn read(&mut self, entry: &Entry, found: &mut Vec<Found>) -> Result<(), Wrong> {
        if !self.follows(entry) && self.kind == Kind::Rows {
            self.end_all(found);
        }
        if self.adapter.patch(&mut self.whole, entry.value) {
            let place = self.place.get_or_insert(Place {
                size: 0,
                ..entry.place
            });
            place.size += entry.place.size;
            return check(place.size);
        }
        self.look_around();
        if self.read_record(entry, Of::Own, found)? == Decoded::Whole {
            self.read_inner(entry, found);
        }
        Ok(())
    }

    /// Appends the traces that the end of the input ends.
    pub fn end(&mut self, found: &mut Vec<Found>) {
        if let Some(place) = self.place.take() {
            let value = mem::replace(&mut self.whole, Value::Null);
            let wrong = self.read(&Entry { value: &value, place }, found).err();
            found.extend(wrong.map(Found::Wrong));
        }
        self.end_all(found);
        if !mem::take(&mut self.unknown).is_empty() {
            found.push(Found::Wrong(Wrong::new("no record of it is of a session")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_are_in_the_order_of_the_formats_and_all_but_traces_have_one() {
        let formats = FormatName::ALL.iter().copied();
        let expected: Vec<_> = formats.filter(|format| *format != FormatName::Trace).collect();
        let adapters: Vec<_> = ADAPTERS.iter().map(|(format, ..)| *format).collect();
        assert_eq!(adapters, expected);
    }
}
