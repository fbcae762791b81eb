//! Zed: the threads of `threads.db`, compressed or not, of both generations (`crates/agent` of zed-industries/zed).

use std::path::Path;

use knowledgepulse_json::{Object, Value, object};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Events, Origin},
    messages::add_said,
    parts::{call_of, result_of, saying, thinking},
    values::{elements_of, fields_of, first_of, id_of, list_of, object_of, str_of, string_of},
};

/// Threads of Zed.
pub struct Zed;

fn is_message(message: &Value) -> bool {
    let has = |name| message.get(name).is_some();
    message.as_str().is_some() || has("User") || has("Agent") || has("segments")
}

impl Adapter for Zed {
    fn format(&self) -> FormatName {
        FormatName::Zed
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| {
            let messages = list_of(value.get("messages"));
            let is_named = |message: &Value| message.as_object().is_some() && is_message(message);
            value.get("version").is_some() && messages.iter().any(is_named) && messages.iter().all(is_message)
        })
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let thread = object_of(Some(record));
        say.begin_run(thread.get("id"), thread.get("updated_at"));
        say.fact("summary", first_of(thread, &["title", "summary"]));
        say.fact("model", fields_of(thread, "model").get("model"));
        if string_of(thread.get("parent_id")).is_some() {
            say.fact("is_subagent", Some(&true.into()));
        }
        for message in list_of(thread.get("messages")) {
            say.begin(Origin {
                id: id_of(fields_of(object_of(Some(message)), "User").get("id")),
                ..Origin::default()
            });
            let message = object_of(Some(message));
            let user = list_of(fields_of(message, "User").get("content"));
            let agent = fields_of(message, "Agent");
            let parts: Vec<_> = user
                .iter()
                .chain(list_of(agent.get("content")))
                .map(of_anthropic)
                .collect();
            let role = str_of(message.get("role"));
            let role = role.unwrap_or(if message.contains("Agent") {
                "assistant"
            } else {
                "user"
            });
            let calls = list_of(message.get("tool_uses")).iter();
            let calls = calls.map(|call| call_of(call.get("id"), call.get("name"), call.get("input")));
            let old = list_of(message.get("segments"))
                .iter()
                .map(of_segment)
                .chain(calls);
            let parts: Vec<_> = parts.into_iter().chain(old).collect();
            if !parts.is_empty() {
                add_said(say, role, Some(&parts.into()))?;
            }
            let results = fields_of(agent, "tool_results").iter().map(|(_, result)| result);
            let results = results.chain(list_of(message.get("tool_results"))).map(result_in);
            let results: Vec<_> = results.collect();
            if !results.is_empty() {
                add_said(say, "user", Some(&results.into()))?;
            }
        }
        Ok(Decoded::Whole)
    }
}

/// Returns a part that its only field names as Anthropic writes it.
fn of_anthropic(part: &Value) -> Value {
    let fields = object_of(Some(part));
    let Some((name, value)) = fields.iter().next() else {
        return part.clone();
    };
    let inner = object_of(Some(value));
    match name.as_str() {
        "Text" => saying(text_in(value)),
        "Thinking" => thinking(&text_in(value)),
        "RedactedThinking" => object([("type", "redacted_thinking".into())]),
        "ToolUse" => call_of(
            inner.get("id"),
            inner.get("name"),
            first_of(inner, &["input", "raw_input"]),
        ),
        "Image" => object([("type", "image".into())]),
        // A file or another thing that the user names; its text is the program's.
        "Mention" => object([("type", "mention".into())]),
        _ => object([("type", name.clone().into())]),
    }
}

fn of_segment(segment: &Value) -> Value {
    match str_of(segment.get("type")) {
        Some("thinking") => thinking(&text_in(segment)),
        _ => segment.clone(),
    }
}

/// Returns the text of a value, which may be in its field `text`.
fn text_in(value: &Value) -> Value {
    value.get("text").unwrap_or(value).clone()
}

fn result_in(result: &Value) -> Value {
    let fields: &Object = object_of(Some(result));
    let of_block = |block: &Value| {
        if block.as_str().is_some() {
            block.clone()
        } else {
            of_anthropic(block)
        }
    };
    let texts: Vec<_> = elements_of(fields.get("content")).iter().map(of_block).collect();
    let content = if texts.is_empty() {
        fields.get("output").cloned()
    } else {
        Some(texts.into())
    };
    let failed = (fields.get("is_error") == Some(&Value::Bool(true))).then_some(true);
    result_of(fields.get("tool_use_id"), content, failed)
}
