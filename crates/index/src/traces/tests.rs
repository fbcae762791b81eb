use knowledgepulse_trace::{fixtures::with_texts, words::MOST_WORDS};

use super::*;
use super::{
    postings::CandidateQuery,
    statistics::{PackedTrace, Statistics, WEIGHT_PARTS},
};
use crate::{shared::lock, similarity::weight};
use proptest::prelude::*;
use std::{collections::BTreeMap, fmt::Debug, time::Duration};

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
    novelty(memory.compare(sketch.entry(), Instant::now()).unwrap().as_ref())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 24 }))]

    /// Whatever the bounds leave out, the result is that of comparing with all.
    #[test]
    fn words_are_compared_exactly(traces in sketches(120), capacity in 1usize..200, count in 1usize..40) {
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
                // One alone takes another way.
                let first = memory.compare(trace.entry(), now).unwrap();
                prop_assert_eq!(first.map(|first| (first.index, first.similarity)), expected.first().copied());
            }
            memory.add(trace.entry(), now).unwrap();
        }
    }

    /// By the statistics of a memory, its traces are compared as the memory itself compares them, also after a journey as bytes.
    #[test]
    fn statistics_compare_as_the_memory_does(traces in sketches(60), method in prop_oneof![Just(Method::Lexical), Just(Method::Full)]) {
        let now = Instant::now();
        let dimensions = if method == Method::Full { DIMENSIONS } else { 0 };
        let (query, held) = traces.split_last().unwrap();
        let pack = |sketch: &Sketch| PackedTrace {
            words: sketch.words.clone(),
            vector: if dimensions > 0 { sketch.vector.clone() } else { Vec::new() },
        };
        let mut memory = memory(method, 1000, None);
        let mut packed = Vec::new();
        for sketch in held {
            memory.add(sketch.entry(), now).unwrap();
            let mut bytes = PackedTrace::pack_words(&sketch.words);
            let trace = pack(sketch);
            bytes.extend(trace.vector.iter().flat_map(|x| x.to_le_bytes()));
            prop_assert_eq!(&PackedTrace::unpack(&bytes, dimensions).unwrap(), &trace);
            packed.push(trace);
        }
        let made = Statistics::of(&packed, packed.len(), dimensions);
        let statistics = Statistics::from_bytes(&made.to_bytes(), dimensions).unwrap();
        prop_assert_eq!(statistics.to_bytes(), made.to_bytes());
        let query = pack(query);
        let mut others = statistics.weigh(&packed, std::slice::from_ref(&query), packed.len()).unwrap();
        let weighed = others.pop().unwrap();
        let compared = statistics.query(&weighed);
        let found = memory.nearest(TraceEntry { words: &query.words, vector: Some(&query.vector), label: None, model: None }, 1000, now).unwrap();
        for SimilarTrace { index, similarity, .. } in found {
            let other = compared.compare(&others[index]);
            prop_assert!((other.lexical - similarity.lexical).abs() < 1e-9);
            prop_assert!((other.contained - similarity.contained).abs() < 1e-9);
            prop_assert!((other.embedded.unwrap_or(0.0) - similarity.embedded.unwrap_or(0.0)).abs() < 1e-5);
        }
        // The products of the words by which both are found are at most L.
        let sought: HashMap<u64, f64> = statistics.looked_for_by(&query.words, 1000, 1e9, 1000.0).into_iter().collect();
        for (trace, other) in packed.iter().zip(&others) {
            let product: f64 = statistics.found_by(&trace.words).iter().map(|(hash, weight)| f64::from(*weight) / WEIGHT_PARTS * sought.get(hash).unwrap_or(&0.0)).sum();
            prop_assert!(product <= compared.compare(other).lexical + 1e-9);
        }
    }

    #[test]
    fn embeddings_are_compared_too(traces in sketches(60), capacity in 1usize..100, count in 1usize..10) {
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
        traces in sketches(60),
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
                other.compare_and_add_batch(&[trace.entry()], now).unwrap();
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

    /// A batch finds and leaves what its traces find and leave one by one.
    #[test]
    fn a_batch_is_its_traces_one_after_another(
        traces in sketches(60),
        capacity in 0usize..50,
        ttl_ms in prop_oneof![Just(None), (1u64..40).prop_map(Some)],
        method in prop_oneof![Just(Method::Lexical), Just(Method::Full)],
        batches in prop::collection::vec((0usize..60, 0u64..20), 1..8),
    ) {
        let (mut one_by_one, mut whole) = (memory(method, capacity, ttl_ms), memory(method, capacity, ttl_ms));
        let mut next = traces.iter().cycle();
        let mut now = Instant::now();
        for (length, pause) in batches {
            now += Duration::from_millis(pause);
            let batch: Vec<_> = next.by_ref().take(length).map(Sketch::entry).collect();
            let found = whole.compare_and_add_batch(&batch, now).unwrap();
            for (entry, found) in batch.iter().zip(found) {
                let (expected, _) = one_by_one.compare_and_explain(*entry, false, true, now).unwrap();
                prop_assert_eq!(found, expected);
            }
            prop_assert_eq!(observed(&mut whole, &traces, now), observed(&mut one_by_one, &traces, now));
            assert_rated(&whole, &traces[0])?;
        }
    }

    /// After a repair a memory is as it was, also if what it keeps beside its traces was destroyed.
    #[test]
    fn repair_makes_all_of_the_traces_anew(
        traces in sketches(60),
        capacity in 1usize..50,
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
        repaired.sample = Sample::default();
        repaired.ratings.clear();
        let broken = Mutex::new(repaired);
        std::thread::scope(|scope| {
            let panic = scope.spawn(|| {
                let _memory = broken.lock();
                panic!("on purpose");
            });
            assert!(panic.join().is_err());
        });
        prop_assert_eq!(observed(&mut lock(&broken), &traces, now), observed(&mut plain, &traces, now));
        assert_rated(&lock(&broken), &traces[0])?;
        lock(&broken).add(traces[0].entry(), now).unwrap();
        plain.add(traces[0].entry(), now).unwrap();
        prop_assert_eq!(observed(&mut lock(&broken), &traces, now), observed(&mut plain, &traces, now));
    }

    /// The bounds of lengths stay bounds, whatever comes and goes.
    #[test]
    fn lengths_are_at_least_what_is_rated(traces in sketches(150), capacity in 1usize..60) {
        let now = Instant::now();
        let mut memory = memory(Method::Lexical, capacity, None);
        for trace in &traces {
            memory.add(trace.entry(), now).unwrap();
            assert_rated(&memory, trace)?;
        }
    }
}

