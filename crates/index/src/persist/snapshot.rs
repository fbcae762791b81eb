//! Snapshots of a cache, and writing them to a file.

use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    num::NonZeroUsize,
    path::{self, Path, PathBuf},
    sync::{
        LazyLock, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use lru::LruCache;
use safetensors::tensor::{Metadata, TensorInfo};

use knowledgepulse_error::{Call, Error, Result, fault};
use knowledgepulse_os::temporary::{Persisted, TemporaryFile};
use knowledgepulse_trace::label::{Fingerprint, Label};

use super::{
    header::{FORMAT, LENGTH_BYTES, VECTORS, tensors},
    microseconds, milliseconds, require_regular,
    streams::{HashedOutput, UnlessCancelled},
};
use crate::{
    moment::Moment,
    simd::GROUP,
    vectors::{Options, Origin, VectorCache, blocks::Blocks},
};

/// A snapshot of a cache. It shares the vectors with the cache, and does not change with it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    options: Options,
    blocks: Blocks,
    origin: Origin,
    taken: Moment,
    clock: SystemTime,
    /// Its number among all snapshots of this process.
    number: u64,
}

/// The beginning of the names of temporary files.
const PREFIX: &str = ".knowledgepulse-";

pub(super) const TOO_MANY_BYTES: &str = "more bytes than a file can have";

pub(super) static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The numbers of the snapshots that this process has saved, by file.
static SAVED: LazyLock<Mutex<LruCache<PathBuf, u64>>> =
    LazyLock::new(|| Mutex::new(LruCache::new(MOST_FILES_IN_ORDER)));

/// The files whose number is kept, the latest ones, because a process may save to any number of paths.
const MOST_FILES_IN_ORDER: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

impl VectorCache {
    /// Takes a snapshot at `now`, by the wall clock `clock`. Takes next to no time and memory.
    pub fn snapshot(&mut self, now: Instant, clock: SystemTime) -> Snapshot {
        self.evict_expired(now);
        Snapshot {
            options: self.options,
            blocks: self.blocks.clone(),
            origin: self.origin.clone(),
            taken: Moment::at(now),
            clock,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl Snapshot {
    /// Writes the snapshot to `path`, which is replaced in one step, so there is always a complete file. Symbolic links are followed, and
    /// permissions are kept. A later snapshot that this process has saved there stays.
    ///
    /// # Errors
    /// [`Error::MemoryIo`]; what was at `path` is as it was, unless the disk fails to write out the name of a file that it has replaced.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.save_unless_cancelled(path, &Call::default())
    }

    /// Does [`Snapshot::save`] for a call that can be cancelled until the file is replaced.
    ///
    /// # Errors
    /// [`Error::Aborted`] and those of [`Snapshot::save`]; what was at `path` is as it was.
    pub fn save_unless_cancelled(&self, path: &Path, call: &Call) -> Result<()> {
        replace_file(path, self.number, call, |output| self.write(output))
    }

    /// Writes the snapshot in the format of the module.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn write(&self, output: impl Write) -> io::Result<()> {
        let entries = || self.blocks.entries();
        let label_bytes = entries().map(|entry| entry.label.map_or(0, |label| label.len()));
        let header = self.header(label_bytes.clone().sum()).map_err(io::Error::other)?;
        let mut output = HashedOutput::new(output);
        output.write(&(header.len() as u64).to_le_bytes())?;
        output.write(&header)?;
        fault::point("save");
        let clock = microseconds(self.clock);
        for entry in entries() {
            let age = entry.added.age(self.taken).as_micros();
            let added = clock.saturating_sub(i64::try_from(age).unwrap_or(i64::MAX));
            output.write(&added.to_le_bytes())?;
        }
        let mut end = 0;
        for bytes in label_bytes {
            end += bytes as u64;
            output.write(&end.to_le_bytes())?;
        }
        write_novelties(&mut output, entries().map(|entry| entry.label))?;
        for entry in entries() {
            let mut left = self.options.dimensions;
            for group in entry.components {
                output.write(bytemuck::cast_slice(&group.0[..left.min(GROUP)]))?;
                left = left.saturating_sub(GROUP);
            }
        }
        for entry in entries() {
            output.write(&[u8::from(entry.label.is_some())])?;
        }
        write_fingerprints(&mut output, entries().map(|entry| entry.label))?;
        for label in entries().filter_map(|entry| entry.label) {
            output.write(label.as_bytes())?;
        }
        output.finish()
    }

    fn header(&self, label_bytes: usize) -> std::result::Result<Vec<u8>, String> {
        let tensors =
            tensors(self.blocks.len(), self.options.dimensions, label_bytes).ok_or(TOO_MANY_BYTES)?;
        header(VECTORS, tensors, &self.options, self.clock, &self.origin)
    }
}

/// Writes the novelties that the traces with these labels were scored with; NaN for a trace that was not scored.
pub(super) fn write_novelties<'l>(
    output: &mut HashedOutput<impl Write>,
    mut labels: impl Iterator<Item = Option<&'l Label>>,
) -> io::Result<()> {
    labels.try_for_each(|label| {
        let scored = label.and_then(Label::scored);
        output.write(&scored.map_or(f64::NAN, |scored| scored.novelty).to_le_bytes())
    })
}

