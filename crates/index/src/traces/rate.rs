//! A lower bound of the length of each remembered trace's weighted words, which costs little to keep.
//!
//! The bound of a cosine needs the length |c w| of the remembered trace, and the weights of its words change with every trace
//! that comes or goes. With `l = ln(M + 1)` and `r(t)` the logarithm of df(t),
//!
//! `|c w|² = Σ c² (l - r)² = A l² - 2 B l + D`, where `A = Σ c²`, `B = Σ c² r` and `D = Σ c² r²`
//!
//! so a change of M costs nothing. A change of df(t) would have to change B and D of every trace that contains `t`. For a common word
//! one trace more changes `r` by next to nothing, though. So the sums are of `r'(t)`, which follows `r(t)` only when it is more than
//! [`DRIFT`] away: for a word of `n` traces, that is every `n DRIFT` changes, and they cost 1 / [`DRIFT`] updates each. By the
//! triangle inequality
//!
//! `|c w| >= |c w'| - |c (w - w')| >= |c w'| - DRIFT sqrt(A)`
//!
//! The lengths that decide are computed anew from the words, so no result depends on these sums.

use std::collections::VecDeque;

use super::terms::Terms;

/// The tolerance of a word's logarithm in the sums.
pub(super) const DRIFT: f64 = 1.0 / 32.0;

/// Covers the rounding of the sums over any number of changes, and that of the bound itself.
const SLACK: f64 = 1e-3;

/// The sums of a remembered trace.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NormBound {
    /// The square root of A.
    pub(super) root: f64,
    /// B.
    linear: f64,
    /// D.
    square: f64,
}

impl NormBound {
    /// Adds a word to the sums.
    pub(super) fn add(&mut self, count: f64, logarithm: f64) {
        let squared = count * count;
        self.root = (self.root * self.root + squared).sqrt();
        self.linear += squared * logarithm;
        self.square += squared * logarithm * logarithm;
    }

    /// A lower bound of |c w|, where `logarithm` is ln(M + 1). It may be negative.
    #[inline]
    pub(super) fn least_length(&self, logarithm: f64) -> f64 {
        let root = self.root;
        let squared = (root * logarithm) * (root * logarithm) - 2.0 * self.linear * logarithm + self.square;
        squared.max(0.0).sqrt() - (DRIFT + SLACK) * root
    }
}

/// Updates the sums of all traces with a word if its logarithm has drifted too far. `first` is the slot of the oldest trace.
pub(super) fn follow(terms: &mut Terms, place: u32, ratings: &mut VecDeque<NormBound>, first: u32) {
    let term = terms.get_mut(place);
    let (before, after) = (term.rated, term.logarithm);
    if (after - before).abs() <= DRIFT {
        return;
    }
    term.rated = after;
    for posting in term.postings() {
        let Some(rating) = ratings.get_mut(posting.slot.wrapping_sub(first) as usize) else {
            continue;
        };
        let count = posting.count.value();
        rating.linear += count * count * (after - before);
        rating.square += count * count * (after * after - before * before);
    }
}
