//! Comparing with traces in a store, by statistics of all its traces.
//!
//! A similarity depends on document frequencies and on P. Both are in [`Statistics`], which are renewed now and then, and serialised as
//! bytes:
//!
//! | bytes           | what                                                                                          |
//! | --------------- | --------------------------------------------------------------------------------------------- |
//! | 4               | how many traces there are, M                                                                  |
//! | 4               | how many were counted; the counts of words are of these, and stand for as many as there are traces |
//! | 4               | the dimensions of embeddings; 0 where words alone are compared                                |
//! | 4               | how many of the counted traces contain a common word at least; what is counted less often weighs as if one trace had it |
//! | 4 per dimension | the mean of P, single precision                                                               |
//! | 4 per dimension | its direction                                                                                 |
//! | 16 per word     | the hash of each common word, ascending; how many contain it; how many are found by it        |
//! | 16 per word     | the same of the other words, which only those need who count on; these bytes can be left out  |
//!
//! All of it is little-endian. A trace is its words, in the order of their hashes, with 8 bytes for the hash and 2 for the
//! [code of the count](TermWeight::code) of each, and after them its embedding in single precision, if embeddings are compared.

use std::{
    collections::{HashMap, HashSet},
    hash::BuildHasherDefault,
};

use knowledgepulse_error::{Error, Result};
use knowledgepulse_trace::words::{TermWeight, Word, Words};

use super::{
    projection::{Projected, Projection, Sample},
    terms::Hashed,
};
use crate::{
    scaled::Scaled,
    similarity::{Similarity, Sums, weight},
};

/// Indexed terms of a trace: the highest weights, renormalised to length 1. DESIGN.md, "What was tried", has measurements.
pub const FOUND_BY: usize = 64;

/// The unit of an indexed term's weight, 1/32,767, so that it fits into 16 bits.
pub const WEIGHT_PARTS: f64 = 32_767.0;

/// The most common words: a megabyte of statistics, which every comparison reads.
const MOST_COMMON: usize = if cfg!(test) { 512 } else { 65_536 };

/// The most words that are counted.
const MOST_COUNTED: usize = 4 * MOST_COMMON;

/// The least document frequency of a common word.
const LEAST_COMMON: u32 = 2;

/// The indexed term of a trace without words.
const NO_WORD: u64 = 0;

/// The bytes of a word of a trace.
const WORD_BYTES: usize = 10;

/// A trace in a store.
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

    /// The trace in these bytes, with an embedding of `dimensions` components.
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
            count: TermWeight::from_code(u16::from_le_bytes([low, high])),
        };
        let words = Words::from_stored(words.iter().map(word).collect()).ok_or_else(damaged)?;
        let vector = singles(vector);
        if !vector.iter().all(|component| component.is_finite()) {
            return Err(damaged());
        }
        Ok(Self { words, vector })
    }

    /// Returns the sampling number of the trace, 0 to 1: P is made of the embeddings with the smallest ones, as in a memory. `None` without
    /// an embedding.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::OutOfMemory`].
    #[allow(clippy::cast_precision_loss)] // 53 bits.
    pub fn draw(&self) -> Result<Option<f64>> {
        if self.vector.is_empty() {
            return Ok(None);
        }
        let mut scaled = Scaled::default();
        scaled.set(&self.vector, "vector")?;
        let hash = Sample::hash(&scaled.components);
        Ok(Some((hash >> 11) as f64 / (1_u64 << 53) as f64))
    }
}

/// Returns the weight of a word in `traces` sampled traces, scaled to the memory; at least one trace.
fn weight_in_sample(memory: u32, sample: u32, traces: u32) -> f64 {
    let (memory, sample) = (f64::from(memory), f64::from(sample.max(1)));
    (memory + 1.0).ln() - (f64::from(traces) * memory / sample).max(1.0).ln()
}

/// The document frequency of a word, and its number of postings.
type Counted = (u32, u32);

/// The counts of each word, by hash.
type Counts = HashMap<u64, Counted, BuildHasherDefault<Hashed>>;

