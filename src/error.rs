//! One conversion of errors at the boundary.

use napi::{
    Env, JsError, JsRangeError, JsTypeError, JsValue, Property, PropertyAttributes, Status,
    bindgen_prelude::{JsObjectValue, Object, Unknown},
};

use napi_derive::napi;

use knowledgepulse_error::{Code, Error};

/// Returns the codes of all errors of the package.
#[napi(catch_unwind)]
pub fn error_codes() -> Vec<&'static str> {
    Code::ALL.iter().map(|code| code.name()).collect()
}

/// The result of a function of the binding.
pub(super) type Result<T> = std::result::Result<T, napi::Error>;

/// Throws `error` as the JavaScript class that it belongs to, with its code.
pub(super) fn throw(env: &Env, error: &Error) -> napi::Error {
    throw_with_cause(env, error, None)
}

/// As [`throw`]; `cause` becomes the `cause` of the error.
pub(super) fn throw_with_cause(env: &Env, error: &Error, cause: Option<Unknown>) -> napi::Error {
    let thrown = into_unknown(env, error)
        .coerce_to_object()
        .and_then(|mut object: Object| {
            if let Some(cause) = cause {
                // Not enumerable, as in `new Error(message, { cause })`.
                let attributes = PropertyAttributes::Writable | PropertyAttributes::Configurable;
                let cause = Property::new().with_utf8_name("cause")?.with_value(&cause);
                object.define_properties(&[cause.with_property_attributes(attributes)])?;
            }
            env.throw(object)
        });
    match thrown {
        // Tells napi that there is an exception already.
        Ok(()) => napi::Error::new(Status::PendingException, error.to_string()),
        Err(failure) => failure,
    }
}

/// `error` for a promise that rejects with the JavaScript error for it. `napi::Error::from` would lose all but its message in WebAssembly.
pub(super) fn rejection(env: Env, error: &Error) -> napi::Error {
    napi::Error::from_unknown_without_coercion(into_unknown(&env, error))
}

/// Returns the JavaScript error for `error`: a `TypeError`, a `RangeError` or a plain one.
pub(super) fn into_unknown<'env>(env: &Env, error: &Error) -> Unknown<'env> {
    let carrier = napi::Error::new(error.code(), error.to_string());
    match error {
        Error::WrongType(..) => JsTypeError::from(carrier).into_unknown(*env),
        Error::OutOfRange(..) | Error::NotFinite { .. } | Error::OutOfMemory(_) => {
            JsRangeError::from(carrier).into_unknown(*env)
        }
        _ => JsError::from(carrier).into_unknown(*env),
    }
}
