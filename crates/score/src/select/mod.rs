//! Chooses the traces that are worth sharing: not the highest scores, but a set that covers all others well.
//!
//! With q(j) = confidence × (success ? 1 : 0.3) and the similarity s(i, j) of [`similarity`](knowledgepulse_index::similarity) for the
//! [`NEIGHBOURS`] nearest j of each i (1 for i itself, 0 for all others), the set X of a size is chosen that makes
//!
//! F(X) = Σ w(i) · max over j in X or M of q(j) s(i, j)
//!
//! large, where M is what is shared already. w(i) is q(i), divided by a power of the density, the sum of s(i, j) over i and the [`DENSE`] nearest, so that a kind of task counts little more when it
//! was run often. Lazy greedy gives at least 1 - 1/e of the largest F.
//!
//! Where most outcomes are unknown, w(i) falls with the number of runs of the task, and q(j) compares the lengths of these runs. DESIGN.md
//! has the measurements.

mod facility;
mod outlook;
mod stream;

use std::{collections::HashMap, time::Instant};

use facility::{Facility, Pick};
use knowledgepulse_error::Result;
pub use knowledgepulse_index::traces::join::Neighbour;
use knowledgepulse_index::{
    method::Method,
    options::{MemoryOptions as Bounds, ModelIdentity},
    shared::SharedMemory,
    traces::{StoredTrace, TraceEntry, TraceMemory, join::Neighbours},
};
use knowledgepulse_trace::{StepKind, Trace, words::Words};
pub use outlook::{Outlook, Place, knee};
pub use stream::{Offered, Sample, Sieve};

/// How many of the traces that are most similar to a trace can stand for it. See DESIGN.md.
const NEIGHBOURS: usize = 64;

/// How many of these make up its density.
const DENSE: usize = 16;

/// The value of a failure beside that of a success, which is 1.
const FAILURE: f64 = 0.3;

/// The power of the density by which w(i) is divided where outcomes are known. See DESIGN.md.
const DENSITY: f64 = 1.25;

/// The power of the number of runs by which 1 is divided where outcomes are unknown. See DESIGN.md.
const RUNS: i32 = 2;

/// The value of the longest run of a task less that of the shortest where outcomes are unknown. See DESIGN.md.
const LONGER: f64 = 0.4;

/// From which similarity on two traces are taken to be of one task. Runs of one task have a median similarity of .64 to .85, runs of different
/// ones .13 to .24. See DESIGN.md.
const SAME_TASK: f64 = 0.4;

/// The power by which the count of a less similar trace falls.
const SHARPNESS: i32 = 8;

/// How a run ended, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Whether it succeeded; `None` if nobody said.
    pub success: Option<bool>,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// The share of `error_recovery` among its steps, 0 to 1.
    pub recoveries: f64,
}

impl Outcome {
    /// Reads the outcome of a trace; `known` tells whether its success was recorded.
    #[allow(clippy::cast_precision_loss)] // No trace has 2^53 steps.
    #[must_use]
    pub fn of(trace: &Trace, known: bool) -> Self {
        let recoveries = trace
            .steps
            .iter()
            .filter(|step| step.kind == StepKind::ErrorRecovery);
        Self {
            success: known.then_some(trace.metadata.success),
            confidence: trace.outcome.confidence,
            recoveries: recoveries.count() as f64 / trace.steps.len().max(1) as f64,
        }
    }

    /// Returns the length of the run by its words: Σ c(t), less the share of its recoveries.
    fn length(self, words: &Words) -> f64 {
        let counts = words.iter().map(|word| word.count.value());
        counts.sum::<f64>() * (1.0 - self.recoveries)
    }

    /// Returns q, which is unknown where the success is.
    fn quality(self) -> Option<f64> {
        self.success
            .map(|success| self.confidence * if success { 1.0 } else { FAILURE })
    }
}

/// A number of traces, or a part of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Count {
    /// So many, or all if there are fewer.
    Number(usize),
    /// A percentage, 0 to 100, rounded up.
    Percent(f64),
}

