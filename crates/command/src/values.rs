//! JSON values of Rust's.

use knowledgepulse_json::Value;

/// Returns the list of these values.
#[must_use]
pub fn list(values: impl IntoIterator<Item = Value>) -> Value {
    values.into_iter().collect::<Vec<_>>().into()
}

/// Returns the number that a count is in JSON.
#[allow(clippy::cast_precision_loss)] // Nothing is counted up to 2^53.
#[must_use]
pub fn number(count: u64) -> Value {
    (count as f64).into()
}

/// Returns the value, or `null` without one.
#[must_use]
pub fn optional<V: Into<Value>>(value: Option<V>) -> Value {
    value.map_or(Value::Null, Into::into)
}
