//! How new a trace is to the memory of those before it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use crate::{cache::VectorCache, dimensions::NEUTRAL_NOVELTY, embedding::Embedding, error::Result, fault};

/// A novelty memory that several threads share.
pub type SharedCache = Mutex<VectorCache>;

/// Locks a shared cache. A panic elsewhere cannot leave a cache half changed in a way that matters, so a
/// poisoned lock is taken all the same.
pub fn lock(cache: &SharedCache) -> MutexGuard<'_, VectorCache> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Compares `embedding` with everything in `cache`, then adds it: one atomic step.
///
/// Novelty is one minus the largest similarity, unclamped (a negative similarity takes it above 1), or
/// [`NEUTRAL_NOVELTY`] when the cache is empty.
///
/// # Errors
/// Those of [`VectorCache::add`]; nothing is added then.
pub fn compare_and_add(embedding: &Embedding, cache: &SharedCache, now: Instant) -> Result<f64> {
    let mut cache = lock(cache);
    fault::point("novelty");
    let novelty = if cache.is_empty(now) {
        NEUTRAL_NOVELTY
    } else {
        1.0 - cache.max_cosine_similarity(embedding, now)?
    };
    cache.add(embedding, None, now)?;
    Ok(novelty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cache::Options, embedding::DIMENSIONS};

    fn direction(axis: usize, sign: f32) -> Embedding {
        let mut embedding = [0.0; DIMENSIONS];
        embedding[axis] = sign;
        embedding
    }

    #[test]
    fn compares_then_adds() {
        let cache = Mutex::new(VectorCache::new(Options::default()));
        let now = Instant::now();
        let novelty = |embedding| compare_and_add(&embedding, &cache, now).unwrap();
        assert_eq!(novelty(direction(0, 1.0)), 0.5);
        assert_eq!(novelty(direction(0, 1.0)), 0.0);
        assert_eq!(novelty(direction(1, 1.0)), 1.0);
        assert_eq!(lock(&cache).len(now), 3);
    }

    #[test]
    fn opposites_are_more_than_new() {
        let cache = Mutex::new(VectorCache::new(Options::default()));
        let now = Instant::now();
        compare_and_add(&direction(0, 1.0), &cache, now).unwrap();
        assert_eq!(compare_and_add(&direction(0, -1.0), &cache, now).unwrap(), 2.0);
    }
}
