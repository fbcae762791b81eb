//! The kinds of findings, in the order of the search: the SDK's fourteen kinds, and between them kinds that the SDK misses.

use std::{ops::Range, sync::LazyLock};

use knowledgepulse_json::Value;
use memchr::memchr2;
use regex::bytes::Regex;

use crate::{
    commands, encoded, keys, names, numbers, paths, pem, phrases, providers,
    ranges::{Ranges, expression, merged, skip, skip_back},
    structures,
    text::{Text, is_white_space, is_word},
    values::is_placeholder,
    words::Words,
    wrapped,
};

/// Where a kind is applied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Always,
    /// The SDK does not know it.
    Strict,
    /// With `strict` another kind stands in its place.
    NotStrict,
}

/// Finds the ranges to replace, in linear time, in the letters of a text.
type Find = fn(&[u8]) -> Ranges;

/// Something to be found.
pub(super) struct Kind {
    /// The type.
    pub(super) name: &'static str,
    /// The text between the marker and the rest of the match.
    pub(super) before: &'static str,
    /// Whether it says who somebody is or where; all others are secrets.
    pub(super) is_identifier: bool,
    /// Where it is applied.
    pub(super) mode: Mode,
    /// Letters that every match has: a text without one of them is not searched. `0` stands for any digit.
    pub(super) needs: &'static [u8],
    pub(super) find: Find,
}

const fn secret(name: &'static str, needs: &'static [u8], find: Find) -> Kind {
    Kind {
        name,
        before: "",
        is_identifier: false,
        mode: Mode::Always,
        needs,
        find,
    }
}

const fn identifier(name: &'static str, needs: &'static [u8], find: Find) -> Kind {
    Kind {
        is_identifier: true,
        ..secret(name, needs, find)
    }
}

