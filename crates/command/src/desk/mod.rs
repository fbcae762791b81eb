//! The figures of a run for its report, one page of HTML, which does not grow with the run. Everything that a trace carries may be
//! hostile: it is cut to a length here and escaped by the page.

mod bounded;
mod chosen;
mod duplicates;
mod excerpt;
pub mod given;
mod row;

use std::cmp::Reverse;

use knowledgepulse_index::{memory::Basis, method::Method};
use knowledgepulse_json::{Object, Text, Value, object, parse_str};
use knowledgepulse_score::{Breakdown, dimensions::ByDimension, select::Selection};

use self::{
    bounded::Best,
    chosen::ChosenSet,
    duplicates::NearDuplicates,
    excerpt::{NAME_LENGTH, excerpt_of, name_of},
    row::{row_of, steps_of},
};
use crate::{
    error::{Failure, Result},
    json_object,
    score::scored::{Place, Scored},
    show::{
        breakdown::by_dimension,
        near_duplicate::resemblance,
        statistics::{Named, Scores, Sorted},
        values::{IntoValue, list},
    },
};

/// Where the page takes the figures.
const PLACE: &str = "__KNOWLEDGEPULSE_REPORT__";

/// The message of a program that was built before the page was.
const NOT_A_PAGE: &str = "this program was built without the page of the report, which npm run setup makes";

/// The bins that the page shows: a multiple of the 100 steps of its slider, so that its counts are exact.
const SHOWN_BINS: usize = 1000;

/// The most bytes of the list of traces, and of the steps of those that come first in it.
const LIST_BYTES: usize = 6_000_000;
const STEP_BYTES: usize = 8_000_000;

const LISTED_ERRORS: usize = 100;
const LISTED_SOURCES: usize = 50;

/// How many domains, profiles and the like are told apart.
const NAMES: usize = 40;

/// The longest excerpt, in UTF-16 code units.
const EXCERPT_LENGTH: usize = 240;

/// The data that a report has before its first trace.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportOptions {
    /// Traces that score as much or more are kept; `None` without a threshold.
    pub threshold: Option<f64>,
    /// The names of the inputs.
    pub sources: Vec<String>,
    /// How traces are compared.
    pub novelty: Method,
    /// The embedder's type of numbers, `fp32` or `q8`; `None` without an embedder.
    pub dtype: Option<String>,
    /// The version of the package.
    pub version: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The time in ISO 8601, such as `2026-01-02T03:04:05.000Z`.
    pub finished_at: String,
    /// How long scoring took.
    pub seconds: f64,
    /// Whether it was ended before everything was read.
    pub interrupted: bool,
}

/// Collects the figures of a run.
#[derive(Debug)]
pub struct Report {
    options: ReportOptions,
    count: u64,
    kept: u64,
    /// The traces with a known outcome, and those of them that succeeded.
    known: u64,
    succeeded: u64,
    not_compared: u64,
    scores: Scores,
    /// The domains by their names; traces without a name have the empty one.
    domains: Named<Domain>,
    /// The weights of each profile, and how many traces it scored. A profile without a name has the empty one.
    profiles: Named<(ByDimension, u64)>,
    rules: Named<u64>,
    duplicates: NearDuplicates,
    chosen: Option<ChosenSet>,
    traces: Best<Value>,
    /// The steps of traces, by the keys of these.
    steps: Best<Value>,
    errors: Vec<Value>,
    error_count: u64,
}

/// The sums over the traces of a domain.
#[derive(Debug, Default)]
struct Domain {
    count: u64,
    score: f64,
    dimensions: [f64; 4],
}

impl Report {
    /// Returns a report without traces.
    pub fn new(options: ReportOptions) -> Self {
        Self {
            options,
            count: 0,
            kept: 0,
            known: 0,
            succeeded: 0,
            not_compared: 0,
            scores: Scores::default(),
            domains: Named::new(NAMES),
            profiles: Named::new(NAMES),
            rules: Named::new(NAMES),
            duplicates: NearDuplicates::default(),
            chosen: None,
            traces: Best::new(LIST_BYTES),
            steps: Best::new(STEP_BYTES),
            errors: Vec::new(),
            error_count: 0,
        }
    }

