//! The results on standard output for programs: a row for each trace.

use clap::ValueEnum;
use knowledgepulse_index::memory::{Basis, Novelty};
use knowledgepulse_json::{Value, number as javascript_number, object};
use knowledgepulse_score::{
    Breakdown,
    overrides::{Override, OverrideRule},
};

use crate::{MOST_UNITS, Scored, decimal, escaped, fixed, label_of, show::breakdown::value_of};

/// The format of the results on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    Table,
    /// One JSON object with all results and the summary.
    Json,
    /// A JSON object on a line for each trace.
    #[value(name = "jsonl")]
    JsonLines,
    /// Comma-separated values with a header.
    Csv,
}

type Field = (&'static str, fn(&Scored) -> Value);

/// What rows tell of a trace.
const FIELDS: [Field; 15] = [
    ("source", |scored| scored.place.source.as_str().into()),
    ("line", |scored| scored.place.line.into()),
    ("index", |scored| scored.place.index.into()),
    ("id", |scored| scored.about.id.clone().into()),
    ("objective", |scored| scored.about.objective.clone().into()),
    ("agent", |scored| scored.about.agent.clone().into()),
    ("project", |scored| scored.about.project.clone().into()),
    ("when", |scored| scored.about.when.as_deref().into()),
    ("steps", |scored| scored.about.steps.into()),
    ("turns", |scored| scored.about.turns.into()),
    ("facts", |scored| {
        scored.about.facts.iter().map(|fact| fact.to_value()).collect()
    }),
    ("success", |scored| scored.about.success.into()),
    ("domain", |scored| scored.about.domain.clone().into()),
    ("score", |scored| scored.breakdown.score.into()),
    ("format", |scored| scored.about.format.name().into()),
];

/// Returns the first line of CSV; `explains` if the parts of each score are in it.
pub(crate) fn csv_header(explains: bool) -> String {
    FIELDS.map(|(name, _)| name).join(",") + if explains { ",breakdown\n" } else { "\n" }
}

/// Returns the line of a trace in CSV.
pub(crate) fn csv_row(scored: &Scored, explains: bool) -> String {
    let cell = |(name, value_of): Field| match name {
        "facts" => scored.about.facts_in_words().join("; ").into(),
        _ => value_of(scored),
    };
    let breakdown = explains.then(|| value_of(&scored.breakdown));
    let cells = FIELDS.map(cell).into_iter().chain(breakdown);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = writer.write_record(cells.map(|cell| csv_cell(&cell)));
    // Writing to memory does not fail.
    let line = written.ok().and_then(|()| writer.into_inner().ok());
    String::from_utf8(line.unwrap_or_default()).unwrap_or_default()
}

/// Returns a trace as an object of JSON; `selection` says why it was chosen.
pub(crate) fn json_row(scored: &Scored, explains: bool, selection: Option<&Value>) -> String {
    let mut fields = FIELDS.map(|(name, value_of)| (name, value_of(scored))).to_vec();
    fields.extend(selection.map(|selection| ("selection", selection.clone())));
    fields.extend(explains.then(|| ("breakdown", value_of(&scored.breakdown))));
    escaped(&object(fields).to_json(), is_obeyed)
}

/// Returns the parts of a score, for people: lines of their own.
pub(crate) fn explanation(breakdown: &Breakdown) -> String {
    let words = ["complexity", "novelty", "tool diversity", "outcome"];
    let terms: Vec<_> = words
        .into_iter()
        .zip(breakdown.profile.weights.to_array())
        .zip(breakdown.dimensions.to_array())
        .map(|((name, weight), value)| format!("{} × {} {name}", fixed(weight, 2), decimal(value)))
        .collect();
    let mut lines = format!("    {} = {}\n", terms.join(" + "), decimal(breakdown.composite));
    for Override { rule, after, .. } in &breakdown.overrides {
        let words = match rule {
            OverrideRule::SingleThought => "a single thought",
            OverrideRule::RecoveryBonus => "recovered from errors",
            OverrideRule::SingleToolPenalty => "only one tool",
            OverrideRule::Clamp => "kept within 0 and 1",
        };
        lines.push_str(&format!("    {words}: {}\n", decimal(*after)));
    }
    let reading = breakdown.novelty.reading;
    let rest = match reading.is_some_and(|reading| reading.truncated) {
        true => ", the rest left out",
        false => "",
    };
    let tokens = reading.and_then(|reading| reading.tokens);
    let tokens = tokens.map_or(String::new(), |tokens| format!(", {tokens} tokens{rest}"));
    lines + &format!("    {}{tokens}\n", novelty_words(&breakdown.novelty))
}

fn novelty_words(Novelty { basis, nearest, .. }: &Novelty) -> String {
    match nearest {
        _ if *basis == Basis::NoEmbedder => "novelty 0.5: there is no embedder".into(),
        None => "novelty 0.5: nothing to compare with yet".into(),
        Some(nearest) => {
            let label = nearest.label.as_deref().unwrap_or_default().into();
            let name = label_of(&label, "a trace without an id", MOST_UNITS);
            format!("most similar: {name} ({})", decimal(nearest.similarity))
        }
    }
}

/// Returns whether a terminal may obey a character, or show other text because of it: controls, and marks of direction.
fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text of a cell. A spreadsheet would compute a text that begins like a formula, so an apostrophe comes before it.
fn csv_cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Number(number) => javascript_number(*number),
        Value::Digits(digits) => digits.to_string(),
        Value::String(text) => {
            let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
            let safe = text.replace(|c| is_obeyed(c) && !matches!(c, '\t' | '\n' | '\r'), "\u{fffd}");
            format!("{}{safe}", if is_formula { "'" } else { "" })
        }
        value => value.to_json(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use knowledgepulse_formats::FormatName;
    use knowledgepulse_index::memory::{Nearest, Reading};
    use knowledgepulse_json::parse_str;
    use knowledgepulse_score::{
        dimensions::ByDimension,
        weights::{Profile, contributions},
    };
    use knowledgepulse_trace::facts::{Fact, FactKind};
    use proptest::prelude::*;

    use super::*;
    use crate::score::scored::{Place, RunInfo, TraceInfo, tests::scored};

    fn one() -> Scored {
        let dimensions = ByDimension::from_array([0.5, -1.4e-9, 0.25, 1.0]);
        let weights = ByDimension::from_array([0.25, 0.35, 0.15, 0.25]);
        let applied = Override {
            rule: OverrideRule::RecoveryBonus,
            before: 0.4125,
            after: 0.46875,
        };
        Scored {
            place: Place {
                source: "a.jsonl".into(),
                line: 3,
                index: Some(1),
            },
            about: TraceInfo {
                format: FormatName::Trace,
                agent: "codex".into(),
                project: None,
                when: Some("2026-10-01T00:00:00.000Z".into()),
                steps: 2,
                turns: 1,
                facts: vec![Fact {
                    kind: FactKind::Committed,
                    step: 1,
                    count: 2,
                }],
                success: None,
                told: None,
                id: Some("t1".into()),
                objective: " Fix\nit".into(),
                domain: "=code".into(),
                run: RunInfo::default(),
            },
            breakdown: Breakdown {
                score: 0.46875,
                dimensions,
                profile: Arc::new(Profile {
                    name: "code".into(),
                    weights,
                }),
                contributions: contributions(dimensions, weights),
                composite: 0.4125,
                overrides: vec![applied],
                novelty: Novelty {
                    value: dimensions.novelty,
                    basis: Basis::Memory,
                    nearest: Some(Nearest::vector(Some("t0".into()), 1.000_000_001_4)),
                    reading: Some(Reading {
                        tokens: Some(512),
                        truncated: true,
                    }),
                },
            },
            text: 0,
        }
    }

    #[test]
    fn explanation_tells_the_parts_of_a_score_in_words() {
        assert_eq!(
            explanation(&one().breakdown),
            "    0.25 × 0.5000 complexity + 0.35 × 0.0000 novelty + 0.15 × 0.2500 tool diversity + 0.25 × 1.0000 outcome = 0.4125\n    \
             recovered from errors: 0.4688\n    \
             most similar: t0 (1.0000), 512 tokens, the rest left out\n"
        );
    }

    #[test]
    fn rows_print_no_character_that_a_terminal_obeys() {
        let mut scored = one();
        scored.place.source = "a\u{1b}]0;x\u{9b}\u{202e}.jsonl".into();
        scored.about.objective = "\n=1+1".into();
        let json = json_row(&scored, false, None);
        assert!(json.contains(r"a\u001b]0;x\u009b\u202e.jsonl"), "{json}");
        assert_eq!(
            parse_str(&json).unwrap().get("source").unwrap().as_str(),
            Some(&*scored.place.source)
        );
        let csv = csv_row(&scored, false);
        assert!(
            csv.starts_with("a\u{fffd}]0;x\u{fffd}\u{fffd}.jsonl,") && csv.contains("\"'\n=1+1\""),
            "{csv}"
        );
    }

    #[test]
    fn row_of_csv_guards_formulas_and_ends_with_the_breakdown() {
        let row = csv_row(&one(), true);
        let expected = "a.jsonl,3,1,t1,\" Fix\nit\",codex,,2026-10-01T00:00:00.000Z,2,1,committed,,'=code,0.46875,trace,\"{\"\"value\"\":0.46875,";
        assert!(row.starts_with(expected), "{row}");
    }

    proptest! {
        #[test]
        fn json_row_is_one_value(scored in scored(), selection: bool) {
            let value = parse_str(&json_row(&scored, true, Some(&selection.into()))).unwrap();
            prop_assert_eq!(value.get("selection"), Some(&selection.into()));
            prop_assert_eq!(value.get("domain").and_then(Value::as_text), Some(&scored.about.domain));
            prop_assert_eq!(value.get("breakdown"), Some(&value_of(&scored.breakdown)));
        }

        #[test]
        fn rows_of_csv_have_as_many_cells_as_the_header_and_no_formulas(scored in scored(), explains: bool) {
            let objective = csv_cell(&scored.about.objective.clone().into());
            let csv = csv_header(explains) + &csv_row(&scored, explains);
            let mut reader = csv::Reader::from_reader(csv.as_bytes());
            let width = reader.headers().unwrap().len();
            let row = reader.records().next().unwrap().unwrap();
            prop_assert_eq!(row.len(), width);
            prop_assert_eq!(row[4].trim_start_matches('\''), objective.trim_start_matches('\''));
            prop_assert!(row.iter().all(|cell| !cell.starts_with(['=', '+', '@', '\t', '\r', '\n'])));
        }
    }
}
