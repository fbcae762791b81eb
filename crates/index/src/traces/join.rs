//! The neighbours of all traces of a memory in one join over the postings, on several threads: exact, as [`TraceMemory::nearest`] finds
//! them one trace at a time.
//!
//! All rows share the weights of the words, so the lengths of the weighted traces, and their parts in common words, are computed once. A
//! row takes four steps, each of which rules out most of the remaining traces:
//!
//! 1. Adds up the postings of its rarer words. Common words, which have nearly all postings and little of the similarity, are left out.
//! 2. Bounds the similarity of every trace: by Cauchy's inequality, the common words add at most the product of the two lengths that
//!    are left out to L. Drops traces whose bound is below `count` lower bounds.
//! 3. Adds the common words, of which every trace has a list of four bytes a word.
//! 4. Compares the remaining traces in double precision, as a search does.

use std::{
    collections::BinaryHeap,
    num::NonZero,
    ops::Range,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use knowledgepulse_error::{Error, Result};
use knowledgepulse_trace::words::{MOST_WORDS, TermWeight};

use super::{
    TraceMemory, bound,
    terms::{DocumentWord, Posting},
};
use crate::{
    method::Method,
    simd,
    similarity::Sums,
    vectors::{
        scaled::Scaled,
        scan::{Collector, Found, Several},
    },
};

/// Levels of common words: in more than half of all traces level 0, in more than a quarter level 1, and so on. Rarer ones are always added up.
const LEVELS: usize = 7;

/// The length that may be left out of a row, whose whole length is 1. See DESIGN.md.
const LEFT_OUT: f32 = 0.1;

/// Covers the rounding of sums of at most 512 positive terms in single precision, in parts of the sum.
const SLACK: f32 = 1e-4;

/// The traces whose sums are added up together. They fit into the second-level cache.
const BLOCK: usize = if cfg!(test) { 16 } else { 8192 };

/// The traces whose bounds are computed together.
const BATCH: usize = 64;

/// The rows that a thread claims at a time.
const ROWS: usize = 32;

/// A word that is left out of a level has a number below 2^16: at most 480 words a trace have 2^LEVELS numbers.
const RARE: u16 = u16::MAX;

/// A trace that is similar to another one of the same memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// The number of older living traces.
    pub index: usize,
    /// The similarity: above 0, at most 1.
    pub similarity: f64,
}

/// The neighbours of a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Neighbours {
    /// The most similar other traces in the join, the most similar first, of equal ones the older.
    pub nearest: Vec<Neighbour>,
    /// The most similar trace before the join.
    pub before: Option<Neighbour>,
}

/// A common word of a trace: its number, smaller for more common words, and c(t).
#[derive(Debug, Clone, Copy)]
struct CommonWord {
    number: u16,
    count: TermWeight,
}

struct Join<'m> {
    memory: &'m TraceMemory,
    /// ln(M + 1).
    logarithm: f64,
    count: usize,
    first: usize,
    /// The sums over the words of each trace.
    sums: Vec<Sums>,
    /// 1 / |c w| of each trace; 0 without words.
    inverse_lengths: Vec<f32>,
    /// The part of each trace's length in the words of each level.
    lengths_left_out: [Vec<f32>; LEVELS],
    /// The common words of all traces.
    common: Vec<CommonWord>,
    /// The end of each trace's common words.
    ends: Vec<usize>,
    /// The number of each word by its place; [`RARE`] if it has none.
    numbers: Vec<u16>,
    /// The number of words of each level.
    words_left_out: [u16; LEVELS],
}

/// The sums of a trace.
#[derive(Debug, Clone, Copy, Default)]
struct PartialSums {
    product: f32,
    contained: f32,
}

/// A candidate for the nearest traces.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    index: usize,
    most: f32,
}

/// The words of a row by their places, in a hash table that stays in the first-level cache.
#[derive(Default)]
struct RowWords {
    /// One more than the number of the word in `words`, or 0.
    table: Vec<(u32, u32)>,
    words: Vec<(f64, f64)>,
}

impl RowWords {
    /// Twice as many as a trace has words, rounded up.
    const SLOTS: usize = (2 * MOST_WORDS).next_power_of_two();

