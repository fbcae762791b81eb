//! The forward pass.

use std::{
    iter,
    ops::Range,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard},
};

use knowledgepulse_os as os;

use crate::{
    error::{Error, Result},
    kernels::{
        ByteDense, FloatAttention, FloatDense, Isa, Kernel, Normalize, ShortAttention, ToBytes, ToShorts,
        attention::{Attention, AttentionScratch, HEAD, Part},
        dense::{ByteRows, Epilogue},
    },
    model::{Dense, LAYER_NORM_EPSILON, Layer, Model, Norm, Precision},
    thread_pool::{ThreadPool, lock},
};

/// Rows that a thread takes at a time through a feed-forward block, and from states to queries, keys and values in 16 bits: what lies
/// between, up to 1,536 numbers for each row, then stays in the processor's second cache.
const ROWS_AT_A_TIME: usize = 64;

/// The rows of a block are a multiple of this, but for the last ones: a block of queries.
const BLOCK_ROWS: usize = 32;

/// A block has no fewer rows, unless a pass does: it would read the weights for longer than it multiplies with them. So one
/// thread computes a text with few tokens; DESIGN.md has the figures.
const SMALLEST_BLOCK: usize = 12;

/// Tokens that a pass takes at most, unless a single text has more. More would gain nothing.
pub const PASS_TOKENS: usize = 512;

/// How to compute.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Options {
    /// How many threads take part in a pass, the caller's included; 0 means one for each processor that is available. The
    /// results do not depend on it.
    pub threads: usize,
    /// Which kernel; by default the one that the environment variable `KNOWLEDGEPULSE_KERNEL` names, else the fastest.
    pub kernel: Option<Kernel>,
}

/// Computes embeddings with a model, one call at a time, on threads of its own.
pub struct Encoder {
    model: Arc<Model>,
    kernel: Kernel,
    isa: Isa,
    pool: ThreadPool,
    /// The buffers of each thread.
    scratch: Arc<[Mutex<Scratch>]>,
    /// As many as a pass has had at most.
    blocks: Vec<Arc<RowBlock>>,
}

/// Some rows of a pass, which one thread at a time takes through a step.
#[derive(Debug, Default)]
struct RowBlock {
    /// The state of each token.
    states: Mutex<Vec<f32>>,
    /// The layers alternate between the two: while some threads still read the buffer of a layer, another may write that of
    /// the next.
    attention: [RwLock<Segment>; 2],
}

/// The state of one thread.
#[derive(Debug, Default)]
struct Scratch {
    context: Vec<f32>,
    inner: Vec<f32>,
    bytes: ByteRows,
    attention: AttentionScratch,
    word: Vec<u8>,
}

/// The queries, keys and values of some rows: see [`Part`].
#[derive(Debug, Default)]
struct Segment {
    floats: Vec<f32>,
    shorts: Vec<i16>,
    scales: Vec<f32>,
}

/// A linear layer of a transformer layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Linear {
    /// Queries, keys and values.
    Attention,
    /// The output of attention.
    Output,
    /// Into the feed-forward block.
    Up,
    /// Out of the feed-forward block.
    Down,
}

/// Texts that are computed together.
struct Pass {
    model: Arc<Model>,
    isa: Isa,
    scratch: Arc<[Mutex<Scratch>]>,
    /// The tokens of all texts, one text after another.
    tokens: Vec<u32>,
    /// Where each text lies.
    texts: Vec<Range<usize>>,
    /// The blocks, and the rows of each.
    blocks: Vec<(Range<usize>, Arc<RowBlock>)>,
}

