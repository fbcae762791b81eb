//! The same properties for every kernel that this processor has: against sums that share no code with them, and against each
//! other, to the bit.

use crate::Error;

use super::{
    attention::HEAD,
    lanes::{Bytes, Floats, Integers, LANES},
    *,
};
use proptest::prelude::*;

const CASES: u32 = if cfg!(miri) { 2 } else { 60 };

/// xorshift: the same numbers on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    /// Between -1 and 1, one in sixteen much larger or smaller.
    fn float(&mut self) -> f32 {
        let float = (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0;
        match self.below(32) {
            0 => float * 300.0,
            1 => float * 1e-6,
            _ => float,
        }
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }
}

fn blocks(floats: &[f32]) -> Vec<Floats> {
    floats
        .as_chunks::<LANES>()
        .0
        .iter()
        .map(|chunk| Floats(*chunk))
        .collect()
}

/// Returns the results of every kernel for the same work. Kernels with a fused multiplication must agree with the first to
/// the bit; the kernels of WebAssembly and plain Rust too where `exact`, or where they have such an instruction.
fn on_all(exact: bool, count: usize, mut compute: impl FnMut(Isa, &mut [f32])) -> Vec<f32> {
    let mut first: Option<Vec<f32>> = None;
    for kernel in Kernel::available() {
        let mut output = vec![f32::NAN; count];
        compute(kernel.isa().unwrap(), &mut output);
        let fused = !matches!(kernel, Kernel::Simd128 | Kernel::Portable)
            || cfg!(any(target_arch = "aarch64", target_feature = "fma"));
        match &first {
            None => first = Some(output),
            Some(first) if exact || fused => {
                let same = first.iter().zip(&output).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{kernel} differs");
            }
            Some(first) => {
                for (a, b) in first.iter().zip(&output) {
                    assert!(
                        (a - b).abs() <= 1e-5 * (1.0 + a.abs()) * 300.0,
                        "{kernel}: {a} {b}"
                    );
                }
            }
        }
    }
    first.unwrap()
}

/// Brings bytes from what they stand for into what `isa` takes, and back: see [`Lanes::BYTE_BIAS`].
fn bias(isa: Isa, words: &mut [Integers]) {
    struct Bias<'a>(&'a mut [Integers]);
    impl Work for Bias<'_> {
        fn run<L: ByteTiles>(self, _: L) {
            for word in self.0.iter_mut().flat_map(|words| &mut words.0) {
                *word ^= L::BYTE_BIAS.wrapping_mul(0x0101_0101);
            }
        }
    }
    isa.run(Bias(words));
}

