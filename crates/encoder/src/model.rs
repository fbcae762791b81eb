//! The weights, checked and packed.

use std::{fs::File, path::Path};

use knowledgepulse_os::parallel::for_each;
use safetensors::tensor::Dtype;

use crate::{
    error::{Error, Result},
    file::{Tensor, TensorFile, check_finite},
    kernels::{
        attention::HEAD,
        dense::{ByteWeights, FloatWeights},
        lanes::{Bytes, Floats, LANES},
    },
    source::Source,
};

/// The most tokens of a text that any model may take.
pub const MAX_TOKENS: usize = 4096;

/// The widest layer, the largest vocabulary and the most layers that a file may have. MiniLM has 1,536, 30,522 and 6.
const MAX_WIDTH: usize = 1 << 14;
const MAX_VOCABULARY: usize = 1 << 20;
const MAX_LAYERS: usize = 64;

/// The epsilon that a layer normalisation adds to a variance before it divides by its root: `layer_norm_eps` of BERT.
pub const LAYER_NORM_EPSILON: f64 = 1e-12;

/// The number format in which weights are stored and multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// Single precision.
    Float32,
    /// Eight bits, with a scale for each output.
    Int8,
}

impl Precision {
    /// Returns the bytes of a number.
    fn bytes(self) -> usize {
        match self {
            Self::Float32 => 4,
            Self::Int8 => 1,
        }
    }
}

/// The sizes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Transformer layers.
    pub layers: usize,
    /// Numbers for each token between the layers, and in an embedding. Heads have 32 of them.
    pub hidden: usize,
    /// Numbers for each token within a feed-forward block.
    pub inner: usize,
    /// The most tokens that a text may have.
    pub positions: usize,
    /// How many tokens there are.
    pub vocabulary: usize,
}

/// A loaded model, which any number of encoders share.
#[derive(Debug)]
pub struct Model {
    shape: Shape,
    precision: Precision,
    words: Words,
    pub(crate) positions: Vec<f32>,
    pub(crate) token_type: Vec<f32>,
    pub(crate) norm: Norm,
    pub(crate) layers: Vec<Layer>,
}

/// The word embeddings, which stay where they are: a pass reads the rows of its tokens.
#[derive(Debug)]
struct Words {
    source: Source,
    offset: u64,
    /// For int8: the scale of each row.
    scales: Vec<f32>,
}

/// A transformer layer.
#[derive(Debug)]
pub(crate) struct Layer {
    /// Queries, keys and values.
    pub attention: Dense,
    pub output: Dense,
    pub attention_norm: Norm,
    pub up: Dense,
    pub down: Dense,
    pub norm: Norm,
}

/// A linear layer.
#[derive(Debug)]
pub(crate) enum Dense {
    Floats(FloatWeights),
    Bytes(ByteWeights),
}

/// The factors and offsets of a layer normalisation.
#[derive(Debug)]
pub(crate) struct Norm {
    pub scale: Vec<f32>,
    pub shift: Vec<f32>,
}

impl Model {
    /// Loads the weights in the file at `path` on up to `threads` threads; see [`Model::load`].
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn open(path: impl AsRef<Path>, threads: usize) -> Result<Self> {
        Self::load(Source::file(File::open(path)?)?, threads)
    }

    /// Loads weights on up to `threads` threads, each linear layer in the precision of its weights. Everything but the word embeddings is read,
    /// checked and packed now; a row of these is read whenever its token occurs.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Damaged`], [`Error::Unsupported`] or [`Error::Memory`].
    pub fn load(source: Source, threads: usize) -> Result<Self> {
        let file = TensorFile::open(source)?;
        let words = file.find("embeddings.word_embeddings.weight")?;
        let precision = match words.dtype {
            Dtype::F32 => Precision::Float32,
            Dtype::I8 => Precision::Int8,
            other => return Err(Error::Unsupported(format!("{} is {other:?}", words.name))),
        };
        let shape = Shape::of(&file, &words)?;
        let scales = match precision {
            Precision::Float32 => Vec::new(),
            Precision::Int8 => file.floats("embeddings.word_embeddings.scale", &[shape.vocabulary])?,
        };
        let mut token_type = file.floats("embeddings.token_type_embeddings.weight", &[2, shape.hidden])?;
        // All tokens are of type 0.
        token_type.truncate(shape.hidden);
        Ok(Self {
            shape,
            precision,
            positions: file.floats(
                "embeddings.position_embeddings.weight",
                &[shape.positions, shape.hidden],
            )?,
            token_type,
            norm: Norm::load(&file, "embeddings.LayerNorm", shape.hidden)?,
            layers: load_layers(&file, shape, threads)?,
            words: Words {
                source: file.source().clone(),
                offset: words.offset,
                scales,
            },
        })
    }

