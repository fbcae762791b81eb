use knowledgepulse_trace::{fixtures::with_texts, words::MOST_WORDS};

use super::stored::{PackedTrace, TraceSample, compare_with_all};
use super::*;
use crate::{shared::lock, similarity::weight};
use proptest::prelude::*;
use std::{fmt::Debug, time::Duration};

mod join;

const DIMENSIONS: usize = 6;

fn memory(method: Method, max_elements: usize, ttl_ms: Option<u64>) -> TraceMemory {
    TraceMemory::new(
        method,
        MemoryOptions {
            max_elements,
            dimensions: DIMENSIONS,
            time_to_live: ttl_ms.map(Duration::from_millis),
        },
    )
}

/// What is remembered of a trace, for the tests.
#[derive(Debug, Clone, PartialEq)]
struct Sketch {
    words: Words,
    vector: Vec<f32>,
}

impl Sketch {
    fn of(objective: &str, contents: &[&str]) -> Self {
        let words = Words::of(&with_texts(objective, contents));
        let mut vector = vec![0.5; DIMENSIONS];
        for word in words.iter() {
            let shift = word.hash % (DIMENSIONS as u64);
            vector[usize::try_from(shift).unwrap()] += word.count.value() as f32 * 0.1;
        }
        Self { words, vector }
    }

    fn entry(&self) -> TraceEntry<'_> {
        TraceEntry {
            words: &self.words,
            vector: Some(&self.vector),
            label: None,
            model: None,
        }
    }
}

/// Traces of words of which some are in most traces, some in several and some in one.
fn sketches(most: usize) -> impl Strategy<Value = Vec<Sketch>> {
    let word = prop_oneof![
        5 => (0u32..4).prop_map(|number| format!("common{number}")),
        3 => (0u32..40).prop_map(|number| format!("several{number}")),
        1 => any::<u16>().prop_map(|number| format!("rare{number}")),
    ];
    let step = prop::collection::vec(word, 0..12).prop_map(|words| words.join(" "));
    let trace = (
        prop::collection::vec(step, 0..5),
        prop::array::uniform6(-1.0f32..1.0),
    );
    let trace = trace.prop_map(|(steps, vector)| {
        let steps: Vec<_> = steps.iter().map(String::as_str).collect();
        Sketch {
            words: Words::of(&with_texts("", &steps)),
            vector: vector.to_vec(),
        }
    });
    // The same trace may come again.
    (
        prop::collection::vec(trace, 1..most),
        prop::collection::vec(any::<prop::sample::Index>(), 0..most),
    )
        .prop_map(|(mut traces, again)| {
            let more: Vec<_> = again.iter().map(|index| index.get(&traces).clone()).collect();
            traces.extend(more);
            traces
        })
}

/// L and C of a trace and another, from the definition, with how many of `memory` remembered traces contain a word.
fn lexical_and_contained(
    words: &Words,
    other: &Words,
    memory: usize,
    traces_with: impl Fn(u64) -> usize,
) -> (f64, f64) {
    let weight_of = |hash| weight(memory, traces_with(hash));
    let sums = |words: &Words| {
        let mut sums = Sums::default();
        for word in words.iter() {
            let count = word.count.value();
            sums.add(count, count, weight_of(word.hash));
        }
        sums
    };
    let mut shared = Sums::default();
    let mut others = other.iter().peekable();
    for word in words.iter() {
        while others.next_if(|other| other.hash < word.hash).is_some() {}
        if let Some(other) = others.next_if(|other| other.hash == word.hash) {
            shared.add(word.count.value(), other.count.value(), weight_of(word.hash));
        }
    }
    sums(words).compare(&sums(other), &shared)
}

/// Similarities to each of `held`, from the definition.
fn similarities(method: Method, held: &[Sketch], query: &Sketch) -> Vec<Similarity> {
    let traces_with = |hash| {
        held.iter()
            .filter(|sketch| sketch.words.iter().any(|word| word.hash == hash))
            .count()
    };
    let project = projection(held);
    let own = project(&query.vector);
    let compare = |sketch: &Sketch| {
        let (lexical, contained) =
            lexical_and_contained(&query.words, &sketch.words, held.len(), traces_with);
        let other = project(&sketch.vector);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let norms = (dot(&own, &own) * dot(&other, &other)).sqrt();
        let cosine = if norms > 0.0 {
            (dot(&own, &other) / norms).max(0.0)
        } else {
            0.0
        };
        Similarity {
            lexical,
            contained,
            embedded: (method == Method::Full).then_some(cosine),
        }
    };
    held.iter().map(compare).collect()
}