/// Fails unless the rating of each trace is a bound of its length that is as close as it should be.
fn assert_rated(memory: &TraceMemory, query: &Sketch) -> std::result::Result<(), TestCaseError> {
    prop_assert!(memory.terms.has_right_bytes());
    let query = Query::new(&query.words, &memory.terms, memory.held.len());
    prop_assert_eq!(memory.held.len(), memory.ratings.len());
    for (held, rating) in memory.held.iter().zip(&memory.ratings) {
        let mut squared = 0.0;
        for &DocumentWord { term, count } in &held.words {
            squared += (count.value() * (query.logarithm - memory.terms.get(term).logarithm)).powi(2);
        }
        let least = rating.least_length(query.logarithm);
        prop_assert!(least <= squared.sqrt() + 1e-9, "{} {}", least, squared.sqrt());
        let slack = 2.0 * (rate::DRIFT + 2e-3) * rating.root;
        prop_assert!(
            least >= squared.sqrt() - slack - 1e-9,
            "{} {}",
            least,
            squared.sqrt()
        );
    }
    Ok(())
}

/// What can be seen of a memory: its traces, and the bits of how similar `queries` are to each of them.
fn observed(memory: &mut TraceMemory, queries: &[Sketch], now: Instant) -> impl PartialEq + Debug + use<> {
    let sequence = memory.sequence(now);
    let stored: Vec<_> = sequence
        .clone()
        .map(|number| memory.stored(number..number + 1, now))
        .collect();
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
        let first = memory
            .compare_and_add_batch(&[sketch.entry()], Instant::now())
            .unwrap();
        assert_eq!(first, [None]);
        assert_eq!(novelty_of(&mut memory, &sketch), 0.0);
        memory.clear();
        assert_eq!(memory.first_slot(), 0);
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
    let stored = bounded.stored(0..9, start).unwrap();
    assert_eq!((stored.sequence, stored.label.as_deref()), (3, Some("3")));
    assert_eq!(
        (&stored.words, stored.vector.as_ref()),
        (&sketches[3].words, Some(&sketches[3].vector))
    );
    assert_eq!(bounded.stored(0..3, start), None);

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
    assert_eq!(
        mortal
            .terms
            .find(sketches[1].words[0].hash)
            .map(|(place, _)| place),
        None
    );

    let mut none = memory(Method::Lexical, 0, None);
    none.add(sketches[0].entry(), start).unwrap();
    assert!(none.is_empty(start));
}

