//! The engine of the process, and the conversion of its results to JavaScript values.

use std::sync::LazyLock;

use napi::{
    Env,
    bindgen_prelude::{Float32ArraySlice, ToNapiValue},
    sys,
};

use knowledgepulse_embed::Embedding;
use knowledgepulse_score::engine::Engine;

/// The embedder and its queue: one per process, shared by all threads.
pub(super) static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);

/// An embedding that becomes a `Float32Array` in memory of the JavaScript engine's own: Electron has no other.
pub struct Components(pub(super) Box<Embedding>);

impl ToNapiValue for Components {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> napi::Result<sys::napi_value> {
        let array = Float32ArraySlice::copy_from(&Env::from_raw(env), *value.0)?;
        // SAFETY: the environment is the caller's.
        unsafe { ToNapiValue::to_napi_value(env, array) }
    }
}
