//! Files that killed processes have left. The operating system releases a lock when its process ends. A process id in a file cannot replace
//! that, because ids are reused, and mean another process in another container.

use std::{
    fs::{self, File, OpenOptions},
    path::Path,
    time::Duration,
};

/// The least age of an abandoned file, because a new file is unlocked for a moment.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Removes abandoned files in `directory`: old, unlocked, with names from `prefix` to `suffix`. Files that cannot be removed stay.
pub(crate) fn remove_abandoned(directory: &Path, prefix: &str, suffix: &str) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(prefix) && name.ends_with(suffix) && is_abandoned(&entry.path()) {
            // Another process may have removed it already.
            drop(fs::remove_file(entry.path()));
        }
    }
}

fn is_abandoned(path: &Path) -> bool {
    let is_old = |file: &File| {
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > PATIENCE))
    };
    let mut options = OpenOptions::new();
    options.read(true);
    // Opening fails if another process has the file open, even without a lock.
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 0);
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
        && options
            .open(path)
            .is_ok_and(|file| is_old(&file) && file.try_lock().is_ok())
}