/// Returns the smallest frequency from `least` on that at most `most` words reach.
fn least_count(counts: &Counts, most: usize, least: u32) -> u32 {
    let mut all: Vec<u32> = counts
        .values()
        .map(|&(traces, _)| traces)
        .filter(|&traces| traces >= least)
        .collect();
    if all.len() <= most {
        return least;
    }
    let (_, &mut first_too_many, _) = all.select_nth_unstable_by(most, |one, other| other.cmp(one));
    first_too_many + 1
}

fn singles(bytes: &[u8]) -> Vec<f32> {
    let (groups, _) = bytes.as_chunks::<4>();
    groups.iter().map(|group| f32::from_le_bytes(*group)).collect()
}

/// The statistics of all traces of a store.
#[derive(Debug, Clone)]
pub struct Statistics {
    memory: u32,
    /// The number of counted traces.
    sample: u32,
    dimensions: usize,
    /// The least document frequency of a common word among them.
    least: u32,
    words: HashMap<u64, Known, BuildHasherDefault<Hashed>>,
    projection: Projection,
}

/// The statistics of a word.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// Its document frequency.
    traces: u32,
    /// Its approximate number of postings.
    finds: u32,
    weight: f64,
}

impl Statistics {
    /// Computes statistics of a memory of `memory` traces from a sample with embeddings of `dimensions` components. A trace without an
    /// embedding counts by its words alone.
    #[must_use]
    pub fn of(traces: &[PackedTrace], memory: usize, dimensions: usize) -> Self {
        let none = Self::new(0, 0, dimensions, Counts::default(), Projection::of(&[]));
        none.grown(traces, traces, memory)
    }

    /// Adds the words of more traces, for a memory of `memory` traces, with P from the embeddings of `embedded`.
    ///
    /// Evicted traces are not subtracted. Instead counts are halved when more than twice `memory` traces were counted. The rarest words are
    /// dropped when there are too many.
    #[must_use]
    pub fn grown(&self, traces: &[PackedTrace], embedded: &[PackedTrace], memory: usize) -> Self {
        let clamped = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let more = clamped(traces.len());
        let memory = clamped(memory).max(more);
        let most = memory.saturating_mul(2);
        let mut halvings = 0;
        while (self.sample >> halvings).saturating_add(more) > most && halvings < u32::BITS - 1 {
            halvings += 1;
        }
        let mut counts: Counts = self
            .words
            .iter()
            .map(|(&hash, known)| (hash, (known.traces >> halvings, known.finds >> halvings)))
            .filter(|&(_, (traces, _))| traces > 0)
            .collect();
        for word in traces.iter().flat_map(|trace| trace.words.iter()) {
            counts.entry(word.hash).or_default().0 += 1;
        }
        let enough = least_count(&counts, MOST_COUNTED, 1);
        if enough > 1 {
            let latest: HashSet<u64, BuildHasherDefault<Hashed>> = traces
                .iter()
                .flat_map(|trace| trace.words.iter())
                .map(|word| word.hash)
                .collect();
            let mut room = MOST_COUNTED / 4;
            counts.retain(|hash, &mut (traces, _)| {
                let stays = traces >= enough || (room > 0 && latest.contains(hash));
                room -= usize::from(stays && traces < enough);
                stays
            });
        }
        let vectors: Vec<&[f32]> = embedded
            .iter()
            .map(|trace| trace.vector.as_slice())
            .filter(|vector| self.dimensions > 0 && vector.len() == self.dimensions)
            .collect();
        let mut grown = Self::new(
            memory,
            (self.sample >> halvings) + more,
            self.dimensions,
            counts,
            Projection::of(&vectors),
        );
        for trace in traces {
            for (hash, _) in grown.finding(&trace.words) {
                if let Some(known) = grown.words.get_mut(&hash) {
                    known.finds += 1;
                }
            }
        }
        grown
    }

    fn new(memory: u32, sample: u32, dimensions: usize, counts: Counts, projection: Projection) -> Self {
        let least = least_count(&counts, MOST_COMMON, LEAST_COMMON);
        Self::with_least(memory, sample, dimensions, least, counts.into_iter(), projection)
    }

