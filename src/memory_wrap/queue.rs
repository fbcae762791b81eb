//! The order of the calls on a memory that are worked on away from the event loop.

use std::{
    collections::VecDeque,
    rc::Rc,
    sync::{Arc, Mutex},
    time::Instant,
};

use napi::{
    Env, Task,
    bindgen_prelude::{Object, ToNapiValue},
};

use knowledgepulse_error::{self as error, Error, guarded};
use knowledgepulse_index::shared::{SharedMemory, lock};

use super::external_memory::ExternalMemory;
use crate::{background::locked, call::NativeCall, error::Result, replies::Replies};

/// Calls on a cache that are worked on away from the event loop, one after another in the order in which they were made.
/// The thread pool begins tasks in any order, so a task is not a call: one task does the work of all calls that wait.
#[derive(Default)]
pub(crate) struct CallQueue(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    waiting: VecDeque<Box<dyn FnOnce() + Send>>,
    /// Whether a task of the pool works through them, or is about to.
    has_worker: bool,
}

impl CallQueue {
    /// Runs `act` on a memory away from the event loop, after all earlier calls. The promise is settled after the promises
    /// of these calls, and `external` then gets the size of the memory in bytes. A call that is cancelled by then is left
    /// out.
    pub(crate) fn enqueue<'env, M: SharedMemory + 'static, T: ToNapiValue + Send + 'static>(
        self: &Arc<Self>,
        env: &'env Env,
        call: Option<&NativeCall>,
        external: Option<Arc<ExternalMemory>>,
        memory: &Arc<Mutex<M>>,
        bytes: fn(&M) -> usize,
        act: impl FnOnce(&mut M, Instant) -> error::Result<T> + Send + 'static,
    ) -> Result<Object<'env>> {
        let call = call.map(NativeCall::share).unwrap_or_default();
        let memory = Arc::clone(memory);
        let (ticket, promise) = Replies::of(env)?.promise(env, &Rc::default())?;
        self.push(env, move || {
            let done = guarded(|| {
                let mut memory = lock(&memory);
                if !call.complete() {
                    return Err(Error::Aborted);
                }
                let result = act(&mut memory, Instant::now())?;
                Ok((result, bytes(&memory)))
            });
            ticket.settle_with(move |env| {
                let (result, bytes) = done?;
                let telling = external.map_or(Ok(()), |external| external.tell(*env, bytes));
                telling.map_err(|error| Error::Internal(error.reason.to_string()))?;
                Ok::<_, Error>(result)
            });
        });
        Ok(promise)
    }

    /// Runs `write` away from the event loop, after all earlier ones in this queue.
    pub(crate) fn save<'env>(
        self: &Arc<Self>,
        env: &'env Env,
        write: impl FnOnce() -> error::Result<()> + Send + 'static,
    ) -> Result<Object<'env>> {
        let (ticket, promise) = Replies::of(env)?.promise(env, &Rc::default())?;
        self.push(env, move || ticket.settle(guarded(write)));
        Ok(promise)
    }

    /// Appends the work of a call, and has a task do it.
    fn push(self: &Arc<Self>, env: &Env, work: impl FnOnce() + Send + 'static) {
        let mut calls = locked(&self.0);
        if !calls.has_worker && env.spawn(Worker(Arc::clone(self))).is_err() {
            // Without a task it holds up the event loop. No other call waits, because a task works until none does.
            drop(calls);
            return work();
        }
        calls.has_worker = true;
        calls.waiting.push_back(Box::new(work));
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
            let mut calls = locked(&self.0.0);
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
