//! The search for the largest similarity.

use super::{
    blocks::{Blocks, Run},
    codes::CodedQuery,
    scaled::Scaled,
};
use crate::simd::{self, Floats, Kernels};

/// Vectors that are looked at together: their products fit the first-level cache.
const BATCH: usize = 64;

/// When codes rule out less than half of a batch, this many batches are scanned without: a cache full of
/// near duplicates costs little more than it would without codes.
const PLAIN_BATCHES: usize = 7;

/// A search for the largest cosine similarity of a query to the vectors of a cache.
pub(super) struct Scan<'q> {
    query: &'q Scaled,
    kernels: &'static Kernels,
    /// The largest similarity so far.
    best: Option<f64>,
}

impl<'q> Scan<'q> {
    /// `query` is not zero.
    pub(super) fn new(query: &'q Scaled) -> Self {
        Self {
            query,
            kernels: simd::kernels(),
            best: None,
        }
    }

    /// Compares with every vector. `None` when there are none.
    pub(super) fn plain(mut self, blocks: &Blocks) -> Option<f64> {
        for run in blocks.runs() {
            for batch in run.batches(BATCH) {
                self.compare(batch.components, batch.inverse_norms);
            }
        }
        self.best
    }

    /// The same, to the bit, with the help of codes.
    pub(super) fn coded(mut self, blocks: &Blocks, coded: &CodedQuery) -> Option<f64> {
        let mut plain_batches = 0;
        for run in blocks.runs() {
            for batch in run.batches(BATCH) {
                if plain_batches > 0 {
                    plain_batches -= 1;
                    self.compare(batch.components, batch.inverse_norms);
                } else if !self.compare_candidates(&batch, coded) {
                    plain_batches = PLAIN_BATCHES;
                }
            }
        }
        self.best
    }

    /// Compares with the vectors of a batch that can be the most similar. Returns whether they were few.
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
        if !self.can_win(highest) {
            return true;
        }
        self.compare_one(batch, most_promising);
        bounds[most_promising] = f64::NEG_INFINITY;
        let candidates = bounds.iter().filter(|&&bound| self.can_win(bound)).count();
        if candidates > length / 2 {
            self.compare(batch.components, batch.inverse_norms);
            return false;
        }
        if candidates > 0 {
            for (index, &bound) in bounds.iter().enumerate() {
                if self.can_win(bound) {
                    self.compare_one(batch, index);
                }
            }
        }
        true
    }

    /// Whether a vector with this bound can be more similar than the best so far.
    fn can_win(&self, bound: f64) -> bool {
        self.best.is_none_or(|best| bound >= best)
    }

    fn compare_one(&mut self, batch: &Run, index: usize) {
        let groups = self.query.components.len();
        let row = &batch.components[index * groups..][..groups];
        self.compare(row, &batch.inverse_norms[index..=index]);
    }

    /// Compares with up to [`BATCH`] vectors: the single precision kernel's word.
    fn compare(&mut self, components: &[Floats], inverse_norms: &[f64]) {
        let mut products = [0.0; BATCH];
        let products = &mut products[..inverse_norms.len()];
        self.kernels.dots(&self.query.components, components, products);
        for (product, inverse_norm) in products.iter().zip(inverse_norms) {
            let similarity = product * inverse_norm * self.query.inverse_norm;
            if self.best.is_none_or(|best| similarity > best) {
                self.best = Some(similarity);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
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
            seed in 1u64..,
        ) {
            let mut random = Random(seed);
            let centre: Vec<f64> = (0..dimensions).map(|_| random.component()).collect();
            let now = Instant::now();
            let mut blocks = Blocks::new(dimensions, false);
            let mut scaled = Scaled::default();
            for index in 0..count {
                let spread = spreads[usize::from(index % period == 0)];
                let vector = random.near(&centre, spread);
                scaled.set(&vector, "vector").unwrap();
                blocks.reserve_one().unwrap();
                blocks.push_back(&scaled, now);
            }
            for _ in 0..gone {
                blocks.pop_front();
            }
            scaled.set(&random.near(&centre, spreads[0]), "query").unwrap();
            let mut coded = CodedQuery::default();
            coded.set(&scaled).unwrap();

            let plain = Scan::new(&scaled).plain(&blocks);
            let found = Scan::new(&scaled).coded(&blocks, &coded);
            prop_assert_eq!(found.map(f64::to_bits), plain.map(f64::to_bits));
            prop_assert_eq!(plain.is_some(), count > gone);
        }
    }
}
