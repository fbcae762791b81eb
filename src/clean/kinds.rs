//! What is found, in the order in which it is looked for: the SDK's fourteen kinds, and between them those of
//! [`strict`](super::strict).

use std::{ops::Range, sync::LazyLock};

use regex::bytes::{Regex, RegexBuilder};

use super::{
    strict,
    text::{is_white_space, is_word},
};

/// Ranges of a text, in order, that do not overlap.
pub(super) type Ranges = Vec<Range<usize>>;

/// Something to be found.
pub(super) struct Kind {
    /// The type.
    pub(super) name: &'static str,
    /// What stands between the marker and what stays of the match.
    pub(super) before: &'static str,
    /// Whether it says who somebody is or where; all others are secrets.
    pub(super) is_identifier: bool,
    /// Whether the SDK does not know it.
    pub(super) is_strict: bool,
    /// Finds what is to be replaced, in linear time, in the letters of a text.
    pub(super) find: fn(&[u8]) -> Ranges,
}

const fn secret(name: &'static str, find: fn(&[u8]) -> Ranges) -> Kind {
    Kind {
        name,
        before: "",
        is_identifier: false,
        is_strict: false,
        find,
    }
}

const fn identifier(name: &'static str, find: fn(&[u8]) -> Ranges) -> Kind {
    Kind {
        is_identifier: true,
        ..secret(name, find)
    }
}

const fn if_strict(kind: Kind) -> Kind {
    Kind {
        is_strict: true,
        ..kind
    }
}

/// Finds the matches of an expression.
macro_rules! matches_of {
    ($($part:expr),+) => {
        |letters| {
            static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| expression(&[$($part),+].concat()));
            EXPRESSION.find_iter(letters).map(|found| found.range()).collect()
        }
    };
}

/// Neither white space nor what ends a value.
const NO_SPACE: &str = r#"[^\s\x80'"`,;)}\]]"#;

/// All kinds. Those of the SDK are numbered as in its documentation.
///
/// What is strict stands where the kinds around it neither cut it in two nor are cut by it: connection strings and bearer
/// tokens are replaced whole first, and secrets and card numbers before the identifiers that their digits resemble.
pub(super) static KINDS: &[Kind] = &[
    // 1
    secret(
        "connection_string",
        matches_of!(
            r"(?i:postgresql|postgres|mysql|rediss?|mongodb(?:\+srv)?|amqps?)://",
            r#"[^\s\x80'"`,)}\]]+"#
        ),
    ),
    // 2
    Kind {
        before: " ",
        ..secret("bearer_token", bearer_tokens)
    },
    if_strict(secret("private_key", strict::private_keys)),
    if_strict(secret("jwt", strict::json_web_tokens)),
    if_strict(secret("webhook_url", strict::webhook_urls)),
    if_strict(secret("api_key", strict::provider_keys)),
    if_strict(secret("api_key", strict::assigned_keys)),
    if_strict(secret("password", strict::credentials)),
    if_strict(secret("password", strict::quoted_names)),
    if_strict(secret("card_number", strict::card_numbers)),
    // 3 to 7
    secret("api_key", matches_of!(r"sk-[A-Za-z0-9]{20,}")),
    secret("api_key", matches_of!(r"gh[poas]_[A-Za-z0-9]{36,}")),
    secret("api_key", matches_of!(r"AKIA[A-Z0-9]{16}")),
    secret("api_key", matches_of!(r"kp_[0-9a-f]{16,}")),
    secret("api_key", matches_of!(r"xox[bpras]-[A-Za-z0-9-]+")),
    if_strict(secret("password", strict::assigned_names)),
    // 8
    secret("password", passwords),
    // 9
    identifier(
        "email",
        matches_of!(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}"),
    ),
    if_strict(identifier("ip", strict::ipv6_addresses)),
    // 10 and 11
    identifier(
        "phone",
        matches_of!(
            r"(?:\+?1[-.\s\x80]?)?",
            r"\(?\d{3}\)?[-.\s\x80]?[\s\x80]?\d{3}[-.\s\x80]\d{4}\b"
        ),
    ),
    identifier("phone", matches_of!(r"\+[1-9]\d{6,14}\b")),
    // 12
    identifier(
        "ip",
        matches_of!(
            r"\b(?:(?:25[0-5]|2[0-4]\d|[01]?\d?\d)\.){3}",
            r"(?:25[0-5]|2[0-4]\d|[01]?\d?\d)\b"
        ),
    ),
    // 13 and 14
    identifier(
        "filepath",
        matches_of!(r"/(?:home|Users)/[A-Za-z0-9._-]+(?:/", NO_SPACE, "*)?"),
    ),
    identifier(
        "filepath",
        matches_of!(r"[A-Z]:\\Users\\[A-Za-z0-9._-]+(?:\\", NO_SPACE, "*)*"),
    ),
    // The same in JSON, where a backslash is two, or more in JSON within JSON.
    if_strict(identifier(
        "filepath",
        matches_of!(
            r"[A-Z]:\\{2,}Users\\{2,}[A-Za-z0-9._-]+(?:\\{2,}",
            r#"[^\s\x80'"`,;)}\]\\]*)*"#
        ),
    )),
];

