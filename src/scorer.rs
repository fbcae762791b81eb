//! Scoring and explaining.

use std::{
    cell::Cell,
    rc::Rc,
    sync::{Arc, LazyLock},
    time::Instant,
};

use napi::{
    Env,
    bindgen_prelude::{Either, Object, ToNapiValue, TypeName, Uint8ArraySlice, Unknown},
};
use napi_derive::napi;

use knowledgepulse_command::breakdown::value_of;
use knowledgepulse_error::{self as error, Call, Error};
use knowledgepulse_index::{
    memory::{Memory, Novelty},
    method::Method,
    options::Origin,
    shared::{SharedMemory, lock},
    traces::stored::PackedTrace,
    vectors::SharedCache,
};
use knowledgepulse_score::{
    self as score, Breakdown, Scorer, Summary,
    dimensions::ByDimension,
    engine::{Batch, Comparable, EmbeddedText, Request},
    weights::{Profile, Profiles},
};
use knowledgepulse_trace::{features::Features, label::Label};

use crate::{
    call::NativeCall,
    engine::{Components, ENGINE},
    error::{Result, throw},
    json::Json,
    replies::{Replies, Ticket},
    trace,
    trace_memory::NativeTraceMemory,
    turns::{Order, Place, Turns},
    vector_cache::{NativeModelIdentity, NativeStoredNeighbour, NativeVectorCache},
};

/// The novelty memory of the default scorer, which all threads of the process share.
static LOCAL_CACHE: LazyLock<Arc<SharedCache>> = LazyLock::new(Arc::default);

/// Returns the novelty memory of the default scorer: the live one, not a copy.
#[napi(catch_unwind)]
pub fn local_cache() -> NativeVectorCache {
    NativeVectorCache::shared(Arc::clone(&LOCAL_CACHE))
}

/// A profile of weights.
#[napi(object)]
pub struct NativeProfile {
    pub name: String,
    pub complexity: f64,
    pub novelty: f64,
    pub tool_diversity: f64,
    pub outcome_confidence: f64,
}

/// The scorer behind `Scorer`; the JavaScript class checks the types of its arguments.
#[napi]
pub struct NativeScorer {
    calls: Rc<Calls>,
}

#[napi]
impl NativeScorer {
    /// Creates a scorer with the SDK's profiles and `profiles`, which take precedence, that compares with one of these
    /// memories or with none. Throws for invalid weights, and for a cache that was filled by another method.
    #[napi(constructor, catch_unwind)]
    pub fn new(
        env: &Env,
        profiles: Vec<NativeProfile>,
        cache: Option<&NativeVectorCache>,
        traces: Option<&NativeTraceMemory>,
    ) -> Result<Self> {
        let mut known = Profiles::default();
        for profile in profiles {
            let weights = ByDimension {
                complexity: profile.complexity,
                novelty: profile.novelty,
                tool_diversity: profile.tool_diversity,
                outcome: profile.outcome_confidence,
            };
            known
                .set(profile.name, weights)
                .map_err(|error| throw(env, &error))?;
        }
        // The model is not known before it is loaded, so each comparison checks that. The memory of the process is not
        // checked here either: other threads fill it too, and loading the package makes a scorer with it, which must not
        // throw.
        if let Some(cache) = cache.filter(|cache| !cache.is_shared()) {
            let origin = Origin {
                model: None,
                method: Some(Method::Prefix.name().into()),
            };
            let checked = lock(&cache.share()).check_origin(&origin, Instant::now());
            checked.map_err(|error| throw(env, &error))?;
        }
        let memory = cache.map(|cache| Memory::Vectors(cache.share()));
        let calls = Calls {
            scorer: Scorer {
                memory: memory.or_else(|| traces.map(NativeTraceMemory::share)),
                profiles: known,
            },
            turns: Turns::default(),
            order: Order::default(),
            replies: Replies::of(env)?,
        };
        Ok(Self {
            calls: Rc::new(calls),
        })
    }

