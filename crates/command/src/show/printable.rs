//! Texts of traces on a terminal.

use indicatif::HumanCount;
use knowledgepulse_json::{Text, cut, is_white_space};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// The most UTF-16 code units that are printed of a text, unless there is less room.
pub const MOST_UNITS: usize = 200;

/// Returns the first UTF-16 code units of a text on one line that is safe to print. A run of control and format characters and line
/// separators becomes a space: a terminal would obey them, or they would hide other text.
pub fn printable(text: &Text, units: usize) -> String {
    let mut plain = String::new();
    let mut follows_hidden = false;
    let beginning = cut(text, units);
    for character in beginning.chars() {
        let shown = Some(character).filter(|&character| is_shown(character));
        if shown.is_some() || !follows_hidden {
            plain.push(shown.unwrap_or(' '));
        }
        follows_hidden = shown.is_none();
    }
    if beginning.len() < text.len() {
        plain.push('…');
    }
    plain
}

/// Returns whether a character is shown; a terminal would obey others, or show other text because of them.
pub fn is_shown(character: char) -> bool {
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator};
    !matches!(
        character.general_category(),
        Control | Format | LineSeparator | ParagraphSeparator
    )
}

/// Returns [`printable`] of a text, or nothing if that has only white space, control and format characters.
pub fn label_of(text: &Text, units: usize) -> String {
    let is_seen = |character| is_shown(character) && !is_white_space(character);
    match text.chars().any(is_seen) {
        true => printable(text, units),
        false => String::new(),
    }
}

/// Returns JSON with escapes for some characters.
pub fn escaped(json: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match is_escaped(character) {
            true => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out += &format!("\\u{unit:04x}");
                }
            }
            false => out.push(character),
        }
    }
    out
}

/// Returns a count with commas between groups of three digits.
pub fn grouped(count: u64) -> String {
    HumanCount(count).to_string()
}

/// Returns a count with its noun, which gets an `s` unless the count is 1.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn printable_replaces_a_run_of_hidden_characters_with_a_space() {
        for (text, shown) in [
            ("a\u{1b}[2J\r\n\u{202e}b", "a [2J b"),
            ("\u{2028}\u{2029}", " "),
            ("a\u{a0}\u{3000} b", "a\u{a0}\u{3000} b"),
            ("é😀", "é😀"),
        ] {
            assert_eq!(printable(&text.into(), MOST_UNITS), shown);
        }
    }

    #[test]
    fn printable_counts_utf16_code_units() {
        assert_eq!(printable(&"ab😀".into(), 4), "ab😀");
        assert_eq!(printable(&"ab😀".into(), 3), "ab…");
        assert_eq!(printable(&"ab\n😀".into(), 4), "ab …");
    }

    #[test]
    fn label_of_a_blank_text_is_the_other_one() {
        assert_eq!(label_of(&" \u{200b}\n".into(), 9), "");
        assert_eq!(label_of(&" a\n".into(), 9), " a ");
    }

    #[test]
    fn label_of_sees_through_white_space_and_format_characters() {
        assert_eq!(label_of(&" \t\u{200b}\u{feff}\u{7}".into(), 9), "");
        assert_eq!(label_of(&" . ".into(), 9), " . ");
    }

    #[test]
    fn grouped_groups_digits_by_three() {
        let counts = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "trace"), "1 trace");
        assert_eq!(counted(2000, "trace"), "2,000 traces");
    }

    proptest! {
        #[test]
        fn printable_of_any_text_has_no_hidden_characters_and_the_asked_width(
            units in proptest::collection::vec(any::<u16>(), 0..40),
            most in 0_usize..50,
        ) {
            let shown = printable(&Text::from_utf16_lossy(&units), most);
            prop_assert!(shown.chars().all(is_shown));
            prop_assert!(
                shown.encode_utf16().count() <= most.min(units.len()) + usize::from(units.len() > most)
            );
        }
    }
}
