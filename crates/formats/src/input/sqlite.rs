//! Sessions in SQLite databases, each as one JSON text.
//!
//! The SQL of an agent's [`Database`] makes the same shape as the agent's export, so one adapter reads both.

use std::{
    fs,
    io::{self, Read},
    mem,
    path::{Path, PathBuf},
};

use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Row,
    functions::FunctionFlags,
    limits::Limit,
    types::{Value, ValueRef},
};
use tempfile::TempDir;
use thiserror::Error;

use super::{
    Lines, Named,
    databases::{DATABASES, Database},
    msgpack, tables_not_read, unreadable,
};
use crate::DEFAULT_LIMIT;

/// The first bytes of a database.
pub const MAGIC: &[u8] = b"SQLite format 3\0";

/// So many steps of SQLite's machine are done between two looks at how many there were.
const STEPS_AT_ONCE: i32 = 1_000_000;

/// So many times that for a query: some minutes. The largest sessions take a thousandth.
const MOST_WORK: u64 = 5_000;

/// The files that belong to a database: its own, and those of transactions that are not in it yet.
const FILES: [&str; 3] = ["", "-wal", "-journal"];

/// Why a database or a session in it is not read.
#[derive(Debug, Error)]
pub enum SqliteError {
    /// The database has no table of an agent.
    #[error("it is an SQLite database of no known agent, with the tables {}", first(.0))]
    Unknown(Vec<String>),
    /// SQLite cannot read it.
    #[error("SQLite cannot read it: {}", reason_of(.0))]
    Sqlite(#[from] rusqlite::Error),
    /// The file, or the copy of one that is being written, cannot be read.
    #[error("it cannot be read: {0}")]
    File(#[from] io::Error),
}

impl From<SqliteError> for io::Error {
    fn from(error: SqliteError) -> Self {
        match error {
            SqliteError::Unknown(_) => Self::new(io::ErrorKind::Unsupported, error),
            error => Self::other(error),
        }
    }
}

/// Returns the reason of an error, without the statement.
fn reason_of(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        error => error.to_string(),
    }
}

/// Returns the first names of a list, as text.
fn first(names: &[String]) -> String {
    names[..names.len().min(10)].join(", ")
}

/// A session that is not read yet: its database, its name, and what it has in common with its forks.
type Name = (&'static Database, Value, Option<Value>);

/// The sessions of a database, in their order.
#[derive(Debug)]
struct Sessions {
    connection: Connection,
    agent: &'static str,
    names: Vec<Name>,
    /// Tables of a generation that is not known.
    unread: Vec<String>,
    /// The copy that is read, if another program may be writing.
    _copy: Option<TempDir>,
}

/// Returns the sessions of a database, a line each. One that cannot be read is an object of a field that says so.
///
/// # Errors
/// If the file cannot be read, or is a database of no agent that is known.
pub fn lines_of_file(path: &Path) -> io::Result<Lines> {
    Ok(Sessions::open(path, &DATABASES, DEFAULT_LIMIT)?.into_lines())
}

/// Returns the agent of a database, and the names of its sessions.
///
/// # Errors
/// If the file cannot be read, or is a database of no agent that is known.
pub fn names_in_file(path: &Path) -> io::Result<Named> {
    let sessions = Sessions::open(path, &DATABASES, DEFAULT_LIMIT)?;
    let text = |name| match name {
        Value::Text(name) => Some(name),
        Value::Integer(number) => Some(number.to_string()),
        _ => None,
    };
    let named = |(_, name, begins): Name| Some((text(name)?, begins.and_then(text)));
    let names = sessions.names.into_iter().filter_map(named).collect();
    Ok((sessions.agent, names))
}

impl Sessions {
    /// Opens a database for reading only, each of whose sessions is a JSON text of at most `limit` bytes.
    fn open(path: &Path, known: &'static [Database], limit: u64) -> Result<Self, SqliteError> {
        // Its agent may be writing: what it has not moved from its log to the database is read from a copy of both.
        let copy = has_log(path).then(tempfile::tempdir).transpose()?;
        let connection = match &copy {
            Some(copy) => connect(&copy_into(path, copy.path())?, OpenFlags::SQLITE_OPEN_READ_WRITE)?,
            None => {
                // No lock is taken, and no file is made beside it.
                fs::metadata(path)?;
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                connect(&immutable(path), flags)?
            }
        };
        let length = i32::try_from(limit).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, length)?;
        // Functions that a table of somebody names are not run.
        connection.pragma_update(None, "trusted_schema", false)?;
        limit_work(&connection)?;
        add_functions(&connection, limit)?;
        let tables = tables(&connection)?;
        let mut names: Vec<Name> = Vec::new();
        let mut read = Vec::new();
        for database in known {
            if !has(&connection, database, &tables)? {
                continue;
            }
            read.push(database);
            add_missing(&connection, database, &tables)?;
            limit_work(&connection)?;
            for (name, begins) in sessions(&connection, database.sessions)? {
                // A session that was moved to newer tables is left in the older ones.
                if !names
                    .iter()
                    .any(|(other, known, _)| *known == name && other.agent == database.agent)
                {
                    names.push((database, name, begins));
                }
            }
        }
        let Some(first) = read.first() else {
            return Err(SqliteError::Unknown(tables));
        };
        Ok(Self {
            agent: first.agent,
            names,
            unread: newer_of(&tables, &read),
            connection,
            _copy: copy,
        })
    }

    fn into_lines(mut self) -> Lines {
        let (names, unread) = (mem::take(&mut self.names), mem::take(&mut self.unread));
        let lines = names.into_iter().filter_map(move |(database, name, _)| {
            let session = self.read(database, &name).transpose()?;
            Some(session.map_or_else(|error| unreadable(&error), |json| json + "\n"))
        });
        Box::new(lines.chain((!unread.is_empty()).then(|| tables_not_read(&unread))))
    }

    /// Returns the session of a name; `None` if it is nothing.
    fn read(&self, database: &Database, name: &Value) -> Result<Option<String>, SqliteError> {
        limit_work(&self.connection)?;
        let text = self.connection.query_row(database.session, [name], |row| {
            Ok(match row.get_ref(0)? {
                ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
                _ => None,
            })
        });
        Ok(text.optional()?.flatten())
    }
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // The file is read with the first query, not when it is opened.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// Returns the address under which SQLite takes a file for one that nobody changes.
fn immutable(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = absolute
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    let root = if cfg!(windows) { "/" } else { "" };
    format!("file:{root}{text}?immutable=1").into()
}

/// Returns whether there are transactions beside a database that are not in it yet.
fn has_log(path: &Path) -> bool {
    FILES[1..]
        .iter()
        .any(|end| fs::metadata(beside(path, end)).is_ok_and(|log| log.len() > 0))
}

/// Returns the path of a file whose name goes on with `end`.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Ends queries from here to the next call that take more steps than a table of the largest size does.
fn limit_work(connection: &Connection) -> rusqlite::Result<()> {
    let mut done = 0;
    let is_over = move || {
        done += 1;
        done > MOST_WORK
    };
    connection.progress_handler(STEPS_AT_ONCE, Some(is_over))
}

/// Copies a database and its log; returns the copy's path.
fn copy_into(path: &Path, directory: &Path) -> io::Result<PathBuf> {
    let copy = directory.join("copy.db");
    for end in FILES {
        match fs::copy(beside(path, end), beside(&copy, end)) {
            Err(error) if end.is_empty() || error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(copy)
}

/// Returns whether a database has the tables of an agent, among its `tables`.
fn has(connection: &Connection, database: &Database, tables: &[String]) -> rusqlite::Result<bool> {
    let (table, column) = database.mark;
    let are_tables = database
        .tables
        .iter()
        .all(|name| tables.iter().any(|table| table == name));
    let sql = "SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2";
    let count = || connection.query_row(sql, (table, column), |row| row.get::<_, i64>(0));
    Ok(are_tables && count()? > 0)
}

/// Adds empty tables in the place of those that a database may lack, or that lack a column.
fn add_missing(connection: &Connection, database: &Database, tables: &[String]) -> rusqlite::Result<()> {
    for (name, columns) in &database.optional {
        let sql = format!("SELECT {columns} FROM {name}");
        let is_whole = || connection.prepare(&sql).is_ok();
        if !tables.iter().any(|table| table == name) || !is_whole() {
            connection.execute_batch(&format!("CREATE TEMP TABLE {name} ({columns})"))?;
        }
    }
    Ok(())
}

/// Returns the names of the tables. Views and virtual tables, which may run anything, are none.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name";
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Returns the tables whose names are those of tables that are read, with another version.
fn newer_of(tables: &[String], read: &[&Database]) -> Vec<String> {
    let stem = |name: &str| {
        let stem = name.trim_end_matches(|byte: char| byte.is_ascii_digit());
        stem.strip_suffix("_v").unwrap_or(name).to_owned()
    };
    let read = || read.iter().flat_map(|database| &database.tables);
    let is_newer = |name: &&String| {
        let is_read = read().any(|table| table == name);
        !is_read && stem(name) != **name && read().any(|table| stem(table) == stem(name))
    };
    tables.iter().filter(is_newer).cloned().collect()
}

/// Returns the first column that a query selects, and the second one if there is one.
fn sessions(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<(Value, Option<Value>)>> {
    let mut statement = connection.prepare(sql)?;
    let has_second = statement.column_count() > 1;
    let read = |row: &Row| Ok((row.get(0)?, has_second.then(|| row.get(1)).transpose()?));
    statement.query_map([], read)?.collect()
}

/// Adds the functions `unzstd`, which returns the text of a compressed value of at most `limit` bytes, and `unmsgpack`, which returns a value
/// in JSON.
fn add_functions(connection: &Connection, limit: u64) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    let wrong = |error: &dyn std::fmt::Display| rusqlite::Error::UserFunctionError(error.to_string().into());
    connection.create_scalar_function("unmsgpack", 1, flags, move |context| {
        let bytes = context.get_raw(0).as_blob().map_err(|error| wrong(&error))?;
        let value = msgpack::value_of(bytes).ok_or_else(|| wrong(&"it is no MessagePack"))?;
        Ok(value.to_json())
    })?;
    connection.create_scalar_function("unzstd", 1, flags, move |context| {
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
    use std::sync::LazyLock;

    use super::*;
    use crate::input::{databases::databases_in, lines_of_bytes};

    static KNOWN: LazyLock<Vec<Database>> = LazyLock::new(|| {
        databases_in(
            "-- @ notes note pages note
            SELECT id FROM note ORDER BY id;
            SELECT pages FROM note WHERE id = ?1;
            -- @ notes note words note
            SELECT id FROM note ORDER BY id;
            SELECT json_object('id', id, 'words', json(words)) FROM note WHERE id = ?1;
",
        )
    });

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
        let sessions = Sessions::open(path, &KNOWN, limit).unwrap();
        let read = |(database, name, _): &Name| sessions.read(database, name).transpose();
        let found = sessions.names.iter().filter_map(read);
        found
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
        let error = Sessions::open(&path, &DATABASES, 1000).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it is an SQLite database of no known agent, with the tables note, zoo"
        );
        let no_file = directory.path().join("none.db");
        assert!(matches!(
            Sessions::open(&no_file, &DATABASES, 1000),
            Err(SqliteError::File(_))
        ));
        assert!(!no_file.exists());
    }

    #[test]
    fn a_missing_column_is_named_without_the_statement() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(
            &directory,
            "INSERT INTO note VALUES ('a', '1'); ALTER TABLE note RENAME id TO name",
        );
        let error = Sessions::open(&path, &KNOWN, 1000).unwrap_err();
        assert_eq!(error.to_string(), "SQLite cannot read it: no such column: id");
    }

    #[test]
    fn a_session_over_the_limit_costs_itself_alone() {
        let directory = tempfile::tempdir().unwrap();
        let sql = "INSERT INTO note VALUES ('a', json_quote(printf('%.*c', 900, 'x'))), ('b', '1')";
        let found = read(&database(&directory, sql), 800);
        assert_eq!(
            found[0],
            Err("SQLite cannot read it: string or blob too big".to_owned())
        );
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
    fn a_database_is_read_without_a_trace() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(
            &directory,
            "PRAGMA journal_mode = WAL; INSERT INTO note VALUES ('a', '1')",
        );
        let files = || {
            let entries = fs::read_dir(directory.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = files();
        assert_eq!(read(&path, 1000).len(), 1);
        assert_eq!(files(), before);
        let odd = directory.path().join("50% #1?.db");
        fs::rename(&path, &odd).unwrap();
        assert_eq!(read(&odd, 1000).len(), 1);
    }

    #[test]
    fn views_are_no_tables_and_newer_tables_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let sql = "CREATE TABLE note_v2 (id, pages); INSERT INTO note VALUES ('a', '1')";
        let path = database(&directory, sql);
        let lines: Vec<_> = Sessions::open(&path, &KNOWN, 1000)
            .unwrap()
            .into_lines()
            .collect();
        assert_eq!(
            lines.last().unwrap(),
            "{\"tables_that_are_not_read\":\"note_v2\"}\n"
        );
        let endless = "ALTER TABLE note RENAME TO other; CREATE VIEW note (id, words) AS
            WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, '1' FROM n";
        Connection::open(&path).unwrap().execute_batch(endless).unwrap();
        let opened = Sessions::open(&path, &KNOWN, 1000);
        assert!(matches!(opened, Err(SqliteError::Unknown(_))));
    }

    #[test]
    fn lines_of_bytes_reads_a_database_with_a_log_without_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(
            &directory,
            "PRAGMA journal_mode = WAL; CREATE TABLE threads (id, data_type, data, updated_at);
            INSERT INTO threads VALUES ('a', 'json', '{\"version\":1}', 1), ('b', 'zstd', x'28b52ffd00', 2)",
        );
        let lines: Vec<_> = lines_of_bytes(&fs::read(path).unwrap()).unwrap().collect();
        assert_eq!(lines[0], "{\"version\":1,\"id\":\"a\",\"parent_id\":null}\n");
        assert!(lines[1].starts_with("{\"unreadable_part_of_an_input\":\"SQLite cannot read it: "));
        assert!(lines_of_bytes(&[MAGIC, &[0; 100]].concat()).is_none());
    }
}
