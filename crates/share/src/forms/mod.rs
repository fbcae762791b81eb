//! The forms that a trace is written in. `turns` makes a conversation of its steps once; each form writes that.

pub(crate) mod atif;
pub(crate) mod facts;
pub(crate) mod messages;
pub(crate) mod simple;
pub(crate) mod turns;
pub(crate) mod unit;

use knowledgepulse_formats::trace::MODELS;
use knowledgepulse_json::{Object, Text, Value, object};

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

/// Returns the names of all models of a trace, with commas between them.
fn models_of(trace: &Value) -> Option<Value> {
    let models = trace
        .at(&["metadata", "imported", MODELS])
        .and_then(Value::as_array);
    let names = models.map(|models| {
        models
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    });
    names.map(Value::from).or_else(|| model_of(trace))
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

/// Returns the metadata of a trace, to change them.
pub fn metadata_of(trace: &mut Value) -> Option<&mut Object> {
    let Value::Object(fields) = trace else { return None };
    match fields.get_mut("metadata")? {
        Value::Object(metadata) => Some(metadata),
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use knowledgepulse_json::parse_str;

    use super::*;

    #[test]
    fn metadata_of_a_trace_change_and_other_values_stay_in_their_order() {
        let text = r#"{"b": 12345678901234567890, "metadata": {"x": "\n", "old": 1}, "a": -1E+2}"#;
        let mut trace = parse_str(text).unwrap();
        let metadata = metadata_of(&mut trace).unwrap();
        metadata.remove("old");
        metadata.insert("score", 0.5);
        assert_eq!(
            trace.to_json(),
            r#"{"b":12345678901234567890,"metadata":{"x":"\n","score":0.5},"a":-100}"#
        );
        assert!(metadata_of(&mut parse_str(r#"{"metadata": 1}"#).unwrap()).is_none());
    }
}
