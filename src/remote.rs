//! The two ends of an embedder that is elsewhere: see `engine::remote`. Only the binding for WebAssembly has them, and the
//! JavaScript of its package hands the messages on.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use napi::{
    Env, Status as NapiStatus,
    bindgen_prelude::{Float32Array, Function},
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};
use napi_derive::napi;

use knowledgepulse_embed::{DIMENSIONS, Embedded};
use knowledgepulse_error::{self as error, Error};
use knowledgepulse_score::engine::{Courier, EngineKind, Failure, Local, Status};

use crate::{
    embedder::{EmbedderOptions, NativeEmbedderStatus},
    engine::ENGINE,
    error::{Result, throw},
};

/// A task for the embedder elsewhere: to embed a text, or to load if there is no number.
#[napi(object, object_from_js = false)]
pub struct RemoteTask {
    /// The number that the answer must name.
    pub number: Option<f64>,
    pub text: String,
}

/// The result of loading.
#[napi(object)]
pub struct RemoteStatus {
    pub status: NativeEmbedderStatus,
    /// Whether the user should hear of the failure.
    pub warn: bool,
}

/// The embedding of a text.
#[napi(object)]
pub struct RemoteEmbedding {
    pub vector: Float32Array,
    pub tokens: u32,
    pub truncated: bool,
}

/// Why there is no embedding.
#[napi(object)]
pub struct RemoteFailure {
    pub code: String,
    pub message: String,
}

/// Weak: the promises of the calls keep the event loop going.
type Channel = ThreadsafeFunction<RemoteTask, (), RemoteTask, NapiStatus, false, true, 0>;

struct Post(Channel);

impl Courier for Post {
    #[allow(clippy::cast_precision_loss)] // There are no 2^53 calls.
    fn embed(&self, number: u64, text: String) {
        let task = RemoteTask {
            number: Some(number as f64),
            text,
        };
        self.0.call(task, ThreadsafeFunctionCallMode::NonBlocking);
    }

    fn load(&self) {
        let task = RemoteTask {
            number: None,
            text: String::new(),
        };
        self.0.call(task, ThreadsafeFunctionCallMode::NonBlocking);
    }
}

/// Sets `post`, the function that receives the tasks for an embedder elsewhere.
#[napi(catch_unwind)]
pub fn connect_embedder(post: Function<RemoteTask, ()>) -> Result<()> {
    let channel = post
        .build_threadsafe_function::<RemoteTask>()
        .weak::<true>()
        .build()?;
    ENGINE.connect(Arc::new(Post(channel)));
    Ok(())
}

/// Takes the result of `loadHere` from elsewhere.
#[napi(catch_unwind)]
pub fn loaded_elsewhere(loaded: RemoteStatus) {
    ENGINE.loaded_elsewhere(loaded.status.into(), loaded.warn);
}

/// Takes the result of `embedHere` from elsewhere, or the reason for its failure.
#[napi(catch_unwind)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A number of `RemoteTask`.
pub fn embedded_elsewhere(number: f64, embedding: Option<RemoteEmbedding>, failure: Option<RemoteFailure>) {
    let embedded = match (embedding, failure) {
        (Some(embedding), _) => embedding.into_embedded(),
        (None, Some(failure)) => Err(Error::Elsewhere {
            code: known(failure.code),
            message: failure.message,
        }),
        (None, None) => Err(Error::Internal("an answer without an outcome".into())),
    };
    ENGINE.embedded_elsewhere(number as u64, embedded);
}

/// The embedder of this instance.
static LOCAL: Mutex<Option<Local>> = Mutex::new(None);

/// Loads an embedder in this instance, for another one.
#[napi(catch_unwind)]
pub fn load_here(options: EmbedderOptions) -> RemoteStatus {
    let (local, status, warning) = Local::load(&options.into());
    *LOCAL.lock().unwrap_or_else(PoisonError::into_inner) = local;
    RemoteStatus {
        status: status.into(),
        warn: warning.is_some(),
    }
}

/// Embeds a text in this instance, for another one.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value)] // Values that JavaScript hands over are owned.
pub fn embed_here(env: &Env, text: String) -> Result<RemoteEmbedding> {
    let mut local = LOCAL.lock().unwrap_or_else(PoisonError::into_inner);
    let embedded = match &mut *local {
        Some(local) => local.embed(&text),
        None => Err(Error::Internal("no embedder was loaded here".into())),
    };
    Ok(embedded.map_err(|error| throw(env, &error))?.into())
}

impl From<Embedded> for RemoteEmbedding {
    fn from(embedded: Embedded) -> Self {
        Self {
            vector: embedded.embedding.to_vec().into(),
            tokens: u32::try_from(embedded.tokens).unwrap_or(u32::MAX),
            truncated: embedded.truncated,
        }
    }
}

impl RemoteEmbedding {
    fn into_embedded(self) -> error::Result<Embedded> {
        let embedding = <[f32; DIMENSIONS]>::try_from(&*self.vector)
            .map_err(|_| Error::Internal("an embedding of another size".into()))?;
        Ok(Embedded {
            embedding: Box::new(embedding),
            tokens: self.tokens as usize,
            truncated: self.truncated,
        })
    }
}

impl From<NativeEmbedderStatus> for Status {
    fn from(status: NativeEmbedderStatus) -> Self {
        let failure = status.code.zip(status.reason).map(|(code, reason)| Failure {
            code: known(code),
            reason,
        });
        Self {
            failure,
            model_directory: status.model_directory.map(Into::into),
            model: status.model,
            model_sha256: status.model_sha256,
            dtype: status.dtype,
            dimensions: status.dimensions.map(|dimensions| dimensions as usize),
            engine: status.engine.and_then(|engine| EngineKind::from_name(&engine)),
            kernel: status.kernel,
            runtime_path: None,
            runtime_version: None,
            threads: status.threads as usize,
        }
    }
}

/// Returns the code of an error as a text that stays. There are few different ones, and each is kept once.
fn known(code: String) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(code.as_str()) {
        return found;
    }
    let code: &'static str = code.leak();
    known.insert(code);
    code
}
