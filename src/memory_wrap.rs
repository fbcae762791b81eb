//! The object wrap of a memory of vectors or of traces: what both classes have in common.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};

use napi::{
    Env,
    bindgen_prelude::{AsyncTask, Object, ToNapiValue, TypeName},
};

use knowledgepulse_error as error;
use knowledgepulse_index::{
    persist::{LoadOptions, time_to_live},
    shared::{Shared, lock, lock_as_is},
    vectors::Options,
};

use crate::{
    background::{self, Background},
    call::NativeCall,
    error::Result,
    vector_cache::{CallQueue, ExternalMemory},
};

/// A memory that an object of JavaScript wraps, and the class of the object.
pub trait WrappedMemory: Shared + Sized + 'static {
    /// The class.
    type Native: From<MemoryWrap<Self>> + ToNapiValue + TypeName + 'static;
}

/// The memory of an object, with what the object needs beside it.
pub struct MemoryWrap<M> {
    pub(super) memory: Arc<Mutex<M>>,
    /// The bounds of the memory, which never change: the event loop need not wait for the memory to know them.
    pub(super) bounds: Options,
    /// The size of the memory as reported to the JavaScript engine; `None` if the memory lives on without the object.
    pub(super) external: Option<Arc<ExternalMemory>>,
    /// Calls that were made and have not begun.
    queue: Arc<CallQueue>,
}

impl<M: WrappedMemory> MemoryWrap<M> {
    /// Wraps a memory that other objects may wrap too.
    pub(super) fn of(memory: Arc<Mutex<M>>, external: Option<Arc<ExternalMemory>>) -> Self {
        let bounds = *lock_as_is(&memory).options();
        Self {
            memory,
            bounds,
            external,
            queue: Arc::default(),
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