#[test]
fn slots_are_renumbered() {
    let now = Instant::now();
    let mut memory = memory(Method::Full, 7, None);
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
    assert!(memory.base > 0);
    assert_eq!(memory.sequence(now), 993..1_000);
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
        (TraceEntry { vector: None, ..good }, "ERR_INVALID_VECTOR"),
        (
            TraceEntry {
                vector: Some(&[f32::NAN; DIMENSIONS]),
                ..good
            },
            "ERR_INVALID_VECTOR",
        ),
        (
            TraceEntry {
                label: Some(&long),
                ..good
            },
            "ERR_INVALID_LABEL",
        ),
        (
            TraceEntry {
                model: Some(&quantized),
                ..good
            },
            "ERR_MEMORY_OTHER_MODEL",
        ),
    ];
    for (entry, code) in bad {
        for entries in [&[good, entry][..], &[good, good, entry]] {
            assert_eq!(
                memory.compare_and_add_batch(entries, now).unwrap_err().code(),
                code
            );
            assert_eq!(memory.add_batch(entries, now).unwrap_err().code(), code);
            assert!(memory.is_empty(now));
        }
    }
    memory.add(good, now).unwrap();
    assert_eq!(memory.model(), Some(&single));
    assert_eq!(
        memory.compare(bad[3].0, now).unwrap_err().code(),
        "ERR_MEMORY_OTHER_MODEL"
    );
    let origin = Origin {
        model: None,
        method: Some("prefix".into()),
    };
    assert_eq!(
        memory.check_origin(&origin, now).unwrap_err().code(),
        "ERR_MEMORY_OTHER_METHOD"
    );
}

#[test]
fn batch_compares_each_trace_with_earlier_ones() {
    let sketch = Sketch::of("a", &["b"]);
    let mut memory = memory(Method::Lexical, 10, None);
    let found = memory
        .compare_and_add_batch(&[sketch.entry(), sketch.entry()], Instant::now())
        .unwrap();
    assert_eq!(found[0], None);
    assert_eq!(novelty(found[1].as_ref()), 0.0);
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
fn malformed_trace_bytes_are_refused() {
    let words = Words::of(&with_texts("flight to Boston", &[]));
    let bytes = PackedTrace::pack_words(&words);
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
        assert_eq!(unpack(bytes, dimensions).unwrap_err().code(), "ERR_INVALID_ENTRY");
    }
    let statistics = Statistics::of(&[], 0, 0).to_bytes();
    for (bytes, dimensions) in [(&statistics[..7], 0), (&statistics[..], 1)] {
        assert_eq!(
            Statistics::from_bytes(bytes, dimensions).unwrap_err().code(),
            "ERR_INVALID_ENTRY"
        );
    }
    // A word in more traces than were counted, and a projection that is not finite.
    let mut infinite = Statistics::of(&[], 0, 1).to_bytes();
    infinite[16..20].copy_from_slice(&f32::INFINITY.to_le_bytes());
    for (bytes, dimensions) in [(statistics_bytes(3, &[("a", 4, 1)]), 0), (infinite, 1)] {
        assert!(Statistics::from_bytes(&bytes, dimensions).is_err());
    }
}

