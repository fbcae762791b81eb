//! Loading the embedder: its configuration and its state.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use knowledgepulse_embed::{
    self as embed, DIMENSIONS, Embedder, Lane, MOST_TOKENS, Network,
    builtin::Weights,
    file::check_room,
    model::{IN_MEMORY, ModelFiles, sha256},
};
use knowledgepulse_error::{Error, Result, guarded, named};
use knowledgepulse_index::options::ModelIdentity;
use knowledgepulse_os as os;

use super::Shared;

#[cfg(not(target_family = "wasm"))]
use knowledgepulse_embed::{onnxruntime::Graph, runtime::Runtime};

/// The configuration of the embedder.
#[derive(Default)]
pub struct EngineOptions {
    /// The engine; by default the built-in one, but ONNX Runtime on arm64 if the addon brings it, and for a model that has only a graph.
    pub engine: Option<EngineKind>,
    /// The model directory; `None` if no model package is installed.
    pub model_directory: Option<PathBuf>,
    /// The way out if there is no model directory; by default, to install a package of npm.
    pub model_advice: Option<String>,
    /// A model in memory instead of a directory, until it is loaded.
    pub model_in_memory: Mutex<Option<ModelInMemory>>,
    /// The ONNX Runtime library; `None` if there is none.
    pub runtime_library: Option<PathBuf>,
    /// Whether the library came with the addon.
    pub runtime_packaged: bool,
    /// Whether the user named the model directory or gave a model in memory, so that its absence is an error.
    pub model_configured: bool,
    /// Whether the user named the runtime library.
    pub runtime_configured: bool,
    /// The threads of one inference; 0 for as many as the process may use.
    pub threads: usize,
}

named! {
    /// The engine that computes embeddings, with its public name.
    pub enum EngineKind {
        /// The forward pass of this library, which reads `model.safetensors`.
        BuiltIn = "builtin",
        /// ONNX Runtime, which reads `model.onnx`.
        OnnxRuntime = "onnxruntime",
    }
}

/// A model whose files are in memory.
pub struct ModelInMemory {
    /// A safetensors file.
    pub weights: Arc<[u8]>,
    /// A `tokenizer.json`.
    pub tokenizer: Vec<u8>,
}

/// The state of the embedder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    /// Why there is no embedder; `None` if there is one.
    pub failure: Option<Failure>,
    /// The model directory.
    pub model_directory: Option<PathBuf>,
    /// The name of the model, or its SHA-256 if it has none.
    pub model: Option<String>,
    /// The SHA-256 of the file with the weights, in hexadecimal: from the model's manifest, else computed from the file.
    pub model_sha256: Option<String>,
    /// The type of the weights.
    pub dtype: Option<String>,
    /// The length of an embedding.
    pub dimensions: Option<usize>,
    /// The engine; `None` without a model.
    pub engine: Option<EngineKind>,
    /// The instructions of the built-in engine.
    pub kernel: Option<String>,
    /// The ONNX Runtime library, if that is the engine.
    pub runtime_path: Option<PathBuf>,
    /// Its version.
    pub runtime_version: Option<String>,
    /// The threads of one inference.
    pub threads: usize,
}

impl Status {
    /// Returns the origin of this model's vectors.
    #[must_use]
    pub fn identity(&self) -> ModelIdentity {
        ModelIdentity {
            model: self.model.clone().unwrap_or_default(),
            dtype: self.dtype.clone().unwrap_or_default(),
            sha256: self.model_sha256.clone(),
        }
    }
}

/// An error that is reported, not raised: scoring goes on with neutral novelty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The error's stable code.
    pub code: &'static str,
    /// Its message.
    pub reason: String,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            code: error.code(),
            reason: error.to_string(),
        }
    }
}

/// A loaded model.
pub(super) struct Loaded {
    pub(super) embedder: Embedder,
    pub(super) identity: ModelIdentity,
}

/// A lane of either engine.
pub(super) type BoxedLane = Box<dyn Lane>;

/// Loads the embedder and publishes its state.
pub(super) fn load(options: &EngineOptions, shared: &Shared) -> Option<(Loaded, BoxedLane)> {
    let mut status = Status {
        model_directory: options.model_directory.clone(),
        threads: os::threads(options.threads),
        ..Status::default()
    };
    let model = options
        .model_in_memory
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let loaded = guarded(|| match model {
        Some(model) => load_from_memory(model, &mut status),
        None => load_from_directory(options, &mut status),
    });
    if let Ok((_, lane)) = &loaded {
        status.threads = lane.threads();
        status.kernel = lane.kernel();
    }
    if let Err(error) = &loaded {
        let failure = Failure::from(error);
        let absent = match error {
            Error::ModelNotFound(_) => !options.model_configured,
            Error::RuntimeNotFound(_) => {
                !(options.runtime_configured || options.model_configured) && options.engine.is_none()
            }
            _ => false,
        };
        if !absent {
            shared.warn(failure.clone());
        }
        status.failure = Some(failure);
    }
    let identity = status.identity();
    let _ = shared.status.set(status);
    let (embedder, lane) = loaded.ok()?;
    Some((Loaded { embedder, identity }, lane))
}

/// The address space of the threads that load a model, in bytes: glibc reserves an arena of 64 MB for each of four. With less, a small
/// allocation could fail and end the process, so loading is refused.
const LOADING_BYTES: u64 = 256 << 20;

const INSTALL_MODEL: &str = "install @knowledgepulse/all-minilm-l6-v2 (or -q8, for dtype q8), or set KNOWLEDGEPULSE_MODEL_DIR to a model directory";

