//! The projection P: removes the common part of the remembered embeddings before comparisons.
//!
//! Traces of one domain have embeddings that differ little from their mean, and most along one direction. P subtracts the mean
//! and removes that direction. Both are those of a sample: of at most [`SAMPLE`] remembered traces, those whose embeddings have the
//! smallest hashes. So they depend on which traces are remembered, not on their order, and they change less often the more traces
//! there are. The direction is what [`ROUNDS`] rounds of power iteration make of the centred embedding that is farthest from
//! the mean; more rounds change no AUC by more than .001.

use std::{collections::BTreeSet, iter};

use knowledgepulse_encoder::{Group, dots};
use twox_hash::XxHash3_64;

use crate::{rows::Rows, scaled::Scaled, scan::products};

/// The most traces whose embeddings are used.
const SAMPLE: usize = 256;

/// With fewer traces embeddings are compared as they are.
const FEWEST: usize = 3;

/// The rounds of power iteration.
const ROUNDS: usize = 8;

/// The least relative length of a projection; a shorter one is mostly rounding errors and has no direction.
const SHORTEST: f64 = 0.01;

/// Returns the hash of an embedding.
pub(super) fn hash(components: &[Group]) -> u64 {
    XxHash3_64::oneshot(bytemuck::cast_slice(components))
}

/// P, with the lengths of the remembered embeddings' projections.
#[derive(Debug, Clone, Default)]
pub(super) struct Projection {
    /// The remembered embeddings by their hashes and sequence numbers. The first ones are the sample.
    keys: BTreeSet<(u64, u64)>,
    /// The largest key of the sample; `None` if P is outdated.
    last: Option<(u64, u64)>,
    /// Single precision, padded with zeros.
    mean: Vec<Group>,
    /// Zero if no direction is removed.
    direction: Vec<Group>,
    /// Of the two: their products, each with itself and with the other.
    mean_squared: f64,
    direction_squared: f64,
    mean_along: f64,
    /// The length of each remembered embedding's projection; 0 for one that has no direction.
    pub(super) lengths: Vec<f64>,
    /// The sequence number of the first of these.
    first: u64,
}

fn dot(a: &[Group], b: &[Group]) -> f64 {
    let mut product = [0.0];
    dots(a, b, &mut product);
    product[0]
}

impl Projection {
    pub(super) fn insert(&mut self, hash: u64, sequence: u64) {
        let key = (hash, sequence);
        self.keys.insert(key);
        if self.keys.len() <= SAMPLE || self.last.is_none_or(|last| key < last) {
            self.last = None;
        }
    }

    pub(super) fn remove(&mut self, hash: u64, sequence: u64) {
        let key = (hash, sequence);
        self.keys.remove(&key);
        if self.last.is_none_or(|last| key <= last) {
            self.last = None;
        }
    }

    /// Updates P to the remembered embeddings `vectors`.
    pub(super) fn update(&mut self, vectors: &Rows) {
        let sequence = vectors.sequence();
        if self.last.is_none() {
            self.make(vectors);
            self.lengths.clear();
            self.last = self.keys.iter().take(SAMPLE).next_back().copied();
            self.first = sequence.start;
        }
        // The trace of the sample's largest key is remembered, so fewer than twice as many lengths as traces are kept.
        let known = usize::try_from(self.first + self.lengths.len() as u64 - sequence.start).unwrap_or(0);
        for row in (known..vectors.len()).filter_map(|index| vectors.get(index)) {
            let length = self.length(row.components, row.inverse_norm);
            self.lengths.push(length);
        }
    }

    /// The lengths of the remembered embeddings' projections, the oldest first.
    pub(super) fn lengths(&self, vectors: &Rows) -> &[f64] {
        let gone = usize::try_from(vectors.sequence().start - self.first).unwrap_or(usize::MAX);
        self.lengths.get(gone..).unwrap_or_default()
    }

    fn make(&mut self, vectors: &Rows) {
        let dimensions = vectors.dimensions;
        let start = vectors.sequence().start;
        // Sums in the order of the hashes, independent of the order of the traces.
        let rows: Vec<&[f32]> = self
            .keys
            .iter()
            .take(SAMPLE)
            .filter_map(|&(_, sequence)| vectors.get(usize::try_from(sequence - start).ok()?))
            .map(|entry| &bytemuck::cast_slice(entry.components)[..dimensions])
            .collect();
        self.make_of(&rows, dimensions);
    }

    fn make_of(&mut self, rows: &[&[f32]], dimensions: usize) {
        let (mut mean, mut direction) = (vec![0.0; dimensions], vec![0.0; dimensions]);
        if rows.len() >= FEWEST {
            (mean, direction) = mean_and_direction(rows, dimensions);
        }
        #[allow(clippy::cast_possible_truncation)] // Rounding to single precision is the intent.
        let [mean, direction] =
            [mean, direction].map(|vector| vector.into_iter().map(|x| x as f32).collect::<Vec<_>>());
        self.set(&mean, &direction);
    }

    fn set(&mut self, mean: &[f32], direction: &[f32]) {
        self.mean = Group::padded(mean).collect();
        self.direction = Group::padded(direction).collect();
        self.mean_squared = dot(&self.mean, &self.mean);
        self.direction_squared = dot(&self.direction, &self.direction);
        self.mean_along = dot(&self.mean, &self.direction);
    }

    /// P of a memory of these embeddings, all of one length: the sample is taken from them.
    pub(super) fn of(vectors: &[&[f32]]) -> Self {
        let dimensions = vectors.first().map_or(0, |vector| vector.len());
        let mut rows: Vec<_> = vectors
            .iter()
            .map(|vector| (hash(&Group::padded(vector).collect::<Vec<_>>()), *vector))
            .collect();
        rows.sort_by_key(|&(hash, _)| hash);
        rows.truncate(SAMPLE);
        let rows: Vec<_> = rows.into_iter().map(|(_, vector)| vector).collect();
        let mut projection = Self::default();
        projection.make_of(&rows, dimensions);
        projection
    }

