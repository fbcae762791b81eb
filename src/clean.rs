//! Cleaning for JavaScript.

use napi::bindgen_prelude::{AsyncTask, Utf16String};
use napi_derive::napi;

use knowledgepulse_clean::{CleanOptions, Cleaner, Finding, InvalidExpression};
use knowledgepulse_error::{self as error, Code, Error};
use knowledgepulse_json::{Value, parse_str};

use crate::{
    background::{self, Background},
    call::NativeCall,
};

/// What is replaced, and by what.
#[napi(object, object_to_js = false)]
pub struct NativeCleanSettings {
    pub identifiers: bool,
    pub strict: bool,
    /// Values that stay, and whether each is an expression for such values.
    pub allow: Vec<(String, bool)>,
    /// The names and expressions of the caller's rules.
    pub rules: Vec<(String, String)>,
}

/// A text in which something was replaced, or a trace in JSON; and how often each type was found.
type Cleaned = (Utf16String, Vec<(String, u32)>);

/// Cleans a text; null if there is nothing to replace.
#[napi(catch_unwind, ts_return_type = "[string, [string, number][]] | null")]
pub fn clean_pii(text: Utf16String, identifiers: bool) -> Option<Cleaned> {
    let strict = false;
    let mut cleaner = Cleaner::new(CleanOptions { identifiers, strict });
    Some((cleaner.clean_text(&text)?.into(), counted(&mut cleaner)))
}

/// Cleans a text, or with `is_json` what `JSON.stringify` has written, away from the event loop. Rejects with `ERR_ABORTED` if the call was
/// cancelled before it began.
#[napi(catch_unwind, ts_return_type = "Promise<[string, [string, number][]]>")]
pub fn clean(
    text: Utf16String,
    is_json: bool,
    settings: NativeCleanSettings,
    call: &NativeCall,
) -> AsyncTask<Background<Cleaned>> {
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
        Ok((cleaned, counted(&mut cleaner)))
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
    parse_str(json).map_err(|_| {
        Error::OutOfRange(
            Code::InvalidTrace,
            "trace is nested deeper than 256 levels".into(),
        )
    })
}

impl NativeCleanSettings {
    /// Makes a cleaner. `path` names the options in errors.
    pub(super) fn cleaner(&self, path: &str) -> error::Result<Cleaner> {
        let Self {
            identifiers, strict, ..
        } = *self;
        let mut cleaner = Cleaner::new(CleanOptions { identifiers, strict });
        for (index, (allowed, is_expression)) in self.allow.iter().enumerate() {
            if *is_expression {
                let problem = |error| invalid(&format!("{path}.allow[{index}]"), error);
                cleaner.allow_expression(allowed).map_err(problem)?;
            } else {
                cleaner.allow(allowed);
            }
        }
        for (name, expression) in &self.rules {
            let problem = |error| invalid(&format!("{path}.rules[{name:?}]"), error);
            cleaner.add_rule(name, expression).map_err(problem)?;
        }
        Ok(cleaner)
    }
}

fn invalid(option: &str, InvalidExpression(problem): InvalidExpression) -> Error {
    let problem = format!("{option} is not an expression: {problem}");
    Error::WrongType(Code::InvalidOption, problem)
}

/// Returns how often each type was found, in the order in which the types were first found.
fn counted(cleaner: &mut Cleaner) -> Vec<(String, u32)> {
    let mut redactions: Vec<(String, u32)> = Vec::new();
    for Finding { name, .. } in cleaner.take_findings() {
        match redactions.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => redactions.push((name, 1)),
        }
    }
    redactions
}
