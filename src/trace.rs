//! From a JavaScript object to a [`Trace`], in one pass over the fields that the scorer reads. Other fields are not touched, because
//! `input` can be megabytes. Of a trace of one megabyte, `JSON.stringify` with a list of keys takes 7 to 12 ms before any reader, where a whole
//! call takes 0.6 ms without a comparison and 6 ms with `prefix`.

use std::{
    cell::{Cell, RefCell},
    fmt, ptr,
};

use napi::{
    Env, JsError, JsString, JsValue, Status, ValueType,
    bindgen_prelude::{FromNapiValue, Function, JsObjectValue, Object, Unknown},
    sys,
};

use knowledgepulse_embed::sufficiency::Sufficiency;
use knowledgepulse_error::{Error, fault};
use knowledgepulse_index::method::Method;
use knowledgepulse_trace::{
    Metadata, Name, Outcome, Step, StepKind, Task, Tool, Trace,
    label::{Label, MAX_LABEL_BYTES},
    text::MOST_UNITS,
};

use crate::error::{Result, throw, throw_with_cause};

/// Reads a trace, and as much of its text as a comparison of this method needs: the longest text that 512 tokens can have,
/// or up to [`MOST_UNITS`]; no text without a comparison.
///
/// # Errors
/// Throws `ERR_INVALID_TRACE`, which names the path of the field that is wrong.
pub(super) fn read(env: &Env, trace: Unknown, method: Option<Method>) -> Result<Trace> {
    fault::point("trace");
    let reader = Reader::new(env, method)?;
    let trace = reader.object(trace, At::trace("trace"))?;

    // A trace whose text is not read is not remembered, so it needs no label.
    let id = match method {
        None => None,
        Some(_) => reader.id(&trace)?,
    };

    let at = At::trace("trace.task");
    let task = reader.object(reader.get(&trace, "task", at)?, at)?;
    let at = At::trace("trace.task.objective");
    let objective = reader.text(reader.get(&task, "objective", at)?, at)?;

    let steps = reader.steps(&trace)?;

    let at = At::trace("trace.metadata");
    let metadata = reader.object(reader.get(&trace, "metadata", at)?, at)?;
    let at = At::trace("trace.metadata.success");
    let success = reader.get(&metadata, "success", at)?;
    let success = reader.cast::<bool>(success, ValueType::Boolean, "a boolean", at)?;
    let at = At::trace("trace.metadata.task_domain");
    let task_domain = reader.optional(reader.get(&metadata, "task_domain", at)?)?;
    let task_domain = task_domain
        .map(|domain| reader.string(domain, at, String::from_utf16_lossy))
        .transpose()?;

    let at = At::trace("trace.outcome");
    let outcome = reader.object(reader.get(&trace, "outcome", at)?, at)?;
    let at = At::trace("trace.outcome.confidence");
    let confidence = reader.get(&outcome, "confidence", at)?;
    let confidence = reader.cast::<f64>(confidence, ValueType::Number, "a number", at)?;

    Ok(Trace {
        task: Task { objective },
        steps,
        metadata: Metadata { success, task_domain },
        outcome: Outcome::new(confidence).map_err(|error| throw(env, &error))?,
        label: id.map(Label::from),
        text_cut: reader.units_left.get().is_none(),
    })
}

/// Returns what a reader of logs notes in `metadata.imported` of a trace: whether its outcome is known, in `known.success`, and its agent,
/// in `format`.
///
/// # Errors
/// Throws `ERR_INVALID_TRACE` if a getter of the trace throws.
pub(super) fn noted(env: &Env, trace: Unknown) -> Result<(bool, Option<String>)> {
    let reader = Reader::new(env, None)?;
    let at = |path: &[&'static str]| {
        let mut value = trace;
        for path in IMPORTED.iter().chain(path).copied() {
            if value.get_type()? != ValueType::Object {
                return Ok(None);
            }
            let name = path.rsplit('.').next().unwrap_or_default();
            value = reader.get(&Object::from_raw(env.raw(), value.raw()), name, At::trace(path))?;
        }
        Result::Ok(Some((value, value.get_type()?)))
    };
    let known = at(&[
        "trace.metadata.imported.known",
        "trace.metadata.imported.known.success",
    ])?;
    let known = known.filter(|(_, kind)| *kind == ValueType::Boolean);
    // SAFETY: the value is of the type that is read.
    let known = known
        .map(|(value, _)| unsafe { value.cast::<bool>() })
        .transpose()?;
    let agent = at(&["trace.metadata.imported.format"])?;
    let agent = agent.filter(|(_, kind)| *kind == ValueType::String);
    let place = At::trace("trace.metadata.imported.format");
    let agent = agent.map(|(agent, _)| reader.string(agent, place, String::from_utf16_lossy));
    Ok((known.unwrap_or(true), agent.transpose()?))
}

/// The path of what a reader of logs notes.
const IMPORTED: [&str; 2] = ["trace.metadata", "trace.metadata.imported"];

/// The path of a value, which is written out only if something is wrong with the value.
#[derive(Clone, Copy)]
struct At {
    /// The index of the step to which the field is relative, if any.
    step: Option<u32>,
    field: &'static str,
}

