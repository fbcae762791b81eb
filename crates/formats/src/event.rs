//! What an adapter says of a record: events, flat values that keep no state. `session` makes a conversation of them.

use std::{mem, path::PathBuf};

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    contexts::{self, Words},
    date,
    input::read_small,
    parts::{Call, Part, parts_of},
    values::{
        Fields, fields_where, first_at, id_of, is_blank, is_given, joined, joined_parts, string_of, text_at,
        without_nulls,
    },
    words::{Row, tags},
};

/// Something that happened in a run: all that one message or entry says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    /// Where it belongs.
    pub origin: Origin,
    /// What it says, in order.
    pub what: Vec<What>,
}

impl Event {
    /// Returns what says a turn of the user in a run that this one goes on with.
    pub(crate) fn before(turn: Text) -> Self {
        Self {
            what: vec![What::Before(turn)],
            ..Self::default()
        }
    }
}

/// Where an event belongs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origin {
    /// The format's name of the record. A record whose name was there before replaces that one.
    pub id: Option<Text>,
    /// The record that it follows, where the format has a tree.
    pub parent: Parent,
    /// The message that it is a part of. Parts of one message that repeat each other count once, and a longer text replaces its beginning.
    pub message: Option<Text>,
    /// The run, where the records of a file name theirs; otherwise, it is the run that began last.
    pub run: Option<Text>,
    /// Whose words they are within the run.
    pub agent: Agent,
    /// The number of the record in its run, where the format numbers them.
    pub ordinal: Option<f64>,
    /// When it happened, as [`crate::date::of`] reads it.
    pub time: Option<Value>,
}

/// The record that an event follows.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Parent {
    /// The one before it in the file.
    #[default]
    Before,
    /// None: it begins a conversation.
    None,
    /// The record of this name.
    Of(Text),
}

/// Whose words an event has. Each sub-agent has a trace of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Agent {
    /// The agent that the user talks with.
    #[default]
    Main,
    /// The sub-agent of this name.
    Named(Text),
    /// A sub-agent without a name: that of the parent, or a new one.
    Unnamed,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A text: the user's, the agent's, or an observation.
    Said(TextKind, Text),
    /// A piece of such a text, which goes on the piece before it.
    Piece(TextKind, Text),
    /// A piece of the arguments of the call before it, in JSON.
    Arguments(Text),
    /// A user's text that another record near it may have too.
    Echo(Text),
    /// A call of a tool.
    Call(Call),
    /// The result of a call.
    Result(ToolResult),
    /// A call within another one, and its result: a step of its own, unless the call is told otherwise.
    Ran(Call, Option<ToolResult>),
    /// Something that becomes no step, which is counted under this name.
    LeftOut(Text),
    /// Events before this one are taken back.
    Undo(Undo),
    /// The program has put a summary in the place of the events before this one, which stay.
    Compacted,
    /// Such a summary, which the agent's message before it may be the end of.
    Summary(Text),
    /// Whether the call of this id failed, which its result does not say.
    Failed(Text, bool),
    /// How long the call of this id took, in milliseconds.
    Took(Text, f64),
    /// The run has a copy of these other runs: their headers begin none, and records with a number before this one are theirs.
    Copies {
        /// The names of the other runs.
        of: Vec<Text>,
        /// The number of the first record of its own.
        before: f64,
    },
    /// The run goes on with another one, as far as the record before this number, if that is the one before it in the input.
    Continues {
        /// The name of the other run.
        of: Text,
        /// The number of the first record of the other run that is not of this one.
        until: f64,
    },
    /// Whether the run succeeded, by a verifier's verdict, or by an end that says that it failed.
    Success(bool),
    /// A span, which says what it says together with the others of its run.
    Span(Box<Span>),
    /// A user's turn in a run that this one goes on with.
    Before(Text),
    /// A fact about the run.
    Fact(Fact),
}

/// A span: its attributes by the conventions of OpenTelemetry for GenAI, of OpenInference, of the AI SDK of Vercel or of Traceloop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Span {
    /// Its own id, and that of the span around it.
    pub id: Option<Text>,
    /// The id of the span around it.
    pub parent: Option<Text>,
    /// When it began, in nanoseconds since 1970; 0 if that is not known.
    pub start: i128,
    /// When it ended; 0 if that is not known.
    pub end: i128,
    /// Whether it succeeded, if it says so.
    pub is_ok: Option<bool>,
    /// Why it failed.
    pub message: Option<Text>,
    /// Its attributes by their names.
    pub attributes: Object,
    /// Its events: the name and the attributes of each.
    pub events: Vec<(Text, Object)>,
    /// Whether it is a record of a log, which has what was said in the span of its id.
    pub is_log: bool,
    /// Whether its output may be the whole conversation, as the state of a graph is, where it is around all others.
    pub may_have_all: bool,
}