    /// Sets the set that was chosen of the traces. Must come before the first [`Report::add`].
    pub fn set_selection(&mut self, selection: &Selection) {
        self.chosen = ChosenSet::of(selection);
    }

    /// Adds a trace, in the order of scoring. `text` is the trace in JSON; empty if its steps are not to be shown.
    pub fn add(&mut self, scored: &Scored, text: &str) {
        let chosen = self.chosen.as_ref();
        let standing = chosen.map_or(0, |chosen| chosen.standing(self.count));
        self.add_standing(scored, text, standing);
    }

    /// Adds a trace that goes before those of lower standings in the list.
    pub fn add_standing(&mut self, scored: &Scored, text: &str, standing: u8) {
        let breakdown = &scored.breakdown;
        let novelty = &breakdown.novelty;
        let position = self.count;
        self.count += 1;
        // By the score alone, as the page counts when its threshold is moved.
        let is_kept = self
            .options
            .threshold
            .is_none_or(|least| breakdown.score >= least);
        self.kept += u64::from(is_kept);
        self.known += u64::from(scored.about.success.is_some());
        self.succeeded += u64::from(scored.about.success == Some(true));
        self.not_compared += u64::from(novelty.basis == Basis::NoEmbedder);
        self.scores.add(breakdown.score);
        self.add_to_domain(&scored.about.domain, breakdown);
        self.note_profile(breakdown);
        for applied in &breakdown.overrides {
            self.rules.count(applied.rule.name());
        }

        let nearest = novelty.nearest.as_ref();
        let nearest =
            nearest.map(|nearest| nearest.label.as_deref().and_then(|label| name_of(&label.into())));
        let id = scored.about.id.as_ref().and_then(name_of);
        self.duplicates
            .add(position, id.as_ref(), nearest, resemblance(breakdown));
        // Scores are not negative, so that their bits are in their order.
        let key = (standing, breakdown.score.max(0.0).to_bits(), Reverse(position));
        if !self.traces.takes(key) {
            return;
        }
        let trace = parse_str(text).ok();
        let row = row_of(scored, position, trace.as_ref()).into();
        self.traces.insert(key, size_of(&row), row);
        if let Some(trace) = trace.filter(|_| self.steps.takes(key)) {
            let steps = steps_of(&trace);
            self.steps.insert(key, size_of(&steps), steps);
        }
    }

    /// Adds a record that could not be scored.
    pub fn add_error(&mut self, place: &Place, message: &Text) {
        self.error_count += 1;
        if self.errors.len() == LISTED_ERRORS {
            return;
        }
        self.errors.push(json_object! {
            "source": source_of(&place.source),
            "line": place.line,
            "element": place.index,
            "message": excerpt_of(message, EXCERPT_LENGTH),
        });
    }

    fn add_to_domain(&mut self, name: &Text, breakdown: &Breakdown) {
        let domain = self
            .domains
            .entry(name_of(name).unwrap_or_default(), Domain::default);
        domain.count += 1;
        domain.score += breakdown.score;
        let values = breakdown.dimensions.to_array();
        for (sum, value) in domain.dimensions.iter_mut().zip(values) {
            *sum += value;
        }
    }

    fn note_profile(&mut self, breakdown: &Breakdown) {
        let profile = &breakdown.profile;
        let name = name_of(&profile.name.as_str().into()).unwrap_or_default();
        let (_, count) = self.profiles.entry(name, || (profile.weights, 0));
        *count += 1;
    }

