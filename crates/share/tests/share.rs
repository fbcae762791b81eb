//! Sessions become folders, and the folders are read as the same traces.

#![allow(clippy::unwrap_used)] // Also outside the test functions.

use std::{
    cell::Cell,
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use flate2::read::DeflateDecoder;
use knowledgepulse_clean::{CleanOptions, Cleaner};
use knowledgepulse_error::Error;
use knowledgepulse_formats::{
    FormatName,
    reader::{Content, Settings as Reading, TraceReader},
};
use knowledgepulse_index::{memory::Memory, method::Method, options::MemoryOptions};
use knowledgepulse_json::{Value, json_object, parse_str};
use knowledgepulse_score::engine::Engine;
use knowledgepulse_share::{
    CARD, Entry, Files, Folder, Form, Log, MANIFEST, Manifest, Published, Quality, Session, SessionNames,
    Set, Settings, Zip, logs, share,
};
use knowledgepulse_trace::roles::{Role, roles_of};
use rawzip::ZipArchive;
use sha2::{Digest, Sha256};

/// The files of a folder in memory.
#[derive(Default)]
struct Shelf {
    files: BTreeMap<String, String>,
    last: String,
}

impl Files for Shelf {
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        if self.last != name {
            assert!(self.files.insert(name.into(), String::new()).is_none(), "{name}");
            self.last = name.into();
        }
        let text = std::str::from_utf8(bytes).unwrap();
        self.files.get_mut(&self.last).unwrap().push_str(text);
        Ok(())
    }
}

/// Reads a text as a file of this name.
fn read(name: &str, text: &str) -> Vec<(FormatName, Value)> {
    let reader = TraceReader::new(Reading {
        file: Some(name.into()),
        ..Reading::default()
    });
    let items = reader.read_all(text.as_bytes()).unwrap();
    let traces = items.into_iter().filter_map(|item| {
        let trace = match item.content {
            Content::Read(trace) => trace,
            _ => return None,
        };
        Some((item.format?, trace))
    });
    traces.collect()
}

/// Makes sessions of all traces of a file.
fn sessions_of(name: &str, text: &str) -> Vec<Session<'static>> {
    let traces = read(name, text).into_iter().zip(1..);
    let session = |((format, trace), rank): ((FormatName, Value), u64)| {
        let text = text.to_owned();
        Session {
            log: Log {
                name: name.into(),
                text: Some(Box::new(move || Ok(text.clone()))),
                format,
                trace: Box::new(move || Ok(trace.clone())),
                outcome: None,
            },
            subagents: Vec::new(),
            rank,
            reason: "coverage".into(),
            stands_for: 3,
            replaces: None,
        }
    };
    traces.map(session).collect()
}

const ALL: CleanOptions = CleanOptions {
    identifiers: true,
    strict: true,
};

fn quality(engine: &Engine) -> Quality<'_> {
    Quality::beside(engine, Memory::new(Method::Lexical, MemoryOptions::default()))
}

fn shared_into(files: &mut dyn Files, sessions: &[Session], form: Form, options: CleanOptions) -> Manifest {
    let engine = Engine::default();
    let settings = Settings {
        form,
        cleaner: &Cleaner::new(options),
        quality: &quality(&engine),
        chosen: "all of them".into(),
        program: "kp-score 0.0.0".into(),
    };
    share(Set::default(), &[], sessions, &settings, files, &|_| true).unwrap()
}

fn shared_as(sessions: &[Session], form: Form, options: CleanOptions) -> (Shelf, Manifest) {
    let mut shelf = Shelf::default();
    let manifest = shared_into(&mut shelf, sessions, form, options);
    (shelf, manifest)
}

fn file_of(entry: &Entry) -> &str {
    entry.rows[0].get("file").and_then(Value::as_str).unwrap()
}

fn lines_left_out(entry: &Entry) -> f64 {
    entry
        .about
        .get("lines_left_out")
        .and_then(Value::as_number)
        .unwrap()
}

/// Returns the text of the only session.
fn only(shelf: &Shelf) -> &String {
    let mut sessions = shelf
        .files
        .iter()
        .filter(|(name, _)| name.starts_with("sessions/"));
    sessions.next().unwrap().1
}

fn shared(name: &str, text: &str) -> (Shelf, Manifest) {
    shared_as(&sessions_of(name, text), Form::Native, ALL)
}

const CLAUDE: &str = concat!(
    r#"{"type":"summary","summary":"Fix the login"}"#,
    "\n",
    r#"{ "type" : "user", "sessionId":"5b1f6e0a-0000-4000-8000-000000000001","uuid":"a1","parentUuid":null, "cwd":"/home/zorblax/acme","timestamp":"2026-10-01T09:00:00.000Z","message":{"role":"user","content":"Mail caf\u00e9 to bob@example.com, 1.50 \ud83d\ude00"},"n":1.0}"#,
    "\r\n\n",
    r#"{"type":"assistant","sessionId":"5b1f6e0a-0000-4000-8000-000000000001","uuid":"a2","parentUuid":"a1","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"toolu_0000000001","name":"Bash","input":{"command":"ls /home/zorblax/acme"}}]}}"#,
    "\n",
    r#"{"type":"user","sessionId":"5b1f6e0a-0000-4000-8000-000000000001","uuid":"a3","parentUuid":"a2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0000000001","content":"zorblax wrote it"}]}}"#,
    "\n",
    r#"{"type":"assist"#,
);

/// Returns a session of Claude Code with one more record.
fn with_record(record: &str) -> String {
    let session = CLAUDE.rsplit_once('\n').unwrap().0;
    format!("{session}\n{record}\n")
}

