//! A queue of vectors in blocks of contiguous memory, which clones share.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use knowledgepulse_trace::label::Label;

use crate::{
    moment::Moment,
    room::WithRoom,
    scaled::Scaled,
    simd::{Floats, GROUP},
};

/// The bytes of components in a block, unless one vector is larger.
const BLOCK_BYTES: usize = 256 * 1024;

/// The queue. A clone shares the blocks; vectors that either adds later are its own.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) dimensions: usize,
    /// The groups of components in a vector.
    groups: usize,
    /// The vectors in a block, at least 1.
    capacity: usize,
    /// Every block but the last is full.
    blocks: VecDeque<Arc<Block>>,
    /// The removed vectors of the first block.
    gone: usize,
    length: usize,
    /// The number of removed vectors, which is the sequence number of the oldest one.
    departed: u64,
    /// Empty blocks, for vectors to come.
    spare: Vec<Block>,
}

/// Memory for a fixed number of vectors.
#[derive(Debug)]
struct Block {
    components: Vec<Floats>,
    inverse_norms: Vec<f64>,
    added: Vec<Moment>,
    labels: Vec<Option<Label>>,
}

/// Vectors that lie one after another in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'b> {
    pub(crate) components: &'b [Floats],
    pub(crate) inverse_norms: &'b [f64],
}

/// A vector of the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'b> {
    /// Padded with zeros.
    pub(crate) components: &'b [Floats],
    pub(crate) inverse_norm: f64,
    pub(crate) added: Moment,
    pub(crate) label: Option<&'b Label>,
}

impl Rows {
    /// Makes an empty queue for vectors of `dimensions` components, at least 1.
    pub(crate) fn new(dimensions: usize) -> Self {
        let groups = dimensions.div_ceil(GROUP);
        let bytes = groups.saturating_mul(size_of::<Floats>());
        Self {
            dimensions,
            groups,
            capacity: (BLOCK_BYTES / bytes.max(1)).max(1),
            blocks: VecDeque::new(),
            gone: 0,
            length: 0,
            departed: 0,
            spare: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns the bytes of the vectors without their labels.
    pub(crate) fn bytes(&self) -> usize {
        let others = size_of::<f64>() + size_of::<Moment>() + size_of::<Option<Label>>();
        let each = self.groups.saturating_mul(size_of::<Floats>()) + others;
        self.length.saturating_mul(each)
    }

    /// The sequence numbers of the vectors. Each vector keeps its number for as long as the queue exists.
    pub(crate) fn sequence(&self) -> Range<u64> {
        self.departed..self.departed + self.length as u64
    }

    /// Makes room for `count` vectors, so that adding them cannot fail; `None` if there is not enough memory.
    pub(crate) fn reserve(&mut self, count: usize) -> Option<()> {
        let (groups, capacity) = (self.groups, self.capacity);
        let mut room = self.spare.len() * capacity;
        if let Some(last) = self.blocks.back_mut().filter(|last| last.len() < capacity) {
            room += capacity - last.len();
            if count > 0 && Arc::get_mut(last).is_none() {
                // A clone of the queue shares this block, and must not see the vectors that are added to it.
                *last = Arc::new(last.copied(groups, capacity)?);
            }
        }
        while room < count {
            self.spare.try_reserve(1).ok()?;
            self.spare.push(Block::allocate(groups, capacity)?);
            room += capacity;
        }
        self.blocks.try_reserve(self.spare.len()).ok()
    }

    /// Adds a vector; [`Rows::reserve`] must have made room. An `added` before that of the previous vector counts as equal to it, so vectors
    /// stay in the order of their age.
    pub(crate) fn push_back(&mut self, vector: &Scaled, label: Option<Label>, added: Moment) {
        self.push_row(Row {
            components: &vector.components,
            inverse_norm: vector.inverse_norm,
            added,
            label: label.as_ref(),
        });
    }

    /// Adds a copy of a vector of another queue, as [`Rows::push_back`] does.
    pub(crate) fn push_row(&mut self, row: Row) {
        let capacity = self.capacity;
        let latest = self.blocks.back().and_then(|block| block.added.last().copied());
        if self.blocks.back().is_none_or(|last| last.len() == capacity)
            && let Some(block) = self.spare.pop()
        {
            self.blocks.push_back(Arc::new(block));
        }
        let Some(block) = self.blocks.back_mut().and_then(Arc::get_mut) else {
            debug_assert!(false, "reserve was not called");
            return;
        };
        block.components.extend_from_slice(row.components);
        block.inverse_norms.push(row.inverse_norm);
        block
            .added
            .push(latest.map_or(row.added, |latest| latest.max(row.added)));
        block.labels.push(row.label.cloned());
        self.length += 1;
    }

    /// The vector at `index`, counted from the oldest.
    pub(crate) fn get(&self, index: usize) -> Option<Row<'_>> {
        if index >= self.length {
            return None;
        }
        let position = self.gone + index;
        let block = self.blocks.get(position / self.capacity)?;
        block.row(position % self.capacity, self.groups)
    }

    /// The vectors, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Row<'_>> + Clone {
        (0..self.length).filter_map(|index| self.get(index))
    }

    /// The components of a vector, without the padding.
    pub(crate) fn components(&self, row: Row) -> Vec<f32> {
        bytemuck::cast_slice(row.components)[..self.dimensions].to_vec()
    }

    /// Removes the oldest vector.
    pub(crate) fn pop_front(&mut self) {
        if self.length == 0 {
            return;
        }
        self.length -= 1;
        self.departed += 1;
        self.gone += 1;
        if self.gone == self.capacity {
            self.gone = 0;
            self.blocks.pop_front();
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self {
            departed: self.sequence().end,
            ..Self::new(self.dimensions)
        };
    }

    /// The vectors as runs of contiguous memory, oldest first.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        self.blocks.iter().enumerate().map(|(number, block)| {
            let gone = if number == 0 { self.gone } else { 0 };
            Run {
                components: &block.components[gone * self.groups..],
                inverse_norms: &block.inverse_norms[gone..],
            }
        })
    }
}

impl Clone for Rows {
    fn clone(&self) -> Self {
        Self {
            blocks: self.blocks.clone(),
            spare: Vec::new(),
            ..*self
        }
    }
}

impl Block {
    /// An empty block; `None` if there is not enough memory.
    fn allocate(groups: usize, capacity: usize) -> Option<Self> {
        Some(Self {
            components: Vec::with_room(capacity.checked_mul(groups)?)?,
            inverse_norms: Vec::with_room(capacity)?,
            added: Vec::with_room(capacity)?,
            labels: Vec::with_room(capacity)?,
        })
    }

    /// A copy with the same capacity.
    fn copied(&self, groups: usize, capacity: usize) -> Option<Self> {
        let mut copy = Self::allocate(groups, capacity)?;
        copy.components.extend_from_slice(&self.components);
        copy.inverse_norms.extend_from_slice(&self.inverse_norms);
        copy.added.extend_from_slice(&self.added);
        copy.labels.extend_from_slice(&self.labels);
        Some(copy)
    }

    fn len(&self) -> usize {
        self.inverse_norms.len()
    }

    fn row(&self, position: usize, groups: usize) -> Option<Row<'_>> {
        Some(Row {
            components: self.components.get(position * groups..)?.get(..groups)?,
            inverse_norm: *self.inverse_norms.get(position)?,
            added: *self.added.get(position)?,
            label: self.labels.get(position)?.as_ref(),
        })
    }
}
