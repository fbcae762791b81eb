//! The services that the command needs from its host: the addon, or the program without Node.js.

use knowledgepulse_index::method::Method;
use knowledgepulse_score::{Breakdown, engine::Engine};

use crate::error::Result;

/// The program around the command.
pub trait Host: Send + Sync {
    /// Returns the name of the machine, for people who wonder who holds a lock.
    fn machine(&self) -> String;

    /// Returns the engine of the process.
    fn engine(&self) -> &Engine;

    /// Finds the model, and configures the engine.
    ///
    /// # Errors
    /// If nothing can be looked for; a model that is missing is told by the engine.
    fn configure(&self) -> Result<()>;

    /// Connects to a store.
    ///
    /// # Errors
    /// If this program has no driver for it, the store does not answer, or it does not fit.
    fn connect(&self, request: &StoreRequest) -> Result<Box<dyn Store>>;
}

/// Which store is wanted.
#[derive(Debug, Clone)]
pub struct StoreRequest {
    /// The URL.
    pub url: String,
    /// The table, which may have the name of its schema and a dot before it.
    pub table: Option<String>,
    /// The bound of a table that is new.
    pub most_traces: Option<usize>,
    /// How traces are compared.
    pub novelty: Method,
    /// The weights by domain, in JSON; `None` for the usual ones.
    pub weights: Option<String>,
}

/// Why a trace was not scored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotScored {
    /// The trace is wrong.
    Trace(String),
    /// The store does not work, so no other trace can be scored either.
    Store(String),
}

/// A score, or the reason for its absence.
pub type Outcome = std::result::Result<Breakdown, NotScored>;

/// A connection to a store, which is closed when it is dropped.
pub trait Store {
    /// Returns how many traces the store holds; `None` if it does not tell.
    fn size(&self) -> Option<u64>;

    /// Begins to score a trace of JSON against the store, in the order of the calls, and adds it there if `remember` is set. Returns the
    /// function that waits for the outcome.
    fn explain(&self, trace: String, remember: bool) -> Box<dyn FnOnce() -> Outcome + Send>;
}
