//! Reads the records of one input by the adapter of its agent, and tells its runs apart.

use std::{collections::HashMap, mem, path::PathBuf, sync::Arc};

use knowledgepulse_json::{Text, Value};

use super::{
    named::Named,
    open::{OpenTraces, check},
};
use crate::{
    FormatName, Given, Place, Wrong,
    agent::{Decoded, Format, Kind},
    event::{Agent, Event, Events, Fact, IS_SUB_AGENT, Origin, PARENT, Parent, Undo, What},
    parts::Call,
    records::is_trace,
    session::{COPIED, Session, is_said},
    spans::said_alone,
    trace::TraceBuilder,
    values::{first_named, joined, list_at, object_of, role_of, str_of, string_of},
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
    pub(crate) fn format_of(&self, value: &Value) -> Option<FormatName> {
        self.format
            .or_else(|| FormatName::of(value, self.file.as_deref()))
    }
}

/// The result of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Where it begins, and the size of the input that it was read from.
    pub place: Place,
    /// The format; `None` if no format recognises the value.
    pub format: Option<FormatName>,
    /// The trace, or the reason for its absence.
    pub content: Content,
}

/// The trace of a record, or the reason for its absence.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A trace; where no format recognises the value, that.
    Read(Value),
    /// The problem.
    Wrong(Text),
    /// Why there is no trace: the records are not of a conversation.
    Skipped(Text),
}

/// The field of `metadata.imported` that says how many earlier copies of it a trace stands for.
pub const EARLIER_COPIES: &str = "earlier_copies";

/// A record that is not decoded yet.
pub struct Row {
    /// Its value.
    pub value: Value,
    /// Where it is.
    pub place: Place,
    /// How many earlier snapshots of it there are.
    pub copies: u64,
}

impl Row {
    /// Returns the result of a record that no reader takes: a trace, or one of no format.
    pub(crate) fn plain(self, format: Option<FormatName>) -> Run {
        let is_native = format.is_some() || is_trace(&self.value);
        let format = is_native.then_some(FormatName::Trace);
        Run::done(self.place, format, Content::Read(self.value))
    }
}

/// What records were read as. A trace is built of it without any other record, so on any core.
pub enum Run {
    /// There is nothing to build.
    Done(Item),
    /// A run, of which all records were read.
    Session(Box<Session>, FormatName, Arc<Given>),
    /// A row, which is recognised and decoded by itself.
    Row(Row, Arc<Settings>),
}

impl Run {
    pub(crate) fn done(place: Place, format: Option<FormatName>, content: Content) -> Self {
        Self::Done(Item {
            place,
            format,
            content,
        })
    }

    fn wrong(place: Place, format: FormatName, wrong: Wrong) -> Self {
        let reason = format!("not {format}: {wrong}");
        Self::done(place, Some(format), Content::Wrong(reason.into()))
    }

    /// Says how many earlier copies a run stands for.
    pub(crate) fn stand_for(&mut self, copies: u64) {
        if let Self::Session(session, ..) = self
            && copies > 0
        {
            session.fact(EARLIER_COPIES, Some(copies));
        }
    }
}

/// Builds the trace of a run.
pub(crate) fn item_of(builder: TraceBuilder, format: FormatName, given: &Given) -> Item {
    let place = builder.place;
    let content = match (builder.is_empty(), builder.is_conversation) {
        (true, true) => Content::Wrong(builder.empty_reason()),
        (true, false) => Content::Skipped(builder.empty_reason()),
        (false, _) => Content::Read(builder.finish(given)),
    };
    Item {
        place,
        format: Some(format),
        content,
    }
}

/// So many records before the first run are counted.
const MOST_UNKNOWN: usize = 1000;

/// The name of the run in files whose records do not name theirs.
const CURRENT: &str = "";

