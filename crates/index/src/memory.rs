//! The novelty of a trace against a memory of either kind.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::{Instant, SystemTime},
};

use knowledgepulse_embed::{DIMENSIONS, Embedding};
use knowledgepulse_error::{Code, Result, fault, named};
use knowledgepulse_trace::{label::Label, words::Words};

use crate::{
    method::Method,
    options::{MemoryOptions, Origin},
    persist::other_kind,
    shared::{SharedMemory, lock},
    similarity::{NEUTRAL_NOVELTY, Similarity, of_similarity},
    traces::{SharedTraces, TraceEntry, TraceMemory, WordShare, explain::ExplainedWords},
    vectors::{SharedCache, VectorCache, VectorEntry},
};

named! {
    /// The source of a novelty, with its name in a score.
    pub enum Basis {
        /// A comparison with the memory.
        Memory = "memory",
        /// The memory was empty.
        EmptyMemory = "empty-memory",
        /// There is no embedding.
        NoEmbedder = "no-embedder",
        /// A comparison with a store.
        Store = "store",
        /// The store was empty.
        EmptyStore = "empty-store",
    }
}

/// The novelty of a trace and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Novelty {
    /// From 0 for a duplicate to 1 for what resembles nothing, and to 2 for opposites.
    pub value: f64,
    /// Its source.
    pub basis: Basis,
    /// The remembered trace that is nearest.
    pub nearest: Option<Nearest>,
    /// The extent of the text that was read; `None` without an embedder.
    pub reading: Option<Reading>,
}

impl Novelty {
    /// The novelty of a trace that has no embedding.
    pub const NEUTRAL: Self = Self {
        value: NEUTRAL_NOVELTY,
        basis: Basis::NoEmbedder,
        nearest: None,
        reading: None,
    };
}

/// The remembered trace that is nearest.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    /// Its label, if it has one.
    pub label: Option<Label>,
    /// The similarity: in a memory of vectors the cosine, -1 to 1 within 1e-6; in a memory of traces [`Similarity::value`].
    pub similarity: f64,
    /// The parts of the similarity, in a memory of traces.
    pub parts: Option<Similarity>,
    /// Its heaviest words, if requested.
    pub words: Option<ExplainedWords>,
}

/// The extent of a text that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The number of embedded tokens, special tokens included; `None` if nothing was embedded.
    pub tokens: Option<usize>,
    /// Whether text was left out.
    pub truncated: bool,
}

/// A memory to compare with.
#[derive(Debug, Clone)]
pub enum Memory {
    /// Embeddings.
    Vectors(Arc<SharedCache>),
    /// Words, and by [`Method::Full`] embeddings of digests.
    Traces {
        /// The memory.
        memory: Arc<SharedTraces>,
        /// Its method, which never changes, so it can be read without a lock.
        method: Method,
    },
}

impl From<VectorCache> for Memory {
    fn from(cache: VectorCache) -> Self {
        Self::Vectors(Arc::new(Mutex::new(cache)))
    }
}

impl From<TraceMemory> for Memory {
    fn from(memory: TraceMemory) -> Self {
        let method = memory.method();
        let memory = Arc::new(Mutex::new(memory));
        Self::Traces { memory, method }
    }
}

impl Memory {
    /// Makes an empty memory that compares by `method`.
    #[must_use]
    pub fn new(method: Method, options: MemoryOptions) -> Self {
        match method {
            Method::Prefix => VectorCache::new(options).into(),
            method => TraceMemory::new(method, options).into(),
        }
    }

    /// Loads the memory in the file at `path`, of either kind, with the bounds of the file.
    ///
    /// # Errors
    /// The errors of [`SharedMemory::load`]; `ERR_MEMORY_MISMATCH` also for vectors that are no embeddings.
    pub fn load(path: &Path) -> Result<Self> {
        let load_vectors = || VectorCache::load(path, None);
        Self::of_either(path, TraceMemory::load(path, None), load_vectors)
    }

