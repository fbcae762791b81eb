use super::*;
use proptest::prelude::*;
use std::{collections::VecDeque, time::Duration};

use knowledgepulse_trace::label::MAX_LABEL_BYTES;

use crate::options::ModelIdentity;

fn cache(max_elements: usize, dimensions: usize, ttl_ms: Option<u64>) -> VectorCache {
    VectorCache::new(MemoryOptions {
        max_elements,
        dimensions,
        time_to_live: ttl_ms.map(Duration::from_millis),
    })
}

fn oracle_similarity(a: &[f64], b: &[f64]) -> f64 {
    let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let norms = norm(a) * norm(b);
    if norms == 0.0 { 0.0 } else { dot / norms }
}

#[test]
fn wrong_lengths_and_infinities_are_refused() {
    let now = Instant::now();
    let mut cache = cache(10, 3, None);
    for vector in [&[][..], &[1.0], &[1.0; 4]] {
        assert_eq!(
            cache.add(vector, None, now).unwrap_err().to_string(),
            format!("Expected 3 dimensions, got {}", vector.len())
        );
        assert!(cache.max_cosine_similarity(vector, now).is_err());
    }
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = cache.add(&[1.0, 2.0, bad], None, now).unwrap_err();
        assert_eq!(error.code(), "ERR_INVALID_INPUT");
        assert!(error.to_string().starts_with("vector[2]"), "{error}");
        let error = cache.max_cosine_similarity(&[bad, 2.0, bad], now).unwrap_err();
        assert!(error.to_string().starts_with("query[0]"), "{error}");
    }
    assert_eq!(cache.len(now), 0);
}

#[test]
fn full_cache_evicts_the_oldest() {
    let now = Instant::now();
    let mut cache = cache(2, 2, None);
    cache.add(&[1.0, 0.0], None, now).unwrap();
    cache.add(&[0.0, 1.0], None, now).unwrap();
    assert_eq!(cache.max_cosine_similarity(&[1.0, 0.0], now).unwrap(), 1.0);
    cache.add(&[0.0, -1.0], None, now).unwrap();
    assert_eq!(cache.len(now), 2);
    assert_eq!(cache.max_cosine_similarity(&[1.0, 0.0], now).unwrap(), 0.0);
    cache.clear();
    assert!(cache.is_empty(now));
    assert_eq!(cache.max_cosine_similarity(&[1.0, 0.0], now).unwrap(), 0.0);
}

#[test]
fn a_capacity_of_zero_stores_nothing_but_still_checks() {
    let now = Instant::now();
    let mut cache = cache(0, 2, None);
    cache.add(&[1.0, 0.0], None, now).unwrap();
    assert_eq!(cache.len(now), 0);
    assert!(cache.add(&[1.0], None, now).is_err());
}

#[test]
fn an_entry_lives_while_its_age_is_below_the_time_to_live() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let mut cache = cache(10, 1, Some(100));
    cache.add(&[1.0], None, at(0)).unwrap();
    cache.add(&[-1.0], None, at(50)).unwrap();
    assert_eq!(cache.len(at(99)), 2);
    assert_eq!(cache.max_cosine_similarity(&[1.0], at(99)).unwrap(), 1.0);
    assert_eq!(cache.len(at(100)), 1);
    assert_eq!(cache.max_cosine_similarity(&[1.0], at(100)).unwrap(), -1.0);
    cache.evict_expired(at(150));
    assert_eq!(cache.rows.len(), 0);
}

#[test]
fn a_time_to_live_of_zero_keeps_nothing() {
    let now = Instant::now();
    let mut cache = cache(10, 1, Some(0));
    cache.add(&[1.0], None, now).unwrap();
    assert_eq!(cache.len(now), 0);
}

#[test]
fn zero_vectors_have_no_similarity() {
    let now = Instant::now();
    let mut cache = cache(10, 2, None);
    cache.add(&[0.0, 0.0], None, now).unwrap();
    assert_eq!(cache.max_cosine_similarity(&[1.0, 0.0], now).unwrap(), 0.0);
    // The zero vector is in the cache, and 0 is more than -1.
    cache.add(&[-1.0, 0.0], None, now).unwrap();
    assert_eq!(cache.max_cosine_similarity(&[1.0, 0.0], now).unwrap(), 0.0);
    assert_eq!(cache.max_cosine_similarity(&[0.0, 0.0], now).unwrap(), 0.0);
}

