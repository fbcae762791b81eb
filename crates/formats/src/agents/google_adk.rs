//! Google's Agent Development Kit: sessions with their events, as `Session.model_dump_json` writes them with aliases or without, rows of
//! its services for databases, and events one a line.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("google-adk", add_event);

/// Adds a turn of a case: the user's words, what the agent said on the way, its calls with their results, and its answer.
fn add_turn(say: &mut Events, turn: &Value) {
    let get = |names: &[&str]| object_of(first_of(turn, names));
    let parts = |names| parts_of(get(names).get("parts"));
    say.begin_record(None, None);
    say.say_parts(TextKind::User, parts(&["userContent", "user_content"]));
    let between = get(&["intermediateData", "intermediate_data"]);
    let lists = |names| list_of(first_of(between, names)).iter();
    for said in lists(&["intermediateResponses", "intermediate_responses"]) {
        say.say_parts(TextKind::Message, parts_of(list_of(Some(said)).get(1)));
    }
    for call in lists(&["toolUses", "tool_uses"]) {
        say.call(Call::of(call));
    }
    for result in lists(&["toolResponses", "tool_responses"]) {
        say.say_parts(TextKind::Event, [Part::named("function_response", result)]);
    }
    say.say_parts(TextKind::Message, parts(&["finalResponse", "final_response"]));
}

fn add_event(say: &mut Events, event: &Value) {
    if !is(event, "google-adk-line") {
        return add_turn(say, event);
    }
    say.begin_record(event.get("id"), event.get("timestamp"));
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
    let is_user = str_of(event.get("author")) == Some("user");
    let role = if is_user { "user" } else { "assistant" };
    add_parts(
        say,
        object_of(None),
        role,
        parts_of(fields_of(event, "content").get("parts")),
    );
    if let Some(error) = first_of(event, &["errorMessage", "error_message"]) {
        say.say_content(TextKind::Event, Some(error));
    }
}
