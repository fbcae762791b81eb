//! A text that is searched and changed.

use std::{borrow::Cow, iter, ops::Range, sync::OnceLock};

use memchr::memmem;

use crate::{
    keywords::{Keyword, Keywords, Owner},
    languages::folded,
    names,
    ranges::{Letters, Ranges, digit_from, runs, runs_with, skip, skip_back},
};

/// How markers begin.
pub(super) const MARKER: &[u8] = b"[REDACTED:";

/// The letter for white space beyond ASCII.
pub(super) const WHITE_SPACE: u8 = 0x80;
/// The letter for everything else beyond ASCII.
pub(super) const OTHER: u8 = 0xFF;
/// The letter for a Latin letter beyond ASCII.
pub(super) const LATIN: u8 = 0xFE;

/// UTF-16 code units, and for each a letter: one byte with the distinctions that the expressions can make.
///
/// They name ASCII characters, white space and Latin letters. So the letter of an ASCII character is itself, JavaScript's other white space
/// has one letter, Latin letters another, and one more stands for all the rest, among it lone surrogates. A letter is at the place of its unit, and that is
/// how JavaScript's expressions see a text without the flag `u`: ASCII letters have no other case beyond ASCII there.
#[derive(Debug, Clone)]
pub(super) struct Text<'t> {
    units: Cow<'t, [u16]>,
    letters: Vec<u8>,
    /// Which letters there are.
    has: [bool; 256],
    /// The parts in which alone kinds search, by their marks, and the keywords, once a kind has asked.
    parts: [OnceLock<Ranges>; RUNS.len() + 1],
    keywords: OnceLock<Keywords>,
    /// For each change, the ranges of the text that it replaced, and where their markers begin and end in the new text.
    changes: Vec<Vec<(Range<usize>, Range<usize>)>>,
}

impl<'t> Text<'t> {
    pub(super) fn new(units: impl Into<Cow<'t, [u16]>>) -> Self {
        let units = units.into();
        let letters = units.iter().copied().map(letter).collect();
        Self::with(units, letters)
    }

    /// Takes a text in UTF-8.
    pub(super) fn of(text: &str) -> Self {
        if text.is_ascii() {
            let units = text.bytes().map(u16::from).collect();
            return Self::with(Cow::Owned(units), text.as_bytes().to_vec());
        }
        Self::new(text.encode_utf16().collect::<Vec<u16>>())
    }

    fn with(units: Cow<'t, [u16]>, letters: Vec<u8>) -> Self {
        Self {
            units,
            has: letters_of(&letters),
            parts: Default::default(),
            keywords: OnceLock::new(),
            letters,
            changes: Vec::new(),
        }
    }

    /// Returns the keywords of an owner in the text.
    pub(super) fn keywords(&self, owner: Owner) -> &[Keyword] {
        self.all_keywords().of_owner(owner)
    }

    /// Returns the keywords in the text.
    pub(super) fn all_keywords(&self) -> &Keywords {
        self.keywords.get_or_init(|| {
            if self.letters.is_ascii() {
                return Keywords::of(&self.letters, &self.letters.to_ascii_lowercase());
            }
            let folded: Vec<u8> = self.units.iter().map(|unit| folded(*unit)).collect();
            Keywords::of(&self.letters, &folded)
        })
    }

    /// Returns the parts of the text in which alone the kinds with a mark are searched; `None` of other letters.
    pub(super) fn parts(&self, mark: u8) -> Option<&Ranges> {
        let of_numbers = (mark == b'6').then_some(RUNS.len());
        let at = of_numbers.or_else(|| RUNS.iter().position(|(each, ..)| *each == mark))?;
        Some(self.parts[at].get_or_init(|| parts_of(&self.letters, at)))
    }

    /// Returns the place in the original text of a place in this one. In a marker, it is the beginning of the text that it replaced.
    pub(super) fn original(&self, at: usize) -> usize {
        self.changes.iter().rev().fold(at, |at, change| {
            let before = change.partition_point(|(_, marker)| marker.start <= at);
            match before.checked_sub(1).map(|last| &change[last]) {
                Some((old, marker)) if at < marker.end => old.start,
                Some((old, marker)) => at - marker.end + old.end,
                None => at,
            }
        })
    }

    /// Returns the units as they are now.
    pub(super) fn units(&self) -> &[u16] {
        &self.units
    }

