//! The search for the vectors that are most similar to a query.

use std::cmp::Ordering;

use super::{blocks::Run, codes::CodedQuery, scaled::Scaled};
use crate::{
    simd::{self, Floats, Kernels},
    top::Top,
};

/// The vectors in a batch. Their products fit into the first-level cache.
const BATCH: usize = 64;

/// The batches that are scanned without codes after one in which codes ruled out less than half of the vectors. So codes cost little in
/// a cache of near-duplicates.
const PLAIN_BATCHES: usize = 7;

/// A vector or a trace that is similar to another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The number of older ones among those that were searched.
    pub index: usize,
    /// The similarity.
    pub similarity: f64,
}

impl Found {
    /// A vector beside the zero vector.
    pub(crate) fn unrelated(index: usize) -> Self {
        let similarity = 0.0;
        Self { index, similarity }
    }
}

/// Collects the `count` most similar vectors; of equally similar ones, the oldest.
#[derive(Debug)]
pub(crate) struct Several(Top<Rank>);

impl Several {
    /// `None` if there is not enough memory for `count` vectors.
    pub(crate) fn new(count: usize) -> Option<Self> {
        Top::new(count).map(Self)
    }

    /// Returns whether a vector with a similarity of at most `bound` can be collected.
    #[inline]
    pub(crate) fn can_win(&self, bound: f64) -> bool {
        self.0.least().is_none_or(|Rank(least)| bound >= least.similarity)
    }

    /// Returns whether a vector at `index` with a similarity of at most `bound` can be collected, in any order of offers.
    #[inline]
    pub(crate) fn can_win_at(&self, index: usize, bound: f64) -> bool {
        let most = Rank(Found {
            similarity: bound,
            index,
        });
        self.0.least().is_none_or(|least| most > *least)
    }

    /// Collects the vector, or ignores it.
    #[inline]
    pub(crate) fn offer(&mut self, found: Found) {
        self.0.offer(Rank(found));
    }

    /// The vectors, the most similar first.
    pub(crate) fn into_sorted(self) -> impl Iterator<Item = Found> {
        self.0.into_sorted().map(|Rank(found)| found)
    }
}

/// The order of vectors in a result: the more similar is greater, and of equally similar ones the older.
#[derive(Debug)]
struct Rank(Found);

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        // Similarities are never NaN, and 0 and -0 are equal.
        let by_similarity = self.0.similarity.partial_cmp(&other.0.similarity);
        by_similarity
            .unwrap_or(Ordering::Equal)
            .then(other.0.index.cmp(&self.0.index))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rank {}

/// A search for the vectors that are most similar to a query.
pub(crate) struct Scan<'q> {
    query: &'q Scaled,
    coded: Option<&'q CodedQuery>,
    kernels: &'static Kernels,
    /// The number of vectors in earlier batches.
    before: usize,
    /// The vectors that were collected.
    pub(crate) collector: Several,
    /// Whether one vector is wanted. Then the one with the largest bound in a batch is compared first, because it rules out others.
    is_for_one: bool,
}

impl<'q> Scan<'q> {
    /// Makes a search for the `count` vectors most similar to `query`, which must not be the zero vector. Codes save time and do not change
    /// the result. `None` if there is not enough memory.
    pub(crate) fn new(query: &'q Scaled, coded: Option<&'q CodedQuery>, count: usize) -> Option<Self> {
        Some(Self {
            query,
            coded,
            kernels: simd::kernels(),
            before: 0,
            collector: Several::new(count)?,
            is_for_one: count == 1,
        })
    }

