//! The header of a file: its tensors and metadata.

use std::time::Duration;

use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use knowledgepulse_trace::label::Fingerprint;
use twox_hash::XxHash3_128;

use super::{CHECKSUM_BYTES, LoadOptions, Reading, Unreadable, damaged, time_to_live};
use crate::options::{MemoryOptions, ModelIdentity, Origin};

pub(super) const FORMAT: &str = "knowledgepulse-vector-cache";

/// The version of a vector cache.
pub(crate) const VECTORS: &str = "4";

/// The version of a trace memory.
pub(crate) const TRACES: &str = "5";

/// The length of the header, which precedes it.
pub(super) const LENGTH_BYTES: usize = 8;

/// The longest accepted header; written ones have a few hundred bytes.
const MOST_HEADER_BYTES: u64 = 64 * 1024;

/// The bytes of a file that its header is among.
pub(super) const LONGEST_BEGINNING: u64 = LENGTH_BYTES as u64 + MOST_HEADER_BYTES;

/// The largest bound of a cache: JavaScript's largest exact integer, 2^53, or the platform's largest.
pub(super) const LARGEST_NUMBER: usize = usize::MAX >> usize::BITS.saturating_sub(53);

pub(super) const OTHER_TENSORS: &str = "its tensors are not those of a cache";

/// Consecutive tensors. `None` if their size overflows.
pub(super) fn in_order(tensors: &[(&str, Dtype, &[usize])]) -> Option<Vec<(String, TensorInfo)>> {
    let mut end = 0usize;
    let tensor = |&(name, dtype, shape): &(&str, Dtype, &[usize])| {
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
    tensors.iter().map(tensor).collect()
}

/// The numbers that the shapes of a file's tensors depend on.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// The number of vectors or traces.
    pub(super) entries: usize,
    pub(super) dimensions: usize,
    pub(super) label_bytes: usize,
    /// The number of different words, and the sum of the numbers of words of each trace; `None` in a file of vectors.
    pub(super) words: Option<(usize, usize)>,
}

impl Sizes {
    /// Reads the sizes of a file with this header; `None` if it lacks a tensor.
    fn of(header: &Metadata, has_words: bool) -> Option<Self> {
        let shape = |name| header.info(name).map(|info| &info.shape[..]);
        let one = |name| match shape(name)? {
            &[size] => Some(size),
            _ => None,
        };
        let &[entries, dimensions] = shape("vectors")? else {
            return None;
        };
        let words = if has_words {
            Some((one("words")?, one("terms")?))
        } else {
            None
        };
        Some(Self {
            entries,
            dimensions,
            label_bytes: one("labels")?,
            words,
        })
    }

    /// Returns the tensors of the file, in order. `None` if their size overflows.
    pub(super) fn tensors(self) -> Option<Vec<(String, TensorInfo)>> {
        let Self {
            entries,
            dimensions,
            label_bytes,
            words,
        } = self;
        let (different, all) = words.unwrap_or_default();
        let is_held = |(name, ..): &(&str, Dtype, &[usize])| {
            words.is_some() || !["term_ends", "words", "terms", "counts"].contains(name)
        };
        let tensors: [(&str, Dtype, &[usize]); 12] = [
            ("added", Dtype::I64, &[entries]),
            ("label_ends", Dtype::U64, &[entries]),
            ("term_ends", Dtype::U64, &[entries]),
            ("novelties", Dtype::F64, &[entries]),
            ("words", Dtype::U64, &[different]),
            ("terms", Dtype::U32, &[all]),
            ("vectors", Dtype::F32, &[entries, dimensions]),
            ("counts", Dtype::U16, &[all]),
            ("labelled", Dtype::BOOL, &[entries]),
            ("fingerprints", Dtype::U8, &[entries, size_of::<Fingerprint>()]),
            ("labels", Dtype::U8, &[label_bytes]),
            ("checksum", Dtype::U8, &[CHECKSUM_BYTES]),
        ];
        in_order(&tensors.into_iter().filter(is_held).collect::<Vec<_>>())
    }
}

/// The contents of a file according to its header.
pub(super) struct About {
    pub(super) max_elements: usize,
    pub(super) time_to_live: Option<Duration>,
    pub(super) origin: Origin,
}

/// The tensors of a file.
pub(super) struct Tensors<'f> {
    header: Metadata,
    file: &'f [u8],
    /// The place after the header, where the tensors are.
    start: usize,
}

