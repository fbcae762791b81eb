//! The neighbours of all traces of a memory in one join over the postings, on several threads: exact, as [`TraceMemory::nearest`] finds
//! them one trace at a time.
//!
//! All rows share the weights of the words, so the lengths of the weighted traces, and their parts in common words, are computed once. A
//! row takes five steps, each of which rules out most of the remaining traces:
//!
//! 1. Adds up the postings of its rarer words. Common words, which have nearly all postings and little of the similarity, are left out.
//! 2. Completes the `count` most promising traces. The least of their similarities rules out others. If it is small beside what is left out,
//!    adds up the postings of more words.
//! 3. Bounds the similarity of every trace: by Cauchy's inequality, the common words add at most the product of the two lengths that
//!    are left out to L.
//! 4. Completes the traces whose bound is large enough with the common words, of which every trace has a list of four bytes a word.
//! 5. Compares the remaining traces in double precision, as a search does.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
};

use knowledgepulse_error::{Error, Result};
use knowledgepulse_os as os;
use knowledgepulse_trace::words::{MOST_WORDS, TermWeight};

use super::{
    TraceMemory,
    terms::{Known, PartialSums, RARE, add_up},
};
use crate::{
    document::DocumentWord,
    method::Method,
    parallel::for_each,
    scaled::Scaled,
    scan::Neighbour,
    similarity::{Sums, combine},
    top::Top,
};

/// Level 0 leaves out no words, level 1 those of more than half of all traces, level 2 those of more than a quarter, and so on.
const LEVELS: usize = 8;

/// The length that is left out of a row at first, at most, when its whole length is 1. See "The join" in crates/score/DESIGN.md.
const LEFT_OUT: f32 = 0.7;

/// The square of the length that is left out in the end, at most, in parts of the least similarity of a neighbour. See there.
const SQUARE_LEFT_OUT: f32 = 0.5;

/// Covers the rounding of sums of at most 512 positive terms in single precision, in parts of the sum.
const SLACK: f32 = 1e-4;

/// The traces whose bounds are computed together.
const BATCH: usize = 64;

/// The rows that a thread claims at a time.
const ROWS: usize = 32;

/// The neighbours of a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Neighbours {
    /// The most similar other traces in the join, the most similar first, of equal ones the older. Their similarity is above 0. The first
    /// trace in the join has index 0.
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
    /// The part of each trace's length that each level leaves out.
    lengths_left_out: [Vec<f32>; LEVELS],
    /// The common words of all traces.
    common: Vec<CommonWord>,
    /// The end of each trace's common words.
    ends: Vec<usize>,
    /// The number of each word by its place; [`RARE`] if it has none.
    numbers: Vec<u16>,
    /// The number of words that each level leaves out.
    words_left_out: [u16; LEVELS],
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
    scaled: Scaled,
    words: RowWords,
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
            self.projection.update(&self.vectors);
        }
        let join = Join::new(self, first, count);
        let rows = self.held.len().saturating_sub(first);
        let threads = os::threads(threads).min(rows.div_ceil(ROWS));
        let mut found = vec![Neighbours::default(); rows];
        let parts = (first..).step_by(ROWS).zip(found.chunks_mut(ROWS));
        let done = AtomicUsize::new(0);
        for_each(threads, parts, Scratch::default, |scratch, (start, part)| {
            for (index, row) in (start..).zip(&mut *part) {
                *row = join.neighbours(index, scratch)?;
            }
            let finished = done.fetch_add(part.len(), Ordering::Relaxed) + part.len();
            if progress(finished) {
                Ok(())
            } else {
                Err(Error::Aborted)
            }
        })?;
        Ok(found)
    }
}

