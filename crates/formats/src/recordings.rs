//! The recordings of `__test__/formats` become the traces of its folder `expected`. The spec `recordings` writes these. Its
//! `cases.jsonl` has inputs of the other specs, a line each: `text` or `records`, the options of `toTraces`, and the results.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use knowledgepulse_json::{Value, parse};
use serde_json::{Deserializer, Value as Json};
use sha2::{Digest, Sha256};

use crate::{
    Context, DEFAULT_LIMIT, FormatName, Given,
    map::Map,
    reader::{Content, Item, OfNoFormat, Settings, TraceReader},
    records::{Record, Records},
};

const RECORDINGS: [&str; 22] = [
    "trial/agent/trajectory.json",
    "chat.jsonl",
    "ai-sdk.jsonl",
    "langchain.jsonl",
    "sharegpt.jsonl",
    "langsmith.jsonl",
    "langfuse.jsonl",
    "phoenix.jsonl",
    "session.jsonl",
    "published/claude-code.jsonl",
    "codex.jsonl",
    "inspect.eval",
    "gemini-cli.jsonl",
    "pi.jsonl",
    "openhands.jsonl",
    "published/openhands.jsonl",
    "runs.traj.jsonl",
    "spans.jsonl",
    "captured-spans.jsonl",
    "ai-sdk-spans.jsonl",
    "published/pydantic-ai.jsonl",
    "published/openai-agents.jsonl",
];

/// The fields of a recording that are changed in turn, at most.
const MOST_CHANGES: usize = 40;

/// Reads a file of these bytes.
fn read(file: &Path, bytes: &[u8]) -> Vec<Item> {
    let context = Context {
        file: Some(file.into()),
        ..Context::default()
    };
    let settings = Settings {
        context,
        ..Settings::default()
    };
    read_bytes(settings, bytes)
}

/// Reads bytes, pushed in pieces.
fn read_bytes(settings: Settings, bytes: &[u8]) -> Vec<Item> {
    let mut records = Records::new(DEFAULT_LIMIT);
    let mut reader = TraceReader::new(settings);
    let mut items = Vec::new();
    for piece in bytes.chunks(1000) {
        records.push(piece).unwrap();
        items.extend(records.by_ref().flat_map(|record| reader.read(record)));
    }
    records.finish().unwrap();
    items.extend(records.flat_map(|record| reader.read(record)));
    items.extend(reader.end());
    items
}

/// Reads a value, or each element of an array.
fn read_values(settings: Settings, values: &Value) -> Vec<Item> {
    let mut reader = TraceReader::new(settings);
    let list = values
        .as_array()
        .map(|list| (0..).map(Some).zip(list).collect::<Vec<_>>());
    let mut items = Vec::new();
    for (index, value) in list.unwrap_or_else(|| vec![(None, values)]) {
        items.extend(reader.read(Record {
            line: None,
            index,
            size: 0,
            content: Ok((value.clone(), None)),
        }));
    }
    items.extend(reader.end());
    items
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../__test__/formats")
}

/// Returns the time of a trace.
fn time(trace: &Value) -> Option<&str> {
    trace.get("metadata")?.get("created_at")?.as_str()
}