/// P, from its definition, in double precision.
fn projection(held: &[Sketch]) -> impl Fn(&[f32]) -> Vec<f64> {
    let wide = |vector: &[f32]| vector.iter().copied().map(f64::from).collect::<Vec<_>>();
    let mut mean = vec![0.0; DIMENSIONS];
    let mut direction = vec![0.0; DIMENSIONS];
    if held.len() >= 3 {
        for sketch in held {
            for (sum, x) in mean.iter_mut().zip(&sketch.vector) {
                *sum += f64::from(*x) / held.len() as f64;
            }
        }
        let centred: Vec<Vec<f64>> = held
            .iter()
            .map(|sketch| {
                wide(&sketch.vector)
                    .iter()
                    .zip(&mean)
                    .map(|(x, m)| x - m)
                    .collect()
            })
            .collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let farthest = centred
            .iter()
            .max_by(|a, b| dot(a, a).total_cmp(&dot(b, b)))
            .unwrap();
        if dot(farthest, farthest) > 1e-12 {
            direction.clone_from(farthest);
            for _ in 0..8 {
                let mut next = vec![0.0; DIMENSIONS];
                for row in &centred {
                    let along = dot(row, &direction);
                    for (sum, x) in next.iter_mut().zip(row) {
                        *sum += along * x;
                    }
                }
                let norm = dot(&next, &next).sqrt();
                direction = next.iter().map(|x| x / norm).collect();
            }
        }
    }
    move |vector| {
        let all: f64 = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let centred: Vec<f64> = vector.iter().zip(&mean).map(|(&x, m)| f64::from(x) - m).collect();
        let along: f64 = centred.iter().zip(&direction).map(|(x, d)| x * d).sum();
        let left: Vec<f64> = centred
            .iter()
            .zip(&direction)
            .map(|(x, d)| x - along * d)
            .collect();
        let squared: f64 = left.iter().map(|x| x * x).sum();
        // What is left of it is mostly rounding errors.
        if squared > 1e-4 * all {
            left
        } else {
            vec![0.0; DIMENSIONS]
        }
    }
}

fn bits(found: &[SimilarTrace]) -> Vec<(u64, u64, Option<u64>)> {
    let bits = |found: &SimilarTrace| {
        let Similarity {
            lexical,
            contained,
            embedded,
        } = found.similarity;
        (lexical.to_bits(), contained.to_bits(), embedded.map(f64::to_bits))
    };
    found.iter().map(bits).collect()
}

fn novelty_of(memory: &mut TraceMemory, sketch: &Sketch) -> f64 {
    let nearest = memory.compare(sketch.entry(), Instant::now()).unwrap();
    crate::similarity::of_similarity(nearest.map(|nearest| nearest.similarity.value()))
}