    /// Reads the memory in the bytes of a file, as [`Memory::load`] does.
    ///
    /// # Errors
    /// Those of [`Memory::load`], but for a file that is missing.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let path = Path::new("the memory");
        let (now, clock) = (Instant::now(), SystemTime::now());
        let traces = TraceMemory::read(bytes, None, now, clock);
        let read_vectors = || VectorCache::read(bytes, None, now, clock).map_err(|why| why.error_at(path));
        Self::of_either(path, traces.map_err(|why| why.error_at(path)), read_vectors)
    }

    /// Returns the memory of traces, or the one of vectors if the file is of that kind.
    fn of_either(
        path: &Path,
        traces: Result<TraceMemory>,
        vectors: impl FnOnce() -> Result<VectorCache>,
    ) -> Result<Self> {
        let loaded = match traces {
            Err(error) if error.code() == Code::MemoryMismatch.name() => vectors()?.into(),
            loaded => Self::from(loaded?),
        };
        let dimensions = lock(loaded.held()).options().dimensions;
        if loaded.method().needs_embedder() && dimensions != DIMENSIONS {
            let held = format!("vectors of {dimensions} dimensions");
            return Err(other_kind(path, &held, "embeddings of traces"));
        }
        Ok(loaded)
    }

    /// Returns the memory itself.
    #[must_use]
    pub fn held(&self) -> &Mutex<dyn SharedMemory> {
        match self {
            Self::Vectors(cache) => &**cache,
            Self::Traces { memory, .. } => &**memory,
        }
    }

    /// Returns the novelty method.
    #[must_use]
    pub fn method(&self) -> Method {
        match self {
            Self::Vectors(_) => Method::Prefix,
            Self::Traces { method, .. } => *method,
        }
    }

    /// Compares `trace` with the memory, then adds it if requested.
    ///
    /// Novelty is one minus the largest similarity; by a memory of vectors unclamped, so a negative similarity takes it above 1. It is [`NEUTRAL_NOVELTY`] when the
    /// memory is empty, and [`Novelty::NEUTRAL`] without an embedding where one is compared. If that is to be `explained`, a memory of
    /// traces also tells what each word says about the similarity.
    ///
    /// # Errors
    /// The errors of [`VectorCache::compare_and_add`] and [`TraceMemory::add`](crate::traces::TraceMemory::add).
    pub fn compare_and_add(&self, trace: &ComparedTrace, now: Instant) -> Result<(Novelty, Vec<WordShare>)> {
        match self {
            Self::Vectors(cache) => {
                let Some((embedding, origin)) = trace.embedding else {
                    return Ok((Novelty::NEUTRAL, Vec::new()));
                };
                let entry = VectorEntry {
                    vector: &embedding[..],
                    label: trace.label,
                    origin,
                };
                let mut cache = lock(cache);
                fault::point("novelty");
                let nearest = cache.compare_and_add(entry, trace.remember, now)?;
                let nearest = nearest.map(|found| Nearest::vector(found.label, found.similarity));
                Ok((Novelty::of_nearest(nearest), Vec::new()))
            }
            Self::Traces { method, .. } if *method == Method::Full && trace.embedding.is_none() => {
                Ok((Novelty::NEUTRAL, Vec::new()))
            }
            Self::Traces { memory, .. } => {
                let mut memory = lock(memory);
                fault::point("novelty");
                let (nearest, shares) =
                    memory.compare_and_explain(trace.entry(), trace.explained, trace.remember, now)?;
                let nearest = nearest.map(|found| Nearest::trace(found.label, found.similarity));
                Ok((Novelty::of_nearest(nearest), shares))
            }
        }
    }

    /// Returns up to `count` remembered traces that are most similar to `trace`, the most similar first; none without an embedding
    /// where one is compared.
    ///
    /// # Errors
    /// The errors of [`VectorCache::nearest`] and [`TraceMemory::nearest`](crate::traces::TraceMemory::nearest).
    pub fn nearest(&self, trace: &ComparedTrace, count: usize, now: Instant) -> Result<Vec<Nearest>> {
        match (self, trace.embedding) {
            (Self::Vectors(cache), Some((embedding, origin))) => {
                let mut cache = lock(cache);
                cache.check_origin(origin, now)?;
                let found = cache.nearest(&embedding[..], count, now)?.into_iter();
                Ok(found
                    .map(|found| Nearest::vector(found.label, found.similarity))
                    .collect())
            }
            (Self::Traces { memory, method }, embedding)
                if embedding.is_some() || *method == Method::Lexical =>
            {
                let found = lock(memory).nearest(trace.entry(), count, now)?.into_iter();
                Ok(found
                    .map(|found| Nearest::trace(found.label, found.similarity))
                    .collect())
            }
            _ => Ok(Vec::new()),
        }
    }
}

