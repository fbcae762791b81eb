//! Reads traces, and chooses a set of them: for `select` and `share`.

pub(crate) mod kept;
pub(crate) mod known;
pub(crate) mod labels;

use std::{collections::HashMap, sync::Arc, time::Instant};

use clap::Args;
use knowledgepulse_error::Error;
use knowledgepulse_index::{
    memory::Memory,
    method::Method,
    options::MemoryOptions,
    shared::lock,
    traces::{TraceEntry, TraceMemory},
};
use knowledgepulse_json::{Value, parse_str};
use knowledgepulse_score::{
    Scorer,
    engine::{Comparable, Status},
    select::{Candidates, Chosen, Count, Neighbour, SelectOptions, Selection, Unfit, select},
    weights::Profiles,
};
use knowledgepulse_trace::label::Label;

use crate::{
    args::{count, one_of},
    choose::{
        kept::Kept,
        known::{is_memory, load, new_memory},
        labels::{Labels, names_of},
    },
    error::{Failure, Result},
    files::{file_identity::STDIN, stop::Stop},
    host::Host,
    json_object,
    read::{Inputs, Seen, Sink, read},
    score::{
        Facts, Finished, Preparation, Prepared, Scoring, load_embedder,
        scored::{Place, Scored},
    },
    show::{messages::Messages, metadata::set_metadata, summary::Summary, values::list},
};

/// How many of the traces that a chosen one stands for are listed.
const MOST_LISTED: usize = 16;

/// How a set is chosen.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The set")]
pub(crate) struct ChoiceArgs {
    /// How many traces: 20, or 5%
    #[arg(value_name = "N", value_parser = count, help_heading = None::<&str>)]
    pub count: Count,

    /// Outcomes by id: JSON Lines or CSV with id, success or reward
    #[arg(long, value_name = "FILE")]
    pub labels: Option<String>,

    /// Traces that are shared already: a file of traces, or a memory
    #[arg(long, value_name = "FILE")]
    pub known: Option<String>,

    /// Keep room for N failures of tasks that nobody solved
    #[arg(long, value_name = "N", value_parser = count)]
    pub failures: Option<Count>,

    /// Compare words, or words and a digest by the model: full
    #[arg(long, value_name = "METHOD", default_value = "lexical", hide_possible_values = true,
        value_parser = one_of([Method::Lexical, Method::Full].map(|method| (method.name(), method))))]
    pub novelty: Method,
}

/// A set that was chosen.
pub(crate) struct Set {
    pub selection: Selection,
    /// The figures of all traces.
    pub summary: Summary,
    pub seen: Seen,
    /// The state of the embedder, if traces were compared by it.
    pub status: Status,
    method: Method,
    /// The traces, in the order of the input.
    pub scored: Vec<Scored>,
    /// Their JSON, as ReasoningTraces.
    pub kept: Kept,
}

