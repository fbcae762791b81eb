//! The figures of a run, in bounded memory however many traces there are.

mod render;

pub use render::render_summary;

use std::{cmp::Reverse, path::Path, time::Instant};

use knowledgepulse_clean::{Redaction, Redactions};
use knowledgepulse_formats::FormatName;
use knowledgepulse_json::{Object, Text, Value};
use knowledgepulse_score::{
    engine::{EngineKind, Status},
    select::{Count, Selection},
};

use crate::{
    json_object,
    near_duplicate::{is_near_duplicate, resemblance},
    options::Cleaning,
    scored::Judged,
    statistics::{Histogram, Named, SCORE_BINS},
    text::cut,
    values::{IntoValue, list},
};

/// How many domains are told apart. Traces of further ones are counted together.
const MOST_DOMAINS: usize = 50;

/// Domains that are the same up to this many UTF-16 code units are counted as one.
const MOST_DOMAIN_UNITS: usize = 100;

/// Scores, and how many traces are kept.
#[derive(Debug)]
struct Scores {
    histogram: Histogram,
    kept: u64,
}

impl Scores {
    fn new() -> Self {
        Self {
            histogram: Histogram::new(SCORE_BINS),
            kept: 0,
        }
    }

    fn add(&mut self, score: f64, kept: bool) {
        self.histogram.add(score);
        self.kept += u64::from(kept);
    }
}

/// Counts the verdict on each trace.
#[derive(Debug)]
pub struct Summary {
    start: Instant,
    all: Scores,
    /// In the order in which they were first met.
    domains: Named<Scores>,
    /// What is counted besides the scores.
    pub counts: Counts,
}

/// The counts of a run besides those of its scores.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    /// Lines that are not traces.
    pub bad: u64,
    /// Traces that were not of a conversation, such as spans of other programs.
    pub without_conversation: u64,
    /// Traces that were not compared, because the memory held them with their scores.
    pub known_traces: u64,
    /// Traces that repeat an earlier one.
    pub near_duplicates: u64,
    /// Traces that were converted from another format.
    pub converted: u64,
    /// Traces whose success nobody knew.
    pub unknown_success: u64,
    /// Traces whose confidence nobody knew.
    pub unknown_confidence: u64,
    /// The texts that were replaced.
    pub redactions: Redactions,
}

impl Summary {
    /// Returns the summary of a run that begins now.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            all: Scores::new(),
            domains: Named::new(MOST_DOMAINS),
            counts: Counts::default(),
        }
    }

    /// Takes the time from now on.
    pub fn begin(&mut self) {
        self.start = Instant::now();
    }

    /// Adds a trace.
    pub fn add(&mut self, Judged { scored, kept, .. }: &Judged) {
        let score = scored.breakdown.score;
        self.all.add(score, *kept);
        let counts = &mut self.counts;
        counts.converted += u64::from(scored.format != FormatName::Trace);
        counts.unknown_success += u64::from(!scored.known.success);
        counts.unknown_confidence += u64::from(!scored.known.confidence);
        counts.near_duplicates += u64::from(is_near_duplicate(resemblance(&scored.breakdown)));
        self.domain(&scored.domain).add(score, *kept);
    }

    fn domain(&mut self, domain: &Text) -> &mut Scores {
        let mut name = domain.clone();
        if domain.units().nth(MOST_DOMAIN_UNITS).is_some() {
            name = cut(domain, MOST_DOMAIN_UNITS).to_string_lossy().into();
        }
        self.domains.entry(name, Scores::new)
    }

    /// Adds the replacements in a trace.
    pub fn add_redactions(&mut self, redactions: &Redactions) {
        for &Redaction { name, count } in redactions.as_slice() {
            self.counts.redactions.add(name, count);
        }
    }

    /// Returns how many traces were scored.
    pub fn scored(&self) -> u64 {
        self.all.histogram.count()
    }

    /// Returns the figures so far.
    pub fn figures(&self, about: About) -> Figures {
        let all = &self.all.histogram;
        let mut domains: Vec<_> = self
            .domains
            .iter()
            .map(|(domain, Scores { histogram, kept })| DomainFigures {
                domain: domain.clone(),
                scored: histogram.count(),
                kept: *kept,
                mean: histogram.mean(),
                median: histogram.quantile(0.5),
            })
            .collect();
        domains.sort_by_key(|domain| Reverse(domain.scored));
        Figures {
            scored: all.count(),
            kept: self.all.kept,
            counts: self.counts.clone(),
            mean: all.mean(),
            median: all.quantile(0.5),
            p10: all.quantile(0.1),
            p90: all.quantile(0.9),
            domains,
            seconds: self.start.elapsed().as_secs_f64(),
            about,
        }
    }
}

