//! Words of synthetic traces.

use knowledgepulse_trace::words::{TermWeight, Word, Words};

/// xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(count)) >> 64) as u64
    }

    /// Between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A word's hash, and a common word's share of the traces that have it.
fn hash(kind: u64, number: u64) -> u64 {
    ((kind << 56) | number)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(29)
        .wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// How many words there are that thin out, unless a benchmark says otherwise.
pub const VOCABULARY: u32 = 50_000;

/// Words as those of real runs of one agent: of about 290, 110 are in 10 to 100 % of all traces, 120 are of a `vocabulary` that thins out,
/// 35 are of one of the topics, and 25 of this trace alone.
pub fn words(random: &mut Random, vocabulary: u32, topics: u64, topic: u64) -> Words {
    let mut hashes: Vec<u64> = (0..200)
        .filter(|&number| random.unit() < 0.1 + 0.9 * (1.0 - number as f64 / 200.0))
        .map(|number| hash(1, number))
        .collect();
    hashes.extend((0..120).map(|_| hash(2, (f64::from(vocabulary) * random.unit().powi(4)) as u64)));
    hashes.extend((0..35).map(|_| hash(3, topic % topics * 60 + random.below(60))));
    hashes.extend((0..25).map(|_| random.next()));
    hashes.sort_unstable();
    hashes.dedup();
    let count = |random: &mut Random| TermWeight::from_code((15 << 11) + random.below(3 << 11) as u16);
    let words = hashes.into_iter().map(|hash| Word {
        hash,
        count: count(random),
    });
    Words::from_stored(words.collect()).expect("few words")
}

/// A run that repeats another one but for a tenth of its words.
#[allow(dead_code)] // Not every benchmark has near-copies.
pub fn near_copy(random: &mut Random, of: &Words) -> Words {
    let mut words: Vec<Word> = of.iter().filter(|_| random.below(10) > 0).copied().collect();
    let own = (of.iter().count() - words.len()).max(1);
    words.extend((0..own).map(|_| Word {
        hash: random.next(),
        count: TermWeight::from_code(15 << 11),
    }));
    words.sort_unstable_by_key(|word| word.hash);
    Words::from_stored(words).expect("few words")
}
