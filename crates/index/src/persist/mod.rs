//! A memory of vectors or of traces as a file, in the safetensors format. Its entries are vectors or traces.
//!
//! DESIGN.md, "The file format", lists the tensors and the metadata. The checksum is at the very end, so that a file is written in one pass.
//! Version 4 is of vectors, without `term_ends`, `words`, `terms` and `counts`, and version 5 of traces. No other version is read.

mod snapshot;
mod tensors;

use std::{
    fs::{self, File},
    io::{self, Read},
    ops::Range,
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use knowledgepulse_error::{Code, Error, Result, fault};
use knowledgepulse_trace::{
    label::Label,
    words::{MOST_WORDS, TermWeight},
};

use crate::{
    document::{Document, DocumentWord},
    method::Method,
    moment::Moment,
    options::{MemoryOptions, Origin, require_short},
    room::with_room,
    rows::Rows,
    scaled::Scaled,
};
use tensors::{LENGTH_BYTES, OTHER_TENSORS, Tensors, header_length};

pub use snapshot::Snapshot;

const FORMAT: &str = "knowledgepulse-vector-cache";

/// The version of a vector cache.
pub(crate) const VECTORS: &str = "4";

/// The version of a trace memory.
pub(crate) const TRACES: &str = "5";

const CHECKSUM_BYTES: usize = 16;

/// The largest bound of a cache: JavaScript's largest exact integer, 2^53, or the platform's largest.
const LARGEST_NUMBER: usize = usize::MAX >> usize::BITS.saturating_sub(53);

const _: () = assert!(
    cfg!(target_endian = "little"),
    "the components are copied as they lie in memory, and the format is little-endian"
);

/// The entries of a memory, which shares them.
#[derive(Debug, Clone)]
pub struct Contents {
    pub(crate) options: MemoryOptions,
    pub(crate) origin: Origin,
    pub(crate) vectors: Rows,
    /// The traces; `None` of a vector cache.
    pub(crate) traces: Option<HeldTraces>,
}

/// The traces of a memory without their embeddings.
#[derive(Debug, Clone)]
pub(crate) struct HeldTraces {
    pub(crate) method: Method,
    pub(crate) documents: Vec<Arc<Document>>,
    /// The hash of each place of a word.
    pub(crate) hashes: Vec<u64>,
}

/// The reason why a memory cannot be read.
#[derive(Debug)]
pub enum Unreadable {
    /// The bytes are damaged.
    Damaged(String),
    /// They hold another kind of memory.
    OtherKind {
        /// The kind that they hold, with the method if known.
        held: String,
        /// The expected kind.
        other: &'static str,
    },
    /// Reading them failed.
    Io(io::Error),
    /// Any other error, such as a lack of memory.
    Other(Error),
}

/// What reading returns.
type Reading<T> = std::result::Result<T, Unreadable>;

fn damaged(reason: impl Into<String>) -> Unreadable {
    Unreadable::Damaged(reason.into())
}

/// Reads the contents of a file of this version, at `now`, by the wall clock `clock`: at most `max_elements` entries, or as many as the file
/// says.
pub(crate) fn read(
    file: &[u8],
    version: &str,
    max_elements: Option<usize>,
    now: Instant,
    clock: SystemTime,
) -> Reading<Contents> {
    fault::point("load");
    let tensors = Tensors::of(file, version)?;
    let (options, origin) = (tensors.options(max_elements)?, tensors.origin());
    let dimensions = tensors.dimensions;
    let method = match version {
        _ if dimensions > LARGEST_NUMBER => return Err(damaged(OTHER_TENSORS)),
        VECTORS if dimensions > 0 => None,
        VECTORS => return Err(damaged(OTHER_TENSORS)),
        _ => {
            let method = origin.method.as_deref().and_then(Method::of_traces);
            let method =
                method.ok_or_else(|| damaged("it does not say by which method its traces are compared"))?;
            if (method == Method::Full) != (dimensions > 0) {
                return Err(damaged("its vectors do not fit its method"));
            }
            Some(method)
        }
    };
    let skipped = tensors.entries.saturating_sub(options.max_elements);
    let added = moments(&tensors.of_entries("added")?, now, clock);
    let labels = labels(&tensors)?;
    let mut vectors = Rows::new(options.dimensions);
    if dimensions > 0 {
        let out_of_memory = || Unreadable::Other(options.out_of_memory());
        let mut scaled = Scaled::default();
        let mut vector = with_room(dimensions).ok_or_else(out_of_memory)?;
        vector.resize(dimensions, 0.0_f32);
        let rows = tensors.bytes("vectors").chunks_exact(size_of_val(&*vector));
        for (index, row) in rows.enumerate().skip(skipped) {
            bytemuck::cast_slice_mut(&mut vector).copy_from_slice(row);
            scaled
                .set(&vector, "vector")
                .map_err(|error| unreadable_vector(index, error))?;
            let label = labels[index].clone().filter(|_| method.is_none());
            vectors.reserve().ok_or_else(out_of_memory)?;
            vectors.push_back(&scaled, label, added[index]);
        }
    }
    let traces = match method {
        None => None,
        Some(method) => {
            let hashes: Vec<u64> = tensors.values("words");
            let words = words_of_traces(&tensors, &hashes)?;
            let documents = labels.into_iter().zip(added).zip(words).skip(skipped);
            Some(HeldTraces {
                method,
                documents: documents
                    .map(|((label, added), words)| Arc::new(Document::new(label, added, words)))
                    .collect(),
                hashes,
            })
        }
    };
    Ok(Contents {
        options,
        origin,
        vectors,
        traces,
    })
}

/// Returns the words of each trace.
fn words_of_traces(tensors: &Tensors, hashes: &[u64]) -> Reading<Vec<Box<[DocumentWord]>>> {
    let (terms, counts) = (tensors.values::<u32>("terms"), tensors.values::<u16>("counts"));
    let parts = parts(tensors, "term_ends")?;
    if parts.last().map_or(0, |last| last.end) != terms.len() || counts.len() != terms.len() {
        return Err(damaged("its traces do not have all of its words"));
    }
    let hash = |term: &u32| hashes.get(*term as usize);
    let words_of = |(index, own): (usize, Range<usize>)| {
        let own_terms = &terms[own.clone()];
        let are_words = own_terms.len() <= MOST_WORDS
            && own_terms.iter().all(|term| hash(term).is_some())
            && own_terms.windows(2).all(|pair| hash(&pair[0]) < hash(&pair[1]));
        if !are_words {
            let reason = format!("the words of trace {index} are not those of a trace");
            return Err(damaged(reason));
        }
        let words = own_terms.iter().zip(&counts[own]);
        let word = |(&term, &count)| DocumentWord {
            term,
            count: TermWeight::from_code(count),
        };
        Ok(words.map(word).collect())
    };
    parts.into_iter().enumerate().map(words_of).collect()
}

/// Returns the label of each entry.
fn labels(tensors: &Tensors) -> Reading<Vec<Option<Label>>> {
    let (labelled, texts) = (tensors.of_entries::<u8>("labelled")?, tensors.bytes("labels"));
    let label = |(index, part): (usize, Range<usize>)| {
        let text = texts.get(part).and_then(|bytes| std::str::from_utf8(bytes).ok());
        match (labelled[index], text) {
            (0, Some("")) => Ok(None),
            (1, Some(label)) if require_short(label).is_ok() => Ok(Some(label.into())),
            _ => Err(damaged(format!(
                "the label of vector {index} is not a short text"
            ))),
        }
    };
    let parts = parts(tensors, "label_ends")?;
    parts.into_iter().enumerate().map(label).collect()
}

/// Returns consecutive parts, of which this tensor has the ends.
fn parts(tensors: &Tensors, name: &str) -> Reading<Vec<Range<usize>>> {
    let mut start = 0;
    let part = |(index, end): (usize, u64)| {
        let end = usize::try_from(end).unwrap_or(usize::MAX);
        if end < start {
            return Err(damaged(format!("{name}[{index}] is less than the one before")));
        }
        Ok(std::mem::replace(&mut start, end)..end)
    };
    let ends: Vec<u64> = tensors.of_entries(name)?;
    ends.into_iter().enumerate().map(part).collect()
}

/// Reads the contents of the file at `path`, of this version, aged by the wall clock.
///
/// # Errors
/// `ERR_MEMORY_NOT_FOUND`, `ERR_MEMORY_DAMAGED`, `ERR_MEMORY_MISMATCH`, `ERR_IO`, `ERR_OUT_OF_MEMORY`.
pub(crate) fn load(path: &Path, version: &str, max_elements: Option<usize>) -> Result<Contents> {
    let contents = bytes_of(path)
        .and_then(|bytes| read(&bytes, version, max_elements, Instant::now(), SystemTime::now()));
    contents.map_err(|failure| failure.error_at(path))
}

impl Unreadable {
    /// Returns the error that names the file.
    pub(crate) fn error_at(self, path: &Path) -> Error {
        let name = path.display();
        match self {
            Self::Damaged(reason) => {
                let remedy = "restore it from a copy, or delete it and begin with an empty cache";
                Error::Other(
                    Code::MemoryDamaged,
                    format!("{name} is damaged: {reason}; {remedy}"),
                )
            }
            Self::OtherKind { held, other } => other_kind(path, &held, other),
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                Error::Other(Code::MemoryNotFound, format!("there is no saved cache at {name}"))
            }
            Self::Io(source) => Error::Io {
                path: path.into(),
                action: "read",
                source,
            },
            Self::Other(error) => error,
        }
    }
}