    fn clear(&mut self) {
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

    #[allow(clippy::cast_possible_truncation)] // At most MOST_WORDS.
    fn insert(&mut self, place: u32, count: f64, weight: f64) {
        self.words.push((count, weight));
        let slot = self.slot(place);
        self.table[slot] = (place, self.words.len() as u32);
    }

    /// The count and the weight of a word.
    fn get(&self, place: u32) -> Option<(f64, f64)> {
        let number = (self.table[self.slot(place)].1 as usize).checked_sub(1)?;
        Some(self.words[number])
    }
}

/// The buffers of a thread.
#[derive(Default)]
struct Scratch {
    sums: Vec<PartialSums>,
    /// For each common word, its share of the row's L and C if another trace has it.
    shares: Vec<PartialSums>,
    candidates: Vec<Candidate>,
    /// E with every trace.
    embedded: Vec<f64>,
    products: Vec<f64>,
    scaled: Scaled,
    words: RowWords,
}

/// The `count` largest of the values that were offered.
struct Largest {
    count: usize,
    /// The bits of the values, ordered as non-negative numbers; the smallest on top.
    values: BinaryHeap<std::cmp::Reverse<u32>>,
}

impl Largest {
    fn new(count: usize) -> Self {
        let values = BinaryHeap::with_capacity(count + 1);
        Self { count, values }
    }

    /// Returns the smallest of the `count` values; 0 if there are fewer.
    fn least(&self) -> f32 {
        let least = self.values.peek().filter(|_| self.values.len() == self.count);
        least.map_or(0.0, |least| f32::from_bits(least.0))
    }

