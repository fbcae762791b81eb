//! The only place that knows Node-API: JavaScript values in, JavaScript values and errors out. No logic.

mod embedder;
mod error;
mod file_lock;
mod scorer;
mod trace;
mod vector_cache;

/// Runs when the addon is loaded, before anything else.
#[napi_derive::module_init]
fn initialize() {
    crate::error::keep_panics_quiet();
}