#[test]
fn statistics_sample_the_embeddings_of_a_memory() {
    let now = Instant::now();
    let pack = |number: u8| PackedTrace {
        words: Words::of(&with_texts(&format!("word{number}"), &[])),
        vector: (0..6)
            .map(|index| (f32::from(number) * 1.7 + index as f32).sin() + 0.5)
            .collect(),
    };
    let mut packed: Vec<_> = (0..=u8::MAX).chain(0..100).map(pack).collect();
    for (number, trace) in (0_u16..).zip(&mut packed) {
        trace.vector[0] += f32::from(number) / 300.0;
    }
    let mut memory = memory(Method::Full, 1000, None);
    for trace in &packed {
        let vector: &[f32] = &trace.vector;
        let entry = TraceEntry {
            words: &trace.words,
            vector: Some(vector),
            label: None,
            model: None,
        };
        memory.add(entry, now).unwrap();
    }
    let query = pack(7);
    let entry = TraceEntry {
        words: &query.words,
        vector: Some(&query.vector),
        label: None,
        model: None,
    };
    let exact = memory.nearest(entry, 1000, now).unwrap();
    let differs = |sample: &[PackedTrace]| {
        let statistics = Statistics::of(&[], 0, DIMENSIONS).grown(&packed, sample, packed.len());
        exact
            .iter()
            .map(|found| {
                let pair = [&query, &packed[found.index]];
                let similarity = similarity_by(&statistics, &[], pair, packed.len());
                (similarity.embedded.unwrap() - found.similarity.embedded.unwrap()).abs()
            })
            .fold(0.0, f64::max)
    };
    let mut drawn = packed.clone();
    assert!(
        drawn
            .iter()
            .all(|one| (0.0..1.0).contains(&one.draw().unwrap().unwrap()))
    );
    drawn.sort_by(|one, other| one.draw().unwrap().partial_cmp(&other.draw().unwrap()).unwrap());
    assert!(differs(&drawn[..256]) < 1e-5);
    assert!(differs(&packed[..256]) > 1e-4);
}

/// How similar one trace is to another by statistics, where `seen` are some of the memory.
fn similarity_by(
    statistics: &Statistics,
    seen: &[PackedTrace],
    pair: [&PackedTrace; 2],
    memory: usize,
) -> Similarity {
    let pair = pair.map(Clone::clone);
    let weighed = statistics.weigh(seen, &pair, memory).unwrap();
    let [.., one, other] = &weighed[..] else {
        panic!("a pair was weighed")
    };
    statistics.query(one).compare(other)
}

#[test]
fn sample_statistics_approximate_all_traces() {
    let pack = |text: &str| PackedTrace {
        words: Words::of(&with_texts(text, &[])),
        vector: Vec::new(),
    };
    let sample: Vec<_> = (0..4)
        .map(|number| pack(&format!("common rare{number}")))
        .collect();
    let other = pack("common strange");
    let compare = |traces: &[PackedTrace], memory| {
        let statistics = Statistics::of(traces, memory, 0);
        similarity_by(&statistics, &[], [&sample[0], &other], memory).lexical
    };
    // Of 40 traces all have the common word, and one in 40 each of the others.
    let [common, rare] = [(41.0_f64 / 40.0).ln(), 41.0_f64.ln()].map(|weight| weight * weight);
    assert!((compare(&sample, 40) - common / (common + rare)).abs() < 1e-9);
    assert!(compare(&sample, 4) > compare(&sample, 40));
    let similarity = similarity_by(&Statistics::of(&sample, 4, 0), &[], [&sample[0], &other], 4);
    assert_eq!(similarity.embedded, None);
}

#[test]
fn statistics_grow_as_if_all_had_been_counted() {
    let pack = |number: usize| PackedTrace {
        words: Words::of(&with_texts(
            &format!("common third{} pair{}", number % 3, number / 2),
            &[],
        )),
        vector: Vec::new(),
    };
    let traces: Vec<_> = (0..12).map(pack).collect();
    let at_once = Statistics::of(&traces, 12, 0);
    let half = Statistics::of(&traces[..5], 5, 0).to_bytes();
    let grown = Statistics::from_bytes(&half, 0)
        .unwrap()
        .grown(&traces[5..], &[], 12);
    let similarity = |statistics: &Statistics, one: usize, other: usize| {
        similarity_by(statistics, &[], [&traces[one], &traces[other]], 12)
    };
    for (one, other) in [(0, 1), (0, 3), (2, 3), (4, 10)] {
        assert_eq!(similarity(&grown, one, other), similarity(&at_once, one, other));
    }
    // A memory that slides over the same traces again and again knows as much as after the first time.
    let mut sliding = at_once.clone();
    for _ in 0..20 {
        sliding = sliding.grown(&traces, &[], 12);
        let difference = similarity(&sliding, 0, 1).lexical - similarity(&at_once, 0, 1).lexical;
        assert!(difference.abs() < 0.02, "{difference}");
    }
    // Words that came no more are forgotten.
    let other = PackedTrace {
        words: Words::of(&with_texts("another world", &[])),
        vector: Vec::new(),
    };
    let mut later = at_once.clone();
    for _ in 0..10 {
        later = later.grown(&vec![other.clone(); 12], &[], 12);
    }
    assert_eq!(later.common_bytes(), 16 + 2 * 16);
    assert_eq!(later.to_bytes().len(), later.common_bytes());
}

