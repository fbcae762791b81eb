//! Compares a report with figures computed in the plainest way from all traces at once.

use std::sync::Arc;

use knowledgepulse_formats::FormatName;
use knowledgepulse_index::memory::{Basis, Nearest, Novelty, Reading};
use knowledgepulse_json::parse_str;
use knowledgepulse_score::{
    overrides::{Override, OverrideRule},
    weights::{self, Profile},
};
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::score::scored::{RunInfo, Scored, TraceInfo, tests::scored};

fn count_of(count: u64) -> Value {
    count.into_value()
}

fn options() -> ReportOptions {
    ReportOptions {
        threshold: Some(0.6),
        sources: vec!["traces.jsonl".into()],
        novelty: Method::Prefix,
        dtype: Some("fp32".into()),
        version: "1.2.3".into(),
    }
}

fn run() -> Run {
    Run {
        finished_at: "2026-01-02T03:04:05.000Z".into(),
        seconds: 1.5,
        interrupted: false,
    }
}

/// Returns a trace of a score, which resembles the trace of a label.
fn trace(id: &str, score: f64, nearest: Option<(&str, f64)>) -> Scored {
    let novelty = nearest.map_or(0.5, |(_, similarity)| 1.0 - similarity);
    let dimensions = ByDimension::from_array([0.5, novelty, 0.5, 0.5]);
    let profile = Profile {
        name: "default".into(),
        weights: weights::DEFAULT,
    };
    let contributions = weights::contributions(dimensions, profile.weights);
    let nearest = nearest.map(|(label, similarity)| Nearest {
        label: Some(label.into()),
        similarity,
        parts: None,
        words: None,
    });
    Scored {
        place: Place {
            source: "traces.jsonl".into(),
            line: 1,
            index: None,
        },
        about: TraceInfo {
            format: FormatName::Trace,
            agent: "trace".into(),
            when: None,
            steps: 2,
            success: Some(true),
            has_confidence: true,
            id: Some(id.into()),
            objective: format!("Objective of {id}").into(),
            domain: "code".into(),
            run: RunInfo::default(),
        },
        breakdown: Breakdown {
            score,
            dimensions,
            profile: Arc::new(profile),
            contributions,
            composite: score,
            overrides: Vec::new(),
            novelty: Novelty {
                value: dimensions.novelty,
                basis: Basis::Memory,
                nearest,
                reading: Some(Reading {
                    tokens: Some(100),
                    truncated: false,
                }),
            },
        },
    }
}

fn report(traces: impl IntoIterator<Item = Scored>) -> Report {
    let mut report = Report::new(options());
    for trace in traces {
        report.add(&trace, "");
    }
    report
}

fn summary(traces: impl IntoIterator<Item = Scored>) -> Value {
    report(traces).summary(&run())
}

/// Returns the value at a path of fields and positions, such as `duplicates.groups.0.size`.
fn at(value: &Value, path: &str) -> Value {
    let step = |value: &Value, name: &str| match name.parse::<usize>() {
        Ok(position) => value.as_array().and_then(|values| values.get(position).cloned()),
        Err(_) => value.get(name).cloned(),
    };
    let found = path
        .split('.')
        .try_fold(value.clone(), |value, name| step(&value, name));
    found.unwrap_or_else(|| panic!("{path} is not in {}", value.to_json()))
}

fn json(value: &Value, path: &str) -> String {
    at(value, path).to_json()
}

fn count(value: &Value, path: &str) -> usize {
    at(value, path).as_array().unwrap().len()
}

fn ids(value: &Value, path: &str) -> Vec<String> {
    let traces = at(value, path);
    let ids = traces.as_array().unwrap().iter().map(|trace| at(trace, "id"));
    ids.map(|id| id.as_str().unwrap().to_owned()).collect()
}

