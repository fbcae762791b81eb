//! The recordings of `__test__/formats` become the traces of its folder `expected`, and the inputs of `expected/cases.jsonl` become the
//! outputs beside them. KNOWLEDGEPULSE_WRITE_EXPECTED=1 writes these anew after an intended change; look at what has changed then.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use knowledgepulse_json::{Text, Value, parse_str};
use serde_json::{Deserializer, Value as Json};

use crate::{
    DEFAULT_LIMIT, FormatName, Place, date,
    reader::{Content, Item, Run, Settings, TraceReader, of_no_format},
    records::{Record, Records},
    trace::known_of,
};

const RECORDINGS: [&str; 23] = [
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
    "codex-exec.jsonl",
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

/// Reads a file of these bytes, pushed in pieces.
fn read(file: &Path, bytes: &[u8]) -> Vec<Item> {
    read_text(settings_of(file), bytes, 1000)
}

fn settings_of(file: &Path) -> Settings {
    Settings {
        file: Some(file.into()),
        ..Settings::default()
    }
}

/// Reads a text that is pushed in pieces of this size.
fn read_text(settings: Settings, bytes: &[u8], size: usize) -> Vec<Item> {
    let mut records = Records::new(DEFAULT_LIMIT);
    let mut reader = TraceReader::new(settings);
    let mut items = Vec::new();
    for piece in bytes.chunks(size) {
        records.push(piece).unwrap();
        items.extend(records.by_ref().flat_map(|record| reader.read(record)));
    }
    records.finish().unwrap();
    items.extend(records.flat_map(|record| reader.read(record)));
    items.extend(reader.end());
    built(items).collect()
}

fn built(items: Vec<Run>) -> impl Iterator<Item = Item> {
    items.into_iter().flat_map(Run::build)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../__test__/formats")
}

/// Returns the time of a trace.
fn time(trace: &Value) -> Option<&str> {
    trace.get("metadata")?.get("created_at")?.as_str()
}

/// Returns whether a time is the present one, to within an hour.
fn is_now(time: &str) -> bool {
    let [time, now] = [time, &date::now()].map(|time| date::parse(time).unwrap());
    (time.as_second() - now.as_second()).abs() < 3_600
}

/// Reads a value, or each element of an array.
fn read_values(settings: Settings, input: &Value) -> Vec<Item> {
    let mut reader = TraceReader::new(settings);
    let values = input.as_array().unwrap_or(std::slice::from_ref(input));
    let mut items = Vec::new();
    for (at, value) in values.iter().enumerate() {
        items.extend(reader.read(Record {
            place: Place {
                index: input.as_array().map(|_| at as u64),
                ..Place::default()
            },
            content: Ok(value.clone()),
        }));
    }
    items.extend(reader.end());
    built(items).collect()
}

/// Returns a result as the spec writes it. A recording without a time has that of the call, which is `now` there.
fn written(item: Item, expected: &Value) -> String {
    let number = |number: Option<u64>| number.map_or("null".into(), |number| number.to_string());
    let (line, index) = (number(item.place.line), number(item.place.index));
    let wrong = |reason: &Text| {
        let place = match (item.place.line, item.place.index) {
            (None, _) => String::new(),
            (Some(line), None) => format!("line {line}: "),
            (Some(line), Some(index)) => format!("line {line}[{index}]: "),
        };
        let mut text = Text::from(place);
        text.push_str(reason);
        let error = Value::from(text).to_json();
        format!(r#"{{"line":{line},"index":{index},"error":{error}}}"#)
    };
    let trace = match item.content {
        Content::Read(value) if item.format.is_none() => {
            return wrong(&of_no_format(&value).into());
        }
        Content::Read(trace) => trace,
        Content::Wrong(reason) => return wrong(&reason),
        Content::Skipped(reason) => panic!("{reason:?}"),
    };
    let mut json = trace.to_json();
    let may_be_now = writes_expected() || expected.get("trace").and_then(self::time) == Some("now");
    let now = time(&trace).filter(|time| may_be_now && is_now(time));
    if let Some(now) = now {
        json = json.replacen(now, "now", 1);
    }
    format!(
        r#"{{"line":{line},"index":{index},"format":"{}","known":{},"trace":{json}}}"#,
        item.format.unwrap(),
        known_of(&trace).into_value().to_json()
    )
}

/// Returns whether the expected files are written anew: `KNOWLEDGEPULSE_WRITE_EXPECTED=1`.
fn writes_expected() -> bool {
    std::env::var_os("KNOWLEDGEPULSE_WRITE_EXPECTED").is_some()
}

#[test]
fn recordings_become_the_expected_traces() {
    for name in RECORDINGS {
        let expected = Path::new(&name.replace('/', "-")).with_extension("jsonl");
        let path = folder().join("expected").join(expected);
        if writes_expected() {
            let file = folder().join(name);
            let items = read(&file, &fs::read(&file).unwrap()).into_iter();
            let lines = items.map(|item| written(item, &Value::Null) + "\n");
            fs::write(&path, lines.collect::<String>()).unwrap();
        }
        let expected = fs::read_to_string(path).unwrap();
        let expected: Vec<_> = expected.lines().map(|line| parse_str(line).unwrap()).collect();
        let file = folder().join(name);
        let items = read(&file, &fs::read(&file).unwrap());
        assert_eq!(items.len(), expected.len(), "{name}");
        for (item, expected) in items.into_iter().zip(expected) {
            let found = written(item, &expected);
            assert_eq!(parse_str(&found).unwrap().to_json(), expected.to_json(), "{name}");
        }
    }
}

/// Runs are linked by what records name, not by their order.
#[test]
fn recordings_of_platforms_in_another_order_become_the_same_traces() {
    for name in ["langsmith.jsonl", "langfuse.jsonl", "phoenix.jsonl"] {
        let file = folder().join(name);
        let text = fs::read_to_string(&file).unwrap();
        let told = |text: &str| {
            let items = read(&file, text.as_bytes()).into_iter();
            items
                .map(|item| match item.content {
                    Content::Read(trace) => ["id", "steps"].map(|key| trace.get(key).unwrap().to_json()),
                    _ => panic!("{name} becomes traces"),
                })
                .collect::<BTreeSet<_>>()
        };
        let reversed = text.lines().rev().collect::<Vec<_>>().join("\n");
        assert_eq!(told(&reversed), told(&text), "{name}");
    }
}

/// Lines that become no step, and shares that are rounded up, are a twentieth of a recording at most.
#[test]
fn sizes_of_traces_are_those_of_their_records() {
    for name in RECORDINGS {
        let file = folder().join(name);
        let bytes = fs::read(&file).unwrap();
        let mut records = Records::default();
        records.push(&bytes).unwrap();
        records.finish().unwrap();
        let read_size: u64 = records.map(|record| record.place.size).sum();
        let size: u64 = read(&file, &bytes).iter().map(|item| item.place.size).sum();
        assert!(
            size.abs_diff(read_size) <= read_size / 20,
            "{name}: {size} of {read_size}"
        );
    }
}

/// Returns the objects of a recording as a table in CSV, and as lines.
fn as_table(text: &str) -> (Vec<u8>, Vec<u8>) {
    let records = Deserializer::from_str(text)
        .into_iter::<Json>()
        .map(Result::unwrap);
    let rows: Vec<_> = records
        .flat_map(|record| match record.get("data") {
            Some(Json::Array(rows)) => rows.clone(),
            _ => vec![record],
        })
        .map(|row| row.as_object().unwrap().clone())
        .collect();
    let names: BTreeSet<_> = rows.iter().flat_map(|row| row.keys()).collect();
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(&names).unwrap();
    for row in &rows {
        let cells = names.iter().map(|name| match row.get(*name) {
            None | Some(Json::Null) => String::new(),
            Some(Json::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        });
        table.write_record(cells).unwrap();
    }
    let lines = rows.iter().map(|row| format!("{}\n", Json::Object(row.clone())));
    (
        table.into_inner().unwrap(),
        lines.collect::<String>().into_bytes(),
    )
}

#[test]
fn exports_as_csv_become_the_traces_of_the_same_exports_as_lines() {
    for (name, format) in [
        ("langsmith.jsonl", FormatName::Langsmith),
        ("langfuse.jsonl", FormatName::Langfuse),
    ] {
        let file = folder().join(name);
        let (table, lines) = as_table(&fs::read_to_string(&file).unwrap());
        let [table, lines] = [table, lines].map(|bytes| {
            let items = read(&file, &bytes).into_iter();
            let items = items.inspect(|item| assert_eq!(item.format, Some(format)));
            items.map(|item| item.content).collect::<Vec<_>>()
        });
        assert!(!lines.is_empty());
        assert_eq!(table, lines, "{name}");
    }
}

#[test]
fn cases_become_the_expected_results() {
    let path = folder().join("expected/cases.jsonl");
    let cases = fs::read_to_string(&path).unwrap();
    let mut anew = String::new();
    for line in cases.lines() {
        let case = parse_str(line).unwrap();
        let name = case.get("name").unwrap().to_json();
        let option = |name| case.get("options").and_then(|options| options.get(name));
        let settings = Settings {
            format: option("format").map(|name| FormatName::from_name(name.as_str().unwrap()).unwrap()),
            ..Settings::default()
        };
        let input = case.get("input").unwrap();
        let expected = case.get("output").and_then(Value::as_array).unwrap();
        let outputs = match input.as_str() {
            None => vec![read_values(settings, input)],
            Some(text) => [1, 7, 4096]
                .map(|size| read_text(settings.clone(), text.as_bytes(), size))
                .into(),
        };
        if writes_expected() {
            let is_told = |item: &Item| !matches!(item.content, Content::Skipped(_));
            let items = outputs[0].iter().filter(|item| is_told(item)).cloned();
            let found: Vec<_> = items.map(|item| written(item, &Value::Null)).collect();
            let beginning = &line[..line.rfind(r#","output":"#).unwrap()];
            writeln!(anew, r#"{beginning},"output":[{}]}}"#, found.join(",")).unwrap();
            continue;
        }
        for items in outputs {
            let is_told = |item: &Item| !matches!(item.content, Content::Skipped(_));
            let items: Vec<_> = items.into_iter().filter(is_told).collect();
            assert_eq!(items.len(), expected.len(), "{name}");
            for (item, expected) in items.into_iter().zip(expected) {
                let found = written(item, expected);
                assert_eq!(parse_str(&found).unwrap().to_json(), expected.to_json(), "{name}");
            }
        }
    }
    if writes_expected() {
        fs::write(path, anew).unwrap();
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

/// Returns the contents of the steps and the objectives of all traces, each with its number.
fn contents_of(items: &[Item]) -> BTreeMap<String, usize> {
    let mut contents = BTreeMap::new();
    for item in items {
        if let Content::Read(trace) = &item.content
            && item.format.is_some()
        {
            let objective = trace.at(&["task", "objective"]);
            let steps = trace.get("steps").and_then(Value::as_array).unwrap();
            let steps = steps.iter().map(|step| step.get("content"));
            for content in steps.chain([objective]).flatten().filter_map(Value::as_str) {
                *contents.entry(content.to_owned()).or_default() += 1;
            }
        }
    }
    contents
}

/// How many of these contents are not among the others.
fn more_than(contents: &BTreeMap<String, usize>, others: &BTreeMap<String, usize>) -> usize {
    let more =
        |(content, times): (&String, &usize)| times.saturating_sub(others.get(content).copied().unwrap_or(0));
    contents.iter().map(more).sum()
}

#[test]
fn a_record_with_a_changed_field_loses_and_adds_few_steps() {
    for name in RECORDINGS.iter().filter(|name| !name.ends_with(".eval")) {
        let file = folder().join(name);
        let text = fs::read_to_string(&file).unwrap();
        let values: Vec<Json> = Deserializer::from_str(&text)
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let mut count = 0;
        let mut counted = values.clone();
        counted
            .iter_mut()
            .for_each(|value| change(value, usize::MAX - 1, &mut count));
        let lines_of = |values: &[Json]| {
            values
                .iter()
                .map(|value| format!("{value}\n"))
                .collect::<String>()
        };
        let unchanged = contents_of(&read(&file, lines_of(&values).as_bytes()));
        let (mut changes, mut lost, mut added) = (0, 0, 0);
        // A step that is no multiple of three makes each kind of change.
        let step = count.div_ceil(MOST_CHANGES) / 3 * 3 + 1;
        for at in (0..count).step_by(step) {
            let (mut changed, mut number) = (values.clone(), 0);
            changed
                .iter_mut()
                .for_each(|value| change(value, at, &mut number));
            let contents = contents_of(&read(&file, lines_of(&changed).as_bytes()));
            changes += 1;
            lost += more_than(&unchanged, &contents);
            added += contents
                .keys()
                .filter(|content| !unchanged.contains_key(*content))
                .count();
        }
        // A change loses the record that it is in, at most; one of the first in a session loses more.
        let all = changes * unchanged.values().sum::<usize>();
        assert!(
            lost * 4 <= all && added * 8 <= all,
            "{name}: {lost} of {all} lost, {added} added"
        );
    }
}