    /// Returns its sizes.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the number format of its word embeddings, which is that of attention too.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Copies the word embeddings out of the source and lets go of it: where that is memory, the rest is freed unless
    /// somebody else has it too.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn detach(&mut self) -> Result<()> {
        let size = self.precision.bytes();
        let length = (self.shape.vocabulary * self.shape.hidden * size) as u64;
        let offset = self.words.offset;
        let words = self.words.source.read(offset..offset + length)?.into_owned();
        self.words.source = Source::memory(words);
        self.words.offset = 0;
        Ok(())
    }

    /// Reads the embedding of the word `token`, which must be in the vocabulary, into `row`; `bytes` is room to read into.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub(crate) fn read_word(&self, token: u32, bytes: &mut Vec<u8>, row: &mut [f32]) -> Result<()> {
        let index = u64::from(token);
        let size = self.precision.bytes();
        bytes.resize(row.len() * size, 0);
        let offset = self.words.offset + index * bytes.len() as u64;
        self.words.source.read_into(offset, bytes)?;
        match self.precision {
            Precision::Float32 => {
                for (number, bytes) in row.iter_mut().zip(bytes.as_chunks().0) {
                    *number = f32::from_le_bytes(*bytes);
                }
            }
            Precision::Int8 => {
                let scale = self.words.scales[token as usize];
                for (number, byte) in row.iter_mut().zip(bytes) {
                    *number = f32::from(byte.cast_signed()) * scale;
                }
            }
        }
        Ok(())
    }
}

impl Shape {
    /// Returns the sizes that the tensors of a file have.
    fn of(file: &TensorFile, words: &Tensor) -> Result<Self> {
        let unsupported = |what: String| Err(Error::Unsupported(what));
        let &[vocabulary, hidden] = &words.shape[..] else {
            return unsupported(format!("{} has the shape {:?}", words.name, words.shape));
        };
        let positions = file.find("embeddings.position_embeddings.weight")?;
        let positions = positions.shape.first().copied().unwrap_or(0);
        let inner = file.find("encoder.layer.0.intermediate.dense.weight")?;
        let inner = inner.shape.first().copied().unwrap_or(0);
        let layers = (0..=MAX_LAYERS)
            .take_while(|layer| file.contains(&format!("encoder.layer.{layer}.intermediate.dense.weight")))
            .count();
        let shape = Self {
            layers,
            hidden,
            inner,
            positions,
            vocabulary,
        };
        let width = |width: usize| (1..=MAX_WIDTH).contains(&width) && width.is_multiple_of(HEAD);
        let fits = (1..=MAX_VOCABULARY).contains(&vocabulary)
            && (1..=MAX_TOKENS).contains(&positions)
            && (1..=MAX_LAYERS).contains(&layers)
            && width(hidden)
            && width(inner);
        if !fits {
            return unsupported(format!("its sizes are {shape:?}"));
        }
        Ok(shape)
    }
}

impl Norm {
    fn load(file: &TensorFile, name: &str, width: usize) -> Result<Self> {
        Ok(Self {
            scale: file.floats(&format!("{name}.weight"), &[width])?,
            shift: file.floats(&format!("{name}.bias"), &[width])?,
        })
    }
}

impl Dense {
    pub fn outputs(&self) -> usize {
        let bias = match self {
            Self::Floats(weights) => &weights.bias,
            Self::Bytes(weights) => &weights.bias,
        };
        bias.len() * LANES
    }
}

/// Loads the layers, each on the next free thread.
fn load_layers(file: &TensorFile, shape: Shape, threads: usize) -> Result<Vec<Layer>> {
    let mut layers: Vec<Option<Layer>> = (0..shape.layers).map(|_| None).collect();
    let load = |(): &mut (), (index, layer): (usize, &mut Option<Layer>)| -> Result<()> {
        *layer = Some(load_layer(file, index, shape)?);
        Ok(())
    };
    for_each(
        threads.min(shape.layers),
        layers.iter_mut().enumerate(),
        || (),
        load,
    )?;
    Ok(layers.into_iter().flatten().collect())
}

fn load_layer(file: &TensorFile, index: usize, shape: Shape) -> Result<Layer> {
    let layer = format!("encoder.layer.{index}");
    let dense = |stem: &str, names: &[&str], inputs: usize, outputs: usize| {
        let stem = format!("{layer}.{stem}");
        let names: Vec<String> = names.iter().map(|name| format!("{stem}{name}")).collect();
        match file.find(&format!("{}.weight", names[0]))?.dtype {
            Dtype::F32 => pack_floats(file, &names, inputs, outputs).map(Dense::Floats),
            _ => {
                let scales = positive(file, &format!("{stem}.input_scale"), inputs)?;
                pack_bytes(file, &names, scales, outputs).map(Dense::Bytes)
            }
        }
    };
    let Shape { hidden, inner, .. } = shape;
    let attention = [".query", ".key", ".value"];
    Ok(Layer {
        attention: dense("attention.self", &attention, hidden, hidden)?,
        output: dense("attention.output.dense", &[""], hidden, hidden)?,
        attention_norm: Norm::load(file, &format!("{layer}.attention.output.LayerNorm"), hidden)?,
        up: dense("intermediate.dense", &[""], hidden, inner)?,
        down: dense("output.dense", &[""], inner, hidden)?,
        norm: Norm::load(file, &format!("{layer}.output.LayerNorm"), hidden)?,
    })
}

