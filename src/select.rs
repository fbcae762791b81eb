//! Choosing traces for JavaScript.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use napi::{
    Env,
    bindgen_prelude::{AsyncTask, Float32ArraySlice, Unknown},
};
use napi_derive::napi;

use knowledgepulse_error::Error;
use knowledgepulse_index::{
    memory::Memory,
    method::Method,
    options::MemoryOptions as Bounds,
    shared::{SharedMemory, lock},
    traces::TraceEntry,
};
use knowledgepulse_score::select::{
    self, Candidates, Count, Left, Neighbour, Options, Outcome, Standing, Unfit,
};
use knowledgepulse_trace::{Trace, digest, label::Label, words::Words};

use crate::{
    background::{self, Background, locked},
    call::NativeCall,
    error::{Result, throw},
    memory::NativeTraceMemory,
    trace,
};

/// A number of traces, or a percentage of all.
#[napi(object, object_to_js = false)]
#[derive(Clone, Copy)]
pub struct NativeCount {
    pub value: f64,
    /// Whether it is a percentage.
    pub percent: bool,
}

impl From<NativeCount> for Count {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A safe integer; it saturates.
    fn from(count: NativeCount) -> Self {
        if count.percent {
            Self::Percent(count.value)
        } else {
            Self::Number(count.value as usize)
        }
    }
}

/// A trace that is similar to another one.
#[napi(object, object_from_js = false)]
pub struct NativeNearby {
    pub index: u32,
    pub similarity: f64,
}

impl From<Neighbour> for NativeNearby {
    #[allow(clippy::cast_possible_truncation)] // An array of JavaScript has fewer than 2^32 elements.
    fn from(near: Neighbour) -> Self {
        Self {
            index: near.index as u32,
            similarity: near.similarity,
        }
    }
}

/// A trace that was chosen.
#[napi(object, object_from_js = false)]
pub struct NativeChosen {
    pub index: u32,
    /// `coverage` or `failure`.
    pub reason: String,
    /// By how much F grew.
    pub gain: f64,
    /// The part of the largest F that the set covers up to it.
    pub covered: f64,
    /// For how many traces it stands that were not chosen.
    pub stands_for: u32,
    pub similar: Vec<NativeNearby>,
    pub nearest_left: Option<NativeNearby>,
}

/// A trace that was not chosen.
#[napi(object, object_from_js = false)]
pub struct NativeLeft {
    pub index: u32,
    pub chosen: Option<NativeNearby>,
    /// Or the known trace.
    pub known: Option<NativeKnown>,
    /// `no-agent-step`, `one-step` or `no-objective` if it cannot be chosen.
    pub unfit: Option<String>,
}

/// A known trace that stands for another one.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct NativeKnown {
    pub id: Option<String>,
    pub similarity: f64,
}

/// The chosen set.
#[napi(object, object_from_js = false)]
pub struct NativeSelection {
    /// The most valuable first.
    pub chosen: Vec<NativeChosen>,
    /// The others, in their order.
    pub left: Vec<NativeLeft>,
    pub explanation: String,
    /// The part of the largest F that the known traces cover.
    pub covered_before: f64,
}

/// The traces to choose from, and the ids of those that are known.
type SharedCandidates = Arc<Mutex<(Candidates, Vec<Option<Label>>)>>;

/// The features that were read from a trace.
#[napi(object, object_from_js = false)]
pub struct NativeCandidate {
    pub id: Option<String>,
    /// The text to embed, if embedding was asked for.
    pub digest: Option<String>,
}

/// The traces to choose from.
#[napi]
pub struct NativeCandidates {
    candidates: SharedCandidates,
    /// Traces that were read and are not added yet.
    read: Vec<Trace>,
    /// Of how many the neighbours are known.
    compared: Arc<AtomicU32>,
}

