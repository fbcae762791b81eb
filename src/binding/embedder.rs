//! The embedder: its configuration, what became of it, and embedding a text by itself.

use std::sync::LazyLock;

use napi::{
    Env, JsError,
    bindgen_prelude::{Float32ArraySlice, Object, ToNapiValue},
    sys,
};
use napi_derive::napi;

use super::{error::Result, scorer::NativeCall};
use crate::{
    embed::Embedding,
    embed::runtime,
    engine::{self, EmbedResult, Engine, Failure, Status},
};

/// The embedder and its queue: one per process, shared by all threads.
pub(super) static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);

/// Where the embedder comes from; see `engine::Options`.
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
    /// What the model calls itself.
    pub model: Option<String>,
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

/// Has this thread wait, when it ends, for what ONNX Runtime is doing: the process may be about to exit, whichever thread
/// made the embedder.
#[napi(catch_unwind)]
pub fn wait_at_end(env: &Env) -> Result<()> {
    env.add_env_cleanup_hook((), |()| runtime::wait())?;
    Ok(())
}

/// Says where the embedder comes from. Returns whether this was the first call, the only one that counts.
#[napi(catch_unwind)]
pub fn configure(options: EmbedderOptions) -> bool {
    ENGINE.configure(engine::Options {
        model_directory: options.model_directory.map(Into::into),
        runtime_library: options.runtime_library.map(Into::into),
        model_configured: options.model_configured,
        runtime_configured: options.runtime_configured,
        threads: options.threads.map(|threads| threads as usize),
    })
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

/// Embeds a text, of which the first 512 tokens count. Rejects with the embedder's failure if there is none.
#[napi(catch_unwind, ts_return_type = "Promise<Float32Array>")]
pub fn embed<'env>(env: &'env Env, text: String, call: Option<&NativeCall>) -> Result<Object<'env>> {
    let (deferred, promise) = env.create_deferred()?;
    let reply = Box::new(move |result: EmbedResult| {
        deferred.resolve(move |env: Env| match result {
            Ok(embedding) => Ok(Components(embedding)),
            Err(failure) => {
                let carrier = napi::Error::new(failure.code, failure.reason);
                Err(JsError::from(carrier).into_unknown(env).into())
            }
        });
    });
    ENGINE.embed(text, call.map(NativeCall::call), reply);
    Ok(promise)
}

/// An embedding that becomes a `Float32Array` in memory of the engine's own: Electron has no other.
pub struct Components(pub(super) Box<Embedding>);

impl ToNapiValue for Components {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> napi::Result<sys::napi_value> {
        let array = Float32ArraySlice::copy_from(&Env::from_raw(env), *value.0)?;
        // SAFETY: the environment is the caller's.
        unsafe { ToNapiValue::to_napi_value(env, array) }
    }
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

impl From<Status> for NativeEmbedderStatus {
    fn from(status: Status) -> Self {
        let display = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            available: status.failure.is_none(),
            code: status.failure.as_ref().map(|failure| failure.code.into()),
            reason: status.failure.map(|failure| failure.reason),
            model_directory: status.model_directory.map(display),
            model: status.model,
            model_sha256: status.model_sha256,
            dtype: status.dtype,
            dimensions: status.dimensions.map(number),
            runtime_path: status.runtime_path.map(display),
            runtime_version: status.runtime_version,
            threads: number(status.threads),
        }
    }
}
