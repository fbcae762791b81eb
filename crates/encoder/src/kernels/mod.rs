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

use std::{fmt, ops::Range, str::FromStr};

use attention::{Attention, AttentionScratch};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use avx2::Avx2;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use avx512::Avx512;
use dense::{ByteRows, ByteWeights, Epilogue, FloatWeights};
use lanes::{Floats, Lanes};
#[cfg(all(target_arch = "aarch64", not(miri)))]
use neon::Neon;
use portable::Portable;
use tile::ByteTiles;
#[cfg(target_feature = "simd128")]
use wasm32::Simd128;

use crate::{
    error::{Error, Result},
    model::Precision,
};

/// An instruction set that there are kernels for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// AVX-512 with VNNI, and AMX for linear layers in eight bits: Intel's servers from Sapphire Rapids on, on Linux.
    Avx512Amx,
    /// AVX-512 with VNNI: Intel from Ice Lake on, AMD from Zen 4 on.
    Avx512Vnni,
    /// AVX-512 without VNNI: Skylake-X.
    Avx512,
    /// AVX2 and FMA, with the VNNI instructions for 256 bits: Intel from Alder Lake on.
    AvxVnni,
    /// AVX2 and FMA.
    Avx2,
    /// NEON with products of byte matrices: Neoverse V1 and N2, Apple M2, and newer.
    NeonI8mm,
    /// NEON with dot products of bytes: most 64-bit ARM processors since 2018, Apple's and Neoverse among them.
    NeonDot,
    /// NEON: every 64-bit ARM processor.
    Neon,
    /// The vectors of WebAssembly.
    Simd128,
    /// Plain Rust, for every processor.
    Portable,
}

impl Kernel {
    /// All kernels, the fastest first.
    pub const ALL: [Self; 10] = [
        Self::Avx512Amx,
        Self::Avx512Vnni,
        Self::Avx512,
        Self::AvxVnni,
        Self::Avx2,
        Self::NeonI8mm,
        Self::NeonDot,
        Self::Neon,
        Self::Simd128,
        Self::Portable,
    ];

    /// Returns its name: `avx512-amx`, `avx512-vnni`, `avx512`, `avx-vnni`, `avx2`, `neon-i8mm`, `neon-dot`, `neon`, `simd128` or
    /// `portable`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Avx512Amx => "avx512-amx",
            Self::Avx512Vnni => "avx512-vnni",
            Self::Avx512 => "avx512",
            Self::AvxVnni => "avx-vnni",
            Self::Avx2 => "avx2",
            Self::NeonI8mm => "neon-i8mm",
            Self::NeonDot => "neon-dot",
            Self::Neon => "neon",
            Self::Simd128 => "simd128",
            Self::Portable => "portable",
        }
    }

    /// Returns the kernels that this processor can run, the fastest first. There is always [`Kernel::Portable`]. Asks the system for the
    /// permission that [`Kernel::Avx512Amx`] needs.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kernel| kernel.isa().is_some())
    }

    /// Returns the fastest kernel that this processor can run, for a model in `precision`. Asks the system for the permission that
    /// [`Kernel::Avx512Amx`] needs only in eight bits, because single precision does not use it.
    #[must_use]
    pub fn best(precision: Precision) -> Self {
        let is_useful = |kernel: &Self| *kernel != Self::Avx512Amx || precision == Precision::Int8;
        let mut usable = Self::ALL.into_iter().filter(is_useful);
        usable
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

impl FromStr for Kernel {
    type Err = Error;

    /// # Errors
    /// [`Error::UnknownKernel`].
    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|kernel| kernel.name() == name);
        found.ok_or_else(|| Error::UnknownKernel(name.to_owned()))
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

/// Repeats the instructions of a product `times` times on registers, and returns the number of multiplications of one
/// repetition, as a reference for benchmarks of the kernels. Returns 0 if this processor cannot run `kernel`.
/// [`Kernel::NeonI8mm`] repeats dot products of bytes, which are half as fast as its matrix products, and [`Kernel::Avx512Amx`] those
/// of VNNI, which are an eighth as fast as those of tiles.
#[must_use]
pub fn peak(kernel: Kernel, bytes: bool, times: usize) -> u64 {
    struct Peak<'a> {
        bytes: bool,
        times: usize,
        result: &'a mut u64,
    }

    impl Peak<'_> {
        #[inline(always)]
        fn repeat<L: Lanes, const SUMS: usize>(self, lanes: L) {
            use std::hint::black_box;
            let (factor, word) = (black_box(0.5), black_box(0x0102_0304));
            if self.bytes {
                let mut sums = [lanes.splat_integer(word); SUMS];
                for _ in 0..self.times {
                    for index in 0..SUMS {
                        // With another sum: a product that is the same in each turn would be computed once.
                        sums[index] = lanes.dot_bytes(word, sums[(index + 1) % SUMS], sums[index]);
                    }
                }
                let mut numbers = [[0; lanes::LANES]; SUMS];
                for (sum, numbers) in sums.into_iter().zip(&mut numbers) {
                    lanes.store_integers(sum, numbers);
                }
                black_box(numbers);
            } else {
                let column = lanes.splat(factor);
                let mut sums = [column; SUMS];
                for _ in 0..self.times {
                    for sum in &mut sums {
                        *sum = lanes.accumulate(factor, column, *sum);
                    }
                }
                let mut numbers = [[0.0; lanes::LANES]; SUMS];
                for (sum, numbers) in sums.into_iter().zip(&mut numbers) {
                    lanes.store(sum, numbers);
                }
                black_box(numbers);
            }
            *self.result = (SUMS * lanes::LANES * if self.bytes { 4 } else { 1 }) as u64;
        }
    }

    impl Work for Peak<'_> {
        #[inline(always)]
        fn run<L: ByteTiles>(self, lanes: L) {
            // As many independent sums as a tile has: enough for all units, and they fit the registers.
            match L::PANELS * if self.bytes { L::INTEGER_ROWS } else { L::ROWS } {
                24.. => self.repeat::<L, 24>(lanes),
                6.. => self.repeat::<L, 6>(lanes),
                4.. => self.repeat::<L, 4>(lanes),
                _ => self.repeat::<L, 2>(lanes),
            }
        }
    }

    let mut result = 0;
    if let Some(isa) = kernel.isa() {
        isa.run(Peak {
            bytes,
            times,
            result: &mut result,
        });
    }
    result
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
}
