//! Inputs that are no JSON and become lines of it: the databases of agents, and the Markdown of Aider.

mod aider;
#[cfg(all(feature = "sqlite", not(target_family = "wasm")))]
mod databases;
#[cfg(all(feature = "sqlite", not(target_family = "wasm")))]
mod sqlite;

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use crate::{DEFAULT_LIMIT, encoding::Foreign};

/// The first bytes of an SQLite database.
const DATABASE: &[u8] = b"SQLite format 3\0";

const UNREAD: Foreign = Foreign::new("an SQLite database of no known agent", "sqlite3 -json");

/// Makes lines of all bytes of an input.
pub type LinesOf = fn(Vec<u8>) -> Result<String, Foreign>;

/// Returns how an input becomes lines once it is whole, by its first six bytes or more; `None` for others.
#[must_use]
pub fn reader_of(beginning: &[u8]) -> Option<LinesOf> {
    let is_database = beginning.starts_with(&DATABASE[..6]);
    let is_aider = aider::BEGINNINGS.iter().any(|start| beginning.starts_with(start));
    let of_aider: LinesOf = |bytes| Ok(aider::lines_of_aider(&bytes));
    is_database
        .then_some(lines_of_database as LinesOf)
        .or(is_aider.then_some(of_aider))
}

/// The lines of a database.
pub type Lines = Box<dyn Iterator<Item = String>>;

/// Returns the sessions of a database, a line each; `None` if the file is none.
///
/// # Errors
/// If the file cannot be read, or is a database of no agent that is known.
pub fn database_lines(path: &Path) -> io::Result<Option<Lines>> {
    let mut beginning = Vec::new();
    // What is read from a pipe is gone.
    if path.metadata()?.is_file() {
        let file = File::open(path)?;
        file.take(DATABASE.len() as u64).read_to_end(&mut beginning)?;
    }
    if beginning != DATABASE {
        return Ok(None);
    }
    #[cfg(all(feature = "sqlite", not(target_family = "wasm")))]
    return match sqlite::Sessions::open(path, DEFAULT_LIMIT) {
        Ok(sessions) => Ok(Some(Box::new(sessions.into_lines()))),
        Err(error) => Err(io::Error::other(error)),
    };
    #[cfg(not(all(feature = "sqlite", not(target_family = "wasm"))))]
    Err(io::Error::other(UNREAD))
}

/// Returns the sessions in the bytes of a database, a line each.
///
/// # Errors
/// If it is of no agent that is known, or broken.
pub fn lines_of_database(bytes: Vec<u8>) -> Result<String, Foreign> {
    #[cfg(all(feature = "sqlite", not(target_family = "wasm")))]
    return match sqlite::Sessions::of_bytes(bytes, DEFAULT_LIMIT) {
        Ok(sessions) => Ok(sessions.into_lines().collect()),
        Err(_) => Err(UNREAD),
    };
    #[cfg(not(all(feature = "sqlite", not(target_family = "wasm"))))]
    Err(UNREAD)
}