    fn offer(&mut self, value: f32) {
        if value > self.least() {
            self.values.push(std::cmp::Reverse(value.to_bits()));
            if self.values.len() > self.count {
                self.values.pop();
            }
        }
    }
}

impl TraceMemory {
    /// Finds the neighbours of all traces from index `first` on: the `count` nearest of these, and the nearest trace before `first`. `threads`
    /// is the number of threads; 0 means one for each core. `progress` gets the number of finished traces, and ends the join by returning
    /// false.
    ///
    /// # Errors
    /// [`Error::Aborted`] if `progress` says so, [`Error::OutOfMemory`].
    pub fn join(
        &mut self,
        first: usize,
        count: usize,
        threads: usize,
        progress: &(dyn Fn(usize) -> bool + Sync),
    ) -> Result<Vec<Neighbours>> {
        if self.method == Method::Full {
            self.projection.update(&mut self.sample, &self.vectors);
        }
        let join = Join::new(self, first, count);
        let rows = self.held.len().saturating_sub(first);
        let (next, done, aborted) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        let work = || -> Result<Vec<(usize, Vec<Neighbours>)>> {
            let mut scratch = Scratch::default();
            let mut parts = Vec::new();
            loop {
                let start = next.fetch_add(ROWS, Ordering::Relaxed);
                if start >= rows || aborted.load(Ordering::Relaxed) {
                    return Ok(parts);
                }
                let end = rows.min(start + ROWS);
                let part = (start..end).map(|row| join.row(first + row, &mut scratch));
                parts.push((start, part.collect::<Result<_>>()?));
                let finished = done.fetch_add(end - start, Ordering::Relaxed) + end - start;
                if !progress(finished) {
                    aborted.store(true, Ordering::Relaxed);
                    return Err(Error::Aborted);
                }
            }
        };
        let threads = match threads {
            _ if cfg!(target_family = "wasm") => 1,
            0 => thread::available_parallelism().map_or(1, NonZero::get),
            given => given,
        };
        let helpers = threads.min(rows.div_ceil(ROWS)).saturating_sub(1);
        let parts = thread::scope(|scope| {
            // If the system starts no more threads, the others do the work.
            let helpers: Vec<_> = (0..helpers)
                .filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
                .collect();
            let mut parts = vec![work()];
            for helper in helpers {
                parts.push(
                    helper
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                );
            }
            parts.into_iter().collect::<Result<Vec<_>>>()
        })?;
        let mut parts: Vec<_> = parts.into_iter().flatten().collect();
        parts.sort_unstable_by_key(|&(start, _)| start);
        Ok(parts.into_iter().flat_map(|(_, part)| part).collect())
    }
}

#[allow(clippy::cast_possible_truncation)] // To single precision, which SLACK covers, and numbers below 2^16.
impl<'m> Join<'m> {
    fn new(memory: &'m TraceMemory, first: usize, count: usize) -> Self {
        let held = memory.held.len();
        let level_of = |df: u32| (0..LEVELS).find(|level| df as usize > held >> (level + 1));
        let mut places: Vec<u32> = (0..memory.terms.count())
            .filter(|&place| level_of(memory.terms.get(place).df).is_some())
            .collect();
        places.sort_unstable_by_key(|&place| std::cmp::Reverse(memory.terms.get(place).df));
        let mut numbers = vec![RARE; memory.terms.count() as usize];
        let mut words_left_out = [0; LEVELS];
        for (number, &place) in (0..).zip(&places) {
            numbers[place as usize] = number;
            let level = level_of(memory.terms.get(place).df).unwrap_or(0);
            words_left_out[level..].fill(number + 1);
        }
        #[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
        let logarithm = ((held + 1) as f64).ln();
        let mut join = Self {
            memory,
            logarithm,
            count,
            first,
            sums: Vec::with_capacity(held),
            inverse_lengths: Vec::with_capacity(held),
            lengths_left_out: std::array::from_fn(|_| Vec::with_capacity(held)),
            common: Vec::new(),
            ends: Vec::with_capacity(held),
            numbers,
            words_left_out,
        };
        for document in &memory.held {
            let mut sums = Sums::default();
            let mut squares = [0.0; LEVELS];
            let start = join.common.len();
            for &DocumentWord { term, count } in &document.words {
                let (count_value, weight) = (count.value(), logarithm - memory.terms.get(term).logarithm);
                sums.add(count_value, count_value, weight);
                let square = (count_value * weight) * (count_value * weight);
                let number = join.numbers[term as usize];
                if number != RARE {
                    join.common.push(CommonWord { number, count });
                    for (squares, end) in squares.iter_mut().zip(join.words_left_out) {
                        *squares += if number < end { square } else { 0.0 };
                    }
                }
            }
            join.common[start..].sort_unstable_by_key(|word| word.number);
            let length = sums.product.sqrt();
            let inverse_length = if length > 0.0 { 1.0 / length } else { 0.0 };
            join.sums.push(sums);
            join.inverse_lengths.push(inverse_length as f32);
            for (lengths, squares) in join.lengths_left_out.iter_mut().zip(squares) {
                lengths.push((squares.sqrt() * inverse_length) as f32);
            }
            join.ends.push(join.common.len());
        }
        join
    }

    /// The common words of the trace at an index, the most common first.
    fn common_words(&self, index: usize) -> &[CommonWord] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.common[start..self.ends[index]]
    }

    /// Finds the neighbours of the trace at an index.
    fn row(&self, index: usize, scratch: &mut Scratch) -> Result<Neighbours> {
        let memory = self.memory;
        let sums = self.sums[index];
        let length = sums.product.sqrt();
        // Level 0 leaves out the fewest words; LEVELS means none.
        let level = (0..LEVELS)
            .rev()
            .find(|&level| self.lengths_left_out[level][index] <= LEFT_OUT);
        let left_out = level.map_or(0, |level| self.words_left_out[level]);

        scratch.shares.clear();
        scratch.shares.resize(left_out.into(), PartialSums::default());
        let mut contained = 0.0;
        let mut rare: Vec<(&[Posting], PartialSums)> = Vec::new();
        scratch.words.clear();
        for &DocumentWord { term: place, count } in &memory.held[index].words {
            let term = memory.terms.get(place);
            let (count, weight) = (count.value(), self.logarithm - term.logarithm);
            scratch.words.insert(place, count, weight);
            let share = PartialSums {
                product: (count * weight * weight / length) as f32,
                contained: (weight / sums.weight) as f32,
            };
            match scratch.shares.get_mut(usize::from(self.numbers[place as usize])) {
                Some(common) => {
                    *common = share;
                    contained += share.contained;
                }
                None => rare.push((term.postings(), share)),
            }
        }
        scratch.sums.clear();
        scratch.sums.resize(memory.held.len(), PartialSums::default());
        add_up(&mut rare, &mut scratch.sums, memory.first_slot());

        self.embed(index, scratch)?;
        let row = Row {
            join: self,
            index,
            sums,
            left_out: level.map_or(0.0, |level| self.lengths_left_out[level][index]),
            level: level.unwrap_or(0),
            end: left_out,
            contained,
            compares_all: sums.weight == 0.0 || memory.method == Method::Full,
        };
        let nearest = row.nearest(self.first..memory.held.len(), self.count, scratch)?;
        let before = row.nearest(0..self.first, 1, scratch)?.pop();
        Ok(Neighbours { nearest, before })
    }

