//! A queue of vectors in blocks of contiguous memory. No vector is moved when the queue grows or its oldest vectors are
//! removed, and the memory of a block is freed when the block is empty.

use std::{collections::VecDeque, iter, ops::Range, sync::Arc};

use knowledgepulse_error::{Error, Result};
use knowledgepulse_trace::label::Label;

#[cfg(not(target_family = "wasm"))]
use super::mapped::Mapped;
use super::{
    codes::{self, CodeInfo},
    scaled::Scaled,
};
use crate::{
    moment::Moment,
    room::WithRoom,
    simd::{Codes, Floats, GROUP, MAX_CODE_GROUPS},
};

/// WebAssembly has no pages of their own.
#[cfg(target_family = "wasm")]
type Mapped<T> = Vec<T>;

/// Bytes of components in a block, unless one vector is larger.
const BLOCK_BYTES: usize = 256 * 1024;

/// The least bytes of components of a large queue: see [`Blocks::is_large`].
const LARGE_BYTES: usize = 32 * 1024 * 1024;

/// [`BLOCK_BYTES`] of the blocks that are added to a large queue. The codes, a quarter of that, fill a huge page too.
const LARGE_BLOCK_BYTES: usize = 8 * 1024 * 1024;

/// The queue. A clone shares the blocks; vectors that either adds later are its own.
#[derive(Debug)]
pub(crate) struct Blocks {
    shape: Shape,
    /// Every block but the last is full.
    blocks: VecDeque<Placed>,
    length: usize,
    /// The number of removed vectors, which is the sequence number of the oldest one.
    departed: u64,
    /// Empty blocks in the order of use: reserved ones, and one that was emptied, with which a full cache allocates nothing.
    spare: VecDeque<Block>,
}

/// The memory that a vector needs, which depends on its dimensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) dimensions: usize,
    /// Groups of components in a vector.
    groups: usize,
}

/// A block and its place in a queue.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    /// The sequence number of the first vector of the block, which may have been removed.
    first: u64,
    block: Arc<Block>,
}

/// Memory for a fixed number of vectors.
#[derive(Debug)]
pub(crate) struct Block {
    shape: Shape,
    /// The capacity in vectors, at least 1.
    pub(crate) capacity: usize,
    components: Mapped<Floats>,
    inverse_norms: Vec<f64>,
    codes: Mapped<Codes>,
    infos: Vec<CodeInfo>,
    added: Vec<Moment>,
    labels: Vec<Option<Label>>,
}

/// Vectors that lie one after another in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'b> {
    pub(crate) components: &'b [Floats],
    pub(crate) inverse_norms: &'b [f64],
    /// As many groups as `components` has; empty without codes.
    pub(crate) codes: &'b [Codes],
    /// One for each vector; empty without codes.
    pub(crate) infos: &'b [CodeInfo],
}

/// A vector of the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'b> {
    /// Padded with zeros.
    pub(crate) components: &'b [Floats],
    pub(crate) added: Moment,
    pub(crate) label: Option<&'b Label>,
}

impl Shape {
    /// The shape of vectors with `dimensions` components, at least 1.
    fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            groups: dimensions.div_ceil(GROUP),
        }
    }

    /// Whether the vectors have codes; those that are too long for the kernel have none.
    fn coded(self) -> bool {
        self.groups <= MAX_CODE_GROUPS
    }

    /// Bytes of components in a vector.
    fn bytes(self) -> usize {
        self.groups.saturating_mul(size_of::<Floats>()).max(1)
    }

    fn is_large(self, vectors: usize) -> bool {
        vectors.saturating_mul(self.bytes()) >= LARGE_BYTES
    }

    /// Returns the capacity of a block that is added after `vectors` vectors.
    pub(crate) fn capacity_after(self, vectors: usize) -> usize {
        let bytes = if self.is_large(vectors) {
            LARGE_BLOCK_BYTES
        } else {
            BLOCK_BYTES
        };
        (bytes / self.bytes()).max(1)
    }

    fn out_of_memory(self) -> Error {
        Error::OutOfMemory {
            dimensions: self.dimensions,
        }
    }
}

