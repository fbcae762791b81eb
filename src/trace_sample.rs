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
use knowledgepulse_json::{Value, json_object};

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

    /// Returns the `most` heaviest words of each trace, in a store of `memory` traces, that about `budget` traces together have, in columns: the
    /// number of the trace, the hash as the signed number of a database, and the share of the squared length of the trace.
    #[napi(catch_unwind)]
    pub fn heaviest(
        &self,
        env: &Env,
        traces: Vec<Uint8ArraySlice>,
        memory: u32,
        most: u32,
        budget: f64,
    ) -> Result<(Uint32Array, BigInt64Array, Float64Array)> {
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
        Ok((
            words.iter().map(|word| word.0).collect::<Vec<_>>().into(),
            words.iter().map(|word| word.1).collect::<Vec<_>>().into(),
            words.iter().map(|word| word.2).collect::<Vec<_>>().into(),
        ))
    }

    /// Compares each of `entries` with the traces among `known` that `candidates` has for it by index, and with the entries before it,
    /// in a store of `memory` traces. Without candidates, with all of the `memory` traces before it, whose words are then counted exactly. Resolves to
    /// the most similar of each in JSON, whose index counts `known` first; null without any.
    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A safe integer, or infinity; it saturates.
    pub fn compare(
        &self,
        known: Vec<Uint8ArraySlice>,
        entries: Vec<Uint8ArraySlice>,
        candidates: Option<Vec<Uint32Array>>,
        memory: f64,
    ) -> AsyncTask<Background<String>> {
        let (known, entries, dimensions) = (copied(&known), copied(&entries), self.dimensions);
        let of_entry = |indexes: &Uint32Array| indexes.iter().map(|index| *index as usize).collect();
        let candidates = candidates.map(|each| each.iter().map(of_entry).collect::<Vec<_>>());
        let sample = Arc::clone(&self.sample);
        background::run(move || {
            let (known, entries) = (unpacked(&known, dimensions)?, unpacked(&entries, dimensions)?);
            let found = match candidates {
                None => compare_with_all(&known, &entries, memory as usize)?,
                Some(candidates) => sample.compare(&known, &entries, &candidates, memory as usize)?,
            };
            let nearest = |(index, similarity): (usize, Similarity)| {
                json_object! {
                    "index": index,
                    "similarity": similarity.value(),
                    "lexical": similarity.lexical,
                    "contained": similarity.contained,
                    "embedded": similarity.embedded,
                }
            };
            let found = found.into_iter().map(|found| found.map_or(Value::Null, nearest));
            Ok(Value::from(found.collect::<Vec<_>>()).to_json())
        })
    }
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