impl Encoder {
    /// Creates an encoder for `model`. It has fewer threads than asked for where the system starts no more.
    ///
    /// # Errors
    /// [`Error::KernelUnavailable`], or [`Error::UnknownKernel`] if the environment names none.
    pub fn new(model: Arc<Model>, options: Options) -> Result<Self> {
        let kernel = match (options.kernel, std::env::var("KNOWLEDGEPULSE_KERNEL")) {
            (Some(kernel), _) => kernel,
            (None, Ok(name)) if !name.is_empty() => {
                Kernel::from_name(&name).ok_or(Error::UnknownKernel(name))?
            }
            _ => Kernel::best(model.precision()),
        };
        let threads = os::threads(options.threads);
        let isa = kernel.isa().ok_or(Error::KernelUnavailable(kernel))?;
        let pool = ThreadPool::new(threads);
        Ok(Self {
            model,
            kernel,
            isa,
            scratch: (0..pool.threads()).map(|_| Mutex::default()).collect(),
            blocks: Vec::new(),
            pool,
        })
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Returns the kernel that it computes with.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Returns how many threads it has, the caller's included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Returns the embedding of a text that is given as its tokens, special ones included: the mean of the tokens' last
    /// states, at length one.
    ///
    /// # Errors
    /// [`Error::NoTokens`], [`Error::TooManyTokens`], [`Error::UnknownToken`], [`Error::NotFinite`], [`Error::Read`] if the
    /// word embeddings cannot be read any more, or [`Error::Panicked`].
    pub fn embed(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        let mut embeddings = self.embed_batch(&[tokens])?;
        embeddings.pop().ok_or(Error::NoTokens)
    }

    /// Returns the embeddings of several texts, each the same to the bit as alone. Short texts share passes, which takes
    /// less time than one after another.
    ///
    /// # Errors
    /// As [`Self::embed`].
    pub fn embed_batch(&mut self, texts: &[impl AsRef<[u32]>]) -> Result<Vec<Vec<f32>>> {
        for text in texts {
            self.check(text.as_ref())?;
        }
        let mut embeddings = Vec::with_capacity(texts.len());
        for together in passes(texts, PASS_TOKENS) {
            embeddings.extend(self.pass(together)?);
        }
        Ok(embeddings)
    }

    fn check(&self, tokens: &[u32]) -> Result<()> {
        let shape = self.model.shape();
        if tokens.is_empty() {
            return Err(Error::NoTokens);
        }
        if tokens.len() > shape.positions {
            return Err(Error::TooManyTokens {
                tokens: tokens.len(),
                limit: shape.positions,
            });
        }
        match tokens.iter().find(|token| **token as usize >= shape.vocabulary) {
            Some(&token) => Err(Error::UnknownToken {
                token,
                vocabulary: shape.vocabulary,
            }),
            None => Ok(()),
        }
    }

    /// Computes texts together on the calling thread, and shows `observe` the inputs of each linear layer: the number of the
    /// transformer layer, the linear layer in it, and some rows of inputs, in order. For tools that calibrate a model.
    ///
    /// # Errors
    /// As [`Self::embed`].
    #[doc(hidden)]
    pub fn observe(
        &mut self,
        texts: &[impl AsRef<[u32]>],
        mut observe: impl FnMut(usize, Linear, &[f32]),
    ) -> Result<()> {
        for text in texts {
            self.check(text.as_ref())?;
        }
        let pass = self.prepare(texts, 1);
        for step in 0..=self.model.layers.len() {
            pass.step(0, step, 0, &mut observe)?;
        }
        pass.texts.iter().try_for_each(|text| pass.pool(text).map(drop))
    }

    fn pass(&mut self, texts: &[impl AsRef<[u32]>]) -> Result<Vec<Vec<f32>>> {
        let pass = Arc::new(self.prepare(texts, self.pool.threads()));
        let steps = iter::repeat_n(pass.blocks.len(), self.model.layers.len() + 1);
        let work = Arc::clone(&pass);
        self.pool.run(
            steps,
            Box::new(move |thread, step, block| work.step(thread, step, block, &mut |_, _, _| ())),
        )?;
        pass.texts.iter().map(|text| pass.pool(text)).collect()
    }

    /// Returns a pass for `texts`, cut into blocks for so many threads.
    fn prepare(&mut self, texts: &[impl AsRef<[u32]>], threads: usize) -> Pass {
        let mut pass = Pass {
            model: Arc::clone(&self.model),
            isa: self.isa,
            scratch: Arc::clone(&self.scratch),
            tokens: Vec::new(),
            texts: Vec::with_capacity(texts.len()),
            blocks: Vec::new(),
        };
        for text in texts {
            let start = pass.tokens.len();
            pass.tokens.extend_from_slice(text.as_ref());
            pass.texts.push(start..pass.tokens.len());
        }
        let blocks = row_blocks(pass.tokens.len(), threads);
        self.blocks
            .resize_with(self.blocks.len().max(blocks.len()), Arc::default);
        pass.blocks = blocks.into_iter().zip(self.blocks.iter().cloned()).collect();
        pass
    }
}

impl Pass {
    /// Computes a step for a block. Only attention looks at the rows of others, so a step goes from a layer's attention to
    /// the queries, keys and values of the next layer. `observe` sees the inputs of linear layers.
    fn step(
        &self,
        thread: usize,
        step: usize,
        block: usize,
        observe: &mut impl FnMut(usize, Linear, &[f32]),
    ) -> Result<()> {
        let scratch = &mut *lock(&self.scratch[thread]);
        let (rows, memory) = &self.blocks[block];
        let states = &mut *lock(&memory.states);
        if let Some(layer) = step.checked_sub(1) {
            self.attend(layer % 2, block, scratch);
            self.transform(&self.model.layers[layer], states, scratch, |linear, input| {
                observe(layer, linear, input);
            });
        } else {
            states.resize(rows.len() * self.model.shape().hidden, 0.0);
            self.embed(rows, states, &mut scratch.word)?;
            self.normalize(states, &self.model.norm);
        }
        if let Some(layer) = self.model.layers.get(step) {
            observe(step, Linear::Attention, states);
            self.project(&layer.attention, states, &memory.attention[step % 2], scratch);
        }
        Ok(())
    }

