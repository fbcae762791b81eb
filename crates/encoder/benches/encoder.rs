//! Whole passes, of each kernel.
//!
//! `cargo bench -p knowledgepulse-encoder` needs no model: it makes one of MiniLM's sizes. Criterion's `elem/s` of the groups
//! `fp32` and `int8` are multiplications with an addition for each second; two of them are what GFLOP/s count. In the groups `busy`, as many
//! threads as there are processors do nothing else than keep them busy.

#![allow(clippy::expect_used, clippy::unwrap_used)] // A benchmark that cannot set up has nothing to report.

#[path = "../src/fixtures/weights.rs"]
mod weights;

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use criterion::{BenchmarkId, Criterion, Throughput};
use knowledgepulse_encoder::{Encoder, Kernel, Model, Options, Shape, Source};

const HIDDEN: usize = 384;
const INNER: usize = 1536;
const LAYERS: usize = 6;

/// MiniLM's sizes, with few words.
const SHAPE: Shape = Shape {
    layers: LAYERS,
    hidden: HIDDEN,
    inner: INNER,
    positions: 512,
    vocabulary: 1000,
};

/// A text of so many tokens.
fn text(tokens: usize) -> Vec<u32> {
    (0..tokens).map(|index| (index * 7919 % 1000) as u32).collect()
}

/// Runs `work` while threads keep all processors busy.
fn beside_others(work: impl FnOnce()) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| while !black_box(&over).load(Ordering::Relaxed) {});
        }
        work();
        over.store(true, Ordering::Relaxed);
    });
}

/// Multiplications of a pass.
fn multiplications(tokens: usize) -> u64 {
    let linear = tokens * (4 * HIDDEN * HIDDEN + 2 * HIDDEN * INNER);
    let attention = 2 * tokens * tokens * HIDDEN;
    (LAYERS * (linear + attention)) as u64
}

fn main() {
    let mut criterion = Criterion::default()
        .configure_from_args()
        .sample_size(20)
        .measurement_time(Duration::from_secs(3));
    let tensors = weights::tensors(SHAPE);
    for (name, weights) in [
        ("fp32", weights::file(&tensors)),
        ("int8", weights::int8_file(&tensors)),
    ] {
        criterion.bench_function(&format!("load {name}"), |bencher| {
            let source = Source::memory(weights.clone());
            bencher.iter(|| Model::load(source.clone(), 1).expect("weights"));
        });
        let model = Arc::new(Model::load(Source::memory(weights), 1).expect("weights"));
        for kernel in Kernel::available() {
            for threads in [1, 2] {
                let mut options = Options::default();
                options.kernel = Some(kernel);
                options.threads = threads;
                let mut encoder =
                    Encoder::new(Arc::clone(&model), options).expect("a kernel of this processor");
                let mut group = criterion.benchmark_group(name);
                for tokens in [15, 54, 512] {
                    let text = text(tokens);
                    group.throughput(Throughput::Elements(multiplications(tokens)));
                    let id = BenchmarkId::new(format!("{kernel}, {threads} threads"), tokens);
                    group.bench_function(id, |bencher| {
                        bencher.iter(|| encoder.embed(black_box(&text)).expect("an embedding"));
                    });
                }
                group.finish();
            }
        }
        beside_others(|| {
            let mut encoder = Encoder::new(model, Options::default()).expect("the best kernel");
            let mut group = criterion.benchmark_group(format!("busy {name}"));
            for tokens in [15, 54, 512] {
                let text = text(tokens);
                group.bench_function(BenchmarkId::from_parameter(tokens), |bencher| {
                    bencher.iter(|| encoder.embed(black_box(&text)).expect("an embedding"));
                });
            }
            group.finish();
        });
    }
    criterion.final_summary();
}
