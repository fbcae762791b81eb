//! A call that can be cancelled until it has had an effect.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::{Error, Result};

const PENDING: u8 = 0;
const COMPLETED: u8 = 1;
const CANCELLED: u8 = 2;

/// The state of a call, shared by caller and worker: pending, then completed or cancelled.
#[derive(Debug, Default)]
pub struct Call(AtomicU8);

impl Call {
    /// Cancels the call. Returns whether that was in time, so that the call has no effect.
    pub fn cancel(&self) -> bool {
        self.settle(CANCELLED)
    }

    /// Completes the call. Returns `false` if it was cancelled.
    pub fn complete(&self) -> bool {
        self.settle(COMPLETED)
    }

    /// Whether the call was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire) == CANCELLED
    }

    /// Checks that the call goes on.
    ///
    /// # Errors
    /// [`Error::Aborted`] if it was cancelled.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::Aborted);
        }
        Ok(())
    }

    fn settle(&self, state: u8) -> bool {
        self.0
            .compare_exchange(PENDING, state, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_to_settle_wins() {
        let call = Call::default();
        assert!(!call.is_cancelled() && call.check().is_ok());
        assert!(call.complete());
        assert!(!call.complete() && !call.cancel() && !call.is_cancelled());
        let call = Call::default();
        assert!(call.cancel() && call.check().is_err());
        assert!(!call.cancel() && !call.complete() && call.is_cancelled());
    }
}
