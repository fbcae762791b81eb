//! The object wrap of a memory of vectors or of traces: what both classes have in common.

mod external_memory;
mod queue;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
    time::{Instant, SystemTime},
};

use napi::{
    Env,
    bindgen_prelude::{AsyncTask, Object, ToNapiValue, TypeName},
};

use knowledgepulse_error as error;
use knowledgepulse_index::{
    options::MemoryOptions,
    persist::{LoadOptions, time_to_live},
    shared::{SharedMemory, lock},
};

use crate::{
    background::{self, Background},
    call::NativeCall,
    error::Result,
};
use external_memory::ExternalMemory;
use queue::CallQueue;

/// A memory that an object of JavaScript wraps, and the class of the object.
pub trait WrappedMemory: SharedMemory + Sized + 'static {
    /// The class.
    type Native: From<MemoryWrap<Self>> + ToNapiValue + TypeName + 'static;
}

/// The memory of an object, with what the object needs beside it.
pub struct MemoryWrap<M> {
    pub(super) memory: Arc<Mutex<M>>,
    /// The bounds of the memory, which never change: the event loop need not wait for the memory to know them.
    pub(super) bounds: MemoryOptions,
    /// The size of the memory as reported to the JavaScript engine; `None` if the memory lives on without the object.
    pub(super) external: Option<Arc<ExternalMemory>>,
    /// Calls that were made and have not begun.
    queue: Arc<CallQueue>,
    /// The same of saves, for which no other call waits.
    saves: Arc<CallQueue>,
}

impl<M: WrappedMemory> MemoryWrap<M> {
    /// Wraps a memory that other objects may wrap too.
    pub(super) fn of(memory: Arc<Mutex<M>>, external: Option<Arc<ExternalMemory>>) -> Self {
        let bounds = *lock(&memory).options();
        Self {
            memory,
            bounds,
            external,
            queue: Arc::default(),
            saves: Arc::default(),
        }
    }

    /// Wraps a new memory.
    pub(super) fn own(memory: M) -> Self {
        Self::of(Arc::new(Mutex::new(memory)), Some(Arc::default()))
    }

    /// Locks the memory, and reads the clock after that: a thread that has waited for the lock adds its entries later than
    /// the thread that held it.
    pub(super) fn lock(&self) -> (MutexGuard<'_, M>, Instant) {
        let memory = lock(&self.memory);
        (memory, Instant::now())
    }

    /// Changes the memory, and tells the engine how many bytes are held then.
    pub(super) fn change<T>(&self, env: &Env, act: impl FnOnce(&mut M, Instant) -> T) -> Result<T> {
        let (mut memory, now) = self.lock();
        let result = act(&mut memory, now);
        let bytes = memory.bytes();
        drop(memory);
        self.tell(*env, bytes)?;
        Ok(result)
    }

    /// Writes the state of the memory to a file, after earlier saves.
    pub(super) fn save<'env>(
        &self,
        env: &'env Env,
        path: String,
        call: Option<&NativeCall>,
    ) -> Result<Object<'env>> {
        let call = call.map(NativeCall::share).unwrap_or_default();
        let (mut memory, now) = self.lock();
        let snapshot = memory.snapshot(now, SystemTime::now());
        drop(memory);
        let path = PathBuf::from(path);
        self.saves.save(env, move || snapshot.save(&path, &call))
    }

    fn tell(&self, env: Env, bytes: usize) -> Result<()> {
        let external = self.external.as_ref();
        external.map_or(Ok(()), |external| external.tell(env, bytes))
    }

    /// Tells the engine that the object is gone.
    pub(super) fn forget(&self, env: Env) -> Result<()> {
        let external = self.external.as_ref();
        external.map_or(Ok(()), |external| external.forget(env))
    }

    /// [`CallQueue::enqueue`] for the memory.
    pub(super) fn enqueue<'env, T: ToNapiValue + Send + 'static>(
        &self,
        env: &'env Env,
        call: Option<&NativeCall>,
        act: impl FnOnce(&mut M, Instant) -> error::Result<T> + Send + 'static,
    ) -> Result<Object<'env>> {
        let external = self.external.clone();
        self.queue
            .enqueue(env, call, external, &self.memory, M::bytes, act)
    }
}

