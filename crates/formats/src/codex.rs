//! Rollouts of Codex, a line each: the files in `~/.codex/sessions/`, and the events that `codex exec --json` prints.
//! `codex-rs/protocol` and `codex-rs/exec/src/exec_events.rs` of openai/codex have their types.

use std::collections::{HashMap, HashSet};

use knowledgepulse_json::{Object, Text, Value, object};

use crate::{
    Entry, FormatName, FormatReader, Found, Wrong,
    messages::{add_message, is_message},
    open_traces::CurrentTrace,
    trace::{Call, Outcome, Sink, TextKind, TraceBuilder, fields_of, text_of_part},
    values::{first_of, input_of, joined, list_of, number_of, object_of, str_of, string_of, truth_of},
};

/// The type of a printed event.
const ERROR: &str = "error";

/// The types of lines in the envelope.
const TYPES: [&str; 9] = [
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
    "world_state",
    "token_usage_record",
    "inter_agent_communication",
    "inter_agent_communication_metadata",
];

/// How parts of a user's messages begin that Codex adds.
const OF_PROGRAM: [&str; 15] = [
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<model_switch>",
    "<personality_spec>",
    "<recommended_plugins>",
    "<skill>",
    "<skills_instructions>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_action>",
    "<external_",
];

/// How a command of the user begins that Codex reports.
const OF_SHELL: &str = "<user_shell_command>";

/// The heading that an editor writes before the request itself.
const REQUEST: &str = "## My request for Codex:";

/// Results of calls that the user has refused or stopped.
const REFUSED: [&str; 2] = ["rejected by user", "aborted by user"];

/// So much of a result is searched for these words and for an exit code, in code units.
const BEGINNING: usize = 128;

/// The text before the exit code in the lines with which a command's result begins; the output comes after a line `Output:`.
const EXIT_CODE: [&str; 2] = ["Exit code: ", "Process exited with code "];

/// Returns the first line of a rollout without the envelope.
fn is_header(line: &Object) -> bool {
    let is_text = |name| string_of(line.get(name)).is_some();
    is_text("id") && is_text("timestamp") && line.contains("instructions") && !line.contains("type")
}

fn is_state(line: &Object) -> bool {
    str_of(line.get("record_type")) == Some("state")
}

/// Returns the type and the payload of a line in the envelope.
fn envelope_of(line: &Object) -> Option<(&str, &Object)> {
    let kind = str_of(line.get("type")).filter(|kind| TYPES.contains(kind))?;
    Some((kind, line.get("payload")?.as_object()?))
}

/// Returns the type of an event of `codex exec --json`.
fn event_of(line: &Object) -> Option<&str> {
    let kind = str_of(line.get("type"))?;
    let is_event = match kind {
        "thread.started" => string_of(line.get("thread_id")).is_some(),
        "turn.started" | "turn.completed" | "turn.failed" => true,
        "item.started" | "item.updated" | "item.completed" => line.get("item")?.as_object().is_some(),
        _ => false,
    };
    is_event.then_some(kind)
}

/// Returns whether a record, though it does not name this format, may be of the session before it.
pub fn may_go_on(value: &Value) -> bool {
    is_message(value) || str_of(object_of(Some(value)).get("type")) == Some(ERROR)
}

/// Returns whether a record is of this format.
pub fn recognises(value: &Value) -> bool {
    let line = object_of(Some(value));
    envelope_of(line).is_some() || event_of(line).is_some() || is_header(line) || is_state(line)
}

/// Reads the rollouts of an input.
#[derive(Default)]
pub struct Reader {
    current: CurrentTrace,
    session: Session,
}

/// The state of the session that is being read.
#[derive(Default)]
struct Session {
    /// The sessions that this one has the lines of.
    copied: Vec<Text>,
    /// The number of the first line of its own.
    first: f64,
    /// Whether its lines have no envelope.
    is_bare: bool,
    /// Of calls whose results are still to come, whether they failed.
    failed: HashMap<Text, bool>,
    /// Whether it is printed by `codex exec --json`.
    is_printed: bool,
    /// The printed items whose calls were added.
    begun: HashSet<Text>,
}

