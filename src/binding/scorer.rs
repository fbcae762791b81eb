//! Scoring and explaining.

use std::{
    cell::RefCell,
    sync::{Arc, LazyLock},
    time::Instant,
};

use napi::{
    Env,
    bindgen_prelude::{Either, Object, ToNapiValue, TypeName, Unknown},
};
use napi_derive::napi;

use super::{
    embedder::{Components, ENGINE},
    error::{Result, into_unknown, throw},
    trace,
    vector_cache::{NativeModelIdentity, NativeVectorCache},
};
use crate::{
    cache,
    cache::novelty::{Basis, Extent, Memory, Novelty, SharedCache, lock},
    cache::{Label, Origin},
    call::Call,
    engine::{Embeddings, Request},
    error::{self, Error},
    score::overrides::{Override, Rule},
    score::weights::{Profile, Profiles, Weights},
    score::{self, Breakdown, Scorer, Summary},
    trace::features::Features,
    trace::text::Wanted,
};

/// The novelty memory of the default scorer: one per process, shared by all threads.
static LOCAL_CACHE: LazyLock<Arc<SharedCache>> = LazyLock::new(Arc::default);

/// The novelty memory of the default scorer: the live one, not a copy.
#[napi(catch_unwind)]
pub fn local_cache() -> NativeVectorCache {
    NativeVectorCache::shared(Arc::clone(&LOCAL_CACHE))
}

/// A profile of weights.
#[napi(object)]
pub struct NativeProfile {
    /// The task domain.
    pub name: String,
    /// Weight of complexity.
    pub complexity: f64,
    /// Weight of novelty.
    pub novelty: f64,
    /// Weight of tool diversity.
    pub tool_diversity: f64,
    /// Weight of the outcome.
    pub outcome: f64,
}

/// A call that can be cancelled.
#[napi]
pub struct NativeCall {
    call: Arc<Call>,
    /// What a batch would add to the memory, until it is cancelled: the object lives on as garbage, of whose size the engine
    /// knows nothing.
    draft: RefCell<Option<Arc<SharedCache>>>,
}

impl NativeCall {
    pub(super) fn call(&self) -> Arc<Call> {
        Arc::clone(&self.call)
    }

    fn draft(&self) -> Option<Arc<SharedCache>> {
        self.draft.borrow().clone()
    }
}

#[napi]
impl NativeCall {
    /// A pending call.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default)] // JavaScript knows no other constructor.
    pub fn new() -> Self {
        Self {
            call: Arc::default(),
            draft: RefCell::default(),
        }
    }

    /// Completes the call, which can no longer be cancelled then. Returns `false` if it was.
    #[napi(catch_unwind)]
    pub fn complete(&self) -> bool {
        self.call.complete()
    }

    /// Cancels the call. Returns whether that came in time.
    #[napi(catch_unwind)]
    pub fn cancel(&self) -> bool {
        let cancelled = self.call.cancel();
        if cancelled {
            self.draft.take();
        }
        cancelled
    }
}

/// The scorer behind `Scorer`; the JavaScript class checks the types of its arguments.
#[napi]
pub struct NativeScorer {
    scorer: Arc<Scorer>,
    /// The bounds of its cache, which never change: the event loop need not wait for the cache to know them.
    bounds: cache::Options,
}

#[napi]
impl NativeScorer {
    /// A scorer with the SDK's profiles, and `profiles` besides or instead. Throws for weights that are none, and for a
    /// cache that was filled by another method.
    #[napi(constructor, catch_unwind)]
    pub fn new(
        env: &Env,
        cache: &NativeVectorCache,
        profiles: Vec<NativeProfile>,
        #[napi(ts_arg_type = "'prefix' | 'full' | undefined")] extent: Option<String>,
    ) -> Result<Self> {
        let mut known = Profiles::default();
        for profile in profiles {
            let weights = Weights {
                complexity: profile.complexity,
                novelty: profile.novelty,
                tool_diversity: profile.tool_diversity,
                outcome: profile.outcome,
            };
            known
                .set(profile.name, weights)
                .map_err(|error| throw(env, &error))?;
        }
        let scorer = Scorer {
            cache: cache.share(),
            profiles: known,
            extent: extent.map(|extent| match extent.as_str() {
                "full" => Extent::Full,
                _ => Extent::Prefix,
            }),
        };
        // The model is not known yet. What is bound later is checked by each comparison, and so is the memory of the
        // process alone: it is other threads' too, and whoever loads the package makes a scorer with it.
        if !cache.is_shared() {
            let origin = Origin {
                model: None,
                method: scorer.method(),
            };
            let checked = lock(&scorer.cache).check_origin(&origin, Instant::now());
            checked.map_err(|error| throw(env, &error))?;
        }
        Ok(Self {
            scorer: Arc::new(scorer),
            bounds: cache.bounds(),
        })
    }