/// Reads the inputs, and chooses a set of their traces. `beyond` as in [`SelectOptions::beyond`].
///
/// # Errors
/// If a file of the options cannot be read, the model is missing, or a second signal ends the choice.
pub(crate) fn choose(
    inputs: &Inputs,
    choice: &ChoiceArgs,
    beyond: bool,
    host: &dyn Host,
    messages: &Messages,
    stop: &Stop,
) -> Result<Set> {
    let method = choice.novelty;
    let labels = choice.labels.as_deref().map(Labels::read).transpose()?;
    let status = load_embedder(method, host, messages)?;
    let known_memory = choice.known.as_deref().filter(|file| is_memory(file));
    let held = match known_memory {
        Some(file) => load(file, method, &status)?,
        None => None,
    };
    let known = match &held {
        Some(Memory::Traces { memory, .. }) => lock(memory).clone(),
        _ => TraceMemory::new(
            method,
            MemoryOptions {
                max_elements: usize::MAX,
                ..MemoryOptions::default()
            },
        ),
    };
    let scorer = Scorer {
        memory: Some(held.unwrap_or_else(|| new_memory(method))),
        profiles: Profiles::default(),
    };
    let scoring = Scoring::new(host.engine(), scorer, false);
    let prepare = Preparation::prepare_with(&scoring.scorer, true, false);
    let mut choosing = Choosing {
        scoring,
        known: Some(known),
        candidates: None,
        labels,
        without_label: 0,
        kept: Kept::new()?,
        scored: Vec::new(),
        summary: Summary::new(),
        messages,
    };
    if let Some(file) = choice.known.as_deref().filter(|_| known_memory.is_none()) {
        if file == STDIN || !std::path::Path::new(file).is_file() {
            return Err(Failure::file(format!("--known must be a file: {file}")));
        }
        let known = Inputs {
            sources: vec![file.to_owned()],
            ..Inputs::default()
        };
        let seen = read(&known, Arc::clone(&prepare), &mut choosing, messages, stop)?;
        if let Some(lack) = seen.why_incomplete(stop) {
            return Err(Failure::file(format!("--known: {lack}")));
        }
    }
    choosing.begin();
    let seen = read(inputs, prepare, &mut choosing, messages, stop)?;
    messages.stop_progress();
    let selection = choosing.choose(
        &SelectOptions {
            count: choice.count,
            failures: choice.failures,
            threads: 0,
            beyond,
            only_new: false,
        },
        stop,
    )?;
    Ok(Set {
        selection,
        summary: choosing.summary,
        seen,
        status,
        method,
        scored: choosing.scored,
        kept: choosing.kept,
    })
}

/// Collects the traces to choose from.
struct Choosing<'h> {
    scoring: Scoring<'h>,
    /// The traces that are shared already, while they are read.
    known: Option<TraceMemory>,
    /// The traces to choose from, afterwards.
    candidates: Option<Candidates>,
    labels: Option<Labels>,
    /// How many traces have no label.
    without_label: u64,
    kept: Kept,
    scored: Vec<Scored>,
    summary: Summary,
    messages: &'h Messages,
}

impl Sink<Prepared> for Choosing<'_> {
    fn take(&mut self, place: Place, size: u64, trace: Prepared, seen: &mut Seen) -> Result<()> {
        self.scoring.begin(place, size, *trace);
        while self.scoring.is_full() {
            self.settle(seen)?;
        }
        Ok(())
    }

    fn settle(&mut self, seen: &mut Seen) -> Result<bool> {
        let Some(finished) = self.scoring.next(self.messages, || Ok(true))? else {
            return Ok(false);
        };
        let Finished {
            outcome,
            facts,
            text,
            label,
            compared,
        } = finished;
        match outcome {
            Ok(scored) => self.add(scored, facts, &text, label, compared)?,
            Err((place, reason)) => seen.add_bad(&place, &reason, self.messages),
        }
        Ok(true)
    }
}

