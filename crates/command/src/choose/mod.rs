//! Reads traces, and chooses a set of them: for `select` and `share`.

pub(crate) mod decisions;
pub(crate) mod kept;
pub(crate) mod known;
pub(crate) mod labels;

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Instant};

use clap::Args;
use knowledgepulse_error::Error;
use knowledgepulse_index::{
    memory::Memory,
    method::Method,
    options::MemoryOptions,
    shared::{SharedMemory, lock},
    traces::{TraceEntry, TraceMemory},
};
use knowledgepulse_json::{Text, Value, parse_str};
use knowledgepulse_score::{
    Scorer,
    engine::{Comparable, Status},
    select::{Candidates, Chosen, Count, Neighbour, SelectOptions, Selection, Unfit, select},
    weights::Profiles,
};
use knowledgepulse_share::{self as share, MANIFEST, Published, TOLD_CONFIDENCE};
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
        scored::{Place, RunInfo, Scored},
    },
    show::{messages::Messages, metadata::set_metadata, summary::Summary, values::list},
};

/// How many of the traces that a chosen one stands for are listed.
const MOST_LISTED: usize = 16;

/// From this similarity on, two traces are mostly runs of one task.
const LIKE: f64 = 0.4;

/// How a set is chosen.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The set")]
pub(crate) struct ChoiceArgs {
    /// How many sessions: 20, or 5%
    #[arg(value_name = "N", value_parser = count, help_heading = None::<&str>)]
    pub count: Option<Count>,

    /// Outcomes by id: JSON Lines or CSV with id, success or reward
    #[arg(long, value_name = "FILE")]
    pub labels: Option<String>,

    /// What is shared already: a folder of share, a file of traces, or a memory
    #[arg(long, value_name = "PATH")]
    pub known: Option<String>,

    /// Keep room for N failures of tasks that nobody solved
    #[arg(long, value_name = "N", value_parser = count)]
    pub failures: Option<Count>,

    /// Compare words, or words and a digest by the model: full
    #[arg(long, value_name = "METHOD", default_value = "lexical", hide_possible_values = true,
        value_parser = one_of([Method::Lexical, Method::Full].map(|method| (method.name(), method))))]
    pub novelty: Method,
}

impl ChoiceArgs {
    /// Returns the choice of so many by words alone.
    pub(crate) fn of(count: Count) -> Self {
        Self {
            count: Some(count),
            labels: None,
            known: None,
            failures: None,
            novelty: Method::Lexical,
        }
    }
}

/// A set that was chosen.
pub(crate) struct Set {
    pub selection: Selection,
    /// The figures of all traces.
    pub summary: Summary,
    pub seen: Seen,
    /// The state of the embedder, if traces were compared by it.
    pub status: Status,
    pub method: Method,
    /// The traces, in the order of the input.
    pub scored: Vec<Scored>,
    /// What the labels tell of each: its success, and how sure that is.
    pub told: Vec<Option<(bool, f64)>>,
    /// The traces that are shared already.
    pub known: Memory,
    /// Their JSON, as ReasoningTraces.
    pub kept: Kept,
    /// What was published already.
    pub beside: Beside,
}

/// What [`choose`] does with traces that a set has already, or that belong to others: they are no candidates.
pub(crate) struct Beside {
    /// The sets: that of the folder first, then the one that `--known` names.
    sets: Vec<share::Set>,
    /// Whether sub-agents come with their sessions.
    with_subagents: bool,
    /// Whether the set has no copies.
    only_new: bool,
    /// Whether it ends where the others are like those in it.
    ends: bool,
    /// By the lines of the folder's manifest, the sessions that have grown since, and the places of their JSON among `texts`.
    pub grown: BTreeMap<usize, (Scored, usize)>,
    /// The sessions of sub-agents, in the same way.
    pub subagents: Vec<(Scored, usize)>,
    pub texts: Kept,
    /// How many sessions are in a set, and how many of the folder were removed.
    pub published: u64,
    pub removed: u64,
}

