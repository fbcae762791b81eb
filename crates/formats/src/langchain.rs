//! Messages of LangChain and LangGraph, in Python and JavaScript: as `dumpd` and `toJSON` write them, as `messages_to_dict` does, and as
//! `model_dump` does.

use knowledgepulse_json::{Object, Value};

use crate::{shapes::is, values::*, words::row_where};

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
    let kind = kind.strip_suffix("Message").unwrap_or(kind);
    let role_by = |table, name| row_where(table, |of| of == name).map(|[_, role]| role);
    let own = str_of(fields.get("role")).and_then(|role| role_by("speaker", role));
    let own = own.filter(|_| matches!(kind, "Chat" | "chat" | "generic"));
    Some((own.or(role_by("langchain-type", kind))?, fields))
}