    /// Scores a trace: the score, or a promise of it where an embedding is needed or other replies are awaited. Throws for
    /// an invalid trace.
    #[napi(catch_unwind, ts_return_type = "number | Promise<number>")]
    pub fn evaluate<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown<'env>,
        call: Option<&NativeCall>,
    ) -> Result<Either<f64, Object<'env>>> {
        let request = self.calls.request(env, trace, true, call)?;
        self.calls.score(env, request, |breakdown| breakdown.score)
    }

    /// As `evaluate`, but tells how the score came about, and may leave the memory as it is. With a `novelty` nothing is compared or
    /// remembered.
    #[napi(
        catch_unwind,
        ts_return_type = "import('../index.js').ScoreBreakdown | Promise<import('../index.js').ScoreBreakdown>"
    )]
    pub fn explain<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown<'env>,
        remember: bool,
        call: Option<&NativeCall>,
        novelty: Option<f64>,
    ) -> Result<Either<Json, Object<'env>>> {
        let request = match novelty {
            None => Request {
                explained: true,
                ..self.calls.request(env, trace, remember, call)?
            },
            Some(novelty) => Request {
                uncompared: Novelty::given(novelty),
                ..self.calls.request_to(None, env, trace, remember, call)?
            },
        };
        self.calls
            .score(env, request, |breakdown| Json(value_of(&breakdown)))
    }

    /// Embeds a trace for a memory that lies elsewhere. Throws for an invalid trace.
    #[napi(catch_unwind, ts_return_type = "Promise<EmbeddedTrace>")]
    pub fn embed<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown<'env>,
        call: Option<&NativeCall>,
    ) -> Result<Object<'env>> {
        let request = self.calls.request(env, trace, true, call)?;
        let (embed, promise) = self.calls.embed(env, request)?;
        self.calls.turns.enter(embed);
        Ok(promise)
    }

    /// Resolves after the replies to all earlier calls; undefined if no reply is pending.
    #[napi(catch_unwind, ts_return_type = "Promise<void> | undefined")]
    pub fn after_others<'env>(&self, env: &'env Env) -> Result<Either<Object<'env>, ()>> {
        if !self.calls.has_to_wait() {
            return Ok(Either::B(()));
        }
        let (ticket, promise) = self.calls.promise(env)?;
        let place = self.calls.order.take();
        place.leave(|| ticket.settle::<_, Error>(Ok(())));
        Ok(Either::A(promise))
    }

    /// Returns a call of many traces.
    #[napi(catch_unwind)]
    pub fn batch(&self, call: Option<&NativeCall>) -> NativeBatch {
        NativeBatch {
            calls: Rc::clone(&self.calls),
            call: call.map(NativeCall::share),
            batch: Batch::default(),
            place: Cell::new(None),
            number: Cell::new(None),
        }
    }
}

/// A call of many traces, which are handed in one after another and compared together. The scorer's calls that are made meanwhile wait
/// until it is closed.
#[napi]
pub struct NativeBatch {
    calls: Rc<Calls>,
    call: Option<Arc<Call>>,
    batch: Batch,
    /// Its place among the scorer's replies, until it is closed.
    place: Cell<Option<Place>>,
    /// Its number among the scorer's batches, once it has begun.
    number: Cell<Option<u64>>,
}

