//! The cache as a file, in the safetensors format.
//!
//! | tensor       | type and shape              | what                                                                |
//! | ------------ | --------------------------- | ------------------------------------------------------------------- |
//! | `added`      | I64, vectors                | when each vector was added: microseconds since 1970, by the wall clock |
//! | `label_ends` | U64, vectors                | where its label ends in `labels`; it begins where the one before ends |
//! | `vectors`    | F32, vectors by dimensions  | oldest first                                                        |
//! | `labelled`   | BOOL, vectors               | whether it has a label                                              |
//! | `labels`     | U8, bytes                   | the labels one after another, in UTF-8                              |
//! | `checksum`   | U8, 16                      | the XXH3-128 of all bytes before it, the highest byte first         |
//!
//! They lie in this order, the checksum at the very end, so that a file is written and read in one pass. The
//! metadata of the header are strings: `format` and `version`, `max_elements`, `ttl_ms` unless vectors live for ever,
//! `saved_at` (as `added`), and as far as they are known, of the model `model`, `dtype` and `model_sha256`, and the
//! `method` by which traces became vectors. Files of version 1 have no `method`, and are otherwise the same.

mod temporary;

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read, Write},
    num::NonZeroUsize,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        LazyLock, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use lru::LruCache;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use tempfile::NamedTempFile;
use twox_hash::XxHash3_128;

use super::{
    Label, ModelIdentity, Options, Origin, VectorCache,
    blocks::{Block, Blocks, Shape},
    moment::Moment,
    require_short,
};
use crate::{
    call::Call,
    error::{Error, Result},
    fault,
    simd::GROUP,
};

const FORMAT: &str = "knowledgepulse-vector-cache";
const VERSION: &str = "2";

/// The versions that are read.
const READ_VERSIONS: [&str; 2] = ["1", VERSION];

/// Before the header: how long it is.
const LENGTH_BYTES: usize = 8;

/// Ours take a few hundred bytes.
const MOST_HEADER_BYTES: u64 = 64 * 1024;

/// The bounds of a cache are numbers of JavaScript.
const LARGEST_NUMBER: usize = (1 << 53) - 1;

const CHECKSUM_BYTES: usize = 16;

/// So much is written at a time.
const BUFFER_BYTES: usize = 1024 * 1024;

/// How many blocks are read before they are needed.
const BLOCKS_AHEAD: usize = 2;

const _: () = assert!(
    cfg!(target_endian = "little"),
    "the components are copied as they lie in memory, and the format is little-endian"
);

/// The state of a cache at one moment. It shares the vectors with the cache, and stays as it is while that goes on.
#[derive(Debug, Clone)]
pub struct Snapshot {
    options: Options,
    blocks: Blocks,
    origin: Origin,
    taken: Moment,
    clock: SystemTime,
    /// The snapshots of a process in order, of whichever cache.
    number: u64,
}

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The number of the snapshot that is in each file, as far as this process has saved it.
static SAVED: LazyLock<Mutex<LruCache<PathBuf, u64>>> =
    LazyLock::new(|| Mutex::new(LruCache::new(MOST_FILES_IN_ORDER)));

/// For how many files at a time saves are kept in order.
const MOST_FILES_IN_ORDER: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// What replaces the bounds that a file names.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LoadOptions {
    /// How many vectors are kept: the newest ones of the file.
    pub max_elements: Option<usize>,
    /// How long a vector lives from when it was added; `Some(None)` for ever.
    pub time_to_live: Option<Option<Duration>>,
}

impl VectorCache {
    /// The state of this cache at `now`, when the wall clock says `clock`. Takes next to no time and memory.
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

    /// The cache in the file at `path`, as old as the wall clock says. The file cannot make it take more memory than its
    /// length and its number of vectors justify.
    ///
    /// # Errors
    /// [`Error::CacheNotFound`], [`Error::CacheDamaged`], [`Error::CacheIo`], [`Error::OutOfMemory`].
    pub fn load(path: &Path, options: LoadOptions) -> Result<Self> {
        Self::load_unless_cancelled(path, options, &Call::default())
    }