#[test]
fn similarity_to_a_zero_vector_is_a_positive_zero() {
    let now = Instant::now();
    for vector in [[0.0, 0.0], [-0.0, -0.0], [0.0, -0.0]] {
        let mut cache = cache(1, 2, None);
        cache.add(&vector, None, now).unwrap();
        for query in [[1.0, 1.0], [-1.0, -1.0], [-1.0, 0.0], [0.0, 0.0]] {
            let similarity = cache.max_cosine_similarity(&query, now).unwrap();
            assert_eq!(similarity.to_bits(), 0, "{query:?} {vector:?}");
        }
    }
}

#[test]
fn extreme_magnitudes_keep_their_direction() {
    let now = Instant::now();
    let mut cache = cache(10, 2, None);
    for scale in [f64::MAX, 1e300, 1.0, 1e-40, 1e-300, 5e-324] {
        cache.clear();
        cache.add(&[scale, scale], None, now).unwrap();
        for query in [f64::MAX, 1.0, 1e-300, 5e-324] {
            let similarity = cache.max_cosine_similarity(&[query, query], now).unwrap();
            assert!((similarity - 1.0).abs() < 1e-6, "{scale} {query}: {similarity}");
        }
    }
}

#[test]
fn vector_beyond_memory_is_an_error() {
    // The length must match first, so only the allocation of a block can fail: far beyond memory.
    let mut rows = Rows::new(usize::MAX / 8);
    assert!(rows.reserve().is_none());
    assert_eq!(
        cache(1, 1, None).options.out_of_memory().code(),
        "ERR_OUT_OF_MEMORY"
    );
}

