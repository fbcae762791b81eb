//! The sessions of `__test__/formats/agents` become what the `case.json` beside each says. A file `NAME.sql` makes the database NAME.

use std::{
    fs, mem,
    path::{Path, PathBuf},
    slice,
};

use knowledgepulse_json::{Text, Value, parse_str};
use rusqlite::Connection;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::{
    FormatName, Place,
    input::{lines_of_file, reader_of},
    reader::{Content, EARLIER_COPIES, Settings, TraceReader},
    records::{Record, Records},
    run::groups,
    values::{list_of, number_of, str_of},
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../__test__/formats/agents")
}

/// Makes a database of a recording in SQL, and runs more of it.
fn made(path: &Path, directory: &TempDir, more: &str) -> PathBuf {
    let database = directory.path().join(path.file_stem().unwrap());
    let connection = Connection::open(&database).unwrap();
    for sql in [&fs::read_to_string(path).unwrap(), more] {
        connection.execute_batch(sql).unwrap();
    }
    database
}

/// Returns what a file holds: its own bytes, or those of the lines that it becomes.
fn lines_in(path: &Path) -> Vec<u8> {
    let lines = lines_of_file(path).unwrap();
    lines.map_or_else(
        || fs::read(path).unwrap(),
        |lines| lines.collect::<String>().into_bytes(),
    )
}

/// Returns what the input of a case holds, or the sessions of the database that it makes, a line each.
fn bytes_of(path: &Path) -> Vec<u8> {
    if path.extension().is_none_or(|extension| extension != "sql") {
        return lines_in(path);
    }
    let directory = tempfile::tempdir().unwrap();
    let database = made(path, &directory, "");
    let lines: String = lines_of_file(&database).unwrap().unwrap().collect();
    let bytes = fs::read(&database).unwrap();
    let of_bytes = reader_of(&bytes).unwrap();
    assert_eq!(lines, of_bytes(bytes).unwrap().collect::<String>());
    lines.into_bytes()
}

/// Reads an input as a file of this path.
fn read(path: &Path) -> Vec<(Option<&'static str>, Value)> {
    let reader = TraceReader::new(Settings {
        file: Some(path.into()),
        ..Settings::default()
    });
    let items = reader.read_all(&bytes_of(path)).unwrap();
    let traces = items.into_iter().filter_map(|item| match item.content {
        Content::Read(trace) => Some((item.format.map(|format| format.name()), trace)),
        Content::Wrong(reason) if reason.starts_with("this part of the input cannot be read: ") => None,
        content => panic!("{}: {content:?}", path.display()),
    });
    traces.collect()
}

fn steps_of(trace: &Value) -> &[Value] {
    list_of(trace.get("steps"))
}

fn count(trace: &Value, is_counted: impl Fn(&Value) -> bool) -> f64 {
    let count = steps_of(trace).iter().filter(|step| is_counted(step)).count();
    u32::try_from(count).unwrap().into()
}

/// Returns how a trace differs from what is expected of it.
fn differences(trace: &Value, expected: &Value) -> Vec<String> {
    let objective = trace
        .get("task")
        .and_then(|task| str_of(task.get("objective")))
        .unwrap_or_default();
    let kind = |step: &Value| str_of(step.get("type")).unwrap_or_default().to_owned();
    let is_call = |step: &Value| step.get("tool").is_some();
    let tools = steps_of(trace)
        .iter()
        .filter_map(|step| step.get("tool")?.get("name").cloned());
    let tools = Value::from(tools.collect::<Vec<_>>()).to_json();
    let observations = count(trace, |step| kind(step) == "observation");
    let errors = count(trace, |step| kind(step) == "error_recovery" && !is_call(step));
    let texts = steps_of(trace)
        .iter()
        .filter_map(|step| str_of(step.get("content")));
    let text = texts.fold(objective.to_owned(), |all, text| all + "\n" + text);
    let mut differences = Vec::new();
    for (name, value) in expected.as_object().unwrap() {
        let number = number_of(Some(value)).unwrap_or_default();
        let is_right = match name.as_str() {
            "objective" => value.as_str() == Some(objective),
            "objective_starts" => objective.starts_with(value.as_str().unwrap()),
            "calls" => value.to_json() == tools,
            "servers" => {
                let servers = steps_of(trace)
                    .iter()
                    .filter_map(|step| step.get("tool")?.get("mcp_server").cloned());
                *value == Value::from(servers.collect::<Vec<_>>())
            }
            "observations" => observations == number,
            "errors" => errors == number,
            "observations_plus_errors" => observations + errors == number,
            "metadata" => {
                let about = trace.get("metadata").unwrap();
                let fact = |name: &Text| about.get("imported").unwrap().get(name).or(about.get(name));
                let mut facts = value.as_object().unwrap().iter();
                facts.all(|(name, value)| fact(name).unwrap_or(&Value::Null) == value)
            }
            "success" => trace.get("metadata").and_then(|about| about.get("success")) == Some(value),
            "contains" => {
                for (words, times) in value.as_object().unwrap() {
                    let found = text.matches(words.as_str()).count();
                    if number_of(Some(times)) != Some(u32::try_from(found).unwrap().into()) {
                        differences.push(format!("{words:?} is in it {found} times"));
                    }
                }
                true
            }
            name => panic!("{name} is no expectation"),
        };
        if !is_right {
            let found = format!("{objective:?}, {tools}, {observations} observations, {errors} errors");
            differences.push(format!("{}: {} is not {found}", name, value.to_json()));
        }
    }
    differences
}

