//! The vector cache against a plain single precision scan of the same vectors with the same kernel. Both must
//! give the same bits before either is timed.
//!
//! `cargo bench --bench kernels` looks at up to 100,000 vectors; `KNOWLEDGEPULSE_BENCH_MILLION=1` adds
//! 1,000,000, which takes 4 GB.

#![allow(clippy::expect_used)] // A benchmark that cannot set up has nothing to report.

use std::{hint::black_box, time::Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use knowledgepulse_encoder::{GROUP, Group, dots};
use knowledgepulse_index::{options::MemoryOptions, vectors::VectorCache};

const DIMENSIONS: usize = 384;
const GROUPS: usize = DIMENSIONS / GROUP;

/// xorshift: the same vectors on every run.
struct Random(u64);

impl Random {
    /// Close enough to a normal distribution.
    fn normal(&mut self) -> f32 {
        let mut uniform = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 40) as f32 / (1 << 24) as f32
        };
        (0..6).map(|_| uniform()).sum::<f32>() - 3.0
    }

    fn direction(&mut self) -> Vec<f32> {
        let vector: Vec<f32> = (0..DIMENSIONS).map(|_| self.normal()).collect();
        unit(&vector)
    }

    /// A unit vector whose cosine to `direction` is about `cosine`.
    fn near(&mut self, direction: &[f32], cosine: f32) -> Vec<f32> {
        let noise = self.direction();
        let sine = (1.0 - cosine * cosine).sqrt();
        let mixed: Vec<f32> = direction
            .iter()
            .zip(&noise)
            .map(|(direction, noise)| cosine * direction + sine * noise)
            .collect();
        unit(&mixed)
    }
}

/// The vector at length 1, in multiples of 2^-20: then the sum of its squares is exact in double precision,
/// whatever the order, and the cache has the same norm.
fn unit(vector: &[f32]) -> Vec<f32> {
    let norm = vector
        .iter()
        .map(|component| component * component)
        .sum::<f32>()
        .sqrt();
    let grid = 1_048_576.0;
    vector
        .iter()
        .map(|component| (component / norm * grid).round() / grid)
        .collect()
}

fn norm(vector: &[f32]) -> f64 {
    let squares = vector
        .iter()
        .map(|&component| f64::from(component) * f64::from(component));
    squares.sum::<f64>().sqrt()
}

fn groups(vector: &[f32]) -> impl Iterator<Item = Group> {
    vector.as_chunks::<GROUP>().0.iter().map(|&group| Group(group))
}

/// How the vectors lie to each other and to the query.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Distribution {
    /// Independent directions.
    Random,
    /// As sentence embeddings of one field do: cosines from 0.3 to 0.9.
    Embeddings,
    /// A hundred tight clusters, with the query in one of them.
    Clustered,
    /// All near duplicates of the query.
    Duplicates,
}

impl Distribution {
    /// A query and vectors.
    fn generate(self, count: usize) -> (Vec<f32>, Vec<Vec<f32>>) {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let query = random.direction();
        let centres: Vec<_> = (0..99)
            .map(|_| random.direction())
            .chain([query.clone()])
            .collect();
        let vectors = (0..count).map(|index| match self {
            Self::Random => random.direction(),
            Self::Embeddings => {
                let cosine = (0.6 + 0.1 * random.normal()).clamp(0.3, 0.9);
                random.near(&query, cosine)
            }
            Self::Clustered => random.near(&centres[index * 37 % 100], 0.98),
            Self::Duplicates => random.near(&query, 0.9999),
        });
        let vectors = vectors.collect();
        (query, vectors)
    }
}

/// The plain scan: every vector through the single precision kernel.
struct Plain {
    components: Vec<Group>,
    inverse_norms: Vec<f64>,
}

impl Plain {
    fn new(vectors: &[Vec<f32>]) -> Self {
        Self {
            components: vectors.iter().flat_map(|vector| groups(vector)).collect(),
            inverse_norms: vectors.iter().map(|vector| norm(vector).recip()).collect(),
        }
    }

    fn largest(&self, query: &[f32]) -> f64 {
        const BATCH: usize = 64;
        let inverse_norm = norm(query).recip();
        let query: Vec<Group> = groups(query).collect();
        let mut largest = f64::NEG_INFINITY;
        let batches = self.components.chunks(BATCH * GROUPS);
        for (components, inverse_norms) in batches.zip(self.inverse_norms.chunks(BATCH)) {
            let mut products = [0.0; BATCH];
            let products = &mut products[..inverse_norms.len()];
            dots(&query, components, products);
            for (product, inverse) in products.iter().zip(inverse_norms) {
                largest = largest.max(product * inverse * inverse_norm);
            }
        }
        largest
    }
}

fn scans(criterion: &mut Criterion) {
    let mut counts = vec![100, 1_000, 10_000, 100_000];
    if std::env::var_os("KNOWLEDGEPULSE_BENCH_MILLION").is_some() {
        counts.push(1_000_000);
    }
    for count in counts {
        for distribution in [
            Distribution::Random,
            Distribution::Embeddings,
            Distribution::Clustered,
            Distribution::Duplicates,
        ] {
            let (query, vectors) = distribution.generate(count);
            let plain = Plain::new(&vectors);
            let now = Instant::now();
            let mut cache = VectorCache::new(MemoryOptions {
                max_elements: count,
                dimensions: DIMENSIONS,
                time_to_live: None,
            });
            for vector in &vectors {
                cache.add(vector, None, now).expect("memory");
            }
            drop(vectors);

            let expected = cache.max_cosine_similarity(&query, now).expect("memory");
            assert_eq!(plain.largest(&query).to_bits(), expected.to_bits());

            let mut group = criterion.benchmark_group(format!("scan {distribution:?}"));
            group.throughput(Throughput::Elements(count as u64));
            group.bench_function(BenchmarkId::new("cache", count), |bencher| {
                bencher.iter(|| cache.max_cosine_similarity(black_box(&query), now));
            });
            let nearest = cache.nearest(&query, 10, now).expect("memory");
            assert_eq!(nearest[0].similarity.to_bits(), expected.to_bits());
            group.bench_function(BenchmarkId::new("cache, the nearest 10", count), |bencher| {
                bencher.iter(|| cache.nearest(black_box(&query), 10, now));
            });
            group.bench_function(BenchmarkId::new("plain", count), |bencher| {
                bencher.iter(|| plain.largest(black_box(&query)));
            });
        }
    }
}

fn adding(criterion: &mut Criterion) {
    let now = Instant::now();
    let vector = Random(1).direction();
    let mut cache = VectorCache::new(MemoryOptions::default());
    criterion.bench_function("add to a full cache", |bencher| {
        bencher.iter(|| cache.add(black_box(&vector), None, now));
    });
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    adding(&mut criterion);
    scans(&mut criterion);
    criterion.final_summary();
}
