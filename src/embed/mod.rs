//! From text to embedding: the model turns the tokens into vectors, whose mean is scaled to length one.

pub mod model;
pub mod runtime;

pub use model::DIMENSIONS;

use std::{
    num::NonZeroUsize,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use knowledgepulse_encoder::{Tokenizer, Tokens};
use lru::LruCache;
use ort::{
    session::Session,
    value::{Outlet, TensorRef},
};

use crate::{
    embed::model::ModelFiles,
    embed::runtime::{Network, Runtime, check_room},
    error::{Error, Result},
    fault,
};

/// An embedding: 384 numbers whose squares add up to one.
pub type Embedding = [f32; DIMENSIONS];

/// The embedding of a text, and how much of the text it stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// The embedding.
    pub embedding: Box<Embedding>,
    /// How many tokens were embedded, special ones included.
    pub tokens: usize,
    /// Whether the text had more tokens.
    pub truncated: bool,
}

/// The inputs that a BERT export may have, in the order in which [`Embedder`] makes them.
const INPUTS: [&str; 3] = ["input_ids", "attention_mask", "token_type_ids"];

/// The output that holds one vector per token.
const OUTPUT: &str = "last_hidden_state";

/// The most tokens that are kept of a text, whatever the model's files say, because the SDK's model has 512 positions.
pub const MOST_TOKENS: usize = 512;

/// How many embeddings are kept for texts that are embedded again: about 4 KB each.
const MEMO_CAPACITY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1023);

/// A loaded model, shared by the lanes that run it.
pub struct Embedder {
    runtime: &'static Runtime,
    network: Network,
    tokenizer: Tokenizer,
    memo: Mutex<LruCache<Box<[u32]>, Embedding>>,
}

/// A session of a model. One lane embeds one text at a time, on its own threads.
pub struct Lane {
    session: Session,
}

impl Embedder {
    /// Loads the model of `files` and its first lane, which computes on `threads` threads.
    ///
    /// # Errors
    /// [`Error::ModelDamaged`], [`Error::ModelUnsupported`] or [`Error::Tokenizer`].
    pub fn load(runtime: &'static Runtime, files: ModelFiles, threads: usize) -> Result<(Self, Lane)> {
        // In parallel, because the tokenizer and the session take tens of milliseconds each.
        let (tokenizer, first) = thread::scope(|scope| {
            let tokenizer = || read_tokenizer(&files);
            let other = thread::Builder::new().spawn_scoped(scope, tokenizer);
            let network =
                Network::open(&files.model).map_err(|error| damaged(&files.model, error.to_string()));
            let first = network.and_then(|network| {
                // If no further threads may be started, one thread is enough.
                let lane = Lane::open(runtime, &network, threads)
                    .or_else(|error| Lane::open(runtime, &network, 1).map_err(|_| error))?;
                Ok((network, lane))
            });
            let tokenizer = match other {
                Ok(other) => other
                    .join()
                    .unwrap_or_else(|panic| Err(Error::from_panic(&*panic))),
                // If no second thread may be started, one after the other works too.
                Err(_) => tokenizer(),
            };
            (tokenizer, first)
        });
        let (network, lane) = first?;
        let embedder = Self {
            runtime,
            network,
            tokenizer: tokenizer?,
            memo: Mutex::new(LruCache::new(MEMO_CAPACITY)),
        };
        Ok((embedder, lane))
    }

    /// Opens a further lane.
    ///
    /// # Errors
    /// [`Error::ModelDamaged`], if the file has changed since, or if memory or threads are short.
    pub fn open_lane(&self, threads: usize) -> Result<Lane> {
        check_room(self.network.path())?;
        Lane::open(self.runtime, &self.network, threads)
    }

