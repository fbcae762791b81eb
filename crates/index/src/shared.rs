//! Memories that several threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A memory that several threads share.
pub trait Shared {
    /// Rolls back what a batch has changed that is not committed, and what a panic has left half changed.
    fn settle(&mut self) {}
}

/// Locks a shared memory, and [settles](Shared::settle) it. A lock that a panic has poisoned is taken all the same.
pub fn lock<M: Shared>(memory: &Mutex<M>) -> MutexGuard<'_, M> {
    let mut memory = lock_as_is(memory);
    memory.settle();
    memory
}

/// Locks a shared memory without [settling](Shared::settle) it: changes that are not committed are there.
pub fn lock_as_is<M>(memory: &Mutex<M>) -> MutexGuard<'_, M> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
