//! Where a set is written: a folder on the disk, or a zip.

use std::{
    collections::BTreeSet,
    fs::{self, File, TryLockError},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::DeflateEncoder};
use rawzip::{CompressionMethod, ZipArchiveWriter};
use walkdir::WalkDir;

use knowledgepulse_error::{Code, Error, Result};
use knowledgepulse_os::links::exchange;

use crate::{CARD, Form, MANIFEST, Set, card::is_ours, set::is_inside};

/// Takes the files of a set, one after the other.
pub trait Files {
    /// Returns the path of a file, for messages.
    fn path(&self, name: &str) -> String {
        name.to_owned()
    }

    /// Appends to the file that was written to last, or begins the file of another name, with `/` between folders.
    ///
    /// # Errors
    /// Those of the file system.
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Removes a file that was there before, unless it is written anew.
    fn remove(&mut self, _name: &str) {}

    /// Returns whether a file of this name was there before.
    fn has(&self, _name: &str) -> bool {
        false
    }

    /// Returns a file that was there before; an empty text if there is none.
    ///
    /// # Errors
    /// Those of the file system.
    fn read(&self, _name: &str) -> io::Result<String> {
        Ok(String::new())
    }
}

/// Returns what tells that a file or folder cannot be written or read.
pub(crate) fn cannot_write(path: &str) -> impl Fn(io::Error) -> Error + use<> {
    let (path, action) = (PathBuf::from(path), "written");
    move |source| Error::Io {
        path: path.clone(),
        action,
        source,
    }
}

/// Returns the error of what the caller can mend.
pub(crate) fn refused(problem: String) -> Error {
    Error::Other(Code::InvalidInput, problem)
}

/// Returns the error of a folder in which something of somebody else is where a file of the set goes.
fn taken(folder: &str, what: &str) -> Error {
    refused(format!(
        "{folder} has {what}, which kp-score did not write: move it away, or name another folder"
    ))
}

/// The folder of sessions that have files of their own.
const SESSIONS: &str = "sessions";

/// Where new files wait in a folder. A kill leaves it, and the next run ends or undoes what was begun.
const STAGING: &str = ".kp-score";
/// In it: the new files; the lock of a run; and, once the new files are complete, the names of files to remove.
const NEW: &str = "new";
const LOCK: &str = "lock";
const COMMIT: &str = "commit";

/// A folder with a set. New files wait in it until they are complete; dropping it before [`Folder::finish`] removes them.
pub struct Folder {
    /// The path as it was given, for messages.
    name: String,
    target: PathBuf,
    /// Whether it was not there before.
    is_new: bool,
    lock: Option<File>,
    file: Option<(String, BufWriter<File>)>,
    removed: BTreeSet<String>,
}

