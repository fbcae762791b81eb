//! A memory of vectors or of traces as a file, in the safetensors format. Its entries are vectors or traces.
//!
//! | tensor         | type and shape            | what                                                                     |
//! | -------------- | ------------------------- | ------------------------------------------------------------------------ |
//! | `added`        | I64, entries              | when each entry was added: microseconds since 1970, by the wall clock    |
//! | `label_ends`   | U64, entries              | where its label ends in `labels`; it begins where the one before ends    |
//! | `term_ends`    | U64, traces               | where its words end in `terms` and `counts`, likewise                    |
//! | `novelties`    | F64, entries              | the novelty that its trace was scored with; NaN if that is not known     |
//! | `words`        | U64, words                | the XXH3-64 of each word                                                 |
//! | `terms`        | U32, words of all traces  | for each word of each trace, its place in `words`; in the order of hashes |
//! | `vectors`      | F32, entries by dimensions | oldest first; no dimensions if words alone are compared                 |
//! | `counts`       | U16, words of all traces  | c(t), as [`TermWeight::code`] gives it                                   |
//! | `labelled`     | BOOL, entries             | whether it has a label                                                   |
//! | `fingerprints` | U8, entries by 16         | the fingerprint of its trace; zeros where the novelty is not known       |
//! | `labels`       | U8, bytes                 | the labels one after another, in UTF-8                                   |
//! | `checksum`     | U8, 16                    | the XXH3-128 of all bytes before it, the highest byte first              |
//!
//! They lie in this order, the checksum at the very end, so that a file is written and read in one pass. The
//! metadata of the header are strings: `format` and `version`, `max_elements`, `ttl_ms` unless entries live for ever,
//! `saved_at` (as `added`), and as far as they are known, of the model `model`, `dtype` and `model_sha256`, and the
//! `method` by which traces became vectors or are compared. This is version 4 for vectors, without `term_ends`, `words`, `terms` and
//! `counts`, and version 5 for traces. No other version is read.

mod header;
mod snapshot;
mod streams;

