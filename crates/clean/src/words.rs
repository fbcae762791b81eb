//! Lists of words.

use std::{collections::HashSet, sync::OnceLock};

use rustc_hash::FxBuildHasher;

/// No list has longer words.
const MOST_LETTERS: usize = 16;

/// A list of words in small letters, which are compared as numbers.
pub(super) struct Words {
    text: &'static str,
    table: OnceLock<Table>,
}

struct Table {
    numbers: HashSet<u128, FxBuildHasher>,
    /// The lengths of the words, and their first letters, by which most others are told: a bit each.
    lengths: u32,
    firsts: u32,
}

impl Table {
    fn of(words: impl Iterator<Item = &'static [u8]> + Clone) -> Self {
        Self {
            lengths: words.clone().fold(0, |bits, word| bits | 1 << word.len()),
            firsts: words.clone().fold(0, |bits, word| bits | bit_of(word[0])),
            numbers: words.map(number).collect(),
        }
    }
}

/// The words that sources have most often, in small letters.
pub(super) static COMMON: Words = Words::new(include_str!("../rules/common-words.txt"));

/// Lists of words, one a line: its name, and the words.
const LISTS: &str = include_str!("../rules/words.tsv");

/// Returns the words of a list. The name of none does not compile.
const fn list(name: &str) -> &'static str {
    let (lists, name) = (LISTS.as_bytes(), name.as_bytes());
    let (mut start, mut at) = (0, 0);
    while at < name.len() || lists[start + at] != b'\t' {
        if at < name.len() && lists[start + at] == name[at] {
            at += 1;
            continue;
        }
        while lists[start] != b'\n' {
            start += 1;
        }
        (start, at) = (start + 1, 0);
    }
    let mut end = start;
    while lists[end] != b'\n' {
        end += 1;
    }
    LISTS.split_at(end).0.split_at(start + at + 1).1
}

impl Words {
    /// Creates the list of this name of `rules/words.tsv`.
    pub(super) const fn of(name: &str) -> Self {
        Self::new(list(name))
    }

    /// Creates the list of the words of a text.
    pub(super) const fn new(text: &'static str) -> Self {
        let table = OnceLock::new();
        Self { text, table }
    }

    /// Returns the words.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static str> {
        self.text.split_ascii_whitespace()
    }

    /// Returns whether a word is in the list, in any case.
    pub(super) fn has(&self, word: &[u8]) -> bool {
        let Some(first) = word.first() else { return false };
        let table = self
            .table
            .get_or_init(|| Table::of(self.text.split_ascii_whitespace().map(str::as_bytes)));
        // A number does not tell a word from one with zeros behind it.
        word.len() <= MOST_LETTERS
            && table.lengths & 1 << word.len() != 0
            && table.firsts & bit_of(*first) != 0
            && !word.ends_with(&[0])
            && table.numbers.contains(&number(word))
    }
}

/// Returns the bit of a letter, the same in any case. Others share it.
fn bit_of(letter: u8) -> u32 {
    1 << (letter & 31)
}

/// Returns the number of a word of at most [`MOST_LETTERS`], the same in any case.
fn number(word: &[u8]) -> u128 {
    let mut letters = [0; MOST_LETTERS];
    letters[..word.len()].copy_from_slice(word);
    letters.make_ascii_lowercase();
    u128::from_le_bytes(letters)
}

/// Accounts, folders and machines that are the same everywhere, and words that stand for a name in examples.
pub(crate) static NOBODY: Words = Words::of("words.nobody");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_its_words_whole_and_in_any_case() {
        static WORDS: Words = Words::new("token aws4-hmac-sha256 b");
        for word in ["token", "ToKeN", "aws4-hmac-sha256", "B"] {
            assert!(WORDS.has(word.as_bytes()), "{word}");
        }
        for word in ["", "toke", "tokens", "aws4-hmac-sha2567", "a", "b\0"] {
            assert!(!WORDS.has(word.as_bytes()), "{word}");
        }
    }
}