impl Choosing<'_> {
    /// Goes on to the traces to choose from.
    fn begin(&mut self) {
        self.candidates = self.known.take().as_mut().map(Candidates::beside);
        self.summary.begin();
    }

    fn add(
        &mut self,
        mut scored: Scored,
        mut facts: Facts,
        text: &str,
        label: Option<Label>,
        compared: Option<Comparable>,
    ) -> Result<()> {
        let Some(Comparable {
            words: Some(words),
            text: embedded,
            ..
        }) = compared
        else {
            return Err(Failure::file("a trace could not be compared with the others"));
        };
        let embedded = embedded.as_ref();
        let entry = TraceEntry {
            words: words.words(),
            vector: embedded.map(|embedded| &embedded.embedding[..]),
            label: label.as_ref(),
            model: embedded.and_then(|embedded| embedded.origin.model.as_ref()),
        };
        let Some(candidates) = &mut self.candidates else {
            let added = self.known.as_mut().map(|known| known.add(entry, Instant::now()));
            return added.transpose().map(drop).map_err(|error| failed(&error));
        };
        let mut labelled = None;
        if let Some(labels) = &mut self.labels {
            let names = names_of(&scored.place.source);
            match labels.of(scored.about.id.iter().chain(&facts.ids).chain(&names)) {
                None => self.without_label += 1,
                Some(label) => {
                    facts.outcome.success = Some(label.success);
                    facts.outcome.is_verified = true;
                    facts.outcome.confidence = label.confidence.unwrap_or(facts.outcome.confidence);
                    scored.about.success = Some(label.success);
                    labelled = Some(with_success(text, label.success));
                }
            }
        }
        candidates
            .add(entry, facts.outcome, facts.unfit)
            .map_err(|error| failed(&error))?;
        self.summary.add(&scored);
        self.scored.push(scored);
        self.kept.add(labelled.as_deref().unwrap_or(text))
    }

    /// Chooses, unless the run is interrupted meanwhile, and tells how.
    fn choose(&mut self, options: &SelectOptions, stop: &Stop) -> Result<Selection> {
        if let Some(labels) = &self.labels {
            let without = self.without_label;
            let without = (without > 0).then(|| format!("{without} traces have no label"));
            let problems: Vec<_> = labels.unused()?.into_iter().chain(without).collect();
            if !problems.is_empty() {
                self.messages
                    .warning(format!("--labels: {}", problems.join(", and ")));
            }
        }
        if let Some(candidates) = &mut self.candidates {
            let runs = || self.scored.iter().map(|scored| &scored.about.run);
            let parents = runs().filter(|run| run.parent.is_none() || run.session != run.parent);
            let parents: HashMap<_, _> = parents
                .filter_map(|run| Some((run.session.clone()?, run.parent.clone())))
                .collect();
            for (index, run) in runs().enumerate() {
                if run.root(&parents).is_some() {
                    candidates.leave_out(index, Unfit::SubAgent);
                }
            }
        }
        let interrupted_before = stop.is_interrupted();
        let go_on = |_| interrupted_before || !stop.is_interrupted();
        let Some(candidates) = &mut self.candidates else {
            return Err(Failure::file("there is nothing to choose from"));
        };
        let selection = select(candidates, options, &go_on).map_err(|error| match error {
            Error::Aborted => Failure::interrupted("interrupted: nothing was chosen"),
            error => failed(&error),
        })?;
        if self.summary.scored() > 0 {
            self.messages.note(selection.explanation());
        }
        Ok(selection)
    }
}

/// Returns the text of a trace with an outcome that was told, which is known from then on.
fn with_success(text: &str, success: bool) -> String {
    let mut values = vec![("success", Some(success.into()))];
    let trace = parse_str(text).ok();
    let imported = trace
        .as_ref()
        .and_then(|trace| trace.at(&["metadata", "imported"]));
    if let Some(Value::Object(mut imported)) = imported.cloned()
        && let Some(Value::Object(known)) = imported.get_mut("known")
    {
        known.remove("success");
        values.push(("imported", Some(Value::Object(imported))));
    }
    set_metadata(text, &values)
}

fn failed(error: &Error) -> Failure {
    Failure::file(error.to_string())
}

impl Set {
    /// Returns the state of the embedder; `None` if words alone were compared.
    pub(crate) fn embedder(&self) -> Option<&Status> {
        (self.method != Method::Lexical).then_some(&self.status)
    }

    /// Reads the JSON of a trace back, by its position in the input.
    pub(crate) fn text(&mut self, index: usize) -> Result<String> {
        self.kept.get(index)
    }

    /// Returns why a trace was chosen, for programs.
    pub(crate) fn describe(&self, rank: usize, chosen: &Chosen) -> Value {
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
        json_object! { "id": self.scored[near.index].about.id.clone(), "similarity": near.similarity }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_success_makes_an_outcome_known() {
        let imported = r#"{"metadata":{"success":false,"imported":{"format":"pi","known":{"success":false,"confidence":false}}},"steps":[]}"#;
        assert_eq!(
            with_success(imported, true),
            r#"{"metadata":{"success":true,"imported":{"format":"pi","known":{"confidence":false}}},"steps":[]}"#
        );
        assert_eq!(
            with_success(r#"{"metadata":{"success":true}}"#, false),
            r#"{"metadata":{"success":false}}"#
        );
    }
}
