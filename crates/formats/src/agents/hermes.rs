//! Hermes: `hermes sessions export`, rows of `state.db`, and the JSON Lines of before, which begin with `session_meta`.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("hermes", add_row).end(add_parent);

/// Exports of sessions that go on with compacted ones have a parent too; those of sub-agents say so in their configuration.
fn add_parent(say: &mut Events, record: &Value) {
    let session = record.get("session").unwrap_or(record);
    let config = session.get("model_config").map(Value::to_json);
    let is_delegate = config.is_none_or(|config| config.contains("_delegate_from"));
    say.sub_agent(is_delegate && has_text(session, PARENT), session.get(PARENT));
}

/// Returns a name that a row and its copies have in common.
fn copy_of(row: &Value) -> Value {
    let fields = ["timestamp", "role", "tool_call_id", "content", "tool_calls"];
    let fields = fields.map(|name| row.get(name).cloned().unwrap_or_default());
    Value::from(fields.to_vec()).to_json().into()
}

fn add_row(say: &mut Events, row: &Value) {
    // The tail of what was compacted is there again after the summary, at its old time.
    let is_compacted = truth_of(row.get("compacted"));
    let name = is_compacted.map(|_| copy_of(row));
    say.begin_record(name.as_ref().or(row.get("id")), row.get("timestamp"));
    if truth_of(row.get("active")) == Some(false) && is_compacted != Some(true) {
        say.leave_out("message that was taken back");
    } else if str_of(row.get("display_kind")) == Some("hidden") {
        say.leave_out("message of the program");
    } else if !is(row, "hermes-header") {
        add_message(say, row);
    }
}
