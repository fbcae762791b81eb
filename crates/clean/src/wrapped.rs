//! Tokens that go on in the next line, or in the next string of a program.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::{
    decoded::Decoded,
    ranges::{Ranges, expression, find, skip, skip_back},
    text::{Text, is_word},
    values::is_mixed,
};

/// A shorter part of a token before the end of a line is a word.
const LEAST_BEFORE: usize = 4;
/// A shorter part of a token at the beginning of a line is a word.
const LEAST_BEHIND: usize = 8;
const MOST_LETTERS: usize = 2048;

/// Returns whether letters have no digit and no more capitals than a word.
fn is_of_words(part: &[u8]) -> bool {
    !is_mixed(part)
        && part
            .iter()
            .skip(1)
            .filter(|letter| letter.is_ascii_uppercase())
            .count()
            < 2
}

/// Returns whether a line begins with a name of so many letters and its value: `AWS_SECRET_ACCESS_KEY=…`.
fn is_name(line: &[u8], length: usize) -> bool {
    let name = &line[..length];
    let is_constant = || name.contains(&b'_') && !name.iter().any(u8::is_ascii_lowercase);
    matches!(line.get(length), Some(b'=' | b':')) && (!is_mixed(name) || is_constant())
}

fn of_token(letter: u8) -> bool {
    is_word(letter) || matches!(letter, b'-' | b'.')
}

/// Returns whether a part of a token stands in a line that begins at a place, behind numbers and signs at most.
fn has_token(letters: &[u8], mut at: usize) -> bool {
    loop {
        let start = skip(letters, at, |letter| letter != b'\n' && !of_token(letter));
        at = skip(letters, start, of_token);
        let token = &letters[start..at];
        if token.len() >= LEAST_BEHIND || token.is_empty() || token.iter().any(u8::is_ascii_alphabetic) {
            return token.len() >= LEAST_BEHIND && !is_of_words(token);
        }
    }
}

/// Finds the tokens of several parts among those that `search` finds in a text.
pub(super) fn tokens(text: &Text, search: impl Fn(&Text) -> Ranges) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r#"["'`]?[ \t]*[+\\.&|\xFF]?[ \t]*(?:\r?\n|(?:\\+r)?\\+n)[ \t]*(?:\d{1,6}(?:\t|[^\w\s]{1,3}[ \t]*))?"#,
            r#"[>+|#/*.&\xFF-]{0,2}[ \t]*["'`]?|["'`][ \t]?[+.&][ \t]?["'`]"#
        ))
    });
    let of_gap = |letter: u8| b" \t\"'`+\\.&|\xFF\r".contains(&letter);
    let is_quote = |letter: Option<&u8>| letter.is_some_and(|letter| b"\"'`".contains(letter));
    let is_blank = |letter: u8| matches!(letter, b' ' | b'\t');
    let letters = text.letters();
    let mut joined = Decoded::default();
    let (mut last, mut from, mut next) = (0..0, 0, 0);
    while let Some(at) = find(letters, next, |letter| {
        matches!(letter, b'\n' | b'\\' | b'+' | b'.' | b'&')
    }) {
        next = at + 1;
        let may_be_gap = match letters[at] {
            b'\n' => has_token(letters, next),
            b'\\' => letters.get(next) == Some(&b'n') && has_token(letters, next + 1),
            _ => {
                let behind = skip(&letters[..letters.len().min(next + 1)], next, is_blank);
                let before = skip_back(letters, at.saturating_sub(1)..at, is_blank);
                is_quote(letters.get(behind)) && is_quote(letters[..before].last())
            }
        };
        if !may_be_gap || at < from {
            continue;
        }
        let start = skip_back(letters, from..at, of_gap);
        let Some(gap) = EXPRESSION.find_at(letters, start) else {
            break;
        };
        from = gap.end();
        let behind = from..skip(letters, from, of_token);
        if behind.len() < LEAST_BEHIND
            || is_of_words(&letters[behind.clone()])
            || is_name(&letters[behind.start..], behind.len())
        {
            continue;
        }
        let least = last.start.max(gap.start().saturating_sub(MOST_LETTERS));
        let before = skip_back(letters, least..gap.start(), of_token)..gap.start();
        if before != last {
            if before.len() < LEAST_BEFORE {
                continue;
            }
            joined.end_line();
            joined.push(text, before);
        }
        joined.push(text, behind.clone());
        last = behind;
    }
    if joined.units.is_empty() {
        return Ranges::new();
    }
    let found = search(&Text::new(&joined.units)).into_iter();
    found.filter_map(|range| joined.original(&range, 0)).collect()
}
