//! Comparing with traces that lie in a store, for JavaScript.

use std::{sync::Arc, time::Instant};

use napi::{
    Env,
    bindgen_prelude::{
        AsyncTask, BigInt64Array, Float64Array, Uint8Array, Uint8ArraySlice, Uint16Array, Uint32Array,
    },
};
use napi_derive::napi;

use knowledgepulse_error as error;
use knowledgepulse_index::{
    method::Method,
    options::MemoryOptions,
    shared::SharedMemory,
    similarity::Similarity,
    traces::{
        SimilarTrace, TraceEntry, TraceMemory,
        postings::CandidateQuery,
        statistics::{PackedTrace, Statistics},
    },
};

use crate::{
    background::{self, Background},
    error::{Result, throw},
    trace_memory::NativeSimilarTrace,
};

/// Statistics of all traces of a store; see `cache::traces::statistics`.
#[napi]
pub struct NativeTraceStatistics {
    statistics: Arc<Statistics>,
    dimensions: usize,
}

/// By which words traces are found, in columns.
#[napi(object)]
pub struct NativeFindingWords {
    /// Which of the traces it is about.
    pub entries: Uint32Array,
    /// The hashes of the words, as the signed numbers of a database.
    pub hashes: BigInt64Array,
    /// How much each counts, in parts of 32,767.
    pub weights: Uint16Array,
    /// A number for each trace with an embedding: P is computed from the traces with the smallest numbers.
    pub draws: Float64Array,
}

#[napi]
impl NativeTraceStatistics {
    /// Returns the statistics of a memory of `memory` traces: the known ones, if there are any, with the words of `traces`,
    /// and with P by `embedded`. Rejects with `ERR_INVALID_ENTRY`.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeTraceStatistics>")]
    pub fn of(
        traces: Vec<Uint8ArraySlice>,
        embedded: Vec<Uint8ArraySlice>,
        memory: u32,
        dimensions: u32,
        known: Option<&NativeTraceStatistics>,
    ) -> AsyncTask<Background<NativeTraceStatistics>> {
        let (traces, embedded, dimensions) = (copied(&traces), copied(&embedded), dimensions as usize);
        let known = known.map(|known| Arc::clone(&known.statistics));
        background::run(move || {
            let traces = unpacked(&traces, 0)?;
            let embedded = unpacked(&embedded, dimensions)?;
            let known = known.unwrap_or_else(|| Arc::new(Statistics::of(&[], 0, dimensions)));
            Ok(Self {
                statistics: Arc::new(known.grown(&traces, &embedded, memory as usize)),
                dimensions,
            })
        })
    }

    /// Returns the statistics in these bytes. Throws `ERR_INVALID_ENTRY`.
    #[napi(catch_unwind)]
    pub fn from_bytes(env: &Env, bytes: Uint8ArraySlice, dimensions: u32) -> Result<Self> {
        let dimensions = dimensions as usize;
        let statistics = Statistics::from_bytes(&bytes, dimensions).map_err(|error| throw(env, &error))?;
        Ok(Self {
            statistics: Arc::new(statistics),
            dimensions,
        })
    }

    /// Returns the statistics as bytes.
    #[napi(catch_unwind)]
    pub fn to_bytes(&self) -> Uint8Array {
        self.statistics.to_bytes().into()
    }

    /// Of how many traces the memory was.
    #[napi(getter, catch_unwind)]
    pub fn memory(&self) -> u32 {
        self.statistics.memory()
    }

    /// How many of the bytes suffice for comparing.
    #[napi(getter, catch_unwind)]
    pub fn common_bytes(&self) -> u32 {
        u32::try_from(self.statistics.common_bytes()).unwrap_or(u32::MAX)
    }

    /// Returns the indexed terms of packed traces, and the terms to search for similar traces: at most `most` for each
    /// trace, with about `budget` postings in all, in a memory of `memory` traces. Rejects with `ERR_INVALID_ENTRY`.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeSought>")]
    pub fn seek(
        &self,
        traces: Vec<Uint8ArraySlice>,
        most: u32,
        budget: f64,
        memory: f64,
    ) -> AsyncTask<Background<NativeSought>> {
        let (traces, dimensions) = (copied(&traces), self.dimensions);
        let statistics = Arc::clone(&self.statistics);
        background::run(move || {
            let traces = unpacked(&traces, dimensions)?;
            let sought = CandidateQuery::of(&traces, &statistics, most as usize, budget, memory);
            let draws = traces.iter().filter_map(|trace| trace.draw().transpose());
            let found = traces.iter().map(|trace| statistics.found_by(&trace.words));
            Ok(NativeSought {
                draws: draws.collect::<error::Result<_>>()?,
                sought: Arc::new(sought),
                found: found.collect(),
            })
        })
    }
}

