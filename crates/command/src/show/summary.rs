//! The figures of a run.

use std::{path::Path, time::Instant};

use knowledgepulse_index::method::Method;
use knowledgepulse_json::{Text, Value, json_object};
use knowledgepulse_score::{
    engine::{EngineKind, Status},
    select::Selection,
};

use crate::{Scored, Seen, counted, fixed, grouped, show::printable::rate};

/// From this similarity on, a trace counts as a near-duplicate of an earlier one.
const NEAR: f64 = 0.95;

/// Counts traces and their scores.
#[derive(Debug)]
pub(crate) struct Summary {
    start: Instant,
    /// In the order in which they were added.
    scores: Vec<f64>,
    /// Traces that repeat an earlier one.
    near_duplicates: u64,
    unknown_success: u64,
    /// How traces were compared.
    pub method: Method,
    /// The embedder, if there was one.
    pub embedder: Option<Status>,
    /// The set that was chosen: how many, and which part of what all traces cover it and the known traces cover, 0 to 1.
    pub chosen: Option<(usize, f64, f64)>,
    /// Whether sessions were chosen or listed, and not scored.
    pub has_sessions: bool,
    /// Whether the user ended the run.
    pub interrupted: bool,
    /// The file that was written, and the traces in it.
    pub written: Option<(String, u64)>,
}

#[allow(clippy::cast_precision_loss)] // Counts are far below 2^53.
impl Summary {
    /// Returns the summary of a run that begins now. `embedder` is its state, which words alone do not need.
    pub(crate) fn new(method: Method, embedder: Status) -> Self {
        Self {
            start: Instant::now(),
            scores: Vec::new(),
            near_duplicates: 0,
            unknown_success: 0,
            method,
            embedder: (method != Method::Lexical).then_some(embedder),
            chosen: None,
            has_sessions: false,
            interrupted: false,
            written: None,
        }
    }

    /// Adds a trace.
    pub(crate) fn add(&mut self, Scored { about, breakdown, .. }: &Scored) {
        self.scores.push(breakdown.score);
        self.unknown_success += u64::from(about.success.is_none());
        let nearest = breakdown.novelty.nearest.as_ref();
        let is_near = nearest.is_some_and(|nearest| nearest.similarity >= NEAR);
        self.near_duplicates += u64::from(is_near);
    }

    /// Notes the set that was chosen.
    pub(crate) fn note_chosen(&mut self, selection: &Selection) {
        let before = selection.covered_before;
        let covered = selection.chosen.last().map_or(before, |last| last.covered);
        self.chosen = Some((selection.chosen.len(), covered, before));
    }

    /// Returns how many traces were scored.
    pub(crate) fn scored(&self) -> u64 {
        self.scores.len() as u64
    }

    /// Returns the scores in ascending order.
    pub(crate) fn sorted_scores(&self) -> Vec<f64> {
        let mut scores = self.scores.clone();
        scores.sort_by(f64::total_cmp);
        scores
    }

    /// Returns how long the run has taken so far.
    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Returns the figures for programs.
    pub(crate) fn to_value(&self, seen: &Seen) -> Value {
        let written = self.written.iter().map(|(file, traces)| {
            json_object! { "file": file.as_str(), "traces": *traces }
        });
        let selection = self.chosen.map(|(chosen, covered, before)| {
            json_object! { "chosen": chosen, "covered": covered, "coveredBefore": before }
        });
        let seconds = self.seconds();
        json_object! {
            "scored": self.scored(),
            "bad": seen.bad,
            "withoutConversation": seen.without_conversation,
            "ignored": seen.left_out.files + seen.left_out.ignored,
            "nearDuplicates": self.near_duplicates,
            "unknownSuccess": self.unknown_success,
            "seconds": seconds,
            "perSecond": self.scored() as f64 / seconds,
            "selection": selection,
            "interrupted": self.interrupted,
            "novelty": self.method.name(),
            "embedder": self.embedder.as_ref().map(embedder_value),
            "written": written.collect::<Value>(),
        }
    }

    /// Returns the figures for people.
    pub(crate) fn render(&self, seen: &Seen) -> String {
        let (seconds, written) = (self.seconds(), self.written.as_ref());
        let (noun, done) = match self.has_sessions {
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
        let of = |count: u64, words: &str| (count > 0).then(|| words.replace('#', &counted(count, noun)));
        let mut lines = match self.has_sessions {
            true => vec![("chosen", self.chosen.map(selection_words))],
            false => vec![
                ("alike", of(self.near_duplicates, "# near an earlier one")),
                ("outcome", of(self.unknown_success, "not known of #, shown as ?")),
            ],
        };
        let skipped = of(
            seen.without_conversation,
            "# without a conversation: see --verbose",
        );
        let written = written.map(|(file, traces)| format!("{file}: {}", counted(*traces, "trace")));
        lines.extend([
            ("skipped", skipped),
            ("ignored", seen.ignored.clone()),
            ("embedder", self.embedder.as_ref().map(embedder_words)),
            ("written", written),
        ]);
        for (name, words) in lines {
            if let Some(words) = words {
                text.push_str(&format!("  {name:10}{words}\n"));
            }
        }
        text
    }
}

fn selection_words((chosen, covered, _): (usize, f64, f64)) -> String {
    let percent = fixed(100.0 * covered, 0);
    let chosen = grouped(chosen as u64);
    format!("{chosen}, which cover {percent} % of what all sessions show")
}

/// Returns the fields of `EmbedderStatus` in index.d.ts.
#[must_use]
pub fn embedder_value(status: &Status) -> Value {
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
    use super::*;

    #[test]
    fn render_names_only_what_there_is() {
        let text = Summary::new(Method::Lexical, Status::default()).render(&Seen::default());
        assert!(
            text.starts_with("0 traces scored in ") && text.lines().count() == 1,
            "{text}"
        );
    }
}
