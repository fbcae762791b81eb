//! Bounds the part of a text that must be read to embed it.

use knowledgepulse_encoder::tokenizer;

use crate::MOST_TOKENS;

/// Stops reading once the text certainly has more tokens than are embedded, so that only the beginning of a large text is kept.
///
/// It counts a lower bound of the tokens: each run of visible characters without white space, each ideograph, and each ASCII
/// punctuation mark outside of special tokens' literals is at least one token. A single word of a megabyte is read to its end.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sufficiency {
    tokens: usize,
    /// Whether the current run has a visible character, which makes it a token.
    in_word: bool,
    enough: bool,
}

impl Sufficiency {
    /// Takes the UTF-16 code units of the next part, which a space follows. Returns how many of them must be read.
    pub fn read(&mut self, units: &[u16]) -> usize {
        if self.enough {
            return 0;
        }
        let mut read = 0;
        for c in char::decode_utf16(units.iter().copied()) {
            // A lone surrogate counts as a character of the same length that the tokenizer removes.
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            read += c.len_utf16();
            if self.pass(c) {
                return read;
            }
        }
        self.pass(' ');
        units.len()
    }

    /// Takes the beginning of the next part, or all of it. Returns how many code units must be read, as [`Sufficiency::read`] does; `None`,
    /// and takes nothing, if a longer beginning must be asked about.
    pub fn needed(&mut self, units: &[u16], is_whole: bool) -> Option<usize> {
        let mut tried = *self;
        let needed = tried.read(units);
        (is_whole || tried.enough).then(|| {
            *self = tried;
            needed
        })
    }

    fn pass(&mut self, c: char) -> bool {
        if tokenizer::is_space(c) {
            self.tokens += usize::from(self.in_word);
            self.in_word = false;
        } else if tokenizer::is_ideograph(c) || (c.is_ascii_punctuation() && !matches!(c, '[' | ']')) {
            self.tokens += 1;
        } else if !self.in_word {
            self.in_word = tokenizer::is_visible(c);
        }
        // Until a boundary, further text can change the normalisation of the last tokens.
        self.enough = self.tokens >= MOST_TOKENS && tokenizer::is_breaker(c);
        self.enough
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_encoder::fixtures;
    use proptest::prelude::*;

    use super::*;
    use crate::nasty_text::nasty_text;

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn enough_is_bounded_by_tokens_not_by_text() {
        for (text, bound) in [
            ("word ".repeat(1_000_000), 5 * 512),
            ("中".repeat(1_000_000), 513),
            ("a,b;".repeat(1_000_000), 4 * 513),
            ("[MASK] ".repeat(1_000_000), 7 * 512),
            ("[ ".repeat(1_000_000), 2 * 512),
            ("слово ".repeat(1_000_000), 6 * 512),
            ("शब्द ".repeat(1_000_000), 5 * 512),
            ("단어 ".repeat(1_000_000), 3 * 512),
            ("😀 ".repeat(1_000_000), 3 * 512),
        ] {
            let mut sufficiency = Sufficiency::default();
            assert!(sufficiency.read(&units(&text)) <= bound);
            assert!(sufficiency.enough);
            assert_eq!(sufficiency.read(&units(&text)), 0);
        }
    }

    #[test]
    fn uncertain_tokens_are_not_counted() {
        for text in [
            "a".repeat(100_000),
            "[]".repeat(100_000),
            "\u{200b} ".repeat(100_000),
        ] {
            let mut sufficiency = Sufficiency::default();
            assert_eq!(sufficiency.read(&units(&text)), units(&text).len());
            assert!(!sufficiency.enough);
        }
    }

    proptest! {
        #[test]
        fn the_prefix_has_the_tokens_of_the_whole(
            parts in prop::collection::vec(nasty_text(), 1..6),
            repetitions in 1usize..60,
        ) {
            let mut sufficiency = Sufficiency::default();
            let mut prefix = String::new();
            let mut whole = String::new();
            for _ in 0..repetitions {
                for part in &parts {
                    let units = units(part);
                    let needed = sufficiency.read(&units);
                    prefix.push_str(&String::from_utf16_lossy(&units[..needed]));
                    prefix.push(' ');
                    whole.push_str(part);
                    whole.push(' ');
                }
            }
            let tokenizer = fixtures::small(MOST_TOKENS);
            prop_assert_eq!(tokenizer.encode(&prefix), tokenizer.encode(&whole));
        }
    }
}
