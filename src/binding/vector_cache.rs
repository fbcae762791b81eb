//! The vector cache for JavaScript.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use napi::{
    Env,
    bindgen_prelude::{Either, Float32ArraySlice, Float64ArraySlice},
};
use napi_derive::napi;

use super::error::{Result, throw};
use crate::{
    cache::{Options, VectorCache},
    novelty::{SharedCache, lock},
};

/// A vector as the JavaScript layer hands it over: a typed array that it has checked or made.
type Vector<'v> = Either<Float32ArraySlice<'v>, Float64ArraySlice<'v>>;

/// The cache behind `VectorCache`; the JavaScript class checks the types of its arguments.
#[napi]
pub struct NativeVectorCache {
    cache: Arc<SharedCache>,
}

impl NativeVectorCache {
    /// A handle to an existing cache.
    pub(super) fn shared(cache: Arc<SharedCache>) -> Self {
        Self { cache }
    }

    /// The cache itself.
    pub(super) fn share(&self) -> Arc<SharedCache> {
        Arc::clone(&self.cache)
    }
}

#[napi]
impl NativeVectorCache {
    /// An empty cache. The numbers are non-negative; an infinite time to live is none.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Safe integers; they saturate.
    pub fn new(max_elements: f64, dimensions: f64, ttl_ms: f64) -> Self {
        let options = Options {
            max_elements: max_elements as usize,
            dimensions: (dimensions as usize).max(1),
            // Fails for what a duration cannot hold: half a trillion years and more.
            time_to_live: Duration::try_from_secs_f64(ttl_ms / 1000.0).ok(),
        };
        Self::shared(Arc::new(Mutex::new(VectorCache::new(options))))
    }

    /// Adds a copy of a vector.
    #[napi(catch_unwind)]
    pub fn add(
        &self,
        env: &Env,
        #[napi(ts_arg_type = "Float32Array | Float64Array")] vector: Vector,
    ) -> Result<()> {
        let now = Instant::now();
        let mut cache = lock(&self.cache);
        let added = match &vector {
            Either::A(vector) => cache.add::<f32>(vector, None, now),
            Either::B(vector) => cache.add::<f64>(vector, None, now),
        };
        added.map_err(|error| throw(env, &error))
    }

    /// The largest cosine similarity to a vector in the cache.
    #[napi(catch_unwind)]
    pub fn max_cosine_similarity(
        &self,
        env: &Env,
        #[napi(ts_arg_type = "Float32Array | Float64Array")] query: Vector,
    ) -> Result<f64> {
        let now = Instant::now();
        let mut cache = lock(&self.cache);
        let similarity = match &query {
            Either::A(query) => cache.max_cosine_similarity::<f32>(query, now),
            Either::B(query) => cache.max_cosine_similarity::<f64>(query, now),
        };
        similarity.map_err(|error| throw(env, &error))
    }

    /// How many vectors live.
    #[napi(getter, catch_unwind)]
    #[allow(clippy::cast_precision_loss)] // No cache holds 2^53 vectors.
    pub fn size(&self) -> f64 {
        lock(&self.cache).len(Instant::now()) as f64
    }

    /// Drops expired vectors.
    #[napi(catch_unwind)]
    pub fn evict_expired(&self) {
        lock(&self.cache).evict_expired(Instant::now());
    }

    /// Drops every vector.
    #[napi(catch_unwind)]
    pub fn clear(&self) {
        lock(&self.cache).clear();
    }
}
