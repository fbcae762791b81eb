//! Tokens that go on in the next line, or in the next string of a program.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::{
    ranges::{Ranges, expression, runs, skip_back},
    text::is_word,
    values::is_mixed,
};

/// A shorter part of a token before the end of a line is a word.
const LEAST_BEFORE: usize = 4;
/// A shorter part of a token at the beginning of a line is a word.
const LEAST_BEHIND: usize = 8;
const MOST_LETTERS: usize = 2048;

/// Parts of tokens that may belong together, put together in one text.
#[derive(Default)]
struct Joined {
    text: Vec<u8>,
    /// Where each part begins in the text, and where it stands in the original.
    parts: Vec<(usize, Range<usize>)>,
}

impl Joined {
    fn push(&mut self, letters: &[u8], part: Range<usize>) {
        self.parts.push((self.text.len(), part.clone()));
        self.text.extend_from_slice(&letters[part]);
    }

    /// Returns a range of the original, if the range goes over several parts.
    fn original(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let part_of = |at: usize| self.parts.partition_point(|(start, _)| *start <= at) - 1;
        let (first, last) = (part_of(range.start), part_of(range.end - 1));
        let place = |part: usize, at: usize| self.parts[part].1.start + at - self.parts[part].0;
        (first < last).then(|| place(first, range.start)..place(last, range.end - 1) + 1)
    }
}

/// Returns whether letters have no digit and no more capitals than a word.
fn is_of_words(part: &[u8]) -> bool {
    !is_mixed(part)
        && part
            .iter()
            .skip(1)
            .filter(|letter| letter.is_ascii_uppercase())
            .count()
            < 2
}

/// Returns whether a line begins with a name of so many letters and its value: `AWS_SECRET_ACCESS_KEY=…`.
fn is_name(line: &[u8], length: usize) -> bool {
    let name = &line[..length];
    let is_constant = || name.contains(&b'_') && !name.iter().any(u8::is_ascii_lowercase);
    matches!(line.get(length), Some(b'=' | b':')) && (!is_mixed(name) || is_constant())
}

/// Finds tokens of several parts. `find` finds tokens in a text.
pub(super) fn tokens(letters: &[u8], find: impl Fn(&[u8]) -> Ranges) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r#"["'`]?[ \t]*[+\\.&|\xFF]?[ \t]*(?:\r?\n|(?:\\+r)?\\+n)[ \t]*(?:\d{1,6}(?:\t|[^\w\s]{1,3}[ \t]*))?"#,
            r#"[>+|#/*.&\xFF-]{0,2}[ \t]*["'`]?|["'`][ \t]?[+.&][ \t]?["'`]"#
        ))
    });
    let of_token = |letter: u8| is_word(letter) || matches!(letter, b'-' | b'.');
    let mut joined = Joined::default();
    let mut last = 0..0;
    let mut from = 0;
    for run in runs(letters, LEAST_BEHIND, of_token) {
        // A gap has no letters but those of a line break in a JSON string.
        let of_gap = |at: usize| match letters[at] {
            b'n' | b'r' => at > 0 && letters[at - 1] == b'\\',
            letter => !letter.is_ascii_alphabetic(),
        };
        let start = (from..run.start)
            .rev()
            .find(|at| !of_gap(*at))
            .map_or(from, |at| at + 1);
        let mut at = start;
        from = run.end;
        let may_be_gap = |letter: &u8| b"\n\\\"'`".contains(letter);
        if !letters[start..run.start].iter().any(may_be_gap) || is_of_words(&letters[run.clone()]) {
            continue;
        }
        while let Some(gap) = EXPRESSION.find_at(&letters[..run.end], at) {
            at = gap.end();
            let behind = gap.end()..run.end;
            if gap.end() < run.start
                || behind.len() < LEAST_BEHIND
                || is_of_words(&letters[behind.clone()])
                || is_name(&letters[behind.start..], behind.len())
            {
                continue;
            }
            let least = last.start.max(gap.start().saturating_sub(MOST_LETTERS));
            let before = skip_back(letters, least..gap.start(), of_token)..gap.start();
            if before != last {
                if before.len() < LEAST_BEFORE {
                    continue;
                }
                joined.text.push(b' ');
                joined.push(letters, before);
            }
            joined.push(letters, behind.clone());
            last = behind;
        }
    }
    if joined.parts.is_empty() {
        return Ranges::new();
    }
    let found = find(&joined.text);
    found.iter().filter_map(|range| joined.original(range)).collect()
}
