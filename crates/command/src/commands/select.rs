//! `kp-score select`: a set of traces that covers the others.

use clap::Args;

use super::score::{render_report, report_options, tell, with_score};
use crate::{
    args::{InputArgs, one_of},
    error::{Exit, Result},
    file_identity::Output,
    host::Host,
    messages::Messages,
    output_file::StandardOutput,
    outputs::{End, Outputs},
    printable::counted,
    report::Report,
    rows::{FORMATS, Format, Rows},
    set::{ChoiceArgs, ChosenTrace, choose},
    stop::Stop,
    summary::{About, Coverage},
    table::{Look, Row, render},
};

/// Choose a set of traces to share: many tasks instead of near-copies of one
#[derive(Debug, Clone, Args)]
#[command(before_help = "Example: kp-score select 20 ~/.claude/projects --out set.jsonl")]
pub(crate) struct SelectArgs {
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub results: SetArgs,
}

/// What is written of the set.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct SetArgs {
    /// table, json, jsonl or csv [default: table, or nothing with a file]
    #[arg(long, value_parser = one_of(FORMATS), hide_possible_values = true)]
    pub format: Option<Format>,

    /// Write the set with metadata.selection, the best first; .gz is compressed
    #[arg(long, value_name = "FILE")]
    pub out: Option<String>,

    /// Write a page to look at, in HTML
    #[arg(long, value_name = "FILE")]
    pub report: Option<String>,
}

/// Chooses a set, and shows and writes it.
pub(crate) fn run(args: &SelectArgs, host: &dyn Host, messages: &Messages, stop: &Stop) -> Result<Exit> {
    let SelectArgs {
        choice,
        input,
        results,
    } = args;
    let files = [("out", &results.out), ("report", &results.report)];
    let files: Vec<Output> = files
        .into_iter()
        .filter_map(|(name, file)| Some((name, file.as_deref()?)))
        .collect();
    let read = [&choice.labels, &choice.known];
    let inputs = input.open(&files, &read, messages)?;
    let others = inputs.sources.iter().chain(read.into_iter().flatten()).cloned();
    let mut outputs = Outputs::open(&files, others.collect())?;
    let format = results.format.or(files.is_empty().then_some(Format::Table));
    let has_report = results.report.is_some();
    let mut set = choose(&inputs, choice, has_report, host, messages, stop)?;

    let lack = set.seen.why_incomplete(stop).map(str::to_owned);
    let mut rows = format.map(|format| Rows::new(format, false));
    let mut table = Vec::new();
    let mut stdout = StandardOutput::new();
    let begin = rows.as_ref().map(Rows::begin).unwrap_or_default();
    stdout.write(begin.as_bytes())?;
    set.each_chosen(|chosen| {
        let ChosenTrace {
            scored,
            text,
            selection,
        } = chosen;
        outputs.write_trace(&with_score(&text, &scored, false, Some(&selection)))?;
        if format == Some(Format::Table) {
            let stands_for = selection.get("standsFor").and_then(|count| count.as_number());
            let others = stands_for.filter(|count| *count > 0.0);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is a count.
            let end = others.map(|count| format!("for {}", counted(count as u64, "other")));
            table.push(Row {
                scored,
                end: end.unwrap_or_default(),
                below: String::new(),
            });
        } else if let Some(rows) = &mut rows {
            stdout.write(rows.row(&scored, Some(&selection)).as_bytes())?;
        }
        Ok(())
    })?;
    let mut written = Vec::new();
    if set.summary.scored() > 0 {
        let mut report =
            has_report.then(|| Report::new(report_options(&inputs, None, choice.novelty, &set.status)));
        if let Some(report) = &mut report {
            report.set_selection(&set.selection);
            set.each(|scored, text| {
                report.add(&scored, &text);
                Ok(())
            })?;
        }
        let seconds = set.summary.seconds();
        outputs.write_report(|| render_report(report.as_ref(), seconds, stop))?;
        written = outputs.publish(lack.is_none())?;
    }
    let about = About {
        novelty: Some(choice.novelty),
        embedder: set.embedder(),
        coverage: Some(Coverage::of(&set.selection)),
        interrupted: stop.is_interrupted(),
        memory: None,
        written: written.clone(),
    };
    let share_below = |score| set.summary.share_below(score);
    let table = render(&table, share_below, Look::of_output());
    stdout.write(table.as_bytes())?;
    match &rows {
        Some(rows) => {
            let end = rows.end(|| set.summary.to_value(&set.seen, &about));
            stdout.write(end.as_bytes())?;
            stdout.flush()?;
            tell(&set.summary, &set.seen, &about, messages, None)?;
        }
        None => tell(&set.summary, &set.seen, &about, messages, Some(&mut stdout))?,
    }
    let end = End {
        lack,
        seen: &set.seen,
        summary: &set.summary,
        outputs: &outputs,
        written: &written,
        memory: None,
    };
    Ok(end.conclude(messages, stop))
}
