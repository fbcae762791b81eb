//! The postings of all remembered words.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use smallvec::SmallVec;

use knowledgepulse_trace::words::TermWeight;

/// A trace that contains a word: its slot, and c(t).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, packed(2))]
pub(crate) struct Posting {
    pub(crate) slot: u32,
    pub(crate) count: TermWeight,
}

/// A word that is remembered.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub(crate) hash: u64,
    /// Document frequency: the number of remembered traces that contain it.
    pub(crate) df: u32,
    /// Postings in the order of the slots. The first may be of evicted traces; they are removed when they are many.
    postings: SmallVec<[Posting; 2]>,
}

impl Term {
    fn new(hash: u64) -> Self {
        Self {
            hash,
            df: 0,
            postings: SmallVec::new(),
        }
    }

    /// The remembered traces that contain the word, the oldest first.
    pub(crate) fn postings(&self) -> &[Posting] {
        &self.postings[self.postings.len() - self.df as usize..]
    }

    /// The bytes of the postings beyond those that lie in the term itself.
    fn spilled_bytes(&self) -> usize {
        if self.postings.spilled() {
            self.postings.capacity() * size_of::<Posting>()
        } else {
            0
        }
    }
}

/// Every word that is remembered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Terms {
    terms: Vec<Term>,
    /// ln of the document frequency of each, apart from the terms, because comparisons read nothing else.
    logarithms: Vec<f64>,
    /// The places of words that were forgotten.
    free: Vec<u32>,
    places: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    spilled_bytes: usize,
}

