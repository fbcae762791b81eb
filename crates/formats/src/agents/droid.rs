//! Droid of Factory: `~/.factory/sessions/*/*.jsonl`, messages of Anthropic in records of type `message`; and what
//! `droid exec --output-format stream-json` prints.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("droid", add_record);

fn add_record(say: &mut Events, record: &Value) {
    let kind = str_of(record.get("type")).unwrap_or_default();
    if is(record, "droid-printed") {
        return add_printed(say, record, kind);
    }
    say.begin_message(rows_of("droid-entry"), record);
    let message = fields_of(record, "message");
    add_as(say, message, role_of(message), message.get("content"));
}

/// Adds a record that `droid exec` prints. The last message is in the `completion` again.
fn add_printed(say: &mut Events, record: &Value, kind: &str) {
    let session = first_of(record, &["session_id", "sessionId"]);
    say.begin_in_run(id_of(session), record.get("timestamp"));
    let id = first_of(record, &["toolCallId", "id"]);
    match kind {
        "message" => add_said(say, role_of(record), record.get("text")),
        "tool_call" => say.call(Call::of(record)),
        "tool_result" => say.answer(id_of(id), record.get("value"), failure_of(record)),
        _ => {
            say.facts("printed-facts", record);
            say.leave_out(format!("event {kind}"));
        }
    }
}
