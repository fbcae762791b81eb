//! The services that the command needs from its host: the addon, or the program without Node.js.

use knowledgepulse_score::engine::Engine;

use crate::Result;

/// The program around the command.
pub trait Host: Send + Sync {
    /// Returns the engine of the process.
    fn engine(&self) -> &Engine;

    /// Finds the model, and configures the engine.
    ///
    /// # Errors
    /// If nothing can be looked for; a model that is missing is told by the engine.
    fn configure(&self) -> Result<()>;
}
