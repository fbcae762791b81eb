//! Chooses the traces that are worth sharing: not the highest scores, but a set that covers all others well.
//!
//! With q(j) = confidence × (success ? 1 : 0.3) and a similarity s(i, j) for the [`NEIGHBOURS`] nearest j of each i (1 for i itself, 0 for
//! all others), the set X of a size is chosen that makes
//!
//! F(X) = Σ w(i) · max over j in X or M of q(j) s(i, j)
//!
//! large, where M is what is shared already. w(i) is q(i), divided by the root of the density, the sum of s(i, j) over i and the [`DENSE`]
//! nearest, so that a kind of task counts less often than it was run. s(i, j) is the [`cosine`] of words, or with embeddings the
//! [`similarity`](knowledgepulse_index::similarity) of novelty. Lazy greedy gives at least 1 - 1/e of the largest F. DESIGN.md has the
//! measurements.

mod candidates;
mod cosine;
mod facility;

use std::collections::HashMap;

pub use candidates::{Candidates, Sampled, SelectOutcome, Unfit};
use facility::{Facility, Pick};
use knowledgepulse_error::{Result, named};
pub use knowledgepulse_index::scan::Neighbour;
use knowledgepulse_index::traces::join::Neighbours;

/// How many of the traces that are most similar to a trace can stand for it. See DESIGN.md.
const NEIGHBOURS: usize = 64;

/// How many of these make up its density.
const DENSE: usize = 16;

/// The value of a failure beside that of a success, which is 1.
const FAILURE: f64 = 0.3;

/// From which similarity on a success solves the task of a failure. Runs of one task have a median similarity of .56 to .69, runs of
/// different ones .04 to .06, and .6 % of these or less reach it.
const SAME_TASK: f64 = 0.4;

/// How many times as many traces as were asked for the curve has.
const BEYOND: usize = 4;

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
pub struct SelectOptions {
    /// How many traces.
    pub count: Count,
    /// How many of these are failures of tasks that nobody solved; `None` keeps no room for them.
    pub failures: Option<Count>,
    /// How many threads compare traces; 0 stands for one for each core.
    pub threads: usize,
    /// Whether to tell how much a larger set would cover.
    pub beyond: bool,
}

named! {
    /// Why a trace was chosen, with the reason's name in results.
    pub enum Reason {
        /// It covers others.
        Coverage = "coverage",
        /// It is a failure of a task that nobody solved.
        Failure = "failure",
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
    /// The most similar candidate that was not chosen, even if another trace stands for it.
    pub nearest_left: Option<Neighbour>,
}

/// The trace that stands for a trace that was not chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    /// A chosen trace.
    Chosen(Neighbour),
    /// A trace that is shared already.
    Known(Neighbour),
    /// Nothing: no chosen trace is among its nearest.
    Nothing,
}

/// A trace that was not chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Left {
    /// Its index among the candidates.
    pub index: usize,
    /// What stands for it.
    pub standing: Standing,
    /// Why it cannot be chosen; `None` if it can.
    pub unfit: Option<Unfit>,
}

/// The result of a selection.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The traces, the most valuable first. Traces of the quota come last, unless there are too few of them.
    pub chosen: Vec<Chosen>,
    /// The other candidates, in their order; of a sample, those that it has.
    pub left: Vec<Left>,
    /// How many candidates have no known outcome.
    pub unknown: usize,
    /// The part of the largest F that the known traces cover by themselves.
    pub covered_before: f64,
    /// The part of the largest F that the set would cover with one more trace, two more and so on, if it was asked for.
    pub beyond: Option<Vec<f64>>,
    /// The sample that the set was chosen from; `None` if it was chosen from all traces.
    pub sampled: Option<Sampled>,
}

