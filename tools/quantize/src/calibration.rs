//! Statistics of the inputs of linear layers.

use std::{collections::HashMap, sync::Arc};

use knowledgepulse_encoder::{Encoder, Linear, Model, Options, PASS_TOKENS, passes};
use multiversion::multiversion;
use rayon::prelude::*;

use crate::{Result, decomposition::decompose};

/// Inputs whose products are added together.
const LANES: usize = 16;

/// The damping that is added to the variance of each input, as a part of their mean: inputs that hardly vary in the
/// calibration may do so in use.
const DAMPING: f64 = 0.1;

/// Inputs that reach further in the calibration than this part of all do are scaled down, because they take most of the range of
/// a row, and the rest of the row the fewer steps.
const USUAL: f64 = 0.9;

/// The SmoothQuant exponent: an input that exceeds the usual is divided by this power of the ratio. With the whole ratio,
/// its weights, which are multiplied by the same, would be larger than the rest.
const SMOOTHING: f64 = 0.8;

/// The statistics of the inputs of a linear layer.
pub struct Inputs {
    /// The factor of each input, at most 1; all else is of the products.
    pub scales: Vec<f32>,
    pub means: Vec<f64>,
    /// Their covariance, damped.
    pub covariance: Vec<f64>,
    /// The upper triangle of the covariance's Cholesky decomposition, each row divided by its diagonal. The lower triangle
    /// is undefined.
    pub factor: Vec<f64>,
}

/// Returns the statistics of the linear layers of the last transformer layer of `model`.
///
/// # Errors
/// Those of `Encoder::embed` for the texts.
pub fn measure(model: Model, texts: &[Vec<u32>]) -> Result<HashMap<Linear, Inputs>> {
    let model = Arc::new(model);
    let last = model.shape().layers - 1;
    let inputs = |texts: &&[Vec<u32>]| {
        let mut options = Options::default();
        options.threads = 1;
        let mut seen: HashMap<Linear, Vec<Vec<f32>>> = HashMap::new();
        Encoder::new(Arc::clone(&model), options)?.observe(texts, |layer, linear, input| {
            if layer == last {
                seen.entry(linear).or_default().push(input.to_vec());
            }
        })?;
        Ok(seen)
    };
    let mut sums: HashMap<Linear, Sums> = HashMap::new();
    let passes: Vec<&[Vec<u32>]> = passes(texts, PASS_TOKENS).collect();
    // Few passes at a time, because their inputs are kept. Sums have the same order with any number of threads.
    for passes in passes.chunks(rayon::current_num_threads()) {
        let seen = passes.par_iter().map(inputs).collect::<Result<Vec<_>>>()?;
        for (linear, parts) in seen.iter().flatten() {
            let width = match linear {
                Linear::Down => model.shape().inner,
                _ => model.shape().hidden,
            };
            let sums = sums.entry(*linear).or_insert_with(|| Sums::new(width));
            parts.iter().for_each(|part| sums.add(part));
        }
    }
    let finish = |(linear, sums): (Linear, Sums)| {
        // Normalised values have large inputs that are the same in every row. The inputs of the other two layers have
        // none, and scaling them down would only make their weights larger.
        let smoothing = match linear {
            Linear::Attention | Linear::Up => SMOOTHING,
            Linear::Output | Linear::Down => 0.0,
        };
        (linear, sums.finish(smoothing))
    };
    Ok(sums.into_par_iter().map(finish).collect())
}

/// Sums over the inputs of a linear layer.
pub struct Sums {
    count: f64,
    sums: Vec<f64>,
    /// Of the inputs with each other. For each sixteen inputs, `width` blocks of sixteen: the products with each input. Products
    /// with later inputs are left out but within a block.
    products: Vec<f64>,
    /// The largest size of each input.
    peaks: Vec<f32>,
}

impl Sums {
    pub fn new(width: usize) -> Self {
        Self {
            count: 0.0,
            sums: vec![0.0; width],
            products: vec![0.0; width.next_multiple_of(LANES) * width],
            peaks: vec![0.0; width],
        }
    }

