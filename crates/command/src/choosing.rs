//! Chooses a set of the traces of a run, for `--select`.

use std::sync::mpsc::Receiver;

use knowledgepulse_embed::DIMENSIONS;
use knowledgepulse_error::Error;
use knowledgepulse_index::traces::TraceEntry;
use knowledgepulse_json::{Text, Value};
use knowledgepulse_score::{
    engine::Comparable,
    select::{Candidates, Chosen, Left, Neighbour, Options, Outcome, Selection, Standing, Unfit, select},
};
use knowledgepulse_trace::{Trace, label::Label};

use crate::{
    error::{Failure, Result},
    json_object,
    labels::{Labels, ids_of, names_of},
    messages::Messages,
    options,
    run_memory::RunMemory,
    scored::Scored,
    start::Stop,
    values::list,
};

/// How many of the traces that a chosen one stands for are listed.
const MOST_LISTED: usize = 16;

/// A trace that may be chosen.
pub(crate) struct Candidate {
    /// The key of the trace in a memory.
    pub label: Option<Label>,
    /// The words or embedding to compare, once computed.
    pub compared: Receiver<Option<Comparable>>,
}

/// The facts about a trace by which a set is chosen.
pub(crate) struct Facts {
    outcome: Outcome,
    unfit: Option<Unfit>,
    /// The ids that its format gave, beside that of the trace.
    ids: Vec<Text>,
}

impl Facts {
    /// Reads the facts of a trace; `known` tells whether its record said how it ended.
    pub(crate) fn of(trace: &Trace, value: &Value, known: bool) -> Self {
        Self {
            outcome: Outcome::of(trace, known && !was_unknown(value)),
            unfit: Unfit::of(trace),
            ids: ids_of(value),
        }
    }
}

/// Returns whether nobody knew how the run ended when the trace was converted.
fn was_unknown(trace: &Value) -> bool {
    let path = ["metadata", "imported", "known", "success"];
    let known = path.into_iter().try_fold(trace, |value, name| value.get(name));
    known == Some(&Value::Bool(false))
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
    /// Reads the labels. `known` holds the traces that are shared already.
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
                beyond: options.report.is_some(),
            },
        }))
    }

    /// Adds a scored trace.
    pub(crate) fn add(&mut self, scored: &Scored, facts: Facts, candidate: Candidate) -> Result<()> {
        let Facts {
            mut outcome,
            unfit,
            ids,
        } = facts;
        if let Some(labels) = &mut self.labels {
            let names = names_of(&scored.place.source);
            match labels.of(scored.id.iter().chain(&ids).chain(&names)) {
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
        self.ids.push(scored.id.clone());
        let text = text.as_ref();
        let entry = TraceEntry {
            words: words.words(),
            vector: text.map(|text| &text.embedding[..]),
            label: candidate.label.as_ref(),
            model: text.and_then(|text| text.origin.model.as_ref()),
        };
        self.candidates
            .add(entry, outcome, unfit)
            .map_err(|error| failed(&error))
    }

    /// Sets the similarity of the last added trace to the traces in a store.
    pub(crate) fn set_covered(&mut self, similarity: f64) {
        self.candidates.set_covered(similarity);
    }

    /// Adds a trace to a memory, by its position among the added traces and with its novelty.
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

    /// Refuses labels that belong to no trace, or warns of them if they may belong to traces that the run has not added.
    pub(crate) fn check_labels(&self, is_strict: bool, messages: &Messages) -> Result<()> {
        let Some(labels) = &self.labels else {
            return Ok(());
        };
        let without = self.without_label;
        let unused = labels.unused();
        if is_strict && let Some(reason) = unused {
            return Err(Failure::file(format!(
                "--labels: {reason}; --keep-going chooses without them"
            )));
        }
        let without = (without > 0).then(|| format!("{without} traces have no label"));
        let problems: Vec<_> = unused.into_iter().chain(without).collect();
        if !problems.is_empty() {
            messages.warning(format!("--labels: {}", problems.join(", and ")));
        }
        Ok(())
    }

    /// Chooses, unless the run is interrupted, and tells how.
    pub(crate) fn choose(&mut self, messages: &Messages, stop: &Stop) -> Result<Selection> {
        let interrupted_before = stop.is_interrupted();
        let go_on = |_| interrupted_before || !stop.is_interrupted();
        let selection = select(&mut self.candidates, &self.options, &go_on).map_err(|error| match error {
            Error::Aborted => Failure::interrupted("interrupted: nothing was chosen"),
            error => failed(&error),
        })?;
        messages.note(selection.explanation());
        Ok(selection)
    }

    /// Returns the selection's entry for a trace, by its position among the added traces.
    pub(crate) fn describe(&self, selection: &Selection) -> Vec<Value> {
        let mut described = vec![Value::Null; self.ids.len()];
        for (rank, chosen) in (1..).zip(&selection.chosen) {
            described[chosen.index] = self.describe_chosen(rank, chosen);
        }
        for &Left {
            index,
            standing,
            unfit,
        } in &selection.left
        {
            let chosen = match standing {
                Standing::Chosen(near) => Some(self.describe_near(near)),
                _ => None,
            };
            let known = match standing {
                Standing::Known(_, similarity) => Some(json_object! { "similarity": similarity }),
                _ => None,
            };
            let unfit = unfit.map(Unfit::name);
            described[index] = json_object! { "chosen": chosen, "known": known, "unfit": unfit };
        }
        described
    }

    fn describe_chosen(&self, rank: u64, chosen: &Chosen) -> Value {
        let similar = chosen.stands_for.iter().take(MOST_LISTED);
        json_object! {
            "rank": rank,
            "reason": chosen.reason.name(),
            "gain": chosen.gain,
            "covered": chosen.covered,
            "standsFor": chosen.stands_for.len(),
            "similar": list(similar.map(|near| self.describe_near(*near))),
            "nearestLeft": chosen.nearest_left.map(|near| self.describe_near(near)),
        }
    }

    fn describe_near(&self, near: Neighbour) -> Value {
        json_object! { "id": self.ids[near.index].clone(), "similarity": near.similarity }
    }
}

fn failed(error: &Error) -> Failure {
    Failure::file(error.to_string())
}
