//! From text to words: BERT's uncased normaliser and pre-tokenizer, as transformers.js 3 runs them. The text is passed piece by
//! piece, so that the work can stop early.

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Receives each word.
type Sink<'s> = &'s mut dyn FnMut(&str);

/// Splits `text` into blocks of at least `block_bytes` bytes that can be normalised separately, because each but the first
/// begins with a breaker.
pub(super) fn blocks(text: &str, block_bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let from = rest.ceil_char_boundary(block_bytes.max(1));
        let end = rest[from..]
            .find(is_breaker)
            .map_or(rest.len(), |offset| from + offset);
        let (block, tail) = rest.split_at(end);
        rest = tail;
        Some(block)
    })
}

/// Returns whether a text can be cut before `c` without changing how either side is normalised. For that, `c` must be
/// neither cased nor case-ignorable (these decide whether a sigma is a final one), must not combine with the character
/// before it, and must not occur inside a special token's literal.
pub fn is_breaker(c: char) -> bool {
    is_space(c)
        || c.is_ascii_digit()
        || matches!(c, '!' | '"' | '#'..='&' | '('..='-' | '/' | ';' | '=' | '?' | '@' | '[' | '\\' | '{' | '}' | '~')
        || is_ideograph(c)
}

/// JavaScript's `\s`, without the characters that the normaliser has removed before.
pub fn is_space(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | '\r' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// Returns whether `c` is an ideograph that becomes a word of its own. transformers.js tests each UTF-16 code unit, so no
/// character of the supplementary planes does.
pub fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Characters that the normaliser removes: U+FFFD and the categories Cc, Cf, Co and Cs.
fn is_removed(c: char) -> bool {
    c == '\u{fffd}'
        || matches!(
            c.general_category(),
            GeneralCategory::Control
                | GeneralCategory::Format
                | GeneralCategory::PrivateUse
                | GeneralCategory::Surrogate
        )
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_punctuation()
    } else {
        c.general_category_group() == GeneralCategoryGroup::Punctuation
    }
}

/// Returns whether normalising `c` certainly leaves something in the text, as part of a word or as a word. For marks the
/// answer is no, because most are stripped.
pub fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_graphic();
    }
    matches!(
        c.general_category_group(),
        GeneralCategoryGroup::Letter
            | GeneralCategoryGroup::Number
            | GeneralCategoryGroup::Punctuation
            | GeneralCategoryGroup::Symbol
    ) && !is_removed(c)
}

/// Assembles words from sections of text. A word continues from section to section until a separator or [`Words::end`].
#[derive(Debug)]
pub(super) struct Words {
    word: String,
    length: usize,
    longest: usize,
}

impl Words {
    /// Makes an assembler for words of up to `longest` characters. Of a longer word, only as much is kept as shows that it is longer,
    /// because WordPiece makes a single unknown token of it.
    pub(super) fn new(longest: usize) -> Self {
        Self {
            word: String::new(),
            length: 0,
            longest,
        }
    }

    /// Normalises `section` and hands every word that ends in it to `sink`.
    pub(super) fn push_section(&mut self, section: &str, sink: Sink) {
        if section.is_ascii() {
            return self.push_ascii(section, sink);
        }
        let mut cleaned = String::with_capacity(section.len() + section.len() / 2);
        for c in section.chars() {
            if is_space(c) {
                cleaned.push(' ');
            } else if is_ideograph(c) {
                cleaned.extend([' ', c, ' ']);
            } else if !is_removed(c) {
                cleaned.push(c);
            }
        }
        // `str::to_lowercase`, not `char::to_lowercase`: a final sigma depends on its neighbours.
        for c in cleaned.to_lowercase().nfd() {
            if c == ' ' {
                self.end(sink);
            } else if is_punctuation(c) {
                self.punctuation(c, sink);
            } else if c.is_ascii() || c.general_category() != GeneralCategory::NonspacingMark {
                self.push(c);
            }
        }
    }

    fn push_ascii(&mut self, section: &str, sink: Sink) {
        for byte in section.bytes() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.end(sink),
                0..=0x1f | 0x7f => {}
                _ if byte.is_ascii_punctuation() => self.punctuation(char::from(byte), sink),
                _ => self.push(char::from(byte.to_ascii_lowercase())),
            }
        }
    }

    fn push(&mut self, c: char) {
        if self.length <= self.longest {
            self.word.push(c);
            self.length += 1;
        }
    }

    fn punctuation(&mut self, c: char, sink: Sink) {
        self.end(sink);
        sink(c.encode_utf8(&mut [0; 4]));
    }

    /// Ends the current word, if there is one.
    pub(super) fn end(&mut self, sink: Sink) {
        if !self.word.is_empty() {
            sink(&self.word);
            self.word.clear();
            self.length = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_begin_with_breakers_and_lose_nothing() {
        let text = "aaaa bb1cc'dd.ee中ff";
        let parts: Vec<_> = blocks(text, 2).collect();
        assert_eq!(parts, ["aaaa", " bb", "1cc'dd.ee", "中ff"]);
        assert_eq!(parts.concat(), text);
        assert_eq!(blocks("", 2).count(), 0);
    }

    #[test]
    fn what_is_visible_is_a_word() {
        for c in ('\0'..=char::MAX).filter(|&c| is_visible(c)) {
            let mut words = Words::new(100);
            let mut count = 0;
            let mut sink = |_: &str| {
                count += 1;
            };
            words.push_section(c.encode_utf8(&mut [0; 4]), &mut sink);
            words.end(&mut sink);
            assert!(count > 0, "{c:?} leaves no word");
        }
    }

    #[test]
    fn breakers_are_inert_for_case_and_normalisation() {
        for c in (0..=0x1_0000)
            .filter_map(char::from_u32)
            .filter(|&c| is_breaker(c))
        {
            let lower: String = format!("ΟΣ{c}Ο").to_lowercase();
            assert!(
                lower.starts_with("ος"),
                "{c:?} does not end a word for a final sigma"
            );
            let lower: String = format!("Ο{c}Σ").to_lowercase();
            assert!(lower.ends_with('σ'), "{c:?} counts as a letter before a sigma");
            assert_eq!(
                format!("e{c}").nfd().next(),
                Some('e'),
                "{c:?} combines with what stands before it"
            );
            assert_eq!(unicode_normalization::char::canonical_combining_class(c), 0);
        }
    }
}