proptest! {
    #[test]
    fn agrees_with_a_naive_model(
        max_elements in 0usize..9,
        operations in prop::collection::vec((0u8..10, prop::collection::vec(-1.0f64..1.0, 5), 0u64..40), 0..60),
    ) {
        let start = Instant::now();
        let mut elapsed = 0;
        let mut cache = cache(max_elements, 5, Some(100));
        let mut model: VecDeque<(Vec<f64>, u64)> = VecDeque::new();
        for (operation, vector, pause) in operations {
            elapsed += pause;
            let now = start + Duration::from_millis(elapsed);
            model.retain(|(_, added)| elapsed - added < 100);
            if operation < 6 {
                cache.add(&vector, None, now).unwrap();
                if max_elements > 0 {
                    if model.len() == max_elements {
                        model.pop_front();
                    }
                    model.push_back((vector, elapsed));
                }
            } else if operation < 9 {
                let expected = model.iter().map(|(v, _)| oracle_similarity(&vector, v)).reduce(f64::max).unwrap_or(0.0);
                let found = cache.max_cosine_similarity(&vector, now).unwrap();
                prop_assert!((found - expected).abs() <= 1e-6, "{} {}", found, expected);
            } else {
                cache.clear();
                model.clear();
            }
            prop_assert_eq!(cache.len(now), model.len());
        }
    }

    #[test]
    fn agrees_with_double_precision(
        dimensions in 1usize..700,
        count in 0usize..40,
        seed in any::<u64>(),
        exponent in -30i32..30,
    ) {
        // xorshift, so that large caches do not slow down shrinking.
        let mut state = seed | 1;
        let mut component = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * 10f64.powi(exponent)
        };
        let now = Instant::now();
        let mut cache = cache(1000, dimensions, None);
        let vectors: Vec<Vec<f64>> = (0..count).map(|_| (0..dimensions).map(|_| component()).collect()).collect();
        for vector in &vectors {
            cache.add(vector, None, now).unwrap();
        }
        let query: Vec<f64> = (0..dimensions).map(|_| component()).collect();
        let expected = vectors.iter().map(|v| oracle_similarity(&query, v)).reduce(f64::max).unwrap_or(0.0);
        let found = cache.max_cosine_similarity(&query, now).unwrap();
        prop_assert!((found - expected).abs() <= 1e-6, "{} {}", found, expected);
    }

    /// What a cache finds on its way, against a list.
    #[test]
    fn agrees_with_a_list(
        max_elements in 0usize..400,
        ttl_ms in prop_oneof![Just(None), (1u64..500).prop_map(Some)],
        dimensions in prop_oneof![Just(2usize), Just(70)],
        operations in prop::collection::vec((0u8..10, 0usize..200, 0u64..60, any::<u64>()), 1..20),
    ) {
        let start = Instant::now();
        let mut elapsed = 0;
        let mut cache = cache(max_elements, dimensions, ttl_ms);
        let mut list = List::new(max_elements, ttl_ms);
        let mut last_label = 0;
        for (operation, count, pause, seed) in operations {
            elapsed += pause;
            let now = start + Duration::from_millis(elapsed);
            let mut random = Random(seed | 1);
            let query: Vec<f64> = (0..dimensions).map(|_| random.coarse()).collect();
            list.expire(elapsed);
            match operation {
                0..4 => {
                    for _ in 0..count {
                        let vector: Vec<f64> = (0..dimensions).map(|_| random.coarse()).collect();
                        last_label += 1;
                        let label = (last_label % 3 > 0).then(|| Label::from(last_label.to_string()));
                        cache.add(&vector, label.clone(), now).unwrap();
                        list.add(vector, label, elapsed);
                        list.expire(elapsed);
                    }
                }
                4..8 => {
                    let wanted = count / 8;
                    let found = cache.nearest(&query, wanted, now).unwrap();
                    let expected = list.nearest(&query);
                    prop_assert_eq!(&found[..], &expected[..wanted.min(expected.len())]);
                    let largest = cache.max_cosine_similarity(&query, now).unwrap();
                    let first = expected.first().map_or(0.0, |neighbour| neighbour.similarity);
                    prop_assert_eq!(largest.to_bits(), first.to_bits());
                }
                8 => {
                    cache.clear();
                    list.vectors.clear();
                }
                _ => {
                    prop_assert_eq!(cache.len(now), list.vectors.len());
                    let all = cache.nearest(&query, usize::MAX, now).unwrap();
                    prop_assert_eq!(&all, &list.nearest(&query));
                }
            }
        }
    }
}

/// The rules of a cache, written for one vector at a time: the reference for the properties below.
struct List {
    max_elements: usize,
    ttl_ms: Option<u64>,
    vectors: Vec<(Vec<f64>, Option<Label>, u64)>,
}

impl List {
    fn new(max_elements: usize, ttl_ms: Option<u64>) -> Self {
        Self {
            max_elements,
            ttl_ms,
            vectors: Vec::new(),
        }
    }

    fn expire(&mut self, elapsed: u64) {
        let lives = |added| self.ttl_ms.is_none_or(|ttl_ms| elapsed - added < ttl_ms);
        self.vectors.retain(|(_, _, added)| lives(*added));
    }

    fn add(&mut self, vector: Vec<f64>, label: Option<Label>, added: u64) {
        self.vectors.push((vector, label, added));
        if self.vectors.len() > self.max_elements {
            self.vectors.remove(0);
        }
    }

    /// All, the most similar first. A cache of one vector says how similar.
    fn nearest(&self, query: &[f64]) -> Vec<SimilarVector> {
        let now = Instant::now();
        let similarity = |vector: &[f64]| {
            let mut alone = cache(1, vector.len(), None);
            alone.add(vector, None, now).unwrap();
            alone.max_cosine_similarity(query, now).unwrap()
        };
        let vectors = self.vectors.iter().enumerate();
        let mut neighbours: Vec<_> = vectors
            .map(|(index, (vector, label, _))| SimilarVector {
                index,
                similarity: similarity(vector),
                label: label.clone(),
            })
            .collect();
        // A stable sort: equals stay oldest first.
        neighbours.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
        neighbours
    }
}

/// xorshift, so that large caches do not slow down shrinking.
struct Random(u64);

