//! From weights in single precision to weights in eight bits.

use std::{collections::HashMap, sync::Arc};

use knowledgepulse_encoder::{Linear, Model, Precision, Source};
use rayon::prelude::*;
use safetensors::{
    SafeTensors,
    tensor::{Dtype, TensorView, serialize},
};

use crate::{
    Result,
    calibration::{Inputs, measure},
    rounding::{LANES, Output, largest, largest_pair, round},
};

const WORDS: &str = "embeddings.word_embeddings.weight";

/// The tensors of the embeddings that stay in single precision.
const EMBEDDINGS: [&str; 4] = [
    "embeddings.position_embeddings.weight",
    "embeddings.token_type_embeddings.weight",
    "embeddings.LayerNorm.weight",
    "embeddings.LayerNorm.bias",
];

/// The weights of a transformer layer, with the linear layer that computes with them, and the name of its inputs' scales.
const WEIGHTS: [(&str, Linear, &str); 6] = [
    ("attention.self.query", Linear::Attention, "attention.self"),
    ("attention.self.key", Linear::Attention, "attention.self"),
    ("attention.self.value", Linear::Attention, "attention.self"),
    ("attention.output.dense", Linear::Output, "attention.output.dense"),
    ("intermediate.dense", Linear::Up, "intermediate.dense"),
    ("output.dense", Linear::Down, "output.dense"),
];

/// The layer normalisations of a transformer layer.
const NORMS: [&str; 2] = ["attention.output.LayerNorm", "output.LayerNorm"];

/// A tensor of the new file.
struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// By their names.
type Tensors = HashMap<String, Tensor>;

/// Returns the int8 file for the safetensors file `weights`, which must be in single precision. The same arguments give the same
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
/// Those of [`Model::load`], and of `Encoder::embed` for the texts; weights in another precision.
pub fn quantize(weights: Vec<u8>, texts: &[Vec<u32>]) -> Result<Vec<u8>> {
    let weights: Arc<[u8]> = weights.into();
    let model = Model::load(Source::memory(Arc::clone(&weights)), rayon::current_num_threads())?;
    if model.precision() != Precision::Float32 {
        return Err("the weights are not in single precision".into());
    }
    let file = SafeTensors::deserialize(&weights)?;
    let mut done = Tensors::new();
    for name in EMBEDDINGS {
        copy(&file, name.to_owned(), &mut done)?;
    }
    let words = floats(&file, WORDS)?;
    if !words.iter().all(|number| number.is_finite()) {
        return Err(format!("{WORDS} has numbers that are not finite").into());
    }
    let hidden = model.shape().hidden;
    let rows: Vec<&[f32]> = words.chunks_exact(hidden).collect();
    let outputs = rounded(&rows, largest, None);
    let of_bytes = |row: &Output| {
        row.bytes
            .iter()
            .map(move |byte| f32::from(*byte) * row.scale)
            .collect()
    };
    let words = Tensor::of_floats(
        vec![rows.len(), hidden],
        outputs
            .par_iter()
            .flat_map_iter::<_, Vec<f32>>(of_bytes)
            .collect::<Vec<_>>(),
    );
    insert(WORDS, &outputs, hidden, &mut done);
    for layer in 0..model.shape().layers {
        let prefix = format!("encoder.layer.{layer}.");
        let inputs = match texts {
            [] => None,
            _ => Some(measure(load_until(&file, &prefix, &done, &words)?, texts)?),
        };
        quantize_layer(&file, &prefix, inputs.as_ref(), &mut done)?;
    }
    let description = HashMap::from([("quantization".to_owned(), "int8".to_owned())]);
    Ok(serialize(views(&done)?, Some(description))?)
}

