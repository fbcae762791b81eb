//! all-MiniLM-L6-v2 on the CPU: token ids in, embedding out.
pub use encoder::{Encoder, Options};
pub use error::{Error, Result};
pub use kernels::Kernel;
pub use model::{MAX_TOKENS, Model, Precision, Shape};
pub use quantize::quantize;
pub use source::Source;

mod encoder;
mod error;
mod file;
mod kernels;
mod model;
mod quantize;
mod source;
mod team;
