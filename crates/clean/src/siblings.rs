//! Values that a field beside them says are secret: `{"name": "DB_PASSWORD", "value": "…"}`, `Type: SecureString`, cookies, keys of JSON Web Keys.

use std::{ops::Range, sync::LazyLock};

use memchr::memmem;
use regex::bytes::Regex;

use crate::{
    lines::line_start,
    names::{closing_quote, is_marked, is_secret, is_secret_name, opening_at},
    random::is_random,
    ranges::{Ranges, expression, find, merged, skip, skip_back},
    text::is_word,
    values::{is_expression, is_keyword, is_mixed, is_placeholder},
    words::Words,
};

/// Fields that name the value beside them.
static NAMES: Words = Words::of("siblings.names");
/// Fields that have a value.
static VALUES: Words = Words::of("siblings.values");
/// Fields that say of what kind a value is, or whether it is secret.
static KINDS: Words = Words::of("siblings.kinds");
/// What they say of a secret.
pub(super) static SECRET_KINDS: Words = Words::of("siblings.secret_kinds");
/// Fields of a cookie.
static COOKIES: Words = Words::new("domain httponly samesite secure expirationdate hostonly");

static COOKIE_HEADERS: Words = Words::new("cookie set-cookie");

/// Returns which fields of an object are secret, because of the other fields.
pub(super) fn secrets_of(fields: &[(&[u8], &[u8])]) -> Vec<bool> {
    // Most objects have no field that can be secret.
    let may_be_secret = |(name, value): &(&[u8], &[u8])| match *name {
        b"kty" => true,
        b"type" => matches!(*value, b"api" | b"api_key"),
        name => VALUES.has(name),
    };
    if !fields.iter().any(may_be_secret) {
        return vec![false; fields.len()];
    }
    let with = |names: &'static Words| fields.iter().filter(|(name, _)| names.has(name));
    let text = |wanted: &[u8]| {
        fields
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| *value)
    };
    let name = with(&NAMES)
        .map(|(_, value)| *value)
        .find(|value| is_secret_label(value));
    let is_secret_kind = with(&KINDS).any(|(_, value)| SECRET_KINDS.has(value));
    let is_cookie = with(&COOKIES).count() > 0 && text(b"name").is_some();
    let is_header = with(&NAMES).any(|(_, value)| COOKIE_HEADERS.has(value));
    let is_key = text(b"kty").is_some();
    let is_of_api = text(b"type").is_some_and(|kind| matches!(kind, b"api" | b"api_key"));
    let is_vault =
        text(b"id").is_some_and(|id| id.windows(24).any(|part| part == b"vault.azure.net/secrets/"));
    let has_key_name = text(b"keyName").is_some();
    let is_told = |(field, value): &(&[u8], &[u8])| {
        let is_value = VALUES.has(field);
        !is_harmless(value)
            && (is_value
                && name.is_some_and(|name| is_secret(label_of(name), value) && !is_expression(value))
                || is_value && (is_secret_kind || is_vault || has_key_name) && value.len() > 1
                || is_value && is_cookie && (is_random(value) || is_mixed(value) && value.len() > 7)
                || is_value && is_header && value.contains(&b'=')
                || is_key && matches!(*field, b"d" | b"p" | b"q" | b"dp" | b"dq" | b"qi" | b"k")
                || is_of_api && *field == b"key")
    };
    fields.iter().map(is_told).collect()
}

fn is_harmless(value: &[u8]) -> bool {
    value.is_empty() || is_marked(value) || is_placeholder(value) || is_keyword(value)
}

/// Returns whether a text is the name of a secret, or asks for one.
fn is_secret_label(label: &[u8]) -> bool {
    is_secret_name(label_of(label))
}

/// Returns a label without the signs behind it.
fn label_of(label: &[u8]) -> &[u8] {
    let end = label.iter().rposition(|letter| letter.is_ascii_alphanumeric());
    &label[..end.map_or(0, |at| at + 1)]
}

/// Fields that are being read.
#[derive(Default)]
struct Fields {
    fields: Vec<(Range<usize>, Range<usize>)>,
    /// In which column the first name begins, if lines tell what belongs together.
    column: Option<usize>,
}

/// No object with a secret has more fields.
const MOST_FIELDS: usize = 64;

impl Fields {
    /// Adds the secrets among the fields, which it empties.
    fn take(&mut self, letters: &[u8], ranges: &mut Ranges) {
        if self.fields.len() > 1 {
            let texts: Vec<_> = self
                .fields
                .iter()
                .map(|(name, value)| (&letters[name.clone()], &letters[value.clone()]))
                .collect();
            let secrets = secrets_of(&texts);
            let fields = self.fields.iter().zip(secrets);
            ranges.extend(
                fields
                    .filter(|(_, is_secret)| *is_secret)
                    .map(|((_, value), _)| value.clone()),
            );
        }
        self.fields.clear();
    }
}

