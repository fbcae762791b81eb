//! How new a trace is to the memory of those before it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use crate::{
    cache::{Entry, Label, Neighbour, Options, Origin, VectorCache},
    embed::Embedding,
    error::Result,
    fault,
    score::dimensions::NEUTRAL_NOVELTY,
};

/// A novelty memory that several threads share.
pub type SharedCache = Mutex<VectorCache>;

/// Locks a shared memory. A panic elsewhere cannot leave a memory half changed in a way that matters, so a
/// poisoned lock is taken all the same.
pub fn lock<M>(memory: &Mutex<M>) -> MutexGuard<'_, M> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How much of a trace's text is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The first 512 tokens, as the SDK does.
    Prefix,
    /// All of it, in [windows](crate::trace::windows).
    Full,
}

impl Extent {
    /// The name under which a memory records that its vectors are of this extent.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefix => "prefix",
            Self::Full => "full",
        }
    }
}

/// What a novelty rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// A comparison with the memory.
    Memory,
    /// There was nothing to compare with.
    EmptyMemory,
    /// There is no embedding.
    NoEmbedder,
}

/// The novelty of a trace, and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Novelty {
    /// From 0 for a duplicate to 1 for what resembles nothing, and to 2 for opposites.
    pub value: f64,
    /// What it rests on.
    pub basis: Basis,
    /// The remembered trace that is nearest.
    pub nearest: Option<Nearest>,
    /// How much text was embedded; `None` without an embedder.
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

/// The remembered trace that is nearest to most of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    /// Its label, if it has one.
    pub label: Option<Label>,
    /// The cosine similarity, -1 to 1 within 1e-6: the mean over the windows that it is nearest to.
    pub similarity: f64,
    /// The share of the text that it is nearest to: 1, unless the whole text is compared in windows.
    pub share: f64,
}

/// How much of a text was embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The tokens that were embedded, special ones included.
    pub tokens: usize,
    /// Whether some of the text was left out.
    pub truncated: bool,
}

/// An embedding, and how much it counts among those of a trace.
#[derive(Debug, Clone)]
pub struct Weighted {
    /// The embedding.
    pub embedding: Box<Embedding>,
    /// Its weight, above 0.
    pub weight: f64,
}

/// A memory to compare with: a cache, and what a batch that may yet be taken back would add to it.
#[derive(Debug, Clone)]
pub struct Memory {
    /// What is remembered.
    pub cache: Arc<SharedCache>,
    /// What a batch has added, which counts as newer than all of `cache`.
    pub draft: Option<Arc<SharedCache>>,
}

impl Memory {
    /// An empty draft for a batch on a cache of these bounds.
    #[must_use]
    pub fn draft_of(bounds: Options) -> Arc<SharedCache> {
        Arc::new(Mutex::new(VectorCache::new(bounds)))
    }

    /// Adds the draft to what is remembered, for good.
    ///
    /// # Errors
    /// Those of [`VectorCache::append`].
    pub fn commit(&self, now: Instant) -> Result<()> {
        match &self.draft {
            Some(draft) => lock(&self.cache).append(&mut lock(draft), now),
            None => Ok(()),
        }
    }
}

/// What is compared with a memory, and how it is to be remembered.
#[derive(Debug, Clone, Copy)]
pub struct Comparison<'c> {
    /// The embeddings of a trace, at least one. All are compared before the first is added.
    pub embeddings: &'c [Weighted],
    /// Where they come from.
    pub origin: &'c Origin,
    /// What the trace is remembered by.
    pub label: Option<&'c Label>,
    /// Whether it is remembered at all.
    pub remember: bool,
}

impl Comparison<'_> {
    /// Compares with everything in `memory`, then adds: one atomic step.
    ///
    /// Novelty is the weighted mean of one minus the largest similarity of each embedding, unclamped (a negative
    /// similarity takes it above 1), or [`NEUTRAL_NOVELTY`] when the memory is empty.
    ///
    /// # Errors
    /// Those of [`VectorCache::compare_and_add`].
    pub fn compare_and_add(&self, memory: &Memory, now: Instant) -> Result<Novelty> {
        let mut cache = lock(&memory.cache);
        let mut draft = memory.draft.as_deref().map(lock);
        fault::point("novelty");
        let vectors: Vec<&[f32]> = self
            .embeddings
            .iter()
            .map(|weighted| &weighted.embedding[..])
            .collect();
        let entry = Entry {
            vectors: &vectors,
            label: self.label,
            origin: self.origin,
        };
        let draft = draft.as_deref_mut();
        let nearest = if self.remember {
            cache.compare_and_add(draft, entry, now)?
        } else {
            cache.compare(draft, entry, now)?
        };
        let neighbours = nearest.into_iter().map(|nearest| {
            nearest.map(
                |Neighbour {
                     label, similarity, ..
                 }| (label, similarity),
            )
        });
        Ok(Novelty::of_neighbours(self.embeddings, neighbours))
    }
}

