//! Forge: the conversations of `.forge.db`, whose messages are `{"message": {"text": …}}` or `{"message": {"tool": …}}`.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("forge", add_entry);

fn add_entry(say: &mut Events, entry: &Value) {
    let message = fields_of(entry, "message");
    let (text, tool) = (fields_of(message, "text"), fields_of(message, "tool"));
    say.begin_record(None, text.get("timestamp"));
    if message.contains("tool") {
        let output = fields_of(tool, "output");
        let failed = truth_of(output.get("is_error")).filter(|failed| *failed);
        return say.answer(text_at(tool, "call_id"), output.get("values"), failed);
    }
    say.first_fact("model", text.get("model"));
    let role = str_of(text.get("role")).unwrap_or_default();
    if role == "User" {
        // As the user wrote it, without what the program puts around it.
        let said = fields_of(text, "raw_content").get("Text");
        return say.say_content(TextKind::User, said.or(text.get("content")));
    }
    for thought in list_at(text, "reasoning_details") {
        say.say_content(TextKind::Reasoning, thought.get("text"));
    }
    add_as(say, text, &role.to_ascii_lowercase(), text.get("content"));
}
