//! Traces of a store: their bytes, the words by which a store finds them, and comparisons by document frequencies of a sample.
//!
//! A packed trace is its words in the order of their hashes, with 8 bytes for the hash and 2 for the [code of the count](TermWeight::code)
//! of each, and after them its embedding in single precision, if embeddings are compared. All of it is little-endian.

use std::{collections::HashMap, hash::BuildHasherDefault};

use knowledgepulse_error::{Code, Error, Result};
use knowledgepulse_trace::words::{TermWeight, Word, Words};

use super::{
    projection::{Projected, Projection},
    terms::Hashed,
};
use crate::{
    scaled::Scaled,
    similarity::{Similarity, Sums},
};

/// The bytes of a word of a packed trace.
const WORD_BYTES: usize = 10;

/// The indexed word of a trace without words.
const NO_WORD: u64 = 0;

/// The least document frequency in a sample that is kept, and scaled to the memory. A rarer word counts by its frequency among the compared
/// traces.
const LEAST_COMMON: u32 = 2;

/// The document frequencies of words, by their hashes.
type Frequencies = HashMap<u64, u32, BuildHasherDefault<Hashed>>;

/// A trace in a store.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedTrace {
    /// Its words.
    pub words: Words,
    /// The embedding of its digest; empty where words alone are compared.
    pub vector: Vec<f32>,
}

impl PackedTrace {
    /// Returns the bytes of a trace; `vector` is empty where words alone are compared.
    #[must_use]
    pub fn pack(words: &Words, vector: &[f32]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(words.len() * WORD_BYTES + size_of_val(vector));
        for word in words.iter() {
            bytes.extend_from_slice(&word.hash.to_le_bytes());
            bytes.extend_from_slice(&word.count.code().to_le_bytes());
        }
        bytes.extend(vector.iter().flat_map(|component| component.to_le_bytes()));
        bytes
    }

    /// Reads a trace with an embedding of `dimensions` components.
    ///
    /// # Errors
    /// `ERR_STORE` if the bytes are not those of a trace.
    pub fn unpack(bytes: &[u8], dimensions: usize) -> Result<Self> {
        let damaged = || {
            let problem = "the table of the store is damaged: bytes that it holds are not those of a trace";
            Error::Other(Code::Store, problem.into())
        };
        let split = bytes.len().checked_sub(dimensions * size_of::<f32>());
        let (words, vector) = bytes.split_at(split.ok_or_else(damaged)?);
        let (words, []) = words.as_chunks::<WORD_BYTES>() else {
            return Err(damaged());
        };
        let word = |&[a, b, c, d, e, f, g, h, low, high]: &[u8; WORD_BYTES]| Word {
            hash: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            count: TermWeight::from_code(u16::from_le_bytes([low, high])),
        };
        let words = Words::from_stored(words.iter().map(word).collect()).ok_or_else(damaged)?;
        let (components, _) = vector.as_chunks::<4>();
        let vector: Vec<f32> = components
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        let is_finite = vector.iter().all(|component| component.is_finite());
        is_finite.then_some(Self { words, vector }).ok_or_else(damaged)
    }
}

/// Compares each of `entries` with all of the `max_elements` traces before it, among `known` and the entries. Returns the most similar trace of
/// each, whose index counts `known` first.
///
/// # Errors
/// [`Error::NotFinite`], [`Error::OutOfMemory`].
pub fn compare_with_all(
    known: &[PackedTrace],
    entries: &[PackedTrace],
    max_elements: usize,
) -> Result<Vec<Option<(usize, Similarity)>>> {
    let traces = [known, entries].concat();
    let compare = |end: usize| {
        let start = end.saturating_sub(max_elements);
        let before = &traces[start..end];
        if before.is_empty() {
            return Ok(None);
        }
        let all = [(0..before.len()).collect()];
        let mut found = TraceSample::of(before).compare(before, &traces[end..=end], &all, before.len())?;
        let nearest = found.pop().flatten();
        Ok(nearest.map(|(index, similarity)| (start + index, similarity)))
    };
    (known.len()..traces.len()).map(compare).collect()
}

/// The document frequencies, and P, of a sample of a store's traces.
#[derive(Debug, Clone)]
pub struct TraceSample {
    size: usize,
    frequencies: Frequencies,
    projection: Projection,
}

/// The document frequency of a word, and its logarithm.
#[derive(Debug, Clone, Copy, Default)]
struct Rarity {
    traces: f64,
    logarithm: f64,
}

/// The rarities of words, by their hashes.
type Rarities = HashMap<u64, Rarity, BuildHasherDefault<Hashed>>;

impl Rarity {
    fn of(traces: f64) -> Self {
        let logarithm = logarithm(traces);
        Self { traces, logarithm }
    }
}

/// A trace whose words have weights.
struct Weighed<'t> {
    words: &'t Words,
    weights: Vec<f64>,
    sums: Sums,
    vector: Scaled,
    /// The length of the embedding's projection.
    length: f64,
}

impl TraceSample {
    /// Counts the words of traces, and computes P from their embeddings.
    #[must_use]
    pub fn of(traces: &[PackedTrace]) -> Self {
        let mut frequencies = Frequencies::default();
        for word in traces.iter().flat_map(|trace| trace.words.iter()) {
            *frequencies.entry(word.hash).or_default() += 1;
        }
        // Most words are of one trace alone.
        frequencies.retain(|_, traces| *traces >= LEAST_COMMON);
        frequencies.shrink_to_fit();
        let vectors: Vec<&[f32]> = traces.iter().map(|trace| trace.vector.as_slice()).collect();
        Self {
            size: traces.len(),
            frequencies,
            projection: Projection::of(&vectors),
        }
    }

