//! The exact search for the traces that are most similar to a query, by upper bounds.
//!
//! Computes an upper bound of the similarity of each remembered trace, and compares those that can win. The bounds come from the postings of
//! the query's words:
//!
//! - L: with `x = c_q w² / |c_q w|`, the cosine is `Σ x c_d / |c_d w|` over the words that both have. The sum is taken for rare words. The
//!   most common words have the most postings and the smallest weights, and for these Cauchy's inequality bounds the sum by
//!   `sqrt(Σ x²) sqrt(Σ c_d²)`. They are those for which the first root stays below [`LEFT_OUT`]. If more traces could win then than
//!   can be compared in the time that further postings take, a quarter as much is left out, and so on. The divisor is replaced by its
//!   [lower bound](super::rate).
//! - C: the sum of the weights of the rare words that both have, plus those of all common ones.
//! - E is computed for every trace.
//!
//! Bounds are in single precision, which [`SLACK`] covers, so no ruled out trace could be the result. Comparisons are in double precision.

use std::collections::VecDeque;

use knowledgepulse_error::Result;
use knowledgepulse_trace::words::Words;

use super::{
    TraceMemory,
    rate::NormBound,
    terms::{Known, PartialSums, Terms, add_up},
};
use crate::{
    document::{Document, DocumentWord},
    method::Method,
    scan::{Neighbour, useful_threads},
    similarity::{Similarity, Sums, combine},
    top::Top,
};

/// The most that the words left out at first may add to a cosine, for a trace whose words weigh 1.
const LEFT_OUT: f64 = 0.08;

/// The traces with the highest bounds that are compared first, to rule out others. With 1, nearly all others often can still win; 16 take as
/// long as the rest of a search among 1,000 traces.
const PROMISING: usize = 4;

/// The cost of an exact comparison, in postings per query term: 2 among 32,000 traces, and 5 among 1,000,000, whose words are not in the
/// processor's caches.
const COMPARISON_COST: usize = 4;

/// Covers the rounding of sums of at most 512 terms in single precision.
const SLACK: f64 = 1e-4;

/// A word of the query.
#[derive(Debug)]
pub(super) struct QueryWord {
    pub(super) hash: u64,
    pub(super) count: f64,
    pub(super) weight: f64,
    /// Its place, if the memory has it.
    pub(super) term: Option<u32>,
}

/// The words of a query with their weights in the memory.
#[derive(Debug)]
pub(super) struct Query {
    /// In the order of the hashes.
    pub(super) words: Vec<QueryWord>,
    pub(super) sums: Sums,
    /// ln(M + 1).
    pub(super) logarithm: f64,
}

impl Query {
    #[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
    pub(super) fn new(words: &Words, terms: &Terms, memory: usize) -> Self {
        let logarithm = ((memory + 1) as f64).ln();
        let mut sums = Sums::default();
        let words = words.iter().map(|word| {
            let term = terms.find(word.hash);
            let weight = logarithm - term.map_or(0.0, |(_, term)| term.logarithm);
            let count = word.count.value();
            sums.add(count, count, weight);
            QueryWord {
                hash: word.hash,
                count,
                weight,
                term: term.map(|(place, _)| place),
            }
        });
        Self {
            words: words.collect(),
            sums,
            logarithm,
        }
    }

    /// L and C with a remembered trace.
    fn compare(&self, held: &Document, terms: &Terms) -> (f64, f64) {
        let (mut own, mut shared) = (Sums::default(), Sums::default());
        let mut words = self.words.iter().peekable();
        for &DocumentWord { term, count } in &held.words {
            let term = terms.get(term);
            let (count, weight) = (count.value(), self.logarithm - term.logarithm);
            own.add(count, count, weight);
            while words.next_if(|word| word.hash < term.hash).is_some() {}
            if let Some(word) = words.next_if(|word| word.hash == term.hash) {
                shared.add(word.count, count, weight);
            }
        }
        self.sums.compare(&own, &shared)
    }
}

