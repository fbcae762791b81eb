//! Sessions of files and of traces.

use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File, FileType},
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use knowledgepulse_formats::{
    DEFAULT_LIMIT, FormatName,
    input::reader_of,
    reader::{Content, MOST_FIRST_RECORDS, Settings, TraceReader},
    run::runs,
};
use knowledgepulse_json::{Value, parse_str};
use knowledgepulse_trace::json::{self, Texts};

use crate::{Session, SessionFile};

/// So many bytes tell whether a file is no text.
const LONGEST_SIGN: u64 = 16;

/// Reads the text of a file, decompressed.
pub type ReadFile = fn(&Path) -> io::Result<String>;

/// Which files belong to a session, by the file that names it among all inputs.
pub struct Sources {
    /// How many runs a file names, and of how many files the last one is.
    runs: HashMap<String, (usize, usize)>,
    /// Sub-agents of Claude Code beside their session.
    subagents: HashMap<PathBuf, Vec<PathBuf>>,
    read: ReadFile,
}

impl Sources {
    /// Looks at the inputs.
    #[must_use]
    pub fn of(inputs: &[String], read: ReadFile) -> Self {
        let mut named: HashMap<String, (usize, usize)> = HashMap::new();
        for run in runs(inputs) {
            let Some(first) = run.first() else { continue };
            let (count, files) = named.entry(first.clone()).or_default();
            (*count, *files) = (*count + 1, run.len());
        }
        let folders: BTreeSet<_> = named.keys().filter_map(|file| Path::new(file).parent()).collect();
        let mut subagents: HashMap<PathBuf, Vec<PathBuf>> = HashMap::new();
        for path in folders.into_iter().flat_map(files_of) {
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| name.starts_with("agent-"))
                && let Some(session) = session_in(&path)
            {
                let session = path.with_file_name(format!("{session}.jsonl"));
                subagents.entry(session).or_default().push(path);
            }
        }
        Self {
            runs: named,
            subagents,
            read,
        }
    }

    /// Returns whether a file is a database, or another file that a reader makes lines of as a whole.
    #[must_use]
    pub fn is_database(file: &Path) -> bool {
        is_made_into_lines(file)
    }

    /// Returns the files of a session that has a file of its own. Those of Claude Code's sub-agents are in a folder of its name, or beside it.
    #[must_use]
    pub fn session_of(&self, source: &str, format: FormatName) -> Vec<SessionFile<'static>> {
        let is_alone = self.runs.get(source) == Some(&(1, 1));
        let path = PathBuf::from(source);
        if !is_alone || !path.is_file() || is_made_into_lines(&path) {
            return Vec::new();
        }
        let mut files = vec![path.clone()];
        if format == FormatName::ClaudeCode {
            let folder = path.with_extension("");
            let subagents = folder.join("subagents");
            // A link may lead out of the agent's folder, and a file beside need not be a session.
            if [&folder, &subagents]
                .into_iter()
                .all(|folder| is(folder, FileType::is_dir))
            {
                let subagents = files_of(&subagents).into_iter();
                files.extend(subagents.filter(|file| session_in(file).is_some()));
            }
            files.extend(self.subagents.get(&path).into_iter().flatten().cloned());
        }
        let read = self.read;
        let file = |path: PathBuf| SessionFile {
            name: path.display().to_string(),
            read: Box::new(move || read(&path)),
        };
        files.into_iter().map(file).collect()
    }
}

/// Returns whether a reader makes lines of a file as a whole, as of a database.
fn is_made_into_lines(file: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = File::open(file).and_then(|file| file.take(LONGEST_SIGN).read_to_end(&mut beginning));
    read.is_ok() && reader_of(&beginning).is_some()
}

/// Returns whether a path itself, without following a link, is of a type.
fn is(path: &Path, of_type: fn(&FileType) -> bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| of_type(&metadata.file_type()))
}

