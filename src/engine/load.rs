//! Loading the embedder: where it comes from, and what became of it.

use std::{path::PathBuf, thread};

use super::{Shared, job::guarded};
use crate::{
    cache::ModelIdentity,
    embed::model::ModelFiles,
    embed::runtime::{Runtime, check_room},
    embed::{DIMENSIONS, Embedder, Lane},
    error::{Error, Result},
};

/// Where the embedder comes from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// The model directory; `None` if no model package is installed.
    pub model_directory: Option<PathBuf>,
    /// The ONNX Runtime library; `None` if the platform has none.
    pub runtime_library: Option<PathBuf>,
    /// Whether the model directory was named by the user, so that its absence is a mistake.
    pub model_configured: bool,
    /// The same for the runtime library.
    pub runtime_configured: bool,
    /// Threads that one inference computes on; `None` for as many as the process may use.
    pub threads: Option<usize>,
}

/// What became of loading the embedder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    /// Why there is no embedder; `None` if there is one.
    pub failure: Option<Failure>,
    /// The model directory.
    pub model_directory: Option<PathBuf>,
    /// What the model calls itself, or its SHA-256 where it has no name.
    pub model: Option<String>,
    /// The SHA-256 of the model file, in hexadecimal.
    pub model_sha256: Option<String>,
    /// What the weights are stored in.
    pub dtype: Option<String>,
    /// The length of an embedding.
    pub dimensions: Option<usize>,
    /// The ONNX Runtime library.
    pub runtime_path: Option<PathBuf>,
    /// Its version.
    pub runtime_version: Option<String>,
    /// Threads that one inference computes on.
    pub threads: usize,
}

/// An error that is told, not raised: novelty is neutral, and scoring goes on.
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

/// A model that is loaded.
pub(super) struct Loaded {
    pub(super) embedder: Embedder,
    pub(super) identity: ModelIdentity,
}

/// Loads the embedder and publishes what became of it.
pub(super) fn load(options: &Options, shared: &Shared) -> Option<(Loaded, Lane)> {
    let mut status = Status {
        model_directory: options.model_directory.clone(),
        runtime_path: options.runtime_library.clone(),
        threads: threads(options),
        ..Status::default()
    };
    let loaded = guarded(|| load_embedder(options, &mut status));
    if let Err(error) = &loaded {
        let failure = Failure::from(error);
        let absent = match error {
            Error::ModelNotFound(_) => !options.model_configured,
            Error::RuntimeNotFound(_) => !options.runtime_configured,
            _ => false,
        };
        if !absent {
            shared.warn(failure.clone());
        }
        status.failure = Some(failure);
    }
    let identity = ModelIdentity {
        model: status.model.clone().unwrap_or_default(),
        dtype: status.dtype.clone().unwrap_or_default(),
        sha256: status.model_sha256.clone(),
    };
    let _ = shared.status.set(status);
    let (embedder, lane) = loaded.ok()?;
    Some((Loaded { embedder, identity }, lane))
}

/// Verifies the model while ONNX Runtime is loaded and its session made: both take tens of milliseconds.
fn load_embedder(options: &Options, status: &mut Status) -> Result<(Embedder, Lane)> {
    let directory = options.model_directory.as_ref().ok_or_else(|| {
        Error::ModelNotFound(
            "install @knowledgepulse/all-minilm-l6-v2 (or -q8, for dtype q8), or set KNOWLEDGEPULSE_MODEL_DIR to a model directory"
                .into(),
        )
    })?;
    let library = options.runtime_library.as_ref().ok_or_else(|| {
        Error::RuntimeNotFound(
            "this platform's package carries none; set KNOWLEDGEPULSE_ONNXRUNTIME to a library".into(),
        )
    })?;
    let files = ModelFiles::find(directory)?;
    check_room(&files.model)?;
    status.dtype = Some(files.dtype.clone());
    status.dimensions = Some(DIMENSIONS);
    thread::scope(|scope| {
        let verified = files.clone();
        let sha256 = thread::Builder::new().spawn_scoped(scope, move || verified.model_sha256());
        let loaded = Runtime::load(library).and_then(|runtime| {
            status.runtime_path = Some(runtime.path.clone());
            status.runtime_version = Some(runtime.version.clone());
            Embedder::load(runtime, files.clone(), status.threads)
        });
        let sha256 = match sha256 {
            Ok(other) => other
                .join()
                .unwrap_or_else(|panic| Err(Error::from_panic(&*panic))),
            // Without a second thread it takes longer.
            Err(_) => files.model_sha256(),
        };
        // A wrong checksum explains whatever else went wrong.
        let sha256 = sha256?;
        status.model = Some(
            files
                .name()
                .map_or_else(|| format!("sha256:{sha256}"), str::to_owned),
        );
        status.model_sha256 = Some(sha256);
        loaded
    })
}

/// `available_parallelism` respects affinity and cgroup limits, which a bare core count does not.
pub(super) fn threads(options: &Options) -> usize {
    options
        .threads
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
}
