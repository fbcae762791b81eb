//! Scoring, explaining and comparing.

use std::{sync::Arc, time::Instant};

use napi::{
    Env,
    bindgen_prelude::{AsyncTask, Either, Object, Uint8ArraySlice, Unknown},
};
use napi_derive::napi;

use knowledgepulse_command::breakdown::score_of;
use knowledgepulse_error as error;
use knowledgepulse_index::{
    memory::{Basis, ComparedTrace, Memory, Nearest, Novelty},
    similarity::Similarity,
    traces::stored::PackedTrace,
};
use knowledgepulse_score::{
    ScoreInput, Scorer,
    dimensions::ByDimension,
    engine::{Comparable, ComparedScore, EmbeddedText, Request},
    weights::Profiles,
};
use knowledgepulse_trace::{label::Label, words::Words};

use crate::{
    background::{self, Background},
    call::NativeCall,
    engine::{Components, ENGINE},
    error::{Result, throw},
    memory::NativeTraceMemory,
    replies::promise,
    trace,
};

/// The scorer behind `Scorer`; the JavaScript class checks the types of its arguments, and gives the replies in the order of the calls.
#[napi]
pub struct NativeScorer {
    scorer: Scorer,
}

#[napi]
impl NativeScorer {
    /// Creates a scorer with the SDK's profiles and `profiles`, which take precedence and have their weights in the order of a score, that compares with a memory or with none.
    /// Throws for invalid weights.
    #[napi(constructor, catch_unwind)]
    pub fn new(
        env: &Env,
        profiles: Vec<(String, Vec<f64>)>,
        memory: Option<&NativeTraceMemory>,
    ) -> Result<Self> {
        let mut known = Profiles::default();
        for (name, weights) in profiles {
            let weights = <[f64; 4]>::try_from(weights).unwrap_or_default();
            let set = known.set(name, ByDimension::from_array(weights));
            set.map_err(|error| throw(env, &error))?;
        }
        let scorer = Scorer {
            memory: memory.map(NativeTraceMemory::share),
            profiles: known,
        };
        Ok(Self { scorer })
    }

    /// Scores a trace: a `Score` in JSON, or a promise of it where an embedding is needed. Throws for an invalid trace.
    #[napi(catch_unwind, ts_return_type = "string | Promise<string>")]
    pub fn explain<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown<'env>,
        remember: bool,
        call: Option<&NativeCall>,
    ) -> Result<Either<String, Object<'env>>> {
        let request = Request {
            explained: true,
            ..self.request(env, trace, remember, call)?
        };
        let to_json = |breakdown| score_of(&breakdown).to_json();
        if let Some(breakdown) = ENGINE.score_at_once(&request) {
            let json = breakdown.map(to_json);
            return json.map(Either::A).map_err(|error| throw(env, &error));
        }
        let (ticket, promise) = promise(env)?;
        let reply = move |scored: error::Result<ComparedScore>| {
            ticket.settle(scored.map(|(breakdown, _)| to_json(breakdown)));
        };
        ENGINE.score(request, Box::new(reply));
        Ok(Either::B(promise))
    }

    /// Finds what is compared of a trace, for a memory that lies elsewhere or for several neighbours. Throws for an invalid trace.
    #[napi(catch_unwind, ts_return_type = "Promise<EmbeddedTrace>")]
    pub fn embed<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown<'env>,
        call: Option<&NativeCall>,
    ) -> Result<Object<'env>> {
        let request = self.request(env, trace, true, call)?;
        let (ticket, promise) = promise(env)?;
        let reply = Box::new(move |embedded: error::Result<(Request, Option<Comparable>)>| {
            ticket.settle(embedded.map(|(request, comparable)| EmbeddedTrace {
                request,
                comparable: comparable.map(Arc::new),
            }));
        });
        ENGINE.embed_trace(request, reply);
        Ok(promise)
    }
}

impl NativeScorer {
    fn request(
        &self,
        env: &Env,
        trace: Unknown,
        remember: bool,
        call: Option<&NativeCall>,
    ) -> Result<Request> {
        let memory = self.scorer.memory.as_ref();
        let wanted = memory.filter(|memory| ENGINE.can_compare(Some(memory)));
        let trace = trace::read(env, trace, wanted.map(Memory::method))?;
        Ok(Request {
            input: self.scorer.input_of(trace),
            memory: memory.cloned(),
            remember,
            explained: false,
            call: call.map(NativeCall::share),
        })
    }
}

/// A remembered trace that is similar to another one. The parts are null where vectors are compared.
#[napi(object, use_nullable = true)]
pub struct NativeNeighbour {
    pub id: Option<String>,
    pub similarity: f64,
    pub lexical: Option<f64>,
    pub contained: Option<f64>,
    pub embedded: Option<f64>,
}