    /// Adds rows of inputs, whose products are summed in single precision before they are added.
    pub fn add(&mut self, rows: &[f32]) {
        let width = self.sums.len();
        for row in rows.chunks_exact(width) {
            self.count += 1.0;
            for ((sum, peak), number) in self.sums.iter_mut().zip(&mut self.peaks).zip(row) {
                *sum += f64::from(*number);
                *peak = peak.max(number.abs());
            }
        }
        // Sixteen columns after another: read as they are, with a step of 1,536 numbers, they would all have the same few places in
        // the cache.
        let panels: Vec<Vec<[f32; LANES]>> = (0..width / LANES)
            .map(|panel| {
                rows.as_chunks()
                    .0
                    .iter()
                    .skip(panel)
                    .step_by(width / LANES)
                    .copied()
                    .collect()
            })
            .collect();
        let sums = self.products.par_chunks_exact_mut(width * LANES).enumerate();
        sums.for_each(|(panel, sums)| {
            let blocks = sums.as_chunks_mut().0.as_chunks_mut::<LANES>().0;
            for (other, sums) in panels[..=panel].iter().zip(blocks) {
                add_products(other, &panels[panel], sums);
            }
        });
    }

    pub fn finish(self, smoothing: f64) -> Inputs {
        let width = self.sums.len();
        let scales = self.scales(smoothing);
        let means = self.sums.iter().zip(&scales);
        let means: Vec<f64> = means
            .map(|(sum, scale)| sum / self.count * f64::from(*scale))
            .collect();
        let mut covariance = vec![0.0; width * width];
        for row in 0..width {
            for column in row..width {
                let product = self.products[(column / LANES * width + row) * LANES + column % LANES];
                let scaled = product / self.count * f64::from(scales[row]) * f64::from(scales[column]);
                let covered = scaled - means[row] * means[column];
                covariance[row * width + column] = covered;
                covariance[column * width + row] = covered;
            }
        }
        #[allow(clippy::cast_precision_loss)] // A few hundred.
        let variance = (0..width)
            .map(|index| covariance[index * width + index])
            .sum::<f64>()
            / width as f64;
        for index in 0..width {
            covariance[index * width + index] += DAMPING * variance + f64::MIN_POSITIVE;
        }
        let mut factor = covariance.clone();
        decompose(&mut factor, width);
        Inputs {
            scales,
            means,
            covariance,
            factor,
        }
    }

    /// Returns the factor of each input: at most 1.
    fn scales(&self, smoothing: f64) -> Vec<f32> {
        let mut sorted = self.peaks.clone();
        sorted.sort_by(f32::total_cmp);
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )] // A few hundred.
        let usual = sorted[(sorted.len() as f64 * USUAL) as usize].max(f32::MIN_POSITIVE);
        #[allow(clippy::cast_possible_truncation)] // Rounding is the intent.
        let scale = |peak: &f32| f64::from(peak / usual).max(1.0).powf(-smoothing) as f32;
        self.peaks.iter().map(scale).collect()
    }
}

/// Adds to `sums` the products of sixteen columns with sixteen others: `sums[i][j]` is that of `a`'s column `i` and `b`'s `j`.
#[multiversion(targets("x86_64+avx2+fma"))]
fn add_products(a: &[[f32; LANES]], b: &[[f32; LANES]], sums: &mut [[f64; LANES]; LANES]) {
    /// Columns of `a` whose sums fit the registers.
    const TOGETHER: usize = 4;
    for (group, sums) in sums.as_chunks_mut::<TOGETHER>().0.iter_mut().enumerate() {
        let mut products = [[0.0_f32; LANES]; TOGETHER];
        for (a, b) in a.iter().zip(b) {
            for (products, a) in products.iter_mut().zip(&a.as_chunks::<TOGETHER>().0[group]) {
                for (product, b) in products.iter_mut().zip(b) {
                    *product = a.mul_add(*b, *product);
                }
            }
        }
        for (sum, product) in sums.as_flattened_mut().iter_mut().zip(products.as_flattened()) {
            *sum += f64::from(*product);
        }
    }
}
