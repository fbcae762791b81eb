//! Phrases that are found in texts as whole words: those of `tables/words.tsv`.

use std::{collections::HashMap, sync::LazyLock};

use aho_corasick::{AhoCorasick, MatchKind};

/// The phrases of each kind.
static PHRASES: LazyLock<HashMap<&str, Phrases>> = LazyLock::new(|| {
    let mut lists: HashMap<_, Vec<_>> = HashMap::new();
    for line in include_str!("../tables/words.tsv").lines() {
        let mut cells = line.split('\t');
        if let (Some(kind), Some(_), Some(phrases)) = (cells.next(), cells.next(), cells.next()) {
            lists.entry(kind).or_default().push(phrases);
        }
    }
    let lists = lists.into_iter();
    lists.map(|(kind, lists)| (kind, Phrases::of(&lists))).collect()
});

/// Counts the phrases of a kind in a text.
pub(crate) fn count_in(kind: &str, text: &str) -> usize {
    PHRASES.get(kind).map_or(0, |phrases| phrases.found(text).count())
}

/// Returns whether a text has a phrase of a kind.
pub(crate) fn are_in(kind: &str, text: &str) -> bool {
    let phrases = PHRASES.get(kind);
    phrases.is_some_and(|phrases| phrases.found(text).next().is_some())
}

/// Phrases in any case. Those in a script without spaces between words, or with endings, are found anywhere.
struct Phrases(Option<AhoCorasick>);

impl Phrases {
    /// Returns the phrases of lists with `|` between them.
    fn of(lists: &[&str]) -> Self {
        let phrases = lists.iter().flat_map(|list| list.split('|'));
        let mut builder = AhoCorasick::builder();
        // It fails for more phrases than a file of this repository has; tests use all lists.
        Self(builder.match_kind(MatchKind::LeftmostLongest).build(phrases).ok())
    }

    fn found(&self, text: &str) -> impl Iterator<Item = ()> {
        let text = text.to_lowercase();
        let found: Vec<_> = self
            .0
            .iter()
            .flat_map(|automaton| automaton.find_iter(&text))
            .collect();
        let is_whole = move |found: &aho_corasick::Match| {
            let (before, phrase) = text.split_at(found.start());
            let (phrase, after) = phrase.split_at(found.len());
            let is_joined = |inner: Option<char>, outer: Option<char>| {
                inner.is_some_and(is_apart)
                    && outer.is_some_and(|c| c == '_' || c.is_alphanumeric() && is_apart(c))
            };
            !is_joined(phrase.chars().next(), before.chars().next_back())
                && !is_joined(phrase.chars().next_back(), after.chars().next())
        };
        found.into_iter().filter(is_whole).map(|_| ())
    }
}

/// Whether spaces separate words in the script of a character: not in those of China and Japan. Words of Hangul have endings.
fn is_apart(c: char) -> bool {
    !matches!(c, '\u{1100}'..='\u{11FF}' | '\u{2E80}'..='\u{A4CF}' | '\u{AC00}'..='\u{D7FF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..)
}

/// Returns the beginning of a text.
pub(crate) fn first(text: &str, characters: usize) -> &str {
    let beginning = text.get(..characters).unwrap_or(text);
    if beginning.is_ascii() {
        return beginning;
    }
    let end = text.char_indices().nth(characters);
    &text[..end.map_or(text.len(), |(end, _)| end)]
}
