//! Droid of Factory: `~/.factory/sessions/*/*.jsonl`, messages of Anthropic in records of type `message`; and what
//! `droid exec --output-format stream-json` prints.

use crate::prelude::*;

pub static FORMAT: Format = Format::sessions("droid", recognises, decode);

/// Returns whether a record is one that `droid exec` prints. Claude Code and Cursor print a `system` record too.
fn is_printed(record: &Value) -> bool {
    let has = |names: &[&str]| has_all(record, names);
    let has_session = has_text(record, "session_id") || has_text(record, "sessionId");
    has_session
        && match str_of(record.get("type")) {
            Some("system") => {
                has(&["cwd", "model"])
                    && ["uuid", "mcp_servers", "permissionMode"]
                        .iter()
                        .all(|name| !has(&[name]))
            }
            Some("message") => has(&["role", "text"]),
            Some("tool_call") => has(&["toolName", "parameters"]),
            Some("tool_result") => has(&["value"]),
            Some("completion") => has(&["finalText"]),
            _ => false,
        }
}

fn recognises(record: &Value) -> bool {
    match str_of(record.get("type")) {
        Some("message") if has_object(record, "message") => fields_of(record, "message").contains("role"),
        Some("session_start" | "session_end" | "todo_state" | "compaction_state") => true,
        _ => is_printed(record),
    }
}

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    let kind = str_of(record.get("type")).unwrap_or_default();
    match kind {
        "session_start" => {
            say.begin_run(record.get("id"), None);
            let parent = first_of(record, &["callingSessionId", "parent"]);
            say.sub_agent(parent.is_some(), parent);
            say.fact("cwd", record.get("cwd"));
            say.fact("summary", record.get("title"));
            return Ok(Decoded::Begins);
        }
        "message" if has_object(record, "message") => {}
        _ if is_printed(record) => return add_printed(say, record, kind),
        _ => return Ok(Decoded::Unknown),
    }
    say.begin(Origin {
        id: text_at(record, "id"),
        parent: text_at(record, "parentId").map_or(Parent::Before, Parent::Of),
        time: record.get("timestamp").cloned(),
        ..Origin::default()
    });
    let message = fields_of(record, "message");
    add_by(say, message, message.get("content"));
    Ok(Decoded::GoesOn)
}

/// Adds a record that `droid exec` prints. The last message is in the `completion` again.
fn add_printed(say: &mut Events, record: &Value, kind: &str) -> Result<Decoded, Wrong> {
    let session = first_of(record, &["session_id", "sessionId"]);
    say.begin_in_run(id_of(session), record.get("timestamp"));
    let id = first_of(record, &["toolCallId", "id"]);
    match kind {
        "message" => add_by(say, record, record.get("text")),
        "tool_call" => say.call(Call::of(record)),
        "tool_result" => {
            let failed = is_true(record, "isError").then_some(true);
            say.answer(id_of(id), record.get("value"), failed);
        }
        _ => {
            say.facts(object_of(Some(record)), &["cwd", "model"]);
            say.leave_out(format!("event {kind}"));
        }
    }
    Ok(Decoded::GoesOn)
}
