//! Values that a field beside them says are secret: `{"name": "DB_PASSWORD", "value": "…"}`, `Type: SecureString`, cookies, keys of JSON Web Keys.

use std::ops::Range;

use crate::{
    base64::Decoder,
    languages::is_shaped,
    lines::line_start,
    names::{is_secret, is_secret_name},
    pairs::{Pair, closing_quote, name_before, of_name, opening_at},
    random::{is_hexadecimal, is_id, is_random},
    ranges::{Letters, Pattern, Ranges, find, merged, skip, skip_back},
    text::{MARKER, is_word},
    values::{is_expression, is_mixed, is_nothing},
    words::Words,
};
use memchr::{memmem, memrchr};

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

/// Fields that have the digits of a key.
static DIGITS: Words = Words::new("cborhex raw hex data bytes");

/// Returns whether a field has a long key.
fn has_key((name, value): &(&[u8], &[u8])) -> bool {
    const LEAST_LETTERS: usize = 48;
    value.len() >= LEAST_LETTERS && is_of(&DIGITS, name) && (is_hexadecimal(value) || is_random(value))
}

/// Returns whether a field may make one of its object secret. Most objects have none.
fn may_be_secret(field: &(&[u8], &[u8])) -> bool {
    let (name, value) = field;
    match *name {
        b"kty" | b"provider" | b"service" | b"vendor" => true,
        _ if has_key(field) => true,
        b"type" => matches!(*value, b"api" | b"api_key"),
        name => is_value_of(name, value),
    }
}

/// Returns whether a field has a value; one of text may have any, so only a password in it is one.
fn is_value_of(name: &[u8], value: &[u8]) -> bool {
    is_of(&VALUES, name) || name == b"text" && is_shaped(value)
}

/// Returns whether a field is one of these, or its last part is: `parameterKey`, `Header.value`, `withName`.
fn is_of(fields: &Words, name: &[u8]) -> bool {
    fields.has(name) || last_part(name).is_some_and(|part| fields.has(part))
}

/// Returns the last part of a name of several, if it is called name, key, value or string.
fn last_part(name: &[u8]) -> Option<&[u8]> {
    static PARTS: Words = Words::new("name key value string");
    let begins = |at: &usize| {
        !name[at - 1].is_ascii_alphanumeric()
            || name[*at].is_ascii_uppercase() && name[at - 1].is_ascii_lowercase()
    };
    let part = &name[(1..name.len()).rev().find(begins).unwrap_or(0)..];
    PARTS.has(part).then_some(part)
}

/// Returns which fields of an object are secret, because of the other fields.
pub(super) fn secrets_of(fields: &[(&[u8], &[u8])]) -> Vec<bool> {
    if !fields.iter().any(may_be_secret) {
        return vec![false; fields.len()];
    }
    let with = |names: &'static Words| fields.iter().filter(|(name, _)| is_of(names, name));
    let text = |wanted: &[u8]| {
        fields
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| *value)
    };
    let name = with(&NAMES)
        .map(|(_, value)| *value)
        .find(|value| is_secret_name(value));
    let is_secret_kind = with(&KINDS).any(|(_, value)| SECRET_KINDS.has(value));
    static KEYS: Pattern = Pattern::new(r"(?i)(?:signing|secret|private|spend).?(?:key|secret)|^private$");
    let is_key_kind = || fields.iter().any(|(_, value)| KEYS.is_match(value));
    let is_cookie = with(&COOKIES).count() > 0 && text(b"name").is_some();
    let is_of_api = text(b"type").is_some_and(|kind| matches!(kind, b"api" | b"api_key"));
    let is_provider = |name: &[u8]| matches!(name, b"provider" | b"service" | b"vendor");
    let is_of_provider = fields.iter().any(|(name, _)| is_provider(name));
    let is_vault =
        text(b"id").is_some_and(|id| id.windows(24).any(|part| part == b"vault.azure.net/secrets/"));
    let is_told = |(field, value): &(&[u8], &[u8])| {
        let is_value = is_value_of(field, value);
        !is_nothing(value)
            && !is_expression(value)
            && (is_value && name.is_some_and(|name| is_secret(name, value))
                || VALUES.has(field)
                    && (is_secret_kind || is_vault || text(b"keyName").is_some())
                    && value.len() > 1
                || has_key(&(field, value)) && is_key_kind()
                || is_value && is_cookie && (is_random(value) || is_mixed(value) && value.len() > 7)
                || text(b"kty").is_some()
                    && matches!(*field, b"d" | b"p" | b"q" | b"dp" | b"dq" | b"qi" | b"k")
                || *field == b"key" && (is_of_api || is_of_provider && is_shaped(value) && !is_id(value)))
    };
    fields.iter().map(is_told).collect()
}

