//! Amp: threads as it exports them, `T-….json`, messages of Anthropic whose results say what became of their run.

use std::path::Path;

use knowledgepulse_json::{Object, Value};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Events, Origin},
    messages::add_said,
    parts::result_of,
    values::{fields_of, first_of, id_of, is_given, list_of, object_of, or, str_of},
};

/// Threads of Amp.
pub struct Amp;

impl Adapter for Amp {
    fn format(&self) -> FormatName {
        FormatName::Amp
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| {
            let thread = object_of(Some(value));
            let is_named = str_of(thread.get("id")).is_some_and(|id| id.starts_with("T-"));
            is_named
                && thread
                    .get("messages")
                    .is_some_and(|messages| messages.as_array().is_some())
        })
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let thread = object_of(Some(record));
        say.begin_run(thread.get("id"), thread.get("created"));
        say.fact("summary", thread.get("title"));
        for message in list_of(thread.get("messages")) {
            let message = object_of(Some(message));
            say.begin(Origin {
                id: id_of(message.get("messageId")),
                time: fields_of(message, "meta").get("sentAt").cloned(),
                ..Origin::default()
            });
            say.first_fact("model", fields_of(message, "usage").get("model"));
            let parts: Vec<_> = list_of(message.get("content")).iter().map(of_anthropic).collect();
            add_said(
                say,
                str_of(message.get("role")).unwrap_or_default(),
                Some(&parts.into()),
            )?;
        }
        Ok(Decoded::Whole)
    }
}

/// Returns a part as Anthropic writes it.
fn of_anthropic(part: &Value) -> Value {
    let fields = object_of(Some(part));
    let Some(id) = fields.get("toolUseID") else {
        return part.clone();
    };
    let run = fields_of(fields, "run");
    let error = fields_of(run, "error").get("message");
    let (content, failed) = match str_of(run.get("status")) {
        Some("error") => (or(error, run.get("error")), Some(true)),
        Some("cancelled" | "rejected-by-user") => (or(run.get("reason"), run.get("status")), Some(false)),
        _ => (run.get("result"), exit_code(run)),
    };
    let inner = first_of(object_of(content), &["output", "content", "diff"]);
    result_of(Some(id), or(inner, content).cloned(), failed)
}

fn exit_code(run: &Object) -> Option<bool> {
    let code = fields_of(run, "result").get("exitCode");
    is_given(code).then(|| crate::values::number_of(code) != Some(0.0))
}
