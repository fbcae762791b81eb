//! Strands Agents: the messages of a session's agent, a file each, `session_ID/agents/agent_NAME/messages/message_0.json`.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("strands", add_record);

fn add_record(say: &mut Events, record: &Value) {
    // What a guardrail has put in its place.
    let message = first_of(record, &["redact_message", "message"]);
    let message = object_of(message);
    add_said(say, role_of(message), message.get("content"));
}
