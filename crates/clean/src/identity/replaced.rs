//! Where the names of a session stand in a text.

use std::{cmp::Reverse, ops::Range};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};

use super::{Identities, Who};
use crate::{
    ranges::Pattern,
    text::{LATIN, Text, letter},
};

/// The fewest letters of a name that is replaced within `camelCase`.
const LEAST_IN_CAMEL_CASE: usize = 4;

/// A part of a text to be replaced.
pub(crate) struct Named<'n> {
    pub range: Range<usize>,
    /// The type: of a name `user`, `host`, or `filepath` within a path.
    pub kind: &'n str,
    /// What replaces a name: `user-1`. All other markers follow from the type.
    pub marker: Option<String>,
}

impl<'n> Named<'n> {
    pub(crate) fn of(range: Range<usize>, kind: &'n str) -> Self {
        let marker = None;
        Self { range, kind, marker }
    }

    /// Sorts parts, and keeps the first of those that overlap: of those that begin together, the longest.
    pub(crate) fn keep_apart(parts: &mut Vec<Self>) {
        parts.sort_by_key(|part| (part.range.start, Reverse(part.range.end)));
        let mut end = 0;
        parts.retain(|part| {
            let is_apart = part.range.start >= end;
            end = if is_apart { part.range.end } else { end };
            is_apart
        });
    }
}

impl Identities {
    fn finder(&self) -> Option<&AhoCorasick> {
        let built = self.finder.get_or_init(|| {
            let letters =
                |pattern: &super::Pattern| pattern.units.iter().copied().map(letter).collect::<Vec<u8>>();
            (!self.patterns.is_empty())
                .then(|| {
                    AhoCorasickBuilder::new()
                        .ascii_case_insensitive(true)
                        .build(self.patterns.iter().map(letters))
                })
                .and_then(Result::ok)
        });
        built.as_ref()
    }

    /// Returns whether a text may have a name in it, by its letters.
    pub(crate) fn may_be_in(&self, letters: &[u8]) -> bool {
        self.finder().is_some_and(|finder| finder.is_match(letters))
    }

    /// Returns the names in a text, in order.
    pub(crate) fn find(&self, text: &Text) -> Vec<Named<'static>> {
        let Some(finder) = self.finder() else {
            return Vec::new();
        };
        let letters = text.letters();
        let mut found: Vec<_> = Vec::new();
        for each in finder.find_overlapping_iter(letters) {
            let pattern = &self.patterns[each.pattern().as_usize()];
            let range = each.start() + pattern.name.start..each.start() + pattern.name.end;
            if same_letters(&text.units()[each.range()], &pattern.units)
                && stands_alone(text, &range)
                && !is_in_marker(letters, range.start)
            {
                let (who, number) = self.owners[pattern.owner];
                let before = letters[..range.start].last();
                let is_in_path = who == Who::User && matches!(before, Some(b'/' | b'\\'));
                found.push(Named {
                    range,
                    kind: if is_in_path { "filepath" } else { who.name() },
                    marker: Some(format!("{}-{number}", who.name())),
                });
            }
        }
        Named::keep_apart(&mut found);
        found
    }

    /// Returns a name of a file without the names that were learned.
    #[must_use]
    pub fn clean_name(&self, name: &str) -> String {
        let mut text = Text::of(name);
        let named = self.find(&text);
        let markers: Vec<_> = named.iter().filter_map(|named| named.marker.clone()).collect();
        text.replace(named.into_iter().map(|named| named.range).collect(), &markers);
        text.to_utf8()
    }
}

/// Returns whether units are those of a pattern, in any case. Letters beyond ASCII have not been compared yet.
fn same_letters(units: &[u16], pattern: &[u16]) -> bool {
    let is_same = |(unit, small): (&u16, &u16)| {
        let c = char::from_u32(u32::from(*unit)).map(|c| c.to_lowercase().next().unwrap_or(c));
        *unit < 0x80 || unit == small || c.map(u32::from) == Some(u32::from(*small))
    };
    units.iter().zip(pattern).all(is_same)
}

/// Returns whether a name stands between what is no part of it: anything but letters and digits, escape sequences, a change of case in
/// `camelCase`.
fn stands_alone(text: &Text, range: &Range<usize>) -> bool {
    const MOST_ESCAPE: usize = 16;
    // The escape of a line break, a colour, and an encoded sign.
    static ESCAPE: Pattern = Pattern::new(r"(?:\\[nrt]|\[[\d;]*m|%.[0-9A-Fa-f])$");
    let letters = text.letters();
    let name = &letters[range.clone()];
    let (Some(first), Some(last)) = (name.first(), name.last()) else {
        return false;
    };
    let is_part = |at: usize, of: u8| {
        let c = char::from_u32(u32::from(text.units()[at])).unwrap_or(' ');
        // Han, kana and Hangul have no spaces between words.
        let is_spaceless = matches!(u32::from(c), 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af);
        let is_letter = letters[at].is_ascii_alphanumeric() || letters[at] == LATIN;
        is_letter || !of.is_ascii() && of != LATIN && c.is_alphanumeric() && !is_spaceless
    };
    let is_long = name.len() >= LEAST_IN_CAMEL_CASE;
    let before = range.start.checked_sub(1).is_none_or(|at| {
        let changes = is_long && letters[at].is_ascii_lowercase() && first.is_ascii_uppercase();
        let escape = &letters[range.start.saturating_sub(MOST_ESCAPE)..range.start];
        !is_part(at, *first) || changes || ESCAPE.is_match(escape)
    });
    let after = letters.get(range.end).is_none_or(|next| {
        !is_part(range.end, *last) || is_long && next.is_ascii_uppercase() && last.is_ascii_lowercase()
    });
    before && after
}

/// Returns whether a place is within a marker such as `[REDACTED:email]`.
fn is_in_marker(letters: &[u8], at: usize) -> bool {
    static MARKER: Pattern = Pattern::new(r"\[REDACTED:[^\[\]]*$");
    MARKER.is_match(&letters[at.saturating_sub(40)..at])
}
