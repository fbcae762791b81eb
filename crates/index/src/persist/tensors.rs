//! The tensors and the metadata of a file that is read.

use safetensors::tensor::Metadata;
use twox_hash::XxHash3_128;

use super::{
    CHECKSUM_BYTES, FORMAT, LARGEST_NUMBER, Reading, TRACES, Unreadable, VECTORS, damaged, time_to_live,
};
use crate::options::{MemoryOptions, ModelIdentity, Origin};

/// The length of the header, which precedes it.
pub(super) const LENGTH_BYTES: usize = 8;

/// The longest accepted header; written ones have a few hundred bytes.
const MOST_HEADER_BYTES: u64 = 64 * 1024;

pub(super) const OTHER_TENSORS: &str = "its tensors are not those of a cache";

/// A file whose header and checksum are right.
pub(super) struct Tensors<'f> {
    header: Metadata,
    data: &'f [u8],
    /// The number of vectors or traces.
    pub(super) entries: usize,
    pub(super) dimensions: usize,
}

impl<'f> Tensors<'f> {
    /// Reads the header of a file of this version.
    pub(super) fn of(file: &'f [u8], version: &str) -> Reading<Self> {
        let start = LENGTH_BYTES + header_length(file, file.len() as u64)?;
        let header: Metadata = serde_json::from_slice(&file[LENGTH_BYTES..start])
            .map_err(|error| damaged(format!("its header is not that of a safetensors file: {error}")))?;
        require_version(&header, version)?;
        let (length, expected) = (file.len(), header.data_len().saturating_add(start));
        if length != expected {
            return Err(damaged(format!(
                "it has {length} bytes, not the {expected} of its header"
            )));
        }
        let Some(&[entries, dimensions]) = header.info("vectors").map(|info| &info.shape[..]) else {
            return Err(damaged(OTHER_TENSORS));
        };
        let checksum = file.split_last_chunk::<CHECKSUM_BYTES>();
        if checksum.is_none_or(|(hashed, checksum)| XxHash3_128::oneshot(hashed).to_be_bytes() != *checksum) {
            return Err(damaged("its checksum is wrong"));
        }
        Ok(Self {
            header,
            data: &file[start..],
            entries,
            dimensions,
        })
    }

    /// Returns the bytes of a tensor; none without such a tensor.
    pub(super) fn bytes(&self, name: &str) -> &'f [u8] {
        let place = self.header.info(name).map_or((0, 0), |info| info.data_offsets);
        self.data.get(place.0..place.1).unwrap_or_default()
    }

    /// Returns all values of a tensor.
    pub(super) fn values<T: bytemuck::Pod>(&self, name: &str) -> Vec<T> {
        let values = self.bytes(name).chunks_exact(size_of::<T>());
        values.map(bytemuck::pod_read_unaligned).collect()
    }

    /// Returns the values of a tensor that has one for each entry.
    pub(super) fn of_entries<T: bytemuck::Pod>(&self, name: &str) -> Reading<Vec<T>> {
        let values = self.values(name);
        if values.len() != self.entries {
            return Err(damaged(OTHER_TENSORS));
        }
        Ok(values)
    }

    fn field(&self, name: &str) -> Option<&str> {
        field(&self.header, name)
    }

    /// Returns the bounds of the memory, for at most `max_elements` entries, or as many as the file says.
    pub(super) fn options(&self, max_elements: Option<usize>) -> Reading<MemoryOptions> {
        let bound = self.field("max_elements").and_then(|text| text.parse().ok());
        let bound = bound.filter(|bound| *bound <= LARGEST_NUMBER);
        let milliseconds = self
            .field("ttl_ms")
            .map(|text| text.parse::<f64>().ok().filter(|ms| *ms >= 0.0));
        let (Some(bound), None | Some(Some(_))) = (bound, milliseconds) else {
            return Err(damaged("the bounds in its header are not numbers in range"));
        };
        Ok(MemoryOptions {
            max_elements: max_elements.unwrap_or(bound),
            dimensions: self.dimensions.max(1),
            time_to_live: milliseconds.flatten().and_then(time_to_live),
        })
    }

    pub(super) fn origin(&self) -> Origin {
        let model = self.field("model").zip(self.field("dtype"));
        Origin {
            model: model.map(|(model, dtype)| ModelIdentity {
                model: model.into(),
                dtype: dtype.into(),
                sha256: self.field("model_sha256").map(Into::into),
            }),
            method: self.field("method").map(Into::into),
        }
    }
}

/// Returns the length of the header of a file of `length` bytes that begins like this.
pub(super) fn header_length(beginning: &[u8], length: u64) -> Reading<usize> {
    let shortest = (LENGTH_BYTES + CHECKSUM_BYTES) as u64;
    let header = beginning
        .first_chunk::<LENGTH_BYTES>()
        .filter(|_| length >= shortest)
        .ok_or_else(|| damaged(format!("it has only {length} bytes")))?;
    let header = u64::from_le_bytes(*header);
    let is_header = header <= MOST_HEADER_BYTES.min(length - shortest);
    usize::try_from(header)
        .ok()
        .filter(|_| is_header)
        .ok_or_else(|| damaged("it does not begin as a safetensors file does"))
}

fn field<'h>(header: &'h Metadata, name: &str) -> Option<&'h str> {
    header.metadata().as_ref()?.get(name).map(String::as_str)
}

/// Requires a file to be a memory of this version.
fn require_version(header: &Metadata, expected: &str) -> Reading<()> {
    if field(header, "format") != Some(FORMAT) {
        return Err(damaged("it holds no cache"));
    }
    let (held, other) = match field(header, "version").unwrap_or("none") {
        version if version == expected => return Ok(()),
        TRACES => ("traces", "vectors"),
        VECTORS => ("vectors", "traces"),
        version => {
            let reason = format!("its format has version {version}, not {expected}");
            return Err(damaged(reason));
        }
    };
    let method = field(header, "method").map(|method| format!(" of novelty '{method}'"));
    let held = held.to_owned() + &method.unwrap_or_default();
    Err(Unreadable::OtherKind { held, other })
}
