//! Outcomes from outside: results of verifiers that ran elsewhere.

use std::{collections::HashMap, fs};

use knowledgepulse_formats::records::Records;
use knowledgepulse_json::{Text, Value};
use knowledgepulse_share::{TOLD_CONFIDENCE, metadata_of};

use crate::{Candidate, Failure, Result, Scored};

/// A verifier's verdict on a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Label {
    /// Whether it succeeded.
    pub success: bool,
    /// How sure that is, 0 to 1; `None` where it is not said.
    pub confidence: Option<f64>,
}

/// Writes an outcome that was told into a trace, where it is known from then on.
fn set_success(trace: &mut Value, success: bool) {
    if let Some(metadata) = metadata_of(trace) {
        metadata.insert("success", success);
        if let Some(Value::Object(imported)) = metadata.get_mut("imported")
            && let Some(Value::Object(known)) = imported.get_mut("known")
        {
            known.remove("success");
        }
    }
}

/// The labels of a file, by ids of traces.
#[derive(Debug, Default)]
pub struct Labels {
    file: String,
    /// Each with whether a session had it.
    labels: HashMap<Text, (Label, bool)>,
}

impl Labels {
    /// Reads JSON Lines, or CSV with a header: `id`, and `success` or `reward`, and `confidence` if it is known. A reward of 1 or more is a
    /// success. Of an `id` that comes again, the last label counts.
    ///
    /// # Errors
    /// If the file cannot be read, or something in it is no label; the message names the line.
    pub fn read(file: &str) -> Result<Self> {
        let mut labels = Self {
            file: file.to_owned(),
            ..Self::default()
        };
        let bytes = fs::read(file).map_err(|error| Failure::read(file, &error))?;
        let wrong = |line, reason: String| Failure::file(format!("{file}:{line}: {reason}"));
        let mut records = Records::default();
        let whole = records.push(&bytes).and_then(|()| records.finish());
        whole.map_err(|foreign| wrong(1, foreign.to_string()))?;
        for record in records {
            let label = record.content.and_then(|record| label_of(&record));
            let (id, label) = label.map_err(|reason| wrong(record.place.line.unwrap_or(1), reason))?;
            labels.labels.insert(id, (label, false));
        }
        Ok(labels)
    }

    /// Tells the outcome of a trace, which is known from then on, if it has a label.
    pub(crate) fn tell(&mut self, scored: &mut Scored, candidate: &mut Candidate) {
        let names = names_of(&scored.place.source);
        let ids = scored.about.id.iter().chain(&candidate.ids).chain(&names);
        let Some(Label { success, confidence }) = self.of(ids) else {
            return;
        };
        let outcome = &mut candidate.outcome;
        outcome.success = Some(success);
        outcome.is_verified = true;
        outcome.confidence = confidence.unwrap_or(outcome.confidence);
        scored.about.success = Some(success);
        scored.about.told = Some((success, confidence.unwrap_or(TOLD_CONFIDENCE)));
        set_success(&mut candidate.trace, success);
    }

    /// Returns the label of a trace with these ids: that of the first one that has a label.
    fn of<'i>(&mut self, ids: impl Iterator<Item = &'i Text>) -> Option<Label> {
        let mut found = None;
        for id in ids {
            if let Some((label, is_used)) = self.labels.get_mut(id) {
                *is_used = true;
                found = found.or(Some(*label));
            }
        }
        found
    }

    /// Says how many labels belong to no session, naming one; `None` if that is nothing.
    ///
    /// # Errors
    /// If no label belongs to a session.
    pub(crate) fn problems(&self) -> Result<Option<String>> {
        let unused = self.labels.iter().filter(|(_, (_, is_used))| !is_used);
        let unused: Vec<_> = unused.map(|(id, _)| id).collect();
        let (count, all, file) = (unused.len(), self.labels.len(), &self.file);
        let Some(first) = unused.into_iter().min() else {
            return Ok(None);
        };
        let first = Value::from(first.clone()).to_json();
        let words =
            format!("--labels: {count} of {all} labels in {file} belong to no session, such as {first}");
        match count == all {
            true => Err(Failure::file(words)),
            false => Ok(Some(words)),
        }
    }
}

/// Returns the ids of the run itself that its format gave it, as readers keep them in `metadata.imported`.
pub(crate) fn ids_of(trace: &Value) -> Vec<Text> {
    let imported = trace.at(&["metadata", "imported"]).and_then(Value::as_object);
    let is_id = |name: &str| {
        let is_id = name == "id" || name == "trial" || name.ends_with("_id") || name.ends_with("_path");
        is_id && !name.starts_with("parent")
    };
    let ids = imported.into_iter().flatten().filter(|(name, _)| is_id(name));
    ids.filter_map(|(_, value)| text_of_id(value)).collect()
}

/// Returns an id as a text; numbers are ids too.
fn text_of_id(value: &Value) -> Option<Text> {
    match value {
        Value::String(text) => Some(text.trim().into()),
        Value::Number(_) => Some(value.to_json().into()),
        _ => None,
    }
}

