//! Keys that are recognised by themselves, and that the rules of Betterleaks in [`crate::providers`] do not know: by a
//! prefix, or by an alphabet and lengths of their own. The formats are documented by the providers. A key that is longer
//! than usual is replaced to its end, because the rest of a secret is still one, so most lengths are lower bounds.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::{
    ranges::{Ranges, expression, find_letter, skip},
    text::{is_white_space, is_word},
    values::{is_mixed, is_placeholder},
};

/// Expressions of keys. Each match begins at a word boundary.
pub(super) const PROVIDER_KEYS: &[&str] = &[
    // OpenAI, Anthropic, OpenRouter and Langfuse, of any length.
    r"sk-(?:proj|svcacct|admin|ant|or|lf)-[A-Za-z0-9_-]{20,}",
    // Google: OAuth client secrets, access and refresh tokens.
    r"GOCSPX-[A-Za-z0-9_-]{28,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"1//0[A-Za-z0-9_-]{40,}",
    // ElevenLabs and Clerk; secrets of webhooks; Razorpay.
    r"[sr]k_[a-f0-9]{38}[A-Za-z0-9]{10,}",
    r"whsec_[A-Za-z0-9+/]{24,}={0,2}",
    r"rzp_(?:live|test)_[A-Za-z0-9]{14,}",
    // Slack: app-level and refresh tokens of any form.
    r"(?i:xapp|xoxe(?:\.xox[bp])?)-[A-Za-z0-9-]{10,}",
    // TestPyPI, crates.io.
    r"pypi-AgE[A-Za-z0-9_-]{50,}",
    r"cio[A-Za-z0-9]{32}\b",
    // Fireworks, Jina; tools of agents: LangSmith's old keys, Tavily, Firecrawl, E2B.
    r"fw_[A-Za-z0-9]{20,}",
    r"jina_[A-Za-z0-9_-]{40,}",
    r"ls__[A-Za-z0-9]{24,}",
    r"tvly-[A-Za-z0-9_-]{16,}",
    r"fc-[a-f0-9]{32}\b",
    r"e2b_[a-f0-9]{40,}",
    // Mailgun, Fly.io, Netlify, Vercel's stores, Doppler's other tokens.
    r"key-[a-z0-9]{32}\b",
    r"fm[12][ra]?_[A-Za-z0-9+/=,_]{40,}",
    r"nf[pcoub]_[A-Za-z0-9]{36,}",
    r"vercel_blob_rw_[A-Za-z0-9_]{24,}",
    r"dp\.(?:st|ct|sa)\.[A-Za-z0-9_.-]{40,}",
    // Square's other tokens, Sentry, New Relic, PostHog's shared keys.
    r"sq0[a-z]{3}-[A-Za-z0-9_-]{22,}",
    r"sntry[su]_[A-Za-z0-9+/=_]{40,}",
    r"NR(?:AK|II|JS)-[A-Za-z0-9_-]{19,}",
    r"phs_[A-Za-z0-9_-]{30,}",
    // Linear's applications, Notion's old keys, Atlassian, HubSpot, Typeform, Contentful, 1Password.
    r"lin_oauth_[A-Za-z0-9]{40,}",
    r"secret_[A-Za-z0-9]{40,}",
    r"AT(?:ATT3|CTT3|BB)[A-Za-z0-9_=-]{24,}",
    r"pat-[a-z]{2}\d-[a-f0-9-]{36}",
    r"tfp_[A-Za-z0-9_.-]{40,}",
    r"CFPAT-[A-Za-z0-9_-]{40,}",
    r"ops_eyJ[A-Za-z0-9+/]{40,}={0,3}",
];

/// Expressions of keys without a prefix. All have digits.
pub(super) const OTHER_KEYS: &[&str] = &[
    // Telegram's bots.
    r"\d{8,10}:AA[A-Za-z0-9_-]{33}",
    // Discord's bots: an id in Base64, a time, and a signature.
    r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    // Mailgun and Mailchimp: hexadecimal digits with a suffix.
    r"[a-f0-9]{32}-(?:[a-f0-9]{8}-[a-f0-9]{8}|us\d{1,2})\b",
];

/// Keys that have a prefix.
pub(super) fn provider_keys(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> =
        LazyLock::new(|| expression(&format!(r"\b(?:{})", PROVIDER_KEYS.join("|"))));
    matches_of(&EXPRESSION, letters)
}

