//! The temporary files and locks that a process removes when a signal ends it at once.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn paths() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is removed if the process ends before this is dropped.
#[derive(Debug)]
pub(crate) struct Leftover(PathBuf);

impl Leftover {
    pub(crate) fn of(path: &Path) -> Self {
        paths().insert(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        paths().remove(&self.0);
    }
}

/// Removes the temporary files of a run, because the process ends at once.
pub(crate) fn remove_leftovers() {
    for path in &*paths() {
        // The process is ending, so an error can no longer be reported.
        drop(fs::remove_file(path));
    }
}
