//! Files beside a trajectory of Harbor: those of its sub-agents, and the result of its trial.

use std::{fs, path::PathBuf};

use knowledgepulse_json::Value;
use tempfile::TempDir;

use crate::{
    Context, DEFAULT_LIMIT, Files, Known,
    reader::{Content, Settings, TraceReader},
    records::Records,
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

/// Returns the JSON of a trajectory with a task and references to files.
fn trajectory(task: &str, files: &[&str]) -> String {
    let references: Vec<_> = files
        .iter()
        .map(|file| serde_json::json!({ "trajectory_path": file, "trajectory_id": file }))
        .collect();
    let steps = serde_json::json!([
        { "source": "user", "message": task },
        { "source": "agent", "observation": { "results": [{ "subagent_trajectory_ref": references }] } },
    ]);
    let agent = serde_json::json!({ "name": "a" });
    serde_json::json!({ "schema_version": "ATIF-v1.6", "agent": agent, "steps": steps }).to_string()
}

/// Returns the traces of a file, and what is known of each.
fn traces_of(file: PathBuf, files: &Files) -> Vec<Result<(Value, Known), String>> {
    let mut records = Records::default();
    records.push(&fs::read(&file).unwrap()).unwrap();
    records.finish().unwrap();
    let mut reader = TraceReader::new(Settings {
        context: Context {
            file: Some(file),
            files: files.clone(),
        },
        ..Settings::default()
    });
    let items = records.flat_map(|record| reader.read(record));
    let results = items.map(|item| match item.build().content {
        Content::Converted(trace, known) => Ok((trace, known)),
        Content::Wrong(reason) => Err(reason.to_string()),
        other => panic!("{other:?}"),
    });
    results.collect()
}

/// Returns the tasks of the traces in a file, and the problems.
fn tasks_of(file: PathBuf, files: &Files) -> Vec<String> {
    let results = traces_of(file, files).into_iter();
    let task_of = |trace: Value| {
        let task = trace.get("task").unwrap().get("objective").unwrap();
        task.as_str().unwrap().to_owned()
    };
    results
        .map(|result| result.map_or_else(|error| error, |(trace, _)| task_of(trace)))
        .collect()
}

#[test]
fn files_of_sub_agents_are_read_in_the_folder_and_below_once() {
    let references = [
        "sub/one.json",
        "./sub/../sub/one.json",
        "../outside.json",
        "link.json",
        "linked/outside.json",
        "missing.json",
        "sub",
        ".",
        "trajectory.json",
        "embedded",
    ];
    let main = trajectory("main", &references);
    let embedded = trajectory("embedded", &[]).replacen('{', r#"{"trajectory_id":"embedded","#, 1);
    let main = main.replacen('{', &format!(r#"{{"subagent_trajectories":[{embedded}],"#), 1);
    let folder = folder_of(&[
        ("agent/trajectory.json", &main),
        ("agent/embedded", &trajectory("embedded file", &[])),
        ("agent/sub/one.json", &trajectory("one", &["two.json"])),
        ("agent/sub/two.json", &trajectory("two", &["../trajectory.json"])),
        ("outside.json", &trajectory("outside", &[])),
    ]);
    let file = |name| folder.path().join("agent").join(name);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path().join("outside.json"), file("link.json")).unwrap();
        std::os::unix::fs::symlink(folder.path(), file("linked")).unwrap();
    }
    let files = Files::default();
    assert_eq!(
        tasks_of(file("trajectory.json"), &files),
        ["main", "embedded", "one", "two"]
    );
    assert!(tasks_of(file("sub/one.json"), &files).is_empty());

    let files = Files::default();
    assert_eq!(tasks_of(file("sub/one.json"), &files), ["one", "two"]);
    assert_eq!(tasks_of(file("trajectory.json"), &files), ["main", "embedded"]);
}

#[test]
fn files_of_sub_agents_that_cannot_be_read_are_named() {
    let names = [
        "words.json",
        "other.json",
        "longest.json",
        "long.json",
        "good.json",
    ];
    let folder = folder_of(&[
        ("trajectory.json", &trajectory("main", &names)),
        ("words.json", "no JSON"),
        ("other.json", "{}"),
        ("good.json", &format!("\u{feff}{}", trajectory("good", &[]))),
    ]);
    for (name, length) in [("longest.json", DEFAULT_LIMIT), ("long.json", DEFAULT_LIMIT + 1)] {
        let file = fs::File::create(folder.path().join(name)).unwrap();
        file.set_len(length).unwrap();
    }
    let found = tasks_of(folder.path().join("trajectory.json"), &Files::default());
    let problem = |name, reason| format!("not atif: the sub-agent in {name}: {reason}");
    assert_eq!(
        found,
        [
            "main".into(),
            problem("words.json", "not JSON in UTF-8"),
            problem(
                "other.json",
                r#"it has no schema_version of ATIF, such as "ATIF-v1.6""#
            ),
            problem("longest.json", "not JSON in UTF-8"),
            problem("long.json", "longer than 64 MB"),
            "good".into(),
        ]
    );
}

#[test]
fn the_result_of_a_trial_belongs_to_its_trajectory_and_the_continuations() {
    let text = trajectory("main", &[]);
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
        let found = traces_of(folder.path().join(name), &Files::default());
        let [Ok((trace, known))] = &found[..] else {
            panic!("{name}: {found:?}");
        };
        let is_success = trace.get("metadata").unwrap().get("success") == Some(&Value::Bool(true));
        assert_eq!(known.success.then_some(is_success), success, "{name}");
    }
}
