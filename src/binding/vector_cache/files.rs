//! Saving and loading a cache away from the event loop.

use std::{path::PathBuf, sync::Arc};

use napi::{Env, Task, bindgen_prelude::AsyncTask};
use napi_derive::napi;

use super::{NativeVectorCache, without_panic};
use crate::{
    binding::{
        call::NativeCall,
        error::{Result, into_unknown, throw},
    },
    cache::{
        VectorCache,
        file::{LoadOptions, Snapshot},
    },
    call::Call,
    error::{self, Error},
};

/// The state of a cache at one moment.
#[napi]
pub struct NativeSnapshot {
    pub(super) snapshot: Option<Snapshot>,
}

#[napi]
impl NativeSnapshot {
    /// Writes the state to a file, once. Rejects with `ERR_ABORTED` if the call was cancelled.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn save(&mut self, env: &Env, path: String, call: Option<&NativeCall>) -> Result<AsyncTask<Save>> {
        let snapshot = self.snapshot.take().ok_or_else(|| {
            let message = "a snapshot was saved twice";
            throw(env, &Error::Internal(message.into()))
        })?;
        Ok(AsyncTask::new(Save {
            snapshot,
            path: path.into(),
            call: call.map(NativeCall::share).unwrap_or_default(),
        }))
    }
}

/// Writing a file, away from the event loop.
pub struct Save {
    snapshot: Snapshot,
    path: PathBuf,
    call: Arc<Call>,
}

impl Task for Save {
    type Output = error::Result<()>;
    type JsValue = ();

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(without_panic(|| {
            self.snapshot.save_unless_cancelled(&self.path, &self.call)
        }))
    }

    fn resolve(&mut self, env: Env, saved: Self::Output) -> Result<()> {
        saved.map_err(|error| napi::Error::from(into_unknown(&env, &error)))
    }
}

/// Reading a file, away from the event loop.
pub struct Load {
    pub(super) path: PathBuf,
    pub(super) options: LoadOptions,
    pub(super) call: Arc<Call>,
}

impl Task for Load {
    type Output = error::Result<VectorCache>;
    type JsValue = NativeVectorCache;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(without_panic(|| {
            VectorCache::load_unless_cancelled(&self.path, self.options, &self.call)
        }))
    }

    fn resolve(&mut self, env: Env, loaded: Self::Output) -> Result<NativeVectorCache> {
        let cache = loaded.map_err(|error| napi::Error::from(into_unknown(&env, &error)))?;
        let bytes = cache.bytes();
        let cache = NativeVectorCache::own(cache);
        cache.tell(env, bytes)?;
        Ok(cache)
    }
}