#[napi]
impl NativeBatch {
    /// Takes its place among the scorer's calls, once. Resolves when its traces may be handed in; undefined if they may at
    /// once.
    #[napi(catch_unwind, ts_return_type = "Promise<void> | undefined")]
    pub fn begin<'env>(&self, env: &'env Env) -> Result<Either<Object<'env>, ()>> {
        let mut waiting = None;
        let number = self.calls.turns.begin(|| {
            let (ticket, promise) = self.calls.promise(env)?;
            waiting = Some(promise);
            Ok(ticket)
        })?;
        self.number.set(Some(number));
        self.place.set(Some(self.calls.order.take()));
        Ok(waiting.map_or(Either::B(()), Either::A))
    }

    /// Adds a trace to the batch. Resolves when it is embedded; undefined if nothing is.
    #[napi(catch_unwind, ts_return_type = "Promise<void> | undefined")]
    pub fn add<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown<'env>,
    ) -> Result<Either<Object<'env>, ()>> {
        let memory = self.calls.scorer.memory.as_ref();
        let mut request = self.calls.request_to(memory, env, trace, true, None)?;
        request.call.clone_from(&self.call);
        if !ENGINE.can_compare(memory) {
            ENGINE.add_to_batch(&self.batch, request, Box::new(|()| ()));
            return Ok(Either::B(()));
        }
        let (ticket, promise) = self.calls.promise(env)?;
        let reply = Box::new(move |()| ticket.settle::<_, Error>(Ok(())));
        ENGINE.add_to_batch(&self.batch, request, reply);
        Ok(Either::A(promise))
    }

    /// Compares the traces of the batch and remembers them, one after another, and closes it. Resolves to their scores, after the replies to
    /// all earlier calls. Rejects with `ERR_ABORTED` if it was cancelled.
    #[napi(catch_unwind, ts_return_type = "Promise<number[]>")]
    pub fn score<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let (ticket, promise) = self.calls.promise(env)?;
        let place = self.place.take();
        let reply = Box::new(move |scores: error::Result<Vec<f64>>| {
            let settle = || ticket.settle(scores);
            match place {
                Some(place) => place.leave(settle),
                None => settle(),
            }
        });
        let call = self.call.clone().unwrap_or_default();
        ENGINE.score_batch(self.batch.clone(), self.calls.scorer.memory.as_ref(), call, reply);
        // The calls that have waited are handed in right behind it.
        self.close();
        Ok(promise)
    }

    /// Lets the calls after the batch go on.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.place.take();
        if let Some(number) = self.number.get() {
            self.calls.turns.close(number);
        }
    }
}

/// A scorer and its pending calls.
struct Calls {
    scorer: Scorer,
    turns: Turns,
    order: Order,
    replies: Replies,
}

impl Calls {
    fn request(
        &self,
        env: &Env,
        trace: Unknown,
        remember: bool,
        call: Option<&NativeCall>,
    ) -> Result<Request> {
        self.request_to(self.scorer.memory.as_ref(), env, trace, remember, call)
    }

    /// Returns a request that compares with `memory`, or with nothing.
    fn request_to(
        &self,
        memory: Option<&Memory>,
        env: &Env,
        trace: Unknown,
        remember: bool,
        call: Option<&NativeCall>,
    ) -> Result<Request> {
        let wanted = memory.filter(|memory| ENGINE.can_compare(Some(memory)));
        let trace = trace::read(env, trace, wanted.map(Memory::method))?;
        Ok(Request {
            summary: self.scorer.summarize(trace),
            memory: memory.cloned(),
            uncompared: Novelty::NEUTRAL,
            remember,
            explained: false,
            call: call.map(NativeCall::share),
        })
    }

