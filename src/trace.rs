//! From a JavaScript object to a [`Trace`], in one pass over the fields that the scorer reads. Other fields are not touched, because
//! `input` can be megabytes. Of a trace of one megabyte, `JSON.stringify` with a list of keys takes 7 to 12 ms before any reader, where a whole
//! call takes 0.6 ms without a comparison and 6 ms with `prefix`.

use std::{fmt::Arguments, ptr};

use napi::{
    Env, JsError, JsString, JsValue, Status, ValueType,
    bindgen_prelude::{FromNapiValue, Function, JsObjectValue, Object, Unknown},
    sys,
};

use knowledgepulse_embed::sufficiency::Sufficiency;
use knowledgepulse_error::{Code, Error, fault, javascript_number};
use knowledgepulse_index::method::Method;
use knowledgepulse_trace::{
    Name, Trace,
    reading::{self, Source, Texts},
};

use crate::error::{Result, throw, throw_with_cause};

/// Reads a trace, and as much of its text as a comparison of this method needs: the longest text that 512 tokens can have,
/// or as much as is compared of a whole one; no text without a comparison.
///
/// # Errors
/// Throws `ERR_INVALID_TRACE`, which names the path of the field that is wrong.
pub(super) fn read(env: &Env, trace: Unknown, method: Option<Method>) -> Result<Trace> {
    fault::point("trace");
    let mut sufficiency = Sufficiency::default();
    let mut needed = |units: &[u16], is_whole| sufficiency.needed(units, is_whole);
    let texts = match method {
        None => Texts::None,
        Some(Method::Prefix) => Texts::Needed(&mut needed),
        Some(_) => Texts::Whole,
    };
    reading::read(&JavaScript::new(env)?, trace, texts)
}

/// Returns what a reader of logs notes in `metadata.imported` of a trace: whether its outcome is known, in `known.success`, and its agent,
/// in `format`; `None` where it notes nothing.
///
/// # Errors
/// Throws `ERR_INVALID_TRACE` if a getter of the trace throws.
pub(super) fn noted(env: &Env, trace: Unknown) -> Result<Option<(bool, Option<String>)>> {
    let source = JavaScript::new(env)?;
    let at = |path: &[&'static str], kind: &str| {
        let mut value = trace;
        for path in IMPORTED.iter().chain(path) {
            if source.kind(value)? != "object" {
                return Ok(None);
            }
            let name = path.rsplit('.').next().unwrap_or_default();
            value = source.get(value, name, format_args!("{path}"))?;
        }
        Result::Ok(Some(value).filter(|_| source.kind(value).is_ok_and(|found| found == kind)))
    };
    if at(&[], "object")?.is_none() {
        return Ok(None);
    }
    let path = [
        "trace.metadata.imported.known",
        "trace.metadata.imported.known.success",
    ];
    let known = at(&path, "boolean")?.map(|known| source.boolean(known));
    let agent = at(&["trace.metadata.imported.format"], "string")?;
    let agent = agent.map(|agent| source.name(agent)).transpose()?;
    let agent = agent.map(|Name(units)| String::from_utf16_lossy(&units));
    Ok(Some((known.transpose()?.unwrap_or(true), agent)))
}

/// The path of what a reader of logs notes.
const IMPORTED: [&str; 2] = ["trace.metadata", "trace.metadata.imported"];

/// The keys of a step, which are made into strings of JavaScript once.
const STEP_KEYS: [&str; 4] = ["type", "content", "tool", "name"];

/// Reads values of JavaScript.
struct JavaScript<'env> {
    env: &'env Env,
    /// Those of [`STEP_KEYS`].
    keys: Vec<JsString<'env>>,
}

impl<'env> Source for JavaScript<'env> {
    type Value = Unknown<'env>;
    type Error = napi::Error;

    fn refuse(&self, error: Error) -> napi::Error {
        throw(self.env, &error)
    }

