//! What every memory has: its bounds, and where its vectors come from.

use std::{fmt, time::Duration};

use knowledgepulse_error::{Code, Error, Result};
use knowledgepulse_trace::label::MAX_LABEL_BYTES;

/// The bounds of a memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryOptions {
    /// The maximum number of entries; 0 keeps none.
    pub max_elements: usize,
    /// The length of every vector, at least 1.
    pub dimensions: usize,
    /// The time to live; `None` means for ever.
    pub time_to_live: Option<Duration>,
}

impl Default for MemoryOptions {
    /// The scorer's own bounds: 1,000 vectors of 384 dimensions, for ever.
    fn default() -> Self {
        Self {
            max_elements: 1000,
            dimensions: 384,
            time_to_live: None,
        }
    }
}

impl MemoryOptions {
    /// Requires a vector to have as many components as those of the memory.
    pub(crate) fn require_length(&self, found: usize) -> Result<()> {
        if found == self.dimensions {
            return Ok(());
        }
        // The text is the SDK's.
        let problem = format!("Expected {} dimensions, got {found}", self.dimensions);
        Err(Error::OutOfRange(Code::InvalidInput, problem))
    }

    pub(crate) fn out_of_memory(&self) -> Error {
        Error::OutOfMemory(self.dimensions)
    }
}

/// The model of vectors. Vectors of different models or weights cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelIdentity {
    /// The name, as in `Xenova/all-MiniLM-L6-v2`.
    pub model: String,
    /// The type of the weights, as in `fp32`.
    pub dtype: String,
    /// The SHA-256 of the model file, in hexadecimal, if it is known.
    pub sha256: Option<String>,
}

impl ModelIdentity {
    /// Returns whether vectors of the two can be compared: name and weights are equal. The files may differ, as exports of the same weights
    /// do.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        (&self.model, &self.dtype) == (&other.model, &other.dtype)
    }
}

impl fmt::Display for ModelIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.model, self.dtype)
    }
}

/// The origin of vectors, if known; it is unknown for vectors added by hand. Unknown parts are not compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The model.
    pub model: Option<ModelIdentity>,
    /// The novelty method, a [`Method::name`](crate::method::Method::name). Methods embed different parts of a trace, so a trace would be far
    /// from itself across them.
    pub method: Option<String>,
}

impl Origin {
    /// Checks that vectors of the two can be compared.
    ///
    /// # Errors
    /// `ERR_MEMORY_MISMATCH`, for a cache that holds vectors of this origin.
    pub(crate) fn require_comparable(&self, other: &Self) -> Result<()> {
        if let (Some(held), Some(other)) = (&self.model, &other.model)
            && !held.agrees_with(other)
        {
            let problem = format!(
                "the cache holds vectors of {held}, which do not compare with those of {other}: clear it, or use another"
            );
            return Err(Error::Other(Code::MemoryMismatch, problem));
        }
        match (&self.method, &other.method) {
            (Some(held), Some(other)) if held != other => {
                let problem = format!(
                    "the cache was filled with novelty '{held}', whose vectors do not compare with those of novelty '{other}': use another, clear it, or score with novelty '{held}'"
                );
                Err(Error::Other(Code::MemoryMismatch, problem))
            }
            _ => Ok(()),
        }
    }

    /// Adds what another origin knows: a known part stays.
    pub(crate) fn learn(&mut self, other: &Self) {
        if self.model.is_none() {
            self.model.clone_from(&other.model);
        }
        if self.method.is_none() {
            self.method.clone_from(&other.method);
        }
    }
}

/// Requires a label to be short enough.
pub(crate) fn require_short(label: &str) -> Result<()> {
    if label.len() > MAX_LABEL_BYTES {
        let found = label.len();
        let problem = format!("label must be at most {MAX_LABEL_BYTES} bytes of UTF-8, got {found}");
        return Err(Error::OutOfRange(Code::InvalidInput, problem));
    }
    Ok(())
}
