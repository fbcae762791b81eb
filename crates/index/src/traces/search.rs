//! The search for the traces that are most similar to a query: candidates by the postings of its heavier words, compared exactly.
//!
//! The words of a query are looked up from the rarest on, until those that are left add at most [`LEFT_OUT`] to any cosine. A trace is
//! estimated by what it shares of these: of its L the part of the query's length, in place of its own weighted length, which changes with
//! every trace that comes or goes, its unweighted one; of its C all that was not looked up. E is computed for every trace. The traces with the
//! highest sums of both are compared. DESIGN.md, "Traces", says how often the most similar trace is among them.

use std::cmp::Reverse;

use knowledgepulse_error::Result;
use knowledgepulse_trace::words::Words;

use super::{
    TraceMemory,
    placed::PlacedWords,
    terms::{Posting, Terms},
};
use crate::{
    document::{Document, DocumentWord},
    method::Method,
    scan::{Neighbour, useful_threads},
    similarity::{Similarity, Sums, combine},
    top::Top,
};

/// The most that the words that are not looked up add to a cosine.
const LEFT_OUT: f64 = 0.25;

/// The traces that are compared, or all if there are no more.
const COMPARED: usize = 24;

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
    known: PlacedWords,
    pub(super) sums: Sums,
    /// ln(M + 1).
    pub(super) logarithm: f64,
    /// √(Σ c²).
    root: f64,
}

impl Query {
    #[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
    pub(super) fn new(words: &Words, terms: &Terms, memory: usize) -> Self {
        let logarithm = ((memory + 1) as f64).ln();
        let (mut sums, mut squares) = (Sums::default(), 0.0);
        let mut known = PlacedWords::default();
        known.clear();
        let words = words.iter().map(|word| {
            let term = terms.find(word.hash);
            let weight = logarithm - term.map_or(0.0, |place| terms.logarithm(place));
            let count = word.count.value();
            if let Some(place) = term {
                known.insert(place, count, weight);
            }
            sums.add(count, count, weight);
            squares += count * count;
            QueryWord {
                hash: word.hash,
                count,
                weight,
                term,
            }
        });
        let words = words.collect();
        Self {
            words,
            known,
            sums,
            logarithm,
            root: squares.sqrt(),
        }
    }

    /// L and C with a remembered trace.
    fn compare(&self, held: &Document, terms: &Terms) -> (f64, f64) {
        let (mut own, mut shared) = (Sums::default(), Sums::default());
        for &DocumentWord { term, count } in &held.words {
            let count = count.value();
            own.add(count, count, self.logarithm - terms.logarithm(term));
            if let Some((own, weight)) = self.known.get(term) {
                shared.add(own, count, weight);
            }
        }
        self.sums.compare(&own, &shared)
    }
}

/// What a trace shares of the words that were looked up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shared {
    /// The product of the query's length-normalised words with the trace's counts.
    product: f32,
    /// Of C.
    contained: f32,
}