impl Session {
    fn new(meta: &Object, is_bare: bool) -> Self {
        let spawn = fields_of(fields_of(fields_of(meta, "source"), "subagent"), "thread_spawn");
        let parents = [
            meta.get("forked_from_id"),
            meta.get("parent_thread_id"),
            spawn.get("parent_thread_id"),
        ];
        Self {
            copied: parents.into_iter().filter_map(string_of).cloned().collect(),
            first: number_of(meta.get("subagent_history_start_ordinal")).unwrap_or_default(),
            is_bare,
            ..Self::default()
        }
    }

    /// Returns the type of a printed event. That of an error does not tell whose error it is.
    fn event_of<'a>(&self, line: &'a Object) -> Option<&'a str> {
        let is_error = self.is_printed && str_of(line.get("type")) == Some(ERROR);
        event_of(line).or(is_error.then_some(ERROR))
    }
}

impl Reader {
    /// Reads an event that `codex exec --json` prints.
    fn read_event(
        &mut self,
        entry: &Entry,
        event: &Object,
        kind: &str,
        found: &mut Vec<Found>,
    ) -> Result<(), Wrong> {
        let thread = string_of(event.get("thread_id")).filter(|_| kind == "thread.started");
        if thread.is_some() {
            self.current.end(found);
            self.session = Session::default();
        }
        self.session.is_printed = true;
        let builder = self.current.add(entry, begin)?;
        if let Some(Value::Object(item)) = event.get("item") {
            add_printed(builder, item, kind == "item.completed", &mut self.session.begun);
            return Ok(());
        }
        builder.leave_out(joined(["event".into(), kind.into()], " "));
        if let Some(thread) = thread {
            builder.ids = vec![thread.clone()];
            builder.keep("session_id", event.get("thread_id"));
        }
        builder.keep("usage", event.get("usage"));
        if kind == "turn.failed" {
            builder.success = Some(false);
            builder.keep("error", fields_of(event, "error").get("message"));
        }
        Ok(())
    }
}

impl FormatReader for Reader {
    fn read(&mut self, entry: &Entry, found: &mut Vec<Found>) -> Result<(), Wrong> {
        let line = object_of(Some(entry.value));
        if let Some(kind) = self.session.event_of(line) {
            return self.read_event(entry, line, kind, found);
        }
        let (kind, payload) = match envelope_of(line) {
            Some(whole) => whole,
            None if is_header(line) => ("session_meta", line),
            None if is_state(line) => return Ok(()),
            None if is_message(entry.value) => ("response_item", line),
            None => return Err(Wrong::new("it is no line of a rollout")),
        };
        let is_meta = kind == "session_meta";
        let id = string_of(first_of(payload, &["id", "session_id"]));
        let is_copied = is_meta && id.is_some_and(|id| self.session.copied.contains(id));
        if is_meta && !is_copied {
            self.current.end(found);
            self.session = Session::new(payload, is_header(line));
        }
        let builder = self.current.add(entry, begin)?;
        builder.at(line.get("timestamp"));
        let is_before = |number: f64| number < self.session.first;
        if !is_meta && number_of(line.get("ordinal")).is_some_and(is_before) {
            builder.leave_out("line of the parent");
            return Ok(());
        }
        match kind {
            "session_meta" if is_copied => builder.leave_out("session that was copied"),
            "session_meta" => add_meta(builder, payload, id),
            "turn_context" => builder.keep_first("model", payload.get("model")),
            "response_item" => add_item(builder, payload, &mut self.session.failed)?,
            "event_msg" => add_event(builder, payload, &mut self.session.failed),
            "compacted" => builder.leave_out("summary of a compaction"),
            _ => builder.leave_out(joined(["line".into(), kind.into()], " ")),
        }
        Ok(())
    }