/// Returns the names of a file: as it was given, without its folder, and then without each of its extensions.
fn names_of(source: &str) -> Vec<Text> {
    let mut name = source.rsplit(['/', '\\']).next().unwrap_or(source);
    let mut names = vec![source.into(), name.into()];
    while let Some((stem, extension)) = name.rsplit_once('.')
        && !stem.is_empty()
        && extension.bytes().all(|byte| byte.is_ascii_alphabetic())
    {
        name = stem;
        names.push(name.into());
    }
    names
}

/// Returns the value of a field; of a cell of CSV the one that it stands for.
fn value_of(record: &Value, name: &str) -> Value {
    let value = record.get(name).cloned().unwrap_or_default();
    let cell = value.as_str().map(|cell| cell.trim().to_ascii_lowercase());
    match cell.as_deref() {
        Some("true" | "yes") => true.into(),
        Some("false" | "no") => false.into(),
        cell => cell
            .and_then(|cell| cell.parse::<f64>().ok())
            .map_or(value, Value::from),
    }
}

fn label_of(record: &Value) -> std::result::Result<(Text, Label), String> {
    let id = record.get("id").and_then(text_of_id);
    let id = id.ok_or("a label needs the id of a trace, a string or a number")?;
    let success = match ["success", "reward"].map(|name| value_of(record, name)) {
        [Value::Bool(success), _] => success,
        [Value::Number(success), _] if [0.0, 1.0].contains(&success) => success > 0.0,
        [Value::Null, Value::Number(reward)] => reward >= 1.0,
        _ => return Err("a label needs success, true or false, or reward, a number".into()),
    };
    let confidence = match value_of(record, "confidence") {
        Value::Null => None,
        Value::Number(confidence) if (0.0..=1.0).contains(&confidence) => Some(confidence),
        _ => return Err("confidence must be a number from 0 to 1".into()),
    };
    Ok((id, Label { success, confidence }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(contents: &str) -> Result<Labels> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("labels");
        fs::write(&file, contents).unwrap();
        Labels::read(file.to_str().unwrap())
    }

    #[test]
    fn read_takes_json_lines_and_csv_alike() {
        for contents in [
            "{\"id\":\"a\",\"success\":true,\"confidence\":0.5}\n{\"id\":\"b\",\"reward\":1.5}\n{\"id\":\"c\",\"success\":0}\n",
            "[{\"id\":\"a\",\"success\":true,\"confidence\":0.5},{\"id\":\"b\",\"reward\":1.5},{\"id\":\"c\",\"success\":false}]",
            "id,success,reward,confidence\na,true,,0.5\n b ,,1.5,\nc, No,,\n",
        ] {
            let mut labels = read(contents).unwrap();
            let label = |success, confidence| Some(Label { success, confidence });
            let of = |labels: &mut Labels, id: &str| labels.of([id.into()].iter());
            assert_eq!(of(&mut labels, "a"), label(true, Some(0.5)));
            assert_eq!(of(&mut labels, "b"), label(true, None));
            assert_eq!(of(&mut labels, "z"), None);
            assert_eq!(labels.of([].iter()), None);
            let unused = labels.problems().unwrap().unwrap();
            assert!(
                unused.starts_with("--labels: 1 of 3 labels in ") && unused.ends_with("such as \"c\""),
                "{unused}"
            );
            assert_eq!(labels.of(["c".into(), "a".into()].iter()), label(false, None));
            assert_eq!(labels.problems().unwrap(), None);
            assert!(read(contents).unwrap().problems().is_err());
        }
    }

    #[test]
    fn set_success_makes_an_outcome_known() {
        let imported = r#"{"metadata":{"success":false,"imported":{"format":"pi","known":{"success":false,"confidence":false}}},"steps":[]}"#;
        let mut trace = knowledgepulse_json::parse_str(imported).unwrap();
        set_success(&mut trace, true);
        assert_eq!(
            trace.to_json(),
            r#"{"metadata":{"success":true,"imported":{"format":"pi","known":{"confidence":false}}},"steps":[]}"#
        );
    }

    #[test]
    fn ids_of_a_trace_are_those_that_its_format_gave() {
        let trace = knowledgepulse_json::parse_str(
            r#"{"id":"t","metadata":{"imported":{"format":"swe-agent","instance_id":"a","session_id":7,"parent_id":"p","id":"b","trial":"c","model":"m"}}}"#,
        );
        let ids: Vec<Text> = ["a", "7", "b", "c"].map(Into::into).to_vec();
        assert_eq!(ids_of(&trace.unwrap()), ids);
        assert!(ids_of(&Value::Null).is_empty());
    }

    #[test]
    fn names_of_a_file_lose_folder_and_extensions() {
        for (source, names) in [
            (
                "runs/a.1.traj.json",
                &["runs/a.1.traj.json", "a.1.traj.json", "a.1.traj", "a.1"][..],
            ),
            ("C:\\runs\\b.jsonl", &["C:\\runs\\b.jsonl", "b.jsonl", "b"]),
            (".hidden", &[".hidden", ".hidden"]),
        ] {
            let names: Vec<Text> = names.iter().map(|&name| name.into()).collect();
            assert_eq!(names_of(source), names);
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
            let failure = read(contents).unwrap_err();
            assert!(failure.message.contains(reason), "{}", failure.message);
        }
    }
}
