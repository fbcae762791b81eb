//! Chooses the traces that are worth sharing: not those with the highest scores, but a set that covers all others well.
//!
//! With q(j) = confidence × (success ? 1 : 0.3) and the similarity s(i, j) of [`similarity`](knowledgepulse_index::similarity) for the
//! [`NEIGHBOURS`] nearest j of each i (1 for i itself, 0 for all others), the set X of a size is chosen that makes
//!
//! F(X) = Σ w(i) · max over j in X or M of q(j) s(i, j)
//!
//! large, where M is what is shared already. w(i) is q(i), divided by a power of the density, the sum of s(i, j) over i and the [`DENSE`] nearest, so that a kind of task counts little more when it
//! was run often. Lazy greedy gives at least 1 - 1/e of the largest F.
//!
//! Where most outcomes are unknown, q(j) is nearly the same for all, and w(i) falls faster with the density. DESIGN.md has what was measured.

mod facility;

use std::time::Instant;

use knowledgepulse_error::Result;
use knowledgepulse_index::{
    method::Method,
    traces::{
        TraceEntry, TraceMemory,
        join::{Neighbour, Neighbours},
    },
    vectors::Options as Bounds,
};
use knowledgepulse_trace::words::Words;

use facility::{Facility, Pick};

/// How many of the traces that are most similar to a trace can stand for it. See DESIGN.md.
const NEIGHBOURS: usize = 32;

/// How many of these make up its density.
const DENSE: usize = 16;

/// What a failure counts, where a success counts 1.
const FAILURE: f64 = 0.3;

/// The power of the density by which w(i) is divided where outcomes are known. See DESIGN.md.
const DENSITY: f64 = 1.25;

/// The same where they are not.
const DENSITY_UNKNOWN: f64 = 2.0;

/// How much less the shortest run of a task counts than the longest where no outcome is known.
const LONGER: f64 = 0.2;

/// From which similarity on two traces are taken to be of one task. Runs of one task have a median similarity of .64 to .85, runs of different
/// ones .13 to .24.
const SAME_TASK: f64 = 0.5;

/// How a run ended, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Whether it succeeded; `None` if nobody said.
    pub success: Option<bool>,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
}

impl Outcome {
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
    /// Returns what the API calls the rule.
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
    /// Returns what results call the reason.
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
    pub stands_for: Vec<Nearby>,
    /// The most similar candidate that was not chosen, whoever stands for it.
    pub nearest_left: Option<Nearby>,
}

/// A candidate that is similar to another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nearby {
    /// Its index among the candidates.
    pub index: usize,
    /// How similar it is, 0 to 1.
    pub similarity: f64,
}

/// What stands for a trace that was not chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    /// A chosen trace.
    Chosen(Nearby),
    /// The known trace at this index of the memory, with its similarity.
    Known(usize, f64),
    /// Nothing: no chosen trace is among its nearest.
    Nothing,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The traces, the most valuable first. Those for which room was kept come last, unless there are too few of them.
    pub chosen: Vec<Chosen>,
    /// What stands for each of the other candidates, by index and in their order.
    pub left: Vec<(usize, Standing)>,
    /// How they were chosen.
    pub rule: Rule,
    /// How many candidates have no known outcome.
    pub unknown: usize,
    /// The part of the largest F that the known traces cover by themselves.
    pub covered_before: f64,
}

impl Selection {
    /// Returns a sentence that says which rule ran, and why.
    #[must_use]
    pub fn explanation(&self) -> String {
        let all = self.chosen.len() + self.left.len();
        match self.rule {
            Rule::Outcomes if self.unknown == 0 => {
                "chosen by facility location with outcomes: the outcome of every trace is known".into()
            }
            Rule::Outcomes => format!(
                "chosen by facility location with outcomes: those of {} of {all} traces are not known, and count as the mean of the others",
                self.unknown
            ),
            Rule::Unknown => format!(
                "chosen without outcomes: those of {} of {all} traces are not known, so rare kinds of tasks and the longer runs of a task come first",
                self.unknown
            ),
        }
    }
}

/// The traces to choose from, with those that are shared already.
#[derive(Debug)]
pub struct Candidates {
    memory: TraceMemory,
    /// How many traces of the memory are shared already.
    known: usize,
    outcomes: Vec<Outcome>,
    /// Σ c(t) of each candidate.
    sizes: Vec<f64>,
}

