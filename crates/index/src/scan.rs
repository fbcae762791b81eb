//! The search for the vectors that are most similar to a query: a scan of all, and the order of what it finds.

use std::{cmp::Ordering, iter, mem};

use knowledgepulse_encoder::{Group, dots};
use knowledgepulse_error::Result;
use knowledgepulse_os::{self as os, parallel::for_each};

use crate::{
    room::with_room,
    rows::{Rows, Run},
    scaled::Scaled,
    top::Top,
};

/// The least bytes of vectors for each thread of a scan: starting a thread takes as long as scanning a quarter of them.
const BYTES_PER_THREAD: usize = 4 * 1024 * 1024;

/// A vector or a trace that is similar to another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// The number of older ones among those that were searched.
    pub index: usize,
    /// The similarity.
    pub similarity: f64,
}

/// The more similar is greater, and of equally similar ones the older.
impl Ord for Neighbour {
    fn cmp(&self, other: &Self) -> Ordering {
        // Similarities are never NaN, and 0 and -0 are equal.
        let by_similarity = self.similarity.partial_cmp(&other.similarity);
        by_similarity
            .unwrap_or(Ordering::Equal)
            .then(other.index.cmp(&self.index))
    }
}

impl PartialOrd for Neighbour {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Neighbour {}

/// Collects the most similar vectors; of equally similar ones, the oldest.
impl Top<Neighbour> {
    /// Returns whether a vector with a similarity of at most `bound` can be collected.
    #[inline]
    pub(crate) fn can_win(&self, bound: f64) -> bool {
        self.least().is_none_or(|least| bound >= least.similarity)
    }
}

/// Returns the `count` vectors that are most similar to `query`, the most similar first, of equal ones the older; `None` if there is not
/// enough memory.
pub(crate) fn most_similar(query: &Scaled, rows: &Rows, count: usize) -> Option<Vec<Neighbour>> {
    let products = products(&query.components, rows, useful_threads(rows))?;
    let inverse_norms = rows.runs().flat_map(|run| run.inverse_norms);
    let mut collector = Top::new(count)?;
    for (index, (product, inverse_norm)) in iter::zip(products, inverse_norms).enumerate() {
        let similarity = product * inverse_norm * query.inverse_norm;
        if collector.can_win(similarity) {
            collector.offer(Neighbour { similarity, index });
        }
    }
    Some(collector.into_sorted().collect())
}

/// Returns how many threads make a scan faster.
pub(crate) fn useful_threads(rows: &Rows) -> usize {
    let most = rows.bytes() / BYTES_PER_THREAD;
    if most > 1 { os::threads(0).min(most) } else { 1 }
}

/// Returns the dot product of `query` with each vector, computed on this many threads; `None` if there is not enough memory.
pub(crate) fn products(query: &[Group], rows: &Rows, threads: usize) -> Option<Vec<f64>> {
    let mut products = with_room(rows.len())?;
    products.resize(rows.len(), 0.0);
    let mut rest = &mut products[..];
    let parts = rows.runs().map(|run| {
        let (part, others) = mem::take(&mut rest).split_at_mut(run.inverse_norms.len());
        rest = others;
        (run, part)
    });
    let multiply = |(): &mut (), (run, part): (Run, &mut [f64])| -> Result<()> {
        dots(query, run.components, part);
        Ok(())
    };
    for_each(threads, parts, || (), multiply).ok()?;
    Some(products)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bounds_that_reach_the_similarities_found_can_win() {
        let mut largest = Top::new(1).unwrap();
        let mut several = Top::new(2).unwrap();
        for (index, similarity) in [0.5, 0.7].into_iter().enumerate() {
            assert!(largest.can_win(-1.0) == (index == 0) && several.can_win(-1.0));
            largest.offer(Neighbour { similarity, index });
            several.offer(Neighbour { similarity, index });
        }
        assert_eq!([0.69, 0.7].map(|bound| largest.can_win(bound)), [false, true]);
        assert_eq!([0.49, 0.5].map(|bound| several.can_win(bound)), [false, true]);
        let rank = |similarity, index| Neighbour { similarity, index };
        assert!(rank(0.0, 1) == rank(-0.0, 1) && rank(0.0, 1) != rank(0.0, 2));
    }
}
