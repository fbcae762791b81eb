//! The recordings of `__test__/formats` become the traces of its folder `expected`. The spec `recordings` writes these.

use std::{fs, path::Path};

use knowledgepulse_json::{Value, parse};

use crate::{
    Context, DEFAULT_LIMIT,
    reader::{Content, Item, Settings, TraceReader},
    records::Records,
};

/// Reads a file, pushed in pieces.
fn read(file: &Path) -> Vec<Item> {
    let mut records = Records::new(DEFAULT_LIMIT);
    let mut reader = TraceReader::new(Settings {
        context: Context {
            file: Some(file.into()),
            ..Context::default()
        },
        ..Settings::default()
    });
    let mut items = Vec::new();
    for piece in fs::read(file).unwrap().chunks(1000) {
        records.push(piece).unwrap();
        items.extend(records.by_ref().flat_map(|record| reader.read(record)));
    }
    records.finish().unwrap();
    items.extend(records.flat_map(|record| reader.read(record)));
    items.extend(reader.end());
    items
}

/// Returns a result as the spec writes it. A recording without a time has that of the call, which is `now` there.
fn written(item: Item, expected: &Value) -> String {
    let number = |number: Option<u64>| number.map_or("null".into(), |number| number.to_string());
    let (line, index) = (number(item.line), number(item.index));
    let Content::Converted(trace, known) = item.content else {
        panic!("{:?}", item.content);
    };
    let time = |trace: &Value| {
        let metadata = trace.get("metadata")?;
        Some(metadata.get("created_at")?.as_str()?.to_owned())
    };
    let mut json = trace.to_json();
    if expected.get("trace").and_then(time).as_deref() == Some("now") {
        json = json.replacen(&time(&trace).unwrap(), "now", 1);
    }
    format!(
        r#"{{"line":{line},"index":{index},"format":"{}","known":{},"trace":{json}}}"#,
        item.format.unwrap(),
        known.into_value().to_json()
    )
}

#[test]
fn recordings_become_the_expected_traces() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../__test__/formats");
    for name in [
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
    ] {
        let expected = Path::new(&name.replace('/', "-")).with_extension("jsonl");
        let expected = fs::read_to_string(folder.join("expected").join(expected)).unwrap();
        let expected: Vec<_> = expected
            .lines()
            .map(|line| parse(line.as_bytes()).unwrap())
            .collect();
        let items = read(&folder.join(name));
        assert_eq!(items.len(), expected.len(), "{name}");
        for (item, expected) in items.into_iter().zip(expected) {
            let found = written(item, &expected);
            assert_eq!(
                parse(found.as_bytes()).unwrap().to_json(),
                expected.to_json(),
                "{name}"
            );
        }
    }
}
