//! Plain Rust: runs where no other kernel does, and is the reference for the others.

use super::{
    lanes::{LANES, Lanes},
    tile::ByteTiles,
};

/// Any processor.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

#[inline(always)]
fn map<A: Copy, B>(a: [A; LANES], of: impl Fn(A) -> B) -> [B; LANES] {
    std::array::from_fn(|lane| of(a[lane]))
}

#[inline(always)]
fn zip<A: Copy, B>(a: [A; LANES], b: [A; LANES], of: impl Fn(A, A) -> B) -> [B; LANES] {
    std::array::from_fn(|lane| of(a[lane], b[lane]))
}

impl Lanes for Portable {
    type F = [f32; LANES];
    type I = [i32; LANES];

    const ROWS: usize = 4;
    const INTEGER_ROWS: usize = 2;
    const PANELS: usize = 1;

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::F {
        *from
    }

    #[inline(always)]
    fn store(self, vector: Self::F, to: &mut [f32; LANES]) {
        *to = vector;
    }

    #[inline(always)]
    fn load_integers(self, from: &[i32; LANES]) -> Self::I {
        *from
    }

    #[inline(always)]
    fn store_integers(self, vector: Self::I, to: &mut [i32; LANES]) {
        *to = vector;
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::F {
        [value; LANES]
    }

    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a + b)
    }

    #[inline(always)]
    fn subtract(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn multiply(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a * b)
    }

    #[inline(always)]
    fn divide(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a / b)
    }

    #[inline(always)]
    fn larger(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn smaller(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn absolute(self, a: Self::F) -> Self::F {
        map(a, f32::abs)
    }

    #[inline(always)]
    fn accumulate(self, a: f32, b: Self::F, c: Self::F) -> Self::F {
        // Elsewhere `mul_add` may be a call of a library.
        if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
            std::array::from_fn(|lane| a.mul_add(b[lane], c[lane]))
        } else {
            std::array::from_fn(|lane| a * b[lane] + c[lane])
        }
    }

    #[inline(always)]
    fn splat_integer(self, value: i32) -> Self::I {
        [value; LANES]
    }

    #[inline(always)]
    fn add_integers(self, a: Self::I, b: Self::I) -> Self::I {
        zip(a, b, i32::wrapping_add)
    }

    #[inline(always)]
    fn round(self, a: Self::F) -> Self::I {
        // In this range every float is an integer, and adding rounds to it.
        const SHIFT: f32 = 12_582_912.0; // 1.5 * 2^23
        map(a, |a| {
            if a.abs() < 4_194_304.0 {
                (a + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits()).cast_signed()
            } else {
                #[allow(clippy::cast_possible_truncation)] // Integers, by the contract within 31 bits.
                let integer = a.round_ties_even() as i32;
                integer
            }
        })
    }

    #[inline(always)]
    fn to_floats(self, a: Self::I) -> Self::F {
        #[allow(clippy::cast_precision_loss)] // Rounds to nearest, as every processor does.
        map(a, |a| a as f32)
    }

    #[inline(always)]
    fn as_floats(self, a: Self::I) -> Self::F {
        map(a, |a| f32::from_bits(a.cast_unsigned()))
    }

    #[inline(always)]
    fn as_integers(self, a: Self::F) -> Self::I {
        map(a, |a| a.to_bits().cast_signed())
    }

    #[inline(always)]
    fn shift_left_16(self, a: Self::I) -> Self::I {
        map(a, |a| a << 16)
    }

    #[inline(always)]
    fn shift_left_23(self, a: Self::I) -> Self::I {
        map(a, |a| a << 23)
    }

    #[inline(always)]
    fn or(self, a: Self::I, b: Self::I) -> Self::I {
        zip(a, b, |a, b| a | b)
    }

    #[inline(always)]
    fn dot_bytes(self, a: i32, b: Self::I, c: Self::I) -> Self::I {
        let a = a.to_le_bytes();
        std::array::from_fn(|lane| {
            let b = b[lane].to_le_bytes();
            let product = |byte: usize| i32::from(a[byte]) * i32::from(b[byte].cast_signed());
            c[lane].wrapping_add(product(0) + product(1) + product(2) + product(3))
        })
    }

    #[inline(always)]
    fn dot_shorts(self, a: i32, b: Self::I, c: Self::I) -> Self::I {
        std::array::from_fn(|lane| {
            #[allow(clippy::cast_possible_truncation)] // The lower half is meant.
            let low = i32::from(a as i16) * i32::from(b[lane] as i16);
            c[lane].wrapping_add(low.wrapping_add((a >> 16) * (b[lane] >> 16)))
        })
    }

    #[inline(always)]
    fn store_bytes(self, a: Self::I, to: &mut [u8; LANES]) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // By the contract they fit.
        let bytes = map(a, |a| a.clamp(0, 255) as u8);
        *to = bytes;
    }

    #[inline(always)]
    fn store_shorts(self, a: Self::I, to: &mut [i16; LANES]) {
        #[allow(clippy::cast_possible_truncation)] // By the contract they fit.
        let shorts = map(a, |a| a.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16);
        *to = shorts;
    }
}

impl ByteTiles for Portable {}
