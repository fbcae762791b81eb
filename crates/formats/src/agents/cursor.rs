//! Cursor: the transcripts of its CLI (`~/.cursor/projects/*/agent-transcripts/`), which have neither ids nor results; its chats
//! (`chats/*/ID/store.db`), messages of the AI SDK; what the CLI prints with `--output-format stream-json`; and the composers of its IDE in
//! `state.vscdb`, each with its bubbles.

use jiff::{civil::DateTime, tz::Offset};

use crate::{date::to_iso, prelude::*};

pub static FORMAT: Format = Format::of_messages("cursor", add_record).end(add_parent);

/// What stands in the transcripts for a thought that they do not keep, at the end of a text.
const REDACTED: &str = "[REDACTED]";

/// A composer of a sub-agent, or one of several that were given the same prompt, names that of the user.
fn add_parent(say: &mut Events, composer: &Value) {
    let parent = first_at(composer, "subagentInfo/parentComposerId parentComposerId");
    say.sub_agent(parent.is_some() || has_object(composer, "subagentInfo"), parent);
}

fn add_record(say: &mut Events, record: &Value) {
    if is(record, "cursor-printed") {
        return add_printed(say, record);
    }
    if record.get("role").is_some() && record.get("message").is_none() {
        // The ids of messages are numbers that are there again.
        say.begin_record(None, None);
        return add_message(say, record);
    }
    if !is(record, "cursor-line") {
        return add_bubble(say, record);
    }
    say.begin_record(record.get("id"), None);
    let message = fields_of(record, "message");
    say.first_fact("model", message.get("model"));
    let content = message.get("content");
    if role_of(record) == "user" {
        let time = parts_of(content).into_iter().find_map(|part| match part {
            Part::Text(text) => time_in(&text),
            _ => None,
        });
        say.at(time.map(Value::from).as_ref());
        return add_said(say, role_of(record), content);
    }
    let mut parts = parts_of(content);
    for part in &mut parts {
        if let Part::Text(text) = part
            && let Some(said) = text.as_str().trim_end().strip_suffix(REDACTED)
        {
            say.leave_out("encrypted reasoning");
            *text = said.trim_end().into();
        }
    }
    add_parts(say, object_of(None), "assistant", parts);
}

/// Returns the time that the CLI writes before what a user says, in ISO 8601: `<timestamp>Monday, Sep 28, 2026, 9:14 AM (UTC+2)</timestamp>`.
fn time_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<timestamp>")?;
    let (time, _) = rest.split_once(")</timestamp>")?;
    let (time, zone) = time.split_once(" (UTC")?;
    let time = DateTime::strptime("%A, %b %d, %Y, %I:%M %p", time).ok()?;
    let (hours, minutes) = zone.split_once(':').unwrap_or((zone, "0"));
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let hours: i32 = if hours.is_empty() { 0 } else { hours.parse().ok()? };
    let minutes: i32 = minutes.parse().ok()?;
    let offset = Offset::from_seconds(hours * 3600 + sign * minutes * 60).ok()?;
    offset.to_timestamp(time).ok().map(to_iso)
}

/// Adds a record that the CLI prints.
fn add_printed(say: &mut Events, record: &Value) {
    say.begin_in_run(text_at(record, "session_id"), record.get("timestamp_ms"));
    let message = fields_of(record, "message");
    match str_of(record.get("type")).unwrap_or_default() {
        "user" | "assistant" => add_said(say, role_of(message), message.get("content")),
        "thinking" => {
            let text = text_at(record, "text");
            say.add_all(text.map(|text| What::Piece(TextKind::Reasoning, text)));
        }
        "tool_call" => {
            // `{"readToolCall": {"args": {…}, "result": {"success": {…}}}}`; the call is there when it is started and when it is over.
            let (name, call) = fields_of(record, "tool_call").iter().next().unzip();
            let name = name.map(|name| name.strip_suffix("ToolCall").unwrap_or(name).into());
            let call = object_of(call);
            say.call(Call::new(record.get("call_id"), name.as_ref(), call.get("args")));
            if let Some((state, result)) = fields_of(call, "result").iter().next() {
                let content =
                    first_of(result, &["content", "output", "stdout", "error", "message"]).or(Some(result));
                let failed = (state != "success").then_some(state != "rejected");
                say.answer(text_at(record, "call_id"), content, failed);
            }
        }
        kind => {
            say.facts("printed-facts", record);
            if is_true(record, "is_error") {
                say.add(What::Success(false));
            }
            say.leave_out(format!("event {kind}"));
        }
    }
}

fn add_bubble(say: &mut Events, bubble: &Value) {
    let time = first_of(bubble, &["createdAt", "timestamp"]);
    say.begin_record(bubble.get("bubbleId"), time);
    let text = or(bubble.get("text"), bubble.get("rawText"));
    let kind = bubble.get("type");
    if number_of(kind) == Some(1.0) || str_of(kind) == Some("user") {
        return say.say_content(TextKind::User, text);
    }
    if let Some(thought) = text_at(fields_of(bubble, "thinking"), "text") {
        say.say(TextKind::Reasoning, thought);
    }
    say.say_content(TextKind::Message, text);
    add_tool(say, fields_of(bubble, "toolFormerData"));
}

/// What a tool did is in the bubble of its call; texts of JSON are in each field.
fn add_tool(say: &mut Events, tool: &Object) {
    if string_of(tool.get("name")).is_none() {
        return;
    }
    let id = first_of(tool, &["toolCallId"]);
    let args = first_of(tool, &["rawArgs", "params"]);
    say.call(Call::new(id, tool.get("name"), args));
    let error = parsed(tool.get("error"));
    let error = error.as_deref();
    let error = error.and_then(|error| error.get("modelVisibleErrorMessage"));
    let result = error.or_else(|| first_of(tool, &["error", "result"]));
    let failed = match str_of(tool.get("status")) {
        Some("loading" | "pending") => return,
        Some("error") => Some(true),
        Some("cancelled") => Some(false),
        _ => None,
    };
    if is_given(result) {
        say.answer(string_of(id).cloned(), result, failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_the_cli_writes_is_read_with_its_zone() {
        for (time, iso) in [
            (
                "Monday, Sep 28, 2026, 9:14 AM (UTC+2)",
                Some("2026-09-28T07:14:00.000Z"),
            ),
            (
                "Tuesday, Dec 1, 2026, 12:05 AM (UTC-3:30)",
                Some("2026-12-01T03:35:00.000Z"),
            ),
            (
                "Tuesday, Dec 1, 2026, 12:05 PM (UTC)",
                Some("2026-12-01T12:05:00.000Z"),
            ),
            ("Monday, Sep 28, 2026, 9:14 AM (UTC+99)", None),
            ("soon (UTC+2)", None),
        ] {
            let text = format!("<timestamp>{time}</timestamp>\n<user_query>\nHello\n</user_query>");
            assert_eq!(time_in(&text).as_deref(), iso, "{time}");
        }
    }
}