    /// Scores a trace, and replies with the outcome converted by `convert`: at once, unless that would overtake another
    /// reply or needs an embedding.
    fn score<'env, T: ToNapiValue + TypeName + Send + 'static>(
        &self,
        env: &'env Env,
        request: Request,
        convert: fn(Breakdown) -> T,
    ) -> Result<Either<T, Object<'env>>> {
        let known = ENGINE.score_at_once(&request);
        if let Some(breakdown) = known {
            let breakdown = breakdown.map(convert);
            if !self.has_to_wait() {
                return breakdown.map(Either::A).map_err(|error| throw(env, &error));
            }
            let (ticket, promise) = self.promise(env)?;
            self.order.take().leave(|| ticket.settle(breakdown));
            return Ok(Either::B(promise));
        }
        let (ticket, promise) = self.promise(env)?;
        let place = self.order.take();
        let reply = Box::new(move |breakdown: error::Result<Breakdown>| {
            place.leave(move || ticket.settle(breakdown.map(convert)));
        });
        self.turns.enter(move || ENGINE.score(request, reply));
        Ok(Either::B(promise))
    }

    /// Returns the function that embeds a trace, and the promise of what it gives.
    fn embed<'env>(
        &self,
        env: &'env Env,
        request: Request,
    ) -> Result<(impl FnOnce() + 'static + use<>, Object<'env>)> {
        // The text is left out, because it can be long.
        let Summary {
            features,
            profile,
            label,
            ..
        } = &request.summary;
        let (features, profile, label) = (features.clone(), Arc::clone(profile), label.clone());
        let (ticket, promise) = self.promise(env)?;
        let reply = Box::new(move |embedded: error::Result<Option<Comparable>>| {
            ticket.settle(embedded.map(|comparable| EmbeddedTrace {
                features,
                profile,
                label,
                comparable,
            }));
        });
        Ok((move || ENGINE.embed_trace(request, reply), promise))
    }

    /// Returns whether a result that is known at once has to wait for the replies to earlier calls.
    fn has_to_wait(&self) -> bool {
        self.turns.is_awaited() || self.turns.is_open()
    }

    fn promise<'env>(&self, env: &'env Env) -> Result<(Ticket, Object<'env>)> {
        self.replies.promise(env, self.turns.awaited())
    }
}

/// A trace that was read and embedded to be compared elsewhere.
#[napi]
pub struct EmbeddedTrace {
    features: Features,
    profile: Arc<Profile>,
    label: Option<Label>,
    /// `None` if it cannot be compared, for want of an embedder.
    comparable: Option<Comparable>,
}

impl EmbeddedTrace {
    fn text(&self) -> Option<&EmbeddedText> {
        self.comparable.as_ref()?.text.as_ref()
    }
}

#[napi]
impl EmbeddedTrace {
    /// The id of the trace.
    #[napi(getter, catch_unwind, ts_return_type = "string | null")]
    pub fn id(&self) -> Option<String> {
        self.label.as_ref().map(ToString::to_string)
    }

    /// Its words, packed; null where they are not compared.
    #[napi(getter, catch_unwind, ts_return_type = "Uint8Array | null")]
    pub fn words<'env>(&self, env: &'env Env) -> Result<Option<Uint8ArraySlice<'env>>> {
        let words = self
            .comparable
            .as_ref()
            .and_then(|comparable| comparable.words.as_ref());
        words
            .map(|words| Uint8ArraySlice::copy_from(env, PackedTrace::pack_words(words.words())))
            .transpose()
    }

    /// The embedding; null if the scorer compares no embeddings.
    #[napi(getter, catch_unwind, ts_return_type = "Float32Array | null")]
    pub fn vector(&self) -> Option<Components> {
        Some(Components(self.text()?.embedding.clone()))
    }

    /// The model that it is of.
    #[napi(getter, catch_unwind)]
    pub fn model(&self) -> Option<NativeModelIdentity> {
        self.text()?.origin.model.clone().map(Into::into)
    }

    /// Scores the trace by the nearest trace; null stands for an empty memory.
    #[napi(catch_unwind, ts_return_type = "import('../index.js').ScoreBreakdown")]
    pub fn score(
        &self,
        #[napi(
            ts_arg_type = "{ label: string | null, similarity: number, lexical?: number | null, contained?: number | null, embedded?: number | null } | null"
        )]
        neighbour: Option<NativeStoredNeighbour>,
    ) -> Json {
        let novelty = self
            .comparable
            .as_ref()
            .map_or(Novelty::NEUTRAL, |comparable| Novelty {
                reading: Some(comparable.reading),
                ..neighbour.map_or(Novelty::EMPTY, NativeStoredNeighbour::novelty)
            });
        Json(value_of(&score::score(&self.features, &self.profile, novelty)))
    }
}
