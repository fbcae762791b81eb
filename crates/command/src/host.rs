//! The services that the command needs from its host: the addon, or the program without Node.js.

use knowledgepulse_score::engine::Engine;

/// The program around the command.
pub trait Host: Send + Sync {
    /// Returns the engine of the process.
    fn engine(&self) -> &Engine;

    /// Finds the model, and configures the engine, which tells that a model is missing; does nothing where that is done before.
    fn configure(&self) {}
}
