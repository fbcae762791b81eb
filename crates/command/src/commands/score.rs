//! `kp-score score`: a score for each trace.

use std::{collections::HashSet, io::IsTerminal};

use clap::Args;
use knowledgepulse_index::{memory::Basis, method::Method};
use knowledgepulse_json::{Text, Value};
use knowledgepulse_score::{Scorer, engine::Status};
use knowledgepulse_trace::label::{Fingerprint, Label};

use crate::{
    VERSION,
    args::{InputArgs, methods, unit, whole},
    domains::{built_in, closest_to},
    error::{Exit, Failure, Result},
    file_identity::{Output, name_of},
    host::{Host, NotScored, Store, StoreRequest},
    messages::Messages,
    reading::{Inputs, Seen, Sink, read},
    report::{Report, ReportOptions},
    results::{Results, Wanted},
    rows::Format,
    run_memory::{HeldMemory, new_memory},
    scored::{Place, Scored},
    scoring::{Preparation, Prepared, Scoring, Unscored, load_embedder},
    stop::Stop,
    summary::{About, MemoryFile, Summary},
    table::Table,
    weights::{NamedProfiles, read_weights},
};

/// How many of the best traces a table shows.
const BEST: usize = 10;

/// Score each trace from 0 to 1
#[derive(Debug, Clone, Args)]
#[command(before_help = "Example: kp-score score runs/ --format csv > scores.csv")]
pub(crate) struct ScoreArgs {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub results: ResultArgs,
    #[command(flatten)]
    pub scoring: ScoringArgs,
}

/// What a run writes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct ResultArgs {
    /// table, json, jsonl or csv [default: table, or nothing with a file]
    #[arg(long, value_enum, hide_possible_values = true)]
    pub format: Option<Format>,

    /// Show all traces in the table, not only the ten best
    #[arg(long)]
    pub all: bool,

    /// Add what each score is made of
    #[arg(long)]
    pub explain: bool,

    /// Only traces that score at least N, 0 to 1
    #[arg(long, value_name = "N", value_parser = unit)]
    pub min: Option<f64>,

    /// Write the traces with metadata.quality_score; .gz is compressed
    #[arg(long, value_name = "FILE")]
    pub out: Option<String>,

    /// Write a page to look at, in HTML
    #[arg(long, value_name = "FILE")]
    pub report: Option<String>,
}

/// How traces are scored.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Scoring")]
pub(crate) struct ScoringArgs {
    /// Compare words, or by a model: prefix, full [default: lexical]
    #[arg(long, value_name = "METHOD", value_parser = methods(), hide_possible_values = true)]
    pub novelty: Option<Method>,

    /// Compare with the traces of earlier runs, and keep them in FILE
    #[arg(long, value_name = "FILE")]
    pub memory: Option<String>,

    /// How many traces are remembered [default: 1000]
    #[arg(long, value_name = "N", value_parser = whole)]
    pub memory_size: Option<usize>,

    /// A memory in PostgreSQL: postgres://user@host/database
    #[arg(long, value_name = "URL", conflicts_with = "memory")]
    pub store: Option<String>,

    /// Its table, also SCHEMA.TABLE [default: knowledgepulse_novelty]
    #[arg(long, value_name = "NAME", requires = "store")]
    pub store_table: Option<String>,

    /// Weights of complexity, novelty and so on by domain, in JSON
    #[arg(long, value_name = "FILE")]
    pub weights: Option<String>,
}

impl ScoreArgs {
    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            format: self.results.format,
            explains: self.results.explain,
            out: self.results.out.as_deref(),
            report: self.results.report.as_deref(),
        }
    }

    fn outputs(&self) -> Vec<Output<'_>> {
        let memory = self.scoring.memory.as_deref().map(|file| ("memory", file));
        self.wanted().files().into_iter().chain(memory).collect()
    }
}

/// Scores the inputs that the arguments name.
pub(crate) fn run(args: &ScoreArgs, host: &dyn Host, messages: &Messages, stop: &Stop) -> Result<Exit> {
    let inputs = args
        .input
        .open(&args.outputs(), &[&args.scoring.weights], messages)?;
    score(&inputs, args, host, messages, stop).map(|(exit, _)| exit)
}

