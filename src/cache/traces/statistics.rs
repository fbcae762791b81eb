//! Comparing with traces that lie elsewhere, such as in a database, by what is known of all of them together.
//!
//! A similarity rests on how many remembered traces contain each word, and on P. Both come from [`Statistics`], which are made of the
//! traces or a sample of them now and then, and travel as bytes:
//!
//! | bytes           | what                                                                                          |
//! | --------------- | --------------------------------------------------------------------------------------------- |
//! | 4               | how many traces there are, M                                                                  |
//! | 4               | how many of these the statistics are of; the counts of words are of these, and stand for as many more as there are traces |
//! | 4               | the dimensions of embeddings; 0 where words alone are compared                                |
//! | 4 per dimension | the mean of P, single precision                                                               |
//! | 4 per dimension | its direction                                                                                 |
//! | 16 per word     | the hash of each word that at least two of the traces contain, ascending; how many contain it; how many are found by it |
//!
//! All of it is little-endian. A trace is its words, in the order of their hashes, with 8 bytes for the hash and 2 for the
//! [code of the count](Count::code) of each, and after them its embedding in single precision, if embeddings are compared.

use std::{collections::HashMap, hash::BuildHasherDefault};

use super::{
    Method,
    projection::{Projected, Projection},
    terms::Hashed,
};
use crate::{
    cache::scaled::Scaled,
    error::{Error, Result},
    novelty::{
        Similarity, Sums, weight,
        words::{Count, Word, Words},
    },
};

/// By how many words a trace is found: those that add most to its length. On 10,000 traces mixed of the steps of real ones, the nearest of an
/// unseen trace was among 32 candidates in .88 of the cases with 32 words, in .95 with 64 and in .96 with 96, at 64 words of the query.
pub const FOUND_BY: usize = 64;

/// How many traces are looked through for how common a word is among those that traces are found by.
const LOOKED_THROUGH: usize = 1024;

/// The word by which a trace without words is found.
const NO_WORD: u64 = 0;

/// The bytes of a word of a trace.
const WORD_BYTES: usize = 10;

/// A trace as it lies in a store.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedTrace {
    /// Its words.
    pub words: Words,
    /// The embedding of its digest; empty where words alone are compared.
    pub vector: Vec<f32>,
}

impl PackedTrace {
    /// The bytes of words.
    #[must_use]
    pub fn pack_words(words: &Words) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(words.len() * WORD_BYTES);
        for word in words.iter() {
            bytes.extend_from_slice(&word.hash.to_le_bytes());
            bytes.extend_from_slice(&word.count.code().to_le_bytes());
        }
        bytes
    }

    /// The trace in these bytes, with an embedding of so many `dimensions`.
    ///
    /// # Errors
    /// [`Error::TraceDamaged`] if that cannot be one.
    pub fn unpack(bytes: &[u8], dimensions: usize) -> Result<Self> {
        let damaged = || Error::TraceDamaged;
        let length = bytes
            .len()
            .checked_sub(dimensions * size_of::<f32>())
            .ok_or_else(damaged)?;
        let (words, vector) = bytes.split_at(length);
        let (words, []) = words.as_chunks::<WORD_BYTES>() else {
            return Err(damaged());
        };
        let word = |&[a, b, c, d, e, f, g, h, low, high]: &[u8; WORD_BYTES]| Word {
            hash: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            count: Count::from_code(u16::from_le_bytes([low, high])),
        };
        let words = Words::from_stored(words.iter().map(word).collect()).ok_or_else(damaged)?;
        let vector = singles(vector);
        if !vector.iter().all(|component| component.is_finite()) {
            return Err(damaged());
        }
        Ok(Self { words, vector })
    }
}

/// The weight of a word that `traces` traces of a sample contain: of as large a part of the memory, or of one trace.
fn weight_in_sample(memory: u32, sample: u32, traces: u32) -> f64 {
    let (memory, sample) = (f64::from(memory), f64::from(sample.max(1)));
    (memory + 1.0).ln() - (f64::from(traces) * memory / sample).max(1.0).ln()
}

fn singles(bytes: &[u8]) -> Vec<f32> {
    let (groups, _) = bytes.as_chunks::<4>();
    groups.iter().map(|group| f32::from_le_bytes(*group)).collect()
}

/// What is known of all traces of a memory together.
#[derive(Debug, Clone)]
pub struct Statistics {
    memory: u32,
    /// Of how many of these they are.
    sample: u32,
    dimensions: usize,
    /// The words that at least two of the traces contain.
    words: HashMap<u64, Known, BuildHasherDefault<Hashed>>,
    projection: Projection,
}

/// What is known of a word.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// How many of the traces contain it.
    traces: u32,
    /// How many of them are found by it, about.
    finds: u32,
    weight: f64,
}