    fn goes_on(&self, value: &Value) -> bool {
        let is_error = || self.session.event_of(object_of(Some(value))) == Some(ERROR);
        self.session.is_bare && is_message(value) || is_error()
    }

    fn end(&mut self, found: &mut Vec<Found>) {
        self.current.end(found);
    }
}

fn begin(entry: &Entry) -> TraceBuilder {
    TraceBuilder::of_coding_agent(FormatName::Codex, entry)
}

fn add_meta(builder: &mut TraceBuilder, meta: &Object, id: Option<&Text>) {
    builder.ids = id.into_iter().cloned().collect();
    builder.keep("session_id", id.cloned().map(Value::from).as_ref());
    let names = [
        "cwd",
        "originator",
        "cli_version",
        "git",
        "model_provider",
        "forked_from_id",
    ];
    builder.keep_all(meta, &names);
    if fields_of(meta, "source").contains("subagent") {
        builder.details.insert("is_subagent", true);
    }
}

fn add_item(
    builder: &mut TraceBuilder,
    item: &Object,
    failed: &mut HashMap<Text, bool>,
) -> Result<(), Wrong> {
    let kind = string_of(item.get("type")).cloned().unwrap_or_default();
    let role = str_of(item.get("role"));
    if kind == "function_call_output" || kind == "custom_tool_call_output" {
        builder.is_conversation = true;
        add_result(builder, item, failed);
        return Ok(());
    }
    let mut item = item.clone();
    // The turn of the event, and the program's notes about it.
    item.remove("internal_chat_message_metadata_passthrough");
    if role == Some("user") {
        let content = request_of(builder, item.get("content"));
        if content.is_empty() {
            return Ok(());
        }
        item.insert("content", content);
    }
    let is_said = role != Some("developer") && role != Some("system");
    let item = Value::Object(item);
    if !is_message(&item) {
        builder.leave_out(joined(["item".into(), kind], " "));
        return Ok(());
    }
    add_message(builder, &item)?;
    builder.is_conversation |= is_said;
    Ok(())
}

/// Returns the parts of a user's message that are the user's.
fn request_of(builder: &mut TraceBuilder, content: Option<&Value>) -> Vec<Value> {
    let single = content.filter(|content| content.as_text().is_some());
    let mut own = Vec::new();
    for part in single.into_iter().chain(list_of(content)) {
        let text = text_of_part(part).map(Text::to_string_lossy).unwrap_or_default();
        let beginning = text.trim_start();
        if OF_PROGRAM.iter().any(|start| beginning.starts_with(start)) {
            builder.leave_out("context of the program");
        } else if beginning.starts_with(OF_SHELL) {
            builder.is_conversation = true;
            builder.say(TextKind::Event, beginning.into());
        } else if let Some((_, request)) = text.split_once(REQUEST) {
            own.push(object([
                ("type", "input_text".into()),
                ("text", request.trim().into()),
            ]));
        } else {
            own.push(part.clone());
        }
    }
    own
}

fn add_result(builder: &mut TraceBuilder, item: &Object, failed: &mut HashMap<Text, bool>) {
    let id = string_of(item.get("call_id")).cloned();
    let output = item.get("output");
    let content = match output {
        // As the oldest versions write it.
        Some(Value::Object(fields)) => builder.text_of(fields.get("content").or(output)),
        _ => builder.text_of(output),
    };
    let noted = id.as_ref().and_then(|id| failed.remove(id));
    let succeeded = truth_of(object_of(output).get("success"));
    // A result with its exit code, as shells had it before they wrote text.
    let has_code = content.as_bytes().starts_with(b"{\"output\":");
    let whole = has_code.then(|| content.parse().ok()).flatten();
    let inner = whole.as_ref().and_then(|whole| string_of(whole.get("output")));
    let code = whole
        .as_ref()
        .and_then(|whole| number_of(whole.get("metadata")?.get("exit_code")));
    let beginning = content.cut(BEGINNING).to_string_lossy().into_owned();
    let code = code.or_else(|| exit_code_in(&beginning));
    let is_refused = code.is_none() && REFUSED.iter().any(|words| beginning.contains(words));
    let said = noted
        .or(succeeded.map(|is_true| !is_true))
        .or(code.map(|code| code != 0.0));
    builder.result(Outcome {
        id,
        content: inner.cloned().unwrap_or(content),
        failed: if is_refused { Some(false) } else { said },
    });
}

