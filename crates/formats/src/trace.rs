//! Turns an agent's actions into the steps of a trace: the rules that all formats share, written once. A reader reports its
//! findings in order: a user's turn, a thought, a call, a result.
//! `docs/formats.md` says what each becomes.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, VecDeque},
    fmt::Write,
    sync::LazyLock,
};

use knowledgepulse_json::{Object, Text, Value, cut, is_white_space, json_object, parse_str, units_of};
use knowledgepulse_trace::{OBJECTIVE_OF_FIRST_STEP, facts::INTERRUPTED};
pub use knowledgepulse_trace::{facts::REASONING, roles::UNANSWERED};
use regex::Regex;
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use crate::{
    Given, Known, Place,
    agent::{Format, Kind},
    date,
    event::{Fact, TextKind, ToolResult},
    parts::Call,
    pictures,
    values::{
        NAME_LENGTH, fields_of, in_path, is_blank, is_given, is_truthy, joined, json_of, number_of,
        numeric_of, regex, some_object, str_of, text_at, truth_of,
    },
    words::is_one,
};

/// The success of a trace where neither the trace nor the caller states one: none was seen.
pub const DEFAULT_SUCCESS: bool = false;
/// The confidence of such a trace.
pub const DEFAULT_CONFIDENCE: f64 = 0.5;

/// The field of `metadata.imported` with the names that the format gave, by which a session is known that has grown.
pub const SESSION: &str = "session";

/// The field of `metadata.imported` with the names of all models, where several were used.
pub const MODELS: &str = "models";

/// The field of `metadata.imported` that says how many steps were taken before the user said the objective, if there were some.
pub const BEFORE_OBJECTIVE: &str = "steps_before_objective";

/// Returns which parts of a trace are known: all, unless it was converted from a format that did not say.
#[must_use]
pub fn known_of(trace: &Value) -> Known {
    let is_known = |name| trace.at(&["metadata", "imported", "known", name]) != Some(&Value::Bool(false));
    Known {
        success: is_known("success"),
        confidence: is_known("confidence"),
        time: is_known("time"),
    }
}

/// Returns when a trace began, in ISO 8601; `None` if that is not known.
#[must_use]
pub fn time_of(trace: &Value) -> Option<String> {
    let time = trace.at(&["metadata", "created_at"]).and_then(Value::as_str);
    let time = time.filter(|_| known_of(trace).time).and_then(date::parse);
    time.map(date::to_iso)
}

/// Matches the path of a worktree: the folder that has it, perhaps a hidden one in that, and what follows.
static WORKTREE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"([^/\\]+)[/\\](?:(\.[A-Za-z-]+)[/\\])?\.?worktrees[/\\](.*)"));

/// Returns the name of the project that a session is of: that of the folder in which its agent ran, with the folder above it where it is a
/// number, such as `shop/2`; of a worktree that of its project.
#[must_use]
pub fn project_of(trace: &Value) -> Option<&str> {
    let folder = trace
        .at(&["metadata", "imported", "cwd"])
        .and_then(Value::as_str)?;
    if let Some(found) = WORKTREE.captures(folder) {
        let part = |at| found.get(at).map(|part| part.as_str());
        let mut below = part(3).unwrap_or_default().split(['/', '\\']);
        // Two keep the worktrees of all projects: `.cursor/worktrees/shop/1f2e`, `.codex/worktrees/1f2e/shop`.
        return match part(2) {
            Some(".cursor") => below.next(),
            Some(".codex") => below.nth(1),
            _ => part(1),
        };
    }
    let folder = folder.trim_end_matches(['/', '\\']);
    let named = folder.trim_end_matches(|c: char| c.is_ascii_digit() || ['/', '\\'].contains(&c));
    let start = named.rfind(['/', '\\']).map_or(0, |at| at + 1);
    Some(folder[start..].trim_start_matches(['/', '\\'])).filter(|name| !name.is_empty())
}

