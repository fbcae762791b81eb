//! Vectors with eight bits for each component, and a bound of the error that this makes.
//!
//! A scan of codes reads a quarter of the bytes that a scan of the components reads. It only rules out vectors that cannot be the
//! most similar one; the single precision kernel decides among the rest. So codes save time and do not change the result.
//!
//! # The bound
//!
//! A stored vector is `v = w + r`, where `w` is `step * (code - 128)` in each component and `r` is the error of rounding. In the
//! same way the query is `q = p + s`, with fifteen bits. Then
//!
//! `|q.v - p.w|  =  |q.r + s.w|  <=  |q| |r| + |s| |w|  <=  |q| |r| + |s| (|v| + |r|)`
//!
//! by Cauchy and Schwarz. Divided by `|q| |v|`, with `e = |r| / |v|` of the vector and `f = |s| / |q|` of the
//! query, both known:
//!
//! `|cosine - p.w / (|q| |v|)|  <=  e + f (1 + e)`
//!
//! `p.w` is computed with integers, so it is exact. The cosine that the kernel computes is within [`DOT_ERROR`] of the true one.
//! [`SLACK`] covers the other errors: products below the range of `f32`; norms, which are exact to 2^-53 times the number of
//! components, at most 2^16; `step / |v|` in single precision; and the few operations in double precision that evaluate
//! the bound. So if the bound of a vector is below the kernel's cosine of another vector, its own cosine is smaller, and leaving
//! it out changes no bit of the largest cosine.

use knowledgepulse_error::{Error, Result};

use super::scaled::{LANES, Scaled, fold};
use crate::simd::{CodePlanes, Codes, DOT_ERROR, Floats, GROUP, PLANE};

/// Covers the errors named above. The largest is 2^-24, of `step / |v|`.
const SLACK: f64 = 1e-6;

/// The largest digit of a vector; the smallest is its negative.
const LARGEST_DIGIT: i32 = 127;

/// The largest digit of a query.
const LARGEST_QUERY_DIGIT: i32 = LARGEST_DIGIT * PLANE;

/// The code of the digit 0.
const ZERO: i32 = 128;

/// The numbers of a vector beside its codes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeInfo {
    /// The step divided by the vector's norm.
    step: f32,
    /// `e` of the bound, rounded up.
    error: f32,
}

/// Appends the codes of `vector` to `codes`, one group for each group of components.
pub(crate) fn encode(vector: &Scaled, codes: &mut impl Extend<Codes>) -> CodeInfo {
    let rounding = Rounding::new(&vector.components, LARGEST_DIGIT);
    let mut lost = [0.0; LANES];
    codes.extend(vector.components.iter().map(|group| {
        let digits = rounding.digits(group, &mut lost);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 1 to 255.
        Codes(digits.map(|digit| (digit + ZERO) as u8))
    }));
    let error = root(lost) * vector.inverse_norm;
    #[allow(clippy::cast_possible_truncation)] // Rounded to single precision, the error upwards.
    CodeInfo {
        step: (rounding.step * vector.inverse_norm) as f32,
        error: (error * (1.0 + f64::from(f32::EPSILON))) as f32,
    }
}

/// A query with fifteen bits for each component.
#[derive(Debug, Clone, Default)]
pub(crate) struct CodedQuery {
    pub(crate) planes: Vec<CodePlanes>,
    /// The step divided by the query's norm.
    step: f64,
    /// The excess of the kernel's sum, because the codes of vectors are unsigned.
    offset: f64,
    /// `f` of the bound.
    error: f64,
}

impl CodedQuery {
    /// Computes the codes of `query`. The memory of the query before is reused.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn set(&mut self, query: &Scaled) -> Result<()> {
        let groups = query.components.len();
        self.planes.clear();
        self.planes
            .try_reserve_exact(groups)
            .map_err(|_| Error::OutOfMemory {
                dimensions: groups.saturating_mul(GROUP),
            })?;
        let rounding = Rounding::new(&query.components, LARGEST_QUERY_DIGIT);
        let mut lost = [0.0; LANES];
        let mut sum = [0; LANES];
        for group in &query.components {
            let digits = rounding.digits(group, &mut lost);
            fold(&mut sum, &digits, |sum, digit| sum + digit);
            #[allow(clippy::cast_possible_truncation)] // From -127 and from 0 to 127.
            self.planes.push(CodePlanes {
                high: digits.map(|digit| (digit >> PLANE.ilog2()) as i8),
                low: digits.map(|digit| (digit & (PLANE - 1)) as i8),
            });
        }
        let sum: f64 = sum.into_iter().map(f64::from).sum();
        self.offset = sum * f64::from(ZERO);
        self.step = rounding.step * query.inverse_norm;
        self.error = root(lost) * query.inverse_norm;
        Ok(())
    }

    /// The largest cosine that the kernel can compute for a vector, given `product`, the sum over its codes.
    #[inline]
    pub(crate) fn bound(&self, product: f64, info: CodeInfo) -> f64 {
        let cosine = (product - self.offset) * self.step * f64::from(info.step);
        let error = f64::from(info.error);
        cosine + error + self.error * (1.0 + error) + (DOT_ERROR + SLACK)
    }
}

