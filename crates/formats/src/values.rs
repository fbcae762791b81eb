//! Looks values up in the fields of a record. `None` stands for a missing field.

use std::{
    borrow::Cow,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash},
    iter,
};

use knowledgepulse_json::{Object, Text, Value, is_white_space, number, parse_str, trim};
use regex::Regex;

use crate::words::{is_begun, words};

static NO_FIELDS: Object = Object::new();

/// Compiles an expression that is written in this crate. What is published has no tables of Unicode, which the tests have.
pub fn regex(expression: &str) -> Regex {
    let has = |marks: &[&str]| marks.iter().any(|mark| expression.contains(mark));
    debug_assert!(
        has(&["-u:", "-u)"]) || !has(&[r"\w", r"\s", r"\d", r"\b"]),
        "{expression} needs tables of Unicode"
    );
    #[allow(clippy::expect_used)] // The tests compile every expression.
    Regex::new(expression).expect("the expression is valid")
}

/// Returns a number for a value: it is the same only within a run of the program.
pub fn hash_of(value: &impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// Returns whether a value is there, and not `null`.
pub fn is_given(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

/// Returns the first value, or the second where the first is missing or `null`: JavaScript's `??`.
pub fn or<'a>(value: Option<&'a Value>, other: Option<&'a Value>) -> Option<&'a Value> {
    if is_given(value) { value } else { other }
}

/// What has fields: an object, or a value that may be one.
pub trait Fields {
    /// Returns the field of this name.
    fn field(&self, name: &str) -> Option<&Value>;
}

impl Fields for Object {
    fn field(&self, name: &str) -> Option<&Value> {
        self.get(name)
    }
}

impl Fields for Value {
    fn field(&self, name: &str) -> Option<&Value> {
        self.get(name)
    }
}

/// Returns the first of these fields that is there and not `null`.
pub fn first_of<'a>(record: &'a impl Fields, names: &[&str]) -> Option<&'a Value> {
    names
        .iter()
        .map(|name| record.field(name))
        .find(|value| is_given(*value))?
}

/// Returns the first of the fields whose names are words of a kind that is there and not `null`.
pub fn first_named<'a>(record: &'a impl Fields, kind: &str) -> Option<&'a Value> {
    words(kind)
        .map(|name| record.field(name))
        .find(|value| is_given(*value))?
}

/// Returns whether a record has all these fields, be they `null`.
pub fn has_all(record: &impl Fields, names: &[&str]) -> bool {
    names.iter().all(|name| record.field(name).is_some())
}

/// Returns the value at the end of a path of names, with `/` between them. A number names an element of a list, `-1` the last one.
pub fn in_path<'a>(record: &'a impl Fields, path: &str) -> Option<&'a Value> {
    let mut names = path.split('/');
    let first = record.field(names.next()?)?;
    names.try_fold(first, step)
}

/// Returns the first of the values at these paths, apart by spaces, that is there and not `null`.
pub fn first_at<'a>(record: &'a impl Fields, paths: &str) -> Option<&'a Value> {
    let mut values = paths.split(' ').filter_map(|path| in_path(record, path));
    values.find(|value| !value.is_null())
}

fn step<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Array(list) if name == "-1" => list.last(),
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    }
}

/// Returns the values at the end of a path, in which `*` stands for any field behind the first.
pub fn all_in_path<'a>(record: &'a impl Fields, path: &str) -> Vec<&'a Value> {
    let mut names = path.split('/');
    let first = names.next().and_then(|name| record.field(name));
    names.fold(first.into_iter().collect(), |values, name| match name {
        "*" => values
            .into_iter()
            .flat_map(|value| object_of(Some(value)).values())
            .collect(),
        name => values.into_iter().filter_map(|value| step(value, name)).collect(),
    })
}

/// Returns the string with something in it that a field of a record has.
pub fn text_at(record: &impl Fields, name: &str) -> Option<Text> {
    string_of(record.field(name)).cloned()
}

/// Returns whether a field of a record has a string with something in it.
pub fn has_text(record: &impl Fields, name: &str) -> bool {
    string_of(record.field(name)).is_some()
}

/// Returns the list that a field of a record has, otherwise an empty list.
pub fn list_at<'a>(record: &'a impl Fields, name: &str) -> &'a [Value] {
    list_of(record.field(name))
}