/// Returns traces as a store has them.
fn packed_all(traces: &[Sketch], dimensions: usize) -> Vec<PackedTrace> {
    let pack = |sketch: &Sketch| {
        let bytes = PackedTrace::pack(&sketch.words, &sketch.vector[..dimensions]);
        PackedTrace::unpack(&bytes, dimensions).unwrap()
    };
    traces.iter().map(pack).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 24 }))]

    /// Few traces are all compared.
    #[test]
    fn words_are_compared_by_the_definition(traces in sketches(120), capacity in 1usize..=24, count in 1usize..40) {
        let now = Instant::now();
        let mut memory = memory(Method::Lexical, capacity, None);
        for (index, trace) in traces.iter().enumerate() {
            let held = &traces[index.saturating_sub(capacity)..index];
            if index % 7 == 0 || index + 3 > traces.len() {
                let mut expected: Vec<_> = similarities(Method::Lexical, held, trace).into_iter().enumerate().collect();
                expected.sort_by(|(_, a), (_, b)| b.value().total_cmp(&a.value()));
                expected.truncate(count);
                let found = memory.nearest(trace.entry(), count, now).unwrap();
                let found: Vec<_> = found.into_iter().map(|found| (found.index, found.similarity)).collect();
                prop_assert_eq!(&found, &expected);
                let first = memory.compare(trace.entry(), now).unwrap();
                prop_assert_eq!(first.map(|first| (first.index, first.similarity)), expected.first().copied());
            }
            memory.add(trace.entry(), now).unwrap();
        }
    }

    /// By a sample of all traces of a memory, a trace is compared as the memory itself compares it, also after a journey as bytes.
    #[test]
    fn trace_sample_of_all_compares_as_the_memory_does(traces in sketches(60), method in prop_oneof![Just(Method::Lexical), Just(Method::Full)]) {
        let now = Instant::now();
        let dimensions = if method == Method::Full { DIMENSIONS } else { 0 };
        let packed = packed_all(&traces, dimensions);
        let mut memory = memory(method, 1000, None);
        let (query, held) = traces.split_last().unwrap();
        for sketch in held {
            memory.add(sketch.entry(), now).unwrap();
        }
        let (own, known) = packed.split_last().unwrap();
        let sample = TraceSample::of(known);
        for SimilarTrace { index, similarity, .. } in memory.nearest(query.entry(), 1000, now).unwrap() {
            let compared = sample.compare(known, std::slice::from_ref(own), &[vec![index]], known.len()).unwrap();
            let (found, other) = compared[0].unwrap();
            prop_assert_eq!(found, index);
            prop_assert!((other.lexical - similarity.lexical).abs() < 1e-9);
            prop_assert!((other.contained - similarity.contained).abs() < 1e-9);
            prop_assert!((other.embedded.unwrap_or(0.0) - similarity.embedded.unwrap_or(0.0)).abs() < 1e-5);
        }
    }

    #[test]
    fn compare_with_all_finds_what_a_memory_finds(
        traces in sketches(40),
        at in any::<prop::sample::Index>(),
        capacity in 1usize..=24,
        method in prop_oneof![Just(Method::Lexical), Just(Method::Full)],
    ) {
        let now = Instant::now();
        let dimensions = if method == Method::Full { DIMENSIONS } else { 0 };
        let packed = packed_all(&traces, dimensions);
        let (known, entries) = packed.split_at(at.index(packed.len() + 1));
        let found = compare_with_all(known, entries, capacity).unwrap();
        prop_assert_eq!(found.len(), entries.len());
        let mut memory = memory(method, capacity, None);
        for (number, sketch) in traces.iter().enumerate() {
            if let Some(found) = number.checked_sub(known.len()).map(|entry| found[entry]) {
                let all = memory.nearest(sketch.entry(), capacity, now).unwrap();
                let Some((index, similarity)) = found else {
                    prop_assert_eq!(all, []);
                    memory.add(sketch.entry(), now).unwrap();
                    continue;
                };
                let oldest = number.saturating_sub(capacity);
                let same = all.iter().find(|other| oldest + other.index == index).unwrap();
                prop_assert!((similarity.value() - same.similarity.value()).abs() < 1e-5);
                prop_assert!((similarity.value() - all[0].similarity.value()).abs() < 1e-5);
            }
            memory.add(sketch.entry(), now).unwrap();
        }
    }

    #[test]
    fn embeddings_are_compared_too(traces in sketches(60), capacity in 1usize..=24, count in 1usize..10) {
        let now = Instant::now();
        let mut memory = memory(Method::Full, capacity, None);
        for (index, trace) in traces.iter().enumerate() {
            if index % 5 == 0 {
                let held = &traces[index.saturating_sub(capacity)..index];
                let expected = similarities(Method::Full, held, trace);
                let mut values: Vec<_> = expected.iter().map(Similarity::value).collect();
                values.sort_by(|a, b| b.total_cmp(a));
                let found = memory.nearest(trace.entry(), count, now).unwrap();
                prop_assert_eq!(found.len(), count.min(held.len()));
                for (found, value) in found.iter().zip(values) {
                    let similarity = expected[found.index];
                    prop_assert_eq!(found.similarity.lexical, similarity.lexical);
                    prop_assert_eq!(found.similarity.contained, similarity.contained);
                    // A vector of which next to nothing is left may count as one of which nothing is.
                    prop_assert!((found.similarity.embedded.unwrap() - similarity.embedded.unwrap()).abs() < 2e-3
                        || similarity.embedded == Some(0.0) || found.similarity.embedded == Some(0.0));
                    prop_assert!((found.similarity.value() - value).abs() < 1e-3 + 0.3);
                }
                let all = memory.nearest(trace.entry(), held.len(), now).unwrap();
                prop_assert!(all.is_sorted_by(|a, b| a.similarity.value() >= b.similarity.value()));
                prop_assert_eq!(&all[..found.len()], &found);
                let first = memory.compare(trace.entry(), now).unwrap();
                prop_assert_eq!(first.as_ref(), all.first());
            }
            memory.add(trace.entry(), now).unwrap();
        }
    }

    #[test]
    fn no_bit_depends_on_the_order_or_on_what_was_forgotten(
        traces in sketches(13),
        junk in sketches(60),
        rotation in 0usize..120,
        queries in sketches(6),
    ) {
        let now = Instant::now();
        let rotation = rotation % traces.len();
        for method in [Method::Lexical, Method::Full] {
            let mut plain = memory(method, 1_000, None);
            let mut other = memory(method, traces.len(), None);
            for trace in &traces {
                plain.add(trace.entry(), now).unwrap();
            }
            for trace in traces.iter().chain(&junk) {
                other.compare_and_explain(trace.entry(), false, true, now).unwrap();
            }
            for trace in traces.iter().cycle().skip(rotation).take(traces.len()) {
                other.add(trace.entry(), now).unwrap();
            }
            for query in queries.iter().chain(traces.iter().take(5)) {
                let found = |memory: &mut TraceMemory| {
                    let mut all = bits(&memory.nearest(query.entry(), traces.len(), now).unwrap());
                    all.sort_unstable();
                    all
                };
                prop_assert_eq!(found(&mut plain), found(&mut other));
                prop_assert_eq!(novelty_of(&mut plain, query).to_bits(), novelty_of(&mut other, query).to_bits());
            }
        }
    }

    #[test]
    fn a_remembered_trace_is_not_new(traces in sketches(40)) {
        let now = Instant::now();
        for method in [Method::Lexical, Method::Full] {
            let mut memory = memory(method, 1_000, None);
            for (index, trace) in traces.iter().enumerate() {
                memory.add(trace.entry(), now).unwrap();
                for known in [trace, &traces[index / 2]] {
                    prop_assert_eq!(novelty_of(&mut memory, known), 0.0);
                }
            }
        }
    }

    /// A call that compares and adds finds and leaves what a comparison and an addition find and leave.
    #[test]
    fn compare_and_explain_is_compare_and_add(
        traces in sketches(60),
        capacity in 0usize..=24,
        ttl_ms in prop_oneof![Just(None), (1u64..40).prop_map(Some)],
        method in prop_oneof![Just(Method::Lexical), Just(Method::Full)],
        batches in prop::collection::vec((0usize..60, 0u64..20), 1..8),
    ) {
        let (mut apart, mut whole) = (memory(method, capacity, ttl_ms), memory(method, capacity, ttl_ms));
        let mut next = traces.iter().cycle();
        let mut now = Instant::now();
        for (length, pause) in batches {
            now += Duration::from_millis(pause);
            for entry in next.by_ref().take(length).map(Sketch::entry) {
                let (found, _) = whole.compare_and_explain(entry, false, true, now).unwrap();
                prop_assert_eq!(found, apart.compare(entry, now).unwrap());
                apart.add(entry, now).unwrap();
            }
            prop_assert_eq!(observed(&mut whole, &traces, now), observed(&mut apart, &traces, now));
            prop_assert!(whole.terms.has_right_bytes());
        }
    }

    /// After a repair a memory is as it was, also if what it keeps beside its traces was destroyed.
    #[test]
    fn repair_makes_all_of_the_traces_anew(
        traces in sketches(60),
        capacity in 1usize..=24,
        method in prop_oneof![Just(Method::Lexical), Just(Method::Full)],
    ) {
        let now = Instant::now();
        let [mut plain, mut repaired] = [(); 2].map(|()| {
            let mut memory = memory(method, capacity, None);
            for trace in &traces {
                memory.add(trace.entry(), now).unwrap();
            }
            memory
        });
        repaired.terms = Terms::with_places(&repaired.terms.hashes());
        repaired.projection = Projection::default();
        let broken = Mutex::new(repaired);
        std::thread::scope(|scope| {
            let panic = scope.spawn(|| {
                let _memory = broken.lock();
                panic!("on purpose");
            });
            assert!(panic.join().is_err());
        });
        prop_assert_eq!(observed(&mut lock(&broken), &traces, now), observed(&mut plain, &traces, now));
        prop_assert!(lock(&broken).terms.has_right_bytes());
        lock(&broken).add(traces[0].entry(), now).unwrap();
        plain.add(traces[0].entry(), now).unwrap();
        prop_assert_eq!(observed(&mut lock(&broken), &traces, now), observed(&mut plain, &traces, now));
    }
}