fn load_from_directory(options: &EngineOptions, status: &mut Status) -> Result<(Embedder, BoxedLane)> {
    let directory = options.model_directory.as_ref().ok_or_else(|| {
        let advice = options.model_advice.as_deref();
        Error::ModelNotFound(advice.unwrap_or(INSTALL_MODEL).into())
    })?;
    let files = ModelFiles::find(directory)?;
    let (engine, path) = choose(options, &files)?;
    status.engine = Some(engine);
    status.dtype.clone_from(&files.dtype);
    status.dimensions = Some(DIMENSIONS);
    check_room(&path, LOADING_BYTES)?;
    let threads = status.threads;
    // The checksum is computed meanwhile, if the manifest does not have it.
    let (sha256, loaded) = embed::side_by_side(
        || files.weights_sha256(),
        || {
            let open = || -> Result<Box<dyn Network>> {
                match engine {
                    EngineKind::BuiltIn => {
                        files.require_builtin()?;
                        let weights = Weights::open(&path, threads)?;
                        weights
                            .shape()
                            .map_or(Ok(()), |shape| files.require_sizes(shape))?;
                        status.dtype.get_or_insert_with(|| weights.dtype().to_owned());
                        Ok(Box::new(weights))
                    }
                    EngineKind::OnnxRuntime => {
                        status.dtype.get_or_insert_with(|| "fp32".to_owned());
                        let library = library(options, &path)?;
                        status.runtime_path = Some(library.clone());
                        open_graph(library, &path, status)
                    }
                }
            };
            let tokenizer = || embed::parse_tokenizer(&files.read_tokenizer()?, files.max_length);
            Embedder::load(open, tokenizer, threads)
        },
    );
    let (loaded, sha256) = (loaded?, sha256?);
    status.model = Some(name_of(files.name(), &sha256));
    status.model_sha256 = Some(sha256);
    Ok(loaded)
}

fn load_from_memory(model: ModelInMemory, status: &mut Status) -> Result<(Embedder, BoxedLane)> {
    status.engine = Some(EngineKind::BuiltIn);
    status.dimensions = Some(DIMENSIONS);
    check_room(Path::new(IN_MEMORY), LOADING_BYTES)?;
    let ModelInMemory { weights, tokenizer } = model;
    let threads = status.threads;
    let hashed = Arc::clone(&weights);
    let (sha256, loaded) = embed::side_by_side(
        || Ok(sha256(&hashed)),
        || {
            let open = || -> Result<Box<dyn Network>> {
                let weights = Weights::in_memory(weights, threads)?;
                status.dtype = Some(weights.dtype().to_owned());
                Ok(Box::new(weights))
            };
            Embedder::load(open, || embed::parse_tokenizer(&tokenizer, MOST_TOKENS), threads)
        },
    );
    let (loaded, sha256) = (loaded?, sha256?);
    status.model = Some(name_of(None, &sha256));
    status.model_sha256 = Some(sha256);
    Ok(loaded)
}

/// Returns the engine for the model in `files`, and the file that it reads.
fn choose(options: &EngineOptions, files: &ModelFiles) -> Result<(EngineKind, PathBuf)> {
    let lacks = |name: &str, engine: &str, other: &str| {
        let reason = format!(
            "it has no {name}, which the engine {engine} reads; add it, or choose the engine {other}"
        );
        embed::unsupported(&files.directory, reason)
    };
    let builtin = files.weights.clone().map(|path| (EngineKind::BuiltIn, path));
    let onnxruntime = files.graph.clone().map(|path| (EngineKind::OnnxRuntime, path));
    // On arm64 the portable kernel is the only one, and ONNX Runtime the faster engine.
    let is_faster = cfg!(target_arch = "aarch64") && options.runtime_packaged;
    let (found, needs_graph) = match options.engine {
        Some(EngineKind::BuiltIn) => (builtin, false),
        Some(EngineKind::OnnxRuntime) => (onnxruntime, true),
        None if is_faster => (onnxruntime.or(builtin), true),
        None => (builtin.or(onnxruntime), false),
    };
    found.ok_or_else(|| match needs_graph {
        true => lacks("model.onnx", "onnxruntime", "builtin"),
        false => lacks("model.safetensors", "builtin", "onnxruntime"),
    })
}

#[cfg(not(target_family = "wasm"))]
fn open_graph(library: &Path, path: &Path, status: &mut Status) -> Result<Box<dyn Network>> {
    let runtime = Runtime::load(library)?;
    status.runtime_path = Some(runtime.path.clone());
    status.runtime_version = Some(runtime.version.clone());
    Ok(Box::new(Graph::open(runtime, path)?))
}

#[cfg(target_family = "wasm")]
fn open_graph(_: &Path, _: &Path, _: &mut Status) -> Result<Box<dyn Network>> {
    Err(Error::RuntimeNotFound(
        "WebAssembly cannot load one; use a model with a model.safetensors, which needs none".into(),
    ))
}

/// The ONNX Runtime library, for the graph in `path`.
fn library<'o>(options: &'o EngineOptions, path: &std::path::Path) -> Result<&'o PathBuf> {
    options.runtime_library.as_ref().ok_or_else(|| {
        Error::RuntimeNotFound(format!(
            "{} needs one, and none came with this program; set KNOWLEDGEPULSE_ONNXRUNTIME to a library (for Node.js, \
             install onnxruntime-node), or use a model with a model.safetensors, which needs none",
            path.display()
        ))
    })
}

/// Returns the name of a model, or else its checksum.
fn name_of(name: Option<&str>, sha256: &str) -> String {
    name.map_or_else(|| format!("sha256:{sha256}"), str::to_owned)
}
