//! From weights in single precision to weights in eight bits.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, TensorView, serialize};

use crate::{
    error::{Error, Result},
    file::TensorFile,
    source::Source,
};

/// The largest byte of a weight, and of two neighbouring weights of the same sign together: rounding may add 1 to the two,
/// and 255 * 128 fits 16 bits.
const LARGEST: f32 = 127.0;

/// The int8 file for the weights in `source`, which must be in single precision. The same weights give the same bytes.
///
/// It is a safetensors file with the names of the original. The word embeddings are `I8` with a scale for each row in
/// `embeddings.word_embeddings.scale`; the weight of each linear layer is `I8` with a scale for each output in `….scale`. A
/// number is its byte times its scale. Two neighbouring weights of an output never add up to more than 128 or less than -128,
/// so that a processor that adds their products in 16 bits does it without saturation. All else is as it was, less what the
/// encoder does not use.
///
/// # Errors
/// [`Error::Read`], [`Error::Damaged`] or [`Error::Unsupported`].
pub fn quantize(source: Source) -> Result<Vec<u8>> {
    let file = TensorFile::open(source)?;
    let mut tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    for name in file.names() {
        let tensor = file.find(&name)?;
        if tensor.dtype != Dtype::F32 || name.starts_with("pooler.") {
            continue;
        }
        let numbers = file.floats(&name, &tensor.shape)?;
        let words = name == "embeddings.word_embeddings.weight";
        let linear = name.starts_with("encoder.") && tensor.shape.len() == 2;
        if !words && !linear {
            let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            tensors.push((name, Dtype::F32, tensor.shape, bytes));
            continue;
        }
        let width = tensor.shape[1].max(1);
        let mut bytes = Vec::with_capacity(numbers.len());
        let mut scales = Vec::new();
        for row in numbers.chunks_exact(width) {
            let largest = if words { largest(row) } else { largest_pair(row) };
            let scale = (largest / LARGEST).max(f32::MIN_POSITIVE);
            #[allow(clippy::cast_possible_truncation)] // At most 127.
            bytes.extend(
                row.iter()
                    .map(|number| ((number / scale).round_ties_even() as i8).cast_unsigned()),
            );
            scales.extend(scale.to_le_bytes());
        }
        let scale = name.strip_suffix("weight").map(|stem| format!("{stem}scale"));
        let scale = scale.ok_or_else(|| Error::Unsupported(format!("{name} is a matrix")))?;
        tensors.push((scale, Dtype::F32, vec![tensor.shape[0]], scales));
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
