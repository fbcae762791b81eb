//! Scores KnowledgePulse reasoning traces. The modules, in the order data flows through them:
//!
//! trace (features, text) → embed (tokens, model) → cache (compare, remember) → score; the engine runs them in the order
//! of the calls, and the binding hands them to JavaScript.

pub mod trace;

pub mod embed;

pub mod novelty;

pub mod cache;

pub mod score;

pub mod engine;

pub mod clean;

pub mod simd;

pub mod call;

pub mod error;

pub mod os;

pub mod fault;

// The binding needs a JavaScript engine to run; the unit tests are about the core.
#[cfg(not(test))]
mod binding;
