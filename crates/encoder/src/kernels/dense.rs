//! Linear layers: a product with packed weights, and what follows it while its results are still at hand.

use super::{
    functions::gelu,
    lanes::{Bytes, Floats, Integers, LANES, Lanes},
    tile::{MAX_ROWS, OfBytes, OfFloats, Product, Rows, Tiles, multiply},
};

/// What is done with `input * weights + bias`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epilogue {
    /// It is the output.
    Store,
    /// Its activation is the output.
    Gelu,
    /// It is added to what is in the output.
    Add,
}

/// The weights of a linear layer in single precision. Panel `p` has the weights of the outputs `16 p` to `16 p + 15`: one
/// block for each input.
#[derive(Debug)]
pub struct FloatWeights {
    pub panels: Vec<Floats>,
    pub bias: Vec<Floats>,
    pub inputs: usize,
}

/// The weights of a linear layer in eight bits. Panel `p` has the weights of the outputs `16 p` to `16 p + 15`: one block for
/// four inputs. A weight is its byte times the scale of its output.
#[derive(Debug)]
pub struct ByteWeights {
    pub panels: Vec<Bytes>,
    pub bias: Vec<Floats>,
    pub scales: Vec<Floats>,
    /// The sum of the bytes of each output: what the offset of an input row is multiplied with.
    pub sums: Vec<Floats>,
    pub inputs: usize,
}

/// Rows in unsigned bytes: a number is its byte times the scale of its row, plus the row's offset.
#[derive(Debug, Default)]
pub struct ByteRows {
    /// Four bytes to a word.
    pub words: Vec<i32>,
    pub scales: Vec<f32>,
    pub offsets: Vec<f32>,
}

#[inline(always)]
fn finish<L: Lanes>(lanes: L, value: L::F, epilogue: Epilogue, output: &mut [f32; LANES]) {
    let value = match epilogue {
        Epilogue::Store => value,
        Epilogue::Gelu => gelu(lanes, value),
        Epilogue::Add => lanes.add(value, lanes.load(output)),
    };
    lanes.store(value, output);
}

/// The product of the rows of `input` and the weights, into the rows of `output`, which are `output_step` apart.
#[inline(always)]
pub fn floats<L: Lanes>(
    lanes: L,
    input: &[f32],
    weights: &FloatWeights,
    epilogue: Epilogue,
    output: &mut [f32],
    output_step: usize,
) {
    let depth = weights.inputs;
    let mut sums = [Floats([0.0; LANES]); 2 * MAX_ROWS];
    let tiles = Tiles::new(input.len() / depth, L::ROWS);
    for panel in (0..weights.bias.len()).step_by(L::PANELS) {
        for (from, rows) in tiles.iter() {
            let part = Rows {
                words: &input[from * depth..],
                row_step: depth,
                word_step: 1,
                rows,
                depth,
            };
            let panels = &weights.panels[panel * depth..];
            multiply::<L, OfFloats>(lanes, part, (panels, depth), (&mut sums, MAX_ROWS), false);
            for row in 0..rows {
                let start = (from + row) * output_step + panel * LANES;
                let output = output[start..start + L::PANELS * LANES].as_chunks_mut().0;
                for (index, output) in output.iter_mut().enumerate() {
                    let sum = lanes.load(&sums[index * MAX_ROWS + row].0);
                    let bias = lanes.load(&weights.bias[panel + index].0);
                    finish(lanes, lanes.add(sum, bias), epilogue, output);
                }
            }
        }
    }
}

/// The product of the rows of `input` and the weights, into the rows of `output`, which are `output_step` apart.
#[inline(always)]
pub fn bytes<L: Lanes>(
    lanes: L,
    input: &ByteRows,
    weights: &ByteWeights,
    epilogue: Epilogue,
    output: &mut [f32],
    output_step: usize,
) {
    let depth = weights.inputs / 4;
    let mut sums = [Integers([0; LANES]); 2 * MAX_ROWS];
    let tiles = Tiles::new(input.words.len() / depth, <OfBytes as Product<L>>::ROWS);
    for panel in (0..weights.bias.len()).step_by(L::PANELS) {
        for (from, rows) in tiles.iter() {
            let part = Rows {
                words: &input.words[from * depth..],
                row_step: depth,
                word_step: 1,
                rows,
                depth,
            };
            let panels = &weights.panels[panel * depth..];
            multiply::<L, OfBytes>(lanes, part, (panels, depth), (&mut sums, MAX_ROWS), false);
            for row in 0..rows {
                let start = (from + row) * output_step + panel * LANES;
                let output = output[start..start + L::PANELS * LANES].as_chunks_mut().0;
                let scale = lanes.splat(input.scales[from + row]);
                let offset = lanes.splat(input.offsets[from + row]);
                for (index, output) in output.iter_mut().enumerate() {
                    let sum = lanes.to_floats(lanes.load_integers(&sums[index * MAX_ROWS + row].0));
                    let shift = lanes.multiply(offset, lanes.load(&weights.sums[panel + index].0));
                    let value = lanes.add(lanes.multiply(sum, scale), shift);
                    let value = lanes.multiply(value, lanes.load(&weights.scales[panel + index].0));
                    let value = lanes.add(value, lanes.load(&weights.bias[panel + index].0));
                    finish(lanes, value, epilogue, output);
                }
            }
        }
    }
}

/// Brings the rows of `input`, each `width` long, into unsigned bytes: the smallest number of a row to 0, the largest to 255.
#[inline(always)]
pub fn quantize<L: Lanes>(lanes: L, input: &[f32], width: usize, rows: &mut ByteRows) {
    assert!(width > 0 && width.is_multiple_of(LANES));
    let count = input.len() / width;
    rows.words.resize(count * width / 4, 0);
    rows.scales.resize(count, 0.0);
    rows.offsets.resize(count, 0.0);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut rows.words);
    let bytes = bytes
        .chunks_exact_mut(width)
        .zip(&mut rows.scales)
        .zip(&mut rows.offsets);
    for (row, ((bytes, scale), offset)) in input.chunks_exact(width).zip(bytes) {
        let row = row.as_chunks::<LANES>().0;
        let mut smallest = lanes.load(&row[0]);
        let mut largest = smallest;
        for part in row {
            let part = lanes.load(part);
            smallest = lanes.smaller(part, smallest);
            largest = lanes.larger(part, largest);
        }
        let (smallest, largest) = (lanes.smallest(smallest), lanes.largest(largest));
        // Not 0: a row of equal numbers has a scale as well.
        let range = (largest - smallest).max(1e-30);
        let (inverse, from) = (lanes.splat(255.0 / range), lanes.splat(smallest));
        for (part, bytes) in row.iter().zip(bytes.as_chunks_mut().0) {
            let distance = lanes.subtract(lanes.load(part), from);
            lanes.store_bytes(lanes.round(lanes.multiply(distance, inverse)), bytes);
        }
        *scale = range / 255.0;
        *offset = smallest;
    }
}