/// Which events are taken back.
#[derive(Debug, Clone, PartialEq)]
pub enum Undo {
    /// All, which the record has anew.
    All,
    /// The record of this name and all after it; all, if there is none of this name.
    From(Text),
    /// The record of this name and all after it; nothing, if there is none of this name.
    FromIfThere(Text),
    /// All records of this number or a later one.
    Ordinal(f64),
    /// The user's last turns, so many, and all that followed them.
    Turns(usize),
}

/// A fact about a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A name of the run, from which the id of its trace is made; the last one counts.
    Id(Text),
    /// One more name of the run.
    Name(Text),
    /// The reward of a verifier.
    Reward(Value),
    /// A verdict of tests: yes or no.
    Verdict(Value),
    /// The format's own success and confidence, in fields of these names.
    Outcome(Object),
    /// `metadata.framework`, if it is not the adapter's.
    Framework(Text),
    /// `metadata.agent_id`
    Agent(Text),
    /// `metadata.task_domain`
    Domain(&'static str),
    /// A field of `metadata.imported`, of which the first value counts.
    First(&'static str, Value),
    /// A field of `metadata.imported`, of which the last value counts.
    Last(&'static str, Value),
}

impl Parent {
    /// Returns what a field of a record names; a field without a name says that there is none.
    pub fn of(record: &impl Fields, name: &str) -> Self {
        match (text_at(record, name), record.field(name)) {
            (Some(parent), _) => Self::Of(parent),
            (None, Some(_)) => Self::None,
            (None, None) => Self::Before,
        }
    }
}

/// A result as a reader finds it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    /// The id of its call; without one it belongs to the first call that has no result yet.
    pub id: Option<Text>,
    /// The text.
    pub content: Text,
    /// The success by the format; `None` if the format does not tell, and the text decides.
    pub failed: Option<bool>,
}

/// Whose text a reader finds, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// A turn of a user.
    User,
    /// An observation that no call asked for.
    Event,
    /// A thought of the agent.
    Reasoning,
    /// A message of the agent.
    Message,
    /// What a program or another agent tells the agent: the task where nobody said anything before, else an observation.
    Told,
}

/// The field of `metadata.imported` that says that a trace is of a sub-agent.
pub const IS_SUB_AGENT: &str = "is_subagent";
/// The one that names the session whose agent has started it.
pub const PARENT: &str = "parent_session_id";

/// Takes the events of a record from an adapter. Most methods say what the current event says; [`text_of`](Self::text_of) makes the texts.
#[derive(Debug, Default)]
pub struct Events {
    /// The events so far.
    pub list: Vec<Event>,
}

impl Events {
    /// Begins the next event.
    pub fn begin(&mut self, origin: Origin) {
        self.list.push(Event {
            origin,
            what: Vec::new(),
        });
    }

    /// Begins the event of a record of this name at this time.
    pub fn begin_record(&mut self, id: Option<&Value>, time: Option<&Value>) {
        self.begin(Origin {
            id: id_of(id),
            time: time.cloned(),
            ..Origin::default()
        });
    }

    /// Begins an event of the run of this name at this time, where records of several runs are mixed.
    pub fn begin_in_run(&mut self, run: Option<Text>, time: Option<&Value>) {
        self.begin(Origin {
            run,
            time: time.cloned(),
            ..Origin::default()
        });
    }

    /// Begins a run, of which a record has the facts of a kind.
    pub fn begin_run(&mut self, kind: &str, record: &impl Fields) {
        self.begin(Origin::default());
        self.facts(kind, record);
    }

    /// Begins the event of a message, by rows that say where it belongs and which facts of its run it has; without rows, its adapter does.
    pub fn begin_message(&mut self, rows: &'static [Row], message: &Value) {
        if !rows.is_empty() {
            self.begin(Origin::default());
        }
        for (name, paths) in rows {
            let value = paths
                .iter()
                .map(|path| message.at(path))
                .find(|value| is_given(*value));
            let value = value.flatten();
            let Some(Event { origin, .. }) = self.list.last_mut() else {
                continue;
            };
            match *name {
                "id" => origin.id = id_of(value),
                "message" => origin.message = id_of(value),
                "run" => origin.run = id_of(value),
                "time" => origin.time = value.cloned(),
                "agent" => origin.agent = string_of(value).cloned().map_or(Agent::Main, Agent::Named),
                "parent" => origin.parent = Parent::of(message, paths[0][0]),
                "after" => origin.parent = string_of(value).cloned().map_or(Parent::Before, Parent::Of),
                name => self.first_fact(name, value),
            }
        }
    }