    /// The P with this mean and this direction.
    #[cfg(test)]
    pub(super) fn from_parts(mean: &[f32], direction: &[f32]) -> Self {
        let mut projection = Self::default();
        projection.set(mean, direction);
        projection
    }

    /// The direction, padded with zeros.
    #[cfg(test)]
    pub(super) fn direction(&self) -> &[f32] {
        bytemuck::cast_slice(&self.direction)
    }

    /// The length of an embedding's projection; 0 if it has no direction.
    pub(super) fn length_of(&self, vector: &Scaled) -> f64 {
        self.length(&vector.components, vector.inverse_norm)
    }

    /// The length of an embedding's projection; 0 if it has no direction.
    fn length(&self, vector: &[Group], inverse_norm: f64) -> f64 {
        if inverse_norm == 0.0 {
            return 0.0;
        }
        let squared = (inverse_norm * inverse_norm).recip();
        let centred = squared - 2.0 * dot(&self.mean, vector) + self.mean_squared;
        let left = centred - self.part_along(vector);
        if left > SHORTEST * SHORTEST * squared {
            left.sqrt()
        } else {
            0.0
        }
    }

    /// The square of the centred vector's component along the direction.
    fn part_along(&self, vector: &[Group]) -> f64 {
        if self.direction_squared == 0.0 {
            return 0.0;
        }
        let along = dot(&self.direction, vector) - self.mean_along;
        along * along / self.direction_squared
    }

    /// Returns the projection of an embedding, prepared for cosines with remembered ones; `None` if it has no direction.
    pub(super) fn project(&self, vector: &Scaled) -> Option<Projected> {
        let length = self.length(&vector.components, vector.inverse_norm);
        if length == 0.0 {
            return None;
        }
        let along = if self.direction_squared == 0.0 {
            0.0
        } else {
            (dot(&self.direction, &vector.components) - self.mean_along) / self.direction_squared
        };
        let groups = vector.components.iter().zip(&self.mean).zip(&self.direction);
        let components = groups.map(|((vector, mean), direction)| {
            #[allow(clippy::cast_possible_truncation)] // Rounding to single precision is the intent.
            Group(std::array::from_fn(|lane| {
                let along = along * f64::from(direction.0[lane]);
                (f64::from(vector.0[lane]) - f64::from(mean.0[lane]) - along) as f32
            }))
        });
        let components: Vec<Group> = components.collect();
        let offset = dot(&components, &self.mean);
        Some(Projected {
            components,
            offset,
            length,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        // A node of a B-tree is at least half full.
        let keys = self.keys.len() * size_of::<(u64, u64)>() * 3 / 2;
        keys + self.lengths.capacity() * size_of::<f64>()
    }
}

/// A query's projection.
#[derive(Debug, Clone)]
pub(super) struct Projected {
    pub(super) components: Vec<Group>,
    /// Its product with the mean.
    pub(super) offset: f64,
    length: f64,
}

impl Projected {
    /// E, from the product with a remembered embedding and the length of that one's projection.
    ///
    /// The projection of the query has no part along the direction, so its product with the other's projection is that with the
    /// other itself, less that with the mean.
    pub(super) fn cosine(&self, product: f64, length: f64) -> f64 {
        if length == 0.0 {
            return 0.0;
        }
        ((product - self.offset) / (self.length * length)).clamp(0.0, 1.0)
    }

    /// E with a remembered embedding.
    pub(super) fn compare(&self, vector: &[Group], length: f64) -> f64 {
        self.cosine(dot(&self.components, vector), length)
    }

    /// E with each of the remembered embeddings, computed on this many threads; `lengths` are those of their projections.
    pub(super) fn compare_all(&self, vectors: &Rows, lengths: &[f64], threads: usize) -> Option<Vec<f64>> {
        let products = products(&self.components, vectors, threads)?;
        let pairs = iter::zip(products, lengths);
        Some(
            pairs
                .map(|(product, &length)| self.cosine(product, length))
                .collect(),
        )
    }
}

/// The mean of `rows`, and the direction in which they differ most, of length 1; zero if they do not differ.
fn mean_and_direction(rows: &[&[f32]], dimensions: usize) -> (Vec<f64>, Vec<f64>) {
    let mut mean = vec![0.0; dimensions];
    for row in rows {
        for (sum, &component) in mean.iter_mut().zip(*row) {
            *sum += f64::from(component);
        }
    }
    #[allow(clippy::cast_precision_loss)] // At most SAMPLE.
    let count = rows.len() as f64;
    for sum in &mut mean {
        *sum /= count;
    }
    let centred: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| {
            row.iter()
                .zip(&mean)
                .map(|(&x, mean)| f64::from(x) - mean)
                .collect()
        })
        .collect();
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut direction: &[f64] = &[];
    let mut largest = 0.0;
    for row in &centred {
        let squared = product(row, row);
        if squared > largest {
            (direction, largest) = (row, squared);
        }
    }
    if largest == 0.0 {
        return (mean, vec![0.0; dimensions]);
    }
    let mut direction = direction.to_vec();
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; dimensions];
        for row in &centred {
            let along = product(row, &direction);
            for (sum, component) in next.iter_mut().zip(row) {
                *sum += along * component;
            }
        }
        let norm = product(&next, &next).sqrt();
        if norm == 0.0 {
            return (mean, vec![0.0; dimensions]);
        }
        for component in &mut next {
            *component /= norm;
        }
        direction = next;
    }
    (mean, direction)
}
