//! Chooses the traces that are worth sharing: not the highest scores, but a set that covers all others well.
//!
//! With a value q(j) of each trace and a similarity s(i, j) for the [`NEIGHBOURS`] nearest j of each i (1 for i itself, 0 for all others), the
//! set X of a size is chosen that makes
//!
//! F(X) = Σ w(i) · max over j in X or M of q(j) s(i, j)
//!
//! large, where M is what is shared already. A told outcome is worth confidence × (success ? 1 : 0.3), and up to a quarter less where
//! similar traces failed, unless it is verified; w(i) is q(i). Where no outcome is told, q(i) is a rank by [`Signs`], and w(i) is q(i)
//! divided by the density, the sum of s(i, j) over i and the [`DENSE`] nearest, so that a kind of task counts once, and by the root of the
//! part of these runs that its agent has, so that one agent does not fill a short list. s(i, j) is that of
//! the [`join`](knowledgepulse_index::traces::join). Lazy greedy gives at least 1 - 1/e of the largest F. DESIGN.md has the measurements.

mod candidates;
mod facility;
mod value;

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

/// From which similarity on a trace adds nothing to one that is chosen or known.
pub const COPY: f64 = 0.9;

/// Where outcomes are unknown, runs with fewer turns of the agent come last; also with a third of the median, if that is fewer.
const FEWEST_TURNS: usize = 5;

/// A curve that rises less above its chord than this has no knee.
const LEAST_BEND: f64 = 0.05;

/// From which similarity on two traces are of one task, so that a success solves that of a failure. Runs of one task have a median similarity
/// of .56 to .69, runs of different ones .04 to .06, and .6 % of these or less reach it.
const SAME_TASK: f64 = 0.4;

/// The same beside known traces, which may have been cleaned: that took up to .09 of the similarity of real sessions of one task.
const KNOWN_TASK: f64 = 0.38;

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
    /// Whether to pass over copies of what is chosen or known, so that the set ends where the rest adds nothing new.
    pub only_new: bool,
    /// Whether only traces of tasks that are new follow where the curve of the set bends. Where known traces cover something, it has bent among these.
    pub ends: bool,
}

