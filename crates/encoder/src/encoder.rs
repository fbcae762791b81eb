//! The forward pass.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard},
};

use crate::{
    error::{Error, Result},
    kernels::{
        ByteDense, FloatAttention, FloatDense, Kernel, Leaf, Normalize, ShortAttention, ToBytes, ToShorts,
        attention::{Attention, HEAD, Part, Scratch},
        dense::{ByteRows, Epilogue},
    },
    model::{Dense, EPSILON, Model, Norm, Precision},
    team::{Barrier, Stop, Team, lock},
};

/// Rows that a thread takes through a feed-forward block at a time: its inside, 1,536 numbers for each row, then stays in
/// the processor's second cache.
const BLOCK: usize = 48;

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
    memory: Arc<Memory>,
    watch: Option<Watch>,
}

/// What a pass works in.
#[derive(Debug)]
struct Memory {
    threads: Vec<Mutex<Own>>,
    /// Queries, keys and values, of each thread its rows. The layers alternate between the two: while one thread still reads
    /// those of a layer, another may write those of the next.
    attention: [Vec<RwLock<Segment>>; 2],
}

/// What belongs to one thread.
#[derive(Debug, Default)]
struct Own {
    /// The state of each of the thread's tokens.
    states: Vec<f32>,
    context: Vec<f32>,
    inner: Vec<f32>,
    bytes: ByteRows,
    scratch: Scratch,
    word: Vec<u8>,
}

/// The queries, keys and values of a thread's rows: see [`Part`].
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
    memory: Arc<Memory>,
    /// The tokens of all texts, one text after another.
    tokens: Vec<u32>,
    /// Where each text lies.
    texts: Vec<Range<usize>>,
    /// The rows of each thread.
    shares: Vec<Range<usize>>,
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
        let segments = || (0..team.threads()).map(|_| RwLock::default()).collect();
        let memory = Memory {
            threads: (0..team.threads()).map(|_| Mutex::default()).collect(),
            attention: [segments(), segments()],
        };
        Ok(Self {
            model,
            kernel,
            leaf,
            team,
            memory: Arc::new(memory),
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
            memory: Arc::clone(&self.memory),
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
        let (rows, threads) = (pass.tokens.len(), self.team.threads());
        pass.shares = (0..threads)
            .map(|thread| rows * thread / threads..rows * (thread + 1) / threads)
            .collect();
        let pass = Arc::new(pass);
        let job = Arc::clone(&pass);
        self.team
            .run(Arc::new(move |thread, barrier| job.run(thread, barrier)))?;
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
    /// What each thread does: its rows through all layers. Only attention looks at the rows of others, so there is one
    /// barrier a layer.
    fn run(&self, thread: usize, barrier: &Barrier) -> Result<(), Stop> {
        let own = &mut *lock(&self.memory.threads[thread]);
        let hidden = self.model.shape().hidden;
        own.states.resize(self.shares[thread].len() * hidden, 0.0);
        own.context.resize(own.states.len(), 0.0);
        self.embed(thread, own)?;
        self.normalize(&mut own.states, &self.model.norm);
        for (index, layer) in self.model.layers.iter().enumerate() {
            let segments = &self.memory.attention[index % 2];
            self.project(&layer.attention, own, &segments[thread]);
            barrier.wait()?;
            self.attend(thread, segments, own);
            let Own {
                states,
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
        Ok(())
    }

    /// Word, token type and position embeddings, added.
    fn embed(&self, thread: usize, own: &mut Own) -> Result<()> {
        let model = &*self.model;
        let hidden = model.shape().hidden;
        let mut states = own.states.chunks_exact_mut(hidden);
        for text in &self.texts {
            for row in overlap(text, &self.shares[thread]) {
                let Some(state) = states.next() else { break };
                model.read_word(self.tokens[row], &mut own.word, state)?;
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

    /// Queries, keys and values of the thread's rows.
    fn project(&self, dense: &Dense, own: &mut Own, segment: &RwLock<Segment>) {
        let segment = &mut *segment.write().unwrap_or_else(PoisonError::into_inner);
        segment.floats.resize(own.states.len() * 3, 0.0);
        self.dense(
            dense,
            &own.states,
            Epilogue::Store,
            &mut segment.floats,
            &mut own.bytes,
        );
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

    /// The context of the thread's rows, text by text.
    fn attend(&self, thread: usize, segments: &[RwLock<Segment>], own: &mut Own) {
        let hidden = self.model.shape().hidden;
        let share = &self.shares[thread];
        let segments: Vec<RwLockReadGuard<Segment>> = segments
            .iter()
            .map(|segment| segment.read().unwrap_or_else(PoisonError::into_inner))
            .collect();
        for text in &self.texts {
            let queries = overlap(text, share);
            if queries.is_empty() {
                continue;
            }
            let parts: Vec<Part> = segments
                .iter()
                .zip(&self.shares)
                .filter_map(|(segment, share)| {
                    let rows = overlap(text, share);
                    let rows = rows.start - share.start..rows.end.max(rows.start) - share.start;
                    (!rows.is_empty()).then(|| segment.part(rows, hidden))
                })
                .collect();
            let attention = Attention {
                text: &parts,
                own: segments[thread].part(0..share.len(), hidden),
                hidden,
            };
            let queries = queries.start - share.start..queries.end - share.start;
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
        self.leaf.run(Normalize {
            rows,
            scale,
            shift,
            epsilon: EPSILON,
        });
    }

    /// The mean of the tokens' states, scaled to length one. Sums in double precision and rounds after the mean and after
    /// the scaling.
    fn pool(&self, text: &Range<usize>) -> Result<Vec<f32>> {
        let hidden = self.model.shape().hidden;
        let mut sums = vec![0.0_f64; hidden];
        for (own, share) in self.memory.threads.iter().zip(&self.shares) {
            let own = lock(own);
            for row in overlap(text, share) {
                let state = (row - share.start) * hidden;
                for (sum, &number) in sums.iter_mut().zip(&own.states[state..state + hidden]) {
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

/// The texts of each pass.
pub(crate) fn passes<T: AsRef<[u32]>>(texts: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = texts;
    std::iter::from_fn(move || {
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