impl Random {
    /// One of five numbers: with few dimensions there are ties.
    fn coarse(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % 5) as f64 - 2.0
    }
}

#[test]
fn the_nearest_come_in_order_with_their_labels() {
    let now = Instant::now();
    let mut cache = cache(4, 2, None);
    let label = |text: &str| Some(Label::from(text));
    for (vector, text) in [([9.0, 9.0], "gone"), ([1.0, 0.0], "east"), ([-1.0, 0.0], "west")] {
        cache.add(&vector, label(text), now).unwrap();
    }
    cache.add(&[2.0, 0.0], None, now).unwrap();
    cache.add(&[0.0, 1.0], label(""), now).unwrap();
    let neighbour = |index, similarity, label| SimilarVector {
        index,
        similarity,
        label,
    };
    let all = [
        neighbour(0, 1.0, label("east")),
        neighbour(2, 1.0, None),
        neighbour(3, 0.0, label("")),
        neighbour(1, -1.0, label("west")),
    ];
    for count in 0..6 {
        let found = cache.nearest(&[3.0, 0.0], count, now).unwrap();
        assert_eq!(found, all[..count.min(4)]);
    }
    let indices = |found: Vec<SimilarVector>| found.iter().map(|found| found.index).collect::<Vec<_>>();
    assert_eq!(indices(cache.nearest(&[0.0, 0.0], 3, now).unwrap()), [0, 1, 2]);
    assert!(cache.nearest(&[1.0], 1, now).is_err());
}

#[test]
fn long_labels_are_refused() {
    let now = Instant::now();
    let mut cache = cache(2, 1, None);
    cache.add(&[1.0], Some("\u{e9}".repeat(512).into()), now).unwrap();
    let long = Some("\u{e9}".repeat(513).into());
    let error = cache.add(&[1.0], long, now).unwrap_err();
    assert_eq!(error.code(), "ERR_INVALID_INPUT");
    assert_eq!(
        error.to_string(),
        "label must be at most 1024 bytes of UTF-8, got 1026"
    );
    assert_eq!(cache.len(now), 1);
}

fn origin(model: &str, dtype: &str, method: Option<&str>) -> Origin {
    Origin {
        model: Some(ModelIdentity {
            model: model.into(),
            dtype: dtype.into(),
            sha256: None,
        }),
        method: method.map(Into::into),
    }
}

/// Adds a vector of this origin.
fn add_of(cache: &mut VectorCache, origin: &Origin, now: Instant) -> Result<()> {
    let entry = VectorEntry {
        vector: &[1.0],
        label: None,
        origin,
    };
    cache.compare_and_add(entry, true, now).map(drop)
}

#[test]
fn vectors_of_two_models_do_not_mix() {
    let now = Instant::now();
    let (single, quantized) = (origin("mini", "fp32", None), origin("mini", "q8", None));
    let mut cache = cache(2, 1, None);
    assert_eq!(cache.origin.model.as_ref(), None);
    add_of(&mut cache, &single, now).unwrap();
    let mut other_file = single.clone();
    other_file.model.as_mut().unwrap().sha256 = Some("0".repeat(64));
    add_of(&mut cache, &other_file, now).unwrap();
    let error = add_of(&mut cache, &quantized, now).unwrap_err();
    assert_eq!(error.code(), "ERR_MEMORY_MISMATCH");
    assert!(error.to_string().contains("mini (fp32)"), "{error}");
    assert!(error.to_string().contains("mini (q8)"), "{error}");
    assert_eq!(cache.origin, single);
    assert_eq!(cache.origin.model.as_ref(), single.model.as_ref());
    cache.clear();
    assert_eq!(cache.origin.model.as_ref(), None);
    add_of(&mut cache, &quantized, now).unwrap();
    assert_eq!(cache.origin, quantized);
}

