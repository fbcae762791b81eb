//! Locks of files for JavaScript.

use std::{io, path::PathBuf};

use napi::Error;
use napi_derive::napi;

use knowledgepulse_os::file_lock::{FileLock, remove_abandoned};

use crate::error::Result;

/// A file that is held until `release` or the end of the process.
#[napi]
pub struct NativeFileLock {
    lock: Option<FileLock>,
}

#[napi]
impl NativeFileLock {
    /// The lock file at `path`, which says `kind` and `text`; null if another has it.
    #[napi(catch_unwind)]
    pub fn create(path: String, kind: String, text: String) -> Result<Option<NativeFileLock>> {
        let lock = FileLock::create(&PathBuf::from(path), &kind, &text).map_err(|error| failed(&error))?;
        Ok(lock.map(|lock| Self { lock: Some(lock) }))
    }

    /// Keeps `removeAbandoned` from removing the file at `path`.
    #[napi(catch_unwind)]
    pub fn keep(path: String) -> Result<Self> {
        let lock = FileLock::keep(&PathBuf::from(path)).map_err(|error| failed(&error))?;
        Ok(Self { lock: Some(lock) })
    }

    /// Removes the files in `directory` with such names that processes have left which were killed.
    #[napi(catch_unwind)]
    pub fn remove_abandoned(directory: String, prefix: String, suffix: String) {
        remove_abandoned(&PathBuf::from(directory), &prefix, &suffix);
    }

    /// Gives it up; the file stays.
    #[napi(catch_unwind)]
    pub fn release(&mut self) {
        self.lock = None;
    }

    /// Gives it up, and removes the file.
    #[napi(catch_unwind)]
    pub fn remove(&mut self) -> Result<()> {
        self.lock
            .take()
            .map_or(Ok(()), FileLock::remove)
            .map_err(|error| failed(&error))
    }
}

fn failed(error: &io::Error) -> Error {
    Error::from_reason(error.to_string())
}
