//! Hermes: `hermes sessions export`, rows of `state.db`, and the JSON Lines of before, which begin with `session_meta`.

use crate::prelude::*;

pub static FORMAT: Format = Format::sessions("hermes", decode);

/// Returns the session of a record that has its messages.
fn session_of(record: &Value) -> Option<&Value> {
    let session = record.get("session").unwrap_or(record);
    let is_one = has_all(session, &["source", "started_at"]) || has_all(session, &["session_start"]);
    (is_one && record.get("messages").is_some()).then_some(session)
}

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    let header = is(record, "hermes-header").then(|| record.get("session").unwrap_or(record));
    let Some(session) = session_of(record).or(header) else {
        if record.get("role").is_none() {
            return Ok(Decoded::Unknown);
        }
        add_row(say, record, &mut true, true);
        return Ok(Decoded::GoesOn);
    };
    say.begin_run("hermes-facts", session);
    // Exports of sessions that go on with compacted ones have a parent too; those of sub-agents say so in their configuration.
    let config = session.get("model_config").map(Value::to_json);
    let is_delegate = config.is_none_or(|config| config.contains("_delegate_from"));
    say.sub_agent(is_delegate && has_text(session, PARENT), session.get(PARENT));
    if is(record, "hermes-header") {
        return Ok(Decoded::Begins);
    }
    let rows = list_at(record, "messages").iter();
    let was_compacted = rows.clone().any(|row| truth_in(row, "compacted") == Some(true));
    let mut has_ids = true;
    for row in rows.filter(|row| !is(row, "hermes-header")) {
        add_row(say, row, &mut has_ids, was_compacted);
    }
    Ok(Decoded::Whole)
}

/// Returns a name that a row and its copies have in common.
fn copy_of(row: &Value) -> Value {
    let fields = ["timestamp", "role", "tool_call_id", "content", "tool_calls"];
    let fields = fields.map(|name| row.get(name).cloned().unwrap_or_default());
    Value::from(fields.to_vec()).to_json().into()
}

fn truth_in(row: &Value, name: &str) -> Option<bool> {
    truth_of(row.get(name)).or(number_of(row.get(name)).map(|number| number != 0.0))
}

/// Adds a row. Where calls have no ids, their results are theirs by their order; `has_ids` is of the calls before. Where the session was
/// compacted, a row may be there twice.
fn add_row(say: &mut Events, row: &Value, has_ids: &mut bool, was_compacted: bool) {
    let time = row.get("timestamp");
    let is_compacted = truth_in(row, "compacted");
    match is_compacted.filter(|_| was_compacted) {
        // The tail of what was compacted is there again after the summary, at its old time.
        Some(_) => say.begin_record(Some(&copy_of(row)), time),
        None => say.begin_record(row.get("id"), time),
    }
    if truth_in(row, "active") == Some(false) && is_compacted != Some(true) {
        return say.leave_out("message that was taken back");
    }
    let mut message = object_of(Some(row)).clone();
    match parsed(first_of(row, &["tool_calls"])) {
        Some(calls) => *has_ids = list_of(Some(&calls)).iter().all(|call| call.get("id").is_some()),
        None if !*has_ids => drop(message.remove("tool_call_id")),
        None => {}
    }
    add_message(say, &message.into());
}