impl Selection {
    /// Returns a sentence that says how the set was chosen, and why it may have fewer traces than were asked for.
    #[must_use]
    pub fn explanation(&self) -> String {
        let all = self.chosen.len() + self.left.len();
        let mut explanation = match self.unknown {
            0 => "chosen by facility location with outcomes: the outcome of every trace is known".to_owned(),
            unknown if unknown == all => {
                "chosen by facility location without outcomes, which are not known: the set covers kinds of work, not successes".to_owned()
            }
            unknown => format!(
                "chosen by facility location with outcomes: those of {unknown} of {all} traces are not known, and count as the mean of the others"
            ),
        };
        let unfit = |reason| self.left.iter().filter(|left| left.unfit == Some(reason)).count();
        let counts = Unfit::ALL.iter().map(|reason| (unfit(*reason), reason.words()));
        let counts = counts.filter(|(count, _)| *count > 0);
        let total: usize = counts.clone().map(|(count, _)| count).sum();
        if total > 0 {
            let each: Vec<_> = counts.map(|(count, words)| format!("{count} {words}")).collect();
            explanation += &format!("; {total} of {all} are not fit to be shared: {}", each.join(", "));
        }
        if let Some(Sampled { size, seen }) = self.sampled {
            explanation +=
                &format!("; {seen} traces are too many to compare, so a uniform sample of {size} was");
        }
        explanation
    }
}

/// Chooses traces. `progress` is told of how many candidates the neighbours are known; if it returns false, the choice ends.
///
/// # Errors
/// [`Error::Aborted`](knowledgepulse_error::Error::Aborted) if `progress` says so.
pub fn select(
    candidates: &mut Candidates,
    options: &SelectOptions,
    progress: &(dyn Fn(usize) -> bool + Sync),
) -> Result<Selection> {
    let neighbours = candidates.join(options.threads, progress)?;
    let mut selection = choose(&neighbours, candidates, options);
    candidates.name(&mut selection);
    Ok(selection)
}

/// Chooses traces by their places among those that are compared.
fn choose(neighbours: &[Neighbours], candidates: &Candidates, options: &SelectOptions) -> Selection {
    let outcomes = candidates.outcomes();
    let unfit: Vec<_> = candidates.unfit().collect();
    let mut qualities = complete(&outcomes);
    // What cannot be chosen need not be covered either.
    let pairs = qualities.iter_mut().zip(&unfit);
    pairs
        .filter(|(_, unfit)| unfit.is_some())
        .for_each(|(quality, _)| *quality = 0.0);
    let weights = neighbours.iter().zip(&qualities);
    let weights = weights
        .map(|(of, quality)| quality / density(of).sqrt())
        .collect();
    let cover = neighbours
        .iter()
        .map(|of| of.before.map_or(0.0, |known| known.similarity));
    let mut facility = Facility::new(neighbours, weights, qualities.clone(), cover.collect());
    let (before, most) = (facility.value(), facility.most());
    let mut is_eligible: Vec<_> = unfit.iter().map(Option::is_none).collect();
    let picks = pick(
        &mut facility,
        &mut is_eligible,
        &unsolved(neighbours, &outcomes),
        options,
    );
    let mut is_left = vec![true; neighbours.len()];
    picks.iter().for_each(|(pick, _)| is_left[pick.index] = false);

    let mut covered = before;
    let mut share_with = |gain: f64| {
        covered += gain;
        share(covered, most)
    };
    let mut chosen: Vec<_> = picks
        .iter()
        .map(|&(Pick { index, gain }, reason)| Chosen {
            index,
            reason,
            gain,
            covered: share_with(gain),
            stands_for: Vec::new(),
            nearest_left: neighbours[index]
                .nearest
                .iter()
                .copied()
                .find(|near| is_left[near.index]),
        })
        .collect();
    // The code below does not change the set.
    let beyond = options.beyond.then(|| {
        let more = facility.choose_greedily((BEYOND - 1) * picks.len(), &is_eligible);
        more.iter().map(|pick| share_with(pick.gain)).collect()
    });
    let standings = stand(neighbours, &qualities, &is_left);
    list(&mut chosen, &standings);
    let left = standings.into_iter().map(|(index, standing)| Left {
        index,
        standing,
        unfit: unfit[index],
    });
    Selection {
        left: left.collect(),
        chosen,
        unknown: outcomes
            .iter()
            .filter(|outcome| outcome.success.is_none())
            .count(),
        covered_before: share(before, most),
        beyond,
        sampled: None,
    }
}