/// Reads the runs of an input by an adapter.
#[derive(Default)]
pub struct Runs {
    /// The format of the input.
    pub format: FormatName,
    /// If they name the format, records of others are wrong.
    settings: Arc<Settings>,
    /// Whether a record was a whole run: then one that is none is wrong.
    has_whole: bool,
    /// What is said of records before the first run.
    unknown: Vec<Event>,
    /// What the folders of the input say of its run.
    named: Named,
    /// The name of the run that was begun last.
    session: Option<Text>,
    /// The folder that it worked in.
    folder: Option<Value>,
    /// What files beside the input say of its run.
    beside: Vec<Event>,
    open: OpenTraces<Session>,
    /// By the name of a record of a sub-agent without a name, the run that it is of.
    sidechains: HashMap<Text, Text>,
    /// By the id of a call, the task that it gives to a sub-agent, which may have its name.
    tasks: HashMap<Text, Text>,
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
    /// Where the record before stood in its array, and the role of its message.
    index: Option<u64>,
    role: Text,
    /// Whether the next record goes on with the run, whichever list it is in.
    is_joined: bool,
}

impl Runs {
    /// Reads one input of a format; `None` for [`FormatName::Trace`], which needs no reader.
    pub fn of(format: FormatName, settings: &Arc<Settings>) -> Option<Self> {
        let agent = format.format();
        let (mut say, mut named) = (Events::default(), Named::default());
        if let Some(file) = &settings.file {
            agent.tell_beside(file, &mut say);
            named = Named::by(agent.name, file);
        }
        (agent.kind != Kind::Traces).then(|| Self {
            format,
            settings: Arc::clone(settings),
            beside: say.list,
            named,
            ..Self::default()
        })
    }

    fn agent(&self) -> &'static Format {
        self.format.format()
    }

    /// Returns whether the header of a run is that of a run of its own.
    fn begins(&mut self, header: &mut [Event]) -> bool {
        let id = name_in(header);
        let has_said = mem::take(&mut self.has_said);
        // A fork may have its own header again behind what it has copied.
        let is_copied = |id: &Text| {
            self.copied.contains(id) && !has_said || !self.copied.is_empty() && self.names.contains(id)
        };
        if id.as_ref().is_some_and(is_copied) {
            for event in header {
                event.what = vec![What::LeftOut(COPIED.into())];
            }
            return false;
        }
        let base = first_in(header, |what| match what {
            What::Continues { of, until } => Some((of.clone(), *until)),
            _ => None,
        });
        let copied = first_in(header, |what| match what {
            What::Copies { of, .. } => Some(of.clone()),
            _ => None,
        });
        self.copied = copied.unwrap_or_default();
        // A segment is named by its rollout, which only the first has for its own name too.
        let is_known = |name: &Text| self.names.contains(name);
        // A program may keep the first prompt of Claude's Agent SDK itself, which is not printed.
        let is_asked = has_said && self.names.is_empty();
        let is_named = |of: &Text| is_known(of) || id.as_ref().is_some_and(is_known);
        let goes_on = base.filter(|(of, _)| is_named(of) || self.names.len() > 1 || is_asked);
        match (&goes_on, header.first_mut()) {
            (Some((_, until)), Some(first)) => first.what.insert(0, What::Undo(Undo::Ordinal(*until))),
            _ => self.names.clear(),
        }
        self.names.extend(id);
        goes_on.is_none()
    }

    /// Returns whether events are of the open run, which has the first that is named.
    fn repeats(&self, events: &[Event]) -> bool {
        let id = events.iter().find_map(|event| event.origin.id.as_ref());
        let open = self.open.get(&CURRENT.into());
        id.is_some()
            && open.is_some_and(|open| open.named().0.iter().any(|event| event.origin.id.as_ref() == id))
    }

    /// Returns the key of the run of an event.
    fn run_of(&mut self, event: &Event) -> Text {
        let origin = &event.origin;
        if origin.run.is_none() && origin.agent == Agent::Main {
            return CURRENT.into();
        }
        let run = origin.run.clone().unwrap_or_else(|| CURRENT.into());
        match &origin.agent {
            Agent::Main => run,
            Agent::Named(name) => joined([run, name.clone()], " "),
            // One without a name is that of its parent, or a new one where the parent is of the session itself.
            Agent::Unnamed => {
                let id = origin.id.clone().unwrap_or_else(|| "sidechain".into());
                let parent = match &origin.parent {
                    Parent::Of(parent) => self.sidechains.get(parent).cloned(),
                    Parent::Before | Parent::None => None,
                };
                let run = parent.unwrap_or_else(|| joined([run, id.clone()], " "));
                self.sidechains.insert(id, run.clone());
                run
            }
        }
    }

    fn add(&mut self, place: Place, event: Event, size: u64, decoded: Decoded) -> Result<(), Wrong> {
        let key = match decoded {
            Decoded::Unknown => self.last.clone(),
            _ => self.run_of(&event),
        };
        self.has_said |= is_said(&event);
        self.last = key.clone();
        self.tasks.extend(tasks_in(&event));
        let task = match &event.origin.agent {
            Agent::Named(call) => self.tasks.get(call),
            Agent::Main | Agent::Unnamed => None,
        };
        let (agent, last) = (self.format.format(), self.session.as_ref());
        let begin = || {
            let mut session = begin(agent, place, &event.origin, &key, last, &self.named);
            // A sub-agent in the file of its parent has no header with a folder.
            if event.origin.agent != Agent::Main && event.origin.run.is_none() {
                session.fact("cwd", self.folder.clone());
            }
            session.add(task.cloned().map(Event::before), 0);
            session
        };
        let session = self.open.add(&key, size, begin)?;
        session.add(mem::take(&mut self.unknown), 0);
        session.add([event], size);
        Ok(())
    }

    fn end_all(&mut self, runs: &mut Vec<Run>) {
        self.tasks.clear();
        let sessions = mem::take(&mut self.open).into_all();
        match self.agent().kind {
            Kind::Spans => runs.extend(with_one_trace(sessions).map(|session| self.run(session))),
            _ => runs.extend(sessions.map(|session| self.run(session))),
        }
    }

    fn run(&self, session: Session) -> Run {
        Run::Session(Box::new(session), self.format, Arc::clone(&self.settings.given))
    }

    /// Says that the next record goes on with the run, whichever list it is in.
    pub fn join(&mut self) {
        self.is_joined = true;
    }

    /// Returns whether a record is next to the one before: the elements of one array follow each other, and so do lines, and arrays of one
    /// message each by turns.
    fn follows(&mut self, value: &Value, index: Option<u64>) -> bool {
        let before = mem::replace(&mut self.index, index);
        let said_before = mem::replace(&mut self.role, role_of(value).into());
        let is_turn = index.is_some() && index == before && said_before != self.role;
        mem::take(&mut self.is_joined) || is_turn || index == before.map(|before| before + 1)
    }
}

