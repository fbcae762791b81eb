//! Parts of texts that traces carry, which may be megabytes long.

use knowledgepulse_json::is_white_space;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Returns whether nothing of a text can be seen: it has only white space, control and format characters.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|character| {
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
    fn is_blank_sees_through_white_space_and_format_characters() {
        assert!(is_blank(" \t\u{200b}\u{feff}\u{7}"));
        assert!(!is_blank(" . "));
    }
}
