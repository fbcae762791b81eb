//! Files of traces.

use knowledgepulse_trace::{fixtures::with_texts, words::Words};

use super::{with_checksum, *};
use crate::{
    options::{MemoryOptions, ModelIdentity},
    traces::{TraceEntry, TraceMemory},
};
use std::time::Duration;

fn memory(method: Method) -> TraceMemory {
    TraceMemory::new(
        method,
        MemoryOptions {
            max_elements: 4,
            dimensions: 3,
            time_to_live: Some(Duration::from_secs(60)),
        },
    )
}

fn model() -> ModelIdentity {
    ModelIdentity {
        model: "mini".into(),
        dtype: "fp32".into(),
        sha256: None,
    }
}

fn words(text: &str) -> Words {
    Words::of(&with_texts(text, &[]))
}

/// A memory from which words are gone, with the queries that it is asked.
fn filled(method: Method, now: Instant) -> TraceMemory {
    let mut memory = memory(method);
    for (index, text) in ["gone", "flight seattle", "", "flight boston", "hotel boston"]
        .into_iter()
        .enumerate()
    {
        let label = format!("t{index}").into();
        memory
            .add(
                TraceEntry {
                    words: &words(text),
                    vector: Some(&[1.0, index as f32, 0.5]),
                    label: (index != 3).then_some(&label),
                    model: Some(&model()),
                },
                now,
            )
            .unwrap();
    }
    memory
}

#[test]
fn loaded_memory_finds_the_same() {
    let (now, clock) = (Instant::now(), SystemTime::now());
    for method in [Method::Lexical, Method::Full] {
        let mut memory = filled(method, now);
        let saved = written(&mut memory, now, clock);
        let mut loaded = read::<TraceMemory>(&saved, now, clock).unwrap();
        assert_eq!((loaded.method(), loaded.options().max_elements), (method, 4));
        let model = (method == Method::Full).then(model);
        assert_eq!((loaded.model(), memory.model()), (model.as_ref(), model.as_ref()));
        let found = |memory: &mut TraceMemory, text: &str| {
            let entry = TraceEntry {
                words: &words(text),
                vector: Some(&[1.0, 2.0, 0.25]),
                label: None,
                model: None,
            };
            memory.nearest(entry, 9, now).unwrap()
        };
        for text in ["flight seattle", "boston", "gone", "", "hotel flight new"] {
            assert_eq!(found(&mut loaded, text), found(&mut memory, text));
        }
        assert_eq!(loaded.len(now + Duration::from_secs(61)), 0);
        // It goes on as the other does.
        let mut loaded = read::<TraceMemory>(&saved, now, clock).unwrap();
        for memory in [&mut loaded, &mut memory] {
            let entry = TraceEntry {
                words: &words("train boston"),
                vector: Some(&[0.0, 1.0, 1.0]),
                label: None,
                model: None,
            };
            memory.compare_and_explain(entry, false, true, now).unwrap();
        }
        assert_eq!(found(&mut loaded, "train"), found(&mut memory, "train"));
    }
}

#[test]
fn the_newest_are_loaded_within_other_bounds() {
    let (now, clock) = (Instant::now(), SystemTime::now());
    let saved = written(&mut filled(Method::Full, now), now, clock);
    let mut loaded = TraceMemory::read(&saved, Some(1), now, clock).unwrap();
    assert_eq!(loaded.len(now), 1);
    let stored = loaded.stored(0).unwrap();
    assert_eq!(
        (stored.label.as_deref(), stored.words),
        (Some("t4"), words("hotel boston"))
    );
    assert_eq!(stored.vector, Some(vec![1.0, 4.0, 0.5]));
}

#[cfg_attr(miri, ignore = "about the file system")]
#[test]
fn a_file_of_traces_is_saved_and_loaded() {
    let (now, clock) = (Instant::now(), SystemTime::now());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.safetensors");
    let mut memory = filled(Method::Full, now);
    memory.snapshot(now, clock).save(&path).unwrap();
    let mut loaded = TraceMemory::load(&path, None).unwrap();
    assert_eq!(loaded.sequence(Instant::now()), 0..4);
    let stored = loaded.stored(0).unwrap();
    assert_eq!(stored.words, words("flight seattle"));
}

#[test]
fn traces_with_impossible_words_are_damaged() {
    let (now, clock) = (Instant::now(), SystemTime::now());
    let saved = written(&mut filled(Method::Lexical, now), now, clock);
    let (length, header) = safetensors::SafeTensors::read_metadata(&saved).unwrap();
    let start = LENGTH_BYTES + length + header.info("terms").unwrap().data_offsets.0;
    // The first trace has two words.
    let read_with = |terms: [u32; 2]| {
        let mut changed = saved.clone();
        changed[start..start + 8].copy_from_slice(bytemuck::cast_slice(&terms));
        read::<TraceMemory>(&with_checksum(changed), now, clock).map(|_| ())
    };
    let own = [0, 4].map(|at| u32::from_le_bytes(saved[start + at..][..4].try_into().unwrap()));
    assert!(read_with(own).is_ok());
    for terms in [[own[0], own[0]], [own[1], own[0]], [own[0], 99], [99, own[1]]] {
        assert!(
            matches!(read_with(terms), Err(Unreadable::Damaged(_))),
            "{terms:?}"
        );
    }
}

#[test]
fn every_damaged_byte_is_found() {
    let (now, clock) = (Instant::now(), SystemTime::now());
    let saved = written(&mut filled(Method::Full, now), now, clock);
    for index in 0..saved.len() {
        let mut damaged = saved.clone();
        damaged[index] ^= 0x10;
        let read_all = read::<TraceMemory>(&damaged, now, clock);
        assert!(matches!(read_all, Err(Unreadable::Damaged(_))), "{index}");
    }
    for length in 0..saved.len() {
        let read_all = read::<TraceMemory>(&saved[..length], now, clock);
        assert!(matches!(read_all, Err(Unreadable::Damaged(_))), "{length}");
    }
}

#[test]
fn the_two_kinds_of_file_are_told_apart() {
    use crate::vectors::VectorCache;
    let (now, clock) = (Instant::now(), SystemTime::now());
    let traces = written(&mut filled(Method::Full, now), now, clock);
    let mut vectors = Vec::new();
    VectorCache::new(MemoryOptions::default())
        .snapshot(now, clock)
        .write(&mut vectors)
        .unwrap();
    let Err(Unreadable::OtherKind { held, other }) = VectorCache::read(&traces[..], None, now, clock) else {
        panic!("a trace memory was read as a vector cache");
    };
    assert_eq!((&held[..], other), ("traces of novelty 'full'", "vectors"));
    let Err(Unreadable::OtherKind { held, other }) = read::<TraceMemory>(&vectors, now, clock) else {
        panic!("a vector cache was read as a trace memory");
    };
    assert_eq!((&held[..], other), ("vectors", "traces"));
}
