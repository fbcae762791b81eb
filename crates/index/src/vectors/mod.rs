//! The vector cache: the vectors of earlier traces, of which the oldest leaves first.

pub(crate) mod blocks;
pub(crate) mod codes;
#[cfg_attr(target_family = "wasm", path = "heaped.rs")]
mod mapped;
pub(crate) mod scaled;
pub(crate) mod scan;

use std::{
    collections::HashMap,
    ops::Range,
    sync::Mutex,
    time::{Duration, Instant},
};

use blocks::Blocks;
use codes::CodedQuery;
use knowledgepulse_error::{Error, Result};
use knowledgepulse_os::return_freed_memory;
use knowledgepulse_trace::label::{self, Fingerprint, Label, MAX_LABEL_BYTES};

use crate::{moment::Moment, shared::Shared, similarity::of_similarity};
pub use scaled::Component;
use scaled::Scaled;
use scan::{Collector, Found, Largest, Scan, Several};

/// A memory of vectors that several threads share.
pub type SharedCache = Mutex<VectorCache>;

/// It has its drafts beside it, and no panic leaves it half changed in a way that matters.
impl Shared for VectorCache {}

/// Bounds of a cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// How many vectors are kept; 0 keeps none.
    pub max_elements: usize,
    /// The length of every vector, at least 1.
    pub dimensions: usize,
    /// How long a vector lives; `None` for ever.
    pub time_to_live: Option<Duration>,
}

impl Default for Options {
    /// The scorer's own bounds: 1,000 vectors of 384 dimensions, for ever.
    fn default() -> Self {
        Self {
            max_elements: 1000,
            dimensions: 384,
            time_to_live: None,
        }
    }
}

/// The model that vectors come from: those of different models, or of the same one with other weights, do not
/// compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelIdentity {
    /// The name, as in `Xenova/all-MiniLM-L6-v2`.
    pub model: String,
    /// What the weights are stored in, as in `fp32`.
    pub dtype: String,
    /// The SHA-256 of the model file, in hexadecimal, if it is known.
    pub sha256: Option<String>,
}

impl ModelIdentity {
    /// Whether vectors of the two compare: the name and the weights are the same. The files may differ, as exports of the
    /// same weights do.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        (&self.model, &self.dtype) == (&other.model, &other.dtype)
    }
}

impl std::fmt::Display for ModelIdentity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", self.model, self.dtype)
    }
}

/// Where vectors come from, as far as that is known: of one added by hand it is not. What is unknown is not compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The model.
    pub model: Option<ModelIdentity>,
    /// The name of the method by which a trace became vectors, a [`Method::name`](crate::method::Method::name). Two
    /// methods embed different parts of a trace, so a duplicate is far from itself across them.
    pub method: Option<String>,
}

impl Origin {
    /// Whether vectors of the two compare.
    ///
    /// # Errors
    /// [`Error::MemoryOtherModel`] or [`Error::MemoryOtherMethod`], for a cache that holds vectors of this origin.
    pub(crate) fn require_comparable(&self, other: &Self) -> Result<()> {
        if let (Some(held), Some(other)) = (&self.model, &other.model)
            && !held.agrees_with(other)
        {
            return Err(Error::MemoryOtherModel {
                held: held.to_string(),
                other: other.to_string(),
            });
        }
        match (&self.method, &other.method) {
            (Some(held), Some(other)) if held != other => Err(Error::MemoryOtherMethod {
                held: held.clone(),
                other: other.clone(),
            }),
            _ => Ok(()),
        }
    }
}

/// A vector of the cache that is similar to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbour {
    /// How many living vectors are older.
    pub index: usize,
    /// The cosine similarity, -1 to 1 within 1e-6.
    pub similarity: f64,
    /// What the vector was added with.
    pub label: Option<Label>,
}

/// Vectors that belong together, such as those of one trace.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'e> {
    /// The vectors, each as long as those of the cache. All are compared before the first is added.
    pub vectors: &'e [&'e [f32]],
    /// What each of them is remembered by.
    pub label: Option<&'e Label>,
    /// Where they come from.
    pub origin: &'e Origin,
}

/// What each vector of an [`Entry`] is nearest to; `None` where there is nothing to compare with.
pub type Nearest = Vec<Option<Neighbour>>;