/// The type of a step that is a call.
const CALL: &str = "tool_call";

/// How many names of left-out parts are told apart: files decide which names there are.
const MAX_COUNTED: usize = 50;

/// How many of the things that were left out are named in an error.
const MAX_NAMED: usize = 3;

/// How a result begins that says that its call failed, where its format says nothing of it: the words of shells, of Python and
/// JavaScript, and of the tools of benchmarks, such as mini-SWE-agent, and of the OpenAI Agents SDK. A return code of 0 is told apart below.
static FAILURE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?i-u:error\b|exit code:? [1-9]|execution error in|i encountered an error while trying to use the tool|an error occurred while (?:running|calling|executing|invoking) the (?:tool|function)|traceback \(most recent call last\)|(?:[\w.]{1,100})?(?:error|exception):|<(?:exception|(?:\w{1,30}_)?error)>|<returncode>)",
    )
});

/// How a result ends whose command failed, behind which OpenHands may have its folder.
static FAILED_END: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?m)^\[(?:The command completed|Command finished) with exit code [1-9][0-9]*\.?\]")
});

/// Only so many code units of a result are looked at, because a result may be megabytes long.
const FAILURE_LENGTH: usize = 256;

/// Only so many calls that wait are searched for a task.
const MOST_WAITING: usize = 32;

/// The most characters of an objective that is taken from the first step.
const MOST_FIRST_WORDS: usize = 120;

/// A result that is JSON is searched for a failure if it has at most this many code units.
const JSON_LENGTH: usize = 64 * 1024;

/// Names of fields, one of which a result has that says in JSON whether its call failed.
static FAILURE_FIELD: LazyLock<Regex> =
    LazyLock::new(|| regex(r#""(?:error|isError|is_error|exit_code|exitCode|returncode|exception_info)""#));

/// How agents call the tools of a server: by its name and theirs.
static MCP_TOOL: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^mcp__([^\n\r\u{2028}\u{2029}]+?)__[^\n\r\u{2028}\u{2029}]"));

/// Returns whether a result says itself that its call failed.
fn says_failure(text: &Text) -> bool {
    let beginning = cut(text, FAILURE_LENGTH);
    let words = beginning.trim_start_matches(is_white_space);
    if let Some(found) = FAILURE.find(words) {
        let is_code = found.as_str().to_ascii_lowercase().ends_with("returncode>");
        if !is_code || !words[found.end()..].starts_with("0<") {
            return true;
        }
    }
    let end = text.floor_char_boundary(text.len().saturating_sub(FAILURE_LENGTH));
    if FAILED_END.is_match(&text[end..]) {
        return true;
    }
    if !text.as_bytes().starts_with(b"{") || units_of(text) > JSON_LENGTH {
        return false;
    }
    // Most results have no such field, and searching for its name costs less than parsing.
    if !FAILURE_FIELD.is_match(text) {
        return false;
    }
    let Ok(value) = parse_str(text) else {
        return false;
    };
    let has = |name| value.get(name) == Some(&Value::Bool(true));
    let is_code = |path| numeric_of(in_path(&value, path)).is_some_and(|code| code != 0.0);
    has("isError")
        || has("is_error")
        || is_truthy(value.get("error"))
        || is_truthy(value.get("exception_info"))
        || ["exit_code", "exitCode", "returncode", "metadata/exit_code"]
            .into_iter()
            .any(is_code)
}

/// Returns a call as text, for the comparison by novelty: the tool, then a line for each argument, `name: value`. Strings
/// stay as they are, everything else is JSON.
fn render_call(name: &Text, input: &Object) -> Text {
    let [line, colon] = ["\n", ": "].map(Text::from);
    let mut parts = vec![Cow::Borrowed(name)];
    for (key, value) in input {
        parts.extend([&line, key, &colon].map(Cow::Borrowed));
        parts.push(json_of(value));
    }
    parts.iter().map(|part| part.as_str()).collect()
}

/// Returns the server that a tool belongs to by its name.
fn server_of(tool: &Text) -> Option<Text> {
    if !tool.as_bytes().starts_with(b"mcp__") {
        return None;
    }
    MCP_TOOL.captures(tool).map(|found| found[1].into())
}

/// The field of `metadata.imported` with the events that may take turns back and that no adapter knows: these turns are still there.
const UNKNOWN_UNDO: &str = "unknown_undo";

/// Counts texts that look like calls and are not read as such.
pub const UNKNOWN_CALL: &str = "text like a call of an unknown style";

/// Returns what a reader of a converted trace must know: that an event may take turns back which are still in it, or that texts look like
/// calls.
#[must_use]
pub fn warning_of(trace: &Value) -> Option<Text> {
    let texts = number_of(trace.at(&["metadata", "imported", "left_out", UNKNOWN_CALL]));
    if let Some(times) = texts {
        return Some(format!("texts that look like calls in a style that is not known: {times}").into());
    }
    let events = trace.at(&["metadata", "imported", UNKNOWN_UNDO])?.as_array()?;
    let names = events.iter().filter_map(Value::as_text).cloned();
    let names = joined(names, ", ");
    Some(format!("turns may have been taken back that are still in the trace: {names}").into())
}

/// Counts the files in Base64 in texts.
const FILE: &str = "file in a text";

/// How events are named that take turns back.
static UNDO: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^(?:event|record|item|line) [^ ]*(?i-u:undo|rewind|roll_?back|rolled_?back|revert)")
});