impl TraceMemory {
    /// Returns the `count` traces that are most similar to `words` and, with embeddings, to the vector that was scaled last.
    pub(super) fn search(&mut self, words: &Words, count: usize) -> Result<Vec<(usize, Similarity)>> {
        let count = count.min(self.held.len());
        if count == 0 {
            return Ok(Vec::new());
        }
        let embedded = self.embedded()?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let comparison = Comparison {
            memory: self,
            query: &Query::new(words, &self.terms, self.held.len()),
            embedded,
        };
        let found = comparison.most_similar(count, &mut scratch);
        self.scratch = scratch;
        found
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

    fn most_similar(&self, count: usize, scratch: &mut Vec<Shared>) -> Result<Vec<(usize, Similarity)>> {
        let out_of_memory = || self.memory.options.out_of_memory();
        let mut found = Top::new(count).ok_or_else(out_of_memory)?;
        let mut compare = |index| {
            let similarity = self.compare(index).value();
            found.offer(Neighbour { similarity, index });
        };
        let held = self.memory.held.len();
        let compared = COMPARED.max(2 * count);
        if held <= compared {
            (0..held).for_each(&mut compare);
        } else {
            let mut candidates = Top::new(compared).ok_or_else(out_of_memory)?;
            self.estimate_all(scratch, &mut candidates);
            candidates
                .into_sorted()
                .for_each(|candidate: Neighbour| compare(candidate.index));
        }
        let found = found.into_sorted();
        Ok(found
            .map(|found: Neighbour| (found.index, self.compare(found.index)))
            .collect())
    }

    /// Offers the estimated similarity of each trace.
    #[allow(clippy::cast_possible_truncation)] // Estimates are in single precision.
    fn estimate_all(&self, shared: &mut Vec<Shared>, candidates: &mut Top<Neighbour>) {
        let memory = self.memory;
        shared.clear();
        shared.resize(memory.held.len(), Shared::default());
        let Query {
            words, sums, root, ..
        } = self.query;
        let mut known: Vec<(&QueryWord, &[Posting])> = words
            .iter()
            .filter_map(|word| Some((word, memory.terms.get(word.term?).postings())))
            .collect();
        // The order of equal ones changes only the estimates.
        known.sort_unstable_by_key(|(_, postings)| Reverse(postings.len()));
        let square = |word: &QueryWord| (word.count * word.weight).powi(2);
        let mut left_out = LEFT_OUT * LEFT_OUT * sums.product;
        let looked_up = known.iter().position(|(word, _)| {
            left_out -= square(word);
            left_out < 0.0
        });
        let (common, rare) = known.split_at(looked_up.unwrap_or(known.len()));
        for (word, postings) in rare.iter().rev() {
            // Of the query itself, the products add up to its unweighted length.
            let product = (word.count * word.weight * word.weight * root / sums.product) as f32;
            let contained = (word.weight / sums.weight) as f32;
            for posting in *postings {
                let index = posting.slot.wrapping_sub(memory.first_slot()) as usize;
                if let Some(shared) = shared.get_mut(index) {
                    shared.product += product * posting.count.single();
                    shared.contained += contained;
                }
            }
        }
        let left: f64 = common.iter().map(|(word, _)| word.weight).sum();
        let left = if sums.weight > 0.0 {
            left / sums.weight
        } else {
            0.0
        };
        for (index, (shared, held)) in shared.iter().zip(&memory.held).enumerate() {
            let (lexical, contained) = match (words.is_empty(), held.root > 0.0) {
                (false, true) => (shared.product / held.root, f64::from(shared.contained) + left),
                (true, false) => (1.0, 1.0),
                _ => (0.0, 0.0),
            };
            let (lexical, contained) = (f64::from(lexical).min(1.0), contained.min(1.0));
            // Of those that contain the trace, an equal one is among the first.
            let similarity = combine(lexical, 0.0, self.embedded(index)) + combine(0.0, contained, None);
            candidates.offer(Neighbour { similarity, index });
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

    fn estimates(memory: &TraceMemory, words: &Words) -> Vec<Neighbour> {
        let comparison = Comparison {
            memory,
            query: &Query::new(words, &memory.terms, memory.held.len()),
            embedded: None,
        };
        let mut estimates = Top::new(memory.held.len()).unwrap();
        comparison.estimate_all(&mut Vec::new(), &mut estimates);
        estimates.into_sorted().collect()
    }

    #[test]
    fn the_estimate_of_an_equal_trace_lacks_what_is_left_out() {
        let memory = memory();
        for number in [0, 17, 299] {
            let held = memory.held[number]
                .words
                .iter()
                .map(|word| memory.terms.get(word.term).hash);
            let words = with_texts(
                &format!(
                    "common words of many{} of few{} alone{number}",
                    number % 5,
                    number % 60
                ),
                &[],
            );
            let words = Words::of(&words);
            assert!(held.eq(words.iter().map(|word| word.hash)));
            let first = estimates(&memory, &words)[0];
            assert_eq!(first.index, number);
            let least = 2.0 - LEFT_OUT * LEFT_OUT;
            assert!((least..=2.0).contains(&first.similarity), "{first:?}");
        }
    }

    #[test]
    fn words_of_most_traces_are_not_looked_up() {
        let memory = memory();
        let query = Words::of(&with_texts("common words of many1", &["few1 alone1 new"]));
        let estimates = estimates(&memory, &query);
        assert_eq!(estimates.len(), 300);
        // Five traces share `few1`, 60 `many1`, and all of them only what is left out.
        let found = estimates.iter().filter(|found| found.similarity > 0.02);
        let mut indexes: Vec<_> = found.map(|found| found.index).collect();
        indexes.sort_unstable();
        assert_eq!(indexes, [1, 61, 121, 181, 241]);
        assert_eq!(estimates[0].index, 1);
    }

    #[test]
    fn traces_without_words_are_estimated_to_be_alike() {
        let mut memory = memory();
        let empty = Words::default();
        memory.add((&empty).into(), Instant::now()).unwrap();
        let found = memory.search(&empty, 1).unwrap();
        assert_eq!((found[0].0, found[0].1.value()), (300, 1.0));
        let all = estimates(&memory, &Words::of(&with_texts("new", &[])));
        assert!(all.iter().all(|found| found.similarity == 0.0));
    }

    #[test]
    fn a_trace_that_another_one_contains_is_found() {
        let mut memory = memory();
        let long: String = (0..400).map(|number| format!("long{number} ")).collect();
        let text = format!("common words of many2 of few2 alone2 {long}");
        memory
            .add((&Words::of(&with_texts(&text, &[]))).into(), Instant::now())
            .unwrap();
        let short = Words::of(&with_texts("long7 long9 long11", &[]));
        let found = memory.search(&short, 1).unwrap();
        assert_eq!((found[0].0, found[0].1.contained), (300, 1.0));
    }
}
