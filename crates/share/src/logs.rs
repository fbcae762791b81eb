//! Which files are shared as they are, and where agents keep those of sub-agents.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, FileType},
    io::{self, BufRead, BufReader, Read},
    ops::ControlFlow,
    path::{Path, PathBuf},
    string::FromUtf8Error,
};

use knowledgepulse_formats::{
    DEFAULT_LIMIT, FormatName,
    encoding::Decoder,
    input::{
        compression::{CHUNK_SIZE, read_text},
        is_in_parts, reader_of,
    },
    reader::MOST_FIRST_RECORDS,
    run::runs,
};
use knowledgepulse_json::{Value, parse_str};

use crate::{Lazy, Log};

/// So many bytes tell whether a file is no text.
const LONGEST_SIGN: u64 = 16;

/// The most bytes of a file, decompressed: each core holds one in memory.
const MOST_TEXT: usize = 256 * 1024 * 1024;

/// Which of the inputs hold a run by themselves.
pub struct WholeFiles(HashSet<String>);

impl WholeFiles {
    /// Looks at the inputs.
    #[must_use]
    pub fn of(inputs: &[String]) -> Self {
        // By the first file of runs, how many files these have.
        let mut counts: HashMap<String, usize> = HashMap::new();
        for run in runs(inputs) {
            *counts.entry(run[0].clone()).or_default() += run.len();
        }
        let is_whole = |file: &Path| file.is_file() && !is_database(file) && !is_in_parts(file);
        counts.retain(|file, count| *count == 1 && is_whole(Path::new(file)));
        Self(counts.into_keys().collect())
    }

    /// Returns the log of a trace that was read from a line of a file, with what reads the file's text if it holds a run by itself.
    #[must_use]
    pub fn log<'s>(&self, source: &str, line: u64, format: FormatName, trace: Lazy<'s, Value>) -> Log<'s> {
        let path = self.0.get(source).map(PathBuf::from);
        Log {
            text: path.map(|path| Box::new(move || text_of(&path)) as _),
            line: Some(line),
            ..Log::of_trace(source.to_owned(), format, trace)
        }
    }
}

/// Reads a file, decompressed, in UTF-8.
fn text_of(path: &Path) -> io::Result<String> {
    let (mut text, mut decoder) = (Vec::new(), Decoder::default());
    let mut problem = None;
    read_text(File::open(path)?, CHUNK_SIZE, &mut |bytes| {
        match decoder.push(bytes) {
            Ok(more) => text.extend(more),
            Err(foreign) => problem = Some(format!("it is {}", foreign.what)),
        }
        if text.len() > MOST_TEXT {
            problem = Some(format!("it is longer than {} MB", MOST_TEXT / 1024 / 1024));
        }
        match problem {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    })?;
    let end = decoder.finish().map_err(|foreign| foreign.what.to_string());
    let (end, lines) = problem.map_or(end, Err).map_err(io::Error::other)?;
    text.extend(end.into_iter().chain(lines.flat_map(String::into_bytes)));
    let lossy = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
    Ok(String::from_utf8(text).unwrap_or_else(lossy))
}

/// Returns whether a reader makes lines of a file as a whole, as of a database.
#[must_use]
pub fn is_database(file: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = File::open(file).and_then(|file| file.take(LONGEST_SIGN).read_to_end(&mut beginning));
    read.is_ok() && reader_of(&beginning).is_some()
}

/// Adds the sessions of sub-agents that are in a folder of the name of their session, or beside it, as Claude Code keeps them.
pub fn add_subagents(inputs: &mut Vec<String>) {
    let mut known: HashSet<PathBuf> = inputs.iter().map(PathBuf::from).collect();
    let folders = known.iter().filter_map(|file| file.parent());
    let folders: HashSet<PathBuf> = folders.map(Path::to_owned).collect();
    let beside = folders.iter().flat_map(|folder| files_of(folder)).filter(|file| {
        let name = file.file_name().and_then(|name| name.to_str());
        let is_of = |session: String| known.contains(&file.with_file_name(format!("{session}.jsonl")));
        name.is_some_and(|name| name.starts_with("agent-")) && session_in(file).is_some_and(is_of)
    });
    let within = inputs.iter().flat_map(|file| {
        let folder = Path::new(file).with_extension("");
        let folders = [folder.clone(), folder.join("subagents")];
        // A link may lead out of the agent's folder, and a file beside need not be a session.
        let is_there = folders.iter().all(|folder| is(folder, FileType::is_dir));
        let files = is_there.then(|| files_of(&folders[1]));
        files
            .into_iter()
            .flatten()
            .filter(|file| session_in(file).is_some())
    });
    let mut subagents: Vec<PathBuf> = beside.chain(within).collect();
    subagents.sort();
    for file in subagents {
        if let Some(name) = file.to_str().map(str::to_owned)
            && known.insert(file)
        {
            inputs.push(name);
        }
    }
}

/// Returns whether a path itself, without following a link, is of a type.
fn is(path: &Path, of_type: fn(&FileType) -> bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| of_type(&metadata.file_type()))
}

/// Returns the files of JSON Lines in a folder; no links, pipes or devices.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    let is_here = folder.as_os_str().is_empty();
    let entries = fs::read_dir(if is_here { Path::new(".") } else { folder });
    let entries = entries.into_iter().flatten().flatten();
    let is_lines = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ending == "jsonl") && is(path, FileType::is_file)
    };
    let files = entries.map(|entry| folder.join(entry.file_name()));
    files.filter(is_lines).collect()
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
