//! JSON values for JavaScript.

use napi::{
    Env, ValueType,
    bindgen_prelude::{Null, Object, ToNapiValue, TypeName, Utf16String},
    sys,
};

use knowledgepulse_json::Value;

/// A JSON value that becomes the value of JavaScript.
pub struct Json(pub(super) Value);

impl TypeName for Json {
    fn type_name() -> &'static str {
        "JSON"
    }

    fn value_type() -> ValueType {
        ValueType::Unknown
    }
}

impl ToNapiValue for Json {
    unsafe fn to_napi_value(env: sys::napi_env, Self(value): Self) -> napi::Result<sys::napi_value> {
        // SAFETY: the environment is the caller's.
        unsafe {
            match value {
                Value::Null => Null::to_napi_value(env, Null),
                Value::Bool(is_true) => bool::to_napi_value(env, is_true),
                Value::Number(number) => f64::to_napi_value(env, number),
                Value::Digits(_) => f64::to_napi_value(env, value.as_number().unwrap_or(f64::NAN)),
                Value::String(text) => {
                    let units: Vec<u16> = text.encode_utf16().collect();
                    Utf16String::to_napi_value(env, units.into())
                }
                Value::Array(values) => Vec::to_napi_value(env, values.into_iter().map(Self).collect()),
                Value::Object(fields) => {
                    let mut object = Object::new(&Env::from_raw(env))?;
                    for (name, value) in fields {
                        object.set(name.as_str(), Self(value))?;
                    }
                    Object::to_napi_value(env, object)
                }
            }
        }
    }
}
