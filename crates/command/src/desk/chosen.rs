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
        selection.beyond.as_ref()?;
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
        let before = selection.covered_before;
        let described = json_object! {
            "traces": traces,
            "explanation": selection.explanation(),
            "chosen": selection.chosen.len(),
            "coveredBefore": rounded(before, 4),
            "curve": list(selection.curve().iter().map(|covered| rounded(*covered, 4))),
            "knee": selection.knee(),
        };
        Some(Self { described, standings })
    }

    /// Returns the standing of a trace in the list.
    pub(super) fn standing(&self, position: u64) -> u8 {
        self.standings.get(&position).copied().unwrap_or_default()
    }
}
