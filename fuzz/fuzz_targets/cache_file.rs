//! Any bytes as a saved cache: an error that says why, or a cache that is the same when it is written and read again.
//!
//! The input is text, which the checksum and the lengths are made for:
//!
//! ```text
//! {"added":{"dtype":"I64",…               the header, in the first line
//! added NUMBER...                         the tensors, in order; what is no tensor's name is left out
//! label_ends NUMBER...
//! novelties NUMBER...
//! vectors NUMBER...
//! labelled NUMBER...
//! fingerprints NUMBER...
//! labels TEXT
//! ```
//!
//! An input that does not begin with `{` is taken as it is, with the right checksum at its end.

#![no_main]

use std::time::{Duration, Instant, UNIX_EPOCH};

use knowledgepulse_index::{
    persist::Unreadable,
    shared::SharedMemory,
    vectors::VectorCache,
};
use libfuzzer_sys::fuzz_target;
use twox_hash::XxHash3_128;

fuzz_target!(|bytes: &[u8]| {
    let mut file = match bytes.first() {
        Some(b'{') => assemble(&String::from_utf8_lossy(bytes)),
        _ => bytes.to_vec(),
    };
    file.extend(XxHash3_128::oneshot(&file).to_be_bytes());
    let now = Instant::now();
    let clock = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let read = |file: &[u8]| VectorCache::read(file, None, now, clock);
    let mut cache = match read(&file) {
        Ok(cache) => cache,
        Err(Unreadable::Damaged(reason)) => {
            assert!(!reason.is_empty());
            return;
        }
        Err(failure) => panic!("{failure:?}"),
    };
    // Each vector takes 21 bytes at least.
    assert!(cache.len(now) <= file.len() / 21);
    let written = |cache: &mut VectorCache| {
        let mut bytes = Vec::new();
        cache.snapshot(now, clock).write(&mut bytes).expect("memory");
        bytes
    };
    let mut again = read(&written(&mut cache)).expect("what was written");
    assert_eq!(again.options(), cache.options());
    if cache.options().dimensions <= 1 << 16 {
        let query = vec![1.0; cache.options().dimensions];
        let nearest = |cache: &mut VectorCache| cache.nearest(&query, usize::MAX, now).expect("memory");
        assert_eq!(nearest(&mut cache), nearest(&mut again));
    }
});

/// A file with the header and the tensors of `input`.
fn assemble(input: &str) -> Vec<u8> {
    let mut lines = input.lines();
    let header = lines.next().unwrap_or("");
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    for line in lines {
        let (name, values) = line.split_once(' ').unwrap_or((line, ""));
        let words = values.split_whitespace();
        match name {
            "added" => words.for_each(|word| file.extend(parse::<i64>(word).to_le_bytes())),
            "label_ends" => words.for_each(|word| file.extend(parse::<u64>(word).to_le_bytes())),
            "novelties" => words.for_each(|word| file.extend(parse::<f64>(word).to_le_bytes())),
            "vectors" => words.for_each(|word| file.extend(parse::<f32>(word).to_le_bytes())),
            "labelled" | "fingerprints" => words.for_each(|word| file.push(parse(word))),
            "labels" => file.extend(values.as_bytes()),
            _ => {}
        }
    }
    file
}

fn parse<T: std::str::FromStr + Default>(word: &str) -> T {
    word.parse().unwrap_or_default()
}
