//! Hermes: `hermes sessions export`, rows of `state.db`, and the JSON Lines of before, which begin with `session_meta`.

use std::path::Path;

use knowledgepulse_json::{Object, Value};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Events, Origin},
    messages::add_message,
    values::{fields_of, first_of, id_of, is_blank, list_of, number_of, object_of, str_of, string_of},
};

/// What a content of several parts begins with in the database.
const PARTS: &str = "\0json:";

/// Sessions of Hermes.
pub struct Hermes;

fn is_header(record: &Object) -> bool {
    str_of(record.get("role")) == Some("session_meta")
}

fn is_session(record: &Object) -> bool {
    let session = if record.contains("session") {
        fields_of(record, "session")
    } else {
        record
    };
    let is_row = ["source", "started_at"].iter().all(|name| session.contains(name));
    record.contains("messages") && (is_row || session.contains("session_start"))
}

/// Returns whether a record is a row of the database by itself.
fn is_row(record: &Object) -> bool {
    ["role", "session_id", "timestamp", "active"]
        .iter()
        .all(|name| record.contains(name))
}

impl Adapter for Hermes {
    fn format(&self) -> FormatName {
        FormatName::Hermes
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        let mut first = first.iter().map(|value| object_of(Some(value)));
        first.any(|record| is_header(record) || is_session(record) || is_row(record))
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let record = object_of(Some(record));
        if !is_header(record) && !is_session(record) {
            return if record.contains("role") {
                add_row(say, record, &mut true)
            } else {
                Ok(Decoded::Unknown)
            };
        }
        let session = if record.contains("session") {
            fields_of(record, "session")
        } else {
            record
        };
        let time = seconds(session.get("started_at"));
        say.begin_run(first_of(session, &["id", "session_id"]), time.as_ref());
        say.fact("summary", session.get("title"));
        say.fact("model", session.get("model"));
        if is_header(record) {
            return Ok(Decoded::Begins);
        }
        let mut has_ids = true;
        for row in list_of(record.get("messages")) {
            add_row(say, object_of(Some(row)), &mut has_ids)?;
        }
        Ok(Decoded::Whole)
    }
}

/// Returns milliseconds of seconds.
fn seconds(time: Option<&Value>) -> Option<Value> {
    number_of(time)
        .map(|seconds| (seconds * 1000.0).round().into())
        .or_else(|| time.cloned())
}

/// Adds a row. Where calls have no ids, their results are theirs by their order; `has_ids` is of the calls before.
fn add_row(say: &mut Events, row: &Object, has_ids: &mut bool) -> Result<Decoded, Wrong> {
    say.begin(Origin {
        id: id_of(row.get("id")),
        time: seconds(row.get("timestamp")),
        ..Origin::default()
    });
    if matches!(row.get("active"), Some(Value::Bool(false))) || number_of(row.get("active")) == Some(0.0) {
        say.leave_out("message that was taken back");
        return Ok(Decoded::GoesOn);
    }
    let mut message = Object::new();
    for name in ["role", "content", "tool_call_id", "tool_calls"] {
        if let Some(value) = row.get(name).filter(|value| !value.is_null()) {
            let parts = value.as_str().and_then(|text| text.strip_prefix(PARTS));
            let json = value.as_str().filter(|_| name == "tool_calls").or(parts);
            let parsed = json.and_then(|json| knowledgepulse_json::parse_str(json).ok());
            message.insert(name, parsed.unwrap_or_else(|| value.clone()));
        }
    }
    if let Some(calls) = message.get("tool_calls") {
        *has_ids = list_of(Some(calls)).iter().all(|call| call.get("id").is_some());
    } else if !*has_ids {
        message.remove("tool_call_id");
    }
    // One of them may be a blank that providers want.
    let mut reasoning = ["reasoning_content", "reasoning"].iter();
    let reasoning = reasoning.find_map(|name| string_of(row.get(name)).filter(|text| !is_blank(text)));
    if let Some(text) = reasoning {
        message.insert("reasoning", text.clone());
    }
    add_message(say, &message.into())?;
    Ok(Decoded::GoesOn)
}
