//! Sessions of Qwen Code, a record a line: the files in `~/.qwen/projects/*/chats/`. Its messages are contents of Gemini's API.
//! `chatRecordingService.ts` of QwenLM/qwen-code has their types.

use super::gemini_cli::add_turn;
use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("qwen-code", add_record);

fn add_record(say: &mut Events, record: &Value) {
    if is_true(record, "isSidechain") {
        say.of_agent(string_of(record.get("agentId")));
    }
    let content = fields_of(record, "message").get("parts");
    let subtype = str_of(record.get("subtype"));
    match str_of(record.get("type")) {
        Some("user") if subtype.is_some_and(|subtype| !is_one(subtype, "qwen-of-user")) => {
            say.leave_out(format!("record {}", subtype.unwrap_or_default()));
        }
        Some("user") => add_turn(say, content, None),
        Some("tool_result") => {
            let status = str_of(fields_of(record, "toolCallResult").get("status"));
            add_turn(say, content, status);
        }
        Some("assistant") => add_said(say, "model", content),
        kind => say.leave_out(format!("record {}", kind.unwrap_or("of no type"))),
    }
}