fn trace_of(text: &str) -> PackedTrace {
    PackedTrace {
        words: Words::of(&with_texts(text, &[])),
        vector: Vec::new(),
    }
}

/// How many traces have a word, and how many are found by it, according to the bytes of statistics without embeddings.
fn counted(bytes: &[u8], word: &str) -> Option<(u32, u32)> {
    let hash = trace_of(word).words[0].hash.to_le_bytes();
    let entry = bytes[16..].chunks(16).find(|entry| entry[..8] == hash)?;
    let number = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
    Some((number(8), number(12)))
}

/// The bytes of statistics of `memory` traces, all counted, with these words, how many have them and how many are found by them.
fn statistics_bytes(memory: u32, words: &[(&str, u32, u32)]) -> Vec<u8> {
    let mut bytes: Vec<u8> = [memory, memory, 0, 2]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    for (word, traces, finds) in words {
        bytes.extend(trace_of(word).words[0].hash.to_le_bytes());
        bytes.extend([traces, finds].iter().flat_map(|number| number.to_le_bytes()));
    }
    bytes
}

#[test]
fn counts_are_halved_when_more_than_twice_the_memory_was_counted() {
    let of = |word: &str| vec![trace_of(word); 12];
    let mut statistics = Statistics::of(&of("old"), 12, 0);
    for (old, new) in [(12, 12), (6, 18), (3, 21)] {
        statistics = statistics.grown(&of("new"), &[], 12);
        let bytes = statistics.to_bytes();
        assert_eq!(counted(&bytes, "old"), Some((old, old)));
        assert_eq!(counted(&bytes, "new"), Some((new, new)));
    }
    // As many as there can be.
    let full = Statistics::from_bytes(&statistics_bytes(u32::MAX, &[]), 0).unwrap();
    assert_eq!(full.grown(&[], &[], 0).memory(), 0);
}

#[test]
fn some_of_the_latest_rare_words_are_counted_among_too_many() {
    let own =
        |numbers: Range<usize>| numbers.map(|number| trace_of(&format!("own{number} twice{}", number / 2)));
    // The words of one trace are too many, and those of two are not: a quarter of 2,048 more is kept.
    let early: Vec<_> = own(0..1000).collect();
    let late: Vec<_> = own(1000..2000).collect();
    let statistics = Statistics::of(&early, 2000, 0).grown(&late, &[], 2000);
    let bytes = statistics.to_bytes();
    let kept = |numbers: Range<usize>| {
        numbers
            .filter(|number| counted(&bytes, &format!("own{number}")).is_some())
            .count()
    };
    assert_eq!((kept(0..1000), kept(1000..2000)), (0, 512));
    assert_eq!(bytes.len(), 16 + 16 * (1000 + 512));
}

#[test]
fn a_trace_is_found_by_its_64_heaviest_words() {
    let statistics = Statistics::of(&[], 10, 0);
    for (words, found, weight) in [(1, 1, 32_767), (2, 2, 23_169), (64, 64, 4_095), (100, 64, 4_095)] {
        let text: String = (0..words).map(|number| format!("word{number} ")).collect();
        let weights: Vec<_> = statistics
            .found_by(&trace_of(&text).words)
            .into_iter()
            .map(|(_, weight)| weight)
            .collect();
        assert_eq!(weights, vec![weight; found], "{words}");
    }
    // In an empty memory no word weighs anything.
    let weights = Statistics::of(&[], 0, 0).found_by(&trace_of("a b").words);
    assert!(weights.len() == 2 && weights.iter().all(|(_, weight)| *weight == 0));
}

