//! Messages of LangChain and LangGraph, in Python and JavaScript: as `dumpd` and `toJSON` write them, as `messages_to_dict` does, and as
//! `model_dump` does.

use std::collections::HashSet;

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    parts::{Part, beside, parts_in},
    tagged,
    values::*,
};

/// Types of parts that are calls, which `tool_calls` has too.
#[rustfmt::skip]
const CALLS: &[&str] = &[
    "tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call",
];

/// Returns whether a value is a message of LangChain.
pub fn is_message(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|message| unwrapped(message).is_some())
}

/// Returns the role of a message and its fields, in whichever way it was written.
pub fn unwrapped(message: &Object) -> Option<(&'static str, &Object)> {
    let kind = str_of(message.get("type"))?;
    let (kind, fields) = match kind {
        "constructor" => {
            let class = list_of(message.get("id")).last()?;
            (class.as_str()?, fields_of(message, "kwargs"))
        }
        kind => match message.get("data") {
            Some(Value::Object(data)) => (kind, data),
            // Messages of others have a type too.
            _ if !is_marked(message, kind) => return None,
            _ => (kind, message),
        },
    };
    if !fields.contains("content") {
        return None;
    }
    let kind = kind.strip_suffix("Chunk").unwrap_or(kind);
    let role = match kind.strip_suffix("Message").unwrap_or(kind) {
        "Human" | "human" => "user",
        "AI" | "ai" => "assistant",
        "System" | "system" => "system",
        "Tool" | "tool" | "Function" | "function" => "tool",
        "Chat" | "chat" | "generic" => match str_of(fields.get("role")) {
            Some("user" | "human") => "user",
            Some("system" | "developer") => "system",
            _ => "assistant",
        },
        _ => return None,
    };
    Some((role, fields))
}

/// Returns whether a message has what only those of LangChain of this type have.
fn is_marked(message: &Object, kind: &str) -> bool {
    let marks: &[&str] = match kind {
        "ai" => &["additional_kwargs", "response_metadata", "invalid_tool_calls"],
        "tool" => &["additional_kwargs", "response_metadata", "tool_call_id"],
        "human" if message.len() == 2 => &["content"],
        _ => &["additional_kwargs", "response_metadata"],
    };
    marks.iter().any(|name| message.contains(name))
}

/// Returns the role of a message, its fields, and the parts of its content; `None` for anything else than a message of LangChain.
pub fn read(message: &Object) -> Option<(&'static str, &Object, Vec<Part>)> {
    let (role, fields) = unwrapped(message)?;
    let more = fields_of(fields, "additional_kwargs");
    let [mut before, mut after] = beside(more);
    let calls = [fields.get("tool_calls"), fields.get("invalid_tool_calls")];
    let mut calls: Vec<&Value> = calls.into_iter().flat_map(list_of).collect();
    if calls.is_empty() {
        calls = list_of(more.get("tool_calls")).iter().collect();
    } else {
        after.retain(|part| !matches!(part, Part::Call(_)));
    }
    before.extend(content_of(role, fields.get("content"), &calls));
    before.extend(after);
    Some((role, fields, before))
}

/// Returns the parts of the content without the calls that the message names beside it.
fn content_of(role: &str, content: Option<&Value>, calls: &[&Value]) -> Vec<Part> {
    let Some(Value::Array(parts)) = content else {
        return tagged::parts_by(role, content);
    };
    let ids: HashSet<Text> = calls.iter().filter_map(|call| text_at(*call, "id")).collect();
    let is_named = |part: &&Value| {
        let is_call = str_of(part.get("type")).is_some_and(|kind| CALLS.contains(&kind));
        let own = ["id", "call_id"].map(|name| text_at(*part, name));
        // Some have no ids at all.
        let has_none = own.iter().all(Option::is_none) && !calls.is_empty();
        is_call && (has_none || own.iter().flatten().any(|id| ids.contains(id)))
    };
    let own = parts.iter().filter(|part| !is_named(part));
    own.flat_map(parts_in).collect()
}