/// Returns the error for a file that holds one kind of memory instead of another one.
pub(crate) fn other_kind(path: &Path, held: &str, other: &str) -> Error {
    let remedy = "use another file, or load it as what it holds";
    let problem = format!("{} holds {held}, not {other}: {remedy}", path.display());
    Error::Other(Code::MemoryMismatch, problem)
}

/// Reads a file whole, if it begins with the length of a header: most other files do not.
fn bytes_of(path: &Path) -> Reading<Vec<u8>> {
    // Opening a pipe would block until another process writes to it.
    require_regular(&fs::metadata(path)?)?;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.by_ref().take(LENGTH_BYTES as u64).read_to_end(&mut bytes)?;
    header_length(&bytes, length)?;
    let rest = usize::try_from(length).unwrap_or(usize::MAX);
    let out_of_memory = |_| Unreadable::Other(Error::OutOfMemory(rest));
    bytes.try_reserve_exact(rest).map_err(out_of_memory)?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns when vectors were added.
fn moments(added: &[i64], now: Instant, clock: SystemTime) -> Vec<Moment> {
    let (now, clock) = (Moment::at(now), microseconds(clock));
    let mut latest = i64::MIN;
    let moment = |&added: &i64| {
        // Keeps the order of age, even if the clock was set back in between.
        latest = latest.max(added);
        // A time in the future means that the clock was set back; it counts as now.
        let age = u64::try_from(clock.saturating_sub(latest)).unwrap_or(0);
        now.before(Duration::from_micros(age))
    };
    added.iter().map(moment).collect()
}

/// Returns the milliseconds of a time to live, which [`time_to_live`] converts back exactly.
#[must_use]
pub fn milliseconds(time_to_live: Duration) -> f64 {
    #[allow(clippy::cast_precision_loss)] // Exact up to 104 days, beyond that to 53 bits.
    let nanoseconds = time_to_live.as_nanos() as f64;
    nanoseconds / 1e6
}

/// Returns a time to live in milliseconds; `None`, for ever, above half a trillion years.
#[must_use]
pub fn time_to_live(milliseconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

/// Microseconds since 1970.
fn microseconds(clock: SystemTime) -> i64 {
    let microseconds = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    match clock.duration_since(UNIX_EPOCH) {
        Ok(since) => microseconds(since),
        Err(before) => -microseconds(before.duration()),
    }
}

/// Returns why the vector at `index` cannot be used.
fn unreadable_vector(index: usize, error: Error) -> Unreadable {
    match error {
        Error::NotFinite { index: component, .. } => {
            damaged(format!("vectors[{index}][{component}] is not finite"))
        }
        error => Unreadable::Other(error),
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn require_regular(file: &fs::Metadata) -> io::Result<()> {
    if file.is_file() {
        return Ok(());
    }
    Err(io::Error::other("it is not a regular file"))
}

#[cfg(test)]
mod tests;
