//! The pipeline on one screen: trace → features, (text → tokens → embedding →) novelty → dimensions → composite
//! → overrides. The embedding comes from [`crate::inference`], which computes several side by side.

use std::time::Instant;

use crate::{
    composite::composite,
    dimensions::{Dimensions, NEUTRAL_NOVELTY},
    embedding::Embedding,
    error::Result,
    features::Features,
    novelty::{self, SharedCache},
    overrides,
};

/// Scores a trace, 0 to 1, by its `features` and the `embedding` of its text: compares that with those in `cache`
/// and adds it, also when an override decides the score in the end.
///
/// # Errors
/// Those of [`novelty::compare_and_add`]. [`score_without_embedder`] is what remains then.
pub fn score(features: &Features, cache: &SharedCache, embedding: &Embedding) -> Result<f64> {
    let novelty = novelty::compare_and_add(embedding, cache, Instant::now())?;
    Ok(score_with_novelty(features, novelty))
}

/// Scores a trace with neutral novelty, remembering nothing.
#[must_use]
pub fn score_without_embedder(features: &Features) -> f64 {
    score_with_novelty(features, NEUTRAL_NOVELTY)
}

/// The arithmetic from a known novelty to the score.
#[must_use]
pub fn score_with_novelty(features: &Features, novelty: f64) -> f64 {
    let dimensions = Dimensions::new(features, novelty);
    overrides::apply(composite(&dimensions, features.weights), features)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{
        cache::{Options, VectorCache},
        composite::Weights,
        embedding::DIMENSIONS,
        trace::tests::with_steps,
    };

    #[test]
    fn the_embedding_is_remembered_even_if_an_override_decides() {
        let cache = Mutex::new(VectorCache::new(Options::default()));
        let features = Features::of(&with_steps(&["thought"]));
        assert_eq!(score(&features, &cache, &[0.5; DIMENSIONS]).unwrap(), 0.1);
        assert_eq!(novelty::lock(&cache).len(Instant::now()), 1);
    }

    #[test]
    fn a_repeated_trace_loses_its_novelty() {
        let cache = Mutex::new(VectorCache::new(Options::default()));
        let features = Features::of(&with_steps(&["thought", "observation"]));
        let first = score(&features, &cache, &[0.5; DIMENSIONS]).unwrap();
        assert_eq!(first, score_without_embedder(&features));
        let second = score(&features, &cache, &[0.5; DIMENSIONS]).unwrap();
        assert!((first - second - 0.5 * Weights::DEFAULT.novelty).abs() < 1e-7);
    }
}