fn exact_gelu(x: f64) -> f64 {
    // The error function by its series, or 1 where it equals 1 in single precision.
    let z = x / std::f64::consts::SQRT_2;
    let erf = if z.abs() > 4.5 {
        z.signum()
    } else {
        let (mut sum, mut term) = (z, z);
        for n in 1..200 {
            term *= -z * z / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    };
    x / 2.0 * (1.0 + erf)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn a_linear_layer_in_floats(
        rows in 0usize..40, depth in 1usize..5, outputs in 1usize..4, seed in 1u64.., epilogue in 0usize..3,
    ) {
        let (depth, outputs) = (32 * depth, 32 * outputs);
        let epilogue = [Epilogue::Store, Epilogue::Gelu, Epilogue::Add][epilogue];
        let mut random = Random(seed);
        let input = random.floats(rows * depth);
        let panels = random.floats(outputs * depth);
        let bias = random.floats(outputs);
        let before = random.floats(rows * outputs);
        let weights = FloatWeights { panels: blocks(&panels), bias: blocks(&bias), inputs: depth };
        let found = on_all(false, rows * outputs, |isa, output| {
            output.copy_from_slice(&before);
            isa.run(FloatDense { input: &input, weights: &weights, epilogue, output, output_step: outputs });
        });
        for row in 0..rows {
            for column in 0..outputs {
                let weight = |k: usize| f64::from(panels[(column / LANES * depth + k) * LANES + column % LANES]);
                let products = (0..depth).map(|k| f64::from(input[row * depth + k]) * weight(k));
                let sum = products.clone().sum::<f64>() + f64::from(bias[column]);
                let size = products.map(f64::abs).sum::<f64>() + f64::from(bias[column].abs());
                let index = row * outputs + column;
                let expected = match epilogue {
                    Epilogue::Store => sum,
                    Epilogue::Gelu => exact_gelu(sum),
                    Epilogue::Add => sum + f64::from(before[index]),
                };
                let bound = 1e-5 * (size + f64::from(before[index].abs()));
                prop_assert!((f64::from(found[index]) - expected).abs() <= bound, "{} {}", found[index], expected);
            }
        }
    }

    #[test]
    fn a_linear_layer_in_bytes_is_exact(
        rows in 0usize..70, depth in 1usize..5, outputs in 1usize..4, seed in 1u64..,
    ) {
        let (depth, outputs) = (32 * depth, 32 * outputs);
        let mut random = Random(seed);
        let input: Vec<u8> = (0..rows * depth).map(|_| match random.below(4) {
            0 => 255,
            1 => 0,
            _ => random.below(256) as u8,
        }).collect();
        // Pairs of weights as large as they may be, and smaller ones.
        let pairs: Vec<[i8; 2]> = (0..outputs * depth / 2).map(|_| match random.below(6) {
            0 => [127, 1],
            1 => [64, 64],
            2 => [-128, 0],
            3 => [-1, -127],
            4 => [127, -128],
            _ => [random.below(129) as i8 / 2, random.below(129) as i8 / 2],
        }).collect();
        // Of each output its weights in order; in panels a word for each of sixteen outputs.
        let weight = |column: usize, k: usize| pairs[(column * depth + k) / 2][k % 2];
        let panels = (0..outputs / LANES * depth / 4).map(|block| {
            let (panel, word) = (block / (depth / 4), block % (depth / 4));
            Bytes(std::array::from_fn(|byte| weight(panel * LANES + byte / 4, word * 4 + byte % 4)))
        });
        let weights = ByteWeights {
            panels: panels.collect(),
            bias: blocks(&vec![0.0; outputs]),
            scales: blocks(&vec![1.0; outputs]),
            sums: blocks(&(0..outputs).map(|column| (0..depth).map(|k| f32::from(weight(column, k))).sum()).collect::<Vec<_>>()),
            input_scales: blocks(&vec![1.0; depth]),
            inputs: depth,
        };
        let words: Vec<i32> = input.as_chunks::<4>().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect();
        let input_rows = |isa| {
            let mut input = ByteRows::default();
            input.resize(rows, depth);
            bytemuck::cast_slice_mut(&mut input.words)[..words.len()].copy_from_slice(&words);
            bias(isa, &mut input.words);
            input.scales.fill(1.0);
            input.offsets.fill(3.0);
            input
        };
        let found = on_all(true, rows * outputs, |isa, output| {
            let epilogue = Epilogue::Store;
            isa.run(ByteDense { input: &input_rows(isa), weights: &weights, epilogue, output, output_step: outputs });
        });
        for row in 0..rows {
            for column in 0..outputs {
                let product = |k: usize| (i64::from(input[row * depth + k]) + 3) * i64::from(weight(column, k));
                // Small enough to be exact in single precision.
                let expected = (0..depth).map(product).sum::<i64>();
                prop_assert_eq!(f64::from(found[row * outputs + column]), expected as f64);
            }
        }
        let added = on_all(true, rows * outputs, |isa, output| {
            output.fill(0.5);
            let epilogue = Epilogue::Add;
            isa.run(ByteDense { input: &input_rows(isa), weights: &weights, epilogue, output, output_step: outputs });
        });
        for (added, sum) in added.iter().zip(&found) {
            prop_assert_eq!(*added, sum + 0.5);
        }
        let gelu = on_all(true, rows * outputs, |isa, output| {
            let epilogue = Epilogue::Gelu;
            isa.run(ByteDense { input: &input_rows(isa), weights: &weights, epilogue, output, output_step: outputs });
        });
        for (gelu, sum) in gelu.iter().zip(&found) {
            prop_assert!((f64::from(*gelu) - exact_gelu(f64::from(*sum))).abs() <= 1e-6 * f64::from(sum.abs()));
        }
    }

    #[test]
    fn rows_in_bytes_are_within_half_a_step(rows in 0usize..6, width in 1usize..5, seed in 1u64..) {
        let width = 32 * width;
        let mut random = Random(seed);
        let mut input = random.floats(rows * width);
        if let Some(row) = input.first_chunk_mut::<32>() {
            // A row of zeros, if it is the whole row.
            row.fill(0.0);
        }
        let scales: Vec<f32> = random.floats(width).iter().map(|scale| scale.abs() + 0.01).collect();
        let scale_blocks = blocks(&scales);
        let mut first: Option<ByteRows> = None;
        for kernel in Kernel::available() {
            let mut found = ByteRows::default();
            let isa = kernel.isa().unwrap();
            isa.run(ToBytes { input: &input, scales: &scale_blocks, rows: &mut found });
            bias(isa, &mut found.words);
            let bytes: &[u8] = bytemuck::cast_slice(found.words());
            for (index, (number, byte)) in input.iter().zip(bytes).enumerate() {
                let (scale, offset) = (found.scales[index / width], found.offsets[index / width]);
                let number = number * scales[index % width];
                let error = (f32::from(*byte) * scale + offset - number).abs();
                prop_assert!(error <= scale * 0.501 + 1e-5 * offset.abs(), "{} {}", error, scale);
            }
            if let Some(first) = &first {
                prop_assert_eq!(&first.words()[..rows * width / 4], &found.words()[..rows * width / 4]);
                prop_assert_eq!(&first.scales, &found.scales);
                prop_assert_eq!(&first.offsets, &found.offsets);
            } else {
                first = Some(found);
            }
        }
    }

    #[test]
    fn normalized_rows_have_mean_0_and_variance_1(rows in 0usize..5, width in 1usize..5, seed in 1u64..) {
        let width = 32 * width;
        let mut random = Random(seed);
        let before = random.floats(rows * width);
        let (scale, shift) = (random.floats(width), random.floats(width));
        let found = on_all(true, rows * width, |isa, output| {
            output.copy_from_slice(&before);
            isa.run(Normalize { rows: output, scale: &scale, shift: &shift, epsilon: 1e-12 });
        });
        for (row, before) in found.chunks(width).zip(before.chunks(width)) {
            let mean = before.iter().map(|&x| f64::from(x)).sum::<f64>() / width as f64;
            let variance = before.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / width as f64;
            for ((found, before), (scale, shift)) in row.iter().zip(before).zip(scale.iter().zip(&shift)) {
                let scaled = (f64::from(*before) - mean) / variance.sqrt() * f64::from(*scale);
                let bound = 1e-5 * (scaled.abs() + f64::from(shift.abs()) + f64::from(scale.abs()));
                prop_assert!((f64::from(*found) - scaled - f64::from(*shift)).abs() <= bound);
            }
        }
    }

    #[test]
    fn attention_is_that_of_the_formula(
        lengths in prop::collection::vec(1usize..40, 1..4), heads in 1usize..3, seed in 1u64.., cut in 0usize..100,
    ) {
        let hidden = heads * HEAD;
        let rows: usize = lengths.iter().sum();
        let mut random = Random(seed);
        let floats: Vec<f32> = random.floats(rows * 3 * hidden).iter().map(|x| x.clamp(-20.0, 20.0)).collect();
        let mut shorts = vec![0; floats.len()];
        let mut scales = vec![0.0; floats.len() / HEAD];
        Kernel::Portable.isa().unwrap().run(ToShorts { floats: &floats, shorts: &mut shorts, scales: &mut scales });
        let part = |rows: Range<usize>| attention::Part {
            floats: &floats[rows.start * 3 * hidden..rows.end * 3 * hidden],
            shorts: &shorts[rows.start * 3 * hidden..rows.end * 3 * hidden],
            scales: &scales[rows.start * 3 * heads..rows.end * 3 * heads],
        };
        let mut start = 0;
        for length in lengths {
            let text = start..start + length;
            start = text.end;
            let cut = text.start + cut % length;
            for short in [false, true] {
                let run = |isa: Isa, parts: &[attention::Part], queries: Range<usize>, context: &mut [f32]| {
                    let attention = Attention { text: parts, own: part(0..rows), hidden };
                    let scratch = &mut AttentionScratch::default();
                    if short {
                        isa.run(ShortAttention { attention, queries, scratch, context });
                    } else {
                        isa.run(FloatAttention { attention, queries, scratch, context });
                    }
                };
                let found = on_all(short, length * hidden, |isa, context| {
                    run(isa, &[part(text.clone())], text.clone(), context);
                });
                // The same to the bit if two threads have computed the rows and each asks for some.
                let again = on_all(short, length * hidden, |isa, context| {
                    let parts: Vec<_> = [text.start..cut, cut..text.end].into_iter()
                        .filter(|rows| !rows.is_empty()).map(part).collect();
                    let (first, second) = context.split_at_mut((cut - text.start) * hidden);
                    run(isa, &parts, text.start..cut, first);
                    run(isa, &parts, cut..text.end, second);
                });
                prop_assert_eq!(&found, &again);
                let at = |row: usize, column: usize| f64::from(floats[row * 3 * hidden + column]);
                for row in text.clone() {
                    for head in 0..heads {
                        let dot = |key: usize| (0..HEAD)
                            .map(|d| at(row, head * HEAD + d) * at(key, hidden + head * HEAD + d)).sum::<f64>();
                        let scores: Vec<f64> = text.clone().map(|key| dot(key) / 32f64.sqrt()).collect();
                        let largest = scores.iter().copied().fold(f64::MIN, f64::max);
                        let total: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
                        for d in 0..HEAD {
                            let value = |key: usize| at(key, 2 * hidden + head * HEAD + d);
                            let shares = scores.iter().map(|score| (score - largest).exp() / total);
                            let expected: f64 = shares.zip(text.clone()).map(|(share, key)| share * value(key)).sum();
                            let found = f64::from(found[(row - text.start) * hidden + head * HEAD + d]);
                            let bound = if short { 0.2 } else { 3e-3 };
                            prop_assert!((found - expected).abs() <= bound, "{} {}", found, expected);
                        }
                    }
                }
            }
        }
    }
}

/// Four vectors through a function.
struct Apply<'a> {
    numbers: &'a mut [[f32; LANES]; functions::TOGETHER],
    power: bool,
}

