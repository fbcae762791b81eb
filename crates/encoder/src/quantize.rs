//! From weights in single precision to weights in eight bits.

use std::{
    collections::HashMap,
    mem,
    panic::resume_unwind,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use safetensors::tensor::{Dtype, TensorView, serialize};

use crate::{
    encoder::{Encoder, Options, passes},
    error::{Error, Result},
    file::TensorFile,
    kernels::{Gram, Isa, lanes::LANES},
    model::{Dense, Model, Precision, load_layer},
    source::Source,
    thread_pool::lock,
};

/// The largest byte of a weight.
const LARGEST: f32 = 127.0;

/// The most that two neighbouring bytes of the same sign add up to: 255 * 128 fits 16 bits.
const LARGEST_PAIR: f32 = 128.0;

/// The damping that is added to the variance of each input, as a part of their mean: inputs that hardly vary in the
/// calibration may do so in use.
const DAMPING: f64 = 0.1;

/// How often all weights of an output are improved at most. Most are at their best after three times.
const SWEEPS: usize = 10;

/// Inputs that reach further in the calibration than this part of all do are scaled down, because they take most of the range of
/// a row, and the rest of the row the fewer steps.
const USUAL: f64 = 0.9;

/// The SmoothQuant exponent: an input that exceeds the usual is divided by this power of the ratio. With the whole ratio,
/// its weights, which are multiplied by the same, would be larger than the rest.
const SMOOTHING: f64 = 0.8;

/// Returns the int8 file for the weights in `source`, which must be in single precision. The same arguments give the same
/// bytes on every processor with a fused multiplication.
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
/// what rounding does to the mean output is taken from the bias. Each layer is calibrated with what the quantised layers before it make of
/// the texts. Without texts no input is scaled, and every
/// weight is rounded to its nearest byte.
///
/// # Errors
/// [`Error::Read`], [`Error::Damaged`], [`Error::Unsupported`], and the errors of [`Encoder::embed`] for the texts.
pub fn quantize(source: Source, texts: &[Vec<u32>]) -> Result<Vec<u8>> {
    let mut model = match texts {
        [] => None,
        _ => Some(Arc::new(Model::load(source.clone(), threads())?)),
    };
    let file = TensorFile::open(source)?;
    let mut calibration = Calibration {
        layer: 0,
        inputs: Vec::new(),
    };
    let mut tensors: Vec<Tensor> = Vec::new();
    let mut corrections = HashMap::new();
    // Layer by layer, so that each is calibrated with the output of the quantised layers before it. Each bias comes after
    // the weight that corrects it.
    let mut names = file.names();
    names.sort_by_key(|name| (layer_of(name), name.ends_with(".bias")));
    let mut done = None;
    for name in names {
        if let Some(model) = &mut model {
            let layer = layer_of(&name);
            if layer != done {
                if let Some(model) = Arc::get_mut(model) {
                    adopt(model, done, &tensors)?;
                }
                if let Some(layer) = layer {
                    calibration = Calibration::measure(model, layer, texts)?;
                }
                done = layer;
            }
        }
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
        let width = tensor.shape[1];
        let input_scales = inputs.map_or_else(|| vec![1.0; width], |inputs| inputs.scales.clone());
        if !words {
            for row in numbers.chunks_exact_mut(width.max(1)) {
                for (number, input_scale) in row.iter_mut().zip(&input_scales) {
                    *number /= input_scale;
                }
            }
        }
        let outputs: Vec<&[f32]> = numbers.chunks_exact(width.max(1)).collect();
        let groups: Vec<&[&[f32]]> = outputs.chunks(LANES).collect();
        let rounded = parallel(groups.len(), |group| round(groups[group], words, inputs));
        let mut bytes = Vec::with_capacity(numbers.len());
        let (mut scales, mut correction) = (Vec::new(), Vec::new());
        for output in rounded.into_iter().flatten() {
            bytes.extend(output.bytes.into_iter().map(i8::cast_unsigned));
            scales.push(output.scale);
            correction.push(output.correction);
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
    to_file(&tensors)
}

/// The name, the type, the shape and the bytes of a tensor of the file.
type Tensor = (String, Dtype, Vec<usize>, Vec<u8>);

/// Returns the number of the layer that a tensor belongs to; `None` for tensors of the embeddings.
fn layer_of(name: &str) -> Option<usize> {
    name.strip_prefix("encoder.layer.")?
        .split_once('.')?
        .0
        .parse()
        .ok()
}

/// Makes the model compute with the part that was quantised last: a layer, or before the first one the word embeddings.
///
/// # Errors
/// [`Error::Damaged`] and [`Error::Unsupported`].
fn adopt(model: &mut Model, layer: Option<usize>, tensors: &[Tensor]) -> Result<()> {
    let Some(layer) = layer else {
        let find = |name: &str| {
            tensors
                .iter()
                .find(|(other, ..)| other == name)
                .map(|(.., bytes)| bytes)
        };
        if let (Some(bytes), Some(scales)) = (
            find("embeddings.word_embeddings.weight"),
            find("embeddings.word_embeddings.scale"),
        ) {
            let scales = scales.as_chunks::<4>().0;
            let width = bytes.len() / scales.len();
            let mut floats = Vec::with_capacity(bytes.len() * 4);
            for (row, scale) in bytes.chunks_exact(width).zip(scales) {
                let scale = f32::from_le_bytes(*scale);
                floats.extend(
                    row.iter()
                        .flat_map(|byte| (f32::from(byte.cast_signed()) * scale).to_le_bytes()),
                );
            }
            model.replace_words(floats);
        }
        return Ok(());
    };
    let prefix = format!("encoder.layer.{layer}.");
    let own: Vec<Tensor> = tensors
        .iter()
        .filter(|(name, ..)| name.starts_with(&prefix))
        .cloned()
        .collect();
    let file = TensorFile::open(Source::memory(to_file(&own)?))?;
    model.layers[layer] = load_layer(&file, layer, model.shape(), Precision::Int8)?;
    Ok(())
}

/// Returns the bytes of a file with these tensors.
///
/// # Errors
/// The number formats of safetensors.
fn to_file(tensors: &[Tensor]) -> Result<Vec<u8>> {
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

/// Returns the results of `job` for each number below `count`, in their order. Every processor that is available takes the
/// next number when it is done with one.
fn parallel<T: Send>(count: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut results = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return results;
            }
            results.push((number, job(number)));
        }
    };
    let mut results = thread::scope(|scope| {
        // Fewer where the system starts no more.
        let helpers =
            (1..threads().min(count)).map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok());
        let helpers: Vec<_> = helpers.collect();
        let mut results = work();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

fn threads() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The weights of an output in bytes.
struct Output {
    bytes: Vec<i8>,
    scale: f32,
    /// The mean output that rounding takes away.
    correction: f64,
}

/// Returns the weights of some outputs, at most [`LANES`], in bytes: rounded to nearest, unless the statistics of the inputs
/// are known.
fn round(outputs: &[&[f32]], words: bool, inputs: Option<&Inputs>) -> Vec<Output> {
    let largest = if words { largest } else { largest_pair };
    let scales = outputs
        .iter()
        .map(|output| (largest(output) / LARGEST).max(f32::MIN_POSITIVE));
    let scales: Vec<f32> = scales.collect();
    let rounded = inputs.map(|inputs| inputs.round(outputs, &scales));
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

fn to_bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn largest(row: &[f32]) -> f32 {
    row.iter().fold(0.0, |largest, number| largest.max(number.abs()))
}

/// Returns the largest that a number or two neighbours of the same sign add up to.
fn largest_pair(row: &[f32]) -> f32 {
    row.chunks(2).fold(0.0, |largest, pair| {
        let sum = |sign: f32| pair.iter().map(|number| (number * sign).max(0.0)).sum::<f32>();
        largest.max(sum(1.0)).max(sum(-1.0))
    })
}

/// The statistics of the inputs of a layer of the network.
struct Calibration {
    /// The number of that layer.
    layer: usize,
    /// In the order of [`linear`].
    inputs: Vec<Inputs>,
}

/// The statistics of the inputs of a linear layer.
#[derive(Default)]
struct Inputs {
    /// The factor of each input; all else is of the products.
    scales: Vec<f32>,
    means: Vec<f64>,
    /// Their covariance, damped.
    covariance: Vec<f64>,
    /// The upper triangle of the covariance's Cholesky decomposition, each row divided by its diagonal. The lower triangle
    /// is undefined.
    factor: Vec<f64>,
}

/// Sums over the inputs of a linear layer.
#[derive(Default)]
struct Sums {
    count: f64,
    sums: Vec<f64>,
    /// Of the inputs with each other, as [`Gram`] adds them.
    products: Vec<f64>,
    /// The largest size of each input.
    peaks: Vec<f32>,
}

impl Calibration {
    fn measure(model: &Arc<Model>, layer: usize, texts: &[Vec<u32>]) -> Result<Self> {
        let widths: Vec<usize> = linear(model, layer).map(Dense::inputs).collect();
        let sums: Vec<Mutex<Sums>> = widths.iter().map(|_| Mutex::default()).collect();
        let passes: Vec<&[Vec<u32>]> = passes(texts).collect();
        let isa = Encoder::new(
            Arc::clone(model),
            Options {
                threads: 1,
                kernel: None,
            },
        )?
        .isa();
        let workers = (0..threads().min(passes.len())).map(|_| Worker::new(model, layer));
        let workers: Vec<Worker> = workers.collect::<Result<_>>()?;
        // Each thread computes a pass, then takes linear layers and adds up the statistics of all threads: the sums have the
        // same order with any number of threads.
        for passes in passes.chunks(workers.len().max(1)) {
            let outcomes = parallel(passes.len(), |pass| {
                lock(&workers[pass].encoder).embed_batch(passes[pass]).map(|_| ())
            });
            outcomes.into_iter().collect::<Result<()>>()?;
            parallel(sums.len(), |number| {
                let seen = workers
                    .iter()
                    .flat_map(|worker| mem::take(&mut *lock(&worker.seen[number])));
                lock(&sums[number]).add(&seen.collect::<Vec<_>>(), widths[number], isa);
            });
        }
        drop(workers);
        let inputs = parallel(sums.len(), |number| {
            // Normalised values have large inputs that are the same in every row. The inputs of the other two layers have
            // none, and scaling them down would only make their weights larger.
            let smoothing = [SMOOTHING, 0.0, SMOOTHING, 0.0][number % 4];
            mem::take(&mut *lock(&sums[number])).finish(smoothing)
        });
        Ok(Self { layer, inputs })
    }

    /// Of the layer whose tensors begin with `stem`.
    fn of(&self, stem: &str) -> Option<&Inputs> {
        let (layer, name) = stem.strip_prefix("encoder.layer.")?.split_once('.')?;
        let layer = layer.parse::<usize>().ok()?;
        let position = match name {
            "attention.output.dense" => 1,
            "intermediate.dense" => 2,
            "output.dense" => 3,
            _ => 0,
        };
        if layer != self.layer {
            return None;
        }
        self.inputs.get(position)
    }
}

/// Returns the linear layers of a layer of the network: attention, output, up and down.
fn linear(model: &Model, layer: usize) -> impl Iterator<Item = &Dense> {
    let layer = &model.layers[layer];
    [&layer.attention, &layer.output, &layer.up, &layer.down].into_iter()
}

/// The inputs of each linear layer, as they came.
type Seen = Arc<[Mutex<Vec<Vec<f32>>>]>;

/// An encoder with one thread, and the inputs of each linear layer that it has seen.
struct Worker {
    encoder: Mutex<Encoder>,
    seen: Seen,
}

impl Worker {
    fn new(model: &Arc<Model>, layer: usize) -> Result<Self> {
        let options = Options {
            threads: 1,
            kernel: None,
        };
        let mut encoder = Encoder::new(Arc::clone(model), options)?;
        let seen: Seen = linear(model, layer).map(|_| Mutex::default()).collect();
        let (known, rows) = (Arc::clone(model), Arc::clone(&seen));
        encoder.watch(Arc::new(move |dense: &Dense, input: &[f32]| {
            if let Some(number) = linear(&known, layer).position(|other| std::ptr::eq(dense, other)) {
                lock(&rows[number]).push(input.to_vec());
            }
        }));
        Ok(Self {
            encoder: Mutex::new(encoder),
            seen,
        })
    }
}

impl Sums {
    /// Adds rows of `width` inputs.
    fn add(&mut self, seen: &[Vec<f32>], width: usize, isa: Isa) {
        self.sums.resize(width, 0.0);
        self.products.resize(width * width, 0.0);
        self.peaks.resize(width, 0.0);
        isa.run(Gram {
            parts: seen,
            width,
            sums: &mut self.products,
        });
        for row in seen.iter().flat_map(|rows| rows.chunks_exact(width)) {
            self.count += 1.0;
            for ((sum, peak), number) in self.sums.iter_mut().zip(&mut self.peaks).zip(row) {
                *sum += f64::from(*number);
                *peak = peak.max(number.abs());
            }
        }
    }

    fn finish(self, smoothing: f64) -> Inputs {
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

/// Replaces the upper triangle of a symmetric positive matrix `A` by that of `U` with `A = U' D U`, whose diagonal is all ones.
fn decompose(matrix: &mut [f64], width: usize) {
    /// Rows that are processed together, so that the rows above them are read but once.
    const ROWS: usize = 8;
    /// Columns that are worked on together, so that they stay in the first cache.
    const COLUMNS: usize = 128;

    for first in (0..width).step_by(ROWS) {
        let (above, rows) = matrix.split_at_mut(first * width);
        let rows = &mut rows[..ROWS.min(width - first) * width];
        let factors = above.chunks_exact(width).enumerate().map(|(pivot, above)| {
            let mut factors = [0.0; ROWS];
            for (factor, number) in factors.iter_mut().zip(&above[first..]) {
                *factor = number / above[pivot];
            }
            factors
        });
        let factors: Vec<[f64; ROWS]> = factors.collect();
        for from in (first..width).step_by(COLUMNS) {
            let columns = from..(from + COLUMNS).min(width);
            for (above, factors) in above.chunks_exact(width).zip(&factors) {
                for (row, factor) in rows.chunks_exact_mut(width).zip(factors) {
                    subtract(&mut row[columns.clone()], *factor, &above[columns.clone()]);
                }
            }
        }
        // And from each other.
        for pivot in 0..rows.len() / width {
            let (above, below) = rows.split_at_mut((pivot + 1) * width);
            let above = &above[pivot * width..];
            for (index, row) in below.chunks_exact_mut(width).enumerate() {
                let column = first + pivot + 1 + index;
                let factor = above[column] / above[first + pivot];
                subtract(&mut row[column..], factor, &above[column..]);
            }
        }
    }
    for (index, row) in matrix.chunks_exact_mut(width.max(1)).enumerate() {
        let diagonal = row[index];
        for number in &mut row[index..] {
            *number /= diagonal;
        }
    }
}

fn subtract(numbers: &mut [f64], factor: f64, others: &[f64]) {
    for (number, other) in numbers.iter_mut().zip(others) {
        *number -= factor * other;
    }
}

impl Inputs {
    /// Returns the bytes of the weights of some outputs, such that their errors make up for each other in the output: each
    /// weight is rounded, from the last to the first, to the best value after those that are rounded already, and then all
    /// are improved. For each input there is a lane for each output.
    fn round(&self, outputs: &[&[f32]], scales: &[f32]) -> Vec<[f32; LANES]> {
        let width = self.means.len();
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
            let factors = &self.factor[index * width..][later.clone()];
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
        self.improve(&mut rounded, &errors);
        rounded
    }

    /// Brings each weight to the best value beside all others, one after another, until none changes. `errors` are the
    /// differences from the wanted weights.
    fn improve(&self, rounded: &mut [[f32; LANES]], errors: &[[f64; LANES]]) {
        let width = rounded.len();
        // By how much the square of the output's error falls, for each step of a weight.
        let mut gains = vec![[0.0_f64; LANES]; width];
        for (gains, covariances) in gains.iter_mut().zip(self.covariance.chunks_exact(width.max(1))) {
            for (covariance, errors) in covariances.iter().zip(errors) {
                for (gain, error) in gains.iter_mut().zip(errors) {
                    *gain += covariance * error;
                }
            }
        }
        for _ in 0..SWEEPS {
            let mut changed = false;
            for index in 0..width {
                let covariances = &self.covariance[index * width..][..width];
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
}

/// Returns the byte next to `wanted` that is admitted beside the other one of its pair, which is 0 as long as it has none.
fn admitted(wanted: f64, other: f32) -> f32 {
    #[allow(clippy::cast_possible_truncation)] // Some 127.
    let nearest = wanted.round_ties_even() as f32;
    let lowest = (-LARGEST).max(-LARGEST_PAIR - other.min(0.0));
    nearest.clamp(lowest, LARGEST.min(LARGEST_PAIR - other.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decomposes_what_a_triangle_makes() {
        // Not multiples of the blocks that it works in.
        for width in [0, 1, 7, 13, if cfg!(miri) { 20 } else { 150 }] {
            let upper = |row: usize, column: usize| match column {
                _ if column < row => 0.0,
                _ if column == row => 1.0,
                _ => ((row * 31 + column * 17) % 23) as f64 / 230.0 - 0.05,
            };
            let mut matrix = vec![0.0; width * width];
            for row in 0..width {
                for column in 0..width {
                    let terms = (0..width).map(|index| {
                        let diagonal = 1.0 + (index % 5) as f64;
                        upper(index, row) * diagonal * upper(index, column)
                    });
                    matrix[row * width + column] = terms.sum();
                }
            }
            decompose(&mut matrix, width);
            for row in 0..width {
                for column in row..width {
                    let found = matrix[row * width + column];
                    assert!(
                        (found - upper(row, column)).abs() < 1e-9,
                        "{width} {row} {column}: {found}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_weight_could_be_better_alone() {
        let width = 24;
        let mut state = 1_u32;
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        // Inputs that depend on each other, so that rounding one weight after another is not the best.
        let mixed: Vec<Vec<f32>> = (0..width)
            .map(|_| (0..width).map(|_| number()).collect())
            .collect();
        let rows = (0..200).map(|_| {
            let own: Vec<f32> = (0..8).map(|_| number()).collect();
            let input = |index: usize| own.iter().zip(&mixed[index]).map(|(own, part)| own * part).sum();
            (0..width).map(input).collect()
        });
        let rows: Vec<Vec<f32>> = rows.collect();
        let mut sums = Sums {
            count: rows.len() as f64,
            sums: vec![0.0; width],
            products: vec![0.0; width.next_multiple_of(LANES) * width],
            peaks: vec![1.0; width],
        };
        for row in &rows {
            for (index, number) in row.iter().enumerate() {
                sums.sums[index] += f64::from(*number);
                for (other, factor) in row.iter().enumerate() {
                    sums.products[(other / LANES * width + index) * LANES + other % LANES] +=
                        f64::from(factor * number);
                }
            }
        }
        let inputs = sums.finish(0.0);
        let outputs: Vec<Vec<f32>> = (0..LANES)
            .map(|_| (0..width).map(|_| number()).collect())
            .collect();
        let outputs: Vec<&[f32]> = outputs.iter().map(Vec::as_slice).collect();
        let scales: Vec<f32> = outputs
            .iter()
            .map(|output| largest_pair(output) / LARGEST)
            .collect();
        let rounded = inputs.round(&outputs, &scales);
        let cost = |lane: usize, bytes: &[f32]| -> f64 {
            let errors = outputs[lane].iter().zip(bytes);
            let errors =
                errors.map(|(number, byte)| f64::from(*number) / f64::from(scales[lane]) - f64::from(*byte));
            let errors: Vec<f64> = errors.collect();
            let rows = errors.iter().zip(inputs.covariance.chunks_exact(width));
            rows.map(|(error, row)| error * row.iter().zip(&errors).map(|(a, b)| a * b).sum::<f64>())
                .sum()
        };
        let is_admitted = |bytes: &[f32]| largest_pair(bytes) <= LARGEST_PAIR && largest(bytes) <= LARGEST;
        for lane in 0..LANES {
            let mut bytes: Vec<f32> = rounded.iter().map(|bytes| bytes[lane]).collect();
            assert!(is_admitted(&bytes));
            let least = cost(lane, &bytes);
            for index in 0..width {
                for step in [-1.0, 1.0] {
                    bytes[index] += step;
                    if is_admitted(&bytes) {
                        assert!(
                            cost(lane, &bytes) >= least * (1.0 - 1e-9),
                            "{lane} {index} {step}"
                        );
                    }
                    bytes[index] -= step;
                }
            }
        }
    }

    #[test]
    fn results_come_in_order_and_panics_come_through() {
        assert_eq!(
            parallel(100, |number| number * 2),
            (0..100).map(|number| number * 2).collect::<Vec<_>>()
        );
        assert!(parallel(0, |number| number).is_empty());
        let panics = std::panic::catch_unwind(|| parallel(9, |number| assert!(number < 5, "as tested")));
        assert!(panics.is_err());
    }
}
