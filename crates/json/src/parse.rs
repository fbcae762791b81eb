//! Reads JSON by the parser of serde_json.

use std::{borrow::Cow, fmt, sync::LazyLock};

use regex::{Captures, Regex};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::{Object, Text, Value, number};

/// The deepest nesting of lists and objects.
pub const MAX_DEPTH: usize = 1_000;

const TOO_DEEP: &str = "it is nested too deeply";

/// A syntax error of JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at}")]
pub struct ParseError {
    /// The problem.
    pub reason: String,
    /// The position, in bytes from the beginning.
    pub at: usize,
}

impl ParseError {
    fn new(text: &str, error: &serde_json::Error) -> Self {
        if error.is_eof() {
            let reason = "cut off".into();
            return Self {
                reason,
                at: text.len(),
            };
        }
        let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
        let at = (lines.map(str::len).sum::<usize>() + error.column()).saturating_sub(1);
        let reason = error.to_string();
        let reason = match reason.split(" at line ").next().unwrap_or_default() {
            // A word that is not `null`, `true` or `false`.
            "expected ident" | "expected value" => "no value".into(),
            reason => reason.to_owned(),
        };
        Self { reason, at }
    }

    /// Returns whether the problem is nesting deeper than [`MAX_DEPTH`].
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        self.reason == TOO_DEEP
    }
}

/// Parses text as `JSON.parse` does. Lone surrogates become U+FFFD, and the `NaN` and `Infinity` of Python `null`.
///
/// # Errors
/// If it is not JSON, or nested more deeply than [`MAX_DEPTH`].
pub fn parse_str(text: &str) -> Result<Value, ParseError> {
    let value = read(text).or_else(|error| {
        let whole = without_lone_surrogates(text);
        let whole = without_numbers_of_python(&whole);
        if whole == text { Err(error) } else { read(&whole) }
    });
    value.map_err(|error| ParseError::new(text, &error))
}

fn read(text: &str) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_str(text);
    // `Reader` has its own.
    reader.disable_recursion_limit();
    let value = Reader { depth: 0 }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// An escape, or two that may be a pair of surrogates.
static ESCAPE: LazyLock<Regex> = LazyLock::new(|| {
    // `(?i)` would need Unicode's table of cases, which `kp-score` has not.
    let escape = r"\\u(?:[dD][89abAB]..\\u[dD][c-fC-F]..|([dD][89a-fA-F]..))|\\.";
    #[allow(clippy::expect_used)] // The tests compile it.
    Regex::new(escape).expect("the expression is valid")
});

/// Returns JSON with the escape of U+FFFD in place of each lone surrogate's.
#[must_use]
pub fn without_lone_surrogates(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    ESCAPE.replace_all(json, |found: &Captures| match found.get(1) {
        Some(_) => "\\ufffd".to_owned(),
        None => found[0].to_owned(),
    })
}

/// A string, or a number that JSON does not have.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    #[allow(clippy::expect_used)] // The tests compile it.
    Regex::new(r#""(?:[^"\\]|\\.)*"|-?(?:NaN|Infinity)"#).expect("the expression is valid")
});

/// Returns JSON with `null` in place of each number that is none in JSON.
fn without_numbers_of_python(json: &str) -> Cow<'_, str> {
    if !json.contains("NaN") && !json.contains("Infinity") {
        return Cow::Borrowed(json);
    }
    NUMBER.replace_all(json, |found: &Captures| match found[0].starts_with('"') {
        true => found[0].to_owned(),
        false => "null".to_owned(),
    })
}

/// Returns an integer, in its digits if no double is written like it.
fn integer(double: f64, integer: impl ToString) -> Value {
    /// Smaller integers are exact as doubles.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let digits = integer.to_string();
    if double.abs() < EXACT || digits == number(double) {
        return Value::Number(double);
    }
    Value::Digits(digits.into())
}

/// Reads a value in so many lists and objects.
#[derive(Clone, Copy)]
struct Reader {
    depth: usize,
}

