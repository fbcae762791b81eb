//! The neighbours of all traces of a memory, on several threads. Up to [`COMPARED`] traces all are compared; among more, candidates are found as
//! a store finds them: a trace is indexed by its heaviest words, a row looks up its own heaviest words, and compares the traces with the
//! largest products. The cost of a row does not depend on the number of traces. "The join" in crates/score/DESIGN.md has the figures.
//!
//! Words alone are compared by the cosine of √c(t) · w(t), which suits a set better than novelty does; with embeddings by the
//! [`similarity`](crate::similarity) of novelty.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
};

use knowledgepulse_error::{Error, Result};
use knowledgepulse_os::{self as os, parallel::for_each};
use knowledgepulse_trace::words::TermWeight;

use super::{TraceMemory, placed::PlacedWords, projection::Projected};
use crate::{
    document::DocumentWord,
    method::Method,
    scaled::Scaled,
    scan::Neighbour,
    similarity::{Sums, combine},
    top::Top,
};

/// The heaviest words of a trace, by which it is found.
const INDEXED: usize = 48;

/// The most words that a row looks up.
const ASKED_WORDS: usize = 256;

/// The most entries that a row looks up: of a word that more traces have, the oldest ones.
const ASKED_TRACES: usize = 12_000;

/// The traces that a row is compared with.
const COMPARED: usize = 96;

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

/// A word of a trace: its place, and its part of the trace's length, which is 1.
#[derive(Debug, Clone, Copy)]
struct Share {
    place: u32,
    part: f32,
}

/// A trace that is found by a word.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    index: u32,
    part: f32,
}

struct Join<'m> {
    memory: &'m TraceMemory,
    /// ln(M + 1).
    logarithm: f64,
    count: usize,
    first: usize,
    /// The sums over the words of each trace.
    sums: Vec<Sums>,
    /// The entries of all words, one word after another, the oldest trace first.
    entries: Vec<Entry>,
    /// The beginning of each word's entries.
    starts: Vec<usize>,
    /// The traces without words.
    wordless: Vec<u32>,
}

/// The buffers of a thread.
#[derive(Default)]
struct Scratch {
    /// The product of the row with each trace, over the words that were looked up.
    products: Vec<f32>,
    /// The traces whose product is not 0.
    found: Vec<u32>,
    words: PlacedWords,
    /// The embedding of the row, if embeddings are compared.
    scaled: Scaled,
    projected: Option<Projected>,
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

#[allow(clippy::cast_possible_truncation)] // Slots fit in 32 bits, and candidates are found in single precision.
impl<'m> Join<'m> {
    fn new(memory: &'m TraceMemory, first: usize, count: usize) -> Self {
        #[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
        let logarithm = ((memory.held.len() + 1) as f64).ln();
        let mut join = Self {
            memory,
            logarithm,
            count,
            first,
            sums: Vec::with_capacity(memory.held.len()),
            entries: Vec::new(),
            starts: vec![0; memory.terms.count() as usize + 1],
            wordless: Vec::new(),
        };
        for (index, document) in (0..).zip(&memory.held) {
            let mut sums = Sums::default();
            for &DocumentWord { term, count } in &document.words {
                let count = join.count_of(count);
                sums.add(count, count, join.weight_of(term));
            }
            join.sums.push(sums);
            if sums.weight == 0.0 {
                join.wordless.push(index);
            }
        }
        let mut indexed = Vec::new();
        for index in 0..memory.held.len() {
            for share in join.heaviest(index, INDEXED) {
                join.starts[share.place as usize + 1] += 1;
                indexed.push((index as u32, share));
            }
        }
        for place in 1..join.starts.len() {
            join.starts[place] += join.starts[place - 1];
        }
        let mut next = join.starts.clone();
        join.entries = vec![Entry::default(); indexed.len()];
        for (index, Share { place, part }) in indexed {
            let next = &mut next[place as usize];
            join.entries[*next] = Entry { index, part };
            *next += 1;
        }
        join
    }

    fn weight_of(&self, place: u32) -> f64 {
        self.logarithm - self.memory.terms.logarithm(place)
    }

    /// How a word with this c(t) counts.
    fn count_of(&self, count: TermWeight) -> f64 {
        match self.memory.method {
            Method::Full => count.value(),
            _ => count.value().sqrt(),
        }
    }

