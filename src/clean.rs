//! Cleaning for JavaScript.

use std::sync::Arc;

use napi::{
    Env, Task,
    bindgen_prelude::{AsyncTask, Utf16String},
};
use napi_derive::napi;

use knowledgepulse_clean::{self as clean, CleanedTexts, Options, Redactions};
use knowledgepulse_error::{self as error, Call, guarded};

use crate::{
    call::NativeCall,
    error::{Result, rejection},
};

/// A text in which something was replaced.
#[napi(object)]
pub struct NativeCleaned {
    /// The clean text.
    pub cleaned: Utf16String,
    /// What was replaced.
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

/// Texts of which some were changed.
#[napi(object)]
pub struct NativeCleanedTexts {
    /// The indexes of those that were.
    pub indexes: Vec<f64>,
    /// These, cleaned.
    pub texts: Vec<Utf16String>,
    /// What was replaced in all of them.
    pub redactions: Vec<NativeRedaction>,
}

/// Cleans a text; null if there is nothing to replace.
#[napi(catch_unwind, ts_return_type = "NativeCleaned | null")]
pub fn clean_pii(text: Utf16String, identifiers: bool, strict: bool) -> Option<NativeCleaned> {
    let (cleaned, redactions) = clean::clean_pii(&text, Options { identifiers, strict });
    Some(NativeCleaned {
        cleaned: cleaned?.into(),
        redactions: listed(&redactions),
    })
}

/// Cleans texts, away from the event loop. Rejects with `ERR_ABORTED` if the call was cancelled.
#[napi(catch_unwind, ts_return_type = "Promise<NativeCleanedTexts>")]
pub fn clean_all(
    texts: Vec<Utf16String>,
    identifiers: bool,
    strict: bool,
    call: Option<&NativeCall>,
) -> AsyncTask<Clean> {
    AsyncTask::new(Clean {
        texts,
        options: Options { identifiers, strict },
        call: call.map(NativeCall::share).unwrap_or_default(),
    })
}

/// Whether what stands under this name can be a secret.
#[napi(catch_unwind)]
pub fn is_secret_name(name: String) -> bool {
    clean::is_secret_name(&name)
}

/// Whether this value, standing under this name, is a secret.
#[napi(catch_unwind)]
pub fn is_secret(name: String, value: String) -> bool {
    clean::is_secret(&name, &value)
}

/// Cleaning texts, away from the event loop.
pub struct Clean {
    texts: Vec<Utf16String>,
    options: Options,
    call: Arc<Call>,
}

impl Task for Clean {
    type Output = error::Result<CleanedTexts>;
    type JsValue = NativeCleanedTexts;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(guarded(|| {
            clean::clean_all(&self.texts, self.options, &self.call)
        }))
    }

    #[allow(clippy::cast_precision_loss)] // No array has 2^53 elements.
    fn resolve(&mut self, env: Env, cleaned: Self::Output) -> Result<NativeCleanedTexts> {
        let cleaned = cleaned.map_err(|error| rejection(env, &error))?;
        let redactions = listed(&cleaned.redactions);
        let (indexes, texts) = cleaned
            .changed
            .into_iter()
            .map(|(index, text)| (index as f64, text.into()))
            .unzip();
        Ok(NativeCleanedTexts {
            indexes,
            texts,
            redactions,
        })
    }
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
