//! The result of a trial in a file beside a trajectory of Harbor.

use std::{fs, path::PathBuf};

use knowledgepulse_json::Value;
use tempfile::TempDir;

use crate::{
    reader::{Content, Run, Settings, TraceReader},
    records::Records,
    trace::known_of,
};

/// Writes files into a new directory.
fn folder_of(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, contents) in files {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, contents).unwrap();
    }
    folder
}

/// Returns the JSON of a trajectory with a task.
fn trajectory(task: &str) -> String {
    let steps = serde_json::json!([{ "source": "user", "message": task }]);
    let agent = serde_json::json!({ "name": "a" });
    serde_json::json!({ "schema_version": "ATIF-v1.6", "agent": agent, "steps": steps }).to_string()
}

/// Returns the traces of a file.
fn traces_of(file: PathBuf) -> Vec<Result<Value, String>> {
    let mut records = Records::default();
    records.push(&fs::read(&file).unwrap()).unwrap();
    records.finish().unwrap();
    let mut reader = TraceReader::new(Settings {
        file: Some(file),
        ..Settings::default()
    });
    let items = records.flat_map(|record| reader.read(record));
    let results = items.flat_map(Run::build).map(|item| match item.content {
        Content::Read(trace) => Ok(trace),
        Content::Wrong(reason) => Err(reason.to_string()),
        other => panic!("{other:?}"),
    });
    results.collect()
}

#[test]
fn the_result_of_a_trial_belongs_to_its_trajectory_and_the_continuations() {
    let text = trajectory("main");
    let solved = r#"{"verifier_result":{"rewards":{"tests":1}}}"#;
    let scored = r#"{"verifier_result":{"rewards":{"tests":1,"style":0}}}"#;
    let failed = r#"{"exception_info":{"exception_type":"AgentTimeoutError"}}"#;
    let folder = folder_of(&[
        ("solved/result.json", solved),
        ("solved/agent/trajectory.json", &text),
        ("solved/agent/trajectory.cont-1.json", &text),
        ("solved/agent/trajectory.cont-a.json", &text),
        ("solved/agent/trajectory.cont-.json", &text),
        ("solved/agent/helper.json", &text),
        ("solved/alone/helper.json", &text),
        ("scored/result.json", scored),
        ("scored/agent/trajectory.json", &text),
        ("failed/result.json", failed),
        ("failed/steps/one/agent/trajectory.json", &text),
    ]);
    for (name, success) in [
        ("solved/agent/trajectory.json", Some(true)),
        ("solved/agent/trajectory.cont-1.json", Some(true)),
        ("solved/agent/trajectory.cont-a.json", None),
        ("solved/agent/trajectory.cont-.json", None),
        ("solved/agent/helper.json", None),
        ("solved/alone/helper.json", Some(true)),
        ("scored/agent/trajectory.json", None),
        ("failed/steps/one/agent/trajectory.json", Some(false)),
    ] {
        let found = traces_of(folder.path().join(name));
        let [Ok(trace)] = &found[..] else {
            panic!("{name}: {found:?}");
        };
        let is_success = trace.get("metadata").unwrap().get("success") == Some(&Value::Bool(true));
        assert_eq!(known_of(trace).success.then_some(is_success), success, "{name}");
    }
}