    /// Returns the words of a trace that add most to its length, at most `most`, the heaviest first.
    fn heaviest(&self, index: usize, most: usize) -> Vec<Share> {
        let inverse_length = self.sums[index].product.sqrt().recip();
        let share = |word: &DocumentWord| Share {
            place: word.term,
            part: (self.count_of(word.count) * self.weight_of(word.term) * inverse_length) as f32,
        };
        let words = &self.memory.held[index].words;
        let mut shares: Vec<_> = words.iter().map(share).enumerate().collect();
        // Of equal ones the smaller hash, in whose order the words are.
        shares.sort_unstable_by(|one, other| {
            let by_part = other.1.part.total_cmp(&one.1.part);
            by_part.then(one.0.cmp(&other.0))
        });
        shares.truncate(most);
        shares.into_iter().map(|(_, share)| share).collect()
    }

    /// Finds the neighbours of the trace at an index.
    fn neighbours(&self, index: usize, scratch: &mut Scratch) -> Result<Neighbours> {
        self.begin(index, scratch)?;
        self.look_up(index, scratch);
        let nearest = self.nearest(index, self.first..self.memory.held.len(), self.count, scratch)?;
        let before = self.nearest(index, 0..self.first, 1, scratch)?.pop();
        for &found in &scratch.found {
            scratch.products[found as usize] = 0.0;
        }
        Ok(Neighbours { nearest, before })
    }

    /// Prepares comparisons with the trace at an index.
    fn begin(&self, index: usize, scratch: &mut Scratch) -> Result<()> {
        scratch.words.clear();
        for &DocumentWord { term, count } in &self.memory.held[index].words {
            scratch
                .words
                .insert(term, self.count_of(count), self.weight_of(term));
        }
        let row = self.memory.vectors.get(index);
        if let Some(row) = row.filter(|_| self.memory.method == Method::Full) {
            scratch
                .scaled
                .set(&self.memory.vectors.components(row), "vector")?;
            scratch.projected = self.memory.projection.project(&scratch.scaled);
        }
        Ok(())
    }

    /// Adds up the products of the row with traces that share heavy words, or finds those that are without words too.
    fn look_up(&self, index: usize, scratch: &mut Scratch) {
        let Scratch { products, found, .. } = scratch;
        products.resize(self.memory.held.len(), 0.0);
        found.clear();
        if self.sums[index].weight == 0.0 {
            found.extend(&self.wordless);
        }
        let mut left = ASKED_TRACES;
        for Share { place, part } in self.heaviest(index, ASKED_WORDS) {
            let entries = &self.entries[self.starts[place as usize]..self.starts[place as usize + 1]];
            let entries = &entries[..entries.len().min(left)];
            left -= entries.len();
            for entry in entries {
                let product = &mut products[entry.index as usize];
                if *product == 0.0 {
                    found.push(entry.index);
                }
                *product += (part * entry.part).max(f32::MIN_POSITIVE);
            }
        }
    }

    /// Finds the `count` nearest traces of a range, of all if they are few, or else of those that were found.
    fn nearest(
        &self,
        index: usize,
        range: Range<usize>,
        count: usize,
        scratch: &Scratch,
    ) -> Result<Vec<Neighbour>> {
        let out_of_memory = || self.memory.options.out_of_memory();
        let mut nearest = Top::new(count).ok_or_else(out_of_memory)?;
        let mut compare = |other: usize| {
            let similarity = self.compare(index, other, scratch);
            if similarity > 0.0 {
                nearest.offer(Neighbour {
                    similarity,
                    index: other,
                });
            }
        };
        if range.len() <= COMPARED {
            range
                .clone()
                .filter(|&other| other != index)
                .for_each(&mut compare);
        } else {
            let mut candidates = Top::new(COMPARED).ok_or_else(out_of_memory)?;
            let found = scratch.found.iter().map(|&found| found as usize);
            for other in found.filter(|&other| other != index && range.contains(&other)) {
                candidates.offer(Neighbour {
                    similarity: scratch.products[other].into(),
                    index: other,
                });
            }
            candidates
                .into_sorted()
                .for_each(|candidate| compare(candidate.index));
        }
        let found = nearest.into_sorted().map(|found| Neighbour {
            index: found.index - range.start,
            ..found
        });
        Ok(found.collect())
    }

    /// Compares the row with the trace at an index.
    fn compare(&self, row: usize, index: usize, scratch: &Scratch) -> f64 {
        let memory = self.memory;
        let mut shared = Sums::default();
        for &DocumentWord { term, count } in &memory.held[index].words {
            if let Some((own, weight)) = scratch.words.get(term) {
                shared.add(own, self.count_of(count), weight);
            }
        }
        let (lexical, contained) = self.sums[row].compare(&self.sums[index], &shared);
        if memory.method != Method::Full {
            return lexical;
        }
        let lengths = memory.projection.lengths(&memory.vectors);
        let embedded = scratch.projected.as_ref().zip(memory.vectors.get(index));
        let embedded = embedded.map(|(row, other)| row.compare(other.components, lengths[index]));
        combine(lexical, contained, Some(embedded.unwrap_or_default()))
    }
}
