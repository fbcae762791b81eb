//! The figures of a run.

use std::{cmp::Reverse, path::Path, time::Instant};

use knowledgepulse_formats::FormatName;
use knowledgepulse_index::method::Method;
use knowledgepulse_json::{Text, Value, cut, units_of};
use knowledgepulse_score::{
    engine::{EngineKind, Status},
    select::Selection,
};

use crate::{
    json_object,
    read::Seen,
    score::scored::Scored,
    show::{
        near_duplicate::{is_near_duplicate, resemblance},
        printable::{counted, decimal, fixed, grouped, rate},
        statistics::{Named, Scores, Sorted},
        values::list,
    },
};

/// How many domains are told apart. Traces of further ones are counted together.
const MOST_DOMAINS: usize = 50;

/// Domains that are the same up to this many UTF-16 code units are counted as one.
const MOST_DOMAIN_UNITS: usize = 100;

/// Counts traces and their scores.
#[derive(Debug)]
pub(crate) struct Summary {
    start: Instant,
    scores: Scores,
    /// In the order in which they were first met.
    domains: Named<Scores>,
    /// Traces that repeat an earlier one.
    near_duplicates: u64,
    /// Traces that were converted from another format.
    converted: u64,
    unknown_success: u64,
    unknown_confidence: u64,
}

/// Facts about a run besides its scores.
#[derive(Debug, Default)]
pub(crate) struct RunInfo<'r> {
    /// How traces were compared.
    pub novelty: Option<Method>,
    /// The embedder, if there was one.
    pub embedder: Option<&'r Status>,
    /// The set that was chosen.
    pub selection: Option<&'r Selection>,
    /// Whether sessions were chosen or listed, and not scored.
    pub has_sessions: bool,
    /// Whether the user ended the run.
    pub interrupted: bool,
    pub written: Vec<Written>,
}

/// A file that was written.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub file: String,
    /// The traces in it; `None` if they are not counted.
    pub traces: Option<u64>,
}

#[allow(clippy::cast_precision_loss)] // Counts are far below 2^53.
impl Summary {
    /// Returns the summary of a run that begins now.
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            scores: Scores::default(),
            domains: Named::new(MOST_DOMAINS),
            near_duplicates: 0,
            converted: 0,
            unknown_success: 0,
            unknown_confidence: 0,
        }
    }

    /// Takes the time from now on.
    pub(crate) fn begin(&mut self) {
        self.start = Instant::now();
    }

    /// Adds a trace.
    pub(crate) fn add(&mut self, Scored { about, breakdown, .. }: &Scored) {
        let score = breakdown.score;
        self.scores.add(score);
        self.converted += u64::from(about.format != FormatName::Trace);
        self.unknown_success += u64::from(about.success.is_none());
        self.unknown_confidence += u64::from(!about.has_confidence);
        self.near_duplicates += u64::from(is_near_duplicate(resemblance(breakdown)));
        let mut name = about.domain.clone();
        if units_of(&name) > MOST_DOMAIN_UNITS {
            name = cut(&name, MOST_DOMAIN_UNITS).into();
        }
        self.domains.entry(name, Scores::default).add(score);
    }

    /// Returns how many traces were scored.
    pub(crate) fn scored(&self) -> u64 {
        self.scores.count()
    }

    /// Returns the scores in ascending order.
    pub(crate) fn sorted_scores(&self) -> Sorted {
        self.scores.sorted()
    }

    /// Returns how long the run has taken so far.
    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Returns the figures for programs. A figure of scores is `null` if there are no scores.
    pub(crate) fn to_value(&self, seen: &Seen, about: &RunInfo) -> Value {
        let (scores, sorted) = (&self.scores, self.scores.sorted());
        let mut domains: Vec<_> = self.domains.iter().collect();
        domains.sort_by_key(|(_, scores)| Reverse(scores.count()));
        let domains = domains.into_iter().map(|(name, scores)| {
            json_object! {
                "domain": name.clone(),
                "scored": scores.count(),
                "mean": scores.mean(),
                "median": scores.sorted().quantile(0.5),
            }
        });
        let written = about.written.iter().map(|Written { file, traces }| {
            json_object! { "file": file.as_str(), "traces": *traces }
        });
        let selection = about.selection.map(|selection| {
            json_object! {
                "chosen": selection.chosen.len(),
                "covered": covered_by(selection),
                "coveredBefore": selection.covered_before,
            }
        });
        let seconds = self.seconds();
        json_object! {
            "scored": self.scored(),
            "bad": seen.bad,
            "withoutConversation": seen.without_conversation,
            "ignored": seen.left_out.files + seen.left_out.ignored,
            "nearDuplicates": self.near_duplicates,
            "converted": self.converted,
            "unknownSuccess": self.unknown_success,
            "unknownConfidence": self.unknown_confidence,
            "mean": scores.mean(),
            "median": sorted.quantile(0.5),
            "p10": sorted.quantile(0.1),
            "p90": sorted.quantile(0.9),
            "domains": list(domains),
            "seconds": seconds,
            "perSecond": self.scored() as f64 / seconds,
            "selection": selection,
            "interrupted": about.interrupted,
            "novelty": about.novelty.map(Method::name),
            "embedder": about.embedder.map(embedder_value),
            "written": list(written),
        }
    }

    /// Returns the figures for people.
    pub(crate) fn render(&self, seen: &Seen, about: &RunInfo) -> String {
        let seconds = self.seconds();
        let (noun, done) = match about.has_sessions {
            true => ("session", "read"),
            false => ("trace", "scored"),
        };
        let mut text = format!(
            "{} {done} in {} s, {} per second",
            counted(self.scored(), noun),
            fixed(seconds, 1),
            rate(self.scored() as f64 / seconds),
        );
        if seen.bad > 0 {
            text = format!("{text}; {}", counted(seen.bad, "bad line"));
        }
        text.push('\n');
        let of =
            |count: u64, words: &dyn Fn(String) -> String| (count > 0).then(|| words(counted(count, noun)));
        let mut lines = match about.has_sessions {
            true => vec![("chosen", about.selection.map(selection_words))],
            false => vec![
                ("score", quantiles_words(&self.scores.sorted())),
                (
                    "alike",
                    of(self.near_duplicates, &|traces| {
                        format!("{traces} near an earlier one")
                    }),
                ),
                (
                    "outcome",
                    of(self.unknown_success, &|traces| {
                        format!("not known of {traces}, shown as ?")
                    }),
                ),
            ],
        };
        lines.extend([
            (
                "skipped",
                of(seen.without_conversation, &|traces| {
                    format!("{traces} without a conversation: see --verbose")
                }),
            ),
            ("ignored", seen.ignored.clone()),
            ("embedder", about.embedder.map(embedder_words)),
        ]);
        lines.extend(about.written.iter().map(|Written { file, traces }| {
            let traces = traces.map(|traces| format!(": {}", counted(traces, "trace")));
            ("written", Some(format!("{file}{}", traces.unwrap_or_default())))
        }));
        for (name, words) in lines {
            if let Some(words) = words {
                text.push_str(&format!("  {name:10}{words}\n"));
            }
        }
        text
    }
}

