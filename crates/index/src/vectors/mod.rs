//! The vector cache: a first-in-first-out memory of the vectors of earlier traces.

pub(crate) mod blocks;
pub(crate) mod codes;
#[cfg(not(target_family = "wasm"))]
mod mapped;
pub(crate) mod scaled;
pub(crate) mod scan;

use std::{
    ops::Range,
    sync::Mutex,
    time::{Duration, Instant},
};

use blocks::Blocks;
use codes::CodedQuery;
use knowledgepulse_error::{Error, Result};
use knowledgepulse_os::return_freed_memory;
use knowledgepulse_trace::label::{Label, MAX_LABEL_BYTES};

use crate::{
    moment::Moment,
    persist::{Contents, VECTORS},
    room::WithRoom,
    shared::Shared,
    similarity::of_similarity,
};
pub use scaled::Component;
use scaled::Scaled;
use scan::{Found, Scan};

/// A memory of vectors that several threads share.
pub type SharedCache = Mutex<VectorCache>;

/// Its drafts are separate, and no panic leaves it half changed in a way that matters.
impl Shared for VectorCache {
    fn options(&self) -> &Options {
        &self.options
    }

    fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    fn evict_expired(&mut self, now: Instant) {
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

    fn clear(&mut self) {
        let was_large = self.blocks.is_large();
        self.blocks.clear();
        self.origin = Origin::default();
        if was_large {
            return_freed_memory();
        }
    }

    fn sequence(&mut self, now: Instant) -> Range<u64> {
        self.evict_expired(now);
        self.blocks.sequence()
    }

    fn check_origin(&mut self, origin: &Origin, now: Instant) -> Result<()> {
        if self.is_empty(now) {
            return Ok(());
        }
        self.origin.require_comparable(origin)
    }

    fn contents(&mut self, now: Instant) -> Contents {
        self.evict_expired(now);
        Contents {
            options: self.options,
            origin: self.origin.clone(),
            vectors: self.blocks.clone(),
            traces: None,
        }
    }

    fn restore(contents: Contents) -> Self {
        let mut cache = Self::new(contents.options);
        cache.blocks = contents.vectors;
        cache.origin = contents.origin;
        cache
    }

    fn version() -> &'static str {
        VECTORS
    }
}

/// Bounds of a cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The maximum number of vectors; 0 keeps none.
    pub max_elements: usize,
    /// The length of every vector, at least 1.
    pub dimensions: usize,
    /// The time to live; `None` means for ever.
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

/// The model of vectors. Vectors of different models or weights cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelIdentity {
    /// The name, as in `Xenova/all-MiniLM-L6-v2`.
    pub model: String,
    /// The type of the weights, as in `fp32`.
    pub dtype: String,
    /// The SHA-256 of the model file, in hexadecimal, if it is known.
    pub sha256: Option<String>,
}

impl ModelIdentity {
    /// Returns whether vectors of the two can be compared: name and weights are equal. The files may differ, as exports of the same weights
    /// do.
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

/// The origin of vectors, if known; it is unknown for vectors added by hand. Unknown parts are not compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The model.
    pub model: Option<ModelIdentity>,
    /// The novelty method, a [`Method::name`](crate::method::Method::name). Methods embed different parts of a trace, so a trace would be far
    /// from itself across them.
    pub method: Option<String>,
}

impl Origin {
    /// Checks that vectors of the two can be compared.
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
    /// The number of older living vectors.
    pub index: usize,
    /// The cosine similarity, -1 to 1 within 1e-6.
    pub similarity: f64,
    /// The label of the vector.
    pub label: Option<Label>,
}

/// The vectors of one trace.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'e> {
    /// The vectors, each as long as those of the cache. All are compared before the first is added.
    pub vectors: &'e [&'e [f32]],
    /// Their label.
    pub label: Option<&'e Label>,
    /// Their origin.
    pub origin: &'e Origin,
}

/// The nearest neighbour of each vector of an [`Entry`]; `None` with an empty memory.
pub type Nearest = Vec<Option<Neighbour>>;