#[allow(clippy::cast_possible_truncation)] // To single precision, which SLACK covers, and numbers below 2^16.
impl<'m> Join<'m> {
    fn new(memory: &'m TraceMemory, first: usize, count: usize) -> Self {
        let held = memory.held.len();
        let level_of = |df: u32| (1..LEVELS).find(|level| df as usize > held >> level);
        let mut places: Vec<u32> = (0..memory.terms.count())
            .filter(|&place| level_of(memory.terms.get(place).df).is_some())
            .collect();
        places.sort_unstable_by_key(|&place| std::cmp::Reverse(memory.terms.get(place).df));
        let mut numbers = vec![RARE; memory.terms.count() as usize];
        let mut words_left_out = [0; LEVELS];
        for (number, &place) in (0..).zip(&places) {
            numbers[place as usize] = number;
            if let Some(level) = level_of(memory.terms.get(place).df) {
                words_left_out[level..].fill(number + 1);
            }
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
    fn neighbours(&self, index: usize, scratch: &mut Scratch) -> Result<Neighbours> {
        self.embed(index, scratch)?;
        let mut row = self.row(index, scratch);
        let nearest = row.nearest(self.first..self.memory.held.len(), self.count, scratch)?;
        let before = row.nearest(0..self.first, 1, scratch)?.pop();
        Ok(Neighbours { nearest, before })
    }

    /// Begins a row: adds up the words that are not left out at first.
    fn row(&self, index: usize, scratch: &mut Scratch) -> Row<'_> {
        let memory = self.memory;
        let sums = self.sums[index];
        let length = sums.product.sqrt();
        scratch.shares.clear();
        scratch
            .shares
            .resize(self.words_left_out[LEVELS - 1].into(), PartialSums::default());
        scratch.words.clear();
        let mut words = Vec::with_capacity(memory.held[index].words.len());
        for &DocumentWord { term: place, count } in &memory.held[index].words {
            let term = memory.terms.get(place);
            let (count, weight) = (count.value(), self.logarithm - term.logarithm);
            scratch.words.insert(place, count, weight);
            let share = PartialSums {
                product: (count * weight * weight / length) as f32,
                contained: (weight / sums.weight) as f32,
            };
            let number = self.numbers[place as usize];
            if let Some(common) = scratch.shares.get_mut(usize::from(number)) {
                *common = share;
            }
            words.push(Known {
                number,
                share,
                postings: term.postings(),
            });
        }
        words.sort_unstable_by_key(|word| word.number);
        scratch.sums.clear();
        scratch.sums.resize(memory.held.len(), PartialSums::default());
        let mut row = Row {
            join: self,
            index,
            sums,
            words,
            level: LEVELS - 1,
            contained: 0.0,
            compares_all: sums.weight == 0.0 || memory.method == Method::Full,
        };
        row.leave_out(LEFT_OUT, scratch);
        row
    }

    /// Computes E of the trace at `index` with all traces, if embeddings are compared.
    fn embed(&self, index: usize, scratch: &mut Scratch) -> Result<()> {
        let memory = self.memory;
        scratch.embedded.clear();
        let row = memory.vectors.get(index);
        let Some(row) = row.filter(|_| memory.method == Method::Full) else {
            return Ok(());
        };
        scratch.scaled.set(&memory.vectors.components(row), "vector")?;
        let Some(projected) = memory.projection.project(&scratch.scaled) else {
            scratch.embedded.resize(memory.held.len(), 0.0);
            return Ok(());
        };
        let lengths = memory.projection.lengths(&memory.vectors);
        let embedded = projected.compare_all(&memory.vectors, lengths, 1);
        scratch.embedded = embedded.ok_or_else(|| memory.options.out_of_memory())?;
        Ok(())
    }
}

/// A row of the join.
struct Row<'j> {
    join: &'j Join<'j>,
    index: usize,
    sums: Sums,
    /// The words that are left out, the most common first.
    words: Vec<Known<'j>>,
    /// The level that leaves these out.
    level: usize,
    /// The part of C in these words.
    contained: f32,
    /// Whether a trace without shared words may be similar: both have no words, or the embeddings are similar.
    compares_all: bool,
}

