//! Which traces repeat an earlier one.

use knowledgepulse_index::memory::Basis;
use knowledgepulse_score::Breakdown;

/// From this similarity on, two traces count as near-duplicates.
pub const SIMILARITY: f64 = 0.95;

/// Returns how much a trace resembles what was remembered before it, by whatever kind of memory; `None` if nothing was, or without an
/// embedder. For a known trace that is not compared again, the earlier novelty says it.
#[must_use]
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

/// Whether a trace with this [`resemblance`] is a near-duplicate of an earlier one.
#[must_use]
pub fn is_near_duplicate(resemblance: Option<f64>) -> bool {
    resemblance.is_some_and(|similarity| similarity >= SIMILARITY)
}
