//! The trace memory as a file: version 5 of the [format](super).
//!
//! | tensor       | type and shape            | what                                                                    |
//! | ------------ | ------------------------- | ----------------------------------------------------------------------- |
//! | `added`      | I64, traces               | when each trace was added: microseconds since 1970, by the wall clock   |
//! | `label_ends` | U64, traces               | where its label ends in `labels`; it begins where the one before ends   |
//! | `term_ends`  | U64, traces               | where its words end in `terms` and `counts`, likewise                   |
//! | `novelties`  | F64, traces               | the novelty that it was scored with; NaN if that is not known           |
//! | `words`      | U64, words                | the XXH3-64 of each word                                                |
//! | `terms`      | U32, words of all traces  | for each word of each trace, its place in `words`; in the order of hashes |
//! | `vectors`    | F32, traces by dimensions | the embeddings, oldest first; none if words alone are compared          |
//! | `counts`     | U16, words of all traces  | c(t), as [`TermWeight::code`] gives it                                       |
//! | `labelled`   | BOOL, traces              | whether it has a label                                                  |
//! | `fingerprints` | U8, traces by 16        | its fingerprint; zeros where the novelty is not known                   |
//! | `labels`     | U8, bytes                 | the labels one after another, in UTF-8                                  |
//! | `checksum`   | U8, 16                    | the XXH3-128 of all bytes before it, the highest byte first             |
//!
//! The metadata are those of a vector cache, where `method` is `lexical` or `full`.

use std::{
    io::{self, Read},
    path::Path,
    time::{Instant, SystemTime},
};

use knowledgepulse_error::{Call, Result, fault};
use knowledgepulse_trace::words::{MOST_WORDS, TermWeight};

use super::{
    Labels, LoadOptions, Unreadable, damaged,
    header::{Contents, LARGEST_NUMBER, TRACES},
    moments, read_file, require_ascending,
    streams::{BUFFER_BYTES, HashedInput},
    unreadable_vector,
};
use crate::{method::Method, traces::TraceMemory};

impl TraceMemory {
    /// Loads the memory in the file at `path`, aged by the wall clock.
    ///
    /// # Errors
    /// Those of [`VectorCache::load`](crate::vectors::VectorCache::load); [`Error::MemoryOtherKind`] is for a file of vectors alone.
    pub fn load(path: &Path, options: LoadOptions) -> Result<Self> {
        Self::load_unless_cancelled(path, options, &Call::default())
    }

    /// Does [`TraceMemory::load`] for a call that can be cancelled until the file is read.
    ///
    /// # Errors
    /// [`Error::Aborted`] and those of [`TraceMemory::load`].
    pub fn load_unless_cancelled(path: &Path, options: LoadOptions, call: &Call) -> Result<Self> {
        read_file(path, call, |file, length| {
            Self::read(file, length, options, Instant::now(), SystemTime::now())
        })
    }