#[test]
fn looked_for_by_weighs_postings_and_earlier_words_of_a_step() {
    // Each word with the number of traces that have it, and that are found by it.
    for (words, steps, most, expected) in [
        // The weights are as 1.4 to 1, and roots of postings count.
        (&[("a", 2, 3), ("b", 12, 1)][..], ["a", "b"], 1, "a"),
        (&[("a", 2, 4), ("b", 12, 1)], ["a", "b"], 1, "b"),
        // A second word of a step is worth half as much.
        (&[("a", 2, 1), ("b", 3, 1), ("c", 10, 1)], ["a b", "c"], 3, "acb"),
    ] {
        let statistics = Statistics::from_bytes(&statistics_bytes(1000, words), 0).unwrap();
        let query = Words::of(&with_texts("", &steps));
        let found = statistics.looked_for_by(&query, most, 1e9, 1000.0);
        let hashes: Vec<_> = found.iter().map(|(hash, _)| *hash).collect();
        let letters = expected
            .chars()
            .map(|letter| trace_of(&letter.to_string()).words[0].hash);
        assert_eq!(hashes, letters.collect::<Vec<_>>(), "{words:?}");
    }
    // A word by which nothing is found stands for no other one.
    let bytes = statistics_bytes(1000, &[("a", 9, 9), ("b", 2, 0)]);
    let statistics = Statistics::from_bytes(&bytes, 0).unwrap();
    let found = statistics.looked_for_by(&trace_of("a b").words, 1, 1e9, 1000.0);
    let [a, b] = [9.0, 2.0].map(|traces| (1001.0_f64 / traces).ln());
    assert!((found[0].1 - b / a.hypot(b)).abs() < 1e-9);
}

#[test]
fn common_bytes_have_the_words_that_as_many_traces_as_the_least_contain() {
    let statistics = Statistics::of(&["a b", "a b", "a", "c d e f g h i j"].map(trace_of), 4, 0);
    let bytes = statistics.to_bytes();
    let common = &bytes[..statistics.common_bytes()];
    assert_eq!(
        ["a", "b", "c"].map(|word| counted(common, word)),
        [Some((3, 3)), Some((2, 2)), None]
    );
}

#[test]
fn traces_without_embeddings_count_by_their_words_alone() {
    let embedded: Vec<_> = (0..4)
        .map(|number| PackedTrace {
            vector: (0..6).map(|index| ((number * 7 + index) as f32).sin()).collect(),
            ..trace_of("a")
        })
        .collect();
    let some = [&embedded[..], &[trace_of("a")]].concat();
    let none = Statistics::of(&[], 0, DIMENSIONS);
    assert_eq!(
        none.grown(&some, &some, 5).to_bytes(),
        none.grown(&some, &embedded, 5).to_bytes()
    );
}

#[test]
fn the_rarest_words_are_forgotten_first() {
    let pack = |number: usize| PackedTrace {
        words: Words::of(&with_texts(
            &format!("common rare{number} pair{}", number / 2),
            &[],
        )),
        vector: Vec::new(),
    };
    let traces: Vec<_> = (0..4000).map(pack).collect();
    let mut statistics = Statistics::of(&[], 0, 0);
    for (index, part) in traces.chunks(400).enumerate() {
        statistics = statistics.grown(part, &[], 400 * (index + 1));
    }
    let bytes = statistics.to_bytes();
    assert!((bytes.len() - 16) / 16 <= 2048 + 512, "{}", bytes.len());
    // What others read has the common words, and says the same.
    let common = &bytes[..statistics.common_bytes()];
    assert!((common.len() - 16) / 16 <= 512, "{}", common.len());
    let read = Statistics::from_bytes(common, 0).unwrap();
    let compare = |statistics: &Statistics, other: usize| {
        similarity_by(statistics, &[], [&traces[3999], &traces[other]], 4000)
    };
    for other in [0, 500, 3998] {
        assert_eq!(compare(&read, other), compare(&statistics, other));
    }
    let common = (4001.0_f64 / 4000.0).ln();
    assert!(compare(&read, 0).lexical < common);
    // A word that is not among them weighs as if it were in one trace, or in as many as are looked at.
    let similarity = |seen: &[PackedTrace]| similarity_by(&read, seen, [&traces[0], &traces[1]], 4000);
    let [rare, pair] = [4001.0_f64.ln(), (4001.0_f64 / 2.0).ln()];
    let share = |pair: f64| (common.powi(2) + pair.powi(2)) / (common.powi(2) + rare.powi(2) + pair.powi(2));
    assert!((similarity(&[]).lexical - share(rare)).abs() < 1e-9);
    assert!((similarity(&traces[..10]).lexical - share(pair)).abs() < 1e-9);
}

