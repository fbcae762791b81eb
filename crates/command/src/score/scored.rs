//! A trace that was scored.

use knowledgepulse_formats::FormatName;
use knowledgepulse_json::Text;
use knowledgepulse_score::Breakdown;

/// Where a record is.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The name of the file, or `stdin`.
    pub source: String,
    /// The line on which it begins, from 1.
    pub line: u64,
    /// The position in the array that it is an element of, from 0.
    pub index: Option<u64>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.source, self.line)?;
        self.index.map_or(Ok(()), |index| write!(formatter, "[{index}]"))
    }
}

/// What results tell of a trace beside its score.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// The format that it was converted from, or [`FormatName::Trace`].
    pub format: FormatName,
    /// The agent: the format in which it was recorded at first.
    pub agent: Text,
    /// When it began, in ISO 8601; `None` if that is not known.
    pub when: Option<String>,
    /// How many steps it has.
    pub steps: u64,
    /// Whether it succeeded; `None` if that is not known.
    pub success: Option<bool>,
    /// Whether its confidence is known.
    pub has_confidence: bool,
    /// Its `id`, if that is a string.
    pub id: Option<Text>,
    /// The beginning of its objective.
    pub objective: Text,
    /// Its `task_domain`, or `default`.
    pub domain: Text,
}

/// A trace that was scored.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Where it is.
    pub place: Place,
    /// What is told of it.
    pub about: About,
    /// Its score, and the numbers from which it was computed.
    pub breakdown: Breakdown,
}

#[cfg(test)]
pub(crate) mod tests {
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
        let parts =
            (unit(), unit(), option::of(unit())).prop_map(|(lexical, contained, embedded)| Similarity {
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
            proptest::sample::select(vec!["cache", "empty-cache", "store", "no-embedder", "given"]),
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

    fn about() -> impl Strategy<Value = About> {
        (
            (proptest::sample::select(FormatName::ALL), any::<bool>()),
            (
                option::of("[0-9T:.-]{1,24}"),
                0..1000_u64,
                option::of(any::<bool>()),
            ),
            (text(), option::of(text()), text(), text()),
        )
            .prop_map(
                |((format, has_confidence), (when, steps, success), (agent, id, objective, domain))| About {
                    format,
                    agent,
                    when,
                    steps,
                    success,
                    has_confidence,
                    id,
                    objective,
                    domain,
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
        })
    }
}
