//! Secrets that were replaced in a session. Each of them is one wherever it stands from then on, also where nothing says so, and in Base64.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};
use base64::prelude::{BASE64_STANDARD_NO_PAD, Engine as _};

use crate::{
    identity::Named,
    names::begins_marker,
    random::{is_hexadecimal, is_id},
    ranges::stands_alone,
    text::Text,
};

/// More are not remembered, each with its Base64: each new one builds the automaton anew.
const MOST_SECRETS: usize = 512;
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=256;
/// Of fewer letters or digits, a secret may be a word too.
const LEAST_LETTERS: usize = 3;
const LEAST_DIGITS: usize = 2;

/// The secrets of a session, with their markers.
#[derive(Clone, Default)]
pub(crate) struct Known {
    secrets: Vec<(Vec<u8>, String)>,
    finder: OnceLock<Option<AhoCorasick>>,
}

impl Known {
    /// Remembers a secret that no other text is likely to be. Returns whether it is new.
    pub(crate) fn add(&mut self, units: &[u16], marker: &str) -> bool {
        let letters: Vec<u8> = units.iter().filter_map(|unit| u8::try_from(*unit).ok()).collect();
        let count = |is: fn(&u8) -> bool| letters.iter().filter(|letter| is(letter)).count();
        let of_secret = |letter: &u8| letter.is_ascii_alphanumeric() || b"!#$%&*+?@^~_-".contains(letter);
        let is_telling = LENGTHS.contains(&units.len())
            && letters.len() == units.len()
            && letters.iter().all(of_secret)
            && count(u8::is_ascii_alphabetic) >= LEAST_LETTERS
            && count(u8::is_ascii_digit) >= LEAST_DIGITS
            && !is_id(&letters)
            && !is_hexadecimal(&letters);
        let is_new = is_telling
            && self.secrets.len() < MOST_SECRETS
            && !self.secrets.iter().any(|(secret, _)| *secret == letters);
        if is_new {
            let encoded = BASE64_STANDARD_NO_PAD.encode(&letters);
            self.secrets.push((encoded.into_bytes(), marker.to_owned()));
            self.secrets.push((letters, marker.to_owned()));
            self.finder = OnceLock::new();
        }
        is_new
    }

    /// Returns where the secrets stand in a text.
    pub(crate) fn find(&self, text: &Text) -> Vec<Named<'static>> {
        let build = || {
            let builder = &mut AhoCorasickBuilder::new();
            // Each new secret builds it anew, and a table of all states takes ten times as long.
            let longest = builder
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .match_kind(MatchKind::LeftmostLongest);
            longest.build(self.secrets.iter().map(|(secret, _)| secret)).ok()
        };
        let finder = (!self.secrets.is_empty()).then(|| self.finder.get_or_init(build).as_ref());
        let Some(finder) = finder.flatten() else {
            return Vec::new();
        };
        let letters = text.letters();
        let found = finder.find_iter(letters);
        let found = found
            .filter(|found| stands_alone(letters, &found.range()) && !begins_marker(letters, found.start()));
        let named = found.map(|found| {
            let marker = self.secrets[found.pattern().as_usize()].1.clone();
            Named {
                range: found.range(),
                kind: "password",
                marker: Some(marker),
            }
        });
        named.collect()
    }
}
