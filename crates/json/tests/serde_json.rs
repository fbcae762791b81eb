//! The parser against serde_json, on JSON and on what was JSON before some bytes changed.

use knowledgepulse_json::{Value, parse};
use proptest::prelude::*;
use serde_json::Value as Other;

/// JSON that serde_json has written, of any nesting, texts and numbers.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(Other::Null),
        any::<bool>().prop_map(Other::from),
        any::<f64>().prop_map(Other::from),
        any::<i64>().prop_map(Other::from),
        "\\PC{0,12}|[\\x00-\\x7f]{0,30}".prop_map(Other::from),
    ];
    let value = leaf.prop_recursive(5, 60, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Other::from),
            prop::collection::vec(("[a-c0-2]{0,2}", inner), 0..20)
                .prop_map(|fields| Other::Object(fields.into_iter().collect())),
        ]
    });
    value.prop_map(|value| value.to_string())
}

fn are_same(value: &Value, other: &Other) -> bool {
    match (value, other) {
        (Value::Null, Other::Null) => true,
        (Value::Bool(value), Other::Bool(other)) => value == other,
        (Value::Number(value), Other::Number(other)) => Some(*value) == other.as_f64(),
        (Value::Digits(_), Other::Number(other)) => value.as_number() == other.as_f64(),
        (Value::String(value), Other::String(other)) => *value == other.as_str(),
        (Value::Array(value), Other::Array(other)) => {
            value.len() == other.len()
                && value
                    .iter()
                    .zip(other)
                    .all(|(value, other)| are_same(value, other))
        }
        (Value::Object(value), Other::Object(other)) => {
            let is_same = |(name, other): (&String, &Other)| {
                value.get(name).is_some_and(|value| are_same(value, other))
            };
            value.len() == other.len() && other.iter().all(is_same)
        }
        _ => false,
    }
}

fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    match (parse(bytes), serde_json::from_slice::<Other>(bytes)) {
        (Ok(value), Ok(other)) => {
            prop_assert!(are_same(&value, &other), "{:?}", String::from_utf8_lossy(bytes));
            let written = value.to_json();
            prop_assert_eq!(parse(written.as_bytes()), Ok(value));
        }
        (Err(_), Err(_)) => {}
        // serde_json refuses lone surrogates, and numbers that are no finite f64.
        (Ok(_), Err(error)) => {
            let reason = error.to_string();
            let is_known = ["surrogate", "hex escape", "out of range"]
                .iter()
                .any(|known| reason.contains(known));
            prop_assert!(is_known, "{}: {:?}", reason, String::from_utf8_lossy(bytes));
        }
        (Err(error), Ok(_)) => prop_assert!(false, "{}: {:?}", error, String::from_utf8_lossy(bytes)),
    }
    Ok(())
}

proptest! {
    #[test]
    fn json_is_read_as_serde_json_reads_it(json in json()) {
        check(json.as_bytes())?;
    }

    #[test]
    fn broken_json_is_refused_as_serde_json_refuses_it(
        json in json(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&b"\"\\{}[],:0-.eutx \n\x80\xff"[..])), 1..4),
    ) {
        let mut bytes = json.into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check(&bytes)?;
    }
}
