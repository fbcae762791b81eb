//! Continue: `~/.continue/sessions/ID.json`, with the types of `core/index.d.ts` in continuedev/continue.

use std::path::Path;

use knowledgepulse_json::{Object, Value};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Call, Events, Origin, Outcome, TextKind, What},
    messages::add_said,
    values::{fields_of, id_of, list_of, object_of, str_of, string_of},
};

/// Sessions of Continue.
pub struct ContinueDev;

impl Adapter for ContinueDev {
    fn format(&self) -> FormatName {
        FormatName::Continue
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| {
            let session = object_of(Some(value));
            let history = list_of(session.get("history"));
            let is_item = |item: &Value| {
                item.get("message")
                    .is_some_and(|message| message.get("role").is_some())
            };
            session.contains("sessionId") && !history.is_empty() && history.iter().all(is_item)
        })
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let session = object_of(Some(record));
        say.begin_run(session.get("sessionId"), None);
        let facts = [
            ("summary", "title"),
            ("cwd", "workspaceDirectory"),
            ("model", "chatModelTitle"),
        ];
        for (name, field) in facts {
            say.fact(name, session.get(field));
        }
        for item in list_of(session.get("history")) {
            add_item(say, object_of(Some(item)))?;
        }
        Ok(Decoded::Whole)
    }
}

fn add_item(say: &mut Events, item: &Object) -> Result<(), Wrong> {
    let message = fields_of(item, "message");
    let content = message.get("content");
    say.begin(Origin::default());
    if let Some(thought) = string_of(fields_of(item, "reasoning").get("text")) {
        say.say(TextKind::Reasoning, thought.clone());
    }
    match str_of(message.get("role")) {
        Some("thinking") => say.say_content(TextKind::Reasoning, content),
        Some("tool") => {
            let content = say.text_of(content);
            say.result(Outcome {
                id: id_of(message.get("toolCallId")),
                content,
                failed: None,
            });
        }
        role => add_said(say, role.unwrap_or_default(), content)?,
    }
    for call in list_of(message.get("toolCalls")) {
        let function = fields_of(object_of(Some(call)), "function");
        say.call(Call::new(
            call.get("id"),
            function.get("name"),
            function.get("arguments"),
        ));
    }
    for state in list_of(item.get("toolCallStates")) {
        add_state(say, object_of(Some(state)));
    }
    Ok(())
}

/// What became of a call. Its output may be in a message too.
fn add_state(say: &mut Events, state: &Object) {
    let Some(id) = id_of(state.get("toolCallId")) else {
        return;
    };
    let failed = match str_of(state.get("status")) {
        Some("errored") => true,
        Some("canceled") => false,
        _ => return add_output(say, state, id),
    };
    say.add(What::Failed(id.clone(), failed));
    add_output(say, state, id);
}

fn add_output(say: &mut Events, state: &Object, id: knowledgepulse_json::Text) {
    let output = list_of(state.get("output")).iter();
    let output: Vec<_> = output.filter_map(|item| item.get("content")).cloned().collect();
    if !output.is_empty() {
        let content = say.text_of(Some(&output.into()));
        say.result(Outcome {
            id: Some(id),
            content,
            failed: None,
        });
    }
}
