//! Vectors in the form in which the cache computes.

use knowledgepulse_encoder::{GROUP, Group};
use knowledgepulse_error::{Error, Result};

/// A component of a vector: `f32` or `f64`.
pub trait Component: Copy + Into<f64> {}
impl Component for f32 {}
impl Component for f64 {}

/// A vector in single precision, and the reciprocal of its norm. Components that could overflow or underflow are multiplied by a power of
/// two, which changes no digits and no cosine.
///
/// The same vector gives the same bits on every machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scaled {
    /// Padded with zeros.
    pub(crate) components: Vec<Group>,
    /// The reciprocal of the norm. For a zero vector it is 0, so that its similarities are 0.
    pub(crate) inverse_norm: f64,
}

impl Scaled {
    /// Range of the largest component without scaling. Products inside it stay far from the limits of single precision. The ends are powers
    /// of two, so rounding never crosses them: a scaled vector is not scaled again, and a loaded one has the saved bits.
    const COMFORTABLE: std::ops::RangeInclusive<f64> = 1.0 / 1_099_511_627_776.0..=1_099_511_627_776.0;

    /// Takes the values of `vector`, and reuses the memory. Errors call the vector `name`.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for a component that is NaN or infinite, [`Error::OutOfMemory`].
    pub(crate) fn set<T: Component>(&mut self, vector: &[T], name: &'static str) -> Result<()> {
        self.components.clear();
        self.components
            .try_reserve_exact(vector.len().div_ceil(GROUP))
            .map_err(|_| Error::OutOfMemory(vector.len()))?;
        let (largest, mut squares) = self.fill(vector, |component| component);
        // Detects components that are not finite: infinity makes `largest` infinite, NaN makes `squares` NaN.
        if !Self::COMFORTABLE.contains(&largest) || !squares.is_finite() {
            require_finite(vector, name)?;
            let factors = scale_factors(largest);
            (_, squares) = self.fill(vector, |component| component * factors.0 * factors.1);
        }
        self.inverse_norm = if squares > 0.0 {
            squares.sqrt().recip()
        } else {
            0.0
        };
        Ok(())
    }

    /// Sets the components to those of `vector`, each changed by `scale` and rounded to single precision. Returns the largest
    /// magnitude before rounding, ignoring NaN, and the sum of the squares after it.
    #[inline]
    fn fill<T: Component>(&mut self, vector: &[T], scale: impl Fn(f64) -> f64) -> (f64, f64) {
        self.components.clear();
        let mut largest = [0.0; LANES];
        let mut squares = [0.0; LANES];
        for chunk in vector.chunks(GROUP) {
            let mut scaled = [0.0; GROUP];
            for (scaled, &component) in scaled.iter_mut().zip(chunk) {
                *scaled = scale(component.into());
            }
            #[allow(clippy::cast_possible_truncation)] // Rounding to single precision is the intent.
            let group = Group(scaled.map(|component| component as f32));
            fold(&mut largest, &scaled, |largest, component| {
                let magnitude = component.abs();
                if magnitude > largest { magnitude } else { largest }
            });
            fold(&mut squares, &group.0.map(f64::from), |sum, component| {
                sum + component * component
            });
            self.components.push(group);
        }
        (largest.into_iter().fold(0.0, f64::max), squares.into_iter().sum())
    }
}

/// Sums and maxima are computed in this many lanes, so that the compiler can use SIMD.
const LANES: usize = 8;

/// Folds the values of a group into the lanes.
#[inline]
fn fold<T: Copy>(lanes: &mut [T; LANES], group: &[T; GROUP], step: impl Fn(T, T) -> T) {
    for values in group.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            lanes[lane] = step(lanes[lane], values[lane]);
        }
    }
}

fn require_finite<T: Component>(vector: &[T], name: &'static str) -> Result<()> {
    let mut components = vector.iter().map(|&component| component.into());
    match components.position(|component| !component.is_finite()) {
        None => Ok(()),
        Some(index) => Err(Error::NotFinite {
            name,
            index,
            found: vector[index].into(),
        }),
    }
}

/// Two powers of two whose product scales `largest` to about 1; both are 1 if it is in the comfortable range. There are two
/// because the reciprocal of the smallest double is too large for a double.
fn scale_factors(largest: f64) -> (f64, f64) {
    if largest == 0.0 || Scaled::COMFORTABLE.contains(&largest) {
        return (1.0, 1.0);
    }
    #[allow(clippy::cast_possible_truncation)] // Between -1074 and 1024.
    let exponent = -(largest.log2().floor() as i32);
    let half = exponent / 2;
    (2.0_f64.powi(half), 2.0_f64.powi(exponent - half))
}