/// The buffers of a search, reused by later calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    sums: Vec<PartialSums>,
    /// Upper bounds of L and C for each trace.
    bounds: Vec<Bound>,
}

impl Scratch {
    pub(super) fn bytes(&self) -> usize {
        self.sums.capacity() * size_of::<PartialSums>() + self.bounds.capacity() * size_of::<Bound>()
    }
}

#[derive(Debug, Clone, Copy)]
struct Bound {
    lexical: f32,
    contained: f32,
}

impl Bound {
    /// The bound of a trace without postings.
    const MOST: Self = Self {
        lexical: 1.0,
        contained: 1.0,
    };

    /// Returns the upper bound of the similarity.
    #[inline]
    fn value(self, embedded: Option<f64>) -> f64 {
        combine(self.lexical.into(), self.contained.into(), embedded)
    }
}

/// The words of a query whose postings are not added up yet, the most common first.
struct Remaining<'t> {
    words: Vec<Known<'t>>,
    /// C without postings.
    contained: f64,
    /// ln(M + 1).
    logarithm: f64,
}

impl<'t> Remaining<'t> {
    fn new(query: &Query, terms: &'t Terms) -> Self {
        let total = query.sums.weight;
        let length = query.sums.product.sqrt();
        let mut words: Vec<_> = query
            .words
            .iter()
            .filter_map(|word| {
                #[allow(clippy::cast_possible_truncation)] // SLACK covers it.
                let share = PartialSums {
                    product: (word.count * word.weight * word.weight / length) as f32,
                    contained: (word.weight / total) as f32,
                };
                Some(Known {
                    share,
                    postings: terms.get(word.term?).postings(),
                })
            })
            .collect();
        // The order of equal ones changes only the comparisons, not the result.
        words.sort_unstable_by_key(|word| std::cmp::Reverse(word.postings.len()));
        // A trace without words is contained in others without words.
        let contained = if total > 0.0 { 0.0 } else { 1.0 };
        Self {
            words,
            contained,
            logarithm: query.logarithm,
        }
    }

    /// Returns how many of the most common words add at most `most` to the cosine of a trace whose words weigh 1.
    fn adding_at_most(&self, most: f64) -> usize {
        let mut squares = 0.0;
        let exceeding = self.words.iter().position(|word| {
            squares += f64::from(word.share.product).powi(2);
            squares > most * most
        });
        exceeding.unwrap_or(self.words.len())
    }

    /// Lowers the bounds of traces that could win, and collects the highest ones.
    fn tighten(
        &self,
        sums: &[PartialSums],
        ratings: &VecDeque<NormBound>,
        similarity: impl Fn(usize, Bound) -> f64,
        threshold: &Top<Neighbour>,
        bounds: &mut [Bound],
        promising: &mut Top<Neighbour>,
    ) {
        let shares = self.words.iter().map(|word| word.share);
        let squares: f64 = shares.clone().map(|share| f64::from(share.product).powi(2)).sum();
        let left_out = squares.sqrt();
        let weight_left_out = self.contained + shares.map(|share| f64::from(share.contained)).sum::<f64>();
        for (index, ((bound, sums), rating)) in bounds.iter_mut().zip(sums).zip(ratings).enumerate() {
            if !threshold.can_win(similarity(index, *bound)) {
                continue;
            }
            let product = f64::from(sums.product) * (1.0 + SLACK) + left_out * rating.root;
            let least = rating.least_length(self.logarithm);
            let lexical = if product < least { product / least } else { 1.0 };
            let contained = f64::from(sums.contained) + weight_left_out + SLACK;
            #[allow(clippy::cast_possible_truncation)] // SLACK covers it.
            let (lexical, contained) = ((lexical + SLACK).min(1.0) as f32, contained.min(1.0) as f32);
            *bound = Bound { lexical, contained };
            let similarity = similarity(index, *bound);
            if promising.can_win(similarity) {
                promising.offer(Neighbour { similarity, index });
            }
        }
    }
}

