//! Sessions in SQLite databases, each as one JSON text.
//!
//! The SQL of an agent's [`Database`] makes the same shape as the agent's export, so one adapter reads both.

use std::{
    fs,
    io::{self, Read},
    ops::Range,
    path::Path,
    time::Duration,
    vec,
};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension,
    functions::FunctionFlags,
    limits::Limit,
    types::{Value, ValueRef},
};
use tempfile::TempDir;
use thiserror::Error;

use super::{
    Foreign, Lines,
    databases::{DATABASES, Database},
    unreadable,
};
use crate::DEFAULT_LIMIT;

/// The first bytes of a database.
pub const MAGIC: &[u8] = b"SQLite format 3\0";

const OF_NO_AGENT: Foreign = Foreign::new("a database of SQLite of no agent that is known", "sqlite3 -json");

/// How long another program's lock is waited for before the file is copied.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where a database says that it has a log beside it, which its bytes alone have not.
const LOG_VERSIONS: Range<usize> = 18..20;

/// The files that belong to a database: its own, and those of transactions that are not in it yet.
const FILES: [&str; 3] = ["", "-wal", "-journal"];

/// Why a database or a session in it is not read.
#[derive(Debug, Error)]
pub enum SqliteError {
    /// The database has no table of an agent.
    #[error("it is an SQLite database of no known agent, with the tables {}", .0.join(", "))]
    Unknown(Vec<String>),
    /// The session is larger than the limit.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// SQLite cannot read it.
    #[error("SQLite cannot read it: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The copy of a locked database cannot be made.
    #[error("it is locked, and cannot be copied: {0}")]
    Copy(#[from] io::Error),
}

/// The sessions of a database, in their order: each a JSON text of at most `limit` bytes.
#[derive(Debug)]
pub struct Sessions {
    connection: Connection,
    database: &'static Database,
    names: vec::IntoIter<Value>,
    limit: u64,
    /// The copy that is read, if another program has the file locked.
    _copy: Option<TempDir>,
}

/// Returns the sessions of a database, a line each.
///
/// # Errors
/// If the file cannot be read, or is a database of no agent that is known.
pub fn lines_of_file(path: &Path) -> io::Result<Lines> {
    let sessions = Sessions::open(path, DEFAULT_LIMIT).map_err(io::Error::other)?;
    Ok(Box::new(sessions.into_lines()))
}

/// Returns the sessions in the bytes of a database, a line each.
///
/// # Errors
/// If it is of no agent that is known, or broken.
pub fn lines_of_bytes(bytes: Vec<u8>) -> Result<String, Foreign> {
    let sessions = Sessions::of_bytes(bytes, DEFAULT_LIMIT);
    sessions.map_or(Err(OF_NO_AGENT), |sessions| Ok(sessions.into_lines().collect()))
}

impl Sessions {
    /// Opens a database for reading only. A file that another program has locked is copied.
    ///
    /// # Errors
    /// If it is of no agent that is known, or cannot be read.
    pub fn open(path: &Path, limit: u64) -> Result<Self, SqliteError> {
        Self::open_as(path, DATABASES, limit)
    }

    fn open_as(path: &Path, known: &'static [Database], limit: u64) -> Result<Self, SqliteError> {
        let (connection, copy) = match connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
            Err(error) if is_locked(&error) => {
                let copy = tempfile::tempdir()?;
                let file = copy_into(path, copy.path())?;
                // Only a writer can take over what the other program has not moved from its log to the database.
                (connect(&file, OpenFlags::SQLITE_OPEN_READ_WRITE)?, Some(copy))
            }
            connection => (connection?, None),
        };
        Self::of(connection, copy, known, limit)
    }

    /// Reads the bytes of a database.
    ///
    /// # Errors
    /// If it is of no agent that is known, or cannot be read.
    pub fn of_bytes(mut bytes: Vec<u8>, limit: u64) -> Result<Self, SqliteError> {
        if let Some(versions) = bytes.get_mut(LOG_VERSIONS) {
            versions.fill(1);
        }
        let mut connection = Connection::open_in_memory()?;
        connection.deserialize_read_exact("main", bytes.as_slice(), bytes.len(), true)?;
        Self::of(connection, None, DATABASES, limit)
    }

