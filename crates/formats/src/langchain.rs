//! Messages of LangChain and LangGraph, in Python and JavaScript: as `dumpd` and `toJSON` write them, as `messages_to_dict` does, and as
//! `model_dump` does.

use std::collections::HashSet;

use knowledgepulse_json::{Object, Text, Value};

use crate::values::*;

/// Types of parts that are calls, which `tool_calls` has too.
const CALLS: &[&str] = &[
    "tool_use",
    "tool_call",
    "tool_call_chunk",
    "invalid_tool_call",
    "function_call",
];

/// Fields of messages that have a meaning.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "content", "additional_kwargs", "response_metadata", "type", "role", "example", "tool_calls", "invalid_tool_calls",
    "tool_call_chunks", "usage_metadata", "artifact", "chunk_position",
];

/// Returns whether a value is a message of LangChain.
pub fn is_message(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|message| unwrapped(message).is_some())
}

/// Returns the role of a message and its fields, in whichever way it was written.
fn unwrapped(message: &Object) -> Option<(&'static str, &Object)> {
    let kind = str_of(message.get("type"))?;
    let (kind, fields) = match kind {
        "constructor" => {
            let class = list_of(message.get("id")).last()?;
            (class.as_str()?, fields_of(message, "kwargs"))
        }
        kind => match message.get("data") {
            Some(Value::Object(data)) => (kind, data),
            // Messages of others have a type too.
            _ if !message.contains("additional_kwargs") && !message.contains("response_metadata") => {
                return None;
            }
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

/// Returns the message of a chat that this one stands for; `None` for anything else than a message of LangChain.
pub fn translated(message: &Object) -> Option<Value> {
    let (role, fields) = unwrapped(message)?;
    let more = fields_of(fields, "additional_kwargs");
    let calls = [fields.get("tool_calls"), fields.get("invalid_tool_calls")];
    let mut calls: Vec<Value> = calls.into_iter().flat_map(list_of).cloned().collect();
    if calls.is_empty() {
        calls = list_of(more.get("tool_calls")).to_vec();
    }
    let content = content_of(fields.get("content"), more, &calls);
    let call = more.get("function_call").filter(|_| calls.is_empty());
    let own = [
        ("role", Some(role.into())),
        ("content", Some(content)),
        ("tool_calls", (!calls.is_empty()).then(|| calls.into())),
        ("function_call", call.cloned()),
        ("reasoning_content", more.get("reasoning_content").cloned()),
        ("refusal", more.get("refusal").cloned()),
    ];
    let own = own
        .into_iter()
        .filter_map(|(name, value)| Some((name.into(), value?)));
    let others = fields_where(fields, |name, value| {
        is_given(Some(value)) && !KNOWN.contains(&name)
    });
    Some(Value::Object(own.chain(others).collect()))
}

/// Returns the content without the calls that the message names beside it, and with reasoning that is beside it.
fn content_of(content: Option<&Value>, more: &Object, calls: &[Value]) -> Value {
    let reasoning = more.get("reasoning").filter(|_| has_object(more, "reasoning"));
    let parts = match content {
        Some(Value::Array(parts)) => parts,
        content if reasoning.is_none() => return content.cloned().unwrap_or_default(),
        content => elements_of(content),
    };
    let ids: HashSet<Text> = calls.iter().filter_map(|call| text_at(call, "id")).collect();
    let is_named = |part: &&Value| {
        let is_call = str_of(part.get("type")).is_some_and(|kind| CALLS.contains(&kind));
        let own = ["id", "call_id"].map(|name| text_at(*part, name));
        // Some have no ids at all.
        let has_none = own.iter().all(Option::is_none) && !calls.is_empty();
        is_call && (has_none || own.iter().flatten().any(|id| ids.contains(id)))
    };
    let own = parts.iter().filter(|part| !is_named(part));
    let parts = reasoning.into_iter().chain(own).map(part_of);
    parts.collect::<Vec<_>>().into()
}

/// Returns a part in the terms of `messages`.
fn part_of(part: &Value) -> Value {
    match (str_of(part.get("type")), part.as_object()) {
        (Some("non_standard"), _) => part.get("value").cloned().unwrap_or_default(),
        // A summary of reasoning may have no type.
        (None, Some(fields)) if fields.contains("summary") => {
            let mut fields = fields.clone();
            fields.insert("type", "reasoning");
            fields.into()
        }
        _ => part.clone(),
    }
}