impl Blocks {
    /// An empty queue for vectors of `dimensions` components, at least 1.
    pub(crate) fn new(dimensions: usize) -> Self {
        Self {
            shape: Shape::new(dimensions),
            blocks: VecDeque::new(),
            length: 0,
            departed: 0,
            spare: VecDeque::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The shape that a block must have for [`Blocks::push_block`].
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether the vectors have codes.
    pub(crate) fn coded(&self) -> bool {
        self.shape.coded()
    }

    /// Returns the bytes of the vectors without their labels.
    pub(crate) fn bytes(&self) -> usize {
        let codes = if self.coded() {
            self.shape.groups * size_of::<Codes>()
        } else {
            0
        };
        let others =
            size_of::<f64>() + size_of::<CodeInfo>() + size_of::<Moment>() + size_of::<Option<Label>>();
        self.length.saturating_mul(self.shape.bytes() + codes + others)
    }

    /// Returns whether removed vectors should return their memory to the system.
    pub(crate) fn is_large(&self) -> bool {
        self.shape.is_large(self.length)
    }

    /// The sequence numbers of the vectors. Each vector keeps its number for as long as the queue exists.
    pub(crate) fn sequence(&self) -> Range<u64> {
        self.departed..self.departed + self.length as u64
    }

    /// Makes room for `count` vectors, so that appending them cannot fail.
    pub(crate) fn reserve(&mut self, count: usize) -> Result<()> {
        self.try_reserve(count).ok_or_else(|| {
            self.spare.truncate(1);
            self.shape.out_of_memory()
        })
    }

    fn try_reserve(&mut self, count: usize) -> Option<()> {
        let mut room = 0;
        if let Some(last) = self.blocks.back_mut().map(|last| &mut last.block)
            && last.len() < last.capacity
            && count > 0
        {
            room = last.capacity - last.len();
            if Arc::get_mut(last).is_none() {
                // A clone of the queue shares this block, and must not see the vectors that are added to it.
                let mut own = Block::allocate(self.shape, last.capacity)?;
                own.extend(last, 0..last.len());
                *last = Arc::new(own);
            }
        }
        room += self.spare.iter().map(|block| block.capacity).sum::<usize>();
        while room < count {
            let capacity = self.shape.capacity_after(self.length.saturating_add(room));
            self.spare.try_reserve(1).ok()?;
            self.spare.push_back(Block::allocate(self.shape, capacity)?);
            room = room.saturating_add(capacity);
        }
        self.blocks.try_reserve(self.spare.len()).ok()
    }

    /// The block to which the next vector is added. [`Blocks::reserve`] must have made room.
    fn open_block(&mut self) -> Option<&mut Block> {
        let is_open = |last: &Placed| last.block.len() < last.block.capacity;
        if !self.blocks.back().is_some_and(is_open) {
            let block = self.spare.pop_front()?;
            self.place(block);
        }
        Arc::get_mut(&mut self.blocks.back_mut()?.block)
    }

    /// Makes `block` the last block.
    fn place(&mut self, block: Block) {
        self.blocks.push_back(Placed {
            first: self.sequence().end,
            block: Arc::new(block),
        });
    }

    /// Appends a vector; [`Blocks::reserve`] must have made room. An `added` before that of the previous vector counts as equal to it, so
    /// vectors stay in the order of age.
    pub(crate) fn push_back(&mut self, vector: &Scaled, label: Option<Label>, added: Moment) {
        let added = self.back_added().map_or(added, |latest| latest.max(added));
        let Some(block) = self.open_block() else {
            debug_assert!(false, "reserve was not called");
            return;
        };
        block.components.extend_from_slice(&vector.components);
        block.finish(vector, label, added);
        self.length += 1;
    }

    /// Appends a block of this queue's [`Shape`] with finished vectors. All blocks of the queue must be full.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn push_block(&mut self, block: Block) -> Result<()> {
        debug_assert!(
            self.blocks
                .back()
                .is_none_or(|last| last.block.len() == last.block.capacity)
        );
        self.blocks
            .try_reserve(1)
            .map_err(|_| self.shape.out_of_memory())?;
        let count = block.len();
        self.place(block);
        self.length += count;
        Ok(())
    }

    /// Appends the vectors of `newer`, which has the same dimensions, except for the first `skipped`.
    /// [`Blocks::reserve`] must have made room. Vectors stay in the order of their age, as in [`Blocks::push_back`].
    pub(crate) fn extend(&mut self, newer: &Self, skipped: usize) {
        for (source, mut range) in newer.parts(skipped) {
            while !range.is_empty() {
                let latest = self.back_added();
                let Some(block) = self.open_block() else {
                    debug_assert!(false, "reserve was not called");
                    return;
                };
                let count = range.len().min(block.capacity - block.len());
                let copied = block.len();
                block.extend(source, range.start..range.start + count);
                for added in &mut block.added[copied..] {
                    *added = latest.map_or(*added, |latest| latest.max(*added));
                }
                range.start += count;
                self.length += count;
            }
        }
    }

    /// Returns the time of the oldest vector.
    pub(crate) fn front_added(&self) -> Option<Moment> {
        let (block, position) = self.locate(0)?;
        self.blocks[block].block.added.get(position).copied()
    }

    /// Returns the time of the newest vector.
    fn back_added(&self) -> Option<Moment> {
        self.blocks.back()?.block.added.last().copied()
    }

    /// The place of the vector at `index`, counted from the oldest: the block, and the position in it.
    fn locate(&self, index: usize) -> Option<(usize, usize)> {
        if index >= self.length {
            return None;
        }
        let sequence = self.departed + index as u64;
        let after = self.blocks.partition_point(|placed| placed.first <= sequence);
        let block = after.checked_sub(1)?;
        let position = usize::try_from(sequence - self.blocks[block].first).ok()?;
        Some((block, position))
    }

    /// The vector at `index`, counted from the oldest.
    pub(crate) fn get(&self, index: usize) -> Option<Entry<'_>> {
        let (block, position) = self.locate(index)?;
        self.blocks[block].block.get(position)
    }

