//! The figures of a run.

use std::{path::Path, time::Instant};

use knowledgepulse_index::method::Method;
use knowledgepulse_json::{Text, Value, json_object};
use knowledgepulse_score::{
    engine::{EngineKind, Status},
    select::Selection,
};

use crate::{Seen, counted, grouped};

/// What a run tells at its end.
#[derive(Debug)]
pub(crate) struct Summary {
    start: Instant,
    /// What is counted, and what was done with it: sessions that were read, or traces that were scored.
    words: (&'static str, &'static str),
    /// How many there were.
    pub count: u64,
    /// Of how many traces that were scored nobody knows whether the agent succeeded.
    pub unknown: u64,
    /// The embedder, if there was one.
    embedder: Option<Status>,
    /// Tells the set that was chosen.
    chosen: Option<String>,
}

impl Summary {
    /// Returns the summary of a run that begins now. `embedder` is its state, which words alone do not need.
    pub(crate) fn new(words: (&'static str, &'static str), method: Method, embedder: Status) -> Self {
        Self {
            start: Instant::now(),
            words,
            count: 0,
            unknown: 0,
            embedder: (method != Method::Lexical).then_some(embedder),
            chosen: None,
        }
    }

    /// Notes how many sessions were chosen, and which part of what all show they and the known ones cover.
    pub(crate) fn note_chosen(&mut self, selection: &Selection) {
        let last = selection.chosen.last();
        let covered = last.map_or(selection.covered_before, |last| last.covered);
        let (chosen, percent) = (grouped(selection.chosen.len() as u64), 100.0 * covered);
        self.chosen = Some(format!(
            "{chosen}, which cover {percent:.0} % of what all sessions show"
        ));
    }

    /// Returns the figures for programs; `written` is the file that was written, and how many traces it has.
    pub(crate) fn to_value(&self, seen: &Seen, written: Option<(&str, u64)>) -> Value {
        json_object! {
            "scored": self.count,
            "bad": seen.bad,
            "withoutConversation": seen.without_conversation,
            "ignored": seen.left_out.ignored,
            "seconds": self.start.elapsed().as_secs_f64(),
            "embedder": self.embedder.as_ref().map(embedder_value),
            "written": written.map(|(file, traces)| json_object! { "file": file, "traces": traces }),
        }
    }

    /// Returns the figures for people.
    pub(crate) fn render(&self, seen: &Seen, written: Option<(&str, u64)>) -> String {
        let (noun, done) = self.words;
        let seconds = self.start.elapsed().as_secs_f64();
        let mut text = format!("{} {done} in {seconds:.1} s", counted(self.count, noun));
        if seen.bad > 0 {
            text = format!("{text}; {}", counted(seen.bad, "bad line"));
        }
        text.push('\n');
        let some = |count: u64| (count > 0).then(|| counted(count, noun));
        let unknown = some(self.unknown).map(|count| format!("not known of {count}: scored as failed"));
        let skipped = some(seen.without_conversation);
        let skipped = skipped.map(|count| format!("{count} without a conversation: see --verbose"));
        let written = written.map(|(file, traces)| format!("{file}: {}", counted(traces, "trace")));
        let lines = [
            ("chosen", self.chosen.clone()),
            ("outcome", unknown),
            ("skipped", skipped),
            ("written", written),
        ];
        let lines = lines.into_iter().filter_map(|(name, words)| Some((name, words?)));
        text.extend(lines.map(|(name, words)| format!("  {name:10}{words}\n")));
        text
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn render_names_only_what_there_is() {
        let summary = Summary::new(("trace", "scored"), Method::Lexical, Status::default());
        let text = summary.render(&Seen::default(), None);
        assert!(
            text.starts_with("0 traces scored in ") && text.lines().count() == 1,
            "{text}"
        );
    }
}
