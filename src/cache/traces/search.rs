//! The search for the traces that are most similar to a query: exact, and mostly without looking at a trace.
//!
//! For each remembered trace an upper bound of its similarity is computed; those that can win are compared. Both parts of the bound
//! come from the postings of the query's words:
//!
//! - L: with `x = c_q w² / |c_q w|`, the cosine is `Σ x c_d / |c_d w|` over the words that both have. The sum is taken for rare words. The
//!   most common words have the most postings and the smallest weights, and for these Cauchy's inequality bounds the sum by
//!   `sqrt(Σ x²) sqrt(Σ c_d²)`. They are those for which the first root stays below [`LEFT_OUT`]. The divisor is replaced by its
//!   [lower bound](super::rate).
//! - C: the sum of the weights of the rare words that both have, plus those of all common ones.
//! - E is at most 1. Where that could win, the codes of the embeddings give a lower bound, as in a [scan](crate::cache::scan).
//!
//! Sums are taken in single precision, and [`SLACK`] covers that. So no trace that is left out could have been the result, and what is
//! compared is compared by its words, in double precision.

use std::collections::VecDeque;

use super::{
    Held, Method, TraceMemory, bound,
    projection::Projected,
    rate::Rating,
    terms::{HeldWord, Posting, Terms},
};
use crate::{
    cache::{
        codes::CodedQuery,
        scaled::Scaled,
        scan::{Collector, Found, Several},
    },
    error::{Error, Result},
    novelty::{Similarity, Sums, words::Words},
    simd,
};

/// How much the words that are left out may add to a cosine, at most, for a trace whose words weigh 1.
const LEFT_OUT: f64 = 0.08;

/// Covers the rounding of sums of at most 512 terms in single precision.
const SLACK: f64 = 1e-4;

/// How many traces' sums are added up together. They fit into the second-level cache.
const BLOCK: usize = if cfg!(test) { 16 } else { 8192 };

/// How many embeddings are looked at together.
const BATCH: usize = 64;

/// A word of the query.
#[derive(Debug)]
pub(super) struct QueryWord {
    pub(super) hash: u64,
    pub(super) count: f64,
    pub(super) weight: f64,
    /// Its place, if a remembered trace has it.
    pub(super) term: Option<u32>,
}

/// The words of a query, with the weights that the memory gives them.
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
    fn compare(&self, held: &Held, terms: &Terms) -> (f64, f64) {
        let (mut own, mut shared) = (Sums::default(), Sums::default());
        let mut words = self.words.iter().peekable();
        for &HeldWord { term, count } in &held.words {
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

/// The memory of a search, which outlives the call.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    /// Upper bounds of L and C for each trace.
    bounds: Vec<Bound>,
    coded: CodedQuery,
    projected: Scaled,
}

impl Scratch {
    pub(super) fn bytes(&self) -> usize {
        self.bounds.capacity() * size_of::<Bound>()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Bound {
    lexical: f32,
    contained: f32,
}

/// The postings of a word that are still to be added up.
struct Cursor<'t> {
    postings: &'t [Posting],
    /// `x`.
    factor: f32,
    /// Its part of C.
    weight: f32,
}

impl TraceMemory {
    /// The `count` traces that are most similar to `words` and, with embeddings, to what was scaled last.
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
        let projected = if self.method == Method::Full {
            self.projection.update(&mut self.sample, &self.vectors);
            self.projection.project(&self.scaled)
        } else {
            None
        };
        let query = Query::new(words, &self.terms, self.held.len());
        let best = bounds(
            &query,
            &self.terms,
            &self.ratings,
            self.first_slot(),
            &mut scratch.bounds,
        );

        let out_of_memory = || Error::OutOfMemory {
            dimensions: self.options.dimensions,
        };
        let mut collector = Several::new(count).ok_or_else(out_of_memory)?;
        let comparison = Comparison {
            memory: self,
            query: &query,
            projected: projected.as_ref(),
            lengths: self.projection.lengths(&self.vectors),
        };
        // One good trace rules out most others. It is compared again in its turn, unless it is collected once already.
        let mut threshold = Several::new(1).ok_or_else(out_of_memory)?;
        if count == 1 {
            threshold.offer(comparison.found(best));
        }
        comparison.collect(scratch, &mut collector, &threshold)?;
        let found = collector.into_sorted();
        Ok(found
            .map(|found| (found.index, comparison.compare(found.index)))
            .collect())
    }
}

/// Computes the upper bounds of L and C for every trace. Returns the index of the most promising one.
fn bounds(
    query: &Query,
    terms: &Terms,
    ratings: &VecDeque<Rating>,
    first: u32,
    bounds: &mut Vec<Bound>,
) -> usize {
    let total = query.sums.weight;
    let length = query.sums.product.sqrt();
    let mut known: Vec<_> = query
        .words
        .iter()
        .filter_map(|word| {
            let postings = terms.get(word.term?).postings();
            Some((
                postings,
                word.count * word.weight * word.weight / length,
                word.weight / total,
            ))
        })
        .collect();
    // The order of equals does not matter: it changes what is compared, not what is found.
    known.sort_unstable_by_key(|(postings, ..)| std::cmp::Reverse(postings.len()));
    // A trace without words is contained in others without words.
    let (mut left_out, mut weight_left_out) = (0.0, if total > 0.0 { 0.0 } else { 1.0 });
    let mut common = 0;
    for (_, factor, weight) in &known {
        let more = left_out + factor * factor;
        if more > LEFT_OUT * LEFT_OUT {
            break;
        }
        (left_out, weight_left_out, common) = (more, weight_left_out + weight, common + 1);
    }
    let left_out = left_out.sqrt();
    #[allow(clippy::cast_possible_truncation)] // SLACK covers it.
    let mut cursors: Vec<Cursor> = known[common..]
        .iter()
        .map(|&(postings, factor, weight)| Cursor {
            postings,
            factor: factor as f32,
            weight: weight as f32,
        })
        .collect();

    bounds.clear();
    bounds.resize(ratings.len(), Bound::default());
    let mut best = (f64::NEG_INFINITY, 0);
    let mut rated = ratings.iter();
    for (block, bounds) in bounds.chunks_mut(BLOCK).enumerate() {
        let start = block * BLOCK;
        #[allow(clippy::cast_possible_truncation)] // Slots fit.
        let (start_slot, end_slot) = (
            first + start as u32,
            (start + bounds.len()) as u64 + u64::from(first),
        );
        for cursor in &mut cursors {
            let count = if u64::from(first) + ratings.len() as u64 == end_slot {
                cursor.postings.len()
            } else {
                cursor
                    .postings
                    .partition_point(|posting| u64::from(posting.slot) < end_slot)
            };
            let (here, later) = cursor.postings.split_at(count);
            cursor.postings = later;
            for posting in here {
                let sum = &mut bounds[(posting.slot - start_slot) as usize];
                let count = posting.count;
                sum.lexical += cursor.factor * count.single();
                sum.contained += cursor.weight;
            }
        }
        for (index, (bound, rating)) in bounds.iter_mut().zip(&mut rated).enumerate() {
            let product = f64::from(bound.lexical) * (1.0 + SLACK) + left_out * rating.root;
            let least = rating.least_length(query.logarithm);
            let lexical = if product < least { product / least } else { 1.0 };
            let contained = f64::from(bound.contained) + weight_left_out + SLACK;
            let promise = lexical.max(contained.min(1.0));
            if promise > best.0 {
                best = (promise, start + index);
            }
            #[allow(clippy::cast_possible_truncation)] // SLACK covers it.
            let (lexical, contained) = ((lexical + SLACK).min(1.0) as f32, contained.min(1.0) as f32);
            *bound = Bound { lexical, contained };
        }
    }
    best.1
}

/// What a query is compared with.
struct Comparison<'m> {
    memory: &'m TraceMemory,
    query: &'m Query,
    projected: Option<&'m Projected>,
    lengths: &'m [f64],
}

