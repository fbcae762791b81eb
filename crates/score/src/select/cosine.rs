//! The similarity by which a set is chosen: the cosine of the words of two traces, where each word counts once and rare words weigh more.
//! DESIGN.md compares it with the similarity of novelty.

use std::collections::HashMap;

use knowledgepulse_index::similarity::weight;
use knowledgepulse_trace::words::Words;

/// The words of a trace by their numbers, in the order of their hashes, so that sums have the same bits in any order of traces.
pub(super) type Numbers = Box<[u32]>;

/// Numbers words.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(HashMap<u64, u32>);

impl Vocabulary {
    #[allow(clippy::cast_possible_truncation)] // A memory has fewer than 2^32 words.
    pub(super) fn numbers_of(&mut self, words: &Words) -> Numbers {
        let numbers = words.iter().map(|word| {
            let next = self.0.len() as u32;
            *self.0.entry(word.hash).or_insert(next)
        });
        numbers.collect()
    }
}

/// The cosines of traces.
pub(super) struct Cosines<'w> {
    traces: &'w [Numbers],
    /// The square of the weight of each word.
    squares: Vec<f64>,
    /// The sum of these for each trace.
    lengths: Vec<f64>,
    /// Whether the trace of the row has each word.
    is_of_row: Vec<bool>,
}

impl<'w> Cosines<'w> {
    pub(super) fn new(traces: &'w [Numbers], vocabulary: &Vocabulary) -> Self {
        let mut frequencies = vec![0; vocabulary.0.len()];
        for &word in traces.iter().flatten() {
            frequencies[word as usize] += 1;
        }
        let squares: Vec<_> = frequencies
            .into_iter()
            .map(|frequency| weight(traces.len(), frequency).powi(2))
            .collect();
        let length = |words: &Numbers| words.iter().map(|&word| squares[word as usize]).sum();
        Self {
            lengths: traces.iter().map(length).collect(),
            is_of_row: vec![false; squares.len()],
            traces,
            squares,
        }
    }

    /// Returns the cosines of a trace with others.
    pub(super) fn row(&mut self, trace: usize, others: impl Iterator<Item = usize>) -> Vec<f64> {
        self.mark(trace, true);
        let cosines = others.map(|other| {
            let shared = self.traces[other].iter();
            let shared = shared.filter(|&&word| self.is_of_row[word as usize]);
            let product: f64 = shared.map(|&word| self.squares[word as usize]).sum();
            let lengths = (self.lengths[trace] * self.lengths[other]).sqrt();
            // Traces without words are alike.
            if lengths > 0.0 {
                (product / lengths).min(1.0)
            } else {
                1.0
            }
        });
        let cosines = cosines.collect();
        self.mark(trace, false);
        cosines
    }

    fn mark(&mut self, trace: usize, is_of_row: bool) {
        for &word in &self.traces[trace] {
            self.is_of_row[word as usize] = is_of_row;
        }
    }
}
