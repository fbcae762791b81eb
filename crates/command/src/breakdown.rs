//! A breakdown as the JSON object that the package's `explain` returns.

use std::sync::Arc;

use knowledgepulse_index::{
    memory::{Basis, Nearest, Novelty, Reading},
    similarity::Similarity,
    traces::explain::{ExplainedWord, ExplainedWords},
};
use knowledgepulse_json::{Value, object};
use knowledgepulse_score::{
    Breakdown,
    dimensions::Dimensions,
    overrides::{Override, Rule},
    weights::{Contributions, Profile, Weights},
};
use knowledgepulse_trace::label::Label;

use crate::values::{number, optional};

/// Returns the JSON object, with the fields in the order of `ScoreBreakdown` in index.d.ts.
#[must_use]
pub fn value_of(breakdown: &Breakdown) -> Value {
    let Breakdown {
        score,
        dimensions,
        profile,
        contributions,
        composite,
        overrides,
        novelty,
    } = breakdown;
    let weights = &profile.weights;
    let reading = novelty.reading;
    let overrides = overrides.iter().map(|Override { rule, before, after }| {
        object([
            ("rule", rule.name().into()),
            ("before", (*before).into()),
            ("after", (*after).into()),
        ])
    });
    object([
        ("score", (*score).into()),
        (
            "dimensions",
            by_dimension([
                dimensions.complexity,
                dimensions.novelty,
                dimensions.tool_diversity,
                dimensions.outcome,
            ]),
        ),
        ("profile", profile.name.as_str().into()),
        (
            "weights",
            by_dimension([
                weights.complexity,
                weights.novelty,
                weights.tool_diversity,
                weights.outcome,
            ]),
        ),
        (
            "contributions",
            by_dimension([
                contributions.complexity,
                contributions.novelty,
                contributions.tool_diversity,
                contributions.outcome,
            ]),
        ),
        ("composite", (*composite).into()),
        ("overrides", overrides.collect::<Vec<_>>().into()),
        ("noveltyBasis", novelty.basis.name().into()),
        ("nearest", optional(novelty.nearest.as_ref().map(nearest_value))),
        (
            "tokens",
            optional(
                reading
                    .and_then(|reading| reading.tokens)
                    .map(|tokens| number(tokens as u64)),
            ),
        ),
        ("truncated", optional(reading.map(|reading| reading.truncated))),
    ])
}

/// The names of the dimensions, in the order of `ScoreBreakdown`.
pub const DIMENSIONS: [&str; 4] = ["complexity", "novelty", "toolDiversity", "outcome"];

/// Returns the object with a number for each of [`DIMENSIONS`].
pub(crate) fn by_dimension(numbers: [f64; 4]) -> Value {
    let [complexity, novelty, tool_diversity, outcome] = numbers;
    let [a, b, c, d] = DIMENSIONS;
    object([
        (a, complexity.into()),
        (b, novelty.into()),
        (c, tool_diversity.into()),
        (d, outcome.into()),
    ])
}

fn nearest_value(nearest: &Nearest) -> Value {
    let parts = nearest.parts;
    let words = |list: fn(&ExplainedWords) -> &[ExplainedWord]| {
        optional(nearest.words.as_ref().map(|words| words_value(list(words))))
    };
    object([
        ("label", optional(nearest.label.as_deref())),
        ("similarity", nearest.similarity.into()),
        ("lexical", optional(parts.map(|parts| parts.lexical))),
        ("contained", optional(parts.map(|parts| parts.contained))),
        ("embedded", optional(parts.and_then(|parts| parts.embedded))),
        ("sharedWords", words(|words| &words.shared)),
        ("newWords", words(|words| &words.new)),
    ])
}

fn words_value(words: &[ExplainedWord]) -> Value {
    let words = words.iter().map(|word| {
        object([
            ("word", word.text.as_str().into()),
            ("weight", word.weight.into()),
            ("traces", number(word.traces as u64)),
        ])
    });
    words.collect::<Vec<_>>().into()
}

/// Reads a breakdown of JSON; `None` for another value.
#[must_use]
pub fn breakdown_of(value: &Value) -> Option<Breakdown> {
    let [complexity, novelty, tool_diversity, outcome] = numbers(value.get("dimensions")?)?;
    let dimensions = Dimensions {
        complexity,
        novelty,
        tool_diversity,
        outcome,
    };
    let [complexity, novelty, tool_diversity, outcome] = numbers(value.get("weights")?)?;
    let weights = Weights {
        complexity,
        novelty,
        tool_diversity,
        outcome,
    };
    let [complexity, novelty, tool_diversity, outcome] = numbers(value.get("contributions")?)?;
    let contributions = Contributions {
        complexity,
        novelty,
        tool_diversity,
        outcome,
    };
    let overrides = value.get("overrides")?.as_array()?.iter().map(|applied| {
        Some(Override {
            rule: Rule::from_name(applied.get("rule")?.as_str()?)?,
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
            weights,
        }),
        contributions,
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

fn numbers(value: &Value) -> Option<[f64; 4]> {
    let number = |name| value.get(name).and_then(Value::as_number);
    let [a, b, c, d] = DIMENSIONS.map(number);
    Some([a?, b?, c?, d?])
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
