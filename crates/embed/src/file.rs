//! Checks of both engines before and after they read a model's file.

use std::{fs::Metadata, hint::black_box, path::Path};

use knowledgepulse_error::{Code, Error, Result};

/// Checks that there are `bytes` of memory to load the model in `path`. Without the check, a small allocation that fails later would end
/// the process.
///
/// # Errors
/// `ERR_OUT_OF_MEMORY`.
pub fn check_room(path: &Path, bytes: u64) -> Result<()> {
    // Windows counts reserved memory as used, and WebAssembly never returns memory.
    if cfg!(any(windows, target_family = "wasm")) {
        return Ok(());
    }
    let mut room = Vec::<u8>::new();
    let fits = usize::try_from(bytes).is_ok_and(|bytes| room.try_reserve_exact(bytes).is_ok());
    // Keeps the compiler from removing the unused allocation.
    black_box(&mut room);
    if fits {
        return Ok(());
    }
    Err(no_room(path, bytes))
}

/// Returns the error for a model in a file that needs so many bytes.
pub(super) fn no_room(path: &Path, bytes: u64) -> Error {
    let (path, megabytes) = (path.display(), bytes / 1_000_000);
    let problem = format!("out of memory: loading {path} needs about {megabytes} MB");
    Error::Other(Code::OutOfMemory, problem)
}

/// The identity of a file.
#[derive(PartialEq)]
pub(super) struct Identity {
    pub(super) length: u64,
    modified: Option<std::time::SystemTime>,
}

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}
