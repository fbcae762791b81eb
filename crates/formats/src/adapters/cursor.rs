//! Cursor: the transcripts of its CLI (`~/.cursor/projects/*/agent-transcripts/`), which have neither ids nor results, and the composers of
//! its IDE in `state.vscdb`, each with its bubbles.

use std::path::Path;

use knowledgepulse_json::{Object, Value, parse_str};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Call, Events, Origin, Outcome, TextKind},
    messages::add_said,
    values::{fields_of, first_of, is_given, list_of, number_of, object_of, or, str_of, string_of},
};

/// Sessions of Cursor.
pub struct Cursor;

fn is_line(record: &Object) -> bool {
    let is_role = matches!(str_of(record.get("role")), Some("user" | "assistant"));
    is_role && fields_of(record, "message").contains("content")
}

impl Adapter for Cursor {
    fn format(&self) -> FormatName {
        FormatName::Cursor
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| {
            let record = object_of(Some(value));
            let is_composer = record.contains("composerId") && record.contains("bubbles");
            is_composer || (is_line(record) && !record.contains("type"))
        })
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let record = object_of(Some(record));
        if record.contains("composerId") {
            add_composer(say, record);
            return Ok(Decoded::Whole);
        }
        if !is_line(record) {
            return Ok(Decoded::Unknown);
        }
        say.begin(Origin {
            id: string_of(record.get("id")).cloned(),
            ..Origin::default()
        });
        let message = fields_of(record, "message");
        say.first_fact("model", message.get("model"));
        let role = str_of(record.get("role")).unwrap_or_default();
        add_said(say, role, message.get("content"))?;
        Ok(Decoded::GoesOn)
    }
}

fn add_composer(say: &mut Events, composer: &Object) {
    say.begin_run(composer.get("composerId"), composer.get("createdAt"));
    for (name, field) in [("summary", "name"), ("model", "model")] {
        say.fact(name, composer.get(field));
    }
    for bubble in list_of(composer.get("bubbles")) {
        let bubble = object_of(Some(bubble));
        say.begin(Origin {
            id: string_of(bubble.get("bubbleId")).cloned(),
            time: first_of(bubble, &["createdAt", "timestamp"]).cloned(),
            ..Origin::default()
        });
        let text = or(bubble.get("text"), bubble.get("rawText"));
        if number_of(bubble.get("type")) == Some(1.0) {
            say.say_content(TextKind::User, text);
            continue;
        }
        if let Some(thought) = string_of(fields_of(bubble, "thinking").get("text")) {
            say.say(TextKind::Reasoning, thought.clone());
        }
        say.say_content(TextKind::Message, text);
        add_tool(say, fields_of(bubble, "toolFormerData"));
    }
}

/// What a tool did is in the bubble of its call; texts of JSON are in each field.
fn add_tool(say: &mut Events, tool: &Object) {
    if string_of(tool.get("name")).is_none() {
        return;
    }
    let id = first_of(tool, &["toolCallId"]);
    let args = first_of(tool, &["rawArgs", "params"]);
    say.call(Call::new(id, tool.get("name"), args));
    let status = str_of(tool.get("status"));
    let parsed = str_of(tool.get("error")).and_then(|error| parse_str(error).ok());
    let error = parsed
        .as_ref()
        .and_then(|error| error.get("modelVisibleErrorMessage"));
    let result = error.or_else(|| first_of(tool, &["error", "result"]));
    if is_given(result) && !matches!(status, Some("loading" | "pending")) {
        let content = say.text_of(result);
        let failed = match status {
            Some("error") => Some(true),
            Some("cancelled") => Some(false),
            _ => None,
        };
        say.result(Outcome {
            id: string_of(id).cloned(),
            content,
            failed,
        });
    }
}