    /// Searches every vector of `runs`.
    pub(crate) fn over<'b>(&mut self, runs: impl Iterator<Item = Run<'b>>) {
        let mut plain_batches = 0;
        for run in runs {
            for batch in run.batches(BATCH) {
                match self.coded {
                    Some(coded) if plain_batches == 0 => {
                        if !self.compare_candidates(&batch, coded) {
                            plain_batches = PLAIN_BATCHES;
                        }
                    }
                    _ => {
                        plain_batches = plain_batches.saturating_sub(1);
                        self.compare(0, batch.components, batch.inverse_norms);
                    }
                }
                self.before += batch.inverse_norms.len();
            }
        }
    }

    /// Compares the query with the vectors of a batch that codes do not rule out. Returns whether they were at most half of the batch.
    fn compare_candidates(&mut self, batch: &Run, coded: &CodedQuery) -> bool {
        let length = batch.inverse_norms.len();
        let mut bounds = [0.0; BATCH];
        let bounds = &mut bounds[..length];
        self.kernels.code_dots(&coded.planes, batch.codes, bounds);
        let mut most_promising = 0;
        let mut highest = f64::NEG_INFINITY;
        for (index, (bound, &info)) in bounds.iter_mut().zip(batch.infos).enumerate() {
            *bound = coded.bound(*bound, info);
            if *bound > highest {
                (most_promising, highest) = (index, *bound);
            }
        }
        if !self.collector.can_win(highest) {
            return true;
        }
        if self.is_for_one {
            // It may be offered again, which changes nothing.
            self.compare_one(batch, most_promising);
            bounds[most_promising] = f64::NEG_INFINITY;
        }
        let candidates = bounds
            .iter()
            .filter(|&&bound| self.collector.can_win(bound))
            .count();
        if candidates > length / 2 {
            self.compare(0, batch.components, batch.inverse_norms);
            return false;
        }
        if candidates > 0 {
            for (index, &bound) in bounds.iter().enumerate() {
                if self.collector.can_win(bound) {
                    self.compare_one(batch, index);
                }
            }
        }
        true
    }

    fn compare_one(&mut self, batch: &Run, index: usize) {
        let groups = self.query.components.len();
        let row = &batch.components[index * groups..][..groups];
        self.compare(index, row, &batch.inverse_norms[index..=index]);
    }

    /// Compares the query with up to [`BATCH`] vectors by the single precision kernel. The first of them is at `start` in the
    /// batch.
    fn compare(&mut self, start: usize, components: &[Floats], inverse_norms: &[f64]) {
        let mut products = [0.0; BATCH];
        let products = &mut products[..inverse_norms.len()];
        self.kernels.dots(&self.query.components, components, products);
        let rows = products.iter().zip(inverse_norms).enumerate();
        let found = rows.map(|(index, (product, inverse_norm))| Found {
            similarity: product * inverse_norm * self.query.inverse_norm,
            index: self.before + start + index,
        });
        if self.is_for_one {
            let larger = |best: Found, next: Found| {
                if next.similarity > best.similarity {
                    next
                } else {
                    best
                }
            };
            if let Some(best) = found.reduce(larger) {
                self.collector.offer(best);
            }
        } else {
            found.for_each(|found| self.collector.offer(found));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::{moment::Moment, vectors::blocks::Blocks};
    use proptest::prelude::*;

    /// xorshift, so that large caches do not slow down shrinking.
    struct Random(u64);

    impl Random {
        fn component(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        }

        /// Components of `centre` give or take `spread`.
        fn near(&mut self, centre: &[f64], spread: f64) -> Vec<f64> {
            centre.iter().map(|x| x + spread * self.component()).collect()
        }
    }

    #[test]
    fn only_bounds_that_reach_the_similarities_found_can_win() {
        let mut largest = Several::new(1).unwrap();
        let mut several = Several::new(2).unwrap();
        for (index, similarity) in [0.5, 0.7].into_iter().enumerate() {
            assert!(largest.can_win(-1.0) == (index == 0) && several.can_win(-1.0));
            largest.offer(Found { similarity, index });
            several.offer(Found { similarity, index });
        }
        assert_eq!([0.69, 0.7].map(|bound| largest.can_win(bound)), [false, true]);
        assert_eq!([0.49, 0.5].map(|bound| several.can_win(bound)), [false, true]);
        // Of equally similar ones the older wins.
        assert_eq!([0, 1].map(|index| several.can_win_at(index, 0.5)), [false, false]);
        assert!(several.can_win_at(2, 0.6) && !several.can_win_at(2, 0.5));
        let rank = |similarity, index| Rank(Found { similarity, index });
        assert!(rank(0.0, 1) == rank(-0.0, 1) && rank(0.0, 1) != rank(0.0, 2));
    }

    /// Vectors at right angles are ruled out by their codes, and near duplicates are not.
    #[test]
    fn codes_say_whether_they_ruled_out_half_of_a_batch() {
        let now = Moment::at(Instant::now());
        let mut scaled = Scaled::default();
        for (duplicates, others, is_worth_it) in [(1, 9, true), (6, 4, true), (7, 3, false), (10, 0, false)] {
            let mut blocks = Blocks::new(2);
            blocks.reserve(10).unwrap();
            for number in 0..duplicates + others {
                let vector = if number < others { [0.0, 1.0] } else { [1.0, 0.0] };
                scaled.set(&vector, "vector").unwrap();
                blocks.push_back(&scaled, None, now);
            }
            scaled.set(&[1.0, 0.0], "query").unwrap();
            let mut coded = CodedQuery::default();
            coded.set(&scaled).unwrap();
            let mut scan = Scan::new(&scaled, None, 1).unwrap();
            let batch = blocks.runs(0).next().unwrap();
            assert_eq!(
                scan.compare_candidates(&batch, &coded),
                is_worth_it,
                "{duplicates}"
            );
            // The most promising one is compared first, and is the first of those.
            let found = scan.collector.into_sorted().next();
            assert_eq!(found.map(|found| found.index), Some(others));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 64 }))]

        /// Spreads from exact copies over near duplicates to no relation, and any mixture of two of them.
        #[test]
        fn codes_change_no_bit(
            dimensions in prop_oneof![1usize..300, Just(384), Just(1100)],
            count in 0usize..600,
            gone in 0usize..300,
            spreads in prop::array::uniform2(prop::sample::select(vec![0.0, 1e-7, 1e-4, 1e-2, 0.1, 1.0, 100.0])),
            period in 1usize..200,
            wanted in prop_oneof![1usize..5, 1usize..700],
            seed in 1u64..,
        ) {
            let mut random = Random(seed);
            let centre: Vec<f64> = (0..dimensions).map(|_| random.component()).collect();
            let now = Moment::at(Instant::now());
            let mut blocks = Blocks::new(dimensions);
            let mut scaled = Scaled::default();
            for index in 0..count {
                let spread = spreads[usize::from(index % period == 0)];
                let vector = random.near(&centre, spread);
                scaled.set(&vector, "vector").unwrap();
                blocks.reserve(1).unwrap();
                blocks.push_back(&scaled, None, now);
            }
            for _ in 0..gone {
                blocks.pop_front();
            }
            scaled.set(&random.near(&centre, spreads[0]), "query").unwrap();
            let mut coded = CodedQuery::default();
            coded.set(&scaled).unwrap();

            let several = |coded, count| {
                let mut scan = Scan::new(&scaled, coded, count).unwrap();
                scan.over(blocks.runs(0));
                scan.collector.into_sorted().collect::<Vec<_>>()
            };
            let bits = |coded| several(coded, 1).pop().map(|found| (found.index, found.similarity.to_bits()));
            prop_assert_eq!(bits(Some(&coded)), bits(None));
            let plain = several(None, 1).pop();
            prop_assert_eq!(plain.is_some(), count > gone);
            // The best of all are the first of all in order.
            let mut all = several(None, count + 1);
            prop_assert!(all.is_sorted_by_key(|&found| std::cmp::Reverse(Rank(found))));
            prop_assert_eq!(all.len(), count.saturating_sub(gone));
            prop_assert_eq!(all.first().copied(), plain);
            all.truncate(wanted);
            prop_assert_eq!(several(Some(&coded), wanted), all);
        }
    }
}
