//! The vector cache for JavaScript.

mod external_memory;
mod files;
mod queue;
mod values;

use std::{sync::Arc, time::SystemTime};

use napi::{
    Env,
    bindgen_prelude::{AsyncTask, Either, Float32ArraySlice, Float64ArraySlice, Object, ObjectFinalize},
};
use napi_derive::napi;

use knowledgepulse_index::{
    shared::{Shared, lock},
    vectors::{Nearest, Options, SharedCache, VectorCache},
};
use knowledgepulse_trace::label::Label;

use crate::{
    background::Background,
    call::NativeCall,
    error::{Result, throw},
    memory_wrap::{MemoryWrap, WrappedMemory, load},
};
use values::{Batch, NativeEntry, NativeNeighbour, Sequence, origin};

pub use values::{NativeBounds, NativeModelIdentity, NativeStoredNeighbour};

pub(super) use external_memory::ExternalMemory;
pub(super) use files::NativeSnapshot;
pub(super) use queue::CallQueue;

/// A vector as the JavaScript layer hands it over: a typed array that it has checked or made.
type Vector<'v> = Either<Float32ArraySlice<'v>, Float64ArraySlice<'v>>;

/// The cache behind `VectorCache`; the JavaScript class checks the types of its arguments.
#[napi(custom_finalize)]
pub struct NativeVectorCache(MemoryWrap<VectorCache>);

impl ObjectFinalize for NativeVectorCache {
    fn finalize(self, env: Env) -> Result<()> {
        self.0.forget(env)
    }
}

impl WrappedMemory for VectorCache {
    type Native = NativeVectorCache;
}

impl From<MemoryWrap<VectorCache>> for NativeVectorCache {
    fn from(wrap: MemoryWrap<VectorCache>) -> Self {
        Self(wrap)
    }
}

impl NativeVectorCache {
    /// Creates a handle to an existing cache that does not depend on it.
    pub(super) fn shared(cache: Arc<SharedCache>) -> Self {
        Self(MemoryWrap::of(cache, None))
    }

    /// Returns the cache itself.
    pub(super) fn share(&self) -> Arc<SharedCache> {
        Arc::clone(&self.0.memory)
    }

    /// Returns whether the cache lives on without this object.
    pub(super) fn is_shared(&self) -> bool {
        self.0.external.is_none()
    }

    /// Returns the bounds of the cache.
    pub(super) fn bounds(&self) -> Options {
        self.0.bounds
    }
}

#[napi]
#[allow(clippy::cast_precision_loss)] // No cache holds or numbers 2^53 vectors.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Safe integers; they saturate.
impl NativeVectorCache {
    /// Creates an empty cache.
    #[napi(constructor, catch_unwind)]
    pub fn new(bounds: NativeBounds) -> Self {
        Self(MemoryWrap::own(VectorCache::new(bounds.into())))
    }

    /// Adds a copy of a vector.
    #[napi(catch_unwind)]
    pub fn add(
        &self,
        env: &Env,
        #[napi(ts_arg_type = "Float32Array | Float64Array")] vector: Vector,
        label: Option<String>,
    ) -> Result<()> {
        let label = label.map(Label::from);
        let added = self.0.change(env, |cache, now| match &vector {
            Either::A(vector) => cache.add::<f32>(vector, label, now),
            Either::B(vector) => cache.add::<f64>(vector, label, now),
        })?;
        added.map_err(|error| throw(env, &error))
    }

    /// Moves the vectors of another cache to the end of this one. No one else may use the other one: both are locked, in this
    /// order.
    #[napi(catch_unwind)]
    pub fn append(&self, env: &Env, newer: &NativeVectorCache) -> Result<()> {
        let appended = self
            .0
            .change(env, |cache, now| cache.append(&mut lock(&newer.0.memory), now))?;
        appended.map_err(|error| throw(env, &error))
    }

    /// Returns the largest cosine similarity to a vector in the cache.
    #[napi(catch_unwind)]
    pub fn max_cosine_similarity(
        &self,
        env: &Env,
        #[napi(ts_arg_type = "Float32Array | Float64Array")] query: Vector,
    ) -> Result<f64> {
        let (mut cache, now) = self.0.lock();
        let similarity = match &query {
            Either::A(query) => cache.max_cosine_similarity::<f32>(query, now),
            Either::B(query) => cache.max_cosine_similarity::<f64>(query, now),
        };
        similarity.map_err(|error| throw(env, &error))
    }

    /// Returns the most similar vectors, the most similar first.
    #[napi(catch_unwind)]
    pub fn nearest(
        &self,
        env: &Env,
        #[napi(ts_arg_type = "Float32Array | Float64Array")] query: Vector,
        count: f64,
    ) -> Result<Vec<NativeNeighbour>> {
        let (mut cache, now) = self.0.lock();
        let neighbours = match &query {
            Either::A(query) => cache.nearest::<f32>(query, count as usize, now),
            Either::B(query) => cache.nearest::<f64>(query, count as usize, now),
        };
        drop(cache);
        let neighbours = neighbours.map_err(|error| throw(env, &error))?;
        Ok(neighbours.into_iter().map(NativeNeighbour::from).collect())
    }

