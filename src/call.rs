//! Calls that JavaScript can cancel.

use std::sync::Arc;

use napi_derive::napi;

use knowledgepulse_error::Call;

/// A call that can be cancelled.
#[napi]
pub struct NativeCall {
    call: Arc<Call>,
}

impl NativeCall {
    /// Returns the call itself, for the code that works on it.
    pub(super) fn share(&self) -> Arc<Call> {
        Arc::clone(&self.call)
    }
}

#[napi]
impl NativeCall {
    /// Creates a pending call.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default)] // JavaScript knows no other constructor.
    pub fn new() -> Self {
        Self { call: Arc::default() }
    }

    /// Completes the call, which can no longer be cancelled then. Returns `false` if it was.
    #[napi(catch_unwind)]
    pub fn complete(&self) -> bool {
        self.call.complete()
    }

    /// Cancels the call. Returns whether that came in time.
    #[napi(catch_unwind)]
    pub fn cancel(&self) -> bool {
        self.call.cancel()
    }
}
