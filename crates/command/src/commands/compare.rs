//! `kp-score compare`: the differences between the scores of two runs over the same traces.

use std::{collections::HashMap, fmt::Write};

use clap::{ArgAction, Args};
use knowledgepulse_json::{Text, Value};

use crate::{
    args::one_of,
    error::{Exit, Failure, Result},
    json_object,
    labels::read_records,
    messages::Messages,
    output_file::StandardOutput,
    printable::{MOST_UNITS, counted, decimal, label_of, pad_end, width_of},
    values::list,
};

/// Print which scores have moved between two runs, and which are new or gone
#[derive(Debug, Clone, Args)]
#[command(before_help = "Example: kp-score compare before.jsonl after.jsonl")]
pub(crate) struct CompareArgs {
    /// Results of --format json, jsonl or csv, or traces of --out
    pub before: String,

    /// The same of a later run
    pub after: String,

    /// table or json
    #[arg(long, action = ArgAction::Set, default_value = "table", hide_possible_values = true,
        value_parser = one_of([("table", false), ("json", true)]))]
    pub format: bool,
}

/// The traces of a result file by their ids, in the order of the file.
#[derive(Default)]
struct Scores {
    ids: Vec<Text>,
    /// Of an id that comes again, the last score counts.
    scores: HashMap<Text, f64>,
    without_id: u64,
}

impl Scores {
    /// Reads results (`--format json`, `jsonl` or `csv`), or traces with `metadata.quality_score`.
    fn read(file: &str) -> Result<Self> {
        let mut scores = Self::default();
        for (line, record) in read_records(file)? {
            let record = record.map_err(|reason| Failure::file(format!("{file}:{line}: {reason}")))?;
            let results = record.get("results").and_then(Value::as_array);
            for result in results.unwrap_or(std::slice::from_ref(&record)) {
                scores.add(result).ok_or_else(|| {
                    Failure::file(format!(
                        "{file}:{line}: no result: it has neither a score nor metadata.quality_score"
                    ))
                })?;
            }
        }
        Ok(scores)
    }

    fn add(&mut self, result: &Value) -> Option<()> {
        let score = result
            .get("score")
            .or_else(|| result.get("metadata")?.get("quality_score"))?
            .as_number()?;
        match result.get("id").and_then(Value::as_text) {
            Some(id) if self.scores.insert(id.clone(), score).is_none() => self.ids.push(id.clone()),
            Some(_) => {}
            None => self.without_id += 1,
        }
        Some(())
    }

    #[allow(clippy::cast_precision_loss)] // No file has 2^53 traces.
    fn mean(&self) -> Option<f64> {
        // In the order of the file, so that the sum is the same in every run.
        let sum: f64 = self.ids.iter().map(|id| self.scores[id]).sum();
        (!self.scores.is_empty()).then(|| sum / self.scores.len() as f64)
    }
}

/// The scores of a trace; `None` in the file that lacks it.
struct Change {
    id: Text,
    before: Option<f64>,
    after: Option<f64>,
}

impl Change {
    fn difference(&self) -> Option<f64> {
        Some(self.after? - self.before?)
    }
}

/// Prints which traces have moved, the largest differences first, which are new and which are gone.
///
/// # Errors
/// If a file cannot be read, or is no result of a run.
pub(crate) fn run(args: &CompareArgs, messages: &Messages) -> Result<Exit> {
    let (before, after) = (Scores::read(&args.before)?, Scores::read(&args.after)?);
    let without_id = before.without_id + after.without_id;
    if without_id > 0 {
        let results = counted(without_id, "result");
        messages.warning(format!("{results} without an id cannot be compared"));
    }
    let (changes, same) = changes_of(&before, &after);
    let means = (before.mean(), after.mean());
    let text = if args.format {
        json(&changes, same, means)
    } else {
        table(&changes, same, means)
    };
    StandardOutput::print(text.as_bytes()).map(|()| Exit::Ok)
}

