//! Functions of single numbers and of rows, over sixteen lanes.
//!
//! No multiplication is fused with an addition here: see [`super::lanes`].

use super::lanes::{LANES, Lanes};

/// How many vectors the functions take at once. One alone would leave the processor waiting for each result before the next
/// step, and its schedulers are too small to look ahead to the next call.
pub const TOGETHER: usize = 4;

/// A few vectors.
type Some<L> = [<L as Lanes>::F; TOGETHER];

/// `of` each vector.
#[inline(always)]
fn each<L: Lanes>(mut vectors: Some<L>, of: impl Fn(L::F) -> L::F) -> Some<L> {
    for vector in &mut vectors {
        *vector = of(*vector);
    }
    vectors
}

/// `of` each vector of `a` and that of `b`.
#[inline(always)]
fn both<L: Lanes>(mut a: Some<L>, b: Some<L>, of: impl Fn(L::F, L::F) -> L::F) -> Some<L> {
    for (a, b) in a.iter_mut().zip(b) {
        *a = of(*a, b);
    }
    a
}

/// Returns a polynomial by Horner's rule, the highest power first.
#[inline(always)]
fn polynomial<L: Lanes, const N: usize>(lanes: L, x: Some<L>, coefficients: [f32; N]) -> Some<L> {
    let mut sum = [lanes.splat(coefficients[0]); TOGETHER];
    for coefficient in &coefficients[1..] {
        let coefficient = lanes.splat(*coefficient);
        sum = both::<L>(sum, x, |sum, x| lanes.add(lanes.multiply(sum, x), coefficient));
    }
    sum
}

/// 2 to the power of `x`, for `x` up to 0; below -125 as at -125, which is nothing beside 1. Off by at most 2e-7 of its value.
///
/// The nearest whole number goes into the exponent, and the rest into a polynomial of degree 5, which is exact at 0.
/// DESIGN.md says how it was fitted.
#[inline(always)]
#[allow(clippy::approx_constant)] // The last coefficient is near ln(2), but as fitted.
pub fn exp2<L: Lanes>(lanes: L, x: Some<L>) -> Some<L> {
    let lowest = lanes.splat(-125.0);
    let mut wholes = [lanes.splat_integer(0); TOGETHER];
    let mut rests = x;
    for (whole, rest) in wholes.iter_mut().zip(&mut rests) {
        let x = lanes.larger(*rest, lowest);
        *whole = lanes.round(x);
        *rest = lanes.subtract(x, lanes.to_floats(*whole));
    }
    let mut values = polynomial(
        lanes,
        rests,
        [
            1.326_472_7e-3,
            9.671_513e-3,
            5.550_733_6e-2,
            2.402_224_2e-1,
            6.931_47e-1,
            1.0,
        ],
    );
    for (value, whole) in values.iter_mut().zip(wholes) {
        let exponent = lanes.shift_left_23(whole);
        *value = lanes.as_floats(lanes.add_integers(lanes.as_integers(*value), exponent));
    }
    values
}

/// Returns the error function: `x * P(x²) / Q(x²)`, off by at most 3.4e-7 of its value. DESIGN.md says how it was fitted.
#[inline(always)]
#[allow(clippy::approx_constant)] // The last coefficient is near 2/sqrt(pi), but as fitted.
pub fn error_function<L: Lanes>(lanes: L, x: Some<L>) -> Some<L> {
    // Beyond, it is 1 in single precision.
    let (lowest, highest) = (lanes.splat(-3.95), lanes.splat(3.95));
    let x = each::<L>(x, |x| lanes.smaller(lanes.larger(x, lowest), highest));
    let square = each::<L>(x, |x| lanes.multiply(x, x));
    let numerator = polynomial(
        lanes,
        square,
        [
            2.025_911e-6,
            2.846_877e-4,
            3.808_155e-3,
            5.287_542_6e-2,
            1.915_501_4e-1,
            1.128_379_1,
        ],
    );
    let denominator = polynomial(
        lanes,
        square,
        [
            3.783_183_3e-5,
            1.170_724_4e-3,
            1.505_507_6e-2,
            1.145_595_6e-1,
            5.030_895e-1,
            1.0,
        ],
    );
    let ratio = both::<L>(numerator, denominator, |a, b| lanes.divide(a, b));
    both::<L>(x, ratio, |x, ratio| lanes.multiply(x, ratio))
}

/// `x` times the part of a normal distribution below it: BERT's activation.
#[inline(always)]
pub fn gelu<L: Lanes>(lanes: L, x: Some<L>) -> Some<L> {
    let (root, half) = (lanes.splat(std::f32::consts::FRAC_1_SQRT_2), lanes.splat(0.5));
    let error = error_function(lanes, each::<L>(x, |x| lanes.multiply(x, root)));
    both::<L>(x, error, |x, error| {
        let x = lanes.multiply(x, half);
        lanes.add(x, lanes.multiply(x, error))
    })
}

/// Brings each row of `rows` to mean 0 and variance 1, then scales and shifts its components.
#[inline(always)]
pub fn normalize<L: Lanes>(lanes: L, rows: &mut [f32], scale: &[f32], shift: &[f32], epsilon: f32) {
    assert!(!scale.is_empty() && scale.len().is_multiple_of(LANES) && shift.len() == scale.len());
    #[allow(clippy::cast_precision_loss)] // A few hundred.
    let count = scale.len() as f32;
    let (scale, shift) = (scale.as_chunks::<LANES>().0, shift.as_chunks::<LANES>().0);
    for row in rows.chunks_exact_mut(scale.len() * LANES) {
        let row = row.as_chunks_mut::<LANES>().0;
        let mut sum = lanes.splat(0.0);
        for part in row.iter() {
            sum = lanes.add(sum, lanes.load(part));
        }
        let mean = lanes.splat(lanes.sum(sum) / count);
        let mut sum = lanes.splat(0.0);
        for part in row.iter() {
            let distance = lanes.subtract(lanes.load(part), mean);
            sum = lanes.add(sum, lanes.multiply(distance, distance));
        }
        let variance = lanes.sum(sum) / count;
        let inverse = lanes.splat(1.0 / (variance + epsilon).sqrt());
        for ((part, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
            let distance = lanes.subtract(lanes.load(part), mean);
            let scaled = lanes.multiply(lanes.multiply(distance, inverse), lanes.load(scale));
            lanes.store(lanes.add(scaled, lanes.load(shift)), part);
        }
    }
}