    /// The vectors, oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> + Clone {
        let parts = self.parts(0);
        parts.flat_map(|(block, mut range)| iter::from_fn(move || block.get(range.next()?)))
    }

    /// Sets the label of the vector at `index`. No clone of the queue may share the vector's block.
    pub(crate) fn set_label(&mut self, index: usize, label: Option<Label>) {
        if let Some((block, position)) = self.locate(index)
            && let Some(block) = Arc::get_mut(&mut self.blocks[block].block)
            && let Some(place) = block.labels.get_mut(position)
        {
            *place = label;
        }
    }

    /// Removes the oldest vector.
    pub(crate) fn pop_front(&mut self) {
        if let Some(block) = self.take_front() {
            self.reuse(block);
        }
    }

    /// Removes the oldest vector, so that [`Blocks::restore_front`] can restore it. Returns its block if that has no other vectors.
    pub(crate) fn take_front(&mut self) -> Option<Placed> {
        if self.length == 0 {
            return None;
        }
        self.length -= 1;
        self.departed += 1;
        // Keeps a block that is not full, because the next vector goes there.
        let is_used_up = |first: &Placed| self.departed - first.first == first.block.capacity as u64;
        if self.blocks.front().is_some_and(is_used_up) {
            self.blocks.pop_front()
        } else {
            None
        }
    }

    /// Restores the vector that [`Blocks::take_front`] has removed last. `taken` are the blocks that it returned, the last one last.
    pub(crate) fn restore_front(&mut self, taken: &mut Vec<Placed>) {
        let sequence = self.departed - 1;
        let is_there = self.blocks.front().is_some_and(|front| front.first <= sequence);
        if !is_there && let Some(block) = taken.pop() {
            self.blocks.push_front(block);
        }
        self.departed = sequence;
        self.length += 1;
    }

    /// Removes the newest vector. No clone of the queue may have it.
    pub(crate) fn pop_back(&mut self) {
        if self.length == 0 {
            return;
        }
        self.length -= 1;
        if let Some(last) = self.blocks.back_mut().map(|last| &mut last.block) {
            debug_assert!(Arc::get_mut(last).is_some(), "a clone has the vector");
            if let Some(block) = Arc::get_mut(last) {
                block.truncate(block.len() - 1);
            }
        }
        if self.blocks.back().is_some_and(|last| last.block.len() == 0)
            && let Some(block) = self.blocks.pop_back()
        {
            self.reuse(block);
        }
    }

    /// Takes a block whose vectors were all removed as a spare one, unless there is one.
    pub(crate) fn reuse(&mut self, block: Placed) {
        if let Some(mut block) = Arc::into_inner(block.block)
            && self.spare.is_empty()
            && block.capacity == self.shape.capacity_after(self.length)
        {
            block.truncate(0);
            self.spare.push_back(block);
        }
    }

    pub(crate) fn clear(&mut self) {
        let departed = self.sequence().end;
        *self = Self::new(self.shape.dimensions);
        self.departed = departed;
    }

    /// Every vector after the first `skipped`, oldest first, as blocks and the positions in them.
    fn parts(&self, skipped: usize) -> impl Iterator<Item = (&Block, Range<usize>)> + Clone {
        let (first, start) = self.locate(skipped).unwrap_or((self.blocks.len(), 0));
        let blocks = self.blocks.iter().skip(first).enumerate();
        blocks.map(move |(index, Placed { block, .. })| {
            let start = if index == 0 { start } else { 0 };
            (&**block, start..block.len())
        })
    }

    /// Every vector after the first `skipped`, oldest first, as runs of contiguous memory.
    pub(crate) fn runs(&self, skipped: usize) -> impl Iterator<Item = Run<'_>> {
        self.parts(skipped).map(|(block, range)| {
            let run = Run {
                components: &block.components,
                inverse_norms: &block.inverse_norms,
                codes: &block.codes,
                infos: &block.infos,
            };
            run.slice(range)
        })
    }
}

impl Clone for Blocks {
    fn clone(&self) -> Self {
        Self {
            blocks: self.blocks.clone(),
            spare: VecDeque::new(),
            ..*self
        }
    }
}