/// What can be seen of a memory: its traces, and the bits of how similar `queries` are to each of them.
fn observed(memory: &mut TraceMemory, queries: &[Sketch], now: Instant) -> impl PartialEq + Debug + use<> {
    let sequence = memory.sequence(now);
    let stored: Vec<_> = (0..memory.len(now)).map(|index| memory.stored(index)).collect();
    let mut found = Vec::new();
    for query in queries.iter().step_by(5) {
        let nearest = memory.nearest(query.entry(), 1_000, now).unwrap();
        let indexes: Vec<_> = nearest.iter().map(|found| found.index).collect();
        let first = memory.compare(query.entry(), now).unwrap();
        assert_eq!(first.as_ref(), nearest.first());
        found.push((indexes, bits(&nearest)));
    }
    let places = memory.terms.places();
    (
        sequence,
        stored,
        memory.model().cloned(),
        memory.held_bytes,
        places,
        found,
    )
}

#[test]
fn empty_memory_gives_novelty_one_half() {
    for method in [Method::Lexical, Method::Full] {
        let mut memory = memory(method, 10, None);
        let sketch = Sketch::of("a b", &["c"]);
        assert_eq!(novelty_of(&mut memory, &sketch), 0.5);
        let (first, _) = memory
            .compare_and_explain(sketch.entry(), false, true, Instant::now())
            .unwrap();
        assert_eq!(first, None);
        assert_eq!(novelty_of(&mut memory, &sketch), 0.0);
        memory.clear();
        assert_eq!(memory.sequence(Instant::now()), 1..1);
        assert_eq!(novelty_of(&mut memory, &sketch), 0.5);
    }
}

