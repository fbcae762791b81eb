//! A folder that sessions are shared into grows, keeps what it has, and survives kills.

#![allow(clippy::unwrap_used)] // Also outside the test functions.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use knowledgepulse_json::{Value, parse_str};
use walkdir::WalkDir;

/// How many runs are killed.
const KILLS: u32 = 50;

fn share(logs: &Path, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kp-score"));
    let arguments = ["share", "20", "--yes", "--quiet", "-o"];
    command.args(arguments).arg(folder).arg(logs);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn shared(logs: &Path, folder: &Path) {
    assert!(share(logs, folder).status().unwrap().success());
}

/// Writes sessions of Claude Code, each about something of its own.
fn write_sessions(logs: &Path, numbers: std::ops::Range<u32>) {
    fs::create_dir_all(logs).unwrap();
    for number in numbers {
        let words = |turn: u32| -> String {
            (0..30)
                .map(|word| {
                    format!(
                        "w{:x} ",
                        (number * 7919 + turn * 104_729 + word * 1_299_709) % 999_983
                    )
                })
                .collect()
        };
        let record = |turn: u32| {
            let role = if turn.is_multiple_of(2) {
                "user"
            } else {
                "assistant"
            };
            let parent = if turn == 0 {
                "null".to_owned()
            } else {
                format!("\"u{}\"", turn - 1)
            };
            format!(
                r#"{{"type":"{role}","sessionId":"s{number}","uuid":"u{turn}","parentUuid":{parent},"timestamp":"2026-10-01T09:{number:02}:{turn:02}.000Z","message":{{"role":"{role}","content":"{}"}}}}"#,
                words(turn)
            ) + "\n"
        };
        let text: String = (0..12).map(record).collect();
        fs::write(logs.join(format!("s{number}.jsonl")), text).unwrap();
    }
}

/// Returns the files of a folder, and checks that it is a set: all lines are JSON, and the files that the manifest names are there.
fn files_of_set(folder: &Path) -> BTreeMap<String, String> {
    let entries = WalkDir::new(folder).into_iter().map(Result::unwrap);
    let files = entries
        .filter(|entry| entry.file_type().is_file() && !entry.path().starts_with(folder.join(".kp-score")));
    let files: BTreeMap<String, String> = files
        .map(|entry| {
            let name = entry.path().strip_prefix(folder).unwrap().display().to_string();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    for (name, text) in files.iter().filter(|(name, _)| name.ends_with(".jsonl")) {
        assert!(
            text.ends_with('\n') && text.lines().all(|line| parse_str(line).is_ok()),
            "{name}"
        );
    }
    for file in named(&files) {
        assert!(files.contains_key(&file), "{file}");
    }
    assert!(files["README.md"].starts_with("---\n"));
    files
}

/// Returns the files that the manifest names.
fn named(files: &BTreeMap<String, String>) -> Vec<String> {
    let lines = files["manifest.jsonl"]
        .lines()
        .map(|line| parse_str(line).unwrap());
    lines
        .map(|line| line.get("file").and_then(Value::as_str).unwrap().to_owned())
        .collect()
}

fn copy(from: &Path, to: &Path) {
    drop(fs::remove_dir_all(to));
    for entry in WalkDir::new(from).into_iter().map(Result::unwrap) {
        let to = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir_all(to).unwrap();
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn share_adds_to_what_was_published_and_a_kill_leaves_a_set() {
    let around = tempfile::tempdir().unwrap();
    let [logs, folder, killed] = ["logs", "shared", "killed"].map(|name| around.path().join(name));
    write_sessions(&logs, 0..49);
    shared(&logs, &folder);
    let card = fs::read_to_string(folder.join("README.md")).unwrap();
    fs::write(
        folder.join("README.md"),
        card.replace("license: unknown", "license: mit"),
    )
    .unwrap();
    fs::create_dir(folder.join(".git")).unwrap();
    fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let first = files_of_set(&folder);
    assert_eq!(named(&first).len(), 20);

    write_sessions(&logs, 49..59);
    let began = Instant::now();
    let grown = around.path().join("grown");
    copy(&folder, &grown);
    shared(&logs, &grown);
    let took = began.elapsed();
    let second = files_of_set(&grown);
    let mut names = named(&second);
    assert_eq!(names.len(), 40);
    names.sort();
    let sessions: Vec<_> = second
        .keys()
        .filter(|name| name.starts_with("sessions/"))
        .cloned()
        .collect();
    assert_eq!(names, sessions);
    for (name, text) in &first {
        if !["README.md", "manifest.jsonl"].contains(&name.as_str()) {
            assert_eq!(second.get(name), Some(text), "{name}");
        }
    }
    let lines = |files: &BTreeMap<String, String>| -> Vec<String> {
        files["manifest.jsonl"]
            .lines()
            .take(20)
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(lines(&first), lines(&second));
    assert!(second["README.md"].contains("license: mit") && second["README.md"].contains("40 sessions"));

    // The moments are spread over a run, with more at its end, where the files are put into their places.
    for kill in 0..KILLS {
        copy(&folder, &killed);
        let mut run = share(&logs, &killed).spawn().unwrap();
        let part = f64::from(kill * 7919 % KILLS) / f64::from(KILLS);
        thread::sleep(took.mul_f64(part.sqrt()));
        drop(run.kill());
        run.wait().unwrap();
        let after = files_of_set(&killed);
        assert!([20, 40].contains(&named(&after).len()));
        if kill % 10 == 0 {
            shared(&logs, &killed);
            let mended = files_of_set(&killed);
            let count = mended.keys().filter(|name| name.starts_with("sessions/")).count();
            assert_eq!(count, named(&mended).len());
            assert!(!killed.join(".kp-score").exists());
        }
    }
}
