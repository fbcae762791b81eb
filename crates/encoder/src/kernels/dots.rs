//! Dot products of vectors, with the same bits on every processor.
//!
//! The components are finite, and their products and sums stay in the range of `f32`. A vector is cut into spans of 512 components. Within a
//! span, lane `j` of 64 adds up components `j`, `j + 64`, … by fused multiply-add in single precision, then the lanes are added in halves: `j`
//! and `j + 32`, `j` and `j + 16`, … `j` and `j + 1`. The spans' sums are added in double precision, in order. So no component sees more than 14
//! roundings, and the result differs from the exact dot product of `a` and `b` by at most `14.0001 * 2^-24 * |a| * |b|`.

use bytemuck::{Pod, Zeroable};

use super::lanes::{LANES, Lanes};

/// Components in a group: vectors are stored in whole groups, padded with zeros, so no kernel has a tail.
pub const GROUP: usize = 64;

/// Groups in a span. Only the components of one span are added up in single precision.
const SPAN: usize = 8;

/// How many groups ahead components are fetched. Rows that come from memory arrive sooner with it, because a processor's own prefetching
/// stops at every 4 KB.
const AHEAD: usize = 16;

/// A group of components.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Group(pub [f32; GROUP]);

impl Group {
    /// Returns the groups of a vector, padded with zeros.
    pub fn padded(vector: &[f32]) -> impl Iterator<Item = Self> {
        vector.chunks(GROUP).map(|chunk| {
            let mut group = Self([0.0; GROUP]);
            group.0[..chunk.len()].copy_from_slice(chunk);
            group
        })
    }
}

/// Writes the dot product of `query` with each of the rows, which lie one after another and are as long as `query`, to `products`.
#[inline(always)]
pub fn dots<L: Lanes>(lanes: L, query: &[Group], rows: &[Group], products: &mut [f64]) {
    for (row, product) in rows.chunks_exact(query.len()).zip(products) {
        *product = 0.0;
        for (query, row) in query.chunks(SPAN).zip(row.chunks(SPAN)) {
            let mut sums = [lanes.splat(0.0); GROUP / LANES];
            for (query, row) in query.iter().zip(row) {
                let parts = query.0.as_chunks().0.iter().zip(row.0.as_chunks().0);
                for (sum, (query, row)) in sums.iter_mut().zip(parts) {
                    fetch(std::ptr::from_ref(row).wrapping_add(AHEAD * GROUP / LANES));
                    *sum = lanes.fuse(lanes.load(query), lanes.load(row), *sum);
                }
            }
            let [a, b, c, d] = sums;
            *product += f64::from(lanes.sum(lanes.add(lanes.add(a, c), lanes.add(b, d))));
        }
    }
}

/// Fetches the memory at an address into the first cache, where there is an instruction for it. The address may be invalid: then nothing happens.
#[inline(always)]
fn fetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: A prefetch never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
