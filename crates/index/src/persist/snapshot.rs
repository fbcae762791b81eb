//! Snapshots of a memory, and writing them to a file.

use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    num::NonZeroUsize,
    path::{self, Path, PathBuf},
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
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
    header::{FORMAT, LENGTH_BYTES, Sizes, TRACES, VECTORS},
    microseconds, milliseconds, require_regular,
    streams::{HashedOutput, UnlessCancelled},
};
use crate::{
    method::Method,
    moment::Moment,
    simd::GROUP,
    traces::{Document, TraceMemory, terms::DocumentWord},
    vectors::{Options, Origin, VectorCache, blocks::Blocks},
};

/// A snapshot of a memory of vectors or of traces. It shares their contents, and does not change with the memory.
#[derive(Debug, Clone)]
pub struct Snapshot {
    options: Options,
    origin: Origin,
    vectors: Blocks,
    /// The traces; `None` of a vector cache.
    traces: Option<HeldTraces>,
    taken: Moment,
    clock: SystemTime,
    /// Its number among all snapshots of this process.
    number: u64,
}

/// The traces of a memory without their embeddings.
#[derive(Debug, Clone)]
pub(crate) struct HeldTraces {
    pub(crate) documents: Vec<Arc<Document>>,
    /// The hash of each place of a word.
    pub(crate) hashes: Vec<u64>,
}

/// The beginning of the names of temporary files.
const PREFIX: &str = ".knowledgepulse-";

const TOO_MANY_BYTES: &str = "more bytes than a file can have";

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The numbers of the snapshots that this process has saved, by file.
static SAVED: LazyLock<Mutex<LruCache<PathBuf, u64>>> =
    LazyLock::new(|| Mutex::new(LruCache::new(MOST_FILES_IN_ORDER)));

/// The files whose number is kept, the latest ones, because a process may save to any number of paths.
const MOST_FILES_IN_ORDER: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

impl VectorCache {
    /// Takes a snapshot at `now`, by the wall clock `clock`. Takes next to no time and memory.
    pub fn snapshot(&mut self, now: Instant, clock: SystemTime) -> Snapshot {
        self.evict_expired(now);
        let (vectors, origin) = (self.blocks.clone(), self.origin.clone());
        Snapshot::of(self.options, origin, vectors, None, now, clock)
    }
}

impl TraceMemory {
    /// Takes a snapshot at `now`, by the wall clock `clock`. It shares the traces, and copies eight bytes for each trace and each word.
    pub fn snapshot(&mut self, now: Instant, clock: SystemTime) -> Snapshot {
        let (traces, vectors) = self.state(now);
        let origin = Origin {
            model: self.model().cloned(),
            method: Some(self.method().name().into()),
        };
        Snapshot::of(*self.options(), origin, vectors, Some(traces), now, clock)
    }
}

impl Snapshot {
    fn of(
        options: Options,
        origin: Origin,
        vectors: Blocks,
        traces: Option<HeldTraces>,
        now: Instant,
        clock: SystemTime,
    ) -> Self {
        Self {
            options,
            origin,
            vectors,
            traces,
            taken: Moment::at(now),
            clock,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
        }
    }

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
        let header = self.header().map_err(io::Error::other)?;
        let mut output = HashedOutput::new(output);
        output.write(&(header.len() as u64).to_le_bytes())?;
        output.write(&header)?;
        fault::point("save");
        let clock = microseconds(self.clock);
        for (_, added) in self.entries() {
            let age = added.age(self.taken).as_micros();
            let added = clock.saturating_sub(i64::try_from(age).unwrap_or(i64::MAX));
            output.write(&added.to_le_bytes())?;
        }
        write_ends(
            &mut output,
            self.labels().map(|label| label.map_or(0, |label| label.len())),
        )?;
        if self.traces.is_some() {
            write_ends(&mut output, self.documents().map(|document| document.words.len()))?;
        }
        let scored = || self.labels().map(|label| label.and_then(Label::scored));
        for scored in scored() {
            let novelty = scored.map_or(f64::NAN, |scored| scored.novelty);
            output.write(&novelty.to_le_bytes())?;
        }
        for hash in self.traces.iter().flat_map(|traces| &traces.hashes) {
            output.write(&hash.to_le_bytes())?;
        }
        for word in self.words() {
            output.write(&{ word.term }.to_le_bytes())?;
        }
        for entry in self.vectors.entries() {
            let mut left = self.options.dimensions;
            for group in entry.components {
                output.write(bytemuck::cast_slice(&group.0[..left.min(GROUP)]))?;
                left = left.saturating_sub(GROUP);
            }
        }
        for word in self.words() {
            output.write(&{ word.count }.code().to_le_bytes())?;
        }
        for label in self.labels() {
            output.write(&[u8::from(label.is_some())])?;
        }
        for scored in scored() {
            output.write(&scored.map_or(Fingerprint::default(), |scored| scored.fingerprint))?;
        }
        for label in self.labels().flatten() {
            output.write(label.as_bytes())?;
        }
        output.finish()
    }

    fn documents(&self) -> impl Iterator<Item = &Document> {
        let traces = self.traces.iter().flat_map(|traces| &traces.documents);
        traces.map(|document| &**document)
    }

    fn words(&self) -> impl Iterator<Item = &DocumentWord> {
        self.documents().flat_map(|document| &document.words)
    }

    /// Returns the label of each vector or trace, and when it was added.
    fn entries(&self) -> Box<dyn Iterator<Item = (Option<&Label>, Moment)> + '_> {
        match self.traces {
            None => Box::new(self.vectors.entries().map(|entry| (entry.label, entry.added))),
            Some(_) => Box::new(
                self.documents()
                    .map(|document| (document.label.as_ref(), document.added)),
            ),
        }
    }

    fn labels(&self) -> impl Iterator<Item = Option<&Label>> {
        self.entries().map(|(label, _)| label)
    }

    fn header(&self) -> std::result::Result<Vec<u8>, String> {
        let (version, entries) = match &self.traces {
            None => (VECTORS, self.vectors.len()),
            Some(traces) => (TRACES, traces.documents.len()),
        };
        let is_lexical = self.origin.method.as_deref() == Some(Method::Lexical.name());
        let sizes = Sizes {
            entries,
            dimensions: if self.traces.is_some() && is_lexical {
                0
            } else {
                self.options.dimensions
            },
            label_bytes: self.labels().flatten().map(|label| label.len()).sum(),
            words: self
                .traces
                .as_ref()
                .map(|traces| (traces.hashes.len(), self.words().count())),
        };
        let tensors = sizes.tensors().ok_or(TOO_MANY_BYTES)?;
        header(version, tensors, &self.options, self.clock, &self.origin)
    }
}

/// Writes where consecutive parts of these lengths end.
fn write_ends(output: &mut HashedOutput<impl Write>, lengths: impl Iterator<Item = usize>) -> io::Result<()> {
    let mut end = 0;
    for length in lengths {
        end += length as u64;
        output.write(&end.to_le_bytes())?;
    }
    Ok(())
}

/// Writes a file by `write`, which then replaces the one at `path`, unless that has a later snapshot.
///
/// # Errors
/// [`Error::Aborted`], [`Error::MemoryIo`]; what was at `path` is as it was.
fn replace_file(
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
fn header(
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
