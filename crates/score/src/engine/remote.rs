//! A remote embedder for WebAssembly, which has no threads. The instance on the caller's thread reads, compares, remembers and scores
//! traces; another one embeds in a worker of the JavaScript engine. They share no memory, because `SharedArrayBuffer` needs headers that few
//! servers send.
//!
//! [`Remote`] is the end on the caller's thread, [`Local`] the end in the worker. Messages go by a [`Courier`], and back by
//! [`Engine::loaded_elsewhere`] and [`Engine::embedded_elsewhere`].

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use knowledgepulse_embed::Embedded;
use knowledgepulse_error::{Error, Result, guarded};
use knowledgepulse_index::options::ModelIdentity;

use super::{
    Engine, Inlet, Shared,
    job::{Job, Settlement},
    load::{BoxedLane, EngineOptions, Failure, Loaded, Status, load},
    queue::InOrder,
};

/// The calls in the worker at a time: one that is embedded and one that waits. Unsent calls can still be cancelled.
const MOST_AWAY: usize = 2;

/// Sends work to the remote embedder, in order and without waiting.
pub trait Courier: Send + Sync {
    /// Asks the embedder to load its model. [`Engine::loaded_elsewhere`] answers.
    fn load(&self);

    /// Asks the embedder for the first 512 tokens of `text`. [`Engine::embedded_elsewhere`] answers with the same number.
    fn embed(&self, number: u64, text: String);
}

/// Settles calls in order, whose texts a remote embedder embeds.
pub(super) struct Remote {
    courier: Arc<dyn Courier>,
    shared: Arc<Shared>,
    state: Mutex<State>,
    settled: InOrder<Settlement>,
}

#[derive(Default)]
struct State {
    /// The model, if there is one; `None` until loading has ended.
    loaded: Option<Option<ModelIdentity>>,
    /// The number of the next call.
    next: u64,
    /// Unsent calls with their numbers.
    waiting: VecDeque<(u64, Job)>,
    /// Calls whose text is in the worker.
    away: HashMap<u64, Job>,
}

/// The next step for the first waiting call.
enum Next {
    Settle(u64, Settlement),
    Send(u64, String),
}

impl Remote {
    /// Asks the embedder to load its model.
    pub(super) fn new(courier: Arc<dyn Courier>, shared: Arc<Shared>) -> Self {
        courier.load();
        Self {
            courier,
            shared,
            state: Mutex::default(),
            settled: InOrder::new(0),
        }
    }

    /// Appends a call.
    pub(super) fn push(&self, job: Job) {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.waiting.push_back((number, job));
        drop(state);
        self.go_on();
    }

    /// Continues when loading has ended, with the model if there is one.
    fn loaded(&self, model: Option<ModelIdentity>) {
        self.lock().loaded = Some(model);
        self.go_on();
    }

    /// Settles a call whose text was embedded.
    fn embedded(&self, number: u64, embedded: Result<Embedded>) {
        let mut state = self.lock();
        let job = state.away.remove(&number);
        let settlement = match (&state.loaded, job) {
            (Some(Some(model)), Some(job)) => job.settlement(model, embedded.map(Some)),
            // An answer without a call.
            _ => return,
        };
        drop(state);
        self.finish(number, settlement);
        self.go_on();
    }

    /// Sends waiting calls up to the limit, and settles calls that need no embedding.
    fn go_on(&self) {
        while let Some(next) = self.lock().next() {
            match next {
                Next::Settle(number, settlement) => self.finish(number, settlement),
                Next::Send(number, text) => self.courier.embed(number, text),
            }
        }
    }

