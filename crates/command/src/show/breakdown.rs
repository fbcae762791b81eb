//! A score as the JSON object that the package's `score` returns, and that `--explain` prints.

use knowledgepulse_index::{memory::Nearest, traces::explain::ExplainedWord};
use knowledgepulse_json::{Value, json_object, object};
use knowledgepulse_score::{Breakdown, dimensions::ByDimension};

/// Returns the object of `--explain`: the score, and the numbers from which it was computed.
pub fn value_of(breakdown: &Breakdown) -> Value {
    let reading = breakdown.novelty.reading;
    let more = [
        ("profile", breakdown.profile.name.as_str().into()),
        ("contributions", by_dimension(breakdown.contributions)),
        ("composite", breakdown.composite.into()),
        ("tokens", reading.and_then(|reading| reading.tokens).into()),
        ("truncated", reading.map(|reading| reading.truncated).into()),
    ];
    object(fields_of(breakdown).into_iter().chain(more))
}

/// Returns the object that `Score` in index.d.ts declares.
pub fn score_of(breakdown: &Breakdown) -> Value {
    object(fields_of(breakdown))
}

fn fields_of(breakdown: &Breakdown) -> [(&'static str, Value); 6] {
    let novelty = &breakdown.novelty;
    let overrides = breakdown.overrides.iter().map(|it| {
        json_object! { "rule": it.rule.name(), "before": it.before, "after": it.after }
    });
    [
        ("value", breakdown.score.into()),
        ("dimensions", by_dimension(breakdown.dimensions)),
        ("weights", by_dimension(breakdown.profile.weights)),
        ("overrides", overrides.collect()),
        ("nearest", novelty.nearest.as_ref().map(nearest_value).into()),
        ("basis", novelty.basis.name().into()),
    ]
}

/// Returns the object with a number for each dimension.
fn by_dimension(numbers: ByDimension) -> Value {
    let numbers = numbers.to_array().map(Value::from);
    object(ByDimension::NAMES.into_iter().zip(numbers))
}

fn nearest_value(nearest: &Nearest) -> Value {
    let (parts, words) = (nearest.parts, nearest.words.as_ref());
    json_object! {
        "id": nearest.label.as_deref(),
        "similarity": nearest.similarity,
        "lexical": parts.map(|parts| parts.lexical),
        "contained": parts.map(|parts| parts.contained),
        "embedded": parts.and_then(|parts| parts.embedded),
        "sharedWords": words.map(|words| words_value(&words.shared)),
        "newWords": words.map(|words| words_value(&words.new)),
    }
}

fn words_value(words: &[ExplainedWord]) -> Value {
    let words = words.iter().map(|word| {
        json_object! { "word": word.text.as_str(), "weight": word.weight, "traces": word.traces }
    });
    words.collect()
}