const fn if_strict(kind: Kind) -> Kind {
    Kind {
        mode: Mode::Strict,
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

/// Finds the matches of an expression. A function checks each, and returns the part of it, or the text behind it, to
/// replace.
macro_rules! checked {
    ($check:expr, $($part:expr),+) => {
        |letters| {
            static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| expression(&[$($part),+].concat()));
            let mut ranges = Ranges::new();
            let mut from = 0;
            while let Some(found) = EXPRESSION.find_at(letters, from) {
                let range = $check(letters, found.range());
                from = range.as_ref().map_or(found.end(), |range| range.end.max(found.end()));
                ranges.extend(range);
            }
            ranges
        }
    };
}

/// Neither white space nor the end of a value.
const NO_SPACE: &str = r#"[^\s\x80'"`,;)}\]]"#;

const NORTH_AMERICAN_PHONE: &str =
    r"(?:\+?1[-.\s\x80]?)?\(?\d{3}\)?[-.\s\x80]?[\s\x80]?\d{3}[-.\s\x80]\d{4}\b";

/// The type of secrets in Base64, which are not looked for in what is decoded.
const ENCODED: &str = "encoded_secret";

/// All kinds: type, needed letters, expression and check. The SDK's kinds are numbered as in its documentation.
///
/// A strict kind stands where the kinds around it neither cut it in two nor are cut by it: connection strings and bearer
/// tokens are replaced whole first, and secrets and card numbers before the identifiers that their digits resemble.
pub(super) static KINDS: &[Kind] = &[
    // As 1, but of one in a JSON string not the backslash before the closing quote.
    if_strict(secret(
        "connection_string",
        b":/\\",
        matches_of!(
            r"(?i:postgresql|postgres|mysql|rediss?|mongodb(?:\+srv)?|amqps?)://",
            r#"(?:[^\s\x80'"`,)}\]\\]|\\[^\s\x80"'nrt\\])+"#
        ),
    )),
    // 1
    secret(
        "connection_string",
        b":/",
        matches_of!(
            r"(?i:postgresql|postgres|mysql|rediss?|mongodb(?:\+srv)?|amqps?)://",
            r#"[^\s\x80'"`,)}\]]+"#
        ),
    ),
    // 2
    Kind {
        before: " ",
        ..secret("bearer_token", b"B", bearer_tokens)
    },
    if_strict(secret("private_key", b"-", pem::private_keys)),
    if_strict(secret("api_key", b"", |letters| {
        wrapped::tokens(letters, |joined| {
            let mut found = providers::keys(joined);
            found.extend(keys::json_web_tokens(joined));
            merged(found)
        })
    })),
    if_strict(secret("jwt", b".J", keys::json_web_tokens)),
    if_strict(secret(
        "webhook_url",
        b":/",
        matches_of!(
            r"(?i:https?://)(?i:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{20,}",
            r"|(?:[a-z]+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/[A-Za-z0-9_-]{20,}",
            r"|[a-z0-9-]+\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/_-]{20,})"
        ),
    )),
    if_strict(secret("password", b":S", structures::kubernetes_secrets)),
    if_strict(secret("password", b"", structures::of_structures)),
    if_strict(secret("api_key", b"=", structures::account_keys)),
    if_strict(secret(ENCODED, b"", |letters| {
        encoded::secrets(letters, has_secret)
    })),
    // Of clusters and their users, in Base64 as Kubernetes has them.
    if_strict(identifier(
        "certificate",
        b"",
        matches_of!(r"\bLS0tLS1CRUdJTi[A-Za-z0-9+/]{12,}={0,2}"),
    )),
    if_strict(secret("api_key", b"", providers::keys)),
    if_strict(secret("api_key", b"0", keys::other_keys)),
    if_strict(secret("password", b":/@", keys::url_credentials)),
    if_strict(secret("password", b"", names::assigned)),
    if_strict(Kind {
        before: " ",
        ..secret(
            "bearer_token",
            b"0",
            checked!(
                keys::short_bearer_token,
                r"\b(?i:bearer)[ \t]+[A-Za-z0-9_\-.~+/=]{8,}"
            ),
        )
    }),
    if_strict(secret("password", b"-", commands::named_options)),
    if_strict(secret("password", b"-", commands::options_of_commands)),
    if_strict(secret(
        "password",
        b"",
        checked!(
            commands::set_variable,
            r"\b(?:ENV|ARG|setx|set -[a-zA-Z]+|config(?:ure)? set|(?:secret|variable)s? set|_authToken)[ \t]+[\w.-]{2,64}[ \t]+"
        ),
    )),
    if_strict(secret(
        "password",
        b"",
        checked!(
            commands::said,
            r"\b(?i:(?:password|passwd|passphrase|passcode|passwort|pw)(?:[ \t]+(?:is|was|to|for \w+ is))?|identified by|requirepass|masterauth",
            r"|(?:token|(?:api|app|access|private|secret|signing)[ _-]?key|secret)[ \t]+(?:is|was))[ \t]+"
        ),
    )),
    if_strict(secret(
        "password",
        b"",
        checked!(
            commands::machine_password,
            r"\b(?:machine(?:\s|\\n)+\S+|default)(?:\s|\\n)+login(?:\s|\\n)+\S+(?:\s|\\n)+password(?:\s|\\n)+"
        ),
    )),
    if_strict(secret(
        "password",
        b":0",
        checked!(
            commands::password_of_line,
            r#"(?:localhost|\*|\b[\w-]+(?:\.[\w-]+)*):(?:543\d|6432|\*|\d{5}):[\w*-]+:[\w.*-]+:[^\s\x80:'"`,;\\]{3,}"#
        ),
    )),
    if_strict(secret(
        "password",
        b"|",
        checked!(
            commands::piped,
            r#"\b(?:echo|printf)[ ]+(?:-[ne] )?["']?[^\s\x80|]{3,200}[ ]*\|[ ]*(?:sudo -S|sudo .{0,40}-S\b|[^|\n]{0,100}--(?:password-stdin|stdin|with-token))"#
        ),
    )),
    if_strict(secret("seed_phrase", b"", phrases::seed_phrases)),
    if_strict(secret(
        "iban",
        b"0",
        checked!(numbers::iban, r"\b[A-Z]{2}\d\d[ -]?[A-Z0-9]{4}"),
    )),
    if_strict(secret("card_number", b"0", numbers::card_numbers)),
    if_strict(secret(
        "social_security_number",
        b"0",
        numbers::social_security_numbers,
    )),
    // 3 to 7
    secret("api_key", b"sk-", matches_of!(r"sk-[A-Za-z0-9]{20,}")),
    secret("api_key", b"gh_", matches_of!(r"gh[poas]_[A-Za-z0-9]{36,}")),
    secret("api_key", b"AKI", matches_of!(r"AKIA[A-Z0-9]{16}")),
    secret("api_key", b"kp_", matches_of!(r"kp_[0-9a-f]{16,}")),
    secret("api_key", b"xo-", matches_of!(r"xox[bpras]-[A-Za-z0-9-]+")),
    // 8
    Kind {
        mode: Mode::NotStrict,
        ..secret("password", b"", passwords)
    },
    if_strict(secret("password", b"", |letters| {
        let mut ranges = passwords(letters);
        ranges.retain(|range| !is_of_program(letters, range));
        ranges
    })),
    if_strict(identifier("email", b"@", paths::other_emails)),
    // 9
    identifier(
        "email",
        b"@.",
        matches_of!(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}"),
    ),
    if_strict(identifier(
        "mac_address",
        b"",
        checked!(
            numbers::mac_address,
            r"\b[0-9A-Fa-f]{2}(?:(?::[0-9A-Fa-f]{2}){5}|(?:-[0-9A-Fa-f]{2}){5})\b",
            r"|\b[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\b"
        ),
    )),
    if_strict(identifier("ip", b":", numbers::ipv6_addresses)),
    if_strict(identifier("user", b"", paths::owners)),
    if_strict(identifier(
        "phone",
        b"+0",
        checked!(
            numbers::international_phone,
            r"\+[1-9]\d{0,2}(?:(?:[ \x80./-]{1,2}(?:\(0?\d{0,4}\)[ ]?)?\d{1,8}){2,7}",
            r"|[ ]?\(0?\d{1,4}\)[ ]?\d{1,8}(?:[ \x80./-]\d{1,8}){0,5})"
        ),
    )),
    if_strict(identifier(
        "phone",
        b"0",
        checked!(
            numbers::national_phone,
            r"\b0[1-9](?:(?:[ \x80]\d\d){4}|(?:\.\d\d){4}|(?:-\d\d){4})\b|\b0\d{2,3}[ /]\d{2,3} \d\d \d\d\b",
            r"|\b00[ ]?[1-9]\d{0,2}(?:[ -]\d{1,4}){3,6}\b",
            r"|\b(?i:tel|telephone|phone|mobile?|tlf|telefon|handy|fax|cell|gsm|whatsapp)(?i:[. ]|no\b|nr\b|number)*",
            r#"["']?[ \x80]*[:=]?[ \x80]*["']?\(?\+?\d[\d ()./-]{5,20}\d\b"#
        ),
    )),
    // 10
    Kind {
        mode: Mode::NotStrict,
        ..identifier("phone", b"0", matches_of!(NORTH_AMERICAN_PHONE))
    },
    if_strict(identifier(
        "phone",
        b"0",
        checked!(numbers::phone_outside_uuid, NORTH_AMERICAN_PHONE),
    )),
    // 11
    identifier("phone", b"+0", matches_of!(r"\+[1-9]\d{6,14}\b")),
    // 12
    identifier(
        "ip",
        b"0.",
        matches_of!(
            r"\b(?:(?:25[0-5]|2[0-4]\d|[01]?\d?\d)\.){3}",
            r"(?:25[0-5]|2[0-4]\d|[01]?\d?\d)\b"
        ),
    ),
    if_strict(identifier("filepath", b"", paths::other_homes)),
    // 13 and 14
    identifier(
        "filepath",
        b"/",
        matches_of!(r"/(?:home|Users)/[A-Za-z0-9._-]+(?:/", NO_SPACE, "*)?"),
    ),
    identifier(
        "filepath",
        b":\\",
        matches_of!(r"[A-Z]:\\Users\\[A-Za-z0-9._-]+(?:\\", NO_SPACE, "*)*"),
    ),
];

/// Returns whether a text has a secret that stands there as it is.
fn has_secret(text: &str) -> bool {
    let units: Vec<u16> = text.encode_utf16().collect();
    let text = Text::new(&units);
    let mut kinds = KINDS
        .iter()
        .filter(|kind| kind.mode != Mode::NotStrict && !kind.is_identifier && kind.name != ENCODED);
    kinds.any(|kind| text.has_all(kind.needs) && !(kind.find)(text.letters()).is_empty())
}

/// Returns for each string of a list the type of a secret that goes over several of them, as over the lines of a file; nothing for another list.
pub(super) fn over_strings(list: &[Value]) -> Vec<Option<&'static str>> {
    const FIND: [(&str, Find); 2] = [
        ("private_key", pem::private_keys),
        ("seed_phrase", phrases::seed_phrases),
    ];
    let mut joined = Vec::new();
    let mut ends = Vec::with_capacity(list.len());
    for string in list {
        let Some(text) = string.as_text() else {
            return Vec::new();
        };
        joined.extend_from_slice(text.as_bytes());
        joined.push(b'\n');
        ends.push(joined.len());
    }
    let mut types = vec![None; list.len()];
    for (name, find) in FIND {
        for range in find(&joined) {
            let string_of = |at: usize| ends.partition_point(|end| *end <= at);
            let strings = string_of(range.start)..string_of(range.end - 1) + 1;
            if strings.len() > 1 {
                types[strings].fill(Some(name));
            }
        }
    }
    types
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
        // With less white space, the token would begin with white space: backtracking finds nothing else.
        from = if letters[token..].starts_with(b"kp_") {
            token
        } else {
            ranges.push(space..found.end());
            found.end()
        };
    }
    ranges
}

