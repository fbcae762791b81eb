//! A folder that sessions are shared into grows, keeps what it has, and survives kills.

#![allow(clippy::unwrap_used)] // Also outside the test functions.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime},
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

/// Writes a session of Claude Code with words for each of 12 turns.
fn write_session(logs: &Path, number: u32, words: impl Fn(u32) -> String) {
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
        let (minute, words) = (number % 60, words(turn));
        format!(
            r#"{{"type":"{role}","sessionId":"s{number}","uuid":"u{turn}","parentUuid":{parent},"timestamp":"2026-10-01T09:{minute:02}:{turn:02}.000Z","message":{{"role":"{role}","content":"{words}"}}}}"#,
        ) + "\n"
    };
    let text: String = (0..12).map(record).collect();
    fs::create_dir_all(logs).unwrap();
    fs::write(logs.join(format!("s{number}.jsonl")), text).unwrap();
}

fn word(number: u32) -> String {
    format!("w{:x} ", number.wrapping_mul(7919) % 999_983)
}

/// Writes sessions, each about something of its own.
fn write_sessions(logs: &Path, numbers: std::ops::Range<u32>) {
    for number in numbers {
        write_session(logs, number, |turn| {
            let words = (0..30).map(|at| word(number * 10_007 + turn * 104_729 + at * 1_299_709));
            words.collect()
        });
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

#[cfg(target_os = "linux")]
#[test]
fn share_into_a_folder_that_cannot_be_made_names_the_reason_and_a_way_out() {
    let around = tempfile::tempdir().unwrap();
    write_sessions(around.path(), 0..2);
    let ended = share(around.path(), Path::new("/proc/none"))
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    let expected = "cannot write /proc/none: no such file or directory (ENOENT); name a file in a directory";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn share_of_a_log_without_a_time_has_no_time() {
    let around = tempfile::tempdir().unwrap();
    let (log, folder) = (around.path().join("chat.jsonl"), around.path().join("shared"));
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#;
    let chat = format!(
        r#"{{"messages":[{{"role":"user","content":"List the files"}},{call},{{"role":"tool","tool_call_id":"c","content":"a.txt"}},{{"role":"assistant","content":"One file."}}]}}"#
    );
    fs::write(&log, chat).unwrap();
    shared(&log, &folder);
    let manifest = fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
    let line = parse_str(manifest.trim()).unwrap();
    assert_eq!(line.get("created_at"), Some(&Value::Null));
    let file = line.get("file").unwrap().as_str().unwrap();
    assert!(file.starts_with("sessions/session-list-the-files-"), "{file}");
    let session = fs::read_to_string(folder.join(file)).unwrap();
    assert!(!session.contains("timestamp"), "{session}");
}

#[test]
fn share_knows_a_session_without_a_time_again_that_has_gone_on_or_was_removed() {
    let around = tempfile::tempdir().unwrap();
    let (logs, folder) = (around.path().join("logs"), around.path().join("shared"));
    let log = |name: &str, session: &str, topic: &str, turns: u32| {
        let record = |turn: u32| {
            let role = ["user", "assistant"][turn as usize % 2];
            format!(
                r#"{{"type":"{role}","sessionId":"{session}","uuid":"{turn}","message":{{"role":"{role}","content":"{topic} {}"}}}}"#,
                word(turn)
            ) + "\n"
        };
        fs::create_dir_all(&logs).unwrap();
        fs::write(logs.join(name), (0..turns).map(record).collect::<String>()).unwrap();
    };
    let lines = || -> Vec<Value> {
        let manifest = fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
        manifest.lines().map(|line| parse_str(line).unwrap()).collect()
    };
    log("a.jsonl", "1", "Paint the fence", 4);
    shared(&logs, &folder);
    log("a.jsonl", "1", "Paint the fence", 8);
    // A session of another program that has the same name.
    log("b.jsonl", "1", "Bake a cake", 4);
    shared(&logs, &folder);
    let (all, steps) = (lines(), |line: &Value| {
        line.get("steps").and_then(Value::as_number)
    });
    assert_eq!(all.iter().map(steps).collect::<Vec<_>>(), [Some(7.0), Some(3.0)]);
    let id = all[0].get("id").and_then(Value::as_str).unwrap();
    let mut remove = Command::new(env!("CARGO_BIN_EXE_kp-score"));
    remove
        .args(["share", "--yes", "--quiet", "--remove", id, "-o"])
        .arg(&folder);
    assert!(remove.status().unwrap().success());
    log("a.jsonl", "1", "Paint the fence", 12);
    shared(&logs, &folder);
    assert_eq!(lines().iter().map(steps).collect::<Vec<_>>(), [Some(3.0)]);
}

#[test]
fn share_leaves_a_log_whose_time_is_ahead_of_the_clock() {
    let around = tempfile::tempdir().unwrap();
    let [logs, folder] = ["logs", "shared"].map(|name| around.path().join(name));
    write_sessions(&logs, 0..1);
    let log = fs::File::options()
        .append(true)
        .open(logs.join("s0.jsonl"))
        .unwrap();
    log.set_modified(SystemTime::now() + Duration::from_secs(20))
        .unwrap();
    let settled = share(&logs, &folder).args(["--settled", "1m"]).status();
    assert!(settled.unwrap().success() && !folder.exists());
}

#[test]
fn share_removes_the_session_of_a_path_that_a_shell_has_completed() {
    let around = tempfile::tempdir().unwrap();
    let [logs, folder] = ["logs", "shared"].map(|name| around.path().join(name));
    write_sessions(&logs, 0..2);
    shared(&logs, &folder);
    let file = fs::read_dir(folder.join("sessions")).unwrap().next().unwrap();
    let mut remove = Command::new(env!("CARGO_BIN_EXE_kp-score"));
    remove.args(["share", "--yes", "-o"]).arg(&folder);
    remove.arg("--remove").arg(file.unwrap().path());
    assert!(remove.status().unwrap().success());
    assert_eq!(named(&files_of_set(&folder)).len(), 1);
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

#[test]
fn share_stops_where_the_rest_are_runs_of_the_same_tasks() {
    const TASKS: u32 = 18;
    const RUNS: u32 = 20;
    let around = tempfile::tempdir().unwrap();
    let [logs, folder] = ["logs", "shared"].map(|name| around.path().join(name));
    for number in 0..TASKS * RUNS {
        // Nine of ten words are those of the task.
        write_session(&logs, number, |turn| {
            let of_task = (0..27).map(|at| word((number % TASKS) * 1009 + turn * 31 + at));
            let own = (0..3).map(|at| word(1_000_003 + number * 211 + turn * 17 + at));
            of_task.chain(own).collect()
        });
    }
    let share = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kp-score"));
        command
            .args(["share", "50", "--yes", "-o"])
            .arg(&folder)
            .arg(&logs);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    let told = share();
    let count = named(&files_of_set(&folder)).len();
    assert!((15..=20).contains(&count), "{count}: {told}");
    let others = TASKS * RUNS - u32::try_from(count).unwrap();
    let reason = format!("{count} of 50: the other {others} are like these");
    assert!(told.contains(&reason), "{told}");
    // The next time none of them comes.
    let told = share();
    assert_eq!(named(&files_of_set(&folder)).len(), count, "{told}");
}