named! {
    /// Why a trace was chosen, with the reason's name in results.
    pub enum Reason {
        /// It covers others.
        Coverage = "coverage",
        /// It is a failure of a task that nobody solved.
        Failure = "failure",
        /// A person has decided to keep it.
        Decision = "decision",
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
    /// Its similarity to the most similar trace that was chosen before it or is known, 0 to 1; 0 if none is among its nearest.
    pub nearest_before: f64,
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
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// The traces, the most valuable first. Traces of the quota come last, unless there are too few of them.
    pub chosen: Vec<Chosen>,
    /// The other candidates, in their order; of a sample, those that it has.
    pub left: Vec<Left>,
    /// How many candidates have no known outcome.
    pub unknown: usize,
    /// The part of the largest F that the known traces cover by themselves.
    pub covered_before: f64,
    /// The sample that the set was chosen from; `None` if it was chosen from all traces.
    pub sampled: Option<Sampled>,
}

impl Selection {
    /// Returns a sentence that says how the set was chosen, and why it may have fewer traces than were asked for.
    #[must_use]
    pub fn explanation(&self) -> String {
        let all = self.chosen.len() + self.left.len();
        let mut explanation = match self.unknown {
            0 => "every outcome is known: successes count more".to_owned(),
            unknown if unknown == all => format!("no outcome is known: {WITHOUT_OUTCOME}"),
            unknown => format!("{unknown} of {all} outcomes unknown: of these, {WITHOUT_OUTCOME}"),
        };
        let (chosen, copies) = (self.chosen.len(), self.chosen.iter());
        let copies = copies.filter(|chosen| chosen.nearest_before >= COPY).count();
        if copies > 0 {
            explanation += &format!("; {copies} of {chosen} chosen add nothing new: they are copies");
        }
        let unfit = |reason| self.left.iter().filter(|left| left.unfit == Some(reason)).count();
        let counts = Unfit::ALL.iter().map(|reason| (unfit(*reason), reason.words()));
        let counts = counts.filter(|(count, _)| *count > 0);
        let total: usize = counts.clone().map(|(count, _)| count).sum();
        if total > 0 {
            let each: Vec<_> = counts.map(|(count, words)| format!("{count} {words}")).collect();
            explanation += &format!("; {total} of {all} unfit to be shared: {}", each.join(", "));
        }
        if let Some(Sampled { size, seen }) = self.sampled {
            explanation +=
                &format!("; {seen} traces are too many to compare, so a uniform sample of {size} was");
        }
        explanation
    }

    /// Returns how many candidates that can be chosen were not.
    #[must_use]
    pub fn others(&self) -> usize {
        self.left.iter().filter(|left| left.unfit.is_none()).count()
    }
}

/// Returns after how many values a rising curve bends most: where it lies highest above its chord, as Kneedle has it (Satopää et al.
/// 2011). `before` is its value at 0. `None` if it hardly bends.
#[allow(clippy::cast_precision_loss)] // No curve has 2^53 values.
fn knee(before: f64, curve: &[f64]) -> Option<usize> {
    let rise = curve.last()? - before;
    let above = |at: usize| (curve[at] - before) / rise - (at + 1) as f64 / curve.len() as f64;
    // Of equal ones the first.
    let highest = (0..curve.len())
        .rev()
        .max_by(|&one, &other| above(one).total_cmp(&above(other)))?;
    (above(highest) >= LEAST_BEND).then_some(highest + 1)
}

/// Completes "no outcome is known: ...".
const WITHOUT_OUTCOME: &str = "runs that ended soon, without errors and without hedging count more";

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
    let mut qualities = value::qualities(neighbours, &outcomes);
    // What cannot be chosen need not be covered either.
    let pairs = qualities.iter_mut().zip(&unfit);
    pairs
        .filter(|(_, unfit)| unfit.is_some())
        .for_each(|(quality, _)| *quality = 0.0);
    let parts = value::parts_of_agents(&outcomes);
    let weights = neighbours.iter().zip(&qualities).zip(&outcomes);
    let weights = weights.map(|((of, quality), outcome)| match outcome.success {
        Some(_) => *quality,
        None => quality / (value::density(of) * parts[&outcome.agent]),
    });
    let known = |of: &Neighbours| of.before.map_or(0.0, |known| known.similarity);
    let cover: Vec<_> = neighbours.iter().map(known).collect();
    let mut facility = Facility::new(neighbours, weights.collect(), qualities.clone(), cover.clone());
    let (before, most) = (facility.value(), facility.most());
    let is_new = |known: f64| !options.ends || known < KNOWN_TASK;
    let pairs = cover.iter().zip(&unfit);
    let is_eligible: Vec<_> = pairs
        .map(|(known, unfit)| unfit.is_none() && is_new(*known))
        .collect();
    let kinds = [unsolved(neighbours, &outcomes), short(&outcomes)];
    let mut picks = Vec::new();
    let add = |facility: &mut _, picks: &mut _, copy| {
        pick(facility, picks, is_eligible.clone(), &kinds, options, copy);
    };
    // Where known traces cover something, the curve has bent among these.
    if !options.ends || before == 0.0 {
        let copy = if options.only_new { COPY } else { f64::INFINITY };
        add(&mut facility, &mut picks, copy);
    }
    if options.ends {
        let curve = picks.iter().scan(before, |covered, (pick, _)| {
            *covered += pick.gain;
            Some(*covered)
        });
        let knee = knee(before, &curve.collect::<Vec<_>>()).unwrap_or(picks.len());
        picks.truncate(knee);
        // What is behind the knee covers nothing, so that others take its places.
        facility.restart(cover, picks.iter().map(|(pick, _)| pick.index));
        add(&mut facility, &mut picks, SAME_TASK);
    }
    let mut ranks = vec![None; neighbours.len()];
    for (rank, (pick, _)) in picks.iter().enumerate() {
        ranks[pick.index] = Some(rank);
    }

    let (mut covered, mut chosen) = (before, Vec::new());
    for (Pick { index, gain, nearest }, reason) in picks {
        covered += gain;
        let mut near = neighbours[index].nearest.iter().copied();
        chosen.push(Chosen {
            index,
            reason,
            gain,
            covered: share(covered, most),
            nearest_before: nearest,
            stands_for: Vec::new(),
            nearest_left: near.find(|near| ranks[near.index].is_none()),
        });
    }
    let standings = stand(neighbours, &qualities, &ranks);
    list(&mut chosen, &standings, &ranks);
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
        sampled: None,
    }
}

