//! What a trace is worth: q, and the density around it.

use std::collections::HashMap;

use knowledgepulse_index::traces::join::Neighbours;

use super::{DENSE, SelectOutcome};

/// From which similarity on the told outcomes of neighbours say something about a trace's own.
const AGREES: f64 = 0.3;

/// What a reader tells a success to be worth.
const TOLD_SUCCESS: f64 = 0.9;

/// The part of a told outcome that its neighbours cannot take.
const OWN: f64 = 0.75;

/// Returns q of each trace.
pub(super) fn qualities(neighbours: &[Neighbours], outcomes: &[SelectOutcome]) -> Vec<f64> {
    let told: Vec<_> = outcomes.iter().map(|outcome| outcome.told()).collect();
    let mean = mean(told.iter().flatten());
    let places: Vec<_> = (0..outcomes.len()).filter(|&at| told[at].is_none()).collect();
    let unknown: Vec<_> = places.iter().map(|&at| outcomes[at]).collect();
    let mut qualities = vec![0.0; outcomes.len()];
    for (&at, rank) in places.iter().zip(ranks(&unknown)) {
        // Among told outcomes the signs change the mean by a quarter.
        qualities[at] = mean.map_or(rank, |mean| (mean * (OWN + 0.5 * rank)).min(1.0));
    }
    for (at, own) in (0..).zip(&told).filter_map(|(at, told)| Some((at, (*told)?))) {
        let near = neighbours[at]
            .nearest
            .iter()
            .filter(|near| near.similarity >= AGREES);
        let around = near.filter_map(|near| told[near.index].as_ref());
        let around = self::mean(around.chain([&own])).unwrap_or(own);
        let agreement = (around / TOLD_SUCCESS).min(1.0);
        let is_verified = outcomes[at].is_verified;
        qualities[at] = if is_verified {
            own
        } else {
            own * (OWN + (1.0 - OWN) * agreement)
        };
    }
    qualities
}

/// Returns the mean rank of each run among those of its agent by its signs, 0 to 1: few steps, few late errors and few hedges are best.
#[allow(clippy::cast_precision_loss)] // No trace has 2^53 steps.
fn ranks(outcomes: &[SelectOutcome]) -> Vec<f64> {
    let signs: [fn(&SelectOutcome) -> f64; 3] = [
        |outcome| outcome.signs.steps as f64,
        |outcome| outcome.signs.late_errors as f64,
        |outcome| outcome.signs.hedging,
    ];
    let mut ranks = vec![0.0; outcomes.len()];
    for sign in signs {
        let mut sorted: Vec<_> = outcomes
            .iter()
            .map(|outcome| (outcome.agent, sign(outcome)))
            .collect();
        sorted.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        for (rank, outcome) in ranks.iter_mut().zip(outcomes) {
            let (agent, value) = (outcome.agent, sign(outcome));
            let start = sorted.partition_point(|other| other.0 < agent);
            let of_agent = &sorted[start..sorted.partition_point(|other| other.0 <= agent)];
            let smaller = of_agent.partition_point(|other| other.1 < value);
            let not_larger = of_agent.partition_point(|other| other.1 <= value);
            // Equal ones share the middle of their ranks, and a run that is alone has the middle of all.
            *rank += 1.0 - (smaller + not_larger) as f64 / (2 * of_agent.len()) as f64;
        }
    }
    ranks.into_iter().map(|rank| rank / signs.len() as f64).collect()
}

#[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
fn mean<'v>(values: impl Iterator<Item = &'v f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Returns the root of the part that each agent has of the runs of unknown outcome: 1 where there is one agent.
#[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
pub(super) fn parts_of_agents(outcomes: &[SelectOutcome]) -> HashMap<u64, f64> {
    let mut counts: HashMap<u64, f64> = HashMap::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.success.is_none()) {
        *counts.entry(outcome.agent).or_default() += 1.0;
    }
    let all: f64 = counts.values().sum();
    counts
        .into_iter()
        .map(|(agent, count)| (agent, (count / all).sqrt()))
        .collect()
}

/// How much of its kind there is around a trace, itself included.
pub(super) fn density(of: &Neighbours) -> f64 {
    let nearest = of.nearest.iter().take(DENSE);
    1.0 + nearest.map(|near| near.similarity).sum::<f64>()
}
