//! The inference thread and its queue. Calls are settled in their order, however many embeddings are computed in parallel.
//!
//! A single call is embedded on all threads, for the lowest latency. A backlog is spread over lanes, which do not wait for one another, for the
//! highest throughput: with the built-in engine one for each thread, in which short texts share passes; with ONNX Runtime a few, each with
//! its share of the threads. In WebAssembly, which has no threads, the caller's thread embeds.

mod job;
mod load;
mod queue;
mod worker;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use once_cell::sync::OnceCell;

use knowledgepulse_embed::Embedding;
use knowledgepulse_error::{Call, Error, Result, guarded};
use knowledgepulse_index::{
    memory::{Memory, Novelty, Reading},
    options::Origin,
};
use knowledgepulse_trace::words::Words;

use crate::{Breakdown, ScoreInput, Source};
use job::{Job, SettleTrace};
use worker::Worker;

pub use load::{EngineKind, EngineOptions, Failure, ModelInMemory, Status};
pub use queue::InOrder;

/// Takes the result of a call, on the inference thread.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// A trace to be scored.
#[derive(Debug)]
pub struct Request {
    /// Its features and texts.
    pub input: ScoreInput,
    /// The memory to compare with; `None` compares nothing and needs no embedder.
    pub memory: Option<Memory>,
    /// Whether the memory remembers it.
    pub remember: bool,
    /// Whether to return the heaviest words of its similarity.
    pub explained: bool,
    /// Its call, if that can be cancelled.
    pub call: Option<Arc<Call>>,
}

impl Request {
    /// Returns whether this is still wanted. Afterwards the call can no longer be cancelled.
    fn begin(&self) -> Result<()> {
        match &self.call {
            Some(call) if !call.complete() => Err(Error::Aborted),
            _ => Ok(()),
        }
    }

    fn score(&self, novelty: Novelty) -> Breakdown {
        crate::score(&self.input.features, &self.input.profile, novelty)
    }
}

/// The embedding of a trace.
#[derive(Debug)]
pub struct EmbeddedText {
    /// The embedding.
    pub embedding: Box<Embedding>,
    /// How much was embedded.
    pub reading: Reading,
    /// The model.
    pub origin: Origin,
}

/// The parts of a trace that a store compares.
#[derive(Debug)]
pub struct Comparable {
    /// Its words, if they are compared.
    pub words: Option<Words>,
    /// The embedding of its text or digest, if that is compared.
    pub text: Option<EmbeddedText>,
    /// How much of its text was read.
    pub reading: Reading,
}

/// A score, and the compared words or embedding of its trace; `None` without a comparison.
pub type ComparedScore = (Breakdown, Option<Comparable>);

/// Embeds and scores in the order of the calls. A process has one, which holds the embedder.
#[derive(Default)]
pub struct Engine {
    options: OnceLock<Arc<EngineOptions>>,
    /// The inlet of calls that need the embedder, set by the first of them.
    inlet: OnceCell<Inlet>,
    /// The inlet of traces that are compared by words alone, set by the first of them. They neither load the embedder nor wait for it.
    words: OnceCell<Inlet>,
    shared: Arc<Shared>,
}

/// The way by which calls reach the threads of a worker. In WebAssembly, which has none, the caller works.
struct Inlet(Arc<Worker>);

impl Inlet {
    fn push(&self, job: Job) {
        self.0.queue.push(job);
        if cfg!(target_family = "wasm") {
            self.0.work_here();
        }
    }
}

/// The results that the inference thread publishes.
#[derive(Default)]
struct Shared {
    /// Set once loading has ended.
    status: OnceLock<Status>,
    /// The first failure to report to the user.
    warning: OnceLock<Failure>,
    /// Whether it was reported.
    has_warned: AtomicBool,
}

impl Shared {
    /// Returns the state of the embedder, once loading has ended.
    fn status(&self) -> Status {
        self.status.get().cloned().unwrap_or_default()
    }

    /// Keeps the first failure of the process for [`Engine::take_warning`].
    fn warn(&self, failure: Failure) {
        let _ = self.warning.set(failure);
    }
}