#[test]
fn sessions_of_agents_become_the_expected_traces() {
    let mut wrong = Vec::new();
    let mut cases: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    assert!(cases.len() >= 25, "{cases:?}");
    for case in cases {
        let expected = parse_str(&fs::read_to_string(case.join("case.json")).unwrap()).unwrap();
        let files = list_of(expected.get("files")).iter().filter_map(Value::as_text);
        let mut traces = files.flat_map(|file: &Text| read(&case.join(file.as_str())));
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        for expected in list_of(expected.get("traces")) {
            match traces.next() {
                None => wrong.push(format!("{name}: a trace is missing")),
                Some((format, trace)) => {
                    if !format.is_some_and(|format| name.starts_with(format) || name == "roo-native") {
                        wrong.push(format!("{name}: it was read as {format:?}"));
                    }
                    let differences = differences(&trace, expected);
                    wrong.extend(
                        differences
                            .into_iter()
                            .map(|difference| format!("{name}: {difference}")),
                    );
                }
            }
        }
        wrong.extend(traces.map(|(format, _)| format!("{name}: one more trace of {format:?}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The statements fork as the agents do: with names, ids and, in Hermes, times of their own.
#[test]
fn forks_within_a_database_are_earlier_copies() {
    for (recording, fork, sessions, copies_expected) in [
        ("opencode-forks/opencode.db.sql", "", 1, 2.0),
        (
            "goose-sqlite/sessions.db.sql",
            "INSERT INTO sessions SELECT 'fork', name, description, session_type, working_dir, '2026-09-29 08:00:00', updated_at,
                provider_name, model_config_json FROM sessions;
            INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json)
                SELECT 'f' || message_id, 'fork', role, content_json, created_timestamp, metadata_json FROM messages ORDER BY id;",
            1,
            1.0,
        ),
        (
            "hermes-sqlite/new.db.sql",
            "INSERT INTO sessions (id, source, model, model_config, parent_session_id, started_at)
                SELECT 'b', source, model, '{\"_branched_from\": \"h1\"}', id, started_at + 100 FROM sessions WHERE id = 'h1';
            INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, reasoning, active)
                SELECT 'b', role, content, tool_call_id, tool_calls, tool_name, timestamp + 100, reasoning, 1 FROM messages
                WHERE session_id = 'h1' AND active ORDER BY id;",
            2,
            1.0,
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let database = made(&folder().join(recording), &directory, fork);
        let found = copies_in(&[database]);
        let copies: Vec<_> = found.iter().filter_map(copies_of).collect();
        assert_eq!((found.len(), copies), (sessions, vec![copies_expected]), "{recording}");
    }
}

#[test]
fn a_session_in_two_generations_of_tables_is_read_of_those_in_which_it_went_on() {
    for (last, expected) in [
        (1_790_600_003_000_i64, "three entries"),
        (1_790_600_009_000, "Moved."),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let moved = format!(
            "CREATE TABLE session_v2 (id, parent_id, directory, title, version, revert, time_created);
            CREATE TABLE session_message (id, session_id, type, seq, time_created, data);
            INSERT INTO session_v2 VALUES ('ses_1', NULL, '/work/shop', 'Changelog', '2.0.0', NULL, 1790600000000);
            INSERT INTO session_message VALUES ('msg_1', 'ses_1', 'user', 0, 1790600001000, '{{\"text\": \"Write it\"}}'),
                ('msg_2', 'ses_1', 'assistant', 1, {last}, '{{\"content\": [{{\"type\": \"text\", \"text\": \"Moved.\"}}]}}');"
        );
        let database = made(
            &folder().join("opencode-sqlite/opencode.db.sql"),
            &directory,
            &moved,
        );
        let lines: Vec<String> = lines_of_file(&database).unwrap().unwrap().collect();
        let of_it = lines.iter().filter(|line| line.contains("ses_1"));
        let found: Vec<_> = of_it.map(|line| line.contains(expected)).collect();
        assert_eq!(found, [true], "{last}: {lines:?}");
    }
}

/// Reads files as the command does: as one input each, without the runs that others contain.
fn copies_in(files: &[PathBuf]) -> Vec<Value> {
    let files: Vec<String> = files
        .iter()
        .map(|file| file.to_str().unwrap().to_owned())
        .collect();
    let mut items = Vec::new();
    for mut kept in groups(&files) {
        for input in mem::take(&mut kept.inputs) {
            let path = Path::new(&input[0]);
            let mut records = Records::default();
            records.push(&lines_in(path)).unwrap();
            records.finish().unwrap();
            let file = Some(path.into());
            let mut reader = TraceReader::new(Settings {
                file,
                ..Settings::default()
            });
            let mut runs: Vec<_> = records.flat_map(|record| reader.read(record)).collect();
            runs.extend(reader.end());
            items.extend(
                runs.into_iter()
                    .filter_map(|run| kept.take(run, input[0].clone())),
            );
        }
        items.extend(kept.end());
    }
    let built = items.into_iter().flat_map(|(run, _)| run.build());
    built
        .map(|item| match item.content {
            Content::Read(trace) => trace,
            content => panic!("{content:?}"),
        })
        .collect()
}

fn copies_of(trace: &Value) -> Option<f64> {
    number_of(trace.at(&["metadata", "imported", EARLIER_COPIES]))
}

#[test]
fn a_session_that_two_files_hold_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, lines: &[Json]| {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(
            &path,
            lines.iter().map(|line| format!("{line}\n")).collect::<String>(),
        )
        .unwrap();
        path
    };
    let meta = |id: &str, of: Option<&str>| json!({ "type": "session_meta", "payload": { "id": id, "forked_from_id": of } });
    let said = |time: &str, role: &str, text: &str| {
        let content =
            json!([{ "type": if role == "user" { "input_text" } else { "output_text" }, "text": text }]);
        json!({ "timestamp": time, "type": "response_item", "payload": { "type": "message", "role": role, "content": content } })
    };
    let (then, now) = ("2026-10-01T09:00:00Z", "2026-10-02T09:00:00Z");
    let forked = [
        // A fork repeats what its parent has said, at its own time.
        file(
            "rollout-2026-10-01T09-00-00-019fc0de-0000-7000-8000-000000000001.jsonl",
            &[
                meta("a", None),
                said(then, "user", "Mend it"),
                said(then, "assistant", "Mended."),
            ],
        ),
        file(
            "rollout-2026-10-02T09-00-00-019fc0de-0000-7000-8000-000000000002.jsonl",
            &[
                meta("b", Some("a")),
                meta("a", None),
                said(now, "user", "Mend it"),
                said(now, "assistant", "Mended."),
                meta("b", Some("a")),
                said(now, "user", "Paint it"),
                said(now, "assistant", "Painted."),
            ],
        ),
    ];
    let request =
        json!({ "requestId": "r", "message": { "text": "Mend it" }, "response": [{ "value": "Mended." }] });
    let chat = json!({ "version": 3, "requesterUsername": "ida", "responderUsername": "GitHub Copilot", "sessionId": "c", "requests": [request] });
    // VS Code keeps the object when it goes on with a log of mutations.
    let moved = [
        file("chatSessions/c.json", slice::from_ref(&chat)),
        file("chatSessions/c.jsonl", &[json!({ "kind": 0, "v": chat })]),
    ];
    let recording = folder().join("goose-sqlite/sessions.db.sql");
    let database = made(&recording, &directory, "");
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let imported = [
        database,
        file(
            "sessions/20260928_1.jsonl",
            &[
                json!({ "working_dir": "/work/shop", "description": "Port", "message_count": 2 }),
                json!({ "role": "user", "created": 1_790_600_000, "content": text("Which port does the server use?") }),
                json!({ "role": "assistant", "created": 1_790_600_000, "content": text("The server uses port 8081.") }),
            ],
        ),
    ];
    let row = |role: &str, text: &str| json!({ "role": role, "content": text, "timestamp": then });
    // The file of an older Hermes does not name its session, but by its own name.
    let migrated = [
        made(
            &folder().join("hermes-sqlite/new.db.sql"),
            &directory,
            "DELETE FROM messages; DELETE FROM sessions;
            INSERT INTO sessions (id, source, started_at) VALUES ('20260301_120000_aa', 'cli', 1790600000.0);
            INSERT INTO messages (session_id, role, content, timestamp) VALUES ('20260301_120000_aa', 'user', 'Mend it', 1790600001.0),
                ('20260301_120000_aa', 'assistant', 'Mended.', 1790600002.0)",
        ),
        file(
            "m/sessions/20260301_120000_aa.jsonl",
            &[
                row("session_meta", ""),
                row("user", "Mend it"),
                row("assistant", "Mended."),
            ],
        ),
    ];
    let kiro = made(
        &folder().join("kiro-sqlite/data.sqlite3.sql"),
        &directory,
        "DELETE FROM conversations",
    );
    let prompt = |kind: &str, id: &str, text: &str| {
        let data = json!({ "message_id": id, "content": [{ "kind": "text", "data": text }] });
        json!({ "version": "v1", "kind": kind, "data": data })
    };
    let turns = (0..8).flat_map(|turn| {
        let id = |role| format!("0a1b2c3d-{role}-{turn}");
        [
            prompt("Prompt", &id("user"), "Rotate the logs"),
            prompt("AssistantMessage", &id("agent"), "Done."),
        ]
    });
    // Kiro goes on in a file with a conversation of its database.
    let resumed = [kiro, file("sessions/cli/kq.jsonl", &turns.collect::<Vec<_>>())];
    for files in [&forked[..], &moved, &imported, &migrated, &resumed] {
        let found = copies_in(files);
        let copies: Vec<_> = found.iter().map(copies_of).collect();
        assert_eq!(copies, [Some(1.0)], "{files:?}");
    }
    // The sub-agent in a file is no copy of the session of the same name in another one.
    let row = |id: &str, parent: Option<&str>, agent: Option<&str>, role: &str| {
        let message = json!({ "role": role, "content": [{ "type": "text", "text": id }] });
        json!({ "type": role, "uuid": id, "parentUuid": parent, "sessionId": "s", "agentId": agent, "isSidechain": agent.is_some(), "message": message })
    };
    let rows = [
        row("0a1b2c3d-user", None, None, "user"),
        row("0a1b2c3d-agent", Some("0a1b2c3d-user"), None, "assistant"),
        row("0a1b2c3d-task", None, Some("a"), "user"),
        row("0a1b2c3d-done", Some("0a1b2c3d-task"), Some("a"), "assistant"),
    ];
    let found = copies_in(&[file("s.jsonl", &rows), file("s.jsonl.old", &rows)]);
    let copies: Vec<_> = found.iter().map(copies_of).collect();
    assert_eq!(copies, [Some(1.0), Some(1.0)]);
    let header = |kind: &str, messages: Option<&Json>| json!({ "sessionId": "g", "projectHash": "h", "startTime": then, "kind": kind, "messages": messages });
    let message = |kind: &str, id: &str| json!({ "id": id, "timestamp": then, "type": kind, "content": id });
    let task = json!([message("user", "t"), message("gemini", "u")]);
    let found = copies_in(&[
        file(
            "chats/g.jsonl",
            &[header("main", None), message("user", "a"), message("gemini", "b")],
        ),
        file("chats/g.json", &[header("subagent", Some(&task))]),
    ]);
    let copies: Vec<_> = found.iter().map(copies_of).collect();
    assert_eq!(copies, [None, None]);
}

/// Returns a value with one thing within it changed, for each thing to so many levels.
fn changed(value: &Value, levels: usize) -> Vec<Value> {
    let mut all: Vec<Value> = vec![7.0.into(), "x".into(), Vec::new().into()];
    match value {
        Value::Object(fields) if levels > 0 => {
            for (name, inner) in fields {
                all.extend(changed(inner, levels - 1).into_iter().map(|inner| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), inner);
                    fields.into()
                }));
            }
        }
        Value::Array(list) if levels > 0 => {
            for (at, inner) in list.iter().enumerate().take(2) {
                all.extend(changed(inner, levels - 1).into_iter().map(|inner| {
                    let mut list = list.clone();
                    list[at] = inner;
                    list.into()
                }));
            }
        }
        _ => {}
    }
    all
}

