//! Secrets without a name: passwords in URLs and headers, and JSON Web Tokens.

use std::ops::Range;

use memchr::memmem;
use regex::bytes::Captures;

use crate::{
    ranges::{Pattern, Ranges},
    text::MARKER,
    values::{is_mixed, is_placeholder},
    words::Words,
};

/// Passwords in URLs, and users of URLs that are secrets, as the key in the address that Sentry takes reports at, or a token in the address
/// of a repository.
pub(super) fn url_credentials(letters: &[u8]) -> Ranges {
    static EXAMPLES: Words = Words::new("password passwd pass pw secret");
    static EXPRESSION: Pattern = Pattern::new(concat!(
        r#"://(?:([^\s\x80/?#'"`<>\[\]:]*):([^\s\x80/'"`<>\[\]]+)"#,
        r#"|([^\s\x80/@?#'"`<>\[\]:]{20,})"#,
        // With a slash, where no port stands before it.
        r#"|[^\s\x80/?#'"`<>\[\]:@.]+:([^\s\x80/@'"`<>\[\]${]*[A-Za-z][^\s\x80/@'"`<>\[\]]*/[^\s\x80/@'"`<>\[\]]{1,32}))@"#
    ));
    let secret_of = |found: Captures| {
        let secret = found.get(2).or(found.get(3)).or(found.get(4))?;
        let text = secret.as_bytes();
        let is_secret = match found.get(1) {
            Some(user) => user.as_bytes() != text && !is_placeholder(text) && !EXAMPLES.has(text),
            None => is_mixed(text),
        };
        is_secret.then(|| secret.range())
    };
    EXPRESSION.captures_iter(letters).filter_map(secret_of).collect()
}

/// Returns a connection string that has more than hosts, their ports and a path. Of one that is cut off, a password may be the last part.
pub(super) fn with_credentials(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    static HARMLESS: Pattern = Pattern::new(concat!(
        r"^\w[\w+]*://(?:(?:[\w.-]+@)?[\w.-]*(?::\d{1,5})?(?:/[^@=]*|\?(?:(?:dbname|host|port|user)=[^&@]*&?)*)?",
        // The grammar of one: `postgresql://[user[:password]@][netloc]`, `mysql://root:<YOUR PASSWORD>@…`.
        r"|\[[a-z][^ ]*|[\w.-]*:<[A-Z_-]+)$"
    ));
    static ACCOUNT: Pattern = Pattern::new(r"^\w[\w+]*://[^/@]*:[^/@]*@");
    let text = &letters[found.clone()];
    let is_clean = memmem::find(text, MARKER).is_some();
    let is_harmless =
        is_clean || HARMLESS.is_match(text) || ACCOUNT.is_match(text) && url_credentials(text).is_empty();
    (!is_harmless).then_some(found)
}

/// JSON Web Tokens: signed ones, whose signature may be empty, and encrypted ones, which have five parts. The header begins with `{"`.
pub(super) fn json_web_tokens(letters: &[u8]) -> Ranges {
    static EXPRESSION: Pattern = Pattern::new(concat!(
        r"(?:\b|_)((?:gh[a-z]_[A-Za-z0-9]+_)?eyJ[A-Za-z0-9_-]{7,}",
        r"(?:\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+){3}|\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|\.eyJ[A-Za-z0-9_-]{16,}\xFF))"
    ));
    let found = EXPRESSION.captures_iter(letters);
    found
        .filter_map(|found| found.get(1).map(|token| token.range()))
        .collect()
}
