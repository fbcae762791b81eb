//! The vector cache: a first-in-first-out memory of the vectors of earlier traces.

use std::{ops::Range, sync::Mutex, time::Instant};

use knowledgepulse_error::Result;
use knowledgepulse_os::return_freed_memory;
use knowledgepulse_trace::label::Label;

use crate::{
    moment::Moment,
    options::{MemoryOptions, Origin, require_short},
    persist::{Contents, VECTORS},
    rows::Rows,
    scaled::{Component, Scaled},
    scan::{Neighbour, most_similar},
    shared::SharedMemory,
};

/// A memory of vectors that several threads share.
pub type SharedCache = Mutex<VectorCache>;

/// The least bytes of vectors whose memory returns to the system when they are removed.
const LARGE_BYTES: usize = 32 * 1024 * 1024;

/// A vector of the cache that is similar to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct SimilarVector {
    /// The number of older living vectors.
    pub index: usize,
    /// The cosine similarity, -1 to 1 within 1e-6.
    pub similarity: f64,
    /// The label of the vector.
    pub label: Option<Label>,
}

/// The vector of a trace.
#[derive(Debug, Clone, Copy)]
pub struct VectorEntry<'e> {
    /// The components, as many as the vectors of the cache have.
    pub vector: &'e [f32],
    /// The label.
    pub label: Option<&'e Label>,
    /// The origin.
    pub origin: &'e Origin,
}

/// A bounded first-in-first-out memory of vectors with exact search. Vectors are copied in.
///
/// A vector is padded to groups of 64 components of four bytes, and takes 32 bytes more without its label: 1,568 bytes for 384 dimensions.
///
/// Methods that depend on the time take it as `now`. If it goes backwards, a vector counts as no older than the one before it.
#[derive(Debug)]
pub struct VectorCache {
    options: MemoryOptions,
    pub(crate) rows: Rows,
    pub(crate) origin: Origin,
    /// The vector or query of the current call; later calls reuse the memory.
    scaled: Scaled,
}

impl VectorCache {
    /// Makes an empty cache, which allocates as vectors are added.
    #[must_use]
    pub fn new(options: MemoryOptions) -> Self {
        Self {
            options,
            rows: Rows::new(options.dimensions),
            origin: Origin::default(),
            scaled: Scaled::default(),
        }
    }

    /// Adds a copy of `vector`, and evicts the oldest one if the cache is full.
    ///
    /// # Errors
    /// [`Error::OutOfRange`](knowledgepulse_error::Error::OutOfRange) for a wrong length or a long label,
    /// [`Error::NotFinite`](knowledgepulse_error::Error::NotFinite) for a component that is NaN or infinite,
    /// [`Error::OutOfMemory`](knowledgepulse_error::Error::OutOfMemory).
    /// After an error the cache is as it was.
    pub fn add<T: Component>(&mut self, vector: &[T], label: Option<Label>, now: Instant) -> Result<()> {
        self.scale(vector, "vector")?;
        self.add_scaled(label, now)
    }

    /// Adds the vector that was scaled last.
    fn add_scaled(&mut self, label: Option<Label>, now: Instant) -> Result<()> {
        if let Some(label) = &label {
            require_short(label)?;
        }
        self.evict_expired(now);
        if self.options.max_elements == 0 {
            return Ok(());
        }
        self.rows.reserve().ok_or_else(|| self.options.out_of_memory())?;
        if self.rows.len() == self.options.max_elements {
            self.rows.pop_front();
        }
        self.rows.push_back(&self.scaled, label, Moment::at(now));
        Ok(())
    }

    /// Returns the nearest neighbour of an entry's vector; `None` with an empty cache. Then adds the vector if requested, and records its
    /// origin. A recorded part of the origin stays, except that an empty cache accepts any.
    ///
    /// # Errors
    /// The errors of [`SharedMemory::check_origin`] and [`VectorCache::add`]. After an error the cache is as it was.
    pub fn compare_and_add(
        &mut self,
        entry: VectorEntry,
        remember: bool,
        now: Instant,
    ) -> Result<Option<SimilarVector>> {
        self.check_origin(entry.origin, now)?;
        self.scale(entry.vector, "vector")?;
        let nearest = self.nearest_of_scaled(1, now)?.pop();
        if remember {
            let was_empty = self.is_empty(now);
            self.add_scaled(entry.label.cloned(), now)?;
            if was_empty {
                self.origin = Origin::default();
            }
            self.origin.learn(entry.origin);
        }
        Ok(nearest)
    }

    /// Returns the largest cosine similarity of `query` to a vector in the cache, within 1e-6 of double precision; 0 for an empty cache. A zero
    /// vector has similarity 0 to every vector.
    ///
    /// # Errors
    /// [`Error::OutOfRange`](knowledgepulse_error::Error::OutOfRange) for a wrong length or a long label,
    /// [`Error::NotFinite`](knowledgepulse_error::Error::NotFinite) for a component that is NaN or infinite,
    /// [`Error::OutOfMemory`](knowledgepulse_error::Error::OutOfMemory).
    pub fn max_cosine_similarity<T: Component>(&mut self, query: &[T], now: Instant) -> Result<f64> {
        Ok(self
            .nearest(query, 1, now)?
            .first()
            .map_or(0.0, |found| found.similarity))
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
    ) -> Result<Vec<SimilarVector>> {
        self.scale(query, "query")?;
        self.nearest_of_scaled(count, now)
    }

    fn nearest_of_scaled(&mut self, count: usize, now: Instant) -> Result<Vec<SimilarVector>> {
        self.evict_expired(now);
        let count = count.min(self.rows.len());
        let found = most_similar(&self.scaled, &self.rows, count);
        let found = found.ok_or_else(|| self.options.out_of_memory())?;
        let neighbour = |Neighbour { index, similarity }| SimilarVector {
            index,
            similarity,
            label: self.rows.get(index).and_then(|row| row.label.cloned()),
        };
        Ok(found.into_iter().map(neighbour).collect())
    }

    fn scale<T: Component>(&mut self, vector: &[T], name: &'static str) -> Result<()> {
        self.options.require_length(vector.len())?;
        self.scaled.set(vector, name)
    }
}

impl SharedMemory for VectorCache {
    fn options(&self) -> &MemoryOptions {
        &self.options
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    fn evict_expired(&mut self, now: Instant) {
        let Some(time_to_live) = self.options.time_to_live else {
            return;
        };
        let now = Moment::at(now);
        // Vectors are in order of age, so the expired ones are the first.
        while self
            .rows
            .get(0)
            .is_some_and(|oldest| oldest.added.age(now) >= time_to_live)
        {
            self.rows.pop_front();
        }
    }

    fn clear(&mut self) {
        let was_large = self.bytes() >= LARGE_BYTES;
        self.rows.clear();
        self.origin = Origin::default();
        if was_large {
            return_freed_memory();
        }
    }

    fn sequence(&mut self, now: Instant) -> Range<u64> {
        self.evict_expired(now);
        self.rows.sequence()
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
            vectors: self.rows.clone(),
            traces: None,
        }
    }

    fn restore(contents: Contents) -> Self {
        Self {
            rows: contents.vectors,
            origin: contents.origin,
            ..Self::new(contents.options)
        }
    }

    fn version() -> &'static str {
        VECTORS
    }
}

#[cfg(test)]
mod tests;