/// Passes hashes through unchanged.
#[derive(Debug, Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only whole hashes are keys; this keeps any other key correct too.
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Terms {
    /// Makes words in these places, without traces yet. Of equal hashes only one is found again.
    pub(crate) fn with_places(hashes: &[u64]) -> Self {
        Self {
            terms: hashes.iter().copied().map(Term::new).collect(),
            logarithms: vec![0.0; hashes.len()],
            places: hashes.iter().copied().zip(0..).collect(),
            ..Self::default()
        }
    }

    /// Frees places of words without traces.
    pub(crate) fn finish_restoring(&mut self) {
        for (place, term) in (0..).zip(&self.terms) {
            if term.df == 0 {
                if self.places.get(&term.hash) == Some(&place) {
                    self.places.remove(&term.hash);
                }
                self.free.push(place);
            }
        }
    }

    pub(crate) fn get(&self, place: u32) -> &Term {
        &self.terms[place as usize]
    }

    /// Returns ln of the document frequency of a word.
    #[inline]
    pub(crate) fn logarithm(&self, place: u32) -> f64 {
        self.logarithms[place as usize]
    }

    /// Returns the place of a word that is remembered.
    pub(crate) fn find(&self, hash: u64) -> Option<u32> {
        self.places.get(&hash).copied()
    }

    fn set_df(&mut self, place: u32, df: u32) {
        self.terms[place as usize].df = df;
        self.logarithms[place as usize] = f64::from(df.max(1)).ln();
    }

    /// Returns the place of a word, and creates it without traces if missing.
    pub(crate) fn place(&mut self, hash: u64) -> u32 {
        if let Some(&place) = self.places.get(&hash) {
            return place;
        }
        let place = match self.free.pop() {
            Some(place) => {
                self.terms[place as usize] = Term::new(hash);
                place
            }
            None => {
                self.terms.push(Term::new(hash));
                self.logarithms.push(0.0);
                #[allow(clippy::cast_possible_truncation)] // 2^32 words would take 200 GB.
                let place = (self.terms.len() - 1) as u32;
                place
            }
        };
        self.places.insert(hash, place);
        place
    }

    /// Appends a trace, newer than all others, to the postings of a word.
    pub(crate) fn add_trace(&mut self, place: u32, posting: Posting) {
        let term = &mut self.terms[place as usize];
        let before = term.spilled_bytes();
        if term.postings.len() == term.postings.capacity() {
            // Doubling would waste a quarter of the memory on average.
            term.postings.reserve_exact((term.postings.len() / 8).max(2));
        }
        term.postings.push(posting);
        let (df, after) = (term.df + 1, term.spilled_bytes());
        self.spilled_bytes += after;
        self.spilled_bytes -= before;
        self.set_df(place, df);
    }

    /// Removes the evicted oldest trace from the postings of a word, and a word without traces. Its posting may stay until there are many.
    pub(crate) fn forget_oldest(&mut self, place: u32) {
        /// The least postings that are worth moving the others.
        const FORGOTTEN: usize = 64;
        self.set_df(place, self.get(place).df.saturating_sub(1));
        let term = &mut self.terms[place as usize];
        if term.df == 0 {
            return self.remove(place);
        }
        let forgotten = term.postings.len() - term.df as usize;
        if forgotten > FORGOTTEN.max(term.postings.len() / 8) || term.postings.len() <= FORGOTTEN {
            let before = term.spilled_bytes();
            term.postings.drain(..forgotten);
            if term.postings.capacity() > 4 * term.postings.len() {
                term.postings.shrink_to_fit();
            }
            self.spilled_bytes += term.spilled_bytes();
            self.spilled_bytes -= before;
        }
    }

    fn remove(&mut self, place: u32) {
        let term = &mut self.terms[place as usize];
        self.places.remove(&term.hash);
        self.spilled_bytes -= term.spilled_bytes();
        *term = Term::new(0);
        self.free.push(place);
    }

    /// Returns the number of places.
    #[allow(clippy::cast_possible_truncation)] // 2^32 words would take 200 GB.
    pub(crate) fn count(&self) -> u32 {
        self.terms.len() as u32
    }

    /// The hash of each place.
    pub(crate) fn hashes(&self) -> Vec<u64> {
        self.terms.iter().map(|term| term.hash).collect()
    }

    /// Returns the number of words.
    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// Returns whether the count of spilled bytes is that of all words.
    #[cfg(test)]
    pub(crate) fn has_right_bytes(&self) -> bool {
        let spilled: usize = self.terms.iter().map(Term::spilled_bytes).sum();
        spilled == self.spilled_bytes
    }

    pub(crate) fn bytes(&self) -> usize {
        // An entry of the map takes 17 bytes, in up to twice the needed capacity.
        self.terms.capacity() * size_of::<Term>()
            + self.logarithms.capacity() * size_of::<f64>()
            + self.places.capacity() * 17
            + self.free.capacity() * 4
            + self.spilled_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn hashes_are_passed_through_and_other_keys_told_apart() {
        let hasher = BuildHasherDefault::<Hashed>::default();
        assert_eq!(hasher.hash_one(7_u64), 7);
        let mut bytes = hasher.build_hasher();
        bytes.write(&[1, 2]);
        assert_eq!(bytes.finish(), 0x0102);
        let mut bytes = hasher.build_hasher();
        bytes.write(&[0xff; 9]);
        assert_eq!(bytes.finish(), 0xffff_ffff_ffff_ff00);
    }

    #[test]
    fn forget_oldest_removes_postings_of_evicted_traces_once_they_are_many() {
        for (traces, evicted, left) in [
            (200, 64, 200),
            (200, 65, 135),
            (1000, 125, 1000),
            (1000, 126, 874),
            (64, 1, 63),
            (65, 1, 65),
            (3, 3, 0),
            (1000, 990, 10),
        ] {
            let mut terms = Terms::default();
            let place = terms.place(7);
            for slot in 0..traces {
                let count = TermWeight::from_code(1);
                terms.add_trace(place, Posting { slot, count });
            }
            for _ in 0..evicted {
                terms.forget_oldest(place);
            }
            assert_eq!(terms.get(place).postings.len(), left, "{traces} {evicted}");
            assert!(
                terms.get(place).postings.capacity() <= 4 * left.max(16),
                "{traces} {evicted}"
            );
            assert_eq!(terms.find(7).is_some(), left > 0);
            assert!(terms.has_right_bytes());
        }
    }

    #[test]
    fn finish_restoring_frees_places_without_traces() {
        let mut terms = Terms::with_places(&[1, 2, 3]);
        let count = TermWeight::from_code(1);
        terms.add_trace(1, Posting { slot: 0, count });
        terms.finish_restoring();
        let found = [1, 2, 3].map(|hash| terms.find(hash));
        assert_eq!(found, [None, Some(1), None]);
        assert_eq!([4, 5, 6].map(|hash| terms.place(hash)), [2, 0, 3]);
    }

    #[test]
    fn bytes_are_those_of_terms_places_and_spilled_postings() {
        let mut terms = Terms::with_places(&[1, 2, 3]);
        for slot in 0..3 {
            let count = TermWeight::from_code(1);
            terms.add_trace(0, Posting { slot, count });
        }
        terms.free = Vec::with_capacity(5);
        let map = 17 * terms.places.capacity();
        // Two postings lie in the term itself; the third takes all of them elsewhere, with room for a fourth.
        assert_eq!(terms.bytes(), 3 * (size_of::<Term>() + 8) + map + 5 * 4 + 4 * 6);
    }
}