/// How events are named that stop the agent.
static STOPPED: LazyLock<Regex> = LazyLock::new(|| regex(r"(?i-u:abort|interrupt|cancel)"));

/// Returns whether the name of a model says that the program chooses it, or is none.
fn is_open(model: &Value) -> bool {
    str_of(Some(model)).is_some_and(|model| is_one(model, "no-model"))
}

/// Puts a trace together.
#[derive(Debug, Default)]
pub(crate) struct TraceBuilder {
    format: &'static str,
    steps: Vec<Object>,
    objective: Option<Text>,
    objective_before: Option<Text>,
    /// The step of the agent's last message.
    summary: Option<usize>,
    /// The steps that are reasoning.
    reasoning: Vec<usize>,
    /// The last step before the user stopped the agent.
    interrupted: Option<usize>,
    /// The models that were used, in the order of their first use.
    models: Vec<Value>,
    /// The parts that were left out, with their counts, in the order of their first occurrence.
    left_out: Vec<(Text, u64)>,
    /// By the id of calls, several where it is used again, those that wait for their results, and the last one.
    calls: HashMap<Text, (VecDeque<usize>, usize)>,
    /// The calls without a result.
    unanswered: BTreeSet<usize>,
    /// By the name of a tool, the number of steps there were when a call of it had failed.
    failed: HashMap<Text, usize>,

    /// Where it begins, and the size of the input that it was read from.
    pub place: Place,
    /// The format's names for it, from the most particular to the most general; its id is made of these.
    pub ids: Vec<Text>,
    /// The fields of `metadata.imported`.
    pub details: Object,
    /// When it began, in ISO 8601.
    pub created_at: Option<String>,
    /// `metadata.framework`
    pub framework: Option<Text>,
    /// `metadata.agent_id`
    pub agent_id: Option<Text>,
    /// `metadata.task_domain`
    pub domain: &'static str,
    /// Whether the run succeeded, if that is known.
    pub success: Option<bool>,
    /// The confidence, if it is known.
    pub confidence: Option<f64>,
    /// Whether it is part of a conversation at all. Spans of other programs are not, nor are sessions of commands alone.
    pub is_conversation: bool,
}

