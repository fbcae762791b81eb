//! NEON: four registers for a vector. Every 64-bit ARM processor has it, most have its dot products of bytes
//! too, newer ones its products of byte matrices.

use std::arch::{aarch64::*, asm, is_aarch64_feature_detected};

use super::{
    Work,
    lanes::{Bytes, Integers, LANES, Lanes},
    tile::{ByteTiles, MAX_ROWS, OfBytes, Rows, multiply},
};

/// A processor with NEON, with its dot products of bytes if `DOT` is true, and with its products of byte
/// matrices if `MATRIX` is true.
#[derive(Debug, Clone, Copy)]
pub struct Neon<const DOT: bool, const MATRIX: bool>(());

impl<const DOT: bool, const MATRIX: bool> Neon<DOT, MATRIX> {
    /// Returns the proof that this processor has the instructions, if it has.
    pub fn detect() -> Option<Self> {
        let base = is_aarch64_feature_detected!("neon");
        let dot = !DOT || is_aarch64_feature_detected!("dotprod");
        (base && dot && (!MATRIX || is_aarch64_feature_detected!("i8mm"))).then_some(Self(()))
    }
}

/// Sixteen floats.
pub type Quad = [float32x4_t; 4];
/// Sixteen integers.
pub type IntegerQuad = [int32x4_t; 4];

/// The value for each of the four registers. Not `array::from_fn`, whose closure may end up outside of the functions that are
/// compiled for the instructions.
macro_rules! four {
    ($part:ident => $value:expr) => {
        [
            {
                let $part = 0;
                $value
            },
            {
                let $part = 1;
                $value
            },
            {
                let $part = 2;
                $value
            },
            {
                let $part = 3;
                $value
            },
        ]
    };
}

/// Adds the products of a vector and one number, which the instruction takes from the register that it was loaded into. The
/// compiler would load copies of it instead, for which most processors need a unit that multiplies, and it would add up products of
/// 16 bits before it adds them to the sum. And not all of these have intrinsics that are stable.
macro_rules! by_element {
    ($instruction:literal, $class:ident, $sum:expr, $vector:expr, $number:expr) => {{
        let mut sum = $sum;
        asm!(
            ".arch_extension dotprod", // For a copy of this method that stands outside of `run`.
            $instruction,
            inout(vreg) sum, in(vreg) $vector, in($class) $number,
            options(pure, nomem, nostack, preserves_flags),
        );
        sum
    }};
}

/// Four numbers at a time, each a register.
macro_rules! quarters {
    ($($name:ident($($argument:ident),*): $type:ty => $result:ty = $value:expr;)*) => {
        operations! {$(
            $name($($argument: [$type; 4]),*) -> [$result; 4] = four!(part => {
                $(let $argument = $argument[part];)*
                $value
            });
        )*}
    };
}

impl<const DOT: bool, const MATRIX: bool> Lanes for Neon<DOT, MATRIX> {
    type F = Quad;
    type I = IntegerQuad;

    const ROWS: usize = 6;
    const INTEGER_ROWS: usize = if DOT { 6 } else { 4 };
    const PANELS: usize = 1;
    const BYTE_BIAS: i32 = 128;

    quarters! {
        add(a, b): float32x4_t => float32x4_t = vaddq_f32(a, b);
        subtract(a, b): float32x4_t => float32x4_t = vsubq_f32(a, b);
        multiply(a, b): float32x4_t => float32x4_t = vmulq_f32(a, b);
        divide(a, b): float32x4_t => float32x4_t = vdivq_f32(a, b);
        fuse(a, b, c): float32x4_t => float32x4_t = vfmaq_f32(c, a, b);
        // Not `fmax`, which knows no order of its arguments.
        larger(a, b): float32x4_t => float32x4_t = vbslq_f32(vcgtq_f32(a, b), a, b);
        smaller(a, b): float32x4_t => float32x4_t = vbslq_f32(vcltq_f32(a, b), a, b);
        absolute(a): float32x4_t => float32x4_t = vabsq_f32(a);
        add_integers(a, b): int32x4_t => int32x4_t = vaddq_s32(a, b);
        round(a): float32x4_t => int32x4_t = vcvtnq_s32_f32(a);
        to_floats(a): int32x4_t => float32x4_t = vcvtq_f32_s32(a);
        as_floats(a): int32x4_t => float32x4_t = vreinterpretq_f32_s32(a);
        as_integers(a): float32x4_t => int32x4_t = vreinterpretq_s32_f32(a);
        shift_left_16(a): int32x4_t => int32x4_t = vshlq_n_s32::<16>(a);
        shift_left_23(a): int32x4_t => int32x4_t = vshlq_n_s32::<23>(a);
        or(a, b): int32x4_t => int32x4_t = vorrq_s32(a, b);
    }