/// `\b(?:password|…)\s*[=:]\s*(?!\[REDACTED)(?:'[^'"]*'|"[^'"]*"|[^\s'"`,;)}[\]]{2,})` in any case; the value is replaced.
///
/// Goes from separator to separator, which are rarer than the beginnings of the names. The look-ahead has nothing to refuse:
/// no value begins with `[`, and with less white space before it the value would begin with white space, which no value does
/// either.
fn passwords(letters: &[u8]) -> Ranges {
    static NAMES: Words =
        Words::new("password passwd secret token api_key apikey api_secret access_token auth_token");
    const MOST_NAME_LETTERS: usize = 16;
    let mut ranges = Ranges::new();
    let mut from = 0;
    let mut least = 0;
    while let Some(index) = memchr2(b'=', b':', letters.get(from..).unwrap_or_default()) {
        let separator = from + index;
        from = separator + 1;
        let end = skip_back(letters, 0..separator, is_white_space);
        let name = skip_back(letters, end.saturating_sub(MOST_NAME_LETTERS)..end, is_word);
        // A value can be a name as well, but belongs to the match before.
        if name < least || !NAMES.has(&letters[name..end]) {
            continue;
        }
        let start = skip(letters, from, is_white_space);
        let end = match letters.get(start) {
            Some(quote @ (b'\'' | b'"')) => {
                let end = skip(letters, start + 1, |letter| !matches!(letter, b'\'' | b'"'));
                if letters.get(end) != Some(quote) {
                    continue;
                }
                end + 1
            }
            _ => {
                let end = skip(letters, start, |letter| {
                    !is_white_space(letter)
                        && !matches!(
                            letter,
                            b'\'' | b'"' | b'`' | b',' | b';' | b')' | b'}' | b'[' | b']'
                        )
                });
                if end - start < 2 {
                    continue;
                }
                end
            }
        };
        ranges.push(start..end);
        from = end;
        least = end;
    }
    ranges
}

/// Returns whether a value of [`passwords`] is a placeholder, the rest of a path (`Token::new(…)`), or a token as programs have them
/// (`token: string`, `token = next()`): behind white space, without quotes and digits.
fn is_of_program(letters: &[u8], value: &Range<usize>) -> bool {
    let (before, value) = (&letters[..value.start], &letters[value.clone()]);
    let [name @ .., _separator] = before.trim_ascii_end() else {
        return false;
    };
    let ends_with_token = |name: &[u8]| {
        let ending = name.last_chunk::<5>();
        ending.is_some_and(|ending| ending.eq_ignore_ascii_case(b"token"))
    };
    let is_spaced = before.last().is_some_and(|letter| is_white_space(*letter)) || value[0] == b'=';
    let is_word = !matches!(value[0], b'"' | b'\'') && !value.iter().any(u8::is_ascii_digit);
    let is_token = is_spaced && ends_with_token(name.trim_ascii_end());
    value[0] == b':' || is_word && (is_placeholder(value) || is_token)
}
