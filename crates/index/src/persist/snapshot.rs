//! Snapshots of a memory, and writing them to a file.

use std::{
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
use safetensors::tensor::Metadata;

use knowledgepulse_error::{Call, Error, Result, fault};
use knowledgepulse_os::temporary::{Persisted, TemporaryFile};
use knowledgepulse_trace::label::{Fingerprint, Label};

use super::{
    Contents, HeldTraces,
    header::{FORMAT, LENGTH_BYTES, Sizes, TRACES, VECTORS},
    microseconds, milliseconds, require_regular,
    streams::{HashedOutput, UnlessCancelled},
};
use crate::{
    method::Method,
    moment::Moment,
    simd::GROUP,
    traces::{Document, terms::DocumentWord},
};

/// A snapshot of a memory of vectors or of traces. It shares their contents, and does not change with the memory.
#[derive(Debug, Clone)]
pub struct Snapshot {
    contents: Contents,
    taken: Moment,
    clock: SystemTime,
    /// Its number among all snapshots of this process.
    number: u64,
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

impl Snapshot {
    pub(crate) fn of(contents: Contents, now: Instant, clock: SystemTime) -> Self {
        Self {
            contents,
            taken: Moment::at(now),
            clock,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Writes the snapshot to `path`, which is replaced in one step, so there is always a complete file. Symbolic links are followed, and
    /// permissions are kept. A later snapshot that this process has saved there stays. The call can be cancelled until the file is replaced.
    ///
    /// # Errors
    /// [`Error::Aborted`], [`Error::MemoryIo`]; what was at `path` is as it was, unless the disk fails to write out the name of a file that
    /// it has replaced.
    pub fn save(&self, path: &Path, call: &Call) -> Result<()> {
        replace(path, self.number, call, |output| self.write(output)).map_err(|source| {
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
        let contents = &self.contents;
        let clock = microseconds(self.clock);
        for (_, added) in contents.entries() {
            let age = added.age(self.taken).as_micros();
            let added = clock.saturating_sub(i64::try_from(age).unwrap_or(i64::MAX));
            output.write(&added.to_le_bytes())?;
        }
        write_ends(
            &mut output,
            contents
                .labels()
                .map(|label| label.map_or(0, |label| label.len())),
        )?;
        if contents.traces.is_some() {
            write_ends(
                &mut output,
                contents.documents().map(|document| document.words.len()),
            )?;
        }
        let scored = || contents.labels().map(|label| label.and_then(Label::scored));
        for scored in scored() {
            let novelty = scored.map_or(f64::NAN, |scored| scored.novelty);
            output.write(&novelty.to_le_bytes())?;
        }
        for hash in contents.traces.iter().flat_map(|traces| &traces.hashes) {
            output.write(&hash.to_le_bytes())?;
        }
        for word in contents.words() {
            output.write(&{ word.term }.to_le_bytes())?;
        }
        for entry in contents.vectors.entries() {
            let mut left = contents.options.dimensions;
            for group in entry.components {
                output.write(bytemuck::cast_slice(&group.0[..left.min(GROUP)]))?;
                left = left.saturating_sub(GROUP);
            }
        }
        for word in contents.words() {
            output.write(&{ word.count }.code().to_le_bytes())?;
        }
        for label in contents.labels() {
            output.write(&[u8::from(label.is_some())])?;
        }
        for scored in scored() {
            output.write(&scored.map_or(Fingerprint::default(), |scored| scored.fingerprint))?;
        }
        for label in contents.labels().flatten() {
            output.write(label.as_bytes())?;
        }
        output.finish()
    }

    /// Returns the header of a file.
    fn header(&self) -> std::result::Result<Vec<u8>, String> {
        let contents = &self.contents;
        let (version, entries, words, dimensions) = match &contents.traces {
            None => (VECTORS, contents.vectors.len(), None, contents.options.dimensions),
            Some(HeldTraces {
                method,
                documents,
                hashes,
            }) => {
                let words = (hashes.len(), contents.words().count());
                let dimensions = match method {
                    Method::Lexical => 0,
                    _ => contents.options.dimensions,
                };
                (TRACES, documents.len(), Some(words), dimensions)
            }
        };
        let sizes = Sizes {
            entries,
            dimensions,
            label_bytes: contents.labels().flatten().map(|label| label.len()).sum(),
            words,
        };
        let tensors = sizes.tensors().ok_or(TOO_MANY_BYTES)?;
        let (options, origin) = (&contents.options, &contents.origin);
        let model = origin.model.as_ref();
        let metadata = [
            ("format", Some(FORMAT.into())),
            ("version", Some(version.into())),
            ("max_elements", Some(options.max_elements.to_string())),
            ("saved_at", Some(microseconds(self.clock).to_string())),
            (
                "ttl_ms",
                options.time_to_live.map(|time| milliseconds(time).to_string()),
            ),
            ("model", model.map(|model| model.model.clone())),
            ("dtype", model.map(|model| model.dtype.clone())),
            ("model_sha256", model.and_then(|model| model.sha256.clone())),
            ("method", origin.method.clone()),
        ];
        let metadata = metadata
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let header = Metadata::new(Some(metadata.collect()), tensors).map_err(|error| error.to_string())?;
        let mut header = serde_json::to_vec(&header).map_err(|error| error.to_string())?;
        // Aligns the tensors.
        header.resize(header.len().next_multiple_of(LENGTH_BYTES), b' ');
        Ok(header)
    }
}

impl Contents {
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

    pub(crate) fn labels(&self) -> impl Iterator<Item = Option<&Label>> {
        self.entries().map(|(label, _)| label)
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
