//! Seed phrases of wallets: twelve words or more of the English list of BIP-39, in one line, in a numbered list, or in a list of strings.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::{
    ranges::{Ranges, expression, find, runs, skip},
    words::Words,
};

pub(super) static WORDS: Words = Words::new(include_str!("../rules/bip39-english.txt"));

/// More words are two phrases, or a list of words.
const WORDS_OF_PHRASE: std::ops::RangeInclusive<usize> = 12..=50;
const LETTERS_OF_WORD: std::ops::RangeInclusive<usize> = 3..=8;
/// Signs, numbers and blanks between two words.
const MOST_BETWEEN: usize = 12;

/// Finds seed phrases.
pub(super) fn seed_phrases(letters: &[u8]) -> Ranges {
    /// Twelve words of three letters, and what stands between them.
    const LEAST_LETTERS: usize = 47;
    let mut ranges = Ranges::new();
    for run in runs(letters, LEAST_LETTERS, |letter| {
        letter.is_ascii_alphabetic() || is_between(letter)
    }) {
        phrases_in(&letters[..run.end], run.start, &mut ranges);
    }
    ranges
}

/// Finds the seed phrases from a place on.
fn phrases_in(letters: &[u8], mut end: usize, ranges: &mut Ranges) {
    // Words in a row that are as long as those of the list. Most rows of a text are short, and are not looked up.
    let mut row: Vec<Range<usize>> = Vec::new();
    while let Some(mut start) = find(letters, end, |letter| letter.is_ascii_alphabetic()) {
        let between = end..start;
        // The letter of a line break in a JSON string.
        start += usize::from(letters[start] == b'n' && letters[..start].ends_with(b"\\"));
        end = skip(letters, start, |letter| letter.is_ascii_alphabetic());
        let is_word = LETTERS_OF_WORD.contains(&(end - start));
        let is_next =
            || between.len() <= MOST_BETWEEN && letters[between.clone()].iter().copied().all(is_between);
        if !is_word || !row.is_empty() && !is_next() {
            take_phrases(letters, &mut row, ranges);
        }
        if is_word {
            row.push(start..end);
        }
    }
    take_phrases(letters, &mut row, ranges);
}

/// Returns whether a letter can stand between the words of a list, and not of a program.
fn is_between(letter: u8) -> bool {
    let is_sign = matches!(
        letter,
        b'.' | b',' | b':' | b';' | b')' | b'[' | b']' | b'-' | b'|' | b'#' | b'*'
    );
    let is_quote = matches!(letter, b'"' | b'\'' | b'`' | b'\\');
    is_sign || is_quote || letter.is_ascii_digit() || letter.is_ascii_whitespace() || !letter.is_ascii()
}

/// Adds the phrases of a row of words, which it empties. Most words of a phrase differ.
fn take_phrases(letters: &[u8], row: &mut Vec<Range<usize>>, ranges: &mut Ranges) {
    if row.len() >= *WORDS_OF_PHRASE.start() {
        let phrases = row.split(|word| !WORDS.has(&letters[word.clone()]));
        let phrases = phrases.filter(|words| {
            let mut texts: Vec<_> = words.iter().map(|word| &letters[word.clone()]).collect();
            texts.sort_unstable();
            texts.dedup();
            WORDS_OF_PHRASE.contains(&words.len()) && texts.len() * 4 >= words.len() * 3
        });
        ranges.extend(phrases.map(|words| words[0].start..words[words.len() - 1].end));
    }
    row.clear();
}

/// Finds the codes by which an account is recovered, below or behind words that say so.
pub(super) fn recovery_codes(letters: &[u8]) -> Ranges {
    static WORDS: LazyLock<Regex> = LazyLock::new(|| {
        expression(
            r"(?i)\b(?:recovery|backup|emergency|scratch|one-time|rescue)[ _-]?(?:codes|keys)\b[^\n]{0,80}?(?::|\n)",
        )
    });
    static CODE: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r#"^(?:[\s,;|*"'\[\]\\]|\\n|\d{1,2}[.)]\s|- ){0,24}"#,
            r"((?:[A-Za-z0-9]{4,8}[- ]){1,5}[A-Za-z0-9]{4,8}|[A-Za-z0-9]{8,16})(?:[^\w-]|$)"
        ))
    });
    const LEAST_CODES: usize = 2;
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(found) = WORDS.find_at(letters, from) {
        from = found.end();
        let mut codes = Ranges::new();
        while let Some(code) = CODE.captures(&letters[from..]).and_then(|found| found.get(1)) {
            if !code.as_bytes().iter().any(u8::is_ascii_digit) && codes.is_empty() {
                break;
            }
            codes.push(from + code.start()..from + code.end());
            from += code.end();
        }
        if codes.len() >= LEAST_CODES {
            ranges.extend(codes);
        }
    }
    ranges
}
