//! Cleaning for JavaScript.

use napi::bindgen_prelude::{AsyncTask, Utf16String};
use napi_derive::napi;

use knowledgepulse_clean::{CleanOptions, Cleaner, Finding, InvalidExpression};
use knowledgepulse_error::{self as error, Error};
use knowledgepulse_json::{Value, parse_str};

use crate::{
    background::{self, Background},
    call::NativeCall,
};

/// A text in which something was replaced, or a trace in JSON.
#[napi(object, object_from_js = false)]
pub struct NativeCleaned {
    pub cleaned: Utf16String,
    pub redactions: Vec<NativeRedaction>,
}

/// How often a type was found.
#[napi(object, object_from_js = false)]
pub struct NativeRedaction {
    #[napi(js_name = "type")]
    pub name: String,
    pub count: u32,
}

/// What is replaced, and by what.
#[napi(object, object_to_js = false)]
pub struct NativeCleanSettings {
    pub identifiers: bool,
    pub strict: bool,
    /// Values that stay.
    pub allow: Vec<NativeAllowed>,
    pub rules: Vec<NativeRule>,
}

/// A value that stays, or an expression for such values.
#[napi(object, object_to_js = false)]
pub struct NativeAllowed {
    pub text: String,
    pub is_expression: bool,
}

/// A rule of the caller.
#[napi(object, object_to_js = false)]
pub struct NativeRule {
    pub name: String,
    pub expression: String,
}

/// Cleans a text; null if there is nothing to replace.
#[napi(catch_unwind, ts_return_type = "NativeCleaned | null")]
pub fn clean_pii(text: Utf16String, identifiers: bool) -> Option<NativeCleaned> {
    let strict = false;
    let mut cleaner = Cleaner::new(CleanOptions { identifiers, strict });
    Some(NativeCleaned {
        cleaned: cleaner.clean_text(&text)?.into(),
        redactions: counted(&mut cleaner),
    })
}

/// Cleans a text, or with `is_json` what `JSON.stringify` has written, away from the event loop. Rejects with `ERR_ABORTED` if the call was
/// cancelled before it began.
#[napi(catch_unwind, ts_return_type = "Promise<NativeCleaned>")]
pub fn clean(
    text: Utf16String,
    is_json: bool,
    settings: NativeCleanSettings,
    call: &NativeCall,
) -> AsyncTask<Background<NativeCleaned>> {
    let call = call.share();
    background::run(move || {
        call.check()?;
        let mut cleaner = settings.cleaner("options")?;
        let cleaned = if is_json {
            clean_json(&mut cleaner, &text)?
        } else {
            let clean = cleaner.clean_single_text(&text);
            clean.unwrap_or_else(|| text.to_vec()).into()
        };
        let redactions = counted(&mut cleaner);
        Ok(NativeCleaned { cleaned, redactions })
    })
}

fn clean_json(cleaner: &mut Cleaner, json: &[u16]) -> error::Result<Utf16String> {
    // `JSON.stringify` writes nothing else that is refused, and escapes lone surrogates.
    let value = parsed(&String::from_utf16_lossy(json))?;
    let clean = cleaner.clean_trace(&value)?;
    Ok(clean.to_json().encode_utf16().collect::<Vec<_>>().into())
}

/// Parses what `JSON.stringify` has written of a trace.
pub(super) fn parsed(json: &str) -> error::Result<Value> {
    parse_str(json).map_err(|_| Error::TraceTooLarge {
        problem: "is nested deeper than 256 levels".into(),
    })
}

impl NativeCleanSettings {
    /// Makes a cleaner. `path` names the options in errors.
    pub(super) fn cleaner(&self, path: &str) -> error::Result<Cleaner> {
        let Self {
            identifiers, strict, ..
        } = *self;
        let mut cleaner = Cleaner::new(CleanOptions { identifiers, strict });
        for (index, allowed) in self.allow.iter().enumerate() {
            if allowed.is_expression {
                let problem = |error| invalid(format!("{path}.allow[{index}]"), error);
                cleaner.allow_expression(&allowed.text).map_err(problem)?;
            } else {
                cleaner.allow(&allowed.text);
            }
        }
        for NativeRule { name, expression } in &self.rules {
            let problem = |error| invalid(format!("{path}.rules[{name:?}]"), error);
            cleaner.add_rule(name, expression).map_err(problem)?;
        }
        Ok(cleaner)
    }
}

fn invalid(option: String, InvalidExpression(problem): InvalidExpression) -> Error {
    let problem = format!("is not an expression: {problem}");
    Error::Expression { option, problem }
}

/// Returns how often each type was found, in the order in which the types were first found.
fn counted(cleaner: &mut Cleaner) -> Vec<NativeRedaction> {
    let mut redactions: Vec<NativeRedaction> = Vec::new();
    for Finding { name, .. } in cleaner.take_findings() {
        match redactions.iter_mut().find(|redaction| redaction.name == name) {
            Some(redaction) => redaction.count = redaction.count.saturating_add(1),
            None => redactions.push(NativeRedaction { name, count: 1 }),
        }
    }
    redactions
}
