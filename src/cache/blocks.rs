//! A queue of vectors in blocks of contiguous memory: nothing moves when the queue grows or its front
//! leaves, and memory goes back as blocks empty.

use std::{collections::VecDeque, time::Instant};

use super::{
    codes::{self, CodeInfo},
    scaled::Scaled,
};
use crate::{
    error::{Error, Result},
    simd::{Codes, Floats, GROUP, MAX_CODE_GROUPS},
};

/// Bytes of components in a block, unless one vector is larger.
const BLOCK_BYTES: usize = 256 * 1024;

/// The queue.
#[derive(Debug)]
pub(super) struct Blocks {
    dimensions: usize,
    /// Groups of components in a vector.
    groups: usize,
    vectors_per_block: usize,
    /// Whether it is kept when each vector was added.
    timed: bool,
    blocks: VecDeque<Block>,
    /// Vectors at the start of the first block that have left.
    gone: usize,
    length: usize,
    /// An emptied block, kept so that a full cache allocates nothing.
    spare: Option<Block>,
}

#[derive(Debug, Default)]
struct Block {
    components: Vec<Floats>,
    inverse_norms: Vec<f64>,
    codes: Vec<Codes>,
    infos: Vec<CodeInfo>,
    added: Vec<Instant>,
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

impl Blocks {
    /// An empty queue for vectors of `dimensions` components, at least 1. When vectors were added is only
    /// known of a `timed` one.
    pub(super) fn new(dimensions: usize, timed: bool) -> Self {
        let groups = dimensions.div_ceil(GROUP);
        let bytes = groups.saturating_mul(size_of::<Floats>()).max(1);
        Self {
            dimensions,
            groups,
            vectors_per_block: (BLOCK_BYTES / bytes).max(1),
            timed,
            blocks: VecDeque::new(),
            gone: 0,
            length: 0,
            spare: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Whether there are codes: not for vectors too long for the kernel.
    pub(super) fn coded(&self) -> bool {
        self.groups <= MAX_CODE_GROUPS
    }

    /// Makes room for one vector, so that the next [`Blocks::push_back`] cannot fail.
    pub(super) fn reserve_one(&mut self) -> Result<()> {
        if self
            .blocks
            .back()
            .is_some_and(|block| block.len() < self.vectors_per_block)
        {
            return Ok(());
        }
        let out_of_memory = Error::OutOfMemory {
            dimensions: self.dimensions,
        };
        if self.blocks.try_reserve(1).is_err() {
            return Err(out_of_memory);
        }
        let block = match self.spare.take() {
            Some(block) => block,
            None => self.allocate().ok_or(out_of_memory)?,
        };
        self.blocks.push_back(block);
        Ok(())
    }

    fn allocate(&self) -> Option<Block> {
        let mut block = Block::default();
        let vectors = self.vectors_per_block;
        let groups = vectors.checked_mul(self.groups)?;
        block.components.try_reserve_exact(groups).ok()?;
        block.inverse_norms.try_reserve_exact(vectors).ok()?;
        if self.coded() {
            block.codes.try_reserve_exact(groups).ok()?;
            block.infos.try_reserve_exact(vectors).ok()?;
        }
        if self.timed {
            block.added.try_reserve_exact(vectors).ok()?;
        }
        Some(block)
    }

    /// Appends a vector; [`Blocks::reserve_one`] must have made room.
    pub(super) fn push_back(&mut self, vector: &Scaled, now: Instant) {
        let coded = self.coded();
        let Some(block) = self.blocks.back_mut() else {
            debug_assert!(false, "reserve_one was not called");
            return;
        };
        block.components.extend_from_slice(&vector.components);
        block.inverse_norms.push(vector.inverse_norm);
        if coded {
            block.infos.push(codes::encode(vector, &mut block.codes));
        }
        if self.timed {
            block.added.push(now);
        }
        self.length += 1;
    }

    /// When the oldest vector was added, if that is kept.
    pub(super) fn front_added(&self) -> Option<Instant> {
        let added = &self.blocks.front()?.added;
        added.get(self.gone).copied()
    }

    /// Removes the oldest vector.
    pub(super) fn pop_front(&mut self) {
        if self.length == 0 {
            return;
        }
        self.gone += 1;
        self.length -= 1;
        // Every block but the last is full, so only a full block can be used up and still be in the way.
        if self.gone == self.vectors_per_block {
            self.gone = 0;
            self.spare = self.blocks.pop_front().map(Block::emptied);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.dimensions, self.timed);
    }

    /// Every vector, oldest first.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        self.blocks.iter().enumerate().map(|(index, block)| {
            let run = Run {
                components: &block.components,
                inverse_norms: &block.inverse_norms,
                codes: &block.codes,
                infos: &block.infos,
            };
            if index == 0 { run.after(self.gone) } else { run }
        })
    }
}

impl Block {
    fn len(&self) -> usize {
        self.inverse_norms.len()
    }

    fn emptied(mut self) -> Self {
        self.components.clear();
        self.inverse_norms.clear();
        self.codes.clear();
        self.infos.clear();
        self.added.clear();
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
