//! The two steps of a call: embedding and finding words, in parallel with other calls; and settling, in the order of the calls.

use std::{borrow::Cow, sync::Arc, time::Instant};

use knowledgepulse_encoder::Tokens;

use super::{Comparable, ComparedScore, EmbeddedText, Failure, Reply, Request, Shared, Status, load::Loaded};

use knowledgepulse_embed::{Embedded, Embedder, Embedding, Lane};
use knowledgepulse_error::{Call, Code, Error, Result, guarded};
use knowledgepulse_index::{
    memory::{ComparedTrace, Novelty, Reading},
    method::Method,
    options::{ModelIdentity, Origin},
    traces::explain::ExplainedWords,
};
use knowledgepulse_trace::{digest, words::Words};

use crate::Source;

/// A call: what it reads of a trace, and the step after that.
pub(super) struct Job {
    order: Option<Order>,
    settle: Settle,
}

/// The step after embedding and finding words; the embedding is `None` without an embedder.
type Settle = Box<dyn FnOnce(&Shared, Result<Option<EmbeddedText>>, Result<Words>) + Send>;

/// The step after finding what is compared of a trace.
pub(super) type SettleTrace = Box<dyn FnOnce(&Shared, Request, Result<Option<Comparable>>) + Send>;

/// The step in the order of the calls: compares, remembers, replies.
pub(super) type Settlement = Box<dyn FnOnce(&Shared) + Send>;

/// A trace or a text, of which words are found and a text is embedded.
struct Order {
    source: Source,
    /// Whether the trace lacks some of its text.
    incomplete: bool,
    /// Whether its words are spelled.
    explained: bool,
    call: Option<Arc<Call>>,
}

impl Order {
    /// Takes the text to embed out of a request; `None` if nothing is compared.
    fn of(request: &mut Request) -> Option<Self> {
        let source = match &mut request.input.source {
            Some(Source::Prefix(_)) => request.input.source.take(),
            other => other.clone(),
        };
        Some(Self {
            source: source?,
            incomplete: request.input.incomplete,
            explained: request.explained,
            call: request.call.clone(),
        })
    }

    fn is_cancelled(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.is_cancelled())
    }

    fn words(&self) -> Result<Words> {
        match &self.source {
            Source::Prefix(_) => Ok(Words::default()),
            Source::Lexical(trace) | Source::Full(trace) => {
                let words = if self.explained { Words::spelled } else { Words::of };
                guarded(|| Ok(words(trace)))
            }
            Source::Words(words) => Ok(Words::clone(words)),
        }
    }
}

/// A job with tokens.
pub(super) struct Prepared {
    job: Job,
    /// The tokens of its order; `None` without one.
    text: Result<Option<Tokens>>,
}

impl Job {
    fn words(&self) -> Result<Words> {
        self.order
            .as_ref()
            .map_or_else(|| Ok(Words::default()), Order::words)
    }

    /// Finds the words and returns the step without an embedder.
    pub(super) fn without_embedder(self) -> Settlement {
        let words = self.words();
        Box::new(|shared| (self.settle)(shared, Ok(None), words))
    }

    /// Returns the step of a job of which nothing is compared, for want of a memory or an embedder, or because of `failure`.
    pub(super) fn uncompared(self, failure: Option<Error>) -> Settlement {
        let text = failure.map_or(Ok(None), Err);
        Box::new(|shared| (self.settle)(shared, text, Ok(Words::default())))
    }

    /// Finds the words and returns the step after the embedding; `embedded` is its result, `None` if nothing was to be embedded.
    pub(super) fn settlement(self, model: &ModelIdentity, embedded: Result<Option<Embedded>>) -> Settlement {
        let words = self.words();
        let Self { order, settle, .. } = self;
        let text = embedded.map(|embedded| {
            order
                .zip(embedded)
                .map(|(order, embedded)| order.embedded(model, embedded))
        });
        Box::new(|shared| settle(shared, text, words))
    }

    /// Returns the text still to be embedded; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Aborted`] if it is no longer wanted.
    pub(super) fn wanted_text(&self) -> Result<Option<Cow<'_, str>>> {
        match &self.order {
            None => Ok(None),
            Some(order) if order.is_cancelled() => Err(Error::Aborted),
            Some(order) => Ok(match &order.source {
                Source::Prefix(text) => Some(text.into()),
                Source::Full(trace) => Some(digest::of(trace).into()),
                Source::Lexical(_) | Source::Words(_) => None,
            }),
        }
    }

    /// Turns the text into tokens, if it is still wanted.
    pub(super) fn prepare(self, embedder: &Embedder) -> Prepared {
        let text = guarded(|| Ok(self.wanted_text()?.map(|text| embedder.tokenize(&text))));
        Prepared { job: self, text }
    }
}

impl Prepared {
    /// Returns the number of tokens to embed.
    pub(super) fn tokens(&self) -> usize {
        self.tokenized().map_or(0, |text| text.ids.len())
    }

    fn tokenized(&self) -> Option<&Tokens> {
        self.text.as_ref().ok().and_then(Option::as_ref)
    }

    fn is_wanted(&self) -> bool {
        !self.job.order.as_ref().is_some_and(Order::is_cancelled)
    }
}