#[test]
fn traces_without_words_are_alike_and_unlike_others() {
    let mut memory = memory(Method::Lexical, 10, None);
    let (empty, other) = (Sketch::of(" ...", &["", "!"]), Sketch::of("a", &["b c"]));
    memory.add(other.entry(), Instant::now()).unwrap();
    assert_eq!(novelty_of(&mut memory, &empty), 1.0);
    memory.add(empty.entry(), Instant::now()).unwrap();
    assert_eq!(novelty_of(&mut memory, &empty), 0.0);
    assert_eq!(novelty_of(&mut memory, &Sketch::of("d", &[])), 1.0);
    assert_eq!(novelty_of(&mut memory, &other), 0.0);
}

#[test]
fn oldest_traces_are_evicted_by_count_and_age() {
    let start = Instant::now();
    let sketches: Vec<_> = (0..5)
        .map(|number| Sketch::of(&format!("word{number}"), &[]))
        .collect();
    let mut bounded = memory(Method::Full, 2, None);
    for (index, sketch) in sketches.iter().enumerate() {
        let label: Label = index.to_string().into();
        let entry = TraceEntry {
            label: Some(&label),
            ..sketch.entry()
        };
        bounded.add(entry, start).unwrap();
    }
    assert_eq!(bounded.sequence(start), 3..5);
    let found = bounded.nearest(sketches[4].entry(), 9, start).unwrap();
    let labels: Vec<_> = found.iter().map(|found| found.label.as_deref()).collect();
    assert_eq!(labels, [Some("4"), Some("3")]);
    assert_eq!(found[0].index, 1);
    let stored = bounded.stored(0).unwrap();
    assert_eq!(stored.label.as_deref(), Some("3"));
    assert_eq!(
        (&stored.words, stored.vector.as_ref()),
        (&sketches[3].words, Some(&sketches[3].vector))
    );
    assert_eq!(bounded.stored(2), None);

    let mut mortal = memory(Method::Lexical, 10, Some(10));
    mortal.add(sketches[0].entry(), start).unwrap();
    mortal
        .add(sketches[1].entry(), start + Duration::from_millis(5))
        .unwrap();
    assert_eq!(mortal.len(start + Duration::from_millis(9)), 2);
    assert_eq!(mortal.len(start + Duration::from_millis(10)), 1);
    assert_eq!(
        mortal
            .compare(sketches[0].entry(), start + Duration::from_millis(15))
            .unwrap(),
        None
    );
    assert_eq!(mortal.terms.find(sketches[1].words[0].hash), None);

    let mut none = memory(Method::Lexical, 0, None);
    none.add(sketches[0].entry(), start).unwrap();
    assert!(none.is_empty(start));
}

#[test]
fn the_most_similar_of_many_traces_is_nearly_always_among_the_candidates() {
    let now = Instant::now();
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let mut run = |topic: u64| {
        let mut words: Vec<_> = (0..30)
            .filter(|_| random(3) > 0)
            .map(|word| format!("common{word}"))
            .collect();
        words.extend((0..12).map(|_| format!("topic{topic}word{}", random(20))));
        words.extend((0..6).map(|_| format!("rare{}", random(4_000))));
        Sketch::of(&words.join(" "), &[])
    };
    for method in [Method::Lexical, Method::Full] {
        let mut memory = memory(method, 600, None);
        for number in 0..600 {
            memory.add(run(number % 50).entry(), now).unwrap();
        }
        let losses: Vec<f64> = (0..100)
            .map(|number| {
                let query = run(number);
                let found = memory.compare(query.entry(), now).unwrap().unwrap();
                let best = &memory.nearest(query.entry(), 600, now).unwrap()[0];
                best.similarity.value() - found.similarity.value()
            })
            .collect();
        let missed = losses.iter().filter(|loss| **loss > 0.0).count();
        let mean = losses.iter().sum::<f64>() / 100.0;
        assert!(missed <= 5 && mean < 0.002, "{missed} {mean}");
    }
}

#[test]
fn slots_wrap_around() {
    let now = Instant::now();
    let mut memory = memory(Method::Full, 7, None);
    let first = u64::from(u32::MAX) - 500;
    memory.departed = first;
    let sketches: Vec<_> = (0..1_000)
        .map(|number| Sketch::of(&format!("word{number} same"), &[]))
        .collect();
    for (index, sketch) in sketches.iter().enumerate() {
        memory.add(sketch.entry(), now).unwrap();
        assert_eq!(novelty_of(&mut memory, sketch), 0.0);
        let found = memory
            .compare(sketches[index.saturating_sub(6)].entry(), now)
            .unwrap()
            .unwrap();
        assert_eq!((found.index, found.similarity.value()), (0, 1.0));
    }
    assert_eq!(memory.sequence(now), first + 993..first + 1_000);
    memory.repair();
    assert_eq!(memory.sequence(now), first + 993..first + 1_000);
    assert_eq!(novelty_of(&mut memory, &sketches[999]), 0.0);
}

