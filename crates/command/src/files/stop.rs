//! Ends a run before it has read everything.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::Messages;

/// Ends a run before it has read everything. Traces in flight are still scored and written.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_set: AtomicBool,
    is_interrupted: AtomicBool,
}

impl Stop {
    /// Ends the run as a signal does. Returns whether this is the first time: at the second, the process must end at once, and
    /// leaves its temporary files.
    pub fn interrupt(&self, messages: &Messages) -> bool {
        if self.0.is_interrupted.swap(true, Ordering::SeqCst) {
            messages.stop_progress();
            return false;
        }
        self.end_reading();
        messages.warning("interrupted: finishing the traces that were begun; once more to end at once");
        true
    }

    pub(crate) fn end_reading(&self) {
        self.0.is_set.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::SeqCst)
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.0.is_interrupted.load(Ordering::SeqCst)
    }
}
