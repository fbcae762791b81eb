//! Which files are shared as they are, and where agents keep those of sub-agents.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Read},
    ops::ControlFlow,
    path::{Path, PathBuf},
    string::FromUtf8Error,
};

use knowledgepulse_formats::{
    FormatName,
    encoding::Decoder,
    input::{
        compression::{CHUNK_SIZE, read_text},
        is_in_parts, reader_of,
    },
    run::{head_of, runs},
};
use knowledgepulse_json::Value;
use walkdir::{DirEntry, WalkDir};

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

    /// Returns the log of a trace that was read from a file, with what reads the file's text if it holds a run by itself.
    #[must_use]
    pub fn log<'s>(&self, source: &str, format: FormatName, trace: Lazy<'s, Value>) -> Log<'s> {
        let path = self.0.get(source).map(PathBuf::from);
        Log {
            text: path.map(|path| Box::new(move || text_of(&path)) as _),
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

/// Adds the sessions of sub-agents that are in a folder of the name of their session, as Claude Code keeps them.
pub fn add_subagents(inputs: &mut Vec<String>) {
    let mut known: HashSet<PathBuf> = inputs.iter().map(PathBuf::from).collect();
    let below = |file: &String| {
        let folder = WalkDir::new(Path::new(file).with_extension(""))
            .min_depth(2)
            .max_depth(2);
        // A link may lead out of the agent's folder.
        folder.follow_root_links(false).sort_by_file_name()
    };
    let is_session = |entry: &DirEntry| {
        let file = entry.path();
        let is_lines =
            file.extension().is_some_and(|ending| ending == "jsonl") && entry.file_type().is_file();
        file.parent().is_some_and(|folder| folder.ends_with("subagents"))
            && is_lines
            && head_of(file).is_ok_and(|head| head.format == Some(FormatName::ClaudeCode))
    };
    let files = inputs.iter().flat_map(below).flatten().filter(is_session);
    for file in files.map(DirEntry::into_path).collect::<Vec<_>>() {
        if let Some(name) = file.to_str().map(str::to_owned)
            && known.insert(file)
        {
            inputs.push(name);
        }
    }
}
