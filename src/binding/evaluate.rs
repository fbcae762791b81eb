//! Scoring and the state of the embedder.

use std::sync::{Arc, LazyLock, Mutex};

use napi::{
    Env,
    bindgen_prelude::{Either, Object, Unknown},
};
use napi_derive::napi;

use super::{
    error::{Result, into_unknown, throw},
    trace,
    vector_cache::NativeVectorCache,
};
use crate::{
    cache::{self, VectorCache},
    error::{self, Error},
    inference::{self, Engine, Failure, Status, Summary},
    runtime,
};

/// The default scorer: one per process, shared by all threads.
pub(super) static ENGINE: LazyLock<Engine> =
    LazyLock::new(|| Engine::new(Arc::new(Mutex::new(VectorCache::new(cache::Options::default())))));

/// Where the embedder comes from; see `inference::Options`.
#[napi(object)]
pub struct EmbedderOptions {
    /// The model directory.
    pub model_directory: Option<String>,
    /// The ONNX Runtime library.
    pub runtime_library: Option<String>,
    /// Whether the user named the model directory.
    pub model_configured: bool,
    /// Whether the user named the library.
    pub runtime_configured: bool,
    /// Threads that one inference computes on.
    pub threads: Option<u32>,
}

/// What became of loading the embedder; see `EmbedderStatus` in index.d.ts.
#[napi(object, use_nullable = true)]
pub struct NativeEmbedderStatus {
    /// Whether there is an embedder.
    pub available: bool,
    /// Why not: a code.
    pub code: Option<String>,
    /// Why not: a message.
    pub reason: Option<String>,
    /// The model directory.
    pub model_directory: Option<String>,
    /// The SHA-256 of the model file.
    pub model_sha256: Option<String>,
    /// What the weights are stored in.
    pub dtype: Option<String>,
    /// The length of an embedding.
    pub dimensions: Option<u32>,
    /// The ONNX Runtime library.
    pub runtime_path: Option<String>,
    /// Its version.
    pub runtime_version: Option<String>,
    /// Threads that one inference computes on.
    pub threads: u32,
}

/// A failure that the user should hear of.
#[napi(object)]
pub struct Warning {
    /// The error's code.
    pub code: String,
    /// Its message.
    pub reason: String,
}

/// Says where the embedder comes from. Returns whether this was the first call, the only one that counts.
///
/// A worker thread that ends waits for what ONNX Runtime is doing: the process may be about to exit.
#[napi(catch_unwind)]
pub fn configure(env: &Env, options: EmbedderOptions) -> Result<bool> {
    env.add_env_cleanup_hook((), |()| runtime::wait())?;
    Ok(ENGINE.configure(inference::Options {
        model_directory: options.model_directory.map(Into::into),
        runtime_library: options.runtime_library.map(Into::into),
        model_configured: options.model_configured,
        runtime_configured: options.runtime_configured,
        threads: options.threads.map(|threads| threads as usize),
    }))
}

/// Stops ONNX Runtime for good, because the process is about to exit.
#[napi(catch_unwind)]
pub fn stop() {
    runtime::stop();
}

/// The version that the addon was built as.
#[napi(catch_unwind)]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Whether `configure` was called in this process.
#[napi(catch_unwind)]
pub fn is_configured() -> bool {
    ENGINE.is_configured()
}

/// Scores a trace: the score, or a promise of it where an embedding is needed. Throws for an invalid trace.
#[napi(catch_unwind, ts_return_type = "number | Promise<number>")]
pub fn evaluate<'env>(
    env: &'env Env,
    #[napi(ts_arg_type = "unknown")] trace: Unknown<'env>,
) -> Result<Either<f64, Object<'env>>> {
    evaluate_summary(env, read(env, trace)?)
}

/// A trace that was read but has to wait for its turn.
#[napi]
pub struct PreparedTrace {
    summary: Option<Summary>,
}

#[napi]
impl PreparedTrace {
    /// Reads a trace. Throws for an invalid one.
    #[napi(factory, catch_unwind)]
    pub fn read(env: &Env, #[napi(ts_arg_type = "unknown")] trace: Unknown) -> Result<Self> {
        let summary = Some(read(env, trace)?);
        Ok(Self { summary })
    }

    /// Scores the trace, once.
    #[napi(catch_unwind, ts_return_type = "number | Promise<number>")]
    pub fn evaluate<'env>(&mut self, env: &'env Env) -> Result<Either<f64, Object<'env>>> {
        let summary = self.summary.take().ok_or_else(|| {
            throw(
                env,
                &Error::Internal("a prepared trace was evaluated twice".into()),
            )
        })?;
        evaluate_summary(env, summary)
    }
}

fn read(env: &Env, trace: Unknown) -> Result<Summary> {
    trace::read(env, trace, ENGINE.wants_text()).map(|trace| Summary::of(&trace))
}

fn evaluate_summary(env: &Env, summary: Summary) -> Result<Either<f64, Object<'_>>> {
    if let Some(score) = ENGINE.evaluate_at_once(&summary) {
        return Ok(Either::A(score));
    }
    let (deferred, promise) = env.create_deferred()?;
    let reply = Box::new(move |score: error::Result<f64>| {
        deferred
            .resolve(move |env: Env| score.map_err(|error| napi::Error::from(into_unknown(&env, &error))));
    });
    ENGINE.evaluate(summary, reply);
    Ok(Either::B(promise))
}

/// Loads the embedder, if nobody has, and tells what became of it.
#[napi(catch_unwind, ts_return_type = "Promise<NativeEmbedderStatus>")]
pub fn embedder_status(env: &Env) -> Result<Object<'_>> {
    let (deferred, promise) = env.create_deferred()?;
    ENGINE.status(Box::new(move |status| {
        deferred.resolve(move |_| Ok(NativeEmbedderStatus::from(status)));
    }));
    Ok(promise)
}

/// The failure of an embedder that is present but broken; told once per process.
#[napi(catch_unwind)]
pub fn take_warning() -> Option<Warning> {
    let Failure { code, reason } = ENGINE.take_warning()?;
    Some(Warning {
        code: code.into(),
        reason,
    })
}

/// The novelty memory of the default scorer: the live one, not a copy.
#[napi(catch_unwind)]
pub fn local_cache() -> NativeVectorCache {
    NativeVectorCache::shared(Arc::clone(ENGINE.cache()))
}

impl From<Status> for NativeEmbedderStatus {
    fn from(status: Status) -> Self {
        let display = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            available: status.failure.is_none(),
            code: status.failure.as_ref().map(|failure| failure.code.into()),
            reason: status.failure.map(|failure| failure.reason),
            model_directory: status.model_directory.map(display),
            model_sha256: status.model_sha256,
            dtype: status.dtype,
            dimensions: status.dimensions.map(number),
            runtime_path: status.runtime_path.map(display),
            runtime_version: status.runtime_version,
            threads: number(status.threads),
        }
    }
}
