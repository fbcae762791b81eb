//! Lists of words.

use std::sync::OnceLock;

/// No list has longer words.
const MOST_LETTERS: usize = 16;

/// A list of words in small letters, which are compared as numbers.
pub(super) struct Words {
    text: &'static str,
    /// In order.
    numbers: OnceLock<Vec<u128>>,
}

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
        let numbers = OnceLock::new();
        Self { text, numbers }
    }

    /// Returns the words.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static str> {
        self.text.split_ascii_whitespace()
    }

    /// Returns whether a word is in the list, in any case.
    pub(super) fn has(&self, word: &[u8]) -> bool {
        let numbers = self.numbers.get_or_init(|| {
            let mut numbers: Vec<_> = self.iter().map(|word| number(word.as_bytes())).collect();
            numbers.sort_unstable();
            numbers
        });
        // A number does not tell a word from one with zeros behind it.
        let is_possible = word.len() <= MOST_LETTERS && !word.ends_with(&[0]);
        is_possible && numbers.binary_search(&number(word)).is_ok()
    }
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
