//! The forward pass.

use std::{
    fmt, iter,
    ops::Range,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard},
};

use crate::{
    error::{Error, Result},
    kernels::{
        ByteDense, FloatAttention, FloatDense, Kernel, Leaf, Normalize, ShortAttention, ToBytes, ToShorts,
        attention::{Attention, HEAD, Part, Scratch},
        dense::{ByteRows, Epilogue},
        tile::MAX_ROWS,
    },
    model::{Dense, LAYER_NORM_EPSILON, Layer, Model, Norm, Precision},
    team::{Team, lock},
};

/// Rows that a thread takes through a feed-forward block at a time: its inside, 1,536 numbers for each row, then stays in
/// the processor's second cache.
const BLOCK: usize = 48;

/// The rows of a share are a multiple of this, but for the last ones: a block of queries.
const SHARE: usize = 32;

/// A share has no fewer rows, unless a pass does: it would read the weights for longer than it multiplies with them. So what has few
/// tokens is computed by one thread; DESIGN.md has the figures.
const SMALLEST_SHARE: usize = MAX_ROWS;

/// Tokens that a pass takes at most, unless a single text has more. More would gain nothing.
const PASS: usize = 512;

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
    leaf: Leaf,
    team: Team,
    /// What each thread works in.
    own: Arc<[Mutex<Own>]>,
    /// As many as a pass has had at most.
    shares: Vec<Arc<Share>>,
    watch: Option<Watch>,
}

/// Some rows of a pass, which one thread at a time takes through a step.
#[derive(Debug, Default)]
struct Share {
    /// The state of each token.
    states: Mutex<Vec<f32>>,
    /// The layers alternate between the two: while some threads still read those of a layer, another may write those of the next.
    attention: [RwLock<Segment>; 2],
}

/// What belongs to one thread.
#[derive(Debug, Default)]
struct Own {
    context: Vec<f32>,
    inner: Vec<f32>,
    bytes: ByteRows,
    scratch: Scratch,
    word: Vec<u8>,
}

/// The queries, keys and values of some rows: see [`Part`].
#[derive(Debug, Default)]
struct Segment {
    floats: Vec<f32>,
    shorts: Vec<i16>,
    scales: Vec<f32>,
}

/// Sees the inputs of every linear layer.
pub(crate) type Watch = Arc<dyn Fn(&Dense, &[f32]) + Send + Sync>;

/// Texts that are computed together.
struct Pass {
    model: Arc<Model>,
    leaf: Leaf,
    own: Arc<[Mutex<Own>]>,
    /// The tokens of all texts, one text after another.
    tokens: Vec<u32>,
    /// Where each text lies.
    texts: Vec<Range<usize>>,
    /// The shares, and the rows of each.
    shares: Vec<(Range<usize>, Arc<Share>)>,
    watch: Option<Watch>,
}

impl Encoder {
    /// An encoder for `model`. It has fewer threads than asked for where the system starts no more.
    ///
    /// # Errors
    /// [`Error::KernelUnavailable`], or [`Error::UnknownKernel`] if the environment names none.
    pub fn new(model: Arc<Model>, options: Options) -> Result<Self> {
        let kernel = match (options.kernel, std::env::var("KNOWLEDGEPULSE_KERNEL")) {
            (Some(kernel), _) => kernel,
            (None, Ok(name)) if !name.is_empty() => name.parse()?,
            _ => Kernel::best(),
        };
        let threads = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            threads => threads,
        };
        let leaf = kernel.leaf().ok_or(Error::KernelUnavailable(kernel))?;
        let team = Team::new(threads);
        Ok(Self {
            model,
            kernel,
            leaf,
            own: (0..team.threads()).map(|_| Mutex::default()).collect(),
            shares: Vec::new(),
            team,
            watch: None,
        })
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The kernel that it computes with.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The functions of its kernel.
    pub(crate) fn leaf(&self) -> Leaf {
        self.leaf
    }

    /// Shows `watch` the inputs of every linear layer from now on.
    pub(crate) fn watch(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    /// How many threads it has, the caller's included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.team.threads()
    }

    /// The embedding of a text that is given as its tokens, special ones included: the mean of the tokens' last states, at
    /// length one.
    ///
    /// # Errors
    /// [`Error::NoTokens`], [`Error::TooManyTokens`], [`Error::UnknownToken`], [`Error::NotFinite`], [`Error::Read`] if the
    /// word embeddings cannot be read any more, or [`Error::Panicked`].
    pub fn embed(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        let mut embeddings = self.embed_batch(&[tokens])?;
        embeddings.pop().ok_or(Error::NoTokens)
    }

