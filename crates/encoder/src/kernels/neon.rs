//! NEON: four registers for a vector. Every 64-bit ARM processor has it, most have its dot products of bytes too.

use std::arch::{aarch64::*, asm, is_aarch64_feature_detected};

use super::{
    Work,
    lanes::{LANES, Lanes},
};

/// A processor with NEON, and with its dot products of bytes if `DOT` is true.
#[derive(Debug, Clone, Copy)]
pub struct Neon<const DOT: bool>(());

impl<const DOT: bool> Neon<DOT> {
    /// Returns the proof that this processor has the instructions, if it has.
    pub fn detect() -> Option<Self> {
        let base = is_aarch64_feature_detected!("neon");
        (base && (!DOT || is_aarch64_feature_detected!("dotprod"))).then_some(Self(()))
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

impl<const DOT: bool> Lanes for Neon<DOT> {
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

/// Sixteen lanes into 16 bits each.
#[inline(always)]
fn narrow([a, b, c, d]: IntegerQuad) -> [int16x8_t; 2] {
    // SAFETY: the values of this type exist only where there is NEON.
    let half = |low, high| unsafe { vcombine_s16(vqmovn_s32(low), vqmovn_s32(high)) };
    [half(a, b), half(c, d)]
}

compiled_for! {
    Neon<true>, "neon,dotprod";
    Neon<false>, "neon";
}
