//! Linear layers: a product with packed weights, and the operations on its results while they are in cache.

use super::{
    functions::{TOGETHER, gelu},
    lanes::{Bytes, Floats, Integers, LANES, Lanes},
    tile::{ByteTiles, MAX_ROWS, OfFloats, Rows, Tiles, multiply},
};

/// The operation on `input * weights + bias`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epilogue {
    /// It is the output.
    Store,
    /// Its activation is the output.
    Gelu,
    /// Adds it to the output.
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
    /// The sum of the bytes of each output: the factor of an input row's offset.
    pub sums: Vec<Floats>,
    /// The factor of each input before it is rounded; the weights are divided by it.
    pub input_scales: Vec<Floats>,
    pub inputs: usize,
}

/// Rows in bytes of 0 to 255, each less [`Lanes::BYTE_BIAS`]: a number (times the scale of its input, see
/// [`ByteWeights::input_scales`]) is its byte times the scale of its row, plus the row's offset.
#[derive(Debug, Default)]
pub struct ByteRows {
    /// Four bytes to a word: whole vectors, so that the first row begins where a line of the cache does, and whole tiles of
    /// [`MAX_ROWS`] rows.
    pub words: Vec<Integers>,
    pub scales: Vec<f32>,
    pub offsets: Vec<f32>,
}

impl ByteRows {
    /// Makes room for `rows` rows of `width` bytes.
    pub fn resize(&mut self, rows: usize, width: usize) {
        let blocks = rows.next_multiple_of(MAX_ROWS) * width / size_of::<Integers>();
        self.words.resize(blocks, Integers([0; LANES]));
        self.scales.resize(rows, 0.0);
        self.offsets.resize(rows, 0.0);
    }

    /// Returns the words of the rows, one row after another, and of room for more.
    pub fn words(&self) -> &[i32] {
        bytemuck::cast_slice(&self.words)
    }
}

/// The results of a tile: a panel after another, with a block for each of [`MAX_ROWS`] rows.
type Tile = [Floats; 2 * MAX_ROWS];

/// Writes the first `rows` rows of a tile to `output`, which begins where the tile's first number belongs.
#[inline(always)]
fn finish<L: Lanes>(
    lanes: L,
    tile: &mut Tile,
    rows: usize,
    epilogue: Epilogue,
    output: &mut [f32],
    output_step: usize,
) {
    if epilogue == Epilogue::Gelu {
        for panel in 0..L::PANELS {
            // The last of them may be beyond the rows, where nobody looks.
            let blocks = &mut tile[panel * MAX_ROWS..][..rows.next_multiple_of(TOGETHER)];
            for blocks in blocks.as_chunks_mut::<TOGETHER>().0 {
                let mut values = [lanes.splat(0.0); TOGETHER];
                for index in 0..TOGETHER {
                    values[index] = lanes.load(&blocks[index].0);
                }
                let values = gelu(lanes, values);
                for index in 0..TOGETHER {
                    lanes.store(values[index], &mut blocks[index].0);
                }
            }
        }
    }
    for row in 0..rows {
        let output = output[row * output_step..][..L::PANELS * LANES].as_chunks_mut().0;
        for panel in 0..L::PANELS {
            let mut value = lanes.load(&tile[panel * MAX_ROWS + row].0);
            if epilogue == Epilogue::Add {
                value = lanes.add(value, lanes.load(&output[panel]));
            }
            lanes.store(value, &mut output[panel]);
        }
    }
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
    let mut sums: Tile = [Floats([0.0; LANES]); 2 * MAX_ROWS];
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
            for index in 0..L::PANELS {
                let bias = lanes.load(&weights.bias[panel + index].0);
                for sum in &mut sums[index * MAX_ROWS..][..rows] {
                    lanes.store(lanes.add(lanes.load(&sum.0), bias), &mut sum.0);
                }
            }
            let output = &mut output[from * output_step + panel * LANES..];
            finish(lanes, &mut sums, rows, epilogue, output, output_step);
        }
    }
}

