//! The words of one trace, found by their places among the words of a memory.

use knowledgepulse_trace::words::MOST_WORDS;

/// The words of a trace by their places, in a hash table that stays in the first-level cache.
#[derive(Debug, Default)]
pub(super) struct PlacedWords {
    /// One more than the number of the word in `words`, or 0.
    table: Vec<(u32, u32)>,
    words: Vec<(f64, f64)>,
}

impl PlacedWords {
    /// Twice as many as a trace has words, rounded up.
    const SLOTS: usize = (2 * MOST_WORDS).next_power_of_two();

    /// Removes all words.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.table.resize(Self::SLOTS, (0, 0));
        self.words.clear();
    }

    /// The slot of a word, or the empty one where it belongs.
    fn slot(&self, place: u32) -> usize {
        let hash = place.wrapping_mul(0x9E37_79B9) >> (32 - Self::SLOTS.ilog2());
        let mut slot = hash as usize;
        while self.table[slot].1 != 0 && self.table[slot].0 != place {
            slot = (slot + 1) % Self::SLOTS;
        }
        slot
    }

    /// Adds a word.
    #[allow(clippy::cast_possible_truncation)] // At most MOST_WORDS.
    pub(super) fn insert(&mut self, place: u32, count: f64, weight: f64) {
        self.words.push((count, weight));
        let slot = self.slot(place);
        self.table[slot] = (place, self.words.len() as u32);
    }

    /// Returns the count and the weight of a word.
    pub(super) fn get(&self, place: u32) -> Option<(f64, f64)> {
        let number = (self.table[self.slot(place)].1 as usize).checked_sub(1)?;
        Some(self.words[number])
    }
}
