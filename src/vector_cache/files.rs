//! Saving and loading a memory, of vectors or of traces, away from the event loop.

use std::path::Path;

use napi::{
    Env,
    bindgen_prelude::{AsyncTask, ToNapiValue, TypeName},
};
use napi_derive::napi;

use knowledgepulse_error::{self as error, Call, Error};
use knowledgepulse_index::{
    persist::{LoadOptions, time_to_live},
    vectors::VectorCache,
};

use super::NativeVectorCache;
use crate::{
    background::{self, Background},
    call::NativeCall,
    error::{Result, throw},
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
    pub fn save(
        &mut self,
        env: &Env,
        path: String,
        call: Option<&NativeCall>,
    ) -> Result<AsyncTask<Background<()>>> {
        let write = self.write.take().ok_or_else(|| {
            let message = "a snapshot was saved twice";
            throw(env, &Error::Internal(message.into()))
        })?;
        let call = call.map(NativeCall::share).unwrap_or_default();
        Ok(background::run(move || write(Path::new(&path), &call)))
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

/// A memory that can be in a file, and the class that JavaScript holds it by.
pub trait Loadable: Sized + Send + 'static {
    /// The class.
    type Native: ToNapiValue + TypeName + 'static;

    /// Reads the file, unless the call is cancelled.
    fn load(path: &Path, options: LoadOptions, call: &Call) -> error::Result<Self>;

    /// Hands the memory over to the class, and tells the engine how many bytes it holds.
    fn hand_over(self, env: Env) -> Result<Self::Native>;
}

/// Reads a file, away from the event loop. The given bounds, which are non-negative, replace the file's.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Safe integers; they saturate.
pub(crate) fn load<M: Loadable>(
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
        |env, memory| memory.hand_over(env),
    )
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