#[napi]
impl NativeCandidates {
    /// No candidates, which are compared by this method.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: &Env, method: String) -> Result<Self> {
        let method = Method::of_traces(&method)
            .ok_or_else(|| throw(env, &Error::Internal(format!("there is no method {method:?}"))))?;
        let candidates = Candidates::new(method, Bounds::default().dimensions);
        Ok(Self {
            candidates: Arc::new(Mutex::new((candidates, Vec::new()))),
            read: Vec::new(),
            compared: Arc::default(),
        })
    }

    /// Adds the traces of a memory, beside which is chosen, as they are when its turn comes. Must come before all others.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn add_known(&self, memory: &NativeTraceMemory, call: &NativeCall) -> AsyncTask<Background<()>> {
        let (candidates, memory, call) = (Arc::clone(&self.candidates), memory.share(), call.share());
        background::run(move || {
            if call.is_cancelled() {
                return Err(Error::Aborted);
            }
            let Memory::Traces { memory, .. } = memory else {
                return Err(Error::Internal("a memory of vectors has no words".into()));
            };
            let mut memory = lock(&memory);
            let contents = memory.contents(Instant::now());
            let ids = contents.labels().map(|label| label.cloned()).collect();
            *locked(&candidates) = (Candidates::beside(&mut memory), ids);
            Ok(())
        })
    }

    /// Reads a trace, which the next call of `add` adds; `success` replaces its own. Throws `ERR_INVALID_TRACE`.
    #[napi(catch_unwind)]
    pub fn read(
        &mut self,
        env: &Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown,
        digested: bool,
        success: Option<bool>,
    ) -> Result<NativeCandidate> {
        let mut trace = trace::read(env, trace, Some(Method::Full))?;
        trace.metadata.success = success.unwrap_or(trace.metadata.success);
        let read = NativeCandidate {
            id: trace.label.as_ref().map(ToString::to_string),
            digest: digested.then(|| digest::of(&trace)),
        };
        self.read.push(trace);
        Ok(read)
    }

    /// Adds the traces that were read, each with whether its outcome is known. `vectors` are the embeddings of all digests, one after
    /// another.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn add(
        &mut self,
        known: Vec<bool>,
        #[napi(ts_arg_type = "Float32Array | undefined")] vectors: Option<Float32ArraySlice>,
    ) -> AsyncTask<Background<()>> {
        let (candidates, traces) = (Arc::clone(&self.candidates), std::mem::take(&mut self.read));
        let vectors = vectors.map(|vectors| vectors.to_vec()).unwrap_or_default();
        background::run(move || {
            let candidates = &mut locked(&candidates).0;
            let length = vectors.len() / traces.len().max(1);
            let mut vectors = vectors.chunks(length.max(1));
            for (trace, known) in traces.into_iter().zip(known) {
                let entry = TraceEntry {
                    words: &Words::of(&trace),
                    vector: vectors.next(),
                    label: None,
                    model: None,
                };
                candidates.add(entry, Outcome::of(&trace, known), Unfit::of(&trace))?;
            }
            Ok(())
        })
    }

    /// Of how many traces the neighbours are known.
    #[napi(getter, catch_unwind)]
    pub fn compared(&self) -> u32 {
        self.compared.load(Ordering::Relaxed)
    }

    /// Chooses traces, and lists up to `most_listed` of the traces that each stands for. Rejects with `ERR_ABORTED` if the
    /// call was cancelled.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeSelection>")]
    pub fn select(
        &self,
        count: NativeCount,
        failures: Option<NativeCount>,
        most_listed: u32,
        call: &NativeCall,
    ) -> AsyncTask<Background<NativeSelection>> {
        let (candidates, compared) = (Arc::clone(&self.candidates), Arc::clone(&self.compared));
        let call = call.share();
        let options = Options {
            count: count.into(),
            failures: failures.map(Into::into),
            threads: 0,
            beyond: false,
        };
        background::run(move || {
            #[allow(clippy::cast_possible_truncation)] // An array of JavaScript has fewer than 2^32 elements.
            let progress = |count: usize| {
                compared.fetch_max(count as u32, Ordering::Relaxed);
                !call.is_cancelled()
            };
            let (candidates, ids) = &mut *locked(&candidates);
            let selection = select::select(candidates, &options, &progress)?;
            let selection = call.complete().then_some(selection).ok_or(Error::Aborted)?;
            Ok(NativeSelection::of(selection, ids, most_listed))
        })
    }
}

impl NativeSelection {
    #[allow(clippy::cast_possible_truncation)] // An array of JavaScript has fewer than 2^32 elements.
    fn of(selection: select::Selection, ids: &[Option<Label>], most_listed: u32) -> Self {
        let explanation = selection.explanation();
        let chosen = selection.chosen.into_iter().map(|chosen| NativeChosen {
            index: chosen.index as u32,
            reason: chosen.reason.name().into(),
            gain: chosen.gain,
            covered: chosen.covered,
            stands_for: chosen.stands_for.len() as u32,
            similar: chosen
                .stands_for
                .into_iter()
                .take(most_listed as usize)
                .map(Into::into)
                .collect(),
            nearest_left: chosen.nearest_left.map(Into::into),
        });
        let to_left = |Left {
                           index,
                           standing,
                           unfit,
                       }| NativeLeft {
            index: index as u32,
            unfit: unfit.map(|unfit| unfit.name().into()),
            chosen: match standing {
                Standing::Chosen(near) => Some(near.into()),
                _ => None,
            },
            known: match standing {
                Standing::Known(Some(index), similarity) => Some(NativeKnown {
                    id: ids.get(index).and_then(|id| id.as_ref().map(ToString::to_string)),
                    similarity,
                }),
                _ => None,
            },
        };
        Self {
            chosen: chosen.collect(),
            left: selection.left.into_iter().map(to_left).collect(),
            explanation,
            covered_before: selection.covered_before,
        }
    }
}
