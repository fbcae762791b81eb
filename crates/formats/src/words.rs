//! The words that texts and messages are read by: tags that models and programs write, and types of parts. They are the rows of
//! `tables/words.tsv`.

use std::{collections::HashMap, sync::LazyLock};

/// How a tag begins, and how it ends, if it does.
type Tag = [&'static str; 2];

static TABLE: LazyLock<HashMap<&str, Vec<Tag>>> = LazyLock::new(|| {
    let mut table: HashMap<&str, Vec<Tag>> = HashMap::new();
    for row in include_str!("../tables/words.tsv").lines() {
        let mut cells = row.split('\t');
        let mut next = || cells.next().unwrap_or_default();
        table.entry(next()).or_default().push([next(), next()]);
    }
    table
});

/// Returns the beginnings and ends of the tags of a kind.
pub fn tags(kind: &str) -> &'static [Tag] {
    TABLE.get(kind).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the words of a kind.
pub fn words(kind: &str) -> impl Iterator<Item = &'static str> {
    tags(kind).iter().map(|[word, _]| *word)
}

/// Returns whether a word is one of a kind.
pub fn is_one(word: &str, kind: &str) -> bool {
    words(kind).any(|other| other == word)
}