impl At {
    fn trace(field: &'static str) -> Self {
        Self { step: None, field }
    }

    fn step(index: u32, field: &'static str) -> Self {
        Self {
            step: Some(index),
            field,
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.step {
            write!(f, "trace.steps[{index}]")?;
        }
        f.write_str(self.field)
    }
}

/// How many code units of a text are copied before checking whether they are enough. For most traces one copy is.
const FIRST_UNITS: usize = 16 * 1024;

/// The state of reading one trace: the keys of a step as JavaScript strings, and how much text was read.
struct Reader<'env> {
    env: &'env Env,
    method: Option<Method>,
    sufficiency: RefCell<Sufficiency>,
    /// How many units of the whole text may still be read; `None` once some had to be left out.
    units_left: Cell<Option<usize>>,
    units: RefCell<Vec<u16>>,
    kind: JsString<'env>,
    content: JsString<'env>,
    tool: JsString<'env>,
    name: JsString<'env>,
}

impl<'env> Reader<'env> {
    fn new(env: &'env Env, method: Option<Method>) -> Result<Self> {
        Ok(Self {
            env,
            method,
            sufficiency: RefCell::default(),
            units_left: Cell::new(Some(MOST_UNITS)),
            units: RefCell::default(),
            kind: env.create_string("type")?,
            content: env.create_string("content")?,
            tool: env.create_string("tool")?,
            name: env.create_string("name")?,
        })
    }

    fn steps(&self, trace: &Object) -> Result<Vec<Step>> {
        let at = At::trace("trace.steps");
        let value = self.get(trace, "steps", at)?;
        if !self.is_array(value, at)? {
            return Err(self.wrong(value, "an array", at));
        }
        let steps = Object::from_raw(self.env.raw(), value.raw());
        let at = At::trace("trace.steps.length");
        let length = self.length(self.get(&steps, "length", at)?, at)?;
        // A proxy may claim any length, so memory is allocated as the steps are read.
        let mut read = Vec::with_capacity(length.min(1024) as usize);
        for index in 0..length {
            read.push(self.step(&steps, index)?);
        }
        Ok(read)
    }

    /// Returns the length of an array. A proxy may claim any length, so one that no array can have is refused.
    fn length(&self, value: Unknown, at: At) -> Result<u32> {
        let length = self.cast::<f64>(value, ValueType::Number, "a number", at)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked by converting back.
        let whole = length as u32;
        if f64::from(whole) == length {
            return Ok(whole);
        }
        let error = Error::TraceOutOfRange {
            path: at.to_string(),
            expected: "the length of an array",
            found: length,
        };
        Err(throw(self.env, &error))
    }

    fn step(&self, steps: &Object, index: u32) -> Result<Step> {
        let at = At::step(index, "");
        let step = steps
            .get_element::<Unknown>(index)
            .map_err(|error| self.unreadable(error, at))?;
        let step = self.object(step, at)?;
        let at = At::step(index, ".type");
        let kind = self.string(self.get_key(&step, self.kind, at)?, at, StepKind::of)?;
        let at = At::step(index, ".content");
        let content = self.optional(self.get_key(&step, self.content, at)?)?;
        let content = content.map(|content| self.text(content, at)).transpose()?;
        let at = At::step(index, ".tool");
        let tool = self.optional(self.get_key(&step, self.tool, at)?)?;
        let tool = tool.map(|tool| -> Result<Tool> {
            let tool = self.object(tool, at)?;
            let at = At::step(index, ".tool.name");
            let name = self.string(self.get_key(&tool, self.name, at)?, at, Name::of)?;
            Ok(Tool { name })
        });
        Ok(Step {
            kind,
            content,
            tool: tool.transpose()?,
        })
    }

