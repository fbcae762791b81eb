//! Which records are which run. Each question has one module:
//!
//! - `files`: which files are one input, and which inputs may hold copies of each other's runs;
//! - `named`: whose runs a file holds, by its path;
//! - `runs`: which records of an input are one run, or a sub-agent's;
//! - `snapshots`: which rows are one run;
//! - `copies`: which runs are earlier copies of others, and how long a run waits for such a one.
//!
//! A [`Record`](crate::records::Record) comes in, and a [`Run`] goes out, of which a trace is built by itself.

mod copies;
mod files;
mod named;
mod open;
mod runs;
mod snapshots;

pub use copies::Group;
pub use files::{Head, Ids, groups, head_of, runs};
pub use runs::{Content, EARLIER_COPIES, Item, Run, Settings};
pub(crate) use runs::{Row, Runs, item_of};
pub(crate) use snapshots::Snapshots;
