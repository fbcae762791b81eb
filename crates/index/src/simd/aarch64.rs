//! NEON, which every 64-bit ARM CPU has.

use std::arch::aarch64::*;

use super::{CodePlanes, Codes, Floats, Kernel, Kernels, SPAN, join_planes};

pub(super) const NEON: Kernels = Kernels {
    kernel: Kernel::Neon,
    // SAFETY: `implementations` hands these kernels out only where the CPU has the instructions.
    dots: |query, rows, products| unsafe { dots(query, rows, products) },
    // SAFETY: as above.
    code_dots: |query, rows, products| unsafe { code_dots(query, rows, products) },
};

#[target_feature(enable = "neon")]
fn dots(query: &[Floats], rows: &[Floats], products: &mut [f64]) {
    for (row, product) in rows.chunks_exact(query.len()).zip(products) {
        let mut total = 0.0;
        for (query, row) in query.chunks(SPAN).zip(row.chunks(SPAN)) {
            let mut sums = [vdupq_n_f32(0.0); 16];
            for (query, row) in query.iter().zip(row) {
                let (query, row) = (query.0.as_chunks::<4>().0, row.0.as_chunks::<4>().0);
                for part in 0..16 {
                    sums[part] = vfmaq_f32(sums[part], load(&query[part]), load(&row[part]));
                }
            }
            let mut half = 8;
            while half > 0 {
                for part in 0..half {
                    sums[part] = vaddq_f32(sums[part], sums[part + half]);
                }
                half /= 2;
            }
            let pair = vadd_f32(vget_low_f32(sums[0]), vget_high_f32(sums[0]));
            total += f64::from(vpadds_f32(pair));
        }
        *product = total;
    }
}

#[target_feature(enable = "neon")]
fn code_dots(query: &[CodePlanes], rows: &[Codes], products: &mut [f64]) {
    for (row, product) in rows.chunks_exact(query.len()).zip(products) {
        let (mut high, mut low) = (vdupq_n_s32(0), vdupq_n_s32(0));
        for (query, row) in query.iter().zip(row) {
            let high_parts = query.high.as_chunks::<8>().0;
            let low_parts = query.low.as_chunks::<8>().0;
            let codes = row.0.as_chunks::<8>().0;
            for part in 0..8 {
                // At most 255, so it is the same number as a signed integer.
                let codes = vreinterpretq_s16_u16(vmovl_u8(load_codes(&codes[part])));
                high = multiply_add(high, codes, vmovl_s8(load_plane(&high_parts[part])));
                low = multiply_add(low, codes, vmovl_s8(load_plane(&low_parts[part])));
            }
        }
        *product = join_planes(vaddvq_s32(high), vaddvq_s32(low));
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn multiply_add(sums: int32x4_t, a: int16x8_t, b: int16x8_t) -> int32x4_t {
    vmlal_high_s16(vmlal_s16(sums, vget_low_s16(a), vget_low_s16(b)), a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn load(part: &[f32; 4]) -> float32x4_t {
    // SAFETY: the reference covers the 16 bytes.
    unsafe { vld1q_f32(part.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_codes(codes: &[u8; 8]) -> uint8x8_t {
    // SAFETY: the reference covers the 8 bytes.
    unsafe { vld1_u8(codes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_plane(plane: &[i8; 8]) -> int8x8_t {
    // SAFETY: the reference covers the 8 bytes.
    unsafe { vld1_s8(plane.as_ptr()) }
}
