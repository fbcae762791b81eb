//! Kimi Code (`~/.kimi-code/sessions/*/*/agents/*/wire.jsonl`), and Kimi CLI before it (`wire.jsonl` of MoonshotAI/kimi-cli), whose events
//! are in `message`.

use std::path::Path;

use knowledgepulse_json::{Object, Value};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Agent, Call, Events, Origin, Outcome, TextKind, What},
    values::{fields_of, first_of, is_blank, number_of, object_of, or, str_of, string_of, truth_of},
};

/// Sessions of Kimi.
pub struct Kimi;

fn is_old(record: &Object) -> bool {
    let message = fields_of(record, "message");
    record.contains("timestamp") && message.contains("payload") && message.contains("type")
}

impl Adapter for Kimi {
    fn format(&self) -> FormatName {
        FormatName::Kimi
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| {
            let record = object_of(Some(value));
            is_old(record)
                || match str_of(record.get("type")) {
                    Some("metadata") => record.contains("protocol_version"),
                    Some("turn.prompt" | "turn.steer") => record.contains("input"),
                    Some("context.append_loop_event") => record.contains("event"),
                    Some("context.append_message" | "config.update" | "usage.record") => {
                        record.contains("time")
                    }
                    _ => false,
                }
        })
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let fields = object_of(Some(record));
        if !self.recognises(&[record], None) {
            return Ok(Decoded::Unknown);
        }
        let (event, is_old) = (fields_of(fields, "event"), is_old(fields));
        let message = fields_of(fields, "message");
        let time = if is_old {
            number_of(fields.get("timestamp")).map(|seconds| (seconds * 1000.0).into())
        } else {
            fields.get("time").cloned()
        };
        let kind = str_of(fields.get("type")).unwrap_or_default();
        say.begin(Origin {
            time,
            ..Origin::default()
        });
        if is_old {
            add_old(say, message)?;
        } else {
            match kind {
                "metadata" => return Ok(Decoded::Begins),
                "config.update" => {
                    say.fact("cwd", fields.get("cwd"));
                    say.first_fact("model", fields.get("modelAlias"));
                }
                "turn.prompt" | "turn.steer" => say.say_content(TextKind::User, fields.get("input")),
                "context.append_loop_event" => add_loop_event(say, event),
                "context.append_message" if str_of(message.get("role")) == Some("user") => {
                    let prompt = say.text_of(message.get("content"));
                    say.add(What::Echo(prompt));
                }
                kind => say.leave_out(format!("event {kind}")),
            }
        }
        Ok(Decoded::GoesOn)
    }
}

fn add_loop_event(say: &mut Events, event: &Object) {
    match str_of(event.get("type")) {
        Some("content.part") => add_part(say, fields_of(event, "part")),
        Some("tool.call") => say.call(Call::new(
            event.get("toolCallId"),
            event.get("name"),
            event.get("args"),
        )),
        Some("tool.result") => add_result(
            say,
            event.get("toolCallId"),
            fields_of(event, "result"),
            "isError",
        ),
        _ => {}
    }
}

fn add_part(say: &mut Events, part: &Object) {
    match str_of(part.get("type")) {
        Some("think") => say.say_content(TextKind::Reasoning, first_of(part, &["think", "text"])),
        _ => say.say_content(TextKind::Message, Some(&vec![part.clone().into()].into())),
    }
}

fn add_result(say: &mut Events, id: Option<&Value>, result: &Object, error: &str) {
    let output = say.text_of(result.get("output"));
    let content = if is_blank(&output) {
        say.text_of(or(result.get("message"), None))
    } else {
        output
    };
    let failed = truth_of(result.get(error)).filter(|is_error| *is_error);
    say.result(Outcome {
        id: string_of(id).cloned(),
        content,
        failed,
    });
}

fn add_old(say: &mut Events, message: &Object) -> Result<(), Wrong> {
    let payload = fields_of(message, "payload");
    match str_of(message.get("type")).unwrap_or_default() {
        "TurnBegin" | "SteerInput" => say.say_content(TextKind::User, payload.get("user_input")),
        "ContentPart" => add_part(say, payload),
        "ToolCall" => {
            let function = fields_of(payload, "function");
            say.call(Call::new(
                payload.get("id"),
                function.get("name"),
                function.get("arguments"),
            ));
        }
        "ToolResult" => add_result(
            say,
            payload.get("tool_call_id"),
            fields_of(payload, "return_value"),
            "is_error",
        ),
        "SubagentEvent" => {
            let call = first_of(payload, &["parent_tool_call_id", "task_tool_call_id", "agent_id"]);
            let agent = string_of(call).map_or(Agent::Unnamed, |call| Agent::Named(call.clone()));
            say.begin(Origin {
                agent,
                ..Origin::default()
            });
            add_old(say, fields_of(payload, "event"))?;
        }
        kind => say.leave_out(format!("event {kind}")),
    }
    Ok(())
}
