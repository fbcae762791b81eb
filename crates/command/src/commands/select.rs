//! `kp-score select`: a set of traces that covers the others.

use clap::Args;
use knowledgepulse_clean::{CleanOptions, Cleaner};
use knowledgepulse_score::select::Chosen;

use super::sessions::next_command;
use crate::{
    ChoiceArgs, Context, Exit, Failure, Format, InputArgs, Output, Purpose, Result, Results, Set, Table,
    choose::choose, counted, desk, grouped,
};

/// Choose a set of sessions to share: many tasks instead of near-copies of one
#[derive(Debug, Clone, Args)]
#[command(
    before_help = "Example: kp-score select 20 ~/.claude/projects --out set.jsonl",
    next_help_heading = "Results"
)]
pub(crate) struct SelectArgs {
    /// table, json or jsonl [default: table, or nothing with a file]
    #[arg(long, value_enum, hide_possible_values = true)]
    pub format: Option<Format>,

    /// Write the set with metadata.selection, the best first
    #[arg(long, value_name = "FILE")]
    pub out: Option<String>,

    /// Write a page to decide at, in HTML, of clean text
    #[arg(long, value_name = "FILE")]
    pub report: Option<String>,

    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub input: InputArgs,
}

/// Chooses a set, and shows and writes it.
pub(crate) fn run(args: &SelectArgs, run: Context) -> Result<Exit> {
    let (choice, input) = (&args.choice, &args.input);
    if choice.count.is_none() {
        return Err(Failure::usage("select needs a number of sessions: 20, or 5%"));
    }
    let (out, page) = (args.out.as_deref(), args.report.as_deref());
    let files = [("out", out), ("report", page)].into_iter();
    let files: Vec<_> = files.filter_map(|(option, file)| Some((option, file?))).collect();
    let inputs = input.open(&files, &choice.told.files(), run.messages)?;
    let format = args.format.or(files.is_empty().then_some(Format::Table));
    let mut results = Results::open(format, false, out, Table::new(false, None), run)?;
    let page = page.map(|page| Result::Ok((Output::open(page)?, page)));
    let page = page.transpose()?;
    let purpose = Purpose {
        keeps: !files.is_empty(),
        ..Purpose::default()
    };
    let set = choose(&inputs, choice, &purpose, run)?;
    add_chosen(&set, &mut results, |chosen| {
        let others = chosen.stands_for.len() as u64;
        let end = (others > 0).then(|| format!("for {}", counted(others, "other")));
        end.unwrap_or_default()
    })?;
    if let Some((page, name)) = page.filter(|_| set.seen.why_incomplete(run.stop).is_none()) {
        set.refuse_no_session(name)?;
        let cleaner = Cleaner::new(CleanOptions {
            identifiers: true,
            strict: true,
        });
        let how = (Some(&cleaner), next_command(&input.paths, "shared"));
        desk::write(page, &set, &inputs.sources, how, run)?;
    }
    let chosen = &set.selection.chosen;
    let covered = chosen
        .last()
        .map_or(set.selection.covered_before, |last| last.covered);
    results.chosen = Some(format!(
        "{}, which cover {:.0} % of what all sessions show",
        grouped(chosen.len() as u64),
        100.0 * covered
    ));
    results.embedder = set.embedder;
    results.finish(set.scored.len() as u64, &set.seen)
}

/// Adds the chosen traces to the results; `end` says what a row ends with.
pub(crate) fn add_chosen(set: &Set, results: &mut Results, end: impl Fn(&Chosen) -> String) -> Result<()> {
    for (rank, chosen) in (1..).zip(&set.selection.chosen) {
        let scored = &set.scored[chosen.index];
        let selection = set.describe(rank, chosen);
        results.add(
            scored,
            || set.kept.get(scored.text),
            Some(&selection),
            end(chosen),
        )?;
    }
    Ok(())
}
