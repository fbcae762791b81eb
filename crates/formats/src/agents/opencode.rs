//! opencode and its forks (Kilo, MiMoCode, ZCode): `opencode export`, and the same from `opencode.db`.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("opencode", add_message_of).end(take_back);

/// Takes back what the user went back before.
fn take_back(say: &mut Events, session: &Value) {
    say.begin(Origin::default());
    if let Some(from) = string_of(first_at(session, "info/revert/partID info/revert/messageID")) {
        say.add(What::Undo(Undo::FromIfThere(from.clone())));
    }
}

fn add_message_of(say: &mut Events, message: &Value) {
    if is(message, "opencode-printed") {
        say.begin_in_run(text_at(message, "sessionID"), message.get("timestamp"));
        let part = message.get("part").into_iter();
        return part.for_each(|part| add_part(say, part));
    }
    if let Some(kind) = str_of(message.get("type")) {
        return add_newer(say, message, kind);
    }
    let info = fields_of(message, "info");
    let time = fields_of(info, "time").get("created");
    say.begin_record(info.get("id"), time);
    say.first_fact("model", info.get("modelID"));
    let parts = list_at(message, "parts");
    if is_true(info, "summary") {
        say.leave_out("summary of a compaction");
    } else if str_of(info.get("role")) == Some("user") {
        let parts: Vec<_> = parts.iter().filter_map(|part| of_user(say, part)).collect();
        say.say_parts(TextKind::User, parts);
    } else {
        for part in parts {
            say.begin_record(part.get("id"), time);
            add_part(say, part);
        }
    }
}

/// Adds a message of version 2, which has a type and its parts in its content.
fn add_newer(say: &mut Events, message: &Value, kind: &str) {
    let time = fields_of(message, "time").get("created");
    say.begin_record(message.get("id"), time);
    match kind {
        "user" => say.say_content(TextKind::User, message.get("text")),
        "shell" => say.say_shell(message),
        "assistant" => {
            say.first_fact("model", fields_of(message, "model").get("id"));
            let parts = list_at(message, "content").iter();
            parts.for_each(|part| add_part(say, part));
        }
        "synthetic" | "system" => say.leave_out("message of the program"),
        "compaction" => say.leave_out("summary of a compaction"),
        kind => say.leave_out(format!("message {kind}")),
    }
}

fn add_part(say: &mut Events, part: &Value) {
    match str_of(part.get("type")) {
        Some("text") => say.say_content(TextKind::Message, part.get("text")),
        Some("reasoning") => say.say_content(TextKind::Reasoning, part.get("text")),
        Some("tool") => add_tool(say, part),
        kind => say.leave_out(format!("{} part", kind.unwrap_or("unknown"))),
    }
}

/// Returns a part of the user's turn; others are the program's.
fn of_user(say: &mut Events, part: &Value) -> Option<Part> {
    match str_of(part.get("type")) {
        Some("text") if !is_true(part, "synthetic") && !is_true(part, "ignored") => {
            text_at(part, "text").map(Part::Text)
        }
        Some("file") => {
            let is_image = str_of(part.get("mime")).is_some_and(|mime| mime.starts_with("image/"));
            Some(Part::Picture(if is_image { "image" } else { "file" }.into()))
        }
        kind => {
            say.leave_out(format!("{} part", kind.unwrap_or("unknown")));
            None
        }
    }
}

/// Adds a call, and its result if it has ended.
fn add_tool(say: &mut Events, part: &Value) {
    let (id, state) = (first_of(part, &["callID", "id"]), fields_of(part, "state"));
    say.call(Call::new(
        id,
        first_of(part, &["tool", "name"]),
        state.get("input"),
    ));
    let id = id_of(id);
    let code = first_of(fields_of(state, "metadata"), &["exit", "exitCode"]);
    let error = first_at(state, "error/message error");
    match str_of(state.get("status")) {
        Some("completed") => say.answer(
            id.clone(),
            first_of(state, &["output", "content"]),
            failed_by(code),
        ),
        Some("error") => say.answer(id.clone(), error, Some(true)),
        _ => return,
    }
    let [start, end] = ["start", "end"].map(|name| number_of(fields_of(state, "time").get(name)));
    if let (Some(id), Some(start), Some(end)) = (id, start, end) {
        say.add(What::Took(id, end - start));
    }
}
