//! Temporary files: some replace another file when they are complete, others have no name.

use std::{
    env,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tempfile::{Builder, NamedTempFile};

/// The time that a rename on Windows waits for others that have the file open. One second is too short beside a thread that loads it all
/// the time.
const PATIENCE: Duration = Duration::from_secs(5);

/// A temporary file in the directory of the file that it replaces. Dropping it removes it.
pub type TemporaryFile = NamedTempFile<Arc<File>>;

/// Creates an empty file in `directory`, with the permissions of `existing` or of new files. Its name is `prefix`, letters and `.tmp`.
///
/// # Errors
/// Those of the file system.
pub fn create(directory: &Path, prefix: &str, existing: Option<&Metadata>) -> io::Result<TemporaryFile> {
    let open = |path: &Path| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        options.open(path).map(Arc::new)
    };
    let file = Builder::new()
        .prefix(prefix)
        .suffix(".tmp")
        .make_in(directory, open)?;
    if let Some(existing) = existing.filter(|_| cfg!(unix)) {
        // Sets what the umask has removed, too.
        file.as_file().set_permissions(existing.permissions())?;
    }
    Ok(file)
}

/// Writes `file` out to the disk and renames it to `target`, in the same directory. A file of this name is replaced in one step, on Windows as
/// soon as no other program has it open; after a loss of power there is one of both.
///
/// # Errors
/// Those of the file system, after which `target` is what it was.
pub fn replace(target: &Path, mut file: TemporaryFile) -> io::Result<()> {
    file.as_file().sync_all()?;
    let began = Instant::now();
    while let Err(error) = fs::rename(file.path(), target) {
        // There a name stays taken while its file is open, unless the file system can delete open files, as NTFS can.
        let is_open = cfg!(windows) && error.kind() == ErrorKind::PermissionDenied;
        if !is_open || began.elapsed() > PATIENCE {
            return Err(error);
        }
        thread::sleep(Duration::from_millis(5));
    }
    file.disable_cleanup(true);
    Ok(())
}

/// Creates a file in [`directory`] that only this process can open, and that ends with it.
///
/// # Errors
/// Those of the file system.
pub fn unnamed() -> io::Result<File> {
    tempfile::tempfile_in(directory())
}

/// Returns the directory for temporary files.
#[must_use]
pub fn directory() -> PathBuf {
    if cfg!(target_os = "wasi") {
        // The standard library panics there.
        return env::var_os("TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from);
    }
    env::temp_dir()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[cfg_attr(miri, ignore = "about the file system")]
    #[test]
    fn replace_replaces_a_file_and_drop_leaves_none() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        fs::write(&target, "before").unwrap();
        let new = || create(directory.path(), ".a-", None).unwrap();
        let names = || fs::read_dir(directory.path()).unwrap().count();
        let file = new();
        let mut writer = Arc::clone(file.as_file());
        writer.write_all(b"after").unwrap();
        // Not every Windows, and not Wine, replaces a file that is open.
        drop(writer);
        drop(new());
        assert_eq!(names(), 2);
        assert_eq!(fs::read_to_string(&target).unwrap(), "before");
        replace(&target, file).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "after");
        assert_eq!(names(), 1);
        let error = replace(&directory.path().join("none/target"), new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(names(), 1);
    }

    #[cfg_attr(miri, ignore = "about the file system")]
    #[cfg(unix)]
    #[test]
    fn create_gives_the_permissions_of_the_file_that_exists() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let existing = directory.path().join("existing");
        fs::write(&existing, "").unwrap();
        fs::set_permissions(&existing, fs::Permissions::from_mode(0o666)).unwrap();
        let existing = fs::metadata(existing).unwrap();
        let file = create(directory.path(), ".a-", Some(&existing)).unwrap();
        let mode = file.as_file().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
    }
}