/// Returns the files of JSON Lines in a folder, by name; no links, pipes or devices.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_lines = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ending == "jsonl") && is(path, FileType::is_file)
    };
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(is_lines).collect();
    files.sort();
    files
}

/// Returns the session that one of the first records of a file names.
fn session_in(file: &Path) -> Option<String> {
    let text = BufReader::new(File::open(file).ok()?.take(DEFAULT_LIMIT));
    let lines = text.lines().take(MOST_FIRST_RECORDS).map_while(Result::ok);
    let session_of = |line: String| {
        let record = parse_str(line.trim()).ok()?;
        record.get("sessionId")?.as_str().map(str::to_owned)
    };
    lines.filter_map(session_of).next()
}

/// What a program shares without a choice before: a trace, or a file of sessions.
pub enum Shared {
    /// A trace.
    Trace(Value),
    /// The path of a file.
    File(String),
}

/// Why a file cannot be shared.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The system refuses to read it.
    #[error("cannot read {0}: {1}")]
    Read(String, #[source] io::Error),
    /// It is compressed, a database or something else than text.
    #[error("{0} is no text in UTF-8; kp-score share reads compressed files and databases too")]
    NoText(String),
    /// No format recognises it.
    #[error("{0} has no session of a known format")]
    NoSession(String),
}

/// Returns the sessions of traces and files, ranked in their order. A trace that is not valid cannot be read, and is left out.
///
/// # Errors
/// If a file cannot be read, or has no session.
pub fn sessions_of(shared: Vec<Shared>) -> Result<Vec<Session<'static>>, SourceError> {
    let read: ReadFile = |path| fs::read_to_string(path);
    let paths = shared.iter().filter_map(|shared| match shared {
        Shared::File(path) => Some(path.clone()),
        Shared::Trace(_) => None,
    });
    let sources = Sources::of(&paths.collect::<Vec<_>>(), read);
    let mut sessions = Vec::new();
    for (number, shared) in (1..).zip(shared) {
        let found = match shared {
            Shared::Trace(trace) => vec![(format!("trace-{number}"), FormatName::Trace, None, trace)],
            Shared::File(path) => {
                let text = read(Path::new(&path)).map_err(|error| match error.kind() {
                    io::ErrorKind::InvalidData => SourceError::NoText(path.clone()),
                    _ => SourceError::Read(path.clone(), error),
                })?;
                let found: Vec<_> = traces_in(&path, &text)
                    .map(|(format, line, trace)| (path.clone(), format, line, trace))
                    .collect();
                if found.is_empty() {
                    return Err(SourceError::NoSession(path));
                }
                found
            }
        };
        for (name, format, line, trace) in found {
            let trace = Arc::new(trace);
            sessions.push(Session {
                files: sources.session_of(&name, format),
                name,
                line,
                format,
                trace: Box::new(move || valid(&trace)),
                outcome: None,
                rank: sessions.len() as u64 + 1,
                reason: "given".into(),
                stands_for: 0,
                replaces: None,
            });
        }
    }
    Ok(sessions)
}

/// Returns a copy of a trace.
///
/// # Errors
/// If the scorer would refuse the trace.
pub fn valid(trace: &Value) -> io::Result<Value> {
    json::read(trace, Texts::None).map_err(io::Error::other)?;
    Ok(trace.clone())
}

fn traces_in(path: &str, text: &str) -> impl Iterator<Item = (FormatName, Option<u64>, Value)> {
    let reader = TraceReader::new(Settings {
        file: Some(path.into()),
        ..Settings::default()
    });
    // Something else than text has no records.
    let items = reader.read_all(text.as_bytes()).unwrap_or_default();
    items.into_iter().filter_map(|item| match item.content {
        Content::Converted(trace, _) => Some((item.format?, item.place.line, trace)),
        Content::Plain(trace, _) if item.format.is_some() => {
            Some((FormatName::Trace, item.place.line, trace))
        }
        _ => None,
    })
}