#[test]
fn errors_leave_the_memory_unchanged() {
    let now = Instant::now();
    let mut memory = memory(Method::Full, 10, None);
    let sketch = Sketch::of("a", &["b"]);
    let model = |dtype: &str| ModelIdentity {
        model: "test".into(),
        dtype: dtype.into(),
        sha256: None,
    };
    let (single, quantized) = (model("fp32"), model("q8"));
    let good = TraceEntry {
        model: Some(&single),
        ..sketch.entry()
    };
    let long: Label = "x".repeat(2_000).into();
    let bad = [
        (TraceEntry { vector: None, ..good }, "ERR_INVALID_INPUT"),
        (
            TraceEntry {
                vector: Some(&[f32::NAN; DIMENSIONS]),
                ..good
            },
            "ERR_INVALID_INPUT",
        ),
        (
            TraceEntry {
                label: Some(&long),
                ..good
            },
            "ERR_INVALID_INPUT",
        ),
        (
            TraceEntry {
                model: Some(&quantized),
                ..good
            },
            "ERR_MEMORY_MISMATCH",
        ),
    ];
    memory.add(good, now).unwrap();
    for (entry, code) in bad {
        for remember in [false, true] {
            let error = memory
                .compare_and_explain(entry, false, remember, now)
                .unwrap_err();
            assert_eq!(error.code(), code);
        }
        assert_eq!(memory.add(entry, now).unwrap_err().code(), code);
        assert_eq!(memory.len(now), 1);
    }
    assert_eq!(memory.model(), Some(&single));
    let origin = Origin {
        model: None,
        method: Some("prefix".into()),
    };
    assert_eq!(
        memory.check_origin(&origin, now).unwrap_err().code(),
        "ERR_MEMORY_MISMATCH"
    );
}

#[test]
fn explain_lists_shared_and_new_words() {
    let now = Instant::now();
    let mut memory = memory(Method::Lexical, 10, None);
    for text in ["flight seattle", "flight boston", "hotel boston"] {
        memory.add(Sketch::of(text, &[]).entry(), now).unwrap();
    }
    let query = Sketch::of("flight seattle tomorrow", &["flight"]);
    let nearest = memory.compare(query.entry(), now).unwrap().unwrap();
    let shares = memory.word_shares(&query.words, nearest.index, now);
    assert_eq!(shares.len(), 3);
    let sum = |part: fn(&WordShare) -> f64| shares.iter().map(part).sum::<f64>();
    assert!((sum(|share| share.lexical) - nearest.similarity.lexical).abs() < 1e-12);
    assert!((sum(|share| share.weight) - 1.0).abs() < 1e-12);
    assert!(
        (sum(|share| if share.shared { share.weight } else { 0.0 }) - nearest.similarity.contained).abs()
            < 1e-12
    );
    let new: Vec<_> = shares.iter().filter(|share| !share.shared).collect();
    assert_eq!((new.len(), new[0].traces), (1, 0));
    let (_, unexplained) = memory
        .compare_and_explain(query.entry(), false, false, now)
        .unwrap();
    assert_eq!(unexplained, []);
    assert_eq!(memory.word_shares(&query.words, 3, now), []);
}

#[test]
fn a_trace_takes_few_bytes() {
    let now = Instant::now();
    let mut bytes = Vec::new();
    for (method, most) in [(Method::Lexical, 6_400), (Method::Full, 8_000)] {
        let mut memory = TraceMemory::new(
            method,
            MemoryOptions {
                max_elements: 2_000,
                ..MemoryOptions::default()
            },
        );
        let text: String = (0..MOST_WORDS).map(|number| format!("word{number} ")).collect();
        let sketch = Sketch::of(&text, &[]);
        let vector = vec![0.25; 384];
        for _ in 0..400 {
            let entry = TraceEntry {
                vector: Some(&vector),
                ..sketch.entry()
            };
            memory.add(entry, now).unwrap();
        }
        // With as many words as a trace can have, which others have too.
        assert!(memory.bytes() / 400 <= most, "{}", memory.bytes() / 400);
        bytes.push(memory.bytes() / 400);
    }
    // An embedding takes 1,560, and its place in the sample 24.
    assert!(
        bytes[0] > 12 * MOST_WORDS && bytes[1] - bytes[0] > 1_580,
        "{bytes:?}"
    );
}

#[test]
fn projections_that_are_short_beside_the_embedding_count_as_none() {
    for scale in [0.1f32, 1.0, 30.0] {
        let projection = projection::Projection::from_parts(&[scale, 0.0], &[0.0, 0.0]);
        for (distance, expected) in [(0.009, 0.0), (0.011, 0.011), (2.0, 2.0)] {
            let mut scaled = Scaled::default();
            scaled.set(&[scale, scale * distance], "vector").unwrap();
            let length = projection.length_of(&scaled) / f64::from(scale);
            assert!((length - expected).abs() < 1e-4, "{scale} {distance} {length}");
        }
    }
}