/// Scores inputs; the paths of the arguments are not looked at. Returns the exit code, and how many traces were scored.
pub(crate) fn score(
    inputs: &Inputs,
    args: &ScoreArgs,
    host: &dyn Host,
    messages: &Messages,
    stop: &Stop,
) -> Result<(Exit, u64)> {
    let (results, options) = (&args.results, &args.scoring);
    let weights = options.weights.as_deref().map(read_weights).transpose()?;
    let NamedProfiles {
        profiles,
        names,
        json,
    } = weights.unwrap_or_default();
    warn_of_domain(inputs.given.domain.as_deref(), &names, messages);
    let novelty = options.novelty.unwrap_or(Method::Lexical);
    let status = load_embedder(novelty, host, messages)?;
    let most = options.memory_size;
    let open = |file| HeldMemory::open(file, novelty, most, &status, &host.machine());
    let held = options.memory.as_deref().map(open).transpose()?;
    let (store, file) = store_of(options, novelty, json, host)?.unzip();
    let explains = results.explain || results.report.is_some();
    let needs_text = results.out.is_some() || results.report.is_some() || store.is_some();
    let memory = held.as_ref().map(|held| held.memory.clone());
    // A store compares by itself.
    let new = || store.is_none().then(|| new_memory(novelty, most));
    let scorer = Scorer {
        memory: memory.or_else(new),
        profiles,
    };
    let scoring = Scoring::new(host.engine(), scorer, store, explains);
    let known = held.as_ref().map(HeldMemory::fingerprints);
    let is_held = known.is_some();
    let prepare = Preparation::prepare_with(&scoring.scorer, known.unwrap_or_default(), needs_text, explains);
    let wanted = args.wanted();
    if wanted.format().is_some_and(|format| format != Format::Table) && std::io::stdout().is_terminal() {
        messages.hide_bar();
    }
    let outputs = args.outputs();
    let others = inputs.sources.iter().map(String::as_str);
    let others = others
        .chain(outputs.iter().map(|(_, file)| *file))
        .chain(options.weights.as_deref())
        .map(str::to_owned);
    let table = Table::new((!results.all).then_some(BEST));
    let keeps = options.memory.is_some() || options.store.is_some();
    let mut run = Run {
        scoring,
        begun: is_held.then(HashSet::new),
        added: 0,
        summary: Summary::new(),
        min: results.min,
        results: Results::open(wanted, table, others.collect(), keeps, messages, stop)?,
        store_failure: None,
        messages,
        stop,
    };
    let report = || Report::new(report_options(inputs, results.min, novelty, &status));
    run.results.report = wanted.report.map(|_| report());
    run.results.begin()?;
    let seen = read(inputs, prepare, &mut run, messages, stop)?;
    messages.stop_progress();
    if let Some(file) = &options.weights {
        warn_of_weights(file, &names, &run.summary, messages);
    }
    run.finish(&seen, held, file, &status, novelty)
}

/// Returns what a report tells of its run.
pub(crate) fn report_options(
    inputs: &Inputs,
    min: Option<f64>,
    novelty: Method,
    status: &Status,
) -> ReportOptions {
    ReportOptions {
        threshold: min,
        sources: inputs
            .sources
            .iter()
            .map(|source| name_of(source).to_owned())
            .collect(),
        novelty,
        dtype: status.dtype.clone(),
        version: VERSION.to_owned(),
    }
}

/// Connects to the store that the options name. Returns it with what the summary tells of it.
fn store_of(
    options: &ScoringArgs,
    novelty: Method,
    weights: Option<String>,
    host: &dyn Host,
) -> Result<Option<(Box<dyn Store>, MemoryFile)>> {
    let Some(url) = &options.store else {
        return Ok(None);
    };
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        // Without the URL, which may have a password.
        return Err(Failure::usage(
            "--store must be a URL that begins with postgres://",
        ));
    }
    let store = host.connect(&StoreRequest {
        url: url.clone(),
        table: options.store_table.clone(),
        most_traces: options.memory_size,
        novelty,
        weights,
    })?;
    let file = MemoryFile {
        file: format!("postgres://{}", place_in(url)),
        before: store.size().unwrap_or_default(),
        after: None,
        forgotten: None,
    };
    Ok(Some((store, file)))
}

/// A run, from its first trace on.
struct Run<'h> {
    scoring: Scoring<'h>,
    /// The traces that were begun, if the memory outlives the run: one that comes twice is known the second time.
    begun: Option<HashSet<Fingerprint>>,
    /// How many traces were added to the memory.
    added: u64,
    summary: Summary,
    min: Option<f64>,
    results: Results<'h>,
    /// Why the store has ended the run.
    store_failure: Option<String>,
    messages: &'h Messages,
    stop: &'h Stop,
}

