//! The vector cache: what was embedded before, oldest first out.

mod blocks;
mod codes;
mod scaled;
mod scan;

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use blocks::Blocks;
use codes::CodedQuery;
pub use scaled::Component;
use scaled::Scaled;
use scan::Scan;

/// Bounds of a cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// How many vectors are kept; 0 keeps none.
    pub max_elements: usize,
    /// The length of every vector, at least 1.
    pub dimensions: usize,
    /// How long a vector lives; `None` for ever.
    pub time_to_live: Option<Duration>,
}

impl Default for Options {
    /// The scorer's own bounds: 1,000 vectors of 384 dimensions, for ever.
    fn default() -> Self {
        Self {
            max_elements: 1000,
            dimensions: 384,
            time_to_live: None,
        }
    }
}

/// A bounded first-in-first-out memory of vectors that answers how similar the most similar one is, by
/// looking at all of them. Vectors are copied in.
///
/// A component takes five bytes: four for its value and one for a code that spares most vectors the look at
/// their values. Vectors are padded to whole groups of 64 components, and each takes 16 bytes more, or 32 with
/// a time to live: 1,936 bytes for 384 dimensions. There are no codes for more than 65,536 dimensions.
///
/// Every method that depends on the time takes it as `now`, which must not go backwards.
#[derive(Debug)]
pub struct VectorCache {
    options: Options,
    blocks: Blocks,
    /// The vector or query of the call under way; only its memory outlives the call.
    scaled: Scaled,
    coded: CodedQuery,
}

