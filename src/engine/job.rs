//! What the engine does for a call, in two steps. The first embeds, together or side by side with those of other calls; the
//! second takes place in the order of the calls.

use std::{
    mem::take,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use super::{EmbedResult, Embeddings, Failure, Reply, Request, Shared, Status, load::Loaded};
use crate::{
    cache::novelty::{Comparison, Extent, Memory, Novelty, Reading, Weighted},
    cache::{ModelIdentity, Origin},
    call::Call,
    embed::{Embedded, Embedder, Lane, Tokenized},
    error::{Error, Result},
    score::Breakdown,
    trace::windows::Window,
};

/// A call: what is to be embedded for it, side by side with what is for other calls, and what to do then.
pub(super) struct Job {
    order: Option<Order>,
    settle: Settle,
}

/// What to do with the embeddings of an order; `None` without an embedder.
type Settle = Box<dyn FnOnce(&Shared, Result<Option<Embeddings>>) + Send>;

/// What follows the embedding, in the order of the calls: compares, remembers, replies.
pub(super) type Settlement = Box<dyn FnOnce(&Shared) + Send>;

/// Texts to be embedded.
struct Order {
    texts: Vec<Window>,
    extent: Option<Extent>,
    /// Whether `texts` lacks some of the text.
    incomplete: bool,
    call: Option<Arc<Call>>,
}

impl Order {
    fn of(request: &mut Request) -> Option<Self> {
        Some(Self {
            texts: take(&mut request.summary.texts),
            extent: request.summary.extent,
            incomplete: request.summary.incomplete,
            call: request.call.clone(),
        })
    }
}

/// A job whose texts are tokens by now.
pub(super) struct Prepared {
    job: Job,
    /// As long as the texts of its order; empty without one.
    texts: Result<Vec<Tokenized>>,
}

impl Job {
    /// A job that needs no embedding.
    fn without_order(settle: impl FnOnce(&Shared) + Send + 'static) -> Self {
        Self {
            order: None,
            settle: Box::new(|shared, _| settle(shared)),
        }
    }

    /// What follows where there is no embedder.
    pub(super) fn without_embedder(self) -> Settlement {
        Box::new(|shared| (self.settle)(shared, Ok(None)))
    }

    /// Turns the texts into tokens, if they are still wanted.
    pub(super) fn prepare(self, embedder: &Embedder) -> Prepared {
        let texts = match &self.order {
            None => Ok(Vec::new()),
            Some(order) if is_cancelled(order.call.as_ref()) => Err(Error::Aborted),
            Some(order) => guarded(|| {
                let texts = order.texts.iter().map(|window| match order.extent {
                    Some(Extent::Full) => embedder.tokenize_whole(&window.text),
                    _ => embedder.tokenize(&window.text),
                });
                Ok(texts.collect())
            }),
        };
        Prepared { job: self, texts }
    }
}

impl Prepared {
    /// How many tokens are to be embedded.
    pub(super) fn tokens(&self) -> usize {
        let texts = self.texts.iter().flatten();
        texts.map(Tokenized::tokens).sum()
    }

    fn is_wanted(&self) -> bool {
        let order = self.job.order.as_ref();
        !is_cancelled(order.and_then(|order| order.call.as_ref()))
    }

    fn settlement(self, model: &ModelIdentity, embedded: Result<Vec<Embedded>>) -> Settlement {
        let Job { order, settle } = self.job;
        let embeddings = order.map(|order| embedded.map(|embedded| order.embeddings(model, embedded)));
        Box::new(|shared| settle(shared, embeddings.transpose()))
    }
}

/// Embeds for several jobs together. Where that fails, each has the error that is its own.
pub(super) fn embed_together(loaded: &Loaded, lane: &mut dyn Lane, jobs: Vec<Prepared>) -> Vec<Settlement> {
    let together: Vec<&Tokenized> = jobs.iter().flat_map(|job| job.texts.iter().flatten()).collect();
    let is_wanted = || jobs.iter().any(Prepared::is_wanted);
    let mut embedded = guarded(|| loaded.embedder.embed(lane, &together, is_wanted)).map(Vec::into_iter);
    let alone = jobs.len() == 1;
    let settle = |mut job: Prepared| {
        let texts = std::mem::replace(&mut job.texts, Ok(Vec::new()));
        let own = texts.and_then(|texts| match &mut embedded {
            Ok(embedded) => Ok(embedded.take(texts.len()).collect()),
            Err(error) if alone => Err(std::mem::replace(error, Error::Aborted)),
            Err(_) => guarded(|| {
                let texts: Vec<&Tokenized> = texts.iter().collect();
                loaded.embedder.embed(lane, &texts, || job.is_wanted())
            }),
        });
        job.settlement(&loaded.identity, own)
    };
    jobs.into_iter().map(settle).collect()
}

/// Scores a trace.
pub(super) fn score(mut request: Request, reply: Reply<Result<Breakdown>>) -> Job {
    Job {
        order: Order::of(&mut request),
        settle: Box::new(move |shared, embedded| {
            reply(guarded(|| score_embedded(shared, &request, embedded)));
        }),
    }
}

/// Embeds a trace. What goes wrong costs the embeddings, not the call.
pub(super) fn embed_trace(mut request: Request, reply: Reply<Result<Option<Embeddings>>>) -> Job {
    Job {
        order: Order::of(&mut request),
        settle: Box::new(|shared, embedded| {
            reply(match embedded {
                Err(error) if !matches!(error, Error::Aborted) => {
                    shared.warn(Failure::from(&error));
                    Ok(None)
                }
                embedded => embedded,
            });
        }),
    }
}

/// Makes permanent what the draft of `memory` holds.
pub(super) fn commit(memory: Memory, call: Arc<Call>, reply: Reply<Result<()>>) -> Job {
    Job::without_order(move |_| reply(guarded(|| commit_unless_cancelled(&memory, &call))))
}

/// Embeds a text.
pub(super) fn embed(text: String, call: Option<Arc<Call>>, reply: Reply<EmbedResult>) -> Job {
    let order = Order {
        texts: vec![Window::whole(text)],
        extent: Some(Extent::Prefix),
        incomplete: false,
        call,
    };
    Job {
        order: Some(order),
        settle: Box::new(|shared, embedded| {
            let first = |embeddings: Embeddings| embeddings.weighted.into_iter().next();
            reply(match embedded.map(|embedded| embedded.and_then(first)) {
                Ok(Some(weighted)) => Ok(weighted.embedding),
                Err(error) => Err(Failure::from(&error)),
                Ok(None) => Err(shared.status().failure.unwrap_or_else(|| {
                    let message = "there is no embedder, for no known reason";
                    Failure::from(&Error::Internal(message.into()))
                })),
            });
        }),
    }
}

/// Does nothing but reply.
pub(super) fn turn(reply: Reply<()>) -> Job {
    Job::without_order(|_| reply(()))
}

/// Tells what became of loading the embedder.
pub(super) fn status(reply: Reply<Status>) -> Job {
    Job::without_order(|shared| reply(shared.status()))
}

/// The score of a trace. What goes wrong on the way costs the novelty, not the score.
fn score_embedded(
    shared: &Shared,
    request: &Request,
    embedded: Result<Option<Embeddings>>,
) -> Result<Breakdown> {
    request.begin()?;
    let compare = || match (embedded?, &request.memory) {
        (Some(embedded), Some(memory)) => {
            let comparison = Comparison {
                embeddings: &embedded.weighted,
                origin: &embedded.origin,
                label: request.summary.label.as_ref(),
                remember: request.remember,
            };
            let novelty = comparison.compare_and_add(memory, Instant::now())?;
            Ok(Novelty {
                reading: Some(embedded.reading),
                ..novelty
            })
        }
        _ => Ok(Novelty::NEUTRAL),
    };
    match compare() {
        Ok(novelty) => Ok(request.score(novelty)),
        // The caller has chosen the memory.
        Err(error @ (Error::CacheOtherModel { .. } | Error::CacheOtherMethod { .. })) => Err(error),
        Err(error) => {
            shared.warn(Failure::from(&error));
            Ok(request.score(Novelty::NEUTRAL))
        }
    }
}

impl Order {
    fn embeddings(&self, model: &ModelIdentity, embedded: Vec<Embedded>) -> Embeddings {
        let mut reading = Reading {
            tokens: 0,
            truncated: self.incomplete,
        };
        let mut weighted = Vec::with_capacity(embedded.len());
        for (window, embedded) in self.texts.iter().zip(embedded) {
            reading.tokens += embedded.tokens;
            reading.truncated |= embedded.truncated;
            #[allow(clippy::cast_precision_loss)] // No text has 2^53 bytes.
            let weight = window.bytes as f64;
            weighted.push(Weighted {
                embedding: embedded.embedding,
                weight,
            });
        }
        Embeddings {
            weighted,
            reading,
            origin: Origin {
                model: Some(model.clone()),
                method: self.extent.map(|extent| extent.name().to_owned()),
            },
        }
    }
}

/// Commits the draft of `memory`, unless `call` was cancelled.
pub(super) fn commit_unless_cancelled(memory: &Memory, call: &Call) -> Result<()> {
    if !call.complete() {
        return Err(Error::Aborted);
    }
    memory.commit(Instant::now())
}

fn is_cancelled(call: Option<&Arc<Call>>) -> bool {
    call.is_some_and(|call| call.is_cancelled())
}

/// Turns a panic into an error.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Error::from_panic(&*panic)))
}
