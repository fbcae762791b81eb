//! Pydantic AI: the messages of a run as `all_messages_json()` writes them, requests and responses with parts by `part_kind`, in a list or in a
//! field of a record.

use crate::prelude::*;

pub static FORMAT: Format =
    Format::of_messages("pydantic-ai", add_request).also(|record| FORMAT.list_in(record).is_some());

fn add_request(say: &mut Events, message: &Value) {
    let parts = list_at(message, "parts");
    say.begin_record(None, first_at(message, "timestamp parts/0/timestamp"));
    say.session(message.get("conversation_id"));
    say.first_fact("model", message.get("model_name"));
    if message.get("instructions").is_some_and(|text| !text.is_null()) {
        say.system();
    }
    for part in parts {
        let content = part.get("content");
        let id = part.get("tool_call_id");
        let is_of_tool = has_text(part, "tool_name");
        match str_of(part.get("part_kind")).unwrap_or_default() {
            "system-prompt" => say.system(),
            "user-prompt" => say.say_parts(TextKind::User, elements_of(content).iter().flat_map(part_of)),
            "text" => say.say_parts(TextKind::Message, parts_of(content)),
            "thinking" => say.say_parts(TextKind::Message, [Part::Thought(text_at(part, "content"))]),
            "tool-call" | "builtin-tool-call" => say.call(Call::of(part)),
            "tool-return" | "builtin-tool-return" => {
                let failed = match str_of(part.get("outcome")) {
                    Some("failed" | "retried") => Some(true),
                    Some("denied") => Some(false),
                    _ => None,
                };
                let text = content.map(|content| Value::from(json_of(content).into_owned()));
                say.answer(id_of(id), text.as_ref(), failed);
            }
            "retry-prompt" if is_of_tool => say.answer(id_of(id), content, Some(true)),
            "retry-prompt" => say.say_content(TextKind::Event, content),
            _ => say.say_parts(TextKind::Message, part_of(part)),
        }
    }
}

/// Returns one part of a user's prompt: a text, or a file by its kind.
fn part_of(part: &Value) -> Vec<Part> {
    match str_of(first_of(part, &["kind", "part_kind"])) {
        Some(kind) if !has_text(part, "content") => vec![Part::Picture(kind.into())],
        _ => parts_in(part),
    }
}