    /// As [`VectorCache::load`], for a call that can be cancelled until the file is read.
    ///
    /// # Errors
    /// [`Error::Aborted`] and those of [`VectorCache::load`].
    pub fn load_unless_cancelled(path: &Path, options: LoadOptions, call: &Call) -> Result<Self> {
        let failed = |source: io::Error| {
            let path = path.into();
            if source.kind() == io::ErrorKind::NotFound {
                return Error::CacheNotFound { path };
            }
            let action = "read";
            Error::CacheIo { path, action, source }
        };
        // Opening a pipe would wait for who writes to it.
        require_regular(&fs::metadata(path).map_err(failed)?).map_err(failed)?;
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let file = UnlessCancelled { file, call };
        Self::read(file, length, options, Instant::now(), SystemTime::now()).map_err(
            |failure| match failure {
                _ if call.is_cancelled() => Error::Aborted,
                Unreadable::Damaged(reason) => Error::CacheDamaged {
                    path: path.into(),
                    reason,
                },
                Unreadable::Io(source) => failed(source),
                Unreadable::Other(error) => error,
            },
        )
    }

    /// The cache in the `length` bytes of `input`, at `now`, when the wall clock says `clock`.
    ///
    /// # Errors
    /// What [`VectorCache::load`] puts into words.
    pub fn read(
        input: impl Read + Send,
        length: u64,
        options: LoadOptions,
        now: Instant,
        clock: SystemTime,
    ) -> std::result::Result<Self, Unreadable> {
        let mut input = HashedInput::new(input);
        fault::point("load");
        let contents = Contents::read(&mut input, length)?;
        let mut cache = Self::new(Options {
            max_elements: options.max_elements.unwrap_or(contents.max_elements),
            dimensions: contents.dimensions,
            time_to_live: options.time_to_live.unwrap_or(contents.time_to_live),
        });
        let skipped = contents.vectors.saturating_sub(cache.options.max_elements);
        let added: Vec<i64> = input.read_values(contents.vectors)?;
        let ends: Vec<u64> = input.read_values(contents.vectors)?;
        if let Some(index) = ends.windows(2).position(|pair| pair[0] > pair[1]) {
            let index = index + 1;
            return Err(damaged(format!(
                "label_ends[{index}] is less than the one before"
            )));
        }

        let (now, clock) = (Moment::at(now), microseconds(clock));
        let mut latest = i64::MIN;
        let added = added.iter().map(|&added| {
            // The order of age holds, whatever a clock has done.
            latest = latest.max(added);
            // None was added in the future: the clock was set back.
            let age = u64::try_from(clock.saturating_sub(latest)).unwrap_or(0);
            now.before(Duration::from_micros(age))
        });
        cache.read_vectors(&mut input, added, skipped)?;
        let labels = Labels {
            labelled: input.read_values(contents.vectors)?,
            ends,
            bytes: input.read_values(contents.label_bytes)?,
        };
        for (index, label) in labels.iter().enumerate() {
            let label = label?;
            if let Some(kept) = index.checked_sub(skipped) {
                cache.blocks.set_label(kept, label);
            }
        }
        input.require_checksum()?;
        cache.origin = contents.origin;
        Ok(cache)
    }

    /// Reads the rows of `vectors` but for the first `skipped`. A second thread reads ahead, so that neither the file nor
    /// the codes wait for the other.
    fn read_vectors(
        &mut self,
        input: &mut HashedInput<impl Read + Send>,
        added: impl ExactSizeIterator<Item = Moment>,
        skipped: usize,
    ) -> std::result::Result<(), Unreadable> {
        let shape = self.blocks.shape();
        let total = added.len();
        let mut added = added.enumerate().skip(skipped);
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(BLOCKS_AHEAD);
            let read_ahead = move || {
                fault::point("load ahead");
                // Nobody waits for more after a failure on the other side.
                let mut send = |block| sender.send(block).is_ok();
                if let Err(failure) = read_blocks(input, shape, skipped..total, &mut send) {
                    send(Err(failure));
                }
            };
            thread::Builder::new()
                .name("knowledgepulse-load".into())
                .spawn_scoped(scope, read_ahead)
                .map_err(Unreadable::Io)?;
            for block in receiver {
                let mut block = block?;
                while block.is_unfinished()
                    && let Some((index, added)) = added.next()
                {
                    block
                        .finish_next(&mut self.scaled, added)
                        .map_err(|error| match error {
                            Error::NotFinite { index: component, .. } => {
                                damaged(format!("vectors[{index}][{component}] is not finite"))
                            }
                            error => Unreadable::Other(error),
                        })?;
                }
                self.blocks.push_block(block)?;
            }
            Ok(())
        })
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
    // What is small is still in the processor's cache when it is copied to where it stays.
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