/// The rounding of components to digits.
struct Rounding {
    digits_per_unit: f32,
    step: f64,
}

impl Rounding {
    fn new(components: &[Floats], largest_digit: i32) -> Self {
        let mut largest = [0.0_f32; LANES];
        for group in components {
            fold(&mut largest, &group.0, |largest, component| {
                let magnitude = component.abs();
                if magnitude > largest { magnitude } else { largest }
            });
        }
        let largest = largest.into_iter().fold(0.0, f32::max);
        #[allow(clippy::cast_precision_loss)] // At most fifteen bits.
        let largest_digit = largest_digit as f32;
        Self {
            digits_per_unit: if largest > 0.0 {
                largest_digit / largest
            } else {
                0.0
            },
            step: f64::from(largest / largest_digit),
        }
    }

    /// The digits of a group. Adds the squares of the rounding errors to `lost`.
    #[inline]
    fn digits(&self, group: &Floats, lost: &mut [f64; LANES]) -> [i32; GROUP] {
        // After adding this to a number of up to 22 bits, the last bits of the sum are the nearest integer.
        const ROUND: f32 = 12_582_912.0;
        let digits = group.0.map(|component| {
            let rounded = component * self.digits_per_unit + ROUND;
            rounded.to_bits().cast_signed() - ROUND.to_bits().cast_signed()
        });
        // The step has 24 bits and a digit 15, so the products are exact.
        let left_out: [f64; GROUP] =
            std::array::from_fn(|lane| f64::from(group.0[lane]) - self.step * f64::from(digits[lane]));
        fold(lost, &left_out, |sum, left_out| sum + left_out * left_out);
        digits
    }
}

fn root(squares: [f64; LANES]) -> f64 {
    squares.into_iter().sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd;
    use proptest::prelude::*;

    fn scaled(vector: &[f64]) -> Scaled {
        let mut scaled = Scaled::default();
        scaled.set(vector, "vector").unwrap();
        scaled
    }

    /// Vectors that round well, badly and not at all.
    fn vectors() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
        let component = || {
            prop_oneof![
                6 => -1.0f64..1.0,
                1 => (-1.0f64..1.0, -40i32..40).prop_map(|(digits, exponent)| digits * 10.0_f64.powi(exponent)),
                1 => (-127i32..=127).prop_map(f64::from),
                1 => Just(0.0),
            ]
        };
        let pairs = prop::collection::vec((component(), component()), 1..700);
        let same = any::<bool>();
        (pairs, same).prop_map(|(pairs, same)| {
            let (query, vector): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            if same {
                (query.clone(), query)
            } else {
                (query, vector)
            }
        })
    }

    #[test]
    fn bound_adds_the_rounding_errors_of_both_vectors() {
        for (f, e) in [(0.0, 0.0), (0.25, 0.0), (0.0, 0.5), (0.25, 0.5)] {
            let query = CodedQuery {
                error: f,
                ..CodedQuery::default()
            };
            let bound = query.bound(
                0.0,
                CodeInfo {
                    step: 1.0,
                    error: e as f32,
                },
            );
            let excess = bound - (e + f * (1.0 + e));
            assert!((DOT_ERROR..3.0 * DOT_ERROR).contains(&excess), "{f} {e} {bound}");
        }
    }

    proptest! {
        #[test]
        fn no_cosine_is_above_its_bound((query, vector) in vectors()) {
            let (query, vector) = (scaled(&query), scaled(&vector));
            let mut coded = CodedQuery::default();
            coded.set(&query).unwrap();
            let mut codes = Vec::new();
            let info = encode(&vector, &mut codes);
            let kernels = simd::kernels();
            let (mut product, mut code_product) = ([0.0], [0.0]);
            kernels.dots(&query.components, &vector.components, &mut product);
            kernels.code_dots(&coded.planes, &codes, &mut code_product);

            let cosine = product[0] * vector.inverse_norm * query.inverse_norm;
            let bound = coded.bound(code_product[0], info);
            prop_assert!(cosine <= bound, "{} {}", cosine, bound);
            // It says something too: at worst every component but one is lost to half a step.
            let components = vector.components.len() as f64 * GROUP as f64;
            let largest_loss = components.sqrt() * (0.5 / 127.0 + 0.5 / 16_256.0);
            prop_assert!(bound - cosine <= 2.0 * largest_loss + 1e-5, "{} {}", cosine, bound);
        }

        #[test]
        fn small_integers_lose_nothing(digits in prop::collection::vec(-127i32..=127, 1..200)) {
            let vector: Vec<_> = digits.iter().copied().map(f64::from).chain([127.0]).collect();
            let mut codes = Vec::new();
            let info = encode(&scaled(&vector), &mut codes);
            prop_assert_eq!(info.error, 0.0);
            for (index, digit) in digits.into_iter().enumerate() {
                prop_assert_eq!(i32::from(codes[index / GROUP].0[index % GROUP]), digit + ZERO);
            }
        }
    }
}