impl Folder {
    /// Opens a folder, or makes one, and mends what a killed run has left.
    ///
    /// # Errors
    /// If something else is there, another run writes into it, or the system refuses it.
    pub fn create(target: &Path) -> Result<Self> {
        let name = target.display().to_string();
        let failed = cannot_write(&name);
        if target.exists() && !target.is_dir() {
            return Err(taken(&name, "a file in its place"));
        }
        let is_new = !target.exists();
        fs::create_dir_all(target).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory => taken(&name, "a file above it"),
            _ => failed(error),
        })?;
        let target = target.canonicalize().map_err(&failed)?;
        let staging = target.join(STAGING);
        // A clone may bring one: nothing is written through a link, or in place of a file.
        let mut below = WalkDir::new(&staging).into_iter().flatten();
        if below.any(|entry| entry.path_is_symlink() || entry.depth() == 0 && entry.file_type().is_file()) {
            return Err(taken(&name, &format!("a file or a link in place of {STAGING}")));
        }
        fs::create_dir_all(&staging).map_err(&failed)?;
        let lock = File::create(staging.join(LOCK)).map_err(&failed)?;
        // Some file systems have no locks.
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            let problem = format!("{name} is being written by another run of kp-score");
            return Err(refused(problem));
        }
        let folder = Self {
            name: name.clone(),
            target,
            is_new,
            lock: Some(lock),
            file: None,
            removed: BTreeSet::new(),
        };
        folder.mend().map_err(&failed)?;
        Ok(folder)
    }

    /// Reads what the folder has, and returns the form of what is added: `wanted`, or else that of the folder. Refuses what is somebody
    /// else's where files of the form go.
    ///
    /// # Errors
    /// If its manifest is none of ours, it has another form, or a file is in the way.
    pub fn set(&self, wanted: Option<Form>) -> Result<(Set, Form)> {
        let name = &self.name;
        let taken = |file: &str| taken(name, file);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => refused(format!("{name}/{error}")),
            _ => cannot_write(name)(error),
        };
        let set = Set::read(&self.target).map_err(failed)?;
        let mut set = set.ok_or_else(|| taken(MANIFEST))?;
        let card = self.read(CARD).map_err(failed)?;
        let mut rows = Form::ALL.iter().filter_map(|form| form.file()).chain([SESSIONS]);
        if !self.has(MANIFEST) && is_ours(&card) && rows.any(|rows| self.has(rows)) {
            return Err(refused(format!(
                "{name} has sessions of kp-score without their {MANIFEST}: bring it back, or name another folder"
            )));
        }
        let form = wanted.or(set.form()).unwrap_or_default();
        if let Some(other) = set.form().filter(|other| *other != form) {
            return Err(refused(format!(
                "{name} has sessions as {}, not as {}: leave --as out, or name another folder",
                other.name(),
                form.name()
            )));
        }
        for file in [MANIFEST, CARD, SESSIONS].into_iter().chain(form.file()) {
            if self.target.join(file).is_symlink() {
                return Err(taken(&format!("{file}, a link,")));
            }
        }
        let in_the_way = form.file().filter(|file| self.has(file));
        if let Some(file) = in_the_way.filter(|file| !set.files().contains(file)) {
            return Err(taken(file));
        }
        set.note_gone(self).map_err(failed)?;
        Ok((set, form))
    }

    fn staging(&self) -> PathBuf {
        self.target.join(STAGING)
    }

    /// Puts the new files in their places, and the manifest last.
    ///
    /// # Errors
    /// Those of the file system. The next run goes on then.
    pub fn finish(mut self) -> Result<()> {
        let failed = cannot_write(&self.name);
        self.commit().map_err(failed)
    }

    fn commit(&mut self) -> io::Result<()> {
        self.close()?;
        let names: String = self.removed.iter().map(|name| format!("{name}\n")).collect();
        let commit = self.staging().join(COMMIT);
        let draft = commit.with_extension("tmp");
        fs::write(&draft, names)?;
        fs::rename(draft, commit)?;
        self.is_new = false;
        self.mend()
    }

    /// Ends what was committed, and removes what was not.
    fn mend(&self) -> io::Result<()> {
        let (staging, new) = (self.staging(), self.staging().join(NEW));
        match fs::read_to_string(staging.join(COMMIT)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(removed) => {
                self.publish(&new, &removed)?;
                fs::remove_file(staging.join(COMMIT))?;
            }
        }
        match fs::remove_dir_all(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Puts new files in their places, and takes away those that are removed: the sessions first, then the card, and the manifest last.
    fn publish(&self, new: &Path, removed: &str) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in WalkDir::new(new) {
            let entry = entry?;
            if !entry.file_type().is_dir() {
                let name = entry.path().strip_prefix(new).unwrap_or(entry.path());
                names.push(name.to_owned());
            }
        }
        let removed: Vec<_> = removed.lines().map(Path::new).collect();
        // Somebody else may have committed it.
        for name in names.iter().map(PathBuf::as_path).chain(removed.iter().copied()) {
            let is_link = |folder: &Path| self.target.join(folder).is_symlink();
            if !name.to_str().is_some_and(is_inside) || name.ancestors().skip(1).any(is_link) {
                let name = name.display();
                let problem = format!("{STAGING} has {name}, which leads out of it: remove {STAGING}");
                return Err(io::Error::other(problem));
            }
        }
        let put = |name: &PathBuf| {
            let to = self.target.join(name);
            to.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::rename(new.join(name), to)
        };
        let last = |name: &PathBuf| [CARD, MANIFEST].iter().position(|last| name == Path::new(last));
        names.sort_by_key(last);
        let (sessions, names): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| name.starts_with(SESSIONS));
        let (last, first): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| last(name).is_some());
        first.iter().try_for_each(put)?;
        let has_others = !sessions.is_empty() || !removed.is_empty();
        if !has_others || self.exchange_sessions(new, &removed).is_ok() {
            return last.iter().try_for_each(put);
        }
        // Where the system cannot exchange folders, one file after the other changes.
        sessions.iter().try_for_each(put)?;
        for name in removed {
            let file = self.target.join(name);
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            // The folder of a session's sub-agents goes with the last of them; one with other files stays.
            let mut folders = file.ancestors().skip(1);
            while folders
                .next()
                .is_some_and(|folder| folder != self.target && fs::remove_dir(folder).is_ok())
            {}
        }
        last.iter().try_for_each(put)
    }

    /// Exchanges the folder of sessions, in one step, for one of links to what is new and to what stays. Links cost no copy, and doing this
    /// twice changes nothing.
    fn exchange_sessions(&self, new: &Path, removed: &[&Path]) -> io::Result<()> {
        let (new, there) = (new.join(SESSIONS), self.target.join(SESSIONS));
        let next = self.staging().join(SESSIONS);
        for folder in [&new, &there, &next] {
            fs::create_dir_all(folder)?;
        }
        fs::remove_dir_all(&next)?;
        for from in [&new, &there] {
            for entry in WalkDir::new(from) {
                let entry = entry?;
                let name = entry.path().strip_prefix(from).map_err(io::Error::other)?;
                let to = next.join(name);
                if entry.path_is_symlink() {
                    return Err(io::ErrorKind::Unsupported.into());
                }
                let stays = !to.exists() && !removed.contains(&&*Path::new(SESSIONS).join(name));
                if stays && !entry.file_type().is_dir() {
                    to.parent().map_or(Ok(()), fs::create_dir_all)?;
                    fs::hard_link(entry.path(), to)?;
                }
            }
        }
        fs::set_permissions(&next, fs::metadata(&there)?.permissions())?;
        exchange(&next, &there)
    }

    fn close(&mut self) -> io::Result<()> {
        match self.file.take() {
            Some((_, mut file)) => file.flush(),
            None => Ok(()),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.file = None;
        self.lock = None;
        let staging = self.staging();
        // What was committed and could not be ended is left for the next run.
        if !staging.join(COMMIT).exists() {
            drop(fs::remove_dir_all(staging));
        }
        if self.is_new {
            drop(fs::remove_dir(&self.target));
        }
    }
}

