//! A score and its parts, for JavaScript.

use napi_derive::napi;

use knowledgepulse_index::{memory::Nearest, traces::explain::ExplainedWord};
use knowledgepulse_score::{Breakdown, overrides::Override};

/// A score and its parts; see `ScoreBreakdown` in index.d.ts.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct NativeBreakdown {
    pub score: f64,
    /// Complexity, novelty, tool diversity, outcome.
    pub dimensions: Vec<f64>,
    pub profile: String,
    /// Its weights, in the order of the dimensions.
    pub weights: Vec<f64>,
    pub contributions: Vec<f64>,
    pub composite: f64,
    pub overrides: Vec<NativeOverride>,
    #[napi(ts_type = "'cache' | 'empty-cache' | 'no-embedder' | 'given'")]
    pub novelty_basis: &'static str,
    pub nearest: Option<NativeNearest>,
    pub tokens: Option<u32>,
    pub truncated: Option<bool>,
}

/// A rule that applied.
#[napi(object, object_from_js = false)]
pub struct NativeOverride {
    #[napi(ts_type = "'single-thought' | 'recovery-bonus' | 'single-tool-penalty' | 'clamp'")]
    pub rule: &'static str,
    pub before: f64,
    pub after: f64,
}

/// The nearest remembered trace.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct NativeNearest {
    pub label: Option<String>,
    pub similarity: f64,
    pub lexical: Option<f64>,
    pub contained: Option<f64>,
    pub embedded: Option<f64>,
    pub shared_words: Option<Vec<NativeExplainedWord>>,
    pub new_words: Option<Vec<NativeExplainedWord>>,
}

/// A word of a scored trace.
#[napi(object, object_from_js = false)]
pub struct NativeExplainedWord {
    pub word: String,
    pub weight: f64,
    pub traces: f64,
}

impl From<ExplainedWord> for NativeExplainedWord {
    #[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
    fn from(explained: ExplainedWord) -> Self {
        Self {
            word: explained.text,
            weight: explained.weight,
            traces: explained.traces as f64,
        }
    }
}

impl From<Nearest> for NativeNearest {
    fn from(nearest: Nearest) -> Self {
        let (shared, new) = nearest.words.map(|words| (words.shared, words.new)).unzip();
        let native = |words: Vec<ExplainedWord>| words.into_iter().map(NativeExplainedWord::from).collect();
        Self {
            label: nearest.label.map(|label| label.to_string()),
            similarity: nearest.similarity,
            lexical: nearest.parts.map(|parts| parts.lexical),
            contained: nearest.parts.map(|parts| parts.contained),
            embedded: nearest.parts.and_then(|parts| parts.embedded),
            shared_words: shared.map(native),
            new_words: new.map(native),
        }
    }
}

impl From<Breakdown> for NativeBreakdown {
    fn from(breakdown: Breakdown) -> Self {
        let Breakdown {
            score,
            dimensions,
            profile,
            contributions,
            composite,
            overrides,
            novelty,
        } = breakdown;
        let reading = novelty.reading;
        Self {
            score,
            dimensions: dimensions.to_array().into(),
            profile: profile.name.clone(),
            weights: profile.weights.to_array().into(),
            contributions: contributions.to_array().into(),
            composite,
            overrides: overrides.into_iter().map(NativeOverride::from).collect(),
            novelty_basis: novelty.basis.name(),
            nearest: novelty.nearest.map(NativeNearest::from),
            tokens: reading
                .and_then(|reading| reading.tokens)
                .map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
            truncated: reading.map(|reading| reading.truncated),
        }
    }
}

impl From<Override> for NativeOverride {
    fn from(applied: Override) -> Self {
        Self {
            rule: applied.rule.name(),
            before: applied.before,
            after: applied.after,
        }
    }
}