/// Returns the part of the largest F.
fn share(value: f64, most: f64) -> f64 {
    if most > 0.0 { (value / most).min(1.0) } else { 0.0 }
}

/// Lists with each chosen trace those that it stands for.
fn list(chosen: &mut [Chosen], standings: &[(usize, Standing)]) {
    let ranks = chosen.iter().enumerate();
    let ranks: HashMap<usize, usize> = ranks.map(|(rank, chosen)| (chosen.index, rank)).collect();
    for &(index, standing) in standings {
        if let Standing::Chosen(Neighbour {
            index: by,
            similarity,
        }) = standing
        {
            chosen[ranks[&by]]
                .stands_for
                .push(Neighbour { index, similarity });
        }
    }
    for chosen in chosen {
        let by_similarity = |one: &Neighbour, other: &Neighbour| other.similarity.total_cmp(&one.similarity);
        chosen.stands_for.sort_by(by_similarity);
    }
}

/// How much of its kind there is around a trace, itself included.
fn density(of: &Neighbours) -> f64 {
    let nearest = of.nearest.iter().take(DENSE);
    1.0 + nearest.map(|near| near.similarity).sum::<f64>()
}

/// Picks the traces, which are no longer eligible then. The room for failures is filled last, unless there are too few of them.
fn pick(
    facility: &mut Facility,
    is_eligible: &mut [bool],
    unsolved: &[bool],
    options: &SelectOptions,
) -> Vec<(Pick, Reason)> {
    let count = options.count.of(unsolved.len());
    let room = options.failures.map_or(0, |failures| failures.of(count));
    let mut picks = Vec::new();
    let phases = [
        (Reason::Coverage, count - room),
        (Reason::Failure, count),
        (Reason::Coverage, count),
    ];
    for (reason, until) in phases {
        let pairs = is_eligible.iter().zip(unsolved);
        let eligible: Vec<_> = pairs
            .map(|(&eligible, &unsolved)| eligible && (reason == Reason::Coverage || unsolved))
            .collect();
        for pick in facility.choose_greedily(until - picks.len(), &eligible) {
            is_eligible[pick.index] = false;
            picks.push((pick, reason));
        }
    }
    picks
}

/// Returns q of each trace: an unknown one is the mean of the others, or 1 if all are unknown.
#[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
fn complete(outcomes: &[SelectOutcome]) -> Vec<f64> {
    let known: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.quality()).collect();
    let mean = if known.is_empty() {
        1.0
    } else {
        known.iter().sum::<f64>() / known.len() as f64
    };
    let qualities = outcomes.iter().map(|outcome| outcome.quality());
    qualities.map(|quality| quality.unwrap_or(mean)).collect()
}

/// Returns which traces are failures without a success that is similar.
fn unsolved(neighbours: &[Neighbours], outcomes: &[SelectOutcome]) -> Vec<bool> {
    let is_solved =
        |near: &Neighbour| near.similarity >= SAME_TASK && outcomes[near.index].success == Some(true);
    let pairs = neighbours.iter().zip(outcomes);
    pairs
        .map(|(of, outcome)| outcome.success == Some(false) && !of.nearest.iter().any(is_solved))
        .collect()
}

/// Finds the trace that stands for each remaining trace.
fn stand(neighbours: &[Neighbours], qualities: &[f64], is_left: &[bool]) -> Vec<(usize, Standing)> {
    let left = (0..is_left.len()).filter(|&index| is_left[index]);
    left.map(|index| {
        let known = neighbours[index].before.filter(|known| known.similarity > 0.0);
        let mut best = known.map_or(0.0, |known| known.similarity);
        let mut standing = known.map_or(Standing::Nothing, Standing::Known);
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
