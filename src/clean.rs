//! Cleaning for JavaScript.

use napi::bindgen_prelude::{AsyncTask, Utf16String};
use napi_derive::napi;

use knowledgepulse_clean::{self as clean, Options, Redactions};
use knowledgepulse_error::Error;
use knowledgepulse_json::parse_str;

use crate::{
    background::{self, Background},
    call::NativeCall,
};

/// A text in which something was replaced.
#[napi(object)]
pub struct NativeCleaned {
    pub cleaned: Utf16String,
    pub redactions: Vec<NativeRedaction>,
}

/// How often a type was found.
#[napi(object)]
pub struct NativeRedaction {
    #[napi(js_name = "type")]
    pub name: String,
    pub count: f64,
}

/// A clean trace.
#[napi(object)]
pub struct NativeCleanedTrace {
    /// The trace, in JSON.
    pub json: String,
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
) -> AsyncTask<Background<Option<NativeCleaned>>> {
    let call = call.map(NativeCall::share).unwrap_or_default();
    background::run(move || clean::clean_text(&text, Options { identifiers, strict }, &call).map(cleaned))
}

/// Cleans a trace that `JSON.stringify` has written, away from the event loop. Rejects with `ERR_ABORTED` if the call was cancelled.
#[napi(catch_unwind, ts_return_type = "Promise<NativeCleanedTrace>")]
pub fn clean_trace(
    json: String,
    identifiers: bool,
    strict: bool,
    call: Option<&NativeCall>,
) -> AsyncTask<Background<NativeCleanedTrace>> {
    let call = call.map(NativeCall::share).unwrap_or_default();
    background::run(move || {
        // `JSON.stringify` writes nothing else that is refused.
        let trace = parse_str(&json).map_err(|_| Error::TraceTooLarge {
            problem: "is nested deeper than 256 levels".into(),
        })?;
        let (trace, redactions) = clean::clean_trace(trace, Options { identifiers, strict }, &call)?;
        Ok(NativeCleanedTrace {
            json: trace.to_json(),
            redactions: listed(&redactions),
        })
    })
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
