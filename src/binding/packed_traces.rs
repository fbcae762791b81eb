//! Comparing with traces that lie in a store, for JavaScript.

use std::{sync::Arc, time::Instant};

use napi::{
    Env, Task,
    bindgen_prelude::{AsyncTask, BigInt64Array, Float64Array, Uint8Array, Uint8ArraySlice, Uint32Array},
};
use napi_derive::napi;

use super::{
    error::{Result, rejection, throw},
    trace_memory::NativeSimilarTrace,
    vector_cache::without_panic,
};
use crate::{
    cache::{
        Options,
        traces::{
            Method, SimilarTrace, TraceEntry, TraceMemory,
            statistics::{PackedTrace, Statistics},
        },
    },
    error,
    novelty::Similarity,
};

/// What is known of all traces of a store together; see `cache::traces::statistics`.
#[napi]
pub struct NativeTraceStatistics {
    statistics: Arc<Statistics>,
    dimensions: usize,
}

/// Words by which a trace is found or looked for.
#[napi(object)]
pub struct NativeFindingWords {
    /// Their hashes, as the signed numbers of a database.
    pub hashes: BigInt64Array,
    /// How much each counts. The products of the weights that two traces have in common add up to about L.
    pub weights: Float64Array,
}

impl From<Vec<(u64, f64)>> for NativeFindingWords {
    fn from(words: Vec<(u64, f64)>) -> Self {
        let hashes: Vec<_> = words.iter().map(|(hash, _)| hash.cast_signed()).collect();
        let weights: Vec<_> = words.iter().map(|(_, weight)| *weight).collect();
        Self {
            hashes: hashes.into(),
            weights: weights.into(),
        }
    }
}

#[napi]
impl NativeTraceStatistics {
    /// The statistics of a memory of `memory` traces by a sample: of packed traces with embeddings of so many `dimensions`, and of the
    /// packed words of others, whose embeddings do not count. Rejects with `ERR_INVALID_ENTRY`.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeTraceStatistics>")]
    pub fn of(
        traces: Vec<Uint8ArraySlice>,
        others: Vec<Uint8ArraySlice>,
        memory: u32,
        dimensions: u32,
    ) -> AsyncTask<Gather> {
        AsyncTask::new(Gather {
            traces: copied(&traces),
            others: copied(&others),
            memory: memory as usize,
            dimensions: dimensions as usize,
        })
    }

    /// The statistics in these bytes. Throws `ERR_INVALID_ENTRY`.
    #[napi(catch_unwind)]
    pub fn from_bytes(env: &Env, bytes: Uint8ArraySlice, dimensions: u32) -> Result<Self> {
        let dimensions = dimensions as usize;
        let statistics = Statistics::from_bytes(&bytes, dimensions).map_err(|error| throw(env, &error))?;
        Ok(Self {
            statistics: Arc::new(statistics),
            dimensions,
        })
    }

    /// The statistics as bytes.
    #[napi(catch_unwind)]
    pub fn to_bytes(&self) -> Uint8Array {
        self.statistics.to_bytes().into()
    }

    /// Of how many traces the memory was.
    #[napi(getter, catch_unwind)]
    pub fn memory(&self) -> u32 {
        self.statistics.memory()
    }

    /// The words by which a packed trace is found. Throws `ERR_INVALID_ENTRY`.
    #[napi(catch_unwind)]
    pub fn found_by(&self, env: &Env, trace: Uint8ArraySlice) -> Result<NativeFindingWords> {
        let trace = PackedTrace::unpack(&trace, self.dimensions).map_err(|error| throw(env, &error))?;
        Ok(self.statistics.found_by(&trace.words).into())
    }

