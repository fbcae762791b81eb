//! The keywords of all kinds, found in one walk over a text: each kind then looks around its own alone.

use std::{cmp::Reverse, collections::BTreeMap, ops::Range, sync::LazyLock};

use daachorse::DoubleArrayAhoCorasick;

use crate::{
    columns, commands, identity, kinds, languages, names, providers, ranges::stands_alone, structures,
};

/// Whose a keyword is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// By the end of the keywords, of those with one end the longest first.
    Providers,
    Structures,
    Kinds,
    /// As [`Owner::Providers`], in the case of the keywords, in bytes.
    Identity,
    /// By the beginning of the keywords, as all below, of those with one beginning the longest first.
    Names,
    Columns,
    People,
    Languages,
    /// In the case of the keywords, where each stands alone.
    Commands,
}
use Owner::{Columns, Commands, Identity, Kinds, Languages, Names, People, Providers, Structures};

/// Returns the keywords of an owner.
type WordsOf = fn() -> Vec<Vec<u8>>;

/// The owners, each with its keywords.
const OWNERS: [(Owner, WordsOf); 9] = [
    (Providers, providers::keywords),
    (Structures, structures::keywords),
    (Kinds, kinds::keywords),
    (Identity, || identity::RULES.keywords()),
    (Names, names::parts),
    (Columns, columns::names),
    (People, identity::labels),
    (Languages, languages::words),
    (Commands, || {
        commands::keywords().iter().map(|word| word.to_vec()).collect()
    }),
];

/// A keyword in a text.
#[derive(Debug, Clone)]
pub(super) struct Keyword {
    pub(super) range: Range<usize>,
    /// Its number among those of its owner.
    pub(super) number: usize,
}

/// The rows of a table, which are tried where one of their keywords stands.
pub(super) struct ByKeyword<Row> {
    pub(super) rows: Vec<Row>,
    keywords: Vec<&'static str>,
    /// For each keyword the rows that have it.
    of_keyword: Vec<Vec<usize>>,
}

impl<Row> ByKeyword<Row> {
    /// Takes rows with their keywords, which have a sign between them.
    pub(super) fn of(table: impl Iterator<Item = (Row, &'static str)>, sign: char) -> Self {
        let mut rows = Vec::new();
        let mut by_keyword: BTreeMap<&'static str, Vec<usize>> = BTreeMap::new();
        for (row, keywords) in table {
            for keyword in keywords.split(sign) {
                by_keyword.entry(keyword).or_default().push(rows.len());
            }
            rows.push(row);
        }
        Self {
            rows,
            keywords: by_keyword.keys().copied().collect(),
            of_keyword: by_keyword.into_values().collect(),
        }
    }

    pub(super) fn keywords(&self) -> Vec<Vec<u8>> {
        let keywords = self.keywords.iter();
        keywords.map(|keyword| keyword.as_bytes().to_vec()).collect()
    }

    /// Returns the rows that have the keyword of a number, each with its place.
    pub(super) fn of_keyword(&self, number: usize) -> impl Iterator<Item = (usize, &Row)> {
        self.of_keyword[number].iter().map(|at| (*at, &self.rows[*at]))
    }
}

/// The keywords of a text.
#[derive(Debug, Clone, Default)]
pub(super) struct Keywords {
    by_owner: [Vec<Keyword>; OWNERS.len()],
    /// The bits of the kinds that have one of their words in it.
    pub(super) kinds: u128,
}

/// The owners of a keyword, and its number among those of each.
type Owners = Vec<(Owner, usize)>;

/// The automaton, and the owners of each of its keywords. As a double array it stays in the cache of a core.
static ALL: LazyLock<(DoubleArrayAhoCorasick<usize>, Vec<Owners>)> = LazyLock::new(|| {
    let mut patterns: BTreeMap<Vec<u8>, Owners> = BTreeMap::new();
    for (owner, words) in OWNERS {
        for (number, word) in words().into_iter().enumerate() {
            let owners = patterns.entry(word.to_ascii_lowercase()).or_default();
            // Those that differ in case are told apart where they stand.
            let has_case = matches!(owner, Commands | Identity);
            if has_case || !owners.iter().any(|(other, _)| *other == owner) {
                owners.push((owner, number));
            }
        }
    }
    // A test builds it.
    #[allow(clippy::expect_used)]
    let automaton =
        DoubleArrayAhoCorasick::new(patterns.keys()).expect("the keywords are few, short and not empty");
    (automaton, patterns.into_values().collect())
});

impl Keywords {
    /// Finds all keywords in the letters of a text; `folded` has them in small letters, those beyond ASCII as the languages have them.
    pub(super) fn of(letters: &[u8], folded: &[u8]) -> Self {
        let (automaton, owners) = &*ALL;
        let mut found = Self::default();
        for hit in automaton.find_overlapping_iter(folded) {
            for (owner, number) in &owners[hit.value()] {
                let range = hit.start()..hit.end();
                let is = |keyword: &[u8]| letters[range.clone()] == *keyword;
                match owner {
                    Commands if !is(commands::keywords()[*number]) || !stands_alone(letters, &range) => {
                        continue;
                    }
                    Identity if !is(identity::RULES.keywords[*number].as_bytes()) => continue,
                    Kinds => found.kinds |= kinds::of_word(*number),
                    _ => {}
                }
                found.by_owner[*owner as usize].push(Keyword {
                    range,
                    number: *number,
                });
            }
        }
        for by_beginning in &mut found.by_owner[Names as usize..] {
            by_beginning.sort_unstable_by_key(|keyword| (keyword.range.start, Reverse(keyword.range.end)));
        }
        found
    }

    pub(super) fn of_owner(&self, owner: Owner) -> &[Keyword] {
        &self.by_owner[owner as usize]
    }
}

/// Returns the keywords one behind another, of those that overlap the first and longest.
pub(super) fn apart(keywords: &[Keyword]) -> impl Iterator<Item = &Keyword> {
    let mut end = 0;
    keywords.iter().filter(move |keyword| {
        let is_apart = keyword.range.start >= end;
        end = if is_apart { keyword.range.end } else { end };
        is_apart
    })
}

/// Returns the keywords that begin at a place or behind it.
pub(super) fn from(keywords: &[Keyword], at: usize) -> &[Keyword] {
    &keywords[keywords.partition_point(|keyword| keyword.range.start < at)..]
}