    /// Settles a call in order.
    fn finish(&self, number: u64, settlement: Settlement) {
        self.settled
            .finish(number, settlement, |settlement| settle(&self.shared, settlement));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self) -> Option<Next> {
        let model = self.loaded.as_ref()?;
        if self.away.len() >= MOST_AWAY {
            return None;
        }
        let (number, job) = self.waiting.pop_front()?;
        let Some(model) = model else {
            return Some(Next::Settle(number, job.without_embedder()));
        };
        match job.wanted_text().map(|text| text.map(Cow::into_owned)) {
            Ok(None) => Some(Next::Settle(number, job.settlement(model, Ok(None)))),
            Err(error) => Some(Next::Settle(number, job.settlement(model, Err(error)))),
            Ok(Some(text)) => {
                self.away.insert(number, job);
                Some(Next::Send(number, text))
            }
        }
    }
}

/// Settles a call after the embedding. A panic in a reply does not stop other replies.
pub(super) fn settle(shared: &Shared, settlement: Settlement) {
    let _ = catch_unwind(AssertUnwindSafe(|| settlement(shared)));
}

impl Engine {
    /// Uses a remote embedder. Only the first call counts, before any that needs the embedder; others return `false`.
    pub fn connect(&self, courier: Arc<dyn Courier>) -> bool {
        self.courier.set(courier).is_ok()
    }

    /// Takes the state of the remote embedder, and the failure to report to the user.
    pub fn loaded_elsewhere(&self, status: Status, warn: bool) {
        let model = status.failure.is_none().then(|| status.identity());
        if let Some(failure) = status.failure.as_ref().filter(|_| warn) {
            self.shared.warn(failure.clone());
        }
        let _ = self.shared.status.set(status);
        if let Some(Inlet::Remote(remote)) = self.inlet.get() {
            remote.loaded(model);
        }
    }

    /// Takes the embedding of a call's text.
    pub fn embedded_elsewhere(&self, number: u64, embedded: Result<Embedded>) {
        if let Some(Inlet::Remote(remote)) = self.inlet.get() {
            remote.embedded(number, embedded);
        }
    }
}

/// The embedder in the worker.
pub struct Local {
    loaded: Loaded,
    lane: BoxedLane,
}

impl Local {
    /// Loads an embedder on this thread; returns its state, and the failure to report to the user.
    #[must_use]
    pub fn load(options: &EngineOptions) -> (Option<Self>, Status, Option<Failure>) {
        let shared = Shared::default();
        let local = load(options, &shared).map(|(loaded, lane)| Self { loaded, lane });
        let status = shared.status.into_inner().unwrap_or_default();
        (local, status, shared.warning.into_inner())
    }

