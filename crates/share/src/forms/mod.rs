//! The forms that a trace is written in. `turns` makes a conversation of its steps once; each form writes that.

pub(crate) mod atif;
pub(crate) mod facts;
pub(crate) mod messages;
pub(crate) mod simple;
pub(crate) mod turns;
pub(crate) mod unit;

use knowledgepulse_json::{Text, Value, object};

pub(crate) fn text_at(value: &Value, path: &[&str]) -> Option<Text> {
    let text = value.at(path).and_then(Value::as_text);
    text.filter(|text| !text.is_empty()).cloned()
}

/// Returns when a trace began.
fn time_of(trace: &Value) -> Option<Value> {
    text_at(trace, &["metadata", "created_at"]).map(Value::from)
}

/// Returns the model of a trace.
fn model_of(trace: &Value) -> Option<Value> {
    text_at(trace, &["metadata", "imported", "model"]).map(Value::from)
}

/// Returns the name of the agent of a trace.
fn agent_of(trace: &Value) -> Text {
    let names = [["metadata", "framework"], ["metadata", "agent_id"]];
    let name = names.iter().find_map(|path| text_at(trace, path));
    name.or_else(|| text_at(trace, &["metadata", "imported", "format"]))
        .unwrap_or_else(|| "unknown".into())
}

/// Returns the name of a session in converted forms: that of its trace without what all ids begin with.
pub(crate) fn session_of(trace: &Value) -> Text {
    let id = text_at(trace, &["id"]).unwrap_or_else(|| "unknown".into());
    id.strip_prefix("kp:trace:").unwrap_or(&id).into()
}

/// Returns the object of the fields that have a value.
pub fn with_some<const FIELDS: usize>(fields: [(&str, Option<Value>); FIELDS]) -> Value {
    let some = fields.into_iter();
    object(some.filter_map(|(name, value)| Some((name, value?))))
}

/// Returns a text if it is not empty.
fn some(text: Text) -> Option<Value> {
    (!text.is_empty()).then(|| text.into())
}
