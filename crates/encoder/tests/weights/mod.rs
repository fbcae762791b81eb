//! Models of random weights, for tests and benchmarks.

use std::collections::HashMap;

use knowledgepulse_encoder::Shape;
use safetensors::tensor::{Dtype, TensorView, serialize};

/// The shape and the numbers of each tensor.
pub type Tensors = HashMap<String, (Vec<usize>, Vec<f32>)>;

/// xorshift: the same numbers on every run.
pub struct Random(pub u64);

impl Random {
    /// Returns a number between -1 and 1.
    pub fn float(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Returns the tensors of a model of random weights.
pub fn tensors(shape: Shape) -> Tensors {
    let mut random = Random(7);
    let mut tensors = Tensors::new();
    let mut add = |name: String, shape: &[usize], middle: f32, size: f32| {
        let numbers = (0..shape.iter().product())
            .map(|_| middle + random.float() * size)
            .collect();
        tensors.insert(name, (shape.to_vec(), numbers));
    };
    let Shape { hidden, inner, .. } = shape;
    for (name, rows, size) in [
        ("word", shape.vocabulary, 1.0),
        ("position", shape.positions, 0.5),
        ("token_type", 2, 0.5),
    ] {
        let name = format!("embeddings.{name}_embeddings.weight");
        add(name, &[rows, hidden], 0.0, size);
    }
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    for layer in 0..shape.layers {
        let layer = format!("encoder.layer.{layer}");
        for (name, outputs, inputs) in [
            ("attention.self.query", hidden, hidden),
            ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden),
            ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", inner, hidden),
            ("output.dense", hidden, inner),
        ] {
            add(format!("{layer}.{name}.weight"), &[outputs, inputs], 0.0, 0.3);
            add(format!("{layer}.{name}.bias"), &[outputs], 0.0, 0.2);
        }
        norms.push(format!("{layer}.attention.output.LayerNorm"));
        norms.push(format!("{layer}.output.LayerNorm"));
    }
    for norm in norms {
        add(format!("{norm}.weight"), &[hidden], 1.0, 0.2);
        add(format!("{norm}.bias"), &[hidden], 0.0, 0.2);
    }
    tensors
}

/// Returns the safetensors file of a model in single precision.
pub fn file(tensors: &Tensors) -> Vec<u8> {
    let bytes: HashMap<&String, Vec<u8>> = tensors
        .iter()
        .map(|(name, (_, numbers))| (name, to_bytes(numbers)))
        .collect();
    let views = tensors.iter().map(|(name, (shape, _))| {
        let view = TensorView::new(Dtype::F32, shape.clone(), &bytes[name]);
        (name, view.unwrap())
    });
    serialize(views, None).unwrap()
}

fn to_bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Returns the safetensors file of a model in eight bits: weights of at most 63 steps, so that any two add up to less than 128.
pub fn int8_file(tensors: &Tensors) -> Vec<u8> {
    let mut bytes: HashMap<String, (Dtype, Vec<usize>, Vec<u8>)> = HashMap::new();
    for (name, (shape, numbers)) in tensors {
        let floats = |numbers: &[f32]| (Dtype::F32, vec![numbers.len()], to_bytes(numbers));
        let linear = name.starts_with("encoder.") && shape.len() == 2;
        if !linear && !name.contains("word_embeddings") {
            bytes.insert(name.clone(), (Dtype::F32, shape.clone(), floats(numbers).2));
            continue;
        }
        let (mut steps, mut scales) = (Vec::new(), Vec::new());
        for row in numbers.chunks_exact(shape[1]) {
            let scale = row.iter().fold(0.0_f32, |largest, x| largest.max(x.abs())) / 63.0;
            steps.extend(row.iter().map(|x| (x / scale).round() as i8 as u8));
            scales.push(scale);
        }
        let stem = name.trim_end_matches(".weight");
        bytes.insert(name.clone(), (Dtype::I8, shape.clone(), steps));
        bytes.insert(format!("{stem}.scale"), floats(&scales));
        if linear {
            let inputs = [".query", ".key", ".value"]
                .iter()
                .find_map(|name| stem.strip_suffix(name));
            let name = format!("{}.input_scale", inputs.unwrap_or(stem));
            bytes.insert(name, floats(&vec![1.0; shape[1]]));
        }
    }
    let views = bytes
        .iter()
        .map(|(name, (dtype, shape, bytes))| (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
    serialize(views, None).unwrap()
}