impl TraceBuilder {
    /// Creates a trace that begins at a place. A session is of a conversation once something was said.
    #[must_use]
    pub fn new(agent: &Format, place: Place) -> Self {
        let is_session = agent.kind == Kind::Sessions;
        Self {
            format: agent.name,
            place: Place { size: 0, ..place },
            domain: if is_session && !is_one(agent.name, "any-domain") {
                "code"
            } else {
                "default"
            },
            framework: is_session.then(|| agent.name.into()),
            is_conversation: !is_session,
            ..Self::default()
        }
    }

    /// Returns whether nothing was found that belongs to a trace.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objective.is_none() && self.steps.is_empty()
    }

    /// Returns the problem if it is empty. Names the parts that were left out, the most frequent first.
    #[must_use]
    pub fn empty_reason(&self) -> Text {
        let mut counts: Vec<_> = self.left_out.iter().collect();
        counts.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let named = counts.iter().take(MAX_NAMED);
        let named = named.map(|(name, times)| Text::from(format!("{name} ({times})")));
        let named = joined(named, ", ");
        let mut reason = Text::from(format!("{} without a turn of a user or a step", self.format));
        if !named.is_empty() {
            reason.push_str("; left out: ");
            reason.push_str(&named);
        }
        reason
    }

    /// Counts something that becomes no step, several times or not at all.
    pub fn leave_out_times(&mut self, what: impl Into<Text>, times: u64) {
        if times == 0 {
            return;
        }
        let mut name = what.into();
        if units_of(&name) > NAME_LENGTH {
            name = format!("{}…", cut(&name, NAME_LENGTH)).into();
        }
        if STOPPED.is_match(&name) {
            self.interrupted = self.steps.len().checked_sub(1);
        }
        let is_new = !self.left_out.iter().any(|(other, _)| *other == name);
        if is_new && self.left_out.len() >= MAX_COUNTED {
            name = "others".into();
        }
        match self.left_out.iter_mut().find(|(other, _)| *other == name) {
            Some((_, count)) => *count += times,
            None => self.left_out.push((name, times)),
        }
    }

    /// Keeps a value in `metadata.imported`, if there is one. That the program chooses the model is none.
    pub fn keep(&mut self, name: &str, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| !(value.is_null() || name == "model" && is_open(value))) {
            self.details.insert(name, value.clone());
        }
    }

    /// Keeps a fact about a run.
    pub fn add_fact(&mut self, fact: Fact) {
        match fact {
            Fact::Id(id) => self.ids = vec![id],
            Fact::Name(name) => self.ids.push(name),
            Fact::Reward(reward) => self.reward(&reward),
            Fact::Verdict(verdict) => self.success = truth_of(Some(&verdict)).or(self.success),
            Fact::Outcome(fields) => self.outcome(&fields),
            Fact::Framework(name) => self.framework = Some(name),
            Fact::Agent(id) => self.agent_id = Some(id),
            Fact::Domain(domain) => self.domain = domain,
            Fact::First(name, value) => self.keep_first(name, Some(&value)),
            Fact::Last(name, value) => self.keep(name, Some(&value)),
        }
    }

    /// Keeps a value, unless one was kept before. Of models, the names of all are kept.
    pub fn keep_first(&mut self, name: &str, value: Option<&Value>) {
        let is_model = |value: &&Value| name == "model" && value.as_text().is_some() && !is_open(value);
        let model = value
            .filter(is_model)
            .filter(|model| !self.models.contains(model));
        self.models
            .extend(model.filter(|_| self.models.len() < MAX_COUNTED).cloned());
        if !self.details.contains(name) {
            self.keep(name, value);
        }
    }

    /// Takes a turn of a user in a trace that this one continues: it is the objective if this one has no turn of its own.
    pub fn user_before(&mut self, text: Text) {
        if !is_blank(&text) {
            self.objective_before.get_or_insert(text);
        }
    }

    /// Takes how long the last call with this id took, in milliseconds.
    pub fn took(&mut self, id: &Text, milliseconds: f64) {
        if let Some((_, at)) = self.calls.get(id)
            && milliseconds >= 0.0
        {
            self.steps[*at].insert("latency_ms", milliseconds);
        }
    }

    /// Returns the step of the call that a result belongs to.
    fn call_of(&mut self, id: Option<&Text>) -> Option<usize> {
        let Some(id) = id else {
            return self.unanswered.first().copied();
        };
        // Calls may have no ids where their results have some.
        let id = Some(id).filter(|id| self.calls.contains_key(*id));
        self.calls.get_mut(id.unwrap_or(&Text::default()))?.0.pop_front()
    }

    /// Replaces pictures and other files in a text by their kinds.
    fn replace_files(&mut self, text: &mut Text) {
        self.leave_out_times(FILE, u64::from(pictures::replace(text)));
    }

    /// Adds a step; returns its place.
    fn add(&mut self, kind: &str, content: Text) -> usize {
        let at = self.steps.len();
        let mut step = Object::with_capacity(if kind == CALL { 6 } else { 3 });
        step.insert("step_id", at);
        step.insert("type", kind);
        step.insert("content", content);
        self.steps.push(step);
        at
    }

    /// Takes a verifier's reward: above 0 is a success, as Harbor counts them, and the confidence is the reward, kept within
    /// 0 and 1, because it says how far the result is right.
    fn reward(&mut self, reward: &Value) {
        let truth = truth_of(Some(reward)).map(|is_true| f64::from(u8::from(is_true)));
        let value = truth.or_else(|| numeric_of(Some(reward)));
        self.readable("reward", Some(reward), value.is_some());
        if let Some(value) = value {
            self.success = Some(value > 0.0);
            self.confidence = Some(value.clamp(0.0, 1.0));
            self.details.insert("reward", value);
        }
    }

    /// Takes the format's success and confidence, in the fields of these names.
    fn outcome(&mut self, fields: &Object) {
        let (success, confidence) = (fields.get("success"), fields.get("confidence"));
        let truth = truth_of(success);
        self.readable("success", success, truth.is_some());
        self.success = truth.or(self.success);
        let number = numeric_of(confidence).filter(|number| (0.0..=1.0).contains(number));
        self.readable("confidence", confidence, number.is_some());
        self.confidence = number.or(self.confidence);
    }

    /// Counts a field with something in it that could not be read.
    fn readable(&mut self, name: &str, value: Option<&Value>, is_read: bool) {
        if !is_read && is_given(value) {
            self.leave_out(format!("unreadable {name}"));
        }
    }

    /// Counts something that becomes no step.
    pub fn leave_out(&mut self, what: impl Into<Text>) {
        self.leave_out_times(what, 1);
    }

    /// Takes the time of a finding, as [`date::of`] reads it; the first one is the time of the trace.
    pub fn at(&mut self, time: Option<&Value>) {
        if self.created_at.is_none() {
            self.created_at = date::of(time).map(date::to_iso);
        }
    }

    /// Takes a text.
    pub fn say(&mut self, kind: TextKind, mut text: Text) {
        self.is_conversation |= !matches!(kind, TextKind::Event | TextKind::Told);
        self.replace_files(&mut text);
        match kind {
            // Most messages that call tools have no text, which is not worth counting.
            TextKind::Message if is_blank(&text) => {}
            TextKind::Reasoning if is_blank(&text) => self.leave_out("empty reasoning"),
            _ if is_blank(&text) => self.leave_out("empty message"),
            TextKind::Message => self.summary = Some(self.add("thought", text)),
            TextKind::Told if self.objective.is_none() && self.steps.is_empty() => self.user_before(text),
            TextKind::User if self.objective.is_none() => {
                if !self.steps.is_empty() {
                    self.details.insert(BEFORE_OBJECTIVE, self.steps.len());
                }
                self.objective = Some(text);
            }
            TextKind::User if self.has_asked(&text) => self.leave_out("task of an agent that a call runs"),
            TextKind::Reasoning => {
                let at = self.add("thought", text);
                self.reasoning.push(at);
            }
            TextKind::User | TextKind::Event | TextKind::Told => drop(self.add("observation", text)),
        }
    }

    /// Returns whether a text is an argument of a call that waits for its result: the task of the agent that it runs.
    fn has_asked(&self, text: &Text) -> bool {
        let last = self.unanswered.iter().rev().take(MOST_WAITING);
        let mut calls = last.map(|at| fields_of(&self.steps[*at], "input"));
        calls.any(|input| input.iter().any(|(_, argument)| argument.as_text() == Some(text)))
    }

    /// Takes a call of a tool.
    pub fn call(&mut self, mut call: Call) {
        self.is_conversation = true;
        self.leave_out_times(FILE, pictures::replace_in(&mut call.args));
        let name = call.name.unwrap_or_else(|| "unknown".into());
        let at = self.add(CALL, render_call(&name, &call.args));
        let server = server_of(&name).or(call.server).map(Value::from);
        let tool = some_object([("name", Some(name.into())), ("mcp_server", server)]);
        self.steps[at].insert("tool", tool);
        self.steps[at].insert("input", call.args);
        self.unanswered.insert(at);
        let (waiting, last) = self.calls.entry(call.id.unwrap_or_default()).or_default();
        waiting.push_back(at);
        *last = at;
    }

    /// Takes the result of a call.
    pub fn result(&mut self, mut result: ToolResult) {
        self.is_conversation = true;
        self.replace_files(&mut result.content);
        let is_failed = result.failed.unwrap_or_else(|| says_failure(&result.content));
        let at = self.call_of(result.id.as_ref());
        let kind = if is_failed {
            "error_recovery"
        } else {
            "observation"
        };
        self.add(kind, result.content);
        let Some(at) = at else {
            return;
        };
        self.unanswered.remove(&at);
        let count = self.steps.len();
        let tool = text_at(fields_of(&self.steps[at], "tool"), "name").unwrap_or_default();
        if is_failed {
            self.failed.entry(tool).or_insert(count);
        } else if self.failed.get(&tool).is_some_and(|&failed_at| at >= failed_at) {
            // A call that was made before the other one had failed repairs nothing.
            self.failed.remove(&tool);
            self.steps[at].insert("type", "error_recovery");
        }
    }

    /// Returns the trace. The caller's values take precedence over the format's.
    #[must_use]
    pub fn finish(mut self, given: &Given) -> Value {
        let success = given.success.or(self.success);
        let confidence = given.confidence.or(self.confidence);
        let known = Known {
            success: success.is_some(),
            confidence: confidence.is_some(),
            time: self.created_at.is_some(),
        };
        self.leave_out_times(UNANSWERED, self.unanswered.len() as u64);
        let objective = self.objective.take().or(self.objective_before.take());
        let objective = objective.unwrap_or_default();
        let id = format!("kp:trace:{}", self.uuid(&objective));
        let said = Some(objective).filter(|objective| !objective.trim().is_empty());
        let objective = said.unwrap_or_else(|| self.first_words());
        let metadata = self.metadata(success.unwrap_or(DEFAULT_SUCCESS), known);
        let summary = self.summary.and_then(|at| text_at(&self.steps[at], "content"));
        let steps: Vec<Value> = self.steps.into_iter().map(Value::from).collect();
        let outcome = json_object! {
            "result_summary": summary.unwrap_or_default(),
            "confidence": confidence.unwrap_or(DEFAULT_CONFIDENCE),
        };
        json_object! {
            "@context": "https://openknowledgepulse.org/schema/v1",
            "@type": "ReasoningTrace",
            "id": id,
            "metadata": metadata,
            "task": json_object! { "objective": objective },
            "steps": steps,
            "outcome": outcome,
        }
    }

    fn metadata(&mut self, success: bool, known: Known) -> Value {
        let mut imported = Object::new();
        imported.insert("format", self.format);
        imported.insert("known", known.into_value());
        imported.extend(std::mem::take(&mut self.details));
        let unknown = self.left_out.iter().filter(|(name, _)| UNDO.is_match(name));
        let unknown: Vec<Value> = unknown.map(|(name, _)| name.clone().into()).collect();
        let names = joined(self.ids.iter().cloned(), " ");
        let reasoning: Vec<Value> = self.reasoning.iter().copied().map(Value::from).collect();
        let counts = self.left_out.drain(..);
        let counts: Object = counts.map(|(name, times)| (name, times.into())).collect();
        let models = std::mem::take(&mut self.models);
        let more: [(&str, Option<Value>); 6] = [
            (MODELS, (models.len() > 1).then(|| models.into())),
            (UNKNOWN_UNDO, (!unknown.is_empty()).then(|| unknown.into())),
            (SESSION, (!self.ids.is_empty()).then(|| names.into())),
            (REASONING, (!reasoning.is_empty()).then(|| reasoning.into())),
            (INTERRUPTED, self.interrupted.map(Value::from)),
            ("left_out", (!counts.is_empty()).then(|| counts.into())),
        ];
        imported.extend(
            more.into_iter()
                .filter_map(|(name, value)| Some((name.into(), value?))),
        );
        let time = self.created_at.take().unwrap_or_else(date::now);
        some_object([
            ("created_at", Some(time.into())),
            ("agent_id", self.agent_id.take().map(Value::from)),
            ("framework", self.framework.take().map(Value::from)),
            ("task_domain", Some(self.domain.into())),
            ("success", Some(success.into())),
            ("quality_score", Some(0.0.into())),
            ("visibility", Some("private".into())),
            ("privacy_level", Some("aggregated".into())),
            ("imported", Some(imported.into())),
        ])
    }

    /// Returns the first words of the first step that has any, marked: a registry refuses a trace without an objective.
    fn first_words(&self) -> Text {
        let contents = self.steps.iter().filter_map(|step| str_of(step.get("content")));
        let mut lines = contents.flat_map(str::lines).map(str::trim);
        let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
        let words: String = line.chars().take(MOST_FIRST_WORDS).collect();
        format!("{OBJECTIVE_OF_FIRST_STEP}{words}").into()
    }

    /// Returns the id. It is the same for the same trace, so that reading it again is recognised: made of the format's names
    /// for the trace, or else of its contents.
    fn uuid(&self, objective: &Text) -> Uuid {
        let mut hash = Sha256::new();
        let mut length = String::new();
        let mut add = |part: &Text| {
            length.clear();
            // Writing to a string does not fail.
            let _ = write!(length, "{}:", units_of(part));
            hash.update(&length);
            hash.update(part.as_bytes());
        };
        add(&self.format.into());
        self.ids.iter().for_each(&mut add);
        add(&self.steps.len().to_string().into());
        add(objective);
        if self.ids.is_empty() {
            let contents = self
                .steps
                .iter()
                .filter_map(|step| step.get("content")?.as_text());
            contents.for_each(add);
        }
        uuid_of(hash)
    }
}