impl Files for Folder {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.name)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        if let Some((of, file)) = &mut self.file
            && of == name
        {
            return file.write_all(bytes);
        }
        self.close()?;
        let path = self.staging().join(NEW).join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let mut file = BufWriter::new(File::create_new(path)?);
        file.write_all(bytes)?;
        self.file = Some((name.to_owned(), file));
        self.removed.remove(name);
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        self.removed.insert(name.to_owned());
    }

    fn has(&self, name: &str) -> bool {
        !self.removed.contains(name) && fs::symlink_metadata(self.target.join(name)).is_ok()
    }

    fn read(&self, name: &str) -> io::Result<String> {
        match fs::read(self.target.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            bytes => Ok(String::from_utf8_lossy(&bytes?).into_owned()),
        }
    }
}

/// The files of a set, of which a zip is made in memory.
#[derive(Default)]
pub struct Zip(Vec<(String, Vec<u8>)>);

impl Zip {
    /// Returns the bytes of the zip.
    ///
    /// # Errors
    /// If a file cannot be added, as where its name is too long.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        let mut archive = ZipArchiveWriter::new(Vec::new());
        for (name, bytes) in self.0 {
            let file = archive
                .new_file(&name)
                .compression_method(CompressionMethod::DEFLATE);
            let (mut entry, config) = file.start().map_err(io::Error::other)?;
            let mut counted = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
            counted.write_all(&bytes)?;
            let (encoder, descriptor) = counted.finish().map_err(io::Error::other)?;
            encoder.finish()?;
            entry.finish(descriptor).map_err(io::Error::other)?;
        }
        archive.finish().map_err(io::Error::other)
    }
}

impl Files for Zip {
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match self.0.last_mut() {
            Some((of, file)) if of == name => file.extend(bytes),
            _ => self.0.push((name.to_owned(), bytes.to_vec())),
        }
        Ok(())
    }
}
