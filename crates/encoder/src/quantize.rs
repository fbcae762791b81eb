//! From weights in single precision to weights in eight bits.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use safetensors::tensor::{Dtype, TensorView, serialize};

use crate::{
    encoder::{Encoder, Options},
    error::{Error, Result},
    file::TensorFile,
    kernels::Gram,
    model::{Dense, Model},
    source::Source,
    team::lock,
};

/// The largest byte of a weight.
const LARGEST: f32 = 127.0;

/// The most that two neighbouring bytes of the same sign add up to: 255 * 128 fits 16 bits.
const LARGEST_PAIR: f32 = 128.0;

/// What is added to the variance of each input, as a part of their mean: inputs that hardly vary in the calibration may do so
/// in use.
const DAMPING: f64 = 0.05;

/// Inputs that reach further in the calibration than this part of all do are scaled down, because they take most of the range of
/// a row, and the rest of the row the fewer steps.
const USUAL: f64 = 0.9;

/// How much of what such an input is beyond the usual it is divided by: this power of the ratio. Were it all, its weights, which are
/// multiplied by the same, would be larger than the rest.
const SMOOTHING: f64 = 0.7;

/// The int8 file for the weights in `source`, which must be in single precision. The same arguments give the same bytes on
/// every processor with a fused multiplication.
///
/// It is a safetensors file with the names of the original. The word embeddings are `I8` with a scale for each row in
/// `embeddings.word_embeddings.scale`; the weight of each linear layer is `I8` with a scale for each output in `….scale`. A
/// number is its byte times its scale. The inputs of a linear layer are multiplied by `….input_scale` (one tensor for queries, keys
/// and values: `….attention.self.input_scale`), all positive, before they are brought into bytes, and the weights are divided by it. Two
/// neighbouring weights of an output never add up to more than 128 or less than -128,
/// so that a processor that adds their products in 16 bits does it without saturation. All else is as it was, less what the
/// encoder does not use.
///
/// `texts` are tokens of texts like those that will be embedded, for calibration: inputs of attention and of the feed-forward
/// block that reach further than the rest are scaled down (as in SmoothQuant, <https://arxiv.org/abs/2211.10438>); which inputs of a
/// layer vary, and vary together, decides which way a weight is rounded (as in GPTQ, <https://arxiv.org/abs/2210.17323>, by Babai's nearest plane), and
/// what rounding does to the mean output is taken from the bias. Without texts no input is scaled, and every
/// weight is rounded to its nearest byte.
///
/// # Errors
/// [`Error::Read`], [`Error::Damaged`], [`Error::Unsupported`], and those of [`Encoder::embed`] for the texts.
pub fn quantize(source: Source, texts: &[Vec<u32>]) -> Result<Vec<u8>> {
    let calibration = Calibration::measure(source.clone(), texts)?;
    let file = TensorFile::open(source)?;
    let mut tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    let mut corrections = HashMap::new();
    // Each bias comes after the weight that corrects it.
    let mut names = file.names();
    names.sort_by_key(|name| name.ends_with(".bias"));
    for name in names {
        let tensor = file.find(&name)?;
        if tensor.dtype != Dtype::F32 || name.starts_with("pooler.") {
            continue;
        }
        let mut numbers = file.floats(&name, &tensor.shape)?;
        let words = name == "embeddings.word_embeddings.weight";
        let linear = name.starts_with("encoder.") && tensor.shape.len() == 2;
        let Some(stem) = name.strip_suffix(".weight").filter(|_| words || linear) else {
            if let Some(correction) = name
                .strip_suffix(".bias")
                .and_then(|stem| corrections.remove(stem))
            {
                for (number, correction) in numbers.iter_mut().zip::<Vec<f64>>(correction) {
                    #[allow(clippy::cast_possible_truncation)] // Rounding is the intent.
                    let corrected = (f64::from(*number) + correction) as f32;
                    *number = corrected;
                }
            }
            tensors.push((name, Dtype::F32, tensor.shape, to_bytes(&numbers)));
            continue;
        };
        let inputs = calibration.of(stem);
        let mut bytes = Vec::with_capacity(numbers.len());
        let (mut scales, mut correction) = (Vec::new(), Vec::new());
        let width = tensor.shape[1];
        let input_scales = inputs.map_or_else(|| vec![1.0; width], |inputs| inputs.scales.clone());
        for row in numbers.chunks_exact_mut(width.max(1)) {
            if !words {
                for (number, input_scale) in row.iter_mut().zip(&input_scales) {
                    *number /= input_scale;
                }
            }
            let row = &*row;
            let largest = if words { largest(row) } else { largest_pair(row) };
            let scale = (largest / LARGEST).max(f32::MIN_POSITIVE);
            let rounded = match inputs {
                Some(inputs) => inputs.round(row, scale),
                None => row
                    .iter()
                    .map(|number| (number / scale).round_ties_even())
                    .collect(),
            };
            if let Some(inputs) = inputs {
                let errors = row
                    .iter()
                    .zip(&rounded)
                    .map(|(number, byte)| f64::from(number - byte * scale));
                correction.push(errors.zip(&inputs.means).map(|(error, mean)| error * mean).sum());
            }
            #[allow(clippy::cast_possible_truncation)] // At most 127.
            bytes.extend(rounded.iter().map(|byte| (*byte as i8).cast_unsigned()));
            scales.push(scale);
        }
        // Queries, keys and values have the same inputs.
        let group = stem.strip_suffix(".query").unwrap_or(stem);
        if linear && !group.ends_with(".key") && !group.ends_with(".value") {
            let name = format!("{group}.input_scale");
            tensors.push((name, Dtype::F32, vec![width], to_bytes(&input_scales)));
        }
        if inputs.is_some() {
            corrections.insert(stem.to_owned(), correction);
        }
        tensors.push((
            format!("{stem}.scale"),
            Dtype::F32,
            vec![scales.len()],
            to_bytes(&scales),
        ));
        tensors.push((name, Dtype::I8, tensor.shape, bytes));
    }
    let views: Vec<(&str, TensorView)> = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| {
            let view = TensorView::new(*dtype, shape.clone(), bytes);
            view.map(|view| (&**name, view))
                .map_err(|error| Error::Unsupported(error.to_string()))
        })
        .collect::<Result<_>>()?;
    let description = HashMap::from([("quantization".to_owned(), "int8".to_owned())]);
    serialize(views, Some(description)).map_err(|error| Error::Unsupported(error.to_string()))
}