impl Comparison<'_> {
    fn compare(&self, index: usize) -> Similarity {
        let (lexical, contained) = self.query.compare(&self.memory.held[index], &self.memory.terms);
        let embedded = (self.memory.method == Method::Full).then(|| {
            let entry = self.memory.vectors.get(index);
            let pair = self.projected.zip(entry).zip(self.lengths.get(index));
            pair.map_or(0.0, |((projected, entry), &length)| {
                projected.compare(entry.components, length)
            })
        });
        Similarity {
            lexical,
            contained,
            embedded,
        }
    }

    fn found(&self, index: usize) -> Found {
        Found {
            similarity: self.compare(index).value(),
            index,
        }
    }

    /// Collects the most similar traces.
    fn collect(&self, scratch: &mut Scratch, collector: &mut Several, threshold: &Several) -> Result<()> {
        let could_win = |collector: &Several, index: usize, most: f64| {
            // At the threshold is the trace itself, or one with the same similarity.
            collector.can_win_at(index, most) && threshold.can_win(most)
        };
        let Some(projected) = self.projected else {
            let embedded = (self.memory.method == Method::Full).then_some(0.0);
            for (index, bounds) in scratch.bounds.iter().enumerate() {
                let most = bound(bounds.lexical.into(), bounds.contained.into(), embedded);
                if could_win(collector, index, most) {
                    collector.offer(self.found(index));
                }
            }
            return Ok(());
        };
        let vectors = &self.memory.vectors;
        let coded = vectors.coded();
        let dimensions = vectors.shape().dimensions;
        let components: &[f32] = bytemuck::cast_slice(&projected.components);
        scratch.projected.set(&components[..dimensions], "vector")?;
        let norm = scratch.projected.inverse_norm.recip();
        if coded {
            scratch.coded.set(&scratch.projected)?;
        }
        let kernels = simd::kernels();
        let mut start = 0;
        for run in vectors.runs(0) {
            for batch in run.batches(BATCH) {
                let count = batch.inverse_norms.len();
                let bounds = &scratch.bounds[start..start + count];
                let lengths = &self.lengths[start..start + count];
                let most_of = |offset: usize, embedded| {
                    let Bound { lexical, contained } = bounds[offset];
                    bound(lexical.into(), contained.into(), Some(embedded))
                };
                if (0..count).any(|offset| could_win(collector, start + offset, most_of(offset, 1.0))) {
                    let mut products = [0.0; BATCH];
                    if coded {
                        kernels.code_dots(&scratch.coded.planes, batch.codes, &mut products[..count]);
                    }
                    for offset in 0..count {
                        let embedded = if coded {
                            let most = scratch.coded.bound(products[offset], batch.infos[offset]);
                            let product = most * norm / batch.inverse_norms[offset];
                            projected.cosine(product, lengths[offset] * (1.0 - SLACK)) + SLACK
                        } else {
                            1.0
                        };
                        let index = start + offset;
                        if could_win(collector, index, most_of(offset, embedded.min(1.0))) {
                            collector.offer(self.found(index));
                        }
                    }
                }
                start += count;
            }
        }
        Ok(())
    }
}