#[test]
fn sources_are_named_without_their_folders() {
    let mut report = Report::new(ReportOptions {
        sources: vec!["/srv/jane/first.jsonl".into()],
        ..options()
    });
    let mut scored = trace("a", 0.7, None);
    scored.place.source = r"C:\jane\session.jsonl".into();
    report.add(&scored, "");
    report.add_error(&scored.place, &"bad".into());
    let summary = report.summary(&run());
    assert_eq!(json(&summary, "sources"), r#"["first.jsonl"]"#);
    for path in ["traces.0.source", "errors.first.0.source"] {
        assert_eq!(json(&summary, path), r#""session.jsonl""#);
    }
}

proptest! {
    #[test]
    fn summary_counts_the_traces(traces in vec(scored(), 0..16), threshold in 0.0..1.0) {
        let mut report = Report::new(ReportOptions { threshold: Some(threshold), ..options() });
        for scored in &traces {
            report.add(scored, "");
        }
        let summary = report.summary(&run());
        let matching = |is: &dyn Fn(&Scored) -> bool| count_of(traces.iter().filter(|scored| is(scored)).count() as u64);
        prop_assert_eq!(at(&summary, "count"), matching(&|_| true));
        prop_assert_eq!(at(&summary, "kept"), matching(&|scored| scored.breakdown.score >= threshold));
        prop_assert_eq!(at(&summary, "succeeded"), matching(&|scored| scored.about.success == Some(true)));
        prop_assert_eq!(at(&summary, "known"), matching(&|scored| scored.about.success.is_some()));
        prop_assert_eq!(count(&summary, "traces"), traces.len());
        let sum = |list: &str, field: &str| {
            let list = at(&summary, list);
            list.as_array().unwrap().iter().map(|entry| at(entry, field).as_number().unwrap()).sum::<f64>()
        };
        prop_assert_eq!(sum("domains", "count"), traces.len() as f64);
        prop_assert_eq!(sum("profiles", "count"), traces.len() as f64);
    }

    #[test]
    fn render_puts_the_figures_into_the_page_as_text(traces in vec(scored(), 0..6)) {
        let report = report(traces);
        let html = report.render(&run(), "<a>__KNOWLEDGEPULSE_REPORT__</a>").unwrap();
        let figures = html.strip_prefix("<a>").and_then(|html| html.strip_suffix("</a>")).unwrap();
        let is_plain = !figures.contains(['<', '>', '&', '\u{2028}', '\u{2029}']);
        prop_assert!(is_plain);
        prop_assert_eq!(parse_str(figures).unwrap(), parse_str(&report.summary(&run()).to_json()).unwrap());
    }
}

proptest! {
    #[test]
    fn traces_are_listed_with_the_highest_scores_first(scores in vec(0_u8..20, 0..40)) {
        let scores: Vec<f64> = scores.into_iter().map(|score| f64::from(score) / 20.0).collect();
        let summary = summary(scores.iter().enumerate().map(|(at, &score)| trace(&at.to_string(), score, None)));
        let mut ranks: Vec<usize> = (0..scores.len()).collect();
        ranks.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let expected: Vec<_> = ranks.iter().map(ToString::to_string).collect();
        prop_assert_eq!(ids(&summary, "traces"), expected);
    }

    #[test]
    fn score_bins_tell_what_each_step_of_the_slider_keeps(scores in vec(prop_oneof![0.0..=1.0, (0_u8..=100).prop_map(|step| f64::from(step) / 100.0)], 1..50)) {
        let summary = summary(scores.iter().map(|&score| trace("a", score, None)));
        let bins = at(&summary, "scoreBins.bins").as_number().unwrap();
        let filled = at(&summary, "scoreBins.filled");
        for step in 0..=100_u8 {
            let kept = filled.as_array().unwrap().iter().filter(|bin| at(bin, "0").as_number().unwrap() >= f64::from(step) * bins / 100.0);
            let kept: f64 = kept.map(|bin| at(bin, "1").as_number().unwrap()).sum();
            prop_assert_eq!(kept, scores.iter().filter(|&&score| score >= f64::from(step) / 100.0).count() as f64);
        }
    }

    #[test]
    fn near_duplicates_are_grouped_as_connected_components(nearest in vec((any::<prop::sample::Index>(), prop_oneof![0.0..0.95, 0.95..1.0]), 1..200)) {
        let mut traces = vec![trace("0", 0.5, None)];
        let mut component: Vec<usize> = vec![0];
        for (id, (nearest, similarity)) in (1..).zip(&nearest) {
            let nearest = nearest.index(id);
            traces.push(trace(&id.to_string(), 0.5, Some((&nearest.to_string(), *similarity))));
            component.push(if *similarity >= 0.95 { component[nearest] } else { id });
        }
        let sizes = (0..traces.len()).map(|root| component.iter().filter(|&&other| other == root).count());
        let mut sizes: Vec<_> = sizes.filter(|&size| size > 1).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let summary = summary(traces);
        prop_assert_eq!(at(&summary, "duplicates.groupCount"), count_of(sizes.len() as u64));
        sizes.truncate(30);
        let groups = at(&summary, "duplicates.groups");
        prop_assert_eq!(groups.as_array().unwrap().len(), sizes.len());
        for (group, size) in groups.as_array().unwrap().iter().zip(sizes) {
            prop_assert_eq!(at(group, "size"), count_of(size as u64));
            let members = ids(group, "members");
            prop_assert_eq!(members.len(), size.min(8));
            let component_of = |id: &String| component[id.parse::<usize>().unwrap()];
            prop_assert!(members.iter().all(|id| component_of(id) == component_of(&members[0])));
        }
    }
}

#[test]
fn render_of_a_page_without_one_place_fails() {
    for page in ["", "<html>", &PLACE.repeat(2)] {
        let error = report([]).render(&run(), page).unwrap_err();
        assert!(error.message.contains("npm run setup"), "{error:?}");
    }
}

#[test]
fn a_group_names_the_trace_that_was_first() {
    let summary = summary([trace("a", 0.5, None), trace("b", 0.5, Some(("a", 0.98)))]);
    assert_eq!(
        json(&summary, "duplicates"),
        "{\"similarity\":0.95,\"count\":1,\"groupCount\":1,\"groups\":[{\"size\":2,\
         \"minSimilarity\":0.98,\"maxSimilarity\":0.98,\"members\":[\
         {\"position\":null,\"id\":\"a\"},\
         {\"position\":1,\"id\":\"b\",\"nearest\":\"a\",\"similarity\":0.98}]}]}"
    );
}

#[test]
fn a_group_begins_with_a_trace_of_an_earlier_run() {
    let summary = summary([trace("a", 0.5, Some(("earlier", 0.97)))]);
    assert_eq!(
        json(&summary, "duplicates.groups.0.members.0"),
        r#"{"position":null,"id":"earlier"}"#
    );
}

#[test]
fn near_duplicates_may_have_the_same_id_or_none() {
    let copies = summary([trace("a", 0.5, None), trace("a", 0.5, Some(("a", 1.0)))]);
    assert_eq!(ids(&copies, "duplicates.groups.0.members"), ["a", "a"]);
    let mut nameless = trace(" ", 0.5, Some((" ", 1.0)));
    nameless.about.id = None;
    let copies = summary([nameless.clone(), nameless]);
    assert_eq!(json(&copies, "duplicates.groupCount"), "2");
}

#[test]
fn traces_without_an_embedder_are_not_compared() {
    let traces = [Basis::EmptyMemory, Basis::Store, Basis::NoEmbedder].map(|basis| {
        let mut trace = trace("a", 0.5, None);
        trace.breakdown.novelty.basis = basis;
        trace
    });
    assert_eq!(json(&summary(traces), "notCompared"), "1");
}

#[test]
fn the_largest_groups_are_listed_however_many_there_are() {
    let mut report = report([trace("0", 0.5, None)]);
    for id in 1..=5 {
        report.add(&trace(&id.to_string(), 0.5, Some(("0", 0.97))), "");
    }
    for pair in 0..4000 {
        report.add(&trace(&format!("first {pair}"), 0.5, None), "");
        let nearest = format!("first {pair}");
        report.add(&trace(&format!("second {pair}"), 0.5, Some((&nearest, 0.97))), "");
    }
    // It is still known which group this one belongs to.
    report.add(&trace("6", 0.5, Some(("0", 0.97))), "");
    let summary = report.summary(&run());
    assert_eq!(json(&summary, "duplicates.groupCount"), "4001");
    assert_eq!(json(&summary, "duplicates.groups.0.size"), "7");
    assert_eq!(count(&summary, "duplicates.groups"), 30);
}

#[test]
fn a_report_of_many_long_names_is_small() {
    let mut report = Report::new(ReportOptions {
        sources: vec!["<".repeat(300); 200],
        ..options()
    });
    for at in 0..5_000_u32 {
        let name = |at: u32| format!("{at}{}", "<".repeat(300));
        let mut scored = trace(&name(at), 0.5, Some((&name(at.saturating_sub(at % 40)), 0.96)));
        scored.about.domain = name(at).into();
        scored.about.objective = name(at).into();
        scored.place.source = name(at);
        scored.breakdown.profile = Arc::new(Profile {
            name: name(at),
            weights: weights::DEFAULT,
        });
        report.add(&scored, "");
        report.add_error(&scored.place, &name(at).into());
    }
    let summary = report.summary(&run());
    assert_eq!(json(&summary, "domains.0.name"), r#""(others)""#);
    for (path, expected) in [
        ("sources", 50),
        ("domains", 41),
        ("profiles", 41),
        ("duplicates.groups", 30),
        ("errors.first", 100),
    ] {
        assert_eq!(count(&summary, path), expected, "{path}");
    }
    assert_eq!(json(&summary, "errors.count"), "5000");
    // `<` takes six bytes.
    assert!(report.render(&run(), PLACE).unwrap().len() < LIST_BYTES + 2_000_000);
}

#[test]
fn names_of_which_nothing_can_be_seen_are_null() {
    let mut nameless = trace("\u{200b}\u{2066}\t", 0.5, Some((" ", 0.99)));
    nameless.about.domain = "".into();
    nameless.breakdown.profile = Arc::new(Profile {
        name: " ".into(),
        weights: weights::DEFAULT,
    });
    let summary = summary([nameless]);
    assert_eq!(json(&summary, "domains.0.name"), r#""""#);
    for path in [
        "profiles.0.name",
        "traces.0.id",
        "traces.0.domain",
        "traces.0.profile",
        "traces.0.nearest.label",
    ] {
        assert_eq!(at(&summary, path), Value::Null, "{path}");
    }
}

#[test]
fn a_report_without_traces_has_no_quantiles() {
    let summary = summary([]);
    assert_eq!(json(&summary, "scores"), "null");
    assert_eq!(json(&summary, "scoreBins"), r#"{"bins":1000,"filled":[]}"#);
}

#[test]
fn a_listed_trace_has_all_that_explains_its_score() {
    let mut scored = trace("a", 0.5, Some(("b", 0.25)));
    scored.place.index = Some(3);
    scored.breakdown.overrides = vec![Override {
        rule: OverrideRule::RecoveryBonus,
        before: 0.4,
        after: 0.5,
    }];
    let summary = summary([scored]);
    assert_eq!(
        json(&summary, "traces.0"),
        "{\"position\":0,\"id\":\"a\",\"source\":\"traces.jsonl\",\"line\":1,\"element\":3,\"excerpt\":\"Objective of a\",\"agent\":\"trace\",\
         \"domain\":\"code\",\"createdAt\":null,\"success\":true,\"stepCount\":2,\"toReview\":null,\"score\":0.5,\
         \"dimensions\":[0.5,0.75,0.5,0.5],\"contributions\":[0.125,0.26249999999999996,0.075,0.125],\
         \"profile\":\"default\",\"overrides\":[{\"rule\":\"recovery-bonus\",\"before\":0.4,\"after\":0.5}],\
         \"basis\":\"cache\",\"truncated\":false,\"nearest\":{\"label\":\"b\",\"similarity\":0.25}}"
    );
    assert_eq!(json(&summary, "rules"), r#"{"recovery-bonus":1}"#);
}

#[test]
fn domains_have_the_mean_of_each_measure_the_largest_first() {
    let traces = [("b", 0.0), ("a", 0.5), ("a", 1.0)].map(|(domain, value)| {
        let mut trace = trace("a", value, None);
        trace.about.domain = domain.into();
        trace.breakdown.dimensions =
            ByDimension::from_array([value / 2.0, value + 1.0, value / 4.0, value / 8.0]);
        trace
    });
    assert_eq!(
        json(&summary(traces), "domains"),
        "[{\"name\":\"a\",\"count\":2,\"score\":0.75,\"dimensions\":[0.375,1.75,0.1875,0.09375]},\
         {\"name\":\"b\",\"count\":1,\"score\":0,\"dimensions\":[0,1,0,0]}]"
    );
}

#[test]
fn scores_have_their_spread() {
    let summary = summary([0.5, 1.0].map(|score| trace("a", score, None)));
    assert_eq!(
        json(&summary, "scores"),
        r#"{"min":0.5,"p10":0.55,"p25":0.625,"median":0.75,"p75":0.875,"p90":0.95,"max":1}"#
    );
}

/// Returns the text of a trace with these steps.
fn text_of(steps: &str) -> String {
    format!(r#"{{"steps":{steps}}}"#)
}

#[test]
fn a_listed_trace_has_its_agent_and_its_steps_cut_to_a_length() {
    let mut report = report([]);
    let long = "x".repeat(3_000);
    let steps = format!(
        r#"[{{"type":"thought","content":"a\nb"}},{{"type":"tool_call","content":"","tool":{{"name":"Bash"}},"input":{{"c":1}},"output_summary":"o k"}},{{"type":"observation","content":"{long}"}},7]"#
    );
    let mut scored = trace("a", 0.5, None);
    scored.about.agent = "codex".into();
    scored.about.when = Some("2026-02-01T08:59:59.000Z".into());
    scored.about.steps = 4;
    report.add(&scored, &text_of(&steps));
    let summary = report.summary(&run());
    assert_eq!(json(&summary, "traces.0.agent"), r#""codex""#);
    assert_eq!(
        json(&summary, "traces.0.createdAt"),
        r#""2026-02-01T08:59:59.000Z""#
    );
    assert_eq!(json(&summary, "traces.0.stepCount"), "4");
    assert_eq!(
        json(&summary, "traces.0.steps.0"),
        r#"{"type":"thought","text":"a\nb"}"#
    );
    assert_eq!(
        json(&summary, "traces.0.steps.1"),
        r#"{"type":"tool_call","text":"{\"c\":1}","tool":"Bash","output":"o k"}"#
    );
    let cut = json(&summary, "traces.0.steps.2");
    assert_eq!(
        cut.len(),
        r#"{"type":"observation","text":"","length":3000}"#.len() + 2_000
    );
    assert_eq!(json(&summary, "traces.0.steps.3"), r#"{"type":null,"text":""}"#);
}

#[test]
fn the_best_traces_have_their_steps_within_a_limit() {
    let mut report = report([]);
    let steps = format!(
        "[{}]",
        vec![format!(r#"{{"type":"thought","content":"{}"}}"#, "<".repeat(2_000)); 90].join(",")
    );
    for id in 0..20_u8 {
        report.add(
            &trace(&id.to_string(), f64::from(id) / 20.0, None),
            &text_of(&steps),
        );
    }
    let summary = report.summary(&run());
    let traces = at(&summary, "traces");
    let with_steps: Vec<bool> = traces
        .as_array()
        .unwrap()
        .iter()
        .map(|trace| trace.get("steps").is_some())
        .collect();
    // Each `<` takes six bytes, and 1,080,000 go seven times into eight million.
    assert_eq!(with_steps, [vec![true; 7], vec![false; 13]].concat());
    assert!(report.render(&run(), PLACE).unwrap().len() < STEP_BYTES + 100_000);
}

#[test]
fn an_unknown_outcome_is_not_told_and_not_counted() {
    let mut scored = trace("a", 0.5, None);
    scored.about.success = None;
    let summary = summary([scored]);
    assert_eq!(json(&summary, "traces.0.success"), "null");
    assert_eq!([json(&summary, "known"), json(&summary, "succeeded")], ["0", "0"]);
}

#[test]
fn places_to_review_are_counted() {
    let counts = ["Dear Jane, come to 12 Main Street", "Fix it"].map(|objective| {
        let mut report = report([]);
        let text = format!(r#"{{"task":{{"objective":"{objective}"}},"steps":[]}}"#);
        report.add(&trace("a", 0.5, None), &text);
        json(&report.summary(&run()), "traces.0.toReview")
    });
    assert_ne!(counts[0], "0");
    assert_eq!(counts[1], "0");
}

#[test]
fn without_a_threshold_everything_is_kept() {
    let mut report = Report::new(ReportOptions {
        threshold: None,
        ..options()
    });
    report.add(&trace("a", 0.0, None), "");
    let summary = report.summary(&run());
    assert_eq!(
        [json(&summary, "threshold"), json(&summary, "kept")],
        ["null", "1"]
    );
}
