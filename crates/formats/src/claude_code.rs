//! Sessions of Claude Code, an event a line: the files in `~/.claude/projects/`, and the output of `--output-format
//! stream-json`. They are not documented; Harbor reads them too (`claude_code.py`).

use std::collections::HashMap;

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    Entry, FormatName, FormatReader, Found, Wrong,
    trace::{Sink, TextKind, TraceBuilder, fields_of},
    messages::add_said,
    open_traces::OpenTraces,
    values::{joined, list_of, object_of, spelled, str_of, string_of},
};

/// The number of events that are remembered of all open traces, to recognise repeated events and their chains.
const MAX_EVENTS: usize = 1_000_000;

/// How results begin that say that the user has stopped the tool.
const INTERRUPTED: [&str; 3] = [
    "[Request interrupted by user",
    "The user doesn't want to proceed with this",
    "The user doesn't want to take this",
];

/// How turns of a user begin that are for the program. A command that becomes a prompt begins with its message, not with its name.
const OF_PROGRAM: [&str; 2] = ["<command-name>/", "<local-command-"];

/// Beginnings of a user's turns that are commands of a shell or their output.
const OF_SHELL: [&str; 3] = ["<bash-input>", "<bash-stdout>", "<bash-stderr>"];

fn session_of(event: &Object) -> Option<&Text> {
    let id = |name| string_of(event.get(name));
    id("sessionId").or_else(|| id("session_id"))
}

/// Returns whether a record is of this format.
pub fn recognises(value: &Value) -> bool {
    let event = object_of(Some(value));
    let Some(Value::String(kind)) = event.get("type").filter(|_| !event.contains("role")) else {
        return false;
    };
    // There are more types of events without a message, which are recognised by their session.
    let is_other = || {
        matches!(
            kind.as_str(),
            Some("summary" | "file-history-snapshot" | "queue-operation")
        )
    };
    let fields = ["leafUuid", "messageId", "operation"];
    session_of(event).is_some() || (is_other() && fields.iter().any(|name| event.contains(name)))
}

/// Reads the events of an input.
#[derive(Default)]
pub struct Reader {
    open: OpenTraces<TraceBuilder>,
    /// By the id of an event, the key of the trace that it is of.
    events: HashMap<Text, Text>,
}

impl FormatReader for Reader {
    fn read(&mut self, entry: &Entry, found: &mut Vec<Found>) -> Result<(), Wrong> {
        if !recognises(entry.value) {
            return Err(Wrong::new("it is no event of a session"));
        }
        let event = object_of(Some(entry.value));
        let Some(session) = session_of(event) else {
            return Ok(());
        };
        let id = string_of(event.get("uuid"));
        let known = id.and_then(|id| self.events.get(id)).cloned();
        let is_known = known.is_some();
        let key = known.unwrap_or_else(|| self.key_of(event, session));
        if let Some(id) = id.filter(|_| !is_known) {
            if self.events.len() >= MAX_EVENTS {
                self.events.clear();
            }
            self.events.insert(id.clone(), key.clone());
        }
        let begin = || begin(entry, event, session, &key);
        let builder = self.open.add(&key, entry.place.size, begin)?;
        builder.place.size += entry.place.size;
        if is_known {
            builder.leave_out("repeated event");
        } else {
            add_event(builder, event)?;
        }
        found.extend(self.open.overflow().into_iter().map(Found::from));
        Ok(())
    }

    fn end(&mut self, found: &mut Vec<Found>) {
        found.extend(self.open.take_all().into_iter().map(Found::from));
    }
}

impl Reader {
    /// Returns the key of the trace of an event, from the fields that its events have in common.
    fn key_of(&self, event: &Object, session: &Text) -> Text {
        let within = |part: Text| joined([session.clone(), part], " ");
        if event.get("isSidechain") != Some(&Value::Bool(true)) {
            let task = string_of(event.get("parent_tool_use_id"));
            return task.map_or_else(|| session.clone(), |task| within(task.clone()));
        }
        if let Some(agent) = string_of(event.get("agentId")) {
            return within(agent.clone());
        }
        let parent = string_of(event.get("parentUuid")).and_then(|id| self.events.get(id));
        // The first of a chain has no parent, or one of the session itself.
        parent
            .filter(|parent| *parent != session)
            .cloned()
            .unwrap_or_else(|| {
                let id = event.get("uuid").filter(|id| !id.is_null());
                within(id.map_or_else(|| "sidechain".into(), spelled))
            })
    }
}

