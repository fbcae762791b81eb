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

/// A polynomial by Horner's rule, the highest power first.
#[inline(always)]
fn polynomial<L: Lanes, const N: usize>(lanes: L, x: Some<L>, coefficients: [f32; N]) -> Some<L> {
    let mut sum = [lanes.splat(coefficients[0]); TOGETHER];
    for coefficient in &coefficients[1..] {
        let coefficient = lanes.splat(*coefficient);
        sum = both::<L>(sum, x, |sum, x| lanes.add(lanes.multiply(sum, x), coefficient));
    }
    sum
}

/// e to the power of `x`, for `x` up to 0; below -86 as at -86, which is nothing beside 1.
///
/// The reduction and the polynomial are those of Cephes' `expf` (S. Moshier), which is off by no more than two units in
/// the last place.
#[inline(always)]
pub fn exponential<L: Lanes>(lanes: L, x: Some<L>) -> Some<L> {
    let (lowest, inverse) = (lanes.splat(-86.0), lanes.splat(std::f32::consts::LOG2_E));
    // The logarithm of 2 in two parts, of which the first has so few digits that its product is exact.
    let (high, low) = (lanes.splat(0.693_359_4), lanes.splat(-2.121_944_4e-4));
    let x = each::<L>(x, |x| lanes.larger(x, lowest));
    let power = each::<L>(x, |x| lanes.to_floats(lanes.round(lanes.multiply(x, inverse))));
    let x = both::<L>(x, power, |x, power| {
        lanes.subtract(x, lanes.multiply(power, high))
    });
    let x = both::<L>(x, power, |x, power| lanes.subtract(x, lanes.multiply(power, low)));
    let rest = polynomial(
        lanes,
        x,
        [
            1.987_569_1e-4,
            1.398_199_9e-3,
            8.333_452e-3,
            4.166_579_6e-2,
            1.666_666_5e-1,
            5e-1,
        ],
    );
    let one = lanes.splat(1.0);
    let value = both::<L>(rest, x, |rest, x| {
        lanes.add(lanes.add(lanes.multiply(rest, lanes.multiply(x, x)), x), one)
    });
    // Times 2 to the power, by the exponent's bits.
    both::<L>(value, power, |value, power| {
        let exponent = lanes.shift_left_23(lanes.round(power));
        lanes.as_floats(lanes.add_integers(lanes.as_integers(value), exponent))
    })
}

/// The error function: `x * P(x²) / Q(x²)`, off by at most 3.4e-7 of its value. DESIGN.md says how it was fitted.
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
