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
#[derive(Debug)]
pub struct TemporaryFile {
    file: NamedTempFile<Arc<File>>,
    /// Opened first, so that after the rename only a failing disk can cause an error.
    directory: Option<File>,
}

impl TemporaryFile {
    /// Creates an empty file in `directory`, with the permissions of `existing` or of new files. Its name is `prefix`, letters
    /// and `.tmp`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(directory: &Path, prefix: &str, existing: Option<&Metadata>) -> io::Result<Self> {
        let file = Builder::new()
            .prefix(prefix)
            .suffix(".tmp")
            .make_in(directory, |path| {
                let mut options = OpenOptions::new();
                options.read(true).write(true).create_new(true);
                options.open(path).map(Arc::new)
            })?;
        #[cfg(unix)]
        if let Some(existing) = existing {
            // Sets what the umask has removed, too.
            file.as_file().set_permissions(existing.permissions())?;
        }
        #[cfg(not(unix))]
        let _ = existing;
        Ok(Self {
            file,
            directory: open_directory(directory)?,
        })
    }

    /// Returns the file, for writing.
    #[must_use]
    pub fn file(&self) -> &Arc<File> {
        self.file.as_file()
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Renames it to `target`, in the same directory, so that the new name survives a loss of power. A file of this name is replaced in one
    /// step, on Windows as soon as no other program has it open.
    ///
    /// # Errors
    /// Those of the file system. Only if the disk fails, `target` is the new file after an error.
    pub fn persist(mut self, target: &Path) -> io::Result<()> {
        let began = Instant::now();
        while let Err(error) = fs::rename(self.path(), target) {
            // There a name stays taken while its file is open, unless the file system can delete open files, as NTFS can.
            let is_open = cfg!(windows) && error.kind() == ErrorKind::PermissionDenied;
            if !is_open || began.elapsed() > PATIENCE {
                return Err(error);
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.file.disable_cleanup(true);
        match self.directory.map_or(Ok(()), |directory| directory.sync_all()) {
            // Ignores file systems without support, which write the name with the file.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
            result => result,
        }
    }
}

/// Opens a directory, to write out its names; `None` where the system does not open it.
fn open_directory(directory: &Path) -> io::Result<Option<File>> {
    if cfg!(not(unix)) {
        // Other systems cannot open a directory as a file, so its names cannot be written out.
        return Ok(None);
    }
    match File::open(directory) {
        // Files can be replaced in a directory that cannot be read.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(None),
        result => result.map(Some),
    }
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
    fn persist_replaces_a_file_and_drop_leaves_none() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        fs::write(&target, "before").unwrap();
        let create = || TemporaryFile::create(directory.path(), ".a-", None).unwrap();
        let names = || fs::read_dir(directory.path()).unwrap().count();
        let file = create();
        let mut writer = Arc::clone(file.file());
        writer.write_all(b"after").unwrap();
        // Not every Windows, and not Wine, replaces a file that is open.
        drop(writer);
        drop(create());
        assert_eq!(names(), 2);
        assert_eq!(fs::read_to_string(&target).unwrap(), "before");
        file.persist(&target).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "after");
        assert_eq!(names(), 1);
        let error = create()
            .persist(&directory.path().join("none/target"))
            .unwrap_err();
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
        let file = TemporaryFile::create(directory.path(), ".a-", Some(&existing)).unwrap();
        let mode = file.file().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
    }
}