    /// Embeds the first 512 tokens of `text` on `lane`. If the same tokens were embedded before, the embedding of then is
    /// returned.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] or [`Error::Inference`].
    pub fn embed(&self, lane: &mut Lane, text: &str) -> Result<Embedded> {
        let Tokens { ids, truncated } = self.tokenizer.encode(text);
        let tokens = ids.len();
        Ok(Embedded {
            embedding: Box::new(self.embed_tokens(lane, ids)?),
            tokens,
            truncated,
        })
    }

    /// Embeds the whole `text`. If it has more than 512 tokens it is embedded in parts, and its embedding is the mean of theirs,
    /// weighted by their tokens.
    ///
    /// # Errors
    /// The errors of [`Embedder::embed`].
    pub fn embed_whole(&self, lane: &mut Lane, text: &str) -> Result<Embedded> {
        let mut tokens = 0;
        let mut embeddings = Vec::new();
        for ids in self.tokenizer.encode_whole(text) {
            tokens += ids.len();
            embeddings.push((ids.len(), self.embed_tokens(lane, ids)?));
        }
        let embedding = match &embeddings[..] {
            [(_, embedding)] => *embedding,
            _ => mean(&embeddings)?,
        };
        Ok(Embedded {
            embedding: Box::new(embedding),
            tokens,
            truncated: false,
        })
    }

    fn embed_tokens(&self, lane: &mut Lane, ids: Vec<u32>) -> Result<Embedding> {
        let known = self.memo().get(ids.as_slice()).copied();
        if let Some(embedding) = known {
            return Ok(embedding);
        }
        let embedding = lane.run(self.runtime, &ids)?;
        self.memo().put(ids.into_boxed_slice(), embedding);
        Ok(embedding)
    }

    fn memo(&self) -> MutexGuard<'_, LruCache<Box<[u32]>, Embedding>> {
        self.memo.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    fn open(runtime: &Runtime, network: &Network, threads: usize) -> Result<Self> {
        fault::point("lane");
        let session = runtime
            .session(network, threads)
            .map_err(|reason| damaged(network.path(), reason))?;
        let unsupported = |reason: String| Error::ModelUnsupported {
            path: network.path().to_owned(),
            reason,
        };
        let mut inputs = session.inputs().iter().map(Outlet::name);
        if let Some(input) = inputs.find(|input| !INPUTS.contains(input)) {
            return Err(unsupported(format!("it wants the input `{input}`")));
        }
        if !session.outputs().iter().any(|output| output.name() == OUTPUT) {
            return Err(unsupported(format!("it has no output `{OUTPUT}`")));
        }
        Ok(Self { session })
    }

    fn run(&mut self, runtime: &Runtime, ids: &[u32]) -> Result<Embedding> {
        fault::point("embedding");
        let failed = |error: ort::Error| Error::Inference(error.to_string());
        let ids: Vec<i64> = ids.iter().copied().map(i64::from).collect();
        let length = ids.len();
        // A single text is not padded, so every token is attended to, and all belong to segment 0.
        let attention_mask = vec![1_i64; length];
        let token_type_ids = vec![0_i64; length];
        let values = [&ids[..], &attention_mask, &token_type_ids];
        let mut inputs = Vec::with_capacity(INPUTS.len());
        for (name, values) in INPUTS.into_iter().zip(values) {
            if self.session.inputs().iter().any(|input| input.name() == name) {
                let tensor = TensorRef::from_array_view(([1, length], values));
                inputs.push((name, tensor.map_err(failed)?));
            }
        }
        let session = &mut self.session;
        runtime.run(|options| {
            let outputs = session.run_with_options(inputs, options).map_err(failed)?;
            let (shape, states) = outputs[OUTPUT].try_extract_tensor::<f32>().map_err(failed)?;
            if **shape != [1, to_i64(length), to_i64(DIMENSIONS)] {
                return Err(Error::Inference(format!("unexpected output shape {shape}")));
            }
            pool(states)
        })
    }
}