/// Returns the exit code that a result of a command begins with.
fn exit_code_in(beginning: &str) -> Option<f64> {
    let mut lines = beginning.lines().take_while(|line| *line != "Output:");
    lines.find_map(|line| {
        let code = EXIT_CODE.iter().find_map(|before| line.strip_prefix(before))?;
        code.parse().ok()
    })
}

/// Returns whether an item failed, by its status or else by its exit code.
fn failure_of(item: &Object) -> Option<bool> {
    match str_of(item.get("status")) {
        Some("failed") => Some(true),
        Some("completed" | "declined") => Some(false),
        _ => number_of(item.get("exit_code")).map(|code| code != 0.0),
    }
}

/// Adds an item that `codex exec --json` prints when it begins, changes and is over.
fn add_printed(builder: &mut TraceBuilder, item: &Object, is_over: bool, begun: &mut HashSet<Text>) {
    let kind = string_of(item.get("type")).cloned().unwrap_or_default();
    let (arguments, outcome): (&[&str], &str) = match kind.as_str() {
        Some("agent_message" | "plan" | "reasoning") if is_over => {
            builder.is_conversation = true;
            let is_reasoning = kind == "reasoning";
            let kind = if is_reasoning {
                TextKind::Reasoning
            } else {
                TextKind::Message
            };
            return builder.say_content(kind, item.get("text"));
        }
        Some("command_execution") => (&["command"], "aggregated_output"),
        Some("file_change") => (&["changes"], "status"),
        Some("mcp_tool_call") => (&[], "result"),
        Some("collab_tool_call") => (&["prompt", "receiver_thread_ids"], "agents_states"),
        // Before it is over, its query is empty; its results are not printed.
        Some("web_search") if is_over => (&["query"], "results"),
        _ if is_over => return builder.leave_out(joined(["item".into(), kind], " ")),
        _ => return,
    };
    builder.is_conversation = true;
    let id = string_of(item.get("id")).cloned();
    if id.as_ref().is_none_or(|id| begun.insert(id.clone())) {
        let mut args = input_of(item.get("arguments"));
        for name in arguments {
            args.insert(*name, item.get(name).cloned().unwrap_or_default());
        }
        builder.call(Call {
            id: id.clone(),
            name: string_of(item.get("tool")).cloned().or(Some(kind)),
            args,
            server: string_of(item.get("server")).cloned(),
        });
    }
    let error = fields_of(item, "error").get("message");
    let result = error.or_else(|| fields_of(item, outcome).get("content"));
    let result = result.or_else(|| item.get(outcome));
    if is_over && result.is_some() {
        let content = builder.text_of(result);
        let failed = failure_of(item);
        builder.result(Outcome { id, content, failed });
    }
}

/// The details of a call in an event, whose result comes after it.
fn add_event(builder: &mut TraceBuilder, event: &Object, failed: &mut HashMap<Text, bool>) {
    let kind = string_of(event.get("type")).cloned().unwrap_or_default();
    builder.leave_out(joined(["event".into(), kind], " "));
    let item = event.get("item").and_then(Value::as_object).unwrap_or(event);
    let Some(id) = string_of(first_of(item, &["call_id", "id"])) else {
        return;
    };
    if let Some(is_failed) = failure_of(item) {
        failed.insert(id.clone(), is_failed);
    }
    let duration = fields_of(item, "duration");
    if let Some(seconds) = number_of(duration.get("secs")) {
        let nanoseconds = number_of(duration.get("nanos")).unwrap_or_default();
        builder.took(Some(id), seconds * 1e3 + (nanoseconds / 1e6).round());
    }
}
