//! Secrets without a prefix or a name: keys with an alphabet and lengths of their own, and passwords in URLs and headers.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::{
    ranges::{Ranges, expression, find_letter, skip},
    text::{is_white_space, is_word},
    values::{is_mixed, is_placeholder},
};

/// Expressions of keys without a prefix. All have digits.
const OTHER_KEYS: &[&str] = &[
    // Telegram's bots.
    r"\d{8,10}:AA[A-Za-z0-9_-]{33}",
    // Discord's bots: an id in Base64, a time, and a signature.
    r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    // MaxMind, Terraform Cloud, OpenAI, Azure's applications, Authress: with a mark within the key.
    r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk",
    r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
    r"sk-(?:[a-z]+-)?[A-Za-z0-9_-]{20,74}T3BlbkFJ[A-Za-z0-9_-]{20,}",
    r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,}",
    r"(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,}",
    // Mailgun and Mailchimp: hexadecimal digits with a suffix.
    r"[a-f0-9]{32}-(?:[a-f0-9]{8}-[a-f0-9]{8}|us\d{1,2})\b",
];

/// Keys without a prefix.
pub(super) fn other_keys(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> =
        LazyLock::new(|| expression(&format!(r"\b(?:{})", OTHER_KEYS.join("|"))));
    EXPRESSION.find_iter(letters).map(|found| found.range()).collect()
}

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
