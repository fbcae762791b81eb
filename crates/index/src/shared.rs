//! What memories of vectors and of traces have in common, which several threads share.

use std::{
    ops::Range,
    path::Path,
    sync::{Mutex, MutexGuard},
    time::{Instant, SystemTime},
};

use knowledgepulse_error::Result;

use crate::{
    options::{MemoryOptions, Origin},
    persist::{self, Contents, Snapshot, Unreadable},
};

/// A memory of entries: vectors or traces.
pub trait SharedMemory: Send {
    /// Makes the memory whole again after a panic in one of its methods. An entry that was being added is not remembered.
    fn repair(&mut self) {}

    /// Returns the bounds of the memory.
    fn options(&self) -> &MemoryOptions;

    /// Returns the bytes of all entries, expired ones included, without labels.
    fn bytes(&self) -> usize;

    /// Frees the memory of expired entries, which are ignored in any case.
    fn evict_expired(&mut self, now: Instant);

    /// Removes every entry, and the model.
    fn clear(&mut self);

    /// Returns the sequence numbers of the living entries, oldest first. Entries are numbered as they are added.
    fn sequence(&mut self, now: Instant) -> Range<u64>;

    /// Returns the number of living entries.
    fn len(&mut self, now: Instant) -> usize {
        let living = self.sequence(now);
        usize::try_from(living.end - living.start).unwrap_or(usize::MAX)
    }

    /// Returns whether no entry lives.
    fn is_empty(&mut self, now: Instant) -> bool {
        self.len(now) == 0
    }

    /// Checks that entries of this origin can be compared with those here.
    ///
    /// # Errors
    /// `ERR_MEMORY_MISMATCH` if the entries here come from another one; for another method also if a trace memory is empty.
    fn check_origin(&mut self, origin: &Origin, now: Instant) -> Result<()>;

    /// Returns the living entries.
    fn contents(&mut self, now: Instant) -> Contents;

    /// Takes a snapshot at `now`, by the wall clock `clock`. It shares the entries, and copies eight bytes for each trace and each word.
    fn snapshot(&mut self, now: Instant, clock: SystemTime) -> Snapshot {
        Snapshot::of(self.contents(now), now, clock)
    }

    /// Returns a memory of these contents, which are those of a file of this [version](Self::version).
    fn restore(contents: Contents) -> Self
    where
        Self: Sized;

    /// Returns the version of its files.
    fn version() -> &'static str
    where
        Self: Sized;

    /// Reads the memory in the bytes of a file, at `now`, by the wall clock `clock`; with a bound, the newest `max_elements` entries.
    ///
    /// # Errors
    /// [`Unreadable`], which [`SharedMemory::load`] converts to an error with the path.
    fn read(
        file: &[u8],
        max_elements: Option<usize>,
        now: Instant,
        clock: SystemTime,
    ) -> std::result::Result<Self, Unreadable>
    where
        Self: Sized,
    {
        persist::read(file, Self::version(), max_elements, now, clock).map(Self::restore)
    }

    /// Loads the memory in the file at `path`, aged by the wall clock; with a bound, the newest `max_elements` entries.
    ///
    /// # Errors
    /// `ERR_MEMORY_NOT_FOUND`, `ERR_MEMORY_DAMAGED`, `ERR_MEMORY_MISMATCH`, `ERR_IO`, `ERR_OUT_OF_MEMORY`.
    fn load(path: &Path, max_elements: Option<usize>) -> Result<Self>
    where
        Self: Sized,
    {
        persist::load(path, Self::version(), max_elements).map(Self::restore)
    }
}

/// Locks a shared memory, and [repairs](SharedMemory::repair) it after a panic.
pub fn lock<M: SharedMemory + ?Sized>(memory: &Mutex<M>) -> MutexGuard<'_, M> {
    memory.lock().unwrap_or_else(|poisoned| {
        let mut memory_after_panic = poisoned.into_inner();
        memory_after_panic.repair();
        memory.clear_poison();
        memory_after_panic
    })
}
