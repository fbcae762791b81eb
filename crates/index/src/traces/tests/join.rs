//! The join against the definition, where all traces are compared, and against what is alike, where candidates are.

use super::super::join::Neighbours;
use super::*;
use crate::scan::Neighbour;

/// The neighbours from the similarities of a trace to all.
fn expected(similarities: &[f64], index: usize, first: usize, count: usize) -> Neighbours {
    let ranked = |range: Range<usize>| {
        let first = range.start;
        let mut found: Vec<_> = range
            .filter(|&other| other != index && similarities[other] > 0.0)
            .map(|index| Neighbour {
                index: index - first,
                similarity: similarities[index],
            })
            .collect();
        found.sort_by(|one, other| other.similarity.total_cmp(&one.similarity));
        found
    };
    let mut nearest = ranked(first..similarities.len());
    nearest.truncate(count);
    Neighbours {
        nearest,
        before: ranked(0..first).first().copied(),
    }
}

/// The cosines of the words of a trace with those of all, each with the weight √c(t) · w(t).
fn root_cosines(held: &[Sketch], query: &Sketch) -> Vec<f64> {
    let square = |hash| {
        let traces = held
            .iter()
            .filter(|sketch| sketch.words.iter().any(|word| word.hash == hash));
        weight(held.len(), traces.count()).powi(2)
    };
    let product = |one: &Words, other: &Words| -> f64 {
        let shared = one.iter().filter_map(|word| {
            let same = other.iter().find(|other| other.hash == word.hash)?;
            Some((word.count.value() * same.count.value()).sqrt() * square(word.hash))
        });
        shared.sum()
    };
    let cosine = |other: &Sketch| {
        if query.words.is_empty() && other.words.is_empty() {
            return 1.0;
        }
        let lengths = product(&query.words, &query.words) * product(&other.words, &other.words);
        if lengths == 0.0 {
            0.0
        } else {
            product(&query.words, &other.words) / lengths.sqrt()
        }
    };
    held.iter().map(cosine).collect()
}

/// Whether two lists are the same but for the last digits, by which the order of equally similar ones may differ.
fn are_close(found: &Neighbours, expected: &Neighbours) -> bool {
    let close = |one: &Neighbour, other: &Neighbour| (one.similarity - other.similarity).abs() < 1e-9;
    found.nearest.len() == expected.nearest.len()
        && found
            .nearest
            .iter()
            .zip(&expected.nearest)
            .all(|(one, other)| close(one, other))
        && found.before.is_some() == expected.before.is_some()
        && found
            .before
            .iter()
            .zip(&expected.before)
            .all(|(one, other)| close(one, other))
}

proptest! {
    // Each looks at every pair of traces.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn join_of_few_traces_finds_what_the_definition_says(
        sketches in sketches(40),
        first in 0usize..20,
        count in 1usize..8,
        threads in 1usize..4,
        forgotten in 0usize..10,
    ) {
        let now = Instant::now();
        let kept = sketches.len().saturating_sub(forgotten).max(1);
        for method in [Method::Lexical, Method::Full] {
            let mut memory = memory(method, kept, None);
            for sketch in &sketches {
                memory.add(sketch.entry(), now).unwrap();
            }
            let held = &sketches[sketches.len() - kept..];
            let found = memory.join(first, count, threads, &|_| true).unwrap();
            prop_assert_eq!(found.len(), kept.saturating_sub(first));
            for (index, neighbours) in (first..).zip(found) {
                let values = if method == Method::Lexical {
                    root_cosines(held, &held[index])
                } else {
                    let mut values = vec![0.0; kept];
                    for near in memory.nearest(held[index].entry(), kept, now).unwrap() {
                        values[near.index] = near.similarity.value();
                    }
                    values
                };
                let expected = expected(&values, index, first, count);
                prop_assert!(are_close(&neighbours, &expected), "{:?} {:?}", neighbours, expected);
            }
        }
    }
}

#[test]
fn join_of_many_traces_finds_those_of_the_same_task_and_those_without_words() {
    let now = Instant::now();
    let mut memory = memory(Method::Lexical, 10_000, None);
    let task = |number: usize| number % 97;
    let mut add = |number: usize| {
        let text = if task(number) == 0 {
            String::new()
        } else {
            format!("every task{} own{number}", task(number))
        };
        memory.add(Sketch::of(&text, &[]).entry(), now).unwrap();
    };
    (0..1000).for_each(&mut add);
    let found = memory.join(500, 5, 2, &|_| true).unwrap();
    for (number, Neighbours { nearest, before }) in (500..).zip(found) {
        let others: Vec<_> = nearest
            .iter()
            .map(|near| 500 + near.index)
            .chain(before.map(|near| near.index))
            .collect();
        let same = others
            .iter()
            .filter(|&&other| task(other) == task(number))
            .count();
        // Of the tasks without words 4 runs are left.
        assert!(same >= 5 && same + 1 >= others.len(), "{number}: {others:?}");
        assert!(!others.contains(&number));
    }
}

#[test]
fn join_of_copies_has_the_oldest_of_them_as_neighbours() {
    let now = Instant::now();
    let mut memory = memory(Method::Lexical, 10_000, None);
    for _ in 0..300 {
        memory
            .add(Sketch::of("the same words", &[]).entry(), now)
            .unwrap();
    }
    for neighbours in memory.join(0, 3, 1, &|_| true).unwrap().into_iter().skip(3) {
        let found: Vec<_> = neighbours
            .nearest
            .iter()
            .map(|near| (near.index, near.similarity))
            .collect();
        assert_eq!(found, [(0, 1.0), (1, 1.0), (2, 1.0)]);
    }
}

#[test]
fn join_ends_when_progress_says_so() {
    let now = Instant::now();
    let mut memory = memory(Method::Lexical, 1000, None);
    for number in 0..500 {
        let sketch = Sketch::of(&format!("task {number}"), &[]);
        memory.add(sketch.entry(), now).unwrap();
    }
    let error = memory.join(0, 4, 2, &|done| done < 100).unwrap_err();
    assert_eq!(error.code(), "ERR_ABORTED");
    let seen = Mutex::new(Vec::new());
    memory
        .join(100, 4, 2, &|done| {
            seen.lock().unwrap().push(done);
            true
        })
        .unwrap();
    assert_eq!(seen.into_inner().unwrap().into_iter().max(), Some(400));
}

#[test]
fn join_of_an_empty_memory_is_empty() {
    let mut memory = memory(Method::Full, 10, None);
    assert!(memory.join(0, 16, 0, &|_| true).unwrap().is_empty());
}