    /// Embeds the first 512 tokens of a text.
    ///
    /// # Errors
    /// [`Error::Inference`] if that fails.
    pub fn embed(&mut self, text: &str) -> Result<Embedded> {
        let Self { loaded, lane } = self;
        guarded(|| {
            let embedder = &loaded.embedder;
            let tokens = embedder.tokenize(text);
            let embedded = embedder.embed(&mut **lane, &[&tokens], || true)?;
            embedded
                .into_iter()
                .next()
                .ok_or_else(|| Error::Internal("no embedding of a text".into()))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use knowledgepulse_embed::DIMENSIONS;
    use knowledgepulse_error::Call;
    use knowledgepulse_index::{
        memory::{Basis, Memory, Novelty},
        method::Method,
        options::MemoryOptions,
        traces::TraceMemory,
    };
    use knowledgepulse_trace::fixtures::with_steps;

    use super::super::Request;
    use super::*;
    use crate::{Scorer, weights::Profiles};

    #[derive(Debug, PartialEq)]
    enum Sent {
        Load,
        Embed(u64, String),
    }

    struct Post(Mutex<Sender<Sent>>);

    impl Courier for Post {
        fn load(&self) {
            self.0.lock().unwrap().send(Sent::Load).unwrap();
        }

        fn embed(&self, number: u64, text: String) {
            self.0.lock().unwrap().send(Sent::Embed(number, text)).unwrap();
        }
    }

    fn connected() -> (Engine, Receiver<Sent>) {
        let (sender, sent) = channel();
        let engine = Engine::default();
        assert!(engine.configure(EngineOptions {
            model_directory: Some("elsewhere".into()),
            ..EngineOptions::default()
        }));
        assert!(engine.connect(Arc::new(Post(Mutex::new(sender)))));
        (engine, sent)
    }

    fn embed(engine: &Engine, text: &str, call: Option<&Arc<Call>>, replies: &Sender<(String, bool)>) {
        let (name, replies) = (text.to_owned(), replies.clone());
        let reply = Box::new(move |result: super::super::EmbedResult| {
            replies.send((name, result.is_ok())).unwrap();
        });
        engine.embed(text.into(), call.map(Arc::clone), reply);
    }

    fn embedded() -> Embedded {
        Embedded {
            embedding: Box::new([0.0; DIMENSIONS]),
            tokens: 3,
            truncated: false,
        }
    }

    #[test]
    fn calls_are_settled_in_order_and_few_are_elsewhere() {
        let (engine, sent) = connected();
        let (sender, replies) = channel();
        let cancelled = Arc::new(Call::default());
        for text in ["a", "b", "c", "d"] {
            embed(&engine, text, (text == "c").then_some(&cancelled), &sender);
        }
        assert!(cancelled.cancel());
        assert_eq!(sent.try_iter().collect::<Vec<_>>(), [Sent::Load]);
        engine.loaded_elsewhere(Status::default(), false);
        let away = |number, text: &str| Sent::Embed(number, text.into());
        assert_eq!(sent.try_iter().collect::<Vec<_>>(), [away(0, "a"), away(1, "b")]);
        engine.embedded_elsewhere(1, Ok(embedded()));
        assert_eq!(sent.try_iter().collect::<Vec<_>>(), [away(3, "d")]);
        assert!(replies.try_recv().is_err(), "the first call is not settled");
        engine.embedded_elsewhere(3, Ok(embedded()));
        engine.embedded_elsewhere(0, Err(Error::Inference("as tested".into())));
        engine.embedded_elsewhere(0, Ok(embedded()));
        let expected = [("a", false), ("b", true), ("c", false), ("d", true)];
        let expected = expected.map(|(text, embedded)| (text.to_owned(), embedded));
        assert_eq!(replies.try_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn words_are_compared_here() {
        let (engine, sent) = connected();
        let memory = Memory::from(TraceMemory::new(Method::Lexical, MemoryOptions::default()));
        let (sender, replies) = channel();
        let scorer = Scorer {
            memory: Some(memory),
            profiles: Profiles::default(),
        };
        let request = Request {
            summary: scorer.summarize(with_steps(&["thought"])),
            memory: scorer.memory,
            uncompared: Novelty::NEUTRAL,
            remember: true,
            explained: false,
            call: None,
        };
        engine.score(
            request,
            Box::new(move |result| sender.send(result.unwrap().novelty.basis).unwrap()),
        );
        assert_eq!(replies.try_recv().unwrap(), Basis::EmptyMemory);
        assert!(sent.try_recv().is_err());
    }

    #[test]
    fn without_a_model_elsewhere_calls_are_settled_all_the_same() {
        let (engine, sent) = connected();
        let (sender, replies) = channel();
        embed(&engine, "a", None, &sender);
        let failure = Failure {
            code: "ERR_MODEL_NOT_FOUND",
            reason: "none".into(),
        };
        let status = Status {
            failure: Some(failure.clone()),
            ..Status::default()
        };
        engine.loaded_elsewhere(status, true);
        assert_eq!(replies.try_iter().collect::<Vec<_>>(), [("a".to_owned(), false)]);
        assert_eq!(sent.try_iter().collect::<Vec<_>>(), [Sent::Load]);
        assert_eq!(engine.take_warning(), Some(failure));
    }

    #[test]
    fn a_local_embedder_tells_why_there_is_none() {
        let (local, status, warning) = Local::load(&EngineOptions {
            model_directory: Some("/nowhere/model".into()),
            model_configured: true,
            ..EngineOptions::default()
        });
        assert!(local.is_none());
        assert_eq!(status.failure.as_ref().unwrap().code, "ERR_MODEL_NOT_FOUND");
        assert_eq!(warning, status.failure);
    }
}