impl Statistics {
    /// The statistics of a memory of `memory` traces by a sample of these, whose embeddings are of so many `dimensions`. A trace
    /// without an embedding counts with its words alone.
    #[must_use]
    pub fn of(traces: &[PackedTrace], memory: usize, dimensions: usize) -> Self {
        let mut counts: HashMap<u64, u32, BuildHasherDefault<Hashed>> = HashMap::default();
        for word in traces.iter().flat_map(|trace| trace.words.iter()) {
            *counts.entry(word.hash).or_default() += 1;
        }
        let vectors: Vec<&[f32]> = traces
            .iter()
            .map(|trace| trace.vector.as_slice())
            .filter(|vector| dimensions > 0 && vector.len() == dimensions)
            .collect();
        let sample = u32::try_from(traces.len()).unwrap_or(u32::MAX);
        let mut statistics = Self::new(
            u32::try_from(memory).unwrap_or(u32::MAX).max(sample),
            sample,
            dimensions,
            counts
                .into_iter()
                .filter(|&(_, traces)| traces > 1)
                .map(|(hash, traces)| (hash, traces, 0)),
            Projection::of(&vectors),
        );
        let looked_through = &traces[..traces.len().min(LOOKED_THROUGH)];
        for trace in looked_through {
            for (hash, _) in statistics.found_by(&trace.words) {
                if let Some(known) = statistics.words.get_mut(&hash) {
                    known.finds += 1;
                }
            }
        }
        if looked_through.len() < traces.len() {
            for known in statistics.words.values_mut() {
                let finds = u64::from(known.finds) * traces.len() as u64 / looked_through.len() as u64;
                known.finds = u32::try_from(finds).unwrap_or(u32::MAX);
            }
        }
        statistics
    }

    fn new(
        memory: u32,
        sample: u32,
        dimensions: usize,
        counts: impl Iterator<Item = (u64, u32, u32)>,
        projection: Projection,
    ) -> Self {
        let known = |(hash, traces, finds)| {
            let weight = weight_in_sample(memory, sample, traces);
            (
                hash,
                Known {
                    traces,
                    finds,
                    weight,
                },
            )
        };
        Self {
            memory,
            sample,
            dimensions,
            words: counts.map(known).collect(),
            projection,
        }
    }

