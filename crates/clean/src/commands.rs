//! Secrets in the arguments of commands: `--password hunter2`, `curl -u user:hunter2`, `mysql -phunter2`.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::{
    names::{is_marked, is_secret, is_secret_name},
    ranges::{Ranges, expression, find_letter, merged, skip, skip_back},
    text::{is_white_space, is_word, starts_with},
    values::{STOP_WORDS, is_generated, is_keyword, is_mixed, is_placeholder, is_small_number},
};

/// What stands for `<ARGUMENTS>` in the rules: words and strings, also in the next line behind a backslash, which is two in a JSON string.
const ARGUMENTS: &str = concat!(
    r#"[ \t](?:(?:[^\n\r|;&`"'\\]|&[^&\n]|\\+[\n\r]+|\\{2,}n|\\[^n\n\r]"#,
    r#"|(?:[\s=]|-\w)\\*"[^"\n\r]*"|'[^'\n\r]*')*?[ \t\n])??"#
);

/// Returns what stands for `<VALUE>` in the rules: a word or a string, behind the text `before`.
fn value_behind(before: &str) -> String {
    format!(r#"(?:\\*"{before}([^"\n\r\\]+)|\\*'{before}([^'\n\r\\]+)|{before}([^\s\x80"'`|;&\\]+))"#)
}

/// Finds secrets by the expressions of `rules/commands.tsv`.
pub(super) fn arguments(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        let lines = include_str!("../rules/commands.tsv").lines().skip(1);
        let rules: Vec<_> = lines.filter_map(|line| Some(line.split_once('\t')?.1)).collect();
        let rules = rules
            .join("|")
            .replace("<ARGUMENTS>", ARGUMENTS)
            .replace("<VALUE>", &value_behind(""));
        let rules = [":", "=", "%"].iter().fold(rules, |rules, sign| {
            let before = format!(r#"[^\s{sign}"'\\]*{sign}"#);
            rules.replace(&format!("<{sign}VALUE>"), &value_behind(&before))
        });
        expression(&format!(r"\b(?:{rules})"))
    });
    let mut rest = Cow::Borrowed(letters);
    let mut secrets = Ranges::new();
    // The next option of a command is found when the value of the one before matches no more.
    for _ in 0..MOST_OPTIONS {
        let found: Vec<_> = EXPRESSION
            .captures_iter(&rest)
            .filter_map(|found| found.iter().skip(1).flatten().next().map(|group| group.range()))
            .collect();
        if found.is_empty() {
            break;
        }
        for secret in &found {
            rest.to_mut()[secret.clone()].fill(NO_VALUE);
        }
        secrets.extend(found);
    }
    secrets.retain(|secret| is_value(&letters[secret.clone()]) && !is_keyword(&letters[secret.clone()]));
    merged(secrets)
}

/// The most options with secrets that a command has.
const MOST_OPTIONS: usize = 16;

/// A letter that no value has: it stands for letters outside ASCII.
const NO_VALUE: u8 = 0x80;

/// `--password hunter2`, `-token abc`, also in the list of arguments of a program: `["--password", "hunter2"]`.
pub(super) fn named_options(letters: &[u8]) -> Ranges {
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(start) = find_letter(letters, from, b'-') {
        let name_start = skip(letters, start, |letter| letter == b'-');
        let name_end = skip(letters, name_start, |letter| is_word(letter) || letter == b'-');
        from = name_end;
        let before = start.checked_sub(1).map_or(b' ', |index| letters[index]);
        if name_start - start > 2 || is_word(before) || matches!(before, b'.' | b'/') {
            continue;
        }
        let quote = skip(letters, name_end, |letter| letter == b'\\');
        let value = if matches!(letters[quote.min(letters.len())..], [b'"' | b'\'', b',', ..]) {
            skip(letters, quote + 2, is_white_space)
        } else {
            skip(letters, name_end, |letter| matches!(letter, b' ' | b'\t'))
        };
        if value == name_end {
            continue;
        }
        // A page of help explains the option in the next column.
        let is_help = letters[name_end..value]
            .iter()
            .filter(|letter| **letter == b' ')
            .count()
            > 1;
        let secret = value_of_word(letters, name_start..name_end, value);
        if let Some(secret) = secret.filter(|secret| !is_help || is_mixed(&letters[secret.clone()])) {
            from = secret.end;
            ranges.push(secret);
        }
    }
    ranges
}

