//! Temporary files beside the files that they replace, and the lock that keeps other runs from a memory.

use std::{
    fs::{self, File, Metadata},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use knowledgepulse_os::{file_lock::FileLock, temporary};

use crate::{
    error::{Failure, Result},
    file_identity::{directory_of, target_of},
    leftovers::Leftover,
};

/// The beginning of the names of temporary files.
const PREFIX: &str = ".kp-score-";

/// A temporary file beside the one that it is to replace. A signal that ends the process at once removes it.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    file: temporary::TemporaryFile,
    _leftover: Leftover,
}

impl TemporaryFile {
    /// Creates one beside `target`, with the permissions of `existing` or of new files.
    pub(crate) fn beside(target: &Path, existing: Option<&Metadata>) -> io::Result<Self> {
        let file = temporary::TemporaryFile::create(directory_of(target), PREFIX, existing)?;
        Ok(Self {
            _leftover: Leftover::of(file.path()),
            file,
        })
    }

    /// Returns the file, for writing.
    pub(crate) fn file(&self) -> &Arc<File> {
        self.file.file()
    }

    /// Gives it the name of the file that it replaces, so that this survives a loss of power.
    pub(crate) fn persist(self, target: &Path) -> io::Result<()> {
        self.file.persist(target)
    }
}

/// Makes sure that a file can be made where this one is to be written at last.
pub(crate) fn require_room_for(name: &str) -> Result<()> {
    let made = TemporaryFile::beside(&target_of(name), None);
    made.map(drop).map_err(|error| Failure::write(name, &error))
}

/// Keeps other runs from a file that this one loads now and replaces later: what they add to it meanwhile would be lost.
#[derive(Debug)]
pub(crate) struct RunLock {
    lock: Option<FileLock>,
    _leftover: Leftover,
}

/// What begins a lock file, before the id of the process and the name of its machine.
const KIND: &str = "kp-score";

impl RunLock {
    /// Locks the file, which need not exist, by another file beside it.
    pub(crate) fn of(name: &str, machine: &str) -> Result<Self> {
        let path = with_suffix(&target_of(name), ".lock");
        let holder = format!("{} on {machine}", process_id());
        let lock = FileLock::create(&path, KIND, &holder)
            .map_err(|error| Failure::file(format!("cannot lock {name} by {}: {error}", path.display())))?;
        match lock {
            Some(lock) => Ok(Self {
                lock: Some(lock),
                _leftover: Leftover::of(&path),
            }),
            None => Err(Failure::file(format!(
                "{name} is in use by {}, which holds {}: wait until it has ended, or name another file",
                holder_of(&path),
                path.display()
            ))),
        }
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // If it cannot be removed it stays, but unlocked: the next run takes it over.
        drop(self.lock.take().map(FileLock::remove));
    }
}

#[cfg(not(target_family = "wasm"))]
fn process_id() -> u32 {
    std::process::id()
}

/// WASI knows no processes.
#[cfg(target_family = "wasm")]
fn process_id() -> u32 {
    0
}

/// Returns the path with more at its end.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

fn holder_of(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    match text.trim().strip_prefix("kp-score ") {
        Some(process) => format!("kp-score, process {process}"),
        None if text.trim().is_empty() => "another run".into(),
        None => text.trim().into(),
    }
}