/// The tokenizer of a model.
///
/// # Errors
/// Those of [`ModelFiles::read_tokenizer`], or [`Error::Tokenizer`].
pub fn read_tokenizer(files: &ModelFiles) -> Result<Tokenizer> {
    fault::point("tokenizer");
    Ok(Tokenizer::from_json(&files.read_tokenizer()?, files.max_length)?)
}

fn damaged(path: &Path, reason: String) -> Error {
    Error::ModelDamaged {
        path: path.to_owned(),
        reason,
    }
}

fn to_i64(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// The mean of the tokens' vectors, scaled to length one. As in the SDK, sums are in double precision, and the result is rounded to
/// single precision after the mean and after the scaling.
fn pool(states: &[f32]) -> Result<Embedding> {
    let (tokens, _) = states.as_chunks::<DIMENSIONS>();
    let mut sums = [0.0_f64; DIMENSIONS];
    for token in tokens {
        for (sum, &component) in sums.iter_mut().zip(token) {
            *sum += f64::from(component);
        }
    }
    #[allow(clippy::cast_precision_loss)] // At most 512 tokens.
    let count = tokens.len() as f64;
    #[allow(clippy::cast_possible_truncation)] // Rounding is the intent.
    scaled(sums.map(|sum| (sum / count) as f32))
}

/// The mean of embeddings, each weighted by its count, scaled to length one.
fn mean(embeddings: &[(usize, Embedding)]) -> Result<Embedding> {
    let mut sums = [0.0_f64; DIMENSIONS];
    for (count, embedding) in embeddings {
        #[allow(clippy::cast_precision_loss)] // At most 512 tokens.
        let count = *count as f64;
        for (sum, &component) in sums.iter_mut().zip(embedding) {
            *sum += count * f64::from(component);
        }
    }
    #[allow(clippy::cast_possible_truncation)] // Rounding is the intent.
    scaled(sums.map(|sum| sum as f32))
}

/// `vector`, scaled to length one.
fn scaled(vector: Embedding) -> Result<Embedding> {
    let squares: f64 = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    let norm = squares.sqrt();
    if !norm.is_finite() || norm == 0.0 {
        return Err(Error::Inference("the model's output is not finite".into()));
    }
    #[allow(clippy::cast_possible_truncation)]
    Ok(vector.map(|x| (f64::from(x) / norm) as f32))
}

#[cfg(test)]
#[path = "../../crates/encoder/src/tokenizer/fixtures.rs"]
pub(crate) mod fixtures;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooling_is_the_scaled_mean() {
        let mut states = vec![0.0; 2 * DIMENSIONS];
        states[0] = 3.0;
        states[DIMENSIONS] = 3.0;
        states[1] = 8.0;
        let embedding = pool(&states).unwrap();
        assert!((embedding[0] - 0.6).abs() < 1e-7);
        assert!((embedding[1] - 0.8).abs() < 1e-7);
        assert_eq!(embedding[2], 0.0);
    }

    #[test]
    fn the_mean_of_embeddings_counts_their_tokens() {
        let direction = |axis: usize| {
            let mut embedding = [0.0; DIMENSIONS];
            embedding[axis] = 1.0;
            embedding
        };
        let embedding = mean(&[(6, direction(0)), (8, direction(1))]).unwrap();
        assert!((embedding[0] - 0.6).abs() < 1e-7);
        assert!((embedding[1] - 0.8).abs() < 1e-7);
        let opposite = direction(0).map(|x: f32| -x);
        let error = mean(&[(1, direction(0)), (1, opposite)]).unwrap_err();
        assert_eq!(error.code(), "ERR_INFERENCE");
    }

    #[test]
    fn a_model_that_outputs_nonsense_is_an_error() {
        for nonsense in [f32::NAN, f32::INFINITY, 0.0] {
            let states = vec![nonsense; DIMENSIONS];
            assert_eq!(pool(&states).unwrap_err().code(), "ERR_INFERENCE");
        }
    }
}