/// Candidates are those with the largest sums, as adding up for each position finds.
#[test]
fn candidates_from_postings_equal_exhaustive_sums() {
    let pack = |number: usize| PackedTrace {
        words: Words::of(&with_texts(
            &format!("topic{} kind{} item{number}", number % 7, number % 5),
            &["one more step about something", &format!("user{}", number % 11)],
        )),
        vector: Vec::new(),
    };
    let traces: Vec<_> = (0..300).map(pack).collect();
    let statistics = Statistics::of(&traces, traces.len(), 0);
    // The last one has a word of one trace alone.
    let alone = PackedTrace {
        words: Words::of(&with_texts("item12", &[])),
        vector: Vec::new(),
    };
    let queries = [pack(12), pack(1234), pack(0), alone];
    let sought = CandidateQuery::of(&queries, &statistics, 100, 1e9, 300.0);
    for block in [1, 64, 4096] {
        let mut blocks: BTreeMap<(u32, u64), Vec<u8>> = BTreeMap::new();
        let mut sums = vec![vec![0.0; traces.len()]; queries.len()];
        for (position, trace) in traces.iter().enumerate() {
            for (hash, weight) in statistics.found_by(&trace.words) {
                for (query, sums) in queries.iter().zip(&mut sums) {
                    let looked = statistics.looked_for_by(&query.words, 100, 1e9, 300.0);
                    let part = looked.iter().find(|(other, _)| *other == hash);
                    sums[position] += part.map_or(0.0, |(_, part)| part * f64::from(weight));
                }
                let Some(word) = sought.words.iter().position(|other| *other == hash) else {
                    continue;
                };
                let key = (u32::try_from(word).unwrap(), (position / block) as u64);
                let bytes = blocks.entry(key).or_default();
                bytes.extend_from_slice(&u16::try_from(position % block).unwrap().to_be_bytes());
                bytes.extend_from_slice(&weight.to_be_bytes());
            }
        }
        let mut postings = Vec::new();
        // In no useful order.
        for word in (0..u32::try_from(sought.words.len()).unwrap()).rev() {
            let own = blocks
                .range((word, 0)..(word + 1, 0))
                .map(|(&(_, number), bytes)| {
                    let number = u32::try_from(number).unwrap() | 0x8000_0000;
                    [&number.to_be_bytes(), &bytes[..]].concat()
                });
            let own = own.collect::<Vec<_>>().concat();
            postings.extend_from_slice(&word.to_be_bytes());
            postings.extend_from_slice(&u32::try_from(own.len()).unwrap().to_be_bytes());
            postings.extend_from_slice(&own);
        }
        let size = u32::try_from(block).unwrap();
        for positions in [0..300, 40..200] {
            let found = sought.candidates(&postings, size, &positions, 10).unwrap();
            assert_eq!(found.len(), queries.len());
            for (found, sums) in found.iter().zip(&sums) {
                let range =
                    usize::try_from(positions.start).unwrap()..usize::try_from(positions.end).unwrap();
                let mut expected: Vec<f64> = sums[range].iter().copied().filter(|sum| *sum > 0.0).collect();
                expected.sort_by(|one, other| other.total_cmp(one));
                expected.truncate(10);
                let found: Vec<f64> = found
                    .iter()
                    .map(|position| sums[usize::try_from(*position).unwrap()])
                    .collect();
                assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(&expected) {
                    assert!((found - expected).abs() <= 1e-5 * expected, "{found} {expected}");
                }
            }
        }
        let words = u32::try_from(sought.words.len()).unwrap().to_be_bytes();
        let damaged = [
            &postings[..postings.len() - 1],
            &[0xff; 16],
            // A posting without a block.
            &[0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 1],
            // A word after the last one.
            &[&words[..], &[0; 4]].concat(),
        ];
        for bytes in damaged {
            let error = sought.candidates(bytes, size, &(0..300), 10).unwrap_err();
            assert_eq!(error.code(), "ERR_INVALID_ENTRY");
        }
    }
    assert_eq!(
        sought.candidates(&[], 64, &(0..300), 10).unwrap(),
        vec![Vec::<u64>::new(); queries.len()]
    );
}