    /// Computes E of the trace at `index` with all traces, if embeddings are compared.
    fn embed(&self, index: usize, scratch: &mut Scratch) -> Result<()> {
        let memory = self.memory;
        scratch.embedded.clear();
        let Some(entry) = memory
            .vectors
            .get(index)
            .filter(|_| memory.method == Method::Full)
        else {
            return Ok(());
        };
        let components: &[f32] = bytemuck::cast_slice(entry.components);
        scratch
            .scaled
            .set(&components[..memory.options.dimensions], "vector")?;
        let Some(projected) = memory.projection.project(&scratch.scaled) else {
            scratch.embedded.resize(memory.held.len(), 0.0);
            return Ok(());
        };
        let lengths = memory.projection.lengths(&memory.vectors);
        for run in memory.vectors.runs(0) {
            scratch.products.clear();
            scratch.products.resize(run.inverse_norms.len(), 0.0);
            simd::kernels().dots(&projected.components, run.components, &mut scratch.products);
            let start = scratch.embedded.len();
            let pairs = scratch.products.iter().zip(&lengths[start..]);
            scratch
                .embedded
                .extend(pairs.map(|(&product, &length)| projected.cosine(product, length)));
        }
        Ok(())
    }
}

/// Adds up postings, whose shares are for each trace.
fn add_up(words: &mut [(&[Posting], PartialSums)], sums: &mut [PartialSums], first: u32) {
    for (block, sums) in sums.chunks_mut(BLOCK).enumerate() {
        #[allow(clippy::cast_possible_truncation)] // Slots fit.
        let start = first + (block * BLOCK) as u32;
        for (postings, share) in &mut *words {
            let mut added = 0;
            for posting in *postings {
                let Some(sums) = sums.get_mut((posting.slot - start) as usize) else {
                    break;
                };
                sums.product += share.product * posting.count.single();
                sums.contained += share.contained;
                added += 1;
            }
            *postings = &postings[added..];
        }
    }
}

/// A row of the join after adding up its rare words.
struct Row<'j> {
    join: &'j Join<'j>,
    index: usize,
    sums: Sums,
    /// The length of its common words.
    left_out: f32,
    level: usize,
    /// The number of common words that are left out.
    end: u16,
    /// The part of C in these words.
    contained: f32,
    /// Whether a trace without shared words may be similar: both have no words, or the embeddings are similar.
    compares_all: bool,
}

