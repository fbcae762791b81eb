//! Reads traces, and chooses a set of them: for `select` and `share`.

pub(crate) mod decisions;
pub(crate) mod kept;
pub(crate) mod known;
pub(crate) mod labels;

use std::{collections::BTreeMap, path::Path, time::Instant};

use clap::Args;
use knowledgepulse_index::{memory::Memory, method::Method, shared::SharedMemory, traces::TraceEntry};
use knowledgepulse_json::{Value, json_object};
use knowledgepulse_score::engine::Status;
use knowledgepulse_score::select::{
    Candidates, Chosen, Count, Neighbour, SelectOptions, Selection, Unfit, select,
};
use knowledgepulse_share::{self as share, Log, Published, logs::WholeFiles};

use self::{known::read_known, labels::Labels};
use crate::{
    Candidate, Context, Failure, Inputs, Kept, Result, RunInfo, Scored, Seen, args::count, load_embedder,
    one_of, score::score,
};

/// How many of the traces that a chosen one stands for are listed.
const MOST_LISTED: usize = 16;

/// What the user tells of sessions.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ToldArgs {
    /// Outcomes by id: JSON Lines or CSV with id, success or reward
    #[arg(long, value_name = "FILE")]
    pub labels: Option<String>,

    /// What is shared already: a folder of share, a file of traces, or a memory
    #[arg(long, value_name = "PATH")]
    pub known: Option<String>,
}

impl ToldArgs {
    /// Returns the files that are read beside the inputs.
    pub(crate) fn files(&self) -> [&Option<String>; 2] {
        [&self.labels, &self.known]
    }
}

/// How a set is chosen.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "The set")]
pub(crate) struct ChoiceArgs {
    /// How many sessions: 20, or 5%
    #[arg(value_name = "N", value_parser = count, help_heading = None::<&str>)]
    pub count: Option<Count>,

    #[command(flatten)]
    pub told: ToldArgs,

    /// Keep room for N failures of tasks that nobody solved
    #[arg(long, value_name = "N", value_parser = count)]
    pub failures: Option<Count>,

    /// Compare words, or words and a digest by the model: full
    #[arg(long, value_name = "METHOD", default_value = "lexical", hide_possible_values = true,
        value_parser = one_of([Method::Lexical, Method::Full].map(|method| (method.name(), method))))]
    pub novelty: Method,
}

/// What a set is chosen for.
#[derive(Default)]
pub(crate) struct Purpose<'p> {
    /// The folder that it is added to, where sub-agents come with their sessions alone, and what that has.
    pub folder: Option<(&'p Path, &'p share::Set)>,
    /// Whether it has no copies.
    pub only_new: bool,
    /// Whether it ends where the others are like those in it.
    pub ends: bool,
    /// Whether its traces are shown or written.
    pub keeps: bool,
}

/// A set that was chosen.
pub(crate) struct Set {
    pub selection: Selection,
    /// The embedder, if sessions are compared by one.
    pub embedder: Option<Status>,
    pub seen: Seen,
    /// The traces to choose from, in the order of the input.
    pub scored: Vec<Scored>,
    /// The traces that are shared already.
    pub known: Memory,
    /// The JSON of all, as ReasoningTraces, if the purpose keeps them.
    pub kept: Kept,
    /// By the lines of the folder's manifest, the sessions that have grown since, and those that are as they were, whose sub-agents may have grown.
    pub grown: BTreeMap<usize, Scored>,
    pub same: BTreeMap<usize, Scored>,
    /// How many sessions are in the folder or `--known`, and how many of the folder were removed.
    pub published: u64,
    pub removed: u64,
}

