//! Temporary files, in which a memory is written until it is complete.

use std::{fs, io, path::Path};

use tempfile::{Builder, NamedTempFile};

use knowledgepulse_os::file_lock;

const PREFIX: &str = ".knowledgepulse-";
const SUFFIX: &str = ".tmp";

/// Makes an empty file with the permissions of `existing` or of new files. It is locked while it is open, and removed unless renamed.
pub(super) fn create(directory: &Path, existing: Option<&fs::Metadata>) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The umask removes permissions from this.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(directory)?;
    // Without locks no file counts as abandoned, so none is removed wrongly.
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