    /// Returns whether all of these letters are in the text; `0`, `6`, `G`, `N` and `L` stand for any digit, `M` and `V` for nothing, and `*` for a part of
    /// the name of a secret.
    pub(super) fn has_all(&self, letters: &[u8]) -> bool {
        letters.iter().all(|letter| match letter {
            b'0' | b'6' | b'G' | b'N' | b'L' => (b'0'..=b'9').any(|digit| self.has[usize::from(digit)]),
            b'M' | b'V' => true,
            b'*' => self
                .keywords(Owner::Names)
                .iter()
                .any(|part| part.number >= names::LOOKS),
            letter => self.has[usize::from(*letter)],
        })
    }

    /// Returns whether one of these letters is in the text.
    pub(super) fn has_any(&self, letters: &[u8]) -> bool {
        letters.iter().any(|letter| self.has[usize::from(*letter)])
    }

    pub(super) fn letters(&self) -> &[u8] {
        &self.letters
    }

    /// Returns the units; `None` if they have not changed.
    pub(super) fn into_changed(self) -> Option<Vec<u16>> {
        (!self.changes.is_empty()).then(|| self.units.into_owned())
    }

    /// Returns the text in UTF-8; `None` if it has not changed.
    pub(super) fn changed(&self) -> Option<String> {
        (!self.changes.is_empty()).then(|| self.to_utf8())
    }

    /// Returns the text in UTF-8, with U+FFFD for lone surrogates.
    pub(super) fn to_utf8(&self) -> String {
        match str::from_utf8(&self.letters) {
            // Letters beyond ASCII are no UTF-8.
            Ok(text) => text.to_owned(),
            Err(_) => String::from_utf16_lossy(&self.units),
        }
    }

    /// Puts markers in place of the ranges, which are in order and do not overlap.
    pub(super) fn replace(&mut self, ranges: Vec<Range<usize>>, markers: &[String]) {
        let length = self.units.len();
        let mut units = Vec::with_capacity(length);
        let mut letters = Vec::with_capacity(length);
        let mut change = Vec::with_capacity(ranges.len());
        let mut end = 0;
        for (range, marker) in ranges.into_iter().zip(markers) {
            units.extend_from_slice(&self.units[end..range.start]);
            letters.extend_from_slice(&self.letters[end..range.start]);
            let start = letters.len();
            // Markers are ASCII.
            units.extend(marker.bytes().map(u16::from));
            letters.extend_from_slice(marker.as_bytes());
            end = range.end;
            change.push((range, start..letters.len()));
        }
        units.extend_from_slice(&self.units[end..]);
        letters.extend_from_slice(&self.letters[end..]);
        // Anew: a kind that needs digits does not search a text whose digits are all replaced.
        self.has = letters_of(&letters);
        self.parts = Default::default();
        self.keywords = OnceLock::new();
        self.units = Cow::Owned(units);
        self.letters = letters;
        self.changes.push(change);
    }
}

/// The marks of kinds in `rules/kinds.tsv` that are searched in runs of letters alone: the least length and the letters of a run, and the letter
/// that each of them has. Kinds with another mark, `6`, are searched around numbers of six digits.
static RUNS: [(u8, usize, Letters, Option<u8>); 7] = [
    (b'@', 6, Letters::of(b"A-Za-z0-9@._%+'&\xFE-"), Some(b'@')),
    (b'G', 7, Letters::of(b"0-9-"), Some(b'-')),
    (b'N', 7, Letters::of(b"0-9."), Some(b'.')),
    (b'L', 36, Letters::of(b"A-Za-z0-9_~.:+/=-"), None),
    (b'M', 14, Letters::of(b"A-Fa-f0-9:.-"), None),
    (b'V', 6, Letters::of(b"A-Fa-f0-9:."), Some(b':')),
    (b'<', 19, Letters::of(b"A-Z0-9<"), Some(b'<')),
];

/// Returns the parts of a text with the mark of a number.
fn parts_of(letters: &[u8], number: usize) -> Ranges {
    let Some((mark, least, class, sign)) = RUNS.get(number) else {
        return numbers_of(letters);
    };
    // Beside groups of digits, the names of a machine and of its domain.
    let around = if *mark == b'G' { (32, 256) } else { (0, 1) };
    match sign {
        Some(sign) => with_around(letters, runs_with(letters, *sign, *least, class), around),
        None => with_around(letters, runs(letters, *least, class), around),
    }
}

/// Returns which letters there are.
fn letters_of(letters: &[u8]) -> [bool; 256] {
    let mut has = [false; 256];
    for letter in letters {
        has[usize::from(*letter)] = true;
    }
    has
}

/// Returns parts of a text with so many letters before and behind them, joined where they overlap.
pub(super) fn with_around(
    letters: &[u8],
    parts: impl Iterator<Item = Range<usize>>,
    (before, behind): (usize, usize),
) -> Ranges {
    let mut wide = Ranges::new();
    for part in parts {
        let part = part.start.saturating_sub(before)..letters.len().min(part.end + behind);
        match wide.last_mut() {
            Some(last) if part.start <= last.end => last.end = part.end,
            _ => wide.push(part),
        }
    }
    wide
}