/// `ENV DB_PASSWORD hunter2`, `setx DB_PASSWORD hunter2`, `aws configure set aws_secret_access_key …`
pub(super) fn set_variable(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let name_end = skip_back(letters, found.clone(), is_white_space);
    let name = skip_back(letters, 0..name_end, |letter| {
        is_word(letter) || matches!(letter, b'-' | b'.')
    });
    value_of_word(letters, name..name_end, found.end)
}

const MOST_SECRET_LETTERS: usize = 4096;

fn value_of_word(letters: &[u8], name: Range<usize>, start: usize) -> Option<Range<usize>> {
    let name = &letters[name];
    let value = argument(letters, start);
    let text = &letters[value.clone()];
    (is_secret_name(name) && is_argument(text) && is_secret(name, text)).then_some(value)
}

/// Returns the word that begins at `start`, without its quotes.
fn argument(letters: &[u8], start: usize) -> Range<usize> {
    let limit = (start + MOST_SECRET_LETTERS).min(letters.len());
    let letters = &letters[..limit];
    let opening = skip(letters, start, |letter| letter == b'\\');
    if let Some(quote @ (b'"' | b'\'' | b'`')) = letters.get(opening).copied() {
        let inner = opening + 1;
        let end = skip(letters, inner, |letter| {
            letter != quote && !matches!(letter, b'\n' | b'\r')
        });
        let slashes = (opening - start).min(end - inner);
        return inner..end - slashes;
    }
    let end = skip(letters, start, |letter| {
        !is_white_space(letter) && !matches!(letter, b'"' | b'\'' | b'`' | b'|' | b';' | b'\\')
    });
    start..skip_back(letters, start..end, |letter| {
        matches!(letter, b')' | b']' | b'}' | b',')
    })
}

fn is_argument(value: &[u8]) -> bool {
    let is_name_of_argument = value
        .iter()
        .all(|letter| letter.is_ascii_uppercase() || *letter == b'_');
    !is_name_of_argument && is_value(value)
}

fn is_value(value: &[u8]) -> bool {
    !value.is_empty()
        && !value.starts_with(b"-")
        && !STOP_WORDS.has(value)
        && !is_marked(value)
        && !is_placeholder(value)
}

/// Sentences with a secret, and lines of `.netrc`: `password is hunter2`, `password hunter2`, `identified by 'hunter2'`.
pub(super) fn said(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    const ALGORITHMS: &[&str] = &[
        "argon2", "base64", "md5", "oauth2", "pbkdf2", "sha", "utf", "http", "bcrypt", "scrypt", "v1", "v2",
        "v3", "2fa", "aes", "rs256", "hs256", "es256",
    ];
    let value = argument(letters, found.end);
    let text = &letters[value.clone()];
    let text = text.strip_suffix(b".").unwrap_or(text);
    let value = value.start..value.start + text.len();
    // Backticks mark any word of a document.
    let is_quoted = value.start > found.end && letters[value.start - 1] != b'`';
    let is_algorithm = || ALGORITHMS.iter().any(|each| starts_with(text, each));
    let has_letter = text.iter().any(|letter| letter.is_ascii_alphabetic());
    let is_spoken = if is_quoted {
        text.len() > 2 && !text.contains(&b' ') && !is_keyword(text)
    } else {
        text.len() > 5
            && is_mixed(text)
            && !is_algorithm()
            && (is_generated(text)
                || !text
                    .iter()
                    .any(|letter| matches!(letter, b'(' | b'=' | b'/' | b'<' | b':')))
    };
    (is_spoken && has_letter && is_argument(text) && !is_small_number(text)).then_some(value)
}

/// Returns the last field of a line of `.pgpass`.
pub(super) fn password_of_line(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let value = skip_back(letters, found.clone(), |letter| letter != b':')..found.end;
    let text = &letters[value.clone()];
    (!is_placeholder(text) && !is_keyword(text)).then_some(value)
}