    fn of(
        connection: Connection,
        copy: Option<TempDir>,
        known: &'static [Database],
        limit: u64,
    ) -> Result<Self, SqliteError> {
        let known = known
            .iter()
            .find_map(|database| match has(&connection, database) {
                Ok(false) => None,
                Ok(true) => Some(Ok(database)),
                Err(error) => Some(Err(error)),
            });
        let Some(database) = known.transpose()? else {
            return Err(SqliteError::Unknown(tables(&connection)?));
        };
        add_unzstd(&connection, limit)?;
        let names = column(&connection, database.sessions)?;
        let length = i32::try_from(limit).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, length)?;
        Ok(Self {
            connection,
            database,
            names: names.into_iter(),
            limit,
            _copy: copy,
        })
    }

    /// Returns the sessions as lines. One that cannot be read is an object of a field that says so.
    pub fn into_lines(self) -> impl Iterator<Item = String> {
        self.map(|session| {
            session.map_or_else(
                |error| unreadable(&error),
                |json| {
                    json + "
"
                },
            )
        })
    }

    fn read(&self, name: &Value) -> Result<Option<String>, SqliteError> {
        let text = self.connection.query_row(self.database.session, [name], |row| {
            Ok(match row.get_ref(0)? {
                ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
                _ => None,
            })
        });
        match text.optional() {
            Ok(text) => Ok(text.flatten()),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::TooBig) => {
                Err(SqliteError::TooLarge(self.limit))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Iterator for Sessions {
    type Item = Result<String, SqliteError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let name = self.names.next()?;
            if let Some(session) = self.read(&name).transpose() {
                return Some(session);
            }
        }
    }
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    // The file is read with the first query, not when it is opened.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// Returns whether a copy may be read where the file is not: another program has it locked, or its log needs a writer.
fn is_locked(error: &rusqlite::Error) -> bool {
    use ErrorCode::{CannotOpen, DatabaseBusy, DatabaseLocked, ReadOnly};
    let code = error.sqlite_error_code();
    code.is_some_and(|code| matches!(code, DatabaseBusy | DatabaseLocked | ReadOnly | CannotOpen))
}

/// Copies a database and its log; returns the copy's path.
fn copy_into(path: &Path, directory: &Path) -> io::Result<std::path::PathBuf> {
    let beside = |path: &Path, end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        std::path::PathBuf::from(name)
    };
    let copy = directory.join("copy.db");
    for end in FILES {
        match fs::copy(beside(path, end), beside(&copy, end)) {
            Err(error) if end.is_empty() || error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(copy)
}

fn has(connection: &Connection, database: &Database) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2";
    connection
        .query_row(sql, database.mark, |row| row.get::<_, i64>(0))
        .map(|count| count > 0)
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name LIMIT 10";
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn column(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<Value>> {
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Adds the function `unzstd`, which returns the text of a compressed value of at most `limit` bytes.
fn add_unzstd(connection: &Connection, limit: u64) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("unzstd", 1, flags, move |context| {
        let wrong =
            |error: &dyn std::fmt::Display| rusqlite::Error::UserFunctionError(error.to_string().into());
        let bytes = context.get_raw(0).as_blob().map_err(|error| wrong(&error))?;
        let decoder = ruzstd::decoding::StreamingDecoder::new(bytes).map_err(|error| wrong(&error))?;
        let mut text = String::new();
        decoder
            .take(limit)
            .read_to_string(&mut text)
            .map_err(|error| wrong(&error))?;
        Ok(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    static KNOWN: &[Database] = &[OTHER, NOTES];
    const NOTES: Database = Database {
        mark: ("note", "words"),
        sessions: "SELECT id FROM note ORDER BY id",
        session: "SELECT json_object('id', id, 'words', json(words)) FROM note WHERE id = ?1",
    };

    const OTHER: Database = Database {
        mark: ("note", "pages"),
        ..NOTES
    };

    fn database(directory: &TempDir, sql: &str) -> std::path::PathBuf {
        let path = directory.path().join("notes.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("CREATE TABLE note (id TEXT PRIMARY KEY, words)")
            .unwrap();
        connection.execute_batch(sql).unwrap();
        path
    }

    fn read(path: &Path, limit: u64) -> Vec<Result<String, String>> {
        let sessions = Sessions::open_as(path, KNOWN, limit).unwrap();
        sessions
            .map(|session| session.map_err(|error| error.to_string()))
            .collect()
    }

    #[test]
    fn sessions_are_json_in_their_order() {
        let directory = tempfile::tempdir().unwrap();
        let sql = r#"INSERT INTO note VALUES ('b', '{"n":1.50}'), ('a', '["\ud800"]'), ('c', x'80')"#;
        let found = read(&database(&directory, sql), 1000);
        assert_eq!(found[0].as_deref(), Ok(r#"{"id":"a","words":["\ud800"]}"#));
        assert_eq!(found[1].as_deref(), Ok(r#"{"id":"b","words":{"n":1.50}}"#));
        assert!(
            found[2]
                .as_ref()
                .is_err_and(|error| error.contains("malformed JSON")),
            "{found:?}"
        );
    }

    #[test]
    fn open_names_the_tables_of_an_unknown_database() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(&directory, "CREATE TABLE zoo (name)");
        let error = Sessions::open(&path, 1000).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it is an SQLite database of no known agent, with the tables note, zoo"
        );
        let no_file = directory.path().join("none.db");
        assert!(matches!(
            Sessions::open(&no_file, 1000),
            Err(SqliteError::Copy(_))
        ));
        assert!(!no_file.exists());
    }

    #[test]
    fn a_session_over_the_limit_costs_itself_alone() {
        let directory = tempfile::tempdir().unwrap();
        let sql = "INSERT INTO note VALUES ('a', json_quote(printf('%.*c', 900, 'x'))), ('b', '1')";
        let found = read(&database(&directory, sql), 800);
        assert_eq!(found[0], Err("it is larger than 800 bytes".to_owned()));
        assert_eq!(found[1].as_deref(), Ok(r#"{"id":"b","words":1}"#));
    }

    #[test]
    fn a_locked_database_is_copied_with_its_log() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(
            &directory,
            "PRAGMA journal_mode = WAL; INSERT INTO note VALUES ('a', '1')",
        );
        let writer = Connection::open(&path).unwrap();
        let sql = "PRAGMA wal_autocheckpoint = 0; PRAGMA locking_mode = EXCLUSIVE; INSERT INTO note VALUES ('b', '2')";
        writer.execute_batch(sql).unwrap();
        let found = read(&path, 1000);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1].as_deref(), Ok(r#"{"id":"b","words":2}"#));
        drop(writer);
    }

    #[test]
    fn of_bytes_reads_a_database_with_a_log_without_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(
            &directory,
            "PRAGMA journal_mode = WAL; CREATE TABLE threads (id, data_type, data, updated_at);
            INSERT INTO threads VALUES ('a', 'json', '{\"version\":1}', 1), ('b', 'zstd', x'28b52ffd00', 2)",
        );
        let sessions = Sessions::of_bytes(fs::read(path).unwrap(), 1000).unwrap();
        let lines: Vec<_> = sessions.into_lines().collect();
        assert_eq!(lines[0], "{\"version\":1,\"id\":\"a\",\"parent_id\":null}\n");
        assert!(lines[1].starts_with("{\"unreadable_part_of_a_database\":\"SQLite cannot read it: "));
        let broken = [MAGIC, &[0; 100]].concat();
        assert!(matches!(
            Sessions::of_bytes(broken, 1000),
            Err(SqliteError::Sqlite(_))
        ));
    }
}