    fn kind(&self, value: Unknown) -> Result<&'static str> {
        Ok(match value.get_type()? {
            ValueType::Undefined => "undefined",
            ValueType::Null => "null",
            ValueType::Boolean => "boolean",
            ValueType::Number => "number",
            ValueType::String => "string",
            ValueType::Symbol => "symbol",
            ValueType::Function => "function",
            ValueType::Object if value.is_array()? => "array",
            ValueType::Object | ValueType::External => "object",
            ValueType::BigInt => "bigint",
            ValueType::Unknown => "an unknown value",
        })
    }

    fn get(&self, object: Unknown, key: &'static str, at: Arguments) -> Result<Unknown<'env>> {
        let key = match STEP_KEYS.iter().position(|known| *known == key) {
            Some(place) => self.keys[place],
            None => self.env.create_string(key)?,
        };
        Object::from_raw(self.env.raw(), object.raw())
            .get_property_unchecked(key)
            .map_err(|error| self.unreadable(error, at))
    }

    /// Asks `Array.isArray`, which also recognises proxies of arrays. A proxy may claim any length, so one that no array can have is refused.
    fn length(&self, value: Unknown, at: Arguments) -> Result<Option<usize>> {
        let array: Object = self.env.get_global()?.get_named_property_unchecked("Array")?;
        let is_array: Function<Unknown, bool> = array.get_named_property("isArray")?;
        // For a revoked proxy it throws, and the call has made an error of that already.
        let is_array = is_array.call(value).map_err(|error| {
            let cause = JsError::from(error).into_unknown(*self.env);
            self.threw(at, cause)
        });
        if !is_array? {
            return Ok(None);
        }
        let at = format_args!("trace.steps.length");
        let length = self.get(value, "length", at)?;
        let found = self.kind(length)?;
        if found != "number" {
            return Err(self.refuse(Error::WrongType(
                Code::InvalidTrace,
                format!("{at} must be a number, got {found}"),
            )));
        }
        let length = self.number(length)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked by converting back.
        let whole = length as u32;
        if f64::from(whole) == length {
            return Ok(Some(whole as usize));
        }
        let problem = format!(
            "{at} must be the length of an array, got {}",
            javascript_number(length)
        );
        Err(self.refuse(Error::OutOfRange(Code::InvalidTrace, problem)))
    }

    fn element(&self, array: Unknown, index: usize, at: Arguments) -> Result<Unknown<'env>> {
        #[allow(clippy::cast_possible_truncation)] // It is less than the length.
        Object::from_raw(self.env.raw(), array.raw())
            .get_element(index as u32)
            .map_err(|error| self.unreadable(error, at))
    }

    fn boolean(&self, value: Unknown) -> Result<bool> {
        FromNapiValue::from_unknown(value)
    }

    fn number(&self, value: Unknown) -> Result<f64> {
        FromNapiValue::from_unknown(value)
    }

    fn units_in(&self, string: Unknown) -> Result<usize> {
        JsString::from_unknown(string)?.utf16_len()
    }

    fn copy_units(&self, string: Unknown, count: usize, units: &mut Vec<u16>) -> Result<()> {
        let mut written = 0;
        // One unit more, for the terminator that the call always writes.
        units.resize(count + 1, 0);
        // SAFETY: the value is a string of this environment, and the buffer holds as many units as stated.
        let status = unsafe {
            sys::napi_get_value_string_utf16(
                self.env.raw(),
                string.raw(),
                units.as_mut_ptr(),
                units.len(),
                &raw mut written,
            )
        };
        units.truncate(written);
        match status {
            sys::Status::napi_ok => Ok(()),
            _ => Err(napi::Error::from_status(Status::from(status))),
        }
    }
}

impl<'env> JavaScript<'env> {
    fn new(env: &'env Env) -> Result<Self> {
        let keys = STEP_KEYS.into_iter().map(|key| env.create_string(key));
        Ok(Self {
            env,
            keys: keys.collect::<Result<_>>()?,
        })
    }

    /// Converts an exception of a getter or a proxy to a typed error, with the exception as its cause. Returns other errors
    /// unchanged.
    fn unreadable(&self, error: napi::Error, at: Arguments) -> napi::Error {
        match self.take_exception() {
            Some(cause) => self.threw(at, cause),
            None => error,
        }
    }

    /// Takes the pending exception of JavaScript, if any. The status of a call does not tell: Node.js reports a getter that
    /// threw as a generic failure.
    fn take_exception(&self) -> Option<Unknown<'env>> {
        let mut pending = false;
        let mut exception = ptr::null_mut();
        let env = self.env.raw();
        // SAFETY: the environment is the one of the current call, and the pointer is valid for the write.
        let status = unsafe { sys::napi_is_exception_pending(env, &raw mut pending) };
        if status != sys::Status::napi_ok || !pending {
            return None;
        }
        // SAFETY: as above.
        let status = unsafe { sys::napi_get_and_clear_last_exception(env, &raw mut exception) };
        if status != sys::Status::napi_ok {
            return None;
        }
        // SAFETY: the call above has put a value of this environment there.
        Some(unsafe { Unknown::from_raw_unchecked(env, exception) })
    }

    fn threw(&self, at: Arguments, cause: Unknown) -> napi::Error {
        let error = Error::WrongType(Code::InvalidTrace, format!("{at} could not be read: it threw"));
        throw_with_cause(self.env, &error, Some(cause))
    }
}
