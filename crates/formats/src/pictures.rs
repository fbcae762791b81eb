//! Finds pictures and other files that are written in Base64 within texts, and puts their kind in their place.

use std::{mem, sync::LazyLock};

use knowledgepulse_json::{Object, Text, Value};
use regex::{Captures, Regex};

use crate::values::regex;

/// Data URLs, and files in Base64 of at least 64 digits: PNG, JPEG, GIF, WebP and other RIFF files, PDF.
static FILE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"data:(?:(image|audio|video)|[A-Za-z0-9.+_-]{1,40})/[A-Za-z0-9.+_-]{1,80}(?:;[A-Za-z0-9=.+_-]{1,80})*;base64,[A-Za-z0-9+/=_-]+|(?:(iVBORw0KGgo|/9j/[24]|R0lGOD[dl]|UklGR)|JVBERi0)[A-Za-z0-9+/=_-]*",
    )
});

/// Base64 of fewer bytes without a data URL is left as it is.
const SHORTEST: usize = 64;

/// Returns a text with each file in Base64 replaced by its kind, as `[image]`; `None` if it has none.
#[must_use]
pub fn without_files(text: &str) -> Option<String> {
    if text.len() < SHORTEST {
        return None;
    }
    let kind = |found: &Captures| {
        let (before, whole) = (&text[..found.get_match().start()], &found[0]);
        let is_apart = !before.ends_with(|before: char| before.is_ascii_alphanumeric());
        let is_file = whole.starts_with("data:") || whole.len() >= SHORTEST && is_apart;
        if !is_file {
            return whole.to_owned();
        }
        let image = found.get(2).map(|_| "image");
        let kind = found.get(1).map(|kind| kind.as_str()).or(image);
        format!("[{}]", kind.unwrap_or("file"))
    };
    Some(FILE.replace_all(text, kind).into_owned()).filter(|kept| kept != text)
}

/// Replaces the files in a text. Returns whether there was one.
pub fn replace(text: &mut Text) -> bool {
    let found = without_files(text);
    let is_found = found.is_some();
    *text = found.map_or_else(|| mem::take(text), Text::from);
    is_found
}

/// Replaces the files in the texts of arguments. Returns how many texts had one.
pub fn replace_in(fields: &mut Object) -> u64 {
    let mut count = 0;
    let mut waiting: Vec<&mut Value> = fields.iter_mut().map(|(_, value)| value).collect();
    while let Some(value) = waiting.pop() {
        match value {
            Value::String(text) => count += u64::from(replace(text)),
            Value::Array(elements) => waiting.extend(elements),
            Value::Object(fields) => waiting.extend(fields.iter_mut().map(|(_, value)| value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Digits(_) => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_files_replaces_data_urls_and_files_in_base64() {
        let picture = format!("iVBORw0KGgo{}", "A".repeat(80));
        for (text, expected) in [
            (picture.clone(), Some("[image]".to_owned())),
            (
                format!(
                    "data:image/svg+xml;charset=utf-8;base64,{picture} and more {}",
                    "x".repeat(64)
                ),
                Some(format!("[image] and more {}", "x".repeat(64))),
            ),
            (
                format!(r#"{{"data":"{picture}","mime":"image/png"}}"#),
                Some(r#"{"data":"[image]","mime":"image/png"}"#.into()),
            ),
            (
                format!("data:application/zip;base64,UEsD {}", "x".repeat(64)),
                Some(format!("[file] {}", "x".repeat(64))),
            ),
            (format!("JVBERi0{}", "x".repeat(64)), Some("[file]".into())),
            (
                "/9j/4 is how a JPEG begins in Base64, iVBORw0KGgo is how a PNG begins, and no more".into(),
                None,
            ),
            (format!("abc{picture}"), None),
            ("no picture ".repeat(20), None),
        ] {
            assert_eq!(without_files(&text), expected, "{text}");
        }
    }
}
