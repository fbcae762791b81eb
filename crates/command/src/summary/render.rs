//! The figures of a run as text for people.

use knowledgepulse_clean::{Redaction, Redactions};
use knowledgepulse_json::number as javascript_number;
use knowledgepulse_score::{engine::EngineKind, select::Count};

use super::{About, Coverage, Embedder, Figures};
use crate::{
    near_duplicate::SIMILARITY,
    options::{Cleaning, KnownTraces},
    printable::{
        MOST_UNITS, counted, decimal, fixed, grouped, label_of, pad_end, printable, rate, rounded, width_of,
    },
    rows::NO_DOMAIN,
};

const DOMAIN_WIDTH: usize = 20;

/// Returns the figures for people. `splits` is whether a threshold or a number of traces was given, `known` the treatment of
/// known traces.
pub fn render_summary(figures: &Figures, splits: bool, known: KnownTraces) -> String {
    let About {
        embedder,
        memory,
        written,
        ..
    } = &figures.about;
    let mut head = format!(
        "{} scored in {} s, {} per second",
        counted(figures.scored, "trace"),
        fixed(figures.seconds, 1),
        rate(figures.per_second()),
    );
    if figures.counts.bad > 0 {
        head = format!("{head}; {}", counted(figures.counts.bad, "bad line"));
    }
    let mut lines = vec![head];
    if figures.scored > 0 {
        lines.extend(score_lines(figures, splits));
    }
    if figures.counts.without_conversation > 0 {
        let traces = counted(figures.counts.without_conversation, "trace");
        lines.push(line(
            "skipped",
            &format!("{traces} without a conversation: see --verbose"),
        ));
    }
    if figures.counts.known_traces > 0 {
        let traces = counted(figures.counts.known_traces, "trace");
        let words = match known {
            KnownTraces::Score => " with the novelty of the earlier score",
            _ => ", skipped; --known score writes them with their earlier scores",
        };
        lines.push(line("known", &format!("{traces}{words}")));
    }
    lines.push(line("embedder", &embedder_words(embedder)));
    for file in written {
        let traces = file
            .traces
            .map(|traces| format!(": {}", counted(traces, "trace")));
        lines.push(line(
            "written",
            &(file.file.clone() + &traces.unwrap_or_default()),
        ));
    }
    if let Some(memory) = memory {
        let after = memory
            .after
            .map_or_else(|| "unknown".into(), |after| counted(after, "trace"));
        let forgotten = match memory.forgotten {
            None | Some(0) => String::new(),
            Some(forgotten) => format!(", {} forgotten, the oldest", grouped(forgotten)),
        };
        let change = format!("{}: {} → {after}{forgotten}", memory.file, grouped(memory.before));
        lines.push(line("memory", &change));
    }
    lines.join("\n") + "\n"
}

fn line(name: &str, text: &str) -> String {
    format!("  {name:10}{text}")
}

/// Returns the figures of scored traces.
fn score_lines(figures: &Figures, splits: bool) -> Vec<String> {
    let [mean, median, p10, p90] = [figures.mean, figures.median, figures.p10, figures.p90]
        .map(|figure| decimal(figure.unwrap_or_default()));
    let (kept, dropped) = (grouped(figures.kept), grouped(figures.dropped()));
    let mut lines = vec![
        line(
            "score",
            &format!("mean {mean}, median {median}, p10 {p10}, p90 {p90}"),
        ),
        line(
            "kept",
            &match figures.about.coverage {
                Some(Coverage { covered, .. }) => format!(
                    "{kept} chosen, which cover {} % of what all traces show, {dropped} left",
                    fixed(100.0 * covered, 0)
                ),
                None => format!("{kept} {}, {dropped} below", kept_words(&figures.about, splits)),
            },
        ),
    ];
    if figures.counts.near_duplicates > 0 {
        lines.push(line(
            "novelty",
            &near_duplicate_words(figures.counts.near_duplicates),
        ));
    }
    if figures.counts.converted > 0 {
        let traces = counted(figures.counts.converted, "trace");
        lines.push(line("converted", &format!("{traces} from another format")));
    }
    let defaults = [
        (figures.counts.unknown_success, "success", "failed: see --success"),
        (
            figures.counts.unknown_confidence,
            "confidence",
            "0.5: see --confidence",
        ),
    ];
    let mut name = "outcome";
    for (unknown, field, default) in defaults.into_iter().filter(|&(unknown, ..)| unknown > 0) {
        let traces = counted(unknown, "trace");
        lines.push(line(
            name,
            &format!("{field} not known of {traces}, scored as {default}"),
        ));
        name = "";
    }
    if let Some(cleaning) = figures.about.clean {
        lines.push(line(
            "cleaned",
            &cleaned_words(cleaning, &figures.counts.redactions),
        ));
    }
    if figures.domains.len() > 1 {
        lines.extend(domain_table(figures));
    }
    lines
}

fn kept_words(about: &About, splits: bool) -> String {
    let asked = match about.top {
        Some(Count::Number(count)) => grouped(count as u64),
        Some(Count::Percent(percent)) => format!("{} %", javascript_number(percent)),
        None => {
            let default = if splits { "" } else { " (the default)" };
            return format!("of at least {}{default}", javascript_number(about.threshold));
        }
    };
    format!(
        "of the best {asked}, which score at least {}",
        decimal(about.threshold)
    )
}

