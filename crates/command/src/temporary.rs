//! Temporary files beside the files that they replace, and the lock that keeps other runs from a memory.

use std::{
    fs::{self, File, Permissions},
    io,
    path::{Path, PathBuf},
};

use knowledgepulse_os::file_lock::{FileLock, remove_abandoned};
use tempfile::NamedTempFile;

use crate::{
    error::{Failure, Result},
    file_identity::{directory_of, target_of},
    leftovers::Leftover,
};

/// How temporary files are named: what is left of a process that was killed is known by it.
const PREFIX: &str = ".kp-score-";
const SUFFIX: &str = ".tmp";
/// Names as long as 48 random bits need.
const RANDOM_LENGTH: usize = 12;

/// A temporary file beside the one that it is to replace. While this process lives, no other one takes it for abandoned.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    file: NamedTempFile,
    _lock: FileLock,
    _leftover: Leftover,
}

impl TemporaryFile {
    /// Creates one beside `target`, with these permissions or the usual ones.
    pub(crate) fn beside(target: &Path, permissions: Option<Permissions>) -> io::Result<Self> {
        let directory = directory_of(target);
        remove_abandoned(directory, PREFIX, SUFFIX);
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).suffix(SUFFIX).rand_bytes(RANDOM_LENGTH);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(directory).map_err(without_path)?;
        if let Some(permissions) = permissions {
            // Without what the umask takes away.
            set_permissions(file.as_file(), permissions)?;
        }
        Ok(Self {
            _lock: FileLock::keep(file.path())?,
            _leftover: Leftover::of(file.path()),
            file,
        })
    }

    /// Returns the file, for writing.
    pub(crate) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Gives it the name of the file that it replaces, so that this survives a loss of power.
    pub(crate) fn persist(self, target: &Path) -> io::Result<()> {
        self.file.persist(target).map_err(|error| error.error)?;
        sync_directory(directory_of(target))
    }
}

#[cfg(not(target_family = "wasm"))]
fn set_permissions(file: &File, permissions: Permissions) -> io::Result<()> {
    file.set_permissions(permissions)
}

/// WASI has no permissions.
#[cfg(target_family = "wasm")]
fn set_permissions(_: &File, _: Permissions) -> io::Result<()> {
    Ok(())
}

/// The error of the system alone: `tempfile` adds the path of the temporary file, which says nothing to people.
fn without_path(error: io::Error) -> io::Error {
    let source = error.get_ref().and_then(std::error::Error::source);
    let source = source.and_then(|source| source.downcast_ref::<io::Error>());
    match source.and_then(io::Error::raw_os_error) {
        Some(code) => io::Error::from_raw_os_error(code),
        None => error,
    }
}

#[cfg(not(windows))]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Windows has no such thing.
#[cfg(windows)]
#[allow(clippy::unnecessary_wraps)] // Elsewhere it can fail.
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
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
