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

pub use files::Stop;
pub use score::scored;
pub use show::{breakdown, messages, rows::embedder_value};

// What most modules use of others.
pub(crate) use {
    args::{InputArgs, duration, one_of},
    choose::{ChoiceArgs, Purpose, Set, kept::Kept, known::new_memory},
    error::{Exit, Failure, Result, reason_of},
    files::{Output, STDIN, Target, Waiting, is_same_file, name_of, target_of},
    filter::{Filter, agent_of},
    host::Context,
    read::{Inputs, Item, Seen, State},
    score::{Candidate, Scoring, load_embedder},
    scored::{Place, RunInfo, Scored, TraceInfo},
    show::{
        messages::Messages,
        printable::{MOST_UNITS, counted, escaped, grouped, label_of, printable},
        results::Results,
        review::{tell_places, told},
        rows::Format,
        table::Table,
    },
    traces::TraceRead,
};

/// The version of the package.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
