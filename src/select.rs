//! Choosing traces for JavaScript.

use std::{
    collections::HashMap,
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
use knowledgepulse_json::{Value, json_object};
use knowledgepulse_score::select::{
    self, Candidates, Count, Neighbour, SelectOptions, SelectOutcome, Standing, Unfit,
};
use knowledgepulse_trace::{Trace, digest, label::Label, words::Words};

use crate::{
    background::{self, Background, locked},
    call::NativeCall,
    error::{Result, throw},
    memory::NativeTraceMemory,
    outcomes, trace,
};

/// Returns a number of traces, or a percentage of all.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A safe integer; it saturates.
fn count_of((value, is_percent): (f64, bool)) -> Count {
    match is_percent {
        true => Count::Percent(value),
        false => Count::Number(value as usize),
    }
}

/// The traces to choose from, the ids of those that are known, and their own.
struct Pool {
    candidates: Candidates,
    known: Vec<Option<Label>>,
    own: Vec<Option<Label>>,
}

/// The traces to choose from.
#[napi]
pub struct NativeCandidates {
    pool: Arc<Mutex<Pool>>,
    /// Whether runs succeeded, by the ids of their traces.
    labels: HashMap<String, bool>,
    /// Traces that were read and are not added yet, each with its outcome.
    read: Vec<(Trace, SelectOutcome)>,
    /// How many have an outcome that readers fill in.
    filled_in: usize,
    /// Of how many the neighbours are known.
    compared: Arc<AtomicU32>,
}

#[napi]
impl NativeCandidates {
    /// No candidates, which are compared by this method. `labels` tells whether runs succeeded, by the ids of their traces.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: &Env, method: String, labels: Vec<(String, bool)>) -> Result<Self> {
        let method = Method::of_traces(&method)
            .ok_or_else(|| throw(env, &Error::Internal(format!("there is no method {method:?}"))))?;
        let pool = Pool {
            candidates: Candidates::new(method, Bounds::default().dimensions),
            known: Vec::new(),
            own: Vec::new(),
        };
        Ok(Self {
            pool: Arc::new(Mutex::new(pool)),
            labels: labels.into_iter().collect(),
            read: Vec::new(),
            filled_in: 0,
            compared: Arc::default(),
        })
    }

    /// Adds the traces of a memory, beside which is chosen, as they are when its turn comes. Must come before all others.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn add_known(&self, memory: &NativeTraceMemory, call: &NativeCall) -> AsyncTask<Background<()>> {
        let (pool, memory, call) = (Arc::clone(&self.pool), memory.share(), call.share());
        background::run(move || {
            call.check()?;
            let Memory::Traces { memory, .. } = memory else {
                return Err(Error::Internal("a memory of vectors has no words".into()));
            };
            let mut memory = lock(&memory);
            let contents = memory.contents(Instant::now());
            let known = contents.labels().map(|label| label.cloned()).collect();
            let pool = &mut *locked(&pool);
            pool.known = known;
            pool.candidates = Candidates::beside(&mut memory);
            Ok(())
        })
    }

    /// Reads a trace, which the next call of `add` adds. Returns the text to embed, if embedding was asked for. Throws `ERR_INVALID_TRACE`.
    #[napi(catch_unwind)]
    pub fn read(
        &mut self,
        env: &Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown,
        digested: bool,
    ) -> Result<Option<String>> {
        let mut read = trace::read(env, trace, Some(Method::Full))?;
        let label = read.label.as_deref();
        let success = label.and_then(|label| self.labels.get(label)).copied();
        let noted = trace::noted(env, trace)?;
        if noted.is_none() && success.is_none() && outcomes::is_filled_in(&read) {
            self.filled_in += 1;
        }
        let (is_known, agent) = noted.unwrap_or((true, None));
        let is_known = is_known || success.is_some();
        read.success = success.unwrap_or(read.success);
        let digest = digested.then(|| digest::of(&read));
        let outcome = SelectOutcome {
            is_verified: success.is_some(),
            ..SelectOutcome::of(&read, is_known).of_agent(&agent.unwrap_or_default())
        };
        self.read.push((read, outcome));
        Ok(digest)
    }

    /// Adds the traces that were read, with the embeddings of their digests, if there are some.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn add(&mut self, vectors: Vec<Float32ArraySlice>) -> AsyncTask<Background<()>> {
        let (pool, traces) = (Arc::clone(&self.pool), std::mem::take(&mut self.read));
        let vectors: Vec<_> = vectors.iter().map(|vector| vector.to_vec()).collect();
        background::run(move || {
            let pool = &mut *locked(&pool);
            for (at, (trace, outcome)) in traces.into_iter().enumerate() {
                let entry = TraceEntry {
                    words: &Words::of(&trace),
                    vector: vectors.get(at).map(Vec::as_slice),
                    label: None,
                    model: None,
                };
                pool.candidates.add(entry, outcome, Unfit::of(&trace))?;
                pool.own.push(trace.label);
            }
            Ok(())
        })
    }

    /// Of how many traces the neighbours are known.
    #[napi(getter, catch_unwind)]
    pub fn compared(&self) -> u32 {
        self.compared.load(Ordering::Relaxed)
    }

    /// Chooses traces by numbers or percentages, as the second of each pair says, and lists up to `most_listed` of the traces that each stands for. Resolves to a `Selection` in JSON. Rejects with
    /// `ERR_ABORTED` if the call was cancelled.
    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn select(
        &self,
        count: (f64, bool),
        failures: Option<(f64, bool)>,
        most_listed: u32,
        call: &NativeCall,
    ) -> AsyncTask<Background<String>> {
        let (pool, compared) = (Arc::clone(&self.pool), Arc::clone(&self.compared));
        let (call, told) = (call.share(), outcomes::told_of(self.filled_in));
        let options = SelectOptions {
            count: count_of(count),
            failures: failures.map(count_of),
            threads: 0,
            only_new: false,
            ends: false,
        };
        background::run(move || {
            #[allow(clippy::cast_possible_truncation)] // An array of JavaScript has fewer than 2^32 elements.
            let progress = |count: usize| {
                compared.fetch_max(count as u32, Ordering::Relaxed);
                !call.is_cancelled()
            };
            let pool = &mut *locked(&pool);
            let selection = select::select(&mut pool.candidates, &options, &progress)?;
            let selection = call.complete().then_some(selection).ok_or(Error::Aborted)?;
            Ok(pool.described(selection, most_listed as usize, told).to_json())
        })
    }
}

