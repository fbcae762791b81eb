//! Private keys in PEM, in PGP's armour and as PuTTY writes them, whatever stands before each of their lines.
//!
//! From the first line of a key to its last, all is the key. Where the last one is missing, or stands further away than
//! [`MOST_LETTERS`], it is the lines behind the first that end with Base64.

use std::ops::Range;

use crate::{
    lines::{Base64Line, Lines, base64_runs},
    ranges::{Pattern, Ranges},
    values::is_mixed,
};

/// A key of 16,384 bits has 12,700 letters of Base64, which `git blame` makes 32,000.
const MOST_LETTERS: usize = 1 << 16;
/// A program that looks for a first and a last line has fewer letters of Base64 between them.
const LEAST_LETTERS: usize = 24;

/// Finds private keys. The first line alone, as in a program that looks for it, is no key.
pub(super) fn private_keys(letters: &[u8]) -> Ranges {
    static EXPRESSION: Pattern = Pattern::new(concat!(
        r"-{4,5} ?(?:BEGIN|END)[ \w%+-]{0,100}(?:PRIVATE|Static|tls-crypt-v2)[ \w%+]{1,24}-{4,5}",
        r"|Private-Lines: ?\d+"
    ));
    let is_last = |mark: &Range<usize>| letters[mark.clone()].trim_ascii_start().starts_with(b"END");
    let mut marks = EXPRESSION
        .find_iter(letters)
        .map(|found| {
            let dashes = letters[found.range()]
                .iter()
                .take_while(|letter| **letter == b'-');
            (found.range(), found.start() + dashes.count()..found.end())
        })
        .peekable();
    let mut ranges = Ranges::new();
    while let Some((mark, words)) = marks.next() {
        if is_last(&words) {
            continue;
        }
        match marks.peek().map(|(next, words)| (next.clone(), is_last(words))) {
            Some((last, true)) if last.start - mark.end <= MOST_LETTERS => {
                if has_key(letters, mark.end..last.start) {
                    ranges.push(mark.start..last.end);
                }
                marks.next();
            }
            next => {
                let limit = next.map_or(letters.len(), |(next, _)| next.start);
                let end = lines_after(letters, mark.end..limit);
                if end > mark.end {
                    ranges.push(mark.start..end);
                }
            }
        }
    }
    ranges
}

/// Returns whether the text between a first and a last line has a key.
fn has_key(letters: &[u8], within: Range<usize>) -> bool {
    let mixed = base64_runs(letters, within).filter(|run| is_mixed(&letters[run.clone()]));
    mixed.map(|run| run.len()).sum::<usize>() >= LEAST_LETTERS
}

/// Returns the end of the lines of Base64 behind a first line, and behind the headers there; the start without any.
fn lines_after(letters: &[u8], within: Range<usize>) -> usize {
    let (mut end, mut indent, mut is_last) = (within.start, 0, true);
    for line in Lines::new(letters, within.clone()) {
        let Some(base64) = Base64Line::of(letters, line.clone()) else {
            continue;
        };
        // Behind a line that goes on after its Base64, the next one has to be alike.
        if base64.is_long && (is_last || base64.indent.abs_diff(indent) <= 1) {
            (end, indent, is_last) = (base64.run.end, base64.indent, base64.is_last);
        } else if end > within.start {
            if base64.ends(letters, indent) {
                end = base64.run.end;
            }
            break;
        } else if line.start > within.start && !letters[line].windows(2).any(|pair| pair == b": ") {
            break;
        }
    }
    end
}
