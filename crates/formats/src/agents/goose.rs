//! Goose: `goose session export`, the same from `sessions.db`, and the JSON Lines of before version 1.10, which begin with a header.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("goose", add_message_of).end(add_facts);

fn add_facts(say: &mut Events, record: &Value) {
    let is_sub_agent = str_of(record.get("session_type")) == Some("sub_agent");
    say.sub_agent(is_sub_agent, record.get(PARENT));
    say.fact("model", input_of(record.get("model_config")).get("model_name"));
}

fn add_message_of(say: &mut Events, message: &Value) {
    if is_of_program(message) {
        return say.leave_out(OF_PROGRAM);
    }
    let mut parts = Vec::new();
    for part in list_at(message, "content") {
        match parts_of_one(part) {
            Ok(more) => parts.extend(more),
            Err(kind) => say.leave_out(format!("{kind} part")),
        }
    }
    add_parts(say, object_of(None), role_of(message), parts);
}

/// Returns the parts that one stands for, or the kind of one that is the program's.
fn parts_of_one(part: &Value) -> Result<Vec<Part>, &str> {
    let id = part.get("id");
    Ok(match str_of(part.get("type")) {
        Some("toolRequest" | "frontendToolRequest") => {
            let call = fields_of(part, "toolCall");
            let value = fields_of(call, "value");
            let args = or(value.get("arguments"), call.get("error"));
            vec![Part::call(id, value.get("name"), args)]
        }
        Some("toolResponse") => {
            let result = fields_of(part, "toolResult");
            let value = result.get("value");
            let content = value.and_then(|value| value.get("content")).or(value);
            let is_error = is_true(object_of(value), "isError");
            let failed = (is_error || str_of(result.get("status")) == Some("error")).then_some(true);
            vec![Part::result(id, or(content, result.get("error")), failed)]
        }
        Some("redactedThinking") => vec![Part::Thought(None)],
        Some("text" | "image" | "thinking") => parts_in(part),
        kind => return Err(kind.unwrap_or("unknown")),
    })
}