    /// Says that the event is of a sub-agent, which may have no name.
    pub fn of_agent(&mut self, name: Option<&Text>) {
        if let Some(event) = self.list.last_mut() {
            event.origin.agent = name.cloned().map_or(Agent::Unnamed, Agent::Named);
        }
    }

    /// Says the name of the run, from which the id of its trace is made.
    pub fn session(&mut self, id: Option<&Value>) {
        if let Some(name) = id_of(id) {
            self.add(What::Fact(Fact::Id(name)));
            self.fact("session_id", id);
        }
    }

    /// Says that the run is of a sub-agent, if it is, and which session has started it.
    pub fn sub_agent(&mut self, is_one: bool, parent: Option<&Value>) {
        if is_one {
            self.fact(IS_SUB_AGENT, Some(&true.into()));
            self.fact(PARENT, parent);
        }
    }

    /// Says one more name of the run, in the field `name` of `metadata.imported` too, if it is text or a number.
    pub fn name(&mut self, name: &'static str, id: Option<&Value>) {
        if let Some(text) = id_of(id) {
            self.add(What::Fact(Fact::Name(joined([name.into(), text], " "))));
            self.fact(name, id);
        }
    }

    /// Adds to the current event.
    pub fn add(&mut self, what: What) {
        if self.list.is_empty() {
            self.begin(Origin::default());
        }
        if let Some(event) = self.list.last_mut() {
            event.what.push(what);
        }
    }

    /// Adds all of these to the current event.
    pub fn add_all(&mut self, whats: impl IntoIterator<Item = What>) {
        whats.into_iter().for_each(|what| self.add(what));
    }