#[test]
fn changed_sessions_are_read_without_a_panic() {
    let mut count = 0;
    for case in fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()) {
        let expected = parse_str(&fs::read_to_string(case.join("case.json")).unwrap()).unwrap();
        for file in list_of(expected.get("files")).iter().filter_map(Value::as_str) {
            let path = case.join(file);
            let mut records = Records::default();
            records.push(&bytes_of(&path)).unwrap();
            records.finish().unwrap();
            let values: Vec<Value> = records.map(|record| record.content.unwrap()).collect();
            for at in 0..values.len() {
                for value in changed(&values[at], 5) {
                    let mut reader = TraceReader::new(Settings {
                        file: Some(path.clone()),
                        ..Settings::default()
                    });
                    let before = values[..at].iter().rev().take(1).rev().cloned();
                    let after = values[at + 1..].iter().take(1).cloned();
                    let all = before.chain([value]).chain(after);
                    let mut items: Vec<_> = all
                        .flat_map(|value| {
                            let content = Ok(value);
                            reader.read(Record {
                                place: Place {
                                    size: 1,
                                    ..Place::default()
                                },
                                content,
                            })
                        })
                        .collect();
                    items.extend(reader.end());
                    for item in items {
                        drop(item.build());
                        count += 1;
                    }
                }
            }
        }
    }
    assert!(count > 1000, "{count}");
}

