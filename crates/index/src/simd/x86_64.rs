//! AVX-512 (with VNNI) and AVX2 (with FMA).

use std::arch::x86_64::*;

use bytemuck::cast_ref;

use super::{CodePlanes, Codes, Floats, Kernel, Kernels, SPAN, join_planes};

pub(super) const AVX512: Kernels = Kernels {
    kernel: Kernel::Avx512Vnni,
    // SAFETY: `implementations` hands these kernels out only where the CPU has the instructions.
    dots: |query, rows, products| unsafe { avx512::dots(query, rows, products) },
    // SAFETY: as above.
    code_dots: |query, rows, products| unsafe { avx512::code_dots(query, rows, products) },
};

pub(super) const AVX2: Kernels = Kernels {
    kernel: Kernel::Avx2,
    // SAFETY: `implementations` hands these kernels out only where the CPU has the instructions.
    dots: |query, rows, products| unsafe { avx2::dots(query, rows, products) },
    // SAFETY: as above.
    code_dots: |query, rows, products| unsafe { avx2::code_dots(query, rows, products) },
};

/// Prefetches the codes that lie this far after `codes`. Codes that come from memory arrive a fifth sooner with it, because the
/// CPU's own prefetching stops at every 4 KB.
#[inline]
fn prefetch(codes: &Codes) {
    const AHEAD: usize = 32;
    let address = std::ptr::from_ref(codes).wrapping_add(AHEAD);
    // SAFETY: a prefetch is a hint; it reads nothing, and every address is valid for it.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
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

    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) fn code_dots(query: &[CodePlanes], rows: &[Codes], products: &mut [f64]) {
        for (row, product) in rows.chunks_exact(query.len()).zip(products) {
            let (mut high, mut low) = (_mm512_setzero_si512(), _mm512_setzero_si512());
            for (query, row) in query.iter().zip(row) {
                prefetch(row);
                let codes = load_bytes(&row.0);
                high = _mm512_dpbusd_epi32(high, codes, load_bytes(cast_ref(&query.high)));
                low = _mm512_dpbusd_epi32(low, codes, load_bytes(cast_ref(&query.low)));
            }
            *product = join_planes(_mm512_reduce_add_epi32(high), _mm512_reduce_add_epi32(low));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(part: &[f32; 16]) -> __m512 {
        // SAFETY: the reference covers the 64 bytes.
        unsafe { _mm512_loadu_ps(part.as_ptr()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load_bytes(bytes: &[u8; 64]) -> __m512i {
        // SAFETY: the reference covers the 64 bytes.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
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

    /// `vpmaddubsw` would saturate, so the codes are widened to 16 bits first.
    #[target_feature(enable = "avx2")]
    pub(super) fn code_dots(query: &[CodePlanes], rows: &[Codes], products: &mut [f64]) {
        for (row, product) in rows.chunks_exact(query.len()).zip(products) {
            let (mut high, mut low) = (_mm256_setzero_si256(), _mm256_setzero_si256());
            for (query, row) in query.iter().zip(row) {
                prefetch(row);
                let high_parts = query.high.as_chunks::<16>().0;
                let low_parts = query.low.as_chunks::<16>().0;
                let codes = row.0.as_chunks::<16>().0;
                for part in 0..4 {
                    let codes = _mm256_cvtepu8_epi16(load_bytes(&codes[part]));
                    let high_part = _mm256_cvtepi8_epi16(load_bytes(cast_ref(&high_parts[part])));
                    let low_part = _mm256_cvtepi8_epi16(load_bytes(cast_ref(&low_parts[part])));
                    high = _mm256_add_epi32(high, _mm256_madd_epi16(codes, high_part));
                    low = _mm256_add_epi32(low, _mm256_madd_epi16(codes, low_part));
                }
            }
            *product = join_planes(sum_integers(high), sum_integers(low));
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn sum_integers(sums: __m256i) -> i32 {
        let sums = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let sums = _mm_add_epi32(sums, _mm_shuffle_epi32::<0b01_00_11_10>(sums));
        _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_shuffle_epi32::<0b10_11_00_01>(sums)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(part: &[f32; 8]) -> __m256 {
        // SAFETY: the reference covers the 32 bytes.
        unsafe { _mm256_loadu_ps(part.as_ptr()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load_bytes(bytes: &[u8; 16]) -> __m128i {
        // SAFETY: the reference covers the 16 bytes.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }
}
