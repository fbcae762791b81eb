//! Phrases that are found in texts as whole words: those of `tables/words.tsv`.

use std::{collections::HashMap, sync::LazyLock};

use aho_corasick::{AhoCorasick, Match, MatchKind};

/// The phrases of each kind.
static PHRASES: LazyLock<HashMap<&str, AhoCorasick>> = LazyLock::new(|| {
    let mut lists: HashMap<_, Vec<_>> = HashMap::new();
    for line in include_str!("../tables/words.tsv").lines() {
        if let [kind, _, phrases] = line.split('\t').collect::<Vec<_>>()[..] {
            lists.entry(kind).or_default().extend(phrases.split('|'));
        }
    }
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest);
    // It fails for more phrases than a file of this repository has; tests use all lists.
    let built = |(kind, phrases)| Some((kind, builder.build(phrases as Vec<&str>).ok()?));
    lists.into_iter().filter_map(built).collect()
});

/// Counts the phrases of a kind in a text, in any case. Those in a script without spaces between words, or with endings, are found anywhere.
pub(crate) fn count_in(kind: &str, text: &str) -> usize {
    let text = text.to_lowercase();
    let is_whole = |found: &Match| {
        let (before, phrase) = text.split_at(found.start());
        let (phrase, after) = phrase.split_at(found.len());
        let is_joined = |inner: Option<char>, outer: Option<char>| {
            inner.is_some_and(is_apart)
                && outer.is_some_and(|c| c == '_' || c.is_alphanumeric() && is_apart(c))
        };
        !is_joined(phrase.chars().next(), before.chars().next_back())
            && !is_joined(phrase.chars().next_back(), after.chars().next())
    };
    let phrases = PHRASES.get(kind).into_iter();
    phrases
        .flat_map(|phrases| phrases.find_iter(&text))
        .filter(is_whole)
        .count()
}

/// Returns whether a text has a phrase of a kind.
pub(crate) fn are_in(kind: &str, text: &str) -> bool {
    count_in(kind, text) > 0
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
