//! Ranges of a text, and how they are found.

use std::ops::Range;

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

/// Returns the first place from `from` on whose letter is not one to be skipped.
pub(super) fn skip(letters: &[u8], from: usize, is_skipped: impl Fn(u8) -> bool) -> usize {
    let rest = letters.iter().skip(from);
    from + rest.take_while(|letter| is_skipped(**letter)).count()
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
    !is_word_at(range.start.checked_sub(1)) && !is_word_at(Some(range.end))
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
    fn merged_joins_ranges_that_overlap_and_no_others() {
        assert_eq!(merged(vec![6..9, 0..4, 2..7, 9..12]), [0..9, 9..12]);
    }
}
