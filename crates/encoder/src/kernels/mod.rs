//! The operations of the forward pass, compiled for each instruction set: the algorithms are written once, over [`lanes`],
//! and the leaves (`avx512`, `avx2`, `neon`, `simd128`, `portable`) only define how sixteen lanes are added and multiplied.

/// The methods of [`lanes::Lanes`] that are an intrinsic or a few of them.
#[allow(unused_macros)]
macro_rules! operations {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $call:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: $type),*) -> $result {
            // SAFETY: `self` exists only where the processor has the instructions (see `detect`; WebAssembly's are in the
            // module or it is not loaded), and loads and stores are of whole arrays behind references, at any alignment.
            unsafe { $call }
        }
    )*};
}

/// The method `run` of a processor, which runs [`Work`] as it was compiled for the processor's instructions.
#[allow(unused_macros)]
macro_rules! compiled_for {
    ($($lanes:ty, $features:literal;)*) => {$(
        impl $lanes {
            /// Runs `work`, compiled for these instructions.
            pub fn run<W: Work>(self, work: W) {
                #[target_feature(enable = $features)]
                fn compiled<W: Work>(lanes: $lanes, work: W) {
                    work.run(lanes);
                }
                // SAFETY: `self` exists only where the processor has the instructions: see `detect`.
                unsafe { compiled(self, work) }
            }
        }
    )*};
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod amx;
pub mod attention;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx512;
pub mod dense;
pub mod dots;
pub mod functions;
pub mod lanes;
#[cfg(all(target_arch = "aarch64", not(miri)))]
mod neon;
mod portable;
#[cfg(test)]
mod tests;
pub mod tile;
#[cfg(target_feature = "simd128")]
mod wasm32;

use std::{fmt, ops::Range, sync::LazyLock};

use attention::{Attention, AttentionScratch};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use avx2::Avx2;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use avx512::Avx512;
use dense::{ByteRows, ByteWeights, Epilogue, FloatWeights};
use dots::Group;
use lanes::Floats;
#[cfg(all(target_arch = "aarch64", not(miri)))]
use neon::Neon;
use portable::Portable;
use tile::ByteTiles;
#[cfg(target_feature = "simd128")]
use wasm32::Simd128;

use knowledgepulse_error::named;

use crate::model::Precision;

named! {
    /// An instruction set that there are kernels for, with its name; the fastest first.
    #[derive(Hash)]
    #[non_exhaustive]
    pub enum Kernel {
        /// AVX-512 with VNNI, and AMX for linear layers in eight bits: Intel's servers from Sapphire Rapids on, on Linux.
        Avx512Amx = "avx512-amx",
        /// AVX-512 with VNNI: Intel from Ice Lake on, AMD from Zen 4 on.
        Avx512Vnni = "avx512-vnni",
        /// AVX-512 without VNNI: Skylake-X.
        Avx512 = "avx512",
        /// AVX2 and FMA, with the VNNI instructions for 256 bits: Intel from Alder Lake on.
        AvxVnni = "avx-vnni",
        /// AVX2 and FMA.
        Avx2 = "avx2",
        /// NEON with products of byte matrices: Neoverse V1 and N2, Apple M2, and newer.
        NeonI8mm = "neon-i8mm",
        /// NEON with dot products of bytes: most 64-bit ARM processors since 2018, Apple's and Neoverse among them.
        NeonDot = "neon-dot",
        /// NEON: every 64-bit ARM processor.
        Neon = "neon",
        /// The vectors of WebAssembly.
        Simd128 = "simd128",
        /// Plain Rust, for every processor.
        Portable = "portable",
    }
}

impl Kernel {
    /// Returns the kernels that this processor can run, the fastest first. There is always [`Kernel::Portable`]. Asks the system for the
    /// permission that [`Kernel::Avx512Amx`] needs.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kernel| kernel.isa().is_some())
    }

    /// Returns the fastest kernel that this processor can run, for a model in `precision`. Asks the system for the permission that
    /// [`Kernel::Avx512Amx`] needs only in eight bits, because single precision does not use it.
    #[must_use]
    pub fn best(precision: Precision) -> Self {
        let is_useful = |kernel: &Self| *kernel != Self::Avx512Amx || precision == Precision::Int8;
        let mut useful = Self::ALL.iter().copied().filter(is_useful);
        useful
            .find(|kernel| kernel.isa().is_some())
            .unwrap_or(Self::Portable)
    }

    /// Returns the instructions themselves, where this processor has them and the system permits them.
    pub(crate) fn isa(self) -> Option<Isa> {
        match self {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx512Amx => Avx512::detect_with_amx().map(Isa::Avx512Vnni),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx512Vnni => Avx512::detect().map(Isa::Avx512Vnni),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx512 => Avx512::detect().map(Isa::Avx512),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::AvxVnni => Avx2::detect().map(Isa::AvxVnni),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx2 => Avx2::detect().map(Isa::Avx2),
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            Self::NeonI8mm => Neon::detect().map(Isa::NeonI8mm),
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            Self::NeonDot => Neon::detect().map(Isa::NeonDot),
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            Self::Neon => Neon::detect().map(Isa::Neon),
            #[cfg(target_feature = "simd128")]
            Self::Simd128 => Some(Isa::Simd128(Simd128)),
            Self::Portable => Some(Isa::Portable(Portable)),
            // Instruction sets of other architectures.
            #[allow(unreachable_patterns)]
            _ => None,
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A kernel that this processor has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Isa {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx512Vnni(Avx512<true>),
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx512(Avx512<false>),
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    AvxVnni(Avx2<true>),
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx2(Avx2<false>),
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    NeonI8mm(Neon<true, true>),
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    NeonDot(Neon<true, false>),
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    Neon(Neon<false, false>),
    #[cfg(target_feature = "simd128")]
    Simd128(Simd128),
    Portable(Portable),
}

/// Something to compute with an instruction set. `run` must be `inline(always)`, as all that it calls.
pub(crate) trait Work {
    fn run<L: ByteTiles>(self, lanes: L);
}

impl Isa {
    /// Runs `work` as it was compiled for this instruction set.
    pub fn run(self, work: impl Work) {
        match self {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx512Vnni(lanes) => lanes.run(work),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx512(lanes) => lanes.run(work),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::AvxVnni(lanes) => lanes.run(work),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx2(lanes) => lanes.run(work),
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            Self::NeonI8mm(lanes) => lanes.run(work),
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            Self::NeonDot(lanes) => lanes.run(work),
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            Self::Neon(lanes) => lanes.run(work),
            #[cfg(target_feature = "simd128")]
            Self::Simd128(lanes) => work.run(lanes),
            Self::Portable(lanes) => work.run(lanes),
        }
    }
}

/// Writes the dot product of `query` with each of `products.len()` rows, which lie one after another in `rows` and are as long as `query`, with
/// the fastest instructions of this processor. [`dots`] says what is added in which order: the bits are the same on every processor.
///
/// # Panics
/// When the lengths do not fit together.
pub fn dots(query: &[Group], rows: &[Group], products: &mut [f64]) {
    static BEST: LazyLock<Isa> = LazyLock::new(|| {
        let best = Kernel::best(Precision::Float32).isa();
        best.unwrap_or(Isa::Portable(Portable))
    });
    assert_eq!(rows.len(), query.len() * products.len());
    if query.is_empty() {
        return products.fill(0.0);
    }
    BEST.run(Dots {
        query,
        rows,
        products,
    });
}

macro_rules! work {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* } = $function:path;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name<'a> {
            $(pub $field: $type),*
        }

        impl Work for $name<'_> {
            #[inline(always)]
            fn run<L: ByteTiles>(self, lanes: L) {
                $function(lanes, $(self.$field),*);
            }
        }
    )*};
}