impl Work for Apply<'_> {
    #[inline(always)]
    fn run<L: ByteTiles>(self, lanes: L) {
        let mut vectors = [lanes.splat(0.0); functions::TOGETHER];
        for (vector, numbers) in vectors.iter_mut().zip(&*self.numbers) {
            *vector = lanes.load(numbers);
        }
        let vectors = if self.power {
            functions::exp2(lanes, vectors)
        } else {
            functions::gelu(lanes, vectors)
        };
        for (vector, numbers) in vectors.iter().zip(self.numbers) {
            lanes.store(*vector, numbers);
        }
    }
}

#[test]
fn functions_are_right_everywhere() {
    let steps = if cfg!(miri) { 200 } else { 200_000 };
    for power in [true, false] {
        let range = if power { -130.0..0.0 } else { -8.0..8.0_f32 };
        let inputs: Vec<f32> = (0..=steps)
            .map(|step| range.start + (range.end - range.start) * step as f32 / steps as f32)
            .collect();
        for chunk in inputs.chunks(64) {
            let mut first: Option<[[f32; LANES]; 4]> = None;
            for kernel in Kernel::available() {
                let mut numbers = [[-0.0; LANES]; 4];
                numbers.as_flattened_mut()[..chunk.len()].copy_from_slice(chunk);
                kernel.isa().unwrap().run(Apply {
                    numbers: &mut numbers,
                    power,
                });
                for (x, found) in chunk.iter().zip(numbers.as_flattened()) {
                    let x = f64::from(*x);
                    let expected = if power {
                        x.max(-125.0).exp2()
                    } else {
                        exact_gelu(x)
                    };
                    let bound = if power {
                        2e-7 * expected
                    } else {
                        2.5e-7 * (1.0 + x.abs())
                    };
                    assert!(
                        (f64::from(*found) - expected).abs() <= bound,
                        "{kernel}: {x} {found} {expected}"
                    );
                }
                assert_eq!(*first.get_or_insert(numbers), numbers, "{kernel}");
            }
        }
    }
}

