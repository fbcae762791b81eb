//! The traces to choose from.

use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    time::Instant,
};

use knowledgepulse_error::{Result, named};
use knowledgepulse_index::{
    method::Method,
    options::MemoryOptions as Bounds,
    scan::Neighbour,
    shared::SharedMemory,
    traces::{TraceEntry, TraceMemory, join::Neighbours},
};
use knowledgepulse_trace::{OBJECTIVE_OF_FIRST_STEP, Trace, signs::Signs};

use super::{FAILURE, NEIGHBOURS, Selection, Standing};

/// How many traces are compared: they take 0.8 GB, and their join takes a minute on two cores. See DESIGN.md.
const MOST_COMPARED: usize = 100_000;

/// How a run ended, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelectOutcome {
    /// Whether it succeeded; `None` if nobody said.
    pub success: Option<bool>,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// Whether a verifier or the user said so, so that the outcomes of similar traces say nothing about it.
    pub is_verified: bool,
    /// What stands for the outcome while it is unknown.
    pub signs: Signs,
    /// Identifies the agent: signs are compared among runs of one agent, because readers cut their steps differently.
    pub agent: u64,
}

impl SelectOutcome {
    /// Reads the outcome of a trace; `known` tells whether its success was recorded.
    #[must_use]
    pub fn of(trace: &Trace, known: bool) -> Self {
        Self {
            success: known.then_some(trace.success),
            confidence: trace.confidence,
            is_verified: false,
            signs: Signs::of(trace),
            agent: 0,
        }
    }

    /// Returns the outcome as that of a run of this agent.
    #[must_use]
    pub fn of_agent(self, name: &str) -> Self {
        let agent = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        Self { agent, ..self }
    }

    /// Returns what the outcome was told to be worth: [`None`] where the success is unknown.
    pub(super) fn told(self) -> Option<f64> {
        self.success
            .map(|success| self.confidence * if success { 1.0 } else { FAILURE })
    }
}

named! {
    /// Why a trace is not fit to be shared, with the reason's name in results: nobody can learn from it.
    pub enum Unfit {
        /// It has observations alone, or nothing.
        NoAgentStep = "no-agent-step",
        /// It has one step.
        OneStep = "one-step",
        /// It does not say what was to be done.
        NoObjective = "no-objective",
        /// It is of a sub-agent whose session is there: it goes with that.
        SubAgent = "sub-agent",
    }
}

impl Unfit {
    /// Returns why a trace is unfit; `None` if it is fit.
    #[must_use]
    pub fn of(trace: &Trace) -> Option<Self> {
        if trace.steps.iter().all(|step| step.kind == "observation") {
            return Some(Self::NoAgentStep);
        }
        if trace.steps.len() == 1 {
            return Some(Self::OneStep);
        }
        let objective = trace.objective.trim_start();
        let is_derived = objective.is_empty() || objective.starts_with(OBJECTIVE_OF_FIRST_STEP);
        is_derived.then_some(Self::NoObjective)
    }

    /// Completes "3 of 20 unfit to be shared: 3 ...".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NoAgentStep => "without a step of the agent",
            Self::OneStep => "of one step",
            Self::NoObjective => "without an objective",
            Self::SubAgent => "of sub-agents, which go with their sessions",
        }
    }
}

/// A sample of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    /// How many traces it has.
    pub size: usize,
    /// Of how many.
    pub seen: usize,
}

/// A candidate beside its words.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// How many candidates were added before it.
    index: usize,
    outcome: SelectOutcome,
    unfit: Option<Unfit>,
}

/// The traces to choose from, with the traces that are shared already. More than [`MOST_COMPARED`] become a uniform sample.
#[derive(Debug)]
pub struct Candidates {
    /// The traces that are shared already.
    shared: TraceMemory,
    /// These, and the candidates after them.
    memory: TraceMemory,
    /// How many traces are shared already.
    known: usize,
    held: Vec<Held>,
    added: usize,
    /// Of 2 to this power candidates one is held.
    level: u32,
    /// How many are compared at most.
    pub(super) most: usize,
}

impl Candidates {
    /// Returns an empty list of candidates, which are compared by `method`. `dimensions` are the dimensions of the
    /// embeddings.
    #[must_use]
    pub fn new(method: Method, dimensions: usize) -> Self {
        let bounds = Bounds {
            dimensions,
            ..Bounds::default()
        };
        Self::beside(&mut TraceMemory::new(method, bounds))
    }