#[test]
fn share_leaves_out_pieces_of_messages_and_documents() {
    let pieces = [
        r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"text":"ghp_half"}}}"#,
        r#"{"type":"event_msg","payload":{"type":"agent_message_delta","delta":"half"}}"#,
        r#"{"type":"message_update","message":{"role":"assistant","content":"half"}}"#,
    ];
    let letters = "QUJD".repeat(40);
    let document = |kind: &str, data: &str| {
        format!(
            r#"{{"type":"{kind}","source":{{"type":"base64","media_type":"{data}","data":"{letters}"}}}}"#
        )
    };
    let content = [
        document("document", "application/pdf"),
        document("document", "text/plain"),
        format!(r#"{{"type":"text","text":"data:text/csv;base64,{letters}"}}"#),
        format!(r#"{{"type":"text","text":"JVBERi0{letters}"}}"#),
        format!(r#"{{"type":"text","text":"{}"}}"#, "QUJD".repeat(40_000)),
        document("image", "image/png"),
        format!(r#"{{"type":"image","file":{{"type":"image/png","base64":"iVBORw0KGgo{letters}"}}}}"#),
    ];
    let record = format!(
        r#"{{"type":"user","message":{{"content":[{}]}}}}"#,
        content.join(",")
    );
    let (shelf, manifest) = shared(
        "a.jsonl",
        &with_record(&[&pieces[..], &[&record]].concat().join("\n")),
    );
    let text = only(&shelf);
    assert_eq!(text.matches("[REDACTED:document]").count(), 7);
    assert_eq!(
        (text.matches("half").count(), text.matches(&letters).count()),
        (0, 0)
    );
    let entry = &manifest.entries[0];
    assert_eq!((lines_left_out(entry), entry.redactions["document"]), (3.0, 7));
}

#[test]
fn share_leaves_what_the_agent_said_before_the_user_before_it_and_names_all_models() {
    let message = |role: &str, text: &str| format!(r#"{{"role":"{role}","content":"{text}"}}"#);
    let messages = [
        message("assistant", "GREETING"),
        message("user", "Explain the borrow checker"),
        message("assistant", "It checks borrows"),
    ];
    let chat = format!(r#"{{"id":"n","messages":[{}]}}"#, messages.join(","));
    for form in [Form::Native, Form::Messages, Form::Atif] {
        let (shelf, _) = shared_as(&sessions_of("a.jsonl", &chat), form, ALL);
        let is_of_session = |name: &str| name.starts_with("sessions/") || name == "messages.jsonl";
        let written = shelf.files.iter().filter(|(name, _)| is_of_session(name));
        let written: String = written.map(|(_, text)| text.as_str()).collect();
        let places = ["GREETING", "Explain", "It checks"].map(|words| written.find(words).unwrap());
        assert!(places.is_sorted(), "{form:?}: {written}");
    }
    let second = r#"{"type":"assistant","sessionId":"5b1f6e0a-0000-4000-8000-000000000001","uuid":"a4","parentUuid":"a2","message":{"id":"m2","model":"two","role":"assistant","content":"Done"}}"#;
    let text = with_record(second).replace(r#""id":"m1","#, r#""id":"m1","model":"one","#);
    let (_, manifest) = shared("a.jsonl", &text);
    let model = manifest.entries[0].about.get("model").and_then(Value::as_str);
    assert_eq!(model, Some("one, two"));
}

#[test]
fn share_leaves_out_a_session_that_is_nested_too_deeply() {
    let deep = format!(r#"{{"a":{}"\u0067hp_"{}}}"#, "[".repeat(400), "]".repeat(400));
    let (shelf, manifest) = shared("a.jsonl", &with_record(&deep));
    assert!(!shelf.files.keys().any(|name| name.starts_with("sessions/")));
    assert!(manifest.left_out[0].1.contains("nested deeper than 256 levels"));
}

#[test]
fn share_names_no_file_like_a_device_of_windows() {
    let trace = r#"{"@type":"ReasoningTrace","metadata":{"success":true},"task":{"objective":"con"},"steps":[{"type":"thought","content":"NUL"}],"outcome":{"confidence":0.5}}"#;
    let (_, manifest) = shared("t.jsonl", trace);
    assert_eq!(file_of(&manifest.entries[0]), "sessions/session-con.jsonl");
}

#[cfg(unix)]
#[test]
fn add_subagents_adds_regular_files_that_are_sessions_in_the_folder_of_its_name() {
    use std::os::unix::{fs::symlink, net::UnixListener};
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    fs::create_dir_all(path("s/subagents")).unwrap();
    fs::create_dir_all(path("s/tool-results")).unwrap();
    let named = r#"{"type":"user","sessionId":"s","message":{"role":"user","content":"Look"}}"#;
    for name in [
        "s.jsonl",
        "private.jsonl",
        "s/subagents/agent-1.jsonl",
        "s/tool-results/agent-6.jsonl",
    ] {
        fs::write(path(name), named).unwrap();
    }
    fs::write(path("s/subagents/agent-2.jsonl"), "{\"private\":1}\n").unwrap();
    symlink(path("private.jsonl"), path("s/subagents/agent-3.jsonl")).unwrap();
    symlink("/dev/zero", path("s/subagents/agent-4.jsonl")).unwrap();
    let _socket = UnixListener::bind(path("s/subagents/agent-5.jsonl")).unwrap();
    let with_subagents = |name: &str| {
        let mut files = vec![path(name).display().to_string()];
        logs::add_subagents(&mut files);
        let folder = format!("{}/", home.path().display());
        files
            .iter()
            .map(|file| file.replace(&folder, ""))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        with_subagents("s.jsonl"),
        ["s.jsonl", "s/subagents/agent-1.jsonl"]
    );
    fs::write(path("t.jsonl"), named).unwrap();
    symlink(path("s"), path("t")).unwrap();
    assert_eq!(with_subagents("t.jsonl"), ["t.jsonl"]);
}

#[test]
fn share_keeps_every_byte_of_records_without_redactions_and_leaves_out_broken_lines() {
    let (shelf, manifest) = shared("/home/zorblax/.claude/projects/-acme/5b1f6e0a.jsonl", CLAUDE);
    let broken = CLAUDE.rfind('{').unwrap();
    let redacted = CLAUDE[..broken]
        .replace("\r\n\n", "\r\n")
        .replace("bob@example.com", "[REDACTED:email-1]")
        .replace("/home/zorblax/acme", "/home/user-1/acme")
        .replace("zorblax", "user-1");
    let lines = redacted.split_inclusive('\n').map(|line| {
        let is_redacted = line.contains("REDACTED") || line.contains("user-1");
        let json = line.trim_end();
        match is_redacted {
            true => parse_str(json).unwrap().to_json() + &line[json.len()..],
            false => line.to_owned(),
        }
    });
    let expected: String = lines.collect();
    assert_eq!(*only(&shelf), expected);
    let entry = &manifest.entries[0];
    assert_eq!(lines_left_out(entry), 1.0);
    let redactions: Vec<_> = entry
        .redactions
        .iter()
        .map(|(kind, count)| (kind.as_str(), *count))
        .collect();
    assert_eq!(redactions, [("email", 1), ("filepath", 2), ("user", 1)]);
}

#[test]
fn share_writes_a_manifest_with_rank_reason_outcome_redactions_and_places() {
    let text = CLAUDE.replace("Mail caf", "Ship to via Garibaldi 7, mail caf");
    let (shelf, _) = shared("s.jsonl", &text);
    let entry = parse_str(shelf.files[MANIFEST].trim()).unwrap();
    let json = |name: &str| entry.get(name).unwrap().to_json();
    for (name, expected) in [
        ("rank", "1"),
        ("subagents", "[]"),
        ("agent", "\"claude-code\""),
        ("created_at", "\"2026-10-01T09:00:00.000Z\""),
        ("objective", "\"\""),
        ("steps", "2"),
        ("reason", "\"coverage\""),
        ("stands_for", "3"),
        ("success", "null"),
        ("redactions", r#"{"email":1,"filepath":2,"user":1}"#),
    ] {
        assert_eq!(json(name), expected, "{name}");
    }
    let review = json("review");
    assert!(
        review.ends_with(r#".jsonl","line":2,"field":".message.content"}]"#),
        "{review}"
    );
    assert!(!shelf.files[MANIFEST].contains("Garibaldi"));
}

#[test]
fn share_names_no_project_of_a_session_in_the_home_folder() {
    for (folder, project) in [("/home/zorblax", "null"), ("/home/zorblax/acme", "\"acme\"")] {
        let (shelf, _) = shared("s.jsonl", &CLAUDE.replace("/home/zorblax/acme", folder));
        let entry = parse_str(shelf.files[MANIFEST].trim()).unwrap();
        assert_eq!(entry.get("project").unwrap().to_json(), project);
    }
}

#[test]
fn card_sums_what_the_manifest_says_of_evidence_tools_outcomes_and_places() {
    let text = CLAUDE.replace("Mail caf", "Ship to via Garibaldi 7, mail caf");
    let text = text
        .replace("ls /home/zorblax/acme", "git commit -m x")
        .replace("zorblax wrote it", "[main 1a2b3c4] x");
    let mut sessions = sessions_of("s.jsonl", &text);
    sessions[0].log.outcome = Some((true, 0.9));
    let (shelf, _) = shared_as(&sessions, Form::Messages, ALL);
    let card = &shelf.files[CARD];
    for row in [
        "| observed: committed | 1 |",
        "| tools inferred | 1 |",
        "| outcome told by the user | 1 |",
        "| places that look like names or addresses, told in `review` | 1 |",
    ] {
        assert!(card.contains(row), "{row}: {card}");
    }
}

#[test]
fn share_leaves_no_identity_in_names_card_or_manifest() {
    let (shelf, _) = shared(
        "/home/zorblax/logs/zorblax-bob@example.com fix.v2.jsonl.gz",
        CLAUDE,
    );
    let names: Vec<_> = shelf.files.keys().collect();
    assert_eq!(names.len(), 3);
    assert!(
        names[2].starts_with("sessions/2026-10-01-mail-café-to-1-50-"),
        "{names:?}"
    );
    for (name, text) in &shelf.files {
        assert!(
            !text.contains("zorblax") && !text.contains("bob@"),
            "{name}: {text}"
        );
    }
}

#[test]
fn share_writes_lines_that_python_reads() {
    let text = CLAUDE.replace(
        "zorblax wrote it",
        "a\u{2028}b\u{85}c \\ud83d \\\\ud83d \\ude00\\ud83d\\ude00",
    );
    let mut sessions = sessions_of("s.jsonl", &text);
    sessions[0].log.outcome = Some((true, 0.9));
    let (shelf, _) = shared_as(&sessions, Form::Knowledgepulse, ALL);
    assert!(shelf.files["units.jsonl"].contains(r"a\u2028b\u0085c"));
    let (shelf, _) = shared("s.jsonl", &text);
    let text = only(&shelf);
    assert!(
        text.contains(r"a\u2028b\u0085c \ufffd \\ud83d \ufffd\ud83d\ude00"),
        "{text}"
    );
}

#[test]
fn share_converts_sessions_that_datasets_does_not_recognise() {
    let start = r#"{"type":"session_start","id":"d1","cwd":"/work"}"#;
    let turn = r#"{"type":"message","id":"1","message":{"role":"user","content":"Fix it"}}"#;
    let reply = turn.replace("user", "assistant").replace("\"1\"", "\"2\"");
    let text = format!("{start}\n{turn}\n{reply}\n");
    let (shelf, _) = shared("new.jsonl", &text.replace("\"cwd\"", "\"version\":2,\"cwd\""));
    assert!(only(&shelf).starts_with(r#"{"type":"session_start""#));
    // `teich` takes a session without a version for one of Pi.
    let (shelf, _) = shared("old.jsonl", &text);
    let converted = only(&shelf);
    assert!(
        converted.starts_with(r#"{"type":"session","version":3,"#),
        "{converted}"
    );
    assert!(converted.contains(r#""harness":"droid""#), "{converted}");
}

#[test]
fn a_converted_session_is_read_back_with_its_outcome() {
    for outcome in [
        r#""success":true,"confidence":0.5"#,
        r#""success":false,"confidence":0.25"#,
    ] {
        let turns = r#"{"role":"user","content":"Fix it"},{"role":"assistant","content":"Done"}"#;
        let (shelf, _) = shared("chat.jsonl", &format!("{{\"messages\":[{turns}],{outcome}}}\n"));
        let back = sessions_of("back.jsonl", only(&shelf));
        let (shelf, _) = shared_as(&back, Form::Messages, ALL);
        let rows = &shelf.files["messages.jsonl"];
        assert!(rows.contains(outcome), "{rows}");
    }
}

#[test]
fn share_as_messages_has_the_tools_that_a_chat_records_or_else_those_that_it_calls() {
    let row = |tools: &str| {
        let call = r#"{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"{\"path\":\"a\"}"}}]}"#;
        let turns = r#"{"role":"user","content":"What is here?"},"#.to_owned() + call;
        let result = r#"{"role":"tool","tool_call_id":"c","content":"b"}"#;
        format!(
            "{{{tools}\"messages\":[{turns},{result},{{\"role\":\"assistant\",\"content\":\"There is b.\"}}]}}\n"
        )
    };
    let recorded = r#""tools":[{"type":"function","function":{"name":"ls","description":"Lists files"}},{"type":"function","function":{"name":"rm"}}],"#;
    for (tools_before, described, told) in [
        (recorded, ["ls: Lists files", "rm: "].as_slice(), "recorded"),
        ("", &["ls: "], "inferred"),
    ] {
        let (shelf, manifest) = shared_as(
            &sessions_of("chat.jsonl", &row(tools_before)),
            Form::Messages,
            ALL,
        );
        let line = parse_str(&shelf.files["messages.jsonl"]).unwrap();
        let tools = line.get("tools").and_then(Value::as_array).unwrap().iter();
        let text = |tool: &Value, name| tool.at(&["function", name]).unwrap().as_str().unwrap().to_owned();
        let found: Vec<_> = tools
            .map(|tool| format!("{}: {}", text(tool, "name"), text(tool, "description")))
            .collect();
        assert_eq!(found, described);
        assert_eq!(manifest.lines()[0].get("tools"), Some(&told.into()));
        // The Simple Format has no place for definitions, and a trajectory has those of the log.
        let is_recorded = told == "recorded";
        for (form, has_place) in [(Form::Native, false), (Form::Atif, is_recorded)] {
            let (shelf, manifest) = shared_as(&sessions_of("chat.jsonl", &row(tools_before)), form, ALL);
            let in_manifest = manifest.lines()[0].get("tools") == Some(&"recorded".into());
            let in_file = only(&shelf).contains("Lists files");
            assert_eq!((in_manifest, in_file), (has_place, has_place), "{form:?}");
        }
    }
}

/// Returns a session of Claude Code with a sub-agent in a file of its own, and one in its own file.
fn session_with_subagents() -> Vec<Session<'static>> {
    let of_subagent = |id: &str| {
        let fields = format!("\"isSidechain\":true,\"agentId\":\"{id}\",\"uuid\":\"{id}-");
        CLAUDE
            .replace("\"uuid\":\"", &fields)
            .replace("\"parentUuid\":\"", &format!("\"parentUuid\":\"{id}-"))
            .replace("Mail caf", &format!("Task {id}: mail caf"))
    };
    let text = CLAUDE.rsplit_once('\n').unwrap().0.to_owned() + "\n" + &of_subagent("within");
    let mut sessions = sessions_of("s.jsonl", &text);
    assert_eq!(sessions.len(), 2);
    let within = sessions.pop().unwrap();
    let mut beside = sessions_of("s/subagents/agent-beside.jsonl", &of_subagent("beside"));
    sessions[0].subagents = vec![within.log, beside.pop().unwrap().log];
    sessions
}

#[test]
fn share_gives_each_subagent_a_row_that_the_manifest_names() {
    for form in Form::ALL {
        let mut sessions = session_with_subagents();
        let session = &mut sessions[0];
        let logs = std::iter::once(&mut session.log).chain(&mut session.subagents);
        logs.for_each(|log| log.outcome = Some((true, 0.9)));
        let (shelf, manifest) = shared_as(&sessions, *form, ALL);
        assert_eq!(manifest.left_out, []);
        let line = parse_str(shelf.files[MANIFEST].trim()).unwrap();
        let rows: Vec<&Value> = std::iter::once(&line)
            .chain(line.get("subagents").unwrap().as_array().unwrap())
            .collect();
        // In its own format the file has one of them.
        assert_eq!(rows.len(), if *form == Form::Native { 2 } else { 3 }, "{form:?}");
        for (at, row) in rows.iter().enumerate() {
            let [file, id] = ["file", "session_id"].map(|name| row.get(name).unwrap().as_str().unwrap());
            let text = &shelf.files[file];
            let is_row = |line: &&str| line.contains(&format!("\"{id}\""));
            let text = match form {
                Form::Messages | Form::Knowledgepulse => text.lines().find(is_row).unwrap(),
                Form::Native | Form::Atif => {
                    assert_eq!(at > 0, file.contains("/subagents/2026-10-01-task-"), "{file}");
                    text
                }
            };
            assert!(text.contains(&format!("\"{id}\"")), "{form:?} {id}: {text}");
            let is_of_subagent = text.contains("Task ");
            assert!(is_of_subagent == (at > 0) || *form == Form::Native, "{text}");
        }
        let count = format!("1 session, {} with sub-agents, each a row", rows.len());
        assert!(shelf.files[CARD].contains(&count), "{}", shelf.files[CARD]);
    }
}

#[test]
fn share_converts_a_file_with_several_sessions() {
    let other = CLAUDE
        .replace("5b1f6e0a", "6c206f1b")
        .replace("\"uuid\":\"", "\"uuid\":\"b")
        .replace("\"parentUuid\":\"", "\"parentUuid\":\"b");
    let text = CLAUDE.rsplit_once('\n').unwrap().0.to_owned() + "\n" + &other;
    let mut sessions = sessions_of("s.jsonl", &text);
    assert_eq!(sessions.len(), 2);
    sessions.truncate(1);
    let (shelf, manifest) = shared_as(&sessions, Form::Native, ALL);
    // The other one was not chosen.
    assert!(only(&shelf).starts_with(r#"{"type":"session","version":3,"#));
    assert_eq!(manifest.entries[0].rows.len(), 1);
}

#[test]
fn share_names_files_by_date_objective_and_id_and_no_two_alike() {
    let mut sessions = sessions_of("a/events.jsonl", CLAUDE);
    sessions.append(&mut sessions_of("b/Events.jsonl", CLAUDE));
    let (shelf, manifest) = shared_as(&sessions, Form::Native, ALL);
    let names: Vec<_> = manifest.entries.iter().map(file_of).collect();
    let start = "sessions/2026-10-01-mail-café-to-1-50-";
    assert!(names[0].starts_with(start), "{names:?}");
    assert_eq!(*names[1], names[0].replace(".jsonl", "-2.jsonl"));
    assert!(names.iter().all(|name| shelf.files.contains_key(*name)));
}

#[test]
fn share_writes_units_of_known_outcome_only_and_counts_the_others() {
    let mut sessions = sessions_of("a.jsonl", CLAUDE);
    let (_, manifest) = shared_as(&sessions, Form::Knowledgepulse, ALL);
    assert_eq!(
        manifest.left_out,
        [("a.jsonl".into(), "its outcome is not known".into())]
    );
    sessions[0].log.outcome = Some((true, 0.9));
    let (shelf, manifest) = shared_as(&sessions, Form::Knowledgepulse, ALL);
    assert_eq!(manifest.left_out, []);
    let unit = parse_str(shelf.files["units.jsonl"].trim()).unwrap();
    let metadata = unit.get("metadata").unwrap();
    assert_eq!(metadata.get("success").unwrap().as_bool(), Some(true));
    assert_eq!(metadata.get("visibility").unwrap().as_str(), Some("network"));
    assert!(metadata.get("imported").is_none());
    assert_eq!(
        unit.get("outcome")
            .unwrap()
            .get("confidence")
            .unwrap()
            .as_number(),
        Some(0.9)
    );
}

/// A trace that is a unit, but for the score that it has not got.
fn unit(id: u32, objective: &str, score: f64) -> String {
    format!(
        r#"{{"@context":"https://openknowledgepulse.org/schema/v1","@type":"ReasoningTrace","id":"kp:trace:{id}","metadata":{{"created_at":"2026-01-01T00:00:00Z","task_domain":"code","success":true,"quality_score":{score},"visibility":"network","privacy_level":"aggregated"}},"task":{{"objective":"{objective}"}},"steps":[{{"step_id":0,"type":"thought","content":"{objective}"}},{{"step_id":1,"type":"tool_call","content":"run","tool":{{"name":"bash"}}}}],"outcome":{{"result_summary":"","confidence":0.9}}}}"#
    ) + "\n"
}

#[test]
fn share_scores_units_against_those_before_them_and_keeps_scores_that_traces_bring() {
    let text = unit(1, "repair the parser of dates", 0.0)
        + &unit(2, "repair the parser of dates", 0.0)
        + &unit(3, "draw a map of all rivers", 0.0)
        + &unit(4, "translate the menu", 0.625);
    let (shelf, manifest) = shared_as(&sessions_of("t.jsonl", &text), Form::Knowledgepulse, ALL);
    let written: Vec<f64> = shelf.files["units.jsonl"]
        .lines()
        .map(|line| parse_str(line).unwrap())
        .map(|unit| {
            unit.at(&["metadata", "quality_score"])
                .unwrap()
                .as_number()
                .unwrap()
        })
        .collect();
    // What `kp-score score units.jsonl` says, in the same order.
    let engine = Engine::default();
    let again = quality(&engine);
    for (line, score) in shelf.files["units.jsonl"].lines().zip(&written).take(3) {
        assert_eq!(again.of(&parse_str(line).unwrap()).unwrap(), *score);
    }
    assert!(written[1] < written[0] && written[0] < written[2], "{written:?}");
    assert_eq!(written[3], 0.625);
    let in_manifest: Vec<_> = manifest
        .entries
        .iter()
        .filter_map(|entry| entry.rows[0].get("quality_score")?.as_number())
        .collect();
    assert_eq!(in_manifest, written);
}

#[test]
fn share_repairs_units_where_it_can_and_refuses_others_with_a_reason() {
    let trace = |fields: &str| {
        format!(
            r#"{{"@type":"ReasoningTrace","id":"kp:trace:1","metadata":{{"success":true,"created_at":"2026-01-01T01:00:00+01:00"}},"task":{{"objective":"x"}},"steps":[{{"type":"thought","content":null}}],"outcome":{{"confidence":0.5}}{fields}}}"#
        )
    };
    let (shelf, _) = shared_as(
        &sessions_of("t.jsonl", &trace(r#","other":1"#)),
        Form::Knowledgepulse,
        ALL,
    );
    let unit = parse_str(shelf.files["units.jsonl"].trim()).unwrap();
    assert_eq!(
        unit.to_json(),
        concat!(
            r#"{"@context":"https://openknowledgepulse.org/schema/v1","@type":"ReasoningTrace","id":"kp:trace:1","#,
            r#""metadata":{"created_at":"2026-01-01T00:00:00.000Z","task_domain":"default","success":true,"quality_score":0.1,"visibility":"network","privacy_level":"aggregated"},"#,
            r#""task":{"objective":"x"},"steps":[{"step_id":0,"type":"thought"}],"outcome":{"result_summary":"","confidence":0.5}}"#
        )
    );
    for (changed, reason) in [
        (r#","steps":[]"#, "it has no steps"),
        (r#","task":{"objective":""}"#, "it has no objective"),
        (r#","id":"1""#, "its id does not begin with kp:trace:"),
        (
            r#","steps":[{"type":"dream"}]"#,
            "a step has a type that the registry does not know",
        ),
    ] {
        let (_, manifest) = shared_as(
            &sessions_of("t.jsonl", &trace(changed)),
            Form::Knowledgepulse,
            ALL,
        );
        assert_eq!(manifest.left_out[0].1, reason);
    }
}

/// Returns what a conversation has in every format: its objective, and of each step its type, content, tool and input.
fn told(trace: &Value) -> Vec<String> {
    let objective = trace.at(&["task", "objective"]).unwrap().to_json();
    let reasoning = trace
        .at(&["metadata", "imported", "reasoning"])
        .map(Value::to_json);
    let steps = trace.get("steps").unwrap().as_array().unwrap().iter();
    let steps = steps.map(|step| {
        let field = |path: &[&str]| step.at(path).map(Value::to_json).unwrap_or_default();
        let [kind, content, tool, input] =
            [&["type"][..], &["content"], &["tool", "name"], &["input"]].map(field);
        format!("{kind} {content} {tool} {input}")
    });
    [objective, reasoning.unwrap_or_default()]
        .into_iter()
        .chain(steps)
        .collect()
}

/// Returns what is in the turns of a trace, whichever order that has within a turn: messages have the words before the calls.
/// All forms have results `behind` their calls.
fn told_by_turns(trace: &Value, behind: bool) -> Vec<Vec<String>> {
    let mut turns: Vec<(bool, Vec<String>)> = vec![(false, Vec::new())];
    let mut words = |is_agent: bool, text: &str| {
        if turns.last().unwrap().0 != is_agent {
            turns.push((is_agent, Vec::new()));
        }
        let turn = &mut turns.last_mut().unwrap().1;
        turn.extend(text.split_whitespace().map(str::to_owned));
    };
    words(
        false,
        trace
            .at(&["task", "objective"])
            .unwrap()
            .as_str()
            .unwrap_or_default(),
    );
    let (steps, roles) = (trace.get("steps").unwrap().as_array().unwrap(), roles_of(trace));
    let mut order: Vec<_> = (0..steps.len()).collect();
    order.sort_by_key(|&at| match roles[at] {
        Role::Result(Some(call)) if behind => call,
        _ => at,
    });
    for step in order.into_iter().map(|at| &steps[at]) {
        let text = |path: &[&str]| {
            step.at(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let is_agent = text(&["type"]) == "thought" || step.get("tool").is_some();
        words(is_agent, &text(&["content"]));
    }
    let mut turns: Vec<_> = turns.into_iter().map(|(_, words)| words).collect();
    turns.iter_mut().for_each(|words| words.sort());
    turns
}

fn is_same_by_turns(one: &Value, other: &Value, behind: bool) -> bool {
    told_by_turns(one, behind) == told_by_turns(other, behind)
}

/// The files of recordings, with their texts.
fn recordings() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../__test__/formats");
    let (mut folders, mut files) = (vec![folder], Vec::new());
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        for path in paths {
            let name = path.display().to_string();
            if path.is_dir() && !name.ends_with("expected") {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path)
                && [".jsonl", ".json"].iter().any(|ending| name.ends_with(ending))
                && !name.ends_with("case.json")
            {
                files.push((name, text));
            }
        }
    }
    files
}

#[test]
fn share_writes_every_recording_so_that_it_is_read_as_the_same_trace() {
    // What is redacted is told by other tests.
    let nothing = CleanOptions {
        identifiers: false,
        strict: false,
    };
    for form in [Form::Native, Form::Messages, Form::Atif] {
        let mut count = 0;
        for (name, text) in recordings() {
            for session in sessions_of(&name, &text) {
                let before = (session.log.trace)().unwrap();
                // One of the recordings has calls, to which its results come later than other words.
                let (shelf, manifest) = shared_as(&[session], form, nothing);
                assert_eq!(manifest.left_out, []);
                let file = file_of(&manifest.entries[0]);
                let after = read(file, &shelf.files[file]);
                let is_same = |(_, after): &(FormatName, Value)| match form {
                    Form::Messages => {
                        is_same_by_turns(after, &before, false) || is_same_by_turns(after, &before, true)
                    }
                    _ => told(after) == told(&before) || is_same_by_turns(after, &before, true),
                };
                let all = || after.iter().map(|after| told(&after.1)).collect::<Vec<_>>();
                assert!(
                    after.iter().any(is_same),
                    "{} {name}\n{:#?}\n{:#?}",
                    form.name(),
                    told(&before),
                    all()
                );
                count += 1;
            }
        }
        assert!(count > 60, "{count}");
    }
}

#[test]
fn share_stops_when_it_is_told_to() {
    let sessions: Vec<_> = (0..100)
        .flat_map(|at| sessions_of(&format!("{at}.jsonl"), CLAUDE))
        .collect();
    let engine = Engine::default();
    let settings = Settings {
        form: Form::Native,
        cleaner: &Cleaner::new(ALL),
        quality: &quality(&engine),
        chosen: String::new(),
        program: String::new(),
    };
    let calls = Cell::new(0);
    let go_on = |_| {
        calls.set(calls.get() + 1);
        calls.get() < 3
    };
    let stopped = share(
        Set::default(),
        &[],
        &sessions,
        &settings,
        &mut Shelf::default(),
        &go_on,
    );
    assert!(matches!(stopped, Err(Error::Aborted)));
}

#[test]
fn zip_has_the_files_of_the_folder() {
    let sessions = sessions_of("sitzung-für-ärzte.jsonl", &CLAUDE.repeat(50));
    let (shelf, _) = shared_as(&sessions, Form::Native, ALL);
    let mut zip = Zip::default();
    shared_into(&mut zip, &sessions, Form::Native, ALL);
    let bytes = zip.finish().unwrap();
    let archive = ZipArchive::from_slice(&bytes).unwrap();
    let mut entries = archive.entries();
    let mut files = BTreeMap::new();
    while let Some(entry) = entries.next_entry().unwrap() {
        let name = String::from_utf8(entry.file_path().as_bytes().to_vec()).unwrap();
        let file = archive.get_entry(entry.wayfinder()).unwrap();
        let mut text = String::new();
        file.verifying_reader(DeflateDecoder::new(file.data()))
            .read_to_string(&mut text)
            .unwrap();
        files.insert(name, text);
    }
    assert_eq!(files, shelf.files);
}

#[test]
fn card_tells_whether_identifiers_were_replaced() {
    let sessions = sessions_of("s.jsonl", CLAUDE);
    let (all, _) = shared_as(&sessions, Form::Native, ALL);
    assert!(all.files[CARD].contains("replaced secrets, e-mail addresses, "));
    let secrets = CleanOptions {
        identifiers: false,
        ..ALL
    };
    let (secrets, _) = shared_as(&sessions, Form::Native, secrets);
    assert!(secrets.files[CARD].contains("replaced secrets alone "));
}

/// Shares sessions into a folder, which keeps what it has.
fn add_to(target: &Path, sessions: Vec<Session>, form: Form, removed: &[usize]) -> Manifest {
    add_after(target, sessions, form, removed, || {})
}

/// Does the same, and something else before it finishes, as a user may while `share` asks.
fn add_after(
    target: &Path,
    sessions: Vec<Session>,
    form: Form,
    removed: &[usize],
    meanwhile: impl FnOnce(),
) -> Manifest {
    let mut folder = Folder::create(target).unwrap();
    let (set, form) = folder.set(Some(form)).unwrap();
    let sessions = set.new_among(sessions);
    let engine = Engine::default();
    let settings = Settings {
        form,
        cleaner: &Cleaner::new(ALL),
        quality: &quality(&engine),
        chosen: "All of them".into(),
        program: "kp-score 0.0.0".into(),
    };
    let manifest = share(set, removed, &sessions, &settings, &mut folder, &|_| true).unwrap();
    meanwhile();
    folder.finish().unwrap();
    manifest
}

/// A session of so many turns: the name of its file, and its text.
fn session_of(number: u32, turns: u32) -> (String, String) {
    let turn = |at: u32| {
        let parent = if at == 0 {
            "null".into()
        } else {
            format!("\"u{}\"", at - 1)
        };
        let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
        format!(
            r#"{{"type":"{role}","sessionId":"s{number}","uuid":"u{at}","parentUuid":{parent},"timestamp":"2026-10-01T09:{number:02}:{at:02}.000Z","message":{{"role":"{role}","content":"Words {number} of turn {at}"}}}}"#
        ) + "\n"
    };
    (format!("s{number}.jsonl"), (0..turns).map(turn).collect())
}

fn session(number: u32, turns: u32) -> Vec<Session<'static>> {
    let (name, text) = session_of(number, turns);
    let mut sessions = sessions_of(&name, &text);
    sessions[0].log.outcome = Some((true, 0.9));
    sessions
}

/// Returns the files of a folder with their texts.
fn files_in(folder: &Path) -> BTreeMap<String, String> {
    let entries = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().is_file());
    let file = |entry: walkdir::DirEntry| {
        let name = entry.path().strip_prefix(folder).unwrap().display().to_string();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    files.map(file).collect()
}

#[test]
fn share_adds_to_a_folder_replaces_what_has_grown_and_takes_out_what_is_named() {
    for form in Form::ALL {
        let around = tempfile::tempdir().unwrap();
        let target = around.path().join("new/shared");
        let told = |folder: &Path| {
            let manifest = fs::read_to_string(folder.join(MANIFEST)).unwrap();
            let lines: Vec<Value> = manifest.lines().map(|line| parse_str(line).unwrap()).collect();
            let name = |line: &Value| {
                let [session, steps] = ["session", "steps"].map(|name| line.get(name).unwrap().to_json());
                let file = line.get("file").unwrap().as_str().unwrap();
                let text = fs::read_to_string(folder.join(file)).unwrap();
                let id = line.get("session_id").unwrap().to_json();
                let mut rows = text.lines().filter(|row| row.contains(&id));
                let row = rows.next().unwrap();
                let number = session.trim_matches(['"', 's']).to_owned();
                assert!(row.contains(&format!("Words {number} of turn")), "{row}");
                format!("{session} {steps}")
            };
            lines.iter().map(name).collect::<Vec<_>>()
        };
        add_to(
            &target,
            [session(1, 4), session(2, 4), session(3, 4)]
                .into_iter()
                .flatten()
                .collect(),
            *form,
            &[],
        );
        assert_eq!(told(&target), ["\"s1\" 3", "\"s2\" 3", "\"s3\" 3"]);
        let first = files_in(&target);
        // The same again changes nothing.
        let manifest = add_to(&target, session(2, 4), *form, &[]);
        assert_eq!(manifest.entries, []);
        assert_eq!(files_in(&target), first);
        // The second one goes on, and a fourth comes.
        add_to(
            &target,
            [session(2, 6), session(4, 4)].into_iter().flatten().collect(),
            *form,
            &[],
        );
        assert_eq!(told(&target), ["\"s1\" 3", "\"s2\" 5", "\"s3\" 3", "\"s4\" 3"]);
        // What was taken out does not come back.
        add_to(&target, Vec::new(), *form, &[0]);
        add_to(&target, session(1, 8), *form, &[]);
        assert_eq!(told(&target), ["\"s2\" 5", "\"s3\" 3", "\"s4\" 3"]);
        assert!(
            !files_in(&target)
                .values()
                .any(|text| text.contains("Words 1 of turn"))
        );
        assert_eq!(fs::read_dir(target.parent().unwrap()).unwrap().count(), 1);
        assert!(!target.join(".kp-score").exists());
    }
}

/// Returns the lines of the manifest, after checking that they and the rows of the folder are the same.
fn lines_in(target: &Path) -> Vec<Value> {
    let manifest = fs::read_to_string(target.join(MANIFEST)).unwrap();
    let lines: Vec<_> = manifest.lines().map(|line| parse_str(line).unwrap()).collect();
    let mut named: Vec<_> = lines
        .iter()
        .flat_map(rows_in)
        .map(|row| row.get("sha256").unwrap().to_json())
        .collect();
    let files = files_in(target).into_iter();
    let files = files.filter(|(name, _)| {
        name.starts_with("sessions/") || ["messages.jsonl", "units.jsonl"].contains(&&**name)
    });
    let rows = files.flat_map(|(name, text)| match name.starts_with("sessions/") {
        true => vec![text],
        false => text.split_inclusive('\n').map(str::to_owned).collect(),
    });
    let digest = |text: String| {
        Value::from(
            Sha256::digest(text)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>(),
        )
        .to_json()
    };
    let mut there: Vec<_> = rows.map(digest).collect();
    named.sort();
    there.sort();
    assert_eq!(named, there);
    lines
}

fn rows_in(line: &Value) -> Vec<&Value> {
    let subagents = line.get("subagents").unwrap().as_array().unwrap();
    std::iter::once(line).chain(subagents).collect()
}

fn steps_in(target: &Path) -> Vec<Vec<String>> {
    let steps = |row: &&Value| row.get("steps").unwrap().to_json();
    lines_in(target)
        .iter()
        .map(|line| rows_in(line).iter().map(steps).collect())
        .collect()
}

#[test]
fn share_keeps_a_session_whose_longer_self_cannot_be_read() {
    for form in Form::ALL {
        let around = tempfile::tempdir().unwrap();
        let target = around.path();
        let both = [session(1, 4), session(2, 4)];
        add_to(target, both.into_iter().flatten().collect(), *form, &[]);
        let mut grown = session(1, 6);
        let trace = std::mem::replace(&mut grown[0].log.trace, Box::new(|| Ok(Value::Null)));
        let trace = trace().unwrap();
        let reads = AtomicU32::new(0);
        // The set reads it first, and then it is gone.
        grown[0].log.trace = Box::new(move || match reads.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(trace.clone()),
            _ => Err(io::Error::other("it is gone")),
        });
        let manifest = add_to(target, grown, *form, &[]);
        assert!(
            manifest.left_out[0].1.contains("it is gone"),
            "{:?}",
            manifest.left_out
        );
        assert_eq!(steps_in(target), [["3"], ["3"]], "{form:?}");
    }
}

/// A session of so many turns with sub-agents, by their numbers and turns.
fn with_subagents(turns: u32, subagents: &[(u32, u32)]) -> Vec<Session<'static>> {
    let mut sessions = session(1, turns);
    for (number, turns) in subagents {
        let mut subagent = session(*number, *turns);
        subagent[0].log.name = format!("s1/subagents/agent-{number}.jsonl");
        sessions[0].subagents.push(subagent.remove(0).log);
    }
    sessions
}

#[test]
fn share_adds_subagents_that_come_or_go_on_later_and_keeps_those_whose_log_is_gone() {
    for form in Form::ALL {
        let around = tempfile::tempdir().unwrap();
        let target = around.path();
        let shared = |turns, subagents: &[(u32, u32)]| {
            let manifest = add_to(target, with_subagents(turns, subagents), *form, &[]);
            (manifest.entries.len(), steps_in(target))
        };
        let is = |entries: usize, steps: &[&str]| {
            (
                entries,
                vec![steps.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()],
            )
        };
        assert_eq!(shared(4, &[(2, 4)]), is(1, &["3", "3"]));
        assert_eq!(shared(4, &[(2, 4)]), is(0, &["3", "3"]));
        assert_eq!(shared(4, &[(2, 6), (3, 4)]), is(1, &["3", "5", "3"]));
        // The log of the first is gone, and that of the second shorter than before.
        assert_eq!(shared(4, &[(3, 3)]), is(0, &["3", "5", "3"]));
        assert_eq!(shared(8, &[(3, 4)]), is(1, &["7", "3", "5"]));
        // A shorter copy of the session brings nothing.
        assert_eq!(shared(6, &[(4, 4)]), is(0, &["7", "3", "5"]));
    }
}

#[test]
fn share_takes_out_what_somebody_has_deleted_for_good() {
    for form in Form::ALL {
        let around = tempfile::tempdir().unwrap();
        let target = around.path();
        let all = || {
            let with = with_subagents(4, &[(2, 4), (3, 4)]).into_iter();
            with.chain(session(4, 4)).chain(session(5, 4)).collect::<Vec<_>>()
        };
        add_to(target, all(), *form, &[]);
        let lines = lines_in(target);
        let delete = |row: &Value| {
            let file = target.join(row.get("file").unwrap().as_str().unwrap());
            if matches!(form, Form::Native | Form::Atif) {
                return fs::remove_file(file).unwrap();
            }
            let id = row.get("session_id").unwrap().to_json();
            let text = fs::read_to_string(&file).unwrap();
            let kept = text.split_inclusive('\n').filter(|row| !row.contains(&id));
            fs::write(file, kept.collect::<String>()).unwrap();
        };
        delete(rows_in(&lines[0])[1]);
        delete(&lines[1]);
        for turns in [4, 4, 8] {
            let mut all = all();
            all[0].log = session(1, turns).remove(0).log;
            add_to(target, all, *form, &[]);
            let sessions = |line: &Value| line.get("session").unwrap().to_json();
            let left: Vec<_> = lines_in(target).iter().map(sessions).collect();
            assert_eq!(
                (left, steps_in(target)),
                (
                    vec!["\"s1\"".to_owned(), "\"s5\"".to_owned()],
                    vec![
                        vec![(turns - 1).to_string(), "3".to_owned()],
                        vec!["3".to_owned()]
                    ]
                )
            );
            let card = fs::read_to_string(target.join(CARD)).unwrap();
            assert!(card.contains("2 sessions, 3 with sub-agents"), "{card}");
        }
    }
}

#[test]
fn share_keeps_what_a_person_struck_out_and_the_outcome_that_they_told() {
    let around = tempfile::tempdir().unwrap();
    let target = around.path();
    let both = [session(1, 4), session(2, 4)].into_iter().flatten().collect();
    add_to(target, both, Form::Native, &[]);
    let manifest = fs::read_to_string(target.join(MANIFEST)).unwrap();
    let struck = manifest
        .replacen("\"redactions\":{", "\"redactions\":{\"struck\":1,", 1)
        .replace(",}", "}");
    fs::write(target.join(MANIFEST), struck).unwrap();
    let mut grown: Vec<_> = [session(1, 6), session(2, 6)].into_iter().flatten().collect();
    grown.iter_mut().for_each(|session| session.log.outcome = None);
    let manifest = add_to(target, grown, Form::Native, &[]);
    assert!(
        manifest.left_out[0].1.contains("words were struck out"),
        "{:?}",
        manifest.left_out
    );
    let fields = ["steps", "success", "outcome_from"];
    let told = |line: &Value| fields.map(|field| line.get(field).unwrap().to_json());
    let told: Vec<_> = manifest.lines().iter().map(told).collect();
    assert_eq!(told, [["3", "true", "\"user\""], ["5", "true", "\"user\""]]);
}

#[test]
fn share_knows_a_session_again_that_was_resumed_under_a_new_id() {
    let around = tempfile::tempdir().unwrap();
    let target = around.path();
    let resumed = |number: u32, turns: u32, id: &str| {
        let (_, text) = session_of(number, turns);
        sessions_of(
            "new.jsonl",
            &text.replace(&format!("\"s{number}\""), &format!("\"{id}\"")),
        )
    };
    add_to(target, session(1, 4), Form::Native, &[]);
    let manifest = add_to(target, resumed(1, 6, "other"), Form::Native, &[]);
    assert_eq!(manifest.lines().len(), 1);
    assert_eq!(manifest.lines()[0].get("steps"), Some(&5.0.into()));
    add_to(target, Vec::new(), Form::Native, &[0]);
    let manifest = add_to(target, resumed(1, 8, "third"), Form::Native, &[]);
    assert_eq!(manifest.lines(), []);
}

#[test]
fn share_knows_rows_again_where_somebody_has_taken_a_line_out_of_their_file() {
    for form in [Form::Messages, Form::Knowledgepulse] {
        let around = tempfile::tempdir().unwrap();
        let target = around.path();
        let three = [session(1, 4), session(2, 4), session(3, 4)];
        add_to(target, three.into_iter().flatten().collect(), form, &[]);
        let set = Set::read(target).unwrap().unwrap();
        let file = target.join(set.files().first().unwrap());
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.split_once('\n').unwrap().1).unwrap();
        add_to(target, session(2, 6), form, &[2]);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        assert!(
            text.contains("Words 2 of turn 5") && !text.contains("Words 3"),
            "{text}"
        );
    }
}

#[test]
fn share_keeps_what_the_user_has_written_into_the_folder() {
    for form in [Form::Native, Form::Messages] {
        let around = tempfile::tempdir().unwrap();
        let target = around.path();
        // A clone of a repository.
        for (name, text) in [
            (".git/config", "precious"),
            (".gitattributes", "*.jsonl filter=lfs"),
            (
                "README.md",
                "---\nlicense: mit\nsize_categories:\n- n<1K\nlanguage: [en]\nconfigs:\n  - config_name: prices # mine\n    data_files:\n      - p.csv\n\
                 dataset_info:\n- features:\n  - name: x\n  config_name: 'prices'\n\"own\": 1\n---\n# Mine\n",
            ),
        ] {
            let path = target.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        add_to(target, session(1, 4), form, &[]);
        let card = fs::read_to_string(target.join(CARD)).unwrap();
        assert!(
            card.starts_with("---\nlicense: mit\nlanguage: [en]\n\"own\": 1\n"),
            "{card}"
        );
        // The configurations of others stay, with ours.
        let own = [
            "configs:\n- config_name: prices # mine\n  data_files:\n    - p.csv\n- config_name: default\n",
            "dataset_info:\n- features:\n  - name: x\n  config_name: 'prices'\n- config_name: default\n",
        ];
        assert!(
            card.contains("# Mine\n") && card.contains("1 session, 2026-10-01"),
            "{card}"
        );
        fs::write(
            target.join(CARD),
            card.replace("# Mine\n", "# Mine\n\nAsk me.\n")
                .replace("mit", "cc-by-4.0"),
        )
        .unwrap();
        add_to(target, session(2, 4), form, &[]);
        let again = fs::read_to_string(target.join(CARD)).unwrap();
        assert_eq!(again.matches("kp-score: begin").count(), 1);
        for (card, own) in [&card, &again]
            .into_iter()
            .flat_map(|card| own.map(|own| (card, own)))
        {
            assert_eq!(card.matches(own).count(), 1, "{card}");
            assert_eq!(card.matches("config_name:").count(), 5, "{card}");
        }
        // Ends of lines and an empty line stay harmless.
        fs::write(target.join(CARD), again.replace('\n', "\r\n")).unwrap();
        let lines = fs::read_to_string(target.join(MANIFEST)).unwrap();
        fs::write(target.join(MANIFEST), lines + "\n").unwrap();
        add_to(target, Vec::new(), form, &[]);
        let returns = fs::read_to_string(target.join(CARD)).unwrap();
        assert_eq!(returns, again.replace('\n', "\r\n"));
        assert!(
            again.contains("license: cc-by-4.0") && again.contains("Ask me.") && again.contains("2 sessions"),
            "{again}"
        );
        assert_eq!(
            fs::read_to_string(target.join(".git/config")).unwrap(),
            "precious"
        );
        // A session that somebody has edited is not replaced by what it has grown to.
        let file = Set::read(target)
            .unwrap()
            .unwrap()
            .files()
            .into_iter()
            .min()
            .unwrap()
            .to_owned();
        let text = fs::read_to_string(target.join(&file)).unwrap();
        fs::write(target.join(&file), text.replace("Words", "Edited")).unwrap();
        let grown = [session(1, 8), session(2, 8)].into_iter().flatten().collect();
        let manifest = add_to(target, grown, form, &[]);
        assert!(
            manifest.left_out[0].1.contains("it was edited in the folder"),
            "{:?}",
            manifest.left_out
        );
        assert!(fs::read_to_string(target.join(&file)).unwrap().contains("Edited"));
    }
}

#[test]
fn folder_keeps_what_is_saved_in_it_while_share_waits_for_an_answer() {
    let around = tempfile::tempdir().unwrap();
    let target = around.path().join("shared");
    add_to(&target, session(1, 4), Form::Native, &[]);
    let saved = [("notes.md", "mine"), (".git/HEAD", "ref: refs/heads/main\n")];
    add_after(&target, session(2, 4), Form::Native, &[], || {
        for (name, text) in saved {
            let path = target.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    });
    for (name, text) in saved {
        assert_eq!(fs::read_to_string(target.join(name)).unwrap(), text);
    }
    assert_eq!(Set::read(&target).unwrap().unwrap().lines().len(), 2);
}

#[test]
fn folder_refuses_what_is_somebody_elses_by_its_name() {
    let around = tempfile::tempdir().unwrap();
    let path = |name: &str| around.path().join(name);
    let refusal = |name: &str, form: Form| {
        let folder = Folder::create(&path(name));
        let set = folder.and_then(|folder| folder.set(Some(form)).map(drop));
        set.err().map(|error| error.to_string()).unwrap_or_default()
    };
    fs::write(path("file"), "").unwrap();
    for (folder, file) in [("other", MANIFEST), ("taken", "messages.jsonl")] {
        fs::create_dir(path(folder)).unwrap();
        fs::write(path(folder).join(file), "{\"rank\":1}\n").unwrap();
        let refused = refusal(folder, Form::Messages);
        let taken = format!("{folder} has {file}, which kp-score did not write");
        assert!(refused.contains(&taken), "{refused}");
    }
    assert!(refusal("file", Form::Native).contains("has a file in its place"));
    // A conflict of two machines that push one set.
    for (form, file) in [(Form::Native, MANIFEST), (Form::Messages, "messages.jsonl")] {
        add_to(&path("both"), session(1, 4), form, &[]);
        let text = fs::read_to_string(path("both").join(file)).unwrap();
        fs::write(path("both").join(file), format!("{text}=======\n{text}")).unwrap();
        let refused = refusal("both", form);
        assert!(
            refused.contains(&format!(
                "both/{file}:2 is not JSON: if git has left its marks there"
            )),
            "{refused}"
        );
        fs::remove_dir_all(path("both")).unwrap();
    }
    for form in Form::ALL {
        add_to(&path("half"), session(1, 4), *form, &[]);
        fs::remove_file(path("half").join(MANIFEST)).unwrap();
        let refused = refusal("half", *form);
        assert!(
            refused.contains("half has sessions of kp-score without their manifest.jsonl"),
            "{refused}"
        );
        fs::remove_dir_all(path("half")).unwrap();
    }
    // Beside native sessions its name is no obstacle.
    assert_eq!(refusal("taken", Form::Native), "");
    add_to(&path("native"), session(1, 4), Form::Native, &[]);
    assert!(refusal("native", Form::Atif).contains("has sessions as native, not as atif"));
    let open = Folder::create(&path("native")).unwrap();
    assert!(refusal("native", Form::Native).contains("is being written by another run"));
    drop(open);
    // Nothing is left of a folder that was not written.
    drop(Folder::create(&path("none")).unwrap());
    assert!(!path("none").exists());
    #[cfg(unix)]
    {
        fs::create_dir(path("linked")).unwrap();
        std::os::unix::fs::symlink(path("other"), path("linked/sessions")).unwrap();
        assert!(refusal("linked", Form::Native).contains("has sessions, a link,"));
    }
}

/// A folder may be a clone of somebody else's.
#[cfg(unix)]
#[test]
fn folder_writes_and_removes_nothing_outside() {
    use std::os::unix::fs::symlink;
    let around = tempfile::tempdir().unwrap();
    let mine = around.path().join("mine");
    let refused = |folder: &str, prepare: &dyn Fn(&Path)| {
        fs::create_dir_all(&mine).unwrap();
        fs::write(mine.join("notes"), "mine").unwrap();
        let target = around.path().join(folder);
        fs::create_dir_all(target.join(".kp-score/new")).unwrap();
        prepare(&target);
        assert!(Folder::create(&target).is_err(), "{folder}");
        let notes = BTreeMap::from([("notes".to_owned(), "mine".to_owned())]);
        assert_eq!(files_in(&mine), notes, "{folder}");
    };
    for (folder, name) in [
        ("above", "../mine/notes".to_owned()),
        ("absolute", mine.join("notes").display().to_string()),
        ("through a link", "sessions/notes".to_owned()),
    ] {
        refused(folder, &|target| {
            symlink(&mine, target.join("sessions")).unwrap();
            fs::write(target.join(".kp-score/commit"), &name).unwrap();
        });
    }
    refused("file through a link", &|target| {
        symlink(&mine, target.join("sessions")).unwrap();
        fs::create_dir(target.join(".kp-score/new/sessions")).unwrap();
        fs::write(target.join(".kp-score/new/sessions/notes"), "theirs").unwrap();
        fs::write(target.join(".kp-score/commit"), "").unwrap();
    });
    for file in ["lock", "commit.tmp", "commit", "new/notes"] {
        refused(&file.replace('/', " "), &|target| {
            symlink(mine.join("notes"), target.join(".kp-score").join(file)).unwrap();
        });
    }
}

#[test]
fn folder_ends_what_was_committed_and_undoes_what_was_not() {
    let around = tempfile::tempdir().unwrap();
    let target = around.path();
    add_to(target, session(1, 4), Form::Native, &[]);
    let before = files_in(target);
    let new = target.join(".kp-score/new");
    let begin = || {
        fs::create_dir_all(new.join("sessions")).unwrap();
        fs::write(new.join("sessions/b.jsonl"), "b").unwrap();
        fs::write(
            new.join(MANIFEST),
            before[MANIFEST].replace("\"rank\":1", "\"rank\":7"),
        )
        .unwrap();
    };
    begin();
    drop(Folder::create(target).unwrap());
    assert_eq!(files_in(target), before);
    begin();
    fs::write(target.join(".kp-score/commit"), "sessions/gone.jsonl\n").unwrap();
    drop(Folder::create(target).unwrap());
    let after = files_in(target);
    assert_eq!(after["sessions/b.jsonl"], "b");
    assert!(after[MANIFEST].contains("\"rank\":7"));
    assert_eq!(after.len(), before.len() + 1);
}

#[test]
fn set_finds_sessions_by_the_log_and_by_the_trace() {
    let around = tempfile::tempdir().unwrap();
    add_to(around.path(), session(1, 4), Form::Native, &[]);
    let set = Set::read(around.path()).unwrap().unwrap();
    let time = "2026-10-01T09:01:00.000Z";
    let id = set.lines()[0].get("id").unwrap().as_str().unwrap();
    let find = |id: &str, session: &str, time: &str, steps: usize| {
        let imported = json_object! { "session": session };
        let trace = json_object! {
            "id": id,
            "metadata": json_object! { "created_at": time, "imported": imported },
            "steps": vec![Value::Null; steps],
        };
        set.find(&SessionNames::of(&trace))
    };
    assert_eq!(find("", "s1", time, 3), Some(Published::Here(0)));
    assert_eq!(find("", "s1", time, 4), Some(Published::Grown(0)));
    assert_eq!(find(id, "", "", 3), Some(Published::Here(0)));
    // Runs of one task have its name, and begin at other times.
    assert_eq!(find("kp:trace:x", "s1", "2026-10-02T09:01:00.000Z", 4), None);
}

#[test]
fn text_of_a_database_is_nothing_whatever_its_name_is() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let paths = [name("state.sqlite3"), name("kept.db")];
    fs::write(&paths[0], b"SQLite format 3\0and more").unwrap();
    fs::write(&paths[1], "{\"type\":\"session\"}\n").unwrap();
    let files = logs::WholeFiles::of(&paths);
    let has_text = |path: String| {
        let trace = Box::new(|| Ok(Value::Null));
        files.log(&path, FormatName::Trace, trace).text.is_some()
    };
    assert_eq!(paths.map(has_text), [false, true]);
}
