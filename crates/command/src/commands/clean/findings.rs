//! The file of `--findings`: JSON, or SARIF for the pages of code hosts.

use knowledgepulse_json::Value;

use super::Found;
use crate::{json_object, values::list};

/// Returns the contents of a file of findings; SARIF if its name ends so.
pub(super) fn report(file: &str, found: &[Found], version: &str) -> String {
    let report = if file.to_ascii_lowercase().ends_with(".sarif") {
        sarif(found, version)
    } else {
        list(found.iter().map(plain))
    };
    report.to_json() + "\n"
}

fn plain(found: &Found) -> Value {
    json_object! {
        "file": found.file.as_str(),
        "line": found.line,
        "kind": found.finding.name.as_str(),
        "path": found.finding.path.as_str(),
        "excerpt": found.finding.excerpt.as_str(),
    }
}

/// SARIF 2.1.0.
fn sarif(found: &[Found], version: &str) -> Value {
    let mut kinds: Vec<&str> = found.iter().map(|found| found.finding.name.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let rules = list(kinds.into_iter().map(|kind| json_object! { "id": kind }));
    let driver = json_object! { "name": "kp-score", "version": version, "rules": rules };
    let run = json_object! {
        "tool": json_object! { "driver": driver },
        "results": list(found.iter().map(result)),
    };
    json_object! {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": vec![run],
    }
}

fn result(Found { file, line, finding }: &Found) -> Value {
    let place = json_object! {
        "artifactLocation": json_object! { "uri": file.replace('\\', "/") },
        "region": json_object! { "startLine": *line },
    };
    json_object! {
        "ruleId": finding.name.as_str(),
        "level": "error",
        "message": json_object! { "text": format!("{}: {}", finding.name, finding.excerpt) },
        "locations": vec![json_object! { "physicalLocation": place }],
    }
}
