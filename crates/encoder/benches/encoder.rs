//! The kernels against what this processor can do at most, and whole passes.
//!
//! `cargo bench -p knowledgepulse-encoder` needs no model: it makes one of MiniLM's sizes. Criterion's `elem/s` of the groups
//! `fp32` and `int8` are multiplications with an addition for each second; two of them are what GFLOP/s count. The group `peak`
//! is a loop of such instructions alone, on one thread. In the groups `busy`, as many threads as there are processors do nothing else
//! than keep them busy.

#![allow(clippy::expect_used)] // A benchmark that cannot set up has nothing to report.

use std::{
    collections::HashMap,
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use criterion::{BenchmarkId, Criterion, Throughput};
use knowledgepulse_encoder::{Encoder, Kernel, Model, Options, Source, peak, quantize};
use safetensors::tensor::{Dtype, TensorView, serialize};

const HIDDEN: usize = 384;
const INNER: usize = 1536;
const LAYERS: usize = 6;

/// Weights of MiniLM's sizes, with few words.
fn weights() -> Vec<u8> {
    let mut state = 1_u32;
    let mut numbers = |count: usize, middle: f32| -> Vec<u8> {
        let number = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            middle + (state >> 8) as f32 / (1 << 24) as f32 * 0.1 - 0.05
        };
        (0..count).map(number).flat_map(f32::to_le_bytes).collect()
    };
    let mut tensors: HashMap<String, (Vec<usize>, Vec<u8>)> = HashMap::new();
    for (name, rows) in [("word", 1000), ("position", 512), ("token_type", 2)] {
        let name = format!("embeddings.{name}_embeddings.weight");
        tensors.insert(name, (vec![rows, HIDDEN], numbers(rows * HIDDEN, 0.0)));
    }
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    for layer in 0..LAYERS {
        for (name, outputs, inputs) in [
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", INNER, HIDDEN),
            ("output.dense", HIDDEN, INNER),
        ] {
            let name = format!("encoder.layer.{layer}.{name}");
            tensors.insert(
                format!("{name}.weight"),
                (vec![outputs, inputs], numbers(outputs * inputs, 0.0)),
            );
            tensors.insert(format!("{name}.bias"), (vec![outputs], numbers(outputs, 0.0)));
        }
        norms.push(format!("encoder.layer.{layer}.attention.output.LayerNorm"));
        norms.push(format!("encoder.layer.{layer}.output.LayerNorm"));
    }
    for norm in norms {
        tensors.insert(format!("{norm}.weight"), (vec![HIDDEN], numbers(HIDDEN, 1.0)));
        tensors.insert(format!("{norm}.bias"), (vec![HIDDEN], numbers(HIDDEN, 0.0)));
    }
    let views = tensors.iter().map(|(name, (shape, bytes))| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).expect("sizes that fit");
        (name.as_str(), view)
    });
    serialize(views, None).expect("a file")
}

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
    for kernel in Kernel::available() {
        let mut group = criterion.benchmark_group("peak");
        for (name, bytes) in [("floats", false), ("bytes", true)] {
            let count = peak(kernel, bytes, 0);
            group.throughput(Throughput::Elements(count * 10_000));
            group.bench_function(BenchmarkId::new(name, kernel), |bencher| {
                bencher.iter(|| peak(kernel, bytes, black_box(10_000)));
            });
        }
    }
    let floats = weights();
    let bytes = quantize(Source::memory(floats.clone()), &[]).expect("weights");
    for (name, weights) in [("fp32", floats), ("int8", bytes)] {
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