/// Returns whether a field of a record has a list, be it empty.
pub fn has_list(record: &impl Fields, name: &str) -> bool {
    matches!(record.field(name), Some(Value::Array(_)))
}

/// Returns whether a field of a record has an object, be it empty.
pub fn has_object(record: &impl Fields, name: &str) -> bool {
    matches!(record.field(name), Some(Value::Object(_)))
}

/// Returns whether a field of a record is `true`.
pub fn is_true(record: &impl Fields, name: &str) -> bool {
    record.field(name) == Some(&Value::Bool(true))
}

/// Returns the value if it is an object, otherwise an empty object.
pub fn object_of(value: Option<&Value>) -> &Object {
    value.and_then(Value::as_object).unwrap_or(&NO_FIELDS)
}

/// Returns the fields of a value that a field of a record holds, if it is an object.
pub fn fields_of<'a>(record: &'a impl Fields, name: &str) -> &'a Object {
    object_of(record.field(name))
}

/// Returns an object of the fields that are there.
pub fn some_object<const FIELDS: usize>(fields: [(&str, Option<Value>); FIELDS]) -> Value {
    let fields = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.into(), value?)));
    Value::Object(fields.collect())
}

/// Returns the value if it is a list, otherwise an empty list.
pub fn list_of(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or_default()
}

/// Returns the elements of a list; another value stands for itself.
pub fn elements_of(value: Option<&Value>) -> &[Value] {
    let single = value.map_or(&[][..], std::slice::from_ref);
    value.and_then(Value::as_array).unwrap_or(single)
}

/// Returns the fields of an object that are to be kept.
pub fn fields_where(object: &Object, is_kept: impl Fn(&str, &Value) -> bool) -> Object {
    let kept = object.iter().filter(|(name, value)| is_kept(name, value));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns an object without the fields that are `null`, at any depth of objects.
pub fn without_nulls(object: &Object) -> Object {
    let fields = object.iter().filter(|(_, value)| !value.is_null());
    let fields = fields.map(|(name, value)| match value {
        Value::Object(inner) => (name.clone(), without_nulls(inner).into()),
        value => (name.clone(), value.clone()),
    });
    fields.collect()
}

/// Returns a string with something in it.
pub fn string_of(value: Option<&Value>) -> Option<&Text> {
    value.and_then(Value::as_text).filter(|text| !text.is_empty())
}

/// Returns a string with something in it.
pub fn str_of(value: Option<&Value>) -> Option<&str> {
    string_of(value).map(Text::as_str)
}

/// Returns a finite number.
pub fn number_of(value: Option<&Value>) -> Option<f64> {
    value
        .and_then(Value::as_number)
        .filter(|number| number.is_finite())
}

/// Returns a finite number, which may be written as text in decimal digits.
pub fn numeric_of(value: Option<&Value>) -> Option<f64> {
    let Some(Value::String(text)) = value else {
        return number_of(value);
    };
    trim(text).parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns a yes or no, which may be written as a number or as text; scores are labels too.
pub fn truth_of(value: Option<&Value>) -> Option<bool> {
    if let Some(Value::Bool(is_true)) = value {
        return Some(*is_true);
    }
    if let Some(number) = numeric_of(value).filter(|&number| number == 0.0 || number == 1.0) {
        return Some(number == 1.0);
    }
    match trim(value?.as_str()?).to_lowercase().as_str() {
        "true" | "yes" | "correct" | "pass" | "passed" | "success" => Some(true),
        "false" | "no" | "incorrect" | "fail" | "failed" | "failure" => Some(false),
        _ => None,
    }
}

/// Returns whether a condition takes a value for true in JavaScript.
pub fn is_truthy(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Number(number)) => *number != 0.0 && !number.is_nan(),
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

/// Returns the role that a message names; empty without one.
pub fn role_of(message: &impl Fields) -> &str {
    str_of(message.field("role")).unwrap_or_default()
}

/// Returns whether an exit code says that a call failed; `None` without a code.
pub fn failed_by(code: Option<&Value>) -> Option<bool> {
    number_of(code).map(|code| code != 0.0)
}

/// Returns an id, which may be a number.
pub fn id_of(value: Option<&Value>) -> Option<Text> {
    match value {
        Some(Value::Number(id)) => Some(number(*id).into()),
        Some(Value::Digits(id)) => Some(id.clone()),
        _ => string_of(value).cloned(),
    }
}

/// Texts with something between each two.
pub fn joined(texts: impl IntoIterator<Item = Text>, between: &str) -> Text {
    let mut texts = texts.into_iter();
    let first = texts.next().unwrap_or_default();
    let Some(second) = texts.next() else {
        return first;
    };
    let between = Text::from(between);
    let mut parts = vec![first];
    for text in iter::once(second).chain(texts) {
        parts.extend([between.clone(), text]);
    }
    parts.concat().into()
}

/// Returns a value as text: strings as they are, everything else as JSON.
pub fn json_of(value: &Value) -> Cow<'_, Text> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        value => Cow::Owned(value.to_json().into()),
    }
}