work! {
    /// A linear layer in single precision.
    FloatDense {
        input: &'a [f32], weights: &'a FloatWeights, epilogue: Epilogue, output: &'a mut [f32], output_step: usize
    } = dense::floats;
    /// A linear layer in eight bits.
    ByteDense {
        input: &'a ByteRows, weights: &'a ByteWeights, epilogue: Epilogue, output: &'a mut [f32], output_step: usize
    } = dense::bytes;
    /// Rows into eight bits.
    ToBytes { input: &'a [f32], scales: &'a [Floats], rows: &'a mut ByteRows } = dense::quantize;
    /// Queries, keys and values into 16 bits.
    ToShorts { floats: &'a [f32], shorts: &'a mut [i16], scales: &'a mut [f32] } = attention::quantize;
    /// Attention in single precision.
    FloatAttention {
        attention: Attention<'a>, queries: Range<usize>, scratch: &'a mut AttentionScratch, context: &'a mut [f32]
    } = attention::floats;
    /// Attention in 16 bits.
    ShortAttention {
        attention: Attention<'a>, queries: Range<usize>, scratch: &'a mut AttentionScratch, context: &'a mut [f32]
    } = attention::shorts;
    /// Layer normalisation.
    Normalize { rows: &'a mut [f32], scale: &'a [f32], shift: &'a [f32], epsilon: f32 } = functions::normalize;
    /// Dot products.
    Dots { query: &'a [Group], rows: &'a [Group], products: &'a mut [f64] } = dots::dots;
}