#[test]
fn kernels_have_names_and_the_best_comes_first() {
    let unknown = Error::UnknownKernel("sse".into()).to_string();
    for &kernel in Kernel::ALL {
        assert_eq!(Kernel::from_name(kernel.name()), Some(kernel));
        assert!(unknown.contains(&format!(" {kernel}")), "{unknown}");
        if kernel.isa().is_none() {
            eprintln!("skipped: {kernel}, which this processor lacks or the system does not permit");
        }
    }
    let available: Vec<_> = Kernel::available().collect();
    assert_eq!(available[0], Kernel::best(Precision::Int8));
    assert_eq!(available.last(), Some(&Kernel::Portable));
}

/// The numeric contract of [`dots`], as it is written there.
fn contract(a: &[f32], b: &[f32]) -> f64 {
    fn halves(lanes: &[f32]) -> f32 {
        let (front, back) = lanes.split_at(lanes.len() / 2);
        match lanes {
            [lane] => *lane,
            _ => halves(&front.iter().zip(back).map(|(a, b)| a + b).collect::<Vec<_>>()),
        }
    }
    let span = |(a, b): (&[f32], &[f32])| {
        let at = |v: &[f32], index: usize| v.get(index).copied().unwrap_or(0.0);
        let lane = |lane| {
            (lane..a.len().next_multiple_of(64))
                .step_by(64)
                .fold(0.0_f32, |sum, index| libm::fmaf(at(a, index), at(b, index), sum))
        };
        f64::from(halves(&(0..64).map(lane).collect::<Vec<_>>()))
    };
    // Not `sum`, which begins with a negative zero.
    let spans = a.chunks(512).zip(b.chunks(512)).map(span);
    spans.fold(0.0, |total, span| total + span)
}

