//! Cleans a JSON text and keeps every byte of it that is not redacted.

use knowledgepulse_clean::{Cleaner, Finding, places_to_review};
use knowledgepulse_json::Value;

use crate::splice::replace_strings;

/// A clean text, and what was redacted in it.
#[derive(Debug)]
pub struct CleanText {
    /// The text.
    pub text: String,
    /// The findings, each with its position in the old text, in bytes. Where an object has a name twice, all positions are 0, and the
    /// text is written anew, because a parser sees only the last of the two.
    pub found: Vec<(usize, Finding)>,
}

/// Cleans the text of a JSON value.
pub fn clean_json_text(cleaner: &mut Cleaner, text: &str, value: Value) -> CleanText {
    let Ok(clean) = cleaner.clean_json(&value) else {
        // Nested too deeply to be cleaned as JSON.
        cleaner.take_findings();
        return clean_plain_text(cleaner, text);
    };
    let findings = cleaner.take_findings();
    let Some(replaced) = replace_strings(text, &value, &clean) else {
        let ending = &text[text.trim_end().len()..];
        return CleanText {
            text: clean.to_json() + ending,
            found: findings.into_iter().map(|finding| (0, finding)).collect(),
        };
    };
    let place_of = |finding: &Finding| replaced.places.get(&finding.pointer).copied().unwrap_or_default();
    CleanText {
        found: findings
            .into_iter()
            .map(|finding| (place_of(&finding), finding))
            .collect(),
        text: replaced.text,
    }
}

/// Cleans a text that is no JSON.
pub fn clean_plain_text(cleaner: &mut Cleaner, text: &str) -> CleanText {
    let units: Vec<u16> = text.encode_utf16().collect();
    // The text was valid, and markers are ASCII between its characters.
    let clean = cleaner
        .clean_text(&units)
        .map(|clean| String::from_utf16_lossy(&clean));
    let mut findings = cleaner.take_findings();
    findings.sort_by_key(|finding| finding.start);
    let (mut unit, mut byte) = (0, 0);
    let mut byte_of = |start: usize| {
        let units = units.get(unit..start).unwrap_or_default();
        byte += String::from_utf16_lossy(units).len();
        unit = unit.max(start);
        byte
    };
    CleanText {
        found: findings
            .into_iter()
            .map(|finding| (byte_of(finding.start), finding))
            .collect(),
        text: clean.unwrap_or_else(|| text.to_owned()),
    }
}

/// Returns the places of a clean text that a person should look at: each with its line, from 1, and its position in bytes.
pub fn lines_to_review(text: &str) -> impl Iterator<Item = (u64, usize)> {
    let (mut line, mut at) = (1, 0);
    places_to_review(text).map(move |place| {
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[at..place]).count() as u64;
        at = place;
        (line, place)
    })
}