    /// The statistics as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut words: Vec<_> = self
            .words
            .iter()
            .map(|(&hash, known)| (hash, known.traces, known.finds))
            .collect();
        words.sort_unstable();
        let mut bytes = Vec::with_capacity(12 + 8 * self.dimensions + 16 * words.len());
        bytes.extend_from_slice(&self.memory.to_le_bytes());
        bytes.extend_from_slice(&self.sample.to_le_bytes());
        // No embedding has 2^32 dimensions.
        bytes.extend_from_slice(&u32::try_from(self.dimensions).unwrap_or(u32::MAX).to_le_bytes());
        let (mean, direction) = self.projection.parts();
        for part in [mean, direction] {
            // Without an embedding among the traces the parts are empty: P changes nothing.
            let components = part.iter().copied().chain(std::iter::repeat(0.0));
            for component in components.take(self.dimensions) {
                bytes.extend_from_slice(&component.to_le_bytes());
            }
        }
        for (hash, traces, finds) in words {
            bytes.extend_from_slice(&hash.to_le_bytes());
            bytes.extend_from_slice(&traces.to_le_bytes());
            bytes.extend_from_slice(&finds.to_le_bytes());
        }
        bytes
    }

    /// The statistics in these bytes, for embeddings of so many `dimensions`.
    ///
    /// # Errors
    /// [`Error::TraceDamaged`] if they are not what [`Statistics::to_bytes`] gives.
    pub fn from_bytes(bytes: &[u8], dimensions: usize) -> Result<Self> {
        let read = || {
            let (&memory, rest) = bytes.split_first_chunk::<4>()?;
            let (&sample, rest) = rest.split_first_chunk::<4>()?;
            let (&found, rest) = rest.split_first_chunk::<4>()?;
            if u32::from_le_bytes(found) as usize != dimensions {
                return None;
            }
            let (mean, rest) = rest.split_at_checked(dimensions * size_of::<f32>())?;
            let (direction, rest) = rest.split_at_checked(dimensions * size_of::<f32>())?;
            let (mean, direction) = (singles(mean), singles(direction));
            let (words, []) = rest.as_chunks::<16>() else {
                return None;
            };
            let (memory, sample) = (u32::from_le_bytes(memory), u32::from_le_bytes(sample));
            let word = |&[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]: &[u8; 16]| {
                let (traces, finds) = (u32::from_le_bytes([i, j, k, l]), u32::from_le_bytes([m, n, o, p]));
                (u64::from_le_bytes([a, b, c, d, e, f, g, h]), traces, finds)
            };
            let are_finite = mean
                .iter()
                .chain(&direction)
                .all(|component| component.is_finite());
            let are_counts = words.iter().all(|bytes| word(bytes).1 <= sample);
            (are_finite && are_counts && sample <= memory).then(|| {
                let projection = Projection::from_parts(&mean, &direction);
                Self::new(memory, sample, dimensions, words.iter().map(word), projection)
            })
        };
        read().ok_or(Error::TraceDamaged)
    }

    /// Of how many traces the memory was.
    #[must_use]
    pub fn memory(&self) -> u32 {
        self.memory
    }

    fn weight_of(&self, hash: u64) -> f64 {
        let alone = || weight(self.memory as usize, 1);
        self.words.get(&hash).map_or_else(alone, |known| known.weight)
    }

    /// The words of a trace by how much each adds to the square of its length |c w|², the most first. The roots of these parts,
    /// multiplied with those of another trace, add up to about the part of L that these words make.
    fn leading(&self, words: &Words) -> Vec<(u64, f64)> {
        if words.is_empty() {
            return vec![(NO_WORD, 1.0)];
        }
        let square = |word: &Word| (word.count.value() * self.weight_of(word.hash)).powi(2);
        let sum: f64 = words.iter().map(square).sum();
        // Without statistics every word weighs nothing.
        let sum = if sum > 0.0 { sum } else { 1.0 };
        let mut leading: Vec<_> = words
            .iter()
            .map(|word| (word.hash, (square(word) / sum).sqrt()))
            .collect();
        leading.sort_by(|(hash, part), (other, less)| less.total_cmp(part).then(hash.cmp(other)));
        leading
    }

    /// The words by which a trace is found, with their weights.
    #[must_use]
    pub fn found_by(&self, words: &Words) -> Vec<(u64, f64)> {
        let mut leading = self.leading(words);
        leading.truncate(FOUND_BY);
        leading
    }

    /// The words by which traces like this one are looked for, with their weights: at most `most`, of which `budget` traces are
    /// found in all, in a memory of `memory` traces.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // An estimate.
    pub fn looked_for_by(&self, words: &Words, most: usize, budget: f64, memory: f64) -> Vec<(u64, f64)> {
        let scale = memory / f64::from(self.sample.max(1));
        let finds = |hash| {
            let finds = self.words.get(&hash).map_or(0.0, |known| f64::from(known.finds));
            (finds * scale).max(1.0)
        };
        let mut leading: Vec<_> = self
            .leading(words)
            .into_iter()
            .map(|(hash, weight)| (hash, weight, finds(hash)))
            .collect();
        let worth = |(_, weight, finds): &(u64, f64, f64)| weight * weight / finds.sqrt();
        leading.sort_by(|one, other| worth(other).total_cmp(&worth(one)).then(one.0.cmp(&other.0)));
        let mut left = budget;
        let mut chosen = Vec::new();
        for (hash, weight, finds) in leading {
            if finds <= left || chosen.is_empty() {
                left -= finds;
                chosen.push((hash, weight));
            }
            if chosen.len() == most {
                break;
            }
        }
        chosen
    }

    /// A trace with what its comparisons need.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::OutOfMemory`].
    pub fn weigh<'t>(&self, trace: &'t PackedTrace) -> Result<WeighedTrace<'t>> {
        let words = &trace.words;
        let weights: Vec<f64> = words.iter().map(|word| self.weight_of(word.hash)).collect();
        let mut sums = Sums::default();
        for (word, weight) in words.iter().zip(&weights) {
            sums.add(word.count.value(), word.count.value(), *weight);
        }
        let mut vector = Scaled::default();
        let mut length = 0.0;
        if self.dimensions > 0 {
            vector.set(&trace.vector, "vector")?;
            length = self.projection.length_of(&vector);
        }
        Ok(WeighedTrace {
            words,
            weights,
            sums,
            vector,
            length,
        })
    }

    /// Compares a trace with others.
    #[must_use]
    pub fn query<'t>(&'t self, trace: &'t WeighedTrace<'t>) -> TraceQuery<'t> {
        TraceQuery {
            method: if self.dimensions > 0 {
                Method::Full
            } else {
                Method::Lexical
            },
            trace,
            projected: (self.dimensions > 0)
                .then(|| self.projection.project(&trace.vector))
                .flatten(),
        }
    }
}

/// A trace whose words are weighed.
#[derive(Debug)]
pub struct WeighedTrace<'t> {
    words: &'t Words,
    weights: Vec<f64>,
    sums: Sums,
    vector: Scaled,
    /// That of the embedding's projection.
    length: f64,
}

/// A trace that is compared with others.
#[derive(Debug)]
pub struct TraceQuery<'t> {
    method: Method,
    trace: &'t WeighedTrace<'t>,
    projected: Option<Projected>,
}

impl TraceQuery<'_> {
    /// How similar the trace is to another one.
    #[must_use]
    pub fn compare(&self, other: &WeighedTrace) -> Similarity {
        let mut shared = Sums::default();
        let mut others = other.words.iter().peekable();
        for (word, weight) in self.trace.words.iter().zip(&self.trace.weights) {
            while others.next_if(|other| other.hash < word.hash).is_some() {}
            if let Some(other) = others.next_if(|other| other.hash == word.hash) {
                shared.add(word.count.value(), other.count.value(), *weight);
            }
        }
        let (lexical, contained) = self.trace.sums.compare(&other.sums, &shared);
        let embedded = (self.method == Method::Full).then(|| {
            self.projected.as_ref().map_or(0.0, |projected| {
                projected.compare(&other.vector.components, other.length)
            })
        });
        Similarity {
            lexical,
            contained,
            embedded,
        }
    }
}
