//! Secrets that are told by the text around them, by `rules/structures.tsv`, and thoughts that only a provider can read.

use std::sync::LazyLock;

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    keywords::{self, ByKeyword, Owner},
    languages::is_shaped,
    names::{is_possible, is_secret},
    random::{is_id, prefixed_tokens},
    ranges::{Pattern, Ranges, merged},
    text::{self, is_word},
    values::{is_chosen, is_expression},
};

/// A line of `rules/structures.tsv`.
struct Structure {
    expression: Pattern,
    /// Whether it begins with a word.
    begins_word: bool,
    /// Whether the secret stands before the keyword.
    is_before: bool,
    /// Whether the name of the secret stands before the keyword, and the secret behind it.
    is_around: bool,
}

impl Structure {
    /// Returns the structure of a line, and its keywords.
    fn of(line: &'static str) -> Option<(Self, &'static str)> {
        let (keywords, pattern) = line.split_once('\t')?.1.split_once('\t')?;
        let is_before = pattern.ends_with('$');
        let own = pattern.strip_prefix(r"\b").unwrap_or(pattern);
        let is_around = own.starts_with("(?i)(?P<name>");
        let structure = Self {
            expression: if is_before || is_around {
                Pattern::new(own)
            } else {
                Pattern::of(format!("^(?:{own})"))
            },
            begins_word: own.len() < pattern.len(),
            is_before,
            is_around,
        };
        Some((structure, keywords))
    }
}

static STRUCTURES: LazyLock<ByKeyword<Structure>> = LazyLock::new(|| {
    let lines = include_str!("../rules/structures.tsv").lines().skip(1);
    ByKeyword::of(lines.filter_map(Structure::of), ',')
});

/// Returns the keywords of all structures.
pub(super) fn keywords() -> Vec<Vec<u8>> {
    STRUCTURES.keywords()
}

/// Finds secrets by the expressions of `rules/structures.tsv`.
pub(super) fn of_structures(text: &text::Text) -> Ranges {
    const MOST_LETTERS: usize = 512;
    const MOST_BEFORE: usize = 128;
    let letters = text.letters();
    let mut ranges = Ranges::new();
    for keyword in text.keywords(Owner::Structures) {
        let start = keyword.range.start;
        let follows_word = start > 0 && is_word(letters[start - 1]);
        for (_, row) in STRUCTURES.of_keyword(keyword.number) {
            if row.begins_word && follows_word {
                continue;
            }
            let before = start.saturating_sub(MOST_BEFORE);
            let has_name = || {
                let name = keywords::from(text.keywords(Owner::Names), before).first();
                name.is_some_and(|name| name.range.start < start)
            };
            if row.is_around && !has_name() {
                continue;
            }
            let behind = letters.len().min(start + MOST_LETTERS);
            let within = match (row.is_before, row.is_around) {
                (true, _) => before..start,
                (_, true) => before..behind,
                _ => start..behind,
            };
            let part = &letters[within.clone()];
            // Groups cost more than to see that there is no match.
            let is_match = row.expression.is_match(part);
            let Some(found) = is_match.then(|| row.expression.captures(part)).flatten() else {
                continue;
            };
            // A value whose name stands beside it is told by that.
            let secrets: Vec<_> = match (found.name("name"), found.name("value")) {
                (Some(name), Some(value))
                    if is_secret(name.as_bytes(), value.as_bytes())
                        && !is_limit(&letters[..within.start + value.start()], value.as_bytes()) =>
                {
                    vec![value]
                }
                (Some(_), Some(_)) => Vec::new(),
                _ => found.iter().skip(1).flatten().collect(),
            };
            let is_made = |word: &[u8]| is_chosen(word) || is_shaped(word) && !is_id(word);
            let is_told = found.name("chosen").is_none();
            let secrets = secrets
                .into_iter()
                .filter(|secret| is_told || is_made(secret.as_bytes()))
                .map(|secret| within.start + secret.start()..within.start + secret.end());
            // Of a machine.
            let is_host = |value: &[u8]| {
                let mut parts = value.split(|letter| *letter == b'.');
                parts.clone().count() > 2 && parts.all(|part| part.iter().all(u8::is_ascii_lowercase))
            };
            let is_value = |value| is_possible(value) && !is_expression(value) && !is_host(value);
            ranges.extend(secrets.filter(|range| is_value(&letters[range.clone()])));
        }
    }
    merged(ranges)
}

/// Returns whether a value is a number without quotes, as limits and times are.
fn is_limit(before: &[u8], value: &[u8]) -> bool {
    const MOST_DIGITS: usize = 7;
    value.len() <= MOST_DIGITS
        && value.iter().all(u8::is_ascii_digit)
        && !matches!(before.last(), Some(b'"' | b'\''))
}

/// Returns whether a field is a model's thought that only its provider can read: Base64 under a name that the formats of agents have.
pub(super) fn is_opaque(object: &Object, name: &Text, value: &Value) -> bool {
    const LEAST_LETTERS: usize = 64;
    let of_base64 = |letter: &u8| letter.is_ascii_alphanumeric() || b"+/-_=".contains(letter);
    // A key with a prefix of two parts: `github_pat_…`.
    let is_token = |text: &[u8]| {
        let parts = text[..LEAST_LETTERS].split(|letter| !letter.is_ascii_alphanumeric());
        parts.count() > 2
            && prefixed_tokens(text)
                .first()
                .is_some_and(|token| token.start == 0)
    };
    let is_base64 = |text: &Text| {
        let text = text.as_bytes();
        text.len() >= LEAST_LETTERS && text.iter().all(of_base64)
    };
    if !value.as_text().is_some_and(is_base64) {
        return false;
    }
    let mut name = name.as_bytes().to_ascii_lowercase();
    name.retain(|letter| *letter != b'_');
    let kind = object.get("type").and_then(Value::as_str);
    let is_redacted = name == b"data" && matches!(kind, Some("redacted_thinking" | "reasoning.encrypted"));
    let is_named = is_redacted
        || name.ends_with(b"signature")
        || matches!(name.as_slice(), b"encryptedcontent" | b"reasoningopaque");
    is_named && !value.as_text().is_some_and(|text| is_token(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_structure_compiles_and_has_a_group() {
        let mut rows = STRUCTURES.rows.iter();
        assert!(rows.all(|row| row.expression.captures_len() > 1));
    }
}