/// Returns JSON in a string, or the value that is no JSON.
pub fn parsed(value: Option<&Value>) -> Option<Cow<'_, Value>> {
    let json = value?.as_str().and_then(|text| parse_str(text).ok());
    json.map(Cow::Owned).or_else(|| value.map(Cow::Borrowed))
}

/// Returns the arguments of a call as an object. Text that is not JSON is kept as it is: a model may have written it
/// wrongly.
pub fn input_of(args: Option<&Value>) -> Object {
    let (args, text) = match args {
        None | Some(Value::Null) => return Object::new(),
        Some(Value::Object(input)) => return input.clone(),
        Some(args) => (args, args.as_text()),
    };
    if text.is_some_and(Text::is_empty) {
        return Object::new();
    }
    let opens = |text: &&Text| text.trim_start_matches(is_white_space).starts_with('{');
    if let Some(Ok(Value::Object(input))) = text.filter(opens).map(|text| parse_str(text)) {
        return input;
    }
    [("arguments".into(), args.clone())].into_iter().collect()
}

/// Returns whether a text is empty or only white space.
pub fn is_blank(text: &Text) -> bool {
    text.chars().all(is_white_space)
}

/// Returns whether a text, or that of the first part of a content, begins with a word of a kind.
pub fn begins_with(content: Option<&Value>, kind: &str) -> bool {
    first_text(content).is_some_and(|text| is_begun(text, kind))
}

/// Returns the text of the first part of a content.
pub fn first_text(content: Option<&Value>) -> Option<&Text> {
    elements_of(content).first().and_then(text_of_part)
}

/// A name of a field that has more code units is cut.
pub const NAME_LENGTH: usize = 100;

/// Returns the texts of parts as one.
pub fn joined_parts(texts: impl IntoIterator<Item = Text>) -> Text {
    joined(texts.into_iter().filter(|text| !text.is_empty()), "\n")
}

/// Returns the text of a part of a message; `None` without one.
pub fn text_of_part(part: &Value) -> Option<&Text> {
    part.as_text().or_else(|| text_in(part))
}

/// Returns the text in the fields of a part, whatever its type.
pub fn text_in(part: &impl Fields) -> Option<&Text> {
    let mut texts = ["text", "text/value", "content", "refusal"].into_iter();
    texts.find_map(|path| in_path(part, path).and_then(Value::as_text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numeric_of_reads_decimal_digits_in_a_text() {
        for (text, number) in [
            (" 1e3 ", Some(1000.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("+7", Some(7.0)),
            ("0x1F", None),
            ("", None),
            ("1_0", None),
            ("Infinity", None),
            ("nan", None),
            ("inf", None),
        ] {
            assert_eq!(numeric_of(Some(&text.into())), number, "{text}");
        }
    }

    #[test]
    fn arguments_become_an_object() {
        let input =
            |json: &str| Value::from(input_of(knowledgepulse_json::parse_str(json).ok().as_ref())).to_json();
        for (args, object) in [
            ("null", "{}"),
            (r#""""#, "{}"),
            (r#"" {\"a\":1}""#, r#"{"a":1}"#),
            (r#""{\"a\":""#, r#"{"arguments":"{\"a\":"}"#),
            ("[1]", r#"{"arguments":[1]}"#),
            ("5", r#"{"arguments":5}"#),
        ] {
            assert_eq!(input(args), object, "{args}");
        }
    }
}
