//! The trace memory: a first-in-first-out memory of whole traces for [novelty](crate::similarity).

pub mod draft;
pub mod explain;
pub mod join;
mod projection;
mod rate;
mod search;
pub mod stored;
pub(crate) mod terms;
mod transaction;

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    ops::Range,
    sync::{Arc, Mutex},
    time::Instant,
};

use knowledgepulse_error::{Error, Result, fault};
use knowledgepulse_os::return_freed_memory;
use knowledgepulse_trace::{
    label::Label,
    words::{Word, Words},
};

use crate::{
    method::Method,
    moment::Moment,
    persist::{Contents, HeldTraces, TRACES},
    shared::Shared,
    similarity::{Similarity, Sums, of_similarity},
    vectors::{ModelIdentity, Options, Origin, blocks::Blocks, require_short, scaled::Scaled},
};
use projection::{Projection, Sample};
use rate::NormBound;
use search::{Query, Scratch};
use terms::{DocumentWord, Posting, Terms};
use transaction::{Change, Transaction};

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

impl TraceEntry<'_> {
    /// Returns the label of this trace with its novelty against the nearest trace.
    fn label_scored(&self, nearest: Option<&SimilarTrace>) -> Option<Label> {
        self.label.map(|label| label.with_novelty(novelty(nearest)))
    }

    /// This trace with another label.
    fn labelled<'l>(&self, label: Option<&'l Label>) -> TraceEntry<'l>
    where
        Self: 'l,
    {
        TraceEntry { label, ..*self }
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

/// Returns the novelty of a trace by the most similar remembered trace: 0 for a duplicate to 1; 0.5 for an empty memory.
#[must_use]
pub fn novelty(nearest: Option<&SimilarTrace>) -> f64 {
    of_similarity(nearest.map(|nearest| nearest.similarity.value()))
}

/// The parts of a similarity that a word contributes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WordShare {
    /// The hash of the word; [`SpelledWords`](knowledgepulse_trace::words::SpelledWords) returns its spelling.
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
    /// Its sequence number: see [`Shared::sequence`].
    pub sequence: u64,
    /// Its words.
    pub words: Words,
    /// The embedding of its digest; `None` in a memory of words alone. If its largest component is not within 2^-40 and 2^40, it is multiplied
    /// by a power of two.
    pub vector: Option<Vec<f32>>,
    /// Its label.
    pub label: Option<Label>,
}

/// A remembered trace, without its embedding.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) label: Option<Label>,
    pub(crate) added: Moment,
    /// In the order of the words' hashes.
    pub(crate) words: Box<[DocumentWord]>,
}

/// A bounded first-in-first-out memory of traces with exact search.
///
/// Results depend on the set of remembered traces alone, not on their order, evicted traces or threads. Only of equally similar traces
/// the older comes first.
///
/// A trace takes 12 to 13 bytes for each of its words (at most [`MOST_WORDS`](knowledgepulse_trace::words::MOST_WORDS)), 70 for each word
/// of its own, about 150 more without its label, and 2,000 for an embedding of 384 dimensions.
///
/// Methods that depend on the time take it as `now`. If it goes backwards, a trace counts as no older than the one before it. A clone
/// shares the words of the traces.
#[derive(Debug, Clone)]
pub struct TraceMemory {
    method: Method,
    options: Options,
    model: Option<ModelIdentity>,
    held: VecDeque<Arc<Document>>,
    ratings: VecDeque<NormBound>,
    terms: Terms,
    /// The sequence number of the trace in slot 0.
    base: u64,
    /// The number of evicted traces.
    departed: u64,
    held_bytes: usize,
    /// The embeddings; empty if words alone are compared.
    vectors: Blocks,
    sample: Sample,
    projection: Projection,
    scaled: Scaled,
    scratch: Scratch,
    transaction: Option<Transaction>,
    /// The number of transactions so far.
    transactions: u64,
}

/// The last slot; beyond it slots, which have four bytes, are renumbered.
const MOST_SLOTS: u64 = if cfg!(test) { 300 } else { u32::MAX as u64 };