/// A vector as it lies in the cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its sequence number: see [`VectorCache::sequence`].
    pub sequence: u64,
    /// The components in single precision. A vector whose largest component is not within 2^-40 and 2^40 is here
    /// at another scale, by a power of two.
    pub vector: Vec<f32>,
    /// What it was added with.
    pub label: Option<Label>,
}

/// A bounded first-in-first-out memory of vectors that answers which are the most similar ones, by looking at
/// all of them. Vectors are copied in.
///
/// A component takes five bytes: four for its value and one for a code that spares most vectors the look at
/// their values. Vectors are padded to whole groups of 64 components, and each takes 32 bytes more, beside its
/// label: 1,952 bytes for 384 dimensions. There are no codes for more than 65,536 dimensions.
///
/// Every method that depends on the time takes it as `now`. Should it go backwards, a vector counts as no older than
/// the one added before it.
#[derive(Debug)]
pub struct VectorCache {
    pub(crate) options: Options,
    pub(crate) blocks: Blocks,
    pub(crate) origin: Origin,
    /// The vector or query of the call under way; only its memory outlives the call.
    pub(crate) scaled: Scaled,
    pub(crate) coded: CodedQuery,
}

impl Default for VectorCache {
    /// An empty cache of the scorer's own bounds.
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl VectorCache {
    /// An empty cache. Memory is taken as vectors come.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            blocks: Blocks::new(options.dimensions),
            origin: Origin::default(),
            scaled: Scaled::default(),
            coded: CodedQuery::default(),
        }
    }

    /// The bounds that this cache was made with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The model that the vectors come from, if that was said.
    #[must_use]
    pub fn model(&self) -> Option<&ModelIdentity> {
        self.origin.model.as_ref()
    }

    /// The name of the method that the vectors come from, if that was said.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        self.origin.method.as_deref()
    }

    /// Records that the vectors come from `origin`; vectors that are added later must come from it too. What is already
    /// recorded stays, unless the cache is empty: an empty cache takes any origin.
    ///
    /// # Errors
    /// Those of [`VectorCache::check_origin`].
    pub fn bind_origin(&mut self, origin: &Origin, now: Instant) -> Result<()> {
        self.check_origin(origin, now)?;
        if self.is_empty(now) {
            self.origin = origin.clone();
            return Ok(());
        }
        if self.origin.model.is_none() {
            self.origin.model.clone_from(&origin.model);
        }
        if self.origin.method.is_none() {
            self.origin.method.clone_from(&origin.method);
        }
        Ok(())
    }

    /// Whether vectors that come from `origin` compare with those here.
    ///
    /// # Errors
    /// [`Error::MemoryOtherModel`] or [`Error::MemoryOtherMethod`] if these come from another one.
    pub fn check_origin(&mut self, origin: &Origin, now: Instant) -> Result<()> {
        if self.is_empty(now) {
            return Ok(());
        }
        self.origin.require_comparable(origin)
    }

    /// Adds a copy of `vector`, which displaces the oldest one if the cache is full.
    ///
    /// # Errors
    /// [`Error::Dimensions`] for a wrong length, [`Error::NotFinite`] for a component that is NaN or
    /// infinite, [`Error::LabelTooLong`], [`Error::OutOfMemory`]. After an error the cache is as it was.
    pub fn add<T: Component>(&mut self, vector: &[T], label: Option<Label>, now: Instant) -> Result<()> {
        self.scale(vector, "vector")?;
        if let Some(label) = &label {
            require_short(label)?;
        }
        if self.options.max_elements == 0 {
            return Ok(());
        }
        self.evict_expired(now);
        self.blocks.reserve(1)?;
        if self.blocks.len() == self.options.max_elements {
            self.blocks.pop_front();
        }
        self.blocks.push_back(&self.scaled, label, Moment::at(now));
        Ok(())
    }

    /// Adds copies of all vectors of an entry, which displace the oldest ones of a cache that gets full.
    ///
    /// # Errors
    /// Those of [`VectorCache::add`] and [`VectorCache::bind_origin`]. After an error the cache is as it was.
    fn add_all(&mut self, entry: Entry, now: Instant) -> Result<()> {
        for vector in entry.vectors {
            self.scale(vector, "vector")?;
        }
        if let Some(label) = entry.label {
            require_short(label)?;
        }
        self.check_origin(entry.origin, now)?;
        self.blocks
            .reserve(entry.vectors.len().min(self.options.max_elements))?;
        self.bind_origin(entry.origin, now)?;
        for vector in entry.vectors {
            self.add(vector, entry.label.cloned(), now)?;
        }
        Ok(())
    }

    /// What the vectors of an entry are nearest to, here and in `draft`, whose vectors count as added after those here.
    /// Changes nothing, except that expired vectors leave.
    ///
    /// # Errors
    /// Those of [`VectorCache::check_origin`] and [`VectorCache::nearest_with`].
    pub fn compare(&mut self, mut draft: Option<&mut Self>, entry: Entry, now: Instant) -> Result<Nearest> {
        self.check_origin(entry.origin, now)?;
        let nearest = entry.vectors.iter().map(|vector| match &mut draft {
            None => Ok(self.nearest(vector, 1, now)?.pop()),
            Some(draft) => self.nearest_with(draft, vector, now),
        });
        nearest.collect()
    }

    /// Compares an entry as [`VectorCache::compare`] does, then adds its vectors: to `draft`, if there is one.
    ///
    /// # Errors
    /// Those of [`VectorCache::compare`] and [`VectorCache::add`]. After an error both caches are as they were.
    pub fn compare_and_add(
        &mut self,
        mut draft: Option<&mut Self>,
        entry: Entry,
        now: Instant,
    ) -> Result<Nearest> {
        let nearest = self.compare(draft.as_deref_mut(), entry, now)?;
        let similarity = nearest
            .first()
            .and_then(Option::as_ref)
            .map(|found| found.similarity);
        let label = entry
            .label
            .map(|label| label.with_novelty(of_similarity(similarity)));
        let entry = Entry {
            label: label.as_ref(),
            ..entry
        };
        draft.unwrap_or(self).add_all(entry, now)?;
        Ok(nearest)
    }

    /// Compares and adds entries one after another, so that each is compared with those before it too.
    ///
    /// # Errors
    /// Those of [`VectorCache::compare_and_add`]. After an error the cache is as it was: no entry is added.
    pub fn compare_and_add_batch(&mut self, entries: &[Entry], now: Instant) -> Result<Vec<Nearest>> {
        if let [entry] = entries {
            return Ok(vec![self.compare_and_add(None, *entry, now)?]);
        }
        let mut draft = Self::new(self.options);
        let nearest = entries
            .iter()
            .map(|entry| self.compare_and_add(Some(&mut draft), *entry, now))
            .collect::<Result<_>>()?;
        self.append(&mut draft, now)?;
        Ok(nearest)
    }

    /// Adds entries without comparing them, which takes far less time.
    ///
    /// # Errors
    /// As [`VectorCache::compare_and_add_batch`].
    pub fn add_batch(&mut self, entries: &[Entry], now: Instant) -> Result<()> {
        let mut draft = Self::new(self.options);
        for entry in entries {
            draft.add_all(*entry, now)?;
        }
        self.append(&mut draft, now)
    }

    /// Moves the vectors of `newer` to the end of this cache, with their labels and with the times at which they were
    /// added, as far as these are not before that of the newest one here. They displace the oldest ones of a
    /// cache that gets full. `newer` is empty afterwards.
    ///
    /// # Errors
    /// [`Error::Dimensions`] if the two hold vectors of different lengths, those of [`VectorCache::check_origin`] if of
    /// different origins, [`Error::OutOfMemory`]. After an error both are as they were.
    pub fn append(&mut self, newer: &mut Self, now: Instant) -> Result<()> {
        let joint = self.join(newer, now)?;
        self.blocks.reserve(newer.blocks.len() - joint.skipped_newer)?;
        // Vectors added by hand have no known origin, so they leave the origin as it is.
        if newer.origin != Origin::default() && newer.blocks.len() > joint.skipped_newer {
            self.bind_origin(&newer.origin, now)?;
        }
        for _ in 0..joint.skipped {
            self.blocks.pop_front();
        }
        self.blocks.extend(&newer.blocks, joint.skipped_newer);
        newer.clear();
        Ok(())
    }

    /// The largest cosine similarity of `query` to a vector in the cache, within 1e-6 of what 64-bit
    /// arithmetic gives; 0 for an empty cache. A zero vector has similarity 0 to everything.
    ///
    /// # Errors
    /// [`Error::Dimensions`] for a wrong length, [`Error::NotFinite`] for a component that is NaN or
    /// infinite, [`Error::OutOfMemory`].
    pub fn max_cosine_similarity<T: Component>(&mut self, query: &[T], now: Instant) -> Result<f64> {
        self.scale(query, "query")?;
        self.evict_expired(now);
        if self.scaled.inverse_norm == 0.0 {
            return Ok(0.0);
        }
        let largest = self
            .scan(Largest::default(), |scan, blocks| scan.over(blocks.runs(0)))?
            .0;
        Ok(largest.map_or(0.0, Found::plain_similarity))
    }

    /// The `count` vectors that are most similar to `query`, the most similar first, and of equally similar ones
    /// the older first; fewer if the cache holds fewer. A zero vector has similarity 0 to everything. The
    /// similarity of the first is that of [`VectorCache::max_cosine_similarity`], to the bit.
    ///
    /// # Errors
    /// Those of [`VectorCache::max_cosine_similarity`].
    pub fn nearest<T: Component>(
        &mut self,
        query: &[T],
        count: usize,
        now: Instant,
    ) -> Result<Vec<Neighbour>> {
        self.scale(query, "query")?;
        self.evict_expired(now);
        let count = count.min(self.blocks.len());
        let out_of_memory = Error::OutOfMemory {
            dimensions: self.options.dimensions,
        };
        let mut neighbours = Vec::new();
        if neighbours.try_reserve_exact(count).is_err() {
            return Err(out_of_memory);
        }
        if self.scaled.inverse_norm == 0.0 {
            let found = |index| Found {
                similarity: 0.0,
                index,
            };
            neighbours.extend((0..count).map(|index| self.neighbour(found(index))));
        } else if count == 1 {
            let largest = self
                .scan(Largest::default(), |scan, blocks| scan.over(blocks.runs(0)))?
                .0;
            neighbours.extend(largest.map(|found| self.neighbour(found)));
        } else if count > 0 {
            let several = Several::new(count).ok_or(out_of_memory)?;
            let several = self.scan(several, |scan, blocks| scan.over(blocks.runs(0)))?;
            neighbours.extend(several.into_sorted().map(|found| self.neighbour(found)));
        }
        Ok(neighbours)
    }

    /// What [`VectorCache::nearest`] would find first, after [`VectorCache::append`] with `newer`; `None` if there
    /// would be no vector. Changes nothing, except that expired vectors leave.
    ///
    /// # Errors
    /// Those of [`VectorCache::nearest`], and [`Error::Dimensions`] if the two hold vectors of different lengths.
    pub fn nearest_with<T: Component>(
        &mut self,
        newer: &mut Self,
        query: &[T],
        now: Instant,
    ) -> Result<Option<Neighbour>> {
        self.scale(query, "query")?;
        let joint = self.join(newer, now)?;
        let kept = self.blocks.len() - joint.skipped;
        let found = if self.scaled.inverse_norm == 0.0 {
            let first = Found {
                similarity: 0.0,
                index: 0,
            };
            (kept + newer.blocks.len() > joint.skipped_newer).then_some(first)
        } else {
            let largest = self.scan(Largest::default(), |scan, blocks| {
                scan.over(blocks.runs(joint.skipped));
                scan.over(newer.blocks.runs(joint.skipped_newer));
            })?;
            largest.0
        };
        let label = |index: usize| match index.checked_sub(kept) {
            None => self.blocks.get(joint.skipped + index)?.label.cloned(),
            Some(index) => newer.blocks.get(joint.skipped_newer + index)?.label.cloned(),
        };
        Ok(found.map(|found| Neighbour {
            index: found.index,
            similarity: found.plain_similarity(),
            label: label(found.index),
        }))
    }

    /// What would be skipped of both if the vectors of `newer` came after those here.
    fn join(&mut self, newer: &mut Self, now: Instant) -> Result<Joint> {
        if newer.options.dimensions != self.options.dimensions {
            return Err(Error::Dimensions {
                expected: self.options.dimensions,
                found: newer.options.dimensions,
            });
        }
        self.evict_expired(now);
        newer.evict_expired(now);
        // A vector counts as no older than the one before it, so none after a living one has expired.
        let expired = match self.options.time_to_live {
            Some(time_to_live) if self.blocks.len() == 0 => {
                let now = Moment::at(now);
                newer
                    .blocks
                    .entries()
                    .take_while(|entry| entry.added.age(now) >= time_to_live)
                    .count()
            }
            _ => 0,
        };
        let total = self.blocks.len() + newer.blocks.len() - expired;
        let surplus = total.saturating_sub(self.options.max_elements);
        let skipped = surplus.min(self.blocks.len());
        Ok(Joint {
            skipped,
            skipped_newer: expired + surplus - skipped,
        })
    }

    /// Shows vectors to `wanted`: those that `over` has the scan go over.
    fn scan<C: Collector>(&mut self, collector: C, over: impl FnOnce(&mut Scan<C>, &Blocks)) -> Result<C> {
        let coded = if self.blocks.coded() {
            self.coded.set(&self.scaled)?;
            Some(&self.coded)
        } else {
            None
        };
        let mut scan = Scan::new(&self.scaled, coded, collector);
        over(&mut scan, &self.blocks);
        Ok(scan.collector)
    }

    fn neighbour(&self, found: Found) -> Neighbour {
        Neighbour {
            index: found.index,
            similarity: found.plain_similarity(),
            label: self
                .blocks
                .get(found.index)
                .and_then(|entry| entry.label.cloned()),
        }
    }

    /// The sequence numbers of the living vectors, oldest first. Vectors are numbered as they are added, and keep their
    /// numbers.
    pub fn sequence(&mut self, now: Instant) -> Range<u64> {
        self.evict_expired(now);
        self.blocks.sequence()
    }

    /// The oldest living vector whose number is in `sequence`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn stored(&mut self, sequence: Range<u64>, now: Instant) -> Result<Option<Stored>> {
        let living = self.sequence(now);
        let sequence = sequence.start.max(living.start)..sequence.end.min(living.end);
        let index = usize::try_from(sequence.start.saturating_sub(living.start)).unwrap_or(usize::MAX);
        let Some(entry) = self.blocks.get(index).filter(|_| !sequence.is_empty()) else {
            return Ok(None);
        };
        let dimensions = self.options.dimensions;
        let mut vector = Vec::new();
        vector
            .try_reserve_exact(dimensions)
            .map_err(|_| Error::OutOfMemory { dimensions })?;
        let components = entry.components.iter().flat_map(|group| &group.0);
        vector.extend(components.take(dimensions));
        Ok(Some(Stored {
            sequence: sequence.start,
            vector,
            label: entry.label.cloned(),
        }))
    }

    /// The novelties that the traces in the cache were scored with, by their fingerprints.
    pub fn novelties(&mut self, now: Instant) -> HashMap<Fingerprint, f64> {
        self.evict_expired(now);
        label::novelties(self.blocks.entries().map(|entry| entry.label))
    }

    /// How many vectors live.
    pub fn len(&mut self, now: Instant) -> usize {
        self.evict_expired(now);
        self.blocks.len()
    }

    /// The bytes that the vectors take, beside their labels; expired ones too.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    /// Whether no vector lives.
    pub fn is_empty(&mut self, now: Instant) -> bool {
        self.len(now) == 0
    }

    /// Drops the vectors whose age has reached the time to live. They no longer count before that either;
    /// this only returns their memory.
    pub fn evict_expired(&mut self, now: Instant) {
        let Some(time_to_live) = self.options.time_to_live else {
            return;
        };
        let now = Moment::at(now);
        // Vectors are in order of age, so the expired ones are the first.
        while let Some(added) = self.blocks.front_added() {
            if added.age(now) < time_to_live {
                break;
            }
            self.blocks.pop_front();
        }
    }

    /// Drops every vector, and with them where they come from.
    pub fn clear(&mut self) {
        let was_large = self.blocks.is_large();
        self.blocks.clear();
        self.origin = Origin::default();
        if was_large {
            return_freed_memory();
        }
    }

    fn scale<T: Component>(&mut self, vector: &[T], name: &'static str) -> Result<()> {
        if vector.len() != self.options.dimensions {
            return Err(Error::Dimensions {
                expected: self.options.dimensions,
                found: vector.len(),
            });
        }
        self.scaled.set(vector, name)
    }
}

impl Drop for VectorCache {
    fn drop(&mut self) {
        if self.blocks.is_large() {
            self.clear();
        }
    }
}

/// How many of the oldest vectors would be displaced if two caches became one.
struct Joint {
    /// Of the older cache.
    skipped: usize,
    /// Of the newer one.
    skipped_newer: usize,
}

impl Found {
    /// Adding 0 turns a negative zero, which a zero vector can produce, into a plain one.
    fn plain_similarity(self) -> f64 {
        self.similarity + 0.0
    }
}

pub(crate) fn require_short(label: &str) -> Result<()> {
    if label.len() > MAX_LABEL_BYTES {
        return Err(Error::LabelTooLong {
            most: MAX_LABEL_BYTES,
            found: label.len(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
