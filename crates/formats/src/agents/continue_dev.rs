//! Continue: `~/.continue/sessions/ID.json`, with the types of `core/index.d.ts` in continuedev/continue.

use crate::{input::text_of_small, prelude::*};

pub static FORMAT: Format = Format::sessions("continue", decode).beside(beside);

/// Says when a session began, by `sessions.json` beside it.
fn beside(path: &Path, say: &mut Events) {
    let list = text_of_small(&path.with_file_name("sessions.json"));
    let list = list.and_then(|list| parse_str(&list).ok()).unwrap_or_default();
    let is_own = |session: &&Value| {
        path.file_stem()
            .is_some_and(|id| str_of(session.get("sessionId")) == id.to_str())
    };
    if let Some(session) = list_of(Some(&list)).iter().find(is_own) {
        let time = str_of(session.get("dateCreated")).and_then(|time| time.parse::<f64>().ok());
        say.begin_record(None, time.map(Value::from).as_ref());
    }
}

fn decode(session: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    say.begin_run("continue-facts", session);
    for item in list_at(session, "history") {
        add_item(say, item);
    }
    Ok(Decoded::Whole)
}

fn add_item(say: &mut Events, item: &Value) {
    let message = fields_of(item, "message");
    let content = message.get("content");
    say.first_fact("model", fields_of(message, "usage").get("model"));
    say.begin(Origin::default());
    if let Some(thought) = text_at(fields_of(item, "reasoning"), "text") {
        say.say(TextKind::Reasoning, thought);
    }
    match str_of(message.get("role")).unwrap_or_default() {
        "thinking" => say.say_content(TextKind::Reasoning, content),
        role => add_as(say, message, role, content),
    }
    for state in list_at(item, "toolCallStates") {
        add_state(say, state);
    }
}

/// What became of a call. Its output may be in a message too.
fn add_state(say: &mut Events, state: &Value) {
    let Some(id) = id_of(state.get("toolCallId")) else {
        return;
    };
    match str_of(state.get("status")) {
        Some("errored") => say.add(What::Failed(id.clone(), true)),
        Some("canceled") => say.add(What::Failed(id.clone(), false)),
        _ => {}
    }
    let output = list_at(state, "output").iter();
    let output: Vec<_> = output.filter_map(|item| item.get("content")).cloned().collect();
    if !output.is_empty() {
        say.answer(Some(id), Some(&output.into()), None);
    }
}