/// One step has `a`, `b` and `c`, which 3, 2 and 1 of four traces have, and another the unknown word `d`.
#[test]
fn looked_for_by_chooses_rare_words_that_stand_for_those_of_their_step() {
    let pack = |text: &str| PackedTrace {
        words: Words::of(&with_texts(text, &[])),
        vector: Vec::new(),
    };
    let statistics = Statistics::of(&["a b", "a b", "a", "c"].map(pack), 4, 0);
    assert_eq!(statistics.memory(), 4);
    let query = Words::of(&with_texts("a b c", &["d"]));
    // The squares of c(t) w(t).
    let squares = [(9.0, 3.0), (9.0, 2.0), (9.0, 1.0), (7.0, 1.0)]
        .map(|(length, traces): (f64, f64)| (5.0 / traces).ln().powi(2) / length);
    let sum: f64 = squares.iter().sum();
    let of_step = squares[0] + squares[1] + squares[2];
    for (most, budget, memory, expected) in [
        (9, 99.0, 4.0, "dcba"),
        (3, 99.0, 4.0, "dcb"),
        (2, 99.0, 4.0, "dc"),
        (0, 99.0, 4.0, ""),
        // They have 1, 1, 2 and 3 postings, in a memory of eight traces twice as many.
        (9, 7.0, 4.0, "dcba"),
        (9, 6.9, 4.0, "dcb"),
        (9, 4.0, 4.0, "dcb"),
        (9, 3.9, 4.0, "dc"),
        (9, 0.0, 4.0, "d"),
        (9, 7.0, 8.0, "dcb"),
        (9, 6.9, 8.0, "dc"),
    ] {
        let found = statistics.looked_for_by(&query, most, budget, memory);
        let indexes: Vec<_> = expected
            .bytes()
            .map(|letter| usize::from(letter - b'a'))
            .collect();
        let chosen: f64 = indexes
            .iter()
            .filter(|&&index| index < 3)
            .map(|&index| squares[index])
            .sum();
        assert_eq!(found.len(), indexes.len(), "{most} {budget} {memory}");
        for (index, (hash, weight)) in indexes.into_iter().zip(found) {
            let word = Words::of(&with_texts(["a", "b", "c", "d"][index], &[]))[0];
            let share = if index < 3 { of_step / chosen } else { 1.0 };
            assert_eq!(hash, word.hash, "{most} {budget} {memory}");
            assert!((weight - (squares[index] / sum).sqrt() * share).abs() < 1e-3);
        }
    }
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
    let squared: f32 = made.parts().1.iter().map(|x| x * x).sum();
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
        projection::Sample::hash(&scaled.components)
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
fn bytes_of_statistics_are_those_of_the_header_the_projection_and_the_words() {
    for (dimensions, bytes) in [(0, 16), (6, 16 + 2 * 6 * 4)] {
        let statistics = Statistics::of(&[], 0, dimensions);
        assert_eq!(
            (statistics.common_bytes(), statistics.to_bytes().len()),
            (bytes, bytes)
        );
    }
}

#[test]
fn bytes_of_a_trace_are_those_of_its_words_and_its_document() {
    let word = DocumentWord {
        term: 0,
        count: Words::of(&with_texts("a", &[]))[0].count,
    };
    let bytes = |words: &[DocumentWord]| {
        let document = Document {
            label: None,
            added: Moment::at(Instant::now()),
            words: words.into(),
        };
        document.bytes()
    };
    let document = size_of::<Document>() + 4 * size_of::<usize>();
    assert_eq!(bytes(&[]), document);
    assert_eq!(bytes(&[word; 5]), document + 5 * 6);
    let mut sample = projection::Sample::default();
    for sequence in 0..4 {
        sample.insert(7, sequence);
    }
    assert_eq!(sample.bytes(), 4 * 24);
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
        let mut parts = vec![
            documents,
            3 * (24 + 8),
            memory.terms.bytes(),
            memory.scratch.bytes(),
        ];
        if method == Method::Full {
            parts.extend([
                memory.vectors.bytes(),
                memory.sample.bytes(),
                8 * memory.projection.lengths.capacity(),
            ]);
        }
        assert!(!parts.contains(&0));
        assert_eq!(memory.bytes(), parts.iter().sum::<usize>());
    }
}

#[test]
fn traces_without_words_find_one_another() {
    let statistics = Statistics::of(&[], 0, 0);
    let none = Words::default();
    let [(found, _)] = statistics.found_by(&none)[..] else {
        panic!("one word");
    };
    assert_eq!(statistics.looked_for_by(&none, 1, 0.0, 10.0), [(found, 1.0)]);
}
