//! The services that the command needs from its host: the addon, or the program without Node.js.

use knowledgepulse_score::engine::Engine;

use crate::{Messages, Stop};

/// The program around the command.
pub trait Host: Send + Sync {
    /// Returns the engine of the process.
    fn engine(&self) -> &Engine;

    /// Finds the model, and configures the engine, which tells that a model is missing; does nothing where that is done before.
    fn configure(&self) {}
}

/// What the steps of a run have at hand.
#[derive(Clone, Copy)]
pub(crate) struct Context<'r> {
    pub host: &'r dyn Host,
    pub messages: &'r Messages,
    pub stop: &'r Stop,
}
