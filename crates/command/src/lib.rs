//! `kp-score`: reads traces from files, scores them, and chooses, cleans and writes the ones to share.

mod args;
mod choose;
pub mod cli;
mod commands;
pub mod desk;
pub mod error;
mod files;
pub mod filter;
mod find;
pub mod host;
mod listed;
pub mod named;
mod read;
mod score;
mod show;
pub mod traces;

pub use files::stop;
pub use score::scored;
pub use show::{breakdown, messages};

/// The version of the package.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
