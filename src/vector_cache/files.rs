//! Saving a memory, of vectors or of traces, away from the event loop.

use std::path::Path;

use napi::{Env, bindgen_prelude::AsyncTask};
use napi_derive::napi;

use knowledgepulse_error::{self as error, Call, Error};

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
