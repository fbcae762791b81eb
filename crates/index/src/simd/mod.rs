//! Vector kernels: one dispatcher here, one leaf per instruction set beside it.
//!
//! # The numeric contract
//!
//! Every implementation gives the same bits on every machine.
//!
//! [`Kernels::dots`] takes finite components whose products and sums stay in the range of `f32` (the cache
//! scales its vectors to see to that). A vector is cut into spans of 512 components. Within a span, lane
//! `j` of 64 adds up components `j`, `j + 64`, … by fused multiply-add in single precision, then the lanes
//! are added in halves: `j` and `j + 32`, `j` and `j + 16`, … `j` and `j + 1`. The spans' sums are added in
//! double precision, in order. So no component sees more than 14 roundings, and the result differs from the
//! exact dot product of `a` and `b` by at most `14.0001 * 2^-24 * |a| * |b|`: each fused multiply-add and addition has an error of at most
//! 2^-24.

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod aarch64;
mod scalar;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64;

use std::sync::LazyLock;

use bytemuck::{Pod, Zeroable};
use knowledgepulse_encoder::Kernel;

/// Components in a group: vectors are stored in whole groups, padded with zeros, so no kernel has a tail.
pub const GROUP: usize = 64;

/// Groups in a span. Only the components of one span are added up in single precision.
const SPAN: usize = 8;

/// A group of components.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Floats(pub [f32; GROUP]);

impl Floats {
    /// Returns the groups of a vector, padded with zeros.
    pub(crate) fn groups(vector: &[f32]) -> impl Iterator<Item = Self> {
        vector.chunks(GROUP).map(|chunk| {
            let mut group = Self([0.0; GROUP]);
            group.0[..chunk.len()].copy_from_slice(chunk);
            group
        })
    }
}

type Dots = fn(query: &[Floats], rows: &[Floats], products: &mut [f64]);

/// The kernels for one instruction set.
#[derive(Debug, Clone, Copy)]
pub struct Kernels {
    /// The instruction set, by the name that the encoder has for it.
    pub kernel: Kernel,
    dots: Dots,
}

impl Kernels {
    /// The dot products of `query` with each of `products.len()` rows, which lie one after another in `rows`
    /// and are as long as `query`. The module's documentation says what is added in which order.
    ///
    /// # Panics
    /// When the lengths do not fit together.
    pub fn dots(&self, query: &[Floats], rows: &[Floats], products: &mut [f64]) {
        assert_eq!(rows.len(), query.len() * products.len());
        if query.is_empty() {
            products.fill(0.0);
        } else {
            (self.dots)(query, rows, products);
        }
    }
}

/// The best kernels for this CPU, chosen once.
#[must_use]
pub fn kernels() -> &'static Kernels {
    static BEST: LazyLock<Kernels> =
        LazyLock::new(|| implementations().into_iter().next().unwrap_or(scalar::KERNELS));
    &BEST
}

/// The kernels of every instruction set that this CPU has, the best first. The encoder detects which these are; where there are
/// none here for the best one, a scan takes the next.
#[must_use]
pub fn implementations() -> Vec<Kernels> {
    let of = |kernel| match kernel {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        Kernel::Avx512Vnni => Some(x86_64::AVX512),
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        Kernel::Avx2 => Some(x86_64::AVX2),
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        Kernel::Neon => Some(aarch64::NEON),
        Kernel::Portable => Some(scalar::KERNELS),
        _ => None,
    };
    Kernel::available().filter_map(of).collect()
}

#[cfg(test)]
mod tests;