/// Embeds several jobs together. On failure, each job has its own error.
pub(super) fn embed_together(loaded: &Loaded, lane: &mut dyn Lane, jobs: Vec<Prepared>) -> Vec<Settlement> {
    let together: Vec<&Tokens> = jobs.iter().filter_map(Prepared::tokenized).collect();
    let is_wanted = || jobs.iter().any(Prepared::is_wanted);
    let mut embedded = guarded(|| loaded.embedder.embed(lane, &together, is_wanted)).map(Vec::into_iter);
    let alone = jobs.len() == 1;
    let settle = |mut job: Prepared| {
        let own = match std::mem::replace(&mut job.text, Ok(None)) {
            Err(error) => Err(error),
            Ok(None) => Ok(None),
            Ok(Some(text)) => match &mut embedded {
                Ok(embedded) => Ok(embedded.next()),
                Err(error) if alone => Err(std::mem::replace(error, Error::Aborted)),
                Err(_) => guarded(|| {
                    let embedded = loaded.embedder.embed(lane, &[&text], || job.is_wanted())?;
                    Ok(embedded.into_iter().next())
                }),
            },
        };
        job.job.settlement(&loaded.identity, own)
    };
    jobs.into_iter().map(settle).collect()
}

/// Finds what is compared of a trace, and passes it on; `None` without an embedding that is needed.
pub(super) fn of_trace(mut request: Request, settle: SettleTrace) -> Job {
    Job {
        order: Order::of(&mut request),
        settle: Box::new(move |shared, embedded, words| {
            let comparable = embedded.and_then(|text| Ok(comparable(&request, text, words?)));
            settle(shared, request, comparable);
        }),
    }
}

/// Replies with what a store compares of a trace. A failure costs the comparison, not the call.
pub(super) fn embedded(reply: Reply<Result<(Request, Option<Comparable>)>>) -> SettleTrace {
    Box::new(|shared, mut request, comparable| {
        // It can be long.
        request.input.source = None;
        let comparable = match comparable {
            Err(error) if !matches!(error, Error::Aborted) => {
                shared.warn(Failure::from(&error));
                Ok(None)
            }
            comparable => comparable,
        };
        reply(comparable.map(|comparable| (request, comparable)));
    })
}

/// Returns the parts of a trace that are compared; `None` if nothing is, or an embedding is missing.
fn comparable(request: &Request, text: Option<EmbeddedText>, words: Words) -> Option<Comparable> {
    request.memory.as_ref()?;
    // Without an embedding, the words are all that was read.
    let of_words = Reading {
        tokens: None,
        truncated: request.input.incomplete,
    };
    let (words, reading) = match (&request.input.source, &text) {
        (Some(Source::Lexical(_) | Source::Words(_)), _) => (Some(words), of_words),
        (Some(Source::Full(_)), Some(text)) => (Some(words), text.reading),
        (_, Some(text)) => (None, text.reading),
        (_, None) => return None,
    };
    Some(Comparable { words, text, reading })
}

/// Embeds a text.
pub(super) fn embed(text: String, call: Option<Arc<Call>>, reply: Reply<Result<Box<Embedding>>>) -> Job {
    let order = Order {
        source: Source::Prefix(text),
        incomplete: false,
        explained: false,
        call,
    };
    Job {
        order: Some(order),
        settle: Box::new(|shared, embedded, _| {
            reply(match embedded {
                Ok(Some(embedded)) => Ok(embedded.embedding),
                Err(error) => Err(error),
                Ok(None) => Err(match shared.status().failure {
                    Some(Failure { code, reason }) => {
                        Error::Other(Code::from_name(code).unwrap_or(Code::Internal), reason)
                    }
                    None => Error::Internal("there is no embedder, for no known reason".into()),
                }),
            });
        }),
    }
}

/// Reports the state of the embedder.
pub(super) fn status(reply: Reply<Status>) -> Job {
    Job {
        order: None,
        settle: Box::new(|shared, _, _| reply(shared.status())),
    }
}

/// Scores a trace by comparing it with its memory. A failure of the embedder costs the novelty, not the score.
pub(super) fn score(
    shared: &Shared,
    request: &Request,
    comparable: Result<Option<Comparable>>,
) -> Result<ComparedScore> {
    request.begin()?;
    let compare = || -> Result<_> {
        let (Some(memory), Some(comparable)) = (&request.memory, comparable?) else {
            return Ok((Novelty::NEUTRAL, None));
        };
        let embedded = comparable.text.as_ref();
        let none = Words::default();
        let compared = ComparedTrace {
            words: comparable.words.as_ref().unwrap_or(&none),
            embedding: embedded.map(|text| (&*text.embedding, &text.origin)),
            label: request.input.label.as_ref(),
            remember: request.remember,
            explained: request.explained,
        };
        let (mut novelty, shares) = memory.compare_and_add(&compared, Instant::now())?;
        if let (Some(words), Some(nearest), true) =
            (&comparable.words, &mut novelty.nearest, request.explained)
        {
            nearest.words = Some(ExplainedWords::of(words, &shares));
        }
        novelty.reading = Some(comparable.reading);
        Ok((novelty, Some(comparable)))
    };
    match compare() {
        Ok((novelty, comparable)) => Ok((request.score(novelty), comparable)),
        // The caller has chosen the memory.
        Err(error) if error.code() == Code::MemoryMismatch.name() => Err(error),
        Err(error) => {
            shared.warn(Failure::from(&error));
            Ok((request.score(Novelty::NEUTRAL), None))
        }
    }
}

impl Order {
    fn embedded(&self, model: &ModelIdentity, embedded: Embedded) -> EmbeddedText {
        // A digest leaves out text, but the words come from the whole text.
        let (method, truncated) = match self.source {
            Source::Prefix(_) => (Method::Prefix, embedded.truncated || self.incomplete),
            Source::Lexical(_) | Source::Words(_) | Source::Full(_) => (Method::Full, self.incomplete),
        };
        EmbeddedText {
            reading: Reading {
                tokens: Some(embedded.tokens),
                truncated,
            },
            embedding: embedded.embedding,
            origin: Origin {
                model: Some(model.clone()),
                method: Some(method.name().into()),
            },
        }
    }
}
