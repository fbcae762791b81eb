//! Letta Code: the transcript of its client, `transcript.jsonl`; a call has its result in the same row.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("letta", add_row);

fn add_row(say: &mut Events, row: &Value) {
    let text = row.get("text");
    match str_of(row.get("kind")) {
        Some("user") => say.say_content(TextKind::User, text),
        Some("assistant") => say.say_content(TextKind::Message, text),
        Some("reasoning") => say.say_content(TextKind::Reasoning, text),
        Some("tool_call") => {
            let id = first_of(row, &["source_line_id", "source_message_id"]);
            say.call(Call::new(id, row.get("name"), row.get("argsText")));
            let is_ok = truth_of(row.get("resultOk"));
            if is_given(row.get("resultText")) || is_ok.is_some() {
                say.answer(
                    string_of(id).cloned(),
                    row.get("resultText"),
                    is_ok.map(|is_ok| !is_ok),
                );
            }
        }
        _ => say.leave_out("event error"),
    }
}
