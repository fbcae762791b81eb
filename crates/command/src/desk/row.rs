//! A trace of the list: what its line shows, how its score was made, and its steps.

use knowledgepulse_clean::places_in_json;
use knowledgepulse_json::{Object, Text, Value, cut, units_of};

use super::{EXCERPT_LENGTH, excerpt_of, name_of, source_of};
use crate::{
    score::scored::Scored,
    show::{
        breakdown::overrides_of,
        values::{IntoValue, list},
    },
};

/// The most steps of a trace, and UTF-16 code units of a step.
const STEPS: usize = 200;
const STEP_LENGTH: usize = 2_000;

/// Returns the line of a trace, `ListedTrace` in report/data.d.ts, without its steps. `trace` is what was scored.
pub(super) fn row_of(scored: &Scored, position: u64, trace: Option<&Value>) -> Object {
    let breakdown = &scored.breakdown;
    let mut row = Object::default();
    row.insert("position", position.into_value());
    row.insert("id", scored.about.id.as_ref().and_then(name_of).into_value());
    row.insert("source", source_of(&scored.place.source));
    row.insert("line", scored.place.line.into_value());
    row.insert("element", scored.place.index.into_value());
    row.insert("excerpt", excerpt_of(&scored.about.objective, EXCERPT_LENGTH));
    row.insert("agent", name_of(&scored.about.agent).into_value());
    row.insert("domain", name_of(&scored.about.domain).into_value());
    row.insert("createdAt", scored.about.when.clone().into_value());
    row.insert("success", scored.about.success.into_value());
    row.insert("stepCount", scored.about.steps.into_value());
    row.insert(
        "toReview",
        trace.map(|trace| places_in_json(trace).len() as u64).into_value(),
    );
    row.insert("score", breakdown.score);
    row.insert("dimensions", list(breakdown.dimensions.to_array()));
    row.insert("contributions", list(breakdown.contributions.to_array()));
    row.insert(
        "profile",
        name_of(&breakdown.profile.name.as_str().into()).into_value(),
    );
    row.insert("overrides", overrides_of(breakdown));
    row.insert("basis", breakdown.novelty.basis.name());
    row.insert(
        "truncated",
        breakdown.novelty.reading.is_some_and(|reading| reading.truncated),
    );
    row.insert("nearest", nearest_of(scored));
    row
}

fn nearest_of(scored: &Scored) -> Value {
    let Some(nearest) = &scored.breakdown.novelty.nearest else {
        return Value::Null;
    };
    let label = nearest.label.as_deref().and_then(|label| name_of(&label.into()));
    let mut value = Object::default();
    value.insert("label", label.into_value());
    value.insert("similarity", nearest.similarity);
    if let Some(parts) = nearest.parts {
        value.insert("lexical", parts.lexical);
        value.insert("contained", parts.contained);
        value.insert("embedded", parts.embedded.into_value());
    }
    if let Some(words) = &nearest.words {
        let [shared, new] = [&words.shared, &words.new].map(|words| {
            list(
                words
                    .iter()
                    .filter_map(|word| name_of(&word.text.as_str().into())),
            )
        });
        value.insert("shared", shared);
        value.insert("new", new);
    }
    value.into()
}

/// Returns the first steps of a trace: `Step` in report/data.d.ts.
pub(super) fn steps_of(trace: &Value) -> Value {
    let steps = trace.get("steps").and_then(Value::as_array).unwrap_or_default();
    list(steps.iter().take(STEPS).map(|step| {
        let text_of = |name| step.get(name).and_then(Value::as_text);
        let tool = step.get("tool").and_then(|tool| tool.get("name")?.as_text());
        let content = text_of("content").filter(|content| !content.is_empty());
        // A call without words has its input.
        let input = || step.get("input").map(|input| Text::from(input.to_json()));
        let text = content.cloned().or_else(input).unwrap_or_default();
        let mut value = Object::default();
        value.insert("type", text_of("type").and_then(name_of).into_value());
        value.insert("text", cut(&text, STEP_LENGTH));
        let more = [
            ("tool", tool.and_then(name_of).into_value()),
            (
                "output",
                text_of("output_summary")
                    .map(|output| excerpt_of(output, STEP_LENGTH))
                    .into_value(),
            ),
        ];
        for (name, more) in more.into_iter().filter(|(_, more)| !more.is_null()) {
            value.insert(name, more);
        }
        if units_of(&text) > STEP_LENGTH {
            value.insert("length", units_of(&text).into_value());
        }
        value
    }))
}
