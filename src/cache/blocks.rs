//! A queue of vectors in blocks of contiguous memory: nothing moves when the queue grows or its front
//! leaves, and memory goes back as blocks empty.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use super::{
    Label,
    codes::{self, CodeInfo},
    moment::Moment,
    scaled::Scaled,
};
use crate::{
    error::{Error, Result},
    simd::{Codes, Floats, GROUP, MAX_CODE_GROUPS},
};

/// Bytes of components in a block, unless one vector is larger.
const BLOCK_BYTES: usize = 256 * 1024;

/// From 32 MB on.
const LARGE_BLOCKS: usize = 100;

/// The queue. A clone shares the blocks, so it is made in no time; what either adds later is its own.
#[derive(Debug)]
pub(super) struct Blocks {
    dimensions: usize,
    /// Groups of components in a vector.
    groups: usize,
    vectors_per_block: usize,
    /// Every block but the last is full.
    blocks: VecDeque<Arc<Block>>,
    /// Vectors at the start of the first block that have left.
    gone: usize,
    length: usize,
    /// How many vectors have left in all: the sequence number of the oldest one.
    departed: u64,
    /// Empty blocks: what was reserved, and one that was emptied, so that a full cache allocates nothing.
    spare: Vec<Block>,
}

#[derive(Debug, Default)]
struct Block {
    components: Vec<Floats>,
    inverse_norms: Vec<f64>,
    codes: Vec<Codes>,
    infos: Vec<CodeInfo>,
    added: Vec<Moment>,
    labels: Vec<Option<Label>>,
}

/// Vectors that lie one after another in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'b> {
    pub(super) components: &'b [Floats],
    pub(super) inverse_norms: &'b [f64],
    /// As many groups as in `components`, or none without codes.
    pub(super) codes: &'b [Codes],
    /// As many as there are vectors, or none without codes.
    pub(super) infos: &'b [CodeInfo],
}

/// A vector of the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'b> {
    /// Padded with zeros.
    pub(super) components: &'b [Floats],
    pub(super) added: Moment,
    pub(super) label: Option<&'b Label>,
}

