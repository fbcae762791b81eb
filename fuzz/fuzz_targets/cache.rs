//! The cache against a list that is searched one vector at a time: the same bits. The encoder's tests compare the kernels.
//!
//! The input is text, one operation a line; lines that are none are left out. Components that are not given are 0.
//!
//! ```text
//! cache CAPACITY DIMENSIONS [LIFETIME]     in the first line; milliseconds
//! add NUMBER...
//! single NUMBER...                         the same, in single precision
//! fill COUNT SEED SPREAD                   adds vectors that are as far as SPREAD from one another
//! query NUMBER...
//! near SEED SPREAD                         a query like those of `fill`
//! wait MILLISECONDS
//! evict
//! clear
//! ```

#![no_main]

use std::{
    collections::VecDeque,
    str::SplitWhitespace,
    time::{Duration, Instant},
};

use knowledgepulse_encoder::{GROUP, Group, dots};
use knowledgepulse_index::{options::MemoryOptions, shared::SharedMemory, vectors::VectorCache};
use libfuzzer_sys::fuzz_target;

/// More dimensions or vectors in one call say no more, and take long.
const MOST_DIMENSIONS: usize = 1200;
const MOST_FILLED: usize = 300;
const MOST_OPERATIONS: usize = 50;

fuzz_target!(|bytes: &[u8]| {
    let input = String::from_utf8_lossy(bytes);
    let mut lines = input.lines();
    let mut first = lines.next().unwrap_or("").split_whitespace();
    if first.next() != Some("cache") {
        return;
    }
    let options = MemoryOptions {
        max_elements: number(&mut first),
        dimensions: number::<usize>(&mut first).clamp(1, MOST_DIMENSIONS),
        time_to_live: first
            .next()
            .and_then(|word| Some(Duration::from_millis(word.parse().ok()?))),
    };
    let mut pair = Pair {
        cache: VectorCache::new(options),
        model: Model::new(options),
        now: Instant::now(),
    };
    for line in lines.take(MOST_OPERATIONS) {
        pair.run(line, options.dimensions);
    }
});

struct Pair {
    cache: VectorCache,
    model: Model,
    now: Instant,
}

impl Pair {
    fn run(&mut self, line: &str, dimensions: usize) {
        let mut words = line.split_whitespace();
        let now = self.now;
        match words.next() {
            Some("add") => self.add(&vector(words, dimensions)),
            Some("single") => {
                let singles: Vec<_> = vector(words, dimensions).iter().map(|&x| x as f32).collect();
                let doubles: Vec<_> = singles.iter().map(|&x| f64::from(x)).collect();
                let added = self.cache.add(&singles, None, now);
                assert_eq!(added.is_ok(), self.model.add(&doubles, now));
            }
            Some("fill") => {
                let count = number::<usize>(&mut words).min(MOST_FILLED);
                let (seed, spread) = (number(&mut words), number(&mut words));
                let mut random = Random::new(seed);
                for _ in 0..count {
                    self.add(&random.vector(dimensions, spread));
                }
            }
            Some("query") => self.query(&vector(words, dimensions)),
            Some("near") => {
                let (seed, spread) = (number(&mut words), number(&mut words));
                self.query(&Random::new(seed).vector(dimensions, spread));
            }
            Some("wait") => self.now += Duration::from_millis(u64::from(number::<u32>(&mut words))),
            Some("evict") => self.cache.evict_expired(now),
            Some("clear") => {
                self.cache.clear();
                self.model.vectors.clear();
            }
            _ => {}
        }
        let now = self.now;
        assert_eq!(self.cache.len(now), self.model.live(now).count());
        assert_eq!(self.cache.is_empty(now), self.model.live(now).count() == 0);
    }

    fn add(&mut self, vector: &[f64]) {
        let added = self.cache.add(vector, None, self.now);
        assert_eq!(added.is_ok(), self.model.add(vector, self.now));
    }

    fn query(&mut self, query: &[f64]) {
        let found = self.cache.max_cosine_similarity(query, self.now);
        let Some(expected) = self.model.similarity(query, self.now) else {
            assert!(found.is_err(), "{found:?}");
            return;
        };
        let found = found.expect("a query of finite numbers");
        assert_eq!(found.to_bits(), expected.to_bits(), "{found} {expected}");
        let exact = self.model.exact_similarity(query, self.now);
        assert!((found - exact).abs() <= 1e-6, "{found} {exact}");
        for count in [1, 3, 40] {
            let nearest = self
                .cache
                .nearest(query, count, self.now)
                .expect("a query of finite numbers");
            let nearest: Vec<_> = nearest
                .iter()
                .map(|found| (found.index, found.similarity))
                .collect();
            assert_eq!(nearest, self.model.nearest(query, count, self.now));
        }
    }
}