/// Facts about a run besides its scores.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// The least score of a trace that is kept.
    pub threshold: f64,
    /// How many of the best traces were asked for; `None` for all.
    pub top: Option<Count>,
    /// The coverage of the chosen set; `None` if no set is chosen.
    pub coverage: Option<Coverage>,
    /// How traces were cleaned; `None` if they were not.
    pub clean: Option<Cleaning>,
    /// Whether the user ended the run.
    pub interrupted: bool,
    pub embedder: Embedder,
    /// The memory, if it outlives the run.
    pub memory: Option<MemoryFile>,
    pub written: Vec<Written>,
}

/// The coverage of a chosen set, as a part of the coverage by all traces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage {
    /// The coverage by the set and the traces that were shared before, 0 to 1.
    pub covered: f64,
    /// The part that was covered before.
    pub covered_before: f64,
}

impl Coverage {
    /// Returns the coverage of a selection.
    pub fn of(selection: &Selection) -> Self {
        let covered_before = selection.covered_before;
        Self {
            covered: selection
                .chosen
                .last()
                .map_or(covered_before, |last| last.covered),
            covered_before,
        }
    }
}

/// Where a memory is kept, and how many traces it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    /// The file, or the address of the store.
    pub file: String,
    pub before: u64,
    /// The traces after the run; `None` if that is not known.
    pub after: Option<u64>,
    /// The traces that left the memory; `None` if that is not known.
    pub forgotten: Option<u64>,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub file: String,
    /// The traces in it; `None` if they are not counted.
    pub traces: Option<u64>,
}

/// The embedder.
#[derive(Debug, Clone, PartialEq)]
pub enum Embedder {
    /// Nothing, as the user wanted it; without a reason words alone are compared.
    Unused(Option<String>),
    /// The result of loading the embedder.
    Loaded(Box<Status>),
}

impl Embedder {
    /// Returns the embedder that was loaded, or could not be.
    pub fn of(status: &Status) -> Self {
        Self::Loaded(Box::new(status.clone()))
    }

    /// Returns that nothing is embedded; without a reason, because words alone are compared.
    pub fn none(reason: Option<&str>) -> Self {
        Self::Unused(reason.map(str::to_owned))
    }

    /// Returns whether there is an embedder that works.
    pub fn available(&self) -> bool {
        matches!(self, Self::Loaded(status) if status.failure.is_none())
    }