impl Beside {
    /// Returns nothing that is published.
    pub(crate) fn nothing() -> Result<Self> {
        Ok(Self {
            sets: Vec::new(),
            with_subagents: false,
            only_new: false,
            ends: false,
            grown: BTreeMap::new(),
            subagents: Vec::new(),
            texts: Kept::new()?,
            published: 0,
            removed: 0,
        })
    }

    /// Returns nothing that is published, for a set without copies, which `ends` where the others are like those in it.
    pub(crate) fn without_copies(ends: bool) -> Result<Self> {
        Ok(Self {
            only_new: true,
            ends,
            ..Self::nothing()?
        })
    }

    /// Returns what a folder has.
    pub(crate) fn set(set: share::Set) -> Result<Self> {
        Ok(Self {
            sets: vec![set],
            with_subagents: true,
            only_new: true,
            ends: true,
            ..Self::nothing()?
        })
    }

    /// Returns whether a trace is no candidate, and counts it.
    fn holds(&mut self, scored: &Scored, facts: &Facts, text: &str) -> Result<bool> {
        if self.with_subagents && facts.is_subagent {
            let place = self.texts.add(text)?;
            self.subagents.push((scored.clone(), place));
            return Ok(true);
        }
        let texts = [&scored.about.id, &facts.session, &facts.created_at];
        let [id, session, time] = texts.map(|text| text.as_ref().map(Text::as_str));
        let steps = scored.about.steps;
        for (number, set) in self.sets.iter().enumerate() {
            match set.find(id, session, time, steps) {
                None => continue,
                Some(Published::Removed) => self.removed += 1,
                Some(Published::Grown(line)) if number == 0 && self.with_subagents => {
                    let longest = self.grown.get(&line).map_or(0, |(scored, _)| scored.about.steps);
                    if steps > longest {
                        let place = self.texts.add(text)?;
                        self.grown.insert(line, (scored.clone(), place));
                    }
                }
                Some(_) => self.published += 1,
            }
            return Ok(true);
        }
        Ok(false)
    }
}

/// Reads the inputs, and chooses a set of their traces.
///
/// # Errors
/// If a file of the options cannot be read, the model is missing, or a second signal ends the choice.
pub(crate) fn choose(
    inputs: &Inputs,
    choice: &ChoiceArgs,
    (beside, published): (Beside, Vec<String>),
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
        told: Vec::new(),
        beside,
        summary: Summary::new(),
        messages,
    };
    let mut sources = Vec::new();
    if let Some(file) = choice.known.as_deref().filter(|_| known_memory.is_none()) {
        let (files, set) = known_sources(file)?;
        sources = files;
        choosing.beside.sets.extend(set);
    }
    for (option, sources) in [("--known: ", sources), ("", published)] {
        if sources.is_empty() {
            continue;
        }
        let first = sources[0].clone();
        let known = Inputs {
            sources,
            ..Inputs::default()
        };
        let before = choosing.known_len();
        let seen = read(&known, Arc::clone(&prepare), &mut choosing, messages, stop)?;
        if let Some(lack) = seen.why_incomplete(stop) {
            return Err(Failure::file(format!("{option}{lack}")));
        }
        if choosing.known_len() == before {
            return Err(Failure::file(format!("{option}{first} has no trace")));
        }
    }
    let has_known = choosing.known_len() > 0;
    let known = choosing.begin();
    let seen = read(inputs, prepare, &mut choosing, messages, stop)?;
    messages.stop_progress();
    let Beside { only_new, ends, .. } = choosing.beside;
    let mut selection = choosing.choose(
        &SelectOptions {
            count: choice.count.unwrap_or(Count::Number(0)),
            failures: choice.failures,
            threads: 0,
            only_new,
        },
        stop,
    )?;
    if ends && let Some(count) = choice.count {
        end_at_copies(
            &mut selection,
            has_known,
            count.of(choosing.scored.len()),
            messages,
        );
    }
    Ok(Set {
        selection,
        summary: choosing.summary,
        seen,
        status,
        method,
        scored: choosing.scored,
        told: choosing.told,
        known: known.map_or_else(|| new_memory(method), Memory::from),
        kept: choosing.kept,
        beside: choosing.beside,
    })
}