    fn with_least(
        memory: u32,
        sample: u32,
        dimensions: usize,
        least: u32,
        counts: impl Iterator<Item = (u64, Counted)>,
        projection: Projection,
    ) -> Self {
        let known = |(hash, (traces, finds))| {
            let weight = if traces >= least {
                weight_in_sample(memory, sample, traces)
            } else {
                weight(memory as usize, 1)
            };
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
            least,
            words: counts.map(known).collect(),
            projection,
        }
    }

    /// Serialises the statistics.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut words: Vec<_> = self
            .words
            .iter()
            .map(|(&hash, known)| (known.traces < self.least, hash, known.traces, known.finds))
            .collect();
        words.sort_unstable();
        let mut bytes = Vec::with_capacity(16 + 8 * self.dimensions + 16 * words.len());
        // No embedding has 2^32 dimensions.
        let dimensions = u32::try_from(self.dimensions).unwrap_or(u32::MAX);
        for number in [self.memory, self.sample, dimensions, self.least] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let (mean, direction) = self.projection.parts();
        for part in [mean, direction] {
            // Without embeddings the parts are empty: P changes nothing.
            let components = part.iter().copied().chain(std::iter::repeat(0.0));
            for component in components.take(self.dimensions) {
                bytes.extend_from_slice(&component.to_le_bytes());
            }
        }
        for (_, hash, traces, finds) in words {
            bytes.extend_from_slice(&hash.to_le_bytes());
            bytes.extend_from_slice(&traces.to_le_bytes());
            bytes.extend_from_slice(&finds.to_le_bytes());
        }
        bytes
    }

    /// Returns how many of the [bytes](Self::to_bytes) comparisons need.
    #[must_use]
    pub fn common_bytes(&self) -> usize {
        let common = self.words.values().filter(|known| known.traces >= self.least);
        16 + 8 * self.dimensions + 16 * common.count()
    }

    /// Reads statistics from bytes, for embeddings of `dimensions` components.
    ///
    /// # Errors
    /// [`Error::TraceDamaged`] if they are not what [`Statistics::to_bytes`] gives.
    pub fn from_bytes(bytes: &[u8], dimensions: usize) -> Result<Self> {
        let read = || {
            let (header, rest) = bytes.split_first_chunk::<16>()?;
            let (numbers, _) = header.as_chunks::<4>();
            let number = |index: usize| u32::from_le_bytes(numbers[index]);
            let (memory, sample, least) = (number(0), number(1), number(3));
            if number(2) as usize != dimensions {
                return None;
            }
            let (mean, rest) = rest.split_at_checked(dimensions * size_of::<f32>())?;
            let (direction, rest) = rest.split_at_checked(dimensions * size_of::<f32>())?;
            let (mean, direction) = (singles(mean), singles(direction));
            let (words, []) = rest.as_chunks::<16>() else {
                return None;
            };
            let word = |&[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]: &[u8; 16]| {
                let counted = (u32::from_le_bytes([i, j, k, l]), u32::from_le_bytes([m, n, o, p]));
                (u64::from_le_bytes([a, b, c, d, e, f, g, h]), counted)
            };
            let are_finite = mean
                .iter()
                .chain(&direction)
                .all(|component| component.is_finite());
            let are_counts = words.iter().all(|bytes| word(bytes).1.0 <= sample);
            (are_finite && are_counts).then(|| {
                let projection = Projection::from_parts(&mean, &direction);
                Self::with_least(
                    memory,
                    sample,
                    dimensions,
                    least,
                    words.iter().map(word),
                    projection,
                )
            })
        };
        read().ok_or(Error::TraceDamaged)
    }

    /// Returns the number of traces of the memory.
    #[must_use]
    pub fn memory(&self) -> u32 {
        self.memory
    }

    fn weight_of(&self, hash: u64) -> f64 {
        let alone = || weight(self.memory as usize, 1);
        self.words.get(&hash).map_or_else(alone, |known| known.weight)
    }

    /// Returns the words of a trace by their parts of |c w|², the largest first. The roots of the parts, multiplied with those of another
    /// trace, approximate these words' part of L.
    fn leading(&self, words: &Words) -> Vec<(u64, f64)> {
        if words.is_empty() {
            return vec![(NO_WORD, 1.0)];
        }
        let square = |word: &Word| (word.count.value() * self.weight_of(word.hash)).powi(2);
        let sum: f64 = words.iter().map(square).sum();
        // Without statistics every weight is 0.
        let sum = if sum > 0.0 { sum } else { 1.0 };
        let mut leading: Vec<_> = words
            .iter()
            .map(|word| (word.hash, (square(word) / sum).sqrt()))
            .collect();
        leading.sort_by(|(hash, part), (other, less)| less.total_cmp(part).then(hash.cmp(other)));
        leading
    }

    /// Returns the indexed terms of a trace, with weights in units of 1/[`WEIGHT_PARTS`].
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // From 0 to WEIGHT_PARTS.
    pub fn found_by(&self, words: &Words) -> Vec<(u64, u16)> {
        let in_parts = |(hash, weight): (u64, f64)| (hash, (weight * WEIGHT_PARTS).floor() as u16);
        self.finding(words).into_iter().map(in_parts).collect()
    }

    fn finding(&self, words: &Words) -> Vec<(u64, f64)> {
        let mut leading = self.leading(words);
        leading.truncate(FOUND_BY);
        let square: f64 = leading.iter().map(|(_, weight)| weight * weight).sum();
        for (_, weight) in &mut leading {
            // Without statistics every weight is 0. Rounded, a single word could weigh more than 1.
            *weight = (*weight / square.sqrt().max(f64::MIN_POSITIVE)).min(1.0);
        }
        leading
    }

    /// Chooses the words to look up for this trace, with their weights: at most `most`, with about `budget` postings together in a memory of
    /// `memory` traces.
    ///
    /// Words of one step, which mostly have equal counts, are found in the same traces. So few of each group are chosen, those with the
    /// largest weight for the fewest postings, and they stand for the others of the group. DESIGN.md has measurements.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // An estimate.
    pub fn looked_for_by(&self, words: &Words, most: usize, budget: f64, memory: f64) -> Vec<(u64, f64)> {
        /// The words of one count: the sum of all squares, the sum of the chosen ones, and the number of the chosen ones.
        #[derive(Default)]
        struct Group {
            all: f64,
            chosen: f64,
            count: u32,
        }
        struct Candidate {
            hash: u64,
            weight: f64,
            finds: f64,
            /// Its weight per posting, as long as no word of its group is chosen.
            worth: f64,
            /// An unknown word: it finds another run of the same task, or nothing.
            group: Option<usize>,
        }
        let scale = memory / f64::from(self.sample.max(1));
        let counts: HashMap<u64, u16, BuildHasherDefault<Hashed>> =
            words.iter().map(|word| (word.hash, word.count.code())).collect();
        let mut numbers: HashMap<u16, usize> = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        let mut left: Vec<Candidate> = Vec::new();
        for (hash, weight) in self.leading(words) {
            let known = self.words.get(&hash).filter(|known| known.finds > 0);
            let group = known.and_then(|_| counts.get(&hash)).map(|&code| {
                let number = *numbers.entry(code).or_insert(groups.len());
                if number == groups.len() {
                    groups.push(Group::default());
                }
                groups[number].all += weight * weight;
                number
            });
            let finds = known.map_or(1.0, |known| (f64::from(known.finds) * scale).max(1.0));
            left.push(Candidate {
                hash,
                weight,
                finds,
                worth: weight * weight / finds.sqrt(),
                group,
            });
        }
        let mut budget = budget;
        let mut chosen: Vec<Candidate> = Vec::new();
        while chosen.len() < most {
            let worth = |candidate: &Candidate| {
                let before = candidate.group.map_or(0, |group| groups[group].count);
                candidate.worth / f64::from(before + 1)
            };
            let best = left
                .iter()
                .enumerate()
                .filter(|(_, candidate)| candidate.finds <= budget || chosen.is_empty())
                .map(|(index, candidate)| (worth(candidate), std::cmp::Reverse(candidate.hash), index))
                .max_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
            let Some((.., index)) = best else { break };
            let candidate = left.swap_remove(index);
            budget -= candidate.finds;
            if let Some(group) = candidate.group {
                groups[group].chosen += candidate.weight * candidate.weight;
                groups[group].count += 1;
            }
            chosen.push(candidate);
        }
        let for_all = |candidate: Candidate| {
            let group = candidate.group.map(|group| &groups[group]);
            let share = group.filter(|group| group.chosen > 0.0);
            (
                candidate.hash,
                candidate.weight * share.map_or(1.0, |group| group.all / group.chosen),
            )
        };
        chosen.into_iter().map(for_all).collect()
    }

    /// The weight of a common word.
    fn common_weight(&self, hash: u64) -> Option<f64> {
        let known = self.words.get(&hash)?;
        (known.traces >= self.least).then_some(known.weight)
    }

    /// Prepares traces for comparisons: `remembered`, some of a memory of `memory` traces, and `others`.
    ///
    /// A rare word is counted among `remembered` only. Traces that are similar to the same trace share rare words, so these are mostly all,
    /// and no statistics of rare words are needed. DESIGN.md has measurements.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::OutOfMemory`].
    pub fn weigh<'t>(
        &self,
        remembered: &'t [PackedTrace],
        others: &'t [PackedTrace],
        memory: usize,
    ) -> Result<Vec<WeighedTrace<'t>>> {
        let mut rare: HashMap<u64, usize, BuildHasherDefault<Hashed>> = HashMap::default();
        let mut all_weights: Vec<Vec<f64>> = Vec::with_capacity(remembered.len() + others.len());
        for (index, trace) in remembered.iter().chain(others).enumerate() {
            let weight = |word: &Word| {
                self.common_weight(word.hash).unwrap_or_else(|| {
                    if index < remembered.len() {
                        *rare.entry(word.hash).or_default() += 1;
                    }
                    f64::NAN
                })
            };
            all_weights.push(trace.words.iter().map(weight).collect());
        }
        let memory = memory.max(remembered.len());
        let weigh = |(trace, mut weights): (&'t PackedTrace, Vec<f64>)| {
            let words = &trace.words;
            let mut sums = Sums::default();
            for (word, own) in words.iter().zip(&mut weights) {
                if own.is_nan() {
                    *own = weight(memory, rare.get(&word.hash).copied().unwrap_or(1));
                }
                sums.add(word.count.value(), word.count.value(), *own);
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
        };
        remembered
            .iter()
            .chain(others)
            .zip(all_weights)
            .map(weigh)
            .collect()
    }

    /// Compares a trace with others.
    #[must_use]
    pub fn query<'t>(&'t self, trace: &'t WeighedTrace<'t>) -> TraceQuery<'t> {
        TraceQuery {
            trace,
            projected: (self.dimensions > 0).then(|| self.projection.project(&trace.vector)),
        }
    }
}

/// A trace with weighted words.
#[derive(Debug)]
pub struct WeighedTrace<'t> {
    words: &'t Words,
    weights: Vec<f64>,
    sums: Sums,
    vector: Scaled,
    /// The length of the embedding's projection.
    length: f64,
}

/// A trace that is compared with others.
#[derive(Debug)]
pub struct TraceQuery<'t> {
    trace: &'t WeighedTrace<'t>,
    /// `None` where words alone are compared; `Some(None)` if the projection has no direction.
    projected: Option<Option<Projected>>,
}

impl TraceQuery<'_> {
    /// Returns the similarity of the trace to another one.
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
        let cosine = |projected: &Projected| projected.compare(&other.vector.components, other.length);
        let projected = self.projected.as_ref();
        let embedded = projected.map(|projected| projected.as_ref().map_or(0.0, cosine));
        Similarity {
            lexical,
            contained,
            embedded,
        }
    }
}