    /// Returns the document frequency of a word in a memory of `memory` traces; `None` for a rare one.
    #[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
    fn frequency(&self, hash: u64, memory: usize) -> Option<f64> {
        let traces = f64::from(*self.frequencies.get(&hash)?);
        Some(traces * memory as f64 / self.size as f64)
    }

    /// Returns the `most` words of a trace that add most to its length, the heaviest first, with their shares of the squared length. Leaves
    /// out words that about `budget` traces together do not cover.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
    pub fn heaviest(&self, words: &Words, memory: usize, most: usize, budget: f64) -> Vec<(u64, f64)> {
        if words.is_empty() {
            return vec![(NO_WORD, 1.0)];
        }
        let weigh = |word: &Word| {
            let traces = self.frequency(word.hash, memory).unwrap_or(1.0);
            let weight = logarithm(memory as f64 + 1.0) - logarithm(traces);
            ((word.count.value() * weight).powi(2), traces, word.hash)
        };
        let mut heaviest: Vec<_> = words.iter().map(weigh).collect();
        heaviest.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.2.cmp(&other.2)));
        let all: f64 = heaviest.iter().map(|(square, ..)| square).sum();
        let mut left = budget;
        heaviest.retain(|&(_, traces, _)| {
            let fits = traces <= left;
            left -= if fits { traces } else { 0.0 };
            fits
        });
        heaviest.truncate(most);
        let share = |(square, _, hash)| (hash, square / all.max(f64::MIN_POSITIVE));
        heaviest.into_iter().map(share).collect()
    }

    /// Compares each of `entries` with the traces among `known` that `candidates` has for it by index, and with the entries before it, in a
    /// memory of `memory` traces that they join one after another. Returns the most similar of each, whose index counts `known` first.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::OutOfMemory`].
    #[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
    pub fn compare(
        &self,
        known: &[PackedTrace],
        entries: &[PackedTrace],
        candidates: &[Vec<usize>],
        memory: usize,
    ) -> Result<Vec<Option<(usize, Similarity)>>> {
        let mut rarities = Rarities::default();
        for word in known.iter().flat_map(|trace| trace.words.iter()) {
            rarities.entry(word.hash).or_default().traces += 1.0;
        }
        for (&hash, rarity) in &mut rarities {
            *rarity = Rarity::of(self.frequency(hash, memory).unwrap_or(rarity.traces));
        }
        let mut found = Vec::with_capacity(entries.len());
        for (before, (entry, chosen)) in entries.iter().zip(candidates).enumerate() {
            for word in entry.words.iter() {
                let of_sample = || Rarity::of(self.frequency(word.hash, memory).unwrap_or(0.0));
                rarities.entry(word.hash).or_insert_with(of_sample);
            }
            let most = logarithm((memory + before + 1) as f64);
            let own = self.weigh(entry, &rarities, most)?;
            let projected = self.projection.project(&own.vector);
            let earlier = (known.len()..).zip(&entries[..before]);
            let chosen = chosen
                .iter()
                .filter_map(|&index| Some((index, known.get(index)?)));
            // Of equal ones the first.
            let mut best: Option<(usize, Similarity)> = None;
            for (index, other) in chosen.chain(earlier) {
                let other = self.weigh(other, &rarities, most)?;
                let similarity = similarity(&own, projected.as_ref(), &other);
                if best.is_none_or(|(_, most)| similarity.value() > most.value()) {
                    best = Some((index, similarity));
                }
            }
            found.push(best);
            for word in entry.words.iter() {
                let rarity = rarities.entry(word.hash).or_default();
                *rarity = Rarity::of(rarity.traces + 1.0);
            }
        }
        Ok(found)
    }

    /// Weighs the words of a trace, which all have a rarity. `most` is the weight of a word that one trace contains.
    fn weigh<'t>(&self, trace: &'t PackedTrace, rarities: &Rarities, most: f64) -> Result<Weighed<'t>> {
        let weight = |word: &Word| most - rarities.get(&word.hash).map_or(0.0, |rarity| rarity.logarithm);
        let weights: Vec<f64> = trace.words.iter().map(weight).collect();
        let mut sums = Sums::default();
        for (word, weight) in trace.words.iter().zip(&weights) {
            sums.add(word.count.value(), word.count.value(), *weight);
        }
        let mut vector = Scaled::default();
        vector.set(&trace.vector, "vector")?;
        Ok(Weighed {
            words: &trace.words,
            length: self.projection.length_of(&vector),
            weights,
            sums,
            vector,
        })
    }
}

/// Returns the similarity of a trace, with its projected embedding, to another one.
fn similarity(trace: &Weighed, projected: Option<&Projected>, other: &Weighed) -> Similarity {
    let mut shared = Sums::default();
    let mut others = other.words.iter().peekable();
    for (word, weight) in trace.words.iter().zip(&trace.weights) {
        while others.next_if(|other| other.hash < word.hash).is_some() {}
        if let Some(other) = others.next_if(|other| other.hash == word.hash) {
            shared.add(word.count.value(), other.count.value(), *weight);
        }
    }
    let (lexical, contained) = trace.sums.compare(&other.sums, &shared);
    let embedded = || projected.map_or(0.0, |own| own.compare(&other.vector.components, other.length));
    Similarity {
        lexical,
        contained,
        embedded: (!trace.vector.components.is_empty()).then(embedded),
    }
}

/// The logarithm of a document frequency; a word that no trace contains counts as if one did.
fn logarithm(traces: f64) -> f64 {
    traces.max(1.0).ln()
}
