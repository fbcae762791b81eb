//! How long the neighbours of all traces take, against scoring the same traces one after another. `cargo bench --bench join -- 10000 100000`
//! takes these numbers of traces, and `families 100` before them near-copies of 100.

#![allow(clippy::expect_used)] // A benchmark that cannot set up has nothing to report.

use std::time::Instant;

use knowledgepulse_index::{method::Method, options::MemoryOptions, traces::TraceMemory};

mod random;
use random::{Random, VOCABULARY, near_copy, words};

/// How many neighbours are found.
const COUNT: usize = 64;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut sizes: Vec<usize> = arguments.iter().filter_map(|size| size.parse().ok()).collect();
    let families = arguments.iter().any(|argument| argument == "families");
    let families = families.then(|| sizes.remove(0));
    if sizes.is_empty() {
        sizes.push(10_000);
    }
    for size in sizes {
        let mut random = Random(1);
        let topics = size as u64 / 10;
        let vocabulary = if families.is_some() { 1000 } else { VOCABULARY };
        let mut different = |count| -> Vec<_> {
            (0..count)
                .map(|_| {
                    let topic = random.below(topics);
                    words(&mut random, vocabulary, 2 * topics, topic)
                })
                .collect()
        };
        let mut traces = different(families.unwrap_or(size));
        if let Some(families) = families {
            let mut copy = || {
                let family = random.below(families as u64) as usize;
                near_copy(&mut random, &traces[family])
            };
            traces = (0..size).map(|_| copy()).collect();
        }
        let options = MemoryOptions {
            max_elements: size,
            ..MemoryOptions::default()
        };
        let memory = || TraceMemory::new(Method::Lexical, options);
        let now = Instant::now();
        let mut joined = memory();
        for words in &traces {
            joined.add(words.into(), now).expect("room");
        }
        let added = now.elapsed();
        let start = Instant::now();
        let neighbours = joined.join(0, COUNT, 0, &|_| true).expect("a join");
        let nearest = neighbours.iter().flat_map(|found| &found.nearest);
        let sum: f64 = nearest.map(|neighbour| neighbour.similarity).sum();
        println!(
            "{size} traces: added in {:.1} s, joined in {:.1} s, mean similarity {:.4}",
            added.as_secs_f64(),
            start.elapsed().as_secs_f64(),
            sum / (COUNT * size) as f64
        );
        let start = Instant::now();
        let mut scored = memory();
        for words in &traces {
            let scored = scored.compare_and_explain(words.into(), false, true, now);
            scored.expect("room");
        }
        println!("{size} traces: scored in {:.1} s", start.elapsed().as_secs_f64());
    }
}
