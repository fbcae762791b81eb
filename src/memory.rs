//! The memories behind `TraceMemory` and `VectorCache`. The JavaScript classes check the types of their arguments.

use std::{
    path::Path,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Instant, SystemTime},
};

use napi::{
    Env,
    bindgen_prelude::{AsyncTask, Either, Float32ArraySlice, Float64ArraySlice, ObjectFinalize, Uint8Array},
};
use napi_derive::napi;

use knowledgepulse_error::Error;
use knowledgepulse_index::{
    memory::Memory,
    method::Method,
    options::MemoryOptions,
    persist::{Snapshot, time_to_live},
    shared::{SharedMemory, lock},
    vectors::{SharedCache, VectorCache},
};

use crate::{
    background::{self, Background},
    call::NativeCall,
    error::{Result, throw},
};

/// The novelty memory of `evaluateValue`, which all threads of the process share.
static OF_PROCESS: LazyLock<Arc<SharedCache>> =
    LazyLock::new(|| Arc::new(VectorCache::new(MemoryOptions::default()).into()));

/// Returns the memory of `evaluateValue`: the live one, not a copy.
#[napi(catch_unwind)]
pub fn local_cache() -> NativeVectorCache {
    NativeVectorCache {
        cache: Arc::clone(&OF_PROCESS),
        told: None,
    }
}

/// Returns the same memory for a scorer.
#[napi(catch_unwind)]
pub fn local_memory() -> NativeTraceMemory {
    Memory::Vectors(Arc::clone(&OF_PROCESS)).into()
}

/// The bounds of a memory.
#[napi(object, object_to_js = false)]
pub struct NativeBounds {
    pub max_elements: f64,
    pub dimensions: f64,
    /// How many milliseconds each entry lives; infinity for ever.
    pub ttl_ms: f64,
}

impl From<NativeBounds> for MemoryOptions {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Safe integers; they saturate.
    fn from(bounds: NativeBounds) -> Self {
        Self {
            max_elements: bounds.max_elements as usize,
            dimensions: (bounds.dimensions as usize).max(1),
            time_to_live: time_to_live(bounds.ttl_ms),
        }
    }
}

/// By how many bytes a memory grows before the JavaScript engine is told. Telling it for every vector would cost more than adding one.
const WORTH_TELLING: usize = 1024 * 1024;

/// The bytes of a memory that the JavaScript engine knows to be held by an object, so that it collects garbage in time.
#[derive(Default)]
struct Told(AtomicUsize);