/// Reads a file, away from the event loop. The given bounds, which are non-negative, replace the file's.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Safe integers; they saturate.
pub(super) fn load<M: WrappedMemory>(
    path: String,
    max_elements: Option<f64>,
    ttl_ms: Option<f64>,
    call: Option<&NativeCall>,
) -> AsyncTask<Background<M, M::Native>> {
    let call = call.map(NativeCall::share).unwrap_or_default();
    let options = LoadOptions {
        max_elements: max_elements.map(|number| number as usize),
        time_to_live: ttl_ms.map(time_to_live),
    };
    background::run_then(
        move || M::load(Path::new(&path), options, &call),
        |env, memory| {
            let bytes = memory.bytes();
            let wrap = MemoryWrap::own(memory);
            wrap.tell(env, bytes)?;
            Ok(wrap.into())
        },
    )
}

/// The methods that the classes of both memories have.
macro_rules! memory_class {
    ($Native:ident, $Memory:ident, $name:literal) => {
        #[napi]
        #[allow(clippy::cast_precision_loss)] // No memory holds or numbers 2^53 entries.
        impl $Native {
            /// Returns the sequence numbers of the living entries: that of the oldest, and one more than that of the newest.
            #[napi(catch_unwind, ts_return_type = "[number, number]")]
            pub fn sequence(&self) -> Vec<f64> {
                let (mut memory, now) = self.wrap.lock();
                let sequence = memory.sequence(now);
                vec![sequence.start as f64, sequence.end as f64]
            }

            /// How many entries live.
            #[napi(getter, catch_unwind)]
            pub fn size(&self) -> f64 {
                let (mut memory, now) = self.wrap.lock();
                memory.len(now) as f64
            }

            /// Resolves to how many entries live, after the calls before.
            #[napi(catch_unwind, ts_return_type = "Promise<number>")]
            pub fn count<'env>(&self, env: &'env Env, call: Option<&NativeCall>) -> Result<Object<'env>> {
                self.wrap
                    .enqueue(env, call, |memory, now| Ok(memory.len(now) as f64))
            }

            /// The bounds of the memory.
            #[napi(getter, catch_unwind, js_name = "bounds")]
            pub fn native_bounds(&self) -> NativeBounds {
                self.wrap.bounds.into()
            }

            /// The model that the vectors come from, if that was said.
            #[napi(getter, catch_unwind)]
            pub fn model(&self) -> Option<NativeModelIdentity> {
                self.wrap.lock().0.model().cloned().map(Into::into)
            }

            /// Throws if vectors of this model, and of this method if one is given, cannot be compared with those of this memory.
            #[napi(catch_unwind)]
            pub fn check_origin(
                &self,
                env: &Env,
                model: NativeModelIdentity,
                #[napi(ts_arg_type = "string | undefined")] method: Option<String>,
            ) -> Result<()> {
                let origin = Origin {
                    model: Some(model.into()),
                    method,
                };
                let (mut memory, now) = self.wrap.lock();
                let checked = memory.check_origin(&origin, now);
                drop(memory);
                checked.map_err(|error| throw(env, &error))
            }

            /// How many bytes the memory takes, beside labels.
            #[napi(getter, catch_unwind)]
            pub fn bytes(&self) -> f64 {
                self.wrap.lock().0.bytes() as f64
            }

            /// Forgets expired entries.
            #[napi(catch_unwind)]
            pub fn evict_expired(&self, env: &Env) -> Result<()> {
                self.wrap
                    .change(env, |memory, now| memory.evict_expired(now))
            }

            /// Forgets every entry.
            #[napi(catch_unwind)]
            pub fn clear(&self, env: &Env) -> Result<()> {
                self.wrap.change(env, |memory, _| memory.clear())
            }

            /// Writes the state of the memory to a file, after earlier saves. Rejects with `ERR_ABORTED` if the call was cancelled.
            #[napi(catch_unwind, ts_return_type = "Promise<void>")]
            pub fn save<'env>(
                &self,
                env: &'env Env,
                path: String,
                call: Option<&NativeCall>,
            ) -> Result<Object<'env>> {
                self.wrap.save(env, path, call)
            }

            /// Loads the memory in a file; the given bounds replace the file's. Rejects with `ERR_ABORTED` if the call was cancelled.
            #[napi(catch_unwind, ts_return_type = $name)]
            pub fn load(
                path: String,
                max_elements: Option<f64>,
                ttl_ms: Option<f64>,
                call: Option<&NativeCall>,
            ) -> AsyncTask<Background<$Memory, $Native>> {
                load(path, max_elements, ttl_ms, call)
            }
        }
    };
}
pub(crate) use memory_class;
