//! Messages of LangChain and LangGraph, in Python and JavaScript: as `dumpd` and `toJSON` write them, as `messages_to_dict` does, and as
//! `model_dump` does.

use knowledgepulse_json::{Object, Value};

use crate::{
    parts::{Call, Part, beside},
    shapes::is,
    tagged,
    values::*,
};

/// Returns whether a value is a message of LangChain.
pub fn is_message(value: &Value) -> bool {
    unwrapped(value).is_some()
}

/// Returns the role of a message and its fields, in whichever way it was written.
pub fn unwrapped(message: &Value) -> Option<(&'static str, &Object)> {
    let kind = str_of(message.get("type"))?;
    let (kind, fields) = match kind {
        "constructor" => {
            let class = list_of(message.get("id")).last()?;
            (class.as_str()?, fields_of(message, "kwargs"))
        }
        kind => match message.get("data") {
            Some(Value::Object(data)) => (kind, data),
            // Messages of others have a type too.
            _ if !is(message, "langchain-message") => return None,
            _ => (kind, object_of(Some(message))),
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

/// Returns the role of a message, its fields, and the parts of its content; `None` for anything else than a message of LangChain.
pub fn read(message: &Value) -> Option<(&'static str, &Object, Vec<Part>)> {
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
    // The content may have the same calls, which some write without ids.
    let named: Vec<_> = calls.iter().map(|call| Call::of(*call).id).collect();
    let is_named = |call: &Call| call.id.is_none() || named.contains(&call.id);
    let mut content = tagged::parts_by(role, fields.get("content"));
    content.retain(|part| named.is_empty() || !matches!(part, Part::Call(call) if is_named(call)));
    // Reasoning may be in both, too.
    if content.iter().any(|part| matches!(part, Part::Thought(Some(_)))) {
        before.clear();
    }
    before.extend(content);
    before.extend(after);
    Some((role, fields, before))
}
