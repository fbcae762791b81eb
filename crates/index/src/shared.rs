//! Memories that several threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A memory that several threads share.
pub trait Shared {
    /// Rolls back uncommitted changes of a batch, and changes that a panic has left incomplete.
    fn settle(&mut self) {}
}

/// Locks a shared memory and [settles](Shared::settle) it. Ignores poisoning by a panic.
pub fn lock<M: Shared>(memory: &Mutex<M>) -> MutexGuard<'_, M> {
    let mut memory = lock_as_is(memory);
    memory.settle();
    memory
}

/// Locks a shared memory without [settling](Shared::settle) it, with uncommitted changes.
pub fn lock_as_is<M>(memory: &Mutex<M>) -> MutexGuard<'_, M> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
