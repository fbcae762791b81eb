//! Inputs that are no JSON and become lines of it: the databases of agents, and the Markdown of Aider.

mod aider;
#[cfg(all(feature = "sqlite", not(target_family = "wasm")))]
mod databases;
#[cfg(all(feature = "sqlite", not(target_family = "wasm")))]
mod sqlite;

use std::{io, path::Path};

/// An input that is no text that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}: make text in UTF-8 of it first, as {program} does")]
pub struct Foreign {
    /// The kind of text.
    pub what: &'static str,
    /// The program that makes text of it.
    pub program: &'static str,
}

impl Foreign {
    pub(crate) const fn new(what: &'static str, program: &'static str) -> Self {
        Self { what, program }
    }
}

/// The field of a record that stands for a session of a database that cannot be read.
pub(crate) const UNREADABLE_SESSION: &str = "unreadable_session_of_a_database";

/// The lines of a database.
pub type Lines = Box<dyn Iterator<Item = String>>;

/// Makes lines of all bytes of an input.
pub type LinesOf = fn(Vec<u8>) -> Result<String, Foreign>;

/// Returns how an input becomes lines once it is whole, by its first six bytes or more; `None` for others.
#[must_use]
pub fn reader_of(beginning: &[u8]) -> Option<LinesOf> {
    if aider::BEGINNINGS.iter().any(|start| beginning.starts_with(start)) {
        return Some(aider::lines_of_aider);
    }
    #[cfg(all(feature = "sqlite", not(target_family = "wasm")))]
    if beginning.starts_with(&sqlite::MAGIC[..6]) {
        return Some(sqlite::lines_of_bytes);
    }
    None
}

/// Returns the sessions of a database, a line each; `None` if the file is none, or cannot be read here.
///
/// # Errors
/// If the file cannot be read, or is a database of no agent that is known.
pub fn database_lines(path: &Path) -> io::Result<Option<Lines>> {
    #[cfg(all(feature = "sqlite", not(target_family = "wasm")))]
    return sqlite::lines_of_file(path);
    #[cfg(not(all(feature = "sqlite", not(target_family = "wasm"))))]
    return path.metadata().map(|_| None);
}
