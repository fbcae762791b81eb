//! Makes the report of a run that standard input describes, as [`described`] reads it. Prints the figures as JSON; with the path of a
//! page, which is not compressed, the page with the figures in it.

use std::{
    error::Error,
    fs,
    io::{Write, read_to_string, stdin, stdout},
    sync::Arc,
};

use knowledgepulse_command::{
    desk::{Report, ReportOptions, Run},
    scored::{Place, RunInfo, Scored, TraceInfo},
};
use knowledgepulse_formats::FormatName;
use knowledgepulse_index::{
    memory::{Basis, Nearest, Novelty, Reading},
    method::Method,
    similarity::Similarity,
    traces::explain::{ExplainedWord, ExplainedWords},
};
use knowledgepulse_json::{Value, parse_str};
use knowledgepulse_score::{
    Breakdown,
    dimensions::ByDimension,
    overrides::{Override, OverrideRule},
    weights::Profile,
};
use knowledgepulse_trace::label::Label;

fn main() -> Result<(), Box<dyn Error>> {
    let page = std::env::args_os().nth(1).map(fs::read_to_string).transpose()?;
    let (report, run) = described(&read_to_string(stdin())?)?;
    let text = match &page {
        Some(page) => report.render(&run, page).map_err(|failure| failure.message)?,
        None => report.summary(&run).to_json(),
    };
    stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Reads the description of a run, one JSON object a line: the options, then traces (`{"add": …}`, with the names of results;
/// those that are `kept` are listed first, and a `trace` has the steps) and bad records (`{"error": …}`), and how the run ended
/// (`{"run": …}`).
///
/// # Errors
/// If a line is something else; the message names it.
fn described(lines: &str) -> Result<(Report, Run), String> {
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
        report.add_standing(&scored_of(trace)?, &text, u8::from(is_kept));
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

/// Reads a trace that a page describes, with the names of results; `None` for another value.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // They were whole numbers.
fn scored_of(value: &Value) -> Option<Scored> {
    let text = |name| value.get(name).and_then(Value::as_text).cloned();
    let count = |name| value.get(name)?.as_number().map(|count| count as u64);
    let answer = |name| value.get(name).and_then(Value::as_bool);
    let format = FormatName::from_name(value.get("format")?.as_str()?)?;
    Some(Scored {
        place: Place {
            source: value.get("source")?.as_str()?.to_owned(),
            line: count("line")?,
            index: count("index"),
        },
        about: TraceInfo {
            format,
            agent: text("agent").unwrap_or_else(|| format.name().into()),
            when: value.get("when").and_then(Value::as_str).map(str::to_owned),
            steps: count("steps").unwrap_or_default(),
            success: answer("success"),
            has_confidence: answer("hasConfidence").unwrap_or(true),
            id: text("id"),
            objective: text("objective")?,
            domain: text("domain")?,
            run: RunInfo::default(),
        },
        breakdown: breakdown_of(value.get("breakdown")?)?,
    })
}

/// Reads a breakdown of JSON; `None` for another value.
fn breakdown_of(value: &Value) -> Option<Breakdown> {
    let dimensions = numbers(value.get("dimensions")?)?;
    let overrides = value.get("overrides")?.as_array()?.iter().map(|applied| {
        Some(Override {
            rule: OverrideRule::from_name(applied.get("rule")?.as_str()?)?,
            before: applied.get("before")?.as_number()?,
            after: applied.get("after")?.as_number()?,
        })
    });
    let nearest = match value.get("nearest")? {
        Value::Null => None,
        nearest => Some(nearest_of(nearest)?),
    };
    let reading = value.get("truncated")?.as_bool().map(|truncated| Reading {
        tokens: value.get("tokens").and_then(Value::as_number).map(count),
        truncated,
    });
    Some(Breakdown {
        score: value.get("score")?.as_number()?,
        dimensions,
        profile: Arc::new(Profile {
            name: value.get("profile")?.as_str()?.to_owned(),
            weights: numbers(value.get("weights")?)?,
        }),
        contributions: numbers(value.get("contributions")?)?,
        composite: value.get("composite")?.as_number()?,
        overrides: overrides.collect::<Option<_>>()?,
        novelty: Novelty {
            value: dimensions.novelty,
            basis: Basis::from_name(value.get("noveltyBasis")?.as_str()?)?,
            nearest,
            reading,
        },
    })
}

fn nearest_of(nearest: &Value) -> Option<Nearest> {
    let part = |name| nearest.get(name).and_then(Value::as_number);
    let words = |name| words_of(nearest.get(name)?);
    Some(Nearest {
        label: nearest.get("label").and_then(Value::as_str).map(Label::from),
        similarity: part("similarity")?,
        parts: part("lexical")
            .zip(part("contained"))
            .map(|(lexical, contained)| Similarity {
                lexical,
                contained,
                embedded: part("embedded"),
            }),
        words: words("sharedWords")
            .zip(words("newWords"))
            .map(|(shared, new)| ExplainedWords { shared, new }),
    })
}

fn words_of(words: &Value) -> Option<Vec<ExplainedWord>> {
    let words = words.as_array()?.iter().map(|word| {
        Some(ExplainedWord {
            text: word.get("word")?.as_str()?.to_owned(),
            weight: word.get("weight")?.as_number()?,
            traces: count(word.get("traces")?.as_number()?),
        })
    });
    words.collect()
}

fn numbers(value: &Value) -> Option<ByDimension> {
    let number = |name| value.get(name).and_then(Value::as_number);
    let [complexity, novelty, tool_diversity, outcome] = ByDimension::NAMES.map(number);
    Some(ByDimension::from_array([
        complexity?,
        novelty?,
        tool_diversity?,
        outcome?,
    ]))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It was a whole number.
fn count(number: f64) -> usize {
    number as usize
}