impl Engine {
    /// Configures the embedder. The first call counts; later ones return `false`.
    pub fn configure(&self, options: EngineOptions) -> bool {
        self.options.set(Arc::new(options)).is_ok()
    }

    /// Returns whether [`Engine::configure`] was called.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        self.options.get().is_some()
    }

    /// Returns whether a trace may be compared with this memory: not if it needs an embedder that is known to be missing.
    #[must_use]
    pub fn can_compare(&self, memory: Option<&Memory>) -> bool {
        memory.is_some_and(|memory| !memory.method().needs_embedder() || !self.without_embedder())
    }

    /// Scores a trace at once if nothing is compared, or the needed embedder is known to be missing. Earlier calls may still wait.
    ///
    /// # Errors
    /// [`Error::Aborted`].
    #[must_use]
    pub fn score_at_once(&self, request: &Request) -> Option<Result<Breakdown>> {
        (!self.can_compare(request.memory.as_ref()))
            .then(|| request.begin().map(|()| request.score(Novelty::NEUTRAL)))
    }

    /// Scores a trace after all earlier calls, and calls `reply` on the inference thread; a trace whose words were found
    /// ([`ScoreInput::with_words`]) before this returns, so that its callers must take turns. A failing embedder is no error: novelty is neutral, and
    /// [`Engine::take_warning`] has the reason.
    ///
    /// # Errors
    /// Through `reply` only: [`Error::MemoryOtherModel`], [`Error::MemoryOtherMethod`], [`Error::Aborted`], or [`Error::Internal`] for a bug.
    pub fn score(&self, request: Request, reply: Reply<Result<ComparedScore>>) {
        let settle: SettleTrace = Box::new(|shared, request, comparable| {
            reply(guarded(|| job::score(shared, &request, comparable)));
        });
        self.submit(request, settle);
    }

    /// Prepares a trace for a store, after all earlier calls, and returns it without its text. Gives `None` without the needed embedder;
    /// [`Engine::take_warning`] reports a failing one.
    ///
    /// # Errors
    /// Through `reply` only: [`Error::Aborted`].
    pub fn embed_trace(&self, request: Request, reply: Reply<Result<(Request, Option<Comparable>)>>) {
        self.submit(request, job::embedded(reply));
    }

    /// Has a trace prepared, on this thread if nothing is left to do for another one.
    fn submit(&self, request: Request, settle: SettleTrace) {
        let has_words = matches!(request.input.source, Some(Source::Words(_)));
        let memory = request.memory.as_ref();
        let memory = memory.filter(|memory| !has_words && !self.needs_no_thread(memory));
        let inlet = memory.map(|memory| self.inlet_for(memory)).transpose();
        let job = job::of_trace(request, settle);
        match inlet {
            Ok(Some(inlet)) => inlet.push(job),
            // Only comparing is left. That takes turns, so no other thread would do it sooner.
            Ok(None) if has_words => job.without_embedder()(&self.shared),
            Ok(None) => job.uncompared(None)(&self.shared),
            Err(error) => job.uncompared(Some(error))(&self.shared),
        }
    }

    /// Embeds the first 512 tokens of `text`, after all earlier calls.
    ///
    /// # Errors
    /// Through `reply` only: that of loading the embedder, [`Error::Inference`] or [`Error::Aborted`].
    pub fn embed(&self, text: String, call: Option<Arc<Call>>, reply: Reply<Result<Box<Embedding>>>) {
        match self.inlet() {
            Ok(inlet) => inlet.push(job::embed(text, call, reply)),
            Err(error) => reply(Err(error)),
        }
    }

    /// Loads the embedder if necessary, and reports its state.
    pub fn status(&self, reply: Reply<Status>) {
        if let Some(status) = self.shared.status.get() {
            return reply(status.clone());
        }
        match self.inlet() {
            Ok(inlet) => inlet.push(job::status(reply)),
            Err(error) => reply(Status {
                failure: Some(Failure::from(&error)),
                ..Status::default()
            }),
        }
    }

    /// Takes the failure of an embedder that is present but broken, once per process.
    #[must_use]
    pub fn take_warning(&self) -> Option<Failure> {
        let failure = self.shared.warning.get()?;
        let has_warned = self.shared.has_warned.swap(true, Ordering::Relaxed);
        (!has_warned).then(|| failure.clone())
    }

    /// Returns whether the embedder is known to be missing or broken.
    fn without_embedder(&self) -> bool {
        match self.shared.status.get() {
            Some(status) => status.failure.is_some(),
            // Finding an absent model needs no thread.
            None => self
                .options
                .get()
                .is_none_or(|options| options.model_directory.is_none() && !options.model_configured),
        }
    }

    /// Returns whether a trace can be scored on the caller's thread without overtaking others: no thread was started, and none is needed.
    fn needs_no_thread(&self, memory: &Memory) -> bool {
        memory.method().needs_embedder() && self.inlet.get().is_none() && self.without_embedder()
    }

    /// Returns the inlet of calls that compare with a memory.
    fn inlet_for(&self, memory: &Memory) -> Result<&Inlet> {
        if memory.method().needs_embedder() {
            return self.inlet();
        }
        self.words
            .get_or_try_init(|| self.start("knowledgepulse-words", false))
    }

    fn inlet(&self) -> Result<&Inlet> {
        self.inlet.get_or_try_init(|| self.start("knowledgepulse", true))
    }

    /// Starts the threads of a worker. Fewer threads take longer.
    fn start(&self, name: &str, embeds: bool) -> Result<Inlet> {
        let options = self.options.get().cloned().unwrap_or_default();
        let worker = Arc::new(Worker::new(options, Arc::clone(&self.shared), embeds));
        for number in 0..worker.threads() {
            let worker = Arc::clone(&worker);
            let thread = thread::Builder::new()
                .name(name.into())
                .spawn(move || worker.work());
            match thread {
                Ok(_) => {}
                Err(_) if number > 0 => break,
                Err(error) => return Err(Error::Inference(format!("no thread to run it on: {error}"))),
            }
        }
        Ok(Inlet(worker))
    }
}

