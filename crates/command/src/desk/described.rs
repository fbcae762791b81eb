//! A report of a run that text describes, for pages and tests.

use knowledgepulse_index::method::Method;
use knowledgepulse_json::{Value, parse_str};

use super::{Report, ReportOptions, Run};
use crate::scored::{Place, Scored};

/// Reads the description of a run, one JSON object a line: the options, then traces (`{"add": …}`, as [`Scored::from_value`] reads them;
/// those that are `kept` are listed first, and a `trace` has the steps) and bad records (`{"error": …}`), and how the run ended
/// (`{"run": …}`).
///
/// # Errors
/// If a line is something else; the message names it.
pub fn described(lines: &str) -> Result<(Report, Run), String> {
    let mut report: Option<Report> = None;
    for (number, line) in (1..).zip(lines.lines()) {
        let wrong = |what: &str| format!("line {number} is {what}");
        let record = parse_str(line).map_err(|error| wrong(&format!("not JSON: {error}")))?;
        report = Some(match (report, record.get("run")) {
            (None, _) => Report::new(options_of(&record).ok_or_else(|| wrong("not options"))?),
            (Some(report), Some(run)) => {
                return Ok((report, run_of(run).ok_or_else(|| wrong("not a run"))?));
            }
            (Some(mut report), None) => {
                add(&mut report, &record).ok_or_else(|| wrong("neither a trace nor an error"))?;
                report
            }
        });
    }
    Err("the last line is not a run".into())
}

fn options_of(value: &Value) -> Option<ReportOptions> {
    let sources = value.get("sources")?.as_array()?.iter();
    Some(ReportOptions {
        threshold: value.get("threshold").and_then(Value::as_number),
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
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // They are whole numbers.
fn add(report: &mut Report, record: &Value) -> Option<()> {
    if let Some(trace) = record.get("add") {
        let text = trace.get("trace").map(Value::to_json).unwrap_or_default();
        let is_kept = trace.get("kept")?.as_bool()?;
        report.add_standing(&Scored::from_value(trace)?, &text, u8::from(is_kept));
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