fn to_bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn largest(row: &[f32]) -> f32 {
    row.iter().fold(0.0, |largest, number| largest.max(number.abs()))
}

/// The largest that a number or two neighbours of the same sign add up to.
fn largest_pair(row: &[f32]) -> f32 {
    row.chunks(2).fold(0.0, |largest, pair| {
        let sum = |sign: f32| pair.iter().map(|number| (number * sign).max(0.0)).sum::<f32>();
        largest.max(sum(1.0)).max(sum(-1.0))
    })
}

/// What the inputs of the linear layers are like.
struct Calibration {
    /// Attention, output, up and down of each layer.
    inputs: Vec<[Inputs; 4]>,
}

/// What the inputs of a linear layer are like.
#[derive(Default)]
struct Inputs {
    /// What each is multiplied by; all else is of the products.
    scales: Vec<f32>,
    means: Vec<f64>,
    /// Of their covariance, damped: the lower triangle `L` of its Cholesky decomposition, each row divided by the diagonal of
    /// its column.
    factor: Vec<f64>,
}

/// Sums over the inputs of a linear layer.
#[derive(Default)]
struct Sums {
    count: f64,
    sums: Vec<f64>,
    products: Vec<f64>,
    /// The largest size of each input.
    peaks: Vec<f32>,
}

impl Calibration {
    fn measure(source: Source, texts: &[Vec<u32>]) -> Result<Self> {
        if texts.is_empty() {
            return Ok(Self { inputs: Vec::new() });
        }
        let model = Arc::new(Model::load(source, 1)?);
        let mut encoder = Encoder::new(
            Arc::clone(&model),
            Options {
                threads: 1,
                kernel: None,
            },
        )?;
        let sums: Arc<Vec<[Mutex<Sums>; 4]>> =
            Arc::new(model.layers.iter().map(|_| Default::default()).collect());
        let (leaf, seen, known) = (encoder.leaf(), Arc::clone(&sums), Arc::clone(&model));
        encoder.watch(Arc::new(move |dense: &Dense, input: &[f32]| {
            for (layer, sums) in known.layers.iter().zip(&*seen) {
                let all = [&layer.attention, &layer.output, &layer.up, &layer.down];
                for (other, sums) in all.into_iter().zip(sums) {
                    if std::ptr::eq(dense, other) {
                        lock(sums).add(input, dense.inputs(), |rows, width, sums| {
                            leaf.run(Gram { rows, width, sums });
                        });
                    }
                }
            }
        }));
        encoder.embed_batch(texts)?;
        drop(encoder);
        let inputs = sums.iter().map(|layer| {
            let [attention, output, up, down] = layer.each_ref().map(lock);
            // What is normalised has large inputs that are the same in every row. Those of the other two are not, and scaled
            // down they would only make their weights larger.
            [
                attention.finish(SMOOTHING),
                output.finish(0.0),
                up.finish(SMOOTHING),
                down.finish(0.0),
            ]
        });
        Ok(Self {
            inputs: inputs.collect(),
        })
    }

