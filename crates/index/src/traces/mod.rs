//! The trace memory: a first-in-first-out memory of whole traces for [novelty](crate::similarity).

pub mod explain;
pub mod join;
mod placed;
mod projection;
mod search;
pub mod stored;
pub(crate) mod terms;

use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
    sync::{Arc, Mutex},
    time::Instant,
};

use knowledgepulse_error::{Result, fault};
use knowledgepulse_os::return_freed_memory;
use knowledgepulse_trace::{
    label::Label,
    words::{Word, Words},
};

use crate::{
    document::{Document, DocumentWord},
    method::Method,
    moment::Moment,
    options::{MemoryOptions, ModelIdentity, Origin, require_short},
    persist::{Contents, HeldTraces, TRACES},
    rows::Rows,
    scaled::Scaled,
    shared::SharedMemory,
    similarity::{Similarity, Sums},
};
use projection::Projection;
use search::{Query, Shared};
use terms::{Posting, Terms};

/// A memory of traces that several threads share.
pub type SharedTraces = Mutex<TraceMemory>;

/// A trace to compare and remember.
#[derive(Debug, Clone, Copy)]
pub struct TraceEntry<'e> {
    /// Its words.
    pub words: &'e Words,
    /// The embedding of its digest; ignored by a memory of words alone.
    pub vector: Option<&'e [f32]>,
    /// What it is remembered by.
    pub label: Option<&'e Label>,
    /// The model of the embedding, if known.
    pub model: Option<&'e ModelIdentity>,
}

impl<'e> From<&'e Words> for TraceEntry<'e> {
    /// A trace of which only its words are known.
    fn from(words: &'e Words) -> Self {
        Self {
            words,
            vector: None,
            label: None,
            model: None,
        }
    }
}

/// A remembered trace that is similar to another one.
#[derive(Debug, Clone, PartialEq)]
pub struct SimilarTrace {
    /// The number of older living traces.
    pub index: usize,
    /// The similarity.
    pub similarity: Similarity,
    /// Its label.
    pub label: Option<Label>,
}

/// The parts of a similarity that a word contributes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WordShare {
    /// The hash of the word; [`Words::spelling`] returns its spelling.
    pub hash: u64,
    /// Its document frequency in the memory.
    pub traces: usize,
    /// Whether the other trace contains it.
    pub shared: bool,
    /// Its part of the trace's weights; C is the sum over shared words.
    pub weight: f64,
    /// Its part of L; 0 unless it is shared.
    pub lexical: f64,
}

/// A trace in the memory.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTrace {
    /// Its words.
    pub words: Words,
    /// The embedding of its digest; `None` in a memory of words alone. If its largest component is not within 2^-40 and 2^40, it is multiplied
    /// by a power of two.
    pub vector: Option<Vec<f32>>,
    /// Its label.
    pub label: Option<Label>,
}

/// A bounded first-in-first-out memory of traces.
///
/// A trace is compared with the candidates that its words find, or with all of a few. Results depend on the set of remembered traces alone,
/// not on their order, evicted traces or threads. Only of traces that are equally similar, or equally likely to be, the older comes first.
///
/// A trace takes 12 to 13 bytes for each of its words (at most [`MOST_WORDS`](knowledgepulse_trace::words::MOST_WORDS)), 70 for each word
/// of its own, about 150 more without its label, and 2,000 for an embedding of 384 dimensions.
///
/// Methods that depend on the time take it as `now`. If it goes backwards, a trace counts as no older than the one before it. A clone
/// shares the words of the traces.
#[derive(Debug, Clone)]
pub struct TraceMemory {
    method: Method,
    options: MemoryOptions,
    model: Option<ModelIdentity>,
    held: VecDeque<Arc<Document>>,
    terms: Terms,
    /// The number of evicted traces.
    departed: u64,
    held_bytes: usize,
    /// The embeddings; empty if words alone are compared.
    vectors: Rows,
    projection: Projection,
    scaled: Scaled,
    scratch: Vec<Shared>,
}

