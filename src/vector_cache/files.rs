//! Saving and loading a memory, of vectors or of traces, away from the event loop.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use napi::{
    Env, Task,
    bindgen_prelude::{AsyncTask, ToNapiValue, TypeName},
};
use napi_derive::napi;

use knowledgepulse_error::{self as error, Call, Error, guarded};
use knowledgepulse_index::{
    persist::{LoadOptions, time_to_live},
    vectors::VectorCache,
};

use super::NativeVectorCache;
use crate::{
    call::NativeCall,
    error::{Result, rejection, throw},
};

/// Writes a state to a file, unless the call is cancelled.
type Write = Box<dyn FnOnce(&Path, &Call) -> error::Result<()> + Send>;

/// The state of a memory at one moment.
#[napi]
pub struct NativeSnapshot {
    write: Option<Write>,
}

#[napi]
impl NativeSnapshot {
    /// Writes the state to a file, once. Rejects with `ERR_ABORTED` if the call was cancelled.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn save(&mut self, env: &Env, path: String, call: Option<&NativeCall>) -> Result<AsyncTask<Save>> {
        let write = self.write.take().ok_or_else(|| {
            let message = "a snapshot was saved twice";
            throw(env, &Error::Internal(message.into()))
        })?;
        Ok(AsyncTask::new(Save {
            write: Some(write),
            path: path.into(),
            call: call.map(NativeCall::share).unwrap_or_default(),
        }))
    }
}

impl NativeSnapshot {
    /// Returns the state that `write` writes.
    pub(crate) fn of(write: impl FnOnce(&Path, &Call) -> error::Result<()> + Send + 'static) -> Self {
        Self {
            write: Some(Box::new(write)),
        }
    }
}

/// Writing a file, away from the event loop.
pub struct Save {
    /// `None` once it has begun.
    write: Option<Write>,
    path: PathBuf,
    call: Arc<Call>,
}

impl Task for Save {
    type Output = error::Result<()>;
    type JsValue = ();

    fn compute(&mut self) -> Result<Self::Output> {
        let write = self.write.take();
        Ok(guarded(|| {
            let begun_twice = || Error::Internal("a file was written twice".into());
            write.ok_or_else(begun_twice)?(&self.path, &self.call)
        }))
    }

    fn resolve(&mut self, env: Env, saved: Self::Output) -> Result<()> {
        saved.map_err(|error| rejection(env, &error))
    }
}

/// A memory that can be in a file, and the class that JavaScript holds it by.
pub trait Loadable: Sized + Send + 'static {
    /// The class.
    type Native: ToNapiValue + TypeName;

    /// Reads the file, unless the call is cancelled.
    fn load(path: &Path, options: LoadOptions, call: &Call) -> error::Result<Self>;

    /// Hands the memory over to the class, and tells the engine how many bytes it holds.
    fn hand_over(self, env: Env) -> Result<Self::Native>;
}

/// Reading a file, away from the event loop.
pub struct Load<M> {
    path: PathBuf,
    options: LoadOptions,
    call: Arc<Call>,
    loads: std::marker::PhantomData<M>,
}

impl<M: Loadable> Load<M> {
    /// The given bounds, which are non-negative, replace the file's.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Safe integers; they saturate.
    pub(crate) fn of(
        path: String,
        max_elements: Option<f64>,
        ttl_ms: Option<f64>,
        call: Option<&NativeCall>,
    ) -> AsyncTask<Self> {
        AsyncTask::new(Self {
            call: call.map(NativeCall::share).unwrap_or_default(),
            path: path.into(),
            options: LoadOptions {
                max_elements: max_elements.map(|number| number as usize),
                time_to_live: ttl_ms.map(time_to_live),
            },
            loads: std::marker::PhantomData,
        })
    }
}

impl<M: Loadable> Task for Load<M> {
    type Output = error::Result<M>;
    type JsValue = M::Native;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(guarded(|| M::load(&self.path, self.options, &self.call)))
    }

    fn resolve(&mut self, env: Env, loaded: Self::Output) -> Result<M::Native> {
        let memory = loaded.map_err(|error| rejection(env, &error))?;
        memory.hand_over(env)
    }
}

impl Loadable for VectorCache {
    type Native = NativeVectorCache;

    fn load(path: &Path, options: LoadOptions, call: &Call) -> error::Result<Self> {
        Self::load_unless_cancelled(path, options, call)
    }

    fn hand_over(self, env: Env) -> Result<NativeVectorCache> {
        let bytes = self.bytes();
        let cache = NativeVectorCache::own(self);
        cache.tell(env, bytes)?;
        Ok(cache)
    }
}