    /// Returns the figures, as the page reads them: `Report` in report/data.d.ts.
    pub fn summary(&self, run: &Run) -> Value {
        let options = &self.options;
        let sources = options.sources.iter().take(LISTED_SOURCES);
        let traces = self.traces.iter().map(|(key, row)| {
            let mut row = row.clone();
            if let (Value::Object(row), Some(steps)) = (&mut row, self.steps.get(key)) {
                row.insert("steps", steps.clone());
            }
            row
        });
        let mut domains: Vec<_> = self.domains.iter().collect();
        domains.sort_by_key(|(_, domain)| Reverse(domain.count));
        let profiles = self.profiles.iter().map(|(name, (weights, count))| {
            json_object! {
                "name": Some(name.clone()).filter(|name| !name.is_empty()),
                "weights": by_dimension(*weights),
                "count": *count,
            }
        });
        let scores = self.scores.sorted();
        json_object! {
            "threshold": options.threshold,
            "sources": list(sources.map(|source| source_of(source))),
            "sourceCount": options.sources.len(),
            "noveltyMode": options.novelty.name(),
            "dtype": options.dtype.clone(),
            "version": options.version.as_str(),
            "finishedAt": run.finished_at.as_str(),
            "seconds": run.seconds,
            "interrupted": run.interrupted,
            "count": self.count,
            "kept": self.kept,
            "known": self.known,
            "succeeded": self.succeeded,
            "notCompared": self.not_compared,
            "scores": quantiles(&scores),
            "scoreBins": bins(&scores),
            "domains": list(domains.into_iter().map(|(name, domain)| domain.summary(name))),
            "profiles": list(profiles),
            "rules": counts(&self.rules),
            "duplicates": self.duplicates.summary(),
            "selection": self.chosen.as_ref().map(|chosen| chosen.described.clone()),
            "traces": list(traces),
            "errors": json_object! { "count": self.error_count, "first": self.errors.clone() },
        }
    }

    /// Returns `page`, the text of dist/report.html.gz, with the figures in it: a page that needs nothing else.
    ///
    /// # Errors
    /// If the page has not one place for the figures.
    pub fn render(&self, run: &Run, page: &str) -> Result<String> {
        let parts = page.split_once(PLACE);
        let Some((before, after)) = parts.filter(|(_, after)| !after.contains(PLACE)) else {
            return Err(Failure::file(NOT_A_PAGE));
        };
        let mut html = String::from(before);
        // Nothing can end or begin an element in it, where HTML takes it as text.
        for character in self.summary(run).to_json().chars() {
            match character {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    html.push_str(&format!("\\u{:04x}", u32::from(character)));
                }
                _ => html.push(character),
            }
        }
        html.push_str(after);
        Ok(html)
    }
}

impl Domain {
    #[allow(clippy::cast_precision_loss)] // Nothing is counted up to 2^53.
    fn summary(&self, name: &Text) -> Value {
        let mean = |sum: f64| sum / self.count as f64;
        json_object! {
            "name": name.clone(),
            "count": self.count,
            "score": mean(self.score),
            "dimensions": list(self.dimensions.map(mean)),
        }
    }
}

/// Returns how an input is called: without its folders, as those who are sent a report need not know them.
fn source_of(source: &str) -> Text {
    let name = source.rsplit(['/', '\\']).next().unwrap_or_default();
    excerpt_of(&name.into(), NAME_LENGTH)
}

/// Returns how the scores lie; `null` without scores.
fn quantiles(scores: &Sorted) -> Value {
    let quantiles = [
        ("min", 0.0),
        ("p10", 0.1),
        ("p25", 0.25),
        ("median", 0.5),
        ("p75", 0.75),
        ("p90", 0.9),
        ("max", 1.0),
    ];
    let quantiles = quantiles.map(|(name, p)| Some((name, scores.quantile(p)?.into())));
    let quantiles: Option<Vec<_>> = quantiles.into_iter().collect();
    quantiles.map(object).into_value()
}

fn bins(scores: &Sorted) -> Value {
    let filled = scores.filled(SHOWN_BINS).into_iter();
    let filled = filled.map(|(bin, count)| list([bin as u64, count]));
    json_object! { "bins": SHOWN_BINS, "filled": list(filled) }
}

fn counts(named: &Named<u64>) -> Value {
    let counts = named
        .iter()
        .map(|(name, &count)| (name.clone(), count.into_value()));
    counts.collect::<Object>().into()
}

/// Returns how many bytes a value takes in the page, where these characters are escaped.
fn size_of(value: &Value) -> usize {
    let json = value.to_json();
    let escaped = json
        .bytes()
        .filter(|byte| matches!(byte, b'<' | b'>' | b'&'))
        .count();
    json.len() + 5 * escaped
}

#[cfg(test)]
mod tests;