/// Fields that are being read.
#[derive(Default)]
struct Fields {
    fields: Vec<(Range<usize>, Range<usize>)>,
    /// In which column the first name begins, if lines tell what belongs together.
    column: Option<usize>,
}

/// Names further behind in a line stand below no other.
const MOST_INDENT: usize = 120;
/// No object with a secret has more fields.
const MOST_FIELDS: usize = 64;

impl Fields {
    /// Adds the secrets among the fields, which it empties.
    fn take(&mut self, letters: &[u8], ranges: &mut Ranges) {
        let fields = self.fields.iter();
        let texts = fields
            .clone()
            .map(|(name, value)| (&letters[name.clone()], &letters[value.clone()]));
        if self.fields.len() > 1 && texts.clone().any(|field| may_be_secret(&field)) {
            let secrets = fields.zip(secrets_of(&texts.collect::<Vec<_>>()));
            ranges.extend(
                secrets
                    .filter(|(_, is_secret)| *is_secret)
                    .map(|((_, value), _)| value.clone()),
            );
        }
        self.fields.clear();
    }
}

/// Returns the next name and its value, or a bracket with an empty name; and where to go on.
fn next_part(letters: &[u8], from: usize) -> Option<(Range<usize>, Range<usize>, usize)> {
    static MARKS: Letters = Letters::of(b":={}<>(");
    let is_mark = |letter: u8| MARKS.has(letter);
    // An element has just begun.
    if letters[..from].ends_with(b">")
        && let Some((name, text)) = element_at(letters, from - 1)
    {
        let end = text.end;
        return Some((name, text, end));
    }
    let mut next = from;
    loop {
        let mark = find(letters, next, is_mark)?;
        next = mark + 1;
        if letters[mark] == b'(' {
            let Some(opening) = opening_at(letters, next) else {
                continue;
            };
            let name = name_before(letters, mark).start.max(from)..mark;
            if last_part(&letters[name.clone()]).is_none() {
                continue;
            }
            let closing = closing_quote(letters, opening.clone());
            let behind = letters.len().min(closing + opening.len());
            return Some((name, opening.end..closing, behind));
        }
        if !matches!(letters[mark], b':' | b'=') {
            return Some((mark..mark, mark..next, next));
        }
        let end = skip_back(letters, from..mark, |letter| b" \t\"'\\".contains(&letter));
        // A path, as `a::b`.
        let is_path = matches!(letters[mark..], [b':', b':', next, ..] if next != b' ');
        let is_named = !is_path && letters[..end].last().is_some_and(|letter| of_name(*letter));
        let pair = is_named.then(|| Pair::at(letters, end)).flatten();
        let Some(Pair { mut name, start, .. }) = pair.filter(|pair| pair.start > mark) else {
            continue;
        };
        // The letter of an escape in a JSON string: `\n`.
        let is_escape =
            letters[..name.start].ends_with(b"\\") && matches!(letters[name.start], b'n' | b'r' | b't');
        name.start = name.start.max(from) + usize::from(is_escape);
        let value = skip(letters, start, |letter| matches!(letter, b' ' | b'\t'));
        let (value, behind) = match opening_at(letters, value) {
            Some(opening) => {
                let closing = closing_quote(letters, opening.clone());
                (opening.end..closing, letters.len().min(closing + opening.len()))
            }
            None => {
                let end = skip(letters, value, |letter| {
                    !letter.is_ascii_whitespace() && !b"\"'\\,{}[]<>()".contains(&letter)
                });
                // With the bracket of a call.
                (value..end + usize::from(letters[end..].starts_with(b"(")), end)
            }
        };
        if !name.is_empty() && behind > value.start && !letters[..next].ends_with(MARKER) {
            return Some((name, value, behind));
        }
    }
}

