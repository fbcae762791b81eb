//! NEON, which every 64-bit ARM CPU has.

use std::arch::aarch64::*;

use super::{Floats, Kernel, Kernels, SPAN};

pub(super) const NEON: Kernels = Kernels {
    kernel: Kernel::Neon,
    // SAFETY: `implementations` hands these kernels out only where the CPU has the instructions.
    dots: |query, rows, products| unsafe { dots(query, rows, products) },
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

#[inline]
#[target_feature(enable = "neon")]
fn load(part: &[f32; 4]) -> float32x4_t {
    // SAFETY: the reference covers the 16 bytes.
    unsafe { vld1q_f32(part.as_ptr()) }
}
