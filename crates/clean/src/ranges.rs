//! Ranges of a text, and how they are found.

use std::{
    borrow::Cow,
    mem,
    ops::{Deref, Range},
    sync::OnceLock,
};

use memchr::{memchr, memrchr};
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

/// An expression over letters, which is compiled when it is first needed: most sessions have the keywords of a few rules.
pub(super) struct Pattern(Cow<'static, str>, OnceLock<Regex>);

impl Pattern {
    pub(super) const fn new(pattern: &'static str) -> Self {
        Self(Cow::Borrowed(pattern), OnceLock::new())
    }

    pub(super) fn of(pattern: String) -> Self {
        Self(Cow::Owned(pattern), OnceLock::new())
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.1.get_or_init(|| expression(&self.0))
    }
}

/// A class of letters, as in the brackets of an expression: `A-Z0-9_.-`.
pub(super) struct Letters([bool; 256]);

impl Letters {
    /// Creates the class. A hyphen at its end is itself.
    pub(super) const fn of(class: &[u8]) -> Self {
        let mut has = [false; 256];
        let mut at = 0;
        while at < class.len() {
            let is_range = at + 2 < class.len() && class[at + 1] == b'-';
            let (mut letter, length) = (class[at], if is_range { 3 } else { 1 });
            while letter < class[at + length - 1] {
                has[letter as usize] = true;
                letter += 1;
            }
            has[letter as usize] = true;
            at += length;
        }
        Self(has)
    }

    /// Returns whether a letter is of the class.
    pub(super) fn has(&self, letter: u8) -> bool {
        self.0[usize::from(letter)]
    }
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

/// Returns the line that a place stands in, or the part of it that begins at `from`.
pub(super) fn line_around(letters: &[u8], from: usize, at: usize) -> Range<usize> {
    let start = memrchr(b'\n', &letters[from..at]).map_or(from, |before| from + before + 1);
    start..find_letter(letters, at, b'\n').unwrap_or(letters.len())
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

/// Returns the first place of a digit from `from` on. Blocks without one are passed over at once.
pub(super) fn digit_from(letters: &[u8], from: usize) -> Option<usize> {
    let (blocks, _) = letters.get(from..)?.as_chunks::<32>();
    let has_digit = |block: &[u8; 32]| {
        let digits = block.iter().map(u8::is_ascii_digit);
        digits.fold(false, |has, is_digit| has | is_digit)
    };
    let block = blocks.iter().position(has_digit).unwrap_or(blocks.len());
    find(letters, from + 32 * block, |letter| letter.is_ascii_digit())
}

/// Returns the runs of at least so many letters of a class. Of shorter ones most letters are passed over.
pub(super) fn runs<'l>(
    letters: &'l [u8],
    least: usize,
    class: &'static Letters,
) -> impl Iterator<Item = Range<usize>> + 'l {
    let is_wanted = |letter: u8| class.has(letter);
    // Never within a run.
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let next = letters.get(from..from + least)?;
            let Some(other) = next.iter().rposition(|letter| !is_wanted(*letter)) else {
                let end = skip(letters, from + least, is_wanted);
                return Some(mem::replace(&mut from, end)..end);
            };
            from += other + 1;
        }
    })
}

/// Returns the same runs, of those that have a letter of the class: the text between them is passed over at once.
pub(super) fn runs_with<'l>(
    letters: &'l [u8],
    sign: u8,
    least: usize,
    class: &'static Letters,
) -> impl Iterator<Item = Range<usize>> + 'l {
    let mut from = 0;
    let next = move || {
        let at = find_letter(letters, from, sign)?;
        let start = skip_back(letters, from..at, |letter| class.has(letter));
        from = skip(letters, at, |letter| class.has(letter));
        Some(start..from)
    };
    std::iter::from_fn(next).filter(move |run| run.len() >= least)
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
        static WORD: Letters = Letters::of(b"a-z");
        let runs_of = |text: &str| runs(text.as_bytes(), 3, &WORD).collect::<Vec<_>>();
        assert_eq!(runs_of("abcd ab abc-a-abcdefgh"), [0..4, 8..11, 14..22]);
        assert_eq!(runs_of("ab -abc-abcd"), [4..7, 8..12]);
        assert_eq!(runs_of("ab"), [0..0; 0]);
    }

    #[test]
    fn letters_are_those_of_an_expressions_class() {
        for class in ["a-z0-9_", "A-Z<", "x", "%/+.-", "\x00-\x1f\x7f"] {
            let expression = expression(&format!("[{class}]"));
            let letters = Letters::of(class.as_bytes());
            for letter in 0..=u8::MAX {
                assert_eq!(
                    letters.has(letter),
                    expression.is_match(&[letter]),
                    "{class} {letter}"
                );
            }
        }
        assert!(Letters::of(b"\xfe-\xff").has(0xFF));
    }

    #[test]
    fn digit_from_finds_the_next_digit_behind_any_number_of_letters() {
        for length in 0..100 {
            let text = format!("1{}2 3", "a".repeat(length));
            assert_eq!(digit_from(text.as_bytes(), 1), Some(length + 1));
            assert_eq!(digit_from(&text.as_bytes()[..=length], 1), None);
        }
        assert_eq!(digit_from(b"1", 2), None);
    }

    #[test]
    fn merged_joins_ranges_that_overlap_and_no_others() {
        assert_eq!(merged(vec![6..9, 0..4, 2..7, 9..12]), [0..9, 9..12]);
    }
}