#[test]
fn format_of_leaves_records_that_look_like_those_of_agents_to_others() {
    for json in [
        r#"{"version":1,"messages":[]}"#,
        r#"{"version":1,"messages":["a","b"]}"#,
        r#"{"info":{"id":"a"},"messages":[]}"#,
        r#"{"sessionId":"a","history":[]}"#,
        r#"{"sessionId":"a","agent":"b","messages":[{"role":"user","content":"Hi"}]}"#,
        r#"{"role":"user","created":5,"content":[{"type":"text","text":"Hi"}]}"#,
        r#"{"role":"user","content":[{"type":"text","text":"<task>Fix it</task>"}]}"#,
        r#"{"type":"user.created","data":{"id":5},"id":"a","time":"2026-09-28"}"#,
        r#"{"type":"config.update","value":5}"#,
        r#"{"type":"system","content":"You are helpful"}"#,
        r#"{"messages":[{"role":"user","parts":[{"type":"text","text":"Hi"},{"type":"data-weather","data":{}}]}]}"#,
        r#"{"kind":1,"v":5}"#,
        r#"{"kind":"user","text":"Hi"}"#,
        r#"{"id":"T-1","messages":"none"}"#,
        r#"{"source":"MODEL","content":"Hi"}"#,
        r#"{"trace_id":"a","span_id":"b"}"#,
        r#"{"attributes":{},"name":"a"}"#,
        r#"{"type":"user","content":"Hi"}"#,
        r#"{"type":"click","sessionId":"a","page":"/"}"#,
        r#"{"type":"system","session_id":"a","cwd":"/","text":"Hi"}"#,
        r#"{"type":"user","uuid":"a","message":"Hi"}"#,
        r#"{"type":"message","role":"user","text":"Hi"}"#,
        r#"{"type":"tool_result","session_id":"a","tool_call":5}"#,
    ] {
        let format = FormatName::of(&parse_str(json).unwrap(), None);
        let is_of_agent = format.is_some_and(FormatName::is_of_sessions);
        assert!(!is_of_agent, "{json} is of {format:?}");
    }
}

#[test]
fn format_of_leaves_parts_of_agents_to_no_format() {
    for json in [
        r#"{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"reasoning","text":"Look.","time":{"start":1}}"#,
        r#"{"type":"tool_call","toolCallId":"c1","toolName":"Shell","parameters":{"command":"ls"}}"#,
        r#"{"type":"message","id":"a","text":"Hi"}"#,
    ] {
        assert_eq!(FormatName::of(&parse_str(json).unwrap(), None), None, "{json}");
    }
}