impl Tensors<'_> {
    /// Returns the bytes of a tensor; none without such a tensor.
    pub(super) fn bytes(&self, name: &str) -> &[u8] {
        let place = self.header.info(name).map_or((0, 0), |info| info.data_offsets);
        let place = self.start + place.0..self.start + place.1;
        self.file.get(place).unwrap_or_default()
    }

    /// Returns the values of a tensor.
    pub(super) fn values<T: bytemuck::Pod>(&self, name: &str) -> Vec<T> {
        let values = self.bytes(name).chunks_exact(size_of::<T>());
        values.map(bytemuck::pod_read_unaligned).collect()
    }

    pub(super) fn require_checksum(&self) -> Reading<()> {
        let hashed = &self.file[..self.file.len() - CHECKSUM_BYTES];
        if self.bytes("checksum") == XxHash3_128::oneshot(hashed).to_be_bytes() {
            return Ok(());
        }
        Err(damaged("its checksum is wrong"))
    }
}

/// Reads the header of a file of `length` bytes, of this version, which is among the first [`LONGEST_BEGINNING`]. A number that contradicts
/// the length is an error, so that no memory is allocated for data that the file cannot hold.
pub(super) fn read<'f>(file: &'f [u8], length: u64, version: &str) -> Reading<(Sizes, About, Tensors<'f>)> {
    let shortest = (LENGTH_BYTES + CHECKSUM_BYTES) as u64;
    let beginning = file.split_first_chunk::<LENGTH_BYTES>();
    let (header_length, rest) = beginning
        .filter(|_| length >= shortest)
        .ok_or_else(|| damaged(format!("it has only {length} bytes")))?;
    let header_length = u64::from_le_bytes(*header_length);
    #[allow(clippy::cast_possible_truncation)] // At most MOST_HEADER_BYTES.
    let header = rest
        .get(..header_length as usize)
        .filter(|_| header_length <= MOST_HEADER_BYTES.min(length - shortest))
        .ok_or_else(|| damaged("it does not begin as a safetensors file does"))?;
    let start = LENGTH_BYTES + header.len();
    let header: Metadata = serde_json::from_slice(header)
        .map_err(|error| damaged(format!("its header is not that of a safetensors file: {error}")))?;
    let expected = (header.data_len() as u64).saturating_add(start as u64);
    let about = About::of(&header, version)?;
    if length != expected {
        return Err(damaged(format!(
            "it has {length} bytes, not the {expected} of its header"
        )));
    }
    let kind = if version == TRACES {
        "trace memory"
    } else {
        "cache"
    };
    let sizes = Sizes::of(&header, version == TRACES);
    let sizes = sizes.ok_or_else(|| damaged(format!("it lacks the tensors of a {kind}")))?;
    require_tensors(&header, &sizes.tensors().unwrap_or_default())?;
    Ok((sizes, about, Tensors { header, file, start }))
}

impl About {
    /// Returns the bounds of the memory, where those that are given replace the file's.
    pub(super) fn options(&self, given: LoadOptions, dimensions: usize) -> MemoryOptions {
        MemoryOptions {
            max_elements: given.max_elements.unwrap_or(self.max_elements),
            dimensions,
            time_to_live: given.time_to_live.unwrap_or(self.time_to_live),
        }
    }

    fn of(header: &Metadata, expected: &str) -> Reading<Self> {
        let field = |name: &str| header.metadata().as_ref()?.get(name).map(String::as_str);
        if field("format") != Some(FORMAT) {
            return Err(damaged("it holds no cache"));
        }
        let version = field("version").unwrap_or("none");
        if version != expected {
            let (held, other) = match version {
                TRACES => ("traces", "vectors"),
                VECTORS => ("vectors", "traces"),
                _ => {
                    return Err(damaged(format!(
                        "its format has version {version}, not {expected}"
                    )));
                }
            };
            let method = field("method").map(|method| format!(" of novelty '{method}'"));
            let held = held.to_owned() + &method.unwrap_or_default();
            return Err(Unreadable::OtherKind { held, other });
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
            max_elements,
            time_to_live: milliseconds.flatten().and_then(time_to_live),
            origin: Origin {
                model,
                method: field("method").map(Into::into),
            },
        })
    }
}

/// Requires a header to have exactly these tensors.
pub(super) fn require_tensors(header: &Metadata, expected: &[(String, TensorInfo)]) -> Reading<()> {
    let is_expected = |(name, expected): &(String, TensorInfo)| {
        header.info(name).is_some_and(|info| {
            (info.dtype, &info.shape, info.data_offsets)
                == (expected.dtype, &expected.shape, expected.data_offsets)
        })
    };
    if expected.is_empty() || header.tensors().len() != expected.len() || !expected.iter().all(is_expected) {
        return Err(damaged(OTHER_TENSORS));
    }
    Ok(())
}