#[allow(clippy::cast_possible_truncation)] // To single precision, which SLACK covers.
impl Row<'_> {
    /// Adds up all words but the most common ones, as many levels of them as have a length of at most `most`.
    fn leave_out(&mut self, most: f32, scratch: &mut Scratch) {
        let lengths = &self.join.lengths_left_out;
        self.level = (1..=self.level)
            .rev()
            .find(|&level| lengths[level][self.index] <= most)
            .unwrap_or(0);
        let end = self.join.words_left_out[self.level];
        let left = self.words.partition_point(|word| word.number < end);
        add_up(
            &mut self.words[left..],
            &mut scratch.sums,
            self.join.memory.first_slot(),
        );
        self.words.truncate(left);
        self.contained = self.words.iter().map(|word| word.share.contained).sum();
    }

    /// The similarity that L, C and E make, in single precision.
    fn value(lexical: f32, contained: f32, embedded: Option<f64>) -> f32 {
        combine(lexical.into(), contained.into(), embedded) as f32
    }

    /// Finds the `count` nearest traces of a range.
    fn nearest(
        &mut self,
        range: Range<usize>,
        count: usize,
        scratch: &mut Scratch,
    ) -> Result<Vec<Neighbour>> {
        if range.is_empty() || count == 0 {
            return Ok(Vec::new());
        }
        let out_of_memory = || Error::OutOfMemory {
            dimensions: self.join.memory.options.dimensions,
        };
        let promising = Top::new(count).ok_or_else(out_of_memory)?;
        let least = self.least_of_promising(range.clone(), promising, scratch);
        let first = range.start;
        self.leave_out((SQUARE_LEFT_OUT * least).sqrt(), scratch);
        self.bound_each(range, least, scratch);
        self.complete(Top::new(count).ok_or_else(out_of_memory)?, scratch);
        let mut collector = Top::new(count).ok_or_else(out_of_memory)?;
        for candidate in &scratch.candidates {
            if collector.can_win_at(candidate.index, candidate.most.into()) {
                let similarity = self.compare(candidate.index, scratch);
                if similarity > 0.0 {
                    collector.offer(Neighbour {
                        similarity,
                        index: candidate.index,
                    });
                }
            }
        }
        let found = collector.into_sorted();
        Ok(found
            .map(|found| Neighbour {
                index: found.index - first,
                ..found
            })
            .collect())
    }

    /// Returns a lower bound of the similarity of the last of the nearest traces of a range: the least similarity of as many traces with the
    /// largest cosines of the words that were added up; 0 if there are fewer.
    fn least_of_promising(&self, range: Range<usize>, mut top: Top<(u32, usize)>, scratch: &Scratch) -> f32 {
        let inverse_lengths = &self.join.inverse_lengths;
        let fill = |batch: Range<usize>, cosines: &mut [f32]| {
            let columns = inverse_lengths[batch.clone()].iter().zip(&scratch.sums[batch]);
            for (cosine, (inverse_length, sums)) in cosines.iter_mut().zip(columns) {
                *cosine = sums.product * inverse_length;
            }
        };
        self.for_each_from(0.0, range, &scratch.embedded, fill, |index, cosine| {
            top.offer((cosine.to_bits(), index));
            top.least().map_or(0.0, |&(least, _)| f32::from_bits(least))
        });
        if top.least().is_none() {
            return 0.0;
        }
        let values = top
            .into_sorted()
            .map(|(_, index)| self.complete_one(index, scratch));
        values.fold(f32::INFINITY, f32::min) * (1.0 - 5.0 * SLACK)
    }

    /// Collects the traces of a range whose similarity may be at least `least`, with their upper bounds.
    fn bound_each(&self, range: Range<usize>, least: f32, scratch: &mut Scratch) {
        let Scratch {
            sums,
            candidates,
            embedded,
            ..
        } = scratch;
        let inverse_lengths = &self.join.inverse_lengths;
        let lengths_left_out = &self.join.lengths_left_out[self.level];
        let own_left_out = lengths_left_out[self.index];
        let fill = |batch: Range<usize>, bounds: &mut [f32]| {
            let columns = inverse_lengths[batch.clone()]
                .iter()
                .zip(&lengths_left_out[batch.clone()])
                .zip(&sums[batch]);
            for (most, ((inverse_length, left_out), sums)) in bounds.iter_mut().zip(columns) {
                let lexical = (sums.product * inverse_length + own_left_out * left_out) * (1.0 + SLACK);
                let contained = sums.contained * (1.0 + SLACK) + self.contained;
                let squared = contained * contained;
                // A trace without shared words has C = 0.
                let power = squared * squared;
                let larger = if lexical > power { lexical } else { power };
                *most = if lexical > 0.0 { larger } else { 0.0 };
            }
        };
        candidates.clear();
        self.for_each_from(least, range, embedded, fill, |index, most| {
            candidates.push(Candidate { index, most });
            least
        });
    }

    /// Calls `take` for each other trace of a range whose value is above 0, and at least `least` or what `take` returned last. `fill` computes
    /// L and C of a batch, to which E is added.
    fn for_each_from(
        &self,
        mut least: f32,
        range: Range<usize>,
        embedded: &[f64],
        fill: impl Fn(Range<usize>, &mut [f32]),
        mut take: impl FnMut(usize, f32) -> f32,
    ) {
        let mut values = [0.0; BATCH];
        for start in range.clone().step_by(BATCH) {
            let batch = start..range.end.min(start + BATCH);
            let values = &mut values[..batch.len()];
            fill(batch.clone(), values);
            if self.compares_all {
                for (index, value) in batch.clone().zip(&mut *values) {
                    *value = match embedded.get(index) {
                        // Traces without words are alike.
                        _ if self.sums.weight == 0.0 => 1.0,
                        // This exceeds the bound by C, because E counts less than L.
                        Some(&embedded) => {
                            value.max(Self::value(*value, 0.0, Some(embedded)) * (1.0 + SLACK))
                        }
                        None => *value,
                    };
                }
            }
            least = least.max(f32::MIN_POSITIVE);
            // Without a branch for each value, most batches are ruled out quickly.
            if values.iter().fold(false, |any, &value| any | (value >= least)) {
                for (index, &value) in batch.zip(&*values) {
                    if value >= least && index != self.index {
                        least = take(index, value).max(f32::MIN_POSITIVE);
                    }
                }
            }
        }
    }

    /// Adds the words that are left out, for the trace at an index. Returns its similarity in single precision.
    fn complete_one(&self, index: usize, scratch: &Scratch) -> f32 {
        let mut sums = scratch.sums[index];
        let end = self.join.words_left_out[self.level];
        for word in self.join.common_words(index) {
            if word.number >= end {
                break;
            }
            let share = scratch.shares[usize::from(word.number)];
            sums.product += share.product * word.count.single();
            // A share of 0 belongs to a word that the row lacks.
            sums.contained += share.contained;
        }
        let lexical = sums.product * self.join.inverse_lengths[index];
        Self::value(lexical, sums.contained, scratch.embedded.get(index).copied())
    }

    /// Adds the words that are left out, and drops candidates that cannot be among the nearest.
    fn complete(&self, mut largest: Top<u32>, scratch: &mut Scratch) {
        // Traces without words are alike.
        if self.sums.weight == 0.0 {
            return;
        }
        // The bits of numbers from 0 on have their order.
        let least = |largest: &Top<u32>| largest.least().map_or(0.0, |&least| f32::from_bits(least));
        let mut candidates = std::mem::take(&mut scratch.candidates);
        candidates.retain_mut(|candidate| {
            if candidate.most < least(&largest) {
                return false;
            }
            let value = self.complete_one(candidate.index, scratch);
            candidate.most = (value * (1.0 + 5.0 * SLACK)).min(1.0);
            largest.offer((value * (1.0 - 5.0 * SLACK)).to_bits());
            true
        });
        let threshold = least(&largest);
        candidates.retain(|candidate| candidate.most >= threshold);
        scratch.candidates = candidates;
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
        combine(lexical, contained, scratch.embedded.get(index).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{options::MemoryOptions, similarity::Similarity, traces::TraceEntry};
    use knowledgepulse_trace::{fixtures::with_texts, words::Words};
    use std::time::Instant;

    const TRACES: usize = 300;

    /// Words of every document frequency, and a trace that others contain, one of rare words alone, and one without words.
    fn text(number: usize) -> String {
        match number {
            1 => "every half1".into(),
            2 => "pair1 own2".into(),
            3 => String::new(),
            // More words than half of the slots of a row.
            4 | 5 => (0..500).map(|word| format!("every long{word} ")).collect(),
            _ => format!(
                "every half{} third{} tenth{} pair{} own{number}",
                number % 2,
                number % 3,
                number % 10,
                number / 2
            ),
        }
    }

    fn vector(number: usize) -> [f32; 3] {
        [0.1, 0.7, 1.3].map(|phase| (number as f32 * 0.37 + phase * (number % 7) as f32).sin())
    }

    fn memory(method: Method) -> TraceMemory {
        let options = MemoryOptions {
            dimensions: 3,
            ..MemoryOptions::default()
        };
        let mut memory = TraceMemory::new(method, options);
        for number in 0..TRACES {
            with_entry(number, |entry| memory.add(entry, Instant::now()).unwrap());
        }
        memory
    }

    fn with_entry<T>(number: usize, act: impl FnOnce(TraceEntry) -> T) -> T {
        let words = Words::of(&with_texts(&text(number), &[]));
        act(TraceEntry {
            words: &words,
            vector: Some(&vector(number)),
            label: None,
            model: None,
        })
    }

    /// The similarities of a trace to all, by a search.
    fn similarities(memory: &mut TraceMemory, number: usize) -> Vec<Similarity> {
        let mut found = with_entry(number, |entry| memory.nearest(entry, TRACES, Instant::now())).unwrap();
        found.sort_by_key(|found| found.index);
        found.into_iter().map(|found| found.similarity).collect()
    }

    #[test]
    fn each_step_of_a_row_bounds_the_similarities() {
        const COUNT: usize = 4;
        for method in [Method::Lexical, Method::Full] {
            let mut memory = memory(method);
            // All bounds of a trace without words are 1.
            for number in [0, 1, 2, 4, 6, 7].into_iter().chain((8..TRACES).step_by(23)) {
                let similarities = similarities(&mut memory, number);
                let value = |index: usize| similarities[index].value();
                let others = || (0..TRACES).filter(|&index| index != number);
                let mut values: Vec<_> = others().map(value).collect();
                values.sort_by(|one, other| other.total_cmp(one));
                let last = values[COUNT - 1];

                let join = Join::new(&memory, 0, COUNT);
                let mut scratch = Scratch::default();
                join.embed(number, &mut scratch).unwrap();
                let mut row = join.row(number, &mut scratch);
                let least_similarity = |row: &Row, scratch: &Scratch| {
                    f64::from(row.least_of_promising(0..TRACES, Top::new(COUNT).unwrap(), scratch))
                };
                assert!(least_similarity(&row, &scratch) <= last, "{number}");

                for most in [LEFT_OUT, 0.3, 0.0] {
                    row.leave_out(most, &mut scratch);
                    row.bound_each(0..TRACES, 0.0, &mut scratch);
                    let mut bounds = vec![0.0; TRACES];
                    for candidate in &scratch.candidates {
                        bounds[candidate.index] = f64::from(candidate.most);
                    }
                    for index in others() {
                        let bound = bounds[index];
                        assert!(bound >= value(index), "{number} {index} {bound}");
                        let Similarity {
                            lexical,
                            contained,
                            embedded,
                        } = similarities[index];
                        // With all words added.
                        if most == 0.0 {
                            let larger = combine(lexical, contained, None);
                            let closest = larger.max(combine(larger, 0.0, embedded));
                            assert!(
                                bound <= closest * (1.0 + 6.0 * f64::from(SLACK)),
                                "{number} {index} {bound}"
                            );
                        }
                        // The bound by left out words is 0 where a trace has none.
                        if index == 2 && method == Method::Lexical && lexical == 0.0 {
                            assert_eq!(bound, 0.0, "{number}");
                        }
                    }
                }

                let least = least_similarity(&row, &scratch);
                assert!(least <= last && least >= 0.7 * last, "{number} {least} {last}");

                let row = join.row(number, &mut scratch);
                row.bound_each(0..TRACES, 0.0, &mut scratch);
                row.complete(Top::new(COUNT).unwrap(), &mut scratch);
                let kept = |index| {
                    scratch
                        .candidates
                        .iter()
                        .find(|candidate| candidate.index == index)
                };
                for index in others() {
                    let most = kept(index).map(|candidate| f64::from(candidate.most));
                    let slack = 12.0 * f64::from(SLACK);
                    assert!(
                        most.is_some() || value(index) < last.max(f64::MIN_POSITIVE),
                        "{number} {index}"
                    );
                    assert!(
                        most.is_none_or(|most| (value(index)..=value(index) * (1.0 + slack)).contains(&most))
                    );
                    assert!(
                        most.is_none() || value(index) > last * (1.0 - slack),
                        "{number} {index}"
                    );
                }
            }
        }
    }

    #[test]
    fn join_finds_what_searches_find() {
        for method in [Method::Lexical, Method::Full] {
            let mut memory = memory(method);
            for (first, count) in [(0, 3), (100, 1)] {
                let found = memory.join(first, count, 2, &|_| true).unwrap();
                for (number, neighbours) in (first..).zip(found) {
                    let similarities = similarities(&mut memory, number);
                    let nearest = |range: Range<usize>, count| {
                        let start = range.start;
                        let others = range.filter(|&other| other != number);
                        let mut nearest: Vec<_> = others
                            .map(|index| Neighbour {
                                index: index - start,
                                similarity: similarities[index].value(),
                            })
                            .filter(|neighbour| neighbour.similarity > 0.0)
                            .collect();
                        nearest.sort_by(|one, other| other.similarity.total_cmp(&one.similarity));
                        nearest.truncate(count);
                        nearest
                    };
                    let expected = Neighbours {
                        nearest: nearest(first..TRACES, count),
                        before: nearest(0..first, 1).pop(),
                    };
                    assert_eq!(neighbours, expected, "{number}");
                }
            }
        }
    }
}
