//! Readers of the formats that agents write, which return traces.
//!
//! Bytes become records ([`records`]). A session's records are decoded into events by the adapter of their agent (`agents`), and its
//! events become one conversation (`session`). Records of data sets and spans are read by the module of their format ([`reader`]).
//! What was said becomes the steps of a trace by shared rules ([`trace`]). `DESIGN.md` says how to add an agent.

mod agent;
mod agents;
mod common;
mod contexts;
mod conversations;
pub mod date;
pub mod encoding;
mod event;
pub mod input;
mod langchain;
mod messages;
mod parts;
mod pictures;
mod places;
mod prelude;
pub mod reader;
pub mod records;
pub mod run;
pub mod sections;
mod session;
mod shapes;
mod spans;
mod split;
mod tagged;
#[cfg(test)]
mod tests;
mod tools;
pub mod trace;
mod values;
mod verdicts;
mod words;
mod written;

pub use agent::{Format, not_read_here};
pub use agents::FormatName;
pub use common::{DEFAULT_LIMIT, Given, Known, Place, Wrong};
pub use event::PARENT;
pub use places::settings_folder;
pub use tools::TOOLS;
