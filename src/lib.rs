//! The only place that knows Node-API: JavaScript values in, JavaScript values and errors out. No logic.

mod background;
mod call;
mod clean;
mod command;
mod embedder;
mod engine;
mod error;
mod formats;
mod memory;
mod outcomes;
mod replies;
mod scorer;
mod select;
mod share;
mod trace;
mod trace_sample;

/// Runs when the addon is loaded, before anything else.
#[napi_derive::module_init]
fn initialize() {
    knowledgepulse_error::keep_panics_quiet();
}