/// Keys that have none.
pub(super) fn other_keys(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> =
        LazyLock::new(|| expression(&format!(r"\b(?:{})", OTHER_KEYS.join("|"))));
    matches_of(&EXPRESSION, letters)
}

fn matches_of(expression: &Regex, letters: &[u8]) -> Ranges {
    expression.find_iter(letters).map(|found| found.range()).collect()
}

/// Longer than any private key: of one without an end in this distance, only the lines of Base64 are taken.
const MOST_PEM_LETTERS: usize = 1 << 14;

/// Private keys in PEM and PGP's armour, from their first line to their last. Of one that is cut off, the lines of Base64; the
/// first line alone, as in a program that looks for it, is no key.
pub(super) fn private_keys(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> =
        LazyLock::new(|| expression(r"-----(BEGIN|END)[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----"));
    let mut ranges = Ranges::new();
    let mut lines = EXPRESSION
        .find_iter(letters)
        .map(|found| found.range())
        .peekable();
    while let Some(first) = lines.next() {
        if !letters[first.start..].starts_with(b"-----BEGIN") {
            continue;
        }
        let next = lines.peek();
        let end = base64_end(letters, first.end, next.map_or(letters.len(), |next| next.start));
        if end == first.end {
            continue;
        }
        let last = next.filter(|next| {
            letters[next.start..].starts_with(b"-----END") && next.start - first.end <= MOST_PEM_LETTERS
        });
        ranges.push(first.start..last.map_or(end, |last| last.end));
    }
    ranges
}

/// Returns the end of the lines of Base64 that begin at `start`, or after the headers of a PEM block there; `start` without
/// any. Between lines stand white space, also as it is written in a JSON string, and the marks that a diff or a program puts
/// around lines.
fn base64_end(letters: &[u8], start: usize, limit: usize) -> usize {
    const LEAST: usize = 16;
    let of_base64 = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/' | b'=');
    let mut end = start;
    let mut index = start;
    while index < limit {
        let letter = letters[index];
        if is_white_space(letter) || matches!(letter, b'"' | b'\'' | b',' | b'>' | b'#' | b'|' | b'-') {
            index += 1;
        } else if letter == b'\\' {
            // `\n`, `\\n`, `\r`.
            index = skip(letters, index, |letter| letter == b'\\');
            index += usize::from(matches!(letters.get(index), Some(b'n' | b'r' | b't')));
        } else if of_base64(letter) {
            let run = skip(letters, index, of_base64).min(limit);
            let is_header = letters
                .get(run)
                .is_some_and(|letter| matches!(letter, b':' | b'-'))
                && end == start;
            if run - index >= LEAST || (end > start && !is_word_of_prose(&letters[index..run])) {
                end = run;
                index = run;
            } else if run - index == 1 {
                // The mark of a line that a diff adds, or the prefix of a string: b"…".
                index = run;
            } else if is_header {
                index = skip(&letters[..limit], run, |letter| {
                    !matches!(letter, b'\n' | b'\r' | b'\\')
                });
            } else {
                break;
            }
        } else {
            break;
        }
    }
    end
}

/// Returns whether a short run of letters after Base64 is a word of a text, and not its last line.
fn is_word_of_prose(letters: &[u8]) -> bool {
    !letters.ends_with(b"=") && !is_mixed(letters)
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

/// Returns the text after the last `=` of an assignment.
pub(super) fn after_separator(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let separator = letters[found.clone()]
        .iter()
        .position(|letter| matches!(letter, b'=' | b':'))?;
    let start = skip(letters, found.start + separator + 1, |letter| {
        is_white_space(letter) || matches!(letter, b'>' | b'\\' | b'"' | b'\'')
    });
    Some(start..found.end)
}

/// Returns a bearer token that is too short for the SDK, or whose scheme has small letters.
pub(super) fn short_bearer_token(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let start = skip(letters, found.start, is_word);
    let token = skip(letters, start, is_white_space)..found.end;
    is_mixed(&letters[token.clone()]).then_some(start..token.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_line_far_behind_the_first_is_of_another_key() {
        let (first, last) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
        let (base64, prose) = ("MIIEvQIBADANBgkqhkiG9w0BAQ", "some words ".repeat(2000));
        let whole = format!("{first}\n{base64}\n{last}");
        let cut_off = format!("{first}\n{base64}");
        for (text, key) in [
            (format!("{prose}{whole}"), whole),
            (format!("{cut_off}\n{prose}{last}"), cut_off),
        ] {
            let ranges = private_keys(text.as_bytes());
            let found: Vec<_> = ranges.into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, [key]);
        }
    }
}