impl TraceMemory {
    /// Makes an empty memory, which allocates as traces are added.
    #[must_use]
    pub fn new(method: Method, options: MemoryOptions) -> Self {
        Self {
            method,
            options,
            model: None,
            held: VecDeque::new(),
            terms: Terms::default(),
            departed: 0,
            held_bytes: 0,
            vectors: Rows::new(options.dimensions),
            projection: Projection::default(),
            scaled: Scaled::default(),
            scratch: Vec::new(),
        }
    }

    /// Returns this memory without bounds: it evicts nothing.
    #[must_use]
    pub fn unbounded(mut self) -> Self {
        self.options.max_elements = usize::MAX;
        self.options.time_to_live = None;
        self
    }

    /// Returns the novelty method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns the model of the embeddings, if known.
    #[must_use]
    pub fn model(&self) -> Option<&ModelIdentity> {
        self.model.as_ref()
    }

    fn origin_of(&self, model: Option<ModelIdentity>) -> Origin {
        let method = Some(self.method.name().into());
        Origin { model, method }
    }

    /// Validates a trace, and scales its embedding for the next steps of a call.
    fn check(&mut self, entry: TraceEntry, now: Instant) -> Result<()> {
        if let Some(label) = entry.label {
            require_short(label)?;
        }
        if self.method != Method::Full {
            return Ok(());
        }
        let vector = entry.vector.unwrap_or_default();
        self.options.require_length(vector.len())?;
        self.scaled.set(vector, "vector")?;
        let origin = Origin {
            model: entry.model.cloned(),
            method: None,
        };
        self.check_origin(&origin, now)
    }

    /// Adds a trace, and evicts the oldest one if the memory is full.
    ///
    /// # Errors
    /// `ERR_INVALID_INPUT` for a long label; with embeddings also for one that is missing, has a wrong length or is not finite,
    /// `ERR_MEMORY_MISMATCH`, `ERR_OUT_OF_MEMORY`. After an error the memory is as it was.
    pub fn add(&mut self, entry: TraceEntry, now: Instant) -> Result<()> {
        self.check(entry, now)?;
        self.add_checked(entry, entry.label.cloned(), now)
    }

    /// Returns the most similar remembered trace; of equal ones, the oldest. Only evicts expired traces.
    ///
    /// # Errors
    /// The errors of [`TraceMemory::nearest`].
    pub fn compare(&mut self, entry: TraceEntry, now: Instant) -> Result<Option<SimilarTrace>> {
        Ok(self.nearest(entry, 1, now)?.pop())
    }

    /// Compares as [`TraceMemory::compare`] does, returns the parts of each word if `explained`, then adds the trace if requested.
    ///
    /// # Errors
    /// The errors of [`TraceMemory::add`]. After an error the memory is as it was.
    pub fn compare_and_explain(
        &mut self,
        entry: TraceEntry,
        explained: bool,
        remember: bool,
        now: Instant,
    ) -> Result<(Option<SimilarTrace>, Vec<WordShare>)> {
        let nearest = self.compare(entry, now)?;
        let shares = match &nearest {
            Some(nearest) if explained => self.word_shares(entry.words, nearest.index, now),
            _ => Vec::new(),
        };
        if remember {
            self.add_checked(entry, entry.label.cloned(), now)?;
        }
        Ok((nearest, shares))
    }

    /// Adds the trace that was checked last.
    fn add_checked(&mut self, entry: TraceEntry, label: Option<Label>, now: Instant) -> Result<()> {
        if self.options.max_elements == 0 {
            return Ok(());
        }
        if self.method == Method::Full {
            self.vectors
                .reserve()
                .ok_or_else(|| self.options.out_of_memory())?;
            let held = self.model.take().filter(|_| !self.is_empty(now));
            self.model = held.or_else(|| entry.model.cloned());
        }
        self.remember(entry.words, label, Moment::at(now));
        if self.held.len() > self.options.max_elements {
            self.forget_oldest();
        }
        Ok(())
    }