/// Returns the next name and where its value ends, or behind which quote that begins; of a bracket an empty name and its end.
fn next_part(letters: &[u8], from: usize) -> Option<(Range<usize>, usize)> {
    const MOST_LETTERS: usize = 64;
    let is_blank = |letter: u8| matches!(letter, b' ' | b'\t');
    let is_mark = |letter: u8| matches!(letter, b':' | b'=' | b'{' | b'}' | b'<' | b'>');
    let mut next = from;
    loop {
        let mark = find(letters, next, is_mark)?;
        next = mark + 1;
        if !matches!(letters[mark], b':' | b'=') {
            return Some((mark..mark, next));
        }
        let mut end = skip_back(letters, from..mark, is_blank);
        end -= usize::from(letters[from..end].ends_with(b"\"") || letters[from..end].ends_with(b"'"));
        end = skip_back(letters, from..end, |letter| letter == b'\\');
        let least = end.saturating_sub(MOST_LETTERS).max(from);
        let start = skip_back(letters, least..end, |letter| {
            is_word(letter) || b".$-".contains(&letter)
        });
        let is_arrow = letters[mark..].starts_with(b"=>");
        let value = skip(letters, next + usize::from(is_arrow), is_blank);
        let quote = skip(letters, value, |letter| letter == b'\\');
        let value_end = match letters.get(quote) {
            Some(b'"' | b'\'') => quote + 1,
            _ => skip(letters, value, |letter| {
                !letter.is_ascii_whitespace() && !b"\"'\\,{}[]<>()".contains(&letter)
            }),
        };
        if start < end && value_end > value {
            return Some((start..end, value_end));
        }
    }
}

/// Finds the values that a sibling says are secret: in objects, in the attributes of an element, and in lines of YAML.
pub(super) fn values(letters: &[u8]) -> Ranges {
    static NEEDED: LazyLock<Regex> =
        LazyLock::new(|| expression(r"[Vv]alue|VALUE|kty|nswer|esponse|esult|ontent|\bapi\b"));
    const MOST_LEVELS: usize = 64;
    const MOST_INDENT: usize = 120;
    if !NEEDED.is_match(letters) {
        return Ranges::new();
    }
    let mut ranges = Ranges::new();
    let mut open = vec![Fields::default()];
    let mut from = 0;
    while let Some((name, end)) = next_part(letters, from) {
        let whole = name.start..end;
        let before = from;
        from = whole.end;
        if name.is_empty() {
            if matches!(letters[whole.start], b'{' | b'<') {
                if open.len() == MOST_LEVELS {
                    open.drain(1..)
                        .for_each(|mut fields| fields.take(letters, &mut ranges));
                }
                open.push(Fields::default());
            } else if open.len() > 1 {
                open.pop().unwrap_or_default().take(letters, &mut ranges);
            }
            continue;
        }
        let quote = whole.end - 1;
        let value = if matches!(letters[quote], b'"' | b'\'') {
            let slashes = letters[..quote]
                .iter()
                .rev()
                .take_while(|letter| **letter == b'\\')
                .count();
            let start = quote - slashes.min(15);
            let end = opening_at(letters, start).map_or(whole.end, |opening| closing_quote(letters, opening));
            from = letters.len().min(end + quote + 1 - start).max(whole.end);
            // A text within a string has fields of its own.
            let inner = &letters[whole.end..end];
            if memmem::find(inner, b"\\n").is_some() || memmem::find(inner, b"\\\"").is_some() {
                let found = values(inner).into_iter();
                ranges.extend(found.map(|range| whole.end + range.start..whole.end + range.end));
            }
            whole.end..end
        } else {
            let value = letters[..whole.end]
                .iter()
                .rposition(|letter| b"=: \t>".contains(letter));
            value.map_or(whole.end, |at| at + 1)..whole.end
        };
        let is_outside = open.len() == 1;
        let Some(fields) = open.last_mut() else { break };
        if is_outside {
            // Of lines, those belong together whose names stand below each other.
            let gap = &letters[before..name.start];
            let column = || name.start - line_start(letters, name.start, MOST_INDENT);
            let has = |wanted: &[u8; 2]| gap.windows(2).any(|pair| pair == wanted);
            let is_next_line = || gap.contains(&b'\n') || has(b"\\n");
            let is_apart = gap.len() > MOST_INDENT || has(b"- ") || has(b"\n\n");
            if is_apart || is_next_line() && fields.column != Some(column()) {
                fields.take(letters, &mut ranges);
            }
            if fields.fields.is_empty() {
                fields.column = Some(column());
            }
        }
        if fields.fields.len() < MOST_FIELDS {
            fields.fields.push((name, value));
        }
    }
    for mut fields in open {
        fields.take(letters, &mut ranges);
    }
    merged(ranges)
}
