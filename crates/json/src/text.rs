//! Strings of JavaScript.

use std::{borrow::Cow, fmt, hash, iter, ops::Deref};

use compact_str::CompactString;

use crate::{ParseError, Value, parse_str};

/// A JavaScript string: UTF-8, or WTF-8 where it has lone surrogates. Up to 24 bytes of UTF-8 need no memory of their own.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Inner);

#[derive(Clone, PartialEq, Eq)]
enum Inner {
    Utf8(CompactString),
    /// Only with a lone surrogate, so that equal texts have equal bytes.
    Wtf8(Box<[u8]>),
}

impl Text {
    /// The text of UTF-16 code units.
    #[must_use]
    pub fn from_units(units: &[u16]) -> Self {
        let mut bytes = Vec::with_capacity(units.len());
        for unit in char::decode_utf16(units.iter().copied()) {
            match unit {
                Ok(character) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                Err(lone) => bytes.extend_from_slice(&encoded(lone.unpaired_surrogate())),
            }
        }
        Self::from_wtf8(bytes)
    }

    /// The text of WTF-8 in which every surrogate is a lone one.
    pub(crate) fn from_wtf8(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(error) => Self(Inner::Wtf8(error.into_bytes().into())),
        }
    }

    /// Returns the UTF-8; `None` if it has lone surrogates.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Inner::Utf8(text) => Some(text),
            Inner::Wtf8(_) => None,
        }
    }

    /// Returns the text with U+FFFD in place of each lone surrogate.
    #[must_use]
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        match &self.0 {
            Inner::Utf8(text) => Cow::Borrowed(text),
            Inner::Wtf8(_) => Cow::Owned(
                char::decode_utf16(self.units())
                    .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect(),
            ),
        }
    }

    /// Returns the bytes of WTF-8.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Inner::Utf8(text) => text.as_bytes(),
            Inner::Wtf8(bytes) => bytes,
        }
    }

    /// Whether it has no characters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    /// Returns the length in UTF-16 code units, which is JavaScript's `length`.
    #[must_use]
    pub fn len_units(&self) -> usize {
        let units = |&byte: &u8| usize::from(byte & 0xc0 != 0x80) + usize::from(byte >= 0xf0);
        self.as_bytes().iter().map(units).sum()
    }

    /// Returns the UTF-16 code units.
    pub fn units(&self) -> impl Iterator<Item = u16> + '_ {
        let mut bytes = self.as_bytes();
        let mut second = None;
        iter::from_fn(move || {
            if let Some(second) = second.take() {
                return Some(second);
            }
            let (size, _) = size_of(*bytes.first()?);
            let (character, rest) = bytes.split_at_checked(size)?;
            bytes = rest;
            let code = match *character {
                [a] => u32::from(a),
                [a, b] => u32::from(a & 0x1f) << 6 | u32::from(b & 0x3f),
                [a, b, c] => u32::from(a & 0x0f) << 12 | u32::from(b & 0x3f) << 6 | u32::from(c & 0x3f),
                _ => {
                    let character = std::str::from_utf8(character).ok()?.chars().next()?;
                    let mut units = [0; 2];
                    character.encode_utf16(&mut units);
                    second = Some(units[1]);
                    return Some(units[0]);
                }
            };
            u16::try_from(code).ok()
        })
    }

    /// Returns the first `units` UTF-16 code units, as `slice(0, units)` does; a pair of surrogates may be cut in two.
    #[must_use]
    pub fn cut(&self, units: usize) -> Self {
        let bytes = self.as_bytes();
        let (mut at, mut left) = (0, units);
        while at < bytes.len() {
            let (size, width) = size_of(bytes[at]);
            if width > left {
                break;
            }
            left -= width;
            at += size;
        }
        if let Some(text) = self.as_str()
            && (left == 0 || at == bytes.len())
        {
            return text[..at].into();
        }
        let mut start = bytes[..at].to_vec();
        if left > 0 && at < bytes.len() {
            start.extend_from_slice(&encoded(self.units().nth(units - 1).unwrap_or_default()));
        }
        Self::from_wtf8(start)
    }

    /// Parses this text as JSON, as [`parse`](crate::parse()) does.
    ///
    /// # Errors
    /// If it is not JSON, or nested too deeply.
    pub fn parse(&self) -> Result<Value, ParseError> {
        match self.as_str() {
            Some(text) => parse_str(text),
            // Lone surrogates mean the same when they are escaped.
            None => {
                let escaped = char::decode_utf16(self.units()).map(|unit| match unit {
                    Ok(character) => character.to_string(),
                    Err(lone) => format!("\\u{:04x}", lone.unpaired_surrogate()),
                });
                parse_str(&escaped.collect::<String>())
            }
        }
    }

    /// Appends UTF-8.
    pub fn push_str(&mut self, more: &str) {
        match &mut self.0 {
            Inner::Utf8(text) => text.push_str(more),
            Inner::Wtf8(bytes) => {
                let mut joined = std::mem::take(bytes).into_vec();
                joined.extend_from_slice(more.as_bytes());
                *bytes = joined.into();
            }
        }
    }

    /// Appends a text. Halves of a pair that meet become one character.
    pub fn push_text(&mut self, more: &Text) {
        match more.as_str() {
            Some(text) => self.push_str(text),
            None => *self = [&*self, more].into_iter().collect(),
        }
    }
}