fn begin(entry: &Entry, event: &Object, session: &Text, key: &Text) -> TraceBuilder {
    let mut builder = TraceBuilder::of_coding_agent(FormatName::ClaudeCode, entry);
    builder.place.size = 0;
    builder.ids = vec![key.clone()];
    builder.agent_id = string_of(event.get("agentId")).cloned();
    builder.details.insert("session_id", session.clone());
    if key != session {
        builder.details.insert("is_subagent", true);
    }
    builder
}

fn add_event(builder: &mut TraceBuilder, event: &Object) -> Result<(), Wrong> {
    let is = |name: &str, truth: bool| event.get(name) == Some(&Value::Bool(truth));
    for name in ["version", "cwd", "gitBranch"] {
        builder.keep_first(name, event.get(name));
    }
    let no_kind = Text::default();
    let kind = event.get("type").and_then(Value::as_text).unwrap_or(&no_kind);
    if *kind == "result" {
        // A run that had no turns left says so there alone in some versions.
        let begins = |subtype: &Text| subtype.as_bytes().starts_with(b"error");
        let is_error = is("is_error", true) || string_of(event.get("subtype")).is_some_and(begins);
        if is_error || is("is_error", false) {
            builder.success = Some(!is_error);
        }
        builder.is_conversation = true;
        builder.leave_out("event result");
        builder.keep_all(event, &["num_turns", "total_cost_usd", "duration_ms", "subtype"]);
        return Ok(());
    }
    let is_user = *kind == "user";
    let Some(Value::Object(message)) = event.get("message").filter(|_| is_user || *kind == "assistant")
    else {
        builder.leave_out(joined(["event".into(), kind.clone()], " "));
        return Ok(());
    };
    builder.at(event.get("timestamp"));
    for (name, what) in [
        ("isCompactSummary", "summary of a compaction"),
        ("isMeta", "meta message"),
        ("isApiErrorMessage", "error of the API"),
    ] {
        if is(name, true) {
            builder.leave_out(what);
            return Ok(());
        }
    }
    if string_of(message.get("model")).is_some() {
        builder.keep_first("model", message.get("model"));
    }
    let content = message.get("content");
    if is_user && begins_with(content, &OF_PROGRAM) {
        builder.leave_out("command of the program");
        return Ok(());
    }
    if is_user && begins_with(content, &OF_SHELL) {
        builder.say_content(TextKind::Event, content);
        return Ok(());
    }
    let forgiven = content
        .filter(|_| is_user)
        .and_then(|content| forgiven(content, event));
    let role = string_of(message.get("role")).unwrap_or(kind);
    add_said(
        builder,
        role.as_str().unwrap_or_default(),
        forgiven.as_ref().or(content),
    )?;
    builder.is_conversation = true;
    Ok(())
}

/// Returns the content that says of tools that the user has stopped that they did not fail; `None` without such tools.
fn forgiven(content: &Value, event: &Object) -> Option<Value> {
    let is_interrupted = fields_of(event, "toolUseResult").get("interrupted") == Some(&Value::Bool(true));
    let is_stopped = |part: &Value| {
        str_of(part.get("type")) == Some("tool_result")
            && (is_interrupted || begins_with(part.get("content"), &INTERRUPTED))
    };
    let parts = content.as_array().filter(|parts| parts.iter().any(is_stopped))?;
    let mut parts = parts.to_vec();
    for part in &mut parts {
        if is_stopped(part)
            && let Value::Object(fields) = part
        {
            fields.insert("is_error", false);
        }
    }
    Some(parts.into())
}

/// Returns whether a text, or that of the first part, begins with one of these.
fn begins_with(content: Option<&Value>, beginnings: &[&str]) -> bool {
    let first = || string_of(list_of(content).first()?.get("text"));
    let text = content.and_then(Value::as_text).or_else(first);
    let begins = |text: &Text| {
        beginnings
            .iter()
            .any(|start| text.as_bytes().starts_with(start.as_bytes()))
    };
    text.is_some_and(begins)
}
