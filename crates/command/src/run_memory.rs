//! The memory of a run: a new one, or that of a file.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::{Instant, SystemTime},
};

use knowledgepulse_error::Error;
use knowledgepulse_index::{
    memory::Memory,
    method::Method,
    persist::LoadOptions,
    shared::lock,
    traces::{SharedTraces, TraceEntry, TraceMemory},
    vectors::{Options, Origin, SharedCache, VectorCache},
};
use knowledgepulse_score::{engine::Status, select::Candidates};
use knowledgepulse_trace::label::Fingerprint;

use crate::error::{Failure, Result};

/// The advice about a memory that does not fit.
const OTHER_MODEL: &str = "use another file, or --dtype or --model-dir for the model that it was made with";
const OTHER_METHOD: &str = "use another file, or --novelty for the method that it was made with";

/// The memory of a run: its traces are compared with it and added to it.
#[derive(Clone)]
pub(crate) enum RunMemory {
    Vectors(Arc<SharedCache>),
    Traces(Arc<SharedTraces>, Method),
}

impl RunMemory {
    /// Returns a new memory of at most this many traces, or as many as is usual.
    pub(crate) fn new(method: Method, most: Option<usize>) -> Self {
        let usual = Options::default();
        let options = Options {
            max_elements: most.unwrap_or(usual.max_elements),
            ..usual
        };
        match method {
            Method::Prefix => Self::Vectors(Arc::new(Mutex::new(VectorCache::new(options)))),
            method => Self::Traces(Arc::new(Mutex::new(TraceMemory::new(method, options))), method),
        }
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
        let path = Path::new(file);
        let loaded = match method {
            Method::Prefix => {
                VectorCache::load(path, options).map(|cache| Self::Vectors(Arc::new(Mutex::new(cache))))
            }
            _ => TraceMemory::load(path, options).map(|memory| {
                let method = memory.method();
                Self::Traces(Arc::new(Mutex::new(memory)), method)
            }),
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
        loaded.check(file, status)?;
        Ok(Some(loaded))
    }

    /// Returns an error unless the embedder's vectors can be compared with the memory's.
    fn check(&self, file: &str, status: &Status) -> Result<()> {
        let embedder = status.failure.is_none().then(|| status.identity());
        let origin = Origin {
            model: embedder.filter(|embedder| !embedder.model.is_empty()),
            method: Some(self.method().name().into()),
        };
        let now = Instant::now();
        let checked = match self {
            Self::Vectors(cache) => lock(cache).check_origin(&origin, now),
            Self::Traces(memory, _) => lock(memory).check_origin(&origin, now),
        };
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

    fn method(&self) -> Method {
        match self {
            Self::Vectors(_) => Method::Prefix,
            Self::Traces(_, method) => *method,
        }
    }

    /// Returns it for a scorer.
    pub(crate) fn share(&self) -> Memory {
        match self {
            Self::Vectors(cache) => Memory::of_vectors(Arc::clone(cache)),
            Self::Traces(memory, method) => Memory::of_traces(Arc::clone(memory), *method),
        }
    }

    /// Returns a copy of a memory of traces; `None` of vectors.
    pub(crate) fn copy(&self) -> Option<Self> {
        let Self::Traces(memory, method) = self else {
            return None;
        };
        let copy = lock(memory).clone();
        Some(Self::Traces(Arc::new(Mutex::new(copy)), *method))
    }

    /// Returns a set to choose beside a memory of traces; `None` of vectors.
    pub(crate) fn candidates(&self) -> Option<Candidates> {
        match self {
            Self::Vectors(_) => None,
            Self::Traces(memory, _) => Some(Candidates::beside(&mut lock(memory))),
        }
    }

    /// Remembers a trace, in a memory of traces.
    pub(crate) fn add(&self, entry: TraceEntry) -> Result<()> {
        let Self::Traces(memory, _) = self else {
            return Ok(());
        };
        let added = lock(memory).add(entry, Instant::now());
        added.map_err(|error| Failure::file(error.to_string()))
    }

    /// Returns how many traces it holds.
    pub(crate) fn len(&self) -> usize {
        let now = Instant::now();
        match self {
            Self::Vectors(cache) => lock(cache).len(now),
            Self::Traces(memory, _) => lock(memory).len(now),
        }
    }

    /// Returns how many traces it holds at most.
    pub(crate) fn most(&self) -> usize {
        match self {
            Self::Vectors(cache) => lock(cache).options().max_elements,
            Self::Traces(memory, _) => lock(memory).options().max_elements,
        }
    }

    /// Returns the novelties that the traces were scored with, by their fingerprints.
    pub(crate) fn novelties(&self) -> std::collections::HashMap<Fingerprint, f64> {
        let now = Instant::now();
        match self {
            Self::Vectors(cache) => lock(cache).novelties(now),
            Self::Traces(memory, _) => lock(memory).novelties(now),
        }
    }

    /// Writes it to a file.
    pub(crate) fn save(&self, file: &str) -> Result<()> {
        let (now, clock, path) = (Instant::now(), SystemTime::now(), Path::new(file));
        let saved = match self {
            Self::Vectors(cache) => {
                let snapshot = lock(cache).snapshot(now, clock);
                snapshot.save(path)
            }
            Self::Traces(memory, _) => {
                let snapshot = lock(memory).snapshot(now, clock);
                snapshot.save(path)
            }
        };
        saved.map_err(|error| Failure::file(error.to_string()))
    }
}
