//! Sessions of Qwen Code, a record a line: the files in `~/.qwen/projects/*/chats/`. Its messages are contents of Gemini's API.
//! `chatRecordingService.ts` of QwenLM/qwen-code has their types.

use std::path::Path;

use knowledgepulse_json::Value;

use super::{Adapter, Decoded, gemini_cli::add_turn};
use crate::{
    FormatName, Wrong,
    event::{Agent, Events, Origin, Parent},
    messages::add_said,
    values::{fields_of, object_of, str_of, string_of},
};

/// Subtypes of records of users that have words of the user, or the task of a sub-agent. Others are notifications.
const OF_USER: [&str; 2] = ["mid_turn_user_message", "agent_launch_prompt"];

/// Sessions of Qwen Code.
pub struct QwenCode;

impl Adapter for QwenCode {
    fn format(&self) -> FormatName {
        FormatName::QwenCode
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| {
            let record = object_of(Some(value));
            let has = |name| string_of(record.get(name)).is_some();
            let is_told = fields_of(record, "message").contains("parts") || record.contains("systemPayload");
            has("uuid") && has("sessionId") && has("type") && is_told
        })
    }

    fn decode(&self, value: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let record = object_of(Some(value));
        let text = |name| string_of(record.get(name)).cloned();
        let Some(session) = text("sessionId") else {
            return Ok(Decoded::Unknown);
        };
        let is_sidechain = record.get("isSidechain") == Some(&Value::Bool(true));
        say.begin(Origin {
            id: text("uuid"),
            parent: match (text("parentUuid"), record.contains("parentUuid")) {
                (Some(parent), _) => Parent::Of(parent),
                (None, true) => Parent::None,
                (None, false) => Parent::Before,
            },
            run: Some(session),
            agent: match (is_sidechain, text("agentId")) {
                (true, Some(agent)) => Agent::Named(agent),
                (true, None) => Agent::Unnamed,
                (false, _) => Agent::Main,
            },
            time: record.get("timestamp").cloned(),
            ..Origin::default()
        });
        for name in ["version", "cwd", "gitBranch", "model"] {
            say.first_fact(name, record.get(name));
        }
        let content = fields_of(record, "message").get("parts");
        let subtype = str_of(record.get("subtype"));
        match str_of(record.get("type")) {
            Some("user") if subtype.is_some_and(|subtype| !OF_USER.contains(&subtype)) => {
                say.leave_out(format!("record {}", subtype.unwrap_or_default()));
            }
            Some("user") => add_turn(say, content, None)?,
            Some("tool_result") => {
                let status = str_of(fields_of(record, "toolCallResult").get("status"));
                add_turn(say, content, status)?;
            }
            Some("assistant") => add_said(say, "model", content)?,
            kind => say.leave_out(format!("record {}", kind.unwrap_or("of no type"))),
        }
        Ok(Decoded::GoesOn)
    }
}
