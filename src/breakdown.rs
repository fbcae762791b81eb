//! A score and its parts, for JavaScript.

use napi_derive::napi;

use knowledgepulse_index::{memory::Nearest, traces::explain::ExplainedWord};
use knowledgepulse_score::{Breakdown, overrides::Override};

/// A score and its parts; see `ScoreBreakdown` in index.d.ts.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct NativeBreakdown {
    /// The score.
    pub score: f64,
    /// Complexity, novelty, tool diversity, outcome.
    pub dimensions: Vec<f64>,
    /// The name of the profile.
    pub profile: String,
    /// Its weights, in the order of the dimensions.
    pub weights: Vec<f64>,
    /// The dimensions times the weights.
    pub contributions: Vec<f64>,
    /// Their sum.
    pub composite: f64,
    /// The rules that applied.
    pub overrides: Vec<NativeOverride>,
    /// The basis of a novelty.
    #[napi(ts_type = "'cache' | 'empty-cache' | 'no-embedder' | 'given'")]
    pub novelty_basis: &'static str,
    /// The nearest remembered trace.
    pub nearest: Option<NativeNearest>,
    /// Tokens that were embedded.
    pub tokens: Option<u32>,
    /// Whether text was left out.
    pub truncated: Option<bool>,
}

/// A rule that applied.
#[napi(object, object_from_js = false)]
pub struct NativeOverride {
    /// Its name.
    #[napi(ts_type = "'single-thought' | 'recovery-bonus' | 'single-tool-penalty' | 'clamp'")]
    pub rule: &'static str,
    /// The score before.
    pub before: f64,
    /// The score after.
    pub after: f64,
}

/// The nearest remembered trace.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct NativeNearest {
    /// Its label.
    pub label: Option<String>,
    /// The similarity as one number.
    pub similarity: f64,
    /// The cosine of the weighted words, by a memory of traces.
    pub lexical: Option<f64>,
    /// Which part of the words is contained in it, by a memory of traces.
    pub contained: Option<f64>,
    /// The cosine of the embedded digests, by a memory of traces with embeddings.
    pub embedded: Option<f64>,
    /// The words that both have and that weigh most, by a memory of traces.
    pub shared_words: Option<Vec<NativeExplainedWord>>,
    /// The words that it lacks and that weigh most, by a memory of traces.
    pub new_words: Option<Vec<NativeExplainedWord>>,
}

/// A word of a scored trace.
#[napi(object, object_from_js = false)]
pub struct NativeExplainedWord {
    /// The word after normalisation.
    pub word: String,
    /// The word's part of the lexical similarity, or of the words that are not contained.
    pub weight: f64,
    /// How many remembered traces contain it.
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
        let weights = profile.weights;
        let reading = novelty.reading;
        Self {
            score,
            dimensions: vec![
                dimensions.complexity,
                dimensions.novelty,
                dimensions.tool_diversity,
                dimensions.outcome,
            ],
            profile: profile.name.clone(),
            weights: vec![
                weights.complexity,
                weights.novelty,
                weights.tool_diversity,
                weights.outcome,
            ],
            contributions: vec![
                contributions.complexity,
                contributions.novelty,
                contributions.tool_diversity,
                contributions.outcome,
            ],
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
