//! Grok Build: `~/.grok/sessions/*/ID/chat_history.jsonl`, and `updates.jsonl` beside it, the updates of the Agent Client Protocol, which
//! other programs write too.

use std::path::Path;

use knowledgepulse_json::{Object, Text, Value};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Call, Events, Origin, Outcome, TextKind, What},
    messages::add_message,
    values::{
        elements_of, fields_of, fields_where, first_of, is_given, list_of, object_of, or, str_of, string_of,
    },
};

const FILE: &str = "chat_history.jsonl";

/// Sessions of Grok.
pub struct Grok;

/// Returns the update that a record is.
fn update_of(record: &Object) -> Option<&Object> {
    let update = fields_of(fields_of(record, "params"), "update");
    let update = if update.is_empty() {
        fields_of(record, "update")
    } else {
        update
    };
    update.contains("sessionUpdate").then_some(update)
}

fn is_line(record: &Object) -> bool {
    let has = |name| record.contains(name);
    !has("role")
        && !has("message")
        && match str_of(record.get("type")) {
            Some("user") => has("content") && (has("prompt_index") || has("synthetic_reason")),
            Some("assistant") => has("content") && (has("tool_calls") || has("model_id")),
            Some("tool_result") => has("tool_call_id"),
            Some("system") => record.len() == 2 && has("content"),
            Some("backend_tool_call") => true,
            _ => false,
        }
}

impl Adapter for Grok {
    fn format(&self) -> FormatName {
        FormatName::Grok
    }

    fn recognises(&self, first: &[&Value], path: Option<&Path>) -> bool {
        let is_history = path.is_some_and(|path| path.ends_with(FILE));
        // Other programs have prompts of the system of that form.
        let is_own = |record: &Object| is_history || str_of(record.get("type")) != Some("system");
        let mut first = first.iter().map(|value| object_of(Some(value)));
        first.any(|record| (is_line(record) && is_own(record)) || update_of(record).is_some())
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let fields = object_of(Some(record));
        if let Some(update) = update_of(fields) {
            let run = string_of(fields_of(fields, "params").get("sessionId")).cloned();
            say.begin(Origin {
                run,
                ..Origin::default()
            });
            add_update(say, update);
            return Ok(Decoded::GoesOn);
        }
        let kind = str_of(fields.get("type"));
        if !is_line(fields) && kind != Some("reasoning") {
            return Ok(Decoded::Unknown);
        }
        say.begin(Origin::default());
        let content = fields.get("content");
        match kind {
            Some("user") => match str_of(fields.get("synthetic_reason")) {
                None | Some("interjection") => say.say_content(TextKind::User, content),
                Some(reason) => say.leave_out(format!("message {reason}")),
            },
            Some("assistant") => {
                say.first_fact("model", fields.get("model_id"));
                let mut message = fields_where(fields, |name, _| {
                    matches!(name, "content" | "tool_calls" | "reasoning_content")
                });
                message.insert("role", "assistant");
                add_message(say, &message.into())?;
            }
            Some("tool_result") => {
                let content = say.text_of(content);
                let id = string_of(fields.get("tool_call_id")).cloned();
                say.result(Outcome {
                    id,
                    content,
                    failed: None,
                });
            }
            Some("backend_tool_call") => {
                let call = fields_of(fields, "kind");
                let name = string_of(call.get("tool_type"))
                    .cloned()
                    .map(|name| without_end(&name));
                let args = first_of(call, &["action", "input", "code"]);
                say.call(Call {
                    name,
                    ..Call::new(call.get("id"), None, args)
                });
            }
            Some("reasoning") => add_message(say, record)?,
            _ => say.leave_out("system message"),
        }
        Ok(Decoded::GoesOn)
    }
}

fn without_end(name: &Text) -> Text {
    name.strip_suffix("_call").unwrap_or(name).into()
}

fn add_update(say: &mut Events, update: &Object) {
    let content = update.get("content");
    let piece = |kind| say_piece(kind, content);
    match str_of(update.get("sessionUpdate")).unwrap_or_default() {
        "user_message_chunk" => say.add(piece(TextKind::User)),
        "agent_message_chunk" => say.add(piece(TextKind::Message)),
        "agent_thought_chunk" => say.add(piece(TextKind::Reasoning)),
        "tool_call" => {
            let name = first_of(fields_of(update, "_meta"), &["toolName", "tool_name"]);
            say.call(Call::new(
                update.get("toolCallId"),
                or(name, update.get("title")),
                update.get("rawInput"),
            ));
            add_output(say, update);
        }
        "tool_call_update" => add_output(say, update),
        kind => say.leave_out(format!("event {kind}")),
    }
}

fn say_piece(kind: TextKind, content: Option<&Value>) -> What {
    let mut events = Events::default();
    What::Piece(kind, events.text_of(content))
}

/// Adds the result of a call that has ended.
fn add_output(say: &mut Events, update: &Object) {
    let failed = match str_of(update.get("status")) {
        Some("completed") => None,
        Some("failed") => Some(true),
        _ => return,
    };
    let blocks = list_of(update.get("content")).iter();
    let blocks: Vec<_> = blocks
        .flat_map(|block| elements_of(block.get("content")))
        .cloned()
        .collect();
    let blocks = Value::from(blocks);
    let content = if is_given(blocks.as_array().and_then(<[Value]>::first)) {
        Some(&blocks)
    } else {
        update.get("rawOutput")
    };
    let content = say.text_of(content);
    say.result(Outcome {
        id: string_of(update.get("toolCallId")).cloned(),
        content,
        failed,
    });
}
