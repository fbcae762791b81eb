//! Reads the records of one input by the adapter of its agent, and tells its runs apart.

use std::{borrow::Cow, collections::HashMap, mem, path::PathBuf};

use knowledgepulse_json::{Text, Value};

use crate::{
    Entry, FormatName, Place, Wrong,
    agent::{Adapter, Decoded, Format, Inner, Kind},
    event::{Agent, Event, Events, Fact, IS_SUB_AGENT, Origin, PARENT, Parent, Undo, What},
    named::{Named, named},
    open_traces::{OpenTraces, check},
    session::{Session, is_said},
    trace::TraceBuilder,
    values::{joined, object_of, str_of},
};

/// A run whose records have been read, or the problem of a part of a record.
pub(crate) enum Found {
    Run(Box<Session>),
    Wrong(Wrong),
}

impl Found {
    /// Builds the trace, on any core.
    ///
    /// # Errors
    /// The problem of a part of a record.
    pub(crate) fn build(self) -> Result<TraceBuilder, Wrong> {
        match self {
            Self::Run(session) => Ok(session.finish()),
            Self::Wrong(wrong) => Err(wrong),
        }
    }
}

/// The number of records that are remembered of all open runs, to recognise repeated records and chains of parents.
const MAX_RECORDS: usize = 1_000_000;

/// So many records before the first run are counted.
const MOST_UNKNOWN: usize = 1000;

/// The name of the run in files whose records do not name theirs.
const CURRENT: &str = "";

/// Reads the runs of an input by an adapter.
pub struct Runs {
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
    /// What the folders of the input say of its run.
    named: Named,
    /// The name of the run that was begun last.
    session: Option<Text>,
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

impl Runs {
    /// Reads one input of a format; `None` for [`FormatName::Trace`], which needs no reader.
    pub fn of(format: FormatName, file: Option<PathBuf>, is_named: bool) -> Option<Self> {
        let Format { kind, adapter, .. } = *format.read_by()?;
        Some(Self {
            format,
            kind,
            adapter,
            file,
            is_named,
            has_whole: false,
            unknown: Vec::new(),
            has_begun: false,
            named: Named::default(),
            session: None,
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
        let id = name_in(header);
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
        let begin = || {
            let mut session = begin(self.format.name(), self.kind, entry, &event, &key);
            let names = names_of(&event.origin, self.session.as_ref(), &self.named);
            names.into_iter().for_each(|fact| session.fact(fact));
            session
        };
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

/// Returns the name of the run that events begin.
fn name_in(events: &[Event]) -> Option<Text> {
    let mut whats = events.iter().flat_map(|event| &event.what);
    whats.find_map(|what| match what {
        What::Fact(Fact::Id(id)) => Some(id.clone()),
        _ => None,
    })
}

fn found_of(session: Session) -> Found {
    Found::Run(Box::new(session))
}

/// Begins the run of an event.
fn begin(format: &'static str, kind: Kind, entry: &Entry, event: &Event, key: &Text) -> Session {
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
    session
}

/// Returns whose run an event begins, by itself and by the folders of its file.
fn names_of(origin: &Origin, session: Option<&Text>, named: &Named) -> Vec<Fact> {
    let own = named.session.as_ref().filter(|_| origin.run.is_none());
    let parent = match origin.agent {
        Agent::Main => named.parent.as_ref(),
        Agent::Named(_) | Agent::Unnamed => origin.run.as_ref().or(session).or(own),
    };
    let is_sub_agent = origin.agent != Agent::Main || parent.is_some();
    let id = own.filter(|_| origin.agent == Agent::Main);
    let facts = [
        ("session_id", id.map(|id| id.clone().into())),
        (IS_SUB_AGENT, is_sub_agent.then(|| true.into())),
        (PARENT, parent.map(|id| id.clone().into())),
    ];
    let facts = facts.into_iter();
    facts
        .filter_map(|(name, value)| Some(Fact::Last(name, value?)))
        .collect()
}

/// Whose run a record is.
#[derive(PartialEq)]
enum Of {
    /// One of the input itself.
    Own,
    /// A sub-agent of such a run.
    SubAgent,
}

impl Runs {
    /// Notes what files beside the input say, before the first record.
    fn look_around(&mut self) {
        if mem::replace(&mut self.has_begun, true) {
            return;
        }
        if let Some(file) = &self.file {
            let mut say = Events::default();
            self.adapter.beside(file, &mut say);
            self.beside = say.into_list();
            self.named = named(self.format, file);
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
            say.sub_agent(true, self.session.clone().map(Value::from).as_ref());
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
            if of == Of::Own {
                self.session = name_in(&events);
            }
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

impl Runs {
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
