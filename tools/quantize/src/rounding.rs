//! Rounding of weights to bytes.

use multiversion::multiversion;

use crate::calibration::Inputs;

/// Outputs that are rounded together.
pub const LANES: usize = 16;

/// The largest byte of a weight.
pub const LARGEST: f32 = 127.0;

/// The most that two neighbouring bytes of the same sign add up to: 255 * 128 fits 16 bits.
pub const LARGEST_PAIR: f32 = 128.0;

/// How often all weights of an output are improved at most. Most are at their best after three times.
const SWEEPS: usize = 10;

/// The weights of an output in bytes.
pub struct Output {
    pub bytes: Vec<i8>,
    pub scale: f32,
    /// The mean output that rounding takes away.
    pub correction: f64,
}

/// Returns the weights of some outputs, at most [`LANES`], in bytes: rounded to nearest, unless the statistics of the inputs
/// are known. What `largest` returns of an output becomes [`LARGEST`].
pub fn round(outputs: &[&[f32]], largest: fn(&[f32]) -> f32, inputs: Option<&Inputs>) -> Vec<Output> {
    let scales = outputs
        .iter()
        .map(|output| (largest(output) / LARGEST).max(f32::MIN_POSITIVE));
    let scales: Vec<f32> = scales.collect();
    let rounded = inputs.map(|inputs| round_together(inputs, outputs, &scales));
    let results = outputs
        .iter()
        .zip(&scales)
        .enumerate()
        .map(|(lane, (output, &scale))| {
            #[allow(clippy::cast_possible_truncation)] // At most 127.
            let bytes: Vec<i8> = match &rounded {
                Some(rounded) => rounded.iter().map(|bytes| bytes[lane] as i8).collect(),
                None => output
                    .iter()
                    .map(|number| (number / scale).round_ties_even() as i8)
                    .collect(),
            };
            let errors = output
                .iter()
                .zip(&bytes)
                .map(|(number, byte)| f64::from(number - f32::from(*byte) * scale));
            let means = inputs.map_or(&[][..], |inputs| &inputs.means);
            let correction = errors.zip(means).map(|(error, mean)| error * mean).sum();
            Output {
                bytes,
                scale,
                correction,
            }
        });
    results.collect()
}

/// Returns the largest size of a number.
pub fn largest(row: &[f32]) -> f32 {
    row.iter().fold(0.0, |largest, number| largest.max(number.abs()))
}

/// Returns the largest that a number or two neighbours of the same sign add up to.
pub fn largest_pair(row: &[f32]) -> f32 {
    row.chunks(2).fold(0.0, |largest, pair| {
        let sum = |sign: f32| pair.iter().map(|number| (number * sign).max(0.0)).sum::<f32>();
        largest.max(sum(1.0)).max(sum(-1.0))
    })
}

/// Returns the bytes of the weights of some outputs, such that their errors make up for each other in the output: each
/// weight is rounded, from the last to the first, to the best value after those that are rounded already, and then all
/// are improved. For each input there is a lane for each output.
#[multiversion(targets("x86_64+avx2"))]
pub fn round_together(inputs: &Inputs, outputs: &[&[f32]], scales: &[f32]) -> Vec<[f32; LANES]> {
    let width = inputs.means.len();
    let mut rounded = vec![[0.0_f32; LANES]; width];
    // The difference between the bytes and the wanted weights.
    let mut errors = vec![[0.0_f64; LANES]; width];
    for index in (0..width).rev() {
        let mut exact = [0.0; LANES];
        for ((exact, output), scale) in exact.iter_mut().zip(outputs).zip(scales) {
            *exact = f64::from(output[index]) / f64::from(*scale);
        }
        let mut wanted = exact;
        let later = index + 1..width;
        let factors = &inputs.factor[index * width..][later.clone()];
        for (factor, errors) in factors.iter().zip(&errors[later]).rev() {
            for (wanted, error) in wanted.iter_mut().zip(errors) {
                *wanted += factor * error;
            }
        }
        for lane in 0..LANES {
            let byte = admitted(wanted[lane], rounded[index ^ 1][lane]);
            rounded[index][lane] = byte;
            errors[index][lane] = exact[lane] - f64::from(byte);
        }
    }
    improve(inputs, &mut rounded, &errors);
    rounded
}

/// Brings each weight to the best value beside all others, one after another, until none changes. `errors` are the
/// differences from the wanted weights.
#[multiversion(targets("x86_64+avx2"))]
fn improve(inputs: &Inputs, rounded: &mut [[f32; LANES]], errors: &[[f64; LANES]]) {
    let width = rounded.len();
    // By how much the square of the output's error falls, for each step of a weight.
    let mut gains = vec![[0.0_f64; LANES]; width];
    for (gains, covariances) in gains.iter_mut().zip(inputs.covariance.chunks_exact(width.max(1))) {
        for (covariance, errors) in covariances.iter().zip(errors) {
            for (gain, error) in gains.iter_mut().zip(errors) {
                *gain += covariance * error;
            }
        }
    }
    for _ in 0..SWEEPS {
        let mut changed = false;
        for index in 0..width {
            let covariances = &inputs.covariance[index * width..][..width];
            for lane in 0..LANES {
                let byte = rounded[index][lane];
                let wanted = f64::from(byte) + gains[index][lane] / covariances[index];
                let better = admitted(wanted, rounded[index ^ 1][lane]);
                let step = f64::from(better - byte);
                if step != 0.0 {
                    rounded[index][lane] = better;
                    changed = true;
                    for (gains, covariance) in gains.iter_mut().zip(covariances) {
                        gains[lane] -= covariance * step;
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
}

/// Returns the byte next to `wanted` that is admitted beside the other one of its pair, which is 0 as long as it has none.
fn admitted(wanted: f64, other: f32) -> f32 {
    #[allow(clippy::cast_possible_truncation)] // Some 127.
    let nearest = wanted.round_ties_even() as f32;
    let lowest = (-LARGEST).max(-LARGEST_PAIR - other.min(0.0));
    nearest.clamp(lowest, LARGEST.min(LARGEST_PAIR - other.max(0.0)))
}
