//! Seed phrases of wallets: twelve words or more of the English list of BIP-39, in one line, in a numbered list, or in a list of strings.

use std::{collections::HashSet, ops::Range};

use crate::{
    ranges::{Letters, Pattern, Ranges, runs, skip},
    words::Words,
};

pub(super) static WORDS: Words = Words::new(include_str!("../rules/bip39-english.txt"));

/// More words are two phrases, or a list of words.
const WORDS_OF_PHRASE: std::ops::RangeInclusive<usize> = 12..=50;
const LETTERS_OF_WORD: std::ops::RangeInclusive<usize> = 3..=8;
/// The letters of the fewest and shortest words of a phrase, with a blank between each two.
const LEAST_LETTERS: usize = 12 * 3 + 11;
/// Signs, numbers and blanks between two words.
const MOST_BETWEEN: usize = 12;

/// Finds seed phrases: words of the list one behind another, in the runs of such letters that are long enough.
pub(super) fn seed_phrases(letters: &[u8]) -> Ranges {
    let found = runs(letters, LEAST_LETTERS, &OF_PHRASE).flat_map(|run| {
        let phrases = phrases_in(&letters[run.clone()]).into_iter();
        phrases.map(move |phrase| run.start + phrase.start..run.start + phrase.end)
    });
    found.collect()
}

/// Finds the phrases in a run of letters.
fn phrases_in(letters: &[u8]) -> Ranges {
    let mut ranges = Ranges::new();
    // Words that may be listed, as long as they follow each other: seldom so many that they need to be looked up.
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    loop {
        let start = skip(letters, at, |letter| BETWEEN.has(letter));
        // The letter of a line break in a JSON string.
        let is_break = letters[..start].ends_with(b"\\") && letters.get(start) == Some(&b'n');
        let start = start + usize::from(is_break);
        let end = skip(letters, start, |letter| letter.is_ascii_alphabetic());
        let word = start..end;
        let is_apart = words.last().is_some_and(|last| start - last.end > MOST_BETWEEN);
        let may_be_listed = LETTERS_OF_WORD.contains(&word.len());
        if is_apart || !may_be_listed {
            if words.len() >= *WORDS_OF_PHRASE.start() {
                let phrases = words.split(|word| !WORDS.has(&letters[word.clone()]));
                ranges.extend(phrases.filter_map(|phrase| whole_phrase(letters, phrase)));
            }
            words.clear();
        }
        if may_be_listed {
            words.push(word);
        }
        if start == letters.len() {
            return ranges;
        }
        at = end.max(start + usize::from(end == start));
    }
}

/// Returns where words stand that can be a phrase: so many, and most of them different.
fn whole_phrase(letters: &[u8], words: &[Range<usize>]) -> Option<Range<usize>> {
    if !WORDS_OF_PHRASE.contains(&words.len()) {
        return None;
    }
    let different: HashSet<_> = words.iter().map(|word| &letters[word.clone()]).collect();
    let is_phrase = different.len() * 4 >= words.len() * 3;
    is_phrase.then_some(words.first()?.start..words.last()?.end)
}

/// What can stand between the words of a list, and not of a program.
static BETWEEN: Letters = Letters::of(b"0-9\t\n\x0c\r .,:;)[]|#*\"'`\\\x80-\xff-");
/// The same, and the letters of the words.
static OF_PHRASE: Letters = Letters::of(b"A-Za-z0-9\t\n\x0c\r .,:;)[]|#*\"'`\\\x80-\xff-");

/// Finds the codes by which an account is recovered, below or behind words that say so.
pub(super) fn recovery_codes(letters: &[u8]) -> Ranges {
    static WORDS: Pattern = Pattern::new(
        r"(?i)\b(?:recovery|backup|emergency|scratch|one-time|rescue)[ _-]?(?:codes|keys)\b[^\n]{0,80}?(?::|\n(?:[^\n\d]{1,80}\.\r?\n)?)",
    );
    static CODE: Pattern = Pattern::new(concat!(
        r#"^(?:[\s,;|*"'\[\]\\]|\\n|\d{1,2}[.)]\s|- ){0,24}"#,
        r"((?:[A-Za-z0-9]{4,8}[- ]){1,5}[A-Za-z0-9]{4,8}|[A-Za-z0-9]{8,16})(?:[^\w-]|$)"
    ));
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
