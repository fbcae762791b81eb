//! Scores KnowledgePulse reasoning traces. The modules, in the order data flows through them:
//!
//! trace → features → text (→ windows) → tokens → embedding → novelty → composite → overrides

pub mod trace;

pub mod features;

pub mod dimensions;

pub mod text;

pub mod windows;

pub mod tokens;

pub mod embedding;

pub mod cache;

pub mod novelty;

pub mod composite;

pub mod overrides;

pub mod scorer;

pub mod inference;

pub mod call;

pub mod obstacle;

pub mod model;

pub mod runtime;

pub mod file_lock;

pub mod simd;

pub mod memory;

pub mod error;

pub mod fault;

// The binding needs a JavaScript engine to run; the unit tests are about the core.
#[cfg(not(test))]
mod binding;