/// Compiles an expression over letters. `\s` is ASCII's there: together with `\x80` it is JavaScript's.
pub(super) fn expression(pattern: &str) -> Regex {
    // A test compiles all of them.
    #[allow(clippy::expect_used)]
    RegexBuilder::new(pattern)
        .unicode(false)
        .build()
        .expect("the expression is well-formed")
}

/// `Bearer\s+(?!kp_)[A-Za-z0-9_\-.~+/=]{20,}`, without `Bearer`.
fn bearer_tokens(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> =
        LazyLock::new(|| expression(r"Bearer[\s\x80]+[A-Za-z0-9_\-.~+/=]{20,}"));
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(found) = EXPRESSION.find_at(letters, from) {
        let space = found.start() + b"Bearer".len();
        let token = skip(letters, space, is_white_space);
        // With less white space, what follows would begin with white space: backtracking finds nothing else.
        from = if letters[token..].starts_with(b"kp_") {
            token
        } else {
            ranges.push(space..found.end());
            found.end()
        };
    }
    ranges
}

/// `\b(?:password|…)\s*[=:]\s*(?!\[REDACTED)(?:'[^'"]*'|"[^'"]*"|[^\s'"`,;)}[\]]{2,})` in any case, of which the value is replaced.
///
/// The look-ahead has nothing to refuse: no value begins with `[`, and with less white space before it the value would begin
/// with white space, which none does either.
fn passwords(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r"\b(?i:password|passwd|secret|token|api_key|apikey|api_secret|access_token|auth_token)",
            r"[\s\x80]*[=:][\s\x80]*",
            r#"(?:'[^'"]*'|"[^'"]*"|[^\s\x80'"`,;)}\[\]]{2,})"#
        ))
    });
    EXPRESSION
        .find_iter(letters)
        .map(|found| value_of(letters, found.range()))
        .collect()
}

/// The value in an assignment, whose name has neither `=` nor `:`.
pub(super) fn value_of(letters: &[u8], assignment: Range<usize>) -> Range<usize> {
    let separator = skip(letters, assignment.start, |letter| !matches!(letter, b'=' | b':'));
    skip(letters, separator + 1, is_white_space)..assignment.end
}

/// The first place from `from` on whose letter is not one to be skipped.
pub(super) fn skip(letters: &[u8], from: usize, is_skipped: fn(u8) -> bool) -> usize {
    let rest = letters.iter().skip(from);
    from + rest.take_while(|letter| is_skipped(**letter)).count()
}

/// Whether a range begins and ends at word boundaries, if there are word letters at its ends.
pub(super) fn stands_alone(letters: &[u8], range: &Range<usize>) -> bool {
    let is_word_at = |index: Option<usize>| {
        index
            .and_then(|index| letters.get(index))
            .is_some_and(|letter| is_word(*letter))
    };
    !is_word_at(range.start.checked_sub(1)) && !is_word_at(Some(range.end))
}