impl<'c> ComparedTrace<'c> {
    /// Returns the trace as a memory of traces takes it.
    fn entry(&self) -> TraceEntry<'c> {
        TraceEntry {
            words: self.words,
            vector: self.embedding.map(|(embedding, _)| &embedding[..]),
            label: self.label,
            model: self.embedding.and_then(|(_, origin)| origin.model.as_ref()),
        }
    }
}

/// A trace as it is compared with a memory, and how it is to be remembered.
#[derive(Debug, Clone, Copy)]
pub struct ComparedTrace<'c> {
    /// Its words; a memory of vectors does not look at them.
    pub words: &'c Words,
    /// Its embedding, and where that comes from; `None` without an embedder.
    pub embedding: Option<(&'c Embedding, &'c Origin)>,
    /// What it is remembered by.
    pub label: Option<&'c Label>,
    /// Whether it is remembered at all.
    pub remember: bool,
    /// Whether a memory of traces is to tell what each word says about the similarity.
    pub explained: bool,
}

impl Novelty {
    /// The novelty to an empty memory.
    pub const EMPTY: Self = Self {
        basis: Basis::EmptyMemory,
        ..Self::NEUTRAL
    };

    /// Returns the novelty by the remembered trace that is nearest, in a memory here or elsewhere; `None` if there is nothing in it.
    #[must_use]
    pub fn of_nearest(nearest: Option<Nearest>) -> Self {
        let Some(nearest) = nearest else {
            return Self::EMPTY;
        };
        Self {
            value: of_similarity(Some(nearest.similarity)),
            basis: Basis::Memory,
            nearest: Some(nearest),
            reading: None,
        }
    }
}

impl Nearest {
    /// Returns an entry of a memory of vectors, with its cosine.
    #[must_use]
    pub fn vector(label: Option<Label>, similarity: f64) -> Self {
        Self {
            label,
            similarity,
            parts: None,
            words: None,
        }
    }

