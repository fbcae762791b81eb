//! The only place that knows Node-API: JavaScript values in, JavaScript values and errors out. No logic.

mod embed;
mod error;
mod evaluate;
mod trace;
mod vector_cache;