/// Adds the tensors of a layer, calibrated with the statistics of its inputs if there are any.
fn quantize_layer(
    file: &SafeTensors,
    prefix: &str,
    inputs: Option<&HashMap<Linear, Inputs>>,
    done: &mut Tensors,
) -> Result<()> {
    for (name, linear, scaled) in WEIGHTS {
        let stem = format!("{prefix}{name}");
        let inputs = inputs.map(|inputs| &inputs[&linear]);
        let mut numbers = floats(file, &format!("{stem}.weight"))?;
        let mut bias = floats(file, &format!("{stem}.bias"))?;
        let width = numbers.len() / bias.len();
        let input_scales = inputs.map_or_else(|| vec![1.0; width], |inputs| inputs.scales.clone());
        for row in numbers.chunks_exact_mut(width) {
            for (number, input_scale) in row.iter_mut().zip(&input_scales) {
                *number /= input_scale;
            }
        }
        let rows: Vec<&[f32]> = numbers.chunks_exact(width).collect();
        let outputs = rounded(&rows, largest_pair, inputs);
        if inputs.is_some() {
            for (number, output) in bias.iter_mut().zip(&outputs) {
                #[allow(clippy::cast_possible_truncation)] // Rounding is the intent.
                let corrected = (f64::from(*number) + output.correction) as f32;
                *number = corrected;
            }
        }
        insert(&format!("{stem}.weight"), &outputs, width, done);
        let scales = Tensor::of_floats(vec![width], input_scales);
        done.insert(format!("{prefix}{scaled}.input_scale"), scales);
        done.insert(format!("{stem}.bias"), Tensor::of_floats(vec![bias.len()], bias));
    }
    for norm in NORMS {
        copy(file, format!("{prefix}{norm}.weight"), done)?;
        copy(file, format!("{prefix}{norm}.bias"), done)?;
    }
    Ok(())
}

/// Loads a model of the quantised layers, with the one whose tensors begin with `prefix` in single precision after them. Attention
/// is in single precision, because that is the precision of `words`.
fn load_until(file: &SafeTensors, prefix: &str, done: &Tensors, words: &Tensor) -> Result<Model> {
    let mut tensors = views(done)?;
    tensors.insert(WORDS, words.view()?);
    for name in file.names() {
        if name.starts_with(prefix) {
            tensors.insert(name, file.tensor(name)?);
        }
    }
    let bytes = serialize(tensors, None)?;
    Ok(Model::load(Source::memory(bytes), rayon::current_num_threads())?)
}

/// Rounds `rows` of weights on all threads.
fn rounded(rows: &[&[f32]], largest: fn(&[f32]) -> f32, inputs: Option<&Inputs>) -> Vec<Output> {
    let groups = rows.par_chunks(LANES);
    groups
        .flat_map_iter(|group| round(group, largest, inputs))
        .collect()
}

/// Adds the weights called `name`, each output of `width` bytes, and their scales.
fn insert(name: &str, outputs: &[Output], width: usize, done: &mut Tensors) {
    let bytes = outputs.iter().flat_map(|output| &output.bytes);
    let weights = Tensor {
        dtype: Dtype::I8,
        shape: vec![outputs.len(), width],
        bytes: bytes.map(|byte| byte.cast_unsigned()).collect(),
    };
    done.insert(name.to_owned(), weights);
    let scales = outputs.iter().map(|output| output.scale).collect();
    let scales = Tensor::of_floats(vec![outputs.len()], scales);
    done.insert(name.replace(".weight", ".scale"), scales);
}

/// Adds a tensor as it is.
fn copy(file: &SafeTensors, name: String, done: &mut Tensors) -> Result<()> {
    let view = file.tensor(&name)?;
    let tensor = Tensor {
        dtype: view.dtype(),
        shape: view.shape().to_vec(),
        bytes: view.data().to_vec(),
    };
    done.insert(name, tensor);
    Ok(())
}

/// Returns the numbers of a tensor in single precision.
fn floats(file: &SafeTensors, name: &str) -> Result<Vec<f32>> {
    let numbers = file.tensor(name)?.data().as_chunks().0;
    Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

fn views(tensors: &Tensors) -> Result<HashMap<&str, TensorView<'_>>> {
    let views = tensors.iter().map(|(name, tensor)| Ok((&**name, tensor.view()?)));
    views.collect()
}

impl Tensor {
    fn of_floats(shape: Vec<usize>, numbers: Vec<f32>) -> Self {
        let bytes = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
        let dtype = Dtype::F32;
        Self { dtype, shape, bytes }
    }

    fn view(&self) -> Result<TensorView<'_>> {
        Ok(TensorView::new(self.dtype, self.shape.clone(), &self.bytes)?)
    }
}
