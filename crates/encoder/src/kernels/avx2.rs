//! AVX2 with FMA, with and without AVX-VNNI: two registers for a vector.

use std::arch::x86_64::*;

use super::{
    Work,
    lanes::{LANES, Lanes},
    tile::ByteTiles,
};

/// A processor with AVX2 and FMA, and with AVX-VNNI if `VNNI` is true.
#[derive(Debug, Clone, Copy)]
pub struct Avx2<const VNNI: bool>(());

impl<const VNNI: bool> Avx2<VNNI> {
    /// Returns the proof that this processor has the instructions, if it has.
    pub fn detect() -> Option<Self> {
        let base = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        (base && (!VNNI || is_x86_feature_detected!("avxvnni"))).then_some(Self(()))
    }
}

/// Sixteen floats.
pub type Pair = [__m256; 2];
/// Sixteen integers.
pub type IntegerPair = [__m256i; 2];

/// Eight numbers at a time, each pair of registers.
macro_rules! halves {
    ($($name:ident($($argument:ident),*): $type:ty => $result:ty = $intrinsic:ident;)*) => {
        operations! {$(
            $name($($argument: [$type; 2]),*) -> [$result; 2] =
                [$intrinsic($($argument[0]),*), $intrinsic($($argument[1]),*)];
        )*}
    };
}

impl<const VNNI: bool> Lanes for Avx2<VNNI> {
    type F = Pair;
    type I = IntegerPair;

    const ROWS: usize = 6;
    const INTEGER_ROWS: usize = if VNNI { 6 } else { 5 };
    const PANELS: usize = 1;

    halves! {
        add(a, b): __m256 => __m256 = _mm256_add_ps;
        subtract(a, b): __m256 => __m256 = _mm256_sub_ps;
        multiply(a, b): __m256 => __m256 = _mm256_mul_ps;
        divide(a, b): __m256 => __m256 = _mm256_div_ps;
        fuse(a, b, c): __m256 => __m256 = _mm256_fmadd_ps;
        larger(a, b): __m256 => __m256 = _mm256_max_ps;
        smaller(a, b): __m256 => __m256 = _mm256_min_ps;
        add_integers(a, b): __m256i => __m256i = _mm256_add_epi32;
        round(a): __m256 => __m256i = _mm256_cvtps_epi32;
        to_floats(a): __m256i => __m256 = _mm256_cvtepi32_ps;
        as_floats(a): __m256i => __m256 = _mm256_castsi256_ps;
        as_integers(a): __m256 => __m256i = _mm256_castps_si256;
        or(a, b): __m256i => __m256i = _mm256_or_si256;
    }

    #[inline(always)]
    fn prefetch<T>(self, address: *const T) {
        // SAFETY: A prefetch never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }

    operations! {
        load(from: &[f32; LANES]) -> Pair =
            [_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from[8..].as_ptr())];
        store(vector: Pair, to: &mut [f32; LANES]) -> () = {
            _mm256_storeu_ps(to.as_mut_ptr(), vector[0]);
            _mm256_storeu_ps(to[8..].as_mut_ptr(), vector[1]);
        };
        load_integers(from: &[i32; LANES]) -> IntegerPair =
            [_mm256_loadu_si256(from.as_ptr().cast()), _mm256_loadu_si256(from[8..].as_ptr().cast())];
        store_integers(vector: IntegerPair, to: &mut [i32; LANES]) -> () = {
            _mm256_storeu_si256(to.as_mut_ptr().cast(), vector[0]);
            _mm256_storeu_si256(to[8..].as_mut_ptr().cast(), vector[1]);
        };
        shift_left_16(a: IntegerPair) -> IntegerPair = [_mm256_slli_epi32::<16>(a[0]), _mm256_slli_epi32::<16>(a[1])];
        shift_left_23(a: IntegerPair) -> IntegerPair = [_mm256_slli_epi32::<23>(a[0]), _mm256_slli_epi32::<23>(a[1])];
        splat(value: f32) -> Pair = [_mm256_set1_ps(value); 2];
        splat_integer(value: i32) -> IntegerPair = [_mm256_set1_epi32(value); 2];
        absolute(a: Pair) -> Pair = {
            let mask = _mm256_castsi256_ps(_mm256_set1_epi32(i32::MAX));
            [_mm256_and_ps(a[0], mask), _mm256_and_ps(a[1], mask)]
        };
        accumulate(a: f32, b: Pair, c: Pair) -> Pair = {
            let a = _mm256_set1_ps(a);
            [_mm256_fmadd_ps(a, b[0], c[0]), _mm256_fmadd_ps(a, b[1], c[1])]
        };
        dot_bytes(a: i32, b: IntegerPair, c: IntegerPair) -> IntegerPair = {
            let a = _mm256_set1_epi32(a);
            if VNNI {
                [_mm256_dpbusd_avx_epi32(c[0], a, b[0]), _mm256_dpbusd_avx_epi32(c[1], a, b[1])]
            } else {
                let ones = _mm256_set1_epi16(1);
                let pairs = [_mm256_maddubs_epi16(a, b[0]), _mm256_maddubs_epi16(a, b[1])];
                [
                    _mm256_add_epi32(c[0], _mm256_madd_epi16(pairs[0], ones)),
                    _mm256_add_epi32(c[1], _mm256_madd_epi16(pairs[1], ones)),
                ]
            }
        };
        dot_shorts(a: i32, b: IntegerPair, c: IntegerPair) -> IntegerPair = {
            let a = _mm256_set1_epi32(a);
            if VNNI {
                [_mm256_dpwssd_avx_epi32(c[0], a, b[0]), _mm256_dpwssd_avx_epi32(c[1], a, b[1])]
            } else {
                [
                    _mm256_add_epi32(c[0], _mm256_madd_epi16(a, b[0])),
                    _mm256_add_epi32(c[1], _mm256_madd_epi16(a, b[1])),
                ]
            }
        };
        store_bytes(a: IntegerPair, to: &mut [u8; LANES]) -> () = {
            // Packing works on each half of a register: the quarters come out as 0 2 1 3.
            let shorts = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(a[0], a[1]));
            let halves = (_mm256_castsi256_si128(shorts), _mm256_extracti128_si256::<1>(shorts));
            _mm_storeu_si128(to.as_mut_ptr().cast(), _mm_packus_epi16(halves.0, halves.1));
        };
        store_shorts(a: IntegerPair, to: &mut [i16; LANES]) -> () = {
            let shorts = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(a[0], a[1]));
            _mm256_storeu_si256(to.as_mut_ptr().cast(), shorts);
        };
        sum(a: Pair) -> f32 = {
            let eight = _mm256_add_ps(a[0], a[1]);
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        };
    }
}

impl<const VNNI: bool> ByteTiles for Avx2<VNNI> {}

compiled_for! {
    Avx2<true>, "avx2,fma,avxvnni";
    Avx2<false>, "avx2,fma";
}