    /// Scores a trace: the score, or a promise of it where an embedding is needed. Throws for an invalid trace.
    #[napi(catch_unwind, ts_return_type = "number | Promise<number>")]
    pub fn evaluate<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown<'env>,
        call: Option<&NativeCall>,
    ) -> Result<Either<f64, Object<'env>>> {
        let request = self.request(env, trace, true, call)?;
        settle(env, request, |breakdown| breakdown.score)
    }

    /// Reads a trace that has to wait for its turn, or is to be explained. Throws for an invalid one.
    #[napi(catch_unwind)]
    pub fn prepare(
        &self,
        env: &Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown,
        remember: bool,
        call: Option<&NativeCall>,
    ) -> Result<PreparedTrace> {
        let request = Some(self.request(env, trace, remember, call)?);
        Ok(PreparedTrace { request })
    }

    /// A call of many traces, which the memory keeps only once it is committed.
    #[napi(catch_unwind)]
    pub fn begin_batch(&self) -> NativeCall {
        NativeCall {
            call: Arc::default(),
            draft: RefCell::new(self.scorer.extent.map(|_| Memory::draft_of(self.bounds))),
        }
    }

    /// Keeps what a batch has added, after all calls before. Rejects with `ERR_ABORTED` if it was cancelled.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn commit<'env>(&self, env: &'env Env, batch: &NativeCall) -> Result<Object<'env>> {
        let (deferred, promise) = env.create_deferred()?;
        let reply = Box::new(move |result: error::Result<()>| {
            deferred.resolve(move |env: Env| {
                result.map_err(|error| napi::Error::from(into_unknown(&env, &error)))
            });
        });
        let memory = Memory {
            cache: Arc::clone(&self.scorer.cache),
            draft: batch.draft(),
        };
        ENGINE.commit(memory, batch.call(), reply);
        Ok(promise)
    }

    fn request(
        &self,
        env: &Env,
        trace: Unknown,
        remember: bool,
        call: Option<&NativeCall>,
    ) -> Result<Request> {
        let wanted = match self.scorer.extent {
            Some(Extent::Prefix) if ENGINE.wants_text() => Wanted::Prefix,
            Some(Extent::Full) if ENGINE.wants_text() => Wanted::Whole,
            _ => Wanted::Nothing,
        };
        let trace = trace::read(env, trace, wanted)?;
        Ok(Request {
            summary: self.scorer.summarize(&trace),
            memory: self.scorer.extent.map(|_| Memory {
                cache: Arc::clone(&self.scorer.cache),
                draft: call.and_then(NativeCall::draft),
            }),
            remember,
            call: call.map(NativeCall::call),
        })
    }
}

/// A trace that was read.
#[napi]
pub struct PreparedTrace {
    request: Option<Request>,
}

