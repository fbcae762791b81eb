//! `kp-score`: reads traces from files, scores them, and chooses, cleans and writes the ones to share.

mod args;
mod bar;
pub mod breakdown;
pub mod cli;
mod commands;
mod compression;
pub mod error;
mod file_identity;
mod folders;
pub mod host;
mod kept;
mod labels;
mod leftovers;
pub mod messages;
mod near_duplicate;
mod output_file;
mod outputs;
mod printable;
mod reading;
pub mod report;
mod results;
mod review;
mod rows;
mod run_memory;
mod scored;
mod scoring;
mod set;
mod statistics;
pub mod stop;
mod summary;
mod table;
mod temporary;
mod text;
pub mod values;
mod waiting;
mod weights;

/// The version of the package.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
