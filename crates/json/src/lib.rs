//! JSON values as JavaScript writes them: numbers are written as by `JSON.stringify`; integers that no double is keep their digits. Lone surrogates become U+FFFD.

mod object;
mod parse;
mod text;
mod write;

pub use knowledgepulse_error::javascript_number as number;
pub use object::{Object, object};
pub use parse::{MAX_DEPTH, ParseError, parse_str, without_lone_surrogates};
pub use text::{Text, cut, is_white_space, trim, units_of};
pub use write::write_string;

/// A JSON value, nested at most [`MAX_DEPTH`] deep. [`parse_str`] checks this; code that builds values must keep to it.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number. Numbers that are not finite are written as `null`.
    Number(f64),
    /// An integer that no double is, in its digits.
    Digits(Text),
    /// A string.
    String(Text),
    /// A list.
    Array(Vec<Value>),
    /// An object.
    Object(Object),
}

impl Value {
    /// Returns the text of a string; `None` for other values.
    #[must_use]
    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text of a string; `None` for other values.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.as_text().map(Text::as_str)
    }

    /// Returns a number; `None` for other values.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Digits(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// Returns a boolean; `None` for other values.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(is_true) => Some(*is_true),
            _ => None,
        }
    }

    /// Returns the elements of a list; `None` for other values.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// Returns an object; `None` for other values.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns a field of an object; `None` where it is missing or the value is no object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object().and_then(|object| object.get(name))
    }

    /// Returns the value at the end of a path of names; `None` where a field is missing or a value on the way is no object.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    /// Returns the name of its type in messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) | Self::Digits(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident),* $(,)?) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

from! {
    bool => Bool,
    f64 => Number,
    Text => String,
    &str => String,
    String => String,
    Vec<Value> => Array,
    Object => Object,
}

#[allow(clippy::cast_precision_loss)] // Nothing is counted up to 2^53.
impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Number(count as f64)
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::from(count as u64)
    }
}

/// `None` is `null`.
impl<V: Into<Value>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Null, V::into)
    }
}

/// Makes a list.
impl<V: Into<Value>> FromIterator<V> for Value {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Self {
        Self::Array(values.into_iter().map(V::into).collect())
    }
}

/// Returns the JSON object with these fields.
#[macro_export]
macro_rules! json_object {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::object([$(($name, $crate::Value::from($value))),*])
    };
}
