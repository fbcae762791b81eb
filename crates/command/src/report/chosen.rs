//! A chosen set, with the traces that are shown of it.

use std::collections::HashMap;

use knowledgepulse_json::{Value, object};
use knowledgepulse_score::select::{Neighbour, Reason, Selection, knee};

use super::{bounded::rounded, duplicates::Listed};
use crate::{
    json_object,
    values::{IntoValue, list},
};

/// A chosen set in a report, in bounded memory.
#[derive(Debug)]
pub(super) struct ChosenSet {
    explanation: String,
    chosen: u64,
    covered_before: f64,
    /// The part that the first trace covers, the first two and so on, beyond the set.
    curve: Vec<f64>,
    /// The traces on the map, in the order of their ranks.
    traces: Vec<Shown>,
    /// By the positions of the traces on the map: their place, and their description once they were added.
    places: HashMap<usize, ([f64; 2], Option<Listed>)>,
}

/// A chosen trace on the map.
#[derive(Debug)]
struct Shown {
    position: usize,
    reason: Reason,
    /// For how many traces it stands.
    stands_for: u64,
    /// The traces among them that are on the map.
    similar: Vec<Neighbour>,
}

impl ChosenSet {
    /// Returns the report's data about a selection; `None` if its outlook was not asked for.
    pub(super) fn of(selection: &Selection) -> Option<Self> {
        let outlook = selection.outlook.as_ref()?;
        let places = outlook.places.iter();
        let places: HashMap<_, _> = places
            .map(|place| (place.index, ([place.x, place.y], None)))
            .collect();
        let is_shown = |index: usize| places.contains_key(&index);
        let shown = selection
            .chosen
            .iter()
            .take_while(|chosen| is_shown(chosen.index));
        let shown = shown.map(|chosen| Shown {
            position: chosen.index,
            reason: chosen.reason,
            stands_for: chosen.stands_for.len() as u64,
            similar: chosen
                .stands_for
                .iter()
                .copied()
                .filter(|near| is_shown(near.index))
                .collect(),
        });
        let covered = selection.chosen.iter().map(|chosen| chosen.covered);
        Some(Self {
            explanation: selection.explanation(),
            chosen: selection.chosen.len() as u64,
            covered_before: selection.covered_before,
            curve: covered.chain(outlook.beyond.iter().copied()).collect(),
            traces: shown.collect(),
            places,
        })
    }

    /// Takes the description of a trace, if it is on the map.
    pub(super) fn add(&mut self, listed: &Listed) {
        let place = usize::try_from(listed.position)
            .ok()
            .and_then(|position| self.places.get_mut(&position));
        if let Some((_, shown)) = place {
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

    /// Returns the fields of a trace on the map.
    fn fields(&self, position: usize) -> Option<impl Iterator<Item = (&'static str, Value)>> {
        let ([x, y], listed) = self.places.get(&position)?;
        let place = [("x", rounded(*x).into()), ("y", rounded(*y).into())];
        Some(listed.as_ref()?.fields().into_iter().chain(place))
    }
}
