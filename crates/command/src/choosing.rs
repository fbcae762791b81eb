//! Chooses a set of the traces of a run, for `--select`.

use std::{mem, sync::mpsc::Receiver};

use knowledgepulse_embed::DIMENSIONS;
use knowledgepulse_error::Error;
use knowledgepulse_index::traces::TraceEntry;
use knowledgepulse_json::{Text, Value, parse_str};
use knowledgepulse_score::{
    engine::Comparable,
    select::{Candidates, Chosen, Neighbour, Offered, Options, Outcome, Sample, Selection, Standing, select},
};
use knowledgepulse_trace::{
    json::{self, Texts},
    label::Label,
    words::Words,
};

use crate::{
    error::{Failure, Result},
    json_object,
    labels::Labels,
    messages::Messages,
    options,
    run_memory::RunMemory,
    start::Stop,
    values::list,
};

/// How many of the traces that a chosen one stands for are listed.
const MOST_LISTED: usize = 16;

/// How many traces are compared at a time that are read again.
const BATCH: usize = 256;

/// A trace that may be chosen.
pub(crate) struct Candidate {
    /// The key of the trace in a memory.
    pub label: Option<Label>,
    /// The words or embedding to compare, once computed.
    pub compared: Receiver<Option<Comparable>>,
}

/// The candidates of a set.
enum From {
    /// All traces.
    All(Box<Candidates>),
    /// A sample, and traces that are read again, with their outcomes.
    Again(Sample, Vec<Outcome>),
}

/// The scored traces of a run, from which a set is chosen.
pub(crate) struct Choosing {
    from: From,
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
        let all = || beside.unwrap_or_else(|| Candidates::new(options.novelty, DIMENSIONS));
        Ok(Some(Self {
            from: match options.window {
                None => From::All(Box::new(all())),
                Some(window) => From::Again(Sample::new(window), Vec::new()),
            },
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

    /// Adds a scored trace; `outcome` is the outcome that it states itself.
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
        self.ids.push(id.cloned());
        let candidates = match &mut self.from {
            From::All(candidates) => candidates,
            From::Again(sample, outcomes) => {
                outcomes.push(outcome);
                sample.offer(|| offered(words.words().clone(), outcome));
                return Ok(());
            }
        };
        let text = text.as_ref();
        let entry = TraceEntry {
            words: words.words(),
            vector: text.map(|text| &text.embedding[..]),
            label: candidate.label.as_ref(),
            model: text.and_then(|text| text.origin.model.as_ref()),
        };
        candidates.add(entry, outcome).map_err(|error| failed(&error))
    }

    /// Sets the similarity of the last added trace to the traces in a store.
    pub(crate) fn set_covered(&mut self, similarity: f64) {
        if let From::All(candidates) = &mut self.from {
            candidates.set_covered(similarity);
        }
    }

    /// Adds a trace to a memory, by its position among the added traces and with its novelty.
    pub(crate) fn share(&mut self, position: usize, novelty: f64, memory: &RunMemory) -> Result<()> {
        let From::All(candidates) = &mut self.from else {
            return Ok(());
        };
        let Some(stored) = candidates.get(position) else {
            return Ok(());
        };
        let label = stored.label.map(|label| label.with_novelty(novelty));
        memory.add(TraceEntry {
            words: &stored.words,
            vector: stored.vector.as_deref(),
            label: label.as_ref(),
            model: candidates.model(),
        })
    }

    /// Chooses, unless the run is interrupted, and tells how. `again` hands the traces on once more, as they were recorded, in JSON.
    pub(crate) fn choose(
        &mut self,
        messages: &Messages,
        stop: &Stop,
        again: impl FnOnce(&mut dyn FnMut(&str) -> Result<()>) -> Result<()>,
    ) -> Result<Selection> {
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
        let failed = |error| match error {
            Error::Aborted => Failure::interrupted("interrupted: nothing was chosen"),
            error => failed(&error),
        };
        let selection = match &mut self.from {
            From::All(candidates) => select(candidates, &self.options, &go_on).map_err(failed)?,
            From::Again(sample, outcomes) => {
                let Options {
                    count,
                    threads,
                    outlook,
                    ..
                } = self.options;
                let sample = mem::replace(sample, Sample::new(0));
                let mut sieve = sample.into_sieve(count, threads, &go_on).map_err(failed)?;
                let mut batch = Vec::with_capacity(BATCH);
                let mut outcomes = outcomes.iter();
                let mut take = |trace: &str| {
                    let read = || json::read(&parse_str(trace).ok()?, Texts::Whole).ok();
                    let (Some(trace), Some(&outcome)) = (read(), outcomes.next()) else {
                        return Err(Failure::file(
                            "a trace that waited to be chosen came back damaged: please report it",
                        ));
                    };
                    batch.push(offered(Words::of(&trace), outcome));
                    if batch.len() == BATCH {
                        sieve.offer(&batch).map_err(failed)?;
                        batch.clear();
                        if !go_on(0) {
                            return Err(failed(Error::Aborted));
                        }
                    }
                    Ok(())
                };
                again(&mut take)?;
                sieve.offer(&batch).map_err(failed)?;
                sieve.finish(outlook)
            }
        };
        messages.note(selection.explanation());
        Ok(selection)
    }

    /// Returns the selection's entry for a trace, by its position among the added traces.
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
                Standing::Known(_, similarity) => Some(json_object! { "similarity": similarity }),
                _ => None,
            };
            described[index] = json_object! { "chosen": chosen, "known": known };
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

/// Returns a trace as a sample takes it; its id is known by its position.
fn offered(words: Words, outcome: Outcome) -> Offered {
    Offered {
        words,
        outcome,
        label: None,
    }
}

fn failed(error: &Error) -> Failure {
    Failure::file(error.to_string())
}
