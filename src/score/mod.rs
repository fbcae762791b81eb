//! The pipeline on one screen: trace → features, (text → tokens → embedding →) novelty → dimensions → contributions
//! → composite → overrides. The embeddings come from [`crate::engine`], which computes several side by side.

pub mod dimensions;
pub mod overrides;
pub mod weights;

use std::sync::Arc;

use self::overrides::Override;
use crate::{
    cache::Label,
    cache::novelty::{Extent, Novelty, SharedCache},
    score::dimensions::Dimensions,
    score::weights::{Contributions, Profile, Profiles},
    trace::Trace,
    trace::features::Features,
    trace::text,
    trace::windows::{self, Window},
};

/// What traces are scored with.
#[derive(Debug)]
pub struct Scorer {
    /// The memory that traces are compared with.
    pub cache: Arc<SharedCache>,
    /// The weights.
    pub profiles: Profiles,
    /// How much of a trace's text is compared; `None` compares nothing, and needs no embedder.
    pub extent: Option<Extent>,
}

/// Everything that is kept of a trace while its call waits. Its steps are not, because there can be many.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The features of the trace.
    pub features: Features,
    /// The weights for its domain.
    pub profile: Arc<Profile>,
    /// The label that the memory keeps it under.
    pub label: Option<Label>,
    /// The texts to embed; empty without an embedder.
    pub texts: Vec<Window>,
    /// How much of each text is embedded; `None` without an embedder.
    pub extent: Option<Extent>,
    /// Whether `texts` lacks some of the trace's text.
    pub incomplete: bool,
}

impl Scorer {
    /// The name of the method by which vectors are made from traces; `None` without an embedder.
    #[must_use]
    pub fn method(&self) -> Option<String> {
        self.extent.map(|extent| extent.name().to_owned())
    }

    /// Reduces `trace` to what computing its score needs.
    #[must_use]
    pub fn summarize(&self, trace: &Trace) -> Summary {
        let (texts, complete) = match self.extent {
            None => (Vec::new(), true),
            Some(Extent::Prefix) => (vec![Window::whole(text::of(trace))], true),
            Some(Extent::Full) => {
                let windows = windows::of(trace);
                (windows.chosen, windows.complete)
            }
        };
        Summary {
            features: Features::of(trace),
            profile: Arc::clone(self.profiles.for_domain(trace.metadata.task_domain.as_deref())),
            label: trace.label.clone(),
            texts,
            extent: self.extent,
            incomplete: !complete || trace.text_cut,
        }
    }
}

/// A score, and the numbers from which it was computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Breakdown {
    /// The score, 0 to 1.
    pub score: f64,
    /// The four dimensions.
    pub dimensions: Dimensions,
    /// The profile whose weights were used.
    pub profile: Arc<Profile>,
    /// Each dimension times its weight.
    pub contributions: Contributions,
    /// The sum of the contributions.
    pub composite: f64,
    /// The rules that applied to the composite, in their order.
    pub overrides: Vec<Override>,
    /// The novelty, and where it comes from.
    pub novelty: Novelty,
}

/// Computes a score from the features of a trace and its novelty.
#[must_use]
pub fn score(features: &Features, profile: &Arc<Profile>, novelty: Novelty) -> Breakdown {
    let dimensions = Dimensions::new(features, novelty.value);
    let contributions = Contributions::new(&dimensions, &profile.weights);
    let composite = contributions.composite();
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
    use super::*;
    use crate::trace::tests::with_steps;

    fn scorer(extent: Option<Extent>) -> Scorer {
        Scorer {
            cache: Arc::default(),
            profiles: Profiles::default(),
            extent,
        }
    }

    #[test]
    fn the_parts_make_the_score() {
        let scorer = scorer(None);
        for kinds in [
            &["thought"][..],
            &["error_recovery"; 3],
            &["thought", "tool_call"],
        ] {
            for novelty in [-0.5, 0.0, 0.25, 1.0, 2.0] {
                let summary = scorer.summarize(&with_steps(kinds));
                let novelty = Novelty {
                    value: novelty,
                    ..Novelty::NEUTRAL
                };
                let breakdown = score(&summary.features, &summary.profile, novelty);
                let Contributions {
                    complexity,
                    novelty,
                    tool_diversity,
                    outcome,
                } = breakdown.contributions;
                assert_eq!(
                    breakdown.composite,
                    complexity + novelty + tool_diversity + outcome
                );
                let last = breakdown
                    .overrides
                    .last()
                    .map_or(breakdown.composite, |last| last.after);
                assert_eq!(breakdown.score, last);
            }
        }
    }

    #[test]
    fn the_extent_decides_what_is_embedded() {
        let mut trace = with_steps(&["thought", "observation"]);
        trace.steps[1].content = Some("content".into());
        let texts = |extent| -> Vec<String> {
            let texts = scorer(extent).summarize(&trace).texts;
            texts.into_iter().map(|window| window.text).collect()
        };
        assert_eq!(texts(None), [""; 0]);
        assert_eq!(texts(Some(Extent::Prefix)), ["objective  content"]);
        assert_eq!(texts(Some(Extent::Full)), ["objective", "content"]);
    }
}
