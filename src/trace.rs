//! From a JavaScript object to a [`Trace`], in one pass over the fields that the scorer reads. Other fields are not touched, because
//! `input` can be megabytes. Of a trace of one megabyte, `JSON.stringify` with a list of keys takes 7 to 12 ms before any reader, where a whole
//! call takes 0.6 ms without a comparison and 6 ms with `prefix`.

use std::{cell::Cell, fmt::Arguments, ptr};

use napi::{
    Env, JsError, JsString, JsValue, ValueType,
    bindgen_prelude::{FromNapiValue, Function, JsObjectValue, Object, Unknown},
    sys,
};

use knowledgepulse_embed::sufficiency::Sufficiency;
use knowledgepulse_error::{self as error, Code, Error, fault, javascript_number};
use knowledgepulse_index::method::Method;
use knowledgepulse_trace::{
    Trace,
    reading::{self, Source, Texts},
};

use crate::error::{Result, throw_with_cause};

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
    of(env, trace, |trace| reading::read(trace, texts))
}

/// Returns what a reader of logs notes in `metadata.imported` of a trace: whether its outcome is known, in `known.success`, and its agent,
/// in `format`; `None` where it notes nothing.
///
/// # Errors
/// Throws `ERR_INVALID_TRACE` if a getter of the trace throws.
pub(super) fn noted(env: &Env, trace: Unknown) -> Result<Option<(bool, Option<String>)>> {
    of(env, trace, |trace| {
        let metadata = within(Some(trace), "metadata", format_args!("trace.metadata"))?;
        let at = format_args!("trace.metadata.imported");
        let imported = within(metadata, "imported", at)?.filter(|imported| imported.kind() == "object");
        let known = within(imported, "known", format_args!("{at}.known"))?;
        let known = within(known, "success", format_args!("{at}.known.success"))?;
        let known = known.filter(|known| known.kind() == "boolean");
        let agent = within(imported, "format", format_args!("{at}.format"))?;
        let agent = agent.filter(|agent| agent.kind() == "string");
        let agent = agent.map(|agent| String::from_utf16_lossy(&agent.name().0));
        Ok(imported.map(|_| (known.is_none_or(Source::boolean), agent)))
    })
}

/// Returns a property of an object; `None` of another value.
fn within<'v>(
    value: Option<JavaScript<'v>>,
    key: &'static str,
    at: Arguments,
) -> error::Result<Option<JavaScript<'v>>> {
    let object = value.filter(|value| value.kind() == "object");
    object.map(|object| object.get(key, at)).transpose()
}

/// Reads a value of JavaScript. Throws the error of `read`, with what a getter of the value has thrown as its cause.
fn of<T>(env: &Env, value: Unknown, read: impl FnOnce(JavaScript) -> error::Result<T>) -> Result<T> {
    let keys = STEP_KEYS.into_iter().map(|key| env.create_string(key));
    let realm = Realm {
        env,
        keys: keys.collect::<Result<_>>()?,
        cause: Cell::new(None),
    };
    let value = JavaScript { realm: &realm, value };
    read(value).map_err(|error| throw_with_cause(env, &error, realm.cause.take()))
}

/// The keys of a step, which are made into strings of JavaScript once.
const STEP_KEYS: [&str; 4] = ["type", "content", "tool", "name"];

/// Where values of JavaScript are read.
struct Realm<'env> {
    env: &'env Env,
    /// Those of [`STEP_KEYS`].
    keys: Vec<JsString<'env>>,
    /// What a getter or a proxy has thrown.
    cause: Cell<Option<Unknown<'env>>>,
}

/// A value of JavaScript.
#[derive(Clone, Copy)]
struct JavaScript<'env> {
    realm: &'env Realm<'env>,
    value: Unknown<'env>,
}

