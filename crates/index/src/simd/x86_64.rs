//! AVX-512 and AVX2 (with FMA).

use std::arch::x86_64::*;

use super::{Floats, Kernel, Kernels, SPAN};

pub(super) const AVX512: Kernels = Kernels {
    kernel: Kernel::Avx512Vnni,
    // SAFETY: `implementations` hands these kernels out only where the CPU has the instructions.
    dots: |query, rows, products| unsafe { avx512::dots(query, rows, products) },
};

pub(super) const AVX2: Kernels = Kernels {
    kernel: Kernel::Avx2,
    // SAFETY: `implementations` hands these kernels out only where the CPU has the instructions.
    dots: |query, rows, products| unsafe { avx2::dots(query, rows, products) },
};

/// Prefetches the components that lie this many groups after a group. Rows that come from memory arrive sooner with it, because the
/// CPU's own prefetching stops at every 4 KB.
#[inline]
fn prefetch(group: &Floats) {
    const AHEAD: usize = 16;
    const LINE: usize = 64;
    let first = std::ptr::from_ref(group).wrapping_add(AHEAD).cast::<i8>();
    for line in 0..size_of::<Floats>() / LINE {
        // SAFETY: a prefetch is a hint; it reads nothing, and every address is valid for it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(line * LINE)) };
    }
}

mod avx512 {
    use super::*;

    #[target_feature(enable = "avx512f,avx2,fma")]
    pub(super) fn dots(query: &[Floats], rows: &[Floats], products: &mut [f64]) {
        for (row, product) in rows.chunks_exact(query.len()).zip(products) {
            let mut total = 0.0;
            for (query, row) in query.chunks(SPAN).zip(row.chunks(SPAN)) {
                let mut sums = [_mm512_setzero_ps(); 4];
                for (query, row) in query.iter().zip(row) {
                    prefetch(row);
                    let (query, row) = (query.0.as_chunks::<16>().0, row.0.as_chunks::<16>().0);
                    for part in 0..4 {
                        sums[part] = _mm512_fmadd_ps(load(&query[part]), load(&row[part]), sums[part]);
                    }
                }
                let [a, b, c, d] = sums;
                let sum = _mm512_add_ps(_mm512_add_ps(a, c), _mm512_add_ps(b, d));
                let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(sum)));
                let sum = _mm256_add_ps(_mm512_castps512_ps256(sum), upper);
                total += f64::from(avx2::sum(sum));
            }
            *product = total;
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(part: &[f32; 16]) -> __m512 {
        // SAFETY: the reference covers the 64 bytes.
        unsafe { _mm512_loadu_ps(part.as_ptr()) }
    }
}

mod avx2 {
    use super::*;

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn dots(query: &[Floats], rows: &[Floats], products: &mut [f64]) {
        for (row, product) in rows.chunks_exact(query.len()).zip(products) {
            let mut total = 0.0;
            for (query, row) in query.chunks(SPAN).zip(row.chunks(SPAN)) {
                let mut sums = [_mm256_setzero_ps(); 8];
                for (query, row) in query.iter().zip(row) {
                    prefetch(row);
                    let (query, row) = (query.0.as_chunks::<8>().0, row.0.as_chunks::<8>().0);
                    for part in 0..8 {
                        sums[part] = _mm256_fmadd_ps(load(&query[part]), load(&row[part]), sums[part]);
                    }
                }
                let [a, b, c, d, e, f, g, h] = sums;
                let (a, b) = (_mm256_add_ps(a, e), _mm256_add_ps(b, f));
                let (c, d) = (_mm256_add_ps(c, g), _mm256_add_ps(d, h));
                let (a, b) = (_mm256_add_ps(a, c), _mm256_add_ps(b, d));
                total += f64::from(sum(_mm256_add_ps(a, b)));
            }
            *product = total;
        }
    }

    /// The sum of eight lanes, added in halves as the contract of the module says.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn sum(sums: __m256) -> f32 {
        let sums = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums));
        let sums = _mm_add_ps(sums, _mm_movehl_ps(sums, sums));
        _mm_cvtss_f32(_mm_add_ss(sums, _mm_movehdup_ps(sums)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(part: &[f32; 8]) -> __m256 {
        // SAFETY: the reference covers the 32 bytes.
        unsafe { _mm256_loadu_ps(part.as_ptr()) }
    }
}
