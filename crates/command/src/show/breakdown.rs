//! A breakdown as the JSON object that the package's `explain` returns.

use knowledgepulse_index::{memory::Nearest, traces::explain::ExplainedWord};
use knowledgepulse_json::{Value, json_object, object};
use knowledgepulse_score::{Breakdown, dimensions::ByDimension, overrides::Override};

/// Returns the JSON object, with the fields in the order of `ScoreBreakdown` in index.d.ts.
pub fn value_of(breakdown: &Breakdown) -> Value {
    let novelty = &breakdown.novelty;
    let overrides = breakdown
        .overrides
        .iter()
        .map(|Override { rule, before, after }| {
            json_object! { "rule": rule.name(), "before": *before, "after": *after }
        });
    json_object! {
        "score": breakdown.score,
        "dimensions": by_dimension(breakdown.dimensions),
        "profile": breakdown.profile.name.as_str(),
        "weights": by_dimension(breakdown.profile.weights),
        "contributions": by_dimension(breakdown.contributions),
        "composite": breakdown.composite,
        "overrides": overrides.collect::<Value>(),
        "noveltyBasis": novelty.basis.name(),
        "nearest": novelty.nearest.as_ref().map(nearest_value),
        "tokens": novelty.reading.and_then(|reading| reading.tokens),
        "truncated": novelty.reading.map(|reading| reading.truncated),
    }
}

/// Returns the object with a number for each dimension.
fn by_dimension(numbers: ByDimension) -> Value {
    object(
        ByDimension::NAMES
            .into_iter()
            .zip(numbers.to_array().map(Value::from)),
    )
}

fn nearest_value(nearest: &Nearest) -> Value {
    let (parts, words) = (nearest.parts, nearest.words.as_ref());
    json_object! {
        "label": nearest.label.as_deref(),
        "similarity": nearest.similarity,
        "lexical": parts.map(|parts| parts.lexical),
        "contained": parts.map(|parts| parts.contained),
        "embedded": parts.and_then(|parts| parts.embedded),
        "sharedWords": words.map(|words| words_value(&words.shared)),
        "newWords": words.map(|words| words_value(&words.new)),
    }
}

fn words_value(words: &[ExplainedWord]) -> Value {
    let word = |word: &ExplainedWord| {
        json_object! { "word": word.text.as_str(), "weight": word.weight, "traces": word.traces }
    };
    words.iter().map(word).collect()
}
