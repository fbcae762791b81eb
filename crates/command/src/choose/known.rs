//! What is known already: a folder that was shared, files of traces, or a memory of the API.

use std::{fs::File, io::Read, path::Path, time::Instant};

use knowledgepulse_index::{
    memory::Memory,
    method::Method,
    options::{MemoryOptions, Origin},
    shared::SharedMemory,
    traces::TraceMemory,
};
use knowledgepulse_score::engine::Status;
use knowledgepulse_share::{self as share, MANIFEST};

use crate::{
    Candidate, ChoiceArgs, Context, Failure, Filter, Inputs, Purpose, Result, STDIN, Scored, Scoring,
    score::score,
};

/// Returns a new memory of the usual size.
pub(crate) fn new_memory(method: Method) -> Memory {
    Memory::new(method, MemoryOptions::default())
}

/// Reads what is shared already: by `--known`, and in the folder that is added to. Returns its traces, the sets that know their sessions again,
/// that of the folder first, and how traces are scored beside it.
///
/// # Errors
/// If `--known` names nothing of the kind, or a file cannot be read or has no trace.
pub(crate) fn read_known<'h>(
    choice: &ChoiceArgs,
    purpose: &Purpose,
    status: &Status,
    run: Context<'h>,
) -> Result<(TraceMemory, Vec<share::Set>, Scoring<'h>)> {
    let method = choice.novelty;
    let unbounded = MemoryOptions {
        max_elements: usize::MAX,
        ..MemoryOptions::default()
    };
    let (mut known, mut memory) = (TraceMemory::new(method, unbounded), new_memory(method));
    let mut sets: Vec<_> = purpose.folder.iter().map(|(_, set)| (*set).clone()).collect();
    let mut files = Vec::new();
    match choice.told.known.as_deref() {
        None => {}
        Some(file) if is_memory(file) => {
            known = load(file, method, status)?;
            memory = known.clone().into();
        }
        Some(file) => {
            let (sources, set) = known_sources(file)?;
            sets.extend(set);
            files.push(("--known: ", sources));
        }
    }
    if let Some((folder, set)) = purpose.folder {
        let mut sources = files_of(set, folder);
        sources.retain(|file| Path::new(file).exists());
        files.push(("", sources));
    }
    let scoring = Scoring::beside(memory, run, purpose.keeps, false);
    files.retain(|(_, sources)| !sources.is_empty());
    for (option, sources) in files {
        let (first, before) = (sources[0].clone(), known.len(Instant::now()));
        let mut add = |_: Scored, candidate: Candidate| Ok(known.add(candidate.entry()?, Instant::now())?);
        let inputs = Inputs::new(sources, Filter::default());
        let seen = score(&inputs, &scoring, &mut add)?;
        if let Some(lack) = seen.why_incomplete(run.stop) {
            return Err(Failure::file(format!("{option}{lack}")));
        }
        if known.len(Instant::now()) == before {
            return Err(Failure::file(format!("{option}{first} has no trace")));
        }
    }
    Ok((known, sets, scoring))
}

/// Returns whether a file is a memory: it begins with the length of a header, which is an object of JSON.
fn is_memory(file: &str) -> bool {
    if !Path::new(file).is_file() {
        return false;
    }
    let mut beginning = [0; 9];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut beginning));
    read.is_ok() && beginning[8] == b'{' && beginning[7] == 0
}

/// Reads the memory in a file.
///
/// # Errors
/// If it cannot be read, or compares in another way or by another model than the run.
fn load(file: &str, method: Method, status: &Status) -> Result<TraceMemory> {
    let embedder = status.failure.is_none().then(|| status.identity());
    let origin = Origin {
        model: embedder.filter(|embedder| !embedder.model.is_empty()),
        method: Some(method.name().into()),
    };
    let loaded = TraceMemory::load(Path::new(file), None).and_then(|mut memory| {
        memory.check_origin(&origin, Instant::now())?;
        Ok(memory)
    });
    loaded.map_err(|error| Failure::file(format!("--known: {file}: {error}")))
}

/// Returns the files of traces that `--known` names, and the set that they are, if it is one.
fn known_sources(name: &str) -> Result<(Vec<String>, Option<share::Set>)> {
    let path = Path::new(name);
    let folder = match path.file_name() {
        Some(file) if file == MANIFEST => path.parent(),
        _ => path.is_dir().then_some(path),
    };
    let Some(folder) = folder else {
        if name == STDIN || !path.is_file() {
            let problem = format!("--known must be a folder, or a file: {name}");
            return Err(Failure::file(problem));
        }
        return Ok((vec![name.to_owned()], None));
    };
    let set = share::Set::read(folder).map_err(|error| Failure::read(name, &error))?;
    let set = set.filter(|set| !set.lines().is_empty());
    let set = set.ok_or_else(|| Failure::file(format!("--known: {name} has no set that was shared")))?;
    Ok((files_of(&set, folder), Some(set)))
}

/// Returns the paths of the files that a set in a folder has.
fn files_of(set: &share::Set, folder: &Path) -> Vec<String> {
    let files = set.files().into_iter();
    files
        .map(|file| folder.join(file).display().to_string())
        .collect()
}