/// Returns the parts of a text around digits, capitals and the signs between them that have six digits or more.
fn numbers_of(letters: &[u8]) -> Ranges {
    const LEAST_DIGITS: usize = 6;
    /// The name of a number, and the parts of it that have small letters.
    const MOST_AROUND: usize = 64;
    static OF_NUMBER: Letters = Letters::of(b"0-9A-Z .,/()+\x80-");
    let of_number = |letter: u8| OF_NUMBER.has(letter);
    let has_number = |part: &Range<usize>| {
        let digits = letters[part.clone()]
            .iter()
            .filter(|letter| letter.is_ascii_digit());
        digits.count() >= LEAST_DIGITS
    };
    let mut from = 0;
    let parts = iter::from_fn(|| {
        let digit = digit_from(letters, from)?;
        let start = skip_back(letters, from..digit, of_number);
        from = skip(letters, digit, of_number);
        Some(start..from)
    });
    with_around(letters, parts.filter(has_number), (MOST_AROUND, MOST_AROUND))
}

/// Longer texts are cleaned block by block with `strict`: each change copies the text.
pub(super) const BLOCK: usize = 1024 * 1024;

/// Returns how many bytes of a long text are to be cleaned by themselves. They end before a private key that would be cut in two, with
/// a line, or else with a word.
#[must_use]
pub fn block_of(text: &str) -> usize {
    if text.len() <= BLOCK {
        return text.len();
    }
    let (bytes, least) = (text.as_bytes(), BLOCK / 2);
    // A key stays whole, be its first line that of PEM or of SSH2, with a space. The dashes before `BEGIN` belong to it.
    let key = memmem::rfind(&bytes[least..BLOCK], b"BEGIN ").map(|at| least + at);
    let has = |key: usize, last: &[u8]| memmem::find(&bytes[key..BLOCK], last).is_some();
    let key = key.filter(|key| !has(*key, b"--END ") && !has(*key, b"-- END "));
    let before = |key: usize| bytes[..key].iter().rposition(|byte| !b"- ".contains(byte));
    let most = key.map_or(BLOCK, |key| least.max(before(key).map_or(0, |at| at + 1)));
    let behind = |is_end: fn(&u8) -> bool| Some(least + bytes[least..most].iter().rposition(is_end)? + 1);
    behind(|byte| *byte == b'\n')
        .or_else(|| behind(|byte| matches!(byte, b' ' | b',' | b';' | b'"')))
        .unwrap_or_else(|| text.floor_char_boundary(most))
}

/// Returns the letter of a unit.
pub(super) fn letter(unit: u16) -> u8 {
    match unit {
        #[allow(clippy::cast_possible_truncation)] // It fits.
        0..=0x7F => unit as u8,
        // JavaScript's `\s`: WhiteSpace and LineTerminator of ECMA-262.
        0xA0 | 0x1680 | 0x2000..=0x200A | 0x2028 | 0x2029 | 0x202F | 0x205F | 0x3000 | 0xFEFF => WHITE_SPACE,
        // Latin-1 and its two extensions, without the signs of multiplication and division.
        0xC0..=0x24F if !matches!(unit, 0xD7 | 0xF7) => LATIN,
        _ => OTHER,
    }
}

/// Returns whether a letter is JavaScript's `\s`.
pub(super) fn is_white_space(letter: u8) -> bool {
    matches!(letter, b'\t'..=b'\r' | b' ' | WHITE_SPACE)
}

/// Returns whether a letter is JavaScript's `\w`.
pub(super) fn is_word(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || letter == b'_'
}

/// Returns whether letters begin with a word, in any case.
pub(super) fn starts_with(letters: &[u8], word: &str) -> bool {
    let mut pairs = letters.iter().zip(word.as_bytes());
    letters.len() >= word.len() && pairs.all(|(letter, each)| letter.eq_ignore_ascii_case(each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_has_the_letter_of_its_class() {
        for unit in 0..=u16::MAX {
            let c = char::from_u32(unit.into());
            // Unicode's White_Space has U+0085, and not U+FEFF; JavaScript has it the other way.
            let is_space = match unit {
                0x85 => false,
                0xFEFF => true,
                _ => c.is_some_and(char::is_whitespace),
            };
            assert_eq!(is_white_space(letter(unit)), is_space, "{unit:#x}");
            assert_eq!(letter(unit) < 0x80, unit < 0x80);
        }
    }
}