    /// Compares entries of one model and method with the cache, one after another, and adds them: all or none. Resolves to
    /// the nearest entry of each vector; null stands for an empty cache. `vectors` are the vectors of the entries, one after
    /// another. Rejects with `ERR_ABORTED` if the call was cancelled.
    #[napi(catch_unwind, ts_return_type = "Promise<(NativeStoredNeighbour | null)[][]>")]
    pub fn compare_and_add<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "Float32Array")] vectors: Float32ArraySlice,
        entries: Vec<NativeEntry>,
        model: NativeModelIdentity,
        #[napi(ts_arg_type = "string | undefined")] method: Option<String>,
        call: Option<&NativeCall>,
    ) -> Result<Object<'env>> {
        let batch = Batch::new(&vectors, entries, origin(model, method));
        self.0.enqueue(env, call, move |cache, now| {
            let nearest = batch.with(cache, |cache, entries| cache.compare_and_add_batch(entries, now))?;
            let shown = |nearest: Nearest| -> Vec<Option<NativeStoredNeighbour>> {
                nearest.into_iter().map(|found| found.map(Into::into)).collect()
            };
            Ok(nearest.into_iter().map(shown).collect::<Vec<_>>())
        })
    }

    /// As `nearest`, for a vector of a model and method, away from the event loop. Rejects with `ERR_ABORTED` if the call was
    /// cancelled.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeStoredNeighbour[]>")]
    pub fn look_up<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "Float32Array")] vector: Float32ArraySlice,
        count: f64,
        model: NativeModelIdentity,
        #[napi(ts_arg_type = "string | undefined")] method: Option<String>,
        call: Option<&NativeCall>,
    ) -> Result<Object<'env>> {
        let vector = vector.to_vec();
        let origin = origin(model, method);
        self.0.enqueue(env, call, move |cache, now| {
            cache.check_origin(&origin, now)?;
            let neighbours = cache.nearest(&vector, count as usize, now)?;
            Ok(neighbours
                .into_iter()
                .map(NativeStoredNeighbour::from)
                .collect::<Vec<_>>())
        })
    }

    /// Returns the sequence numbers of the living vectors.
    #[napi(catch_unwind)]
    pub fn sequence(&self) -> Sequence {
        let (mut cache, now) = self.0.lock();
        let sequence = cache.sequence(now);
        Sequence {
            start: sequence.start as f64,
            end: sequence.end as f64,
        }
    }

    /// The oldest living vector whose sequence number is in this range.
    #[napi(
        catch_unwind,
        ts_return_type = "{ sequence: number, vector: Float32Array, label?: string } | null"
    )]
    pub fn stored<'env>(&self, env: &'env Env, start: f64, end: f64) -> Result<Option<Object<'env>>> {
        let (mut cache, now) = self.0.lock();
        let stored = cache.stored(start as u64..end as u64, now);
        drop(cache);
        let Some(stored) = stored.map_err(|error| throw(env, &error))? else {
            return Ok(None);
        };
        let mut object = Object::new(env)?;
        object.set("sequence", stored.sequence as f64)?;
        object.set("vector", Float32ArraySlice::copy_from(env, stored.vector)?)?;
        object.set("label", stored.label.as_deref())?;
        Ok(Some(object))
    }

    /// How many vectors live.
    #[napi(getter, catch_unwind)]
    pub fn size(&self) -> f64 {
        let (mut cache, now) = self.0.lock();
        cache.len(now) as f64
    }

    /// The bounds of the cache.
    #[napi(getter, catch_unwind, js_name = "bounds")]
    pub fn native_bounds(&self) -> NativeBounds {
        self.0.bounds.into()
    }

    /// The model that the vectors come from, if it is recorded.
    #[napi(getter, catch_unwind)]
    pub fn model(&self) -> Option<NativeModelIdentity> {
        lock(&self.0.memory).model().cloned().map(Into::into)
    }

    /// The name of the method that the vectors come from, if it is recorded.
    #[napi(getter, catch_unwind, ts_return_type = "string | null")]
    pub fn method(&self) -> Option<String> {
        lock(&self.0.memory).method().map(ToOwned::to_owned)
    }

    /// Throws if vectors of this model and method cannot be compared with those of this cache.
    #[napi(catch_unwind)]
    pub fn check_origin(
        &self,
        env: &Env,
        model: NativeModelIdentity,
        #[napi(ts_arg_type = "string | undefined")] method: Option<String>,
    ) -> Result<()> {
        let (mut cache, now) = self.0.lock();
        let checked = cache.check_origin(&origin(model, method), now);
        drop(cache);
        checked.map_err(|error| throw(env, &error))
    }

    /// Drops expired vectors.
    #[napi(catch_unwind)]
    pub fn evict_expired(&self, env: &Env) -> Result<()> {
        self.0.change(env, VectorCache::evict_expired)
    }

    /// Drops every vector.
    #[napi(catch_unwind)]
    pub fn clear(&self, env: &Env) -> Result<()> {
        self.0.change(env, |cache, _| cache.clear())
    }

    /// Returns the state of the cache, to be saved.
    #[napi(catch_unwind)]
    pub fn snapshot(&self) -> NativeSnapshot {
        let (mut cache, now) = self.0.lock();
        let snapshot = cache.snapshot(now, SystemTime::now());
        NativeSnapshot::of(move |path, call| snapshot.save(path, call))
    }

    /// Loads the cache in a file; the given bounds replace the file's. Rejects with `ERR_ABORTED` if the call was cancelled.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeVectorCache>")]
    pub fn load(
        path: String,
        max_elements: Option<f64>,
        ttl_ms: Option<f64>,
        call: Option<&NativeCall>,
    ) -> AsyncTask<Background<VectorCache, NativeVectorCache>> {
        load(path, max_elements, ttl_ms, call)
    }
}
