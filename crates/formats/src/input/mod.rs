//! Inputs that are no JSON and become lines of it: the databases of agents, tables in Parquet, archives of Inspect, and the Markdown of
//! Aider.

mod aider;
pub(crate) mod archive;
pub mod compression;
#[cfg(not(target_family = "wasm"))]
mod databases;
#[cfg(not(target_family = "wasm"))]
mod msgpack;
#[cfg(all(feature = "parquet", not(target_family = "wasm")))]
mod parquet;
#[cfg(not(target_family = "wasm"))]
mod sqlite;

#[cfg(not(target_family = "wasm"))]
use std::io::Write;
use std::{
    fmt::Display,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use knowledgepulse_json::{Object, Text, Value, object, parse_str};

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

/// The field of a record that stands for a part of an input that cannot be read, such as a session of a database.
pub(crate) const UNREADABLE: &str = "unreadable_part_of_an_input";

/// Returns the line of a part of an input that cannot be read.
fn unreadable(error: &dyn Display) -> String {
    object([(UNREADABLE, error.to_string().into())]).to_json() + "\n"
}

/// The field of a record that names the tables of a database that hold sessions and are not read.
pub(crate) const NOT_READ: &str = "tables_that_are_not_read";

#[cfg(not(target_family = "wasm"))]
fn tables_not_read(names: &[String]) -> String {
    object([(NOT_READ, names.join(", ").into())]).to_json() + "\n"
}

/// The lines of an input, each made when it is read.
pub type Lines = Box<dyn Iterator<Item = String> + Send>;

/// Makes lines of all bytes of an input.
pub type LinesOf = fn(Vec<u8>) -> Result<Lines, Foreign>;

/// A database or a table: how it begins, and how its file becomes lines.
struct Format {
    magic: &'static [u8],
    of_file: fn(&Path) -> io::Result<Lines>,
    /// The agent, and the names of the sessions, of a database.
    names_in: fn(&Path) -> io::Result<Option<Named>>,
    /// What is said of bytes that are none.
    #[cfg(not(target_family = "wasm"))]
    broken: Foreign,
}

/// What becomes lines on this platform.
const FORMATS: &[Format] = &[
    #[cfg(not(target_family = "wasm"))]
    Format {
        magic: sqlite::MAGIC,
        of_file: sqlite::lines_of_file,
        names_in: sqlite::names_in_file,
        broken: Foreign::new("a database of SQLite of no agent that is known", "sqlite3 -json"),
    },
    #[cfg(all(feature = "parquet", not(target_family = "wasm")))]
    Format {
        magic: parquet::MAGIC,
        of_file: parquet::lines_of_file,
        names_in: |_| Ok(None),
        broken: Foreign::new("a table in Parquet that cannot be read", "pqrs cat --json"),
    },
];

/// The bytes by which an input that is pushed is told, of which there may be no more yet.
const FIRST_BYTES: usize = 6;

/// Returns how an input becomes lines once it is whole, by its first six bytes or more; `None` for others.
#[must_use]
pub fn reader_of(beginning: &[u8]) -> Option<LinesOf> {
    let begins = |magic: &[u8]| beginning.starts_with(&magic[..magic.len().min(FIRST_BYTES)]);
    if begins(archive::MAGIC) {
        return Some(archive::lines_of);
    }
    if aider::BEGINNINGS.into_iter().any(begins) {
        return Some(aider::lines_of);
    }
    #[cfg(not(target_family = "wasm"))]
    if FORMATS.iter().any(|format| begins(format.magic)) {
        return Some(lines_of_bytes);
    }
    None
}

/// Returns the lines of the bytes of a database or a table, which are read as a file.
#[cfg(not(target_family = "wasm"))]
fn lines_of_bytes(bytes: Vec<u8>) -> Result<Lines, Foreign> {
    let read = || {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(&bytes)?;
        let lines = lines_of_file(file.path())?.into_iter().flatten();
        io::Result::Ok(lines.collect::<Vec<_>>())
    };
    let format = FORMATS.iter().find(|format| bytes.starts_with(format.magic));
    match (read(), format) {
        (Err(_), Some(format)) => Err(format.broken),
        (lines, _) => Ok(Box::new(lines.into_iter().flatten())),
    }
}

/// How long the beginning of a file is that says whether it is a database.
const LONGEST_MAGIC: u64 = 16;

/// Returns the sessions of a database or the rows of a table, a line each; `None` if the file is neither, or cannot be read here.
///
/// # Errors
/// If the file cannot be read, or is a database of no agent that is known.
pub fn lines_of_file(path: &Path) -> io::Result<Option<Lines>> {
    format_of(path)?.map(|format| (format.of_file)(path)).transpose()
}

/// Returns what a file is by its first bytes.
fn format_of(path: &Path) -> io::Result<Option<&'static Format>> {
    let mut beginning = Vec::new();
    // What is read from a pipe is gone.
    if path.metadata()?.is_file() {
        File::open(path)?
            .take(LONGEST_MAGIC)
            .read_to_end(&mut beginning)?;
    }
    Ok(FORMATS.iter().find(|format| beginning.starts_with(format.magic)))
}

/// The agent of a database, and the names of its sessions, each with what it has in common with its forks, if that is known.
pub(crate) type Named = (&'static str, Vec<(String, Option<String>)>);

/// Returns the agent of a database, and the names of its sessions; `None` if the file is none.
///
/// # Errors
/// If the file cannot be read; [`ErrorKind::Unsupported`](io::ErrorKind::Unsupported) if it is a database of no agent that is known.
pub(crate) fn names_in_database(path: &Path) -> io::Result<Option<Named>> {
    format_of(path)?.map_or(Ok(None), |format| (format.names_in)(path))
}

/// The result of a trial is some kilobytes long.
const LONGEST_SMALL: u64 = 16 * 1024 * 1024;

/// Returns the text of a small file; `None` if there is none.
pub(crate) fn text_of_small(file: &Path) -> Option<Text> {
    let stat = fs::metadata(file).ok()?;
    let bytes = (stat.is_file() && stat.len() <= LONGEST_SMALL).then(|| fs::read(file).ok())??;
    Some(String::from_utf8(bytes).ok()?.into())
}

/// Returns the object in a small file; `None` if there is none.
pub(crate) fn read_small(file: &Path) -> Option<Object> {
    match parse_str(&text_of_small(file)?) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}
