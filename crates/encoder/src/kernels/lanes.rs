//! Sixteen lanes, however wide the registers are.
//!
//! All arithmetic of the encoder is written once over [`Lanes`], in the order of a vector of sixteen: an instruction set
//! with narrower registers holds it in two or more. So sums are added in the same order everywhere, and nothing but
//! [`Lanes::accumulate`] may fuse a multiplication with an addition where the processor can, and [`Lanes::fuse`] does so
//! everywhere: every other result has the same bits on every processor.

use bytemuck::{Pod, Zeroable};

/// Numbers in a vector.
pub const LANES: usize = 16;

/// A vector of floats in memory.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Floats(pub [f32; LANES]);

/// A vector of integers in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Integers(pub [i32; LANES]);

/// Four bytes for each lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Bytes(pub [i8; 4 * LANES]);

/// Two 16-bit integers for each lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Shorts(pub [i16; 2 * LANES]);

/// The instructions of a processor, on vectors of sixteen lanes. A value of an implementing type is the proof that this
/// processor has them, which makes the methods safe.
///
/// Every method is `inline(always)`: it becomes instructions only within a function that is compiled for them (the
/// `target_feature` functions of each instruction set's module).
pub trait Lanes: Copy {
    /// Sixteen floats.
    type F: Copy;
    /// Sixteen integers.
    type I: Copy;

    /// How many rows of floats a tile of a product has, so that it fits the registers.
    const ROWS: usize;
    /// The same for a product of integers.
    const INTEGER_ROWS: usize;
    /// How many vectors wide a tile is: 1 or 2.
    const PANELS: usize;
    /// The number that [`Lanes::store_bytes`] subtracts from each number: 0, or 128 where [`Lanes::dot_bytes`] needs signed
    /// bytes on both sides.
    const BYTE_BIAS: i32 = 0;

    fn load(self, from: &[f32; LANES]) -> Self::F;
    fn store(self, vector: Self::F, to: &mut [f32; LANES]);
    fn load_integers(self, from: &[i32; LANES]) -> Self::I;
    fn store_integers(self, vector: Self::I, to: &mut [i32; LANES]);