impl Snapshot {
    /// Writes the state to the file at `path`, which is replaced in one step: whatever happens, there is the old file or
    /// the new one, whole. A symbolic link stays one, and the file that it leads to is replaced. A file that is
    /// replaced keeps its permissions. If this process has saved a later snapshot there meanwhile, that one stays.
    ///
    /// # Errors
    /// [`Error::CacheIo`]; what was at `path` is as it was.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.save_unless_cancelled(path, &Call::default())
    }

    /// As [`Snapshot::save`], for a call that can be cancelled until the file is replaced.
    ///
    /// # Errors
    /// [`Error::Aborted`] and those of [`Snapshot::save`]; what was at `path` is as it was.
    pub fn save_unless_cancelled(&self, path: &Path, call: &Call) -> Result<()> {
        self.replace(path, call).map_err(|source| {
            if call.is_cancelled() {
                return Error::Aborted;
            }
            Error::CacheIo {
                path: path.into(),
                action: "written",
                source,
            }
        })
    }

    fn replace(&self, path: &Path, call: &Call) -> io::Result<()> {
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
        temporary::remove_abandoned(directory);
        let mut file = temporary::create(directory, existing.as_ref())?;
        self.write(UnlessCancelled {
            file: file.as_file_mut(),
            call,
        })?;
        file.as_file().sync_all()?;
        if !call.complete() {
            return Err(io::Error::other(Error::Aborted));
        }
        self.persist(file, &target, directory)?;
        sync_directory(directory)
    }

    /// Gives a finished file its name, unless a later snapshot has it.
    fn persist(&self, file: NamedTempFile, target: &Path, directory: &Path) -> io::Result<()> {
        let name = target.file_name().unwrap_or_default();
        let place = fs::canonicalize(directory)?.join(name);
        let mut saved = SAVED.lock().unwrap_or_else(PoisonError::into_inner);
        if saved.get(&place).is_none_or(|&number| number <= self.number) {
            file.persist(target).map_err(|error| error.error)?;
            saved.put(place, self.number);
        }
        Ok(())
    }

    /// Writes the state in the format of the module.
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
        for label in entries().filter_map(|entry| entry.label) {
            output.write(label.as_bytes())?;
        }
        output.finish()
    }

    /// The header, padded with spaces: what follows is aligned.
    fn header(&self, label_bytes: usize) -> std::result::Result<Vec<u8>, String> {
        let tensors = tensors(self.blocks.len(), self.options.dimensions, label_bytes)
            .ok_or("more bytes than a file can have")?;
        let mut metadata = HashMap::from([
            ("format", FORMAT.into()),
            ("version", VERSION.into()),
            ("max_elements", self.options.max_elements.to_string()),
            ("saved_at", microseconds(self.clock).to_string()),
        ]);
        if let Some(time_to_live) = self.options.time_to_live {
            metadata.insert("ttl_ms", milliseconds(time_to_live).to_string());
        }
        if let Some(model) = &self.origin.model {
            metadata.insert("model", model.model.clone());
            metadata.insert("dtype", model.dtype.clone());
            if let Some(sha256) = &model.sha256 {
                metadata.insert("model_sha256", sha256.clone());
            }
        }
        if let Some(method) = &self.origin.method {
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
}

/// The milliseconds of a time to live; the same comes of them again.
#[must_use]
pub fn milliseconds(time_to_live: Duration) -> f64 {
    #[allow(clippy::cast_precision_loss)] // Exact for 104 days, and then to a nanosecond in as many.
    let nanoseconds = time_to_live.as_nanos() as f64;
    nanoseconds / 1e6
}

/// A time to live of milliseconds; `None`, which is for ever, for more than half a trillion years.
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

/// The tensors of a file, in order. `None` when they have more bytes than can be counted.
fn tensors(vectors: usize, dimensions: usize, label_bytes: usize) -> Option<Vec<(String, TensorInfo)>> {
    let mut end = 0usize;
    let mut tensor = |name: &str, dtype: Dtype, shape: &[usize]| {
        let elements = shape
            .iter()
            .try_fold(1, |product: usize, &n| product.checked_mul(n))?;
        let start = end;
        end = start.checked_add(elements.checked_mul(dtype.bitsize() / 8)?)?;
        let info = TensorInfo {
            dtype,
            shape: shape.to_vec(),
            data_offsets: (start, end),
        };
        Some((name.to_owned(), info))
    };
    Some(vec![
        tensor("added", Dtype::I64, &[vectors])?,
        tensor("label_ends", Dtype::U64, &[vectors])?,
        tensor("vectors", Dtype::F32, &[vectors, dimensions])?,
        tensor("labelled", Dtype::BOOL, &[vectors])?,
        tensor("labels", Dtype::U8, &[label_bytes])?,
        tensor("checksum", Dtype::U8, &[CHECKSUM_BYTES])?,
    ])
}

/// Why no cache could be read.
#[derive(Debug)]
pub enum Unreadable {
    /// The bytes cannot be what was written.
    Damaged(String),
    /// They could not be read.
    Io(io::Error),
    /// There was no memory.
    Other(Error),
}

fn damaged(reason: impl Into<String>) -> Unreadable {
    Unreadable::Damaged(reason.into())
}

impl From<Error> for Unreadable {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// What the header says.
struct Contents {
    vectors: usize,
    dimensions: usize,
    label_bytes: usize,
    max_elements: usize,
    time_to_live: Option<Duration>,
    origin: Origin,
}

impl Contents {
    /// Reads the header of a file of `length` bytes. Nothing is taken for granted that the length does not bear out.
    fn read(input: &mut HashedInput<impl Read>, length: u64) -> std::result::Result<Self, Unreadable> {
        let shortest = (LENGTH_BYTES + CHECKSUM_BYTES) as u64;
        if length < shortest {
            return Err(damaged(format!("it has only {length} bytes")));
        }
        let mut header_length = [0; LENGTH_BYTES];
        input.read(&mut header_length)?;
        let header_length = u64::from_le_bytes(header_length);
        if header_length > MOST_HEADER_BYTES.min(length - shortest) {
            return Err(damaged("it does not begin as a safetensors file does"));
        }
        #[allow(clippy::cast_possible_truncation)] // At most MOST_HEADER_BYTES.
        let mut header = vec![0; header_length as usize];
        input.read(&mut header)?;
        let header: Metadata = serde_json::from_slice(&header)
            .map_err(|error| damaged(format!("its header is not that of a safetensors file: {error}")))?;
        let expected = (header.data_len() as u64).saturating_add(LENGTH_BYTES as u64 + header_length);
        let contents = Self::of(&header)?;
        if length != expected {
            return Err(damaged(format!(
                "it has {length} bytes, not the {expected} of its header"
            )));
        }
        Ok(contents)
    }

    fn of(header: &Metadata) -> std::result::Result<Self, Unreadable> {
        let field = |name: &str| header.metadata().as_ref()?.get(name).map(String::as_str);
        if field("format") != Some(FORMAT) {
            return Err(damaged("it holds no cache"));
        }
        let version = field("version").unwrap_or("none");
        if !READ_VERSIONS.contains(&version) {
            let known = READ_VERSIONS.join(" or ");
            return Err(damaged(format!("its format has version {version}, not {known}")));
        }
        let shape = |name| header.info(name).map(|info| &info.shape[..]);
        let (Some(&[vectors, dimensions]), Some(&[label_bytes])) = (shape("vectors"), shape("labels")) else {
            return Err(damaged("it lacks the tensors of a cache"));
        };
        let expected = tensors(vectors, dimensions, label_bytes).unwrap_or_default();
        let is_expected = |(name, expected): &(String, TensorInfo)| {
            header.info(name).is_some_and(|info| {
                (info.dtype, &info.shape, info.data_offsets)
                    == (expected.dtype, &expected.shape, expected.data_offsets)
            })
        };
        if !(1..=LARGEST_NUMBER).contains(&dimensions)
            || header.tensors().len() != expected.len()
            || !expected.iter().all(is_expected)
        {
            return Err(damaged("its tensors are not those of a cache"));
        }
        let max_elements = field("max_elements").and_then(|text| text.parse().ok());
        let max_elements = max_elements.filter(|max_elements| *max_elements <= LARGEST_NUMBER);
        let milliseconds = field("ttl_ms").map(|text| text.parse::<f64>().ok().filter(|ms| *ms >= 0.0));
        let (Some(max_elements), None | Some(Some(_))) = (max_elements, milliseconds) else {
            return Err(damaged("the bounds in its header are not numbers in range"));
        };
        let model = field("model")
            .zip(field("dtype"))
            .map(|(model, dtype)| ModelIdentity {
                model: model.into(),
                dtype: dtype.into(),
                sha256: field("model_sha256").map(Into::into),
            });
        Ok(Self {
            vectors,
            dimensions,
            label_bytes,
            max_elements,
            time_to_live: milliseconds.flatten().and_then(time_to_live),
            origin: Origin {
                model,
                method: field("method").map(Into::into),
            },
        })
    }
}

/// The labels of a file.
struct Labels {
    labelled: Vec<u8>,
    ends: Vec<u64>,
    bytes: Vec<u8>,
}

impl Labels {
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
                (0, Some("")) => Ok(None),
                (1, Some(label)) if require_short(label).is_ok() => Ok(Some(label.into())),
                _ => Err(damaged(format!(
                    "the label of vector {index} is not a short text"
                ))),
            }
        })
    }
}

