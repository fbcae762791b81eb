//! Droid of Factory: `~/.factory/sessions/*/*.jsonl`, messages of Anthropic in records of type `message`.

use std::path::Path;

use knowledgepulse_json::Value;

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Events, Origin, Parent},
    messages::add_said,
    values::{fields_of, object_of, str_of, string_of},
};

/// Sessions of Droid.
pub struct Droid;

impl Adapter for Droid {
    fn format(&self) -> FormatName {
        FormatName::Droid
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| match str_of(value.get("type")) {
            Some("message") => value
                .get("message")
                .is_some_and(|message| message.get("role").is_some()),
            kind => matches!(
                kind,
                Some("session_start" | "session_end" | "todo_state" | "compaction_state")
            ),
        })
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let record = object_of(Some(record));
        let kind = str_of(record.get("type"));
        if kind == Some("session_start") {
            say.begin_run(record.get("id"), None);
            for (name, field) in [("cwd", "cwd"), ("summary", "title")] {
                say.fact(name, record.get(field));
            }
            return Ok(Decoded::Begins);
        }
        if kind != Some("message") {
            return Ok(Decoded::Unknown);
        }
        say.begin(Origin {
            id: string_of(record.get("id")).cloned(),
            parent: string_of(record.get("parentId"))
                .map_or(Parent::Before, |parent| Parent::Of(parent.clone())),
            time: record.get("timestamp").cloned(),
            ..Origin::default()
        });
        let message = fields_of(record, "message");
        add_said(
            say,
            str_of(message.get("role")).unwrap_or_default(),
            message.get("content"),
        )?;
        Ok(Decoded::GoesOn)
    }
}