#[napi]
impl PreparedTrace {
    /// Scores the trace, once.
    #[napi(catch_unwind, ts_return_type = "number | Promise<number>")]
    pub fn evaluate<'env>(&mut self, env: &'env Env) -> Result<Either<f64, Object<'env>>> {
        let request = self.take(env)?;
        settle(env, request, |breakdown| breakdown.score)
    }

    /// Scores the trace, once, and tells how the score came about.
    #[napi(catch_unwind, ts_return_type = "NativeBreakdown | Promise<NativeBreakdown>")]
    pub fn explain<'env>(&mut self, env: &'env Env) -> Result<Either<NativeBreakdown, Object<'env>>> {
        let request = self.take(env)?;
        settle(env, request, NativeBreakdown::from)
    }

    /// Embeds the trace, once, for a memory that lies elsewhere.
    #[napi(catch_unwind, ts_return_type = "Promise<EmbeddedTrace>")]
    pub fn embed<'env>(&mut self, env: &'env Env) -> Result<Object<'env>> {
        let request = self.take(env)?;
        // Not its texts, of which there can be many.
        let Summary {
            features,
            profile,
            label,
            ..
        } = &request.summary;
        let (features, profile, label) = (features.clone(), Arc::clone(profile), label.clone());
        let (deferred, promise) = env.create_deferred()?;
        let reply = Box::new(move |embeddings: error::Result<Option<Embeddings>>| {
            let result = embeddings.map(|embeddings| EmbeddedTrace {
                features,
                profile,
                label,
                embeddings,
            });
            deferred.resolve(move |env: Env| {
                result.map_err(|error| napi::Error::from(into_unknown(&env, &error)))
            });
        });
        ENGINE.embed_trace(request, reply);
        Ok(promise)
    }

    fn take(&mut self, env: &Env) -> Result<Request> {
        self.request.take().ok_or_else(|| {
            throw(
                env,
                &Error::Internal("a prepared trace was evaluated twice".into()),
            )
        })
    }
}

/// A trace whose texts were embedded.
#[napi]
pub struct EmbeddedTrace {
    features: Features,
    profile: Arc<Profile>,
    label: Option<Label>,
    embeddings: Option<Embeddings>,
}

#[napi]
impl EmbeddedTrace {
    /// What the trace is known by.
    #[napi(getter, catch_unwind, ts_return_type = "string | null")]
    pub fn id(&self) -> Option<String> {
        self.label.as_ref().map(ToString::to_string)
    }

    /// Its embeddings; null without an embedder.
    #[napi(getter, catch_unwind, ts_return_type = "Float32Array[] | null")]
    pub fn vectors(&self) -> Option<Vec<Components>> {
        let copies = |embeddings: &Embeddings| -> Vec<Components> {
            let weighted = embeddings.weighted.iter();
            weighted
                .map(|weighted| Components(weighted.embedding.clone()))
                .collect()
        };
        self.embeddings.as_ref().map(copies)
    }

    /// The model that they are of.
    #[napi(getter, catch_unwind)]
    pub fn model(&self) -> Option<NativeModelIdentity> {
        let embeddings = self.embeddings.as_ref()?;
        embeddings.origin.model.clone().map(Into::into)
    }

    /// The name of the method by which the trace became them.
    #[napi(getter, catch_unwind, ts_return_type = "string | null")]
    pub fn method(&self) -> Option<String> {
        self.embeddings.as_ref()?.origin.method.clone()
    }

    /// Scores the trace by what each of its embeddings is nearest to; null stands for an empty memory.
    #[napi(catch_unwind)]
    pub fn score(
        &self,
        #[napi(ts_arg_type = "({ label: string | null, similarity: number } | null)[]")] neighbours: Vec<
            Option<NativeStoredNeighbour>,
        >,
    ) -> NativeBreakdown {
        let novelty = self.embeddings.as_ref().map_or(Novelty::NEUTRAL, |embeddings| {
            let neighbours = neighbours
                .into_iter()
                .map(|neighbour| neighbour.map(|found| (found.label.map(Into::into), found.similarity)));
            Novelty {
                reading: Some(embeddings.reading),
                ..Novelty::of_neighbours(&embeddings.weighted, neighbours)
            }
        });
        score::score(&self.features, &self.profile, novelty).into()
    }
}

/// What a store has nearest to a vector.
#[napi(object, use_nullable = true)]
pub struct NativeStoredNeighbour {
    /// Its label.
    pub label: Option<String>,
    /// The cosine similarity.
    pub similarity: f64,
}

