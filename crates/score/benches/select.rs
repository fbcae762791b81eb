//! How long a choice takes, and how much memory: `cargo bench --bench select -- COUNT` chooses 1,000 of COUNT synthetic traces. Where that
//! would take hours, `cargo bench --bench select -- COUNT rows N` compares the last N traces with all.

#![allow(clippy::expect_used)] // A benchmark that cannot set up has nothing to report.

use std::{fs, time::Instant};

use knowledgepulse_index::{method::Method, options::MemoryOptions as Bounds, traces::TraceMemory};
use knowledgepulse_score::select::{Candidates, Count, SelectOptions, SelectOutcome, select};
use knowledgepulse_trace::{signs::Signs, words::Words};

#[path = "../../index/benches/random/mod.rs"]
mod random;
use random::{Random, VOCABULARY, words};

const CHOSEN: usize = 1000;

/// The same traces each time: ten runs of each task, of which four in ten succeeded.
fn traces(count: usize) -> impl Iterator<Item = (Words, SelectOutcome)> {
    let mut random = Random(1);
    let tasks = (count as u64 / 10).max(1);
    (0..count).map(move |_| {
        let task = random.below(tasks);
        let words = words(&mut random, VOCABULARY, 2 * tasks, task);
        let success = random.below(10) < 4;
        let outcome = SelectOutcome {
            success: Some(success),
            confidence: if success { 0.9 } else { 0.4 },
            is_verified: false,
            signs: Signs::default(),
            agent: 0,
        };
        (words, outcome)
    })
}

/// The most memory that the process has had, where the system tells.
fn peak() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".into(), |line| line.trim().to_owned())
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let number = |at: usize| {
        arguments
            .get(at)
            .and_then(|argument| argument.parse::<usize>().ok())
    };
    let count = number(0).unwrap_or(10_000);
    let start = Instant::now();
    let seconds = || start.elapsed().as_secs_f64();
    if arguments.get(1).is_some_and(|argument| argument == "rows") {
        let bounds = Bounds {
            max_elements: usize::MAX,
            ..Bounds::default()
        };
        let mut memory = TraceMemory::new(Method::Lexical, bounds);
        for (words, _) in traces(count) {
            memory.add((&words).into(), start).expect("room");
        }
        let added = seconds();
        let rows = number(2).unwrap_or(1000);
        memory.join(count - rows, 32, 0, &|_| true).expect("a join");
        println!(
            "{count} traces: added in {added:.1} s, {rows} rows in {:.1} s, {}",
            seconds() - added,
            peak()
        );
    } else {
        let mut candidates = Candidates::new(Method::Lexical, 0);
        for (words, outcome) in traces(count) {
            candidates.add((&words).into(), outcome, None).expect("room");
        }
        let added = seconds();
        let options = SelectOptions {
            count: Count::Number(CHOSEN),
            failures: None,
            threads: 0,
            only_new: false,
            ends: false,
        };
        let selection = select(&mut candidates, &options, &|_| true).expect("a choice");
        println!(
            "{count} traces: added in {added:.1} s, chosen in {:.1} s, covered {:.3}, {}",
            seconds() - added,
            selection.chosen.last().map_or(0.0, |last| last.covered),
            peak()
        );
    }
}
