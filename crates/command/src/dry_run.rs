//! `--dry-run`: reads the inputs and tells which formats they have, and how many traces in them are valid.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use knowledgepulse_formats::map::Map;
use knowledgepulse_score::{Scorer, weights::Profiles};

use crate::{
    error::{Exit, Result},
    messages::{BadLines, Messages},
    options::Options,
    output_file::StandardOutput,
    pieces::{Preparation, Work},
    printable::{MOST_UNITS, counted, grouped, label_of, pad_end, width_of},
    reading::{Event, Reading},
    start::Stop,
};

const FORMAT_WIDTH: usize = 13;
const COUNT_WIDTH: usize = 9;

/// The contents of an input.
#[derive(Debug, Default)]
struct Contents {
    source: String,
    /// How many valid traces of each format there are.
    traces: BTreeMap<&'static str, u64>,
    bad: u64,
    without_conversation: u64,
}

/// Reads the inputs, prints their formats and numbers of traces, and writes no file. Returns the exit code that a run would
/// have.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn dry_run(options: &Options, map: Option<Map>, messages: &Messages, stop: &Stop) -> Result<Exit> {
    let scorer = Scorer {
        memory: None,
        profiles: Profiles::default(),
    };
    let reading = Reading {
        sources: options.sources.clone(),
        format: options.from,
        map,
        given: options.given.clone(),
        messages: messages.clone(),
        preparation: Arc::new(Preparation::new(Arc::new(scorer))),
    };
    let mut inputs: Vec<Contents> = Vec::new();
    let (mut bad_lines, mut bad, mut is_unread) = (BadLines::default(), 0, false);
    let _ = reading.run(&mut |event| {
        match (event, inputs.last_mut()) {
            (Event::Begin(source), _) => inputs.push(Contents {
                source,
                ..Contents::default()
            }),
            (Event::Items(items), Some(input)) => {
                for prepared in items {
                    match prepared.outcome() {
                        Ok(format) => *input.traces.entry(format.name()).or_default() += 1,
                        Err(Work::Wrong(reason)) => {
                            input.bad += 1;
                            bad += 1;
                            let place = prepared.place(&input.source);
                            bad_lines.add(&place, reason, options.verbose, messages);
                        }
                        Err(_) => input.without_conversation += 1,
                    }
                }
            }
            (Event::Failed(reason), Some(Contents { source, .. })) => {
                is_unread = true;
                messages.failure(format!("cannot read {source}: {reason}"));
            }
            _ => {}
        }
        stop.flow()
    });
    bad_lines.end(messages);
    StandardOutput::print(table(&inputs).as_bytes())?;
    Ok(match (stop.is_interrupted(), is_unread, bad) {
        (true, ..) => Exit::Interrupted,
        (_, true, _) => Exit::File,
        (.., 0) => Exit::Ok,
        _ => Exit::BadLines,
    })
}

/// Returns a row for each input and format, and a line with the sums.
fn table(inputs: &[Contents]) -> String {
    let names: Vec<_> = inputs
        .iter()
        .map(|input| label_of(&input.source.as_str().into(), "", MOST_UNITS))
        .collect();
    let width = names
        .iter()
        .map(|name| width_of(name))
        .fold("file".len(), usize::max)
        + 2;
    let mut text =
        pad_end("file", width) + &format!("{:FORMAT_WIDTH$}{:>COUNT_WIDTH$}\n", "format", "traces");
    let mut row = |name: &str, format: &str, count: u64| {
        let (name, count) = (pad_end(name, width), grouped(count));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}{format:FORMAT_WIDTH$}{count:>COUNT_WIDTH$}");
    };
    let [mut traces, mut bad, mut without_conversation] = [0; 3];
    for (name, input) in names.iter().zip(inputs) {
        if input.traces.is_empty() {
            row(name, "(none)", 0);
        }
        for (format, &count) in &input.traces {
            row(name, format, count);
            traces += count;
        }
        bad += input.bad;
        without_conversation += input.without_conversation;
    }
    let mut sums = format!(
        "{} in {}",
        counted(traces, "trace"),
        counted(inputs.len() as u64, "file")
    );
    if bad > 0 {
        let _ = write!(sums, "; {}", counted(bad, "bad line"));
    }
    if without_conversation > 0 {
        let _ = write!(
            sums,
            "; {} without a conversation",
            counted(without_conversation, "trace")
        );
    }
    text + &sums + "; nothing was scored or written\n"
}