/// Hashes what is read.
struct HashedInput<R> {
    input: R,
    hasher: XxHash3_128,
}

impl<R: Read> HashedInput<R> {
    fn new(input: R) -> Self {
        Self {
            input,
            hasher: XxHash3_128::new(),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Unreadable> {
        self.read_unhashed(bytes)?;
        self.hasher.write(bytes);
        Ok(())
    }

    fn read_unhashed(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Unreadable> {
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("it became shorter while it was read"),
            _ => Unreadable::Io(error),
        })
    }

    fn read_values<T: bytemuck::Pod>(&mut self, count: usize) -> std::result::Result<Vec<T>, Unreadable> {
        let mut values = zeros(count)?;
        self.read(bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    fn require_checksum(mut self) -> std::result::Result<(), Unreadable> {
        let mut checksum = [0; CHECKSUM_BYTES];
        self.read_unhashed(&mut checksum)?;
        if checksum != self.hasher.finish_128().to_be_bytes() {
            return Err(damaged("its checksum is wrong"));
        }
        Ok(())
    }
}

fn zeros<T: bytemuck::Pod>(count: usize) -> std::result::Result<Vec<T>, Unreadable> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(count)
        .map_err(|_| Error::OutOfMemory { dimensions: count })?;
    values.resize(count, T::zeroed());
    Ok(values)
}

/// Hashes what is written, and writes in large pieces.
struct HashedOutput<W> {
    output: W,
    hasher: XxHash3_128,
    buffer: Vec<u8>,
}

impl<W: Write> HashedOutput<W> {
    fn new(output: W) -> Self {
        Self {
            output,
            hasher: XxHash3_128::new(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hasher.write(&self.buffer);
        self.output.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Appends the checksum.
    fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.output.write_all(&self.hasher.finish_128().to_be_bytes())?;
        self.output.flush()
    }
}

/// Fails once a call is cancelled.
struct UnlessCancelled<'c, F> {
    file: F,
    call: &'c Call,
}

impl<F> UnlessCancelled<'_, F> {
    fn require_wanted(&self) -> io::Result<()> {
        if self.call.is_cancelled() {
            return Err(io::Error::other(Error::Aborted));
        }
        Ok(())
    }
}

impl<F: Read> Read for UnlessCancelled<'_, F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.require_wanted()?;
        self.file.read(bytes)
    }
}

impl<F: Write> Write for UnlessCancelled<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.require_wanted()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn require_regular(file: &fs::Metadata) -> io::Result<()> {
    if file.is_file() {
        return Ok(());
    }
    Err(io::Error::other("it is not a regular file"))
}

/// The path that `path` leads to when it is a symbolic link, also one to nothing.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    /// What Linux allows.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            // It is no link, or nothing.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Has a renamed file keep its name when the power fails.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory)?.sync_all() {
        // Some file systems have nothing to do.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        result => result,
    }
}

/// Elsewhere a directory is no file that can be written out.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps)]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
