//! Checks of both engines before and after they read a model's file.

use std::{fs::Metadata, hint::black_box, path::Path};

use knowledgepulse_error::{Error, Result};

/// Checks that there are `bytes` of memory to load the model in `path`. Without the check, a small allocation that fails later would end
/// the process.
///
/// # Errors
/// [`Error::NoRoomForModel`].
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
    Err(Error::NoRoomForModel {
        path: path.to_owned(),
        megabytes: bytes / 1_000_000,
    })
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
