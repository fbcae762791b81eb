//! The memory of a run: a new one, or that of a file.

use std::{
    collections::HashSet,
    fs::File,
    io::Read,
    path::Path,
    sync::MutexGuard,
    time::{Instant, SystemTime},
};

use knowledgepulse_error::{Call, Error};
use knowledgepulse_index::{
    memory::Memory,
    method::Method,
    options::{MemoryOptions, Origin},
    persist::LoadOptions,
    shared::{SharedMemory, lock},
    traces::{TraceEntry, TraceMemory},
    vectors::VectorCache,
};
use knowledgepulse_score::{engine::Status, select::Candidates};
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
    pub memory: RunMemory,
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
        let lock = RunLock::of(file, machine)?;
        let held = RunMemory::load(file, method, None, status)?;
        let before = held.as_ref().map_or(0, RunMemory::len);
        let memory = match (held, most) {
            (Some(held), Some(most)) if most != held.most() => {
                RunMemory::load(file, method, Some(most), status)?
            }
            (held, _) => held,
        };
        Ok(Self {
            file: file.to_owned(),
            memory: memory.unwrap_or_else(|| RunMemory::new(method, most)),
            before,
            _lock: lock,
        })
    }

    /// Writes it to its file, if that is wanted. Returns how many traces it holds, of which so many were added.
    pub(crate) fn close(&self, is_saved: bool, added: u64) -> Result<MemoryFile> {
        let before = self.before as u64;
        let after = if is_saved {
            self.memory.save(&self.file)?;
            self.memory.len() as u64
        } else {
            before
        };
        Ok(MemoryFile {
            file: self.file.clone(),
            before,
            after: Some(after),
            forgotten: is_saved.then(|| (before + added).saturating_sub(after)),
        })
    }
}

/// The memory of a run: its traces are compared with it and added to it.
#[derive(Clone)]
pub(crate) struct RunMemory(Memory);

impl RunMemory {
    /// Returns a new memory of at most this many traces, or as many as is usual.
    pub(crate) fn new(method: Method, most: Option<usize>) -> Self {
        let usual = MemoryOptions::default();
        let options = MemoryOptions {
            max_elements: most.unwrap_or(usual.max_elements),
            ..usual
        };
        Self(match method {
            Method::Prefix => VectorCache::new(options).into(),
            method => TraceMemory::new(method, options).into(),
        })
    }

    /// Reads the memory in a file, with the bound that is asked for; `None` if there is no file.
    pub(crate) fn load(
        file: &str,
        method: Method,
        most: Option<usize>,
        status: &Status,
    ) -> Result<Option<Self>> {
        let options = LoadOptions {
            max_elements: most,
            ..LoadOptions::default()
        };
        let (path, call) = (Path::new(file), Call::default());
        let loaded = match method {
            Method::Prefix => VectorCache::load(path, options, &call).map(Memory::from),
            _ => TraceMemory::load(path, options, &call).map(Memory::from),
        };
        let loaded = match loaded {
            Err(Error::MemoryNotFound { .. }) => return Ok(None),
            Err(Error::MemoryOtherKind { path, held, other }) => {
                let path = path.display();
                return Err(Failure::file(format!(
                    "{path} holds {held}, not {other}: {OTHER_METHOD}"
                )));
            }
            loaded => loaded.map_err(|error| Failure::file(error.to_string()))?,
        };
        let held = loaded.method();
        if held != method {
            let (held, method) = (held.name(), method.name());
            return Err(Failure::file(format!(
                "{file}: the memory compares with novelty '{held}', not with '{method}': {OTHER_METHOD}"
            )));
        }
        let loaded = Self(loaded);
        loaded.check(file, status)?;
        Ok(Some(loaded))
    }

    /// Returns whether a file is a memory: it begins with the length of a header, which is an object of JSON.
    pub(crate) fn is_in(file: &str) -> bool {
        let mut beginning = [0; 9];
        let read = File::open(file).and_then(|mut file| file.read_exact(&mut beginning));
        read.is_ok() && beginning[8] == b'{' && beginning[7] == 0
    }

    /// Returns an error unless the embedder's vectors can be compared with the memory's.
    fn check(&self, file: &str, status: &Status) -> Result<()> {
        let embedder = status.failure.is_none().then(|| status.identity());
        let origin = Origin {
            model: embedder.filter(|embedder| !embedder.model.is_empty()),
            method: Some(self.0.method().name().into()),
        };
        let checked = lock(self.0.held()).check_origin(&origin, Instant::now());
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

    /// Returns it for a scorer.
    pub(crate) fn share(&self) -> Memory {
        self.0.clone()
    }

    /// Locks a memory of traces; `None` of vectors.
    fn traces(&self) -> Option<MutexGuard<'_, TraceMemory>> {
        match &self.0 {
            Memory::Vectors(_) => None,
            Memory::Traces { memory, .. } => Some(lock(memory)),
        }
    }

    /// Returns a copy of a memory of traces; `None` of vectors.
    pub(crate) fn copy(&self) -> Option<Self> {
        Some(Self(self.traces()?.clone().into()))
    }

    /// Returns a set to choose beside a memory of traces; `None` of vectors.
    pub(crate) fn candidates(&self) -> Option<Candidates> {
        Some(Candidates::beside(&mut *self.traces()?))
    }

    /// Remembers a trace, in a memory of traces.
    pub(crate) fn add(&self, entry: TraceEntry) -> Result<()> {
        let added = self.traces().map(|mut memory| memory.add(entry, Instant::now()));
        added
            .transpose()
            .map_err(|error| Failure::file(error.to_string()))?;
        Ok(())
    }

    /// Returns how many traces it holds.
    pub(crate) fn len(&self) -> usize {
        lock(self.0.held()).len(Instant::now())
    }

    /// Returns how many traces it holds at most.
    pub(crate) fn most(&self) -> usize {
        lock(self.0.held()).options().max_elements
    }

    /// Returns the fingerprints of its traces.
    pub(crate) fn fingerprints(&self) -> HashSet<Fingerprint> {
        lock(self.0.held())
            .novelties(Instant::now())
            .into_keys()
            .collect()
    }

    /// Writes it to a file.
    pub(crate) fn save(&self, file: &str) -> Result<()> {
        let snapshot = lock(self.0.held()).snapshot(Instant::now(), SystemTime::now());
        let saved = snapshot.save(Path::new(file), &Call::default());
        saved.map_err(|error| Failure::file(error.to_string()))
    }
}