    /// Word, token type and position embeddings of `rows`, added.
    fn embed(&self, rows: &Range<usize>, states: &mut [f32], word: &mut Vec<u8>) -> Result<()> {
        let model = &*self.model;
        let hidden = model.shape().hidden;
        let mut states = states.chunks_exact_mut(hidden);
        for text in &self.texts {
            for row in overlap(text, rows) {
                let Some(state) = states.next() else { break };
                model.read_word(self.tokens[row], word, state)?;
                let position = (row - text.start) * hidden;
                let position = &model.positions[position..position + hidden];
                for ((number, token_type), position) in state.iter_mut().zip(&model.token_type).zip(position)
                {
                    *number = *number + token_type + position;
                }
            }
        }
        Ok(())
    }

    /// Queries, keys and values of the rows of `states`.
    fn project(&self, dense: &Dense, states: &[f32], segment: &RwLock<Segment>, scratch: &mut Scratch) {
        let segment = &mut *segment.write().unwrap_or_else(PoisonError::into_inner);
        let Segment {
            floats,
            shorts,
            scales,
        } = segment;
        let Scratch { inner, bytes, .. } = scratch;
        let count = states.len() * 3;
        match self.model.precision() {
            Precision::Float32 => {
                floats.resize(count, 0.0);
                self.dense(dense, states, Epilogue::Store, floats, bytes);
            }
            Precision::Int8 => {
                shorts.resize(count, 0);
                scales.resize(count / HEAD, 0.0);
                let size = ROWS_AT_A_TIME * self.model.shape().hidden;
                let parts = shorts
                    .chunks_mut(3 * size)
                    .zip(scales.chunks_mut(3 * size / HEAD));
                for (states, (shorts, scales)) in states.chunks(size).zip(parts) {
                    inner.resize(states.len() * 3, 0.0);
                    self.dense(dense, states, Epilogue::Store, inner, bytes);
                    self.isa.run(ToShorts {
                        floats: inner,
                        shorts,
                        scales,
                    });
                }
            }
        }
    }

