//! How long the neighbours of all traces take, against scoring the same traces one after another. `cargo bench --bench join -- 10000 100000`
//! takes these numbers of traces.

#![allow(clippy::expect_used)] // A benchmark that cannot set up has nothing to report.

use std::time::Instant;

use knowledgepulse_index::{method::Method, traces::TraceMemory, vectors::Options};

mod random;
use random::{Random, words};

/// How many neighbours are found.
const COUNT: usize = 32;

fn main() {
    let mut sizes: Vec<usize> = std::env::args().filter_map(|size| size.parse().ok()).collect();
    if sizes.is_empty() {
        sizes.push(10_000);
    }
    for size in sizes {
        let mut random = Random(1);
        let topics = size as u64 / 10;
        let traces: Vec<_> = (0..size)
            .map(|_| {
                let topic = random.below(topics);
                words(&mut random, 2 * topics, topic)
            })
            .collect();
        let options = Options {
            max_elements: size,
            ..Options::default()
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
            scored.compare_and_add(words.into(), now).expect("room");
        }
        println!("{size} traces: scored in {:.1} s", start.elapsed().as_secs_f64());
    }
}
