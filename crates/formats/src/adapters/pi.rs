//! Sessions of Pi and OpenClaw, an entry a line (the files in `~/.pi/agent/sessions/`), and of other programs in the Session Trace
//! Simple Format of the Hub of Hugging Face. `docs/session-format.md` of Pi's coding agent and
//! <https://huggingface.co/docs/hub/session-traces-format> describe them.

use std::path::Path;

use knowledgepulse_json::{Object, Value};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Events, Fact, Origin, Outcome, Parent, TextKind, What},
    messages::{add_message, add_said},
    parts::{call_of, some_object},
    values::{fields_of, joined, number_of, object_of, str_of, string_of, truth_of},
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

/// Sessions of Pi.
pub struct Pi;

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

impl Adapter for Pi {
    fn format(&self) -> FormatName {
        FormatName::Pi
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| {
            let entry = object_of(Some(value));
            is_header(entry) || type_of(entry).is_some()
        })
    }

    fn decode(&self, value: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let entry = object_of(Some(value));
        if is_header(entry) {
            say.begin(Origin {
                time: entry.get("timestamp").cloned(),
                ..Origin::default()
            });
            add_header(say, entry);
            return Ok(Decoded::Begins);
        }
        let Some(kind) = type_of(entry) else {
            return Ok(Decoded::Unknown);
        };
        let message = fields_of(entry, "message");
        let time = string_of(entry.get("timestamp")).map(|time| time.clone().into());
        say.begin(Origin {
            id: string_of(entry.get("id")).cloned(),
            parent: match string_of(entry.get("parentId")) {
                Some(id) => Parent::Of(id.clone()),
                None if entry.contains("parentId") => Parent::None,
                None => Parent::Before,
            },
            time: time.or_else(|| {
                message
                    .get("timestamp")
                    .filter(|time| number_of(Some(time)).is_some())
                    .cloned()
            }),
            ..Origin::default()
        });
        match kind {
            "message" => add_message_of(say, message)?,
            "custom_message" => say.say_content(TextKind::Event, entry.get("content")),
            "compaction" | "branch_summary" => say.leave_out("summary of a compaction"),
            kind => say.leave_out(format!("entry {kind}")),
        }
        Ok(Decoded::GoesOn)
    }
}

fn add_header(say: &mut Events, header: &Object) {
    if let Some(id) = string_of(header.get("id")) {
        say.add(What::Fact(Fact::Id(id.clone())));
        say.fact("session_id", header.get("id"));
    }
    for name in ["version", "cwd", "parentSession", "name"] {
        say.fact(name, header.get(name));
    }
    if let Some(harness) = string_of(header.get("harness")) {
        say.add(What::Fact(Fact::Framework(harness.clone())));
        say.add(What::Fact(Fact::Domain("default")));
    }
}

fn add_message_of(say: &mut Events, message: &Object) -> Result<(), Wrong> {
    let content = message.get("content");
    match str_of(message.get("role")) {
        Some("user") => add_said(say, "user", content)?,
        Some("system") => say.system(content),
        Some("assistant") => {
            say.first_fact("model", message.get("model"));
            if string_of(message.get("errorMessage")).is_some() {
                say.leave_out("error of the API");
            }
            let message = some_object([
                ("role", Some("assistant".into())),
                ("content", content.map(translated)),
                ("reasoning_content", message.get("reasoningContent").cloned()),
                ("tool_calls", message.get("toolCalls").cloned()),
            ]);
            add_message(say, &message)?;
        }
        Some("toolResult" | "tool") => {
            let content = say.text_of(content);
            let is_stopped = STOPPED.iter().any(|words| content.trim_end().ends_with(words));
            say.result(Outcome {
                id: string_of(message.get("toolCallId")).cloned(),
                content,
                failed: truth_of(message.get("isError")).map(|failed| failed && !is_stopped),
            });
        }
        Some("bashExecution") => {
            let texts = ["command", "output"].map(|name| string_of(message.get(name)).cloned());
            say.say(TextKind::Event, joined(texts.into_iter().flatten(), "\n"));
        }
        Some("custom" | "hookMessage") => say.say_content(TextKind::Event, content),
        Some("branchSummary" | "compactionSummary") => say.leave_out("summary of a compaction"),
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
