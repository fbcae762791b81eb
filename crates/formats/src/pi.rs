//! Sessions of Pi, an entry a line (the files in `~/.pi/agent/sessions/`), and of other programs in the Session Trace Simple
//! Format of the Hub of Hugging Face. `docs/session-format.md` of Pi's coding agent and
//! <https://huggingface.co/docs/hub/session-traces-format> describe them.

use std::{collections::HashMap, mem};

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    Entry, FormatName, FormatReader, Found, Wrong,
    messages::{add_message, add_said},
    open_traces::CurrentTrace,
    parts::{call_of, some_object},
    trace::{Outcome, Sink, TextKind, TraceBuilder, fields_of},
    values::{joined, number_of, object_of, str_of, string_of, truth_of},
};

/// The types of entries.
const TYPES: [&str; 9] = [
    "message",
    "model_change",
    "thinking_level_change",
    "compaction",
    "branch_summary",
    "custom",
    "custom_message",
    "label",
    "session_info",
];

/// Results of calls that the user has stopped.
const STOPPED: [&str; 3] = [
    "Operation aborted",
    "Command aborted",
    "Skipped due to queued user message.",
];

fn is_header(entry: &Object) -> bool {
    let has = |name| string_of(entry.get(name)).is_some();
    str_of(entry.get("type")) == Some("session") && has("id") && (has("timestamp") || has("harness"))
}

/// Returns the type of an entry. Only entries of Pi's later versions form a tree.
fn type_of(entry: &Object) -> Option<&str> {
    let kind = str_of(entry.get("type")).filter(|kind| TYPES.contains(kind))?;
    let is_message = kind == "message" && string_of(fields_of(entry, "message").get("role")).is_some();
    (is_message || entry.contains("parentId")).then_some(kind)
}

/// Returns whether a record is of this format.
pub fn recognises(value: &Value) -> bool {
    let entry = object_of(Some(value));
    is_header(entry) || type_of(entry).is_some()
}

/// The entries of a session up to its end: the last one says which branch is kept.
#[derive(Default)]
struct Session {
    entries: Vec<Object>,
    /// Where the entry with an id is.
    places: HashMap<Text, usize>,
    /// Of each entry, where the one before it in the tree is.
    parents: Vec<Option<usize>>,
}

impl Session {
    fn add(&mut self, entry: &Object) {
        let at = self.entries.len();
        let parent = match string_of(entry.get("parentId")) {
            Some(id) => self.places.get(id).copied(),
            // Without a tree, each entry goes on with the one before it.
            None if entry.contains("parentId") => None,
            None => at.checked_sub(1),
        };
        if let Some(id) = string_of(entry.get("id")) {
            self.places.insert(id.clone(), at);
        }
        self.parents.push(parent);
        self.entries.push(entry.clone());
    }

    fn finish(self, mut builder: TraceBuilder) -> Result<TraceBuilder, Wrong> {
        let mut path = Vec::new();
        let mut next = self.entries.len().checked_sub(1);
        while let Some(at) = next {
            path.push(at);
            next = self.parents[at];
        }
        let others = self.entries.len() - path.len();
        if others > 0 {
            builder.leave_out_times("entry of another branch", others as u64);
        }
        for &at in path.iter().rev() {
            add_entry(&mut builder, &self.entries[at])?;
        }
        Ok(builder)
    }
}

/// Reads the sessions of an input.
#[derive(Default)]
pub struct Reader {
    current: CurrentTrace,
    session: Session,
}