/// Ends a set where its curve bends, but for traces that are unlike those before them, and says why it is smaller than was asked for. Where
/// others are known, the curve has bent among those.
fn end_at_copies(selection: &mut Selection, has_known: bool, asked: usize, messages: &Messages) {
    let all = selection.chosen.len() + selection.left.len();
    let unfit = selection.left.iter().filter(|left| left.unfit.is_some()).count();
    let knee = if has_known {
        0
    } else {
        selection.knee().unwrap_or(usize::MAX)
    };
    let mut at = 0;
    selection.chosen.retain(|chosen| {
        at += 1;
        at <= knee || chosen.nearest_before < LIKE
    });
    let chosen = selection.chosen.len();
    let others = all - chosen - unfit;
    if chosen < asked && others > 0 {
        messages.note(format!(
            "{chosen} of {asked}: the other {others} are like these, or like what is shared already"
        ));
    }
}

/// Returns the files of traces that `--known` names, and the set that they are, if it is one.
fn known_sources(name: &str) -> Result<(Vec<String>, Option<share::Set>)> {
    let path = Path::new(name);
    let is_manifest = path.file_name().is_some_and(|file| file == MANIFEST);
    let folder = if is_manifest {
        path.parent()
    } else {
        path.is_dir().then_some(path)
    };
    let Some(folder) = folder else {
        if name == STDIN || !path.is_file() {
            return Err(Failure::file(format!(
                "--known must be a folder, or a file: {name}"
            )));
        }
        return Ok((vec![name.to_owned()], None));
    };
    let set = share::Set::read(folder).map_err(|error| Failure::read(name, &error))?;
    let set = set.filter(|set| !set.lines().is_empty());
    let set = set.ok_or_else(|| Failure::file(format!("--known: {name} has no set that was shared")))?;
    Ok((files_of(&set, folder), Some(set)))
}

/// Returns the paths of the files that a set in a folder has.
pub(crate) fn files_of(set: &share::Set, folder: &Path) -> Vec<String> {
    let files = set
        .files()
        .into_iter()
        .map(|file| folder.join(file).display().to_string());
    let mut files: Vec<_> = files.collect();
    files.sort();
    files
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
    told: Vec<Option<(bool, f64)>>,
    beside: Beside,
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
    fn known_len(&mut self) -> usize {
        self.known.as_mut().map_or(0, |known| known.len(Instant::now()))
    }

    /// Goes on to the traces to choose from, and returns those that are shared already.
    fn begin(&mut self) -> Option<TraceMemory> {
        let mut known = self.known.take();
        self.candidates = known.as_mut().map(Candidates::beside);
        self.summary.begin();
        known
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
        if self.candidates.is_none() {
            let added = self.known.as_mut().map(|known| known.add(entry, Instant::now()));
            return added.transpose().map(drop).map_err(|error| failed(&error));
        }
        if self.beside.holds(&scored, &facts, text)? {
            return Ok(());
        }
        let (mut told, mut labelled) = (None, None);
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
                    told = Some((label.success, label.confidence.unwrap_or(TOLD_CONFIDENCE)));
                }
            }
        }
        self.told.push(told);
        if let Some(candidates) = &mut self.candidates {
            candidates
                .add(entry, facts.outcome, facts.unfit)
                .map_err(|error| failed(&error))?;
        }
        self.summary.add(&scored);
        self.scored.push(scored);
        self.kept.add(labelled.as_deref().unwrap_or(text)).map(drop)
    }

    /// Chooses, unless the run is interrupted meanwhile, and tells how.
    fn choose(&mut self, options: &SelectOptions, stop: &Stop) -> Result<Selection> {
        if let Some(labels) = &self.labels {
            let without = self.without_label;
            let without = (without > 0).then(|| format!("{without} sessions have no label"));
            let problems: Vec<_> = labels.unused()?.into_iter().chain(without).collect();
            if !problems.is_empty() {
                self.messages
                    .warning(format!("--labels: {}", problems.join(", and ")));
            }
        }
        if let Some(candidates) = &mut self.candidates {
            let runs = || self.scored.iter().map(|scored| &scored.about.run);
            let parents = RunInfo::parents(runs());
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
    pub(crate) fn text(&self, index: usize) -> Result<String> {
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
