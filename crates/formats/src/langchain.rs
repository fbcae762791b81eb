//! Messages of LangChain and LangGraph, in Python and JavaScript: as `dumpd` and `toJSON` write them, as `messages_to_dict` does, and as
//! `model_dump` does.

use knowledgepulse_json::{Object, Value};

use crate::{shapes::is, values::*};

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
