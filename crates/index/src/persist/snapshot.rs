//! Snapshots of a memory, and writing them to a file.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    path::Path,
    thread,
    time::{Duration, Instant, SystemTime},
};

use safetensors::tensor::Metadata;
use twox_hash::XxHash3_128;

use knowledgepulse_error::{Call, Error, Result, fault};
use knowledgepulse_os::{
    links::target_of,
    temporary::{Persisted, TemporaryFile},
};
use knowledgepulse_trace::label::{Fingerprint, Label};

use super::{
    Contents, HeldTraces,
    header::{FORMAT, LENGTH_BYTES, Sizes, TRACES, VECTORS},
    microseconds, milliseconds, require_regular,
};
use crate::{
    document::{Document, DocumentWord},
    method::Method,
    moment::Moment,
    simd::GROUP,
};

/// A snapshot of a memory of vectors or of traces. It shares their contents, and does not change with the memory.
#[derive(Debug, Clone)]
pub struct Snapshot {
    contents: Contents,
    taken: Moment,
    clock: SystemTime,
}

/// The beginning of the names of temporary files.
const PREFIX: &str = ".knowledgepulse-";

const TOO_MANY_BYTES: &str = "more bytes than a file can have";

/// The bytes that are written at a time.
const BUFFER_BYTES: usize = 1024 * 1024;

impl Snapshot {
    pub(crate) fn of(contents: Contents, now: Instant, clock: SystemTime) -> Self {
        Self {
            contents,
            taken: Moment::at(now),
            clock,
        }
    }

    /// Writes the snapshot to `path`, which is replaced in one step, so there is always a complete file. Symbolic links are followed, and
    /// permissions are kept. The call can be cancelled until the file is replaced.
    ///
    /// # Errors
    /// [`Error::Aborted`], [`Error::MemoryIo`]; what was at `path` is as it was, unless the disk fails to write out the name of a file that
    /// it has replaced.
    pub fn save(&self, path: &Path, call: &Call) -> Result<()> {
        replace(path, call, |output| self.write(output)).map_err(|source| {
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
        for entry in contents.vectors.iter() {
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
            None => Box::new(self.vectors.iter().map(|row| (row.label, row.added))),
            Some(_) => Box::new(
                self.documents()
                    .map(|document| (document.label.as_ref(), document.added)),
            ),
        }
    }

    /// Returns the labels of the entries, oldest first.
    pub fn labels(&self) -> impl Iterator<Item = Option<&Label>> {
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

/// Writes a file by `write`, which then replaces the one at `path`.
fn replace(path: &Path, call: &Call, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let target = target_of(path);
    let existing = match fs::metadata(&target) {
        Ok(existing) => {
            // Renaming would replace a device too.
            require_regular(&existing)?;
            Some(existing)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let directory = target.parent().unwrap_or(Path::new("."));
    let file = TemporaryFile::create(directory, PREFIX, existing.as_ref())?;
    write(&mut UnlessCancelled {
        file: file.file().as_ref(),
        call,
    })?;
    file.file().sync_all()?;
    if !call.complete() {
        return Err(io::Error::other(Error::Aborted));
    }
    rename(file, &target)?.sync()
}

/// Renames a finished file, as soon as no other program has its target open.
fn rename(mut file: TemporaryFile, target: &Path) -> io::Result<Persisted> {
    let began = Instant::now();
    loop {
        match file.persist(target) {
            Ok(persisted) => return Ok(persisted),
            Err((error, _)) if !is_open(&error) || began.elapsed() > PATIENCE => return Err(error),
            Err((_, unchanged)) => file = unchanged,
        }
        thread::sleep(Duration::from_millis(5));
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

/// Hashes what is written, and writes in large pieces.
struct HashedOutput<W: Write> {
    output: BufWriter<W>,
    hasher: XxHash3_128,
}

impl<W: Write> HashedOutput<W> {
    fn new(output: W) -> Self {
        Self {
            output: BufWriter::with_capacity(BUFFER_BYTES, output),
            hasher: XxHash3_128::new(),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.write(bytes);
        self.output.write_all(bytes)
    }

    /// Appends the checksum.
    fn finish(mut self) -> io::Result<()> {
        self.output.write_all(&self.hasher.finish_128().to_be_bytes())?;
        self.output.flush()
    }
}

/// A file whose reads and writes fail once a call is cancelled, so that the call ends early.
pub(super) struct UnlessCancelled<'c, F> {
    pub(super) file: F,
    pub(super) call: &'c Call,
}

impl<F> UnlessCancelled<'_, F> {
    fn require_wanted(&self) -> io::Result<()> {
        if self.call.is_cancelled() {
            return Err(io::Error::other(Error::Aborted));
        }
        Ok(())
    }
}

impl Read for UnlessCancelled<'_, File> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.require_wanted()?;
        self.file.read(bytes)
    }
}

impl Write for UnlessCancelled<'_, &File> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.require_wanted()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