impl Novelty {
    /// The novelty of embeddings by what each of them is nearest to in a memory elsewhere, as
    /// [`Comparison::compare_and_add`] finds it here: a label and a similarity, or `None` if there is nothing in it.
    #[must_use]
    pub fn of_neighbours(
        embeddings: &[Weighted],
        neighbours: impl IntoIterator<Item = Option<(Option<Label>, f64)>>,
    ) -> Self {
        let mut tally = Tally::default();
        for (Weighted { weight, .. }, neighbour) in embeddings.iter().zip(neighbours) {
            if let Some((label, similarity)) = neighbour {
                tally.count(label, similarity, *weight);
            }
        }
        tally.novelty()
    }
}

/// Adds up similarities by the label that they are to. Neighbours without a label may be of different traces, so each
/// counts for itself.
#[derive(Default)]
struct Tally {
    weight: f64,
    newness: f64,
    by_label: Vec<(Option<Label>, Share)>,
}

#[derive(Clone, Copy)]
struct Share {
    weight: f64,
    similarity: f64,
}

impl Tally {
    fn count(&mut self, label: Option<Label>, similarity: f64, weight: f64) {
        self.weight += weight;
        self.newness += (1.0 - similarity) * weight;
        let share = Share {
            weight,
            similarity: similarity * weight,
        };
        // A trace has at most 32 windows, so a linear search through their labels is fast.
        let mut known = self.by_label.iter_mut();
        match known.find(|(known, _)| label.is_some() && *known == label) {
            Some((_, sum)) => {
                sum.weight += share.weight;
                sum.similarity += share.similarity;
            }
            None => self.by_label.push((label, share)),
        }
    }