/// The product of the rows of `input` and the weights, into the rows of `output`, which are `output_step` apart.
#[inline(always)]
pub fn bytes<L: ByteTiles>(
    lanes: L,
    input: &ByteRows,
    weights: &ByteWeights,
    epilogue: Epilogue,
    output: &mut [f32],
    output_step: usize,
) {
    let depth = weights.inputs / 4;
    let mut sums = [Integers([0; LANES]); 2 * MAX_ROWS];
    let mut tile: Tile = [Floats([0.0; LANES]); 2 * MAX_ROWS];
    let tiles = lanes.begin_bytes(input.scales.len());
    for panel in (0..weights.bias.len()).step_by(L::PANELS) {
        for (from, rows) in tiles.iter() {
            let part = Rows {
                words: &input.words()[from * depth..],
                row_step: depth,
                word_step: 1,
                rows,
                depth,
            };
            let panels = &weights.panels[panel * depth..];
            lanes.multiply_bytes(part, panels, &mut sums);
            let (row_scales, row_offsets) = (
                &input.scales[from..from + rows],
                &input.offsets[from..from + rows],
            );
            for index in 0..L::PANELS {
                let bias = lanes.load(&weights.bias[panel + index].0);
                let scale = lanes.load(&weights.scales[panel + index].0);
                let total = lanes.load(&weights.sums[panel + index].0);
                // Exact: a small integer times a power of two.
                #[allow(clippy::cast_precision_loss)] // 0 or 128.
                let bias_sum = lanes.round(lanes.multiply(total, lanes.splat(L::BYTE_BIAS as f32)));
                let results = sums[index * MAX_ROWS..].iter().zip(&mut tile[index * MAX_ROWS..]);
                for ((sum, value), (row_scale, row_offset)) in results.zip(row_scales.iter().zip(row_offsets))
                {
                    let mut sum = lanes.load_integers(&sum.0);
                    if L::BYTE_BIAS != 0 {
                        sum = lanes.add_integers(sum, bias_sum);
                    }
                    let sum = lanes.multiply(lanes.to_floats(sum), lanes.splat(*row_scale));
                    let sum = lanes.add(sum, lanes.multiply(total, lanes.splat(*row_offset)));
                    lanes.store(lanes.add(lanes.multiply(sum, scale), bias), &mut value.0);
                }
            }
            let output = &mut output[from * output_step + panel * LANES..];
            finish(lanes, &mut tile, rows, epilogue, output, output_step);
        }
    }
    lanes.end_bytes();
}

/// Brings the rows of `input`, each number times that of its column in `scales`, into unsigned bytes: the smallest product of a
/// row to 0, the largest to 255.
#[inline(always)]
pub fn quantize<L: Lanes>(lanes: L, input: &[f32], scales: &[Floats], rows: &mut ByteRows) {
    assert!(!scales.is_empty());
    let width = scales.len() * LANES;
    let count = input.len() / width;
    rows.resize(count, width);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut rows.words);
    let bytes = bytes
        .chunks_exact_mut(width)
        .zip(&mut rows.scales)
        .zip(&mut rows.offsets);
    for (row, ((bytes, scale), offset)) in input.chunks_exact(width).zip(bytes) {
        let row = row.as_chunks::<LANES>().0;
        let product = |part, scale: &Floats| lanes.multiply(lanes.load(part), lanes.load(&scale.0));
        let mut smallest = product(&row[0], &scales[0]);
        let mut largest = smallest;
        for (part, scale) in row.iter().zip(scales) {
            let part = product(part, scale);
            smallest = lanes.smaller(part, smallest);
            largest = lanes.larger(part, largest);
        }
        let (smallest, largest) = (lanes.smallest(smallest), lanes.largest(largest));
        // Not 0: a row of equal numbers has a scale as well.
        let range = (largest - smallest).max(1e-30);
        let (inverse, from) = (lanes.splat(255.0 / range), lanes.splat(smallest));
        for ((part, scale), bytes) in row.iter().zip(scales).zip(bytes.as_chunks_mut().0) {
            let distance = lanes.subtract(product(part, scale), from);
            lanes.store_bytes(lanes.round(lanes.multiply(distance, inverse)), bytes);
        }
        *scale = range / 255.0;
        *offset = smallest;
    }
}
