//! The order of the calls on a cache that are worked on away from the event loop.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use napi::{Env, Task};

use crate::binding::error::Result;

/// Calls on a cache that are worked on away from the event loop, one after another in the order in which they were made.
/// The thread pool begins tasks in any order, so a task is not a call: one task does the work of all calls that wait.
#[derive(Default)]
pub(super) struct CallQueue(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    waiting: VecDeque<Box<dyn FnOnce() + Send>>,
    /// Whether a task of the pool works through them, or is about to.
    has_worker: bool,
}

impl CallQueue {
    /// Appends the work of a call, and has a task do it.
    pub(super) fn push(self: &Arc<Self>, env: &Env, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut calls = self.lock();
        calls.waiting.push_back(Box::new(work));
        if !calls.has_worker {
            env.spawn(Worker(Arc::clone(self)))?;
            calls.has_worker = true;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        // Calls run without this lock, so no panic can poison it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Works on the calls that wait until the queue is empty. napi gives the task a promise, which is not used: each call has its
/// own.
struct Worker(Arc<CallQueue>);

impl Task for Worker {
    type Output = ();
    type JsValue = ();

    fn compute(&mut self) -> Result<()> {
        loop {
            let mut calls = self.0.lock();
            let Some(work) = calls.waiting.pop_front() else {
                calls.has_worker = false;
                return Ok(());
            };
            drop(calls);
            work();
        }
    }

    fn resolve(&mut self, _: Env, (): ()) -> Result<()> {
        Ok(())
    }
}