    /// The context of the rows of a block, text by text.
    fn attend(&self, segment: usize, block: usize, scratch: &mut Scratch) {
        let hidden = self.model.shape().hidden;
        let segments = self.blocks.iter().map(|(rows, block)| {
            let segment = block.attention[segment].read();
            (rows, segment.unwrap_or_else(PoisonError::into_inner))
        });
        let segments: Vec<(&Range<usize>, RwLockReadGuard<Segment>)> = segments.collect();
        let (block, queries) = &segments[block];
        scratch.context.resize(block.len() * hidden, 0.0);
        for text in &self.texts {
            let common = overlap(text, block);
            if common.is_empty() {
                continue;
            }
            let parts = segments.iter().filter_map(|(rows, segment)| {
                let common = overlap(text, rows);
                let common = common.start - rows.start..common.end.max(rows.start) - rows.start;
                (!common.is_empty()).then(|| segment.part(common, hidden))
            });
            let parts: Vec<Part> = parts.collect();
            let attention = Attention {
                text: &parts,
                own: queries.part(0..block.len(), hidden),
                hidden,
            };
            let queries = common.start - block.start..common.end - block.start;
            let context = &mut scratch.context[queries.start * hidden..queries.end * hidden];
            match self.model.precision() {
                Precision::Float32 => self.isa.run(FloatAttention {
                    attention,
                    queries,
                    scratch: &mut scratch.attention,
                    context,
                }),
                Precision::Int8 => self.isa.run(ShortAttention {
                    attention,
                    queries,
                    scratch: &mut scratch.attention,
                    context,
                }),
            }
        }
    }

    /// From the context of some rows to their states after the layer.
    fn transform(
        &self,
        layer: &Layer,
        states: &mut [f32],
        scratch: &mut Scratch,
        mut observe: impl FnMut(Linear, &[f32]),
    ) {
        let hidden = self.model.shape().hidden;
        let Scratch {
            context,
            inner,
            bytes,
            ..
        } = scratch;
        observe(Linear::Output, context);
        self.dense(&layer.output, context, Epilogue::Add, states, bytes);
        self.normalize(states, &layer.attention_norm);
        for block in states.chunks_mut(ROWS_AT_A_TIME * hidden) {
            inner.resize(block.len() / hidden * layer.up.outputs(), 0.0);
            observe(Linear::Up, block);
            self.dense(&layer.up, block, Epilogue::Gelu, inner, bytes);
            observe(Linear::Down, inner);
            self.dense(&layer.down, inner, Epilogue::Add, block, bytes);
            self.normalize(block, &layer.norm);
        }
    }

    fn dense(
        &self,
        dense: &Dense,
        input: &[f32],
        epilogue: Epilogue,
        output: &mut [f32],
        rows: &mut ByteRows,
    ) {
        let output_step = dense.outputs();
        match dense {
            Dense::Floats(weights) => self.isa.run(FloatDense {
                input,
                weights,
                epilogue,
                output,
                output_step,
            }),
            Dense::Bytes(weights) => {
                self.isa.run(ToBytes {
                    input,
                    scales: &weights.input_scales,
                    rows,
                });
                self.isa.run(ByteDense {
                    input: rows,
                    weights,
                    epilogue,
                    output,
                    output_step,
                });
            }
        }
    }

    fn normalize(&self, rows: &mut [f32], norm: &Norm) {
        let (scale, shift) = (&norm.scale, &norm.shift);
        #[allow(clippy::cast_possible_truncation)] // Rounding to single precision is the intent.
        let epsilon = LAYER_NORM_EPSILON as f32;
        self.isa.run(Normalize {
            rows,
            scale,
            shift,
            epsilon,
        });
    }

