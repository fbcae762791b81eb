//! The join against the definition, and against a search for each trace.

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

proptest! {
    // Each looks at every pair of traces.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn join_finds_what_the_definition_says(
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
                let mut values = vec![0.0; kept];
                if method == Method::Lexical {
                    values = similarities(method, held, &held[index]).iter().map(Similarity::value).collect();
                } else {
                    for near in memory.nearest(held[index].entry(), kept, now).unwrap() {
                        values[near.index] = near.similarity.value();
                    }
                }
                prop_assert_eq!(neighbours, expected(&values, index, first, count));
            }
        }
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