    /// Of the layer whose tensors begin with `stem`.
    fn of(&self, stem: &str) -> Option<&Inputs> {
        let (layer, name) = stem.strip_prefix("encoder.layer.")?.split_once('.')?;
        let layer = self.inputs.get(layer.parse::<usize>().ok()?)?;
        let position = match name {
            "attention.output.dense" => 1,
            "intermediate.dense" => 2,
            "output.dense" => 3,
            _ => 0,
        };
        Some(&layer[position])
    }
}

impl Sums {
    fn add(&mut self, input: &[f32], width: usize, gram: impl Fn(&[f32], usize, &mut [f32])) {
        self.sums.resize(width, 0.0);
        self.products.resize(width * width, 0.0);
        self.peaks.resize(width, 0.0);
        let mut products = vec![0.0; width * width];
        gram(input, width, &mut products);
        for (sum, product) in self.products.iter_mut().zip(products) {
            *sum += f64::from(product);
        }
        for row in input.chunks_exact(width) {
            self.count += 1.0;
            for ((sum, peak), number) in self.sums.iter_mut().zip(&mut self.peaks).zip(row) {
                *sum += f64::from(*number);
                *peak = peak.max(number.abs());
            }
        }
    }

    fn finish(&self, smoothing: f64) -> Inputs {
        let width = self.sums.len();
        let scales = self.scales(smoothing);
        let means = self.sums.iter().zip(&scales);
        let means: Vec<f64> = means
            .map(|(sum, scale)| sum / self.count * f64::from(*scale))
            .collect();
        let mut factor: Vec<f64> = self.products.iter().map(|product| product / self.count).collect();
        for ((row, mean), scale) in factor.chunks_exact_mut(width).zip(&means).zip(&scales) {
            for ((product, other), other_scale) in row.iter_mut().zip(&means).zip(&scales) {
                *product = *product * f64::from(*scale) * f64::from(*other_scale) - mean * other;
            }
        }
        #[allow(clippy::cast_precision_loss)] // A few hundred.
        let variance = (0..width).map(|index| factor[index * width + index]).sum::<f64>() / width as f64;
        for index in 0..width {
            factor[index * width + index] += DAMPING * variance + f64::MIN_POSITIVE;
        }
        decompose(&mut factor, width);
        Inputs {
            scales,
            means,
            factor,
        }
    }

    /// What each input is multiplied by: at most 1.
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

/// Replaces a symmetric positive matrix `A` by a lower triangle `L` with ones on its diagonal: `A = L D L'`.
fn decompose(matrix: &mut [f64], width: usize) {
    // The upper triangle is worked on row by row, which is what lies together.
    for pivot in 0..width {
        let (done, rest) = matrix.split_at_mut((pivot + 1) * width);
        let row = &done[pivot * width..];
        let diagonal = row[pivot];
        for (index, other) in rest.chunks_exact_mut(width).enumerate() {
            let column = pivot + 1 + index;
            let factor = row[column] / diagonal;
            for (number, pivot) in other[column..].iter_mut().zip(&row[column..]) {
                *number -= factor * pivot;
            }
        }
    }
    for row in 0..width {
        let diagonal = matrix[row * width + row];
        for column in row + 1..width {
            matrix[column * width + row] = matrix[row * width + column] / diagonal;
            matrix[row * width + column] = 0.0;
        }
        matrix[row * width + row] = 1.0;
    }
}

impl Inputs {
    /// The bytes of an output's weights, such that their errors make up for each other in the output: each weight is rounded,
    /// from the last to the first, to what is best after those that are rounded already.
    fn round(&self, row: &[f32], scale: f32) -> Vec<f32> {
        let width = row.len();
        let mut wanted: Vec<f64> = row
            .iter()
            .map(|number| f64::from(*number) / f64::from(scale))
            .collect();
        let mut rounded = vec![0.0_f32; width];
        for index in (0..width).rev() {
            #[allow(clippy::cast_possible_truncation)] // Some 127.
            let nearest = wanted[index].round_ties_even() as f32;
            // The other of the pair, which is 0 still if it comes later.
            let other = rounded[index ^ 1];
            let lowest = (-LARGEST).max(-LARGEST_PAIR - other.min(0.0));
            let byte = nearest.clamp(lowest, LARGEST.min(LARGEST_PAIR - other.max(0.0)));
            rounded[index] = byte;
            // What is between the byte and what was wanted here.
            let error = f64::from(row[index]) / f64::from(scale) - f64::from(byte);
            for (wanted, factor) in wanted[..index].iter_mut().zip(&self.factor[index * width..]) {
                *wanted += factor * error;
            }
        }
        rounded
    }
}
