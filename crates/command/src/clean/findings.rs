//! The file of `--findings`: JSON, or SARIF for the pages of code hosts.

use knowledgepulse_json::{Value, object};

use super::Found;

/// Returns the contents of a file of findings; SARIF if its name ends so.
pub(super) fn report(file: &str, found: &[Found], version: &str) -> String {
    let report = if file.to_ascii_lowercase().ends_with(".sarif") {
        sarif(found, version)
    } else {
        Value::Array(found.iter().map(plain).collect())
    };
    report.to_json() + "\n"
}

fn plain(found: &Found) -> Value {
    object([
        ("file", found.file.as_str().into()),
        ("line", number(found.line)),
        ("kind", found.finding.name.as_str().into()),
        ("path", found.finding.path.as_str().into()),
        ("excerpt", found.finding.excerpt.as_str().into()),
    ])
}

/// SARIF 2.1.0.
fn sarif(found: &[Found], version: &str) -> Value {
    let mut kinds: Vec<&str> = found.iter().map(|found| found.finding.name.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let rules = kinds
        .into_iter()
        .map(|kind| object([("id", kind.into())]))
        .collect();
    let driver = object([
        ("name", "kp-score".into()),
        ("version", version.into()),
        ("rules", Value::Array(rules)),
    ]);
    let run = object([
        ("tool", object([("driver", driver)])),
        ("results", Value::Array(found.iter().map(result).collect())),
    ]);
    object([
        ("$schema", "https://json.schemastore.org/sarif-2.1.0.json".into()),
        ("version", "2.1.0".into()),
        ("runs", Value::Array(vec![run])),
    ])
}

fn result(found: &Found) -> Value {
    let finding = &found.finding;
    let place = object([
        (
            "artifactLocation",
            object([("uri", found.file.replace('\\', "/").as_str().into())]),
        ),
        ("region", object([("startLine", number(found.line))])),
    ]);
    object([
        ("ruleId", finding.name.as_str().into()),
        ("level", "error".into()),
        (
            "message",
            object([(
                "text",
                format!("{}: {}", finding.name, finding.excerpt).as_str().into(),
            )]),
        ),
        (
            "locations",
            Value::Array(vec![object([("physicalLocation", place)])]),
        ),
    ])
}

#[allow(clippy::cast_precision_loss)] // No file has 2^53 lines.
fn number(line: usize) -> Value {
    Value::Number(line as f64)
}