#[allow(clippy::cast_possible_truncation)] // To single precision, which SLACK covers.
impl Row<'_> {
    /// The similarity that L, C and E make, in single precision.
    fn value(lexical: f32, contained: f32, embedded: Option<f64>) -> f32 {
        bound(lexical.into(), contained.into(), embedded) as f32
    }

    /// Finds the `count` nearest traces of a range.
    fn nearest(&self, range: Range<usize>, count: usize, scratch: &mut Scratch) -> Result<Vec<Neighbour>> {
        if range.is_empty() || count == 0 {
            return Ok(Vec::new());
        }
        self.bound_each(range, count, scratch);
        self.complete(count, scratch);
        let memory = self.join.memory;
        let mut collector = Several::new(count).ok_or(Error::OutOfMemory {
            dimensions: memory.options.dimensions,
        })?;
        for candidate in &scratch.candidates {
            if collector.can_win_at(candidate.index, candidate.most.into()) {
                let similarity = self.compare(candidate.index, scratch);
                if similarity > 0.0 {
                    collector.offer(Found {
                        similarity,
                        index: candidate.index,
                    });
                }
            }
        }
        let found = collector.into_sorted();
        Ok(found
            .map(|found| Neighbour {
                index: found.index,
                similarity: found.similarity,
            })
            .collect())
    }

    /// Collects the traces of a range whose similarity may be among the largest, with their upper bounds.
    fn bound_each(&self, range: Range<usize>, count: usize, scratch: &mut Scratch) {
        let mut largest = Largest::new(count);
        scratch.candidates.clear();
        let lengths_left_out = &self.join.lengths_left_out[self.level];
        let mut bounds = [0.0; BATCH];
        for start in range.clone().step_by(BATCH) {
            let batch = start..range.end.min(start + BATCH);
            let columns = self.join.inverse_lengths[batch.clone()]
                .iter()
                .zip(&lengths_left_out[batch.clone()])
                .zip(&scratch.sums[batch.clone()]);
            let threshold = largest.least();
            let mut could_win = false;
            for (most, ((inverse_length, left_out), sums)) in bounds.iter_mut().zip(columns) {
                let lexical = (sums.product * inverse_length + self.left_out * left_out) * (1.0 + SLACK);
                let contained = sums.contained * (1.0 + SLACK) + self.contained;
                let squared = contained * contained;
                // A trace without shared words has C = 0.
                let power = squared * squared;
                let larger = if lexical > power { lexical } else { power };
                *most = if lexical > 0.0 { larger } else { 0.0 };
                could_win |= *most > 0.0 && *most >= threshold;
            }
            if !could_win && !self.compares_all {
                continue;
            }
            for (index, &most) in batch.zip(&bounds) {
                let embedded = scratch.embedded.get(index).copied();
                let most = match embedded {
                    // Traces without words are alike.
                    _ if self.sums.weight == 0.0 => 1.0,
                    // This exceeds the bound by C, because E counts less than L.
                    Some(embedded) => most.max(Self::value(most, 0.0, Some(embedded)) * (1.0 + SLACK)),
                    None => most,
                };
                if most <= 0.0 || most < largest.least() || index == self.index {
                    continue;
                }
                scratch.candidates.push(Candidate { index, most });
                let sums = scratch.sums[index];
                let lexical = sums.product * self.join.inverse_lengths[index];
                largest.offer(Self::value(lexical, sums.contained, embedded) * (1.0 - 5.0 * SLACK));
            }
        }
        let threshold = largest.least();
        scratch.candidates.retain(|candidate| candidate.most >= threshold);
    }

    /// Adds the common words, and drops candidates that cannot be among the nearest.
    fn complete(&self, count: usize, scratch: &mut Scratch) {
        let mut largest = Largest::new(count);
        for candidate in &mut scratch.candidates {
            let index = candidate.index;
            if candidate.most < largest.least() {
                candidate.most = -1.0;
                continue;
            }
            let mut sums = scratch.sums[index];
            for word in self.join.common_words(index) {
                if word.number >= self.end {
                    break;
                }
                let share = scratch.shares[usize::from(word.number)];
                sums.product += share.product * word.count.single();
                // A share of 0 belongs to a word that the row lacks.
                sums.contained += share.contained;
            }
            let lexical = sums.product * self.join.inverse_lengths[index];
            let embedded = scratch.embedded.get(index).copied();
            if self.sums.weight > 0.0 {
                let value = Self::value(lexical, sums.contained, embedded);
                candidate.most = value * (1.0 + 5.0 * SLACK);
                largest.offer(value * (1.0 - 5.0 * SLACK));
            }
        }
        let threshold = largest.least();
        scratch.candidates.retain(|candidate| candidate.most >= threshold);
    }

    /// Compares with the trace at an index, in double precision.
    fn compare(&self, index: usize, scratch: &Scratch) -> f64 {
        let memory = self.join.memory;
        let mut shared = Sums::default();
        for &DocumentWord { term, count } in &memory.held[index].words {
            if let Some((own, weight)) = scratch.words.get(term) {
                shared.add(own, count.value(), weight);
            }
        }
        let (lexical, contained) = self.sums.compare(&self.join.sums[index], &shared);
        bound(lexical, contained, scratch.embedded.get(index).copied())
    }
}