    #[inline(always)]
    fn prefetch<T>(self, address: *const T) {
        // SAFETY: A prefetch never faults, whatever the address.
        unsafe { asm!("prfm pldl2keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly)) }
    }

    operations! {
        load(from: &[f32; LANES]) -> Quad = four!(part => vld1q_f32(from[4 * part..].as_ptr()));
        store(vector: Quad, to: &mut [f32; LANES]) -> () =
            for (part, to) in vector.into_iter().zip(to.as_chunks_mut::<4>().0) { vst1q_f32(to.as_mut_ptr(), part) };
        load_integers(from: &[i32; LANES]) -> IntegerQuad = four!(part => vld1q_s32(from[4 * part..].as_ptr()));
        store_integers(vector: IntegerQuad, to: &mut [i32; LANES]) -> () =
            for (part, to) in vector.into_iter().zip(to.as_chunks_mut::<4>().0) { vst1q_s32(to.as_mut_ptr(), part) };
        splat(value: f32) -> Quad = [vdupq_n_f32(value); 4];
        splat_integer(value: i32) -> IntegerQuad = [vdupq_n_s32(value); 4];
        accumulate(a: f32, b: Quad, c: Quad) -> Quad = four!(part => {
            by_element!("fmla {:v}.4s, {:v}.4s, {:v}.s[0]", vreg, c[part], b[part], a)
        });
        dot_bytes(a: i32, b: IntegerQuad, c: IntegerQuad) -> IntegerQuad = if DOT {
            four!(part => by_element!("sdot {:v}.4s, {:v}.16b, {:v}.4b[0]", vreg, c[part], b[part], a))
        } else {
            let a = vreinterpretq_s8_s32(vdupq_n_s32(a));
            four!(part => {
                let b = vreinterpretq_s8_s32(b[part]);
                let low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
                vpadalq_s16(c[part], vpaddq_s16(low, vmull_high_s8(a, b)))
            })
        };
        dot_shorts(a: i32, b: IntegerQuad, c: IntegerQuad) -> IntegerQuad = four!(part => {
            let (low, high) = (vreinterpretq_s16_s32(b[part / 2 * 2]), vreinterpretq_s16_s32(b[part / 2 * 2 + 1]));
            // The same for all rows, so the compiler does it once.
            let (even, odd) = (vuzp1q_s16(low, high), vuzp2q_s16(low, high));
            if part % 2 == 0 {
                let sum = by_element!("smlal {:v}.4s, {:v}.4h, {:v}.h[0]", vreg_low16, c[part], even, a);
                by_element!("smlal {:v}.4s, {:v}.4h, {:v}.h[1]", vreg_low16, sum, odd, a)
            } else {
                let sum = by_element!("smlal2 {:v}.4s, {:v}.8h, {:v}.h[0]", vreg_low16, c[part], even, a);
                by_element!("smlal2 {:v}.4s, {:v}.8h, {:v}.h[1]", vreg_low16, sum, odd, a)
            }
        });
        store_bytes(a: IntegerQuad, to: &mut [u8; LANES]) -> () = {
            let [low, high] = narrow(a);
            let bytes = vcombine_u8(vqmovun_s16(low), vqmovun_s16(high));
            vst1q_u8(to.as_mut_ptr(), veorq_u8(bytes, vdupq_n_u8(0x80)));
        };
        store_shorts(a: IntegerQuad, to: &mut [i16; LANES]) -> () = {
            let [low, high] = narrow(a);
            vst1q_s16(to.as_mut_ptr(), low);
            vst1q_s16(to[8..].as_mut_ptr(), high);
        };
        sum(a: Quad) -> f32 = {
            let four = vaddq_f32(vaddq_f32(a[0], a[2]), vaddq_f32(a[1], a[3]));
            let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
            vpadds_f32(two)
        };
    }
}

impl<const DOT: bool, const MATRIX: bool> ByteTiles for Neon<DOT, MATRIX> {
    #[inline(always)]
    fn multiply_bytes(self, rows: Rows<i32>, panels: &[Bytes], sums: &mut [Integers]) {
        if MATRIX {
            self.multiply_pairs(rows, panels, sums);
        } else {
            multiply::<Self, OfBytes>(self, rows, (panels, rows.depth), (sums, MAX_ROWS), false);
        }
    }
}

/// Pairs of rows in a tile of products of byte matrices.
const PAIRS: usize = 3;

/// The sums of pairs of rows with four outputs: a register has those of two rows with two outputs.
type PairSums = [[int32x4_t; 2]; PAIRS];

impl<const DOT: bool, const MATRIX: bool> Neon<DOT, MATRIX> {
    operations! {
        pair(a: &[i32; 2], b: &[i32; 2]) -> int32x4_t = {
            vcombine_s32(vld1_s32(a.as_ptr()), vld1_s32(b.as_ptr()))
        };
        // Zips the eight inputs of the four outputs in a quarter of two blocks, and adds their products with
        // pairs of rows. In one `asm!`, because the compiler loads more ahead than it has registers for.
        add_pairs(
            rows: [int32x4_t; PAIRS], blocks: &[Bytes; 2], quarter: usize, sums: PairSums
        ) -> PairSums = {
            let from = &bytemuck::cast_slice::<_, i8>(blocks)[16 * quarter..][..80];
            let [[mut a, mut b], [mut c, mut d], [mut e, mut f]] = sums;
            asm!(
                ".arch_extension i8mm",
                "ldr {low:q}, [{from}]",
                "ldr {high:q}, [{from}, #64]",
                "zip1 {zip:v}.4s, {low:v}.4s, {high:v}.4s",
                "zip2 {high:v}.4s, {low:v}.4s, {high:v}.4s",
                "smmla {a:v}.4s, {x:v}.16b, {zip:v}.16b",
                "smmla {c:v}.4s, {y:v}.16b, {zip:v}.16b",
                "smmla {e:v}.4s, {z:v}.16b, {zip:v}.16b",
                "smmla {b:v}.4s, {x:v}.16b, {high:v}.16b",
                "smmla {d:v}.4s, {y:v}.16b, {high:v}.16b",
                "smmla {f:v}.4s, {z:v}.16b, {high:v}.16b",
                a = inout(vreg) a, b = inout(vreg) b, c = inout(vreg) c,
                d = inout(vreg) d, e = inout(vreg) e, f = inout(vreg) f,
                x = in(vreg) rows[0], y = in(vreg) rows[1], z = in(vreg) rows[2],
                low = out(vreg) _, high = out(vreg) _, zip = out(vreg) _, from = in(reg) from.as_ptr(),
                options(pure, readonly, nostack, preserves_flags),
            );
            [[a, b], [c, d], [e, f]]
        };
        // The sums of the rows of a pair.
        unpair(sums: [int32x4_t; 2]) -> [int32x4_t; 2] = {
            let [a, b] = [vreinterpretq_s64_s32(sums[0]), vreinterpretq_s64_s32(sums[1])];
            [vreinterpretq_s32_s64(vzip1q_s64(a, b)), vreinterpretq_s32_s64(vzip2q_s64(a, b))]
        };
    }

    /// Multiplies one to six rows with a panel, eight inputs at a time. Missing rows repeat the last one.
    #[inline(always)]
    fn multiply_pairs(self, rows: Rows<i32>, panel: &[Bytes], sums: &mut [Integers]) {
        assert!((1..=2 * PAIRS).contains(&rows.rows));
        let words = |row: usize| {
            let row = row.min(rows.rows - 1) * rows.row_step;
            rows.words[row..][..rows.depth].as_chunks::<2>().0
        };
        let [a, b, c, d, e, f] = [words(0), words(1), words(2), words(3), words(4), words(5)];
        let mut tile = [[[self.splat_integer(0)[0]; 2]; PAIRS]; 4];
        for (word, blocks) in panel[..rows.depth].as_chunks().0.iter().enumerate() {
            // The panel of the next tile, as in `multiply`.
            self.prefetch(blocks.as_ptr().wrapping_add(rows.depth));
            self.prefetch(blocks.as_ptr().wrapping_add(rows.depth + 1));
            let rows = [
                self.pair(&a[word], &b[word]),
                self.pair(&c[word], &d[word]),
                self.pair(&e[word], &f[word]),
            ];
            for (quarter, part) in tile.iter_mut().enumerate() {
                *part = self.add_pairs(rows, blocks, quarter, *part);
            }
        }
        for pair in 0..PAIRS {
            let quarters = four!(quarter => self.unpair(tile[quarter][pair]));
            for row in 0..2 {
                let row_sums = four!(quarter => quarters[quarter][row]);
                self.store_integers(row_sums, &mut sums[2 * pair + row].0);
            }
        }
    }
}

/// Sixteen lanes into 16 bits each.
#[inline(always)]
fn narrow([a, b, c, d]: IntegerQuad) -> [int16x8_t; 2] {
    // SAFETY: the values of this type exist only where there is NEON.
    let half = |low, high| unsafe { vcombine_s16(vqmovn_s32(low), vqmovn_s32(high)) };
    [half(a, b), half(c, d)]
}

compiled_for! {
    Neon<true, true>, "neon,dotprod,i8mm";
    Neon<true, false>, "neon,dotprod";
    Neon<false, false>, "neon";
}