impl TraceMemory {
    fn top(&self, count: usize) -> Result<Top<Neighbour>> {
        Top::new(count).ok_or_else(|| self.options.out_of_memory())
    }

    /// Returns the `count` traces that are most similar to `words` and, with embeddings, to the vector that was scaled last.
    pub(super) fn search(&mut self, words: &Words, count: usize) -> Result<Vec<(usize, Similarity)>> {
        let count = count.min(self.held.len());
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let found = self.search_with(words, count, &mut scratch);
        self.scratch = scratch;
        found
    }

    fn search_with(
        &mut self,
        words: &Words,
        count: usize,
        scratch: &mut Scratch,
    ) -> Result<Vec<(usize, Similarity)>> {
        let query = Query::new(words, &self.terms, self.held.len());
        let embedded = self.embedded()?;
        let mut collector = self.top(count)?;
        // A lower bound of the result's similarity, which rules out most traces. Its trace is compared again in its turn.
        let mut threshold = self.top(1)?;
        let comparison = Comparison {
            memory: self,
            query: &query,
            embedded,
        };
        comparison.bound_all(scratch, &mut threshold, count)?;
        for (index, bound) in scratch.bounds.iter().enumerate() {
            let most = bound.value(comparison.embedded(index));
            // The trace at the threshold, or one with the same similarity.
            if collector.can_win_at(index, most) && threshold.can_win(most) {
                collector.offer(comparison.found(index));
            }
        }
        let found = collector.into_sorted();
        Ok(found
            .map(|found| (found.index, comparison.compare(found.index)))
            .collect())
    }

    /// Returns E of the vector that was scaled last with every trace; `None` if words alone are compared.
    fn embedded(&mut self) -> Result<Option<Vec<f64>>> {
        if self.method != Method::Full {
            return Ok(None);
        }
        self.projection.update(&self.vectors);
        let Some(projected) = self.projection.project(&self.scaled) else {
            return Ok(Some(vec![0.0; self.held.len()]));
        };
        let lengths = self.projection.lengths(&self.vectors);
        let embedded = projected.compare_all(&self.vectors, lengths, useful_threads(&self.vectors));
        let embedded = embedded.ok_or_else(|| self.options.out_of_memory())?;
        Ok(Some(embedded))
    }
}

/// The memory that a query is compared with.
struct Comparison<'m> {
    memory: &'m TraceMemory,
    query: &'m Query,
    /// E with every trace, if embeddings are compared.
    embedded: Option<Vec<f64>>,
}

