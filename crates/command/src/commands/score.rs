//! `kp-score score`: a score for each trace.

use std::io::IsTerminal;

use clap::Args;
use knowledgepulse_index::method::Method;

use crate::{
    Candidate, Context, Exit, Format, InputArgs, Result, Results, Scored, Scoring, Table, args::unit,
    load_embedder, new_memory, one_of, score::score,
};

/// How many of the best traces a table shows.
pub(crate) const BEST: usize = 10;

/// Score each trace from 0 to 1
#[derive(Debug, Clone, Args)]
#[command(
    before_help = "Example: kp-score score runs/ --format jsonl > scores.jsonl",
    next_help_heading = "Results",
    after_help = "kp-score --help explains the columns of the table."
)]
pub(crate) struct ScoreArgs {
    /// table, json or jsonl [default: table, or nothing with a file]
    #[arg(long, value_enum, hide_possible_values = true)]
    pub format: Option<Format>,

    /// Show all traces in the table, not only the ten best
    #[arg(long)]
    pub all: bool,

    /// Add to each row of JSON what its score is made of
    #[arg(long)]
    pub explain: bool,

    /// Only traces that score at least N, 0 to 1
    #[arg(long, value_name = "N", value_parser = unit)]
    pub min: Option<f64>,

    /// Write the traces with metadata.quality_score
    #[arg(long, value_name = "FILE")]
    pub out: Option<String>,

    /// Compare words, or by a model: prefix, full [default: lexical]
    #[arg(long, value_name = "METHOD", hide_possible_values = true, help_heading = "Scoring",
        value_parser = one_of([Method::Lexical, Method::Prefix, Method::Full].map(|method| (method.name(), method))))]
    pub novelty: Option<Method>,

    #[command(flatten)]
    pub input: InputArgs,
}

/// Scores the inputs that the arguments name.
pub(crate) fn run(args: &ScoreArgs, run: Context) -> Result<Exit> {
    let (out, novelty) = (args.out.as_deref(), args.novelty.unwrap_or(Method::Lexical));
    let files: Vec<_> = out.iter().map(|file| ("out", *file)).collect();
    let inputs = args.input.open(&files, &[], run.messages)?;
    let status = load_embedder(novelty, run)?;
    let scoring = Scoring::beside(new_memory(novelty), run, out.is_some(), args.explain);
    let usual = match args.explain {
        true => Some(Format::JsonLines),
        false => out.is_none().then_some(Format::Table),
    };
    let format = args.format.or(usual);
    if matches!(format, Some(Format::Json | Format::JsonLines)) && std::io::stdout().is_terminal() {
        run.messages.hide_bar();
    }
    let table = Table::new(true, (!args.all).then_some(BEST));
    let mut results = Results::open(format, args.explain, out, table, run)?;
    results.embedder = (novelty != Method::Lexical).then_some(status);
    let mut count = 0;
    let mut record = |scored: Scored, candidate: Candidate| {
        count += 1;
        results.unknown += u64::from(scored.about.success.is_none());
        if args.min.is_some_and(|min| scored.breakdown.score < min) {
            return Ok(());
        }
        results.add(&scored, || Ok(candidate.trace), None, String::new())
    };
    let seen = score(&inputs, &scoring, &mut record)?;
    results.finish(count, &seen)
}
