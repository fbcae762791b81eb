//! `kp-score score`: a score for each trace.

use std::io::IsTerminal;

use clap::Args;
use knowledgepulse_index::method::Method;
use knowledgepulse_score::{Scorer, engine::Status, weights::Profiles};

use crate::{
    args::{InputArgs, methods, unit},
    choose::known::new_memory,
    error::{Exit, Result},
    files::stop::Stop,
    host::Host,
    read::{Seen, Sink, read},
    score::{
        Preparation, Prepared, Scoring, load_embedder,
        scored::{Place, Scored},
    },
    show::{
        messages::Messages,
        results::{Results, Wanted},
        rows::Format,
        summary::{RunInfo, Summary},
        table::Table,
    },
};

/// How many of the best traces a table shows.
pub(crate) const BEST: usize = 10;

/// Score each trace from 0 to 1
#[derive(Debug, Clone, Args)]
#[command(
    before_help = "Example: kp-score score runs/ --format csv > scores.csv",
    after_help = "Columns of the table:
  beats  how many of the others score less
  done   whether the agent succeeded, or ? where its log does not tell"
)]
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
}

/// How traces are scored.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Scoring")]
pub(crate) struct ScoringArgs {
    /// Compare words, or by a model: prefix, full [default: lexical]
    #[arg(long, value_name = "METHOD", value_parser = methods(), hide_possible_values = true)]
    pub novelty: Option<Method>,
}

impl ScoreArgs {
    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            format: self.results.format,
            explains: self.results.explain,
            out: self.results.out.as_deref(),
            report: None,
        }
    }
}

/// Scores the inputs that the arguments name.
pub(crate) fn run(args: &ScoreArgs, host: &dyn Host, messages: &Messages, stop: &Stop) -> Result<Exit> {
    let inputs = args.input.open(&args.wanted().files(), &[], messages)?;
    let (results, options) = (&args.results, &args.scoring);
    let novelty = options.novelty.unwrap_or(Method::Lexical);
    let status = load_embedder(novelty, host, messages)?;
    let explains = results.explain;
    let needs_text = results.out.is_some();
    let scorer = Scorer {
        memory: Some(new_memory(novelty)),
        profiles: Profiles::default(),
    };
    let scoring = Scoring::new(host.engine(), scorer, explains);
    let prepare = Preparation::prepare_with(&scoring.scorer, needs_text, explains);
    let wanted = args.wanted();
    if wanted.format().is_some_and(|format| format != Format::Table) && std::io::stdout().is_terminal() {
        messages.hide_bar();
    }
    let table = Table::of_scores((!results.all).then_some(BEST));
    let mut run = ScoreRun {
        scoring,
        summary: Summary::new(),
        min: results.min,
        results: Results::open(wanted, table, messages, stop)?,
        messages,
        stop,
    };
    run.results.begin()?;
    let seen = read(&inputs, prepare, &mut run, messages, stop)?;
    messages.stop_progress();
    run.finish(&seen, &status, novelty)
}

/// A run, from its first trace on.
struct ScoreRun<'h> {
    scoring: Scoring<'h>,
    summary: Summary,
    min: Option<f64>,
    results: Results<'h>,
    messages: &'h Messages,
    stop: &'h Stop,
}

impl Sink<Prepared> for ScoreRun<'_> {
    fn take(&mut self, place: Place, size: u64, trace: Prepared, seen: &mut Seen) -> Result<()> {
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
            Err((place, reason)) => seen.add_bad(&place, &reason, self.messages),
        }
        Ok(true)
    }
}

impl ScoreRun<'_> {
    /// Counts a trace, and shows and writes it.
    fn record(&mut self, scored: &Scored, text: &str) -> Result<()> {
        self.summary.add(scored);
        if self.min.is_some_and(|min| scored.breakdown.score < min) {
            return Ok(());
        }
        self.results.add(scored, text, None, String::new())
    }

    /// Writes the files, and tells the figures.
    fn finish(mut self, seen: &Seen, status: &Status, novelty: Method) -> Result<Exit> {
        let lack = seen.why_incomplete(self.stop);
        let about = RunInfo {
            novelty: Some(novelty),
            embedder: (novelty != Method::Lexical).then_some(status),
            interrupted: self.stop.is_interrupted(),
            written: self.results.publish(&self.summary, lack.is_none())?,
            ..RunInfo::default()
        };
        self.results.finish(&self.summary, seen, &about, lack)
    }
}