fn near_duplicate_words(count: u64) -> String {
    let words = if count == 1 {
        "is a near-duplicate of an earlier one"
    } else {
        "are near-duplicates of earlier ones"
    };
    let novelty = javascript_number(rounded(1.0 - SIMILARITY, 4));
    format!(
        "{} {words}: a novelty of {novelty} or less",
        counted(count, "trace")
    )
}

fn cleaned_words(Cleaning { level, strict }: Cleaning, redactions: &Redactions) -> String {
    let counts = redactions
        .as_slice()
        .iter()
        .map(|Redaction { name, count }| format!("{name} {}", grouped(*count as u64)));
    let mut found = counts.collect::<Vec<_>>().join(", ");
    if found.is_empty() {
        found = "nothing was found".into();
    }
    format!("{found} ({level}{})", if strict { ", strict" } else { "" })
}

fn domain_table(figures: &Figures) -> Vec<String> {
    let mut table = vec![["domain", "traces", "kept", "mean", "median"].map(str::to_owned)];
    table.extend(figures.domains.iter().map(|domain| {
        [
            label_of(&domain.domain, NO_DOMAIN, DOMAIN_WIDTH),
            grouped(domain.scored),
            grouped(domain.kept),
            decimal(domain.mean.unwrap_or_default()),
            decimal(domain.median.unwrap_or_default()),
        ]
    }));
    let widths = [0, 1, 2, 3, 4].map(|column| {
        let widths = table.iter().map(|cells| width_of(&cells[column]));
        widths.max().unwrap_or_default()
    });
    let [name_width, number_widths @ ..] = widths;
    let line = |[name, numbers @ ..]: &[String; 5]| {
        let numbers = numbers
            .iter()
            .zip(number_widths)
            .map(|(cell, width)| format!("  {cell:>width$}"));
        format!("  {}{}", pad_end(name, name_width), numbers.collect::<String>())
    };
    table.iter().map(line).collect()
}

fn embedder_words(embedder: &Embedder) -> String {
    let status = match (embedder, embedder.reason()) {
        (_, Some(reason)) => {
            let reason = printable(&reason.into(), MOST_UNITS);
            return format!("none, so novelty is 0.5 throughout: {reason}");
        }
        (Embedder::Unused(_), None) => return "none: words alone are compared".into(),
        (Embedder::Loaded(status), None) => status,
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    let engine = match status.engine {
        Some(EngineKind::OnnxRuntime) => format!("ONNX Runtime {}", text(&status.runtime_version)),
        _ => format!("built in ({})", text(&status.kernel)),
    };
    let model = status.model.as_deref().unwrap_or_default();
    format!(
        "{} ({}), {engine}, {}",
        label_of(&model.into(), "a model", MOST_UNITS),
        text(&status.dtype),
        counted(status.threads as u64, "thread"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{DomainFigures, MemoryFile, Summary, Written, tests::about};

    #[test]
    fn render_summary_names_only_what_there_is() {
        let mut figures = Summary::new().figures(about());
        figures.seconds = 0.25;
        assert_eq!(
            render_summary(&figures, false, KnownTraces::Skip),
            "0 traces scored in 0.3 s, 0.0 per second\n  embedder  none: words alone are compared\n"
        );
    }

    #[test]
    fn render_summary_tells_all_figures() {
        let domain = |domain: &str, scored, kept| DomainFigures {
            domain: domain.into(),
            scored,
            kept,
            mean: Some(0.5),
            median: Some(0.03125),
        };
        let mut figures = Summary::new().figures(About {
            top: Some(Count::Percent(12.5)),
            clean: Some(Cleaning {
                level: "private",
                strict: true,
            }),
            embedder: Embedder::none(Some("--no-embedder")),
            memory: Some(MemoryFile {
                file: "m.kp".into(),
                before: 1000,
                after: None,
                forgotten: Some(2),
            }),
            written: vec![Written {
                file: "o.jsonl".into(),
                traces: Some(1),
            }],
            ..about()
        });
        figures.seconds = 100.0;
        figures.scored = 1234;
        figures.kept = 1000;
        figures.counts.bad = 1;
        figures.counts.known_traces = 2;
        figures.counts.near_duplicates = 1;
        figures.counts.unknown_success = 3;
        figures.counts.unknown_confidence = 4;
        figures.counts.redactions.add("email", 2000);
        figures.domains = vec![domain("code", 1200, 990), domain("\n", 34, 10)];
        assert_eq!(
            render_summary(&figures, true, KnownTraces::Score),
            "1,234 traces scored in 100.0 s, 12 per second; 1 bad line
  score     mean 0.0000, median 0.0000, p10 0.0000, p90 0.0000
  kept      1,000 of the best 12.5 %, which score at least 0.7500, 234 below
  novelty   1 trace is a near-duplicate of an earlier one: a novelty of 0.05 or less
  outcome   success not known of 3 traces, scored as failed: see --success
            confidence not known of 4 traces, scored as 0.5: see --confidence
  cleaned   email 2,000 (private, strict)
  domain  traces  kept    mean  median
  code     1,200   990  0.5000  0.0313
  (none)      34    10  0.5000  0.0313
  known     2 traces with the novelty of the earlier score
  embedder  none, so novelty is 0.5 throughout: --no-embedder
  written   o.jsonl: 1 trace
  memory    m.kp: 1,000 → unknown, 2 forgotten, the oldest
"
        );
    }
}