impl Source for JavaScript<'_> {
    fn kind(self) -> &'static str {
        match self.value.get_type().unwrap_or(ValueType::Unknown) {
            ValueType::Undefined => "undefined",
            ValueType::Null => "null",
            ValueType::Boolean => "boolean",
            ValueType::Number => "number",
            ValueType::String => "string",
            ValueType::Symbol => "symbol",
            ValueType::Function => "function",
            ValueType::Object if self.value.is_array().unwrap_or_default() => "array",
            ValueType::Object | ValueType::External => "object",
            ValueType::BigInt => "bigint",
            ValueType::Unknown => "an unknown value",
        }
    }

    fn get(self, key: &'static str, at: Arguments) -> error::Result<Self> {
        let Realm { env, keys, .. } = self.realm;
        let known = STEP_KEYS.iter().position(|known| *known == key);
        let key = known.map_or_else(|| env.create_string(key), |place| Ok(keys[place]));
        let object = Object::from_raw(env.raw(), self.value.raw());
        let value = key.and_then(|key| object.get_property_unchecked(key));
        self.read(value, at)
    }

    /// Asks `Array.isArray`, which also recognises proxies of arrays. A proxy may claim any length, so one that no array can have is refused.
    fn length(self, at: Arguments) -> error::Result<Option<usize>> {
        let ask = || {
            let global = self.realm.env.get_global()?;
            let array: Object = global.get_named_property_unchecked("Array")?;
            let is_array: Function<Unknown, bool> = array.get_named_property("isArray")?;
            is_array.call(self.value)
        };
        // For a revoked proxy it throws, and the call has made an error of that already.
        let is_array = ask().map_err(|error| {
            let cause = JsError::from(error).into_unknown(*self.realm.env);
            self.threw(at, Some(cause))
        });
        if !is_array? {
            return Ok(None);
        }
        let at = format_args!("{at}.length");
        let length = self.get("length", at)?;
        let found = length.kind();
        if found != "number" {
            let problem = format!("{at} must be a number, got {found}");
            return Err(Error::WrongType(Code::InvalidTrace, problem));
        }
        let length = length.number();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked by converting back.
        let whole = length as u32;
        if f64::from(whole) == length {
            return Ok(Some(whole as usize));
        }
        let found = javascript_number(length);
        let problem = format!("{at} must be the length of an array, got {found}");
        Err(Error::OutOfRange(Code::InvalidTrace, problem))
    }

    fn element(self, index: usize, at: Arguments) -> error::Result<Self> {
        let array = Object::from_raw(self.realm.env.raw(), self.value.raw());
        #[allow(clippy::cast_possible_truncation)] // It is less than the length.
        self.read(array.get_element(index as u32), at)
    }

    fn boolean(self) -> bool {
        FromNapiValue::from_unknown(self.value).unwrap_or_default()
    }

    fn number(self) -> f64 {
        FromNapiValue::from_unknown(self.value).unwrap_or(f64::NAN)
    }

    fn units(self) -> usize {
        let string = JsString::from_unknown(self.value);
        string.and_then(|string| string.utf16_len()).unwrap_or_default()
    }

    fn copy_units(self, count: usize, units: &mut Vec<u16>) {
        let mut written = 0;
        // One unit more, for the terminator that the call always writes.
        units.resize(count + 1, 0);
        // SAFETY: the value is one of this environment, and the buffer holds as many units as stated. If the value is no string, none is written.
        unsafe {
            sys::napi_get_value_string_utf16(
                self.realm.env.raw(),
                self.value.raw(),
                units.as_mut_ptr(),
                units.len(),
                &raw mut written,
            )
        };
        units.truncate(written);
    }
}

impl<'env> JavaScript<'env> {
    /// Returns what was read at the path `at`, or the error for what was thrown.
    fn read(self, value: Result<Unknown<'env>>, at: Arguments) -> error::Result<Self> {
        let value = value.map_err(|_| self.threw(at, self.take_exception()))?;
        Ok(Self { value, ..self })
    }

    /// Takes the pending exception of JavaScript, if any. The status of a call does not tell: Node.js reports a getter that
    /// threw as a generic failure.
    fn take_exception(self) -> Option<Unknown<'env>> {
        let mut pending = false;
        let mut exception = ptr::null_mut();
        let env = self.realm.env.raw();
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

    fn threw(self, at: Arguments, cause: Option<Unknown<'env>>) -> Error {
        self.realm.cause.set(cause);
        Error::WrongType(Code::InvalidTrace, format!("{at} could not be read: it threw"))
    }
}
