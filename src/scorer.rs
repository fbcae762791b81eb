//! Scoring and explaining.

use std::{
    cell::{Cell, RefCell},
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
    shared::{Shared, lock},
    traces::statistics::PackedTrace,
    vectors::{self as cache, Origin, SharedCache},
};
use knowledgepulse_score::{
    self as score, Breakdown, Scorer, Summary,
    dimensions::ByDimension,
    engine::{Comparable, EmbeddedText, Reply, Request},
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
    turns::{Places, Turns},
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
        let memory = cache.map(|cache| Memory::of_vectors(cache.share()));
        let bounds = cache.map(NativeVectorCache::bounds).unwrap_or_default();
        let calls = Calls {
            scorer: Scorer {
                memory: memory.or_else(|| traces.map(NativeTraceMemory::share)),
                profiles: known,
            },
            bounds,
            turns: Turns::default(),
            places: Places::default(),
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
        let part = Part::call(call);
        let request = self.calls.request(env, trace, true, &part)?;
        self.calls.score(env, request, &part, |breakdown| breakdown.score)
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
        let part = Part::call(call);
        let request = match novelty {
            None => Request {
                explained: true,
                ..self.calls.request(env, trace, remember, &part)?
            },
            Some(novelty) => Request {
                uncompared: Novelty::given(novelty),
                ..self.calls.request_to(None, env, trace, remember, &part)?
            },
        };
        self.calls
            .score(env, request, &part, |breakdown| Json(value_of(&breakdown)))
    }

    /// Embeds a trace for a memory that lies elsewhere. Throws for an invalid trace.
    #[napi(catch_unwind, ts_return_type = "Promise<EmbeddedTrace>")]
    pub fn embed<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown<'env>,
        call: Option<&NativeCall>,
    ) -> Result<Object<'env>> {
        self.calls.embed(env, trace, &Part::call(call))
    }

    /// Resolves after the replies to all earlier calls; undefined if no reply is pending.
    #[napi(catch_unwind, ts_return_type = "Promise<void> | undefined")]
    pub fn after_others<'env>(&self, env: &'env Env) -> Result<Either<Object<'env>, ()>> {
        self.calls.after_others(env, &Part::call(None))
    }

    /// Takes a place among the replies that are made in JavaScript; its number, with which it must be left once.
    #[napi(catch_unwind)]
    #[allow(clippy::cast_precision_loss)] // No scorer has 2^53 calls.
    pub fn take_place(&self) -> f64 {
        self.calls.places.take() as f64
    }

    /// Resolves when the places that were taken before have been left, in the order in which they were taken.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is a number of `take_place`.
    pub fn leave_place<'env>(&self, env: &'env Env, place: f64) -> Result<Object<'env>> {
        self.calls.places.leave(place as u64, &self.calls.replies, env)
    }

    /// Returns a call of many traces. With `call` the memory keeps them only once they are committed.
    #[napi(catch_unwind)]
    pub fn batch(&self, call: Option<&NativeCall>) -> NativeBatch {
        let memory = call.and(self.calls.scorer.memory.as_ref());
        NativeBatch {
            calls: Rc::clone(&self.calls),
            call: call.map(NativeCall::share),
            drafted: RefCell::new(memory.map(|memory| memory.with_draft(self.calls.bounds))),
            number: Cell::new(None),
        }
    }
}

/// A call of many traces, which are handed in one after another. The scorer's calls that are made meanwhile wait until it
/// is closed.
#[napi]
pub struct NativeBatch {
    calls: Rc<Calls>,
    call: Option<Arc<Call>>,
    /// The memory with the additions of the batch, until it is closed. The object lives on as garbage whose size the
    /// JavaScript engine does not know.
    drafted: RefCell<Option<Memory>>,
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
        Ok(waiting.map_or(Either::B(()), Either::A))
    }

    /// Scores a trace of the batch, as `NativeScorer.evaluate` does.
    #[napi(catch_unwind, ts_return_type = "number | Promise<number>")]
    pub fn evaluate<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown<'env>,
    ) -> Result<Either<f64, Object<'env>>> {
        let part = self.part(self.call.clone());
        let request = self.calls.request(env, trace, true, &part)?;
        self.calls.score(env, request, &part, |breakdown| breakdown.score)
    }

    /// Embeds a trace of the batch, as `NativeScorer.embed` does.
    #[napi(catch_unwind, ts_return_type = "Promise<EmbeddedTrace>")]
    pub fn embed<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown<'env>,
        call: Option<&NativeCall>,
    ) -> Result<Object<'env>> {
        let part = self.part(call.map(NativeCall::share));
        self.calls.embed(env, trace, &part)
    }

    /// Resolves after the replies to all earlier calls and to the traces of the batch; undefined if no reply is pending.
    #[napi(catch_unwind, ts_return_type = "Promise<void> | undefined")]
    pub fn after_others<'env>(&self, env: &'env Env) -> Result<Either<Object<'env>, ()>> {
        self.calls.after_others(env, &self.part(None))
    }

    /// Commits the additions of the batch, and closes it. Rejects with `ERR_ABORTED` if it was cancelled.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn commit<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let (ticket, promise) = self.calls.promise(env)?;
        let call = self.call.clone().unwrap_or_default();
        let reply: Reply<error::Result<()>> = Box::new(move |committed| ticket.settle(committed));
        match self.drafted.borrow().clone() {
            Some(memory) => ENGINE.commit(memory, call, reply),
            // A scorer that compares nothing remembers nothing.
            None => reply(if call.complete() {
                Ok(())
            } else {
                Err(Error::Aborted)
            }),
        }
        self.drafted.take();
        // The calls that have waited are handed in right behind the commit.
        self.close();
        Ok(promise)
    }

    /// Lets the calls after the batch go on, and rolls back additions that were not committed.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        if let Some(memory) = self.drafted.take() {
            ENGINE.roll_back(memory);
        }
        if let Some(number) = self.number.get() {
            self.calls.turns.close(number);
        }
    }

    fn part(&self, call: Option<Arc<Call>>) -> Part {
        Part {
            call,
            drafted: self.drafted.borrow().clone(),
            of_batch: true,
        }
    }
}

