//! Crush: the sessions of `PROJECT/.crush/crush.db`, whose messages have parts of a type and data.

use crate::{names, prelude::*};

pub(super) fn recognises(session: &Value, _path: Option<&Path>) -> bool {
    let messages = list_at(session, "messages").iter();
    let mut parts = messages.flat_map(|message| list_at(message, "parts")).peekable();
    let is_part = |part: &Value| {
        let is_kind = str_of(part.get("type")).is_some_and(|kind| names::has("crush", kind));
        is_kind && has_object(part, "data")
    };
    parts.peek().is_some() && parts.all(is_part)
}

pub(super) fn decode(session: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    let time = milliseconds_of(session.get("created_at"));
    say.begin_run(session.get("id"), time.as_ref());
    say.fact("summary", session.get("title"));
    say.of_sub_agent(has_text(session, "parent_session_id"));
    for message in list_at(session, "messages") {
        add_message(say, message)?;
    }
    Ok(Decoded::Whole)
}

fn add_message(say: &mut Events, message: &Value) -> Result<(), Wrong> {
    say.begin_record(message.get("id"), None);
    say.first_fact("model", message.get("model"));
    if number_of(message.get("is_summary_message")).is_some_and(|is_summary| is_summary != 0.0) {
        say.leave_out("summary of a compaction");
        return Ok(());
    }
    let mut parts = Vec::new();
    for part in list_at(message, "parts") {
        let data = fields_of(part, "data");
        let text = |name| data.get(name).cloned().unwrap_or_default();
        parts.push(match str_of(part.get("type")) {
            Some("text") => saying(text("text")),
            Some("reasoning") => thinking(&text("thinking")),
            Some("tool_call") => call_of(data.get("id"), data.get("name"), data.get("input")),
            Some("tool_result") => {
                let failed = is_true(data, "is_error").then_some(true);
                result_of(data.get("tool_call_id"), data.get("content").cloned(), failed)
            }
            Some("shell_command") => {
                let texts = ["command", "output"].map(|name| say.text_of(data.get(name)));
                say.say(TextKind::Event, joined(texts, "\n"));
                continue;
            }
            Some("image_url" | "binary") => kind_alone("image"),
            _ => continue,
        });
    }
    if parts.is_empty() || text_at(message, "role").is_none() {
        return Ok(());
    }
    add_by(say, message, Some(&parts.into()))
}