    /// Adds a trace with the embedding that was scaled last. It is remembered once it is in `held`, from which a repair begins.
    fn remember(&mut self, words: &Words, label: Option<Label>, added: Moment) {
        let slot = self.next_slot();
        let added = self.held.back().map_or(added, |latest| latest.added.max(added));
        fault::point("postings");
        let words = words.iter().map(|&Word { hash, count }| {
            let term = self.terms.place(hash);
            self.terms.add_trace(term, Posting { slot, count });
            DocumentWord { term, count }
        });
        let held = Document::new(label, added, words.collect());
        if self.method == Method::Full {
            let hash = projection::hash(&self.scaled.components);
            self.projection.insert(hash, self.vectors.sequence().end);
            self.vectors.push_back(&self.scaled, None, added);
        }
        self.held_bytes += held.bytes();
        self.held.push_back(Arc::new(held));
    }

    /// Evicts the oldest trace.
    fn forget_oldest(&mut self) {
        let Some(oldest) = self.held.pop_front() else {
            return;
        };
        self.departed += 1;
        self.held_bytes -= oldest.bytes();
        if self.method == Method::Full
            && let Some(row) = self.vectors.get(0)
        {
            let hash = projection::hash(row.components);
            self.projection.remove(hash, self.vectors.sequence().start);
            self.vectors.pop_front();
        }
        for &DocumentWord { term, .. } in &oldest.words {
            self.terms.forget_oldest(term);
        }
    }

    /// The slot of the oldest trace: its sequence number, which wraps around.
    #[allow(clippy::cast_possible_truncation)] // Traces are told apart by the difference.
    fn first_slot(&self) -> u32 {
        self.departed as u32
    }

    #[allow(clippy::cast_possible_truncation)] // As there.
    fn next_slot(&self) -> u32 {
        self.sequence_end() as u32
    }

    fn sequence_end(&self) -> u64 {
        self.departed + self.held.len() as u64
    }

    fn held_contents(&self) -> Contents {
        Contents {
            options: self.options,
            origin: self.origin_of(self.model.clone()),
            vectors: self.vectors.clone(),
            traces: Some(HeldTraces {
                method: self.method,
                documents: self.held.iter().cloned().collect(),
                hashes: self.terms.hashes(),
            }),
        }
    }

    /// Returns the `count` most similar remembered traces, or all if there are fewer: the most similar first, of equal ones the older.
    ///
    /// # Errors
    /// With embeddings, `ERR_INVALID_INPUT` for one that is missing, has a wrong length or is not finite,
    /// `ERR_MEMORY_MISMATCH`, `ERR_OUT_OF_MEMORY`.
    pub fn nearest(&mut self, entry: TraceEntry, count: usize, now: Instant) -> Result<Vec<SimilarTrace>> {
        self.check(entry, now)?;
        self.evict_expired(now);
        let found = self.search(entry.words, count)?;
        Ok(found
            .into_iter()
            .map(|(index, similarity)| SimilarTrace {
                index,
                similarity,
                label: self.held[index].label.clone(),
            })
            .collect())
    }

    /// Returns the parts of each word of a trace in its similarity to the remembered trace at `index`, in the order of the hashes; empty without
    /// such a trace.
    pub fn word_shares(&mut self, words: &Words, index: usize, now: Instant) -> Vec<WordShare> {
        self.evict_expired(now);
        let query = Query::new(words, &self.terms, self.held.len());
        let Some(held) = self.held.get(index) else {
            return Vec::new();
        };
        let mut other = Sums::default();
        let mut counts = HashMap::new();
        for &DocumentWord { term: place, count } in &held.words {
            let count = count.value();
            other.add(count, count, query.logarithm - self.terms.logarithm(place));
            counts.insert(self.terms.get(place).hash, count);
        }
        let norms = (query.sums.product * other.product).sqrt();
        let share = |word: &search::QueryWord| {
            let shared = counts.get(&word.hash);
            WordShare {
                hash: word.hash,
                traces: word.term.map_or(0, |term| self.terms.get(term).df as usize),
                shared: shared.is_some(),
                weight: word.weight / query.sums.weight,
                lexical: shared.map_or(0.0, |count| {
                    word.count * count * word.weight * word.weight / norms
                }),
            }
        };
        query.words.iter().map(share).collect()
    }