#[test]
fn vectors_of_two_methods_do_not_mix() {
    let now = Instant::now();
    let of = |method| origin("mini", "fp32", method);
    let (prefix, full) = (of(Some("prefix")), of(Some("full")));
    let mut cache = cache(3, 1, None);
    add_of(&mut cache, &prefix, now).unwrap();
    let error = cache.check_origin(&full, now).unwrap_err();
    assert_eq!(error.code(), "ERR_MEMORY_MISMATCH");
    for name in ["'prefix'", "'full'"] {
        assert!(error.to_string().contains(name), "{error}");
    }
    assert_eq!(add_of(&mut cache, &full, now).unwrap_err().code(), error.code());
    // An unknown model or method is compatible with any, and does not erase a known one.
    add_of(&mut cache, &of(None), now).unwrap();
    cache.add(&[1.0], None, now).unwrap();
    assert_eq!(cache.origin, prefix);

    // By hand, then of a model whose method is unknown, then of a method.
    cache.clear();
    cache.add(&[1.0], None, now).unwrap();
    for (origin, expected) in [(of(None), of(None)), (full.clone(), full)] {
        add_of(&mut cache, &origin, now).unwrap();
        assert_eq!(cache.origin, expected);
    }
}

/// The first component of each vector.
fn firsts(rows: &Rows) -> Vec<f32> {
    rows.iter().map(|row| row.components[0].0[0]).collect()
}

