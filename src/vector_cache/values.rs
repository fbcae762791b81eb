//! The values that a cache and JavaScript exchange.

use napi_derive::napi;

use knowledgepulse_error::{self as error, Error};
use knowledgepulse_index::{
    memory::{Nearest, Novelty},
    options::{MemoryOptions, ModelIdentity, Origin},
    persist::{milliseconds, time_to_live},
    shared::SharedMemory,
    similarity::Similarity,
    vectors::{Neighbour, VectorCache, VectorEntry},
};
use knowledgepulse_trace::label::Label;

/// An entry of a call, whose vectors come in one array.
#[napi(object, object_to_js = false)]
pub struct NativeEntry {
    pub label: Option<String>,
    pub vectors: u32,
}

/// A vector that is similar to a query.
#[napi(object)]
pub struct NativeNeighbour {
    /// How many living vectors are older.
    pub index: f64,
    pub similarity: f64,
    pub label: Option<String>,
}

/// The nearest entry of a store to a vector or a trace.
#[napi(object, use_nullable = true)]
pub struct NativeStoredNeighbour {
    pub label: Option<String>,
    /// The cosine similarity of vectors; for traces, the combined similarity.
    pub similarity: f64,
    pub lexical: Option<f64>,
    pub contained: Option<f64>,
    pub embedded: Option<f64>,
}

impl NativeStoredNeighbour {
    /// Returns the novelty of the nearest entry's trace.
    pub(crate) fn novelty(self) -> Novelty {
        let label = self.label.map(Label::from);
        let parts = self.lexical.zip(self.contained);
        Novelty::of_nearest(Some(match parts {
            Some((lexical, contained)) => {
                let embedded = self.embedded;
                let parts = Similarity {
                    lexical,
                    contained,
                    embedded,
                };
                Nearest::trace(label, parts)
            }
            None => Nearest::vector(label, self.similarity),
        }))
    }
}

/// The model that vectors come from.
#[napi(object)]
pub struct NativeModelIdentity {
    pub model: String,
    pub dtype: String,
}

/// Entries that were copied from JavaScript.
pub(super) struct Batch {
    vectors: Vec<f32>,
    /// The label of each entry, and how many vectors it has.
    entries: Vec<(Option<Label>, usize)>,
    origin: Origin,
}

impl Batch {
    pub(super) fn new(vectors: &[f32], entries: Vec<NativeEntry>, origin: Origin) -> Self {
        let entries = entries.into_iter();
        Self {
            vectors: vectors.to_vec(),
            entries: entries
                .map(|entry| (entry.label.map(Label::from), entry.vectors as usize))
                .collect(),
            origin,
        }
    }

    /// Calls `act` with the entries for a cache of vectors as long as these.
    pub(super) fn with<T>(
        &self,
        cache: &mut VectorCache,
        act: impl FnOnce(&mut VectorCache, &[VectorEntry]) -> error::Result<T>,
    ) -> error::Result<T> {
        let vectors: Vec<&[f32]> = self.vectors.chunks(cache.options().dimensions).collect();
        let mut rest = vectors.as_slice();
        let mut entries = Vec::new();
        for (label, count) in &self.entries {
            let (own, others) = rest
                .split_at_checked(*count)
                .ok_or_else(|| Error::Internal("an entry has fewer vectors than it says".into()))?;
            rest = others;
            entries.push(VectorEntry {
                vectors: own,
                label: label.as_ref(),
                origin: &self.origin,
            });
        }
        act(cache, &entries)
    }
}

pub(super) fn origin(model: NativeModelIdentity, method: Option<String>) -> Origin {
    Origin {
        model: Some(model.into()),
        method,
    }
}

impl From<NativeModelIdentity> for ModelIdentity {
    fn from(NativeModelIdentity { model, dtype }: NativeModelIdentity) -> Self {
        Self {
            model,
            dtype,
            sha256: None,
        }
    }
}

impl From<Neighbour> for NativeNeighbour {
    #[allow(clippy::cast_precision_loss)] // No cache holds 2^53 vectors.
    fn from(neighbour: Neighbour) -> Self {
        Self {
            index: neighbour.index as f64,
            similarity: neighbour.similarity,
            label: neighbour.label.map(|label| label.to_string()),
        }
    }
}

impl From<Neighbour> for NativeStoredNeighbour {
    fn from(neighbour: Neighbour) -> Self {
        Self {
            label: neighbour.label.map(|label| label.to_string()),
            similarity: neighbour.similarity,
            lexical: None,
            contained: None,
            embedded: None,
        }
    }
}

impl From<ModelIdentity> for NativeModelIdentity {
    fn from(identity: ModelIdentity) -> Self {
        Self {
            model: identity.model,
            dtype: identity.dtype,
        }
    }
}

/// The bounds of a memory, which never change.
#[napi(object)]
pub struct NativeBounds {
    pub max_elements: f64,
    pub dimensions: f64,
    /// How many milliseconds each lives; infinity for ever.
    pub ttl_ms: f64,
}

#[allow(clippy::cast_precision_loss)] // No memory holds 2^53 vectors.
impl From<MemoryOptions> for NativeBounds {
    fn from(options: MemoryOptions) -> Self {
        Self {
            max_elements: options.max_elements as f64,
            dimensions: options.dimensions as f64,
            ttl_ms: options.time_to_live.map_or(f64::INFINITY, milliseconds),
        }
    }
}

/// The numbers are non-negative.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Safe integers; they saturate.
impl From<NativeBounds> for MemoryOptions {
    fn from(bounds: NativeBounds) -> Self {
        Self {
            max_elements: bounds.max_elements as usize,
            dimensions: (bounds.dimensions as usize).max(1),
            time_to_live: time_to_live(bounds.ttl_ms),
        }
    }
}