    /// Returns an embedder that could not be loaded, with the reason.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Unused(reason) => reason.as_deref(),
            Self::Loaded(status) => status.failure.as_ref().map(|failure| failure.reason.as_str()),
        }
    }

    /// Returns the number format of the weights.
    pub fn dtype(&self) -> Option<&str> {
        match self {
            Self::Unused(_) => None,
            Self::Loaded(status) => status.dtype.as_deref(),
        }
    }

    /// Returns the object of the summary: with the fields of `EmbedderStatus` in index.d.ts where an embedder was loaded.
    pub fn to_value(&self) -> Value {
        let available = self.available();
        let reason = self.reason();
        let dtype = self.dtype();
        let Self::Loaded(status) = self else {
            return json_object! { "available": available, "dtype": dtype, "reason": reason };
        };
        let path = |path: &Option<_>| path.as_deref().map(Path::to_string_lossy).map(Text::from);
        json_object! {
            "available": available,
            "code": status.failure.as_ref().map(|failure| failure.code),
            "reason": reason,
            "modelDirectory": path(&status.model_directory),
            "model": status.model.as_deref(),
            "modelSha256": status.model_sha256.as_deref(),
            "dtype": dtype,
            "dimensions": status.dimensions,
            "engine": status.engine.map(EngineKind::name),
            "kernel": status.kernel.as_deref(),
            "runtimePath": path(&status.runtime_path),
            "runtimeVersion": status.runtime_version.as_deref(),
            "threads": status.threads,
        }
    }
}

/// The figures of a domain.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainFigures {
    /// The domain's name; `(others)` for all domains after the first 50.
    pub domain: Text,
    pub scored: u64,
    pub kept: u64,
    pub mean: Option<f64>,
    pub median: Option<f64>,
}

/// The figures of a run. A figure of scores is `None` if there are no scores.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    pub scored: u64,
    pub kept: u64,
    pub counts: Counts,
    pub mean: Option<f64>,
    pub median: Option<f64>,
    /// The score that a tenth is below.
    pub p10: Option<f64>,
    /// The score that a tenth is above.
    pub p90: Option<f64>,
    /// The domains, in descending order of their numbers of traces.
    pub domains: Vec<DomainFigures>,
    pub seconds: f64,
    pub about: About,
}

#[allow(clippy::cast_precision_loss)] // Counts are far below 2^53.
impl Figures {
    /// Returns how many traces are not kept.
    pub fn dropped(&self) -> u64 {
        self.scored - self.kept
    }

    fn per_second(&self) -> f64 {
        self.scored as f64 / self.seconds
    }

    /// Returns the cleaning level and the replacements, for programs; `null` if the traces were not cleaned.
    pub fn cleaned(&self) -> Value {
        let cleaned = self.about.clean.map(|Cleaning { level, strict }| {
            let redactions = self
                .counts
                .redactions
                .as_slice()
                .iter()
                .map(|&Redaction { name, count }| (name.into(), count.into_value()));
            json_object! {
                "level": level,
                "strict": strict,
                "redactions": redactions.collect::<Object>(),
            }
        });
        cleaned.into_value()
    }

