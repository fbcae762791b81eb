//! Which traces repeat an earlier one.

use knowledgepulse_index::memory::Basis;
use knowledgepulse_score::Breakdown;

/// From this similarity on, two traces count as near-duplicates.
pub const SIMILARITY: f64 = 0.95;

/// Returns the similarity of a trace to its nearest predecessor in any kind of memory; `None` without a predecessor or an
/// embedder. For a known trace that is not compared again, the earlier novelty tells it.
pub fn resemblance(breakdown: &Breakdown) -> Option<f64> {
    if breakdown.novelty.basis == Basis::Given {
        return Some(1.0 - breakdown.dimensions.novelty);
    }
    breakdown
        .novelty
        .nearest
        .as_ref()
        .map(|nearest| nearest.similarity)
}

/// Returns whether a trace with this [`resemblance`] is a near-duplicate of an earlier one.
pub fn is_near_duplicate(resemblance: Option<f64>) -> bool {
    resemblance.is_some_and(|similarity| similarity >= SIMILARITY)
}
