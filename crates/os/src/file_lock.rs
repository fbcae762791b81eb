//! Lock files, and files that killed processes have left.
//!
//! The operating system releases a lock when its process ends. A process id in a file cannot replace that, because ids are reused, and mean
//! another process in another container.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    time::Duration,
};

/// The least age of an abandoned file, because a new file is unlocked for a moment.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The most bytes read of a lock file, which has one line.
const MOST_TEXT_BYTES: u64 = 1024;

/// A lock on a file until this is dropped or the process ends.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Creates the lock file at `path`, with `text` in it, or takes over one that a killed process has left. Returns `None` if
    /// another process or another `FileLock` has it. On a file system without locks, this always succeeds.
    ///
    /// # Errors
    /// The errors of the file system; and [`io::ErrorKind::AlreadyExists`] if there is a file that does not begin with
    /// `kind`, the first word of `text`, so that no other file is taken for a lock and overwritten.
    pub fn create(path: &Path, kind: &str, text: &str) -> io::Result<Option<Self>> {
        loop {
            let Some(file) = open(path)? else {
                return Ok(None);
            };
            // On Windows only one process can have it open; a lock would hide its text from others.
            #[cfg(not(windows))]
            if let Err(fs::TryLockError::WouldBlock) = file.try_lock() {
                return Ok(None);
            }
            let mut lock = Self {
                file,
                path: path.into(),
            };
            // Its previous owner may have removed it meanwhile.
            if !lock.is_at_its_path() {
                continue;
            }
            let mut before = Vec::new();
            (&lock.file).take(MOST_TEXT_BYTES).read_to_end(&mut before)?;
            if !before.is_empty() && !before.starts_with(kind.as_bytes()) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            lock.file.rewind()?;
            lock.file.set_len(0)?;
            lock.file.write_all(format!("{kind} {text}\n").as_bytes())?;
            return Ok(Some(lock));
        }
    }

    /// Removes the lock file, and releases it.
    ///
    /// # Errors
    /// The errors of the file system.
    pub fn remove(self) -> io::Result<()> {
        // Removed while it is locked, because afterwards another process could own it.
        if self.is_at_its_path() {
            fs::remove_file(&self.path)?;
        }
        Ok(())
    }

    /// Returns whether the file still has its name.
    fn is_at_its_path(&self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
            let here = self.file.metadata().map(identity);
            let there = fs::symlink_metadata(&self.path).map(identity);
            here.is_ok_and(|here| there.is_ok_and(|there| here == there))
        }
        // On Windows an open file cannot be replaced.
        #[cfg(not(unix))]
        {
            let _ = self;
            true
        }
    }
}

/// Opens or creates a lock file; `None` if another process has it open exclusively.
fn open(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Refuses links, which lead to another file, and pipes, which would block.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        const SHARE_READ: u32 = 1;
        const SHARE_DELETE: u32 = 4;
        options.share_mode(SHARE_READ | SHARE_DELETE);
    }
    match options.open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        #[cfg(windows)]
        Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error),
    }
}

/// `ERROR_SHARING_VIOLATION`: another process has the file open and does not share it.
#[cfg(windows)]
const SHARING_VIOLATION: i32 = 32;

/// Removes abandoned files in `directory`: old, unlocked, with names from `prefix` to `suffix`. Files that cannot be removed stay.
pub fn remove_abandoned(directory: &Path, prefix: &str, suffix: &str) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg_attr(miri, ignore = "about the file system")]
    #[test]
    fn one_at_a_time_has_a_lock_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.lock");
        let create = || FileLock::create(&path, "test", "1").unwrap();
        let lock = create().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "test 1\n");
        assert!(create().is_none());
        // The file stays, as it does when its process is killed.
        drop(lock);
        let lock = create().unwrap();
        assert!(create().is_none());
        lock.remove().unwrap();
        assert!(!path.exists());
        create().unwrap().remove().unwrap();
    }

    #[cfg_attr(miri, ignore = "about the file system")]
    #[test]
    fn no_other_file_is_taken_for_a_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.lock");
        fs::write(&path, "precious").unwrap();
        FileLock::create(&path, "test", "1").unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        // A file that has taken its place is not removed.
        fs::remove_file(&path).unwrap();
        let lock = FileLock::create(&path, "test", "1").unwrap().unwrap();
        #[cfg(unix)]
        {
            fs::remove_file(&path).unwrap();
            fs::write(&path, "precious").unwrap();
            lock.remove().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
            std::os::unix::fs::symlink(&path, directory.path().join("link")).unwrap();
            FileLock::create(&directory.path().join("link"), "test", "1").unwrap_err();
        }
        #[cfg(not(unix))]
        lock.remove().unwrap();
    }

    #[cfg_attr(miri, ignore = "about the file system")]
    #[test]
    fn threads_take_turns() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.lock");
        let inside = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    use std::sync::atomic::Ordering::SeqCst;
                    let mut turns = 0;
                    while turns < 100 {
                        if let Some(lock) = FileLock::create(&path, "test", "1").unwrap() {
                            assert_eq!(inside.fetch_add(1, SeqCst), 0);
                            assert_eq!(inside.fetch_sub(1, SeqCst), 1);
                            lock.remove().unwrap();
                            turns += 1;
                        }
                    }
                });
            }
        });
    }
}
