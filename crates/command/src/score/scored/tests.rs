//! Any trace that was scored, for tests of what is shown of it.

use std::sync::Arc;

use knowledgepulse_index::{
    memory::{Basis, Nearest, Novelty, Reading},
    similarity::Similarity,
    traces::explain::{ExplainedWord, ExplainedWords},
};
use knowledgepulse_score::{
    dimensions::ByDimension,
    overrides::{Override, OverrideRule},
    weights::{Profile, contributions},
};
use proptest::{collection::vec, option, prelude::*};

use super::*;

fn text() -> impl Strategy<Value = Text> {
    prop_oneof![
        "[ -~]{0,30}".prop_map(Text::from),
        "\\PC{0,300}".prop_map(Text::from),
        "\\s{0,3}".prop_map(Text::from),
        vec(any::<u16>(), 0..20).prop_map(|units| Text::from_utf16_lossy(&units)),
    ]
}

fn unit() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..=1.0, Just(0.0), Just(1.0), Just(0.5), Just(0.75)]
}

fn word() -> impl Strategy<Value = ExplainedWord> {
    ("[a-z]{1,9}", unit(), 0..1000_usize).prop_map(|(text, weight, traces)| ExplainedWord {
        text,
        weight,
        traces,
    })
}

fn nearest() -> impl Strategy<Value = Nearest> {
    let parts = (unit(), unit(), option::of(unit())).prop_map(|(lexical, contained, embedded)| Similarity {
        lexical,
        contained,
        embedded,
    });
    let words =
        (vec(word(), 0..4), vec(word(), 0..4)).prop_map(|(shared, new)| ExplainedWords { shared, new });
    (
        option::of("[a-z\\PC]{0,40}"),
        prop_oneof![unit(), -1.0..1.0, 0.94..0.96],
        option::of(parts),
        option::of(words),
    )
        .prop_map(|(label, similarity, parts, words)| Nearest {
            label: label.map(Into::into),
            similarity,
            parts,
            words,
        })
}

fn breakdown() -> impl Strategy<Value = Breakdown> {
    let novelty = (
        prop_oneof![0.0..2.0, Just(0.5), Just(-1e-9)],
        proptest::sample::select(vec!["memory", "empty-memory", "store", "no-embedder"]),
        option::of(nearest()),
        option::of((option::of(0..600_usize), any::<bool>())),
    );
    let numbers = proptest::array::uniform11(unit());
    let rules = proptest::sample::subsequence(
        vec![
            OverrideRule::SingleThought,
            OverrideRule::RecoveryBonus,
            OverrideRule::SingleToolPenalty,
            OverrideRule::Clamp,
        ],
        0..=4,
    );
    (numbers, novelty, rules, "[a-z]{0,12}").prop_map(
        |(numbers, (value, basis, nearest, reading), rules, name)| {
            let [
                complexity,
                tools,
                outcome,
                a,
                b,
                c,
                d,
                composite,
                score,
                before,
                after,
            ] = numbers;
            let dimensions = ByDimension::from_array([complexity, value, tools, outcome]);
            let weights = ByDimension::from_array([a, b, c, d]);
            Breakdown {
                score,
                dimensions,
                profile: Arc::new(Profile { name, weights }),
                contributions: contributions(dimensions, weights),
                composite,
                overrides: rules
                    .into_iter()
                    .map(|rule| Override { rule, before, after })
                    .collect(),
                novelty: Novelty {
                    value,
                    basis: Basis::from_name(basis).unwrap(),
                    nearest,
                    reading: reading.map(|(tokens, truncated)| Reading { tokens, truncated }),
                },
            }
        },
    )
}

fn about() -> impl Strategy<Value = TraceInfo> {
    (
        proptest::sample::select(FormatName::ALL),
        (
            option::of("[0-9T:.-]{1,24}"),
            0..1000_u64,
            option::of(any::<bool>()),
        ),
        (text(), option::of(text()), text(), text()),
    )
        .prop_map(
            |(format, (when, steps, success), (agent, id, objective, domain))| TraceInfo {
                format,
                agent,
                when,
                steps,
                project: None,
                turns: 1,
                facts: Vec::new(),
                success,
                told: None,
                id,
                objective,
                domain,
                run: RunInfo::default(),
            },
        )
}

/// Any trace that was scored.
pub(crate) fn scored() -> impl Strategy<Value = Scored> {
    let place = ("[a-z/.]{1,60}", 1..1000_u64, option::of(0..1000_u64))
        .prop_map(|(source, line, index)| Place { source, line, index });
    // On the heap: with everything in it the strategy takes up most of a test's stack.
    (place, about().boxed(), breakdown().boxed()).prop_map(|(place, about, breakdown)| Scored {
        place,
        about,
        breakdown,
        text: 0,
    })
}
