//! Cleaning for JavaScript.

use std::sync::Arc;

use napi::{
    Env, Task,
    bindgen_prelude::{AsyncTask, Utf16String},
};
use napi_derive::napi;

use knowledgepulse_clean::{self as clean, Options, Redactions};
use knowledgepulse_error::{self as error, Call, guarded};
use knowledgepulse_json::Value;

use crate::{
    call::NativeCall,
    error::{Result, rejection},
    json,
};

/// A text in which something was replaced.
#[napi(object)]
pub struct NativeCleaned {
    /// The clean text.
    pub cleaned: Utf16String,
    /// The replacements, counted by type.
    pub redactions: Vec<NativeRedaction>,
}

/// How often a type was found.
#[napi(object)]
pub struct NativeRedaction {
    /// The type.
    #[napi(js_name = "type")]
    pub name: String,
    /// How often.
    pub count: f64,
}

/// A clean trace.
#[napi(object)]
pub struct NativeCleanedTrace {
    /// The nodes of the trace, in JSON.
    pub nodes: String,
    /// The replacements, counted by type.
    pub redactions: Vec<NativeRedaction>,
}

/// Cleans a text; null if there is nothing to replace.
#[napi(catch_unwind, ts_return_type = "NativeCleaned | null")]
pub fn clean_pii(text: Utf16String, identifiers: bool, strict: bool) -> Option<NativeCleaned> {
    cleaned(clean::clean_pii(&text, Options { identifiers, strict }))
}

/// Cleans a text, away from the event loop; null if there is nothing to replace. Rejects with `ERR_ABORTED` if the call was cancelled.
#[napi(catch_unwind, ts_return_type = "Promise<NativeCleaned | null>")]
pub fn clean_pii_async(
    text: Utf16String,
    identifiers: bool,
    strict: bool,
    call: Option<&NativeCall>,
) -> AsyncTask<CleanText> {
    AsyncTask::new(CleanText {
        text,
        options: Options { identifiers, strict },
        call: call.map(NativeCall::share).unwrap_or_default(),
    })
}

/// Cleans a trace, away from the event loop: its nodes in JSON, as `lib/calls/nodes.js` makes them. Rejects with `ERR_ABORTED` if
/// the call was cancelled.
#[napi(catch_unwind, ts_return_type = "Promise<NativeCleanedTrace>")]
pub fn clean_trace(
    nodes: String,
    identifiers: bool,
    strict: bool,
    call: Option<&NativeCall>,
) -> AsyncTask<CleanTrace> {
    AsyncTask::new(CleanTrace {
        nodes,
        options: Options { identifiers, strict },
        call: call.map(NativeCall::share).unwrap_or_default(),
    })
}

/// Cleaning a text, away from the event loop.
pub struct CleanText {
    text: Utf16String,
    options: Options,
    call: Arc<Call>,
}

impl Task for CleanText {
    type Output = error::Result<(Option<Vec<u16>>, Redactions)>;
    type JsValue = Option<NativeCleaned>;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(guarded(|| {
            clean::clean_text(&self.text, self.options, &self.call)
        }))
    }

    fn resolve(&mut self, env: Env, found: Self::Output) -> Result<Self::JsValue> {
        found.map(cleaned).map_err(|error| rejection(env, &error))
    }
}

/// Cleaning a trace, away from the event loop.
pub struct CleanTrace {
    nodes: String,
    options: Options,
    call: Arc<Call>,
}

impl Task for CleanTrace {
    type Output = error::Result<(String, Redactions)>;
    type JsValue = NativeCleanedTrace;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(guarded(|| {
            let nodes = json::nodes(&self.nodes)?;
            let (nodes, redactions) = clean::clean_nodes(&nodes, self.options, &self.call)?;
            Ok((Value::Array(nodes).to_json(), redactions))
        }))
    }

    fn resolve(&mut self, env: Env, cleaned: Self::Output) -> Result<Self::JsValue> {
        let (nodes, redactions) = cleaned.map_err(|error| rejection(env, &error))?;
        Ok(NativeCleanedTrace {
            nodes,
            redactions: listed(&redactions),
        })
    }
}

fn cleaned((text, redactions): (Option<Vec<u16>>, Redactions)) -> Option<NativeCleaned> {
    Some(NativeCleaned {
        cleaned: text?.into(),
        redactions: listed(&redactions),
    })
}

#[allow(clippy::cast_precision_loss)] // No text has 2^53 matches.
fn listed(redactions: &Redactions) -> Vec<NativeRedaction> {
    let redactions = redactions.as_slice().iter();
    redactions
        .map(|redaction| NativeRedaction {
            name: redaction.name.to_owned(),
            count: redaction.count as f64,
        })
        .collect()
}
