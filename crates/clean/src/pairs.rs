//! Names and what separates them from their values, in all notations: of programs, configuration, JSON, XML, PHP, forms and documents. What a name or a
//! value means is judged by others.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::{
    ranges::{expression, skip_at_most, skip_back},
    text::is_word,
};

/// Names are told by their last letters.
pub(super) const MOST_NAME_LETTERS: usize = 64;

/// A name, and what separates it from its value.
pub(super) struct Pair {
    pub(super) name: Range<usize>,
    /// Whether the name is in quotes, as in JSON.
    pub(super) is_quoted: bool,
    /// `=`, `:`, `,`, the `>` of an element, or a line break.
    pub(super) sign: u8,
    /// Where the value begins, or the white space before it.
    pub(super) start: usize,
}

impl Pair {
    /// Reads what stands behind a name that ends at `end`, in all notations.
    pub(super) fn at(letters: &[u8], end: usize) -> Option<Self> {
        /// Blanks, marks and attributes.
        const MOST_BETWEEN: usize = 256;
        static JOINT: LazyLock<Regex> = LazyLock::new(|| {
            // A quote, `user%5Bpassword%5D=`, the mark of a parameter, the end of an index, marks of a document, a remark, dots.
            let closes =
                r#"(?:\\*["'])?(?:%5[Dd])?\??\]?[*`]*(?: \([a-z][\w .-]{1,23}\))?(?: ?\.)*[\s\x80]*"#;
            // `name := value`, `name <- value` in R, `s:8:"password";s:22:"…"` as PHP serializes, Base64 in LDIF.
            // Redis numbers names and values alike.
            let signs = r"(?:[!=]==?|[:?+|]?=>?|<-|;s:\d{1,6}:|!?:(?:: )?|[>,]|\d{1,3}\))(?:\*\*)?";
            let attributes = r#"["']? [^<>]{1,128}["'][\s\x80]*>"#;
            // `name="password"`, an empty line, and the value in a form of several parts.
            let lines = r#"\\*"(?:(?:\r|\\+r)?(?:\n|\\+n)){2}"#;
            // `${NAME:-value}`
            expression(&format!("^(?::-|{lines}|{closes}{signs}|{attributes})"))
        });
        let most = letters.len().min(end + MOST_BETWEEN);
        let found = JOINT.find(&letters[end..most])?;
        let start = end + found.end();
        let between = found.as_bytes();
        let sign = match between.strip_suffix(b"**").unwrap_or(between) {
            [.., b'='] | [.., b'=', b'>'] | [.., b'<', b'-'] => b'=',
            [.., b')'] => b',',
            [.., sign @ (b',' | b'>')] => *sign,
            [.., b'\n' | b'n'] => b'\n',
            _ => b':',
        };
        let is_other = match letters.get(start) {
            Some(b'=') => matches!(sign, b'=' | b':'),
            Some(b':' | b'/') => sign == b':',
            _ => false,
        };
        (!is_other).then(|| Self {
            name: name_before(letters, end),
            is_quoted: opening_at(letters, end).is_some() && letters[end] != b'`',
            sign,
            start,
        })
    }
}

/// Returns the name that ends at `end`.
pub(super) fn name_before(letters: &[u8], end: usize) -> Range<usize> {
    skip_back(letters, end.saturating_sub(MOST_NAME_LETTERS)..end, of_name)..end
}

/// Returns whether a letter can stand in a name.
pub(super) fn of_name(letter: u8) -> bool {
    is_word(letter) || matches!(letter, b'-' | b'.')
}

/// Backslashes and a quote.
pub(super) fn opening_at(letters: &[u8], start: usize) -> Option<Range<usize>> {
    const MOST_BACKSLASHES: usize = 15;
    let quote = skip_at_most(letters, start, MOST_BACKSLASHES, |letter| letter == b'\\');
    matches!(letters.get(quote), Some(b'"' | b'\'' | b'`')).then_some(start..quote + 1)
}

/// Returns where a string ends which has begun with these backslashes and a quote: before its closing quote with its
/// backslashes, or where the line does, if that is cut off.
///
/// A string at depth `d` of JSON in JSON is quoted by `2^d - 1` backslashes and a quote, and each quote or backslash in it has
/// a multiple of `2^(d + 1)` more.
pub(super) fn closing_quote(letters: &[u8], opening: Range<usize>) -> usize {
    let quote = letters[opening.end - 1];
    let before = opening.len() - 1;
    let mut backslashes = 0;
    for (index, letter) in letters.iter().enumerate().skip(opening.end) {
        match *letter {
            b'\\' => backslashes += 1,
            b'\n' | b'\r' => return index,
            letter if letter == quote && backslashes % (2 * (before + 1)) == before => return index - before,
            _ => backslashes = 0,
        }
    }
    letters.len()
}
