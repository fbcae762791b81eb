//! The pipeline on one screen: trace → features, (text → tokens → embedding →) novelty → dimensions → contributions
//! → composite → overrides. The embeddings come from [`crate::engine`], which computes several side by side.
//! [`select`] chooses a set of traces.

pub mod dimensions;
pub mod engine;
pub mod overrides;
pub mod select;
pub mod weights;

use std::sync::Arc;

use self::overrides::Override;
use knowledgepulse_index::{
    memory::{Memory, Novelty},
    method::Method,
};
use knowledgepulse_trace::{Trace, features::Features, label::Label, text, words::Words};

use crate::{
    dimensions::ByDimension,
    weights::{Profile, Profiles},
};

/// The memory and weights of a scorer.
#[derive(Debug)]
pub struct Scorer {
    /// The memory to compare with; `None` compares nothing and needs no embedder.
    pub memory: Option<Memory>,
    /// The weights.
    pub profiles: Profiles,
}

/// What a trace is scored by.
#[derive(Debug, Clone)]
pub struct ScoreInput {
    /// The features of the trace.
    pub features: Features,
    /// The weights for its domain.
    pub profile: Arc<Profile>,
    /// The label in the memory.
    pub label: Option<Label>,
    /// The compared part; `None` if nothing is compared.
    pub source: Option<Source>,
    /// Whether the trace lacks some of its text.
    pub incomplete: bool,
}

/// The compared part of a trace. Further work is done away from the event loop.
#[derive(Debug, Clone)]
pub enum Source {
    /// Its text, whose first 512 tokens are embedded.
    Prefix(String),
    /// The trace, whose words are compared.
    Lexical(Arc<Trace>),
    /// Words of a trace, which alone are compared.
    Words(Arc<Words>),
    /// The trace, whose words and digest are compared.
    Full(Arc<Trace>),
}

impl ScoreInput {
    /// Finds the words of a trace that is compared by words alone, so that the engine need not. `is_spelled` as in
    /// [`engine::Request::explained`].
    #[must_use]
    pub fn with_words(mut self, is_spelled: bool) -> Self {
        if let Some(Source::Lexical(trace)) = &self.source {
            let words = if is_spelled { Words::spelled } else { Words::of };
            self.source = Some(Source::Words(Arc::new(words(trace))));
        }
        self
    }
}

impl Scorer {
    /// Reduces `trace` to what it is scored by.
    #[must_use]
    pub fn input_of(&self, trace: Trace) -> ScoreInput {
        ScoreInput {
            features: Features::of(&trace),
            profile: Arc::clone(self.profiles.for_domain(trace.task_domain.as_deref())),
            label: trace.label.clone(),
            incomplete: trace.text_cut,
            source: self.memory.as_ref().map(|memory| match memory.method() {
                Method::Prefix => Source::Prefix(text::of(&trace)),
                Method::Lexical => Source::Lexical(Arc::new(trace)),
                Method::Full => Source::Full(Arc::new(trace)),
            }),
        }
    }
}

/// A score, and the numbers from which it was computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Breakdown {
    /// The score, 0 to 1.
    pub score: f64,
    /// The four dimensions.
    pub dimensions: ByDimension,
    /// The profile whose weights were used.
    pub profile: Arc<Profile>,
    /// Each dimension times its weight.
    pub contributions: ByDimension,
    /// The sum of the contributions.
    pub composite: f64,
    /// The applied rules, in order.
    pub overrides: Vec<Override>,
    /// The novelty and its source.
    pub novelty: Novelty,
}

/// Computes a score from the features of a trace and its novelty.
#[must_use]
pub fn score(features: &Features, profile: &Arc<Profile>, novelty: Novelty) -> Breakdown {
    let dimensions = dimensions::of(features, novelty.value);
    let contributions = weights::contributions(dimensions, profile.weights);
    let composite = contributions.sum();
    let (score, overrides) = overrides::apply(composite, features);
    Breakdown {
        score,
        dimensions,
        profile: Arc::clone(profile),
        contributions,
        composite,
        overrides,
        novelty,
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_index::{options::MemoryOptions, traces::TraceMemory, vectors::VectorCache};
    use knowledgepulse_trace::fixtures::with_steps;

    use super::*;

    #[test]
    fn the_parts_make_the_score() {
        let scorer = Scorer {
            memory: None,
            profiles: Profiles::default(),
        };
        for kinds in [
            &["thought"][..],
            &["error_recovery"; 3],
            &["thought", "tool_call"],
        ] {
            for novelty in [-0.5, 0.0, 0.25, 1.0, 2.0] {
                let input = scorer.input_of(with_steps(kinds));
                let novelty = Novelty {
                    value: novelty,
                    ..Novelty::NEUTRAL
                };
                let breakdown = score(&input.features, &input.profile, novelty);
                let [complexity, novelty, tool_diversity, outcome] = breakdown.contributions.to_array();
                let sum = complexity + novelty + tool_diversity + outcome;
                assert_eq!(breakdown.composite, sum);
                let last = breakdown
                    .overrides
                    .last()
                    .map_or(breakdown.composite, |last| last.after);
                assert_eq!(breakdown.score, last);
            }
        }
    }

    #[test]
    fn the_memory_decides_what_is_compared() {
        let mut trace = with_steps(&["thought", "observation"]);
        trace.steps[1].content = Some("content".into());
        let source = |memory| {
            let scorer = Scorer {
                memory,
                profiles: Profiles::default(),
            };
            scorer.input_of(trace.clone()).source
        };
        assert!(source(None).is_none());
        let Some(Source::Prefix(text)) = source(Some(VectorCache::new(MemoryOptions::default()).into()))
        else {
            panic!("another source");
        };
        assert_eq!(text, "objective  content");
        let of_traces = |method| source(Some(TraceMemory::new(method, MemoryOptions::default()).into()));
        assert!(matches!(of_traces(Method::Lexical), Some(Source::Lexical(kept)) if *kept == trace));
        assert!(matches!(of_traces(Method::Full), Some(Source::Full(kept)) if *kept == trace));
    }
}
