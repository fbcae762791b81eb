//! Candidates for the nearest trace in a store, by its postings.
//!
//! A store keeps postings in blocks of one word and a fixed number of neighbouring positions. The postings of several words are
//! concatenated:
//!
//! | bytes       | what                                                                                    |
//! | ----------- | --------------------------------------------------------------------------------------- |
//! | 4           | which word it is: its number in [`CandidateQuery::words`]                                       |
//! | 4           | how many bytes follow                                                                   |
//! | 4 per block | the highest bit, which no posting has, and the number of the block; after that its own: |
//! | 4 per trace | 2 for the distance to the first position of the block, 2 for the [weight](super::statistics::WEIGHT_PARTS) |
//!
//! All of it is big-endian, as a database writes numbers.

use std::{cmp::Reverse, collections::HashMap, hash::BuildHasherDefault, ops::Range};

use knowledgepulse_error::{Error, Result};

use super::{
    statistics::{PackedTrace, Statistics},
    terms::Hashed,
};
use crate::top::Top;

/// The words to look up for some traces.
#[derive(Debug, Clone, Default)]
pub struct CandidateQuery {
    /// All of them.
    pub words: Vec<u64>,
    /// For each trace, the numbers and weights of its words.
    queries: Vec<Vec<(u32, f32)>>,
}

/// Postings, and the beginnings of blocks.
type Units = [[u8; 4]];

/// The postings of a word in a range of positions.
struct Block<'b> {
    first: u64,
    word: u32,
    postings: &'b Units,
}

impl CandidateQuery {
    /// Chooses the words for `traces`, at most `most` each, with about `budget` postings together in a memory of `memory` traces.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // An estimate, and numbers of words: 2^32 would take 32 GB.
    pub fn of(
        traces: &[PackedTrace],
        statistics: &Statistics,
        most: usize,
        budget: f64,
        memory: f64,
    ) -> Self {
        let mut numbers: HashMap<u64, u32, BuildHasherDefault<Hashed>> = HashMap::default();
        let mut words = Vec::new();
        let mut number = |hash| {
            *numbers.entry(hash).or_insert_with(|| {
                words.push(hash);
                (words.len() - 1) as u32
            })
        };
        let queries = traces
            .iter()
            .map(|trace| {
                let chosen = statistics.looked_for_by(&trace.words, most, budget, memory);
                let query = chosen
                    .into_iter()
                    .map(|(hash, weight)| (number(hash), weight as f32));
                query.collect()
            })
            .collect();
        Self { words, queries }
    }

    /// Returns for each trace the `count` `positions` with the largest sums, the largest first, of equal ones the older, from postings in blocks
    /// of `block` positions.
    ///
    /// # Errors
    /// [`Error::TraceDamaged`] if `postings` cannot be what a store has answered.
    pub fn candidates(
        &self,
        postings: &[u8],
        block: u32,
        positions: &Range<u64>,
        count: usize,
    ) -> Result<Vec<Vec<u64>>> {
        let mut blocks = self.blocks(postings, u64::from(block))?;
        // Sorted, so that sums have the same bits in any order of blocks.
        blocks.sort_unstable_by_key(|block| (block.first, block.word));
        let mut weights = vec![0.0; self.words.len()];
        let mut sums = Vec::new();
        let candidates = self.queries.iter().map(|query| {
            for &(word, weight) in query {
                weights[word as usize] = weight;
            }
            // Of equal sums the smaller position is larger. The bits of sums from 0 on have their order.
            let mut best = Top::new(count).ok_or(Error::OutOfMemory { dimensions: count })?;
            for stretch in blocks.chunk_by(|one, other| one.first == other.first) {
                add_up(stretch, &weights, &mut sums);
                for (position, &sum) in (stretch[0].first..).zip(&sums) {
                    if sum > 0.0 && positions.contains(&position) {
                        best.offer((sum.to_bits(), Reverse(position)));
                    }
                }
            }
            for &(word, _) in query {
                weights[word as usize] = 0.0;
            }
            Ok(best
                .into_sorted()
                .map(|(_, Reverse(position))| position)
                .collect())
        });
        candidates.collect()
    }

    fn blocks<'b>(&self, mut postings: &'b [u8], size: u64) -> Result<Vec<Block<'b>>> {
        let mut blocks = Vec::new();
        while !postings.is_empty() {
            let (word, units, rest) = self.first_word(postings).ok_or(Error::TraceDamaged)?;
            for units in units.chunk_by(|_, next| next[0] < 0x80) {
                let Some(([high, more @ ..], postings)) =
                    units.split_first().filter(|(unit, _)| unit[0] >= 0x80)
                else {
                    return Err(Error::TraceDamaged);
                };
                let number = u32::from_be_bytes([high & 0x7f, more[0], more[1], more[2]]);
                blocks.push(Block {
                    first: u64::from(number) * size,
                    word,
                    postings,
                });
            }
            postings = rest;
        }
        Ok(blocks)
    }

    /// Splits off the first word: its number, its blocks, and the rest.
    fn first_word<'b>(&self, postings: &'b [u8]) -> Option<(u32, &'b Units, &'b [u8])> {
        let (&word, rest) = postings.split_first_chunk::<4>()?;
        let (&length, rest) = rest.split_first_chunk::<4>()?;
        let (own, rest) = rest.split_at_checked(u32::from_be_bytes(length) as usize)?;
        let (own, []) = own.as_chunks::<4>() else {
            return None;
        };
        let word = u32::from_be_bytes(word);
        ((word as usize) < self.words.len()).then_some((word, own, rest))
    }
}

/// The sums of the products of the weights, for each distance to the first position of some blocks.
fn add_up(blocks: &[Block], weights: &[f32], sums: &mut Vec<f32>) {
    sums.clear();
    for block in blocks {
        let weight = weights[block.word as usize];
        if weight <= 0.0 {
            continue;
        }
        for &[high, low, parts, more] in block.postings {
            let distance = usize::from(u16::from_be_bytes([high, low]));
            if distance >= sums.len() {
                sums.resize(distance + 1, 0.0);
            }
            sums[distance] += weight * f32::from(u16::from_be_bytes([parts, more]));
        }
    }
}