/// So many runs may a span go on with, the last ones.
const MOST_BEFORE: usize = 64;

/// Joins runs of one span each that go on with each other: without a span around them, each call of a model has a trace of its own.
fn with_one_trace(sessions: impl Iterator<Item = Session>) -> impl Iterator<Item = Session> {
    let mut kept: Vec<(Session, [Vec<u64>; 2])> = Vec::new();
    for session in sessions {
        let said = said_alone(session.named().0);
        let is_next =
            |[input, _]: &[Vec<u64>; 2], [_, all]: &[Vec<u64>; 2]| !all.is_empty() && input.starts_with(all);
        let mut others = kept.iter_mut().rev().take(MOST_BEFORE);
        match others.find(|(_, other)| is_next(&said, other) || is_next(other, &said)) {
            Some((other, before)) => {
                other.join(session);
                if before[1].len() < said[1].len() {
                    *before = said;
                }
            }
            None => kept.push((session, said)),
        }
    }
    kept.into_iter().map(|(session, _)| session)
}

/// Returns the tasks that calls of an event give to sub-agents, by the ids of the calls.
fn tasks_in(event: &Event) -> impl Iterator<Item = (Text, Text)> {
    event.what.iter().filter_map(|what| match what {
        What::Call(Call {
            id: Some(id), args, ..
        }) => Some((id.clone(), string_of(first_named(args, "task-argument"))?.clone())),
        _ => None,
    })
}

/// Returns the first that events say of a kind.
fn first_in<T>(events: &[Event], of: impl Fn(&What) -> Option<T>) -> Option<T> {
    events.iter().flat_map(|event| &event.what).find_map(of)
}

