//! `kp-score`: reads traces from files, scores them, and chooses, cleans and writes the ones to share.

mod args;
mod choose;
pub mod cli;
mod commands;
pub mod desk;
pub mod error;
mod files;
mod find;
pub mod host;
mod read;
mod score;
mod show;
mod weights;

pub use desk as report;
pub use files::stop;
pub use show::{breakdown, messages, values};

use choose::{self as set, kept, known as run_memory, labels};
use files::{file_identity, leftovers, output_file, outputs, temporary, waiting};
use find as folders;
use read::{self as reading, compression};
use score::{self as scoring, scored};
use show::{bar, near_duplicate, printable, results, review, rows, statistics, summary, table, text};

/// The version of the package.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