impl Reader {
    fn inner<E: Error>(self) -> Result<Self, E> {
        let depth = self.depth + 1;
        if depth > MAX_DEPTH {
            return Err(E::custom(TOO_DEEP));
        }
        Ok(Self { depth })
    }
}

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, is_true: bool) -> Result<Value, E> {
        Ok(Value::Bool(is_true))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(integer(number as f64, number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(integer(number as f64, number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut elements = Vec::new();
        while let Some(element) = list.next_element_seed(inner)? {
            elements.push(element);
        }
        Ok(Value::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut object = Object::new();
        while let Some(name) = fields.next_key::<Text>()? {
            object.set(name, fields.next_value_seed(inner)?);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_doubles_keep_their_digits() {
        for (text, kept) in [
            ("9007199254740993", true),
            ("-9007199254740993", true),
            ("18446744073709551615", true),
            ("9007199254740992", false),
            ("123456789012345", false),
            ("1e300", false),
        ] {
            let value = parse_str(text).unwrap();
            assert_eq!(matches!(value, Value::Digits(_)), kept, "{text}");
            assert!(value.as_number().is_some(), "{text}");
            if kept {
                assert_eq!(value.to_json(), text);
            }
        }
    }

    #[test]
    fn errors_say_what_is_wrong_and_where() {
        for (text, wrong) in [
            ("", "cut off at byte 0"),
            ("{\"a\":1,}", "trailing comma at byte 7"),
            ("{\"a\" 1}", "expected `:` at byte 5"),
            ("{\"a\":1 \"b\"}", "expected `,` or `}` at byte 7"),
            ("[1 2]", "expected `,` or `]` at byte 3"),
            ("[1,]", "trailing comma at byte 3"),
            ("nil", "no value at byte 1"),
            ("01", "invalid number at byte 1"),
            ("-", "cut off at byte 1"),
            ("1.x", "invalid number at byte 2"),
            (
                "\"a\nb\"",
                "control character (\\u0000-\\u001F) found while parsing a string at byte 2",
            ),
            ("\"abc", "cut off at byte 4"),
            ("\"\\x\"", "invalid escape at byte 2"),
            ("\"\\u12g4\"", "invalid escape at byte 6"),
            ("{} {}", "trailing characters at byte 3"),
            ("[\n1e400]", "number out of range at byte 6"),
        ] {
            assert_eq!(parse_str(text).unwrap_err().to_string(), wrong, "{text}");
        }
    }

    #[test]
    fn parse_str_reads_numbers_that_json_does_not_have_as_null() {
        let json = r#"{"a":NaN,"b":[-Infinity,Infinity],"c":"\"NaN","d":"\ud800"}"#;
        let expected = "{\"a\":null,\"b\":[null,null],\"c\":\"\\\"NaN\",\"d\":\"\u{fffd}\"}";
        assert_eq!(parse_str(json).unwrap().to_json(), expected);
        assert!(parse_str("[NaN,]").is_err() && parse_str("NaNs").is_err());
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse_str(&nested(MAX_DEPTH)).is_ok());
        assert!(parse_str(&nested(MAX_DEPTH + 1)).unwrap_err().is_too_deep());
        assert!(parse_str(&"{\"a\":".repeat(1_000_000)).unwrap_err().is_too_deep());
    }

    #[test]
    fn parse_str_replaces_lone_surrogates() {
        for (json, text) in [
            (r#""\ud83d\ude00\uD83D\uDE00""#, "😀😀"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""a\ud800b\\ud800""#, "a\u{fffd}b\\ud800"),
            (r#""\ud83d\n""#, "\u{fffd}\n"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
        ] {
            assert_eq!(parse_str(json).unwrap().as_str(), Some(text), "{json}");
        }
        let error = parse_str(r#"["\ud83d",]"#).unwrap_err();
        assert_eq!(error.to_string(), "trailing comma at byte 10");
    }
}
