//! Continue: `~/.continue/sessions/ID.json`, with the types of `core/index.d.ts` in continuedev/continue.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("continue", add_item).beside(beside);

/// Says when a session began, by the list of its folder.
fn beside(path: &Path, say: &mut Events) {
    if let Some(time) = listed_beside(path, None).and_then(|entry| numeric_of(entry.get("dateCreated"))) {
        say.begin_record(None, Some(&time.into()));
    }
}

fn add_item(say: &mut Events, item: &Value) {
    let message = fields_of(item, "message");
    let content = message.get("content");
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn beside_says_when_a_session_began_by_its_entry_in_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let list = r#"[
          {"sessionId": "s1", "title": "Plant {beans} \"s2\"", "dateCreated": "1795600000001"},
          {"title": "s3", "sessionId": "s2", "dateCreated": "1795600000002"},
          {"sessionId": "s4", "title": "s5"}
        ]"#;
        fs::write(folder.path().join("sessions.json"), list).unwrap();
        for (id, time) in [
            ("s1", Some("1795600000001")),
            ("s2", Some("1795600000002")),
            ("s3", None),
            ("s4", None),
            ("s5", None),
        ] {
            let mut say = Events::default();
            beside(&folder.path().join(format!("{id}.json")), &mut say);
            let events = say.list;
            let told = events
                .first()
                .and_then(|event| event.origin.time.as_ref().map(Value::to_json));
            assert_eq!(told.as_deref(), time, "{id}");
        }
    }
}