    /// Returns the figures for programs.
    pub fn to_value(&self) -> Value {
        let About {
            threshold,
            top,
            coverage,
            clean: _,
            interrupted,
            embedder,
            memory,
            written,
        } = &self.about;
        let domains = self.domains.iter().map(|domain| {
            json_object! {
                "domain": domain.domain.clone(),
                "scored": domain.scored,
                "kept": domain.kept,
                "mean": domain.mean,
                "median": domain.median,
            }
        });
        let top = top.map(|top| match top {
            Count::Number(count) => json_object! { "count": count },
            Count::Percent(percent) => json_object! { "percent": percent },
        });
        let memory = memory.as_ref().map(|memory| {
            json_object! {
                "file": memory.file.as_str(),
                "before": memory.before,
                "after": memory.after,
                "forgotten": memory.forgotten,
            }
        });
        let written = written.iter().map(|Written { file, traces }| {
            json_object! { "file": file.as_str(), "traces": *traces }
        });
        let selection = coverage.map(|coverage| {
            json_object! {
                "covered": coverage.covered,
                "coveredBefore": coverage.covered_before,
            }
        });
        json_object! {
            "scored": self.scored,
            "kept": self.kept,
            "dropped": self.dropped(),
            "bad": self.counts.bad,
            "withoutConversation": self.counts.without_conversation,
            "knownTraces": self.counts.known_traces,
            "nearDuplicates": self.counts.near_duplicates,
            "converted": self.counts.converted,
            "unknownSuccess": self.counts.unknown_success,
            "unknownConfidence": self.counts.unknown_confidence,
            "cleaned": self.cleaned(),
            "mean": self.mean,
            "median": self.median,
            "p10": self.p10,
            "p90": self.p90,
            "domains": list(domains),
            "seconds": self.seconds,
            "perSecond": self.per_second(),
            "threshold": *threshold,
            "top": top,
            "selection": selection,
            "interrupted": *interrupted,
            "embedder": embedder.to_value(),
            "memory": memory,
            "written": list(written),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::scored::tests::scored;

    pub(super) fn about() -> About {
        About {
            threshold: 0.75,
            top: None,
            coverage: None,
            clean: None,
            interrupted: false,
            embedder: Embedder::none(None),
            memory: None,
            written: Vec::new(),
        }
    }

    fn judged() -> impl Strategy<Value = Judged> {
        (scored().boxed(), any::<bool>()).prop_map(|(scored, kept)| Judged {
            scored,
            kept,
            selection: None,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn figures_of_domains_add_up_to_those_of_all(judged in vec(judged(), 0..90)) {
            let mut summary = Summary::new();
            judged.iter().for_each(|judged| summary.add(judged));
            let figures = summary.figures(about());
            prop_assert_eq!(figures.scored, judged.len() as u64);
            let sum = |count: fn(&DomainFigures) -> u64| figures.domains.iter().map(count).sum::<u64>();
            prop_assert_eq!(sum(|domain| domain.scored), figures.scored);
            prop_assert_eq!(sum(|domain| domain.kept), figures.kept);
            prop_assert!(figures.domains.len() <= MOST_DOMAINS + 1);
            prop_assert!(figures.domains.is_sorted_by_key(|domain| Reverse(domain.scored)));
        }

        #[test]
        fn domains_that_begin_alike_for_100_units_are_one(judged in judged(), end in "[a-z]{1,9}") {
            let mut summary = Summary::new();
            for end in ["😀", end.as_str()] {
                let mut judged = judged.clone();
                judged.scored.domain = ("d".repeat(99) + "😀" + end).into();
                summary.add(&judged);
            }
            let domains = summary.figures(about()).domains;
            prop_assert_eq!(domains.len(), 1);
            prop_assert_eq!(domains[0].domain.clone(), Text::from("d".repeat(99)));
        }
    }

    #[test]
    fn to_value_counts_redactions_by_type_in_the_order_in_which_they_were_found() {
        let mut summary = Summary::new();
        let all = knowledgepulse_clean::Options {
            identifiers: true,
            strict: false,
        };
        for text in ["1.2.3.4", "a@b.cc 1.2.3.4"] {
            let units: Vec<u16> = text.encode_utf16().collect();
            summary.add_redactions(&knowledgepulse_clean::clean_pii(&units, all).1);
        }
        let clean = Some(Cleaning {
            level: "aggregated",
            strict: false,
        });
        let value = summary.figures(About { clean, ..about() }).to_value();
        assert_eq!(
            value.get("cleaned").unwrap().to_json(),
            r#"{"level":"aggregated","strict":false,"redactions":{"ip":2,"email":1}}"#
        );
        assert_eq!(value.get("mean"), Some(&Value::Null));
    }

    #[test]
    fn to_value_of_an_embedder_has_the_fields_of_its_status() {
        assert_eq!(
            Embedder::none(Some("--no-embedder")).to_value().to_json(),
            r#"{"available":false,"dtype":null,"reason":"--no-embedder"}"#
        );
        let status = Status {
            threads: 2,
            ..Status::default()
        };
        assert_eq!(
            Embedder::of(&status).to_value().to_json(),
            r#"{"available":true,"code":null,"reason":null,"modelDirectory":null,"model":null,"modelSha256":null,"dtype":null,"dimensions":null,"engine":null,"kernel":null,"runtimePath":null,"runtimeVersion":null,"threads":2}"#
        );
    }
}
