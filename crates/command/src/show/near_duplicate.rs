//! Which traces repeat an earlier one.

use knowledgepulse_score::Breakdown;

/// From this similarity on, two traces count as near-duplicates.
pub const SIMILARITY: f64 = 0.95;

/// Returns the similarity of a trace to its nearest predecessor; `None` without a predecessor or an embedder.
pub fn resemblance(breakdown: &Breakdown) -> Option<f64> {
    let nearest = breakdown.novelty.nearest.as_ref();
    nearest.map(|nearest| nearest.similarity)
}

/// Returns whether a trace with this [`resemblance`] is a near-duplicate of an earlier one.
pub fn is_near_duplicate(resemblance: Option<f64>) -> bool {
    resemblance.is_some_and(|similarity| similarity >= SIMILARITY)
}