impl Count {
    /// Returns the number that this is of `all`.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )] // At most `all`.
    #[must_use]
    pub fn of(self, all: usize) -> usize {
        match self {
            Self::Number(number) => number.min(all),
            // The product of 7 % and 100 is above 7.
            Self::Percent(percent) => ((all as f64 * percent / 100.0 - 1e-9).ceil() as usize).min(all),
        }
    }
}

/// How to choose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// How many traces.
    pub count: Count,
    /// How many of these are failures of tasks that nobody solved; `None` keeps no room for them.
    pub failures: Option<Count>,
    /// How many threads compare traces; 0 stands for one for each core.
    pub threads: usize,
    /// Whether to look beyond the set, and to draw a map of it.
    pub outlook: bool,
}

/// The rule by which a set was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Facility location with the outcomes.
    Outcomes,
    /// Facility location without them.
    Unknown,
}

impl Rule {
    /// Returns the rule where so many outcomes of all are unknown.
    fn of(unknown: usize, all: usize) -> Self {
        if 2 * unknown > all {
            Self::Unknown
        } else {
            Self::Outcomes
        }
    }

    /// Returns w of a trace.
    fn weight(self, quality: f64, of: &Neighbours) -> f64 {
        match self {
            Self::Outcomes => quality / density(of).powf(DENSITY),
            Self::Unknown => runs(of).powi(-RUNS),
        }
    }

    /// Returns the rule's name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Outcomes => "outcomes",
            Self::Unknown => "unknown-outcomes",
        }
    }
}

/// Why a trace was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It covers others.
    Coverage,
    /// It is a failure of a task that nobody solved.
    Failure,
}

impl Reason {
    /// Returns the reason's name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Coverage => "coverage",
            Self::Failure => "failure",
        }
    }
}

/// A trace that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// Its index among the candidates.
    pub index: usize,
    /// Why.
    pub reason: Reason,
    /// By how much F grew.
    pub gain: f64,
    /// The part of the largest F that the set covers up to this trace, 0 to 1.
    pub covered: f64,
    /// The candidates that it stands for, which were not chosen, the most similar first.
    pub stands_for: Vec<Neighbour>,
    /// The most similar candidate that was not chosen, even if another trace stands for it. `None` if a sample was compared.
    pub nearest_left: Option<Neighbour>,
}

/// The trace that stands for a trace that was not chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    /// A chosen trace.
    Chosen(Neighbour),
    /// The known trace at this index of the memory, or one elsewhere, with its similarity.
    Known(Option<usize>, f64),
    /// Nothing: no chosen trace is among its nearest.
    Nothing,
}

/// The result of a selection.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The traces, the most valuable first. Traces of the quota come last, unless there are too few of them.
    pub chosen: Vec<Chosen>,
    /// The standing of each of the other candidates, by index and in their order.
    pub left: Vec<(usize, Standing)>,
    /// How they were chosen.
    pub rule: Rule,
    /// How many candidates have no known outcome.
    pub unknown: usize,
    /// The part of the largest F that the known traces cover by themselves.
    pub covered_before: f64,
    /// The outlook beyond the set, if it was asked for.
    pub outlook: Option<Outlook>,
    /// The sample that the set was chosen by; `None` if all traces were compared. It has all that are left then, and all that the chosen
    /// ones stand for.
    pub sampled: Option<Sampled>,
}

/// A sample of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    /// How many traces it has.
    pub size: usize,
    /// Of how many.
    pub seen: usize,
}

