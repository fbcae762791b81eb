//! Any bytes as a file of sessions: what is read from it does not depend on how its bytes come, and is a trace that can be scored.

#![no_main]

use knowledgepulse_formats::{
    FormatName,
    reader::{Content, Item, Settings, TraceReader},
    records::Records,
};
use knowledgepulse_json::Value;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = read(&[bytes]).unwrap_or_default();
    let (first, second) = bytes.split_at(bytes.len() / 3);
    let parts = read(&[first, second]).unwrap_or_default();
    assert_eq!(whole.len(), parts.len());
    for (item, other) in whole.into_iter().zip(parts) {
        assert_eq!(
            (item.place, item.format, told(&item.content)),
            (other.place, other.format, told(&other.content))
        );
        match item.content {
            Content::Read(trace) if matches!(item.format, None | Some(FormatName::Trace)) => {}
            Content::Read(trace) => assert!(
                trace
                    .get("steps")
                    .is_some_and(|steps| matches!(steps, Value::Array(_)))
            ),
            Content::Wrong(reason) | Content::Skipped(reason) => assert!(!reason.is_empty()),
        }
    }
});

/// Returns what was read, without the time of a trace that has none: it is that of reading.
fn told(content: &Content) -> Vec<&Value> {
    let Content::Read(value) = content else {
        return Vec::new();
    };
    ["id", "task", "steps", "outcome"]
        .iter()
        .filter_map(|name| value.get(name))
        .collect()
}

/// Reads a file that comes in pieces; `None` if it is no text.
fn read(pieces: &[&[u8]]) -> Option<Vec<Item>> {
    let mut reader = TraceReader::new(Settings::default());
    let mut records = Records::default();
    let mut runs = Vec::new();
    for piece in pieces {
        records.push(piece).ok()?;
        runs.extend(records.by_ref().flat_map(|record| reader.read(record)));
    }
    records.finish().ok()?;
    runs.extend(records.flat_map(|record| reader.read(record)));
    runs.extend(reader.end());
    Some(runs.into_iter().flat_map(|run| run.build()).collect())
}
