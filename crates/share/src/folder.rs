//! A folder on the disk, which appears with all its files or not at all.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use knowledgepulse_json::{Value, parse_str};
use tempfile::{Builder, TempDir};
use walkdir::WalkDir;

use crate::{CARD, Files, MANIFEST};

/// Why a folder cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Something that was not shared is there.
    #[error("{0} has {1}, which was not shared into it: name another folder")]
    Taken(String, String),
    /// The file system refuses it.
    #[error("cannot write {0}: {1}")]
    Io(String, #[source] io::Error),
}

/// The files of a folder, beside its place until they are complete. Dropping it removes them.
pub struct Folder {
    target: PathBuf,
    directory: TempDir,
    file: Option<BufWriter<File>>,
}

impl Folder {
    /// Begins a folder at a path where nothing is, an empty folder, or one that was shared before and has no other files.
    ///
    /// # Errors
    /// If something else is there, or the folder around it cannot be written to.
    pub fn create(target: &Path) -> Result<Self, FolderError> {
        let name = target.display().to_string();
        if let Some(foreign) = foreign_in(target).map_err(|error| FolderError::Io(name.clone(), error))? {
            return Err(FolderError::Taken(name, foreign));
        }
        let begin = || {
            let target = std::path::absolute(target)?;
            let parent = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
            fs::create_dir_all(parent)?;
            let directory = Builder::new()
                .prefix(".shared-")
                .suffix(".tmp")
                .tempdir_in(parent)?;
            Ok(Self {
                target: target.clone(),
                directory,
                file: None,
            })
        };
        begin().map_err(|error| FolderError::Io(name, error))
    }

    /// Puts the folder in its place.
    ///
    /// # Errors
    /// Those of the file system. What was there before stays then.
    pub fn finish(mut self) -> Result<(), FolderError> {
        let name = self.target.display().to_string();
        self.put().map_err(|error| FolderError::Io(name, error))
    }

    fn put(&mut self) -> io::Result<()> {
        self.close()?;
        open_to_others(self.directory.path())?;
        let parent = self.target.parent().unwrap_or(Path::new("."));
        let before = Builder::new()
            .prefix(".shared-")
            .suffix(".old")
            .tempdir_in(parent)?;
        let old = before.path().join("old");
        let had_old = self.target.exists();
        if had_old {
            fs::rename(&self.target, &old)?;
        }
        let put = fs::rename(self.directory.path(), &self.target);
        match put {
            Ok(()) => self.directory.disable_cleanup(true),
            Err(_) if had_old => fs::rename(&old, &self.target)?,
            Err(_) => {}
        }
        put
    }

    fn close(&mut self) -> io::Result<()> {
        match self.file.take() {
            Some(mut file) => file.flush(),
            None => Ok(()),
        }
    }
}

/// Gives a temporary directory, which only its owner can read, the permissions of others.
#[cfg(unix)]
fn open_to_others(directory: &Path) -> io::Result<()> {
    // A folder within has what the umask leaves.
    let probe = directory.join(".mode");
    fs::create_dir(&probe)?;
    let permissions = fs::metadata(&probe)?.permissions();
    fs::remove_dir(&probe)?;
    fs::set_permissions(directory, permissions)
}

#[cfg(not(unix))]
fn open_to_others(_: &Path) -> io::Result<()> {
    Ok(())
}

impl Files for Folder {
    fn create(&mut self, name: &str) -> io::Result<()> {
        self.close()?;
        let path = self.directory.path().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        self.file = Some(BufWriter::new(File::create_new(path)?));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.write_all(bytes),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Returns something at a path that was not shared into it; `None` if there is nothing else.
fn foreign_in(target: &Path) -> io::Result<Option<String>> {
    let entries = match fs::read_dir(target) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Some("a file".into())),
        Err(error) => return Err(error),
    };
    if entries.is_empty() {
        return Ok(None);
    }
    let Some(shared) = shared_files(&target.join(MANIFEST)) else {
        return Ok(Some(entries[0].file_name().display().to_string()));
    };
    for entry in WalkDir::new(target) {
        let entry = entry?;
        let name = entry.path().strip_prefix(target).unwrap_or(entry.path());
        let name: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
        let name = name.join("/");
        if !entry.file_type().is_dir() && !shared.contains(&name) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Returns the files that a manifest names; `None` if it is none.
fn shared_files(manifest: &Path) -> Option<HashSet<String>> {
    let text = fs::read_to_string(manifest).ok()?;
    let mut files = HashSet::from([MANIFEST.to_owned(), CARD.to_owned()]);
    for line in text.lines() {
        let entry = parse_str(line).ok()?;
        let names = ["rank", "redactions", "stands_for"];
        let is_entry = names.iter().all(|name| entry.get(name).is_some());
        let subagents = entry.get("subagents").and_then(Value::as_array)?;
        files.insert(entry.get("file").filter(|_| is_entry)?.as_str()?.to_owned());
        files.extend(subagents.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    Some(files)
}
