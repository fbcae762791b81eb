//! Work away from the event loop, on the thread pool.

use std::sync::{Mutex, MutexGuard, PoisonError};

use napi::{
    Env, Task,
    bindgen_prelude::{AsyncTask, ToNapiValue, TypeName},
};

use knowledgepulse_error::{self as error, Error, guarded};

use crate::error::{Result, rejection};

/// Work whose result settles a promise.
pub struct Background<T, J = T> {
    /// `None` once it has begun.
    work: Option<Box<dyn FnOnce() -> error::Result<T> + Send>>,
    convert: fn(Env, T) -> Result<J>,
}

/// Runs `work` on the thread pool. The promise rejects with its error.
pub(super) fn run<T: ToNapiValue + TypeName + Send + 'static>(
    work: impl FnOnce() -> error::Result<T> + Send + 'static,
) -> AsyncTask<Background<T>> {
    run_then(work, |_, result| Ok(result))
}

/// Runs `work` on the thread pool, then `convert` on the thread of JavaScript.
pub(super) fn run_then<T: Send + 'static, J: ToNapiValue + TypeName + 'static>(
    work: impl FnOnce() -> error::Result<T> + Send + 'static,
    convert: fn(Env, T) -> Result<J>,
) -> AsyncTask<Background<T, J>> {
    AsyncTask::new(Background {
        work: Some(Box::new(work)),
        convert,
    })
}

impl<T: Send + 'static, J: ToNapiValue + TypeName + 'static> Task for Background<T, J> {
    type Output = error::Result<T>;
    type JsValue = J;

    fn compute(&mut self) -> Result<Self::Output> {
        let work = self.work.take();
        let begun_twice = || Error::Internal("a task was begun twice".into());
        Ok(guarded(|| work.ok_or_else(begun_twice)?()))
    }

    fn resolve(&mut self, env: Env, result: Self::Output) -> Result<J> {
        let result = result.map_err(|error| rejection(env, &error))?;
        (self.convert)(env, result)
    }
}

/// Locks what a panic cannot leave half changed.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