/// What the cache promises, without its blocks, threads and instruction sets.
struct Model {
    options: MemoryOptions,
    vectors: VecDeque<(Vec<f64>, Instant)>,
}

impl Model {
    fn new(options: MemoryOptions) -> Self {
        Self {
            options,
            vectors: VecDeque::new(),
        }
    }

    fn live(&self, now: Instant) -> impl Iterator<Item = &Vec<f64>> {
        let lives = move |added: Instant| {
            self.options
                .time_to_live
                .is_none_or(|lifetime| now - added < lifetime)
        };
        self.vectors
            .iter()
            .filter_map(move |(vector, added)| lives(*added).then_some(vector))
    }

    fn add(&mut self, vector: &[f64], now: Instant) -> bool {
        if !vector.iter().all(|x| x.is_finite()) {
            return false;
        }
        self.vectors.push_back((vector.to_vec(), now));
        if self.vectors.len() > self.options.max_elements {
            self.vectors.pop_front();
        }
        true
    }

    fn similarity(&self, query: &[f64], now: Instant) -> Option<f64> {
        if !query.iter().all(|x| x.is_finite()) {
            return None;
        }
        let largest = self.similarities(query, now).into_iter().reduce(f64::max);
        Some(largest.unwrap_or(0.0))
    }

    fn nearest(&self, query: &[f64], count: usize, now: Instant) -> Vec<(usize, f64)> {
        let mut nearest: Vec<_> = self.similarities(query, now).into_iter().enumerate().collect();
        // A stable sort: equals stay oldest first.
        nearest.sort_by(|a, b| b.1.total_cmp(&a.1));
        nearest.truncate(count);
        nearest
    }

    fn similarities(&self, query: &[f64], now: Instant) -> Vec<f64> {
        let (query, query_norm) = scaled(query);
        let similarities = self.live(now).map(|vector| {
            let (vector, norm) = scaled(vector);
            let mut product = [0.0];
            dots(&query, &vector, &mut product);
            // Adding 0 makes a negative zero plain.
            if query_norm == 0.0 {
                0.0
            } else {
                product[0] * norm * query_norm + 0.0
            }
        });
        similarities.collect()
    }

    fn exact_similarity(&self, query: &[f64], now: Instant) -> f64 {
        let query = unit(query);
        let similarity = |vector: &Vec<f64>| dot(&unit(vector), &query);
        self.live(now).map(similarity).reduce(f64::max).unwrap_or(0.0)
    }
}

/// The vector in single precision, at a comfortable scale, and one over its norm.
fn scaled(vector: &[f64]) -> (Vec<Group>, f64) {
    let largest = vector.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let comfortable = largest == 0.0 || (2.0_f64.powi(-40)..=2.0_f64.powi(40)).contains(&largest);
    let exponent = if comfortable {
        0
    } else {
        -(largest.log2().floor() as i32)
    };
    // In two steps, because the reciprocal of the smallest number is none.
    let half = exponent / 2;
    let factors = (2.0_f64.powi(half), 2.0_f64.powi(exponent - half));
    let groups: Vec<Group> = vector
        .chunks(GROUP)
        .map(|chunk| {
            let mut group = Group([0.0; GROUP]);
            for (component, x) in group.0.iter_mut().zip(chunk) {
                *component = (x * factors.0 * factors.1) as f32;
            }
            group
        })
        .collect();
    // Eight sums, then their sum: the order is what makes the bits the same.
    let mut sums = [0.0; 8];
    for (index, &component) in groups.iter().flat_map(|group| &group.0).enumerate() {
        sums[index % 8] += f64::from(component) * f64::from(component);
    }
    let squares: f64 = sums.iter().sum();
    let inverse_norm = if squares > 0.0 {
        squares.sqrt().recip()
    } else {
        0.0
    };
    (groups, inverse_norm)
}

/// The vector at length 1, in double precision.
fn unit(vector: &[f64]) -> Vec<f64> {
    let largest = vector.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    if largest == 0.0 {
        return vector.to_vec();
    }
    let small: Vec<f64> = vector.iter().map(|x| x / largest).collect();
    let norm = dot(&small, &small).sqrt();
    small.iter().map(|x| x / norm).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn number<T: std::str::FromStr + Default>(words: &mut SplitWhitespace) -> T {
    words
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or_default()
}

fn vector(words: SplitWhitespace, dimensions: usize) -> Vec<f64> {
    let given = words.map(|word| word.parse().unwrap_or(0.0));
    given.chain(std::iter::repeat(0.0)).take(dimensions).collect()
}

/// xorshift.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A vector around one that is the same for all seeds.
    fn vector(&mut self, dimensions: usize, spread: f64) -> Vec<f64> {
        let mut centre = Self(0x9e37_79b9_7f4a_7c15);
        (0..dimensions)
            .map(|_| centre.component() + spread * self.component())
            .collect()
    }

    fn component(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }
}