/// Writes the fingerprints of these traces; zeros for a trace that was not scored.
pub(super) fn write_fingerprints<'l>(
    output: &mut HashedOutput<impl Write>,
    mut labels: impl Iterator<Item = Option<&'l Label>>,
) -> io::Result<()> {
    labels.try_for_each(|label| {
        let scored = label.and_then(Label::scored);
        output.write(&scored.map_or(Fingerprint::default(), |scored| scored.fingerprint))
    })
}

/// Writes a file by `write`, which then replaces the one at `path`, unless that has a later snapshot.
///
/// # Errors
/// [`Error::Aborted`], [`Error::MemoryIo`]; what was at `path` is as it was.
pub(super) fn replace_file(
    path: &Path,
    number: u64,
    call: &Call,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    replace(path, number, call, write).map_err(|source| {
        if call.is_cancelled() {
            return Error::Aborted;
        }
        Error::MemoryIo {
            path: path.into(),
            action: "written",
            source,
        }
    })
}

fn replace(
    path: &Path,
    number: u64,
    call: &Call,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let target = follow_links(path)?;
    let existing = match fs::metadata(&target) {
        Ok(existing) => {
            // Renaming would replace a device too.
            require_regular(&existing)?;
            Some(existing)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let directory = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let file = TemporaryFile::create(directory, PREFIX, existing.as_ref())?;
    write(&mut UnlessCancelled {
        file: file.file().as_ref(),
        call,
    })?;
    file.file().sync_all()?;
    if !call.complete() {
        return Err(io::Error::other(Error::Aborted));
    }
    persist(number, file, &target, directory)?.map_or(Ok(()), Persisted::sync)
}

/// Renames a finished file, unless a later snapshot has the name.
fn persist(
    number: u64,
    mut file: TemporaryFile,
    target: &Path,
    directory: &Path,
) -> io::Result<Option<Persisted>> {
    let name = target.file_name().unwrap_or_default();
    // Falls back to an absolute path, because Windows has no canonical name for every directory. The name only orders saves of one file.
    let place = fs::canonicalize(directory)
        .or_else(|_| path::absolute(directory))?
        .join(name);
    let began = Instant::now();
    loop {
        let mut saved = SAVED.lock().unwrap_or_else(PoisonError::into_inner);
        if saved.get(&place).is_some_and(|&other| other > number) {
            return Ok(None);
        }
        let (error, unchanged) = match file.persist(target) {
            Ok(persisted) => {
                saved.put(place, number);
                return Ok(Some(persisted));
            }
            Err(failed) => failed,
        };
        // Saves of other files need not wait for this one.
        drop(saved);
        if !is_open(&error) || began.elapsed() > PATIENCE {
            return Err(error);
        }
        thread::sleep(Duration::from_millis(5));
        file = unchanged;
    }
}

/// The time that a save on Windows waits for others that have the file open. One second is too short beside a thread that loads it all
/// the time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns whether replacing a file failed because it is open. On Windows a name stays taken while its file is open, unless the file
/// system can delete open files, as NTFS can.
fn is_open(error: &io::Error) -> bool {
    cfg!(windows) && error.kind() == io::ErrorKind::PermissionDenied
}

/// Returns the header of a file, padded with spaces to align the tensors.
pub(super) fn header(
    version: &str,
    tensors: Vec<(String, TensorInfo)>,
    options: &Options,
    clock: SystemTime,
    origin: &Origin,
) -> std::result::Result<Vec<u8>, String> {
    let mut metadata = HashMap::from([
        ("format", FORMAT.into()),
        ("version", version.into()),
        ("max_elements", options.max_elements.to_string()),
        ("saved_at", microseconds(clock).to_string()),
    ]);
    if let Some(time_to_live) = options.time_to_live {
        metadata.insert("ttl_ms", milliseconds(time_to_live).to_string());
    }
    if let Some(model) = &origin.model {
        metadata.insert("model", model.model.clone());
        metadata.insert("dtype", model.dtype.clone());
        if let Some(sha256) = &model.sha256 {
            metadata.insert("model_sha256", sha256.clone());
        }
    }
    if let Some(method) = &origin.method {
        metadata.insert("method", method.clone());
    }
    let metadata = metadata
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    let header = Metadata::new(Some(metadata), tensors).map_err(|error| error.to_string())?;
    let mut header = serde_json::to_vec(&header).map_err(|error| error.to_string())?;
    header.resize(header.len().next_multiple_of(LENGTH_BYTES), b' ');
    Ok(header)
}

/// Returns the target of a symbolic link, existing or not, or else `path`.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    /// What Linux allows.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            // The path is not a link, or does not exist.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}
