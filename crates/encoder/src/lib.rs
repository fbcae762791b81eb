//! all-MiniLM-L6-v2 (and BERT encoders of its kind) on the CPU, in pure Rust: text or token ids in, embedding out.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use knowledgepulse_encoder::{Encoder, Model, Options, Tokenizer};
//!
//! # fn main() -> knowledgepulse_encoder::Result<()> {
//! // The official file, or the int8 file that `tools/quantize` makes of it.
//! let model = Arc::new(Model::open("model.safetensors", 2)?);
//! let tokenizer = Tokenizer::from_json(&std::fs::read("tokenizer.json")?, model.shape().positions)?;
//! let mut encoder = Encoder::new(model, Options::default())?;
//!
//! let tokens = tokenizer.encode("this is an example sentence");
//! assert_eq!(tokens.ids, [101, 2023, 2003, 2019, 2742, 6251, 102]);
//! let embedding = encoder.embed(&tokens.ids)?;
//! assert_eq!(embedding.len(), 384);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Model`] is the weights, checked and packed; any number of [`Encoder`]s share it, each with threads of its own. The
//! embedding is the mean of the tokens' last states, scaled to length one. A [`Tokenizer`] is needed only for text.
//!
//! # Which models
//!
//! Models with BERT's layers and the tensor names of `sentence-transformers/all-MiniLM-L6-v2`, heads of 32 numbers, the
//! exact (`erf`) activation and a layer normalisation with an epsilon of 1e-12. The file has the sizes: see [`Shape`]. All
//! tokens are of type 0.
//!
//! # What the bits depend on
//!
//! - An embedding never depends on the number of threads, on the texts beside it, or on the encoder's earlier texts.
//! - In eight bits ([`Precision::Int8`]) it is the same on every kernel and every processor.
//! - In single precision it is the same on every kernel with a fused multiplication, and within 1e-6 (each component) of
//!   ONNX Runtime's on all.
//!
//! `DESIGN.md` beside this crate explains how it works, and lists the experiments.
//!
//! # Platforms
//!
//! Every little-endian one. On a big-endian one the crate does not compile, because it reads the weights as they are in the file.
//!
//! # Kernels
//!
//! [`Kernel`] lists the instruction sets. The fastest that the processor has is used, unless [`Options::kernel`] or the
//! environment variable `KNOWLEDGEPULSE_KERNEL` names another.

#[cfg(target_endian = "big")]
compile_error!("weights are read, and packed for the kernels, as the little-endian numbers of the file");

pub use encoder::{Encoder, Options};
#[doc(hidden)] // For `tools/quantize` and the other engine.
pub use encoder::{Linear, PASS_TOKENS, passes, unit_mean};
pub use error::{Error, Result};
pub use kernels::attention::HEAD as HEAD_WIDTH;
pub use kernels::dots::{GROUP, Group};
pub use kernels::{Kernel, dots};
pub use model::{LAYER_NORM_EPSILON, MAX_TOKENS, Model, Precision, Shape};
pub use source::Source;
pub use tokenizer::{Tokenizer, Tokens};

mod encoder;
mod error;
mod file;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod kernels;
mod model;
mod source;
mod thread_pool;
pub mod tokenizer;

#[cfg(test)]
#[path = "../../trace/tests/texts/mod.rs"]
mod nasty_text;