fn quantiles_words(scores: &Sorted) -> Option<String> {
    let [p10, median, p90] = [0.1, 0.5, 0.9].map(|p| scores.quantile(p).map(decimal));
    Some(format!(
        "median {}, a tenth below {}, a tenth above {}",
        median?, p10?, p90?
    ))
}

fn selection_words(selection: &Selection) -> String {
    let percent = fixed(100.0 * covered_by(selection), 0);
    let chosen = grouped(selection.chosen.len() as u64);
    format!("{chosen}, which cover {percent} % of what all sessions show")
}

/// Returns which part of what all traces cover a set covers with the known traces, 0 to 1.
fn covered_by(selection: &Selection) -> f64 {
    let last = selection.chosen.last();
    last.map_or(selection.covered_before, |last| last.covered)
}

/// Returns the fields of `EmbedderStatus` in index.d.ts.
fn embedder_value(status: &Status) -> Value {
    let path = |path: &Option<_>| path.as_deref().map(Path::to_string_lossy).map(Text::from);
    json_object! {
        "available": status.failure.is_none(),
        "code": status.failure.as_ref().map(|failure| failure.code),
        "reason": status.failure.as_ref().map(|failure| failure.reason.as_str()),
        "modelDirectory": path(&status.model_directory),
        "model": status.model.as_deref(),
        "modelSha256": status.model_sha256.as_deref(),
        "dtype": status.dtype.as_deref(),
        "dimensions": status.dimensions,
        "engine": status.engine.map(EngineKind::name),
        "kernel": status.kernel.as_deref(),
        "runtimePath": path(&status.runtime_path),
        "runtimeVersion": status.runtime_version.as_deref(),
        "threads": status.threads,
    }
}

fn embedder_words(status: &Status) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    let engine = match status.engine {
        Some(EngineKind::OnnxRuntime) => format!("ONNX Runtime {}", text(&status.runtime_version)),
        _ => format!("built in ({})", text(&status.kernel)),
    };
    let (model, dtype) = (text(&status.model), text(&status.dtype));
    let threads = counted(status.threads as u64, "thread");
    format!("{model} ({dtype}), {engine}, {threads}")
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::score::scored::tests::scored;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn figures_of_domains_add_up_to_those_of_all(all in vec(scored().boxed(), 0..90)) {
            let mut summary = Summary::new();
            all.iter().for_each(|scored| summary.add(scored));
            let value = summary.to_value(&Seen::default(), &RunInfo::default());
            let count = |value: &Value| value.get("scored").unwrap().as_number().unwrap();
            let domains = value.get("domains").unwrap().as_array().unwrap();
            prop_assert_eq!(count(&value), all.len() as f64);
            prop_assert_eq!(domains.iter().map(count).sum::<f64>(), all.len() as f64);
            prop_assert!(domains.len() <= MOST_DOMAINS + 1);
            prop_assert!(domains.is_sorted_by(|one, other| count(one) >= count(other)));
        }

        #[test]
        fn domains_that_begin_alike_for_100_units_are_one(scored in scored(), end in "[a-z]{1,9}") {
            let mut summary = Summary::new();
            for end in ["😀", end.as_str()] {
                let mut scored = scored.clone();
                scored.about.domain = ("d".repeat(99) + "😀" + end).into();
                summary.add(&scored);
            }
            let names: Vec<_> = summary.domains.iter().map(|(name, _)| name.clone()).collect();
            prop_assert_eq!(names, [Text::from("d".repeat(99))]);
        }
    }

    #[test]
    fn render_names_only_what_there_is() {
        let text = Summary::new().render(&Seen::default(), &RunInfo::default());
        assert!(
            text.starts_with("0 traces scored in ") && text.lines().count() == 1,
            "{text}"
        );
    }
}
