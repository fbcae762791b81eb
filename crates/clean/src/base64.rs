//! Texts in Base64.

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