/// Returns the name of the run that events begin.
fn name_in(events: &[Event]) -> Option<Text> {
    first_in(events, |what| match what {
        What::Fact(Fact::Id(id)) => Some(id.clone()),
        _ => None,
    })
}

/// Begins the run of an event, in the session that was begun last, and says whose it is: by itself and by the folders of its file.
fn begin(
    agent: &Format,
    place: Place,
    origin: &Origin,
    key: &Text,
    last: Option<&Text>,
    named: &Named,
) -> Session {
    let mut session = Session::new(TraceBuilder::new(agent, place));
    if let Some(run) = &origin.run {
        let name = match agent.kind {
            Kind::Spans => "trace_id",
            _ => "session_id",
        };
        session.name(key.clone());
        session.fact(name, Some(run.clone()));
    }
    let own = named.session.as_ref().filter(|_| origin.run.is_none());
    let parent = match origin.agent {
        Agent::Main => named.parent.as_ref(),
        Agent::Named(_) | Agent::Unnamed => origin.run.as_ref().or(last).or(own),
    };
    let is_sub_agent = origin.agent != Agent::Main || parent.is_some();
    let id = own.filter(|_| origin.agent == Agent::Main);
    session.fact("session_id", id.cloned());
    session.fact(IS_SUB_AGENT, is_sub_agent.then_some(true));
    session.fact(PARENT, parent.cloned());
    session
}

impl Runs {
    /// Reads a record, without the runs within it.
    fn read_record(
        &mut self,
        value: &Value,
        place: Place,
        is_sub_agent: bool,
        runs: &mut Vec<Run>,
    ) -> Result<Decoded, Wrong> {
        let mut say = Events::default();
        // Of several spans, those beside a wrong one are read.
        let (decoded, mut outcome) = match self.agent().decode(value, &mut say) {
            Ok(decoded) => (decoded, Ok(())),
            Err(wrong) if self.agent().kind == Kind::Spans => (Decoded::GoesOn, Err(wrong)),
            Err(wrong) => return Err(wrong),
        };
        let is_session = self.agent().kind == Kind::Sessions;
        let is_named = self.settings.format.is_some();
        self.has_whole |= decoded == Decoded::Whole;
        let is_before = self.open.get(&self.last).is_none();
        let is_silent = is_before && is_session && decoded == Decoded::GoesOn && say.list.is_empty();
        if decoded == Decoded::Unknown {
            let kind = str_of(value.get("type")).unwrap_or("of an unknown kind");
            if is_before && (is_named || self.has_whole) {
                return Err(Wrong::from("it is no record of a session"));
            }
            if say.list.is_empty() {
                say.leave_out(format!("record {kind}"));
            }
        } else if is_silent {
            say.begin(Origin::default());
        }
        if is_silent || is_before && decoded == Decoded::Unknown {
            let left = MOST_UNKNOWN - self.unknown.len();
            self.unknown.extend(say.list.into_iter().take(left));
            return Ok(decoded);
        }
        if is_sub_agent {
            say.sub_agent(true, self.session.clone().map(Value::from).as_ref());
        }
        let mut events = say.list;
        // What a fork has copied may name the session that it is of.
        if let Some(session) = &self.named.session {
            let named = events.iter_mut().filter_map(|event| event.origin.run.as_mut());
            named.for_each(|run| *run = session.clone());
        }
        let begins = match decoded {
            // AutoGen prints the messages of a run, and then its result with all of them.
            Decoded::Whole => !self.repeats(&events),
            Decoded::Begins => self.begins(&mut events),
            // Another list is another file in the same input.
            Decoded::GoesOn => is_session && place.index == Some(0),
            Decoded::Joins | Decoded::Unknown => false,
        };
        if begins {
            self.end_all(runs);
            if !is_sub_agent {
                self.session = name_in(&events);
                self.folder = first_in(&events, |what| match what {
                    What::Fact(Fact::Last("cwd", folder)) => Some(folder.clone()),
                    _ => None,
                });
            }
        }
        let begins = begins || decoded == Decoded::Whole || self.open.get(&self.last).is_none();
        if begins && !is_sub_agent && !events.is_empty() {
            let run = events[0].origin.run.clone();
            events.extend(self.beside.iter().cloned().map(|mut event| {
                event.origin.run.clone_from(&run);
                event
            }));
        }
        // Of each event its share, rounded up.
        let share = place.size.div_ceil(events.len().max(1) as u64);
        for event in events {
            let added = self.add(place, event, share, decoded);
            outcome = outcome.and(added);
        }
        if decoded == Decoded::Whole {
            self.end_all(runs);
        }
        let overflow = self.open.overflow();
        runs.extend(overflow.into_iter().map(|session| self.run(session)));
        outcome.map(|()| decoded)
    }

