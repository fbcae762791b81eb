//! Parts of texts that traces carry, which may be megabytes long.

use knowledgepulse_json::{Text, is_white_space};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Returns the first UTF-16 code units of a text, without half a character at the end.
pub fn cut(text: &Text, units: usize) -> Text {
    let start = text.cut(units);
    match start.units().last() {
        Some(0xd800..=0xdbff) => start.cut(start.len_units() - 1),
        _ => start,
    }
}

/// Returns whether nothing of a text can be seen: it has only white space, control and format characters, and lone
/// surrogates.
pub fn is_blank(text: &Text) -> bool {
    char::decode_utf16(text.units()).flatten().all(|character| {
        is_white_space(character)
            || matches!(
                character.general_category(),
                GeneralCategory::Control | GeneralCategory::Format
            )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_leaves_out_half_a_character() {
        assert_eq!(cut(&"ab😀".into(), 3), "ab");
        assert_eq!(cut(&"ab😀".into(), 4), "ab😀");
        assert_eq!(cut(&Text::from_units(&[0x61, 0xd800]), 9), "a");
    }

    #[test]
    fn is_blank_sees_through_white_space_and_format_characters() {
        assert!(is_blank(&" \t\u{200b}\u{feff}\u{7}".into()));
        assert!(is_blank(&Text::from_units(&[0xd800])));
        assert!(!is_blank(&" . ".into()));
    }
}
