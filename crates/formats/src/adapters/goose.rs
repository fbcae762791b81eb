//! Goose: `goose session export`, the same from `sessions.db`, and the JSON Lines of before version 1.10, which begin with a header.

use std::path::Path;

use knowledgepulse_json::{Object, Value, object};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Events, Origin},
    messages::add_said,
    parts::{call_of, result_of},
    values::{fields_of, first_of, list_of, object_of, or, str_of, string_of},
};

/// Kinds of parts that only Goose writes.
const OF_GOOSE: [&str; 3] = ["toolRequest", "toolResponse", "frontendToolRequest"];

/// Sessions of Goose.
pub struct Goose;

fn is_header(record: &Object) -> bool {
    record.contains("working_dir") && (record.contains("description") || record.contains("conversation"))
}

fn is_message(record: &Object) -> bool {
    let is_part = |part: &Value| str_of(part.get("type")).is_some_and(|kind| OF_GOOSE.contains(&kind));
    record.contains("role") && list_of(record.get("content")).iter().any(is_part)
}

impl Adapter for Goose {
    fn format(&self) -> FormatName {
        FormatName::Goose
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        let mut first = first.iter().map(|value| object_of(Some(value)));
        first.any(|record| is_header(record) || is_message(record))
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let record = object_of(Some(record));
        if !is_header(record) {
            return if record.contains("role") {
                add_message(say, record)
            } else {
                Ok(Decoded::Unknown)
            };
        }
        say.begin_run(record.get("id"), record.get("created_at"));
        say.fact("cwd", record.get("working_dir"));
        say.fact("summary", first_of(record, &["name", "description"]));
        let Some(messages) = record.get("conversation") else {
            return Ok(Decoded::Begins);
        };
        for message in list_of(messages.get("messages").or(Some(messages))) {
            add_message(say, object_of(Some(message)))?;
        }
        Ok(Decoded::Whole)
    }
}

fn add_message(say: &mut Events, message: &Object) -> Result<Decoded, Wrong> {
    say.begin(Origin {
        id: string_of(message.get("id")).cloned(),
        ..Origin::default()
    });
    if fields_of(message, "metadata").get("userVisible") == Some(&Value::Bool(false)) {
        say.leave_out("message of the program");
        return Ok(Decoded::GoesOn);
    }
    let mut parts = Vec::new();
    for part in list_of(message.get("content")) {
        match of_anthropic(part) {
            Ok(part) => parts.push(part),
            Err(kind) => say.leave_out(format!("{kind} part")),
        }
    }
    add_said(
        say,
        str_of(message.get("role")).unwrap_or_default(),
        Some(&parts.into()),
    )?;
    Ok(Decoded::GoesOn)
}

/// Returns a part as Anthropic writes it, or the kind of one that is the program's.
fn of_anthropic(part: &Value) -> Result<Value, &str> {
    let fields = object_of(Some(part));
    let id = fields.get("id");
    Ok(match str_of(fields.get("type")) {
        Some("toolRequest" | "frontendToolRequest") => {
            let call = fields_of(fields, "toolCall");
            let value = fields_of(call, "value");
            call_of(
                id,
                value.get("name"),
                or(value.get("arguments"), call.get("error")),
            )
        }
        Some("toolResponse") => {
            let result = fields_of(fields, "toolResult");
            let value = result.get("value");
            let content = value.and_then(|value| value.get("content")).or(value);
            let is_error = value.and_then(|value| value.get("isError")) == Some(&Value::Bool(true));
            let failed = (is_error || str_of(result.get("status")) == Some("error")).then_some(true);
            result_of(id, or(content, result.get("error")).cloned(), failed)
        }
        Some("redactedThinking") => object([("type", "redacted_thinking".into())]),
        Some("text" | "image" | "thinking") => part.clone(),
        kind => return Err(kind.unwrap_or("unknown")),
    })
}