/// Returns the name and the text of an element whose tag ends at `end`; its last attribute may name it: `name="Header.name">Authorization</`.
fn element_at(letters: &[u8], end: usize) -> Option<(Range<usize>, Range<usize>)> {
    const MOST_TEXT: usize = 4096;
    let is_part = |name: &Range<usize>| last_part(&letters[name.clone()]).is_some();
    let quote = skip_back(letters, end.saturating_sub(2)..end, |letter| {
        b"\\\"'".contains(&letter)
    });
    let attribute = (quote < end).then(|| name_before(letters, quote)).filter(is_part);
    let name = || {
        let least = end.saturating_sub(MOST_INDENT);
        let tag = least + memrchr(b'<', &letters[least..end])? + 1;
        let name = tag..skip(&letters[..end], tag, |letter| is_word(letter) || letter == b':');
        Some(name).filter(is_part)
    };
    let name = attribute.or_else(name)?;
    let most = letters.len().min(end + MOST_TEXT);
    let text = end + 1..find(&letters[..most], end + 1, |letter| letter == b'<')?;
    let is_field = letters[text.end..].starts_with(b"</");
    (is_field && !letters[text.clone()].trim_ascii().is_empty()).then_some((name, text))
}

/// Finds letters with digits, and Base64 of texts, in documents that are Kubernetes' secrets, whatever the names of their fields are.
pub(super) fn kubernetes_secrets(letters: &[u8]) -> Ranges {
    static KIND: Pattern = Pattern::new(r#"(?:\b|\\n)kind\\*["']?\s*:\s*\\*["']?Secret\b"#);
    static VALUE: Pattern = Pattern::new(r#":[ \t]*\\*["']?([A-Za-z0-9+/]{4,8192}={0,2})(?:[^\w+/=.-]|$)"#);
    let is_secret = |value: &[u8]| {
        let mut decoder = Decoder::default();
        let mut is_decoded = || decoder.push(value) && decoder.text().is_some_and(|text| !text.is_empty());
        is_mixed(value) || value.len().is_multiple_of(4) && is_decoded()
    };
    let mut ranges = Ranges::new();
    let mut start = 0;
    while start < letters.len() {
        let end = memmem::find(&letters[start..], b"---").map_or(letters.len(), |length| start + length + 1);
        let document = &letters[start..end];
        if KIND.is_match(document) {
            let values = VALUE.captures_iter(document).filter_map(|found| found.get(1));
            let secrets = values.filter(|value| is_secret(value.as_bytes()));
            ranges.extend(secrets.map(|value| start + value.start()..start + value.end()));
        }
        start = end;
    }
    ranges
}

/// Finds the values that a sibling says are secret: in objects, in the attributes of an element, and in lines of YAML.
pub(super) fn values(letters: &[u8]) -> Ranges {
    static NEEDED: Pattern = Pattern::new(
        r"[Vv]alue|VALUE|kty|nswer|esponse|esult|ontent|efault|<string|cborHex|\b(?:raw|hex|data|bytes)\b|\btext\b|\bapi\b|(?:provider|service|vendor)\\?[\x22']?:",
    );
    const MOST_LEVELS: usize = 64;
    if !NEEDED.is_match(letters) {
        return Ranges::new();
    }
    let mut ranges = Ranges::new();
    let mut open = vec![Fields::default()];
    let mut from = 0;
    while let Some((name, value, behind)) = next_part(letters, from) {
        from = behind;
        if name.is_empty() {
            if matches!(letters[name.start], b'{' | b'<') {
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
        let is_outside = open.len() == 1 && !letters[..name.start].ends_with(b"<");
        let Some(fields) = open.last_mut() else { break };
        if is_outside {
            // Of lines, those belong together whose names stand below each other.
            let last = fields.fields.last().map_or(name.start, |(_, value)| value.end);
            let gap = &letters[last.min(name.start)..name.start];
            let column = || name.start - line_start(letters, name.start, MOST_INDENT);
            let has = |wanted: &[u8; 2]| gap.windows(2).any(|pair| pair == wanted);
            let is_apart = gap.len() > MOST_INDENT || has(b"- ") || has(b"\n\n");
            let has_break = || gap.contains(&b'\n') || has(b"\\n");
            if is_apart || has_break() && fields.column != Some(column()) {
                fields.take(letters, &mut ranges);
            }
            if fields.fields.is_empty() {
                fields.column = Some(column());
            }
        }
        // A name or a value that is there already is of the next thing.
        let is_again = |(other, _): &(Range<usize>, _)| letters[other.clone()] == letters[name.clone()];
        if last_part(&letters[name.clone()]).is_some() && fields.fields.iter().any(is_again) {
            fields.take(letters, &mut ranges);
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