    /// The embeddings of several texts, each the same to the bit as alone. Short texts share passes, which takes less time
    /// than one after another.
    ///
    /// # Errors
    /// As [`Self::embed`].
    pub fn embed_batch(&mut self, texts: &[impl AsRef<[u32]>]) -> Result<Vec<Vec<f32>>> {
        for text in texts {
            self.check(text.as_ref())?;
        }
        let mut embeddings = Vec::with_capacity(texts.len());
        for together in passes(texts) {
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

    fn pass(&mut self, texts: &[impl AsRef<[u32]>]) -> Result<Vec<Vec<f32>>> {
        let mut pass = Pass {
            model: Arc::clone(&self.model),
            leaf: self.leaf,
            own: Arc::clone(&self.own),
            tokens: Vec::new(),
            texts: Vec::with_capacity(texts.len()),
            shares: Vec::new(),
            watch: self.watch.clone(),
        };
        for text in texts {
            let start = pass.tokens.len();
            pass.tokens.extend_from_slice(text.as_ref());
            pass.texts.push(start..pass.tokens.len());
        }
        let shares = shares(pass.tokens.len(), self.team.threads());
        self.shares
            .resize_with(self.shares.len().max(shares.len()), Arc::default);
        pass.shares = shares.into_iter().zip(self.shares.iter().cloned()).collect();
        let pass = Arc::new(pass);
        let steps = iter::repeat_n(pass.shares.len(), self.model.layers.len() + 1);
        let work = Arc::clone(&pass);
        self.team.run(
            steps,
            Box::new(move |thread, step, share| work.step(thread, step, share)),
        )?;
        pass.texts.iter().map(|text| pass.pool(text)).collect()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let mut debug = formatter.debug_struct("Encoder");
        debug
            .field("model", &self.model.shape())
            .field("precision", &self.model.precision());
        debug
            .field("kernel", &self.kernel)
            .field("threads", &self.threads())
            .finish()
    }
}

impl Pass {
    /// What is done for a share. Only attention looks at the rows of others, so a step goes from a layer's attention to the
    /// queries, keys and values of the next layer.
    fn step(&self, thread: usize, step: usize, share: usize) -> Result<()> {
        let own = &mut *lock(&self.own[thread]);
        let (rows, memory) = &self.shares[share];
        let states = &mut *lock(&memory.states);
        if let Some(layer) = step.checked_sub(1) {
            self.attend(layer % 2, share, own);
            self.transform(&self.model.layers[layer], states, own);
        } else {
            states.resize(rows.len() * self.model.shape().hidden, 0.0);
            self.embed(rows, states, &mut own.word)?;
            self.normalize(states, &self.model.norm);
        }
        if let Some(layer) = self.model.layers.get(step) {
            self.project(&layer.attention, states, &memory.attention[step % 2], own);
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
    fn project(&self, dense: &Dense, states: &[f32], segment: &RwLock<Segment>, own: &mut Own) {
        let segment = &mut *segment.write().unwrap_or_else(PoisonError::into_inner);
        segment.floats.resize(states.len() * 3, 0.0);
        let floats = &mut segment.floats;
        self.dense(dense, states, Epilogue::Store, floats, &mut own.bytes);
        if self.model.precision() == Precision::Int8 {
            segment.shorts.resize(segment.floats.len(), 0);
            segment.scales.resize(segment.floats.len() / HEAD, 0.0);
            self.leaf.run(ToShorts {
                floats: &segment.floats,
                shorts: &mut segment.shorts,
                scales: &mut segment.scales,
            });
        }
    }

    /// The context of the rows of a share, text by text.
    fn attend(&self, segment: usize, share: usize, own: &mut Own) {
        let hidden = self.model.shape().hidden;
        let segments = self.shares.iter().map(|(rows, share)| {
            let segment = share.attention[segment].read();
            (rows, segment.unwrap_or_else(PoisonError::into_inner))
        });
        let segments: Vec<(&Range<usize>, RwLockReadGuard<Segment>)> = segments.collect();
        let (share, queries) = &segments[share];
        own.context.resize(share.len() * hidden, 0.0);
        for text in &self.texts {
            let common = overlap(text, share);
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
                own: queries.part(0..share.len(), hidden),
                hidden,
            };
            let queries = common.start - share.start..common.end - share.start;
            let context = &mut own.context[queries.start * hidden..queries.end * hidden];
            let scratch = &mut own.scratch;
            match self.model.precision() {
                Precision::Float32 => self.leaf.run(FloatAttention {
                    attention,
                    queries,
                    scratch,
                    context,
                }),
                Precision::Int8 => self.leaf.run(ShortAttention {
                    attention,
                    queries,
                    scratch,
                    context,
                }),
            }
        }
    }

    /// From the context of some rows to their states after the layer.
    fn transform(&self, layer: &Layer, states: &mut [f32], own: &mut Own) {
        let hidden = self.model.shape().hidden;
        let Own {
            context,
            inner,
            bytes,
            ..
        } = own;
        self.dense(&layer.output, context, Epilogue::Add, states, bytes);
        self.normalize(states, &layer.attention_norm);
        for block in states.chunks_mut(BLOCK * hidden) {
            inner.resize(block.len() / hidden * layer.up.outputs(), 0.0);
            self.dense(&layer.up, block, Epilogue::Gelu, inner, bytes);
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
        if let Some(watch) = &self.watch {
            watch(dense, input);
        }
        let output_step = dense.outputs();
        match dense {
            Dense::Floats(weights) => self.leaf.run(FloatDense {
                input,
                weights,
                epilogue,
                output,
                output_step,
            }),
            Dense::Bytes(weights) => {
                self.leaf.run(ToBytes {
                    input,
                    scales: &weights.input_scales,
                    rows,
                });
                self.leaf.run(ByteDense {
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
        self.leaf.run(Normalize {
            rows,
            scale,
            shift,
            epsilon,
        });
    }

    /// The mean of the tokens' states, scaled to length one. Sums in double precision and rounds after the mean and after
    /// the scaling.
    fn pool(&self, text: &Range<usize>) -> Result<Vec<f32>> {
        let hidden = self.model.shape().hidden;
        let mut sums = vec![0.0_f64; hidden];
        for (rows, share) in &self.shares {
            let states = lock(&share.states);
            for row in overlap(text, rows) {
                let state = (row - rows.start) * hidden;
                for (sum, &number) in sums.iter_mut().zip(&states[state..state + hidden]) {
                    *sum += f64::from(number);
                }
            }
        }
        #[allow(clippy::cast_precision_loss)] // A few thousand at most.
        let count = text.len() as f64;
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
}

impl Segment {
    fn part(&self, rows: Range<usize>, hidden: usize) -> Part<'_> {
        let (step, scales) = (3 * hidden, 3 * hidden / HEAD);
        let quantized = !self.shorts.is_empty();
        Part {
            floats: &self.floats[rows.start * step..rows.end * step],
            shorts: if quantized {
                &self.shorts[rows.start * step..rows.end * step]
            } else {
                &[]
            },
            scales: if quantized {
                &self.scales[rows.start * scales..rows.end * scales]
            } else {
                &[]
            },
        }
    }
}

/// The rows of the shares of a pass: large ones first, which read the weights less often, and small ones last, so that all threads
/// finish together. Each is about what one thread would do of what is left.
fn shares(rows: usize, threads: usize) -> Vec<Range<usize>> {
    let mut shares = Vec::new();
    let mut start = 0;
    while threads > 1 && rows - start > SHARE * threads {
        let size = (rows - start) / threads / SHARE * SHARE;
        shares.push(start..start + size);
        start += size;
    }
    let left = rows - start;
    let count = (left / SMALLEST_SHARE).clamp(1, threads);
    shares.extend((0..count).map(|share| start + left * share / count..start + left * (share + 1) / count));
    shares
}

/// The texts of each pass.
pub(crate) fn passes<T: AsRef<[u32]>>(texts: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = texts;
    iter::from_fn(move || {
        let mut tokens = 0;
        let fitting = rest.iter().take_while(|text| {
            tokens += text.as_ref().len();
            tokens <= PASS
        });
        let (together, later) = rest.split_at_checked(fitting.count().max(1))?;
        rest = later;
        Some(together)
    })
}

/// The rows that both ranges have.
fn overlap(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_all_rows_in_order() {
        for threads in [1, 2, 3, 8, 64] {
            for rows in 1..=600 {
                let shares = shares(rows, threads);
                assert_eq!((shares[0].start, shares[shares.len() - 1].end), (0, rows));
                assert!(shares.windows(2).all(|two| two[0].end == two[1].start));
                let smallest = shares.iter().map(Range::len).min().unwrap();
                assert!(smallest >= SMALLEST_SHARE.min(rows), "{threads} {shares:?}");
                assert!(threads > 1 || shares.len() == 1);
            }
        }
        assert_eq!(shares(15, 2).len(), 1);
        assert_eq!(shares(54, 2), [0..27, 27..54]);
        assert_eq!(shares(512, 2), [0..256, 256..384, 384..448, 448..480, 480..512]);
    }
}
