//! Errors of the encoder.

use std::io;

use crate::Kernel;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the encoder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The weights cannot be read.
    #[error("the weights cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The file is not a safetensors file, is cut short, or holds values that no model has.
    #[error("the weights are damaged: {0}")]
    Damaged(String),
    /// A safetensors file, but not with the weights of a network that this crate computes.
    #[error("the weights are not of a supported model: {0}")]
    Unsupported(String),
    /// The system grants no memory.
    #[error("there is no memory for {0} bytes of weights")]
    Memory(usize),
    /// The tokenizer's file is malformed, or that of another kind of tokenizer.
    #[error("the tokenizer cannot be used: {0}")]
    Tokenizer(String),
    /// A text without a token.
    #[error("a text has no tokens")]
    NoTokens,
    /// More tokens than the model has positions.
    #[error("a text has {tokens} tokens; the model takes at most {limit}")]
    TooManyTokens {
        /// The tokens of the text.
        tokens: usize,
        /// The positions of the model.
        limit: usize,
    },
    /// A token that is not in the vocabulary.
    #[error("there is no token {token}; the vocabulary has {vocabulary}")]
    UnknownToken {
        /// The token.
        token: u32,
        /// The size of the vocabulary.
        vocabulary: usize,
    },
    /// The model computes infinities or no numbers.
    #[error("the model's output is not finite")]
    NotFinite,
    /// A name that no kernel has.
    #[error(
        "there is no kernel `{0}`; there are avx512-amx, avx512-vnni, avx512, avx-vnni, avx2, neon-i8mm, neon-dot, \
         neon, simd128 and portable"
    )]
    UnknownKernel(String),
    /// A kernel whose instructions this processor lacks, or the system does not permit.
    #[error("this processor cannot run the kernel {0}, or the system does not permit it")]
    KernelUnavailable(Kernel),
    /// A bug of this crate, which has ended a pass. The encoder can be used again.
    #[error("a thread of the encoder panicked: {0}")]
    Panicked(String),
}
