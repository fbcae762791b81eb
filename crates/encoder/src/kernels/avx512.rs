//! AVX-512, with and without VNNI.

use std::arch::x86_64::*;

use super::{
    Work, amx,
    lanes::{Bytes, Integers, LANES, Lanes},
    tile::{ByteTiles, MAX_ROWS, OfBytes, Rows, Tiles, multiply},
};

/// A processor with AVX-512 (F, BW, DQ and VL), and with its VNNI if `VNNI` is true.
#[derive(Debug, Clone, Copy)]
pub struct Avx512<const VNNI: bool> {
    /// Whether AMX multiplies bytes.
    amx: bool,
}

impl Avx512<true> {
    /// As [`Self::detect`], if AMX is usable as well.
    pub fn detect_with_amx() -> Option<Self> {
        // Last, because it asks the system for a permission.
        let amx = Self::detect().is_some() && amx::is_usable();
        amx.then_some(Self { amx })
    }
}

impl<const VNNI: bool> Avx512<VNNI> {
    /// Returns the proof that this processor has the instructions, if it has.
    pub fn detect() -> Option<Self> {
        let base = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma");
        (base && (!VNNI || is_x86_feature_detected!("avx512vnni"))).then_some(Self { amx: false })
    }
}

impl<const VNNI: bool> Lanes for Avx512<VNNI> {
    type F = __m512;
    type I = __m512i;

    const ROWS: usize = 12;
    const INTEGER_ROWS: usize = 12;
    const PANELS: usize = 2;

    #[inline(always)]
    fn prefetch<T>(self, address: *const T) {
        // SAFETY: A prefetch never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }

    #[inline(always)]
    fn transpose(self, from: &[[i32; LANES]; LANES], to: &mut [[i32; LANES]; LANES]) {
        let mut rows = [self.splat_integer(0); LANES];
        for (row, from) in rows.iter_mut().zip(from) {
            *row = self.load_integers(from);
        }
        let rows = self.rotate(self.rotate(self.rotate(self.rotate(rows))));
        for (row, to) in rows.into_iter().zip(to) {
            self.store_integers(row, to);
        }
    }

    operations! {
        load(from: &[f32; LANES]) -> __m512 = _mm512_loadu_ps(from.as_ptr());
        store(vector: __m512, to: &mut [f32; LANES]) -> () = _mm512_storeu_ps(to.as_mut_ptr(), vector);
        load_integers(from: &[i32; LANES]) -> __m512i = _mm512_loadu_epi32(from.as_ptr());
        store_integers(vector: __m512i, to: &mut [i32; LANES]) -> () = _mm512_storeu_epi32(to.as_mut_ptr(), vector);
        splat(value: f32) -> __m512 = _mm512_set1_ps(value);
        add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
        subtract(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps(a, b);
        multiply(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        divide(a: __m512, b: __m512) -> __m512 = _mm512_div_ps(a, b);
        fuse(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        larger(a: __m512, b: __m512) -> __m512 = _mm512_max_ps(a, b);
        smaller(a: __m512, b: __m512) -> __m512 = _mm512_min_ps(a, b);
        absolute(a: __m512) -> __m512 = _mm512_abs_ps(a);
        accumulate(a: f32, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(_mm512_set1_ps(a), b, c);
        splat_integer(value: i32) -> __m512i = _mm512_set1_epi32(value);
        add_integers(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32(a, b);
        round(a: __m512) -> __m512i = _mm512_cvtps_epi32(a);
        to_floats(a: __m512i) -> __m512 = _mm512_cvtepi32_ps(a);
        as_floats(a: __m512i) -> __m512 = _mm512_castsi512_ps(a);
        as_integers(a: __m512) -> __m512i = _mm512_castps_si512(a);
        shift_left_16(a: __m512i) -> __m512i = _mm512_slli_epi32::<16>(a);
        shift_left_23(a: __m512i) -> __m512i = _mm512_slli_epi32::<23>(a);
        or(a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512(a, b);
        dot_bytes(a: i32, b: __m512i, c: __m512i) -> __m512i = if VNNI {
            _mm512_dpbusd_epi32(c, _mm512_set1_epi32(a), b)
        } else {
            let pairs = _mm512_maddubs_epi16(_mm512_set1_epi32(a), b);
            _mm512_add_epi32(c, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))
        };
        dot_shorts(a: i32, b: __m512i, c: __m512i) -> __m512i = if VNNI {
            _mm512_dpwssd_epi32(c, _mm512_set1_epi32(a), b)
        } else {
            _mm512_add_epi32(c, _mm512_madd_epi16(_mm512_set1_epi32(a), b))
        };
        store_bytes(a: __m512i, to: &mut [u8; LANES]) -> () = {
            let positive = _mm512_max_epi32(a, _mm512_setzero_si512());
            _mm_storeu_si128(to.as_mut_ptr().cast(), _mm512_cvtusepi32_epi8(positive));
        };
        store_shorts(a: __m512i, to: &mut [i16; LANES]) -> () =
            _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm512_cvtsepi32_epi16(a));
        sum(a: __m512) -> f32 = {
            let upper = _mm512_extractf32x8_ps::<1>(a);
            let eight = _mm256_add_ps(_mm512_castps512_ps256(a), upper);
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        };
    }
}

impl<const VNNI: bool> Avx512<VNNI> {
    operations! {
        // The place of a word is eight bits, four of its row and four of its lane: rotates them by one, so that four turns transpose.
        rotate(rows: [__m512i; LANES]) -> [__m512i; LANES] = {
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            let mut rotated = rows;
            for row in 0..LANES / 2 {
                rotated[2 * row] = _mm512_permutex2var_epi32(rows[row], low, rows[row + LANES / 2]);
                rotated[2 * row + 1] = _mm512_permutex2var_epi32(rows[row], high, rows[row + LANES / 2]);
            }
            rotated
        };
    }
}

impl<const VNNI: bool> ByteTiles for Avx512<VNNI> {
    #[inline(always)]
    fn begin_bytes(self, rows: usize) -> Tiles {
        let tiles = Tiles::new(rows, if self.amx { MAX_ROWS } else { Self::INTEGER_ROWS });
        if let Some((_, tallest)) = tiles.iter().next().filter(|_| self.amx) {
            // SAFETY: `detect_with_amx` has found AMX to be usable, and the first tile is the tallest.
            unsafe { amx::configure(tallest) };
        }
        tiles
    }

    #[inline(always)]
    fn multiply_bytes(self, rows: Rows<i32>, panels: &[Bytes], sums: &mut [Integers]) {
        if self.amx && rows.depth.is_multiple_of(amx::WORDS) {
            // SAFETY: `begin_bytes` has configured the tiles.
            unsafe { amx::multiply(rows, panels, sums) };
        } else {
            multiply::<Self, OfBytes>(self, rows, (panels, rows.depth), (sums, MAX_ROWS), false);
        }
    }

    #[inline(always)]
    fn end_bytes(self) {
        if self.amx {
            // SAFETY: `detect_with_amx` has found AMX to be usable.
            unsafe { amx::release() };
        }
    }
}

compiled_for! {
    Avx512<true>, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,avx512vnni";
    Avx512<false>, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma";
}
