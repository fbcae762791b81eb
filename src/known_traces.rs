//! The traces that a memory holds with their scores, for JavaScript.

use std::{collections::HashMap, time::Instant};

use napi::{Env, bindgen_prelude::Unknown};
use napi_derive::napi;

use knowledgepulse_index::{method::Method, shared::lock};
use knowledgepulse_trace::label::Fingerprint;

use crate::{error::Result, trace, trace_memory::NativeTraceMemory, vector_cache::NativeVectorCache};

/// Which scored traces a memory held at one moment, with their novelties.
#[napi]
pub struct NativeKnownTraces {
    novelties: HashMap<Fingerprint, f64>,
}

/// A trace as it is looked up.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct NativeLookedUp {
    /// What the same trace has in common, in hexadecimal digits.
    pub fingerprint: String,
    /// The novelty that it was scored with; null if the memory did not hold it.
    pub novelty: Option<f64>,
}

#[napi]
impl NativeKnownTraces {
    /// The traces that a cache holds now.
    #[napi(factory, catch_unwind)]
    pub fn of_cache(cache: &NativeVectorCache) -> Self {
        Self {
            novelties: lock(&cache.share()).novelties(Instant::now()),
        }
    }

    /// The traces that a trace memory holds now.
    #[napi(factory, catch_unwind)]
    pub fn of_memory(memory: &NativeTraceMemory) -> Self {
        Self {
            novelties: memory.novelties(),
        }
    }

    /// Looks a trace up; null for a trace without an `id`. Throws `ERR_INVALID_TRACE`.
    #[napi(catch_unwind)]
    pub fn find(
        &self,
        env: &Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown,
    ) -> Result<Option<NativeLookedUp>> {
        let label = trace::read(env, trace, Some(Method::Prefix))?.label;
        let fingerprint = label.and_then(|label| label.fingerprint());
        Ok(fingerprint.map(|fingerprint| NativeLookedUp {
            fingerprint: format!("{:032x}", u128::from_be_bytes(fingerprint)),
            novelty: self.novelties.get(&fingerprint).copied(),
        }))
    }
}
