//! A memory of vectors or of traces as a file, in the safetensors format. Its entries are vectors or traces.
//!
//! DESIGN.md, "The file format", lists the tensors and the metadata. The checksum is at the very end, so that a file is written in one pass.
//! Version 4 is of vectors, without `term_ends`, `words`, `terms` and `counts`, and version 5 of traces. No other version is read.

mod header;
mod snapshot;

use std::{
    fs::{self, File},
    io::{self, Read},
    ops::Range,
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use knowledgepulse_error::{Call, Error, Result, fault};
use knowledgepulse_trace::{
    label::{Fingerprint, Label, Scored},
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
use header::{LARGEST_NUMBER, LONGEST_BEGINNING, OTHER_TENSORS, Sizes, Tensors};
use snapshot::UnlessCancelled;

pub(crate) use header::{TRACES, VECTORS};
pub use snapshot::Snapshot;

const CHECKSUM_BYTES: usize = 16;

const _: () = assert!(
    cfg!(target_endian = "little"),
    "the components are copied as they lie in memory, and the format is little-endian"
);

/// Bounds that replace those of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LoadOptions {
    /// How many vectors are kept: the newest ones of the file.
    pub max_elements: Option<usize>,
    /// How long a vector lives from when it was added; `Some(None)` for ever.
    pub time_to_live: Option<Option<Duration>>,
}

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

/// Reads the contents of a file of this version, at `now`, by the wall clock `clock`.
pub(crate) fn read(
    file: &[u8],
    version: &str,
    options: LoadOptions,
    now: Instant,
    clock: SystemTime,
) -> Reading<Contents> {
    fault::point("load");
    let (sizes, about, tensors) = header::read(file, file.len() as u64, version)?;
    let Sizes {
        entries,
        dimensions,
        words,
        ..
    } = sizes;
    let method = match words {
        None if (1..=LARGEST_NUMBER).contains(&dimensions) => None,
        None => return Err(damaged(OTHER_TENSORS)),
        Some(_) => {
            let method = about.origin.method.as_deref().and_then(Method::of_traces);
            let method =
                method.ok_or_else(|| damaged("it does not say by which method its traces are compared"))?;
            if dimensions > LARGEST_NUMBER || (method == Method::Full) != (dimensions > 0) {
                return Err(damaged("its vectors do not fit its method"));
            }
            Some(method)
        }
    };
    tensors.require_checksum()?;
    let options = about.options(options, dimensions.max(1));
    let skipped = entries.saturating_sub(options.max_elements);
    let added = moments(&tensors.values("added"), now, clock);
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
                    .map(|((label, added), words)| Arc::new(Document { label, added, words }))
                    .collect(),
                hashes,
            })
        }
    };
    Ok(Contents {
        options,
        origin: about.origin,
        vectors,
        traces,
    })
}

/// Returns the words of each trace.
fn words_of_traces(tensors: &Tensors, hashes: &[u64]) -> Reading<Vec<Box<[DocumentWord]>>> {
    let (terms, counts) = (tensors.values::<u32>("terms"), tensors.values::<u16>("counts"));
    let parts = parts(tensors, "term_ends")?;
    if parts.last().map_or(0, |last| last.end) != terms.len() {
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
    let (labelled, texts) = (tensors.bytes("labelled"), tensors.bytes("labels"));
    let novelties: Vec<f64> = tensors.values("novelties");
    let fingerprints: Vec<Fingerprint> = tensors.values("fingerprints");
    let label = |(index, part): (usize, Range<usize>)| {
        let novelty = novelties[index];
        let scored = (!novelty.is_nan()).then(|| Scored {
            fingerprint: fingerprints[index],
            novelty,
        });
        let text = texts.get(part).and_then(|bytes| std::str::from_utf8(bytes).ok());
        match (labelled[index], text, scored) {
            (0, Some(""), None) => Ok(None),
            (1, Some(label), scored) if require_short(label).is_ok() => match scored {
                None => Ok(Some(label.into())),
                Some(scored) if scored.novelty.is_finite() => Ok(Some(Label::of_scored(label, scored))),
                Some(_) => Err(damaged(format!("novelties[{index}] is infinite"))),
            },
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
    let ends: Vec<u64> = tensors.values(name);
    ends.into_iter().enumerate().map(part).collect()
}

/// Reads the contents of the file at `path`, of this version, aged by the wall clock. The call can be cancelled until the end.
///
/// # Errors
/// [`Error::Aborted`], [`Error::MemoryNotFound`], [`Error::MemoryDamaged`], [`Error::MemoryOtherKind`], [`Error::MemoryIo`],
/// [`Error::OutOfMemory`].
pub(crate) fn load(path: &Path, version: &str, options: LoadOptions, call: &Call) -> Result<Contents> {
    let failed = |source: io::Error| {
        let path = path.into();
        if source.kind() == io::ErrorKind::NotFound {
            return Error::MemoryNotFound { path };
        }
        let action = "read";
        Error::MemoryIo { path, action, source }
    };
    let contents = bytes_of(path, version, call)
        .and_then(|bytes| read(&bytes, version, options, Instant::now(), SystemTime::now()));
    contents.map_err(|failure| match failure {
        _ if call.is_cancelled() => Error::Aborted,
        Unreadable::Damaged(reason) => Error::MemoryDamaged {
            path: path.into(),
            reason,
        },
        Unreadable::OtherKind { held, other } => Error::MemoryOtherKind {
            path: path.into(),
            held,
            other,
        },
        Unreadable::Io(source) => failed(source),
        Unreadable::Other(error) => error,
    })
}

/// Reads a file, whose header is checked before there is memory for the rest.
fn bytes_of(path: &Path, version: &str, call: &Call) -> Reading<Vec<u8>> {
    // Opening a pipe would block until another process writes to it.
    require_regular(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut input = UnlessCancelled { file, call }.take(length);
    let mut bytes = Vec::new();
    input.by_ref().take(LONGEST_BEGINNING).read_to_end(&mut bytes)?;
    header::read(&bytes, length, version)?;
    let rest = usize::try_from(input.limit()).unwrap_or(usize::MAX);
    let out_of_memory = |_| Unreadable::Other(Error::OutOfMemory { dimensions: rest });
    bytes.try_reserve_exact(rest).map_err(out_of_memory)?;
    input.read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < length {
        return Err(damaged("it became shorter while it was read"));
    }
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
