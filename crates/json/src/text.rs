//! Texts, as JavaScript measures and trims them.

/// A text of JSON. Up to 24 bytes need no memory of their own.
pub use compact_str::CompactString as Text;

/// Returns the length in UTF-16 code units, which is JavaScript's `length`.
#[must_use]
pub fn units_of(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let units = |byte: u8| usize::from(byte & 0xc0 != 0x80) + usize::from(byte >= 0xf0);
    text.bytes().map(units).sum()
}

/// Returns the beginning of a text, of at most `units` UTF-16 code units.
#[must_use]
pub fn cut(text: &str, units: usize) -> &str {
    // No unit takes less than a byte.
    if text.len() <= units {
        return text;
    }
    let mut count = 0;
    let mut characters = text.char_indices();
    let end = characters.find(|(_, character)| {
        count += character.len_utf16();
        count > units
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// Whether a character is white space or the end of a line to JavaScript: to `trim` and to `\s`.
#[must_use]
pub fn is_white_space(character: char) -> bool {
    character == '\u{feff}' || (character.is_whitespace() && character != '\u{85}')
}

/// Returns `text` without white space around it, as JavaScript's `trim` does.
#[must_use]
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_white_space)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cut_takes_as_many_units_as_whole_characters_have(text in "[a-cé€😀]{0,20}", units in 0_usize..30) {
            let beginning = cut(&text, units);
            prop_assert!(text.starts_with(beginning));
            let next = text[beginning.len()..].chars().next();
            let length = units_of(beginning);
            prop_assert_eq!(length, beginning.encode_utf16().count());
            prop_assert!(length <= units && next.is_none_or(|next| length + next.len_utf16() > units));
        }
    }

    #[test]
    fn white_space_is_that_of_javascript() {
        assert_eq!(trim("\u{feff}\u{2028}\u{b}\u{a0} a\u{85} "), "a\u{85}");
    }
}
