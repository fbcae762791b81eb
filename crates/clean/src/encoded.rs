//! Secrets in Base64, which is decoded once and searched again.

use crate::{
    base64::Decoder,
    lines::{MOST_LETTERS, wrapped},
    random::is_hexadecimal,
    ranges::{Ranges, skip},
};

/// Shorter texts have no secret that is told by itself.
const LEAST_LETTERS: usize = 24;

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
        from = wrapped(letters, start..run, is_diff, |line| decoder.push(line));
        if decoder.text().is_some_and(&has_secret) {
            from = skip(letters, from, |letter| letter == b'=');
            ranges.push(start..from);
        }
    }
    ranges
}