/// Room for `count` blocks.
fn room<T>(count: usize) -> Result<Vec<T>> {
    let mut blocks = Vec::new();
    let granted = blocks.try_reserve_exact(count);
    granted.map_err(|_| Error::Memory(count.saturating_mul(size_of::<T>())))?;
    Ok(blocks)
}

/// Floats in whole blocks.
fn blocks(floats: &[f32]) -> Vec<Floats> {
    floats
        .as_chunks::<LANES>()
        .0
        .iter()
        .map(|chunk| Floats(*chunk))
        .collect()
}

/// Returns the layers called `names`, each of `outputs` rows, as one.
fn pack_floats(file: &TensorFile, names: &[String], inputs: usize, outputs: usize) -> Result<FloatWeights> {
    let mut panels: Vec<Floats> = room(names.len() * outputs / LANES * inputs)?;
    let mut bias = Vec::new();
    for name in names {
        bias.extend(blocks(&file.floats(&format!("{name}.bias"), &[outputs])?));
        let name = format!("{name}.weight");
        let tensor = file.expect(&name, Dtype::F32, &[outputs, inputs])?;
        let first = panels.len();
        for row in (0..outputs).step_by(LANES) {
            let bytes = file.rows(&tensor, row..row + LANES)?;
            let (panel, _) = bytes.as_chunks::<4>();
            let row: [&[[u8; 4]]; LANES] =
                std::array::from_fn(|lane| &panel[lane * inputs..(lane + 1) * inputs]);
            panels.extend(
                (0..inputs)
                    .map(|input| Floats(std::array::from_fn(|lane| f32::from_le_bytes(row[lane][input])))),
            );
        }
        check_finite(&name, bytemuck::cast_slice(&panels[first..]))?;
    }
    Ok(FloatWeights { panels, bias, inputs })
}

/// Returns the numbers of a tensor, all above zero.
fn positive(file: &TensorFile, name: &str, count: usize) -> Result<Vec<f32>> {
    let numbers = file.floats(name, &[count])?;
    if numbers.iter().any(|number| *number <= 0.0) {
        return Err(Error::Damaged(format!(
            "{name} has numbers that are not positive"
        )));
    }
    Ok(numbers)
}

/// As [`pack_floats`], for bytes, with a factor for each input.
fn pack_bytes(
    file: &TensorFile,
    names: &[String],
    input_scales: Vec<f32>,
    outputs: usize,
) -> Result<ByteWeights> {
    let inputs = input_scales.len();
    let mut panels: Vec<Bytes> = room(names.len() * outputs / LANES * inputs / 4)?;
    let (mut bias, mut scales, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        bias.extend(blocks(&file.floats(&format!("{name}.bias"), &[outputs])?));
        scales.extend(blocks(&file.floats(&format!("{name}.scale"), &[outputs])?));
        let name = format!("{name}.weight");
        let tensor = file.expect(&name, Dtype::I8, &[outputs, inputs])?;
        for row in (0..outputs).step_by(LANES) {
            let bytes = file.rows(&tensor, row..row + LANES)?;
            let (panel, _) = bytes.as_chunks::<4>();
            let row: [&[[u8; 4]]; LANES] =
                std::array::from_fn(|lane| &panel[lane * inputs / 4..(lane + 1) * inputs / 4]);
            if !row.iter().all(|row| pairs_fit(row)) {
                return Err(Error::Damaged(format!(
                    "two weights of {name} are too large together"
                )));
            }
            panels.extend((0..inputs / 4).map(|word| {
                let words: [[u8; 4]; LANES] = std::array::from_fn(|lane| row[lane][word]);
                Bytes(bytemuck::cast(words))
            }));
            #[allow(clippy::cast_precision_loss)] // At most 128 * 2^14: exact.
            sums.push(Floats(std::array::from_fn(|lane| {
                let bytes = row[lane].as_flattened().iter();
                bytes.map(|byte| i32::from(byte.cast_signed())).sum::<i32>() as f32
            })));
        }
    }
    Ok(ByteWeights {
        panels,
        bias,
        scales,
        sums,
        input_scales: blocks(&input_scales),
        inputs,
    })
}

/// Returns whether the products of two neighbouring weights with any unsigned bytes fit 16 bits together: 255 * 128 does.
fn pairs_fit(row: &[[u8; 4]]) -> bool {
    row.as_flattened()
        .as_chunks::<2>()
        .0
        .iter()
        .fold(true, |fit, pair| {
            let [a, b] = pair.map(|byte| i32::from(byte.cast_signed()));
            fit & (a.max(0) + b.max(0) <= 128) & (a.min(0) + b.min(0) >= -128)
        })
}
