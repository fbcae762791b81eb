//! A queue of vectors in blocks of contiguous memory, which clones share.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use knowledgepulse_encoder::{GROUP, Group};
use knowledgepulse_trace::label::Label;

use crate::{moment::Moment, room::with_room, scaled::Scaled};

/// The bytes of components in a block, unless one vector is larger.
const BLOCK_BYTES: usize = 256 * 1024;

/// The queue. A clone shares the blocks; vectors that either adds later are its own.
#[derive(Debug, Clone)]
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
}

/// Memory for a fixed number of vectors.
#[derive(Debug)]
struct Block {
    components: Vec<Group>,
    inverse_norms: Vec<f64>,
    added: Vec<Moment>,
    labels: Vec<Option<Label>>,
}

/// Vectors that lie one after another in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'b> {
    pub(crate) components: &'b [Group],
    pub(crate) inverse_norms: &'b [f64],
}

/// A vector of the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'b> {
    /// Padded with zeros.
    pub(crate) components: &'b [Group],
    pub(crate) inverse_norm: f64,
    pub(crate) added: Moment,
    pub(crate) label: Option<&'b Label>,
}

impl Rows {
    /// Makes an empty queue for vectors of `dimensions` components, at least 1.
    pub(crate) fn new(dimensions: usize) -> Self {
        let groups = dimensions.div_ceil(GROUP);
        let bytes = groups.saturating_mul(size_of::<Group>());
        Self {
            dimensions,
            groups,
            capacity: (BLOCK_BYTES / bytes.max(1)).max(1),
            blocks: VecDeque::new(),
            gone: 0,
            length: 0,
            departed: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns the bytes of the vectors without their labels.
    pub(crate) fn bytes(&self) -> usize {
        let others = size_of::<f64>() + size_of::<Moment>() + size_of::<Option<Label>>();
        let each = self.groups.saturating_mul(size_of::<Group>()) + others;
        self.length.saturating_mul(each)
    }

    /// The sequence numbers of the vectors. Each vector keeps its number for as long as the queue exists.
    pub(crate) fn sequence(&self) -> Range<u64> {
        self.departed..self.departed + self.length as u64
    }

    /// Makes room for one more vector, so that adding it cannot fail; `None` if there is not enough memory.
    pub(crate) fn reserve(&mut self) -> Option<()> {
        let (groups, capacity) = (self.groups, self.capacity);
        match self.blocks.back_mut() {
            Some(last) if last.len() < capacity => {
                if Arc::get_mut(last).is_none() {
                    // A clone of the queue shares this block, and must not see the vectors that are added to it.
                    *last = Arc::new(last.copied(groups, capacity)?);
                }
            }
            _ => {
                self.blocks.try_reserve(1).ok()?;
                self.blocks
                    .push_back(Arc::new(Block::allocate(groups, capacity)?));
            }
        }
        Some(())
    }

    /// Adds a vector; [`Rows::reserve`] must have made room. An `added` before that of the previous vector counts as equal to it, so vectors
    /// stay in the order of their age.
    pub(crate) fn push_back(&mut self, vector: &Scaled, label: Option<Label>, added: Moment) {
        let latest = self
            .blocks
            .iter()
            .rev()
            .find_map(|block| block.added.last().copied());
        let Some(block) = self.blocks.back_mut().and_then(Arc::get_mut) else {
            debug_assert!(false, "reserve was not called");
            return;
        };
        block.components.extend_from_slice(&vector.components);
        block.inverse_norms.push(vector.inverse_norm);
        block.added.push(latest.map_or(added, |latest| latest.max(added)));
        block.labels.push(label);
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

impl Block {
    /// An empty block; `None` if there is not enough memory.
    fn allocate(groups: usize, capacity: usize) -> Option<Self> {
        Some(Self {
            components: with_room(capacity.checked_mul(groups)?)?,
            inverse_norms: with_room(capacity)?,
            added: with_room(capacity)?,
            labels: with_room(capacity)?,
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