#[test]
#[cfg_attr(miri, ignore = "thousands of components")]
fn bytes_are_those_of_components_and_32_more() {
    let now = Instant::now();
    for (dimensions, bytes) in [(1, 256), (64, 256), (65, 512), (384, 1_536), (65_536, 262_144)] {
        let mut cache = cache(9, dimensions, None);
        assert_eq!(cache.bytes(), 0);
        for _ in 0..3 {
            cache.add(&vec![1.0; dimensions], None, now).unwrap();
        }
        assert_eq!(cache.bytes(), 3 * (bytes + 32), "{dimensions}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 16 }))]

    #[test]
    fn rows_are_a_queue(
        dimensions in prop::sample::select(vec![20_000, 40_000, 70_000]),
        operations in prop::collection::vec(0u8..8, 0..50),
    ) {
        let now = Moment::at(Instant::now());
        let mut rows = Rows::new(dimensions);
        let (mut model, mut gone) = (VecDeque::new(), 0);
        let mut scaled = Scaled::default();
        for (number, operation) in (1u8..).map(f32::from).zip(operations) {
            if operation < 5 {
                scaled.set(&vec![number; dimensions], "vector").unwrap();
                rows.reserve().unwrap();
                rows.push_back(&scaled, None, now);
                model.push_back(number);
            } else {
                rows.pop_front();
                gone += u64::from(model.pop_front().is_some());
            }
            prop_assert_eq!(firsts(&rows), Vec::from_iter(model.iter().copied()));
            let lasts = rows.iter().map(|row| row.components[dimensions / 64 - 1].0[63]);
            prop_assert!(lasts.eq(model.iter().copied()));
            prop_assert_eq!(rows.sequence(), gone..gone + model.len() as u64);
            prop_assert!(rows.get(model.len()).is_none());
            let runs = rows.runs().map(|run| run.inverse_norms.len());
            prop_assert_eq!(runs.sum::<usize>(), model.len());
        }
    }
}

/// A scan on several threads, of more than one block each.
#[test]
#[cfg_attr(miri, ignore = "millions of components")]
fn large_caches_find_what_small_ones_find() {
    const COUNT: usize = 6000;
    let now = Instant::now();
    let mut random = Random(7);
    let mut large = cache(COUNT, 384, None);
    let mut all = Vec::new();
    let query: Vec<f64> = (0..384).map(|_| random.coarse()).collect();
    for index in 0..COUNT {
        // Each comes again later, so that there are ties.
        let mut own = Random(1 + (index % 2500) as u64);
        let vector: Vec<f64> = (0..384).map(|_| own.coarse()).collect();
        large.add(&vector, None, now).unwrap();
        let mut alone = cache(1, 384, None);
        alone.add(&vector, None, now).unwrap();
        all.push((index, alone.max_cosine_similarity(&query, now).unwrap()));
    }
    assert!(large.bytes() > 9_000_000);
    all.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    for count in [1, 100, COUNT] {
        let found = large.nearest(&query, count, now).unwrap();
        let found: Vec<_> = found
            .into_iter()
            .map(|found| (found.index, found.similarity))
            .collect();
        assert_eq!(found, all[..count]);
    }
}

#[test]
fn a_clone_of_the_queue_stays_as_it_is() {
    let now = Moment::at(Instant::now());
    // 2,000 dimensions: 32 vectors to a block.
    let mut rows = Rows::new(2000);
    let mut scaled = Scaled::default();
    let mut clones = Vec::new();
    for number in 0..300u16 {
        scaled.set(&[f64::from(number + 1); 2000], "vector").unwrap();
        rows.reserve().unwrap();
        rows.push_back(&scaled, None, now);
        if number % 7 == 0 {
            clones.push((rows.clone(), firsts(&rows)));
        }
        if number > 90 {
            rows.pop_front();
        }
        if number == 200 {
            rows.clear();
            assert_eq!(rows.sequence(), 201..201);
        }
    }
    for (clone, expected) in clones {
        assert_eq!(firsts(&clone), expected);
    }
}

fn contents(cache: &mut VectorCache, now: Instant) -> Vec<(Vec<f32>, Option<Label>)> {
    cache.evict_expired(now);
    let rows = cache.rows.iter();
    rows.map(|row| (cache.rows.components(row), row.label.cloned()))
        .collect()
}

proptest! {
    #[test]
    fn compare_and_add_finds_what_nearest_finds_and_adds_what_add_adds(
        max_elements in 0usize..12,
        before in prop::collection::vec(0f32..7.0, 0..8),
        entries in prop::collection::vec(0f32..7.0, 0..6),
    ) {
        let now = Instant::now();
        let origin = Origin::default();
        let [mut cache, mut oracle] = [(); 2].map(|()| {
            let mut cache = cache(max_elements, 2, None);
            for angle in &before {
                cache.add(&[angle.cos(), angle.sin()], None, now).unwrap();
            }
            cache
        });
        for (number, angle) in entries.iter().enumerate() {
            let (vector, label) = ([angle.cos(), angle.sin()], Label::from(number.to_string()));
            let entry = VectorEntry { vector: &vector, label: Some(&label), origin: &origin };
            let nearest = cache.compare_and_add(entry, true, now).unwrap();
            prop_assert_eq!(nearest, oracle.nearest(&vector, 1, now).unwrap().pop());
            oracle.add(&vector, Some(label), now).unwrap();
        }
        prop_assert_eq!(contents(&mut cache, now), contents(&mut oracle, now));
    }
}

#[test]
fn compare_and_add_of_a_wrong_entry_changes_nothing() {
    let now = Instant::now();
    let of = |model: &str| Origin {
        model: Some(ModelIdentity {
            model: model.into(),
            dtype: "fp32".into(),
            sha256: None,
        }),
        method: None,
    };
    let (ours, other) = (of("ours"), of("other"));
    let long = Label::from("x".repeat(MAX_LABEL_BYTES + 1));
    let good: &[f32] = &[1.0, 0.0];
    let entry = |vector, label, origin| VectorEntry {
        vector,
        label,
        origin,
    };
    for (wrong, code) in [
        (entry(good, Some(&long), &ours), "ERR_INVALID_INPUT"),
        (entry(&[1.0], None, &ours), "ERR_INVALID_INPUT"),
        (entry(&[f32::NAN, 0.0], None, &ours), "ERR_INVALID_INPUT"),
        (entry(good, None, &other), "ERR_MEMORY_MISMATCH"),
    ] {
        for model in [None, Some(&ours)] {
            // Without a recorded model any is comparable.
            if model.is_none() && code == "ERR_MEMORY_MISMATCH" {
                continue;
            }
            let mut cache = cache(3, 2, None);
            for angle in [1.0f32, 2.0, 3.0] {
                cache.add(&[angle.cos(), angle.sin()], None, now).unwrap();
            }
            if let Some(model) = model {
                cache.origin = model.clone();
            }
            let expected = (contents(&mut cache, now), cache.origin.model.clone());
            assert_eq!(cache.compare_and_add(wrong, true, now).unwrap_err().code(), code);
            assert_eq!((contents(&mut cache, now), cache.origin.model.clone()), expected);
        }
    }
}