impl Told {
    #[allow(clippy::cast_possible_wrap)] // No memory has 2^63 bytes.
    fn tell(&self, env: Env, bytes: usize) -> Result<()> {
        let told = self.0.load(Ordering::Relaxed);
        if bytes == 0 || bytes.abs_diff(told) >= WORTH_TELLING {
            env.adjust_external_memory(bytes as i64 - told as i64)?;
            self.0.store(bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The memory behind `TraceMemory`.
#[napi(custom_finalize)]
pub struct NativeTraceMemory {
    memory: Memory,
    told: Told,
}

impl ObjectFinalize for NativeTraceMemory {
    fn finalize(self, env: Env) -> Result<()> {
        self.told.tell(env, 0)
    }
}

impl From<Memory> for NativeTraceMemory {
    fn from(memory: Memory) -> Self {
        let told = Told::default();
        Self { memory, told }
    }
}

impl NativeTraceMemory {
    /// Returns another reference to the memory.
    pub(super) fn share(&self) -> Memory {
        self.memory.clone()
    }
}

#[napi]
impl NativeTraceMemory {
    /// Creates an empty memory that compares by this method.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: &Env, method: String, bounds: NativeBounds) -> Result<Self> {
        let method = Method::from_name(&method)
            .ok_or_else(|| throw(env, &Error::Internal(format!("there is no method {method:?}"))))?;
        Ok(Memory::new(method, bounds.into()).into())
    }

    /// Loads the memory in a file, or in the bytes of one.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeTraceMemory>")]
    pub fn load(
        source: Either<String, Uint8Array>,
        call: &NativeCall,
    ) -> AsyncTask<Background<Memory, NativeTraceMemory>> {
        let call = call.share();
        background::run_then(
            move || {
                call.check()?;
                match source {
                    Either::A(path) => Memory::load(Path::new(&path)),
                    Either::B(bytes) => Memory::read(&bytes),
                }
            },
            |env, memory| {
                let loaded = Self::from(memory);
                loaded.told.tell(env, lock(loaded.memory.held()).bytes())?;
                Ok(loaded)
            },
        )
    }

    /// Returns the memory as it is now, to be written to a file.
    #[napi(catch_unwind)]
    pub fn snapshot(&self) -> NativeSnapshot {
        let snapshot = lock(self.memory.held()).snapshot(Instant::now(), SystemTime::now());
        NativeSnapshot(Arc::new(snapshot))
    }

    /// The method by which traces are compared.
    #[napi(getter, catch_unwind, ts_return_type = "'prefix' | 'lexical' | 'full'")]
    pub fn method(&self) -> &'static str {
        self.memory.method().name()
    }

    /// How many traces live.
    #[napi(getter, catch_unwind)]
    #[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
    pub fn size(&self) -> f64 {
        lock(self.memory.held()).len(Instant::now()) as f64
    }

    /// Forgets every trace.
    #[napi(catch_unwind)]
    pub fn clear(&self) {
        lock(self.memory.held()).clear();
    }
}

/// A memory as it was.
#[napi]
pub struct NativeSnapshot(Arc<Snapshot>);

#[napi]
impl NativeSnapshot {
    /// Writes it to a file.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn save(&self, path: String, call: &NativeCall) -> AsyncTask<Background<()>> {
        let (snapshot, call) = (Arc::clone(&self.0), call.share());
        background::run(move || {
            if !call.complete() {
                return Err(Error::Aborted);
            }
            snapshot.save(Path::new(&path))
        })
    }

    /// Resolves to the bytes of such a file.
    #[napi(catch_unwind, ts_return_type = "Promise<Uint8Array>")]
    pub fn bytes(&self) -> AsyncTask<Background<Uint8Array>> {
        let snapshot = Arc::clone(&self.0);
        background::run(move || {
            let mut bytes = Vec::new();
            let written = snapshot.write(&mut bytes);
            written.map_err(|error| Error::Internal(error.to_string()))?;
            Ok(bytes.into())
        })
    }
}

/// A vector as the JavaScript layer hands it over: a typed array that it has checked or made.
type Vector<'v> = Either<Float32ArraySlice<'v>, Float64ArraySlice<'v>>;

/// The cache behind `VectorCache`.
#[napi(custom_finalize)]
pub struct NativeVectorCache {
    cache: Arc<SharedCache>,
    /// `None` for the cache of the process, which lives on without the object.
    told: Option<Told>,
}

impl ObjectFinalize for NativeVectorCache {
    fn finalize(self, env: Env) -> Result<()> {
        self.told.map_or(Ok(()), |told| told.tell(env, 0))
    }
}

impl NativeVectorCache {
    /// Changes the cache, and tells the JavaScript engine how many bytes it holds then.
    fn change<T>(&self, env: Env, act: impl FnOnce(&mut VectorCache, Instant) -> T) -> Result<T> {
        let mut cache = lock(&self.cache);
        // Reads the clock under the lock: a thread that has waited for it adds its vectors later.
        let result = act(&mut cache, Instant::now());
        let bytes = cache.bytes();
        drop(cache);
        if let Some(told) = &self.told {
            told.tell(env, bytes)?;
        }
        Ok(result)
    }
}

#[napi]
impl NativeVectorCache {
    /// Creates an empty cache.
    #[napi(constructor, catch_unwind)]
    pub fn new(bounds: NativeBounds) -> Self {
        Self {
            cache: Arc::new(VectorCache::new(bounds.into()).into()),
            told: Some(Told::default()),
        }
    }

    /// Adds a copy of a vector.
    #[napi(catch_unwind)]
    pub fn add(
        &self,
        env: &Env,
        #[napi(ts_arg_type = "Float32Array | Float64Array")] vector: Vector,
    ) -> Result<()> {
        let added = self.change(*env, |cache, now| match &vector {
            Either::A(vector) => cache.add::<f32>(vector, None, now),
            Either::B(vector) => cache.add::<f64>(vector, None, now),
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
        let mut cache = lock(&self.cache);
        let similarity = match &query {
            Either::A(query) => cache.max_cosine_similarity::<f32>(query, Instant::now()),
            Either::B(query) => cache.max_cosine_similarity::<f64>(query, Instant::now()),
        };
        drop(cache);
        similarity.map_err(|error| throw(env, &error))
    }

    /// How many vectors live.
    #[napi(getter, catch_unwind)]
    #[allow(clippy::cast_precision_loss)] // No cache holds 2^53 vectors.
    pub fn size(&self) -> f64 {
        lock(&self.cache).len(Instant::now()) as f64
    }

    /// Forgets expired vectors.
    #[napi(catch_unwind)]
    pub fn evict_expired(&self, env: &Env) -> Result<()> {
        self.change(*env, |cache, now| cache.evict_expired(now))
    }

    /// Forgets every vector.
    #[napi(catch_unwind)]
    pub fn clear(&self, env: &Env) -> Result<()> {
        self.change(*env, |cache, _| cache.clear())
    }
}
