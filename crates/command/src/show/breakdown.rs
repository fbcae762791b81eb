//! A breakdown as the JSON object that the package's `explain` returns.

use std::sync::Arc;

use knowledgepulse_index::{
    memory::{Basis, Nearest, Novelty, Reading},
    similarity::Similarity,
    traces::explain::{ExplainedWord, ExplainedWords},
};
use knowledgepulse_json::Value;
use knowledgepulse_score::{
    Breakdown,
    dimensions::ByDimension,
    overrides::{Override, OverrideRule},
    weights::Profile,
};
use knowledgepulse_trace::label::Label;

use crate::{json_object, values::list};

/// Returns the JSON object, with the fields in the order of `ScoreBreakdown` in index.d.ts.
pub fn value_of(breakdown: &Breakdown) -> Value {
    let novelty = &breakdown.novelty;
    json_object! {
        "score": breakdown.score,
        "dimensions": by_dimension(breakdown.dimensions),
        "profile": breakdown.profile.name.as_str(),
        "weights": by_dimension(breakdown.profile.weights),
        "contributions": by_dimension(breakdown.contributions),
        "composite": breakdown.composite,
        "overrides": overrides_of(breakdown),
        "noveltyBasis": novelty.basis.name(),
        "nearest": novelty.nearest.as_ref().map(nearest_value),
        "tokens": novelty.reading.and_then(|reading| reading.tokens),
        "truncated": novelty.reading.map(|reading| reading.truncated),
    }
}

/// Returns the list of the rules that changed a score.
pub(crate) fn overrides_of(breakdown: &Breakdown) -> Value {
    let overrides = breakdown.overrides.iter();
    list(overrides.map(|Override { rule, before, after }| {
        json_object! { "rule": rule.name(), "before": *before, "after": *after }
    }))
}

/// Returns the object with a number for each dimension.
pub(crate) fn by_dimension(numbers: ByDimension) -> Value {
    let [complexity, novelty, tool_diversity, outcome] = numbers.to_array();
    json_object! {
        "complexity": complexity,
        "novelty": novelty,
        "toolDiversity": tool_diversity,
        "outcomeConfidence": outcome,
    }
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
    list(words.iter().map(|word| {
        json_object! { "word": word.text.as_str(), "weight": word.weight, "traces": word.traces }
    }))
}

/// Reads a breakdown of JSON; `None` for another value.
pub fn breakdown_of(value: &Value) -> Option<Breakdown> {
    let dimensions = numbers(value.get("dimensions")?)?;
    let overrides = value.get("overrides")?.as_array()?.iter().map(|applied| {
        Some(Override {
            rule: OverrideRule::from_name(applied.get("rule")?.as_str()?)?,
            before: applied.get("before")?.as_number()?,
            after: applied.get("after")?.as_number()?,
        })
    });
    let nearest = match value.get("nearest")? {
        Value::Null => None,
        nearest => Some(nearest_of(nearest)?),
    };
    let reading = value.get("truncated")?.as_bool().map(|truncated| Reading {
        tokens: value.get("tokens").and_then(Value::as_number).map(count),
        truncated,
    });
    Some(Breakdown {
        score: value.get("score")?.as_number()?,
        dimensions,
        profile: Arc::new(Profile {
            name: value.get("profile")?.as_str()?.to_owned(),
            weights: numbers(value.get("weights")?)?,
        }),
        contributions: numbers(value.get("contributions")?)?,
        composite: value.get("composite")?.as_number()?,
        overrides: overrides.collect::<Option<_>>()?,
        novelty: Novelty {
            value: dimensions.novelty,
            basis: Basis::from_name(value.get("noveltyBasis")?.as_str()?)?,
            nearest,
            reading,
        },
    })
}

fn nearest_of(nearest: &Value) -> Option<Nearest> {
    let part = |name| nearest.get(name).and_then(Value::as_number);
    let words = |name| words_of(nearest.get(name)?);
    Some(Nearest {
        label: nearest.get("label").and_then(Value::as_str).map(Label::from),
        similarity: part("similarity")?,
        parts: part("lexical")
            .zip(part("contained"))
            .map(|(lexical, contained)| Similarity {
                lexical,
                contained,
                embedded: part("embedded"),
            }),
        words: words("sharedWords")
            .zip(words("newWords"))
            .map(|(shared, new)| ExplainedWords { shared, new }),
    })
}

fn words_of(words: &Value) -> Option<Vec<ExplainedWord>> {
    let words = words.as_array()?.iter().map(|word| {
        Some(ExplainedWord {
            text: word.get("word")?.as_str()?.to_owned(),
            weight: word.get("weight")?.as_number()?,
            traces: count(word.get("traces")?.as_number()?),
        })
    });
    words.collect()
}

fn numbers(value: &Value) -> Option<ByDimension> {
    let number = |name| value.get(name).and_then(Value::as_number);
    let [complexity, novelty, tool_diversity, outcome] = ByDimension::NAMES.map(number);
    Some(ByDimension::from_array([
        complexity?,
        novelty?,
        tool_diversity?,
        outcome?,
    ]))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It was a whole number.
fn count(number: f64) -> usize {
    number as usize
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::scored::tests::scored;
    use knowledgepulse_json::parse_str;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn breakdown_of_reads_what_value_of_returns(scored in scored()) {
            let json = value_of(&scored.breakdown).to_json();
            prop_assert_eq!(breakdown_of(&parse_str(&json).unwrap()), Some(scored.breakdown));
        }
    }
}
