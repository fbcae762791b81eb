//! Any bytes as the JSON of a trace: an error, or a score between 0 and 1 that is the one of the formulas.

#![no_main]

use std::{collections::HashSet, sync::Arc};

use knowledgepulse_native::{
    score::weights::Profiles,
    cache::novelty::{Extent, Novelty},
    score::{self, Scorer},
    trace::text,
    trace::Trace,
    trace::windows::{MOST_WINDOWS, WINDOW_BYTES},
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Ok(json) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(trace) = Trace::from_json(json) else { return };
    // Fields that the scorer does not read may hold what is no text.
    let Ok(json_value) = serde_json::from_str::<Value>(json) else {
        return;
    };
    let summary = Scorer {
        cache: Arc::default(),
        profiles: Profiles::default(),
        extent: Some(Extent::Full),
    }
    .summarize(&trace);
    for value in [0.0, 0.5, 1.0, 2.0] {
        let novelty = Novelty {
            value,
            ..Novelty::NEUTRAL
        };
        let breakdown = score::score(&summary.features, &summary.profile, novelty);
        let score = breakdown.score;
        assert!((0.0..=1.0).contains(&score), "{score}");
        let expected = formulas(&json_value, value);
        assert!((score - expected).abs() < 1e-12, "{score} {expected}");
        let last = breakdown.overrides.last().map(|last| last.after);
        assert_eq!(score, last.unwrap_or(breakdown.composite));
    }
    assert!((1..=MOST_WINDOWS).contains(&summary.texts.len()));
    assert!(
        summary
            .texts
            .iter()
            .all(|window| window.text.len() <= WINDOW_BYTES && window.bytes > 0)
    );
    assert_eq!(text::of(&trace), joined(&json_value));
});

/// The formulas of docs/scoring.md, word for word.
fn formulas(trace: &Value, novelty: f64) -> f64 {
    let steps = trace["steps"].as_array().expect("checked");
    let count = steps.len() as f64;
    let types: HashSet<_> = steps.iter().map(|step| step["type"].as_str()).collect();
    let tools: HashSet<_> = steps
        .iter()
        .filter_map(|step| step["tool"]["name"].as_str())
        .collect();
    let recoveries = steps
        .iter()
        .filter(|step| step["type"] == "error_recovery")
        .count();
    let success = trace["metadata"]["success"] == true;

    let recovery = if recoveries > 0 { 0.3 } else { 0.0 };
    let complexity = (types.len() as f64 / 4.0 * 0.5 + recovery + count / 20.0 * 0.2).min(1.0);
    let diversity = (tools.len() as f64 / count.max(1.0) * 3.0).min(1.0);
    let outcome = trace["outcome"]["confidence"].as_f64().expect("checked") * if success { 1.0 } else { 0.3 };
    let weights = match trace["metadata"]["task_domain"].as_str() {
        Some("finance") => [0.20, 0.25, 0.10, 0.45],
        Some("code") => [0.20, 0.30, 0.30, 0.20],
        Some("medical") => [0.15, 0.20, 0.10, 0.55],
        Some("customer_service") => [0.20, 0.30, 0.20, 0.30],
        _ => [0.25, 0.35, 0.15, 0.25],
    };
    let dimensions = [complexity, novelty, diversity, outcome];
    let mut score: f64 = dimensions
        .iter()
        .zip(weights)
        .map(|(value, weight)| value * weight)
        .sum();
    if steps.len() == 1 && steps[0]["type"] == "thought" {
        score = 0.1;
    }
    if recoveries > 2 && success {
        score = (score + 0.1).min(1.0);
    }
    if tools.len() == 1 {
        score = (score - 0.1).max(0.0);
    }
    score.clamp(0.0, 1.0)
}

fn joined(trace: &Value) -> String {
    let steps = trace["steps"].as_array().expect("checked");
    let contents: Vec<_> = steps
        .iter()
        .map(|step| step["content"].as_str().unwrap_or(""))
        .collect();
    let objective = trace["task"]["objective"].as_str().expect("checked");
    format!("{objective} {}", contents.join(" "))
}
