//! Pydantic AI: the messages of a run as `all_messages_json()` writes them, requests and responses with parts by `part_kind`, in a list or in a
//! field of a record.

use std::borrow::Cow;

use crate::prelude::*;

pub static FORMAT: Format =
    Format::sessions("pydantic-ai", decode).also(|record| messages_of(record).is_some());

/// Returns the messages of a run, which may be JSON in a text.
fn messages_of(record: &Value) -> Option<Cow<'_, [Value]>> {
    let list = |name: &str| match record.get(name)? {
        Value::Array(list) => Some(Cow::Borrowed(&list[..])),
        Value::String(text) if text.contains("part_kind") => match parse_str(text) {
            Ok(Value::Array(list)) => Some(Cow::Owned(list)),
            _ => None,
        },
        _ => None,
    };
    let mut lists = words("pydantic-ai-list").filter_map(list);
    lists.find(|list| list.first().is_some_and(|first| is(first, "pydantic-ai")))
}

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    if let Some(messages) = messages_of(record) {
        say.begin_run("pydantic-ai-facts", record);
        messages.iter().for_each(|message| add_request(say, message));
        return Ok(Decoded::Whole);
    }
    if !is(record, "pydantic-ai") {
        return Ok(Decoded::Unknown);
    }
    add_request(say, record);
    Ok(Decoded::GoesOn)
}

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