#[test]
fn projection_removes_a_direction_of_any_length() {
    let projection = projection::Projection::from_parts(&[0.0, 1.0, 0.0], &[0.0, 2.0, 0.0]);
    let mut scaled = Scaled::default();
    scaled.set(&[3.0, 4.0, 0.0], "vector").unwrap();
    assert!((projection.length_of(&scaled) - 3.0).abs() < 1e-12);
    let projected = projection.project(&scaled).unwrap();
    assert_eq!(projected.components[0].0[..3], [3.0, 0.0, 0.0]);
    let rows = [[1.0, 0.0, 0.1], [2.0, 3.0, 0.0], [0.5, 9.0, 0.2]];
    let made = projection::Projection::of(&rows.each_ref().map(|row| &row[..]));
    let squared: f32 = made.direction().iter().map(|x| x * x).sum();
    assert!((squared - 1.0).abs() < 1e-6);
}

#[test]
fn projection_follows_what_a_large_memory_remembers() {
    let now = Instant::now();
    let mut sketches: Vec<_> = (0..340)
        .map(|number| {
            let mut sketch = Sketch::of(&format!("word{} same", number % 50), &[]);
            sketch.vector[number % DIMENSIONS] += (number as f32).sin();
            sketch
        })
        .collect();
    sketches.sort_by_key(|sketch| {
        let mut scaled = Scaled::default();
        scaled.set(&sketch.vector, "vector").unwrap();
        projection::hash(&scaled.components)
    });
    // The projection is made of the first 256 that are remembered.
    let (sampled, others) = sketches.split_at(257);
    let mut plain = memory(Method::Full, 300, None);
    for sketch in others[..44].iter().chain(&sampled[1..]) {
        plain.add(sketch.entry(), now).unwrap();
    }
    // The projection is made, kept, and made anew with the last one.
    for sketch in others[44..64].iter().chain(&sampled[..1]) {
        plain.nearest(others[60].entry(), 1, now).unwrap();
        plain.add(sketch.entry(), now).unwrap();
    }
    let added = others[..44].iter().chain(&sampled[1..]).chain(&others[44..64]);
    let mut anew = memory(Method::Full, 300, None);
    for sketch in added.chain(&sampled[..1]) {
        anew.add(sketch.entry(), now).unwrap();
    }
    let expected = anew.nearest(others[60].entry(), 300, now).unwrap();
    let found = plain.nearest(others[60].entry(), 300, now).unwrap();
    assert_eq!(bits(&found), bits(&expected));
}

#[test]
fn bytes_of_a_trace_are_those_of_its_words_and_its_document() {
    let word = DocumentWord {
        term: 0,
        count: Words::of(&with_texts("a", &[]))[0].count,
    };
    let bytes =
        |words: &[DocumentWord]| Document::new(None, Moment::at(Instant::now()), words.into()).bytes();
    let document = size_of::<Document>() + 4 * size_of::<usize>();
    assert_eq!(bytes(&[]), document);
    assert_eq!(bytes(&[word; 5]), document + 5 * 6);
    let mut projection = Projection::default();
    for sequence in 0..4 {
        projection.insert(7, sequence);
    }
    assert_eq!(projection.bytes(), 4 * 24);
}

#[test]
fn bytes_of_a_memory_are_those_of_its_traces_terms_buffers_and_embeddings() {
    let now = Instant::now();
    for method in [Method::Lexical, Method::Full] {
        let mut memory = memory(method, 10, None);
        for text in ["a", "a b", "c"] {
            memory.add(Sketch::of(text, &[]).entry(), now).unwrap();
        }
        memory.compare(Sketch::of("a", &[]).entry(), now).unwrap();
        let documents: usize = memory.held.iter().map(|held| held.bytes()).sum();
        let mut parts = vec![documents, 3 * 8, memory.terms.bytes()];
        if method == Method::Full {
            parts.extend([
                memory.vectors.bytes(),
                3 * 24 + 8 * memory.projection.lengths.capacity(),
            ]);
        }
        assert!(!parts.contains(&0));
        assert_eq!(memory.bytes(), parts.iter().sum::<usize>());
    }
}

fn packed(text: &str) -> PackedTrace {
    PackedTrace {
        words: Words::of(&with_texts(text, &[])),
        vector: Vec::new(),
    }
}

#[test]
fn unpack_refuses_malformed_bytes() {
    let bytes = PackedTrace::pack(&packed("flight to Boston").words, &[]);
    let unpack =
        |bytes: &[u8], dimensions| PackedTrace::unpack(bytes, dimensions).map(|trace| trace.words.len());
    assert_eq!(unpack(&bytes, 0).unwrap(), 3);
    assert_eq!(unpack(&[], 0).unwrap(), 0);
    for (bytes, dimensions) in [
        (&bytes[..bytes.len() - 1], 0),
        // The same word twice.
        (&[&bytes[..10], &bytes[..10]].concat(), 0),
        // Too short for an embedding, and one that is not finite.
        (&bytes[..], 8),
        (&[&bytes[..], &f32::NAN.to_le_bytes()].concat(), 1),
    ] {
        assert_eq!(unpack(bytes, dimensions).unwrap_err().code(), "ERR_STORE");
    }
}

