//! Crush: the sessions of `PROJECT/.crush/crush.db`, whose messages have parts of a type and data.

use std::path::Path;

use knowledgepulse_json::{Object, Value, object};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Events, Origin, TextKind},
    messages::add_said,
    parts::{call_of, result_of, saying, thinking},
    values::{fields_of, list_of, number_of, object_of, str_of, string_of},
};

/// The kinds of parts.
const KINDS: [&str; 8] = [
    "text",
    "reasoning",
    "tool_call",
    "tool_result",
    "finish",
    "image_url",
    "binary",
    "shell_command",
];

/// Sessions of Crush.
pub struct Crush;

impl Adapter for Crush {
    fn format(&self) -> FormatName {
        FormatName::Crush
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| {
            let messages = list_of(value.get("messages")).iter();
            let mut parts = messages
                .flat_map(|message| list_of(message.get("parts")))
                .peekable();
            let is_part = |part: &Value| {
                let is_kind = str_of(part.get("type")).is_some_and(|kind| KINDS.contains(&kind));
                is_kind && part.get("data").is_some_and(|data| data.as_object().is_some())
            };
            parts.peek().is_some() && parts.all(is_part)
        })
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let session = object_of(Some(record));
        let time = number_of(session.get("created_at")).map(|seconds| (seconds * 1000.0).into());
        say.begin_run(session.get("id"), time.as_ref());
        say.fact("summary", session.get("title"));
        if string_of(session.get("parent_session_id")).is_some() {
            say.fact("is_subagent", Some(&true.into()));
        }
        for message in list_of(session.get("messages")) {
            add_message(say, object_of(Some(message)))?;
        }
        Ok(Decoded::Whole)
    }
}

fn add_message(say: &mut Events, message: &Object) -> Result<(), Wrong> {
    say.begin(Origin {
        id: string_of(message.get("id")).cloned(),
        ..Origin::default()
    });
    say.first_fact("model", message.get("model"));
    if number_of(message.get("is_summary_message")).is_some_and(|is_summary| is_summary != 0.0) {
        say.leave_out("summary of a compaction");
        return Ok(());
    }
    let mut parts = Vec::new();
    for part in list_of(message.get("parts")) {
        let part = object_of(Some(part));
        let data = fields_of(part, "data");
        let text = |name| data.get(name).cloned().unwrap_or_default();
        parts.push(match str_of(part.get("type")) {
            Some("text") => saying(text("text")),
            Some("reasoning") => thinking(&text("thinking")),
            Some("tool_call") => call_of(data.get("id"), data.get("name"), data.get("input")),
            Some("tool_result") => {
                let failed = (data.get("is_error") == Some(&Value::Bool(true))).then_some(true);
                result_of(data.get("tool_call_id"), data.get("content").cloned(), failed)
            }
            Some("shell_command") => {
                let texts = ["command", "output"].map(|name| say.text_of(data.get(name)));
                say.say(TextKind::Event, crate::values::joined(texts, "\n"));
                continue;
            }
            Some("image_url" | "binary") => object([("type", "image".into())]),
            _ => continue,
        });
    }
    match str_of(message.get("role")) {
        Some(role) if !parts.is_empty() => add_said(say, role, Some(&parts.into())),
        _ => Ok(()),
    }
}
