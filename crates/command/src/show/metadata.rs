//! Writes values into the metadata of a trace.

use knowledgepulse_json::{Object, Value, parse_str};

/// Returns the JSON of a trace on one line, with its `metadata` changed. Every other value stays, in its order; numbers and escapes may be
/// spelled in another way.
pub(crate) fn with_metadata(text: &str, change: impl FnOnce(&mut Object)) -> String {
    // It was read before.
    let mut trace = parse_str(text).unwrap_or_default();
    if let Value::Object(trace) = &mut trace
        && let Some(Value::Object(metadata)) = trace.get_mut("metadata")
    {
        change(metadata);
    }
    trace.to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_metadata_keeps_other_values_in_their_order_on_one_line() {
        for (before, after) in [
            (
                r#"{"b": 12345678901234567890, "metadata": {"x": "\n", "old": 1, "score": 2}, "a": -1E+2}"#,
                r#"{"b":12345678901234567890,"metadata":{"x":"\n","score":0.5},"a":-100}"#,
            ),
            ("{\n \"metadata\": { }\r\n}", r#"{"metadata":{"score":0.5}}"#),
            ("{\n \"metadata\": 1}", r#"{"metadata":1}"#),
        ] {
            let change = |metadata: &mut Object| {
                metadata.remove("old");
                metadata.insert("score", 0.5);
            };
            assert_eq!(with_metadata(before, change), after);
        }
    }
}