/// Scores a trace, and replies with what `convert` makes of the outcome: at once or by a promise.
fn settle<T: ToNapiValue + TypeName + Send + 'static>(
    env: &Env,
    request: Request,
    convert: fn(Breakdown) -> T,
) -> Result<Either<T, Object<'_>>> {
    if let Some(breakdown) = ENGINE.score_at_once(&request) {
        let breakdown = breakdown.map_err(|error| throw(env, &error))?;
        return Ok(Either::A(convert(breakdown)));
    }
    let (deferred, promise) = env.create_deferred()?;
    let reply = Box::new(move |breakdown: error::Result<Breakdown>| {
        let result = breakdown.map(convert);
        deferred
            .resolve(move |env: Env| result.map_err(|error| napi::Error::from(into_unknown(&env, &error))));
    });
    ENGINE.score(request, reply);
    Ok(Either::B(promise))
}

/// A score and what it is made of; see `ScoreBreakdown` in index.d.ts.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct NativeBreakdown {
    /// The score.
    pub score: f64,
    /// Complexity, novelty, tool diversity, outcome.
    pub dimensions: Vec<f64>,
    /// The name of the profile.
    pub profile: String,
    /// Its weights, in the order of the dimensions.
    pub weights: Vec<f64>,
    /// The dimensions times the weights.
    pub contributions: Vec<f64>,
    /// Their sum.
    pub composite: f64,
    /// The rules that applied.
    pub overrides: Vec<NativeOverride>,
    /// What novelty rests on.
    #[napi(ts_type = "'cache' | 'empty-cache' | 'no-embedder'")]
    pub novelty_basis: &'static str,
    /// The nearest remembered trace.
    pub nearest: Option<NativeNearest>,
    /// Tokens that were embedded.
    pub tokens: Option<u32>,
    /// Whether text was left out.
    pub truncated: Option<bool>,
}

/// A rule that applied.
#[napi(object, object_from_js = false)]
pub struct NativeOverride {
    /// Its name.
    #[napi(ts_type = "'single-thought' | 'recovery-bonus' | 'single-tool-penalty' | 'clamp'")]
    pub rule: &'static str,
    /// The score before.
    pub before: f64,
    /// The score after.
    pub after: f64,
}

/// The nearest remembered trace.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct NativeNearest {
    /// Its label.
    pub label: Option<String>,
    /// The cosine similarity.
    pub similarity: f64,
    /// The share of the text.
    pub share: f64,
}

impl From<Breakdown> for NativeBreakdown {
    fn from(breakdown: Breakdown) -> Self {
        let Breakdown {
            score,
            dimensions,
            profile,
            contributions,
            composite,
            overrides,
            novelty,
        } = breakdown;
        let weights = profile.weights;
        let reading = novelty.reading;
        Self {
            score,
            dimensions: vec![
                dimensions.complexity,
                dimensions.novelty,
                dimensions.tool_diversity,
                dimensions.outcome,
            ],
            profile: profile.name.clone(),
            weights: vec![
                weights.complexity,
                weights.novelty,
                weights.tool_diversity,
                weights.outcome,
            ],
            contributions: vec![
                contributions.complexity,
                contributions.novelty,
                contributions.tool_diversity,
                contributions.outcome,
            ],
            composite,
            overrides: overrides.into_iter().map(NativeOverride::from).collect(),
            novelty_basis: match novelty.basis {
                Basis::Memory => "cache",
                Basis::EmptyMemory => "empty-cache",
                Basis::NoEmbedder => "no-embedder",
            },
            nearest: novelty.nearest.map(|nearest| NativeNearest {
                label: nearest.label.map(|label| label.to_string()),
                similarity: nearest.similarity,
                share: nearest.share,
            }),
            tokens: reading.map(|reading| u32::try_from(reading.tokens).unwrap_or(u32::MAX)),
            truncated: reading.map(|reading| reading.truncated),
        }
    }
}

impl From<Override> for NativeOverride {
    fn from(applied: Override) -> Self {
        Self {
            rule: match applied.rule {
                Rule::SingleThought => "single-thought",
                Rule::RecoveryBonus => "recovery-bonus",
                Rule::SingleToolPenalty => "single-tool-penalty",
                Rule::Clamp => "clamp",
            },
            before: applied.before,
            after: applied.after,
        }
    }
}