/// Where a trace belongs: to a call of its own or to a batch.
struct Part {
    call: Option<Arc<Call>>,
    /// The memory with the batch's draft, if it has one.
    drafted: Option<Memory>,
    of_batch: bool,
}

impl Part {
    fn call(call: Option<&NativeCall>) -> Self {
        Self {
            call: call.map(NativeCall::share),
            drafted: None,
            of_batch: false,
        }
    }
}

/// A scorer and its pending calls.
struct Calls {
    scorer: Scorer,
    /// The bounds of its memory of vectors, which never change: the event loop need not wait for the cache to know them.
    bounds: cache::Options,
    turns: Turns,
    places: Places,
    replies: Replies,
}

impl Calls {
    fn request(&self, env: &Env, trace: Unknown, remember: bool, part: &Part) -> Result<Request> {
        let memory = part.drafted.as_ref().or(self.scorer.memory.as_ref());
        self.request_to(memory, env, trace, remember, part)
    }

    /// Returns a request that compares with `memory`, or with nothing.
    fn request_to(
        &self,
        memory: Option<&Memory>,
        env: &Env,
        trace: Unknown,
        remember: bool,
        part: &Part,
    ) -> Result<Request> {
        let wanted = memory.filter(|memory| ENGINE.can_compare(Some(memory)));
        let trace = trace::read(env, trace, wanted.map(Memory::method))?;
        Ok(Request {
            summary: self.scorer.summarize(trace),
            memory: memory.cloned(),
            uncompared: Novelty::NEUTRAL,
            remember,
            explained: false,
            call: part.call.clone(),
        })
    }

    /// Scores a trace, and replies with the outcome converted by `convert`: at once, unless that would overtake another
    /// reply or needs an embedding.
    fn score<'env, T: ToNapiValue + TypeName + Send + 'static>(
        &self,
        env: &'env Env,
        request: Request,
        part: &Part,
        convert: fn(Breakdown) -> T,
    ) -> Result<Either<T, Object<'env>>> {
        if !self.has_to_wait(part)
            && let Some(breakdown) = ENGINE.score_at_once(&request)
        {
            let breakdown = breakdown.map_err(|error| throw(env, &error))?;
            return Ok(Either::A(convert(breakdown)));
        }
        let (ticket, promise) = self.promise(env)?;
        let reply = Box::new(move |breakdown: error::Result<Breakdown>| {
            ticket.settle(breakdown.map(convert));
        });
        // Calls without a comparison could overtake calls with one.
        let others = match request.memory {
            None => self.scorer.memory.clone(),
            Some(_) => None,
        };
        self.enter(part, move || match others {
            Some(memory) => {
                ENGINE.after_others(&memory, Box::new(move |()| ENGINE.score(request, reply)));
            }
            None => ENGINE.score(request, reply),
        });
        Ok(Either::B(promise))
    }

    fn embed<'env>(&self, env: &'env Env, trace: Unknown<'env>, part: &Part) -> Result<Object<'env>> {
        let request = self.request(env, trace, true, part)?;
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
        self.enter(part, move || ENGINE.embed_trace(request, reply));
        Ok(promise)
    }

    fn after_others<'env>(&self, env: &'env Env, part: &Part) -> Result<Either<Object<'env>, ()>> {
        if !self.has_to_wait(part) {
            return Ok(Either::B(()));
        }
        let (ticket, promise) = self.promise(env)?;
        let reply = move || ticket.settle::<_, Error>(Ok(()));
        // A scorer that compares nothing does not wait for scorers that compare.
        match self.scorer.memory.clone() {
            Some(memory) => self.enter(part, move || ENGINE.after_others(&memory, Box::new(|()| reply()))),
            None => self.enter(part, reply),
        }
        Ok(Either::A(promise))
    }

    /// Returns whether a result that is known at once has to wait for the replies to earlier calls.
    fn has_to_wait(&self, part: &Part) -> bool {
        self.turns.is_awaited() || (self.turns.is_open() && !part.of_batch)
    }

    fn enter(&self, part: &Part, hand_in: impl FnOnce() + 'static) {
        if part.of_batch {
            hand_in();
        } else {
            self.turns.enter(hand_in);
        }
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

    /// The name of the method by which it is compared; null if it cannot be, for want of an embedder.
    #[napi(getter, catch_unwind, ts_return_type = "string | null")]
    pub fn method(&self) -> Option<String> {
        let comparable = self.comparable.as_ref()?;
        match &comparable.text {
            Some(text) => text.origin.method.clone(),
            None => Some(Method::Lexical.name().into()),
        }
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