impl Comparison<'_> {
    fn compare(&self, index: usize) -> Similarity {
        let (lexical, contained) = self.query.compare(&self.memory.held[index], &self.memory.terms);
        Similarity {
            lexical,
            contained,
            embedded: self.embedded(index),
        }
    }

    fn embedded(&self, index: usize) -> Option<f64> {
        self.embedded.as_ref().map(|embedded| embedded[index])
    }

    fn found(&self, index: usize) -> Neighbour {
        Neighbour {
            similarity: self.compare(index).value(),
            index,
        }
    }

    /// Computes upper bounds of L and C for every trace. In a search for one trace, a good one sets the threshold.
    fn bound_all(&self, scratch: &mut Scratch, threshold: &mut Top<Neighbour>, count: usize) -> Result<()> {
        let memory = self.memory;
        let Scratch { sums, bounds, .. } = scratch;
        sums.clear();
        sums.resize(memory.held.len(), PartialSums::default());
        bounds.clear();
        bounds.resize(memory.held.len(), Bound::MOST);
        let mut remaining = Remaining::new(self.query, &memory.terms);
        let mut most_left_out = LEFT_OUT;
        let mut left = remaining.adding_at_most(most_left_out);
        loop {
            add_up(&mut remaining.words.split_off(left), sums, memory.first_slot());
            let mut promising = memory.top(PROMISING)?;
            let similarity = |index, bound: Bound| bound.value(self.embedded(index));
            remaining.tighten(
                sums,
                &memory.ratings,
                similarity,
                threshold,
                bounds,
                &mut promising,
            );
            if count > 1 {
                return Ok(());
            }
            for best in promising.into_sorted() {
                threshold.offer(self.found(best.index));
            }
            if remaining.words.is_empty() {
                return Ok(());
            }
            most_left_out /= 4.0;
            left = remaining
                .adding_at_most(most_left_out)
                .min(remaining.words.len() - 1);
            let postings: usize = remaining.words[left..]
                .iter()
                .map(|word| word.postings.len())
                .sum();
            let could_win = |&(index, bound): &(usize, &Bound)| threshold.can_win(similarity(index, *bound));
            let comparisons = bounds.iter().enumerate().filter(could_win).count();
            if postings >= comparisons * self.query.words.len() * COMPARISON_COST {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_trace::fixtures::with_texts;

    use super::*;
    use crate::options::MemoryOptions;
    use std::time::Instant;

    /// A memory of traces that share `common` and, in groups, other words.
    fn memory() -> TraceMemory {
        let mut memory = TraceMemory::new(Method::Lexical, MemoryOptions::default());
        for number in 0..300 {
            let text = format!(
                "common words of many{} of few{} alone{number}",
                number % 5,
                number % 60
            );
            let words = Words::of(&with_texts(&text, &[]));
            memory.add((&words).into(), Instant::now()).unwrap();
        }
        memory
    }

    fn query() -> Words {
        Words::of(&with_texts("common words of many1 of few1 alone1", &["new"]))
    }

    #[test]
    fn the_most_common_words_are_left_out_up_to_a_length() {
        let known = |product| Known {
            share: PartialSums {
                product,
                contained: 0.0,
            },
            postings: &[],
        };
        let remaining = Remaining {
            words: [3.0, 4.0, 12.0].map(known).into(),
            contained: 0.0,
            logarithm: 1.0,
        };
        for (most, left) in [(2.9, 0), (3.0, 1), (4.9, 1), (5.0, 2), (12.9, 2), (13.0, 3)] {
            assert_eq!(remaining.adding_at_most(most), left, "{most}");
        }
    }

    #[test]
    fn bounds_with_all_postings_are_next_to_the_similarity() {
        let memory = memory();
        let query = Query::new(&query(), &memory.terms, memory.held.len());
        let mut sums = vec![PartialSums::default(); memory.held.len()];
        let mut bounds = vec![Bound::MOST; memory.held.len()];
        let mut promising = Top::new(1).unwrap();
        let mut remaining = Remaining::new(&query, &memory.terms);
        add_up(&mut remaining.words.split_off(0), &mut sums, memory.first_slot());
        remaining.tighten(
            &sums,
            &memory.ratings,
            |_, bound| bound.value(None),
            &Top::new(1).unwrap(),
            &mut bounds,
            &mut promising,
        );
        for (held, bound) in memory.held.iter().zip(bounds) {
            let (lexical, contained) = query.compare(held, &memory.terms);
            let excess = f64::from(bound.lexical) - lexical;
            assert!((0.0..0.05).contains(&excess), "{lexical} {bound:?}");
            let excess = f64::from(bound.contained) - contained;
            assert!((0.0..2.0 * SLACK).contains(&excess), "{contained} {bound:?}");
        }
        assert_eq!(promising.into_sorted().next().map(|found| found.index), Some(1));
    }

    #[test]
    fn bounds_rule_out_most_traces() {
        let mut memory = memory();
        let best = memory.search(&query(), 1).unwrap()[0].1.value();
        let can_win = |bound: &&Bound| bound.value(None) >= best;
        assert!(memory.scratch.bounds.iter().filter(can_win).count() < 10);
        assert_eq!(memory.scratch.bounds.len(), 300);
    }

    #[test]
    fn bytes_are_those_of_the_buffers() {
        let scratch = Scratch {
            sums: Vec::with_capacity(3),
            bounds: Vec::with_capacity(5),
        };
        assert_eq!(scratch.bytes(), 8 * (3 + 5));
    }
}
