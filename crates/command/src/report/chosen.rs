//! A chosen set, with the traces that are shown of it.

use std::collections::HashMap;

use knowledgepulse_json::{Value, object};
use knowledgepulse_score::select::{Neighbour, Reason, Selection};

use super::{bounded::rounded, duplicates::Listed};
use crate::{
    json_object,
    values::{IntoValue, list},
};

/// How many chosen traces are listed, and how many traces that each stands for.
const LISTED: usize = 200;
const LISTED_SIMILAR: usize = 4;

/// A curve that rises less above its chord than this has no knee.
const LEAST_BEND: f64 = 0.05;

/// A chosen set in a report, in bounded memory.
#[derive(Debug)]
pub(super) struct ChosenSet {
    explanation: String,
    chosen: u64,
    covered_before: f64,
    /// The part that the first trace covers, the first two and so on, beyond the set.
    curve: Vec<f64>,
    /// The traces that are listed, in the order of their ranks.
    traces: Vec<Shown>,
    /// The descriptions of these and of the traces that they stand for, by position, once they were added.
    listed: HashMap<usize, Option<Listed>>,
}

/// A chosen trace that is listed.
#[derive(Debug)]
struct Shown {
    position: usize,
    reason: Reason,
    /// For how many traces it stands.
    stands_for: u64,
    /// The most similar of these.
    similar: Vec<Neighbour>,
}

impl ChosenSet {
    /// Returns the report's data about a selection; `None` if the curve beyond it was not asked for.
    pub(super) fn of(selection: &Selection) -> Option<Self> {
        let beyond = selection.beyond.as_ref()?;
        let shown = selection.chosen.iter().take(LISTED);
        let shown = shown.map(|chosen| Shown {
            position: chosen.index,
            reason: chosen.reason,
            stands_for: chosen.stands_for.len() as u64,
            similar: chosen.stands_for.iter().take(LISTED_SIMILAR).copied().collect(),
        });
        let traces: Vec<_> = shown.collect();
        let similar = traces.iter().flat_map(|shown| &shown.similar);
        let positions = traces.iter().map(|shown| shown.position);
        let positions = positions.chain(similar.map(|near| near.index));
        let covered = selection.chosen.iter().map(|chosen| chosen.covered);
        Some(Self {
            explanation: selection.explanation(),
            chosen: selection.chosen.len() as u64,
            covered_before: selection.covered_before,
            curve: covered.chain(beyond.iter().copied()).collect(),
            listed: positions.map(|position| (position, None)).collect(),
            traces,
        })
    }

    /// Takes the description of a trace, if it is listed.
    pub(super) fn add(&mut self, listed: &Listed) {
        let place = usize::try_from(listed.position).ok();
        if let Some(shown) = place.and_then(|position| self.listed.get_mut(&position)) {
            *shown = Some(listed.clone());
        }
    }

    /// Returns it as the page reads it.
    pub(super) fn summary(&self) -> Value {
        let curve = self.curve.iter().map(|covered| rounded(*covered));
        let traces = (1_u64..).zip(&self.traces).filter_map(|(rank, shown)| {
            let similar = shown.similar.iter().filter_map(|near| {
                let similarity = ("similarity", near.similarity.into());
                Some(object(self.fields(near.index)?.chain([similarity])))
            });
            let own = [
                ("rank", rank.into_value()),
                ("reason", shown.reason.name().into()),
                ("standsFor", shown.stands_for.into_value()),
                ("similar", list(similar)),
            ];
            Some(object(self.fields(shown.position)?.chain(own)))
        });
        json_object! {
            "explanation": self.explanation.as_str(),
            "chosen": self.chosen,
            "coveredBefore": rounded(self.covered_before),
            "curve": list(curve),
            "knee": knee(self.covered_before, &self.curve),
            "traces": list(traces),
        }
    }

    /// Returns the fields of a trace that is listed.
    fn fields(&self, position: usize) -> Option<impl Iterator<Item = (&'static str, Value)> + use<>> {
        let listed = self.listed.get(&position)?.as_ref()?;
        Some(listed.fields().into_iter())
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
