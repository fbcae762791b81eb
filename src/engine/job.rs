//! What the engine does for a call: a function of two steps. The first embeds, side by side with those of other calls; it
//! gives the second.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use super::{EmbedResult, Embeddings, Failure, Reply, Request, Shared, Status, load::Loaded};
use crate::{
    cache::Origin,
    cache::novelty::{Comparison, Extent, Memory, Novelty, Reading, Weighted},
    call::Call,
    embed::Lane,
    error::{Error, Result},
    score::Breakdown,
};

/// The first step of a call, on any thread, with the embedder if there is one.
pub(super) type Job = Box<dyn FnOnce(Option<(&Loaded, &mut Lane)>) -> Settlement + Send>;

/// The second step, in the order of the calls: compares, remembers, replies.
pub(super) type Settlement = Box<dyn FnOnce(&Shared) + Send>;

/// Scores a trace.
pub(super) fn score(request: Request, reply: Reply<Result<Breakdown>>) -> Job {
    Box::new(|embedder| {
        let embedded = embed_texts(embedder, &request);
        Box::new(move |shared| reply(guarded(|| score_embedded(shared, &request, embedded))))
    })
}

/// Embeds a trace. What goes wrong costs the embeddings, not the call.
pub(super) fn embed_trace(request: Request, reply: Reply<Result<Option<Embeddings>>>) -> Job {
    Box::new(move |embedder| {
        let embedded = embed_texts(embedder, &request);
        Box::new(|shared| {
            reply(match embedded {
                Err(error) if !matches!(error, Error::Aborted) => {
                    shared.warn(Failure::from(&error));
                    Ok(None)
                }
                embedded => embedded,
            });
        })
    })
}

/// Makes permanent what the draft of `memory` holds.
pub(super) fn commit(memory: Memory, call: Arc<Call>, reply: Reply<Result<()>>) -> Job {
    Box::new(|_| Box::new(move |_| reply(guarded(|| commit_unless_cancelled(&memory, &call)))))
}

/// Embeds a text.
pub(super) fn embed(text: String, call: Option<Arc<Call>>, reply: Reply<EmbedResult>) -> Job {
    Box::new(move |embedder| {
        let embedding = embedder.map(|(loaded, lane)| {
            if is_cancelled(call.as_ref()) {
                return Err(Error::Aborted);
            }
            guarded(|| Ok(loaded.embedder.embed(lane, &text)?.embedding))
        });
        Box::new(|shared| {
            reply(match embedding {
                Some(embedding) => embedding.map_err(|error| Failure::from(&error)),
                None => Err(shared.status().failure.unwrap_or_else(|| {
                    let message = "there is no embedder, for no known reason";
                    Failure::from(&Error::Internal(message.into()))
                })),
            });
        })
    })
}

/// Does nothing but reply.
pub(super) fn turn(reply: Reply<()>) -> Job {
    Box::new(|_| Box::new(|_| reply(())))
}

/// Tells what became of loading the embedder.
pub(super) fn status(reply: Reply<Status>) -> Job {
    Box::new(|_| Box::new(|shared| reply(shared.status())))
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

/// The embeddings of a trace; `None` without an embedder.
fn embed_texts(embedder: Option<(&Loaded, &mut Lane)>, request: &Request) -> Result<Option<Embeddings>> {
    embedder
        .map(|(loaded, lane)| guarded(|| embed_with(loaded, lane, request)))
        .transpose()
}

/// Embeds the texts of a trace, as long as that is wanted.
fn embed_with(loaded: &Loaded, lane: &mut Lane, request: &Request) -> Result<Embeddings> {
    let summary = &request.summary;
    let mut reading = Reading {
        tokens: 0,
        truncated: summary.incomplete,
    };
    let mut weighted = Vec::with_capacity(summary.texts.len());
    for window in &summary.texts {
        if is_cancelled(request.call.as_ref()) {
            return Err(Error::Aborted);
        }
        let embedded = match summary.extent {
            Some(Extent::Full) => loaded.embedder.embed_whole(lane, &window.text)?,
            _ => loaded.embedder.embed(lane, &window.text)?,
        };
        reading.tokens += embedded.tokens;
        reading.truncated |= embedded.truncated;
        #[allow(clippy::cast_precision_loss)] // No text has 2^53 bytes.
        let weight = window.bytes as f64;
        weighted.push(Weighted {
            embedding: embedded.embedding,
            weight,
        });
    }
    Ok(Embeddings {
        weighted,
        reading,
        origin: Origin {
            model: Some(loaded.identity.clone()),
            method: summary.extent.map(|extent| extent.name().to_owned()),
        },
    })
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