impl Pool {
    /// Returns the `Selection` of index.d.ts, whose explanation ends with what is told of outcomes.
    fn described(&self, selection: select::Selection, most_listed: usize, told: Option<String>) -> Value {
        let id = |ids: &[Option<Label>], index: usize| ids.get(index)?.as_ref().map(ToString::to_string);
        let nearby = |near: &Neighbour| {
            json_object! {
                "index": near.index,
                "id": id(&self.own, near.index),
                "similarity": near.similarity,
            }
        };
        let chosen = (1_usize..).zip(&selection.chosen).map(|(rank, chosen)| {
            let similar = chosen.stands_for.iter().take(most_listed).map(nearby);
            json_object! {
                "index": chosen.index,
                "id": id(&self.own, chosen.index),
                "rank": rank,
                "reason": chosen.reason.name(),
                "gain": chosen.gain,
                "covered": chosen.covered,
                "nearestBefore": chosen.nearest_before,
                "standsFor": chosen.stands_for.len(),
                "similar": similar.collect::<Value>(),
                "nearestLeft": chosen.nearest_left.as_ref().map(nearby),
            }
        });
        let left = selection.left.iter().map(|left| {
            let (chosen, known) = match &left.standing {
                Standing::Chosen(near) => (Some(nearby(near)), None),
                Standing::Known(near) => {
                    let known =
                        json_object! { "id": id(&self.known, near.index), "similarity": near.similarity };
                    (None, Some(known))
                }
                _ => (None, None),
            };
            json_object! {
                "index": left.index,
                "id": id(&self.own, left.index),
                "chosen": chosen,
                "known": known,
                "unfit": left.unfit.map(Unfit::name),
            }
        });
        json_object! {
            "chosen": chosen.collect::<Value>(),
            "left": left.collect::<Value>(),
            "explanation": [Some(selection.explanation()), told].into_iter().flatten().collect::<Vec<_>>().join("; "),
            "coveredBefore": selection.covered_before,
        }
    }
}
