//! Ranges of a text, and how they are found.

use std::{
    mem,
    ops::{Deref, Range},
    sync::{LazyLock, OnceLock},
};

use memchr::memchr;
use regex::bytes::{Regex, RegexBuilder};

use crate::text::is_word;

/// Ranges of a text, in order, that do not overlap.
pub(super) type Ranges = Vec<Range<usize>>;

/// Compiles an expression over letters. `\s` is ASCII's there: together with `\x80` it is JavaScript's.
pub(super) fn expression(pattern: &str) -> Regex {
    // A test compiles all of them.
    #[allow(clippy::expect_used)]
    RegexBuilder::new(pattern)
        .unicode(false)
        .build()
        .expect("the expression is well-formed")
}

/// An expression over letters, which is compiled when it is first needed.
pub(super) struct Pattern(&'static str, OnceLock<Regex>);

impl Pattern {
    pub(super) const fn new(pattern: &'static str) -> Self {
        Self(pattern, OnceLock::new())
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.1.get_or_init(|| expression(self.0))
    }
}

/// An expression of a table, which is compiled when it is first needed: most sessions have the keywords of a few rules.
pub(super) type Lazy = LazyLock<Regex, Box<dyn FnOnce() -> Regex + Send>>;

pub(super) fn lazy(pattern: String) -> Lazy {
    LazyLock::new(Box::new(move || expression(&pattern)))
}

/// Returns the first place from `from` on whose letter is not one to be skipped.
pub(super) fn skip(letters: &[u8], from: usize, is_skipped: impl Fn(u8) -> bool) -> usize {
    let rest = letters.iter().skip(from);
    from + rest.take_while(|letter| is_skipped(**letter)).count()
}

/// The same for so many letters at most.
pub(super) fn skip_at_most(
    letters: &[u8],
    from: usize,
    most: usize,
    is_skipped: impl Fn(u8) -> bool,
) -> usize {
    let end = (from.saturating_add(most)).min(letters.len());
    skip(&letters[..end], from.min(end), is_skipped)
}

/// Returns where the letters at the end of a range begin that are all to be skipped.
pub(super) fn skip_back(letters: &[u8], within: Range<usize>, is_skipped: impl Fn(u8) -> bool) -> usize {
    let before = letters[within.clone()].iter().rev();
    within.end - before.take_while(|letter| is_skipped(**letter)).count()
}

/// Returns the first place from `from` on whose letter is wanted.
pub(super) fn find(letters: &[u8], from: usize, is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let rest = letters.get(from..)?;
    Some(from + rest.iter().position(|letter| is_wanted(*letter))?)
}

/// Returns the first place from `from` on of a letter.
pub(super) fn find_letter(letters: &[u8], from: usize, letter: u8) -> Option<usize> {
    Some(from + memchr(letter, letters.get(from..)?)?)
}

/// Returns whether a range begins and ends at word boundaries, if there are word letters at its ends.
pub(super) fn stands_alone(letters: &[u8], range: &Range<usize>) -> bool {
    let is_word_at = |index: Option<usize>| {
        index
            .and_then(|index| letters.get(index))
            .is_some_and(|letter| is_word(*letter))
    };
    // Behind the code of a line break in a string.
    let begins_line = || letters[..range.start].ends_with(b"\\n");
    (!is_word_at(range.start.checked_sub(1)) || begins_line()) && !is_word_at(Some(range.end))
}

/// Returns the runs of at least so many wanted letters. Of shorter ones most letters are passed over.
pub(super) fn runs(
    letters: &[u8],
    least: usize,
    is_wanted: impl Fn(u8) -> bool,
) -> impl Iterator<Item = Range<usize>> {
    // Never within a run.
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let next = letters.get(from..from + least)?;
            let Some(other) = next.iter().rposition(|letter| !is_wanted(*letter)) else {
                let end = skip(letters, from + least, &is_wanted);
                return Some(mem::replace(&mut from, end)..end);
            };
            from += other + 1;
        }
    })
}

/// Sorts ranges, and joins overlapping ones.
pub(super) fn merged(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Ranges = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_finds_all_that_are_long_enough_from_their_first_letter_to_their_last() {
        let runs_of = |text: &str| runs(text.as_bytes(), 3, is_word).collect::<Vec<_>>();
        assert_eq!(runs_of("abcd ab abc-a-abcdefgh"), [0..4, 8..11, 14..22]);
        assert_eq!(runs_of("ab -abc-abcd"), [4..7, 8..12]);
        assert_eq!(runs_of("ab"), [0..0; 0]);
    }

    #[test]
    fn merged_joins_ranges_that_overlap_and_no_others() {
        assert_eq!(merged(vec![6..9, 0..4, 2..7, 9..12]), [0..9, 9..12]);
    }
}
