//! A chosen set: its curve, its traces, and for whom each stands.

use std::collections::HashMap;

use knowledgepulse_json::Value;
use knowledgepulse_score::select::Selection;

use crate::{
    json_object,
    show::{printable::rounded, values::list},
};

/// How many chosen traces are described, and how many traces that each stands for.
const LISTED: usize = 2_000;
const LISTED_SIMILAR: usize = 4;

/// A curve that rises less above its chord than this has no knee.
const LEAST_BEND: f64 = 0.05;

/// A chosen set in a report.
#[derive(Debug)]
pub(super) struct ChosenSet {
    /// `ChosenSet` in report/data.d.ts.
    pub described: Value,
    /// The standing in the list of traces: 2 for a chosen trace, 1 for one that it stands for.
    standings: HashMap<u64, u8>,
}

impl ChosenSet {
    /// Returns the report's data about a selection; `None` if the curve beyond it was not asked for.
    pub(super) fn of(selection: &Selection) -> Option<Self> {
        let beyond = selection.beyond.as_ref()?;
        let mut standings = HashMap::new();
        let listed = (1_u64..).zip(selection.chosen.iter().take(LISTED));
        let traces = list(listed.map(|(rank, chosen)| {
            standings.insert(chosen.index as u64, 2);
            let similar = chosen.stands_for.iter().take(LISTED_SIMILAR).map(|near| {
                standings.entry(near.index as u64).or_insert(1);
                json_object! { "position": near.index, "similarity": near.similarity }
            });
            json_object! {
                "similar": list(similar),
                "position": chosen.index,
                "rank": rank,
                "reason": chosen.reason.name(),
                "standsFor": chosen.stands_for.len(),
            }
        }));
        let covered = selection.chosen.iter().map(|chosen| chosen.covered);
        // The part that the first trace covers, the first two and so on, beyond the set.
        let curve: Vec<f64> = covered.chain(beyond.iter().copied()).collect();
        let before = selection.covered_before;
        let described = json_object! {
            "traces": traces,
            "explanation": selection.explanation(),
            "chosen": selection.chosen.len(),
            "coveredBefore": rounded(before, 4),
            "curve": list(curve.iter().map(|covered| rounded(*covered, 4))),
            "knee": knee(before, &curve),
        };
        Some(Self { described, standings })
    }

    /// Returns the standing of a trace in the list.
    pub(super) fn standing(&self, position: u64) -> u8 {
        self.standings.get(&position).copied().unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knee_is_where_a_curve_bends_most() {
        assert_eq!(knee(0.0, &[0.3, 0.6, 0.9, 0.92, 0.94, 0.96, 0.98, 1.0]), Some(3));
        assert_eq!(knee(0.5, &[0.7, 0.9, 0.91, 0.92]), Some(2));
        assert_eq!(knee(0.0, &[0.25, 0.5, 0.75, 1.0]), None);
        assert_eq!(knee(0.0, &[]), None);
        assert_eq!(knee(0.4, &[0.4, 0.4]), None);
    }
}