/// The texts one after the other. Halves of a pair that meet become one character.
impl<'a> FromIterator<&'a Text> for Text {
    fn from_iter<I: IntoIterator<Item = &'a Text>>(texts: I) -> Self {
        let mut bytes = Vec::new();
        for text in texts {
            push_wtf8(&mut bytes, text.as_bytes());
        }
        Self::from_wtf8(bytes)
    }
}

/// Appends WTF-8. Halves of a pair that meet become one character.
pub(crate) fn push_wtf8(bytes: &mut Vec<u8>, more: &[u8]) {
    if let (Some(&[0xed, a @ 0xa0..=0xaf, b]), Some([0xed, c @ 0xb0..=0xbf, d])) =
        (bytes.last_chunk::<3>(), more.first_chunk::<3>())
    {
        let high = u32::from(a & 0x0f) << 6 | u32::from(b & 0x3f);
        let low = u32::from(c & 0x0f) << 6 | u32::from(d & 0x3f);
        if let Some(character) = char::from_u32(0x1_0000 + (high << 10 | low)) {
            bytes.truncate(bytes.len() - 3);
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return bytes.extend_from_slice(&more[3..]);
        }
    }
    bytes.extend_from_slice(more);
}

/// The WTF-8 of a surrogate.
pub(crate) fn encoded(surrogate: u16) -> [u8; 3] {
    let [high, low] = surrogate.to_be_bytes();
    [
        0xe0 | high >> 4,
        0x80 | (high & 0x0f) << 2 | low >> 6,
        0x80 | low & 0x3f,
    ]
}

/// The bytes of WTF-8 and the UTF-16 code units of the character that begins with this byte.
fn size_of(first: u8) -> (usize, usize) {
    match first {
        0..0xc0 => (1, 1),
        0xc0..0xe0 => (2, 1),
        0xe0..0xf0 => (3, 1),
        0xf0.. => (4, 2),
    }
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

impl Default for Text {
    fn default() -> Self {
        Self(Inner::Utf8(CompactString::default()))
    }
}

impl<T: Into<CompactString>> From<T> for Text {
    fn from(text: T) -> Self {
        Self(Inner::Utf8(text.into()))
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl hash::Hash for Text {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

/// A text is looked up by its bytes.
impl std::borrow::Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.to_string_lossy().deref(), formatter)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.to_string_lossy().deref(), formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns code units, many of them surrogates.
    fn units() -> impl Strategy<Value = Vec<u16>> {
        let unit = prop_oneof![0_u16..0x80, 0x80_u16..0xd800, 0xd800_u16..0xe000, 0xe000_u16..];
        prop::collection::vec(unit, 0..40)
    }

    proptest! {
        #[test]
        fn texts_are_their_code_units(units in units(), more in units(), at in 0_usize..50) {
            let text = Text::from_units(&units);
            prop_assert_eq!(text.units().collect::<Vec<_>>(), units.clone());
            prop_assert_eq!(text.len_units(), units.len());
            prop_assert_eq!(text.to_string_lossy().into_owned(), String::from_utf16_lossy(&units));
            prop_assert_eq!(text.as_str().is_some(), String::from_utf16(&units).is_ok());
            let cut = &units[..at.min(units.len())];
            prop_assert_eq!(text.cut(at), Text::from_units(cut));
            let mut joined = text;
            joined.push_text(&Text::from_units(&more));
            prop_assert_eq!(joined, Text::from_units(&[units, more].concat()));
        }
    }

    #[test]
    fn white_space_is_that_of_javascript() {
        assert_eq!(trim("\u{feff}\u{2028}\u{b}\u{a0} a\u{85} "), "a\u{85}");
    }
}