impl Sink<Prepared> for Run<'_> {
    fn take(&mut self, place: Place, size: u64, trace: Prepared, seen: &mut Seen) -> Result<()> {
        let Some(trace) = trace.filter(|trace| self.is_new(&trace.0)) else {
            self.messages.on_done(size);
            self.summary.known_traces += 1;
            return Ok(());
        };
        self.scoring.begin(place, size, *trace);
        while self.scoring.is_full() {
            self.settle(seen)?;
        }
        Ok(())
    }

    fn settle(&mut self, seen: &mut Seen) -> Result<bool> {
        let stdout = &mut self.results.stdout;
        let Some(finished) = self.scoring.next(self.messages, || stdout.flush())? else {
            self.results.stdout.flush()?;
            return Ok(false);
        };
        match finished.outcome {
            Ok(scored) => self.record(&scored, &finished.text)?,
            Err((place, NotScored::Trace(reason))) => {
                let reason = reason.into();
                self.on_bad(&place, &reason);
                seen.add_bad(&place, &reason, self.messages);
            }
            Err((_, NotScored::Store(reason))) => {
                // The run cannot go on without its store; the scores so far are still written.
                let failure = format!("{reason}: the rest was not scored");
                self.store_failure.get_or_insert(failure);
                self.stop.end_reading();
            }
        }
        Ok(true)
    }

    fn on_bad(&mut self, place: &Place, reason: &Text) {
        if let Some(report) = &mut self.results.report {
            report.add_error(place, reason);
        }
    }
}

impl Run<'_> {
    /// Notes a trace that is begun. Returns whether it is the first one with its id and contents.
    fn is_new(&mut self, trace: &Unscored) -> bool {
        let fingerprint = trace.label.as_ref().and_then(Label::fingerprint);
        match (&mut self.begun, fingerprint) {
            (Some(begun), Some(fingerprint)) => begun.insert(fingerprint),
            _ => true,
        }
    }

    /// Counts a trace, and shows and writes it.
    fn record(&mut self, scored: &Scored, text: &str) -> Result<()> {
        self.added += u64::from(scored.breakdown.novelty.basis != Basis::NoEmbedder);
        self.summary.add(scored);
        if let Some(report) = &mut self.results.report {
            report.add(scored, text);
        }
        if self.min.is_some_and(|min| scored.breakdown.score < min) {
            return Ok(());
        }
        self.results.add(scored, text, None, String::new())
    }

    /// Writes the files and the memory, and tells the figures.
    fn finish(
        mut self,
        seen: &Seen,
        held: Option<HeldMemory>,
        store: Option<MemoryFile>,
        status: &Status,
        novelty: Method,
    ) -> Result<(Exit, u64)> {
        let lack = self.store_failure.as_deref().or(seen.why_incomplete(self.stop));
        let written = self.results.publish(&self.summary, lack.is_none())?;
        // Last: a later run would skip traces that the memory has and no file.
        let is_saved = lack.is_none() && self.summary.scored() + self.summary.known_traces > 0;
        let close = |held: &HeldMemory| held.close(is_saved, self.added);
        let mut memory = held.as_ref().map(close).transpose()?.or(store);
        if let (Some(memory), Some(store)) = (&mut memory, &self.scoring.store) {
            memory.after = store.size();
        }
        let about = About {
            novelty: Some(novelty),
            embedder: (novelty != Method::Lexical).then_some(status),
            interrupted: self.stop.is_interrupted(),
            memory: memory.as_ref(),
            written,
            selection: None,
        };
        let held = held.as_ref().map(|held| held.file.as_str());
        let exit = self.results.finish(&self.summary, seen, &about, lack, held)?;
        Ok((exit, self.summary.scored()))
    }
}

/// Warns of a `--domain` that has no weights and is close to one that has.
fn warn_of_domain(domain: Option<&str>, profiles: &[String], messages: &Messages) {
    let Some(domain) = domain else { return };
    let profiles = profiles.iter().map(String::as_str);
    let known: Vec<_> = ["default"]
        .into_iter()
        .chain(built_in())
        .chain(profiles)
        .collect();
    if known.contains(&domain) {
        return;
    }
    if let Some(closest) = closest_to(domain, known) {
        messages.warning(format!(
            "--domain {domain} has no weights of its own, so those of default are used; did you mean {closest}?"
        ));
    }
}

/// Warns of weights for domains that no trace has.
fn warn_of_weights(file: &str, profiles: &[String], summary: &Summary, messages: &Messages) {
    let domains: Vec<_> = summary.domains().collect();
    if domains.is_empty() {
        return;
    }
    let is_unused = |name: &&String| *name != "default" && !domains.iter().any(|domain| *domain == *name);
    let unused = profiles.iter().filter(is_unused).map(|unused| {
        let quoted = |name: &str| Value::from(name).to_json();
        let names = built_in().chain(domains.iter().map(|name| name.as_str()));
        let closest = closest_to(unused, names).map(|name| format!(" (did you mean {}?)", quoted(name)));
        format!("{}{}", quoted(unused), closest.unwrap_or_default())
    });
    let unused: Vec<_> = unused.collect();
    if !unused.is_empty() {
        let unused = unused.join(", ");
        messages.warning(format!(
            "{file} has weights for domains that no trace has: {unused}"
        ));
    }
}

/// Returns the host and the database of a URL; the password stays where it is.
fn place_in(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').unwrap_or(rest.len());
    let start = rest[..path].rfind('@').map_or(0, |at| at + 1);
    rest[start..].split('?').next().unwrap_or_default()
}
