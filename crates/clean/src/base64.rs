//! Texts in Base64, which are decoded and searched again.

use std::ops::Range;

use crate::{
    lines::{MOST_LETTERS, wrapped},
    random::is_hexadecimal,
    ranges::{Letters, runs, skip},
    view::View,
};

/// A decoder of texts in Base64 with either alphabet.
#[derive(Default)]
pub(super) struct Decoder {
    bits: u32,
    count: u32,
    bytes: Vec<u8>,
    /// How many bytes were zero, which every second one of UTF-16 is.
    zeros: usize,
}

impl Decoder {
    /// Decodes letters up to the padding. Returns whether the bytes can be of a text.
    pub(super) fn push(&mut self, letters: &[u8]) -> bool {
        for letter in letters {
            let digit = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                b'=' => break,
                _ => return false,
            };
            self.bits = (self.bits << 6 | u32::from(digit)) & 0xFFFF;
            self.count += 6;
            if self.count >= 8 {
                self.count -= 8;
                let [.., byte] = (self.bits >> self.count).to_be_bytes();
                if byte == 0 && self.zeros + 1 == self.bytes.len() {
                    self.zeros += 1;
                    continue;
                }
                if byte.is_ascii_control() && !byte.is_ascii_whitespace() {
                    return false;
                }
                self.bytes.push(byte);
            }
        }
        true
    }

    /// Returns the text. A letter at its end can be cut off.
    pub(super) fn text(&self) -> Option<&str> {
        const MOST_LEFT: usize = 3;
        let text = self.bytes.utf8_chunks().next()?.valid();
        (text.len() + MOST_LEFT >= self.bytes.len()).then_some(text)
    }
}

/// Shorter texts have no secret that is told by itself.
const LEAST_LETTERS: usize = 24;

/// Returns a view of the texts in Base64, also over several lines. Each unit comes from all of its Base64.
pub(super) fn view(letters: &[u8]) -> View {
    static OF_BASE64: Letters = Letters::of(b"A-Za-z0-9+/_-");
    let mut view = View::default();
    let mut from = 0;
    for Range { start, end: run } in runs(letters, LEAST_LETTERS, &OF_BASE64) {
        // Lines of a text that was decoded.
        let mut start = start.max(from);
        if !(LEAST_LETTERS..=MOST_LETTERS).contains(&run.saturating_sub(start)) {
            continue;
        }
        // The letter of an escape in a JSON string: `\n`.
        start += usize::from(letters[..start].ends_with(b"\\"));
        // The sign of a line in a diff.
        let begins_line = matches!(letters[..start], [] | [.., b'\n']);
        let is_diff = begins_line && matches!(letters[start], b'+' | b'-');
        start += usize::from(is_diff);
        if is_hexadecimal(&letters[start..run]) {
            if let Some(text) = text_of(&letters[start..run]) {
                view.push_line(text.encode_utf16().map(|unit| (unit, start..run)));
            }
            continue;
        }
        let mut decoder = Decoder::default();
        if !decoder.push(&letters[start..run]) {
            continue;
        }
        from = wrapped(letters, start..run, is_diff, |line| decoder.push(line));
        if let Some(text) = decoder.text() {
            from = skip(letters, from, |letter| letter == b'=');
            view.push_line(text.encode_utf16().map(|unit| (unit, start..from)));
        }
    }
    view
}

/// Returns the text whose bytes hexadecimal digits are.
fn text_of(digits: &[u8]) -> Option<String> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let is_of_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let bytes = digits.chunks(2).map(|pair| byte(pair).filter(is_of_text));
    bytes.map(|byte| byte.map(char::from)).collect()
}
