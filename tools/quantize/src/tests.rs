#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use knowledgepulse_encoder::{
    Encoder, Model, Options, Precision, Shape, Source,
    fixtures::weights::{self, Random, Tensors, file, int8_file},
};
use safetensors::{SafeTensors, tensor::Dtype};

use crate::{
    calibration::Sums,
    decomposition::decompose,
    quantize::quantize,
    rounding::{LANES, LARGEST, LARGEST_PAIR, largest, largest_pair, round_together},
};

const SHAPE: Shape = Shape {
    layers: 2,
    hidden: 64,
    inner: 96,
    positions: 70,
    vocabulary: 50,
};

fn tensors() -> Tensors {
    weights::tensors(SHAPE)
}

fn texts() -> Vec<Vec<u32>> {
    let mut random = Random(3);
    let mut token = || ((random.float() + 1.0) * 24.9) as u32;
    let lengths = [1, 2, 70, 15, 16, 17, 33, 5, 64, 1].repeat(3);
    lengths
        .into_iter()
        .map(|length| (0..length).map(|_| token()).collect())
        .collect()
}

fn embed(bytes: Vec<u8>, precision: Precision) -> Vec<Vec<f32>> {
    let model = Model::load(Source::memory(bytes), 1).unwrap();
    assert_eq!(model.precision(), precision);
    let mut encoder = Encoder::new(Arc::new(model), Options::default()).unwrap();
    encoder.embed_batch(&texts()).unwrap()
}

#[test]
fn quantize_is_close_and_calibration_brings_it_closer() {
    let exact = embed(file(&tensors()), Precision::Float32);
    let error = |calibration: &[Vec<u32>]| {
        let found = embed(quantize(file(&tensors()), calibration).unwrap(), Precision::Int8);
        let cosine =
            |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        found
            .iter()
            .zip(&exact)
            .map(|pair| 1.0 - cosine(pair))
            .sum::<f64>()
            / exact.len() as f64
    };
    let (nearest, calibrated) = (error(&[]), error(&texts()));
    assert!(nearest < 1e-3, "{nearest}");
    assert!(calibrated < nearest, "{calibrated} {nearest}");
}

#[test]
fn quantize_gives_the_same_bytes_with_any_number_of_threads() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| quantize(file(&tensors()), &texts()).unwrap())
    };
    assert!(on(1) == on(3));
}

#[test]
fn quantize_scales_down_the_large_inputs_of_the_calibration() {
    let mut tensors = tensors();
    // An input of attention that is ten times the rest.
    tensors.get_mut("embeddings.LayerNorm.weight").unwrap().1[5] = 10.0;
    for (calibration, scaled) in [(texts(), true), (Vec::new(), false)] {
        let int8 = quantize(file(&tensors), &calibration).unwrap();
        let parsed = SafeTensors::deserialize(&int8).unwrap();
        let tensor = parsed
            .tensor("encoder.layer.0.attention.self.input_scale")
            .unwrap();
        assert_eq!(
            (tensor.dtype(), tensor.shape()),
            (Dtype::F32, &[SHAPE.hidden][..])
        );
        let numbers = tensor.data().as_chunks().0;
        let scales: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        assert!(scales.iter().all(|scale| *scale > 0.0 && *scale <= 1.0));
        assert!(
            if scaled { scales[5] < 0.5 } else { scales[5] == 1.0 },
            "{}",
            scales[5]
        );
    }
}

#[test]
fn quantize_refuses_int8_weights_and_words_that_are_not_finite() {
    let refused = |bytes: Vec<u8>| quantize(bytes, &[]).unwrap_err().to_string();
    assert_eq!(
        refused(int8_file(&tensors())),
        "the weights are not in single precision"
    );
    let mut tensors = tensors();
    tensors.get_mut("embeddings.word_embeddings.weight").unwrap().1[3] = f32::NAN;
    assert!(refused(file(&tensors)).contains("not finite"));
}

/// Rows of inputs that depend on each other.
fn mixed_rows(width: usize, count: usize) -> Vec<f32> {
    let mut random = Random(7);
    let mixed: Vec<[f32; 8]> = (0..width)
        .map(|_| std::array::from_fn(|_| random.float()))
        .collect();
    let row = |_| {
        let own: [f32; 8] = std::array::from_fn(|_| random.float());
        let input = |parts: &[f32; 8]| own.iter().zip(parts).map(|(own, part)| own * part).sum();
        mixed.iter().map(input).collect::<Vec<f32>>()
    };
    (0..count).flat_map(row).collect()
}

#[test]
fn sums_become_the_covariance_of_the_inputs() {
    for width in [32, 96] {
        let rows = mixed_rows(width, 55);
        let mut sums = Sums::new(width);
        sums.add(&rows[..48 * width]);
        sums.add(&rows[48 * width..]);
        let inputs = sums.finish(0.0);
        let mean = |input: &dyn Fn(&[f32]) -> f64| rows.chunks_exact(width).map(input).sum::<f64>() / 55.0;
        for i in 0..width {
            let mean_i = mean(&|row| f64::from(row[i]));
            assert!((inputs.means[i] - mean_i).abs() < 1e-9);
            for j in (0..width).filter(|j| *j != i) {
                let mean_j = mean(&|row| f64::from(row[j]));
                let expected = mean(&|row| (f64::from(row[i]) - mean_i) * (f64::from(row[j]) - mean_j));
                let found = inputs.covariance[i * width + j];
                assert!((found - expected).abs() < 1e-6, "{i} {j}: {found} {expected}");
            }
        }
    }
}

#[test]
fn decompose_finds_the_triangle_that_made_the_matrix() {
    // Not multiples of the blocks that it works in.
    for width in [0, 1, 7, 13, 150] {
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
                let expected = upper(row, column);
                assert!((found - expected).abs() < 1e-9, "{width} {row} {column}: {found}");
            }
        }
    }
}

#[test]
fn round_together_leaves_no_weight_that_could_be_better_alone() {
    let width = 32;
    // Inputs that depend on each other, so that rounding one weight after another is not the best.
    let mut sums = Sums::new(width);
    sums.add(&mixed_rows(width, 200));
    let inputs = sums.finish(0.0);
    let mut random = Random(5);
    let outputs: [Vec<f32>; LANES] = std::array::from_fn(|_| (0..width).map(|_| random.float()).collect());
    let outputs: Vec<&[f32]> = outputs.iter().map(Vec::as_slice).collect();
    let scales: Vec<f32> = outputs
        .iter()
        .map(|output| largest_pair(output) / LARGEST)
        .collect();
    let rounded = round_together(&inputs, &outputs, &scales);
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