/// Returns a result as the specs write it. A recording without a time has that of the call, which is `now` there.
fn written(item: Item, expected: Option<&Value>) -> String {
    let number = |number: Option<u64>| number.map_or("null".into(), |number| number.to_string());
    let place = format!(r#""line":{},"index":{}"#, number(item.line), number(item.index));
    let error = |reason: Value| format!(r#"{{{place},"error":{}}}"#, reason.to_json());
    let (trace, known) = match item.content {
        Content::Converted(trace, known) => (trace, known.into_value().to_json()),
        Content::Plain(value, _) if item.format.is_none() => {
            return error(OfNoFormat::new(&value).to_string().into());
        }
        Content::Plain(trace, _) => (trace, r#"{"success":true,"confidence":true}"#.into()),
        Content::Wrong(reason) => return error(reason.into()),
        Content::Skipped(reason) => panic!("{reason:?}"),
    };
    let mut json = trace.to_json();
    if expected.and_then(|expected| time(expected.get("trace")?)) == Some("now") {
        json = json.replacen(time(&trace).unwrap(), "now", 1);
    }
    format!(
        r#"{{{place},"format":"{}","known":{known},"trace":{json}}}"#,
        item.format.unwrap()
    )
}

/// Returns results as the specs write them, without those that are skipped.
fn results(items: Vec<Item>, expected: &[Value]) -> Vec<Value> {
    let items = items
        .into_iter()
        .filter(|item| !matches!(item.content, Content::Skipped(_)));
    items
        .enumerate()
        .map(|(at, item)| parse(written(item, expected.get(at)).as_bytes()).unwrap())
        .collect()
}

#[test]
fn recordings_become_the_expected_traces() {
    for name in RECORDINGS {
        let expected = Path::new(&name.replace('/', "-")).with_extension("jsonl");
        let expected = fs::read_to_string(folder().join("expected").join(expected)).unwrap();
        let expected: Vec<_> = expected
            .lines()
            .map(|line| parse(line.as_bytes()).unwrap())
            .collect();
        let file = folder().join(name);
        let items = read(&file, &fs::read(&file).unwrap());
        assert_eq!(results(items, &expected), expected, "{name}");
    }
}

/// `KNOWLEDGEPULSE_WRITE_EXPECTED=1` writes the results anew.
#[test]
fn inputs_of_the_specs_become_the_expected_traces() {
    let file = folder().join("cases.jsonl");
    let cases = fs::read_to_string(&file).unwrap();
    let mut found = String::new();
    for line in cases.lines() {
        let Ok(Value::Object(mut case)) = parse(line.as_bytes()) else {
            panic!("{line}");
        };
        let option = |name| case.get("options").and_then(|options| options.get(name));
        let text = |name| option(name).and_then(Value::as_str);
        let settings = Settings {
            format: text("format").map(|name| FormatName::from_name(name).unwrap()),
            map: option("map").map(|map| Map::from_value(map).unwrap()),
            given: Given {
                success: option("success").map(|success| *success == true.into()),
                confidence: option("confidence").and_then(Value::as_number),
                domain: text("domain").map(Into::into),
            },
            ..Settings::default()
        };
        let items = match case.get("text").and_then(Value::as_str) {
            Some(text) => read_bytes(settings, text.as_bytes()),
            None => read_values(settings, case.get("records").unwrap()),
        };
        let expected = case.get("results").and_then(Value::as_array).unwrap();
        case.insert("results", results(items, expected));
        found += &format!("{}\n", Value::from(case).to_json());
    }
    if std::env::var_os("KNOWLEDGEPULSE_WRITE_EXPECTED").is_some() {
        fs::write(&file, &found).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap();
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
}

/// Counts the fields within a value in `number`. Removes the one with the number `at`, or gives it another value.
fn change(value: &mut Json, at: usize, number: &mut usize) {
    let mut is_at = || {
        *number += 1;
        *number == at + 1
    };
    let other = match at % 3 {
        0 => None,
        1 => Some(Json::Null),
        _ => Some("yes".into()),
    };
    match value {
        Json::Object(fields) => {
            for name in fields.keys().cloned().collect::<Vec<_>>() {
                if !is_at() {
                    continue;
                }
                match other {
                    None => drop(fields.remove(&name)),
                    Some(other) => fields[&name] = other,
                }
                return;
            }
            fields.values_mut().for_each(|value| change(value, at, number));
        }
        Json::Array(values) => values.iter_mut().for_each(|value| change(value, at, number)),
        _ => {}
    }
}

/// Returns the checksum of what is read from a recording whose fields are changed, one at a time.
fn checksum_of_changes(name: &str) -> String {
    let file = folder().join(name);
    let text = fs::read_to_string(&file).unwrap();
    let values: Vec<Json> = Deserializer::from_str(&text)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let mut count = 0;
    values
        .clone()
        .iter_mut()
        .for_each(|value| change(value, usize::MAX - 1, &mut count));
    // A step that is no multiple of three makes each kind of change.
    let step = count.div_ceil(MOST_CHANGES) / 3 * 3 + 1;
    let mut hash = Sha256::new();
    for at in (0..count).step_by(step) {
        let (mut changed, mut number) = (values.clone(), 0);
        changed
            .iter_mut()
            .for_each(|value| change(value, at, &mut number));
        let lines: String = changed.iter().map(|value| format!("{value}\n")).collect();
        for item in read(&file, lines.as_bytes()) {
            let content = match item.content {
                Content::Converted(trace, known) => {
                    let json = trace.to_json().replacen(time(&trace).unwrap(), "", 1);
                    format!("{json} {known:?}")
                }
                other => format!("{other:?}"),
            };
            hash.update(format!(
                "{:?} {:?} {:?} {content}\n",
                item.line, item.index, item.format
            ));
        }
    }
    hash.finalize()[..8].iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// `KNOWLEDGEPULSE_WRITE_EXPECTED=1` writes the checksums anew.
#[test]
fn changed_recordings_become_what_they_became_before() {
    let found: String = RECORDINGS
        .iter()
        .filter(|name| !name.ends_with(".eval"))
        .map(|name| format!("{} {name}\n", checksum_of_changes(name)))
        .collect();
    let file = folder().join("expected/changes.txt");
    if std::env::var_os("KNOWLEDGEPULSE_WRITE_EXPECTED").is_some() {
        fs::write(&file, &found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(&file).unwrap());
}