    /// Says a fact, if it has a value; the last one of its name counts.
    pub fn fact(&mut self, name: &'static str, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.add(What::Fact(Fact::Last(name, value.clone())));
        }
    }

    /// Says a fact, if it has a value; the first one of its name counts.
    pub fn first_fact(&mut self, name: &'static str, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.add(What::Fact(Fact::First(name, value.clone())));
        }
    }

    /// Says the facts of a record that the table has in the rows of a kind: the id, the time and the parent of the run, and others by their
    /// names.
    pub fn facts(&mut self, kind: &str, record: &impl Fields) {
        for [name, paths] in tags(kind) {
            let value = first_at(record, paths);
            match *name {
                "id" => self.session(value),
                "time" => self.at(value),
                "parent" => self.sub_agent(string_of(value).is_some(), value),
                name => self.fact(name, value),
            }
        }
    }

    /// Says the facts of a document that an agent keeps beside a session, if it is there, and returns it.
    pub fn facts_in(&mut self, file: Option<PathBuf>) -> Object {
        let about = file.and_then(|file| read_small(&file)).unwrap_or_default();
        self.facts("beside-facts", &about);
        // A fork has a parent as well as a sub-agent.
        let kind = string_of(first_at(&about, "session_kind session_created_reason"));
        let is_one = kind.is_some_and(|kind| kind.starts_with("subagent"));
        let parent = first_at(&about, "parentTaskId parent_session_id");
        self.sub_agent(is_one || about.contains("parentTaskId"), parent);
        about
    }

    /// Counts something that becomes no step.
    pub fn leave_out(&mut self, what: impl Into<Text>) {
        self.add(What::LeftOut(what.into()));
    }

    /// The time of the event is that of its first message.
    pub fn at(&mut self, time: Option<&Value>) {
        if let Some(event) = self.list.last_mut()
            && event.origin.time.is_none()
            && date::of(time).is_some()
        {
            event.origin.time = time.cloned();
        }
    }

    /// Takes a system prompt, which is no action of the agent.
    pub fn system(&mut self) {
        self.leave_out("system message");
    }

    /// Takes a text.
    pub fn say(&mut self, kind: TextKind, text: Text) {
        self.add(What::Said(kind, text));
    }

    /// Takes a command that the user gave to a shell, and its output.
    pub fn say_shell(&mut self, record: &impl Fields) {
        let texts = ["command", "output"].map(|name| self.text_of(record.field(name)));
        self.say(TextKind::Event, joined_parts(texts));
    }

    /// Takes a call of a tool.
    pub fn call(&mut self, call: Call) {
        self.add(What::Call(call));
    }

    /// Takes the result of the call of this id.
    pub fn result(&mut self, id: Option<Text>, content: Text, failed: Option<bool>) {
        self.add(What::Result(ToolResult { id, content, failed }));
    }

    /// Takes the text of a content as the result of the call of this id.
    pub fn answer(&mut self, id: Option<Text>, content: Option<&Value>, failed: Option<bool>) {
        let content = self.text_of(content);
        self.result(id, content, failed);
    }

    /// Takes a content.
    pub fn say_content(&mut self, kind: TextKind, content: Option<&Value>) {
        match parts_of(content) {
            parts if parts.is_empty() => self.say(kind, Text::default()),
            parts => self.say_parts(kind, parts),
        }
    }

    /// Takes the parts of a message in their order. Texts that follow each other are one text of this kind.
    pub fn say_parts(&mut self, kind: TextKind, parts: impl IntoIterator<Item = Part>) {
        let mut texts = Vec::new();
        for part in parts {
            if !matches!(
                part,
                Part::Text(_) | Part::Picture(_) | Part::Page(_) | Part::Other(_)
            ) {
                self.say_texts(kind, mem::take(&mut texts));
            }
            match part {
                Part::Thought(Some(text)) => self.say(TextKind::Reasoning, text),
                Part::Call(call) => self.call(call),
                Part::Result { id, content, failed } => {
                    let content = self.text_of_parts(content);
                    self.result(id, content, failed);
                }
                part => {
                    self.count(&part);
                    if matches!(part, Part::Other(_)) {
                        self.leave_out("part of an unknown kind");
                    }
                    if !matches!(part, Part::Page(_) | Part::Thought(None)) {
                        texts.push(part.words());
                    }
                }
            }
        }
        self.say_texts(kind, mem::take(&mut texts));
    }

    /// Takes texts that have come together. Those of a user are taken without the words of programs in them.
    fn say_texts(&mut self, kind: TextKind, texts: Vec<Text>) {
        if texts.is_empty() {
            return;
        }
        if kind != TextKind::User {
            return self.say(kind, joined_parts(texts));
        }
        let mut own = Vec::new();
        let mut is_own = true;
        for words in texts.into_iter().flat_map(contexts::words_of) {
            is_own &= matches!(words, Words::Own(_));
            match words {
                Words::Own(text) => own.push(text),
                Words::Shell(text) => self.say(TextKind::Event, text),
                Words::Told(text) => self.say(TextKind::Told, text),
                Words::Command => self.leave_out("command of the program"),
                Words::Context => self.leave_out("context of the program"),
                Words::Stopped => self.leave_out("interruption"),
            }
        }
        // A turn that had other words too is none where nothing of the user's is left.
        if is_own || own.iter().any(|text| !is_blank(text)) {
            self.say(TextKind::User, joined_parts(own));
        }
    }

    /// Counts what a part has beside its words.
    fn count(&mut self, part: &Part) {
        match part {
            Part::Picture(kind) | Part::Page(kind) => self.leave_out(format!("{kind} part")),
            Part::Thought(None) => self.leave_out("encrypted reasoning"),
            Part::Result { content, .. } => content.iter().for_each(|part| self.count(part)),
            Part::Text(_) | Part::Thought(_) | Part::Call(_) | Part::Other(_) => {}
        }
    }

    /// Returns the text of a content. A part without text is counted, and its kind stands in its place in brackets, so that a
    /// step that has nothing else is not lost.
    pub fn text_of(&mut self, content: Option<&Value>) -> Text {
        self.text_of_parts(parts_of(content))
    }

    /// Returns the same for parts.
    pub fn text_of_parts(&mut self, parts: Vec<Part>) -> Text {
        parts.iter().for_each(|part| self.count(part));
        joined_parts(parts.into_iter().map(Part::words))
    }

    /// Takes the arguments that are `null` from all calls: tables have a column for each argument of any tool.
    pub fn without_null_arguments(&mut self) {
        for what in self.list.iter_mut().flat_map(|event| &mut event.what) {
            if let What::Call(call) = what {
                call.args = without_nulls(&call.args);
            }
        }
    }

    /// Takes the outcome that a record has in the fields of a trace.
    pub fn outcome_in(&mut self, record: &Object) {
        let outcome = fields_where(record, |name, _| matches!(name, "success" | "confidence"));
        if !outcome.is_empty() {
            self.add(What::Fact(Fact::Outcome(outcome)));
        }
    }

    /// Returns whether a call without an id was said last.
    #[must_use]
    pub fn awaits_result(&self) -> bool {
        let last = self.list.last().and_then(|event| event.what.last());
        matches!(last, Some(What::Call(Call { id: None, .. })))
    }
}
