//! The embedder: its configuration, the result of loading it, and embedding a text by itself.

use std::sync::Mutex;

use napi::{
    Env,
    bindgen_prelude::{Object, Uint8ArraySlice},
};
use napi_derive::napi;

use knowledgepulse_command::embedder_value;
use knowledgepulse_embed::runtime;
use knowledgepulse_error as error;
use knowledgepulse_score::engine::{EngineKind, EngineOptions, Failure, ModelInMemory};

use crate::{
    call::NativeCall,
    engine::{Components, ENGINE},
    error::Result,
    replies::promise,
};

/// Where the embedder comes from; see `engine::EngineOptions`.
#[napi(object, object_to_js = false)]
pub struct EmbedderOptions<'env> {
    /// The engine; absent for the best one.
    #[napi(ts_type = "'builtin' | 'onnxruntime'")]
    pub engine: Option<String>,
    pub model_directory: Option<String>,
    /// The weights of a model in memory; they are copied.
    #[napi(ts_type = "Uint8Array")]
    pub weights: Option<Uint8ArraySlice<'env>>,
    #[napi(ts_type = "Uint8Array")]
    pub tokenizer: Option<Uint8ArraySlice<'env>>,
    pub runtime_library: Option<String>,
    /// Whether the library came with the addon.
    pub runtime_packaged: bool,
    pub model_configured: bool,
    pub runtime_configured: bool,
    pub threads: Option<u32>,
}

/// Makes this thread wait for ONNX Runtime's current call when it ends: the process may be about to exit, whichever thread
/// made the embedder.
#[napi(catch_unwind)]
pub fn wait_at_end(env: &Env) -> Result<()> {
    env.add_env_cleanup_hook((), |()| runtime::wait())?;
    Ok(())
}

/// Says where the embedder comes from. Returns whether this was the first call, the only one that counts.
#[napi(catch_unwind)]
pub fn configure(options: EmbedderOptions<'_>) -> bool {
    let model_in_memory = options.weights.zip(options.tokenizer);
    let model_in_memory = model_in_memory.map(|(weights, tokenizer)| ModelInMemory {
        weights: (&*weights).into(),
        tokenizer: tokenizer.to_vec(),
    });
    ENGINE.configure(EngineOptions {
        engine: options.engine.and_then(|name| EngineKind::from_name(&name)),
        model_in_memory: Mutex::new(model_in_memory),
        runtime_packaged: options.runtime_packaged,
        model_directory: options.model_directory.map(Into::into),
        runtime_library: options.runtime_library.map(Into::into),
        model_configured: options.model_configured,
        runtime_configured: options.runtime_configured,
        threads: options.threads.map_or(0, |threads| threads as usize),
        model_advice: None,
    })
}

/// Stops ONNX Runtime for good, because the process is about to exit.
#[napi(catch_unwind)]
pub fn stop() {
    runtime::stop();
}

/// Returns the version that the addon was built as.
#[napi(catch_unwind)]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Returns whether `configure` was called in this process.
#[napi(catch_unwind)]
pub fn is_configured() -> bool {
    ENGINE.is_configured()
}

/// Embeds a text, of which the first 512 tokens count. Rejects with the reason if the embedder could not be loaded.
#[napi(catch_unwind, ts_return_type = "Promise<Float32Array>")]
pub fn embed<'env>(env: &'env Env, text: String, call: Option<&NativeCall>) -> Result<Object<'env>> {
    let (ticket, promise) = promise(env)?;
    let reply = move |result: error::Result<_>| ticket.settle(result.map(Components));
    ENGINE.embed(text, call.map(NativeCall::share), Box::new(reply));
    Ok(promise)
}

/// Loads the embedder on the first call. Resolves to its `EmbedderStatus` in JSON.
#[napi(catch_unwind, ts_return_type = "Promise<string>")]
pub fn embedder_status(env: &Env) -> Result<Object<'_>> {
    let (ticket, promise) = promise(env)?;
    ENGINE.status(Box::new(move |status| {
        ticket.settle(Ok(embedder_value(&status).to_json()));
    }));
    Ok(promise)
}

/// Returns the failure of an embedder that is present but broken, its code and its message; told once per process.
#[napi(catch_unwind)]
pub fn take_warning() -> Option<(&'static str, String)> {
    let Failure { code, reason } = ENGINE.take_warning()?;
    Some((code, reason))
}