impl VectorCache {
    /// An empty cache. Memory is taken as vectors come.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            blocks: Blocks::new(options.dimensions, options.time_to_live.is_some()),
            scaled: Scaled::default(),
            coded: CodedQuery::default(),
        }
    }

    /// The bounds that this cache was made with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Adds a copy of `vector`, which displaces the oldest one if the cache is full.
    ///
    /// # Errors
    /// [`Error::Dimensions`] for a wrong length, [`Error::NotFinite`] for a component that is NaN or
    /// infinite, [`Error::OutOfMemory`]. After an error the cache is as it was.
    pub fn add<T: Component>(&mut self, vector: &[T], now: Instant) -> Result<()> {
        self.scale(vector, "vector")?;
        if self.options.max_elements == 0 {
            return Ok(());
        }
        self.evict_expired(now);
        self.blocks.reserve_one()?;
        if self.blocks.len() == self.options.max_elements {
            self.blocks.pop_front();
        }
        self.blocks.push_back(&self.scaled, now);
        Ok(())
    }

    /// The largest cosine similarity of `query` to a vector in the cache, within 1e-6 of what 64-bit
    /// arithmetic gives; 0 for an empty cache. A zero vector has similarity 0 to everything.
    ///
    /// # Errors
    /// [`Error::Dimensions`] for a wrong length, [`Error::NotFinite`] for a component that is NaN or
    /// infinite, [`Error::OutOfMemory`].
    pub fn max_cosine_similarity<T: Component>(&mut self, query: &[T], now: Instant) -> Result<f64> {
        self.scale(query, "query")?;
        self.evict_expired(now);
        if self.scaled.inverse_norm == 0.0 {
            return Ok(0.0);
        }
        let scan = Scan::new(&self.scaled);
        let similarity = if self.blocks.coded() {
            self.coded.set(&self.scaled)?;
            scan.coded(&self.blocks, &self.coded)
        } else {
            scan.plain(&self.blocks)
        };
        // Adding 0 turns a negative zero, which a zero vector can produce, into a plain one.
        Ok(similarity.unwrap_or(0.0) + 0.0)
    }

    /// How many vectors live.
    pub fn len(&mut self, now: Instant) -> usize {
        self.evict_expired(now);
        self.blocks.len()
    }

    /// Whether no vector lives.
    pub fn is_empty(&mut self, now: Instant) -> bool {
        self.len(now) == 0
    }

    /// Drops the vectors whose age has reached the time to live. They no longer count before that either;
    /// this only returns their memory.
    pub fn evict_expired(&mut self, now: Instant) {
        let Some(time_to_live) = self.options.time_to_live else {
            return;
        };
        // Vectors are in order of age, so the expired ones are the first.
        while let Some(added) = self.blocks.front_added() {
            if now.saturating_duration_since(added) < time_to_live {
                break;
            }
            self.blocks.pop_front();
        }
    }

    /// Drops every vector.
    pub fn clear(&mut self) {
        self.blocks.clear();
    }

    fn scale<T: Component>(&mut self, vector: &[T], name: &'static str) -> Result<()> {
        if vector.len() != self.options.dimensions {
            return Err(Error::Dimensions {
                expected: self.options.dimensions,
                found: vector.len(),
            });
        }
        self.scaled.set(vector, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn cache(max_elements: usize, dimensions: usize, ttl_ms: Option<u64>) -> VectorCache {
        VectorCache::new(Options {
            max_elements,
            dimensions,
            time_to_live: ttl_ms.map(Duration::from_millis),
        })
    }

    fn oracle_similarity(a: &[f64], b: &[f64]) -> f64 {
        let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let norms = norm(a) * norm(b);
        if norms == 0.0 { 0.0 } else { dot / norms }
    }

    #[test]
    fn wrong_lengths_and_infinities_are_refused() {
        let now = Instant::now();
        let mut cache = cache(10, 3, None);
        for vector in [&[][..], &[1.0], &[1.0; 4]] {
            assert_eq!(
                cache.add(vector, now).unwrap_err().to_string(),
                format!("Expected 3 dimensions, got {}", vector.len())
            );
            assert!(cache.max_cosine_similarity(vector, now).is_err());
        }
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = cache.add(&[1.0, 2.0, bad], now).unwrap_err();
            assert_eq!(error.code(), "ERR_INVALID_VECTOR");
            assert!(error.to_string().starts_with("vector[2]"), "{error}");
            let error = cache.max_cosine_similarity(&[bad, 2.0, bad], now).unwrap_err();
            assert!(error.to_string().starts_with("query[0]"), "{error}");
        }
        assert_eq!(cache.len(now), 0);
    }

    #[test]
    fn the_oldest_makes_room() {
        let now = Instant::now();
        let mut cache = cache(2, 2, None);
        cache.add(&[1.0, 0.0], now).unwrap();
        cache.add(&[0.0, 1.0], now).unwrap();
        assert_eq!(cache.max_cosine_similarity(&[1.0, 0.0], now).unwrap(), 1.0);
        cache.add(&[0.0, -1.0], now).unwrap();
        assert_eq!(cache.len(now), 2);
        assert_eq!(cache.max_cosine_similarity(&[1.0, 0.0], now).unwrap(), 0.0);
        cache.clear();
        assert!(cache.is_empty(now));
        assert_eq!(cache.max_cosine_similarity(&[1.0, 0.0], now).unwrap(), 0.0);
    }

    #[test]
    fn a_capacity_of_zero_stores_nothing_but_still_checks() {
        let now = Instant::now();
        let mut cache = cache(0, 2, None);
        cache.add(&[1.0, 0.0], now).unwrap();
        assert_eq!(cache.len(now), 0);
        assert!(cache.add(&[1.0], now).is_err());
    }

    #[test]
    fn an_entry_lives_while_its_age_is_below_the_time_to_live() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut cache = cache(10, 1, Some(100));
        cache.add(&[1.0], at(0)).unwrap();
        cache.add(&[-1.0], at(50)).unwrap();
        assert_eq!(cache.len(at(99)), 2);
        assert_eq!(cache.max_cosine_similarity(&[1.0], at(99)).unwrap(), 1.0);
        assert_eq!(cache.len(at(100)), 1);
        assert_eq!(cache.max_cosine_similarity(&[1.0], at(100)).unwrap(), -1.0);
        cache.evict_expired(at(150));
        assert_eq!(cache.blocks.len(), 0);
    }

    #[test]
    fn a_time_to_live_of_zero_keeps_nothing() {
        let now = Instant::now();
        let mut cache = cache(10, 1, Some(0));
        cache.add(&[1.0], now).unwrap();
        assert_eq!(cache.len(now), 0);
    }

    #[test]
    fn zero_vectors_have_no_similarity() {
        let now = Instant::now();
        let mut cache = cache(10, 2, None);
        cache.add(&[0.0, 0.0], now).unwrap();
        assert_eq!(cache.max_cosine_similarity(&[1.0, 0.0], now).unwrap(), 0.0);
        // The zero vector is in the cache, and 0 is more than -1.
        cache.add(&[-1.0, 0.0], now).unwrap();
        assert_eq!(cache.max_cosine_similarity(&[1.0, 0.0], now).unwrap(), 0.0);
        assert_eq!(cache.max_cosine_similarity(&[0.0, 0.0], now).unwrap(), 0.0);
    }

    #[test]
    fn extreme_magnitudes_keep_their_direction() {
        let now = Instant::now();
        let mut cache = cache(10, 2, None);
        for scale in [f64::MAX, 1e300, 1.0, 1e-40, 1e-300, 5e-324] {
            cache.clear();
            cache.add(&[scale, scale], now).unwrap();
            for query in [f64::MAX, 1.0, 1e-300, 5e-324] {
                let similarity = cache.max_cosine_similarity(&[query, query], now).unwrap();
                assert!((similarity - 1.0).abs() < 1e-6, "{scale} {query}: {similarity}");
            }
        }
    }

    #[test]
    fn a_vector_that_cannot_be_held_is_an_error() {
        // The length must match first, so only the allocation of a block can fail: far beyond memory.
        let mut blocks = Blocks::new(usize::MAX / 8, false);
        assert_eq!(blocks.reserve_one().unwrap_err().code(), "ERR_OUT_OF_MEMORY");
    }

    proptest! {
        #[test]
        fn agrees_with_a_naive_model(
            max_elements in 0usize..9,
            operations in prop::collection::vec((0u8..10, prop::collection::vec(-1.0f64..1.0, 5), 0u64..40), 0..60),
        ) {
            let start = Instant::now();
            let mut elapsed = 0;
            let mut cache = cache(max_elements, 5, Some(100));
            let mut model: VecDeque<(Vec<f64>, u64)> = VecDeque::new();
            for (operation, vector, pause) in operations {
                elapsed += pause;
                let now = start + Duration::from_millis(elapsed);
                model.retain(|(_, added)| elapsed - added < 100);
                if operation < 6 {
                    cache.add(&vector, now).unwrap();
                    if max_elements > 0 {
                        if model.len() == max_elements {
                            model.pop_front();
                        }
                        model.push_back((vector, elapsed));
                    }
                } else if operation < 9 {
                    let expected = model.iter().map(|(v, _)| oracle_similarity(&vector, v)).reduce(f64::max).unwrap_or(0.0);
                    let found = cache.max_cosine_similarity(&vector, now).unwrap();
                    prop_assert!((found - expected).abs() <= 1e-6, "{} {}", found, expected);
                } else {
                    cache.clear();
                    model.clear();
                }
                prop_assert_eq!(cache.len(now), model.len());
            }
        }

        #[test]
        fn agrees_with_double_precision(
            dimensions in 1usize..700,
            count in 0usize..40,
            seed in any::<u64>(),
            exponent in -30i32..30,
        ) {
            // xorshift, so that large caches do not slow down shrinking.
            let mut state = seed | 1;
            let mut component = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                ((state >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * 10f64.powi(exponent)
            };
            let now = Instant::now();
            let mut cache = cache(1000, dimensions, None);
            let vectors: Vec<Vec<f64>> = (0..count).map(|_| (0..dimensions).map(|_| component()).collect()).collect();
            for vector in &vectors {
                cache.add(vector, now).unwrap();
            }
            let query: Vec<f64> = (0..dimensions).map(|_| component()).collect();
            let expected = vectors.iter().map(|v| oracle_similarity(&query, v)).reduce(f64::max).unwrap_or(0.0);
            let found = cache.max_cosine_similarity(&query, now).unwrap();
            prop_assert!((found - expected).abs() <= 1e-6, "{} {}", found, expected);
        }
    }
}