impl From<Nearest> for NativeNeighbour {
    fn from(nearest: Nearest) -> Self {
        let parts = nearest.parts;
        Self {
            id: nearest.label.map(|label| label.to_string()),
            similarity: nearest.similarity,
            lexical: parts.map(|parts| parts.lexical),
            contained: parts.map(|parts| parts.contained),
            embedded: parts.and_then(|parts| parts.embedded),
        }
    }
}

impl From<NativeNeighbour> for Nearest {
    fn from(neighbour: NativeNeighbour) -> Self {
        let label = neighbour.id.map(Label::from);
        match neighbour.lexical.zip(neighbour.contained) {
            None => Self::vector(label, neighbour.similarity),
            Some((lexical, contained)) => {
                let embedded = neighbour.embedded;
                let parts = Similarity {
                    lexical,
                    contained,
                    embedded,
                };
                Self::trace(label, parts)
            }
        }
    }
}

/// The compared parts of a trace.
#[napi]
pub struct EmbeddedTrace {
    request: Request,
    /// `None` if it cannot be compared, for want of an embedder.
    comparable: Option<Arc<Comparable>>,
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
        self.request.input.label.as_ref().map(ToString::to_string)
    }

    /// Resolves to the traces in the scorer's memory that are most similar, the most similar first: `count` of them, or one if the
    /// trace is remembered then.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeNeighbour[]>")]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A safe integer; it saturates.
    pub fn nearest(&self, count: f64, remember: bool) -> AsyncTask<Background<Vec<NativeNeighbour>>> {
        let (memory, label) = (self.request.memory.clone(), self.request.input.label.clone());
        let comparable = self.comparable.clone();
        background::run(move || {
            let (Some(memory), Some(comparable)) = (memory, comparable) else {
                return Ok(Vec::new());
            };
            let none = Words::default();
            let text = comparable.text.as_ref();
            let compared = ComparedTrace {
                words: comparable.words.as_ref().unwrap_or(&none),
                embedding: text.map(|text| (&*text.embedding, &text.origin)),
                label: label.as_ref(),
                remember,
                explained: false,
            };
            let now = Instant::now();
            let found = if remember {
                memory
                    .compare_and_add(&compared, now)?
                    .0
                    .nearest
                    .into_iter()
                    .collect()
            } else {
                memory.nearest(&compared, count as usize, now)?
            };
            Ok(found.into_iter().map(NativeNeighbour::from).collect())
        })
    }

    /// Its words and its embedding as a store has them; null where no words are compared.
    #[napi(getter, catch_unwind, ts_return_type = "Uint8Array | null")]
    pub fn packed<'env>(&self, env: &'env Env) -> Result<Option<Uint8ArraySlice<'env>>> {
        let comparable = self.comparable.as_ref();
        let words = comparable.and_then(|comparable| comparable.words.as_ref());
        let vector = self.text().map_or(&[][..], |text| &text.embedding[..]);
        words
            .map(|words| Uint8ArraySlice::copy_from(env, PackedTrace::pack(words, vector)))
            .transpose()
    }

    /// The embedding; null if the scorer compares no embeddings.
    #[napi(getter, catch_unwind, ts_return_type = "Float32Array | null")]
    pub fn vector(&self) -> Option<Components> {
        Some(Components(self.text()?.embedding.clone()))
    }

    /// The model that it is of: name and type of the weights.
    #[napi(getter, catch_unwind)]
    pub fn model(&self) -> Option<(String, String)> {
        let model = self.text()?.origin.model.clone()?;
        Some((model.model, model.dtype))
    }

    /// Scores the trace by the nearest trace, as `explain` does; null stands for an empty memory. `is_stored` tells that the memory is a store.
    #[napi(catch_unwind)]
    pub fn score(&self, neighbour: Option<NativeNeighbour>, is_stored: bool) -> String {
        let novelty = self.comparable.as_ref().map_or(Novelty::NEUTRAL, |comparable| {
            let mut novelty = Novelty::of_nearest(neighbour.map(Nearest::from));
            novelty.reading = Some(comparable.reading);
            novelty.basis = match novelty.basis {
                Basis::Memory if is_stored => Basis::Store,
                Basis::EmptyMemory if is_stored => Basis::EmptyStore,
                basis => basis,
            };
            novelty
        });
        let ScoreInput {
            features, profile, ..
        } = &self.request.input;
        score_of(&knowledgepulse_score::score(features, profile, novelty)).to_json()
    }
}