impl Block {
    /// An empty block for `capacity` vectors; `None` if there is not enough memory.
    fn allocate(shape: Shape, capacity: usize) -> Option<Self> {
        let groups = capacity.checked_mul(shape.groups)?;
        let (coded, coded_groups) = if shape.coded() { (capacity, groups) } else { (0, 0) };
        Some(Self {
            shape,
            capacity,
            components: Mapped::with_room(groups)?,
            inverse_norms: Vec::with_room(capacity)?,
            codes: Mapped::with_room(coded_groups)?,
            infos: Vec::with_room(coded)?,
            added: Vec::with_room(capacity)?,
            labels: Vec::with_room(capacity)?,
        })
    }

    /// An empty block that is to be added after `vectors` others.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn allocate_after(shape: Shape, vectors: usize) -> Result<Self> {
        Self::allocate(shape, shape.capacity_after(vectors)).ok_or_else(|| shape.out_of_memory())
    }

    fn len(&self) -> usize {
        self.inverse_norms.len()
    }

    fn get(&self, position: usize) -> Option<Entry<'_>> {
        let groups = self.shape.groups;
        Some(Entry {
            components: self.components.get(position * groups..)?.get(..groups)?,
            added: *self.added.get(position)?,
            label: self.labels.get(position)?.as_ref(),
        })
    }

    /// Appends the components of several vectors, one vector after another. There must be room. [`Block::finish_next`] makes them
    /// vectors of the block.
    pub(crate) fn extend_components(&mut self, vectors: &[f32]) {
        for vector in vectors.chunks_exact(self.shape.dimensions) {
            self.components.extend(Floats::groups(vector));
        }
    }

    /// Whether the block has components that [`Block::finish_next`] has not made a vector yet.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.components.len() > self.len() * self.shape.groups
    }

    /// Makes the next components a vector that was added at `added`. `scaled` is memory for the computation.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::OutOfMemory`].
    pub(crate) fn finish_next(&mut self, scaled: &mut Scaled, added: Moment) -> Result<()> {
        let groups = self.shape.groups;
        let start = self.len() * groups;
        let components = &mut self.components[start..start + groups];
        scaled.set::<f32>(bytemuck::cast_slice(components), "vector")?;
        // This changes the components only if they had to be scaled.
        components.copy_from_slice(&scaled.components);
        self.finish(scaled, None, added);
        Ok(())
    }

    /// Appends everything of `vector` except its components, which are in the block already.
    fn finish(&mut self, vector: &Scaled, label: Option<Label>, added: Moment) {
        self.inverse_norms.push(vector.inverse_norm);
        if self.shape.coded() {
            self.infos.push(codes::encode(vector, &mut self.codes));
        }
        self.added.push(added);
        self.labels.push(label);
    }

    /// Appends the vectors in `range` of another block of the same shape. There must be room.
    fn extend(&mut self, source: &Self, range: Range<usize>) {
        let groups = range.start * self.shape.groups..range.end * self.shape.groups;
        self.components
            .extend_from_slice(&source.components[groups.clone()]);
        self.inverse_norms
            .extend_from_slice(&source.inverse_norms[range.clone()]);
        if self.shape.coded() {
            self.codes.extend_from_slice(&source.codes[groups]);
            self.infos.extend_from_slice(&source.infos[range.clone()]);
        }
        self.added.extend_from_slice(&source.added[range.clone()]);
        self.labels.extend_from_slice(&source.labels[range]);
    }

    /// Removes all vectors but the first `length`; the memory stays.
    fn truncate(&mut self, length: usize) {
        let groups = length * self.shape.groups;
        self.components.truncate(groups);
        self.inverse_norms.truncate(length);
        self.codes.truncate(groups);
        self.infos.truncate(length);
        self.added.truncate(length);
        self.labels.truncate(length);
    }
}

impl<'b> Run<'b> {
    fn len(&self) -> usize {
        self.inverse_norms.len()
    }

    fn slice(self, range: Range<usize>) -> Self {
        fn part<'b, T>(values: &'b [T], vectors: usize, range: &Range<usize>) -> &'b [T] {
            let each = values.len().checked_div(vectors).unwrap_or(0);
            &values[each * range.start..each * range.end]
        }
        let vectors = self.len();
        Self {
            components: part(self.components, vectors, &range),
            inverse_norms: &self.inverse_norms[range.clone()],
            codes: part(self.codes, vectors, &range),
            infos: part(self.infos, vectors, &range),
        }
    }

    /// The run in pieces of at most `size` vectors.
    pub(crate) fn batches(self, size: usize) -> impl Iterator<Item = Self> {
        let starts = (0..self.len()).step_by(size);
        starts.map(move |start| self.slice(start..self.len().min(start + size)))
    }
}
