//! The beginnings of texts that traces carry. A trace may be hostile: its names may be megabytes long, and invisible.

use knowledgepulse_json::{Text, cut, is_white_space, units_of};

use crate::show::printable::is_blank;

/// The longest name, in UTF-16 code units.
pub(super) const NAME_LENGTH: usize = 200;

/// Returns a name or id, cut to [`NAME_LENGTH`]; `None` if nothing of it can be seen.
pub(super) fn name_of(name: &Text) -> Option<Text> {
    if is_blank(name) {
        return None;
    }
    let units = units_of(name);
    if units <= NAME_LENGTH {
        return Some(name.clone());
    }
    // Two long ids of different lengths are still two.
    let beginning = cut(name, NAME_LENGTH);
    Some(format!("{beginning}… ({units})").into())
}

/// Returns the beginning of a text on one line: at most `length` UTF-16 code units, to the end of a word if one ends near there.
pub(super) fn excerpt_of(text: &Text, length: usize) -> Text {
    let words = cut(text, 2 * length).split(is_white_space);
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    if units_of(&line) > length || units_of(text) > 2 * length {
        let beyond = cut(&line, length + 1);
        let words = beyond.rsplit_once(' ').map(|(words, _)| words);
        let words = words.filter(|words| 2 * words.len() > beyond.len());
        let beginning = cut(&line, length);
        return format!("{}…", words.unwrap_or(beginning)).into();
    }
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn name_of_a_blank_text_is_none() {
        for blank in ["", " ", "\u{200b}\u{2066}\t"] {
            assert_eq!(name_of(&blank.into()), None);
        }
    }

    #[test]
    fn name_of_a_long_text_has_its_length() {
        let expected = format!("{}… (501)", "x".repeat(200));
        assert_eq!(name_of(&"x".repeat(501).into()), Some(expected.into()));
    }

    #[test]
    fn excerpt_of_a_text_is_one_line_without_half_characters() {
        let long = format!("{}😀{}", "x".repeat(239), "y".repeat(1000));
        assert_eq!(excerpt_of(&long.into(), 240), &*format!("{}…", "x".repeat(239)));
        assert_eq!(excerpt_of(&" a\n\t\u{2028}b\u{feff} ".into(), 240), "a b");
        assert_eq!(excerpt_of(&format!("a{}b", " ".repeat(500)).into(), 240), "a…");
        assert_eq!(excerpt_of(&"fix the date parser".into(), 17), "fix the date…");
        assert_eq!(excerpt_of(&"fix the date parser".into(), 12), "fix the date…");
        assert_eq!(excerpt_of(&"a fixthedateparser".into(), 17), "a fixthedateparse…");
    }

    proptest! {
        #[test]
        fn names_and_excerpts_are_short(units in proptest::collection::vec(any::<u16>(), 0..1000), length in 1..300_usize) {
            let text = Text::from_utf16_lossy(&units);
            let excerpt = excerpt_of(&text, length);
            prop_assert!(units_of(&excerpt) <= length + 1);
            let name = name_of(&text).unwrap_or_default();
            prop_assert!(units_of(&name) <= NAME_LENGTH + 12);
        }
    }
}