use std::{
    fs::{self, File},
    io::{self, Read},
    ops::Range,
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use knowledgepulse_error::{Call, Error, Result, fault};
use knowledgepulse_trace::{
    label::{Fingerprint, Label, Scored},
    words::{MOST_WORDS, TermWeight},
};

use crate::{
    method::Method,
    moment::Moment,
    traces::{Document, terms::DocumentWord},
    vectors::{
        Options, Origin,
        blocks::{Block, Blocks, Shape},
        require_short,
        scaled::Scaled,
    },
};
use header::{LARGEST_NUMBER, OTHER_TENSORS, Sizes};
use streams::{HashedInput, UnlessCancelled, zeros};

pub(crate) use header::{TRACES, VECTORS};
pub use snapshot::Snapshot;

const CHECKSUM_BYTES: usize = 16;

/// The blocks that are read ahead.
const BLOCKS_AHEAD: usize = 2;

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
    pub(crate) options: Options,
    pub(crate) origin: Origin,
    pub(crate) vectors: Blocks,
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

/// Reads the contents of the `length` bytes of `input`, a file of this version, at `now`, by the wall clock `clock`.
pub(crate) fn read(
    input: impl Read + Send,
    length: u64,
    version: &str,
    options: LoadOptions,
    now: Instant,
    clock: SystemTime,
) -> std::result::Result<Contents, Unreadable> {
    let mut input = HashedInput::new(input);
    fault::point("load");
    let (sizes, about) = header::read(&mut input, length, version)?;
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
    let options = about.options(options, dimensions.max(1));
    let skipped = entries.saturating_sub(options.max_elements);
    let (words, terms) = words.unwrap_or_default();
    let added: Vec<i64> = input.read_values(entries)?;
    let label_ends: Vec<u64> = input.read_values(entries)?;
    let term_ends: Vec<u64> = input.read_values(method.map_or(0, |_| entries))?;
    let novelties: Vec<f64> = input.read_values(entries)?;
    require_ascending("label_ends", &label_ends)?;
    require_ascending("term_ends", &term_ends)?;
    if term_ends.last().copied().unwrap_or(0) != terms as u64 {
        return Err(damaged("its traces do not have all of its words"));
    }
    let hashes: Vec<u64> = input.read_values(words)?;
    let terms: Vec<u32> = input.read_values(terms)?;
    let mut vectors = Blocks::new(options.dimensions);
    if dimensions > 0 {
        read_vectors(&mut input, &mut vectors, moments(&added, now, clock), skipped)?;
    }
    let counts: Vec<u16> = input.read_values(terms.len())?;
    let labels = Labels::read(&mut input, label_ends, novelties, sizes.label_bytes)?;
    let labels: Vec<_> = labels.iter().collect::<std::result::Result<_, _>>()?;
    input.require_checksum()?;
    let traces = match method {
        None => {
            for (kept, label) in labels.into_iter().skip(skipped).enumerate() {
                vectors.set_label(kept, label);
            }
            None
        }
        Some(method) => {
            let added = moments(&added, now, clock);
            let words = words_of_traces(&hashes, &terms, &counts, &term_ends);
            let documents = labels
                .into_iter()
                .zip(added)
                .zip(words)
                .map(|((label, added), words)| {
                    let words = words?;
                    Ok(Arc::new(Document { label, added, words }))
                });
            let mut documents: Vec<_> = documents.collect::<std::result::Result<_, Unreadable>>()?;
            documents.drain(..skipped);
            Some(HeldTraces {
                method,
                documents,
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
fn words_of_traces(
    hashes: &[u64],
    terms: &[u32],
    counts: &[u16],
    ends: &[u64],
) -> impl Iterator<Item = std::result::Result<Box<[DocumentWord]>, Unreadable>> {
    let hash = |term: &u32| hashes.get(*term as usize);
    let mut start = 0;
    ends.iter().enumerate().map(move |(index, &end)| {
        let end = usize::try_from(end).unwrap_or(usize::MAX);
        let own = start..end;
        start = end;
        let terms = &terms[own.clone()];
        let are_words = terms.len() <= MOST_WORDS
            && terms.iter().all(|term| hash(term).is_some())
            && terms.windows(2).all(|pair| hash(&pair[0]) < hash(&pair[1]));
        if !are_words {
            return Err(damaged(format!(
                "the words of trace {index} are not those of a trace"
            )));
        }
        let words = terms.iter().zip(&counts[own]);
        Ok(words
            .map(|(&term, &count)| DocumentWord {
                term,
                count: TermWeight::from_code(count),
            })
            .collect())
    })
}

/// Reads the rows of `vectors` but for the first `skipped`. A second thread reads ahead, so that neither the file nor
/// the codes wait for the other.
fn read_vectors(
    input: &mut HashedInput<impl Read + Send>,
    vectors: &mut Blocks,
    added: impl ExactSizeIterator<Item = Moment>,
    skipped: usize,
) -> std::result::Result<(), Unreadable> {
    let shape = vectors.shape();
    let total = added.len();
    let mut added = added.enumerate().skip(skipped);
    let mut scaled = Scaled::default();
    let mut keep = |mut block: Block| -> std::result::Result<(), Unreadable> {
        while block.is_unfinished()
            && let Some((index, added)) = added.next()
        {
            block
                .finish_next(&mut scaled, added)
                .map_err(|error| unreadable_vector(index, error))?;
        }
        Ok(vectors.push_block(block)?)
    };
    if cfg!(target_family = "wasm") {
        // There is no second thread.
        let mut kept = Ok(());
        let mut keep_or_stop = |block: std::result::Result<_, _>| {
            kept = block.and_then(&mut keep);
            kept.is_ok()
        };
        read_blocks(input, shape, skipped..total, &mut keep_or_stop)?;
        return kept;
    }
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(BLOCKS_AHEAD);
        let read_ahead = move || {
            fault::point("load ahead");
            // Sending fails after an error of the receiver; then nothing more is read.
            let mut send = |block| sender.send(block).is_ok();
            if let Err(failure) = read_blocks(input, shape, skipped..total, &mut send) {
                send(Err(failure));
            }
        };
        thread::Builder::new()
            .name("knowledgepulse-load".into())
            .spawn_scoped(scope, read_ahead)
            .map_err(Unreadable::Io)?;
        receiver.into_iter().try_for_each(|block| keep(block?))
    })
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
    // Opening a pipe would block until another process writes to it.
    require_regular(&fs::metadata(path).map_err(failed)?).map_err(failed)?;
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let input = UnlessCancelled { file, call };
    let contents = read(input, length, version, options, Instant::now(), SystemTime::now());
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

/// Reads the times at which vectors were added.
fn moments(added: &[i64], now: Instant, clock: SystemTime) -> impl ExactSizeIterator<Item = Moment> {
    let (now, clock) = (Moment::at(now), microseconds(clock));
    let mut latest = i64::MIN;
    added.iter().map(move |&added| {
        // Keeps the order of age, even if the clock was set back in between.
        latest = latest.max(added);
        // A time in the future means that the clock was set back; it counts as now.
        let age = u64::try_from(clock.saturating_sub(latest)).unwrap_or(0);
        now.before(Duration::from_micros(age))
    })
}

/// Requires the ends of consecutive parts to be in order.
fn require_ascending(name: &str, ends: &[u64]) -> std::result::Result<(), Unreadable> {
    match ends.windows(2).position(|pair| pair[0] > pair[1]) {
        None => Ok(()),
        Some(index) => Err(damaged(format!(
            "{name}[{}] is less than the one before",
            index + 1
        ))),
    }
}

/// Reads rows of components from the first one of a file on, and makes blocks of those in `kept`, for as long as
/// `send` takes them.
fn read_blocks(
    input: &mut HashedInput<impl Read>,
    shape: Shape,
    kept: Range<usize>,
    send: &mut impl FnMut(std::result::Result<Block, Unreadable>) -> bool,
) -> std::result::Result<(), Unreadable> {
    // A few rows at a time are still in the processor's cache when they are copied to their block.
    let rows_at_once = shape.capacity_after(0);
    let mut rows: Vec<f32> = zeros(rows_at_once.min(kept.end) * shape.dimensions)?;
    let mut next = 0;
    while next < kept.start {
        let count = rows_at_once.min(kept.start - next);
        input.read(bytemuck::cast_slice_mut(&mut rows[..count * shape.dimensions]))?;
        next += count;
    }
    while next < kept.end {
        let mut block = Block::allocate_after(shape, next - kept.start)?;
        let end = kept.end.min(next + block.capacity);
        while next < end {
            let count = rows_at_once.min(end - next);
            let rows = &mut rows[..count * shape.dimensions];
            input.read(bytemuck::cast_slice_mut(rows))?;
            block.extend_components(rows);
            next += count;
        }
        if !send(Ok(block)) {
            break;
        }
    }
    Ok(())
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

fn damaged(reason: impl Into<String>) -> Unreadable {
    Unreadable::Damaged(reason.into())
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

impl From<Error> for Unreadable {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// The labels of a file.
struct Labels {
    labelled: Vec<u8>,
    ends: Vec<u64>,
    /// The novelty that each trace was scored with; NaN if that is not known.
    novelties: Vec<f64>,
    fingerprints: Vec<Fingerprint>,
    bytes: Vec<u8>,
}

impl Labels {
    /// Reads the tensors after the components: labels without their ends, and novelties.
    fn read(
        input: &mut HashedInput<impl Read>,
        ends: Vec<u64>,
        novelties: Vec<f64>,
        bytes: usize,
    ) -> std::result::Result<Self, Unreadable> {
        Ok(Self {
            labelled: input.read_values(ends.len())?,
            fingerprints: input.read_values(ends.len())?,
            bytes: input.read_values(bytes)?,
            novelties,
            ends,
        })
    }

    /// The label of each vector.
    fn iter(&self) -> impl Iterator<Item = std::result::Result<Option<Label>, Unreadable>> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let ranges = starts.zip(&self.ends);
        let labels = self.labelled.iter().zip(ranges).enumerate();
        labels.map(|(index, (&labelled, (&start, &end)))| {
            let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let bytes = range.and_then(|(start, end)| self.bytes.get(start..end));
            let label = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
            match (labelled, label) {
                (0, Some("")) if self.scored(index).is_none() => Ok(None),
                (1, Some(label)) if require_short(label).is_ok() => match self.scored(index) {
                    None => Ok(Some(label.into())),
                    Some(scored) if scored.novelty.is_finite() => Ok(Some(Label::of_scored(label, scored))),
                    Some(_) => Err(damaged(format!("novelties[{index}] is infinite"))),
                },
                _ => Err(damaged(format!(
                    "the label of vector {index} is not a short text"
                ))),
            }
        })
    }

    /// Returns the fingerprint and novelty of a vector's trace, if the file has them.
    fn scored(&self, index: usize) -> Option<Scored> {
        let novelty = *self.novelties.get(index).filter(|novelty| !novelty.is_nan())?;
        let fingerprint = *self.fingerprints.get(index)?;
        Some(Scored { fingerprint, novelty })
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