impl FormatReader for Reader {
    fn read(&mut self, entry: &Entry, found: &mut Vec<Found>) -> Result<(), Wrong> {
        let fields = object_of(Some(entry.value));
        let is_first = is_header(fields);
        if is_first {
            self.end(found);
        } else if type_of(fields).is_none() {
            return Err(Wrong::new("it is no entry of a session"));
        }
        let begin = |entry: &Entry| TraceBuilder::of_coding_agent(FormatName::Pi, entry);
        let builder = self.current.add(entry, begin)?;
        if is_first {
            add_header(builder, fields);
        } else {
            self.session.add(fields);
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Vec<Found>) {
        let session = mem::take(&mut self.session);
        let builder = self.current.take();
        found.extend(builder.map(|builder| Found::later(|| session.finish(builder))));
    }
}

fn add_header(builder: &mut TraceBuilder, header: &Object) {
    builder.at(header.get("timestamp"));
    builder.ids = string_of(header.get("id")).into_iter().cloned().collect();
    builder.keep("session_id", header.get("id"));
    builder.keep_all(header, &["version", "cwd", "parentSession", "name"]);
    if let Some(harness) = string_of(header.get("harness")) {
        builder.framework = Some(harness.clone());
        builder.domain = "default";
    }
}

fn add_entry(builder: &mut TraceBuilder, entry: &Object) -> Result<(), Wrong> {
    builder.at(entry.get("timestamp"));
    if let Some(time) = number_of(fields_of(entry, "message").get("timestamp")) {
        builder.at_number(time);
    }
    match type_of(entry) {
        Some("message") => add_message_of(builder, fields_of(entry, "message"))?,
        Some("custom_message") => add_event(builder, entry.get("content")),
        Some("compaction" | "branch_summary") => builder.leave_out("summary of a compaction"),
        kind => builder.leave_out(joined(["entry".into(), kind.unwrap_or_default().into()], " ")),
    }
    Ok(())
}

fn add_event(builder: &mut TraceBuilder, content: Option<&Value>) {
    builder.is_conversation = true;
    builder.say_content(TextKind::Event, content);
}

fn add_message_of(builder: &mut TraceBuilder, message: &Object) -> Result<(), Wrong> {
    let content = message.get("content");
    match str_of(message.get("role")) {
        Some("user") => {
            builder.is_conversation = true;
            add_said(builder, "user", content)?;
        }
        Some("system") => builder.system(content),
        Some("assistant") => {
            builder.is_conversation = true;
            builder.keep_first("model", message.get("model"));
            if string_of(message.get("errorMessage")).is_some() {
                builder.leave_out("error of the API");
            }
            let message = some_object([
                ("role", Some("assistant".into())),
                ("content", content.map(translated)),
                ("reasoning_content", message.get("reasoningContent").cloned()),
                ("tool_calls", message.get("toolCalls").cloned()),
            ]);
            add_message(builder, &message)?;
        }
        Some("toolResult" | "tool") => {
            builder.is_conversation = true;
            let content = builder.text_of(content);
            let text = content.to_string_lossy();
            let is_stopped = STOPPED.iter().any(|words| text.trim_end().ends_with(words));
            drop(text);
            builder.result(Outcome {
                id: string_of(message.get("toolCallId")).cloned(),
                content,
                failed: truth_of(message.get("isError")).map(|failed| failed && !is_stopped),
            });
        }
        Some("bashExecution") => {
            let texts = ["command", "output"].map(|name| string_of(message.get(name)).cloned());
            let text = joined(texts.into_iter().flatten(), "\n");
            add_event(builder, Some(&text.into()));
        }
        Some("custom" | "hookMessage") => add_event(builder, content),
        Some("branchSummary" | "compactionSummary") => builder.leave_out("summary of a compaction"),
        _ => return Err(Wrong::new("a message has a role that is not known")),
    }
    Ok(())
}

/// Returns the content of a message, the calls in it in the terms of Anthropic.
fn translated(content: &Value) -> Value {
    let Value::Array(parts) = content else {
        return content.clone();
    };
    let parts = parts.iter().map(|part| {
        if str_of(part.get("type")) != Some("toolCall") {
            return part.clone();
        }
        call_of(part.get("id"), part.get("name"), part.get("arguments"))
    });
    parts.collect::<Vec<_>>().into()
}
