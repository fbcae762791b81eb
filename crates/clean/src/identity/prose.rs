//! Full names of people wherever they stand.

use std::{cell::LazyCell, collections::HashSet, iter, sync::LazyLock};

use regex::bytes::Regex;

use super::{
    Identities,
    people::{PARTICLES, is_english, is_full_name, is_given},
};
use crate::{
    ranges::{expression, line_around},
    text::is_word,
};

impl Identities {
    /// Learns full names: a given name and a word that is not common, wherever they stand.
    pub(super) fn learn_names(&mut self, text: &str) {
        static NAME: LazyLock<Regex> = LazyLock::new(|| {
            const WORD: &str =
                r"(?:Ma?c|[DO](?:'|’))?[A-Z\xc3-\xd4][a-z\x80-\xff]+(?:-[A-Z][a-z\x80-\xff]+)?";
            let particles = PARTICLES.iter().collect::<Vec<_>>().join("|");
            expression(&format!(
                r#"(?:^|[^A-Za-z0-9_.@#$\x80-\xff-]){WORD}(?: (?:(?:{particles}|[A-Z]\.) )*{WORD}){{1,2}}"#
            ))
        });
        let bytes = text.as_bytes();
        let small = LazyCell::new(|| small_words(text));
        let mut from = 0;
        let names = iter::from_fn(|| {
            loop {
                let line = line_around(bytes, from, capital_behind_word(bytes, from)?);
                let start = line.start.saturating_sub(1).max(from);
                let found = NAME.find_at(&bytes[..line.end], start);
                from = found.map_or(line.end, |found| found.end());
                if found.is_some() {
                    return found;
                }
            }
        });
        for found in names {
            // A letter before the name belongs to the match, but at the beginning.
            let is_name = matches!(bytes[found.start()], b'A'..=b'Z' | 0xC3..=0xD4);
            let range = found.start() + usize::from(!is_name)..found.end();
            let (before, behind) = (&bytes[..range.start], &bytes[range.end..]);
            // A folder is called like a person as a whole.
            let goes_on: &[u8] = match before {
                [.., b'/' | b'\\'] => b"@ ,;-",
                _ => b"/@",
            };
            let next = behind.first();
            let Some(found) = text
                .get(range)
                .filter(|_| !next.is_some_and(|next| is_word(*next) || goes_on.contains(next)))
            else {
                continue;
            };
            let is_own = |name: &&str| {
                let first = name.split([' ', '-']).next().unwrap_or_default();
                let is_last = |word: &str| PARTICLES.has(word.as_bytes()) || !is_english(word);
                // Of what is called like a person, the text has the name in small letters too: `hugo`.
                is_given(first)
                    && is_full_name(name)
                    && name.split(' ').skip(1).all(is_last)
                    && !small.contains(&*first.to_lowercase())
            };
            // Also without a word of the sentence before it or behind it.
            let shorter = [
                found.split_once(' ').map(|part| part.1),
                found.rsplit_once(' ').map(|part| part.0),
            ];
            if let Some(name) = [Some(found)].into_iter().chain(shorter).flatten().find(is_own) {
                // A login in brackets.
                let inner = behind.strip_prefix(b" (").unwrap_or_default();
                let login = inner.split(|byte| *byte == b')').next().unwrap_or_default();
                let login = if login.contains(&b'.') { &[] } else { login };
                self.add_author(name, &format!("{}@", String::from_utf8_lossy(login)));
            }
        }
    }
}

/// Returns the next place from `from` on where a word, a blank and one with a capital meet.
fn capital_behind_word(bytes: &[u8], from: usize) -> Option<usize> {
    let mut around = bytes[from..].windows(3);
    let meet = |three: &[u8]| {
        three[1] == b' ' && matches!(three, [b'a'..=b'z' | b'.' | 0x80.., _, b'A'..=b'Z' | 0xC3..=0xD4])
    };
    Some(from + around.position(meet)?)
}

/// Returns the words of a text that have no capital at the beginning, up to a sign that ends a part of a sentence.
fn small_words(text: &str) -> HashSet<&str> {
    let words = text.split_ascii_whitespace();
    let words = words.filter_map(|word| word.split(['.', ',', ';', ':', '!', '?', ')']).next());
    words
        .filter(|word| word.starts_with(char::is_lowercase))
        .collect()
}