    fn novelty(self) -> Novelty {
        let mut nearest: Option<(Option<Label>, Share)> = None;
        for (label, share) in self.by_label {
            // Of equal sums, the label that came first.
            if nearest
                .as_ref()
                .is_none_or(|(_, best)| share.weight > best.weight)
            {
                nearest = Some((label, share));
            }
        }
        match nearest {
            None => Novelty {
                basis: Basis::EmptyMemory,
                ..Novelty::NEUTRAL
            },
            Some((label, share)) => Novelty {
                value: self.newness / self.weight,
                basis: Basis::Memory,
                nearest: Some(Nearest {
                    label,
                    similarity: share.similarity / share.weight,
                    share: share.weight / self.weight,
                }),
                reading: None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cache::ModelIdentity, embed::DIMENSIONS};

    fn origin() -> Origin {
        Origin {
            model: Some(ModelIdentity {
                model: "test".into(),
                dtype: "fp32".into(),
                sha256: None,
            }),
            method: Some(Extent::Full.name().into()),
        }
    }

    fn memory() -> Memory {
        Memory {
            cache: Arc::default(),
            draft: None,
        }
    }

    fn direction(axis: usize, sign: f32) -> Weighted {
        let mut embedding = Box::new([0.0; DIMENSIONS]);
        embedding[axis] = sign;
        Weighted {
            embedding,
            weight: 1.0,
        }
    }

    fn compare(embeddings: &[Weighted], memory: &Memory, label: &str, remember: bool) -> Novelty {
        let comparison = Comparison {
            embeddings,
            origin: &origin(),
            label: Some(&label.into()),
            remember,
        };
        comparison.compare_and_add(memory, Instant::now()).unwrap()
    }

    #[test]
    fn compares_then_adds() {
        let memory = memory();
        let novelty = |axis, label| compare(&[direction(axis, 1.0)], &memory, label, true);
        let first = novelty(0, "a");
        assert_eq!(
            (first.value, first.basis, first.nearest),
            (0.5, Basis::EmptyMemory, None)
        );
        let second = novelty(0, "b");
        assert_eq!((second.value, second.basis), (0.0, Basis::Memory));
        let nearest = second.nearest.unwrap();
        assert_eq!(
            (nearest.label.as_deref(), nearest.similarity, nearest.share),
            (Some("a"), 1.0, 1.0)
        );
        assert_eq!(novelty(1, "c").value, 1.0);
        assert_eq!(lock(&memory.cache).len(Instant::now()), 3);
    }

    #[test]
    fn opposites_are_more_than_new() {
        let memory = memory();
        compare(&[direction(0, 1.0)], &memory, "a", true);
        assert_eq!(compare(&[direction(0, -1.0)], &memory, "b", true).value, 2.0);
    }

    #[test]
    fn what_is_not_to_be_remembered_is_not() {
        let memory = memory();
        compare(&[direction(0, 1.0)], &memory, "a", false);
        assert!(lock(&memory.cache).is_empty(Instant::now()));
        assert_eq!(lock(&memory.cache).model(), None);
        assert_eq!(lock(&memory.cache).method(), None);
    }

    #[test]
    fn windows_count_by_their_weight_and_not_against_each_other() {
        let memory = memory();
        let first = compare(&[direction(0, 1.0), direction(0, 1.0)], &memory, "a", true);
        assert_eq!(first.basis, Basis::EmptyMemory);
        compare(&[direction(1, 1.0)], &memory, "b", true);
        let mut windows = [direction(0, 1.0), direction(1, 1.0), direction(2, 1.0)];
        windows[1].weight = 5.0;
        windows[2].weight = 2.0;
        let novelty = compare(&windows, &memory, "c", true);
        assert_eq!(novelty.value, 2.0 / 8.0);
        let nearest = novelty.nearest.unwrap();
        assert_eq!((nearest.label.as_deref(), nearest.similarity), (Some("b"), 1.0));
        assert_eq!(nearest.share, 5.0 / 8.0);
    }

    #[test]
    fn neighbours_without_a_label_are_not_taken_for_one_trace() {
        let mut windows = [0, 1, 2, 3].map(|axis| direction(axis, 1.0));
        windows[1].weight = 2.0;
        let share = |labels: [Option<&str>; 4]| {
            let neighbours = labels.map(|label| Some((label.map(Into::into), 1.0)));
            let nearest = Novelty::of_neighbours(&windows, neighbours).nearest.unwrap();
            (nearest.label, nearest.share)
        };
        assert_eq!(share([None; 4]), (None, 0.4));
        // One labelled neighbour outweighs several unlabelled ones, of which each has a smaller sum.
        let a = Some("a");
        assert_eq!(share([a, None, a, a]), (a.map(Into::into), 0.6));
    }

    #[test]
    fn neighbours_from_elsewhere_make_the_same_novelty() {
        let memory = memory();
        compare(&[direction(0, 1.0)], &memory, "a", true);
        let mut windows = [direction(0, 1.0), direction(1, -1.0)];
        windows[1].weight = 3.0;
        let here = compare(&windows, &memory, "b", false);
        let neighbours = [Some((Some("a".into()), 1.0)), Some((Some("a".into()), 0.0))];
        assert_eq!(Novelty::of_neighbours(&windows, neighbours), here);
        let empty = Novelty::of_neighbours(&windows, [None, None]);
        assert_eq!((empty.value, empty.basis), (0.5, Basis::EmptyMemory));
    }

    #[test]
    fn a_draft_counts_at_once_and_stays_only_when_committed() {
        let cache: Arc<SharedCache> = Arc::default();
        let bounds = *lock(&cache).options();
        let memory = Memory {
            draft: Some(Memory::draft_of(bounds)),
            cache,
        };
        compare(&[direction(0, 1.0)], &memory, "a", true);
        assert_eq!(compare(&[direction(0, 1.0)], &memory, "b", true).value, 0.0);
        assert!(lock(&memory.cache).is_empty(Instant::now()));
        memory.commit(Instant::now()).unwrap();
        assert_eq!(lock(&memory.cache).len(Instant::now()), 2);
    }

    #[test]
    fn a_memory_of_another_model_or_method_is_refused() {
        let memory = memory();
        compare(&[direction(0, 1.0)], &memory, "a", true);
        let other_model = Origin {
            model: origin().model.map(|model| ModelIdentity {
                dtype: "q8".into(),
                ..model
            }),
            ..origin()
        };
        let other_method = Origin {
            method: Some(Extent::Prefix.name().into()),
            ..origin()
        };
        for (origin, code) in [
            (other_model, "ERR_CACHE_OTHER_MODEL"),
            (other_method, "ERR_CACHE_OTHER_METHOD"),
        ] {
            for remember in [true, false] {
                let comparison = Comparison {
                    embeddings: &[direction(0, 1.0)],
                    origin: &origin,
                    label: None,
                    remember,
                };
                let error = comparison.compare_and_add(&memory, Instant::now()).unwrap_err();
                assert_eq!(error.code(), code);
            }
        }
        assert_eq!(lock(&memory.cache).len(Instant::now()), 1);
        assert_eq!(lock(&memory.cache).method(), Some("full"));
    }
}