/// Returns the part of the largest F.
fn share(value: f64, most: f64) -> f64 {
    if most > 0.0 { (value / most).min(1.0) } else { 0.0 }
}

/// Lists with each chosen trace those that it stands for. `ranks` are those of the chosen traces.
fn list(chosen: &mut [Chosen], standings: &[(usize, Standing)], ranks: &[Option<usize>]) {
    for &(index, standing) in standings {
        if let Standing::Chosen(by) = standing
            && let Some(rank) = ranks[by.index]
        {
            chosen[rank].stands_for.push(Neighbour { index, ..by });
        }
    }
    for chosen in chosen {
        let by_similarity = |one: &Neighbour, other: &Neighbour| other.similarity.total_cmp(&one.similarity);
        chosen.stands_for.sort_by(by_similarity);
    }
}

/// Adds picks until there are as many as are asked for, passing over traces that are as similar as `copy` to one before. The room for failures is
/// filled after the others, and short runs of unknown outcome come where there are too few others.
fn pick(
    facility: &mut Facility,
    picks: &mut Vec<(Pick, Reason)>,
    mut is_eligible: Vec<bool>,
    [unsolved, short]: &[Vec<bool>; 2],
    options: &SelectOptions,
    copy: f64,
) {
    let count = options.count.of(is_eligible.len());
    let room = options.failures.map_or(0, |failures| failures.of(count));
    picks.iter().for_each(|(pick, _)| is_eligible[pick.index] = false);
    let phases = [
        (Reason::Coverage, false, count - room),
        (Reason::Failure, true, count),
        (Reason::Coverage, false, count),
        (Reason::Coverage, true, count),
    ];
    for (reason, takes_short, until) in phases {
        let eligible: Vec<_> = (0..is_eligible.len())
            .map(|index| {
                is_eligible[index]
                    && (reason == Reason::Coverage || unsolved[index])
                    && (takes_short || !short[index])
            })
            .collect();
        for pick in facility.choose_greedily(until.saturating_sub(picks.len()), &eligible, copy) {
            is_eligible[pick.index] = false;
            picks.push((pick, reason));
        }
    }
}

/// Returns which runs of unknown outcome are short.
fn short(outcomes: &[SelectOutcome]) -> Vec<bool> {
    let unknown = outcomes.iter().filter(|outcome| outcome.success.is_none());
    let mut turns: Vec<_> = unknown.map(|outcome| outcome.signs.turns).collect();
    turns.sort_unstable();
    let median = turns.get(turns.len() / 2).copied().unwrap_or_default();
    let fewest = FEWEST_TURNS.min(median / 3);
    let is_short = |outcome: &SelectOutcome| outcome.success.is_none() && outcome.signs.turns < fewest;
    outcomes.iter().map(is_short).collect()
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
fn stand(neighbours: &[Neighbours], qualities: &[f64], ranks: &[Option<usize>]) -> Vec<(usize, Standing)> {
    let left = (0..ranks.len()).filter(|&index| ranks[index].is_none());
    left.map(|index| {
        let known = neighbours[index].before.filter(|known| known.similarity > 0.0);
        let mut best = known.map_or(0.0, |known| known.similarity);
        let mut standing = known.map_or(Standing::Nothing, Standing::Known);
        for &near in &neighbours[index].nearest {
            let value = qualities[near.index] * near.similarity;
            if ranks[near.index].is_some() && value > best {
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
