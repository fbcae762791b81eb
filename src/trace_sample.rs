//! Comparing with traces that lie in a store, for JavaScript.

use std::sync::Arc;

use napi::{
    Env,
    bindgen_prelude::{AsyncTask, BigInt64Array, Float64Array, Uint8ArraySlice, Uint32Array},
};
use napi_derive::napi;

use knowledgepulse_error as error;
use knowledgepulse_index::{
    similarity::Similarity,
    traces::stored::{PackedTrace, TraceSample, compare_with_all},
};

use crate::{
    background::{self, Background},
    error::{Result, throw},
};

/// The document frequencies, and P, of a sample of a store's traces.
#[napi]
pub struct NativeTraceSample {
    sample: Arc<TraceSample>,
    dimensions: usize,
}

/// Words of traces, in columns.
#[napi(object)]
pub struct NativeHeaviestWords {
    /// Which trace each word is of.
    pub entries: Uint32Array,
    /// The hashes, as the signed numbers of a database.
    pub hashes: BigInt64Array,
    /// Their shares of the squared length of the trace.
    pub shares: Float64Array,
}

/// A trace that is similar to an entry.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct NativeSimilarTrace {
    pub index: u32,
    pub similarity: f64,
    pub lexical: f64,
    pub contained: f64,
    pub embedded: Option<f64>,
}

impl From<(usize, Similarity)> for NativeSimilarTrace {
    #[allow(clippy::cast_possible_truncation)] // An array of JavaScript has fewer than 2^32 elements.
    fn from((index, similarity): (usize, Similarity)) -> Self {
        Self {
            index: index as u32,
            similarity: similarity.value(),
            lexical: similarity.lexical,
            contained: similarity.contained,
            embedded: similarity.embedded,
        }
    }
}

#[napi]
impl NativeTraceSample {
    /// Returns the sample of packed traces with embeddings of `dimensions` components. Rejects with `ERR_STORE` for damaged bytes.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeTraceSample>")]
    pub fn of(traces: Vec<Uint8ArraySlice>, dimensions: u32) -> AsyncTask<Background<NativeTraceSample>> {
        let (traces, dimensions) = (copied(&traces), dimensions as usize);
        background::run(move || {
            Ok(Self {
                sample: Arc::new(TraceSample::of(&unpacked(&traces, dimensions)?)),
                dimensions,
            })
        })
    }

    /// Returns the `most` heaviest words of each trace, in a store of `memory` traces, that about `budget` traces together have.
    #[napi(catch_unwind)]
    pub fn heaviest(
        &self,
        env: &Env,
        traces: Vec<Uint8ArraySlice>,
        memory: u32,
        most: u32,
        budget: f64,
    ) -> Result<NativeHeaviestWords> {
        let traces = unpacked(&copied(&traces), self.dimensions).map_err(|error| throw(env, &error))?;
        let heaviest = |trace: &PackedTrace| {
            self.sample
                .heaviest(&trace.words, memory as usize, most as usize, budget)
        };
        let words = (0..).zip(&traces).flat_map(|(entry, trace)| {
            let words = heaviest(trace).into_iter();
            words.map(move |(hash, share)| (entry, hash.cast_signed(), share))
        });
        let words: Vec<(u32, i64, f64)> = words.collect();
        Ok(NativeHeaviestWords {
            entries: words.iter().map(|word| word.0).collect::<Vec<_>>().into(),
            hashes: words.iter().map(|word| word.1).collect::<Vec<_>>().into(),
            shares: words.iter().map(|word| word.2).collect::<Vec<_>>().into(),
        })
    }

    /// Compares each of `entries` with the traces among `known` that `candidates` has for it by index, and with the entries before it,
    /// in a store of `memory` traces. Resolves to the most similar of each, whose index counts `known` first; null without any.
    #[napi(catch_unwind, ts_return_type = "Promise<(NativeSimilarTrace | null)[]>")]
    pub fn compare(
        &self,
        known: Vec<Uint8ArraySlice>,
        entries: Vec<Uint8ArraySlice>,
        candidates: Vec<Uint32Array>,
        memory: u32,
    ) -> AsyncTask<Background<Vec<Option<NativeSimilarTrace>>>> {
        let (known, entries, dimensions) = (copied(&known), copied(&entries), self.dimensions);
        let candidates = candidates.iter();
        let candidates: Vec<Vec<usize>> = candidates
            .map(|indexes| indexes.iter().map(|index| *index as usize).collect())
            .collect();
        let sample = Arc::clone(&self.sample);
        background::run(move || {
            let (known, entries) = (unpacked(&known, dimensions)?, unpacked(&entries, dimensions)?);
            let found = sample.compare(&known, &entries, &candidates, memory as usize)?;
            Ok(each_shown(found))
        })
    }
}

/// Compares each of `entries` with all of the `max_elements` traces before it, among `known` and the entries. Resolves to the most similar of each,
/// whose index counts `known` first; null without any. Rejects with `ERR_STORE` for damaged bytes.
#[napi(catch_unwind, ts_return_type = "Promise<(NativeSimilarTrace | null)[]>")]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A safe integer, or infinity; it saturates.
pub fn compare_stored(
    known: Vec<Uint8ArraySlice>,
    entries: Vec<Uint8ArraySlice>,
    dimensions: u32,
    max_elements: f64,
) -> AsyncTask<Background<Vec<Option<NativeSimilarTrace>>>> {
    let (known, entries, dimensions) = (copied(&known), copied(&entries), dimensions as usize);
    background::run(move || {
        let (known, entries) = (unpacked(&known, dimensions)?, unpacked(&entries, dimensions)?);
        let found = compare_with_all(&known, &entries, max_elements as usize)?;
        Ok(each_shown(found))
    })
}

fn each_shown(found: Vec<Option<(usize, Similarity)>>) -> Vec<Option<NativeSimilarTrace>> {
    let found = found.into_iter();
    found
        .map(|nearest| nearest.map(NativeSimilarTrace::from))
        .collect()
}

fn copied(traces: &[Uint8ArraySlice]) -> Vec<Vec<u8>> {
    traces.iter().map(|trace| trace.to_vec()).collect()
}

fn unpacked(traces: &[Vec<u8>], dimensions: usize) -> error::Result<Vec<PackedTrace>> {
    traces
        .iter()
        .map(|trace| PackedTrace::unpack(trace, dimensions))
        .collect()
}
