//! Attributes of OTLP, and times.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use knowledgepulse_json::{Object, Text, Value, trim};

use crate::{
    Wrong,
    trace::fields_of,
    values::{is_given, list_of, number_in, object_of, or, radix_of, spelled},
};

const MAX_DEPTH: usize = 64;

/// Attributes by their names, in the order in which they came first. A value of no type that is known is not there, but its name is.
#[derive(Default)]
pub struct Attributes<'a> {
    list: Vec<(&'a [u8], Option<Cow<'a, Value>>)>,
    places: BTreeMap<&'a [u8], usize>,
}

impl<'a> Attributes<'a> {
    /// Returns the attributes of a list of OTLP.
    pub fn of(list: Option<&'a Value>) -> Result<Self, Wrong> {
        let mut attributes = Self::default();
        for attribute in list_of(list) {
            if let Some(Value::String(name)) = attribute.get("key") {
                attributes.set(name.as_bytes(), unwrap(attribute.get("value"), 0)?);
            }
        }
        Ok(attributes)
    }

    /// Returns these and more attributes.
    pub fn with(mut self, more: &'a [(Text, Value)]) -> Self {
        for (name, value) in more {
            self.set(name.as_bytes(), Some(Cow::Borrowed(value)));
        }
        self
    }

    fn set(&mut self, name: &'a [u8], value: Option<Cow<'a, Value>>) {
        let at = *self.places.entry(name).or_insert(self.list.len());
        if at < self.list.len() {
            self.list[at].1 = value;
        } else {
            self.list.push((name, value));
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.places.contains_key(name.as_bytes())
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.list[*self.places.get(name.as_bytes())?].1.as_deref()
    }

    /// Returns the first of these that is there, be it `null`.
    pub fn first(&self, names: &[&str]) -> Option<&Value> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Returns the first of these that is there and not `null`.
    pub fn first_given(&self, names: &[&str]) -> Option<&Value> {
        names
            .iter()
            .map(|name| self.get(name))
            .find(|value| is_given(*value))?
    }

    pub fn names(&self) -> impl Iterator<Item = &'a [u8]> {
        self.list.iter().map(|(name, _)| *name)
    }

    /// Returns the attributes with names without this beginning.
    pub fn without(&self, beginning: &str) -> Attributes<'_> {
        let mut attributes = Attributes::default();
        for (name, value) in &self.list {
            let name = name.strip_prefix(beginning.as_bytes()).unwrap_or(name);
            attributes.set(name, value.as_deref().map(Cow::Borrowed));
        }
        attributes
    }

    /// Returns a list whose members are attributes, as `PREFIX.0.message.role`.
    pub fn unflattened(&self, prefix: &str) -> Vec<Attributes<'_>> {
        let mut places = HashMap::new();
        let mut list: Vec<(u32, Attributes)> = Vec::new();
        for (name, value) in &self.list {
            let rest = name.strip_prefix(prefix.as_bytes());
            let Some(rest) = rest.and_then(|rest| rest.strip_prefix(b".")) else {
                continue;
            };
            let Some(dot) = rest.iter().position(|&byte| byte == b'.') else {
                continue;
            };
            let digits = &rest[..dot];
            if !(1..=9).contains(&dot) || !digits.iter().all(u8::is_ascii_digit) {
                continue;
            }
            let number = digits
                .iter()
                .fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
            let at = *places.entry(digits).or_insert(list.len());
            if at == list.len() {
                list.push((number, Attributes::default()));
            }
            list[at]
                .1
                .set(&rest[dot + 1..], value.as_deref().map(Cow::Borrowed));
        }
        list.sort_by_key(|(number, _)| *number);
        list.into_iter().map(|(_, member)| member).collect()
    }
}

/// Returns the value of an attribute, which OTLP wraps by its type.
fn unwrap(wrapped: Option<&Value>, depth: usize) -> Result<Option<Cow<'_, Value>>, Wrong> {
    if depth > MAX_DEPTH {
        return Err(Wrong::new("it is nested too deeply"));
    }
    let wrapped = object_of(wrapped);
    for name in ["stringValue", "boolValue"] {
        if let Some(value) = wrapped.get(name) {
            return Ok(Some(Cow::Borrowed(value)));
        }
    }
    for name in ["intValue", "doubleValue"] {
        if let Some(value) = wrapped.get(name) {
            return Ok(Some(Cow::Owned(Value::Number(to_number(value)))));
        }
    }
    let inner = |value| unwrap(value, depth + 1).map(|value| value.map(Cow::into_owned));
    if wrapped.contains("arrayValue") {
        let values = list_of(fields_of(wrapped, "arrayValue").get("values"));
        let values = values
            .iter()
            .map(|value| inner(Some(value)).map(Option::unwrap_or_default));
        return Ok(Some(Cow::Owned(Value::Array(values.collect::<Result<_, _>>()?))));
    }
    if !wrapped.contains("kvlistValue") {
        return Ok(None);
    }
    let mut members = Vec::new();
    for member in list_of(fields_of(wrapped, "kvlistValue").get("values")) {
        let name = member.get("key").map_or_else(|| "undefined".into(), spelled);
        members.extend(inner(member.get("value"))?.map(|value| (name, value)));
    }
    Ok(Some(Cow::Owned(members.into_iter().collect::<Object>().into())))
}

