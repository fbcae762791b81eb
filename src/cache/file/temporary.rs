//! The file under another name in which a cache is written, until it is whole.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::Duration,
};

use tempfile::{Builder, NamedTempFile};

const PREFIX: &str = ".knowledgepulse-";
const SUFFIX: &str = ".tmp";

/// Between its creation and its lock a file looks abandoned.
const PATIENCE: Duration = Duration::from_secs(60);

/// An empty file with the permissions of `existing`, or those that new files have. It is locked as long as it is
/// open, and removed if it is not renamed.
pub(super) fn create(directory: &Path, existing: Option<&fs::Metadata>) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What the process's mask leaves of this.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(directory)?;
    // Where there are no locks nothing is ever taken for abandoned.
    drop(file.as_file().try_lock());
    #[cfg(unix)]
    if let Some(existing) = existing {
        file.as_file().set_permissions(existing.permissions())?;
    }
    #[cfg(not(unix))]
    let _ = existing;
    Ok(file)
}

/// Removes the files of processes that were killed while they wrote: old, and locked by nobody.
pub(super) fn remove_abandoned(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) && is_abandoned(&entry.path()) {
            // Another process may have been quicker.
            drop(fs::remove_file(entry.path()));
        }
    }
}

fn is_abandoned(path: &Path) -> bool {
    let is_old = |file: &File| {
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > PATIENCE))
    };
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
        && File::open(path).is_ok_and(|file| is_old(&file) && file.try_lock().is_ok())
}