fn exact(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

/// A query and rows with components of very different size, whose products stay within the range.
fn query_and_rows() -> impl Strategy<Value = (Vec<f32>, Vec<Vec<f32>>)> {
    let component = prop_oneof![
        8 => -1.0f32..1.0,
        1 => (-1.0f32..1.0, -12i32..=12).prop_map(|(digits, exponent)| digits * 10.0_f32.powi(exponent)),
        1 => prop::sample::select(vec![0.0, -0.0, 1e12, -1e12, 1e-12, -1e-12, 1e-45, f32::MIN_POSITIVE]),
    ];
    (0usize..1100, prop::collection::vec(component, 1100 * 4)).prop_map(|(length, components)| {
        let mut rows: Vec<_> = components
            .chunks_exact(1100)
            .map(|row| row[..length].to_vec())
            .collect();
        (rows.remove(0), rows)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 100 }))]

    #[test]
    fn dots_keeps_the_contract_on_every_kernel((query, rows) in query_and_rows()) {
        let padded: Vec<Group> = Group::padded(&query).collect();
        let flat: Vec<Group> = rows.iter().flat_map(|row| Group::padded(row)).collect();
        let mut best = vec![f64::NAN; rows.len()];
        super::dots(&padded, &flat, &mut best);
        for kernel in Kernel::available().filter(|_| !query.is_empty()) {
            let mut products = vec![f64::NAN; rows.len()];
            kernel.isa().unwrap().run(Dots { query: &padded, rows: &flat, products: &mut products });
            for ((row, product), best) in rows.iter().zip(products).zip(&best) {
                prop_assert_eq!(product.to_bits(), contract(&query, row).to_bits(), "{}", kernel);
                prop_assert_eq!(product.to_bits(), best.to_bits());
                let size = exact(&query, &query).sqrt() * exact(row, row).sqrt();
                let error = (product - exact(&query, row)).abs();
                prop_assert!(error <= 14.0001 / 16_777_216.0 * size + 1e-42, "{} {}", error, size);
            }
        }
        prop_assert!(!query.is_empty() || best == [0.0; 3]);
    }
}

#[test]
fn groups_lie_on_cache_lines() {
    let rows: Vec<Group> = Group::padded(&[0.0; 100]).collect();
    assert_eq!(rows.as_ptr() as usize % 64, 0);
    assert_eq!((rows.len(), size_of::<Group>()), (2, 256));
}
