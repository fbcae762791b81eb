//! Embedding a text by itself.

use napi::{
    Env, JsError,
    bindgen_prelude::{Float32ArraySlice, Object, ToNapiValue},
    sys,
};
use napi_derive::napi;

use super::{error::Result, evaluate::ENGINE};
use crate::{embedding::Embedding, inference::EmbedResult};

/// Embeds a text, of which the first 512 tokens count. Rejects with the embedder's failure if there is none.
#[napi(catch_unwind, ts_return_type = "Promise<Float32Array>")]
pub fn embed(env: &Env, text: String) -> Result<Object<'_>> {
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
    ENGINE.embed(text, reply);
    Ok(promise)
}

/// An embedding that becomes a `Float32Array` in memory of the engine's own: Electron has no other.
struct Components(Box<Embedding>);

impl ToNapiValue for Components {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> napi::Result<sys::napi_value> {
        let array = Float32ArraySlice::copy_from(&Env::from_raw(env), *value.0)?;
        // SAFETY: the environment is the caller's.
        unsafe { ToNapiValue::to_napi_value(env, array) }
    }
}
