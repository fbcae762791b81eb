//! Chooses a set of the traces of a run, for `--select`.

use std::sync::mpsc::Receiver;

use knowledgepulse_embed::DIMENSIONS;
use knowledgepulse_error::Error;
use knowledgepulse_index::traces::TraceEntry;
use knowledgepulse_json::{Text, Value, object};
use knowledgepulse_score::{
    engine::Comparable,
    select::{Candidates, Chosen, Nearby, Options, Outcome, Selection, Standing, select},
};
use knowledgepulse_trace::label::Label;

use crate::{
    error::{Failure, Result},
    labels::Labels,
    messages::Messages,
    options,
    run_memory::RunMemory,
    start::Stop,
    values::{list, number, optional},
};

/// How many of the traces that a chosen one stands for are listed.
const MOST_LISTED: usize = 16;

/// A trace that may be chosen.
pub(crate) struct Candidate {
    /// What a memory keeps it under.
    pub label: Option<Label>,
    /// What is compared of it, once that is computed.
    pub compared: Receiver<Option<Comparable>>,
}

/// The scored traces of a run, from which a set is chosen.
pub(crate) struct Choosing {
    candidates: Candidates,
    ids: Vec<Option<Text>>,
    labels: Option<Labels>,
    /// How many traces have no label.
    without_label: u64,
    options: Options,
}

impl Choosing {
    /// Reads the labels. `known` is what is shared already.
    pub(crate) fn of(options: &options::Options, known: Option<&RunMemory>) -> Result<Option<Self>> {
        let Some(count) = options.select else {
            return Ok(None);
        };
        let labels = options.labels.as_deref();
        let labels = labels
            .map(|file| Labels::read(file, options.success_at))
            .transpose()?;
        let beside = known.and_then(RunMemory::candidates);
        Ok(Some(Self {
            candidates: beside.unwrap_or_else(|| Candidates::new(options.novelty, DIMENSIONS)),
            ids: Vec::new(),
            labels,
            without_label: 0,
            options: Options {
                count,
                failures: options.failures,
                threads: options.embedder_choice.threads.unwrap_or_default(),
                outlook: options.report.is_some(),
            },
        }))
    }

    /// Adds a trace that was scored; `outcome` is what it says of itself.
    pub(crate) fn add(
        &mut self,
        id: Option<&Text>,
        mut outcome: Outcome,
        candidate: Candidate,
    ) -> Result<()> {
        if let Some(labels) = &mut self.labels {
            match labels.of(id) {
                None => self.without_label += 1,
                Some(label) => {
                    outcome.success = Some(label.success);
                    outcome.confidence = label.confidence.unwrap_or(outcome.confidence);
                }
            }
        }
        let Ok(Some(Comparable {
            words: Some(words),
            text,
            ..
        })) = candidate.compared.recv()
        else {
            return Err(Failure::file("a trace could not be compared with the others"));
        };
        let text = text.as_ref();
        let entry = TraceEntry {
            words: &words,
            vector: text.map(|text| &text.embedding[..]),
            label: candidate.label.as_ref(),
            model: text.and_then(|text| text.origin.model.as_ref()),
        };
        self.ids.push(id.cloned());
        self.candidates
            .add(entry, outcome)
            .map_err(|error| failed(&error))
    }

    /// Says how similar the trace that was added last is to what is shared in a store.
    pub(crate) fn set_covered(&mut self, similarity: f64) {
        self.candidates.set_covered(similarity);
    }

    /// Adds a trace, by its position among those that were added, to a memory. It was scored with this novelty.
    pub(crate) fn share(&mut self, position: usize, novelty: f64, memory: &RunMemory) -> Result<()> {
        let Some(stored) = self.candidates.get(position) else {
            return Ok(());
        };
        let label = stored.label.map(|label| label.with_novelty(novelty));
        memory.add(TraceEntry {
            words: &stored.words,
            vector: stored.vector.as_deref(),
            label: label.as_ref(),
            model: self.candidates.model(),
        })
    }

    /// Chooses, unless the run is interrupted, and tells how.
    pub(crate) fn choose(&mut self, messages: &Messages, stop: &Stop) -> Result<Selection> {
        if let Some(labels) = &self.labels {
            let (unused, without) = (labels.unused(), self.without_label);
            if unused > 0 || without > 0 {
                messages.warning(format!(
                    "--labels: {unused} labels belong to no trace, and {without} traces have no label"
                ));
            }
        }
        let interrupted_before = stop.is_interrupted();
        let go_on = |_| interrupted_before || !stop.is_interrupted();
        let selection = select(&mut self.candidates, &self.options, &go_on).map_err(|error| match error {
            Error::Aborted => Failure::interrupted("interrupted: nothing was chosen"),
            error => failed(&error),
        })?;
        messages.note(selection.explanation());
        Ok(selection)
    }

    /// Returns what the set says of a trace, by its position among those that were added.
    pub(crate) fn describe(&self, selection: &Selection) -> Vec<Value> {
        let mut described = vec![Value::Null; self.ids.len()];
        for (rank, chosen) in (1..).zip(&selection.chosen) {
            described[chosen.index] = self.describe_chosen(rank, chosen);
        }
        for &(index, standing) in &selection.left {
            let chosen = match standing {
                Standing::Chosen(near) => Some(self.describe_near(near)),
                _ => None,
            };
            let known = match standing {
                Standing::Known(_, similarity) => Some(object([("similarity", similarity.into())])),
                _ => None,
            };
            described[index] = object([("chosen", optional(chosen)), ("known", optional(known))]);
        }
        described
    }

    fn describe_chosen(&self, rank: u64, chosen: &Chosen) -> Value {
        let similar = chosen.stands_for.iter().take(MOST_LISTED);
        object([
            ("rank", number(rank)),
            ("reason", chosen.reason.name().into()),
            ("gain", chosen.gain.into()),
            ("covered", chosen.covered.into()),
            ("standsFor", number(chosen.stands_for.len() as u64)),
            ("similar", list(similar.map(|near| self.describe_near(*near)))),
            (
                "nearestLeft",
                optional(chosen.nearest_left.map(|near| self.describe_near(near))),
            ),
        ])
    }

    fn describe_near(&self, near: Nearby) -> Value {
        object([
            ("id", optional(self.ids[near.index].clone())),
            ("similarity", near.similarity.into()),
        ])
    }
}

fn failed(error: &Error) -> Failure {
    Failure::file(error.to_string())
}
