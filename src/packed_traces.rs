//! Comparing with traces that lie in a store, for JavaScript.

use std::{ops::Range, sync::Arc, time::Instant};

use napi::{
    Env, Task,
    bindgen_prelude::{
        AsyncTask, BigInt64Array, Float64Array, Uint8Array, Uint8ArraySlice, Uint16Array, Uint32Array,
    },
};
use napi_derive::napi;

use knowledgepulse_error::{self as error, guarded};
use knowledgepulse_index::{
    method::Method,
    similarity::Similarity,
    traces::{
        SimilarTrace, TraceEntry, TraceMemory,
        postings::CandidateQuery,
        statistics::{PackedTrace, Statistics},
    },
    vectors::Options,
};

use crate::{
    error::{Result, rejection, throw},
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
    ) -> AsyncTask<Gather> {
        AsyncTask::new(Gather {
            traces: copied(&traces),
            embedded: copied(&embedded),
            memory: memory as usize,
            dimensions: dimensions as usize,
            known: known.map(|known| Arc::clone(&known.statistics)),
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
    pub fn seek(&self, traces: Vec<Uint8ArraySlice>, most: u32, budget: f64, memory: f64) -> AsyncTask<Seek> {
        AsyncTask::new(Seek {
            traces: copied(&traces),
            statistics: Arc::clone(&self.statistics),
            dimensions: self.dimensions,
            most: most as usize,
            budget,
            memory,
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
    ) -> AsyncTask<Promising> {
        AsyncTask::new(Promising {
            sought: Arc::clone(&self.sought),
            postings: postings.to_vec(),
            block,
            positions: lowest as u64..end as u64,
            count: count as usize,
        })
    }
}

/// Choosing words, away from the event loop.
pub struct Seek {
    traces: Vec<Vec<u8>>,
    statistics: Arc<Statistics>,
    dimensions: usize,
    most: usize,
    budget: f64,
    memory: f64,
}

impl Task for Seek {
    type Output = error::Result<NativeSought>;
    type JsValue = NativeSought;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(guarded(|| {
            let traces = unpacked(&self.traces, self.dimensions)?;
            let sought = CandidateQuery::of(&traces, &self.statistics, self.most, self.budget, self.memory);
            let draws = traces.iter().filter_map(|trace| trace.draw().transpose());
            Ok(NativeSought {
                draws: draws.collect::<error::Result<_>>()?,
                sought: Arc::new(sought),
                found: traces
                    .iter()
                    .map(|trace| self.statistics.found_by(&trace.words))
                    .collect(),
            })
        }))
    }

    fn resolve(&mut self, env: Env, sought: Self::Output) -> Result<NativeSought> {
        sought.map_err(|error| rejection(env, &error))
    }
}

/// Choosing candidates, away from the event loop.
pub struct Promising {
    sought: Arc<CandidateQuery>,
    postings: Vec<u8>,
    block: u32,
    positions: Range<u64>,
    count: usize,
}

impl Task for Promising {
    type Output = error::Result<Vec<Vec<u64>>>;
    type JsValue = Vec<Float64Array>;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(guarded(|| {
            self.sought
                .candidates(&self.postings, self.block, &self.positions, self.count)
        }))
    }

    #[allow(clippy::cast_precision_loss)] // Safe integers.
    fn resolve(&mut self, env: Env, candidates: Self::Output) -> Result<Vec<Float64Array>> {
        let candidates = candidates.map_err(|error| rejection(env, &error))?;
        let numbers = |positions: Vec<u64>| {
            positions
                .into_iter()
                .map(|position| position as f64)
                .collect::<Vec<_>>()
                .into()
        };
        Ok(candidates.into_iter().map(numbers).collect())
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
    embedded: Vec<Vec<u8>>,
    memory: usize,
    dimensions: usize,
    known: Option<Arc<Statistics>>,
}

impl Task for Gather {
    type Output = error::Result<Statistics>;
    type JsValue = NativeTraceStatistics;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(guarded(|| {
            let traces = unpacked(&self.traces, 0)?;
            let embedded = unpacked(&self.embedded, self.dimensions)?;
            let none = || Arc::new(Statistics::of(&[], 0, self.dimensions));
            let known = self.known.clone().unwrap_or_else(none);
            Ok(known.grown(&traces, &embedded, self.memory))
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
) -> AsyncTask<ComparePacked> {
    let candidates = candidates.unwrap_or_default();
    AsyncTask::new(ComparePacked {
        known: copied(&known),
        entries: copied(&entries),
        dimensions: dimensions as usize,
        most_before: most_before as usize,
        count: count as usize,
        memory: memory as usize,
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
    memory: usize,
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

impl Task for ComparePacked {
    type Output = error::Result<Vec<Vec<SimilarTrace>>>;
    type JsValue = Vec<Vec<NativeSimilarTrace>>;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(guarded(|| {
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
