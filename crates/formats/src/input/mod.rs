//! Inputs that become lines of JSON: the databases of agents, tables in Parquet and CSV, archives of Inspect, the Markdown of Aider, and sessions in
//! many files.

mod aider;
pub(crate) mod archive;
pub mod compression;
#[cfg(not(target_family = "wasm"))]
mod databases;
#[cfg(not(target_family = "wasm"))]
mod msgpack;
mod opencode;
#[cfg(all(feature = "parquet", not(target_family = "wasm")))]
mod parquet;
#[cfg(not(target_family = "wasm"))]
mod sqlite;
pub(crate) mod table;

#[cfg(not(target_family = "wasm"))]
use std::io::Write;
use std::{
    collections::HashMap,
    fmt::Display,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
    time::SystemTime,
};

use knowledgepulse_json::{Object, Text, Value, object, parse_str};

pub use opencode::is_in_parts;

use crate::values::{list_of, object_of, text_at};

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
    if begins(sqlite::MAGIC) {
        const OF_NO_AGENT: Foreign =
            Foreign::new("a database of SQLite of no agent that is known", "sqlite3 -json");
        return Some(|bytes| lines_of_bytes(&bytes).ok_or(OF_NO_AGENT));
    }
    #[cfg(all(feature = "parquet", not(target_family = "wasm")))]
    if begins(parquet::MAGIC) {
        const BROKEN: Foreign = Foreign::new("a table in Parquet that cannot be read", "pqrs cat --json");
        return Some(|bytes| lines_of_bytes(&bytes).ok_or(BROKEN));
    }
    None
}

/// Returns the lines of the bytes of a database or a table, which are read as a file; `None` if they cannot be read.
#[cfg(not(target_family = "wasm"))]
fn lines_of_bytes(bytes: &[u8]) -> Option<Lines> {
    let mut file = tempfile::NamedTempFile::new().ok()?;
    file.write_all(bytes).ok()?;
    let lines: Vec<String> = lines_of_file(file.path()).ok()??.collect();
    Some(Box::new(lines.into_iter()))
}

/// Returns the sessions of a database or the rows of a table, a line each, or a session in parts; `None` of another file, and of one that
/// cannot be read here.
///
/// # Errors
/// If the file cannot be read, or is a database of no agent that is known.
pub fn lines_of_file(path: &Path) -> io::Result<Option<Lines>> {
    match beginning_of(path)?.as_slice() {
        _ if opencode::is_in_parts(path) => Ok(Some(Box::new(opencode::line_of(path).into_iter()))),
        #[cfg(not(target_family = "wasm"))]
        beginning if beginning.starts_with(sqlite::MAGIC) => sqlite::lines_of_file(path).map(Some),
        #[cfg(all(feature = "parquet", not(target_family = "wasm")))]
        beginning if beginning.starts_with(parquet::MAGIC) => parquet::lines_of_file(path).map(Some),
        _ => Ok(None),
    }
}

/// Returns the first bytes of a file, by which it is a database or a table; none of a pipe, of which what is read is gone.
fn beginning_of(path: &Path) -> io::Result<Vec<u8>> {
    const LONGEST: u64 = 16;
    let mut beginning = Vec::new();
    if path.metadata()?.is_file() {
        File::open(path)?.take(LONGEST).read_to_end(&mut beginning)?;
    }
    Ok(beginning)
}

/// The agent of a database, and the names of its sessions, each with what it has in common with its forks, if that is known.
pub(crate) type Named = (&'static str, Vec<(String, Option<String>)>);

/// Returns the agent of a database, and the names of its sessions; `None` if the file is none.
///
/// # Errors
/// If the file cannot be read; [`ErrorKind::Unsupported`](io::ErrorKind::Unsupported) if it is a database of no agent that is known.
pub(crate) fn names_in_database(path: &Path) -> io::Result<Option<Named>> {
    match beginning_of(path)?.as_slice() {
        #[cfg(not(target_family = "wasm"))]
        beginning if beginning.starts_with(sqlite::MAGIC) => sqlite::names_in_file(path).map(Some),
        _ => Ok(None),
    }
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

/// What a file or a folder tells, by the names of sessions.
pub(crate) type Told = HashMap<Text, Value>;

/// What files and folders told when they were changed last: they are asked for each session beside them.
static TOLD: LazyLock<Mutex<HashMap<PathBuf, (SystemTime, Told)>>> = LazyLock::new(Mutex::default);

/// Returns what a file or a folder, which is read once until it changes, tells by a name.
pub(crate) fn told_beside(path: &Path, name: &str, read: impl Fn(&Path) -> Told) -> Option<Value> {
    let changed = fs::metadata(path).ok()?.modified().ok()?;
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let (time, told) = told
        .entry(path.to_owned())
        .or_insert_with(|| (changed, read(path)));
    if *time != changed {
        (*time, *told) = (changed, read(path));
    }
    told.get(name).cloned()
}

/// Returns the entry of a session in the list `sessions.json` beside a file: by its name there or its id, which is else that of the file.
pub(crate) fn listed_beside(path: &Path, name: Option<&str>) -> Option<Value> {
    let name = name.or_else(|| path.file_name()?.to_str()?.split(".json").next())?;
    told_beside(&path.with_file_name("sessions.json"), name, |list| {
        let list = text_of_small(list)
            .and_then(|text| parse_str(&text).ok())
            .unwrap_or_default();
        let named = object_of(Some(&list));
        let entries = named.values().chain(list_of(Some(&list)));
        let by_id = entries.filter_map(|entry| Some((text_at(entry, "sessionId")?, entry.clone())));
        by_id.chain(named.clone()).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_list_is_read_once_for_all_sessions_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        let file = File::create(&list).unwrap();
        let read = Cell::new(0);
        let told = |name: &str| {
            told_beside(&list, name, |_| {
                read.set(read.get() + 1);
                [("a".into(), true.into())].into_iter().collect()
            })
        };
        assert_eq!(
            [told("a"), told("b"), told("a")],
            [Some(true.into()), None, Some(true.into())]
        );
        assert_eq!(read.get(), 1);
        let later = file.metadata().unwrap().modified().unwrap() + std::time::Duration::from_secs(1);
        file.set_modified(later).unwrap();
        told("a");
        assert_eq!(read.get(), 2);
    }
}
