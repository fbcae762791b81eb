//! Replaces ONNX Runtime in WebAssembly, which loads no library and has no other threads to wait for.

/// Does nothing.
pub fn stop() {}

/// Does nothing.
pub fn wait() {}

/// Does nothing.
pub fn hold_at_exit() {}

/// Does nothing.
pub(super) fn stop_at_exit() {}
