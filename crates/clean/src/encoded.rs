//! Secrets in Base64, which is decoded once and searched again.

use std::ops::Range;

use crate::{
    base64::Decoder,
    lines::{Base64Line, Lines, break_at},
    random::is_hexadecimal,
    ranges::{Ranges, skip},
};

/// Shorter texts have no secret that is told by itself.
const LEAST_LETTERS: usize = 24;
/// Longer ones are files.
const MOST_LETTERS: usize = 1 << 17;
/// Programs wrap Base64 at 60, 64 or 76 letters.
const LEAST_WRAPPED_LETTERS: usize = 40;

/// Finds Base64 of texts that have a secret, also over several lines.
pub(super) fn secrets(letters: &[u8], has_secret: impl Fn(&str) -> bool) -> Ranges {
    let of_base64 =
        |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/' | b'-' | b'_');
    let mut ranges = Ranges::new();
    let mut from = 0;
    // Most runs are words, which end before the last letter of the shortest run that counts.
    while let Some(next) = letters.get(from..from + LEAST_LETTERS) {
        if let Some(other) = next.iter().rposition(|letter| !of_base64(*letter)) {
            from += other + 1;
            continue;
        }
        let mut start = from;
        let run = skip(letters, start, of_base64);
        from = run;
        if run - start > MOST_LETTERS {
            continue;
        }
        // The letter of an escape in a JSON string: `\n`.
        start += usize::from(letters[..start].ends_with(b"\\"));
        // The sign of a line in a diff.
        let begins_line = matches!(letters[..start], [] | [.., b'\n']);
        let is_diff = begins_line && matches!(letters[start], b'+' | b'-');
        start += usize::from(is_diff);
        if is_hexadecimal(&letters[start..run]) {
            continue;
        }
        let mut decoder = Decoder::default();
        if !decoder.push(&letters[start..run]) {
            continue;
        }
        from = wrapped(letters, start..run, is_diff, &mut decoder);
        if decoder.text().is_some_and(&has_secret) {
            from = skip(letters, from, |letter| letter == b'=');
            ranges.push(start..from);
        }
    }
    ranges
}

/// Decodes the lines that go on with the Base64 of a line. Returns where they end.
fn wrapped(letters: &[u8], run: Range<usize>, is_diff: bool, decoder: &mut Decoder) -> usize {
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
        if !goes_on || end - run.start > MOST_LETTERS || !decoder.push(&letters[base64.run.clone()]) {
            break;
        }
        end = base64.run.end;
        if base64.run.len() < run.len() {
            break;
        }
    }
    end
}