    fn get(&self, object: &Object, key: &str, at: At) -> Result<Unknown<'env>> {
        self.get_key(object, self.env.create_string(key)?, at)
    }

    fn get_key(&self, object: &Object, key: JsString, at: At) -> Result<Unknown<'env>> {
        object
            .get_property_unchecked(key)
            .map_err(|error| self.unreadable(error, at))
    }

    /// Returns the value; `None` for `null` and `undefined`.
    fn optional(&self, value: Unknown<'env>) -> Result<Option<Unknown<'env>>> {
        Ok(match value.get_type()? {
            ValueType::Null | ValueType::Undefined => None,
            _ => Some(value),
        })
    }

    fn object(&self, value: Unknown<'env>, at: At) -> Result<Object<'env>> {
        if value.get_type()? != ValueType::Object || value.is_array()? {
            return Err(self.wrong(value, "an object", at));
        }
        Ok(Object::from_raw(self.env.raw(), value.raw()))
    }

    /// Reads a part of the text that is compared, up to where the rest can no longer change the comparison.
    fn text(&self, value: Unknown, at: At) -> Result<String> {
        let string = self.cast::<JsString>(value, ValueType::String, "a string", at)?;
        match self.method {
            None => Ok(String::new()),
            Some(Method::Prefix) => self.prefix(string),
            Some(_) => self.whole(string),
        }
    }

    /// Reads a part of the whole text, up to the limit of the trace.
    fn whole(&self, string: JsString) -> Result<String> {
        let Some(left) = self.units_left.get() else {
            return Ok(String::new());
        };
        let length = string.utf16_len()?;
        self.units_left.set(left.checked_sub(length));
        let mut units = self.units.borrow_mut();
        self.copy_units(string, length.min(left), &mut units)?;
        Ok(String::from_utf16_lossy(&units))
    }

    /// Reads a part of the text that is cut after 512 tokens.
    fn prefix(&self, string: JsString) -> Result<String> {
        let mut sufficiency = self.sufficiency.borrow_mut();
        if sufficiency.is_enough() {
            return Ok(String::new());
        }
        let mut units = self.units.borrow_mut();
        let length = string.utf16_len()?;
        let mut size = length.min(FIRST_UNITS);
        loop {
            self.copy_units(string, size, &mut units)?;
            let mut tried = *sufficiency;
            let needed = tried.read(&units);
            if tried.is_enough() || size == length {
                *sufficiency = tried;
                return Ok(String::from_utf16_lossy(&units[..needed]));
            }
            size = length.min(size.saturating_mul(4));
        }
    }

    /// Returns the `id`, under which the memory keeps the trace. It has no part in the score, so one that is not a usable string is
    /// ignored instead of refused.
    fn id(&self, trace: &Object) -> Result<Option<String>> {
        let key = self.env.create_string("id")?;
        let Ok(value) = trace.get_property_unchecked::<JsString, Unknown>(key) else {
            self.take_exception();
            return Ok(None);
        };
        if value.get_type()? != ValueType::String {
            return Ok(None);
        }
        let at = At::trace("trace.id");
        let string = self.cast::<JsString>(value, ValueType::String, "a string", at)?;
        if string.utf16_len()? > MAX_LABEL_BYTES {
            return Ok(None);
        }
        let id = self.string(value, at, String::from_utf16_lossy)?;
        Ok(Some(id).filter(|id| id.len() <= MAX_LABEL_BYTES))
    }

    /// Reads a string and converts its UTF-16 code units.
    fn string<T>(&self, value: Unknown, at: At, convert: impl FnOnce(&[u16]) -> T) -> Result<T> {
        let string = self.cast::<JsString>(value, ValueType::String, "a string", at)?;
        let mut units = self.units.borrow_mut();
        self.copy_units(string, string.utf16_len()?, &mut units)?;
        Ok(convert(&units))
    }

    /// Copies the first `count` code units of a string into `units`.
    fn copy_units(&self, string: JsString, count: usize, units: &mut Vec<u16>) -> Result<()> {
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

    /// Converts the value to the Rust type that stands for `kind`.
    fn cast<T: FromNapiValue>(
        &self,
        value: Unknown,
        kind: ValueType,
        expected: &'static str,
        at: At,
    ) -> Result<T> {
        if value.get_type()? != kind {
            return Err(self.wrong(value, expected, at));
        }
        // SAFETY: the value is of the type that `T` reads.
        unsafe { value.cast() }
    }

    /// Calls `Array.isArray`, which also recognises proxies of arrays.
    fn is_array(&self, value: Unknown, at: At) -> Result<bool> {
        if value.is_array()? {
            return Ok(true);
        }
        if value.get_type()? != ValueType::Object {
            return Ok(false);
        }
        let array: Object = self.env.get_global()?.get_named_property_unchecked("Array")?;
        let is_array: Function<Unknown, bool> = array.get_named_property("isArray")?;
        // For a revoked proxy it throws, and the call has made an error of that already.
        is_array.call(value).map_err(|error| {
            let cause = JsError::from(error).into_unknown(*self.env);
            self.threw(at, cause)
        })
    }

    fn wrong(&self, value: Unknown, expected: &'static str, at: At) -> napi::Error {
        let found = match value.get_type() {
            Ok(ValueType::Undefined) => "undefined",
            Ok(ValueType::Null) => "null",
            Ok(ValueType::Boolean) => "boolean",
            Ok(ValueType::Number) => "number",
            Ok(ValueType::String) => "string",
            Ok(ValueType::Symbol) => "symbol",
            Ok(ValueType::Function) => "function",
            Ok(ValueType::Object) if value.is_array().unwrap_or(false) => "array",
            Ok(ValueType::Object | ValueType::External) => "object",
            Ok(ValueType::BigInt) => "bigint",
            _ => "an unknown value",
        };
        let error = Error::TraceType {
            path: at.to_string(),
            expected,
            found,
        };
        throw(self.env, &error)
    }

    /// Converts an exception of a getter or a proxy to a typed error, with the exception as its cause. Returns other errors
    /// unchanged.
    fn unreadable(&self, error: napi::Error, at: At) -> napi::Error {
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

    fn threw(&self, at: At, cause: Unknown) -> napi::Error {
        let error = Error::TraceUnreadable { path: at.to_string() };
        throw_with_cause(self.env, &error, Some(cause))
    }
}