/// Returns the traces whose scores differ, traces in both files first, and the number of equal scores.
fn changes_of(before: &Scores, after: &Scores) -> (Vec<Change>, u64) {
    let gone = before.ids.iter().filter(|id| !after.scores.contains_key(*id));
    let changes = after.ids.iter().chain(gone).map(|id| Change {
        id: id.clone(),
        before: before.scores.get(id).copied(),
        after: after.scores.get(id).copied(),
    });
    let (same, mut changes): (Vec<_>, Vec<_>) = changes.partition(|change| change.before == change.after);
    changes.sort_by(|one, other| {
        let size = |change: &Change| change.difference().map_or(-1.0, f64::abs);
        size(other).total_cmp(&size(one))
    });
    (changes, same.len() as u64)
}

fn json(changes: &[Change], same: u64, (before, after): (Option<f64>, Option<f64>)) -> String {
    let changes = changes.iter().map(
        |change| json_object! { "id": change.id.clone(), "before": change.before, "after": change.after },
    );
    let means = json_object! { "before": before, "after": after };
    let value = json_object! { "changes": list(changes), "same": same, "mean": means };
    value.to_json() + "\n"
}

fn table(changes: &[Change], same: u64, (before, after): (Option<f64>, Option<f64>)) -> String {
    let names: Vec<_> = changes
        .iter()
        .map(|change| label_of(&change.id, "", MOST_UNITS))
        .collect();
    let width = names.iter().map(|name| width_of(name)).max().unwrap_or_default();
    let width = width.max("trace".len()) + 2;
    let mut text = String::new();
    if !changes.is_empty() {
        text = pad_end("trace", width) + "before  after   change\n";
    }
    let score = |score: Option<f64>| score.map_or_else(|| " ".repeat(6), decimal);
    let [mut moved, mut new, mut gone] = [0; 3];
    for (name, change) in names.iter().zip(changes) {
        let what = match change.difference() {
            Some(difference) => {
                moved += 1;
                let sign = if difference < 0.0 { "-" } else { "+" };
                format!("{sign}{}", decimal(difference.abs()))
            }
            None if change.before.is_none() => {
                new += 1;
                "new".into()
            }
            None => {
                gone += 1;
                "gone".into()
            }
        };
        let (before, after) = (score(change.before), score(change.after));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}{before}  {after}  {what}", pad_end(name, width));
    }
    let mean = |mean: Option<f64>| mean.map_or_else(|| "none".into(), decimal);
    let _ = writeln!(
        text,
        "{moved} moved, {same} the same, {new} new, {gone} gone; mean {} → {}",
        mean(before),
        mean(after)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(results: &str) -> Scores {
        let mut scores = Scores::default();
        for result in knowledgepulse_json::parse(results.as_bytes())
            .unwrap()
            .as_array()
            .unwrap()
        {
            scores.add(result).unwrap();
        }
        scores
    }

    #[test]
    fn changes_of_sorts_by_difference_then_new_then_gone() {
        let before = scores(
            r#"[{"id":"a","score":0.5},{"id":"b","score":0.5},{"id":"gone","score":1},{"id":"c","score":0.5}]"#,
        );
        let after = scores(
            r#"[{"id":"a","score":0.5},{"id":"new","score":0.25},{"id":"b","metadata":{"quality_score":0.75}},{"id":"c","score":0.125},{"score":1}]"#,
        );
        assert_eq!(after.without_id, 1);
        let (changes, same) = changes_of(&before, &after);
        let found: Vec<_> = changes
            .iter()
            .map(|change| (change.id.to_string(), change.before, change.after))
            .collect();
        assert_eq!(same, 1);
        assert_eq!(
            found,
            [
                ("c".into(), Some(0.5), Some(0.125)),
                ("b".into(), Some(0.5), Some(0.75)),
                ("new".into(), None, Some(0.25)),
                ("gone".into(), Some(1.0), None),
            ]
        );
        let text = table(&changes, same, (before.mean(), after.mean()));
        assert_eq!(
            text,
            "trace  before  after   change\n\
             c      0.5000  0.1250  -0.3750\n\
             b      0.5000  0.7500  +0.2500\n\
             new            0.2500  new\n\
             gone   1.0000          gone\n\
             2 moved, 1 the same, 1 new, 1 gone; mean 0.6250 → 0.4063\n"
        );
    }
}
