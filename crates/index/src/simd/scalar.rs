//! Plain Rust: the reference for the other implementations, and the one that runs on CPUs without any of these.

use super::{Floats, GROUP, Kernel, Kernels, SPAN};

pub(super) const KERNELS: Kernels = Kernels {
    kernel: Kernel::Portable,
    dots,
};

fn dots(query: &[Floats], rows: &[Floats], products: &mut [f64]) {
    for (row, product) in rows.chunks_exact(query.len()).zip(products) {
        let spans = query.chunks(SPAN).zip(row.chunks(SPAN));
        // Not `sum`, which begins with a negative zero, because the other implementations begin with a positive one.
        *product = spans.fold(0.0, |total, (query, row)| total + f64::from(span(query, row)));
    }
}

fn span(query: &[Floats], row: &[Floats]) -> f32 {
    let mut sums = [0.0_f32; GROUP];
    for (query, row) in query.iter().zip(row) {
        for (sum, (&query, &row)) in sums.iter_mut().zip(query.0.iter().zip(&row.0)) {
            *sum = fused_multiply_add(query, row, *sum);
        }
    }
    let mut half = GROUP / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

/// Gives the same bits as `f32::mul_add` for finite results, without the slow library call that `mul_add` becomes on a CPU
/// without such an instruction.
///
/// The product of two singles is exact in double precision. The sum is rounded to odd (an inexact result
/// takes whichever of its two neighbours has an odd last bit), which makes the second rounding, to single
/// precision, come out as if it were the only one.
fn fused_multiply_add(a: f32, b: f32, addend: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let addend = f64::from(addend);
    let sum = product + addend;
    // The exact error of `sum` (Knuth's TwoSum).
    let rounded_addend = sum - product;
    let error = (product - (sum - rounded_addend)) + (addend - rounded_addend);
    let bits = sum.to_bits();
    let even = bits & 1 == 0;
    // The neighbour towards the exact sum: away from zero when the error has the sum's sign.
    let outwards = (error.to_bits() ^ bits) >> 63 == 0;
    let neighbour = if outwards {
        bits.wrapping_add(1)
    } else {
        bits.wrapping_sub(1)
    };
    let odd = if error != 0.0 && even { neighbour } else { bits };
    #[allow(clippy::cast_possible_truncation)] // This is the second rounding.
    let rounded = f64::from_bits(odd) as f32;
    rounded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn finite() -> impl Strategy<Value = f32> {
        // Any bits, and numbers near each other, whose sums cancel or tie.
        prop_oneof![
            any::<u32>().prop_map(f32::from_bits),
            any::<f32>(),
            (-64i32..64, -60i32..4).prop_map(|(digits, exponent)| digits as f32 * 2.0_f32.powi(exponent)),
            (1u32..1 << 24, -80i32..40).prop_map(|(digits, exponent)| digits as f32 * 2.0_f32.powi(exponent)),
        ]
        .prop_filter("finite", |x| x.is_finite())
    }

    /// Where the result is in range. Not against `f32::mul_add`: MinGW's C library, which that calls, rounds more than once, and
    /// gives 1 for (1 + 2^-23)^2 * 2^-24 + 1, which is nearer to 1 + 2^-23.
    fn check(a: f32, b: f32, c: f32) -> Result<(), TestCaseError> {
        let expected = libm::fmaf(a, b, c);
        if expected.is_finite() {
            prop_assert_eq!(fused_multiply_add(a, b, c).to_bits(), expected.to_bits());
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 20 } else { 2_000 }))]

        #[test]
        fn fused_multiply_add_rounds_once(a in finite(), b in finite(), c in finite(), near in -3i32..=3) {
            check(a, b, c)?;
            // Cancellation: what is left are the digits that a separate product would have lost.
            let cancelling = f32::from_bits((-(a * b)).to_bits().wrapping_add_signed(near));
            check(a, b, cancelling)?;
        }
    }
}