    /// Reads the memory in the `length` bytes of `input`, at `now`, by the wall clock `clock`.
    ///
    /// # Errors
    /// [`Unreadable`], which [`TraceMemory::load`] converts.
    pub fn read(
        input: impl Read,
        length: u64,
        options: LoadOptions,
        now: Instant,
        clock: SystemTime,
    ) -> std::result::Result<Self, Unreadable> {
        let mut input = HashedInput::new(io::BufReader::with_capacity(BUFFER_BYTES, input));
        fault::point("load");
        let Contents { sizes, about } = Contents::read(&mut input, length, TRACES)?;
        let method = about.origin.method.as_deref().and_then(Method::of_traces);
        let method =
            method.ok_or_else(|| damaged("it does not say by which method its traces are compared"))?;
        let (traces, dimensions) = (sizes.entries, sizes.dimensions);
        let (words, terms) = sizes.words.unwrap_or_default();
        if dimensions > LARGEST_NUMBER || (method == Method::Full) != (dimensions > 0) {
            return Err(damaged("its vectors do not fit its method"));
        }

        let own = about.options(options, dimensions.max(1));
        let added: Vec<i64> = input.read_values(traces)?;
        let label_ends: Vec<u64> = input.read_values(traces)?;
        let term_ends: Vec<u64> = input.read_values(traces)?;
        let novelties: Vec<f64> = input.read_values(traces)?;
        require_ascending("label_ends", &label_ends)?;
        require_ascending("term_ends", &term_ends)?;
        if term_ends.last().copied().unwrap_or(0) != terms as u64 {
            return Err(damaged("its traces do not have all of its words"));
        }
        let hashes: Vec<u64> = input.read_values(words)?;
        let terms: Vec<u32> = input.read_values(terms)?;
        let skipped = traces.saturating_sub(own.max_elements);
        let mut vectors: Vec<f32> = Vec::new();
        let mut restored = Self::new(method, own);
        for index in 0..traces {
            vectors.resize(dimensions, 0.0);
            input.read(bytemuck::cast_slice_mut(&mut vectors))?;
            if index >= skipped && method == Method::Full {
                let restored = restored.restore_vector(&vectors);
                restored.map_err(|error| unreadable_vector(index, error))?;
            }
        }
        let counts: Vec<u16> = input.read_values(terms.len())?;
        let labels = Labels::read(&mut input, label_ends, novelties, sizes.label_bytes)?;
        input.require_checksum()?;
        restored.restore_words(&hashes);
        let mut start = 0;
        for (index, ((label, end), added)) in labels
            .iter()
            .zip(term_ends)
            .zip(moments(&added, now, clock))
            .enumerate()
        {
            let label = label?;
            let end = usize::try_from(end).unwrap_or(usize::MAX);
            let own = start..end;
            start = end;
            let places = &terms[own.clone()];
            let hash = |place: u32| hashes.get(place as usize);
            let are_words = places.len() <= MOST_WORDS
                && places.iter().all(|&place| hash(place).is_some())
                && places.windows(2).all(|pair| hash(pair[0]) < hash(pair[1]));
            if !are_words {
                return Err(damaged(format!(
                    "the words of trace {index} are not those of a trace"
                )));
            }
            if index >= skipped {
                let words = places
                    .iter()
                    .copied()
                    .zip(counts[own].iter().copied().map(TermWeight::from_code));
                restored.restore(label, added, words);
            }
        }
        restored.finish_restoring(about.origin.model);
        Ok(restored)
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_trace::{fixtures::with_texts, words::Words};

    use super::*;
    use crate::persist::{header::LENGTH_BYTES, tests::with_checksum};
    use crate::{
        traces::TraceEntry,
        vectors::{ModelIdentity, Options},
    };
    use std::time::Duration;

    fn memory(method: Method) -> TraceMemory {
        TraceMemory::new(
            method,
            Options {
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

    fn bytes(memory: &mut TraceMemory, now: Instant, clock: SystemTime) -> Vec<u8> {
        let mut bytes = Vec::new();
        memory.snapshot(now, clock).write(&mut bytes).unwrap();
        bytes
    }

    fn read(
        bytes: &[u8],
        options: LoadOptions,
        now: Instant,
        clock: SystemTime,
    ) -> std::result::Result<TraceMemory, Unreadable> {
        TraceMemory::read(bytes, bytes.len() as u64, options, now, clock)
    }

    #[test]
    fn loaded_memory_finds_the_same() {
        let (now, clock) = (Instant::now(), SystemTime::now());
        for method in [Method::Lexical, Method::Full] {
            let mut memory = filled(method, now);
            let saved = bytes(&mut memory, now, clock);
            let mut loaded = read(&saved, LoadOptions::default(), now, clock).unwrap();
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
            let mut loaded = read(&saved, LoadOptions::default(), now, clock).unwrap();
            for memory in [&mut loaded, &mut memory] {
                let entry = TraceEntry {
                    words: &words("train boston"),
                    vector: Some(&[0.0, 1.0, 1.0]),
                    label: None,
                    model: None,
                };
                memory.compare_and_add_batch(&[entry], now).unwrap();
            }
            assert_eq!(found(&mut loaded, "train"), found(&mut memory, "train"));
        }
    }

    #[test]
    fn the_newest_are_loaded_within_other_bounds() {
        let (now, clock) = (Instant::now(), SystemTime::now());
        let saved = bytes(&mut filled(Method::Full, now), now, clock);
        let options = LoadOptions {
            max_elements: Some(1),
            time_to_live: Some(None),
        };
        let mut loaded = read(&saved, options, now, clock + Duration::from_secs(3600)).unwrap();
        assert_eq!(loaded.len(now), 1);
        let stored = loaded.stored(0..u64::MAX, now).unwrap();
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
        let mut loaded = TraceMemory::load(&path, LoadOptions::default()).unwrap();
        let living = loaded.sequence(Instant::now());
        assert_eq!(living, 0..4);
        let stored = loaded.stored(living, Instant::now()).unwrap();
        assert_eq!(stored.words, words("flight seattle"));
    }

    #[test]
    fn traces_with_impossible_words_are_damaged() {
        let (now, clock) = (Instant::now(), SystemTime::now());
        let saved = bytes(&mut filled(Method::Lexical, now), now, clock);
        let (length, header) = safetensors::SafeTensors::read_metadata(&saved).unwrap();
        let start = LENGTH_BYTES + length + header.info("terms").unwrap().data_offsets.0;
        // The first trace has two words.
        let read_with = |terms: [u32; 2]| {
            let mut changed = saved.clone();
            changed[start..start + 8].copy_from_slice(bytemuck::cast_slice(&terms));
            read(&with_checksum(changed), LoadOptions::default(), now, clock).map(|_| ())
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
        let saved = bytes(&mut filled(Method::Full, now), now, clock);
        for index in 0..saved.len() {
            let mut damaged = saved.clone();
            damaged[index] ^= 0x10;
            let read_all = read(&damaged, LoadOptions::default(), now, clock);
            assert!(matches!(read_all, Err(Unreadable::Damaged(_))), "{index}");
        }
        for length in 0..saved.len() {
            let read_all = read(&saved[..length], LoadOptions::default(), now, clock);
            assert!(matches!(read_all, Err(Unreadable::Damaged(_))), "{length}");
        }
    }

    #[test]
    fn the_two_kinds_of_file_are_told_apart() {
        use crate::vectors::VectorCache;
        let (now, clock) = (Instant::now(), SystemTime::now());
        let traces = bytes(&mut filled(Method::Full, now), now, clock);
        let mut vectors = Vec::new();
        VectorCache::default()
            .snapshot(now, clock)
            .write(&mut vectors)
            .unwrap();
        let options = LoadOptions::default();
        let Err(Unreadable::OtherKind { held, other }) =
            VectorCache::read(&traces[..], traces.len() as u64, options, now, clock)
        else {
            panic!("a trace memory was read as a vector cache");
        };
        assert_eq!((&held[..], other), ("traces of novelty 'full'", "vectors"));
        let Err(Unreadable::OtherKind { held, other }) = read(&vectors, options, now, clock) else {
            panic!("a vector cache was read as a trace memory");
        };
        assert_eq!((&held[..], other), ("vectors", "traces"));
    }
}