impl Selection {
    /// Returns a sentence that says which rule ran, and why.
    #[must_use]
    pub fn explanation(&self) -> String {
        let all = self
            .sampled
            .map_or(self.chosen.len() + self.left.len(), |sampled| sampled.size);
        let explanation = match self.rule {
            Rule::Outcomes if self.unknown == 0 => {
                "chosen by facility location with outcomes: the outcome of every trace is known".to_owned()
            }
            Rule::Outcomes => format!(
                "chosen by facility location with outcomes: those of {} of {all} traces are not known, and count as the mean of the others",
                self.unknown
            ),
            Rule::Unknown => format!(
                "chosen without outcomes: those of {} of {all} traces are not known, so tasks with few runs, and of these the longer runs with fewer error recoveries, come first",
                self.unknown
            ),
        };
        match self.sampled {
            None => explanation,
            Some(Sampled { size, seen }) => {
                format!("{explanation}; all {seen} traces were held against a sample of {size}")
            }
        }
    }
}

/// The traces to choose from, with the traces that are shared already.
#[derive(Debug)]
pub struct Candidates {
    memory: TraceMemory,
    /// How many traces of the memory are shared already.
    known: usize,
    outcomes: Vec<Outcome>,
    /// The similarity of each candidate to the traces that are shared elsewhere.
    covered: Vec<f64>,
    /// The length of each candidate.
    lengths: Vec<f64>,
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
        Self {
            known: known.len(Instant::now()),
            memory: known.clone().unbounded(),
            outcomes: Vec::new(),
            covered: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// Adds a candidate.
    ///
    /// # Errors
    /// The errors of [`TraceMemory::add`].
    pub fn add(&mut self, entry: TraceEntry, outcome: Outcome) -> Result<()> {
        self.memory.add(entry, Instant::now())?;
        self.outcomes.push(outcome);
        self.covered.push(0.0);
        self.lengths.push(outcome.length(entry.words));
        Ok(())
    }

    /// Sets the similarity of the last added candidate to the traces that are shared elsewhere, which the set complements
    /// too.
    pub fn set_covered(&mut self, similarity: f64) {
        if let Some(last) = self.covered.last_mut() {
            *last = similarity;
        }
    }

    /// Returns a candidate as it was added; `None` for an unknown index.
    pub fn get(&mut self, index: usize) -> Option<StoredTrace> {
        let now = Instant::now();
        let sequence = self.memory.sequence(now);
        let start = sequence.start + (self.known + index) as u64;
        self.memory.stored(start..sequence.end, now)
    }

    /// Returns the model that the embeddings come from, if that was said.
    #[must_use]
    pub fn model(&self) -> Option<&ModelIdentity> {
        self.memory.model()
    }
}

/// Chooses traces. `progress` is told of how many candidates the neighbours are known; if it returns false, the choice ends.
///
/// # Errors
/// [`Error::Aborted`](knowledgepulse_error::Error::Aborted) if `progress` says so.
pub fn select(
    candidates: &mut Candidates,
    options: &Options,
    progress: &(dyn Fn(usize) -> bool + Sync),
) -> Result<Selection> {
    let neighbours = candidates
        .memory
        .join(candidates.known, NEIGHBOURS, options.threads, progress)?;
    Ok(choose(&neighbours, candidates, options))
}

fn choose(neighbours: &[Neighbours], candidates: &Candidates, options: &Options) -> Selection {
    let outcomes = &candidates.outcomes;
    let (rule, unknown, qualities, weights) = judge(neighbours, candidates);
    let shared: Vec<_> = neighbours
        .iter()
        .zip(&candidates.covered)
        .map(|(of, &elsewhere)| {
            let known = of.before.filter(|known| known.similarity >= elsewhere);
            known.map_or((None, elsewhere), |known| (Some(known.index), known.similarity))
        })
        .collect();
    let cover = shared.iter().map(|&(_, similarity)| similarity);
    let mut facility = Facility::new(neighbours, weights, qualities.clone(), cover.collect());
    let (before, most) = (facility.value(), facility.most());
    let (picks, is_left) = pick(&mut facility, &unsolved(neighbours, outcomes), options);
    // The code below does not change the set.
    let more = (outlook::BEYOND - 1) * picks.len();
    let beyond = options.outlook.then(|| facility.choose_greedily(more, &is_left));
    let left = stand(neighbours, &qualities, &shared, &is_left);
    let near = |index: usize| neighbours[index].nearest.iter().copied();
    let (mut chosen, outlook) = describe(picks, beyond, &left, before, most, near);
    for chosen in &mut chosen {
        chosen.nearest_left = near(chosen.index).find(|near| is_left[near.index]);
    }
    Selection {
        chosen,
        outlook,
        sampled: None,
        left,
        rule,
        unknown,
        covered_before: share(before, most),
    }
}

/// Returns the part of the largest F.
fn share(value: f64, most: f64) -> f64 {
    if most > 0.0 { (value / most).min(1.0) } else { 0.0 }
}

/// Returns the chosen traces with those of `left` that they stand for, and the outlook if there are picks `beyond`. F of what is known is
/// `before`, and `most` of all traces. `near` returns the nearest traces of a chosen one.
fn describe<I: Iterator<Item = Neighbour>>(
    picks: Vec<(Pick, Reason)>,
    beyond: Option<Vec<Pick>>,
    left: &[(usize, Standing)],
    before: f64,
    most: f64,
    near: impl Fn(usize) -> I,
) -> (Vec<Chosen>, Option<Outlook>) {
    let mut stood_for: HashMap<usize, Vec<Neighbour>> = HashMap::new();
    for &(index, standing) in left {
        if let Standing::Chosen(by) = standing {
            let similarity = by.similarity;
            let own = stood_for.entry(by.index).or_default();
            own.push(Neighbour { index, similarity });
        }
    }
    let mut covered = before;
    let mut share_with = |gain: f64| {
        covered += gain;
        share(covered, most)
    };
    let chosen = picks.into_iter().map(|(Pick { index, gain }, reason)| {
        let mut stands_for = stood_for.remove(&index).unwrap_or_default();
        stands_for.sort_by(|one, other| other.similarity.total_cmp(&one.similarity));
        Chosen {
            index,
            reason,
            gain,
            covered: share_with(gain),
            stands_for,
            nearest_left: None,
        }
    });
    let chosen: Vec<_> = chosen.collect();
    let outlook = beyond.map(|beyond| Outlook {
        beyond: beyond.iter().map(|pick| share_with(pick.gain)).collect(),
        places: outlook::lay_out(&chosen, near),
    });
    (chosen, outlook)
}

/// Returns the rule, how many outcomes are unknown, and q and w of each trace.
fn judge(neighbours: &[Neighbours], candidates: &Candidates) -> (Rule, usize, Vec<f64>, Vec<f64>) {
    let outcomes = &candidates.outcomes;
    let unknown = outcomes.iter().filter(|outcome| outcome.success.is_none());
    let unknown = unknown.count();
    let rule = Rule::of(unknown, outcomes.len());
    let qualities = match rule {
        Rule::Outcomes => complete(outcomes),
        Rule::Unknown => guess(neighbours, &candidates.lengths),
    };
    let pairs = neighbours.iter().zip(&qualities);
    let weights = pairs.map(|(of, &quality)| rule.weight(quality, of)).collect();
    (rule, unknown, qualities, weights)
}

/// How much of its kind there is around a trace, itself included.
fn density(of: &Neighbours) -> f64 {
    let nearest = of.nearest.iter().take(DENSE);
    1.0 + nearest.map(|near| near.similarity).sum::<f64>()
}

/// The number of runs of a trace's task, itself included. A trace of a lower similarity than [`SAME_TASK`] counts in part.
fn runs(of: &Neighbours) -> f64 {
    let part = |near: &Neighbour| (near.similarity / SAME_TASK).min(1.0).powi(SHARPNESS);
    1.0 + of.nearest.iter().map(part).sum::<f64>()
}

/// Picks the traces, and tells which are left. The room for failures is filled last, unless there are too few of them.
fn pick(facility: &mut Facility, unsolved: &[bool], options: &Options) -> (Vec<(Pick, Reason)>, Vec<bool>) {
    let count = options.count.of(unsolved.len());
    let room = options.failures.map_or(0, |failures| failures.of(count));
    let mut is_left = vec![true; unsolved.len()];
    let mut picks = Vec::new();
    let phases = [
        (Reason::Coverage, count - room),
        (Reason::Failure, count),
        (Reason::Coverage, count),
    ];
    for (reason, until) in phases {
        let pairs = is_left.iter().zip(unsolved);
        let eligible: Vec<_> = pairs
            .map(|(&left, &unsolved)| left && (reason == Reason::Coverage || unsolved))
            .collect();
        for pick in facility.choose_greedily(until - picks.len(), &eligible) {
            is_left[pick.index] = false;
            picks.push((pick, reason));
        }
    }
    (picks, is_left)
}

/// Returns q of each trace where most are known: an unknown one is the mean of the others.
fn complete(outcomes: &[Outcome]) -> Vec<f64> {
    let mean = mean_of(outcomes);
    let qualities = outcomes.iter().map(|outcome| outcome.quality());
    qualities.map(|quality| quality.unwrap_or(mean)).collect()
}

/// Returns the mean q of the known outcomes.
#[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
fn mean_of(outcomes: &[Outcome]) -> f64 {
    let known = outcomes.iter().filter_map(|outcome| outcome.quality());
    known.clone().sum::<f64>() / known.count().max(1) as f64
}

/// Returns q of each trace where outcomes are unknown.
fn guess(neighbours: &[Neighbours], lengths: &[f64]) -> Vec<f64> {
    let pairs = neighbours.iter().zip(lengths);
    pairs
        .map(|(of, &own)| quality_by_length(own, lengths, of.nearest.iter().copied()))
        .collect()
}

/// Returns q of a trace of the length `own` whose outcome is not known: the more of the other runs of its task are shorter, the larger it is.
/// `near` are the nearest traces, whose lengths are in `lengths`.
#[allow(clippy::cast_precision_loss)] // At most NEIGHBOURS.
fn quality_by_length(own: f64, lengths: &[f64], near: impl Iterator<Item = Neighbour>) -> f64 {
    let runs = near.take_while(|near| near.similarity >= SAME_TASK);
    let runs: Vec<_> = runs.map(|near| lengths[near.index]).collect();
    let shorter = runs.iter().filter(|&&length| length < own).count() as f64;
    let equal = runs.iter().filter(|&&length| length == own).count() as f64;
    let part = if runs.is_empty() {
        0.5
    } else {
        (shorter + equal / 2.0) / runs.len() as f64
    };
    1.0 - LONGER + LONGER * part
}

/// Returns which traces are failures without a success that is similar.
fn unsolved(neighbours: &[Neighbours], outcomes: &[Outcome]) -> Vec<bool> {
    let is_solved =
        |near: &Neighbour| near.similarity >= SAME_TASK && outcomes[near.index].success == Some(true);
    let pairs = neighbours.iter().zip(outcomes);
    pairs
        .map(|(of, outcome)| outcome.success == Some(false) && !of.nearest.iter().any(is_solved))
        .collect()
}

/// Finds the trace that stands for each remaining trace.
fn stand(
    neighbours: &[Neighbours],
    qualities: &[f64],
    shared: &[(Option<usize>, f64)],
    is_left: &[bool],
) -> Vec<(usize, Standing)> {
    let left = (0..is_left.len()).filter(|&index| is_left[index]);
    left.map(|index| {
        let (known, mut best) = shared[index];
        let mut standing = if best > 0.0 {
            Standing::Known(known, best)
        } else {
            Standing::Nothing
        };
        for &near in &neighbours[index].nearest {
            let value = qualities[near.index] * near.similarity;
            if !is_left[near.index] && value > best {
                best = value;
                standing = Standing::Chosen(near);
            }
        }
        (index, standing)
    })
    .collect()
}

#[cfg(test)]
mod tests;
