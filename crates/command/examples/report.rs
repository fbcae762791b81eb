//! Makes the report of a run that standard input describes, one JSON object a line: the options, then traces (`{"add": …}`, as
//! [`Scored::from_value`] reads them, and `kept`) and bad records (`{"error": …}`), and how the run ended (`{"run": …}`).
//! Prints the figures as JSON; with the path of a page, which is not compressed, the page with the figures in it.

use std::{
    error::Error,
    fs,
    io::{BufRead, Write, stdin, stdout},
};

use knowledgepulse_command::{
    report::{Report, ReportOptions, Run},
    scored::{Judged, Place, Scored},
};
use knowledgepulse_index::method::Method;
use knowledgepulse_json::{Value, parse_str};

fn main() -> Result<(), Box<dyn Error>> {
    let page = std::env::args_os().nth(1).map(fs::read_to_string).transpose()?;
    let mut lines = stdin().lock().lines();
    let first = parse_str(&lines.next().ok_or("standard input is empty")??)?;
    let mut report = Report::new(options_of(&first).ok_or("the first line is not options")?);
    for (number, line) in (2..).zip(lines) {
        let record = parse_str(&line?)?;
        if let Some(run) = record.get("run") {
            let run = run_of(run).ok_or_else(|| format!("line {number} is not a run"))?;
            let text = match &page {
                Some(page) => report.render(&run, page)?,
                None => report.summary(&run).to_json(),
            };
            stdout().write_all(text.as_bytes())?;
            return Ok(());
        }
        add(&mut report, &record).ok_or_else(|| format!("line {number} is neither a trace nor an error"))?;
    }
    Err("the last line is not a run".into())
}

fn options_of(value: &Value) -> Option<ReportOptions> {
    let sources = value.get("sources")?.as_array()?.iter();
    Some(ReportOptions {
        threshold: value.get("threshold")?.as_number()?,
        sources: sources
            .map(|name| name.as_str().map(str::to_owned))
            .collect::<Option<_>>()?,
        novelty: match value.get("novelty")?.as_str()? {
            "prefix" => Method::Prefix,
            other => Method::of_traces(other)?,
        },
        dtype: value.get("dtype")?.as_str().map(str::to_owned),
        version: value.get("version")?.as_str()?.to_owned(),
    })
}

fn run_of(value: &Value) -> Option<Run> {
    Some(Run {
        finished_at: value.get("finishedAt")?.as_str()?.to_owned(),
        seconds: value.get("seconds")?.as_number()?,
        interrupted: value.get("interrupted")?.as_bool()?,
        cleaned: value.get("cleaned").filter(|cleaned| !cleaned.is_null()).cloned(),
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // They are whole numbers.
fn add(report: &mut Report, record: &Value) -> Option<()> {
    if let Some(trace) = record.get("add") {
        report.add(&Judged {
            scored: Scored::from_value(trace)?,
            kept: trace.get("kept")?.as_bool()?,
        });
        return Some(());
    }
    let error = record.get("error")?;
    let count = |name| error.get(name)?.as_number().map(|count| count as u64);
    let place = Place {
        source: error.get("source")?.as_str()?.to_owned(),
        line: count("line")?,
        index: count("index"),
    };
    report.add_error(&place, error.get("message")?.as_text()?);
    Some(())
}