/// By which words some traces are found, and traces like them are looked for.
#[napi]
pub struct NativeSought {
    sought: Arc<CandidateQuery>,
    found: Vec<Vec<(u64, u16)>>,
    draws: Vec<f64>,
}

#[napi]
impl NativeSought {
    /// The hashes of the words that are looked for, as the signed numbers of a database.
    #[napi(getter, catch_unwind)]
    pub fn words(&self) -> BigInt64Array {
        let hashes: Vec<_> = self.sought.words.iter().map(|hash| hash.cast_signed()).collect();
        hashes.into()
    }

    /// By which words the traces are found.
    #[napi(getter, catch_unwind)]
    pub fn found(&self) -> NativeFindingWords {
        let words = || {
            (0..)
                .zip(&self.found)
                .flat_map(|(entry, words)| words.iter().map(move |word| (entry, word)))
        };
        let entries: Vec<u32> = words().map(|(entry, _)| entry).collect();
        let hashes: Vec<_> = words().map(|(_, (hash, _))| hash.cast_signed()).collect();
        let weights: Vec<_> = words().map(|(_, &(_, weight))| weight).collect();
        NativeFindingWords {
            entries: entries.into(),
            hashes: hashes.into(),
            weights: weights.into(),
            draws: self.draws.clone().into(),
        }
    }

    /// Returns for each trace the `count` best candidate positions from `lowest` to before `end`, the best first. Reads the
    /// postings of the words in blocks of `block` positions; `cache::traces::postings` describes their bytes. Rejects with
    /// `ERR_INVALID_ENTRY`.
    #[napi(catch_unwind, ts_return_type = "Promise<Float64Array[]>")]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Safe integers; they saturate.
    pub fn candidates(
        &self,
        postings: Uint8ArraySlice,
        block: u32,
        lowest: f64,
        end: f64,
        count: u32,
    ) -> AsyncTask<Background<Vec<Float64Array>>> {
        let (sought, postings) = (Arc::clone(&self.sought), postings.to_vec());
        let positions = lowest as u64..end as u64;
        #[allow(clippy::cast_precision_loss)] // Safe integers.
        let numbers = |positions: Vec<u64>| -> Float64Array {
            let numbers = positions.into_iter().map(|position| position as f64);
            numbers.collect::<Vec<_>>().into()
        };
        background::run(move || {
            let candidates = sought.candidates(&postings, block, &positions, count as usize)?;
            Ok(candidates.into_iter().map(numbers).collect())
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

/// Compares each of `entries` with the `known` traces that `candidates` names by index, and with at most `most_before` of
/// the entries right before it, whose indexes follow those of the known traces. Resolves to the `count` most similar for
/// each entry; of equally similar traces, the one with the smaller index first. `memory` is the current number of traces in
/// the memory. Without statistics, each entry is compared with the newest `most_before` traces before it, exactly as a
/// `TraceMemory` does. Rejects with `ERR_INVALID_ENTRY`.
#[napi(catch_unwind, ts_return_type = "Promise<NativeSimilarTrace[][]>")]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Safe integers; they saturate.
#[allow(clippy::too_many_arguments)] // JavaScript has no structs.
pub fn compare_packed(
    known: Vec<Uint8ArraySlice>,
    entries: Vec<Uint8ArraySlice>,
    dimensions: u32,
    most_before: f64,
    count: u32,
    memory: f64,
    statistics: Option<&NativeTraceStatistics>,
    candidates: Option<Vec<Uint32Array>>,
) -> AsyncTask<Background<Vec<Vec<NativeSimilarTrace>>>> {
    let (known, entries) = (copied(&known), copied(&entries));
    let statistics = statistics.map(|known| Arc::clone(&known.statistics));
    let candidates = candidates.unwrap_or_default();
    let comparison = Comparison {
        dimensions: dimensions as usize,
        most_before: most_before as usize,
        count: count as usize,
        memory: memory as usize,
        candidates: candidates.iter().map(|indexes| indexes.to_vec()).collect(),
    };
    background::run(move || {
        let known = unpacked(&known, comparison.dimensions)?;
        let entries = unpacked(&entries, comparison.dimensions)?;
        let found = match &statistics {
            Some(statistics) => comparison.compare(&known, &entries, statistics),
            None => comparison.compare_all(&known, &entries),
        };
        let shown = |found: Vec<SimilarTrace>| found.into_iter().map(NativeSimilarTrace::from).collect();
        Ok(found?.into_iter().map(shown).collect())
    })
}

/// How packed traces are compared.
struct Comparison {
    dimensions: usize,
    most_before: usize,
    count: usize,
    memory: usize,
    candidates: Vec<Vec<u32>>,
}

impl Comparison {
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
        let options = MemoryOptions {
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
        let weighed = statistics.weigh(known, entries, self.memory)?;
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
