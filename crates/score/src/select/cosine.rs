//! The similarity by which a set is chosen: the cosine of the words of two traces, each with the weight √c(t) · w(t).
//! DESIGN.md compares it with the similarity of novelty.

use std::collections::HashMap;

use knowledgepulse_index::similarity::weight;
use knowledgepulse_trace::words::{TermWeight, Words};

/// The words of a trace by their numbers, with c(t), in the order of their hashes, so that sums have the same bits in any order of traces.
pub(super) type Numbers = Box<[(u32, TermWeight)]>;

/// Numbers words.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(HashMap<u64, u32>);

impl Vocabulary {
    #[allow(clippy::cast_possible_truncation)] // A memory has fewer than 2^32 words.
    pub(super) fn numbers_of(&mut self, words: &Words) -> Numbers {
        let numbers = words.iter().map(|word| {
            let next = self.0.len() as u32;
            (*self.0.entry(word.hash).or_insert(next), word.count)
        });
        numbers.collect()
    }
}

/// The cosines of traces.
pub(super) struct Cosines<'w> {
    traces: &'w [Numbers],
    /// The square of w(t) of each word.
    squares: Vec<f64>,
    /// The sum of c(t) times these for each trace: the square of its length.
    lengths: Vec<f64>,
    /// √c(t) of each word in the trace of the row; 0 for others.
    of_row: Vec<f64>,
}

impl<'w> Cosines<'w> {
    pub(super) fn new(traces: &'w [Numbers], vocabulary: &Vocabulary) -> Self {
        let mut frequencies = vec![0; vocabulary.0.len()];
        for &(word, _) in traces.iter().flatten() {
            frequencies[word as usize] += 1;
        }
        let squares: Vec<_> = frequencies
            .into_iter()
            .map(|frequency| weight(traces.len(), frequency).powi(2))
            .collect();
        // The same steps as in a row, so that the cosine of equal traces is 1.
        let square = |&(word, count): &(u32, TermWeight)| {
            let root = count.value().sqrt();
            root * root * squares[word as usize]
        };
        let length = |words: &Numbers| words.iter().map(square).sum();
        Self {
            lengths: traces.iter().map(length).collect(),
            of_row: vec![0.0; squares.len()],
            traces,
            squares,
        }
    }

    /// Returns the cosines of a trace with others.
    pub(super) fn row(&mut self, trace: usize, others: impl Iterator<Item = usize>) -> Vec<f64> {
        for &(word, count) in &self.traces[trace] {
            self.of_row[word as usize] = count.value().sqrt();
        }
        let cosines = others.map(|other| {
            let weighed = |&(word, count): &(u32, TermWeight)| {
                let of_row = self.of_row[word as usize];
                (of_row > 0.0).then(|| of_row * count.value().sqrt() * self.squares[word as usize])
            };
            let product: f64 = self.traces[other].iter().filter_map(weighed).sum();
            let lengths = (self.lengths[trace] * self.lengths[other]).sqrt();
            // Traces without words are alike.
            if lengths > 0.0 {
                (product / lengths).min(1.0)
            } else {
                1.0
            }
        });
        let cosines = cosines.collect();
        for &(word, _) in &self.traces[trace] {
            self.of_row[word as usize] = 0.0;
        }
        cosines
    }
}
