//! Outcomes from outside: results of verifiers that ran elsewhere.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use knowledgepulse_formats::records::Records;
use knowledgepulse_json::{Text, Value};

use crate::error::{Failure, Result};

/// A verifier's verdict on a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Label {
    /// Whether it succeeded.
    pub success: bool,
    /// How sure that is, 0 to 1; `None` where it is not said.
    pub confidence: Option<f64>,
}

/// The labels of a file, by the `id`s of traces.
#[derive(Debug, Default)]
pub struct Labels {
    labels: HashMap<Text, Label>,
    used: HashSet<Text>,
}

impl Labels {
    /// Reads JSON Lines, or CSV with a header: `id`, and `success` or `reward`, and `confidence` if it is known. A reward of `success_at` or
    /// more is a success. Of an `id` that comes again, the last label counts.
    ///
    /// # Errors
    /// If the file cannot be read, or something in it is no label; the message names the line.
    pub fn read(file: &str, success_at: f64) -> Result<Self> {
        let mut labels = Self::default();
        for (line, record) in read_records(file)? {
            let label = record.and_then(|record| label_of(&record, success_at));
            let (id, label) = label.map_err(|reason| Failure::file(format!("{file}:{line}: {reason}")))?;
            labels.labels.insert(id, label);
        }
        Ok(labels)
    }

    /// Returns the label of a trace.
    pub fn of(&mut self, id: Option<&Text>) -> Option<Label> {
        let id = id?;
        let label = self.labels.get(id).copied()?;
        self.used.insert(id.clone());
        Some(label)
    }

    /// Returns how many labels belong to no trace that was asked for.
    pub fn unused(&self) -> usize {
        self.labels.len() - self.used.len()
    }
}

type Wrong = String;

/// The records of a file with their lines, or their problems.
type FileRecords = Vec<(u64, std::result::Result<Value, Wrong>)>;

/// Reads a file of JSON Lines, JSON arrays or CSV with a header.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn read_records(file: &str) -> Result<FileRecords> {
    let bytes = fs::read(file).map_err(|error| Failure::read(file, &error))?;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    Ok(if matches!(first, Some(b'{' | b'[') | None) {
        json_records(&bytes)
    } else {
        csv_records(&bytes)
    })
}

fn json_records(bytes: &[u8]) -> FileRecords {
    let mut records = Records::default();
    if let Err(foreign) = records.push(bytes).and_then(|()| records.finish()) {
        return vec![(1, Err(foreign.to_string()))];
    }
    let records = records.map(|record| (record.line.unwrap_or(1), record.content.map(|(value, _)| value)));
    records.collect()
}

fn csv_records(bytes: &[u8]) -> FileRecords {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let header = match reader.headers() {
        Ok(header) => header.clone(),
        Err(error) => return vec![(1, Err(error.to_string()))],
    };
    let records = reader.records().map(|record| {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error.position().map_or(1, csv::Position::line);
                return (line, Err(error.to_string()));
            }
        };
        let line = record.position().map_or(1, csv::Position::line);
        let fields = header.iter().zip(&record).filter(|(_, cell)| !cell.is_empty());
        let fields = fields.map(|(name, cell)| (name.into(), value_of(name, cell)));
        (line, Ok(Value::Object(fields.collect())))
    });
    records.collect()
}

/// Returns a cell as the value that it stands for.
fn value_of(name: &str, cell: &str) -> Value {
    match cell.to_ascii_lowercase().as_str() {
        _ if name == "id" => cell.into(),
        "true" | "yes" => true.into(),
        "false" | "no" => false.into(),
        _ => cell.parse::<f64>().map_or_else(|_| cell.into(), Value::from),
    }
}

fn label_of(record: &Value, success_at: f64) -> std::result::Result<(Text, Label), Wrong> {
    let id = record.get("id").and_then(Value::as_text);
    let id = id.ok_or("a label needs the id of a trace, a string")?;
    let success = match (record.get("success"), record.get("reward")) {
        (Some(Value::Bool(success)), _) => *success,
        (Some(Value::Number(success)), _) if [0.0, 1.0].contains(success) => *success > 0.0,
        (None | Some(Value::Null), Some(Value::Number(reward))) => *reward >= success_at,
        _ => return Err("a label needs success, true or false, or reward, a number".into()),
    };
    let confidence = match record.get("confidence") {
        None | Some(Value::Null) => None,
        Some(Value::Number(confidence)) if (0.0..=1.0).contains(confidence) => Some(*confidence),
        _ => return Err("confidence must be a number from 0 to 1".into()),
    };
    Ok((id.clone(), Label { success, confidence }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(contents: &str, success_at: f64) -> Result<Labels> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("labels");
        fs::write(&file, contents).unwrap();
        Labels::read(file.to_str().unwrap(), success_at)
    }

    #[test]
    fn read_takes_json_lines_and_csv_alike() {
        for contents in [
            "{\"id\":\"a\",\"success\":true,\"confidence\":0.5}\n{\"id\":\"b\",\"reward\":0.75}\n{\"id\":\"c\",\"success\":0}\n",
            "[{\"id\":\"a\",\"success\":true,\"confidence\":0.5},{\"id\":\"b\",\"reward\":0.75},{\"id\":\"c\",\"success\":false}]",
            "id,success,reward,confidence\na,true,,0.5\nb,,0.75,\nc,no,,\n",
        ] {
            let mut labels = read(contents, 0.75).unwrap();
            let label = |success, confidence| Some(Label { success, confidence });
            assert_eq!(labels.of(Some(&"a".into())), label(true, Some(0.5)));
            assert_eq!(labels.of(Some(&"b".into())), label(true, None));
            assert_eq!(labels.of(Some(&"z".into())), None);
            assert_eq!((labels.of(None), labels.unused()), (None, 1));
            assert_eq!(
                read(contents, 1.0).unwrap().of(Some(&"b".into())),
                label(false, None)
            );
        }
    }

    #[test]
    fn read_names_the_line_that_is_no_label() {
        for (contents, reason) in [
            (
                "{\"id\":\"a\",\"success\":true}\n{\"success\":true}\n",
                ":2: a label needs the id",
            ),
            ("id,success\na,true\nb,maybe\n", ":3: a label needs success"),
            ("id,reward,confidence\na,1,2\n", ":2: confidence must be"),
            ("{\"id\":\n", ":1: not JSON"),
        ] {
            let failure = read(contents, 1.0).unwrap_err();
            assert!(failure.message.contains(reason), "{}", failure.message);
        }
    }
}
