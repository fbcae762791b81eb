//! Grok Build: `~/.grok/sessions/*/ID/updates.jsonl`, the updates of the Agent Client Protocol, which other programs write too; and
//! `chat_history.jsonl` beside it, what the model is given: the program takes old results and compacted turns out of that.

use crate::prelude::*;

pub static FORMAT: Format =
    Format::of_messages("grok", add_record).of_file("chat_history.jsonl", "grok-line");

fn add_record(say: &mut Events, record: &Value) {
    if is(record, "grok-update") {
        let update = object_of(first_at(record, "params/update update"));
        let about = fields_of(update, "_meta");
        say.begin(Origin {
            run: text_at(fields_of(record, "params"), "sessionId"),
            time: record.get("timestamp").cloned(),
            ordinal: number_of(about.get("promptIndex")),
            ..Origin::default()
        });
        if is_true(about, "hideFromScrollback") {
            return say.leave_out("prompt of the program");
        }
        return add_update(say, update);
    }
    say.begin_record(None, None);
    let content = record.get("content");
    match str_of(record.get("type")) {
        Some("user") => match str_of(record.get("synthetic_reason")) {
            None | Some("interjection") => say.say_content(TextKind::User, content),
            Some(reason) => say.leave_out(format!("message {reason}")),
        },
        Some("assistant") => {
            say.first_fact("model", record.get("model_id"));
            add_as(say, object_of(Some(record)), "assistant", content);
        }
        Some("tool_result") => say.answer(text_at(record, "tool_call_id"), content, None),
        Some("backend_tool_call") => {
            let call = fields_of(record, "kind");
            let name = str_of(call.get("tool_type"));
            let name = name.map(|name| name.strip_suffix("_call").unwrap_or(name).into());
            let args = first_of(call, &["action", "input", "code"]);
            say.call(Call::new(call.get("id"), name.as_ref(), args));
        }
        Some("reasoning") => add_message(say, record),
        _ => say.system(),
    }
}

fn add_update(say: &mut Events, update: &Object) {
    let kind = match str_of(update.get("sessionUpdate")).unwrap_or_default() {
        "user_message_chunk" => TextKind::User,
        "agent_message_chunk" => TextKind::Message,
        "agent_thought_chunk" => TextKind::Reasoning,
        "tool_call" => {
            let name = first_of(fields_of(update, "_meta"), &["toolName", "tool_name"]);
            let name = or(name, update.get("title"));
            say.call(Call::new(update.get("toolCallId"), name, update.get("rawInput")));
            return add_output(say, update);
        }
        "tool_call_update" => return add_output(say, update),
        "rewind_marker" => {
            let prompt = number_of(update.get("target_prompt_index")).map(Undo::Ordinal);
            return say.add_all(prompt.map(What::Undo));
        }
        kind => return say.leave_out(format!("event {kind}")),
    };
    let piece = Events::default().text_of(update.get("content"));
    say.add(What::Piece(kind, piece));
}

/// Adds the result of a call that has ended.
fn add_output(say: &mut Events, update: &Object) {
    let failed = match str_of(update.get("status")) {
        Some("completed") => None,
        Some("failed") => Some(true),
        _ => return,
    };
    let blocks = list_at(update, "content").iter();
    let blocks: Vec<_> = blocks
        .flat_map(|block| elements_of(block.get("content")))
        .cloned()
        .collect();
    let blocks = is_given(blocks.first()).then(|| blocks.into());
    let content = blocks.as_ref().or(update.get("rawOutput"));
    say.answer(text_at(update, "toolCallId"), content, failed);
}
