//! The results on standard output for programs: a row for each trace, and the embedder among the figures.

use std::path::Path;

use clap::ValueEnum;
use knowledgepulse_json::{Text, Value, json_object};
use knowledgepulse_score::engine::{EngineKind, Status};

use crate::{
    Scored, escaped,
    show::{breakdown::value_of, printable::is_shown},
};

/// The format of the results on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    Table,
    /// An object of JSON with all results and the figures of the run.
    Json,
    /// A JSON object on a line for each trace.
    #[value(name = "jsonl")]
    JsonLines,
}

/// Returns a trace as an object of JSON; `selection` says why it was chosen, and `explains` adds what its score is made of.
pub(crate) fn json_row(scored: &Scored, explains: bool, selection: Option<&Value>) -> String {
    let (place, about, breakdown) = (&scored.place, &scored.about, &scored.breakdown);
    let mut row = json_object! {
        "source": place.source.as_str(),
        "line": place.line,
        "index": place.index,
        "id": about.id.clone(),
        "objective": about.objective.clone(),
        "agent": about.agent.clone(),
        "project": about.project.clone(),
        "when": about.when.as_deref(),
        "steps": about.steps,
        "turns": about.turns,
        "facts": about.facts.iter().map(|fact| fact.to_value()).collect::<Value>(),
        "success": about.success,
        "domain": about.domain.clone(),
        "score": breakdown.score,
        "format": about.format.name(),
    };
    if let Value::Object(row) = &mut row {
        let selection = selection.map(|selection| ("selection".into(), selection.clone()));
        row.extend(selection);
        row.extend(explains.then(|| ("breakdown".into(), value_of(breakdown))));
    }
    escaped(&row.to_json(), |character| !is_shown(character))
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
    use knowledgepulse_json::parse_str;
    use proptest::prelude::*;

    use super::*;
    use crate::score::scored::tests::scored;

    proptest! {
        #[test]
        fn json_row_is_one_value(scored in scored(), selection: bool) {
            let value = parse_str(&json_row(&scored, true, Some(&selection.into()))).unwrap();
            prop_assert_eq!(value.get("selection"), Some(&selection.into()));
            prop_assert_eq!(value.get("domain").and_then(Value::as_text), Some(&scored.about.domain));
            prop_assert_eq!(value.get("breakdown"), Some(&value_of(&scored.breakdown)));
        }

        #[test]
        fn json_row_has_no_character_that_a_terminal_obeys(mut scored in scored()) {
            scored.place.source += "a\u{1b}]0;x\u{9b}\u{202e}.jsonl";
            let row = json_row(&scored, false, None);
            prop_assert!(row.contains(r"a\u001b]0;x\u009b\u202e.jsonl"), "{}", row);
            prop_assert!(row.chars().all(is_shown));
            let value = parse_str(&row).unwrap();
            prop_assert_eq!(value.get("source").and_then(Value::as_str), Some(&*scored.place.source));
        }
    }
}
