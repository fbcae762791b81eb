//! Secrets without a name: passwords in URLs and headers, and JSON Web Tokens.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::{
    ranges::{Ranges, expression, find_letter, skip},
    text::{is_white_space, is_word},
    values::{is_mixed, is_placeholder},
};

/// Passwords in URLs, and users of URLs that are secrets, as the key in the address that Sentry takes reports at, or a token in the address
/// of a repository.
pub(super) fn url_credentials(letters: &[u8]) -> Ranges {
    const LEAST_TOKEN_LETTERS: usize = 20;
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(colon) = find_letter(letters, from, b':') {
        let start = colon + b"://".len();
        from = colon + 1;
        if !letters[from..].starts_with(b"//") {
            continue;
        }
        let of_credentials = |letter: u8| {
            !is_white_space(letter)
                && !matches!(
                    letter,
                    b'/' | b'@' | b'?' | b'#' | b'\'' | b'"' | b'`' | b'<' | b'>' | b'[' | b']'
                )
        };
        let user_end = skip(letters, start, |letter| of_credentials(letter) && letter != b':');
        let of_password = |letter: u8| of_credentials(letter) || matches!(letter, b'?' | b'#');
        let (secret, is_token) = match letters.get(user_end) {
            Some(b':') => (user_end + 1..skip(letters, user_end + 1, of_password), false),
            _ => (start..user_end, true),
        };
        from = secret.end.max(start);
        let value = &letters[secret.clone()];
        let is_secret = if is_token {
            value.len() >= LEAST_TOKEN_LETTERS && is_mixed(value)
        } else {
            !value.is_empty() && !is_placeholder(value)
        };
        if letters.get(secret.end) == Some(&b'@') && is_secret {
            ranges.push(secret);
        }
    }
    ranges
}

/// JSON Web Tokens: signed ones, whose signature may be empty, and encrypted ones, which have five parts. The header begins with `{"`.
pub(super) fn json_web_tokens(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r"(?:\b|_)((?:gh[a-z]_[A-Za-z0-9]+_)?eyJ[A-Za-z0-9_-]{7,}",
            r"(?:\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+){3}|\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*))"
        ))
    });
    let found = EXPRESSION.captures_iter(letters);
    found
        .filter_map(|found| found.get(1).map(|token| token.range()))
        .collect()
}

/// Returns a bearer token that is too short for the SDK, or whose scheme has small letters.
pub(super) fn short_bearer_token(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let start = skip(letters, found.start, is_word);
    let token = skip(letters, start, is_white_space)..found.end;
    is_mixed(&letters[token.clone()]).then_some(start..token.end)
}