/// Returns the number that JavaScript's `Number` makes of a value.
fn to_number(value: &Value) -> f64 {
    match value {
        Value::Null => 0.0,
        Value::Bool(is_true) => f64::from(u8::from(*is_true)),
        Value::Number(number) => *number,
        Value::Object(_) => f64::NAN,
        Value::Digits(_) => value.as_number().unwrap_or(f64::NAN),
        Value::String(_) | Value::Array(_) => spelled(value).as_str().map_or(f64::NAN, number_in),
    }
}

/// How many characters a time can have that has 64 bits.
const TIME_LENGTH: usize = 20;

/// Returns a time in nanoseconds since 1970, as JavaScript's `BigInt` reads it; 0 for other values.
pub fn time_of(time: Option<&Value>) -> i128 {
    match time {
        Some(Value::Bool(is_true)) => i128::from(*is_true),
        #[allow(clippy::cast_possible_truncation)] // Such times are as late as any.
        Some(Value::Number(number)) if number.fract() == 0.0 => *number as i128,
        Some(Value::String(text)) if text.len_units() > TIME_LENGTH => 0,
        Some(time @ (Value::String(_) | Value::Array(_) | Value::Digits(_))) => {
            spelled(time).as_str().map_or(0, |text| integer_in(trim(text)))
        }
        _ => 0,
    }
}

fn integer_in(text: &str) -> i128 {
    let (digits, radix) = radix_of(text).unwrap_or((text, 10));
    let is_signed = radix != 10 && digits.starts_with(['+', '-']);
    if is_signed {
        return 0;
    }
    i128::from_str_radix(digits, radix).unwrap_or(0)
}

/// JSON in a string, or the value that is no JSON.
pub fn parsed(value: Option<&Value>) -> Option<Cow<'_, Value>> {
    let json = value?.as_text().and_then(|text| text.parse().ok());
    json.map(Cow::Owned).or_else(|| value.map(Cow::Borrowed))
}

/// Returns the spans of a resource by their instrumentations, which were called libraries once.
pub fn scopes_of(resource: &Object) -> Option<&Value> {
    or(
        resource.get("scopeSpans"),
        resource.get("instrumentationLibrarySpans"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use knowledgepulse_json::parse_str;

    #[test]
    fn times_are_read_as_integers_of_javascript() {
        for (json, time) in [
            (r#""1700000000000000001""#, 1_700_000_000_000_000_001),
            (r#"" -5 ""#, -5),
            (r#""0x10""#, 16),
            (r#""-0x10""#, 0),
            (r#""0x-1""#, 0),
            (r#""1.5""#, 0),
            (r#""1e3""#, 0),
            (r#""111111111111111111111""#, 0),
            (r#""18446744073709551615""#, 18_446_744_073_709_551_615),
            ("1e18", 1_000_000_000_000_000_000),
            ("1.5", 0),
            ("true", 1),
            ("[7]", 7),
            ("null", 0),
            ("{}", 0),
        ] {
            assert_eq!(time_of(parse_str(json).ok().as_ref()), time, "{json}");
        }
    }

    #[test]
    fn numbers_are_those_of_javascript() {
        for (json, number) in [
            (r#""""#, 0.0),
            (r#"" 12 ""#, 12.0),
            (r#""0b11""#, 3.0),
            (r#""-Infinity""#, f64::NEG_INFINITY),
            (r#""1e999""#, f64::INFINITY),
            (r#""inf""#, f64::NAN),
            (r#""0x""#, f64::NAN),
            (r#"[5]"#, 5.0),
            ("null", 0.0),
            ("{}", f64::NAN),
        ] {
            let read = to_number(&parse_str(json).unwrap());
            assert!(read == number || read.is_nan() && number.is_nan(), "{json}");
        }
    }

    #[test]
    fn unwrap_refuses_values_that_are_nested_too_deeply() {
        for (depth, is_read) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false)] {
            let begin = r#"{"arrayValue":{"values":["#.repeat(depth);
            let json = format!(r#"{begin}{{"boolValue":true}}{}"#, "]}}".repeat(depth));
            let wrapped = parse_str(&json).unwrap();
            assert_eq!(unwrap(Some(&wrapped), 0).is_ok(), is_read, "{depth}");
        }
    }
}
