//! What both engines ask before and after they read a model's file.

use std::{fs::Metadata, hint::black_box, path::Path};

use knowledgepulse_error::{Error, Result};

/// Makes sure that there is memory to load the model in `path`, `bytes` in all. Where a limit is too low, it is better to say so
/// than to start: when a small allocation fails in the middle, there is nothing left to do but to end the process.
///
/// # Errors
/// [`Error::NoRoomForModel`].
pub fn check_room(path: &Path, bytes: u64) -> Result<()> {
    // Windows counts what is reserved as if it were used, and WebAssembly never gives back what it was granted.
    if cfg!(any(windows, target_family = "wasm")) {
        return Ok(());
    }
    let mut room = Vec::<u8>::new();
    let fits = usize::try_from(bytes).is_ok_and(|bytes| room.try_reserve_exact(bytes).is_ok());
    // The compiler leaves out an allocation that nobody looks at, and takes it for granted.
    black_box(&mut room);
    if fits {
        return Ok(());
    }
    Err(Error::NoRoomForModel {
        path: path.to_owned(),
        megabytes: bytes / 1_000_000,
    })
}

/// What a file is recognised by.
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