    /// No candidates, beside the traces of a memory, by whose method they are compared.
    #[must_use]
    pub fn beside(known: &mut TraceMemory) -> Self {
        let size = known.len(Instant::now());
        let shared = known.clone().unbounded();
        Self {
            known: size,
            memory: shared.clone(),
            shared,
            held: Vec::new(),
            added: 0,
            level: 0,
            most: MOST_COMPARED,
        }
    }

    /// Notes that a candidate is unfit, by how many were added before it. Such runs are compared among themselves.
    pub fn leave_out(&mut self, index: usize, unfit: Unfit) {
        if let Ok(at) = self.held.binary_search_by_key(&index, |held| held.index) {
            let held = &mut self.held[at];
            held.unfit = Some(unfit);
            held.outcome.agent = !held.outcome.agent;
        }
    }

    /// Adds a candidate.
    ///
    /// # Errors
    /// The errors of [`TraceMemory::add`].
    pub fn add(&mut self, entry: TraceEntry, outcome: SelectOutcome, unfit: Option<Unfit>) -> Result<()> {
        let index = self.added;
        self.added += 1;
        while is_sampled(index, self.level) && self.held.len() == self.most {
            self.thin()?;
        }
        if is_sampled(index, self.level) {
            self.memory.add(entry, Instant::now())?;
            self.held.push(Held {
                index,
                outcome,
                unfit,
            });
        }
        Ok(())
    }

    /// Drops about half of the candidates.
    fn thin(&mut self) -> Result<()> {
        self.level += 1;
        let mut memory = self.shared.clone();
        let held = std::mem::take(&mut self.held);
        for (place, held) in held.into_iter().enumerate() {
            if is_sampled(held.index, self.level)
                && let Some(stored) = self.memory.stored(self.known + place)
            {
                let entry = TraceEntry {
                    words: &stored.words,
                    vector: stored.vector.as_deref(),
                    label: stored.label.as_ref(),
                    model: self.memory.model(),
                };
                memory.add(entry, Instant::now())?;
                self.held.push(held);
            }
        }
        self.memory = memory;
        Ok(())
    }

    /// Finds the neighbours of each candidate, the most similar first. Sub-agents, which go with their sessions, are nobody's.
    pub(super) fn join(
        &mut self,
        threads: usize,
        progress: &(dyn Fn(usize) -> bool + Sync),
    ) -> Result<Vec<Neighbours>> {
        let mut neighbours = self.memory.join(self.known, NEIGHBOURS, threads, progress)?;
        let is_session = |near: &Neighbour| self.held[near.index].unfit != Some(Unfit::SubAgent);
        neighbours.iter_mut().for_each(|of| of.nearest.retain(is_session));
        Ok(neighbours)
    }

    pub(super) fn outcomes(&self) -> Vec<SelectOutcome> {
        self.held.iter().map(|held| held.outcome).collect()
    }

    pub(super) fn unfit(&self) -> impl Iterator<Item = Option<Unfit>> {
        self.held.iter().map(|held| held.unfit)
    }

    /// Replaces the places of a selection of the sample by the indices of the traces.
    pub(super) fn name(&self, selection: &mut Selection) {
        let rename = |index: &mut usize| *index = self.held[*index].index;
        let rename_near = |near: &mut Neighbour| rename(&mut near.index);
        for chosen in &mut selection.chosen {
            rename(&mut chosen.index);
            chosen.stands_for.iter_mut().for_each(rename_near);
            chosen.nearest_left.iter_mut().for_each(rename_near);
        }
        for left in &mut selection.left {
            rename(&mut left.index);
            if let Standing::Chosen(by) = &mut left.standing {
                rename_near(by);
            }
        }
        selection.sampled = (self.level > 0).then_some(Sampled {
            size: self.held.len(),
            seen: self.added,
        });
    }
}

/// Whether a sample of one in 2^`level` traces has the trace at an index. The bits are those of SplitMix64.
fn is_sampled(index: usize, level: u32) -> bool {
    let mut bits = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (bits ^ (bits >> 31)).trailing_zeros() >= level
}
