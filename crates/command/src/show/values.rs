//! Values of Rust's in JSON.

use knowledgepulse_json::{Object, Text, Value};

/// A value that JSON has.
pub trait IntoValue {
    /// Returns it in JSON.
    fn into_value(self) -> Value;
}

macro_rules! into_value {
    ($($type:ty)*) => {$(
        impl IntoValue for $type {
            fn into_value(self) -> Value {
                self.into()
            }
        }
    )*};
}

into_value!(bool f64 &str String Text Vec<Value> Object Value);

#[allow(clippy::cast_precision_loss)] // Nothing is counted up to 2^53.
impl IntoValue for u64 {
    fn into_value(self) -> Value {
        (self as f64).into()
    }
}

impl IntoValue for usize {
    fn into_value(self) -> Value {
        (self as u64).into_value()
    }
}

/// `None` is `null`.
impl<V: IntoValue> IntoValue for Option<V> {
    fn into_value(self) -> Value {
        self.map_or(Value::Null, V::into_value)
    }
}

/// Returns the list of these values.
pub fn list<V: IntoValue>(values: impl IntoIterator<Item = V>) -> Value {
    values.into_iter().map(V::into_value).collect::<Vec<_>>().into()
}

/// Returns the JSON object with these fields.
#[macro_export]
macro_rules! json_object {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::values::object([$(($name, $crate::values::IntoValue::into_value($value))),*])
    };
}

pub use knowledgepulse_json::object;
