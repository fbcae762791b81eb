//! The built-in engine: the forward pass of the crate `knowledgepulse-encoder`.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use knowledgepulse_encoder::{
    self as encoder, Encoder, Model, Options, PASS_TOKENS, Precision, Shape, Source,
};

use knowledgepulse_error::{Error, Result, fault};

use crate::{
    DIMENSIONS, Embedding, Lane, Network, damaged, embedding_of, encoder_failed,
    file::{Identity, check_room, no_room},
    model::{self, IN_MEMORY},
    runtime::stop_at_exit,
    unsupported,
};

/// The address space of the engine without weights, in bytes: stacks of its threads, and intermediate results of 512 tokens.
const WORKING_BYTES: u64 = 64 << 20;

/// The largest model of 384 dimensions, in bytes; the reader reports larger files.
const LARGEST_BYTES: u64 = 4 << 30;

/// Loaded weights, whose lanes have threads of their own.
pub struct Weights {
    model: Arc<Model>,
    file: Option<Arc<OpenFile>>,
}

/// The open file from which a pass reads word embeddings. It may be deleted or replaced.
struct OpenFile {
    path: PathBuf,
    file: Arc<File>,
    identity: Identity,
}

/// An encoder and its file.
struct EncoderLane {
    encoder: Encoder,
    file: Option<Arc<OpenFile>>,
}

impl OpenFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self {
            identity: Identity::of(&file.metadata()?),
            path: path.to_owned(),
            file: Arc::new(file),
        })
    }

    /// # Errors
    /// `ERR_MODEL_UNUSABLE` if the file was written to meanwhile.
    fn check_unchanged(&self) -> Result<()> {
        let metadata = self.file.metadata();
        let metadata = metadata.map_err(|error| model::unread(&self.path, &error))?;
        if Identity::of(&metadata) == self.identity {
            return Ok(());
        }
        Err(damaged(&self.path, "it has changed since it was loaded"))
    }
}

impl Weights {
    /// Loads the safetensors file in `path` on up to `threads` threads. Reads and checks everything except the values of the word embeddings.
    ///
    /// # Errors
    /// `ERR_MODEL_UNUSABLE` or `ERR_OUT_OF_MEMORY`.
    pub fn open(path: &Path, threads: usize) -> Result<Self> {
        let unread = |error| model::unread(path, &error);
        let file = OpenFile::open(path).map_err(unread)?;
        let source = Source::file(Arc::clone(&file.file)).map_err(unread)?;
        Ok(Self {
            model: Arc::new(load(source, path, threads)?),
            file: Some(Arc::new(file)),
        })
    }

    /// Loads a safetensors file in memory, and keeps only its word embeddings.
    ///
    /// # Errors
    /// As for [`Weights::open`].
    pub fn in_memory(bytes: impl AsRef<[u8]> + Send + Sync + 'static, threads: usize) -> Result<Self> {
        let path = Path::new(IN_MEMORY);
        let mut model = load(Source::memory(bytes), path, threads)?;
        model.detach().map_err(|error| refused(path, error))?;
        Ok(Self {
            model: Arc::new(model),
            file: None,
        })
    }

    /// The type of the weights: `fp32` or `q8`.
    #[must_use]
    pub fn dtype(&self) -> &'static str {
        match self.model.precision() {
            Precision::Int8 => "q8",
            _ => "fp32",
        }
    }
}

fn load(source: Source, path: &Path, threads: usize) -> Result<Model> {
    if source.length() <= LARGEST_BYTES {
        check_room(path, source.length().saturating_add(WORKING_BYTES))?;
    }
    let model = Model::load(source, threads).map_err(|error| refused(path, error))?;
    if model.shape().hidden != DIMENSIONS {
        let hidden = model.shape().hidden;
        let reason = format!("its embeddings have {hidden} dimensions instead of {DIMENSIONS}");
        return Err(unsupported(path, reason));
    }
    stop_at_exit();
    Ok(model)
}

/// The error for weights that the encoder refuses.
fn refused(path: &Path, error: encoder::Error) -> Error {
    match error {
        encoder::Error::Read(error) => model::unread(path, &error),
        encoder::Error::Damaged(reason) => damaged(path, reason),
        encoder::Error::Unsupported(reason) => unsupported(path, reason),
        encoder::Error::Memory(bytes) => no_room(path, bytes as u64),
        error => encoder_failed(error),
    }
}

impl Network for Weights {
    fn open_lane(&self, threads: usize) -> Result<Box<dyn Lane>> {
        fault::point("lane");
        let mut options = Options::default();
        options.threads = threads;
        Ok(Box::new(EncoderLane {
            encoder: Encoder::new(Arc::clone(&self.model), options).map_err(encoder_failed)?,
            file: self.file.clone(),
        }))
    }

    fn shape(&self) -> Option<Shape> {
        Some(self.model.shape())
    }

    fn pass_tokens(&self) -> usize {
        PASS_TOKENS
    }
}

impl Lane for EncoderLane {
    fn embed(&mut self, texts: &[&[u32]]) -> Result<Vec<Embedding>> {
        let embeddings = self.encoder.embed_batch(texts);
        if let Some(file) = &self.file {
            file.check_unchanged()?;
        }
        let embeddings = embeddings.map_err(encoder_failed)?;
        embeddings.into_iter().map(embedding_of).collect()
    }

    fn threads(&self) -> usize {
        self.encoder.threads()
    }

    fn kernel(&self) -> Option<String> {
        Some(self.encoder.kernel().to_string())
    }
}