    /// Returns the trace that has `index` older ones, expired ones included.
    #[must_use]
    pub fn stored(&self, index: usize) -> Option<StoredTrace> {
        let held = self.held.get(index)?;
        let words = held.words.iter().map(|word| Word {
            hash: self.terms.get(word.term).hash,
            count: word.count,
        });
        let row = self.vectors.get(index).filter(|_| self.method == Method::Full);
        Some(StoredTrace {
            words: Words::from_stored(words.collect())?,
            vector: row.map(|row| self.vectors.components(row)),
            label: held.label.clone(),
        })
    }

    /// Returns the memory of these contents, whose oldest trace has the sequence number `departed`.
    fn restored(contents: Contents, departed: u64) -> Self {
        // A file of this version has them.
        let Some(traces) = contents.traces else {
            return Self::new(Method::Lexical, contents.options);
        };
        let mut memory = Self {
            model: contents.origin.model,
            terms: Terms::with_places(&traces.hashes),
            vectors: contents.vectors,
            departed,
            ..Self::new(traces.method, contents.options)
        };
        for (sequence, row) in memory.vectors.sequence().zip(memory.vectors.iter()) {
            memory
                .projection
                .insert(projection::hash(row.components), sequence);
        }
        for document in traces.documents {
            let slot = memory.next_slot();
            for &DocumentWord { term, count } in &document.words {
                memory.terms.add_trace(term, Posting { slot, count });
            }
            memory.held_bytes += document.bytes();
            memory.held.push_back(document);
        }
        memory.terms.finish_restoring();
        memory
    }

    /// Whether the age of a trace has reached the time to live.
    fn is_expired(&self, held: &Document, now: Moment) -> bool {
        let time_to_live = self.options.time_to_live;
        time_to_live.is_some_and(|time_to_live| held.added.age(now) >= time_to_live)
    }
}

impl SharedMemory for TraceMemory {
    fn repair(&mut self) {
        *self = Self::restored(self.held_contents(), self.departed);
    }

    fn options(&self) -> &MemoryOptions {
        &self.options
    }

    fn bytes(&self) -> usize {
        let held = self.held_bytes + self.held.len() * size_of::<Arc<Document>>();
        let scratch = self.scratch.capacity() * size_of::<Shared>();
        let vectors = if self.method == Method::Full {
            self.vectors.bytes() + self.projection.bytes()
        } else {
            0
        };
        held + self.terms.bytes() + scratch + vectors
    }

    fn evict_expired(&mut self, now: Instant) {
        let now = Moment::at(now);
        while self
            .held
            .front()
            .is_some_and(|oldest| self.is_expired(oldest, now))
        {
            self.forget_oldest();
        }
    }

    fn clear(&mut self) {
        let departed = self.sequence_end();
        *self = Self {
            departed,
            ..Self::new(self.method, self.options)
        };
        return_freed_memory();
    }

    fn sequence(&mut self, now: Instant) -> Range<u64> {
        self.evict_expired(now);
        self.departed..self.sequence_end()
    }

    fn check_origin(&mut self, origin: &Origin, now: Instant) -> Result<()> {
        let is_empty = self.is_empty(now);
        let model = self.model.clone().filter(|_| !is_empty);
        self.origin_of(model).require_comparable(origin)
    }

    fn contents(&mut self, now: Instant) -> Contents {
        self.evict_expired(now);
        self.held_contents()
    }

    fn restore(contents: Contents) -> Self {
        Self::restored(contents, 0)
    }

    fn version() -> &'static str {
        TRACES
    }
}

#[cfg(test)]
mod tests;
