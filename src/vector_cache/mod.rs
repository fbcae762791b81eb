//! The vector cache for JavaScript.

mod values;

use std::sync::Arc;

use napi::{
    Env,
    bindgen_prelude::{AsyncTask, Either, Float32ArraySlice, Float64ArraySlice, Object, ObjectFinalize},
};
use napi_derive::napi;

use knowledgepulse_index::{
    options::Origin,
    shared::{SharedMemory, lock},
    vectors::{NearestVectors, SharedCache, VectorCache},
};
use knowledgepulse_trace::label::Label;

use crate::{
    background::Background,
    call::NativeCall,
    error::{Result, throw},
    memory_wrap::{MemoryWrap, WrappedMemory, load, memory_class},
};
use values::{Batch, NativeEntry, NativeNeighbour, origin};

pub use values::{NativeBounds, NativeModelIdentity, NativeStoredNeighbour};

/// A vector as the JavaScript layer hands it over: a typed array that it has checked or made.
type Vector<'v> = Either<Float32ArraySlice<'v>, Float64ArraySlice<'v>>;

/// The cache behind `VectorCache`; the JavaScript class checks the types of its arguments.
#[napi(custom_finalize)]
pub struct NativeVectorCache {
    wrap: MemoryWrap<VectorCache>,
}

impl ObjectFinalize for NativeVectorCache {
    fn finalize(self, env: Env) -> Result<()> {
        self.wrap.forget(env)
    }
}

impl WrappedMemory for VectorCache {
    type Native = NativeVectorCache;
}

impl From<MemoryWrap<VectorCache>> for NativeVectorCache {
    fn from(wrap: MemoryWrap<VectorCache>) -> Self {
        Self { wrap }
    }
}

impl NativeVectorCache {
    /// Creates a handle to an existing cache that does not depend on it.
    pub(super) fn shared(cache: Arc<SharedCache>) -> Self {
        MemoryWrap::of(cache, None).into()
    }

    /// Returns the cache itself.
    pub(super) fn share(&self) -> Arc<SharedCache> {
        Arc::clone(&self.wrap.memory)
    }

    /// Returns whether the cache lives on without this object.
    pub(super) fn is_shared(&self) -> bool {
        self.wrap.external.is_none()
    }
}

#[napi]
#[allow(clippy::cast_precision_loss)] // No cache holds or numbers 2^53 vectors.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Safe integers; they saturate.
impl NativeVectorCache {
    /// Creates an empty cache.
    #[napi(constructor, catch_unwind)]
    pub fn new(bounds: NativeBounds) -> Self {
        MemoryWrap::own(VectorCache::new(bounds.into())).into()
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
        let added = self.wrap.change(env, |cache, now| match &vector {
            Either::A(vector) => cache.add::<f32>(vector, label, now),
            Either::B(vector) => cache.add::<f64>(vector, label, now),
        })?;
        added.map_err(|error| throw(env, &error))
    }

    /// Returns the largest cosine similarity to a vector in the cache.
    #[napi(catch_unwind)]
    pub fn max_cosine_similarity(
        &self,
        env: &Env,
        #[napi(ts_arg_type = "Float32Array | Float64Array")] query: Vector,
    ) -> Result<f64> {
        let (mut cache, now) = self.wrap.lock();
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
        let (mut cache, now) = self.wrap.lock();
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
        self.wrap.enqueue(env, call, move |cache, now| {
            let nearest = batch.with(cache, |cache, entries| cache.compare_and_add_batch(entries, now))?;
            let shown = |nearest: NearestVectors| -> Vec<Option<NativeStoredNeighbour>> {
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
        self.wrap.enqueue(env, call, move |cache, now| {
            cache.check_origin(&origin, now)?;
            let neighbours = cache.nearest(&vector, count as usize, now)?;
            Ok(neighbours
                .into_iter()
                .map(NativeStoredNeighbour::from)
                .collect::<Vec<_>>())
        })
    }

    /// The oldest living vector whose sequence number is in this range.
    #[napi(
        catch_unwind,
        ts_return_type = "{ sequence: number, vector: Float32Array, label?: string } | null"
    )]
    pub fn stored<'env>(&self, env: &'env Env, start: f64, end: f64) -> Result<Option<Object<'env>>> {
        let (mut cache, now) = self.wrap.lock();
        let stored = cache.stored(start as u64..end as u64, now);
        drop(cache);
        let Some(stored) = stored else {
            return Ok(None);
        };
        let mut object = Object::new(env)?;
        object.set("sequence", stored.sequence as f64)?;
        object.set("vector", Float32ArraySlice::copy_from(env, stored.vector)?)?;
        object.set("label", stored.label.as_deref())?;
        Ok(Some(object))
    }

    /// The name of the method that the vectors come from, if it is recorded.
    #[napi(getter, catch_unwind, ts_return_type = "string | null")]
    pub fn method(&self) -> Option<String> {
        lock(&self.wrap.memory).method().map(ToOwned::to_owned)
    }
}

memory_class!(NativeVectorCache, VectorCache, "Promise<NativeVectorCache>");
