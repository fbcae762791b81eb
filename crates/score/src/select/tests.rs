use std::time::Instant;

use knowledgepulse_index::{method::Method, options::MemoryOptions as Bounds, traces::TraceMemory};
use knowledgepulse_trace::{
    fixtures::{with_steps, with_texts},
    signs::Signs,
    words::Words,
};
use proptest::prelude::*;

use super::{
    value::{density, qualities},
    *,
};

const SUCCESS: SelectOutcome = SelectOutcome {
    success: Some(true),
    confidence: 1.0,
    is_verified: true,
    signs: NO_SIGNS,
    agent: 0,
};
const FAILED: SelectOutcome = SelectOutcome {
    success: Some(false),
    ..SUCCESS
};
const UNKNOWN: SelectOutcome = SelectOutcome {
    success: None,
    confidence: 0.5,
    ..SUCCESS
};
const NO_SIGNS: Signs = Signs {
    steps: 0,
    turns: 0,
    late_errors: 0,
    hedging: 0.0,
};

fn words(text: &str) -> Words {
    Words::of(&with_texts(text, &[]))
}

fn candidates(traces: &[(&str, SelectOutcome)]) -> Candidates {
    let mut candidates = Candidates::new(Method::Lexical, 384);
    for (text, outcome) in traces {
        candidates.add((&words(text)).into(), *outcome, None).unwrap();
    }
    candidates
}

fn options(count: usize) -> SelectOptions {
    SelectOptions {
        count: Count::Number(count),
        failures: None,
        threads: 1,
        only_new: false,
        ends: false,
    }
}

fn left(index: usize, standing: Standing) -> Left {
    Left {
        index,
        standing,
        unfit: None,
    }
}

fn known(index: usize, similarity: f64) -> Standing {
    Standing::Known(Neighbour { index, similarity })
}

fn indices(selection: &Selection) -> Vec<usize> {
    selection.chosen.iter().map(|chosen| chosen.index).collect()
}