/// Reads the inputs, and chooses a set of their traces.
///
/// # Errors
/// If a file of the options cannot be read, the model is missing, or a second signal ends the choice.
pub(crate) fn choose(inputs: &Inputs, choice: &ChoiceArgs, purpose: &Purpose, run: Context) -> Result<Set> {
    let method = choice.novelty;
    let labels = choice.told.labels.as_deref();
    let mut labels = labels.map(Labels::read).transpose()?;
    let status = load_embedder(method, run)?;
    let (mut known, sets, scoring) = read_known(choice, purpose, &status, run)?;
    let has_known = known.len(Instant::now()) > 0;
    let mut candidates = Candidates::beside(&mut known);
    let mut set = Set {
        selection: Selection::default(),
        embedder: (method != Method::Lexical).then_some(status),
        seen: Seen::default(),
        scored: Vec::new(),
        known: known.into(),
        kept: Kept::new()?,
        grown: BTreeMap::new(),
        same: BTreeMap::new(),
        published: 0,
        removed: 0,
    };
    let mut add = |mut scored: Scored, mut candidate: Candidate| {
        if set.has(&mut scored, &candidate, &sets, purpose.folder.is_some())? {
            return Ok(());
        }
        if let Some(labels) = &mut labels {
            labels.tell(&mut scored, &mut candidate);
        }
        let trace = std::mem::take(&mut candidate.trace);
        let Candidate { outcome, unfit, .. } = candidate;
        candidates.add(candidate.entry()?, outcome, unfit)?;
        scored.text = set.kept.add(&trace.to_json())?;
        set.scored.push(scored);
        Ok(())
    };
    let seen = score(inputs, &scoring, &mut add)?;
    set.seen = seen;
    if let Some(problems) = labels.map_or(Ok(None), |labels| labels.problems())? {
        run.messages.warning(problems);
    }
    let least = inputs.filter.min_turns.unwrap_or_default() as u64;
    for (index, root) in set.roots().into_iter().enumerate() {
        let about = &set.scored[index].about;
        // A sub-agent goes with its session. In a list one whose session was left out counts as others do.
        let is_subagent = about.run.is_subagent && (purpose.folder.is_some() || about.turns < least);
        if root.is_some() || is_subagent {
            candidates.leave_out(index, Unfit::SubAgent);
        }
    }
    let options = SelectOptions {
        count: choice.count.unwrap_or(Count::Number(0)),
        failures: choice.failures,
        threads: 0,
        only_new: purpose.only_new,
        ends: purpose.ends,
    };
    let Context { messages, stop, .. } = run;
    let interrupted_before = stop.is_interrupted();
    let go_on = |_| interrupted_before || !stop.is_interrupted();
    set.selection = select(&mut candidates, &options, &go_on)?;
    if !set.scored.is_empty() {
        messages.note(set.selection.explanation());
    }
    let asked = options.count.of(set.scored.len());
    let [chosen, others] = [set.selection.chosen.len(), set.selection.others()];
    if purpose.ends && chosen < asked && others > 0 {
        let or_known = match has_known {
            true => ", or like what is shared already",
            false => "",
        };
        messages.note(format!(
            "{chosen} of {asked}: the other {others} are like these{or_known}"
        ));
    }
    Ok(set)
}

impl Candidate {
    /// Returns it as a memory takes it.
    fn entry(&self) -> Result<TraceEntry<'_>> {
        let compared = self.compared.as_ref();
        let words = compared.and_then(|compared| compared.words.as_ref());
        let words = words.ok_or_else(|| Failure::file("a trace could not be compared with the others"))?;
        let embedded = compared.and_then(|compared| compared.text.as_ref());
        Ok(TraceEntry {
            words,
            vector: embedded.map(|embedded| &embedded.embedding[..]),
            label: self.label.as_ref(),
            model: embedded.and_then(|embedded| embedded.origin.model.as_ref()),
        })
    }
}

impl Set {
    /// Returns whether a trace is no candidate, because a set has it; counts it then.
    fn has(
        &mut self,
        scored: &mut Scored,
        candidate: &Candidate,
        sets: &[share::Set],
        has_folder: bool,
    ) -> Result<bool> {
        if has_folder && scored.about.run.is_subagent {
            return Ok(false);
        }
        let sets = sets.iter().enumerate();
        let mut found = sets.filter_map(|(number, set)| Some((number, set.find(&candidate.names)?)));
        match found.next() {
            None => return Ok(false),
            Some((_, Published::Removed)) => self.removed += 1,
            Some((0, Published::Grown(line))) if has_folder => {
                let steps = self.grown.get(&line).map(|longest| longest.about.steps);
                if steps.is_none_or(|steps| steps < scored.about.steps) {
                    scored.text = self.kept.add(&candidate.trace.to_json())?;
                    self.grown.insert(line, scored.clone());
                }
            }
            Some((0, Published::Here(line))) if has_folder => {
                scored.text = self.kept.add(&candidate.trace.to_json())?;
                self.same.insert(line, scored.clone());
                self.published += 1;
            }
            Some(_) => self.published += 1,
        }
        Ok(true)
    }

    /// Returns for each trace the place of the session that it belongs to as a sub-agent.
    pub(crate) fn roots(&self) -> Vec<Option<usize>> {
        RunInfo::roots(self.scored.iter().map(|scored| &scored.about.run))
    }

    /// Refuses to write a page without a session.
    pub(crate) fn refuse_no_session(&self, page: &str) -> Result<()> {
        let refused = || Failure::file(format!("there is no session, so {page} was not written"));
        (!self.scored.is_empty()).then_some(()).ok_or_else(refused)
    }

    /// Returns the log of a trace, which is of one of these files.
    pub(crate) fn log(&self, scored: &Scored, files: &WholeFiles) -> Log<'static> {
        let (place, trace) = (&scored.place, self.kept.value(scored.text));
        let mut log = files.log(&place.source, scored.about.format, trace);
        log.outcome = scored.about.told;
        log
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
            "similar": similar.map(|near| self.describe_near(*near)).collect::<Value>(),
            "nearestLeft": chosen.nearest_left.map(|near| self.describe_near(near)),
        }
    }

    fn describe_near(&self, near: Neighbour) -> Value {
        json_object! { "id": self.scored[near.index].about.id.clone(), "similarity": near.similarity }
    }
}