#[test]
fn heaviest_of_a_trace_are_its_rare_words_within_the_budget() {
    let sample = TraceSample::of(&["a b", "a b", "a", "c"].map(packed));
    let hash = |word: &str| packed(word).words[0].hash;
    let found = |text: &str, most, budget| -> Vec<u64> {
        let words = packed(text).words;
        let heaviest = sample.heaviest(&words, 400, most, budget);
        heaviest.into_iter().map(|(hash, _)| hash).collect()
    };
    // Of 400 traces, 300 have `a`, 200 have `b`, and one has `c`.
    assert_eq!(found("a b c", 9, f64::INFINITY), ["c", "b", "a"].map(hash));
    assert_eq!(found("a b c", 2, f64::INFINITY), ["c", "b"].map(hash));
    assert_eq!(found("a b c", 9, 301.0), ["c", "b"].map(hash));
    assert_eq!(found("a b", 9, 300.0), ["b"].map(hash));
    assert_eq!(found("a", 9, 300.0), ["a"].map(hash));
    let shares: f64 = sample
        .heaviest(&packed("a b c").words, 400, 9, 1e9)
        .iter()
        .map(|(_, share)| share)
        .sum();
    assert!((shares - 1.0).abs() < 1e-9);
    // Traces without words find one another, and in an empty memory no word weighs anything.
    assert_eq!(sample.heaviest(&Words::default(), 400, 9, 0.0), [(0, 1.0)]);
    let none = TraceSample::of(&[]).heaviest(&packed("a b").words, 0, 9, 9.0);
    assert!(none.len() == 2 && none.iter().all(|(_, share)| *share == 0.0));
}

#[test]
fn compare_scales_frequencies_to_the_memory_and_counts_rare_words_among_the_known() {
    let sample = TraceSample::of(&[0, 1, 2, 3].map(|number| packed(&format!("common rare{number}"))));
    let lexical = |known: &[&str], memory: usize| {
        let known: Vec<_> = known.iter().map(|text| packed(text)).collect();
        let compared = sample
            .compare(&known, &[packed("common rare0")], &[vec![0]], memory)
            .unwrap();
        compared[0].unwrap().1.lexical
    };
    let share = |memory: f64, rare: f64| {
        let [common, rare] = [memory, rare].map(|traces| ((memory + 1.0) / traces).ln().powi(2));
        common / (common + rare)
    };
    // All traces have the common word, and one of them each of the others.
    assert!((lexical(&["common rare9"], 40) - share(40.0, 1.0)).abs() < 1e-9);
    assert!((lexical(&["common rare9"], 4) - share(4.0, 1.0)).abs() < 1e-9);
    // A word that is rare in the sample counts by how many of the known traces have it.
    let [common, one, two] = [40.0, 1.0, 2.0].map(|traces: f64| (41.0 / traces).ln().powi(2));
    let expected = common / ((common + two) * (common + one)).sqrt();
    let known = ["common rare9", "common rare0", "common rare0"];
    assert!((lexical(&known, 40) - expected).abs() < 1e-9);
}

#[test]
fn compare_with_all_of_none_finds_nothing() {
    let trace = PackedTrace {
        vector: vec![0.5; 384],
        ..packed("a b")
    };
    let entries = [trace.clone(), trace.clone(), trace];
    let found = compare_with_all(&[], &entries, 1).unwrap();
    let found = found
        .into_iter()
        .map(|found| found.map(|(index, similarity)| (index, similarity.value())));
    assert!(found.eq([None, Some((0, 1.0)), Some((1, 1.0))]));
    assert_eq!(compare_with_all(&[], &entries, 0).unwrap(), [None; 3]);
}

#[test]
fn compare_finds_the_first_of_the_most_similar_candidates_and_earlier_entries() {
    let known = ["a b", "c d", "c d", "e"].map(packed);
    let entries = ["c d", "x y", "x y"].map(packed);
    let sample = TraceSample::of(&known);
    let candidates = [vec![0, 1, 2], vec![], vec![3, 99]];
    let found = sample
        .compare(&known, &entries, &candidates, known.len())
        .unwrap();
    let indexes: Vec<_> = found
        .iter()
        .map(|found| found.as_ref().map(|(index, _)| *index))
        .collect();
    // The second entry is compared with the first, and the third with both.
    assert_eq!(indexes, [Some(1), Some(4), Some(5)]);
    let none = sample
        .compare(&known, &entries[..1], &[vec![]], known.len())
        .unwrap();
    assert_eq!(none, [None]);
}