/// Greedy by the definition: F of the whole set is computed for every trace that may join it.
fn naive(neighbours: &[Neighbours], candidates: &Candidates, count: usize) -> Vec<(usize, f64)> {
    let outcomes = candidates.outcomes();
    let all = outcomes.len();
    let quality: Vec<f64> = outcomes.iter().map(|outcome| outcome.told().unwrap()).collect();
    let mut similarity = vec![vec![0.0; all]; all];
    for (index, of) in neighbours.iter().enumerate() {
        similarity[index][index] = 1.0;
        for near in &of.nearest {
            similarity[index][near.index] = near.similarity;
        }
    }
    let value = |set: &[usize]| {
        let best = |i: usize| {
            let known = neighbours[i].before.map_or(0.0, |known| known.similarity);
            set.iter()
                .fold(known, |best, &j| best.max(quality[j] * similarity[i][j]))
        };
        (0..all).map(|i| quality[i] * best(i)).sum::<f64>()
    };
    let mut set = Vec::new();
    let mut found = Vec::new();
    while set.len() < count.min(all) {
        let before = value(&set);
        let gain = |j: usize| {
            let mut with = set.clone();
            with.push(j);
            value(&with) - before
        };
        let (mut best, mut most) = (usize::MAX, f64::NEG_INFINITY);
        for j in (0..all).filter(|j| !set.contains(j)) {
            // Of gains that differ by rounding alone, the first.
            if gain(j) > most + 1e-12 {
                (best, most) = (j, gain(j));
            }
        }
        set.push(best);
        found.push((best, most));
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn select_gains_as_much_as_greedy_by_the_definition(
        traces in prop::collection::vec((prop::collection::vec(0u32..12, 1..6), any::<bool>(), 1u8..4), 1..25),
        known in 0usize..6,
        count in 1usize..30,
    ) {
        let text = |words: &[u32]| words.iter().map(|word| format!("word{word} ")).collect::<String>();
        let now = Instant::now();
        let known = known.min(traces.len() - 1);
        let mut memory = TraceMemory::new(Method::Lexical, Bounds { max_elements: 100, ..Bounds::default() });
        for (own, ..) in &traces[..known] {
            let words = words(&text(own));
            memory.add((&words).into(), now).unwrap();
        }
        let mut candidates = Candidates::beside(&mut memory);
        for (own, success, confidence) in &traces[known..] {
            let outcome = SelectOutcome { success: Some(*success), confidence: f64::from(*confidence) / 4.0, ..SUCCESS };
            candidates.add((&words(&text(own))).into(), outcome, None).unwrap();
        }
        let neighbours = candidates.join(1, &|_| true).unwrap();
        let expected = naive(&neighbours, &candidates, count);
        let found = select(&mut candidates, &options(count), &|_| true).unwrap();
        prop_assert_eq!(found.chosen.len(), expected.len());
        for (chosen, (_, gain)) in found.chosen.iter().zip(&expected) {
            // Rounding may break a tie otherwise, and change the steps after it.
            if (chosen.gain - gain).abs() > 1e-9 {
                prop_assert!(found.chosen.iter().zip(&expected).any(|(chosen, expected)| chosen.index != expected.0));
                break;
            }
        }
        let last = found.chosen.last().unwrap().covered;
        prop_assert!(found.covered_before <= last && last <= 1.0);
        // Each trace is chosen or left, and stands for as many as say so.
        let standing = |standing: &Standing| matches!(standing, Standing::Chosen(_));
        let stood: usize = found.chosen.iter().map(|chosen| chosen.stands_for.len()).sum();
        prop_assert_eq!(found.left.iter().filter(|left| standing(&left.standing)).count(), stood);
        prop_assert_eq!(found.left.len() + found.chosen.len(), candidates.outcomes().len());
        // A smaller set is the beginning of a larger one.
        let all = select(&mut candidates, &options(usize::MAX), &|_| true).unwrap();
        prop_assert_eq!(&indices(&all)[..expected.len()], &indices(&found)[..]);
        if all.chosen.len() == candidates.outcomes().len() {
            prop_assert!((all.chosen.last().unwrap().covered - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn knee_is_where_a_curve_bends_most() {
    assert_eq!(knee(0.0, &[0.3, 0.6, 0.9, 0.92, 0.94, 0.96, 0.98, 1.0]), Some(3));
    assert_eq!(knee(0.5, &[0.7, 0.9, 0.91, 0.92]), Some(2));
    assert_eq!(knee(0.0, &[0.25, 0.5, 0.75, 1.0]), None);
    assert_eq!(knee(0.0, &[]), None);
    assert_eq!(knee(0.4, &[0.4, 0.4]), None);
}

#[test]
fn select_takes_one_success_of_each_task() {
    let traces = [
        ("book a flight to paris", FAILED),
        ("book a flight to paris today", SUCCESS),
        ("cancel my hotel room", SUCCESS),
        ("cancel my hotel room please", SUCCESS),
        ("compose music", FAILED),
    ];
    let selection = select(&mut candidates(&traces), &options(2), &|_| true).unwrap();
    let mut found = indices(&selection);
    found.sort_unstable();
    assert!(found == [1, 2] || found == [1, 3], "{found:?}");
    let flight = selection.chosen.iter().find(|chosen| chosen.index == 1).unwrap();
    assert_eq!(flight.stands_for[0].index, 0);
    assert_eq!(flight.nearest_left.unwrap().index, 0);
    assert!(matches!(
        selection.left[0].standing,
        Standing::Chosen(Neighbour { index: 1, .. })
    ));
    assert_eq!(selection.left.last(), Some(&left(4, Standing::Nothing)));
}

#[test]
fn select_breaks_ties_by_the_earlier_trace() {
    let traces = [
        ("same words", SUCCESS),
        ("same words", SUCCESS),
        ("same words", SUCCESS),
    ];
    let selection = select(&mut candidates(&traces), &options(3), &|_| true).unwrap();
    assert_eq!(indices(&selection), [0, 1, 2]);
    assert_eq!(selection.chosen[0].covered, 1.0);
    assert_eq!(selection.chosen[1].gain, 0.0);
}

#[test]
fn select_keeps_room_for_failures_that_nobody_solved() {
    let traces = [
        ("book a flight to paris", SUCCESS),
        ("book a flight to paris now", FAILED),
        ("cancel my hotel room", SUCCESS),
        ("write a poem", FAILED),
        ("paint the kitchen", SUCCESS),
    ];
    let quota = SelectOptions {
        failures: Some(Count::Percent(10.0)),
        ..options(3)
    };
    let selection = select(&mut candidates(&traces), &quota, &|_| true).unwrap();
    assert_eq!(selection.chosen[2].index, 3);
    assert_eq!(selection.chosen[2].reason, Reason::Failure);
    // One failure does not fill the room for four.
    let quota = SelectOptions {
        failures: Some(Count::Number(4)),
        ..options(4)
    };
    let selection = select(&mut candidates(&traces), &quota, &|_| true).unwrap();
    let reasons: Vec<_> = selection.chosen.iter().map(|chosen| chosen.reason).collect();
    assert_eq!(reasons[..2], [Reason::Failure, Reason::Coverage]);
    assert_eq!(selection.chosen.len(), 4);
}

#[test]
fn select_beside_what_is_known_takes_what_is_not() {
    let mut memory = TraceMemory::new(
        Method::Lexical,
        Bounds {
            max_elements: 10,
            ..Bounds::default()
        },
    );
    memory
        .add((&words("book a flight to paris")).into(), Instant::now())
        .unwrap();
    let mut candidates = Candidates::beside(&mut memory);
    for text in ["book a flight to paris", "cancel my hotel room"] {
        candidates.add((&words(text)).into(), SUCCESS, None).unwrap();
    }
    let selection = select(&mut candidates, &options(1), &|_| true).unwrap();
    assert_eq!(indices(&selection), [1]);
    assert_eq!(selection.left, [left(0, known(0, 1.0))]);
    assert_eq!(selection.covered_before, 0.5);
}

#[test]
fn count_of_a_percentage_is_rounded_up() {
    assert_eq!(Count::Percent(7.0).of(100), 7);
    assert_eq!(Count::Percent(10.0).of(11), 2);
    assert_eq!(Count::Percent(100.0).of(3), 3);
    assert_eq!(Count::Number(5).of(3), 3);
}

#[test]
fn select_of_nothing_is_empty() {
    let mut none = Candidates::new(Method::Lexical, 384);
    let selection = select(&mut none, &options(5), &|_| true).unwrap();
    assert!(selection.chosen.is_empty() && selection.left.is_empty());
}

#[test]
fn unknown_outcome_counts_as_the_mean_of_the_others() {
    let half = SelectOutcome {
        confidence: 0.5,
        ..SUCCESS
    };
    let none = vec![Neighbours::default(); 3];
    assert_eq!(qualities(&none, &[SUCCESS, UNKNOWN, half]), [1.0, 0.75, 0.5]);
    let traces = [
        ("book a flight", SUCCESS),
        ("write a poem", UNKNOWN),
        ("compose music", FAILED),
    ];
    let selection = select(&mut candidates(&traces), &options(2), &|_| true).unwrap();
    assert_eq!(indices(&selection), [0, 1]);
    let explanation = selection.explanation();
    assert!(explanation.contains("1 of 3 outcomes unknown"), "{explanation}");
    let known = select(&mut candidates(&traces[..1]), &options(2), &|_| true).unwrap();
    assert_eq!(
        known.explanation(),
        "every outcome is known: successes count more"
    );
}

/// Returns neighbours with these indices and similarities.
fn near(near: &[(usize, f64)]) -> Neighbours {
    let neighbour = |&(index, similarity)| Neighbour { index, similarity };
    Neighbours {
        nearest: near.iter().map(neighbour).collect(),
        before: None,
    }
}

#[test]
fn unsolved_is_a_failure_without_a_similar_success() {
    let outcomes = [FAILED, FAILED, FAILED, UNKNOWN, SUCCESS];
    let neighbours = [
        near(&[(1, 0.9), (4, 0.4)]),
        near(&[(0, 0.9), (4, 0.39)]),
        near(&[(3, 0.9)]),
        near(&[]),
        near(&[(0, 0.5)]),
    ];
    assert_eq!(
        unsolved(&neighbours, &outcomes),
        [false, true, true, false, false]
    );
}

#[test]
fn stand_finds_the_chosen_or_known_trace_that_covers_best() {
    let beside = |index, similarity, nearest| Neighbours {
        before: Some(Neighbour { index, similarity }),
        ..near(nearest)
    };
    let neighbours = [
        near(&[(3, 0.9), (4, 0.6), (5, 0.6)]),
        near(&[(0, 0.9)]),
        beside(1, 0.5, &[(5, 0.5)]),
        beside(0, 0.7, &[(4, 0.6)]),
        Neighbours::default(),
        Neighbours::default(),
    ];
    let ranks = [None, None, None, None, Some(0), Some(1)];
    let chosen = |index, similarity| Standing::Chosen(Neighbour { index, similarity });
    let qualities = [1.0, 1.0, 1.0, 1.0, 0.5, 0.5];
    let expected = [
        (0, chosen(4, 0.6)),
        (1, Standing::Nothing),
        (2, known(1, 0.5)),
        (3, known(0, 0.7)),
    ];
    assert_eq!(stand(&neighbours, &qualities, &ranks), expected);
}

#[test]
fn stands_for_has_the_most_similar_first_and_nothing_is_covered_without_value() {
    let traces = [
        ("book a flight to paris today with miles", FAILED),
        ("book a flight to paris", FAILED),
        ("book a flight to paris now", SUCCESS),
    ];
    let selection = select(&mut candidates(&traces), &options(1), &|_| true).unwrap();
    let stands_for: Vec<_> = selection.chosen[0]
        .stands_for
        .iter()
        .map(|near| near.index)
        .collect();
    assert_eq!((selection.chosen[0].index, stands_for), (2, vec![1, 0]));
    assert_eq!(selection.chosen[0].nearest_left.unwrap().index, 1);
    let worthless = SelectOutcome {
        confidence: 0.0,
        ..SUCCESS
    };
    let selection = select(&mut candidates(&[("a", worthless)]), &options(1), &|_| true).unwrap();
    assert_eq!(
        (selection.covered_before, selection.chosen[0].covered),
        (0.0, 0.0)
    );
}

#[test]
fn select_without_outcomes_covers_the_kinds_of_work() {
    let traces = [
        ("book a flight to paris", UNKNOWN),
        ("cancel my hotel room", UNKNOWN),
        ("cancel my hotel room please", UNKNOWN),
        ("cancel my hotel room now", UNKNOWN),
    ];
    let selection = select(&mut candidates(&traces), &options(2), &|_| true).unwrap();
    let found = indices(&selection);
    assert!(
        found[0] > 0 && found[1] == 0,
        "one of each kind, the larger first: {found:?}"
    );
    assert_eq!(selection.unknown, 4);
    assert_eq!(
        selection.explanation(),
        "no outcome is known: runs that ended soon, without errors and without hedging count more"
    );
}

#[test]
fn qualities_of_unknown_outcomes_are_the_mean_of_three_ranks_among_runs_of_the_agent() {
    let run = |steps, late_errors, hedging| SelectOutcome {
        signs: Signs {
            steps,
            late_errors,
            hedging,
            ..NO_SIGNS
        },
        ..UNKNOWN
    };
    let runs = [run(3, 0, 0.5), run(9, 0, 0.0), run(9, 2, 0.0), run(20, 0, 0.0)];
    let of_other_agent = SelectOutcome {
        agent: 1,
        ..run(99, 9, 9.0)
    };
    let found = qualities(
        &vec![Neighbours::default(); 5],
        &[&runs[..], &[of_other_agent]].concat(),
    );
    let expected = [(4.0, 3.0, 1.0), (2.5, 3.0, 3.0), (2.5, 1.0, 3.0), (1.0, 3.0, 3.0)];
    for (found, (steps, errors, hedging)) in found.iter().zip(expected) {
        let expected = (steps + errors + hedging - 1.5) / 12.0;
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
    assert_eq!(found[4], 0.5);
}

#[test]
fn qualities_of_told_outcomes_fall_where_similar_runs_failed() {
    let told = |success, confidence| SelectOutcome {
        success: Some(success),
        confidence,
        is_verified: false,
        ..SUCCESS
    };
    let outcomes = [told(true, 0.9), told(false, 0.4), told(true, 0.9), UNKNOWN];
    let near = [
        near(&[(1, 0.3), (3, 0.9)]),
        near(&[(0, 0.29)]),
        near(&[(1, 0.2), (0, 0.1)]),
        near(&[]),
    ];
    let found = qualities(&near, &outcomes);
    let around: f64 = (0.9 + 0.4 * 0.3) / 2.0;
    assert!((found[0] - 0.9 * (0.75 + 0.25 * around / 0.9)).abs() < 1e-12);
    assert!((found[1] - 0.12 * (0.75 + 0.25 * 0.12 / 0.9)).abs() < 1e-12);
    assert_eq!(found[2], 0.9);
    let verified = SelectOutcome {
        is_verified: true,
        ..outcomes[0]
    };
    assert_eq!(
        qualities(&near, &[verified, outcomes[1], outcomes[2], UNKNOWN])[0],
        0.9
    );
}

#[test]
fn select_puts_short_runs_of_unknown_outcome_last() {
    let run = |turns| SelectOutcome {
        signs: Signs { turns, ..NO_SIGNS },
        ..UNKNOWN
    };
    let of = |turns: &[usize]| short(&turns.iter().copied().map(run).collect::<Vec<_>>());
    assert_eq!(
        of(&[1, 4, 5, 30, 40, 50, 15]),
        [true, true, false, false, false, false, false]
    );
    assert_eq!(of(&[1, 2, 8]), [false; 3], "a third of 2 is 0");
    assert_eq!(short(&[SUCCESS, run(1), run(9)]), [false, true, false]);
    let traces = [
        ("hello", run(1)),
        ("hello there", run(2)),
        ("write a poem", run(20)),
        ("paint a wall", run(20)),
        ("sing a song", run(20)),
    ];
    let selection = select(&mut candidates(&traces), &options(5), &|_| true).unwrap();
    let mut last = indices(&selection)[3..].to_vec();
    last.sort_unstable();
    assert_eq!(last, [0, 1]);
}

#[test]
fn select_of_only_new_traces_ends_where_the_rest_are_copies() {
    let copy = "book a flight from oslo to paris for two adults on monday morning and pay by card";
    let traces: Vec<_> = std::iter::repeat_n((copy, SUCCESS), 20)
        .chain([("write a poem", SUCCESS)])
        .collect();
    let only_new = SelectOptions {
        only_new: true,
        ..options(10)
    };
    let selection = select(&mut candidates(&traces), &only_new, &|_| true).unwrap();
    assert_eq!(indices(&selection), [0, 20]);
    let all = select(&mut candidates(&traces), &options(10), &|_| true).unwrap();
    assert_eq!(all.chosen.len(), 10);
    assert!(
        all.explanation()
            .ends_with("; 8 of 10 chosen add nothing new: they are copies"),
        "{}",
        all.explanation()
    );
    let mut known = TraceMemory::new(Method::Lexical, Bounds::default());
    known.add((&words(copy)).into(), Instant::now()).unwrap();
    let mut beside = Candidates::beside(&mut known);
    beside.add((&words(copy)).into(), SUCCESS, None).unwrap();
    assert!(
        select(&mut beside, &only_new, &|_| true)
            .unwrap()
            .chosen
            .is_empty()
    );
}

#[test]
fn a_set_that_ends_where_the_rest_are_alike_stands_for_all_others() {
    let flights = ["oslo", "paris", "rome", "madrid"]
        .map(|name| format!("book a flight to {name} for two adults on monday morning and pay by card"));
    let others: Vec<_> = (0..20)
        .map(|n| format!("mend bolt{n} in wheel{n} of car{n}"))
        .collect();
    let texts = flights.iter().chain(&others).map(String::as_str);
    let traces: Vec<_> = texts.map(|text| (text, SUCCESS)).collect();
    let ends = SelectOptions {
        ends: true,
        ..options(traces.len())
    };
    let selection = select(&mut candidates(&traces), &ends, &|_| true).unwrap();
    let chosen = indices(&selection);
    assert_eq!((chosen.len(), selection.others()), (21, 3), "{chosen:?}");
    let stood_for: usize = selection
        .chosen
        .iter()
        .map(|chosen| chosen.stands_for.len())
        .sum();
    assert_eq!(stood_for, 3);
    for left in &selection.left {
        assert!(matches!(left.standing, Standing::Chosen(near) if chosen.contains(&near.index)));
    }
}

#[test]
fn a_set_that_ends_fills_the_places_of_what_adds_nothing_and_needs_no_second_run() {
    let runs = (0..5).map(|n| format!("book a flight to rome for two adults and pay by card run{n}"));
    let runs: Vec<_> = runs.collect();
    let others: Vec<_> = (0..20)
        .map(|n| format!("mend bolt{n} in wheel{n} of car{n}"))
        .collect();
    let runs = runs.iter().map(|text| (text.as_str(), SUCCESS));
    // All runs of the task come before the others, by what they are worth.
    let traces: Vec<_> = runs
        .chain(others.iter().map(|text| (text.as_str(), FAILED)))
        .collect();
    let ends = |count| SelectOptions {
        ends: true,
        only_new: true,
        ..options(count)
    };
    for (count, most) in [(10, 10), (25, 21)] {
        let selection = select(&mut candidates(&traces), &ends(count), &|_| true).unwrap();
        let chosen = indices(&selection);
        let of_task = chosen.iter().filter(|index| **index < 5).count();
        assert_eq!((chosen.len(), of_task), (most, 1), "{chosen:?}");
        let mut known = TraceMemory::new(Method::Lexical, Bounds::default());
        for index in &chosen {
            let words = words(traces[*index].0);
            known.add((&words).into(), Instant::now()).unwrap();
        }
        let mut left = Candidates::beside(&mut known);
        for Left { index, .. } in &selection.left {
            let (text, outcome) = traces[*index];
            left.add((&words(text)).into(), outcome, None).unwrap();
        }
        let second = select(&mut left, &ends(count), &|_| true).unwrap();
        assert_eq!(second.chosen.len(), count.min(21 - most));
    }
}

#[test]
fn a_set_that_ends_takes_nothing_that_known_traces_have_though_these_were_cleaned() {
    let beside = |similarity| Neighbours {
        before: Some(Neighbour { index: 0, similarity }),
        ..Neighbours::default()
    };
    let traces = [("a", SUCCESS), ("b", SUCCESS)];
    let ends = SelectOptions {
        ends: true,
        ..options(2)
    };
    for (options, expected) in [(ends, &[1][..]), (options(2), &[1, 0])] {
        let selection = choose(&[beside(0.39), beside(0.37)], &candidates(&traces), &options);
        assert_eq!(indices(&selection), expected);
    }
}

#[test]
fn density_is_the_sum_of_the_nearest_similarities() {
    let of = |similarities: &[f64]| {
        let nearest: Vec<_> = similarities.iter().map(|&similarity| (0, similarity)).collect();
        density(&near(&nearest))
    };
    assert_eq!(of(&[]), 1.0);
    assert_eq!(of(&[1.0, 0.5]), 2.5);
    assert_eq!(of(&[1.0; 20]), 17.0);
}

#[test]
fn select_leaves_traces_that_are_not_fit_to_be_shared() {
    let reasons = [
        None,
        Some(Unfit::OneStep),
        Some(Unfit::OneStep),
        Some(Unfit::NoAgentStep),
        None,
    ];
    let add = |reasons: &[Option<Unfit>]| {
        let mut candidates = candidates(&[]);
        for (number, &unfit) in reasons.iter().enumerate() {
            let words = words(&format!("book a flight{} to paris", number / 2));
            candidates.add((&words).into(), SUCCESS, unfit).unwrap();
        }
        candidates
    };
    let everything = SelectOptions {
        failures: Some(Count::Number(2)),
        ..options(5)
    };
    let selection = select(&mut add(&reasons), &everything, &|_| true).unwrap();
    let mut found = indices(&selection);
    found.sort_unstable();
    assert_eq!(found, [0, 4]);
    assert!(selection.chosen.last().unwrap().covered > 1.0 - 1e-9);
    let left: Vec<_> = selection
        .left
        .iter()
        .map(|left| (left.index, left.unfit))
        .collect();
    assert_eq!(left, [1, 2, 3].map(|index| (index, reasons[index])));
    let explanation = selection.explanation();
    let end = "; 3 of 5 unfit to be shared: 1 without a step of the agent, 2 of one step";
    assert!(explanation.ends_with(end), "{explanation}");
    let none = select(&mut add(&reasons[1..4]), &options(5), &|_| true).unwrap();
    assert!(none.chosen.is_empty());
}

#[test]
fn select_does_not_take_a_sub_agent_for_one_more_run_of_the_kind_or_agent_of_its_session() {
    let of = |agent: u64| SelectOutcome { agent, ..UNKNOWN };
    let mut candidates = candidates(&[
        ("mend the parser of dates", of(1)),
        ("plan a garden with roses", of(2)),
        ("mend the parser of dates for me", of(1)),
    ]);
    candidates.leave_out(2, Unfit::SubAgent);
    let selection = select(&mut candidates, &options(2), &|_| true).unwrap();
    assert_eq!(indices(&selection), [0, 1]);
    assert_eq!(selection.chosen[0].gain, selection.chosen[1].gain);
    assert!(matches!(selection.left[0].standing, Standing::Chosen(session) if session.index == 0));
}

#[test]
fn unfit_names_the_first_reason() {
    let mut trace = with_steps(&["thought", "observation"]);
    assert_eq!(Unfit::of(&trace), None);
    for objective in [" \n", "[first step] Read the log"] {
        trace.objective = objective.into();
        assert_eq!(Unfit::of(&trace), Some(Unfit::NoObjective), "{objective}");
    }
    for (steps, unfit) in [
        (&[][..], Unfit::NoAgentStep),
        (&["observation", "observation"], Unfit::NoAgentStep),
        (&["tool_call"], Unfit::OneStep),
    ] {
        assert_eq!(Unfit::of(&with_steps(steps)), Some(unfit), "{steps:?}");
    }
    let names: Vec<_> = Unfit::ALL.iter().map(|unfit| unfit.name()).collect();
    assert_eq!(names, ["no-agent-step", "one-step", "no-objective", "sub-agent"]);
    assert_eq!(
        [Reason::Coverage, Reason::Failure].map(Reason::name),
        ["coverage", "failure"]
    );
}

#[test]
fn too_many_candidates_become_a_uniform_sample() {
    let texts: Vec<_> = (0..1000)
        .map(|number| format!("task{} run{number}", number / 5))
        .collect();
    let mut known = TraceMemory::new(Method::Lexical, Bounds::default());
    known.add((&words("task0 run0")).into(), Instant::now()).unwrap();
    let mut candidates = Candidates::beside(&mut known);
    candidates.most = 100;
    for text in &texts {
        candidates.add((&words(text)).into(), SUCCESS, None).unwrap();
    }
    let selection = select(&mut candidates, &options(20), &|_| true).unwrap();
    let Some(Sampled { size, seen: 1000 }) = selection.sampled else {
        panic!("{:?}", selection.sampled);
    };
    assert!((40..=100).contains(&size), "{size}");
    assert_eq!((selection.chosen.len(), selection.left.len()), (20, size - 20));
    let mut all: Vec<_> = selection.left.iter().map(|left| left.index).collect();
    all.extend(indices(&selection));
    all.sort_unstable();
    // Each quarter of the traces has about a quarter of the sample.
    let of_quarter = |quarter: usize| all.iter().filter(|&&index| index / 250 == quarter).count();
    assert!(
        (0..4).all(|quarter| of_quarter(quarter) * 4 > size / 2),
        "{all:?}"
    );
    for chosen in &selection.chosen {
        for near in &chosen.stands_for {
            assert_eq!(near.index / 5, chosen.index / 5, "runs of one task");
        }
    }
    let explanation = selection.explanation();
    let end = format!("; 1000 traces are too many to compare, so a uniform sample of {size} was");
    assert!(explanation.ends_with(&end), "{explanation}");
}

#[test]
fn join_compares_by_cosines_of_words_with_roots_of_counts() {
    let texts = ["one two three four", "two three", "three four five five", "six"];
    let mut known = TraceMemory::new(Method::Lexical, Bounds::default());
    known.add((&words(texts[0])).into(), Instant::now()).unwrap();
    let mut candidates = Candidates::beside(&mut known);
    for (text, steps) in texts[1..].iter().zip([&["three", "three"][..], &[], &[]]) {
        let words = Words::of(&with_texts(text, steps));
        candidates.add((&words).into(), SUCCESS, None).unwrap();
    }
    let found = candidates.join(1, &|_| true).unwrap();
    let weight = |df: f64| (5.0 / df).ln().powi(2);
    let (one, two, three) = (weight(1.0), weight(2.0), weight(3.0));
    // c(t) is the same for all words of a trace but the second, where "three" has three pieces, two of them with one word.
    let (once, often) = (8_f64.powf(-0.5), 8_f64.powf(-0.5) + 2.0 * 7_f64.powf(-0.5));
    let close = |found: Option<Neighbour>, similarity: f64| {
        // c(t) has 12 bits.
        let found = found.unwrap().similarity;
        assert!((found - similarity).abs() < 1e-3, "{found} {similarity}");
    };
    let lengths = [
        one + 2.0 * two + three,
        once * two + often * three,
        three + two + one,
    ];
    let shared = once.sqrt() * two + often.sqrt() * three;
    close(found[0].before, shared / (lengths[0] * lengths[1]).sqrt());
    close(found[1].before, (two + three) / (lengths[0] * lengths[2]).sqrt());
    let near = found[0].nearest.first().copied();
    close(near, often.sqrt() * three / (lengths[1] * lengths[2]).sqrt());
    assert_eq!(found[2], Neighbours::default());
}

/// A disk of 200 runs of unknown outcome, in which agents differ in how many they have, how long these are, how often they err and hedge,
/// and in the words that all of their runs share.
fn mixed_disk(seed: u64) -> (Vec<usize>, Candidates) {
    let mut state = seed;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    // By agent: runs, steps and how far these spread, late errors, hedges.
    let agents = [
        (90, 12, 20, 1, 0.2),
        (50, 40, 80, 3, 0.0),
        (30, 8, 6, 1, 0.8),
        (20, 100, 300, 8, 0.4),
        (10, 20, 10, 2, 0.1),
    ];
    let mut candidates = Candidates::new(Method::Lexical, 384);
    let mut of = Vec::new();
    for (agent, (runs, steps, spread, errors, hedging)) in agents.into_iter().enumerate() {
        for _ in 0..runs {
            let shared = (0..6).map(|word| format!("agent{agent}tool{word}"));
            let task = random(60);
            let own = (0..12).map(|word| format!("task{task}word{word}"));
            let noise = (0..12)
                .map(|_| format!("noise{}", random(4_000)))
                .collect::<Vec<_>>();
            let text = shared.chain(own).chain(noise).collect::<Vec<_>>().join(" ");
            let steps = steps + usize::try_from(random(spread)).unwrap();
            let outcome = SelectOutcome {
                signs: Signs {
                    steps,
                    turns: steps / 2,
                    late_errors: usize::try_from(random(errors + 1)).unwrap(),
                    hedging: hedging * f64::from(u32::try_from(random(10)).unwrap()),
                },
                ..UNKNOWN.of_agent(&agent.to_string())
            };
            candidates.add((&words(&text)).into(), outcome, None).unwrap();
            of.push(agent);
        }
    }
    (of, candidates)
}

#[test]
fn no_agent_of_a_mixed_disk_has_more_than_half_of_the_first_ten() {
    for seed in 0..20 {
        let (agents, mut candidates) = mixed_disk(seed);
        let selection = select(&mut candidates, &options(10), &|_| true).unwrap();
        let first: Vec<_> = indices(&selection)
            .into_iter()
            .map(|index| agents[index])
            .collect();
        let most = (0..5)
            .map(|agent| first.iter().filter(|other| **other == agent).count())
            .max();
        assert!(first.len() == 10 && most <= Some(5), "{seed}: {first:?}");
    }
}
