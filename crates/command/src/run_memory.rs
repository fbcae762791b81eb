//! The memory of a run: a new one, or that of a file.

use std::{
    collections::HashSet,
    fs::File,
    io::Read,
    path::Path,
    time::{Instant, SystemTime},
};

use knowledgepulse_error::Error;
use knowledgepulse_index::{
    memory::Memory,
    method::Method,
    options::{MemoryOptions, Origin},
    shared::{SharedMemory, lock},
    traces::TraceMemory,
    vectors::VectorCache,
};
use knowledgepulse_score::engine::Status;
use knowledgepulse_trace::label::Fingerprint;

use crate::{
    error::{Failure, Result},
    summary::MemoryFile,
    temporary::{RunLock, require_room_for},
};

/// The advice about a memory that does not fit.
const OTHER_MODEL: &str = "use another file, or KNOWLEDGEPULSE_MODEL_DIR for the model that it was made with";
const OTHER_METHOD: &str = "use another file, or --novelty for the method that it was made with";

/// A memory that outlives the run. Other runs cannot use its file meanwhile.
pub(crate) struct HeldMemory {
    pub file: String,
    pub memory: Memory,
    before: usize,
    _lock: RunLock,
}

impl HeldMemory {
    /// Loads the memory of earlier runs, or begins one, with the bound that is asked for.
    ///
    /// # Errors
    /// If another run holds it, or it cannot be read, or does not fit, or cannot be written later.
    pub(crate) fn open(
        file: &str,
        method: Method,
        most: Option<usize>,
        status: &Status,
        machine: &str,
    ) -> Result<Self> {
        require_room_for(file)?;
        let run_lock = RunLock::of(file, machine)?;
        let mut memory = load(file, method, None, status)?;
        let before = memory.as_ref().map_or(0, len);
        let bound = memory
            .as_ref()
            .map(|memory| lock(memory.held()).options().max_elements);
        if bound.is_some() && most.is_some() && bound != most {
            memory = load(file, method, most, status)?;
        }
        Ok(Self {
            file: file.to_owned(),
            memory: memory.unwrap_or_else(|| new_memory(method, most)),
            before,
            _lock: run_lock,
        })
    }

    /// Returns the fingerprints of its traces.
    pub(crate) fn fingerprints(&self) -> HashSet<Fingerprint> {
        let novelties = lock(self.memory.held()).novelties(Instant::now());
        novelties.into_keys().collect()
    }

    /// Writes it to its file, if that is wanted. Returns how many traces it holds, of which so many were added.
    pub(crate) fn close(&self, is_saved: bool, added: u64) -> Result<MemoryFile> {
        let before = self.before as u64;
        let mut after = before;
        if is_saved {
            let snapshot = lock(self.memory.held()).snapshot(Instant::now(), SystemTime::now());
            snapshot
                .save(Path::new(&self.file))
                .map_err(|error| Failure::file(error.to_string()))?;
            after = len(&self.memory) as u64;
        }
        Ok(MemoryFile {
            file: self.file.clone(),
            before,
            after: Some(after),
            forgotten: is_saved.then(|| (before + added).saturating_sub(after)),
        })
    }
}

/// Returns a new memory of at most this many traces, or as many as is usual.
pub(crate) fn new_memory(method: Method, most: Option<usize>) -> Memory {
    let usual = MemoryOptions::default();
    let options = MemoryOptions {
        max_elements: most.unwrap_or(usual.max_elements),
        ..usual
    };
    Memory::new(method, options)
}

/// Returns whether a file is a memory: it begins with the length of a header, which is an object of JSON.
pub(crate) fn is_memory(file: &str) -> bool {
    let mut beginning = [0; 9];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut beginning));
    read.is_ok() && beginning[8] == b'{' && beginning[7] == 0
}

/// Reads the memory in a file, with the bound that is asked for; `None` if there is no file.
///
/// # Errors
/// If it cannot be read, or compares in another way or by another model than the run.
pub(crate) fn load(
    file: &str,
    method: Method,
    most: Option<usize>,
    status: &Status,
) -> Result<Option<Memory>> {
    let path = Path::new(file);
    let loaded = match method {
        Method::Prefix => VectorCache::load(path, most).map(Memory::from),
        _ => TraceMemory::load(path, most).map(Memory::from),
    };
    let memory = match loaded {
        Err(Error::MemoryNotFound { .. }) => return Ok(None),
        Err(Error::MemoryOtherKind { path, held, other }) => {
            let path = path.display();
            return Err(Failure::file(format!(
                "{path} holds {held}, not {other}: {OTHER_METHOD}"
            )));
        }
        loaded => loaded.map_err(|error| Failure::file(error.to_string()))?,
    };
    if memory.method() != method {
        let (held, method) = (memory.method().name(), method.name());
        return Err(Failure::file(format!(
            "{file}: the memory compares with novelty '{held}', not with '{method}': {OTHER_METHOD}"
        )));
    }
    check(&memory, file, status)?;
    Ok(Some(memory))
}

/// Returns an error unless the embedder's vectors can be compared with the memory's.
fn check(memory: &Memory, file: &str, status: &Status) -> Result<()> {
    let embedder = status.failure.is_none().then(|| status.identity());
    let origin = Origin {
        model: embedder.filter(|embedder| !embedder.model.is_empty()),
        method: Some(memory.method().name().into()),
    };
    let checked = lock(memory.held()).check_origin(&origin, Instant::now());
    checked.map_err(|error| {
        let message = error.to_string();
        Failure::file(match error {
            Error::MemoryOtherModel { held, other } => format!(
                "{file} holds vectors of {held}, which cannot be compared with those of the embedder, {other}: {OTHER_MODEL}"
            ),
            Error::MemoryOtherMethod { .. } => {
                let problem = message.split(": use another").next().unwrap_or_default();
                format!("{file}: {problem}: {OTHER_METHOD}")
            }
            _ => message,
        })
    })
}

fn len(memory: &Memory) -> usize {
    lock(memory.held()).len(Instant::now())
}