impl Blocks {
    /// An empty queue for vectors of `dimensions` components, at least 1.
    pub(super) fn new(dimensions: usize) -> Self {
        let groups = dimensions.div_ceil(GROUP);
        let bytes = groups.saturating_mul(size_of::<Floats>()).max(1);
        Self {
            dimensions,
            groups,
            vectors_per_block: (BLOCK_BYTES / bytes).max(1),
            blocks: VecDeque::new(),
            gone: 0,
            length: 0,
            departed: 0,
            spare: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Whether there are codes: not for vectors too long for the kernel.
    pub(super) fn coded(&self) -> bool {
        self.groups <= MAX_CODE_GROUPS
    }

    /// Whether the vectors take so much memory that it should go back to the system with them.
    pub(super) fn is_large(&self) -> bool {
        self.blocks.len() > LARGE_BLOCKS
    }

    /// The sequence numbers of the vectors: each has its own for as long as the queue exists.
    pub(super) fn sequence(&self) -> Range<u64> {
        self.departed..self.departed + self.length as u64
    }

    /// Makes room for `count` vectors, so that appending them cannot fail.
    pub(super) fn reserve(&mut self, count: usize) -> Result<()> {
        self.try_reserve(count).ok_or_else(|| {
            self.spare.truncate(1);
            Error::OutOfMemory {
                dimensions: self.dimensions,
            }
        })
    }

    fn try_reserve(&mut self, count: usize) -> Option<()> {
        let mut room = 0;
        if let Some(last) = self.blocks.back_mut()
            && last.len() < self.vectors_per_block
            && count > 0
        {
            room = self.vectors_per_block - last.len();
            if Arc::get_mut(last).is_none() {
                // A clone of the queue has it too, and must not see what comes.
                let mut own = Block::allocate(self.vectors_per_block, self.groups)?;
                own.extend(last, 0..last.len(), self.groups);
                *last = Arc::new(own);
            }
        }
        let blocks = count.saturating_sub(room).div_ceil(self.vectors_per_block);
        self.blocks.try_reserve(blocks).ok()?;
        self.spare
            .try_reserve(blocks.saturating_sub(self.spare.len()))
            .ok()?;
        while self.spare.len() < blocks {
            self.spare
                .push(Block::allocate(self.vectors_per_block, self.groups)?);
        }
        Some(())
    }

    /// The block that takes the next vector; [`Blocks::reserve`] must have made room.
    fn open_block(&mut self) -> Option<&mut Block> {
        if self
            .blocks
            .back()
            .is_none_or(|last| last.len() == self.vectors_per_block)
        {
            self.blocks.push_back(Arc::new(self.spare.pop()?));
        }
        Arc::get_mut(self.blocks.back_mut()?)
    }

    /// Appends a vector; [`Blocks::reserve`] must have made room.
    pub(super) fn push_back(&mut self, vector: &Scaled, label: Option<Label>, added: Moment) {
        let coded = self.coded();
        let Some(block) = self.open_block() else {
            debug_assert!(false, "reserve was not called");
            return;
        };
        block.components.extend_from_slice(&vector.components);
        block.inverse_norms.push(vector.inverse_norm);
        if coded {
            block.infos.push(codes::encode(vector, &mut block.codes));
        }
        block.added.push(added);
        block.labels.push(label);
        self.length += 1;
    }

    /// Appends the vectors of `newer`, of as many dimensions, but for the first `skipped`;
    /// [`Blocks::reserve`] must have made room. The order of age stays: none counts as older than the one before.
    pub(super) fn extend(&mut self, newer: &Self, skipped: usize) {
        let (groups, vectors_per_block) = (self.groups, self.vectors_per_block);
        for (source, mut range) in newer.parts(skipped) {
            while !range.is_empty() {
                let latest = self.back_added();
                let Some(block) = self.open_block() else {
                    debug_assert!(false, "reserve was not called");
                    return;
                };
                let count = range.len().min(vectors_per_block - block.len());
                let copied = block.len();
                block.extend(source, range.start..range.start + count, groups);
                for added in &mut block.added[copied..] {
                    *added = latest.map_or(*added, |latest| latest.max(*added));
                }
                range.start += count;
                self.length += count;
            }
        }
    }

    /// When the oldest vector was added.
    pub(super) fn front_added(&self) -> Option<Moment> {
        self.blocks.front()?.added.get(self.gone).copied()
    }

    /// When the newest vector was added.
    fn back_added(&self) -> Option<Moment> {
        self.blocks.back()?.added.last().copied()
    }

    /// The vector at `index`, counted from the oldest.
    pub(super) fn get(&self, index: usize) -> Option<Entry<'_>> {
        if index >= self.length {
            return None;
        }
        let position = self.gone + index;
        let block = self.blocks.get(position / self.vectors_per_block)?;
        let position = position % self.vectors_per_block;
        Some(Entry {
            components: block
                .components
                .get(position * self.groups..)?
                .get(..self.groups)?,
            added: *block.added.get(position)?,
            label: block.labels.get(position)?.as_ref(),
        })
    }

    /// Gives the vector at `index` a label. No clone of the queue may have the vector.
    pub(super) fn set_label(&mut self, index: usize, label: Option<Label>) {
        let position = self.gone + index;
        let block = self.blocks.get_mut(position / self.vectors_per_block);
        if let Some(block) = block.and_then(Arc::get_mut)
            && let Some(place) = block.labels.get_mut(position % self.vectors_per_block)
        {
            *place = label;
        }
    }

    /// Removes the oldest vector.
    pub(super) fn pop_front(&mut self) {
        if self.length == 0 {
            return;
        }
        self.gone += 1;
        self.length -= 1;
        self.departed += 1;
        // Every block but the last is full, so only a full block can be used up and still be in the way.
        if self.gone == self.vectors_per_block {
            self.gone = 0;
            let block = self.blocks.pop_front().and_then(Arc::into_inner);
            if let Some(block) = block
                && self.spare.is_empty()
            {
                self.spare.push(block.emptied());
            }
        }
    }

    pub(super) fn clear(&mut self) {
        let departed = self.sequence().end;
        *self = Self::new(self.dimensions);
        self.departed = departed;
    }

    /// Every vector after the first `skipped`, oldest first: the block and where in it.
    fn parts(&self, skipped: usize) -> impl Iterator<Item = (&Block, Range<usize>)> {
        let skipped = self.gone + skipped.min(self.length);
        let (full, start) = (skipped / self.vectors_per_block, skipped % self.vectors_per_block);
        let blocks = self.blocks.iter().skip(full).enumerate();
        blocks.map(move |(index, block)| {
            let start = if index == 0 { start.min(block.len()) } else { 0 };
            (&**block, start..block.len())
        })
    }

    /// Every vector after the first `skipped`, oldest first.
    pub(super) fn runs(&self, skipped: usize) -> impl Iterator<Item = Run<'_>> {
        self.parts(skipped).map(|(block, range)| {
            let run = Run {
                components: &block.components,
                inverse_norms: &block.inverse_norms,
                codes: &block.codes,
                infos: &block.infos,
            };
            run.after(range.start)
        })
    }
}

