//! Seed phrases of wallets: twelve words or more of the English list of BIP-39, in one line, in a numbered list, or in a list of strings.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::{
    ranges::{Ranges, expression, skip, skip_back},
    words::Words,
};

pub(super) static WORDS: Words = Words::new(include_str!("../rules/bip39-english.txt"));

/// More words are two phrases, or a list of words.
const WORDS_OF_PHRASE: std::ops::RangeInclusive<usize> = 12..=50;
const LETTERS_OF_WORD: std::ops::RangeInclusive<usize> = 3..=8;
/// Signs, numbers and blanks between two words.
const MOST_BETWEEN: usize = 12;

/// Finds seed phrases. A phrase has a word at one of any places that are its least length apart, so few words are looked up.
pub(super) fn seed_phrases(letters: &[u8]) -> Ranges {
    /// Twelve words of three letters, and what stands between them.
    const LEAST_LETTERS: usize = 47;
    let mut ranges = Ranges::new();
    let mut at = 0;
    while at < letters.len() {
        let Some(word) = word_around(letters, at) else {
            at += LEAST_LETTERS;
            continue;
        };
        let before = || std::iter::successors(word_before(letters, &word), |word| word_before(letters, word));
        let behind = || {
            std::iter::successors(word_behind(letters, word.end), |word| {
                word_behind(letters, word.end)
            })
        };
        let (count, last) = behind().fold((1, word.end), |(count, _), word| (count + 1, word.end));
        if WORDS_OF_PHRASE.contains(&(count + before().count())) {
            let words = || before().chain([word.clone()]).chain(behind());
            let mut texts: Vec<_> = words().map(|word| &letters[word]).collect();
            let count = texts.len();
            texts.sort_unstable();
            texts.dedup();
            // Most words of a phrase differ.
            if texts.len() * 4 >= count * 3 {
                ranges.push(before().last().map_or(word.start, |first| first.start)..last);
            }
        }
        at = last.max(at) + LEAST_LETTERS;
    }
    ranges
}

/// Returns the word of the list that a place stands in, or the one behind it.
fn word_around(letters: &[u8], at: usize) -> Option<Range<usize>> {
    let least = at.saturating_sub(LETTERS_OF_WORD.end() + 1);
    match letters[at].is_ascii_alphabetic() {
        true => listed(
            letters,
            skip_back(letters, least..at, |letter| letter.is_ascii_alphabetic()),
        ),
        false => word_behind(letters, at),
    }
}

/// Returns the word of the list that follows a place, behind what may stand between two words.
fn word_behind(letters: &[u8], at: usize) -> Option<Range<usize>> {
    let limit = letters.len().min(at + MOST_BETWEEN);
    listed(letters, skip(&letters[..limit], at, is_between))
}

/// Returns the word of the list before another word.
fn word_before(letters: &[u8], word: &Range<usize>) -> Option<Range<usize>> {
    let of_word = |letter: u8| letter.is_ascii_alphabetic();
    // The letter of a line break belongs to what stands between.
    let start = skip_back(letters, word.start.saturating_sub(1)..word.start, of_word);
    let least = start.saturating_sub(MOST_BETWEEN);
    let end = skip_back(letters, least..start, is_between);
    let start = skip_back(
        letters,
        end.saturating_sub(LETTERS_OF_WORD.end() + 2)..end,
        of_word,
    );
    (start < end).then(|| listed(letters, start)).flatten()
}

/// Returns the word of the list whose letters begin at a place.
fn listed(letters: &[u8], mut start: usize) -> Option<Range<usize>> {
    // The letter of a line break in a JSON string.
    start += usize::from(letters.get(start) == Some(&b'n') && letters[..start].ends_with(b"\\"));
    let limit = letters.len().min(start + LETTERS_OF_WORD.end() + 1);
    let end = skip(&letters[..limit], start, |letter| letter.is_ascii_alphabetic());
    (LETTERS_OF_WORD.contains(&(end - start)) && WORDS.has(&letters[start..end])).then_some(start..end)
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
    while let Some(words) = WORDS.find_at(letters, from) {
        from = words.end();
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