impl Candidates {
    /// No candidates, which are compared by `method`. `dimensions` are those of the embeddings.
    #[must_use]
    pub fn new(method: Method, dimensions: usize) -> Self {
        let bounds = Bounds {
            max_elements: usize::MAX,
            dimensions,
            time_to_live: None,
        };
        Self {
            memory: TraceMemory::new(method, bounds),
            known: 0,
            outcomes: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// Adds the traces of a memory, beside which is chosen. Must come before all candidates: later ones are not looked at.
    ///
    /// # Errors
    /// Those of [`TraceMemory::add`].
    pub fn add_known(&mut self, known: &mut TraceMemory) -> Result<()> {
        debug_assert!(self.is_empty());
        let now = Instant::now();
        let mut sequence = known.sequence(now);
        while let Some(stored) = known.stored(sequence.clone(), now) {
            sequence.start = stored.sequence + 1;
            self.remember(&stored.words, stored.vector.as_deref())?;
            self.known += 1;
        }
        Ok(())
    }

    fn remember(&mut self, words: &Words, vector: Option<&[f32]>) -> Result<()> {
        let entry = TraceEntry {
            words,
            vector,
            label: None,
            model: None,
        };
        self.memory.add(entry, Instant::now())
    }

    /// Adds a candidate. `vector` is the embedding of its digest, which only [`Method::Full`] looks at.
    ///
    /// # Errors
    /// Those of [`TraceMemory::add`].
    pub fn add(&mut self, words: &Words, vector: Option<&[f32]>, outcome: Outcome) -> Result<()> {
        self.remember(words, vector)?;
        self.outcomes.push(outcome);
        self.sizes.push(words.iter().map(|word| word.count.value()).sum());
        Ok(())
    }

    /// Returns how many candidates there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
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
    let first = candidates.known;
    let neighbours = candidates
        .memory
        .join(first, NEIGHBOURS, options.threads, progress)?;
    Ok(choose(&neighbours, candidates, options))
}

fn choose(neighbours: &[Neighbours], candidates: &Candidates, options: &Options) -> Selection {
    let first = candidates.known;
    let outcomes = &candidates.outcomes;
    let known: Vec<_> = outcomes.iter().map(|outcome| outcome.quality()).collect();
    let unknown = known.iter().filter(|quality| quality.is_none()).count();
    let (rule, qualities) = if 2 * unknown > outcomes.len() {
        (Rule::Unknown, guess(neighbours, first, &candidates.sizes))
    } else {
        (Rule::Outcomes, complete(&known))
    };
    let pairs = neighbours.iter().zip(&qualities);
    let weights = pairs.map(|(of, quality)| match rule {
        Rule::Outcomes => quality / density(of).powf(DENSITY),
        Rule::Unknown => density(of).powf(-DENSITY_UNKNOWN),
    });
    let cover = neighbours
        .iter()
        .map(|of| of.before.map_or(0.0, |known| known.similarity));
    let mut facility = Facility::new(
        neighbours,
        first,
        weights.collect(),
        qualities.clone(),
        cover.collect(),
    );
    let (before, most) = (facility.value(), facility.most());
    let unsolved = unsolved(neighbours, first, outcomes);
    let (picks, is_left) = pick(&mut facility, &unsolved, options);

    let share = |value: f64| if most > 0.0 { (value / most).min(1.0) } else { 0.0 };
    let left = stand(neighbours, first, &qualities, &is_left);
    let mut stood_for = vec![Vec::new(); outcomes.len()];
    for &(index, standing) in &left {
        if let Standing::Chosen(by) = standing {
            let similarity = by.similarity;
            stood_for[by.index].push(Nearby { index, similarity });
        }
    }
    let mut covered = before;
    let chosen = picks.into_iter().map(|(Pick { index, gain }, reason)| {
        covered += gain;
        let mut near = neighbours[index].nearest.iter().map(|near| nearby(near, first));
        let mut stands_for = std::mem::take(&mut stood_for[index]);
        stands_for.sort_by(|one, other| other.similarity.total_cmp(&one.similarity));
        Chosen {
            index,
            reason,
            gain,
            covered: share(covered),
            stands_for,
            nearest_left: near.find(|near| is_left[near.index]),
        }
    });
    Selection {
        chosen: chosen.collect(),
        left,
        rule,
        unknown,
        covered_before: share(before),
    }
}

/// How much of its kind there is around a trace, itself included.
fn density(of: &Neighbours) -> f64 {
    let nearest = of.nearest.iter().take(DENSE);
    1.0 + nearest.map(|near| near.similarity).sum::<f64>()
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

fn nearby(near: &Neighbour, first: usize) -> Nearby {
    Nearby {
        index: near.index - first,
        similarity: near.similarity,
    }
}

/// Returns q of each trace where most are known: an unknown one is the mean of the others.
#[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
fn complete(qualities: &[Option<f64>]) -> Vec<f64> {
    let known: Vec<f64> = qualities.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    qualities.iter().map(|quality| quality.unwrap_or(mean)).collect()
}

/// Returns q of each trace where no outcome is known: the more of the other runs of its task are shorter, the larger it is.
#[allow(clippy::cast_precision_loss)] // At most NEIGHBOURS.
fn guess(neighbours: &[Neighbours], first: usize, sizes: &[f64]) -> Vec<f64> {
    let shorter = |(of, own): (&Neighbours, &f64)| {
        let runs = of.nearest.iter().take_while(|near| near.similarity >= SAME_TASK);
        let runs: Vec<_> = runs.map(|near| sizes[near.index - first]).collect();
        let shorter = runs.iter().filter(|&size| size < own).count() as f64;
        let equal = runs.iter().filter(|&size| size == own).count() as f64;
        if runs.is_empty() {
            return 0.5;
        }
        (shorter + equal / 2.0) / runs.len() as f64
    };
    let pairs = neighbours.iter().zip(sizes);
    pairs.map(|pair| 1.0 - LONGER + LONGER * shorter(pair)).collect()
}

/// Returns which traces are failures without a success that is similar.
fn unsolved(neighbours: &[Neighbours], first: usize, outcomes: &[Outcome]) -> Vec<bool> {
    let is_solved =
        |near: &Neighbour| near.similarity >= SAME_TASK && outcomes[near.index - first].success == Some(true);
    let pairs = neighbours.iter().zip(outcomes);
    pairs
        .map(|(of, outcome)| outcome.success == Some(false) && !of.nearest.iter().any(is_solved))
        .collect()
}

/// Finds what stands for each trace that is left.
fn stand(
    neighbours: &[Neighbours],
    first: usize,
    qualities: &[f64],
    is_left: &[bool],
) -> Vec<(usize, Standing)> {
    let left = (0..is_left.len()).filter(|&index| is_left[index]);
    left.map(|index| {
        let of = &neighbours[index];
        let mut best = 0.0;
        let mut standing = Standing::Nothing;
        if let Some(known) = of.before {
            best = known.similarity;
            standing = Standing::Known(known.index, known.similarity);
        }
        for near in of.nearest.iter().map(|near| nearby(near, first)) {
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
