//! Letta Code: the transcript of its client, `transcript.jsonl`; a call has its result in the same row.

use std::path::Path;

use knowledgepulse_json::Value;

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Call, Events, Origin, Outcome, TextKind},
    values::{first_of, is_given, object_of, str_of, string_of, truth_of},
};

/// Sessions of Letta Code.
pub struct Letta;

impl Adapter for Letta {
    fn format(&self) -> FormatName {
        FormatName::Letta
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| {
            let kind = str_of(value.get("kind"));
            let is_row = matches!(
                kind,
                Some("user" | "assistant" | "reasoning" | "tool_call" | "error")
            );
            is_row && value.get("captured_at").is_some()
        })
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        if !self.recognises(&[record], None) {
            return Ok(Decoded::Unknown);
        }
        let row = object_of(Some(record));
        let line = string_of(row.get("source_line_id")).cloned();
        say.begin(Origin {
            id: line.clone(),
            message: string_of(row.get("source_message_id")).cloned(),
            time: row.get("captured_at").cloned(),
            ..Origin::default()
        });
        let text = row.get("text");
        match str_of(row.get("kind")) {
            Some("user") => say.say_content(TextKind::User, text),
            Some("assistant") => say.say_content(TextKind::Message, text),
            Some("reasoning") => say.say_content(TextKind::Reasoning, text),
            Some("tool_call") => {
                let id = first_of(row, &["source_line_id", "source_message_id"]);
                say.call(Call::new(id, row.get("name"), row.get("argsText")));
                let is_ok = truth_of(row.get("resultOk"));
                if is_given(row.get("resultText")) || is_ok.is_some() {
                    let content = say.text_of(row.get("resultText"));
                    let failed = is_ok.map(|is_ok| !is_ok);
                    say.result(Outcome {
                        id: string_of(id).cloned(),
                        content,
                        failed,
                    });
                }
            }
            _ => say.leave_out("event error"),
        }
        Ok(Decoded::GoesOn)
    }
}
