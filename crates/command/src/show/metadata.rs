//! Writes values into the metadata of a trace's text. Every other value keeps its bytes: numbers that JavaScript would round or write
//! in another way, the order of names, and escapes.

use std::fmt;

use knowledgepulse_json::{Value, parse_str};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of a JSON object in their order, each name and value as it is written.
struct Members<'t>(Vec<(&'t RawValue, &'t RawValue)>);

impl<'t> Members<'t> {
    fn of(text: &'t str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl<'de: 't, 't> Deserialize<'de> for Members<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfObject;
        impl<'de> Visitor<'de> for OfObject {
            type Value = Vec<(&'de RawValue, &'de RawValue)>;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(member) = members.next_entry()? {
                    list.push(member);
                }
                Ok(list)
            }
        }
        deserializer.deserialize_map(OfObject).map(Self)
    }
}

/// Returns whether a name in JSON, with its quotes and escapes, is this one.
fn is_named(written: &RawValue, name: &str) -> bool {
    let written = written.get();
    written.trim_matches('"') == name
        || written.contains('\\') && parse_str(written).is_ok_and(|value| value.as_str() == Some(name))
}

/// Returns the text of a JSON object on one line, with values of its `metadata` set: in place of the members of these names, or else behind
/// the others. Members whose value is `None` are removed. Text without an object as `metadata` is returned as it is, on one line.
pub(crate) fn set_metadata(text: &str, values: &[(&str, Option<Value>)]) -> String {
    let trace = Members::of(text);
    let metadata = trace.and_then(|trace| {
        // Of members of the same name the last one counts, as for JSON.parse.
        let last = trace
            .0
            .into_iter()
            .rev()
            .find(|(name, _)| is_named(name, "metadata"));
        last.map(|(_, value)| value.get())
    });
    let Some((metadata, members)) = metadata.and_then(|text| Some((text, Members::of(text)?.0))) else {
        return on_one_line(text);
    };
    let mut left: Vec<_> = values.iter().collect();
    let mut written = Vec::with_capacity(members.len() + values.len());
    for (name, value) in members {
        match values.iter().find(|(set, _)| is_named(name, set)) {
            None => written.push(format!("{}:{}", name.get(), value.get())),
            Some((set, value)) => {
                let count = left.len();
                left.retain(|(other, _)| other != set);
                if left.len() < count
                    && let Some(value) = value
                {
                    written.push(format!("{}:{}", name.get(), value.to_json()));
                }
            }
        }
    }
    let left = left
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_ref()?)));
    written.extend(left.map(|(name, value)| format!("\"{name}\":{}", value.to_json())));
    // Where the value is in the text that it borrows from.
    let start = metadata.as_ptr() as usize - text.as_ptr() as usize;
    let (before, after) = (&text[..start], &text[start + metadata.len()..]);
    on_one_line(&format!("{before}{{{}}}{after}", written.join(",")))
}

/// Returns JSON without line ends and the indentation after them; no string of valid JSON holds a line end.
fn on_one_line(json: &str) -> String {
    let mut lines = json.split(['\r', '\n']);
    let mut line = lines.next().unwrap_or_default().to_owned();
    for rest in lines {
        line.push_str(rest.trim_start_matches([' ', '\t']));
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn score() -> (&'static str, Option<Value>) {
        ("quality_score", Some(0.8125.into()))
    }

    #[test]
    fn set_metadata_replaces_adds_or_removes_values_and_keeps_the_bytes_of_others() {
        for (before, after) in [
            (
                r#"{"metadata": {"old":1, "quality_score": {"a":[1,"}"]}, "x": 1.50}}"#,
                r#"{"metadata": {"quality_score":0.8125,"x":1.50}}"#,
            ),
            (
                r#"{"metadata":{"x": "}" ,"old":[2]}, "y":1}"#,
                r#"{"metadata":{"x":"}","quality_score":0.8125}, "y":1}"#,
            ),
            (
                r#"{"metadata": { } }"#,
                r#"{"metadata": {"quality_score":0.8125} }"#,
            ),
            (
                r#"{"quality_score":1,"a":{"metadata":{"quality_score":2}},"metadata":{"b":{"quality_score":3}}}"#,
                r#"{"quality_score":1,"a":{"metadata":{"quality_score":2}},"metadata":{"b":{"quality_score":3},"quality_score":0.8125}}"#,
            ),
            (
                r#"{"m\u0065tadata":{"quality\u005fscore":0,"\u006fld":1}}"#,
                r#"{"m\u0065tadata":{"quality\u005fscore":0.8125}}"#,
            ),
            (
                r#"{"metadata":{"quality_score":1},"metadata":{"quality_score":2,"quality_score":3}}"#,
                r#"{"metadata":{"quality_score":1},"metadata":{"quality_score":0.8125}}"#,
            ),
            (
                r#"{"a":1.0,"b":12345678901234567890,"c":1E+2,"metadata":{"d":-0.0}}"#,
                r#"{"a":1.0,"b":12345678901234567890,"c":1E+2,"metadata":{"d":-0.0,"quality_score":0.8125}}"#,
            ),
            (
                "{\r\n  \"metadata\": {\r\n\t\"x\": \"a\\nb\"\r\n  }\r\n}",
                r#"{"metadata": {"x":"a\nb","quality_score":0.8125}}"#,
            ),
            ("{\n \"metadata\": 1}", r#"{"metadata": 1}"#),
        ] {
            assert_eq!(set_metadata(before, &[score(), ("old", None)]), after);
        }
    }

    #[test]
    fn set_metadata_takes_a_trace_that_is_nested_deeply() {
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        let text = |score| format!(r#"{{"input":{deep},"metadata":{{"quality_score":{score}}}}}"#);
        assert_eq!(set_metadata(&text("0"), &[score()]), text("0.8125"));
    }

    proptest! {
        #[test]
        fn set_metadata_writes_json_that_reads_as_before_but_for_the_values(
            members in proptest::collection::vec(("[ \n]{0,2}", "old|a|quality_score", "[ \n]{0,2}", "0|\"\\}\"|\\[1,\\{\\}\\]|null"), 0..6),
            blank in "[ \n]{0,2}",
        ) {
            let inner = members.iter().map(|(a, name, b, value)| format!("{a}\"{name}\"{b}:{value}{b}"));
            let inner = inner.collect::<Vec<_>>().join(",");
            let written = set_metadata(&format!("{{\"metadata\":{{{inner}{blank}}}}}"), &[score(), ("old", None)]);
            let mut expected = parse_str(&format!("{{{inner}}}")).unwrap().as_object().cloned().unwrap();
            expected.remove("old");
            expected.insert("quality_score", 0.8125);
            let read = parse_str(&written).unwrap();
            prop_assert_eq!(read.get("metadata").unwrap(), &Value::from(expected.clone()));
            prop_assert!(!written.contains("\"old\"") && !written.contains('\n'));
        }
    }
}