    /// Reads the runs within a record.
    fn read_inner(&mut self, record: &Value, place: Place, runs: &mut Vec<Run>) {
        let inner = self.agent().inner().unwrap_or_default();
        let (list, are_sub_agents, given) = match inner[..] {
            [list, name, of] => (list, false, Some((name, of))),
            [list, _] => (list, true, None),
            [list] => (list, false, None),
            _ => return,
        };
        // Not recursive: a file may nest them more deeply than the stack is.
        let within = |value| list_at(value, list).iter().enumerate().rev();
        let mut waiting: Vec<(usize, &Value)> = within(record).collect();
        let count = waiting.len().max(1) as u64;
        while let Some((at, value)) = waiting.pop() {
            let (name, inner) = if are_sub_agents {
                ("a sub-agent".into(), Place { size: 0, ..place })
            } else {
                let (index, size) = (Some(at as u64), place.size / count);
                (format!("{list}[{at}]"), Place { index, size, ..place })
            };
            let whole = given.map(|(name, of)| {
                let mut fields = object_of(Some(value)).clone();
                fields.insert(name, record.get(of).cloned().unwrap_or_default());
                Value::from(fields)
            });
            match self.read_record(whole.as_ref().unwrap_or(value), inner, are_sub_agents, runs) {
                Ok(_) => waiting.extend(within(value)),
                Err(wrong) => {
                    // Its size is that of the record around it.
                    let place = Place { size: 0, ..place };
                    let wrong = format!("{name}: {wrong}");
                    runs.push(Run::wrong(place, self.format, wrong.into()));
                }
            }
        }
    }
}

impl Runs {
    /// Appends the runs that this record ends, and its problems.
    pub fn read(&mut self, value: &Value, place: Place, runs: &mut Vec<Run>) {
        if let Err(wrong) = self.read_all(value, place, runs) {
            let other = FormatName::of(value, None).filter(|&other| other != self.format);
            let wrong = match other.filter(|_| self.settings.format.is_some()) {
                Some(other) => format!("{wrong}; it looks like {other}").into(),
                None => wrong,
            };
            runs.push(Run::wrong(place, self.format, wrong));
        }
    }

    fn read_all(&mut self, value: &Value, place: Place, runs: &mut Vec<Run>) -> Result<(), Wrong> {
        if !self.follows(value, place.index) && self.agent().kind == Kind::Rows {
            self.end_all(runs);
        }
        if (self.agent().patch)(&mut self.whole, value) {
            let whole = self.place.get_or_insert(Place { size: 0, ..place });
            whole.size += place.size;
            return check(whole.size);
        }
        if self.read_record(value, place, false, runs)? == Decoded::Whole {
            self.read_inner(value, place, runs);
        }
        Ok(())
    }

    /// Appends the runs that the end of the input ends.
    pub fn end(&mut self, runs: &mut Vec<Run>) {
        let mut wrong = None;
        if let Some(place) = self.place.take() {
            let value = mem::replace(&mut self.whole, Value::Null);
            wrong = self.read_all(&value, place, runs).err();
        }
        let place = Place::default();
        runs.extend(wrong.map(|wrong| Run::wrong(place, self.format, wrong)));
        self.end_all(runs);
        if !mem::take(&mut self.unknown).is_empty() {
            let reason = format!("{} without a record of a session", self.format);
            let skipped = Content::Skipped(reason.into());
            runs.push(Run::done(place, Some(self.format), skipped));
        }
    }
}