/// Returns a UUID of a hash, of version 8 in RFC 9562: made in a way of our own.
fn uuid_of(hash: Sha256) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// Gives a trace another id, made of the one that it has and of its steps.
pub(crate) fn name_by_steps(trace: &mut Value) {
    let mut hash = Sha256::new();
    for name in ["id", "steps"] {
        hash.update(trace.get(name).map(Value::to_json).unwrap_or_default());
    }
    if let Value::Object(fields) = trace {
        fields.insert("id", format!("kp:trace:{}", uuid_of(hash)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_of_a_folder_is_its_name_or_that_of_its_worktree() {
        for (folder, project) in [
            ("/home/mia/shop", Some("shop")),
            ("/home/mia/shop2/", Some("shop2")),
            ("/home/mia/shop/2", Some("shop/2")),
            ("C:\\code\\shop\\3\\4", Some("shop\\3\\4")),
            ("/2", Some("2")),
            ("/", None),
            ("/home/mia/shop/.worktrees/mia/fix-a/src", Some("shop")),
            ("C:\\shop\\.claude\\worktrees\\brave-otter", Some("shop")),
            ("/home/mia/.cursor/worktrees/shop/AbCdE", Some("shop")),
            ("/home/mia/.codex/worktrees/1f2e/shop/src", Some("shop")),
            ("/home/mia/worktrees", Some("worktrees")),
        ] {
            let trace = json_object! {
                "metadata": json_object! { "imported": json_object! { "cwd": folder } },
            };
            assert_eq!(project_of(&trace), project, "{folder}");
        }
    }

    #[test]
    fn results_say_whether_their_call_failed() {
        for text in [
            "Error: no such file",
            " \u{feff}ERROR",
            "Traceback (most recent call last):\n",
            "json.decoder.JSONDecodeError: Expecting value",
            "<returncode>1</returncode>",
            "Exit code: 1\nExecution output of [bash]:\n",
            "EXECUTION RESULT of [execute_bash]:\nx\n[Command finished with exit code 1]",
            "x\n[The command completed with exit code 127.]\n[Current working directory: /workspace]",
            "<returncode>",
            "<exception>x",
            "<tool_error>x",
            "<tool_use_error>x",
            "<error>x",
            "An error occurred while running the tool. Please try again.",
            "An error occurred while invoking the function river-depth: name a place",
            "I encountered an error while trying to use the tool. This was the error: name a place.",
            r#"{"error":"x"}"#,
            r#"{"exit_code":"2"}"#,
            r#"{"output":"x","metadata":{"exit_code":1}}"#,
            r#"{"isError":true}"#,
        ] {
            assert!(says_failure(&text.into()), "{text}");
        }
        for text in [
            "errors: 0",
            "<returncode>0</returncode>",
            "Exit code: 0\nx",
            "x\n[Command finished with exit code 0]",
            "It says [Command finished with exit code 1]",
            "no error",
            "<errors>0</errors>",
            r#"{"error":null,"exit_code":0}"#,
            r#"{"is_error":1}"#,
            r#"{"error":"#,
        ] {
            assert!(!says_failure(&text.into()), "{text}");
        }
    }

    #[test]
    fn says_failure_searches_the_json_of_short_results() {
        let text = |length| {
            let beginning = r#"{"exit_code":1,"output":""#;
            format!("{beginning}{}\"}}", "x".repeat(length - beginning.len() - 2))
        };
        for (length, is_failure) in [(2000, true), (64 * 1024, true), (64 * 1024 + 1, false)] {
            assert_eq!(says_failure(&text(length).into()), is_failure, "{length}");
        }
    }

    #[test]
    fn a_trace_warns_of_unknown_events_that_may_take_turns_back() {
        for (name, is_warned) in [
            ("event session.rewind", true),
            ("record ThreadRolledBack", true),
            ("item checkpoint-revert", true),
            ("event session.idle", false),
            (UNKNOWN_CALL, true),
            ("message that was taken back", false),
        ] {
            let mut builder = TraceBuilder::default();
            builder.leave_out(name);
            builder.say(TextKind::User, "a".into());
            let trace = builder.finish(&Given::default());
            assert_eq!(warning_of(&trace).is_some(), is_warned, "{name}");
        }
    }

    #[test]
    fn tools_of_servers_name_their_server() {
        assert_eq!(server_of(&"mcp__git__hub__log".into()), Some("git".into()));
        assert_eq!(server_of(&"mcp____log__x".into()), Some("__log".into()));
        assert_eq!(server_of(&"mcp__git__".into()), None);
    }
}
