//! The file under another name in which a cache is written, until it is whole.

use std::{fs, io, path::Path};

use tempfile::{Builder, NamedTempFile};

use knowledgepulse_os::file_lock;

const PREFIX: &str = ".knowledgepulse-";
const SUFFIX: &str = ".tmp";

/// An empty file with the permissions of `existing`, or those that new files have. It is locked as long as it is
/// open, and removed if it is not renamed.
pub(super) fn create(directory: &Path, existing: Option<&fs::Metadata>) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The process's file mode creation mask takes permissions away from this.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(directory)?;
    // Without locks, no file is taken for abandoned, so none is removed wrongly.
    drop(file.as_file().try_lock());
    #[cfg(unix)]
    if let Some(existing) = existing {
        file.as_file().set_permissions(existing.permissions())?;
    }
    #[cfg(not(unix))]
    let _ = existing;
    Ok(file)
}

/// Removes the files of processes that were killed while they wrote.
pub(super) fn remove_abandoned(directory: &Path) {
    file_lock::remove_abandoned(directory, PREFIX, SUFFIX);
}