    /// The words by which traces like a packed one are looked for: at most `most`, of which about `budget` traces are found in all, in a
    /// memory of `memory` traces. Throws `ERR_INVALID_ENTRY`.
    #[napi(catch_unwind)]
    pub fn looked_for_by(
        &self,
        env: &Env,
        trace: Uint8ArraySlice,
        most: u32,
        budget: f64,
        memory: f64,
    ) -> Result<NativeFindingWords> {
        let trace = PackedTrace::unpack(&trace, self.dimensions).map_err(|error| throw(env, &error))?;
        let words = self
            .statistics
            .looked_for_by(&trace.words, most as usize, budget, memory);
        Ok(words.into())
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

/// Making statistics, away from the event loop.
pub struct Gather {
    traces: Vec<Vec<u8>>,
    others: Vec<Vec<u8>>,
    memory: usize,
    dimensions: usize,
}

impl Task for Gather {
    type Output = error::Result<Statistics>;
    type JsValue = NativeTraceStatistics;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(without_panic(|| {
            let mut traces = unpacked(&self.traces, self.dimensions)?;
            traces.extend(unpacked(&self.others, 0)?);
            Ok(Statistics::of(&traces, self.memory, self.dimensions))
        }))
    }

    fn resolve(&mut self, env: Env, statistics: Self::Output) -> Result<NativeTraceStatistics> {
        let statistics = statistics.map_err(|error| rejection(env, &error))?;
        Ok(NativeTraceStatistics {
            statistics: Arc::new(statistics),
            dimensions: self.dimensions,
        })
    }
}

/// Compares each of `entries` with the `known` traces that `candidates` names by their indexes, and with at most `most_before` of the
/// entries right before it, whose indexes go on where those of the known traces end. Resolves to the `count` most similar for each,
/// of equally similar ones the one with the smaller index first. Without statistics each entry is compared with all before it, of which
/// the newest `most_before` count, exactly as a `TraceMemory` does. Rejects with `ERR_INVALID_ENTRY`.
#[napi(catch_unwind, ts_return_type = "Promise<NativeSimilarTrace[][]>")]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A safe integer; it saturates.
pub fn compare_packed(
    known: Vec<Uint8ArraySlice>,
    entries: Vec<Uint8ArraySlice>,
    dimensions: u32,
    most_before: f64,
    count: u32,
    statistics: Option<&NativeTraceStatistics>,
    candidates: Option<Vec<Uint32Array>>,
) -> AsyncTask<ComparePacked> {
    let candidates = candidates.unwrap_or_default();
    AsyncTask::new(ComparePacked {
        known: copied(&known),
        entries: copied(&entries),
        dimensions: dimensions as usize,
        most_before: most_before as usize,
        count: count as usize,
        statistics: statistics.map(|known| Arc::clone(&known.statistics)),
        candidates: candidates.iter().map(|indexes| indexes.to_vec()).collect(),
    })
}

/// Comparing with traces of a store, away from the event loop.
pub struct ComparePacked {
    known: Vec<Vec<u8>>,
    entries: Vec<Vec<u8>>,
    dimensions: usize,
    most_before: usize,
    count: usize,
    statistics: Option<Arc<Statistics>>,
    candidates: Vec<Vec<u32>>,
}

impl ComparePacked {
    /// As a memory does that has remembered `known`.
    fn compare_all(
        &self,
        known: &[PackedTrace],
        entries: &[PackedTrace],
    ) -> error::Result<Vec<Vec<SimilarTrace>>> {
        let method = if self.dimensions > 0 {
            Method::Full
        } else {
            Method::Lexical
        };
        let options = Options {
            max_elements: self.most_before,
            dimensions: self.dimensions.max(1),
            time_to_live: None,
        };
        let now = Instant::now();
        let mut memory = TraceMemory::new(method, options);
        let known: Vec<_> = known.iter().map(entry_of).collect();
        memory.add_batch(&known, now)?;
        let compare = |trace: &PackedTrace| {
            let departed = usize::try_from(memory.sequence(now).start).unwrap_or(usize::MAX);
            let mut nearest = memory.nearest(entry_of(trace), self.count, now)?;
            for found in &mut nearest {
                found.index += departed;
            }
            memory.add(entry_of(trace), now)?;
            Ok(nearest)
        };
        entries.iter().map(compare).collect()
    }

    fn compare(
        &self,
        known: &[PackedTrace],
        entries: &[PackedTrace],
        statistics: &Statistics,
    ) -> error::Result<Vec<Vec<SimilarTrace>>> {
        let weighed = known.iter().chain(entries).map(|trace| statistics.weigh(trace));
        let weighed: Vec<_> = weighed.collect::<error::Result<_>>()?;
        let compare = |index: usize| {
            let own = known.len() + index;
            let query = statistics.query(&weighed[own]);
            let candidates = self.candidates.get(index).map(Vec::as_slice).unwrap_or_default();
            let candidates = candidates
                .iter()
                .map(|&index| index as usize)
                .filter(|&index| index < known.len());
            let before = known.len().max(own.saturating_sub(self.most_before))..own;
            let mut found: Vec<(usize, Similarity)> = candidates
                .chain(before)
                .map(|index| (index, query.compare(&weighed[index])))
                .collect();
            found.sort_by(|(index, one), (other, two)| {
                two.value().total_cmp(&one.value()).then(index.cmp(other))
            });
            found.truncate(self.count);
            let similar = |(index, similarity)| SimilarTrace {
                index,
                similarity,
                label: None,
            };
            found.into_iter().map(similar).collect()
        };
        Ok((0..entries.len()).map(compare).collect())
    }
}

fn entry_of(trace: &PackedTrace) -> TraceEntry<'_> {
    TraceEntry {
        words: &trace.words,
        vector: Some(&trace.vector),
        label: None,
        model: None,
    }
}

impl Task for ComparePacked {
    type Output = error::Result<Vec<Vec<SimilarTrace>>>;
    type JsValue = Vec<Vec<NativeSimilarTrace>>;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(without_panic(|| {
            let known = unpacked(&self.known, self.dimensions)?;
            let entries = unpacked(&self.entries, self.dimensions)?;
            match &self.statistics {
                Some(statistics) => self.compare(&known, &entries, statistics),
                None => self.compare_all(&known, &entries),
            }
        }))
    }

    fn resolve(&mut self, env: Env, found: Self::Output) -> Result<Vec<Vec<NativeSimilarTrace>>> {
        let found = found.map_err(|error| rejection(env, &error))?;
        let shown = |found: Vec<SimilarTrace>| found.into_iter().map(NativeSimilarTrace::from).collect();
        Ok(found.into_iter().map(shown).collect())
    }
}