    /// Returns the mean of the tokens' states, scaled to length one.
    fn pool(&self, text: &Range<usize>) -> Result<Vec<f32>> {
        let hidden = self.model.shape().hidden;
        let mut sums = vec![0.0_f64; hidden];
        for (rows, block) in &self.blocks {
            let states = lock(&block.states);
            for row in overlap(text, rows) {
                let state = (row - rows.start) * hidden;
                for (sum, &number) in sums.iter_mut().zip(&states[state..state + hidden]) {
                    *sum += f64::from(number);
                }
            }
        }
        unit_mean(&sums, text.len())
    }
}

/// Returns the mean of `count` vectors with these sums, scaled to length one. Rounds to single precision after the mean and after the scaling.
///
/// # Errors
/// [`Error::NotFinite`].
pub fn unit_mean(sums: &[f64], count: usize) -> Result<Vec<f32>> {
    #[allow(clippy::cast_precision_loss)] // A few thousand at most.
    let count = count as f64;
    #[allow(clippy::cast_possible_truncation)] // Rounding is the intent.
    let mean: Vec<f32> = sums.iter().map(|sum| (sum / count) as f32).collect();
    let squares: f64 = mean.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    let norm = squares.sqrt();
    if !norm.is_finite() || norm == 0.0 {
        return Err(Error::NotFinite);
    }
    #[allow(clippy::cast_possible_truncation)]
    Ok(mean.iter().map(|&x| (f64::from(x) / norm) as f32).collect())
}

impl Segment {
    fn part(&self, rows: Range<usize>, hidden: usize) -> Part<'_> {
        /// The numbers of `rows`, `step` for each; nothing in the format that the model does not have.
        fn of<'a, T>(numbers: &'a [T], rows: &Range<usize>, step: usize) -> &'a [T] {
            numbers.get(rows.start * step..rows.end * step).unwrap_or(&[])
        }
        Part {
            floats: of(&self.floats, &rows, 3 * hidden),
            shorts: of(&self.shorts, &rows, 3 * hidden),
            scales: of(&self.scales, &rows, 3 * hidden / HEAD),
        }
    }
}

/// Returns the rows of each block of a pass: large blocks first, which read the weights less often, and small ones last, so
/// that all threads finish together. Each is about one thread's part of the remaining rows.
fn row_blocks(rows: usize, threads: usize) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut start = 0;
    while threads > 1 && rows - start > BLOCK_ROWS * threads {
        let size = (rows - start) / threads / BLOCK_ROWS * BLOCK_ROWS;
        blocks.push(start..start + size);
        start += size;
    }
    let left = rows - start;
    let count = (left / SMALLEST_BLOCK).clamp(1, threads);
    blocks.extend((0..count).map(|block| start + left * block / count..start + left * (block + 1) / count));
    blocks
}

/// Returns the texts of each pass of at most `room` tokens, or of one text.
pub fn passes<T: AsRef<[u32]>>(texts: &[T], room: usize) -> impl Iterator<Item = &[T]> {
    let mut rest = texts;
    iter::from_fn(move || {
        let mut tokens = 0;
        let fitting = rest.iter().take_while(|text| {
            tokens += text.as_ref().len();
            tokens <= room
        });
        let (together, later) = rest.split_at_checked(fitting.count().max(1))?;
        rest = later;
        Some(together)
    })
}

/// Returns the rows that both ranges have.
fn overlap(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_blocks_are_all_rows_in_order() {
        for threads in [1, 2, 3, 8, 64] {
            for rows in 1..=600 {
                let blocks = row_blocks(rows, threads);
                assert_eq!((blocks[0].start, blocks[blocks.len() - 1].end), (0, rows));
                assert!(blocks.windows(2).all(|two| two[0].end == two[1].start));
                let smallest = blocks.iter().map(Range::len).min().unwrap();
                assert!(smallest >= SMALLEST_BLOCK.min(rows), "{threads} {blocks:?}");
                assert!(threads > 1 || blocks.len() == 1);
            }
        }
        assert_eq!(row_blocks(15, 2).len(), 1);
        assert_eq!(row_blocks(54, 2), [0..27, 27..54]);
        assert_eq!(
            row_blocks(512, 2),
            [0..256, 256..384, 384..448, 448..480, 480..512]
        );
    }
}
