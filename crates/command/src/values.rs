//! JSON values put together from Rust's, and read back.

use knowledgepulse_json::{Object, Value};

/// Returns the object with these fields, in this order.
#[must_use]
pub fn object<'n>(fields: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    let fields = fields.into_iter().map(|(name, value)| (name.into(), value));
    fields.collect::<Object>().into()
}

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