    /// Returns a trace of a memory of traces.
    #[must_use]
    pub fn trace(label: Option<Label>, parts: Similarity) -> Self {
        Self {
            label,
            similarity: parts.value(),
            parts: Some(parts),
            words: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knowledgepulse_trace::fixtures::with_texts;

    use crate::options::ModelIdentity;

    fn origin() -> Origin {
        Origin {
            model: Some(ModelIdentity {
                model: "test".into(),
                dtype: "fp32".into(),
                sha256: None,
            }),
            method: Some(Method::Prefix.name().into()),
        }
    }

    fn memory() -> Memory {
        VectorCache::new(MemoryOptions::default()).into()
    }

    fn size(memory: &Memory) -> usize {
        lock(memory.held()).len(Instant::now())
    }

    fn direction(axis: usize, sign: f32) -> Box<Embedding> {
        let mut embedding = Box::new([0.0; DIMENSIONS]);
        embedding[axis] = sign;
        embedding
    }

    fn compare(embedding: &Embedding, memory: &Memory, label: &str, remember: bool) -> Novelty {
        let compared = ComparedTrace {
            words: &Words::default(),
            embedding: Some((embedding, &origin())),
            label: Some(&label.into()),
            remember,
            explained: false,
        };
        memory.compare_and_add(&compared, Instant::now()).unwrap().0
    }

    /// Compares by words alone.
    fn compare_words(text: &str, memory: &Memory, label: &str, remember: bool) -> Novelty {
        let compared = ComparedTrace {
            words: &Words::of(&with_texts(text, &[])),
            embedding: None,
            label: Some(&label.into()),
            remember,
            explained: false,
        };
        memory.compare_and_add(&compared, Instant::now()).unwrap().0
    }

    #[test]
    fn bases_have_the_names_of_a_score() {
        for (basis, name) in [
            (Basis::Memory, "memory"),
            (Basis::EmptyMemory, "empty-memory"),
            (Basis::NoEmbedder, "no-embedder"),
            (Basis::Store, "store"),
            (Basis::EmptyStore, "empty-store"),
        ] {
            assert_eq!((basis.name(), Basis::from_name(name)), (name, Some(basis)));
        }
        assert_eq!(Basis::from_name("cache"), None);
    }

    #[test]
    fn methods_have_names_and_say_whether_they_embed() {
        for (method, name, embeds) in [
            (Method::Prefix, "prefix", true),
            (Method::Lexical, "lexical", false),
            (Method::Full, "full", true),
        ] {
            assert_eq!((method.name(), method.needs_embedder()), (name, embeds));
            let of_traces = (method != Method::Prefix).then_some(method);
            assert_eq!(Method::of_traces(name), of_traces);
        }
        assert_eq!(
            (memory().method(), lexical().method()),
            (Method::Prefix, Method::Lexical)
        );
    }

    fn lexical() -> Memory {
        TraceMemory::new(Method::Lexical, MemoryOptions::default()).into()
    }

    #[test]
    fn compares_then_adds() {
        let memory = memory();
        let novelty = |axis, label| compare(&direction(axis, 1.0), &memory, label, true);
        let first = novelty(0, "a");
        assert_eq!(
            (first.value, first.basis, first.nearest),
            (0.5, Basis::EmptyMemory, None)
        );
        let second = novelty(0, "b");
        assert_eq!((second.value, second.basis), (0.0, Basis::Memory));
        let nearest = second.nearest.unwrap();
        assert_eq!(
            (nearest.label.as_deref(), nearest.similarity, nearest.parts),
            (Some("a"), 1.0, None)
        );
        assert_eq!(novelty(1, "c").value, 1.0);
        assert_eq!(size(&memory), 3);
    }

    #[test]
    fn words_are_compared_then_added_without_an_embedding() {
        let memory = lexical();
        let first = compare_words("flight to Boston", &memory, "a", true);
        assert_eq!((first.value, first.basis), (0.5, Basis::EmptyMemory));
        let second = compare_words("Boston: TO flight", &memory, "b", true);
        assert_eq!((second.value, second.basis), (0.0, Basis::Memory));
        let nearest = second.nearest.unwrap();
        assert_eq!((nearest.label.as_deref(), nearest.similarity), (Some("a"), 1.0));
        assert_eq!(nearest.parts.map(|parts| parts.embedded), Some(None));
        assert_eq!(compare_words("hotel", &memory, "c", false).value, 1.0);
        assert_eq!(size(&memory), 2);
    }

    #[test]
    fn a_full_memory_tells_nothing_without_an_embedding() {
        let options = MemoryOptions {
            dimensions: DIMENSIONS,
            ..MemoryOptions::default()
        };
        let memory = TraceMemory::new(Method::Full, options).into();
        assert_eq!(compare_words("flight", &memory, "a", true), Novelty::NEUTRAL);
        assert_eq!(size(&memory), 0);
        compare(&direction(0, 1.0), &memory, "a", true);
        assert_eq!(size(&memory), 1);
    }

    #[test]
    fn nearest_gives_the_most_similar_first_by_every_method() {
        for method in [Method::Prefix, Method::Lexical, Method::Full] {
            let memory = Memory::new(method, MemoryOptions::default());
            let compared = |text: &str, axis, act: &mut dyn FnMut(&ComparedTrace)| {
                let (embedding, origin) = (direction(axis, 1.0), origin());
                let method = Some(method.name().to_owned());
                act(&ComparedTrace {
                    words: &Words::of(&with_texts(text, &[])),
                    embedding: Some((&embedding, &Origin { method, ..origin })),
                    label: Some(&text.into()),
                    remember: true,
                    explained: false,
                });
            };
            for (text, axis) in [("flight to Boston", 0), ("hotel", 1)] {
                compared(text, axis, &mut |trace| {
                    memory.compare_and_add(trace, Instant::now()).unwrap();
                });
            }
            compared("hotel", 1, &mut |trace| {
                let nearest = |count| memory.nearest(trace, count, Instant::now()).unwrap();
                let labels: Vec<_> = nearest(9).into_iter().map(|found| found.label).collect();
                assert_eq!(labels, [Some("hotel".into()), Some("flight to Boston".into())]);
                assert_eq!(nearest(1).len(), 1);
                let alone = ComparedTrace {
                    embedding: None,
                    ..*trace
                };
                let found = memory.nearest(&alone, 1, Instant::now()).unwrap();
                assert_eq!(found.len(), usize::from(method == Method::Lexical));
            });
        }
    }

    #[test]
    fn load_reads_either_kind_and_refuses_vectors_that_are_no_embeddings() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("memory.safetensors");
        let save = |memory: &Memory| {
            let snapshot = lock(memory.held()).snapshot(Instant::now(), SystemTime::now());
            snapshot.save(&file).unwrap();
        };
        for method in [Method::Prefix, Method::Lexical, Method::Full] {
            save(&Memory::new(method, MemoryOptions::default()));
            assert_eq!(Memory::load(&file).unwrap().method(), method);
            let bytes = std::fs::read(&file).unwrap();
            assert_eq!(Memory::read(&bytes).unwrap().method(), method);
            let error = Memory::read(&bytes[..bytes.len() - 1]).unwrap_err();
            assert_eq!(error.code(), "ERR_MEMORY_DAMAGED");
            assert!(
                error.to_string().starts_with("the memory is damaged: "),
                "{error}"
            );
        }
        let small = MemoryOptions {
            dimensions: 3,
            ..MemoryOptions::default()
        };
        save(&Memory::new(Method::Prefix, small));
        let error = Memory::load(&file).unwrap_err();
        assert_eq!(error.code(), "ERR_MEMORY_MISMATCH");
        assert!(error.to_string().contains("vectors of 3 dimensions"), "{error}");
    }

    #[test]
    fn opposites_are_more_than_new() {
        let memory = memory();
        compare(&direction(0, 1.0), &memory, "a", true);
        assert_eq!(compare(&direction(0, -1.0), &memory, "b", true).value, 2.0);
    }

    #[test]
    fn what_is_not_to_be_remembered_is_not() {
        let cache: Arc<SharedCache> = Arc::new(Mutex::new(VectorCache::new(MemoryOptions::default())));
        compare(
            &direction(0, 1.0),
            &Memory::Vectors(Arc::clone(&cache)),
            "a",
            false,
        );
        assert!(lock(&cache).is_empty(Instant::now()));
        assert_eq!(lock(&cache).origin.model, None);
        assert_eq!(lock(&cache).origin.method, None);
    }

    #[test]
    fn a_neighbour_from_elsewhere_makes_the_same_novelty() {
        let memory = memory();
        compare(&direction(0, 1.0), &memory, "a", true);
        let here = compare(&direction(0, 1.0), &memory, "b", false);
        assert_eq!(
            Novelty::of_nearest(Some(Nearest::vector(Some("a".into()), 1.0))),
            here
        );
        let empty = Novelty::of_nearest(None);
        assert_eq!((empty.value, empty.basis), (0.5, Basis::EmptyMemory));
    }

    #[test]
    fn a_memory_of_another_model_or_method_is_refused() {
        let cache: Arc<SharedCache> = Arc::new(Mutex::new(VectorCache::new(MemoryOptions::default())));
        let memory = Memory::Vectors(Arc::clone(&cache));
        compare(&direction(0, 1.0), &memory, "a", true);
        let other_model = Origin {
            model: origin().model.map(|model| ModelIdentity {
                dtype: "q8".into(),
                ..model
            }),
            ..origin()
        };
        let other_method = Origin {
            method: Some("other".into()),
            ..origin()
        };
        for (origin, code) in [
            (other_model, "ERR_MEMORY_MISMATCH"),
            (other_method, "ERR_MEMORY_MISMATCH"),
        ] {
            for remember in [true, false] {
                let compared = ComparedTrace {
                    words: &Words::default(),
                    embedding: Some((&direction(0, 1.0), &origin)),
                    label: None,
                    remember,
                    explained: false,
                };
                let error = memory.compare_and_add(&compared, Instant::now()).unwrap_err();
                assert_eq!(error.code(), code);
            }
        }
        assert_eq!(lock(&cache).len(Instant::now()), 1);
        assert_eq!(lock(&cache).origin.method.as_deref(), Some("prefix"));
    }
}