#[cfg(test)]
mod tests {
    mod with_model;

    use knowledgepulse_index::{
        memory::Basis, method::Method, options::MemoryOptions, traces::TraceMemory, vectors::VectorCache,
    };
    use knowledgepulse_trace::fixtures::with_steps;

    use super::*;
    use crate::{Scorer, weights::Profiles};

    fn request() -> Request {
        request_with(VectorCache::new(MemoryOptions::default()).into())
    }

    fn request_with(memory: Memory) -> Request {
        let scorer = Scorer {
            memory: Some(memory),
            profiles: Profiles::default(),
        };
        Request {
            input: scorer.input_of(with_steps(&["thought", "observation"])),
            memory: scorer.memory,
            remember: true,
            explained: false,
            call: None,
        }
    }

    fn score(engine: &Engine) -> Result<f64> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let reply = Box::new(move |score| sender.send(score).unwrap());
        engine.score(request(), reply);
        receiver.recv().unwrap().map(|(breakdown, _)| breakdown.score)
    }

    fn status(engine: &Engine) -> Status {
        let (sender, receiver) = std::sync::mpsc::channel();
        engine.status(Box::new(move |status| sender.send(status).unwrap()));
        receiver.recv().unwrap()
    }

    #[test]
    fn absence_is_silent_and_needs_no_thread() {
        let engine = Engine::default();
        assert!(engine.configure(EngineOptions::default()));
        assert!(!engine.configure(EngineOptions::default()));
        let breakdown = engine.score_at_once(&request()).unwrap().unwrap();
        assert_eq!(breakdown.novelty, Novelty::NEUTRAL);
        assert!(engine.inlet.get().is_none());
        assert!(engine.take_warning().is_none());
    }

    #[test]
    fn words_are_compared_without_an_embedder() {
        let engine = Engine::default();
        assert!(engine.configure(EngineOptions {
            model_directory: Some("/nowhere/model".into()),
            model_configured: true,
            ..EngineOptions::default()
        }));
        let memory = Memory::from(TraceMemory::new(Method::Lexical, MemoryOptions::default()));
        let novelty = || {
            let request = request_with(memory.clone());
            assert!(engine.score_at_once(&request).is_none());
            let (sender, receiver) = std::sync::mpsc::channel();
            engine.score(
                request,
                Box::new(move |breakdown| sender.send(breakdown).unwrap()),
            );
            receiver.recv().unwrap().unwrap().0.novelty
        };
        assert_eq!(novelty().basis, Basis::EmptyMemory);
        let second = novelty();
        assert_eq!((second.basis, second.value), (Basis::Memory, 0.0));
        assert_eq!(
            second.reading,
            Some(Reading {
                tokens: None,
                truncated: false
            })
        );
        let (sender, receiver) = std::sync::mpsc::channel();
        let reply = move |scored| sender.send(scored).unwrap();
        engine.score(request_with(memory.clone()), Box::new(reply));
        let (_, kept) = receiver.recv().unwrap().unwrap();
        assert!(kept.is_some_and(|kept| kept.words.is_some() && kept.text.is_none()));
        // Words that were found before, on this thread.
        let mut request = request_with(memory.clone());
        request.input = request.input.with_words(false);
        let (sender, receiver) = std::sync::mpsc::channel();
        let reply = move |scored| sender.send(scored).unwrap();
        engine.score(request, Box::new(reply));
        let (breakdown, kept) = receiver.try_recv().unwrap().unwrap();
        assert_eq!(breakdown.novelty, second);
        assert!(kept.is_some_and(|kept| kept.words.is_some() && kept.text.is_none()));
        // The model was not looked for.
        assert!(engine.inlet.get().is_none());
        assert!(engine.take_warning().is_none());
    }

    #[test]
    fn status_names_what_is_missing() {
        let engine = Engine::default();
        assert!(engine.configure(EngineOptions::default()));
        let failure = status(&engine).failure.unwrap();
        assert_eq!(failure.code, "ERR_MODEL_NOT_FOUND");
        assert!(failure.reason.contains("KNOWLEDGEPULSE_MODEL_DIR"));
        assert_eq!(status(&engine).failure, Some(failure));
        assert!(engine.take_warning().is_none());
    }

    #[test]
    fn without_an_embedder_a_text_has_no_embedding() {
        let engine = Engine::default();
        assert!(engine.configure(EngineOptions::default()));
        let (sender, receiver) = std::sync::mpsc::channel();
        engine.embed(
            "text".into(),
            None,
            Box::new(move |result| sender.send(result).unwrap()),
        );
        let failure = Failure::from(&receiver.recv().unwrap().unwrap_err());
        assert_eq!(Some(failure), status(&engine).failure);
        assert!(engine.take_warning().is_none());
    }

    #[test]
    fn a_configured_model_that_is_missing_is_told_once() {
        let engine = Engine::default();
        assert!(engine.configure(EngineOptions {
            model_directory: Some("/nowhere/model".into()),
            runtime_library: Some("/nowhere/library".into()),
            model_configured: true,
            ..EngineOptions::default()
        }));
        assert!(score(&engine).unwrap() > 0.0);
        assert!(engine.score_at_once(&request()).is_some());
        let warning = engine.take_warning().unwrap();
        assert_eq!(warning.code, "ERR_MODEL_NOT_FOUND");
        assert!(warning.reason.contains("/nowhere/model"), "{}", warning.reason);
        assert!(engine.take_warning().is_none());
    }

    #[test]
    fn a_call_is_cancelled_or_completed_and_never_both() {
        let engine = Engine::default();
        let call = Arc::new(Call::default());
        let mut request = request();
        request.call = Some(Arc::clone(&call));
        assert!(engine.score_at_once(&request).unwrap().is_ok());
        assert!(!call.cancel());

        let call = Arc::new(Call::default());
        request.call = Some(Arc::clone(&call));
        assert!(call.cancel());
        let error = engine.score_at_once(&request).unwrap().unwrap_err();
        assert_eq!(error.code(), "ERR_ABORTED");
    }
}
