//! Lines of a text, and the Base64 in them.

use std::ops::Range;

use crate::{ranges::skip, values::is_mixed};

/// Lines within a range, without their breaks. A break can be written as in a JSON string: `\n`, `\\r\\n`.
pub(super) struct Lines<'l> {
    letters: &'l [u8],
    next: Option<usize>,
}

impl<'l> Lines<'l> {
    pub(super) fn new(letters: &'l [u8], within: Range<usize>) -> Self {
        Self {
            letters: &letters[..within.end],
            next: Some(within.start),
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.next.take()?;
        let mut end = start;
        while end < self.letters.len() {
            self.next = break_at(self.letters, end);
            if self.next.is_some() {
                break;
            }
            end = skip(self.letters, end, |letter| letter == b'\\').max(end + 1);
        }
        Some(start..end)
    }
}

/// Returns the end of the line break that begins at `start`; a carriage return and a line feed are one.
pub(super) fn break_at(letters: &[u8], start: usize) -> Option<usize> {
    let end = sign_of_break(letters, start)?;
    let is_return = matches!(letters[end - 1], b'\r' | b'r');
    let is_feed = |end: &usize| matches!(letters[end - 1], b'\n' | b'n');
    let feed = sign_of_break(letters, end).filter(|end| is_return && is_feed(end));
    Some(feed.unwrap_or(end))
}

/// Returns the end of a carriage return or line feed that begins at `start`.
fn sign_of_break(letters: &[u8], start: usize) -> Option<usize> {
    let letter = skip(letters, start, |letter| letter == b'\\');
    let is_break = match letters.get(letter)? {
        b'\n' | b'\r' => true,
        b'n' | b'r' => letter > start,
        _ => false,
    };
    is_break.then_some(letter + 1)
}

/// Returns where the line that `at` stands in begins, no further back than `most` letters.
pub(super) fn line_start(letters: &[u8], at: usize, most: usize) -> usize {
    let least = at.saturating_sub(most);
    let ends = |end: &usize| {
        matches!(
            letters[least..*end],
            [.., b'\n' | b'\r'] | [.., b'\\', b'n' | b'r']
        )
    };
    (least..=at).rev().find(ends).unwrap_or(least)
}

/// Returns whether a letter is of Base64.
pub(super) fn of_base64(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/' | b'=')
}

/// Returns the runs of Base64 in a part of a text.
pub(super) fn base64_runs(letters: &[u8], within: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = within.start;
    std::iter::from_fn(move || {
        let start = skip(&letters[..within.end], at, |letter| !of_base64(letter));
        at = skip(&letters[..within.end], start, of_base64);
        (start < at).then_some(start..at)
    })
}

/// The Base64 that a line ends with.
pub(super) struct Base64Line {
    /// The last run that is long, or the last one.
    pub(super) run: Range<usize>,
    /// Whether the run is so long that it is no word.
    pub(super) is_long: bool,
    /// Whether nothing but signs stands behind the run.
    pub(super) is_last: bool,
    /// How many letters stand before the run.
    pub(super) indent: usize,
}

impl Base64Line {
    /// Returns `None` for a line without a letter of the alphabet, and for what stands behind a line in a JSON string: `","time":"…"}`.
    pub(super) fn of(letters: &[u8], line: Range<usize>) -> Option<Self> {
        const LEAST_LETTERS: usize = 16;
        const LEAST_LETTERS_WITHOUT_DIGITS: usize = 40;
        let is_long = |run: &Range<usize>| {
            let text = &letters[run.clone()];
            text.len() >= LEAST_LETTERS && (is_mixed(text) || text.len() >= LEAST_LETTERS_WITHOUT_DIGITS)
        };
        let text = &letters[line.clone()];
        let long = base64_runs(letters, line.clone()).filter(is_long).last();
        if long.is_none() && (text.starts_with(b"\"") || !text.iter().any(u8::is_ascii_alphabetic)) {
            return None;
        }
        let run = long
            .clone()
            .or_else(|| base64_runs(letters, line.clone()).last())?;
        Some(Self {
            is_long: long.is_some(),
            is_last: !letters[run.end..line.end].iter().any(u8::is_ascii_alphanumeric),
            indent: run.start - line.start,
            run,
        })
    }

    /// Returns whether this is the last, shorter line of a text whose other lines are indented as far. The number of a line can grow.
    pub(super) fn ends(&self, letters: &[u8], indent: usize) -> bool {
        let text = &letters[self.run.clone()];
        self.is_last && self.indent.abs_diff(indent) <= 1 && (is_mixed(text) || text.ends_with(b"="))
    }
}

/// Programs wrap Base64 at 60, 64 or 76 letters.
pub(super) const LEAST_WRAPPED_LETTERS: usize = 40;
/// Longer Base64 is of a file.
pub(super) const MOST_LETTERS: usize = 1 << 17;

/// Takes the lines that go on with the Base64 of a line, in a diff behind its sign, as long as each of them is accepted. Returns where they end.
pub(super) fn wrapped(
    letters: &[u8],
    run: Range<usize>,
    is_diff: bool,
    mut accept: impl FnMut(&[u8]) -> bool,
) -> usize {
    /// Signs and blanks between Base64 and the end of its line.
    const MOST_BEHIND: usize = 16;
    let mut end = run.end;
    let behind = skip(&letters[..letters.len().min(end + MOST_BEHIND)], end, |letter| {
        !letter.is_ascii_alphanumeric() && !matches!(letter, b'=' | b'\\' | b'\n' | b'\r')
    });
    let Some(next) = break_at(letters, behind).filter(|_| run.len() >= LEAST_WRAPPED_LETTERS) else {
        return end;
    };
    let mut indent = None;
    for line in Lines::new(letters, next..letters.len()) {
        let line = line.start + usize::from(is_diff && !line.is_empty())..line.end;
        let Some(base64) = Base64Line::of(letters, line.clone()) else {
            break;
        };
        let before = &letters[line.start..base64.run.start];
        // The value of another name.
        let is_value = before.ends_with(b": ") || before.ends_with(b"=");
        let is_indented = base64.indent.abs_diff(*indent.get_or_insert(base64.indent)) <= 1;
        let goes_on = base64.is_last && is_indented && !is_value && base64.run.len() <= run.len();
        if !goes_on || end - run.start > MOST_LETTERS || !accept(&letters[base64.run.clone()]) {
            break;
        }
        end = base64.run.end;
        if base64.run.len() < run.len() {
            break;
        }
    }
    end
}