/// A vector in the cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its sequence number: see [`Shared::sequence`].
    pub sequence: u64,
    /// The components in single precision. If the largest is not within 2^-40 and 2^40, they are multiplied by a power of two.
    pub vector: Vec<f32>,
    /// Its label.
    pub label: Option<Label>,
}

/// A bounded first-in-first-out memory of vectors with exact search. Vectors are copied in.
///
/// A component takes five bytes: four for its value and one for a code, by which most vectors are ruled out. Vectors are padded to groups
/// of 64 components, and each takes 32 bytes more without its label: 1,952 bytes for 384 dimensions. Vectors of more than 65,536
/// dimensions have no codes.
///
/// Methods that depend on the time take it as `now`. If it goes backwards, a vector counts as no older than the one before it.
#[derive(Debug)]
pub struct VectorCache {
    pub(crate) options: Options,
    pub(crate) blocks: Blocks,
    pub(crate) origin: Origin,
    /// The vector or query of the current call; later calls reuse the memory.
    pub(crate) scaled: Scaled,
    pub(crate) coded: CodedQuery,
}

impl Default for VectorCache {
    /// Makes an empty cache with the bounds of the SDK's scorer.
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl VectorCache {
    /// Makes an empty cache, which allocates as vectors are added.
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

    /// Returns the model of the vectors, if known.
    #[must_use]
    pub fn model(&self) -> Option<&ModelIdentity> {
        self.origin.model.as_ref()
    }

    /// Returns the novelty method of the vectors, if known.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        self.origin.method.as_deref()
    }