impl Clone for Blocks {
    fn clone(&self) -> Self {
        Self {
            blocks: self.blocks.clone(),
            spare: Vec::new(),
            ..*self
        }
    }
}

impl Block {
    /// A block with room for so many vectors of so many groups, unless there is no memory.
    fn allocate(vectors: usize, groups: usize) -> Option<Self> {
        let mut block = Self::default();
        let all_groups = vectors.checked_mul(groups)?;
        block.components.try_reserve_exact(all_groups).ok()?;
        block.inverse_norms.try_reserve_exact(vectors).ok()?;
        if groups <= MAX_CODE_GROUPS {
            block.codes.try_reserve_exact(all_groups).ok()?;
            block.infos.try_reserve_exact(vectors).ok()?;
        }
        block.added.try_reserve_exact(vectors).ok()?;
        block.labels.try_reserve_exact(vectors).ok()?;
        Some(block)
    }

    fn len(&self) -> usize {
        self.inverse_norms.len()
    }

    /// Appends vectors of another block; there must be room.
    fn extend(&mut self, source: &Self, range: Range<usize>, groups: usize) {
        let all_groups = range.start * groups..range.end * groups;
        self.components
            .extend_from_slice(&source.components[all_groups.clone()]);
        self.inverse_norms
            .extend_from_slice(&source.inverse_norms[range.clone()]);
        if !source.codes.is_empty() {
            self.codes.extend_from_slice(&source.codes[all_groups]);
            self.infos.extend_from_slice(&source.infos[range.clone()]);
        }
        self.added.extend_from_slice(&source.added[range.clone()]);
        self.labels.extend_from_slice(&source.labels[range]);
    }

    fn emptied(mut self) -> Self {
        self.components.clear();
        self.inverse_norms.clear();
        self.codes.clear();
        self.infos.clear();
        self.added.clear();
        self.labels.clear();
        self
    }
}

impl<'b> Run<'b> {
    fn len(&self) -> usize {
        self.inverse_norms.len()
    }

    /// The first `count` vectors and the others.
    fn split_at(self, count: usize) -> (Self, Self) {
        fn split<T>(values: &[T], total: usize, count: usize) -> (&[T], &[T]) {
            values.split_at(values.len().checked_div(total).unwrap_or(0) * count)
        }
        let total = self.len();
        let (components, more_components) = split(self.components, total, count);
        let (inverse_norms, more_inverse_norms) = split(self.inverse_norms, total, count);
        let (codes, more_codes) = split(self.codes, total, count);
        let (infos, more_infos) = split(self.infos, total, count);
        let first = Self {
            components,
            inverse_norms,
            codes,
            infos,
        };
        let others = Self {
            components: more_components,
            inverse_norms: more_inverse_norms,
            codes: more_codes,
            infos: more_infos,
        };
        (first, others)
    }

    fn after(self, count: usize) -> Self {
        self.split_at(count).1
    }

    /// The run in pieces of at most `size` vectors.
    pub(super) fn batches(self, size: usize) -> impl Iterator<Item = Self> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let (batch, others) = rest.split_at(size.min(rest.len()));
            rest = others;
            (batch.len() > 0).then_some(batch)
        })
    }
}
