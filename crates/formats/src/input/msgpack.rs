//! Values of MessagePack, as LangGraph's checkpoints have them: an object of Python is an extension, whose third element is what makes it.

use knowledgepulse_json::Value;
use rmpv::{ValueRef, decode::read_value_ref_with_max_depth};

/// Values are nested at most so deep, extensions too.
const MOST_LEVELS: usize = 64;

/// Where an extension has the arguments of an object: behind its module and its class.
const ARGUMENTS: usize = 2;

/// Returns the value of these bytes; `None` if they are something else. Bytes within it are `null`.
pub fn value_of(bytes: &[u8]) -> Option<Value> {
    value_in(bytes, MOST_LEVELS)
}

fn value_in(mut bytes: &[u8], levels: usize) -> Option<Value> {
    // The library counts a list and its elements, each as a level.
    let value = read_value_ref_with_max_depth(&mut bytes, 2 * levels).ok()?;
    bytes.is_empty().then(|| json_of(value, levels))?
}

fn json_of(value: ValueRef, levels: usize) -> Option<Value> {
    let inner = levels.checked_sub(1)?;
    Some(match value {
        ValueRef::Nil | ValueRef::Binary(_) => Value::Null,
        ValueRef::Boolean(is_true) => is_true.into(),
        ValueRef::Integer(number) => number.as_f64()?.into(),
        ValueRef::F32(number) => f64::from(number).into(),
        ValueRef::F64(number) => number.into(),
        ValueRef::String(text) => String::from_utf8_lossy(text.as_bytes()).into_owned().into(),
        ValueRef::Array(elements) => {
            let elements = elements.into_iter().map(|element| json_of(element, inner));
            elements.collect::<Option<Vec<_>>>()?.into()
        }
        ValueRef::Map(fields) => {
            let fields = fields.into_iter().map(|(name, value)| {
                let name = json_of(name, inner)?.as_text().cloned();
                Some((name.unwrap_or_default(), json_of(value, inner)?))
            });
            Value::Object(fields.collect::<Option<_>>()?)
        }
        ValueRef::Ext(_, object) => {
            let object = value_in(object, inner);
            let arguments = object
                .as_ref()
                .and_then(|object| object.as_array()?.get(ARGUMENTS));
            arguments.cloned().unwrap_or_default()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_of_reads_each_kind_and_refuses_what_is_cut() {
        let bytes: &[u8] = b"\x85\xa1a\x01\xa1b\x92\xff\xd1\xff\x00\xa1c\xcb\x3f\xf8\0\0\0\0\0\0\xa1d\xd9\x02\xc3\xa9\xa1e\xc7\x08\x05\x94\xa1m\xa1C\x81\xa1x\xc3\xc0";
        assert_eq!(value_of(bytes), None);
        let bytes: &[u8] = b"\x85\xa1a\x01\xa1b\x92\xff\xd1\xff\x00\xa1c\xcb\x3f\xf8\0\0\0\0\0\0\xa1d\xd9\x02\xc3\xa9\xa1e\xc7\x0a\x05\x94\xa1m\xa1C\x81\xa1x\xc3\xc0";
        let whole = value_of(bytes).map(|value| value.to_json());
        assert_eq!(
            whole.as_deref(),
            Some(r#"{"a":1,"b":[-1,-256],"c":1.5,"d":"é","e":{"x":true}}"#)
        );
        for length in 0..bytes.len() {
            assert_eq!(value_of(&bytes[..length]), None, "{length}");
        }
        assert_eq!(value_of(&[0x91; 1000]), None);
        let nested = |mut bytes: Vec<u8>, levels: usize| {
            for _ in 0..levels {
                let length = u32::try_from(bytes.len() + 3).unwrap().to_be_bytes();
                bytes = [&b"\xc9"[..], &length, b"\x05\x93\x01\x02", &bytes].concat();
            }
            value_of(&bytes)
        };
        assert_eq!(nested(vec![3], 20), Some(3.0.into()));
        assert_eq!(
            nested(vec![3], 20_000),
            Some(Value::Null),
            "its arguments are nested too deeply"
        );
        assert_eq!(value_of(b"\xdd\xff\xff\xff\xff\xc0"), None);
    }
}
