//! Google's Agent Development Kit: sessions with their events, as `Session.model_dump_json` writes them with aliases or without, rows of
//! its services for databases, and events one a line.

use crate::prelude::*;

pub static FORMAT: Format = Format::sessions(
    "google-adk",
    |record| is_session(record) || is_event(record),
    decode,
)
.of_any_domain();

/// What an event of the kit is told by.
fn is_event(record: &Value) -> bool {
    has_text(record, "author")
        && first_of(record, &["invocationId", "invocation_id"]).is_some()
        && has_object(record, "actions")
}

fn is_session(record: &Value) -> bool {
    let has_name = first_of(record, &["appName", "app_name"]).is_some();
    let first = list_at(record, "events").first();
    has_name && has_list(record, "events") && first.is_none_or(is_event)
}

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    if is_session(record) {
        say.begin_run(record.get("id"), None);
        say.fact("app_name", first_of(record, &["appName", "app_name"]));
        list_at(record, "events")
            .iter()
            .for_each(|event| add_event(say, event));
        return Ok(Decoded::Whole);
    }
    if !is_event(record) {
        return Ok(Decoded::Unknown);
    }
    add_event(say, record);
    Ok(Decoded::GoesOn)
}

fn add_event(say: &mut Events, event: &Value) {
    say.begin_record(event.get("id"), milliseconds_of(event.get("timestamp")).as_ref());
    say.first_fact("model", first_of(event, &["modelVersion", "model_version"]));
    if is_true(event, "partial") {
        return say.leave_out("piece of a message");
    }
    let acts = |names: &[&str]| first_of(fields_of(event, "actions"), names).is_some();
    if acts(&["rewindBeforeInvocationId", "rewind_before_invocation_id"]) {
        say.leave_out("event rewind");
    }
    if acts(&["compaction"]) {
        return say.leave_out("summary of a compaction");
    }
    let kind = if str_of(event.get("author")) == Some("user") {
        TextKind::User
    } else {
        TextKind::Message
    };
    let parts = list_at(fields_of(event, "content"), "parts").iter();
    say.say_parts(kind, parts.flat_map(parts_in));
    if let Some(error) = first_of(event, &["errorMessage", "error_message"]) {
        say.say_content(TextKind::Event, Some(error));
    }
}
