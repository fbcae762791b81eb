//! Full names of people wherever they stand.

use std::{cell::LazyCell, collections::HashSet, sync::LazyLock};

use regex::bytes::Regex;

use super::{
    Identities,
    people::{PARTICLES, is_english, is_full_name, is_given},
};
use crate::{phrases, ranges::expression, text::is_word, words::Words};

/// Labels of names that are no people's.
static THINGS: Words = Words::of("identity.things");
/// How much of a text before a name tells what it is, in bytes.
const BEFORE_NAME: usize = 24;

impl Identities {
    /// Learns full names: a given name and a word that is not common, wherever they stand.
    pub(super) fn learn_names(&mut self, text: &str) {
        static NAME: LazyLock<Regex> = LazyLock::new(|| {
            const WORD: &str =
                r"(?:Ma?c|[DO](?:'|’))?[A-Z\xc3-\xd4][a-z\x80-\xff]+(?:-[A-Z][a-z\x80-\xff]+)?";
            let particles = PARTICLES.iter().collect::<Vec<_>>().join("|");
            expression(&format!(
                r#"(?:^|[^A-Za-z0-9_.@#$\x80-\xff-])(?:{WORD}(?: (?:(?:{particles}|[A-Z]\.) )*{WORD}){{1,2}}|{WORD}, {WORD})"#
            ))
        });
        let bytes = text.as_bytes();
        let small = LazyCell::new(|| small_words(text));
        let mut from = 0;
        // A letter before the name belongs to the match, but at the beginning.
        let next = |from| {
            let found = NAME.find_at(bytes, from)?.range();
            let is_name = matches!(bytes[found.start], b'A'..=b'Z' | 0xC3..=0xD4);
            Some(found.start + usize::from(!is_name)..found.end)
        };
        while let Some(range) = next(from) {
            from = range.end;
            let (before, behind) = (
                &bytes[range.start.saturating_sub(BEFORE_NAME)..range.start],
                &bytes[range.end..],
            );
            let Some(found) = text.get(range).filter(|_| {
                // A folder is called like a person as a whole.
                let goes_on: &[u8] = if before.ends_with(b"/") || before.ends_with(b"\\") {
                    b"@ ,;-"
                } else {
                    b"/@"
                };
                !behind
                    .first()
                    .is_some_and(|next| is_word(*next) || goes_on.contains(next))
            }) else {
                continue;
            };
            let is_alone = is_alone(before, behind);
            let is_own = |name: &str, is_free: bool| {
                is_full_name(name)
                    && name.split(' ').skip(1).all(|word| {
                        PARTICLES.has(word.as_bytes())
                            || !phrases::WORDS.has(word.as_bytes()) && (is_free || !is_english(word))
                    })
            };
            // Of what is called like a person, the text has the name in small letters too: `hugo`.
            let begins = |name: &str| {
                let first = name.split([' ', '-']).next().unwrap_or_default();
                is_given(first) && !small.contains(&*first.to_lowercase())
            };
            if let Some((last, first)) = found.split_once(", ") {
                if (is_alone && before.ends_with(b"\"") || before.ends_with(b"] "))
                    && is_given(first)
                    && is_own(&format!("{first} {last}"), true)
                {
                    self.add_author(&format!("{first} {last}"), "");
                }
                continue;
            }
            // Also without a word of the sentence before it or behind it.
            let parts = [
                Some(found),
                found.split_once(' ').map(|part| part.1),
                found.rsplit_once(' ').map(|part| part.0),
            ];
            if let Some(name) = parts
                .into_iter()
                .flatten()
                .find(|name| begins(name) && is_own(name, is_alone))
            {
                // A login in brackets.
                let inner = behind.strip_prefix(b" (").unwrap_or_default();
                let login = inner.split(|byte| *byte == b')').next().unwrap_or_default();
                let login = if login.contains(&b'.') { &[] } else { login };
                self.add_author(name, &format!("{}@", String::from_utf8_lossy(login)));
            }
        }
    }
}

/// Returns whether a name between two texts stands alone, and its label is none of things.
fn is_alone(before: &[u8], behind: &[u8]) -> bool {
    static BEHIND: LazyLock<Regex> = LazyLock::new(|| expression(r#"^(?:["'`)|\t,;<\r\n\\]|  | [<(|]|$)"#));
    let last = before.trim_ascii_end().last();
    // Who speaks, behind the time.
    let speaks = behind.starts_with(b": ") && last.is_some_and(u8::is_ascii_digit);
    if speaks && !before.ends_with(b"\n") {
        return true;
    }
    let opens = last.is_some_and(|sign| b"\"'`(|,;>=:]".contains(sign))
        || before.ends_with(b"  ")
        || before.ends_with(b"\t");
    let mut label = before.split(|byte| !byte.is_ascii_alphanumeric());
    opens
        && BEHIND.is_match(behind)
        && !label
            .rfind(|word| !word.is_empty())
            .is_some_and(|word| THINGS.has(word))
}

/// Returns the words of a text that have no capital at the beginning, up to a sign that ends a part of a sentence.
fn small_words(text: &str) -> HashSet<&str> {
    let words = text.split_ascii_whitespace();
    let words = words.filter_map(|word| word.split(['.', ',', ';', ':', '!', '?', ')']).next());
    words
        .filter(|word| word.starts_with(char::is_lowercase))
        .collect()
}
