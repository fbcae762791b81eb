//! A call that can be cancelled until it has had an effect.

use std::sync::OnceLock;

use crate::{Error, Result};

/// The state of a call, shared by caller and worker: pending, and then whether it was cancelled.
#[derive(Debug, Default)]
pub struct Call(OnceLock<bool>);

impl Call {
    /// Cancels the call. Returns whether that was in time, so that the call has no effect.
    pub fn cancel(&self) -> bool {
        self.0.set(true).is_ok()
    }

    /// Completes the call. Returns `false` if it was cancelled.
    pub fn complete(&self) -> bool {
        self.0.set(false).is_ok()
    }

    /// Whether the call was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.get() == Some(&true)
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
