//! The memory of a run: a new one, or that of a file of the API.

use std::{fs::File, io::Read, path::Path, time::Instant};

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

use crate::error::{Failure, Result};

/// The advice about a memory that does not fit.
const OTHER_MODEL: &str = "use another file, or KNOWLEDGEPULSE_MODEL_DIR for the model that it was made with";
const OTHER_METHOD: &str = "use another file, or --novelty for the method that it was made with";

/// Returns a new memory of the usual size.
pub(crate) fn new_memory(method: Method) -> Memory {
    Memory::new(method, MemoryOptions::default())
}

/// Returns whether a file is a memory: it begins with the length of a header, which is an object of JSON.
pub(crate) fn is_memory(file: &str) -> bool {
    let mut beginning = [0; 9];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut beginning));
    read.is_ok() && beginning[8] == b'{' && beginning[7] == 0
}

/// Reads the memory in a file; `None` if there is no file.
///
/// # Errors
/// If it cannot be read, or compares in another way or by another model than the run.
pub(crate) fn load(file: &str, method: Method, status: &Status) -> Result<Option<Memory>> {
    let path = Path::new(file);
    let loaded = match method {
        Method::Prefix => VectorCache::load(path, None).map(Memory::from),
        _ => TraceMemory::load(path, None).map(Memory::from),
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