    fn splat(self, value: f32) -> Self::F;
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn subtract(self, a: Self::F, b: Self::F) -> Self::F;
    fn multiply(self, a: Self::F, b: Self::F) -> Self::F;
    fn divide(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a` where it is larger, else `b`: also where either is not a number.
    fn larger(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a` where it is smaller, else `b`: also where either is not a number.
    fn smaller(self, a: Self::F, b: Self::F) -> Self::F;
    fn absolute(self, a: Self::F) -> Self::F;
    /// `a * b + c`, rounded once where the processor can, else twice.
    fn accumulate(self, a: f32, b: Self::F, c: Self::F) -> Self::F;

    /// `a * b + c`, rounded once on every processor.
    #[inline(always)]
    fn fuse(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        let mut lanes = [[0.0; LANES]; 3];
        for (lanes, vector) in lanes.iter_mut().zip([a, b, c]) {
            self.store(vector, lanes);
        }
        let [a, b, c] = lanes;
        self.load(&std::array::from_fn(|lane| {
            fused_multiply_add(a[lane], b[lane], c[lane])
        }))
    }

    fn splat_integer(self, value: i32) -> Self::I;
    fn add_integers(self, a: Self::I, b: Self::I) -> Self::I;
    /// Returns the nearest integers, ties to even. Every number must fit 31 bits.
    fn round(self, a: Self::F) -> Self::I;
    fn to_floats(self, a: Self::I) -> Self::F;
    /// Returns the floats with the bits of `a`.
    fn as_floats(self, a: Self::I) -> Self::F;
    /// Returns the bits of `a`.
    fn as_integers(self, a: Self::F) -> Self::I;
    /// Returns each lane shifted left, to where a second 16-bit integer belongs.
    fn shift_left_16(self, a: Self::I) -> Self::I;
    /// Returns each lane shifted left, to where a float's exponent is.
    fn shift_left_23(self, a: Self::I) -> Self::I;
    fn or(self, a: Self::I, b: Self::I) -> Self::I;

    /// Transposes sixteen by sixteen words: word `j` of row `i` becomes word `i` of row `j`.
    #[inline(always)]
    fn transpose(self, from: &[[i32; LANES]; LANES], to: &mut [[i32; LANES]; LANES]) {
        for (column, to) in to.iter_mut().enumerate() {
            for (word, row) in to.iter_mut().zip(from) {
                *word = row[column];
            }
        }
    }

    /// Prefetches the memory at `address` into the second cache. The address may be invalid: then nothing happens.
    #[inline(always)]
    fn prefetch<T>(self, address: *const T) {
        let _ = address;
    }

    /// `c` and for each lane the sum of the products of its four bytes: the bytes of `a` are as [`Lanes::store_bytes`]
    /// writes them, the bytes of `b` signed. Exact as long as no two neighbouring products (0 and 1, 2 and 3) add up to more
    /// than 16 bits hold.
    fn dot_bytes(self, a: i32, b: Self::I, c: Self::I) -> Self::I;
    /// `c` and for each lane the sum of the products of its two 16-bit halves, all signed. Exact as long as the sum fits.
    fn dot_shorts(self, a: i32, b: Self::I, c: Self::I) -> Self::I;

    /// Writes each lane, which must be between 0 and 255, less [`Lanes::BYTE_BIAS`] as a byte.
    fn store_bytes(self, a: Self::I, to: &mut [u8; LANES]);
    /// Writes each lane, which must fit, in 16 bits.
    fn store_shorts(self, a: Self::I, to: &mut [i16; LANES]);

    /// Returns the sum of the lanes, in halves: `j` and `j + 8`, `j` and `j + 4`, `j` and `j + 2`, `j` and `j + 1`.
    #[inline(always)]
    fn sum(self, a: Self::F) -> f32 {
        let mut lanes = [0.0; LANES];
        self.store(a, &mut lanes);
        let eight: [f32; 8] = std::array::from_fn(|lane| lanes[lane] + lanes[lane + 8]);
        let four: [f32; 4] = std::array::from_fn(|lane| eight[lane] + eight[lane + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }

    /// Returns the largest lane.
    #[inline(always)]
    fn largest(self, a: Self::F) -> f32 {
        let mut lanes = [0.0; LANES];
        self.store(a, &mut lanes);
        reduce(lanes, |a, b| if a > b { a } else { b })
    }

    /// Returns the smallest lane.
    #[inline(always)]
    fn smallest(self, a: Self::F) -> f32 {
        let mut lanes = [0.0; LANES];
        self.store(a, &mut lanes);
        reduce(lanes, |a, b| if a < b { a } else { b })
    }
}

#[inline(always)]
fn reduce(lanes: [f32; LANES], choose: impl Fn(f32, f32) -> f32) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|lane| choose(lanes[lane], lanes[lane + 8]));
    let four: [f32; 4] = std::array::from_fn(|lane| choose(eight[lane], eight[lane + 4]));
    choose(choose(four[0], four[2]), choose(four[1], four[3]))
}

/// Gives the same bits as `f32::mul_add` for finite results, without the slow library call that `mul_add` becomes on a CPU
/// without such an instruction.
///
/// The product of two singles is exact in double precision. The sum is rounded to odd (an inexact result
/// takes whichever of its two neighbours has an odd last bit), which makes the second rounding, to single
/// precision, come out as if it were the only one.
#[inline(always)]
fn fused_multiply_add(a: f32, b: f32, addend: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let addend = f64::from(addend);
    let sum = product + addend;
    // The exact error of `sum` (Knuth's TwoSum).
    let rounded_addend = sum - product;
    let error = (product - (sum - rounded_addend)) + (addend - rounded_addend);
    let bits = sum.to_bits();
    let even = bits & 1 == 0;
    // The neighbour towards the exact sum: away from zero when the error has the sum's sign.
    let outwards = (error.to_bits() ^ bits) >> 63 == 0;
    let neighbour = if outwards {
        bits.wrapping_add(1)
    } else {
        bits.wrapping_sub(1)
    };
    let odd = if error != 0.0 && even { neighbour } else { bits };
    #[allow(clippy::cast_possible_truncation)] // This is the second rounding.
    let rounded = f64::from_bits(odd) as f32;
    rounded
}