    /// Records `origin` for this and all later vectors. A recorded part stays, except that an empty cache accepts any origin.
    fn bind_origin(&mut self, origin: &Origin, now: Instant) -> Result<()> {
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

    /// Adds a copy of `vector`, and evicts the oldest one if the cache is full.
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

    /// Adds copies of all vectors of an entry, and evicts the oldest ones if the cache is full.
    ///
    /// # Errors
    /// The errors of [`VectorCache::add`] and [`Shared::check_origin`]. After an error the cache is as it was.
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

    /// Returns the nearest neighbours of an entry's vectors, here and in `draft`, whose vectors count as newer. Only evicts expired vectors.
    ///
    /// # Errors
    /// The errors of [`Shared::check_origin`] and [`VectorCache::nearest_with`].
    pub fn compare(&mut self, mut draft: Option<&mut Self>, entry: Entry, now: Instant) -> Result<Nearest> {
        self.check_origin(entry.origin, now)?;
        let nearest = entry.vectors.iter().map(|vector| match &mut draft {
            None => Ok(self.nearest(vector, 1, now)?.pop()),
            Some(draft) => self.nearest_with(draft, vector, now),
        });
        nearest.collect()
    }

    /// Compares an entry as [`VectorCache::compare`] does, then adds its vectors, to `draft` if there is one.
    ///
    /// # Errors
    /// The errors of [`VectorCache::compare`] and [`VectorCache::add`]. After an error both caches are as they were.
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

    /// Compares and adds entries one after another; each is compared with those before it too.
    ///
    /// # Errors
    /// The errors of [`VectorCache::compare_and_add`]. After an error the cache is as it was: no entry is added.
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

    /// Moves the vectors of `newer` to the end of this cache, with their labels and times, and evicts the oldest ones if the cache is full. A
    /// time before that of the newest vector here counts as equal to it. `newer` is empty afterwards.
    ///
    /// # Errors
    /// [`Error::Dimensions`] if the two hold vectors of different lengths, the errors of [`Shared::check_origin`] if of
    /// different origins, [`Error::OutOfMemory`]. After an error both are as they were.
    pub fn append(&mut self, newer: &mut Self, now: Instant) -> Result<()> {
        let joint = self.join(newer, now)?;
        self.blocks.reserve(newer.blocks.len() - joint.skipped_newer)?;
        // Vectors added by hand have no origin, and do not change it.
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

    /// Returns the largest cosine similarity of `query` to a vector in the cache, within 1e-6 of double precision; 0 for an empty cache. A zero
    /// vector has similarity 0 to every vector.
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
        let largest = self.scan(1, |scan, blocks| scan.over(blocks.runs(0)))?;
        Ok(largest.first().map_or(0.0, |found| found.similarity))
    }

    /// Returns the `count` vectors that are most similar to `query`, or all if there are fewer: the most similar first, of equal ones the older.
    /// A zero vector has similarity 0 to every vector. The first similarity equals [`VectorCache::max_cosine_similarity`] to the bit.
    ///
    /// # Errors
    /// The errors of [`VectorCache::max_cosine_similarity`].
    pub fn nearest<T: Component>(
        &mut self,
        query: &[T],
        count: usize,
        now: Instant,
    ) -> Result<Vec<Neighbour>> {
        self.scale(query, "query")?;
        self.evict_expired(now);
        let count = count.min(self.blocks.len());
        let mut neighbours = Vec::with_room(count).ok_or_else(|| self.out_of_memory())?;
        if self.scaled.inverse_norm == 0.0 {
            neighbours.extend((0..count).map(|index| self.neighbour(Found::unrelated(index))));
        } else {
            let found = self.scan(count, |scan, blocks| scan.over(blocks.runs(0)))?;
            neighbours.extend(found.into_iter().map(|found| self.neighbour(found)));
        }
        Ok(neighbours)
    }

    /// Returns the first result of [`VectorCache::nearest`] after [`VectorCache::append`] with `newer`; `None` without vectors. Only evicts
    /// expired vectors.
    ///
    /// # Errors
    /// The errors of [`VectorCache::nearest`], and [`Error::Dimensions`] if the two hold vectors of different lengths.
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
            (kept + newer.blocks.len() > joint.skipped_newer).then_some(Found::unrelated(0))
        } else {
            let largest = self.scan(1, |scan, blocks| {
                scan.over(blocks.runs(joint.skipped));
                scan.over(newer.blocks.runs(joint.skipped_newer));
            })?;
            largest.first().copied()
        };
        let label = |index: usize| match index.checked_sub(kept) {
            None => self.blocks.get(joint.skipped + index)?.label.cloned(),
            Some(index) => newer.blocks.get(joint.skipped_newer + index)?.label.cloned(),
        };
        Ok(found.map(|found| Neighbour {
            index: found.index,
            similarity: found.similarity,
            label: label(found.index),
        }))
    }

    /// Returns the displaced vectors of both if `newer` were appended.
    fn join(&mut self, newer: &mut Self, now: Instant) -> Result<Joint> {
        if newer.options.dimensions != self.options.dimensions {
            return Err(Error::Dimensions {
                expected: self.options.dimensions,
                found: newer.options.dimensions,
            });
        }
        self.evict_expired(now);
        newer.evict_expired(now);
        // Vectors are in the order of age, so none after a living one has expired.
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

    /// Scans the vectors that `over` selects for the `count` most similar ones.
    fn scan(&mut self, count: usize, over: impl FnOnce(&mut Scan, &Blocks)) -> Result<Vec<Found>> {
        let coded = if self.blocks.coded() {
            self.coded.set(&self.scaled)?;
            Some(&self.coded)
        } else {
            None
        };
        let mut scan = Scan::new(&self.scaled, coded, count).ok_or_else(|| self.out_of_memory())?;
        over(&mut scan, &self.blocks);
        Ok(scan.collector.into_sorted().collect())
    }

    fn out_of_memory(&self) -> Error {
        let dimensions = self.options.dimensions;
        Error::OutOfMemory { dimensions }
    }

    fn neighbour(&self, found: Found) -> Neighbour {
        Neighbour {
            index: found.index,
            similarity: found.similarity,
            label: self
                .blocks
                .get(found.index)
                .and_then(|entry| entry.label.cloned()),
        }
    }

    /// Returns the oldest living vector whose number is in `sequence`.
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
        let mut vector = Vec::with_room(dimensions).ok_or_else(|| self.out_of_memory())?;
        let components = entry.components.iter().flat_map(|group| &group.0);
        vector.extend(components.take(dimensions));
        Ok(Some(Stored {
            sequence: sequence.start,
            vector,
            label: entry.label.cloned(),
        }))
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

/// The numbers of oldest vectors that joining two caches displaces.
struct Joint {
    /// Of the older cache.
    skipped: usize,
    /// Of the newer one.
    skipped_newer: usize,
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
