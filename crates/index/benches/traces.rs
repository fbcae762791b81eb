//! How long a trace takes to be compared and remembered, by how many are remembered. `cargo bench --bench traces` measures 1,000 and
//! 32,000; with `KNOWLEDGEPULSE_BENCH_MILLION` in the environment also 1,000,000, which takes 8 GB.

#![allow(clippy::expect_used)] // A benchmark that cannot set up has nothing to report.

use std::{hint::black_box, time::Instant};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use knowledgepulse_index::{
    method::Method,
    options::MemoryOptions,
    shared::SharedMemory,
    traces::{TraceEntry, TraceMemory},
};
use knowledgepulse_trace::{fixtures::with_texts, words::Words};

mod random;
use random::{Random, VOCABULARY, words};

fn vector(random: &mut Random, topic: u64) -> Vec<f32> {
    let mut own = Random(topic + 1);
    (0..384)
        .map(|_| (0.03 + 0.04 * (own.unit() - 0.5) + 0.05 * (random.unit() - 0.5)) as f32)
        .collect()
}

fn memories(criterion: &mut Criterion) {
    let mut sizes = vec![1_000, 32_000];
    if std::env::var_os("KNOWLEDGEPULSE_BENCH_MILLION").is_some() {
        sizes.push(1_000_000);
    }
    for size in sizes {
        for method in [Method::Lexical, Method::Full] {
            let now = Instant::now();
            let mut random = Random(1);
            let topics = size as u64 / 10;
            let options = MemoryOptions {
                max_elements: size,
                ..MemoryOptions::default()
            };
            let mut memory = TraceMemory::new(method, options);
            let entry = |random: &mut Random, topic| {
                (
                    words(random, VOCABULARY, 2 * topics, topic),
                    vector(random, topic),
                )
            };
            for _ in 0..size {
                let topic = random.below(topics);
                let (words, vector) = entry(&mut random, topic);
                let entry = TraceEntry {
                    words: &words,
                    vector: Some(&vector),
                    label: None,
                    model: None,
                };
                memory.add(entry, now).expect("room");
            }
            println!(
                "{size} {}: filled in {:.1} s, {} bytes a trace",
                method.name(),
                now.elapsed().as_secs_f64(),
                memory.bytes() / size
            );
            let mut group = criterion.benchmark_group(format!("{size} {}", method.name()));
            group.sample_size(20);
            for (name, first) in [("seen", 0), ("unseen", topics)] {
                group.bench_function(format!("compare {name}"), |bencher| {
                    bencher.iter_batched(
                        || {
                            let topic = first + random.below(topics);
                            entry(&mut random, topic)
                        },
                        |(words, vector)| {
                            let entry = TraceEntry {
                                words: &words,
                                vector: Some(&vector),
                                label: None,
                                model: None,
                            };
                            black_box(memory.compare(entry, now).expect("compared"))
                        },
                        BatchSize::SmallInput,
                    );
                });
            }
            group.bench_function("add", |bencher| {
                bencher.iter_batched(
                    || {
                        let topic = random.below(topics);
                        entry(&mut random, topic)
                    },
                    |(words, vector)| {
                        let entry = TraceEntry {
                            words: &words,
                            vector: Some(&vector),
                            label: None,
                            model: None,
                        };
                        memory.add(entry, now).expect("room");
                    },
                    BatchSize::SmallInput,
                );
            });
            group.finish();
        }
    }
}

fn texts(criterion: &mut Criterion) {
    let text = "The customer wants flight HAT_1234 from Seattle to Boston on May 20th, in economy; certificate 99.5 first. ";
    let contents: Vec<String> = (0..25)
        .map(|index| {
            let text = text.repeat(3).replace("flight", &format!("flight{index}"));
            format!("{index} {text}")
        })
        .collect();
    let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
    let trace = with_texts(text, &contents);
    criterion.bench_function("words of 8,200 characters", |bencher| {
        bencher.iter(|| Words::of(black_box(&trace)));
    });
}

criterion_group!(benches, texts, memories);
criterion_main!(benches);