impl TraceMemory {
    /// Makes an empty memory, which allocates as traces are added.
    #[must_use]
    pub fn new(method: Method, options: Options) -> Self {
        Self {
            method,
            options,
            model: None,
            held: VecDeque::new(),
            ratings: VecDeque::new(),
            terms: Terms::default(),
            base: 0,
            departed: 0,
            held_bytes: 0,
            vectors: Blocks::new(options.dimensions),
            sample: Sample::default(),
            projection: Projection::default(),
            scaled: Scaled::default(),
            scratch: Scratch::default(),
            transaction: None,
            transactions: 0,
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

    /// Validates a trace before anything changes.
    fn check(&mut self, entry: TraceEntry, now: Instant) -> Result<()> {
        if let Some(label) = entry.label {
            require_short(label)?;
        }
        if self.method == Method::Full {
            self.scale(entry.vector)?;
            let origin = Origin {
                model: entry.model.cloned(),
                method: None,
            };
            self.check_origin(&origin, now)?;
        }
        Ok(())
    }

    /// Scales the embedding of a trace for the next steps of a call.
    fn scale(&mut self, vector: Option<&[f32]>) -> Result<()> {
        let vector = vector.unwrap_or_default();
        if vector.len() != self.options.dimensions {
            return Err(Error::Dimensions {
                expected: self.options.dimensions,
                found: vector.len(),
            });
        }
        self.scaled.set(vector, "vector")
    }

    /// Adds a trace, and evicts the oldest one if the memory is full.
    ///
    /// # Errors
    /// [`Error::LabelTooLong`]; with embeddings also [`Error::Dimensions`] for one that is missing or has a wrong length,
    /// [`Error::NotFinite`], [`Error::MemoryOtherModel`], [`Error::OutOfMemory`]. After an error the memory is as it was.
    pub fn add(&mut self, entry: TraceEntry, now: Instant) -> Result<()> {
        self.add_batch(&[entry], now)
    }

    /// Adds traces without comparing them, all or none.
    ///
    /// # Errors
    /// The errors of [`TraceMemory::add`].
    pub fn add_batch(&mut self, entries: &[TraceEntry], now: Instant) -> Result<()> {
        self.prepare(entries, now)?;
        self.in_transaction(|memory| {
            entries
                .iter()
                .try_for_each(|entry| memory.add_checked(*entry, now))
        })
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
            let label = entry.label_scored(nearest.as_ref());
            self.add(entry.labelled(label.as_ref()), now)?;
        }
        Ok((nearest, shares))
    }

    /// Compares and adds traces one after another, all or none; each is compared with those before it too.
    ///
    /// # Errors
    /// The errors of [`TraceMemory::add`]. After an error the memory is as it was.
    pub fn compare_and_add_batch(
        &mut self,
        entries: &[TraceEntry],
        now: Instant,
    ) -> Result<Vec<Option<SimilarTrace>>> {
        self.prepare(entries, now)?;
        self.in_transaction(|memory| {
            let compare_and_add = |entry: &TraceEntry| {
                let nearest = memory.compare(*entry, now)?;
                let label = entry.label_scored(nearest.as_ref());
                memory.add_checked(entry.labelled(label.as_ref()), now)?;
                Ok(nearest)
            };
            entries.iter().map(compare_and_add).collect()
        })
    }

    /// Validates all traces and makes room for their embeddings, so that adding cannot fail halfway.
    fn prepare(&mut self, entries: &[TraceEntry], now: Instant) -> Result<()> {
        let mut model = None;
        for entry in entries {
            self.check(*entry, now)?;
            if let (Some(first), Some(other)) = (*model.get_or_insert(entry.model), entry.model)
                && !first.agrees_with(other)
            {
                return Err(Error::MemoryOtherModel {
                    held: first.to_string(),
                    other: other.to_string(),
                });
            }
        }
        if self.method == Method::Full {
            self.vectors
                .reserve(entries.len().min(self.options.max_elements))?;
        }
        Ok(())
    }

    fn add_checked(&mut self, entry: TraceEntry, now: Instant) -> Result<()> {
        if self.options.max_elements == 0 {
            return Ok(());
        }
        if self.is_empty(now) {
            self.model = None;
        }
        if self.method == Method::Full {
            self.scale(entry.vector)?;
            self.vectors.reserve(1)?;
            if self.model.is_none() {
                self.model = entry.model.cloned();
            }
        }
        if self.held.len() == self.options.max_elements {
            self.forget_oldest();
        }
        let words = entry.words.iter().map(|word| DocumentWord {
            term: self.terms.place(word.hash),
            count: word.count,
        });
        let words = words.collect();
        self.remember(entry.label.cloned(), Moment::at(now), words);
        Ok(())
    }

    /// Adds a trace whose words have places already, with the embedding that was scaled last.
    fn remember(&mut self, label: Option<Label>, added: Moment, words: Box<[DocumentWord]>) {
        let slot = self.next_slot();
        let first = self.first_slot();
        let added = self.held.back().map_or(added, |latest| latest.added.max(added));
        let held = Arc::new(Document { label, added, words });
        self.log(Change::Added(self.sequence_end()));
        self.held_bytes += held_bytes(&held.words);
        self.held.push_back(Arc::clone(&held));
        // Computed once all its words have postings.
        self.ratings.push_back(NormBound::default());
        fault::point("postings");
        for &DocumentWord { term, count } in &held.words {
            self.terms.add_trace(term, Posting { slot, count });
            rate::follow(&mut self.terms, term, &mut self.ratings, first);
        }
        let rating = self.rating(&held);
        if let Some(newest) = self.ratings.back_mut() {
            *newest = rating;
        }
        if self.method == Method::Full {
            let hash = Sample::hash(&self.scaled.components);
            self.sample.insert(hash, self.vectors.sequence().end);
            self.vectors.push_back(&self.scaled, None, added);
        }
    }

    /// Computes the rating of a trace from those of its words.
    fn rating(&self, held: &Document) -> NormBound {
        let mut rating = NormBound::default();
        for &DocumentWord { term, count } in &held.words {
            rating.add(count.value(), self.terms.get(term).rated);
        }
        rating
    }

    /// Evicts the oldest trace, in a transaction.
    fn forget_oldest(&mut self) {
        let Some(oldest) = self.held.front().cloned() else {
            return;
        };
        self.log(Change::Forgotten(self.departed, Arc::clone(&oldest)));
        self.held.pop_front();
        self.ratings.pop_front();
        self.held_bytes -= held_bytes(&oldest.words);
        self.departed += 1;
        let first = self.first_slot();
        for &DocumentWord { term, .. } in &oldest.words {
            self.terms.forget_oldest(term, first);
            rate::follow(&mut self.terms, term, &mut self.ratings, first);
        }
        if self.method == Method::Full
            && let Some(entry) = self.vectors.get(0)
        {
            self.sample
                .remove(Sample::hash(entry.components), self.vectors.sequence().start);
            let emptied = self.vectors.take_front();
            self.keep(emptied);
        }
    }

    /// The slot of the oldest trace.
    #[allow(clippy::cast_possible_truncation)] // Below MOST_SLOTS.
    fn first_slot(&self) -> u32 {
        (self.departed - self.base) as u32
    }

    /// Returns the slot of the next trace. Renumbers slots when there are too many.
    #[allow(clippy::cast_possible_truncation)] // 2^32 traces would take 8 TB.
    fn next_slot(&mut self) -> u32 {
        let restorable = self
            .transaction
            .as_ref()
            .map_or(self.departed, Transaction::departed);
        if restorable > self.base && self.sequence_end() - self.base >= MOST_SLOTS {
            self.terms.shift((restorable - self.base) as u32);
            self.base = restorable;
        }
        self.first_slot() + self.held.len() as u32
    }

    fn sequence_end(&self) -> u64 {
        self.departed + self.held.len() as u64
    }

    /// Returns the `count` most similar remembered traces, or all if there are fewer: the most similar first, of equal ones the older.
    ///
    /// # Errors
    /// With embeddings, [`Error::Dimensions`] for one that is missing or has a wrong length, [`Error::NotFinite`],
    /// [`Error::MemoryOtherModel`], [`Error::OutOfMemory`].
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
        for &DocumentWord { term, count } in &held.words {
            let term = self.terms.get(term);
            let count = count.value();
            other.add(count, count, query.logarithm - term.logarithm);
            counts.insert(term.hash, count);
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

    /// Returns the oldest living trace whose number is in `sequence`.
    pub fn stored(&mut self, sequence: Range<u64>, now: Instant) -> Option<StoredTrace> {
        let living = self.sequence(now);
        let start = sequence.start.max(living.start);
        if start >= sequence.end.min(living.end) {
            return None;
        }
        let index = usize::try_from(start - living.start).ok()?;
        let held = self.held.get(index)?;
        let words = held.words.iter().map(|word| Word {
            hash: self.terms.get(word.term).hash,
            count: word.count,
        });
        let vector = (self.method == Method::Full).then(|| {
            let entry = self.vectors.get(index)?;
            let components = bytemuck::cast_slice(entry.components);
            Some(components[..self.options.dimensions].to_vec())
        });
        Some(StoredTrace {
            sequence: start,
            words: Words::from_stored(words.collect())?,
            vector: vector.flatten(),
            label: held.label.clone(),
        })
    }

    /// Whether the age of a trace has reached the time to live.
    fn is_expired(&self, held: &Document, now: Moment) -> bool {
        let time_to_live = self.options.time_to_live;
        time_to_live.is_some_and(|time_to_live| held.added.age(now) >= time_to_live)
    }
}

impl Shared for TraceMemory {
    fn settle(&mut self) {
        self.roll_back();
    }

    fn options(&self) -> &Options {
        &self.options
    }

    fn bytes(&self) -> usize {
        let ratings = self.held.len() * (size_of::<NormBound>() + size_of::<Arc<Document>>());
        let vectors = if self.method == Method::Full {
            self.vectors.bytes() + self.sample.bytes() + self.projection.bytes()
        } else {
            0
        };
        self.held_bytes + ratings + self.terms.bytes() + self.scratch.bytes() + vectors
    }

    fn evict_expired(&mut self, now: Instant) {
        let now = Moment::at(now);
        let has_expired = |memory: &Self| {
            let oldest = memory.held.front();
            oldest.is_some_and(|oldest| memory.is_expired(oldest, now))
        };
        if has_expired(self) {
            let Ok(()) = self.in_transaction(|memory| {
                while has_expired(memory) {
                    memory.forget_oldest();
                }
                Ok::<_, Infallible>(())
            });
        }
    }

    fn clear(&mut self) {
        let departed = self.sequence_end();
        *self = Self {
            departed,
            base: departed,
            transactions: self.transactions,
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

    fn restore(contents: Contents) -> Self {
        // A file of this version has them.
        let Some(traces) = contents.traces else {
            return Self::new(Method::Lexical, contents.options);
        };
        let mut memory = Self {
            model: contents.origin.model,
            terms: Terms::with_places(&traces.hashes),
            vectors: contents.vectors,
            ..Self::new(traces.method, contents.options)
        };
        for (sequence, entry) in (0..).zip(memory.vectors.entries()) {
            memory.sample.insert(Sample::hash(entry.components), sequence);
        }
        for document in traces.documents {
            let slot = memory.next_slot();
            for &DocumentWord { term, count } in &document.words {
                memory.terms.add_trace(term, Posting { slot, count });
            }
            memory.held_bytes += held_bytes(&document.words);
            memory.held.push_back(document);
        }
        // Rates all traces together, which costs far less than one by one.
        memory.terms.finish_restoring();
        memory.ratings = memory.held.iter().map(|held| memory.rating(held)).collect();
        memory
    }

    fn version() -> &'static str {
        TRACES
    }
}

/// Returns the bytes of a trace's words, with the overhead of the allocator and of an `Arc`.
fn held_bytes(words: &[DocumentWord]) -> usize {
    size_of_val(words) + size_of::<Document>() + 4 * size_of::<usize>()
}

#[cfg(test)]
mod tests;
