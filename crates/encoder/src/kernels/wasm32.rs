//! WebAssembly's vectors of 128 bits: four registers for a vector. They have no fused multiplication, so in single precision
//! the results equal the portable kernel's.

use std::arch::wasm32::*;

use super::{
    lanes::{LANES, Lanes},
    tile::ByteTiles,
};

/// A WebAssembly engine with vectors. Where the module was compiled for them, every engine that loads it has them.
#[derive(Debug, Clone, Copy)]
pub struct Simd128;

/// Sixteen floats or integers.
pub type Quad = [v128; 4];

/// The registers of a vector, each of four lanes.
const PARTS: [usize; 4] = [0, 1, 2, 3];

/// Four numbers at a time, each a register.
macro_rules! quarters {
    ($($name:ident($($argument:ident),*) = $value:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: Quad),*) -> Quad {
            std::array::from_fn(|part| {
                $(let $argument = $argument[part];)*
                $value
            })
        }
    )*};
}

impl Lanes for Simd128 {
    type F = Quad;
    type I = Quad;

    const ROWS: usize = 2;
    const INTEGER_ROWS: usize = 2;
    const PANELS: usize = 1;

    quarters! {
        add(a, b) = f32x4_add(a, b);
        subtract(a, b) = f32x4_sub(a, b);
        multiply(a, b) = f32x4_mul(a, b);
        divide(a, b) = f32x4_div(a, b);
        // `pmax(x, y)` is `x < y ? y : x`, and `pmin(x, y)` is `y < x ? y : x`.
        larger(a, b) = f32x4_pmax(b, a);
        smaller(a, b) = f32x4_pmin(b, a);
        absolute(a) = f32x4_abs(a);
        add_integers(a, b) = i32x4_add(a, b);
        round(a) = i32x4_trunc_sat_f32x4(f32x4_nearest(a));
        to_floats(a) = f32x4_convert_i32x4(a);
        as_floats(a) = a;
        as_integers(a) = a;
        shift_left_16(a) = i32x4_shl(a, 16);
        shift_left_23(a) = i32x4_shl(a, 23);
        or(a, b) = v128_or(a, b);
    }

    #[inline(always)]
    fn accumulate(self, a: f32, b: Quad, c: Quad) -> Quad {
        let a = f32x4_splat(a);
        std::array::from_fn(|part| f32x4_add(f32x4_mul(a, b[part]), c[part]))
    }

    // The bytes 0 and 2 of each lane, and 1 and 3, are two pairs of 16 bits. The pairs of `a` are the same for all columns
    // of a tile, and the pairs of `b` for all rows, so the compiler computes them once.
    #[inline(always)]
    fn dot_bytes(self, a: i32, b: Quad, c: Quad) -> Quad {
        let a = i32x4_splat(a);
        std::array::from_fn(|part| {
            let b = b[part];
            let even = i32x4_dot_i16x8(v128_and(a, i16x8_splat(0xff)), i16x8_shr(i16x8_shl(b, 8), 8));
            let odd = i32x4_dot_i16x8(u16x8_shr(a, 8), i16x8_shr(b, 8));
            i32x4_add(c[part], i32x4_add(even, odd))
        })
    }

    #[inline(always)]
    fn dot_shorts(self, a: i32, b: Quad, c: Quad) -> Quad {
        let a = i32x4_splat(a);
        std::array::from_fn(|part| i32x4_add(c[part], i32x4_dot_i16x8(a, b[part])))
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Quad {
        [f32x4_splat(value); 4]
    }

    #[inline(always)]
    fn splat_integer(self, value: i32) -> Quad {
        [i32x4_splat(value); 4]
    }

    operations! {
        load(from: &[f32; LANES]) -> Quad = PARTS.map(|part| v128_load(from[4 * part..].as_ptr().cast()));
        store(vector: Quad, to: &mut [f32; LANES]) -> () =
            for part in PARTS { v128_store(to[4 * part..].as_mut_ptr().cast(), vector[part]) };
        load_integers(from: &[i32; LANES]) -> Quad = PARTS.map(|part| v128_load(from[4 * part..].as_ptr().cast()));
        store_integers(vector: Quad, to: &mut [i32; LANES]) -> () =
            for part in PARTS { v128_store(to[4 * part..].as_mut_ptr().cast(), vector[part]) };
        store_bytes(a: Quad, to: &mut [u8; LANES]) -> () = {
            let [low, high] = narrow(a);
            v128_store(to.as_mut_ptr().cast(), u8x16_narrow_i16x8(low, high));
        };
        store_shorts(a: Quad, to: &mut [i16; LANES]) -> () = {
            let [low, high] = narrow(a);
            v128_store(to.as_mut_ptr().cast(), low);
            v128_store(to[8..].as_mut_ptr().cast(), high);
        };
    }

    #[inline(always)]
    fn sum(self, a: Quad) -> f32 {
        let four = f32x4_add(f32x4_add(a[0], a[2]), f32x4_add(a[1], a[3]));
        (f32x4_extract_lane::<0>(four) + f32x4_extract_lane::<2>(four))
            + (f32x4_extract_lane::<1>(four) + f32x4_extract_lane::<3>(four))
    }
}

impl ByteTiles for Simd128 {}

/// Sixteen lanes into 16 bits each.
#[inline(always)]
fn narrow(a: Quad) -> [v128; 2] {
    [i16x8_narrow_i32x4(a[0], a[1]), i16x8_narrow_i32x4(a[2], a[3])]
}
