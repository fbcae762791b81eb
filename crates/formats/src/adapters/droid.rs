//! Droid of Factory: `~/.factory/sessions/*/*.jsonl`, messages of Anthropic in records of type `message`.

use crate::prelude::*;

pub(super) fn recognises(record: &Value, _path: Option<&Path>) -> bool {
    match str_of(record.get("type")) {
        Some("message") => fields_of(record, "message").contains("role"),
        kind => matches!(
            kind,
            Some("session_start" | "session_end" | "todo_state" | "compaction_state")
        ),
    }
}

pub(super) fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    match str_of(record.get("type")) {
        Some("session_start") => {
            say.begin_run(record.get("id"), None);
            say.fact("cwd", record.get("cwd"));
            say.fact("summary", record.get("title"));
            return Ok(Decoded::Begins);
        }
        Some("message") => {}
        _ => return Ok(Decoded::Unknown),
    }
    say.begin(Origin {
        id: text_at(record, "id"),
        parent: text_at(record, "parentId").map_or(Parent::Before, Parent::Of),
        time: record.get("timestamp").cloned(),
        ..Origin::default()
    });
    let message = fields_of(record, "message");
    add_by(say, message, message.get("content"))?;
    Ok(Decoded::GoesOn)
}
