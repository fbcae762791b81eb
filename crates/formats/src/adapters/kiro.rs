//! Kiro CLI: `~/.kiro/sessions/cli/*.jsonl`, records of a kind and data, and the conversations of its database.

use std::path::Path;

use knowledgepulse_json::{Object, Value, object};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Events, Origin},
    messages::add_said,
    parts::{call_of, result_of, saying},
    values::{fields_of, first_of, list_of, number_of, numeric_of, object_of, str_of, string_of},
};

/// Sessions of Kiro.
pub struct Kiro;

fn is_line(record: &Object) -> bool {
    let kind = str_of(record.get("kind"));
    matches!(kind, Some("Prompt" | "AssistantMessage" | "ToolResults"))
        && fields_of(record, "data").contains("content")
}

impl Adapter for Kiro {
    fn format(&self) -> FormatName {
        FormatName::Kiro
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        let mut first = first.iter().map(|value| object_of(Some(value)));
        first.any(|record| {
            is_line(record) || (record.contains("conversation_id") && record.contains("history"))
        })
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let record = object_of(Some(record));
        if is_line(record) {
            let data = fields_of(record, "data");
            say.begin(Origin {
                id: string_of(data.get("message_id")).cloned(),
                ..Origin::default()
            });
            let parts: Vec<_> = list_of(data.get("content")).iter().map(of_anthropic).collect();
            let role = if str_of(record.get("kind")) == Some("AssistantMessage") {
                "assistant"
            } else {
                "user"
            };
            add_said(say, role, Some(&parts.into()))?;
            return Ok(Decoded::GoesOn);
        }
        if !record.contains("history") {
            return Ok(Decoded::Unknown);
        }
        say.begin_run(record.get("conversation_id"), None);
        for turn in list_of(record.get("history")) {
            add_turn(say, object_of(Some(turn)))?;
        }
        Ok(Decoded::Whole)
    }
}

/// Returns a part of a kind and data as Anthropic writes it.
fn of_anthropic(part: &Value) -> Value {
    let fields = object_of(Some(part));
    let data = fields_of(fields, "data");
    let id = data.get("toolUseId");
    match str_of(fields.get("kind")) {
        Some("text") => saying(fields.get("data").cloned().unwrap_or_default()),
        Some("toolUse") => call_of(id, data.get("name"), data.get("input")),
        Some("toolResult") => result_in(data, id),
        kind => object([("type", kind.unwrap_or("part").into())]),
    }
}

/// Returns a result, whose contents are texts, or JSON that may have an exit status.
fn result_in(result: &Object, id: Option<&Value>) -> Value {
    let inner = |block: &Value| first_of(object_of(Some(block)), &["data", "Json", "Text"]).cloned();
    let blocks: Vec<_> = list_of(result.get("content")).iter().filter_map(inner).collect();
    let has_failed = |block: &Value| numeric_of(block.get("exit_status")).is_some_and(|status| status != 0.0);
    let is_error = str_of(result.get("status")).is_some_and(|status| status.eq_ignore_ascii_case("error"));
    let failed = (is_error || blocks.iter().any(has_failed)).then_some(true);
    result_of(id, Some(blocks.into()), failed)
}

fn add_turn(say: &mut Events, turn: &Object) -> Result<(), Wrong> {
    let user = fields_of(turn, "user");
    say.begin(Origin {
        time: user.get("timestamp").cloned(),
        ..Origin::default()
    });
    let state = fields_of(fields_of(user, "env_context"), "env_state");
    say.first_fact("cwd", state.get("current_working_directory"));
    for (_, content) in fields_of(user, "content") {
        let results = list_of(content.get("tool_use_results")).iter();
        let results = results.map(|result| result_in(object_of(Some(result)), result.get("tool_use_id")));
        let prompt = string_of(content.get("prompt")).map(|prompt| saying(prompt.clone().into()));
        let parts: Vec<_> = results.chain(prompt).collect();
        add_said(say, "user", Some(&parts.into()))?;
    }
    let ended = fields_of(turn, "request_metadata").get("stream_end_timestamp_ms");
    let time = number_of(ended).map(Value::from);
    for (_, reply) in fields_of(turn, "assistant") {
        say.begin(Origin {
            id: string_of(reply.get("message_id")).cloned(),
            time: time.clone(),
            ..Origin::default()
        });
        let text = reply.get("content").cloned().map(saying);
        let calls = list_of(reply.get("tool_uses")).iter();
        let calls = calls.map(|call| call_of(call.get("id"), call.get("name"), call.get("args")));
        let parts: Vec<_> = text.into_iter().chain(calls).collect();
        add_said(say, "assistant", Some(&parts.into()))?;
    }
    Ok(())
}
