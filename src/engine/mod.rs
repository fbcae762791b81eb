//! The inference thread and its queue: calls are settled in the order in which they were made, however many
//! embeddings are computed side by side.
//!
//! A single call is embedded on all threads at once, which gives the shortest wait. A backlog is spread over
//! lanes, each with its share of the threads, which gives more embeddings a second: the small operations of
//! the model do not scale over threads.

mod neighbour;
mod queue;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use once_cell::sync::OnceCell;

use crate::{
    cache::novelty::{Comparison, Extent, Memory, Novelty, Reading, Weighted},
    cache::{ModelIdentity, Origin},
    call::Call,
    embed::model::ModelFiles,
    embed::runtime::{Runtime, check_room},
    embed::{DIMENSIONS, Embedder, Embedding, Lane},
    error::{Error, Result},
    score::{self, Breakdown, Summary},
};
use queue::{InOrder, Queue};

/// So many calls must wait before lanes are opened: opening them takes as long as embedding a few texts.
const BACKLOG: usize = 6;

/// Each lane has its own repacked half of the weights; with more threads than this, lanes get several.
const MOST_LANES: usize = 4;

/// Lanes that had nothing to do for so long are closed, which returns their memory.
const LANE_PATIENCE: Duration = Duration::from_secs(10);

/// A year, where there is nothing to close: the platforms' limits for waiting are not much higher.
const NO_HURRY: Duration = Duration::from_secs(365 * 24 * 3600);

/// Where the embedder comes from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// The model directory; `None` if no model package is installed.
    pub model_directory: Option<PathBuf>,
    /// The ONNX Runtime library; `None` if the platform has none.
    pub runtime_library: Option<PathBuf>,
    /// Whether the model directory was named by the user, so that its absence is a mistake.
    pub model_configured: bool,
    /// The same for the runtime library.
    pub runtime_configured: bool,
    /// Threads that one inference computes on; `None` for as many as the process may use.
    pub threads: Option<usize>,
}

/// What became of loading the embedder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    /// Why there is no embedder, if there is none.
    pub failure: Option<Failure>,
    /// The model directory.
    pub model_directory: Option<PathBuf>,
    /// What the model calls itself, or its SHA-256 where it has no name.
    pub model: Option<String>,
    /// The SHA-256 of the model file, in hexadecimal.
    pub model_sha256: Option<String>,
    /// What the weights are stored in.
    pub dtype: Option<String>,
    /// The length of an embedding.
    pub dimensions: Option<usize>,
    /// The ONNX Runtime library.
    pub runtime_path: Option<PathBuf>,
    /// Its version.
    pub runtime_version: Option<String>,
    /// Threads that one inference computes on.
    pub threads: usize,
}

/// An error that is told, not raised: novelty is neutral, and scoring goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The error's stable code.
    pub code: &'static str,
    /// Its message.
    pub reason: String,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            code: error.code(),
            reason: error.to_string(),
        }
    }
}

/// The embedding of a text, or why there is none.
pub type EmbedResult = std::result::Result<Box<Embedding>, Failure>;

/// Takes the result of a call, on the inference thread.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// A trace to be scored.
#[derive(Debug)]
pub struct Request {
    /// What is kept of it.
    pub summary: Summary,
    /// What it is compared with; `None` where nothing is, which needs no embedder.
    pub memory: Option<Memory>,
    /// Whether the memory is to remember it.
    pub remember: bool,
    /// The call that it belongs to, if that can be cancelled.
    pub call: Option<Arc<Call>>,
}

impl Request {
    /// Whether this is still wanted. From then on a call that changes the memory can no longer be cancelled; a batch
    /// can, until its draft is committed.
    fn begin(&self) -> Result<()> {
        let Some(call) = &self.call else { return Ok(()) };
        let wanted = match &self.memory {
            Some(Memory { draft: None, .. }) => call.complete(),
            _ => !call.is_cancelled(),
        };
        if wanted { Ok(()) } else { Err(Error::Aborted) }
    }

    fn score(&self, novelty: Novelty) -> Breakdown {
        score::score(&self.summary.features, &self.summary.profile, novelty)
    }
}

/// The embeddings of a trace.
#[derive(Debug)]
pub struct Embeddings {
    /// An embedding for each text of the trace.
    pub weighted: Vec<Weighted>,
    /// How much was embedded.
    pub reading: Reading,
    /// Where they come from.
    pub origin: Origin,
}

enum Job {
    Score(Box<Request>, Reply<Result<Breakdown>>),
    EmbedTrace(Box<Request>, Reply<Result<Option<Embeddings>>>),
    Commit(Memory, Arc<Call>, Reply<Result<()>>),
    Embed(String, Option<Arc<Call>>, Reply<EmbedResult>),
    Turn(Reply<()>),
    Status(Reply<Status>),
}

/// Embeds and scores, in the order in which calls are handed in. There is one in a process: it holds the embedder.
#[derive(Default)]
pub struct Engine {
    options: OnceLock<Options>,
    /// Set once the inference thread runs.
    queue: OnceCell<Arc<Queue<Job>>>,
    shared: Arc<Shared>,
}

/// What the inference thread tells the others.
#[derive(Default)]
struct Shared {
    /// Set once loading has ended.
    status: OnceLock<Status>,
    /// The first failure that the user should hear of; taken when told.
    warning: Mutex<Option<Failure>>,
    warned: AtomicBool,
}

impl Shared {
    /// Keeps the first failure of the process for [`Engine::take_warning`].
    fn warn(&self, failure: Failure) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            *self.warning.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        }
    }
}

impl Engine {
    /// Says where the embedder comes from. The first call counts; later ones return `false`.
    pub fn configure(&self, options: Options) -> bool {
        self.options.set(options).is_ok()
    }

    /// Whether [`Engine::configure`] was called.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        self.options.get().is_some()
    }

    /// Whether the text of a trace matters: not if it is known that there is no embedder.
    #[must_use]
    pub fn wants_text(&self) -> bool {
        !self.without_embedder()
    }

    /// Scores a trace if that needs no embedding: if nothing is compared, or it is known that there is no embedder. The
    /// calls before may still be waiting.
    ///
    /// # Errors
    /// [`Error::Aborted`].
    #[must_use]
    pub fn score_at_once(&self, request: &Request) -> Option<Result<Breakdown>> {
        (request.memory.is_none() || self.without_embedder())
            .then(|| request.begin().map(|()| request.score(Novelty::NEUTRAL)))
    }

    /// Scores a trace after all calls before, and calls `reply` with the score on the inference thread. A
    /// failing embedder is no error: novelty is neutral then, and [`Engine::take_warning`] tells why.
    ///
    /// # Errors
    /// Through `reply` only: [`Error::CacheOtherModel`], [`Error::CacheOtherMethod`], [`Error::Aborted`], or [`Error::Internal`] for a bug.
    pub fn score(&self, request: Request, reply: Reply<Result<Breakdown>>) {
        if request.memory.is_none() || self.needs_no_thread() {
            return reply(request.begin().map(|()| request.score(Novelty::NEUTRAL)));
        }
        match self.queue() {
            Ok(queue) => queue.push(Job::Score(Box::new(request), reply)),
            Err(error) => {
                self.shared.warn(Failure::from(&error));
                reply(request.begin().map(|()| request.score(Novelty::NEUTRAL)));
            }
        }
    }

    /// Embeds the texts of a trace, after all calls before. `None` without an embedder, also for a failing one, which
    /// [`Engine::take_warning`] tells.
    ///
    /// # Errors
    /// Through `reply` only: [`Error::Aborted`].
    pub fn embed_trace(&self, request: Request, reply: Reply<Result<Option<Embeddings>>>) {
        if self.needs_no_thread() {
            return reply(Ok(None));
        }
        match self.queue() {
            Ok(queue) => queue.push(Job::EmbedTrace(Box::new(request), reply)),
            Err(error) => {
                self.shared.warn(Failure::from(&error));
                reply(Ok(None));
            }
        }
    }

    /// Makes what the draft of `memory` holds permanent, after all calls before, unless `call` was cancelled.
    ///
    /// # Errors
    /// Through `reply` only: [`Error::Aborted`], or those of [`Memory::commit`].
    pub fn commit(&self, memory: Memory, call: Arc<Call>, reply: Reply<Result<()>>) {
        // Without an embedder nothing is in the draft, and there is nothing to wait for.
        if memory.draft.is_none() || self.needs_no_thread() {
            return reply(commit(&memory, &call));
        }
        match self.queue() {
            Ok(queue) => queue.push(Job::Commit(memory, call, reply)),
            Err(_) => reply(commit(&memory, &call)),
        }
    }

    /// Embeds `text`, of which the first 512 tokens count, after all calls before. The novelty memory has no part
    /// in it.
    pub fn embed(&self, text: String, call: Option<Arc<Call>>, reply: Reply<EmbedResult>) {
        match self.queue() {
            Ok(queue) => queue.push(Job::Embed(text, call, reply)),
            Err(error) => reply(Err(Failure::from(&error))),
        }
    }

    /// Calls `reply` after all calls before.
    pub fn after_others(&self, reply: Reply<()>) {
        match self.queue.get() {
            Some(queue) => queue.push(Job::Turn(reply)),
            // Nothing waits where no thread has been started.
            None => reply(()),
        }
    }

    /// Loads the embedder, if nobody has, and tells what became of it.
    pub fn status(&self, reply: Reply<Status>) {
        if let Some(status) = self.shared.status.get() {
            return reply(status.clone());
        }
        match self.queue() {
            Ok(queue) => queue.push(Job::Status(reply)),
            Err(error) => reply(Status {
                failure: Some(Failure::from(&error)),
                ..Status::default()
            }),
        }
    }

    /// The first failure of an embedder that is present but broken. It is told once per process.
    #[must_use]
    pub fn take_warning(&self) -> Option<Failure> {
        // The flag is checked first because this is asked after every call.
        if !self.shared.warned.load(Ordering::Relaxed) {
            return None;
        }
        self.shared
            .warning
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Whether it is known that there is no embedder, loading included.
    fn without_embedder(&self) -> bool {
        match self.shared.status.get() {
            Some(status) => status.failure.is_some(),
            // An absent model or runtime needs no thread to find out.
            None => self.options.get().is_none_or(|options| {
                (options.model_directory.is_none() && !options.model_configured)
                    || (options.runtime_library.is_none() && !options.runtime_configured)
            }),
        }
    }

    /// Whether a trace can be scored on the caller's thread without overtaking others: no thread was started, and none
    /// has to be to find out that there is no embedder.
    fn needs_no_thread(&self) -> bool {
        self.queue.get().is_none() && self.without_embedder()
    }

    fn queue(&self) -> Result<&Arc<Queue<Job>>> {
        self.queue.get_or_try_init(|| {
            let queue = Arc::new(Queue::default());
            let worker = Worker {
                options: self.options.get().cloned().unwrap_or_default(),
                queue: Arc::clone(&queue),
                shared: Arc::clone(&self.shared),
            };
            thread::Builder::new()
                .name("knowledgepulse".into())
                .spawn(move || worker.work())
                .map_err(|error| Error::Inference(format!("no thread to run it on: {error}")))?;
            Ok(queue)
        })
    }
}

/// What the inference thread works with.
struct Worker {
    options: Options,
    queue: Arc<Queue<Job>>,
    shared: Arc<Shared>,
}

/// A model that is loaded.
struct Loaded {
    embedder: Embedder,
    identity: ModelIdentity,
}

/// A job whose embeddings are known, waiting for those before it. There are none without an embedder.
enum Finished {
    Score(Box<Request>, Result<Option<Embeddings>>, Reply<Result<Breakdown>>),
    EmbedTrace(Result<Option<Embeddings>>, Reply<Result<Option<Embeddings>>>),
    Commit(Memory, Arc<Call>, Reply<Result<()>>),
    Embed(Result<Option<Box<Embedding>>>, Reply<EmbedResult>),
    Turn(Reply<()>),
    Status(Reply<Status>),
}

impl Worker {
    /// The inference thread's life. It ends only with the process.
    fn work(&self) {
        neighbour::stand_back();
        let Some((loaded, mut lane)) = load(&self.options, &self.shared) else {
            loop {
                self.settle(self.compute(self.queue.wait().1, None));
            }
        };
        let mut lanes = Vec::new();
        // What loading has freed is returned as soon as nobody waits.
        let mut patience = Duration::ZERO;
        loop {
            let backlog = self.queue.wait_for_backlog(patience);
            if backlog == 0 {
                lanes.clear();
                neighbour::return_freed_memory();
                patience = NO_HURRY;
            } else if backlog >= BACKLOG {
                self.open_lanes(&loaded.embedder, &mut lanes);
                self.work_side_by_side(&loaded, &mut lanes);
                patience = LANE_PATIENCE;
            }
            // One at a time, also where the lanes could not be opened.
            if let Some((_, job)) = self.queue.take() {
                self.settle(self.compute(job, Some((&loaded, &mut lane))));
            }
        }
    }

    /// Opens the lanes that are missing. Without them, because memory or threads are short, it takes longer.
    fn open_lanes(&self, embedder: &Embedder, lanes: &mut Vec<Lane>) {
        let threads = threads(&self.options);
        let count = threads.min(MOST_LANES);
        while count > 1 && lanes.len() < count {
            match guarded(|| embedder.open_lane(threads / count)) {
                Ok(lane) => lanes.push(lane),
                Err(_) => break,
            }
        }
    }

    /// Works through the queue until it is empty, with one thread for each lane.
    fn work_side_by_side(&self, loaded: &Loaded, lanes: &mut [Lane]) {
        let in_order = InOrder::new(self.queue.next_number());
        thread::scope(|scope| {
            for lane in lanes {
                let work = || {
                    // Moves the lane in: it is this thread's alone.
                    let lane = lane;
                    while let Some((number, job)) = self.queue.take() {
                        let finished = self.compute(job, Some((loaded, &mut *lane)));
                        in_order.finish(number, finished, |finished| self.settle(finished));
                    }
                };
                // Fewer threads take longer; none leave the work to the caller.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
        });
    }

    /// Does what can be done side by side: everything but the memory.
    fn compute(&self, job: Job, embedder: Option<(&Loaded, &mut Lane)>) -> Finished {
        match job {
            Job::Turn(reply) => Finished::Turn(reply),
            Job::Status(reply) => Finished::Status(reply),
            Job::Commit(memory, call, reply) => Finished::Commit(memory, call, reply),
            Job::Embed(text, call, reply) => {
                let embedding = match embedder {
                    Some(_) if is_cancelled(call.as_ref()) => Err(Error::Aborted),
                    Some((loaded, lane)) => guarded(|| {
                        let embedded = loaded.embedder.embed(lane, &text)?;
                        Ok(Some(embedded.embedding))
                    }),
                    None => Ok(None),
                };
                Finished::Embed(embedding, reply)
            }
            Job::Score(request, reply) => {
                let embedded = match embedder {
                    Some((loaded, lane)) => guarded(|| embed(loaded, lane, &request).map(Some)),
                    None => Ok(None),
                };
                Finished::Score(request, embedded, reply)
            }
            Job::EmbedTrace(request, reply) => {
                let embeddings = match embedder {
                    Some((loaded, lane)) => guarded(|| embed(loaded, lane, &request).map(Some)),
                    None => Ok(None),
                };
                Finished::EmbedTrace(embeddings, reply)
            }
        }
    }

    /// Does what must be done in order: compares, remembers, replies.
    fn settle(&self, finished: Finished) {
        // A reply that panics must not end the thread.
        let _ = catch_unwind(AssertUnwindSafe(|| match finished {
            Finished::Score(request, embedded, reply) => {
                reply(guarded(|| self.score(&request, embedded)));
            }
            Finished::EmbedTrace(embeddings, reply) => reply(match embeddings {
                Err(error) if !matches!(error, Error::Aborted) => {
                    self.shared.warn(Failure::from(&error));
                    Ok(None)
                }
                embeddings => embeddings,
            }),
            Finished::Commit(memory, call, reply) => reply(guarded(|| commit(&memory, &call))),
            Finished::Embed(embedding, reply) => reply(match embedding {
                Ok(Some(embedding)) => Ok(embedding),
                Ok(None) => Err(self.status().failure.unwrap_or_else(|| {
                    Failure::from(&Error::Internal(
                        "there is no embedder, for no known reason".into(),
                    ))
                })),
                Err(error) => Err(Failure::from(&error)),
            }),
            Finished::Turn(reply) => reply(()),
            Finished::Status(reply) => reply(self.status()),
        }));
    }

    /// The score of a trace. What goes wrong on the way costs the novelty, not the score.
    fn score(&self, request: &Request, embedded: Result<Option<Embeddings>>) -> Result<Breakdown> {
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
                self.shared.warn(Failure::from(&error));
                Ok(request.score(Novelty::NEUTRAL))
            }
        }
    }

    fn status(&self) -> Status {
        self.shared.status.get().cloned().unwrap_or_default()
    }
}

fn is_cancelled(call: Option<&Arc<Call>>) -> bool {
    call.is_some_and(|call| call.is_cancelled())
}

fn commit(memory: &Memory, call: &Call) -> Result<()> {
    if !call.complete() {
        return Err(Error::Aborted);
    }
    memory.commit(Instant::now())
}

/// Embeds the texts of a trace, as long as that is wanted.
fn embed(loaded: &Loaded, lane: &mut Lane, request: &Request) -> Result<Embeddings> {
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

/// Loads the embedder and publishes what became of it.
fn load(options: &Options, shared: &Shared) -> Option<(Loaded, Lane)> {
    let mut status = Status {
        model_directory: options.model_directory.clone(),
        runtime_path: options.runtime_library.clone(),
        threads: threads(options),
        ..Status::default()
    };
    let loaded = guarded(|| load_embedder(options, &mut status));
    if let Err(error) = &loaded {
        let failure = Failure::from(error);
        let absent = match error {
            Error::ModelNotFound(_) => !options.model_configured,
            Error::RuntimeNotFound(_) => !options.runtime_configured,
            _ => false,
        };
        if !absent {
            shared.warn(failure.clone());
        }
        status.failure = Some(failure);
    }
    let identity = ModelIdentity {
        model: status.model.clone().unwrap_or_default(),
        dtype: status.dtype.clone().unwrap_or_default(),
        sha256: status.model_sha256.clone(),
    };
    let _ = shared.status.set(status);
    let (embedder, lane) = loaded.ok()?;
    Some((Loaded { embedder, identity }, lane))
}

/// Verifies the model while ONNX Runtime is loaded and its session made: both take tens of milliseconds.
fn load_embedder(options: &Options, status: &mut Status) -> Result<(Embedder, Lane)> {
    let directory = options.model_directory.as_ref().ok_or_else(|| {
        Error::ModelNotFound(
            "install @knowledgepulse/all-minilm-l6-v2 (or -q8, for dtype q8), or set KNOWLEDGEPULSE_MODEL_DIR to a model directory"
                .into(),
        )
    })?;
    let library = options.runtime_library.as_ref().ok_or_else(|| {
        Error::RuntimeNotFound(
            "this platform's package carries none; set KNOWLEDGEPULSE_ONNXRUNTIME to a library".into(),
        )
    })?;
    let files = ModelFiles::find(directory)?;
    check_room(&files.model)?;
    status.dtype = Some(files.dtype.clone());
    status.dimensions = Some(DIMENSIONS);
    thread::scope(|scope| {
        let verified = files.clone();
        let sha256 = thread::Builder::new().spawn_scoped(scope, move || verified.model_sha256());
        let loaded = Runtime::load(library).and_then(|runtime| {
            status.runtime_path = Some(runtime.path.clone());
            status.runtime_version = Some(runtime.version.clone());
            Embedder::load(runtime, files.clone(), status.threads)
        });
        let sha256 = match sha256 {
            Ok(other) => other
                .join()
                .unwrap_or_else(|panic| Err(Error::from_panic(&*panic))),
            // Without a second thread it takes longer.
            Err(_) => files.model_sha256(),
        };
        // A wrong checksum explains whatever else went wrong.
        let sha256 = sha256?;
        status.model = Some(
            files
                .name()
                .map_or_else(|| format!("sha256:{sha256}"), str::to_owned),
        );
        status.model_sha256 = Some(sha256);
        loaded
    })
}

/// `available_parallelism` respects affinity and cgroup limits, which a bare core count does not.
fn threads(options: &Options) -> usize {
    options
        .threads
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Turns a panic into an error.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Error::from_panic(&*panic)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cache::novelty::SharedCache, score::Scorer, score::weights::Profiles, trace::tests::with_steps,
    };

    fn request() -> Request {
        let cache: Arc<SharedCache> = Arc::default();
        let scorer = Scorer {
            cache: Arc::clone(&cache),
            profiles: Profiles::default(),
            extent: Some(Extent::Prefix),
        };
        Request {
            summary: scorer.summarize(&with_steps(&["thought", "observation"])),
            memory: Some(Memory { cache, draft: None }),
            remember: true,
            call: None,
        }
    }

    fn score(engine: &Engine) -> Result<f64> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let reply = Box::new(move |score| sender.send(score).unwrap());
        engine.score(request(), reply);
        receiver.recv().unwrap().map(|breakdown| breakdown.score)
    }

    fn status(engine: &Engine) -> Status {
        let (sender, receiver) = std::sync::mpsc::channel();
        engine.status(Box::new(move |status| sender.send(status).unwrap()));
        receiver.recv().unwrap()
    }

    #[test]
    fn absence_is_silent_and_needs_no_thread() {
        for options in [
            Options::default(),
            Options {
                model_directory: Some("/model".into()),
                ..Options::default()
            },
        ] {
            let engine = Engine::default();
            assert!(engine.configure(options.clone()));
            assert!(!engine.configure(options));
            let breakdown = engine.score_at_once(&request()).unwrap().unwrap();
            assert_eq!(breakdown.novelty, Novelty::NEUTRAL);
            assert!(engine.queue.get().is_none());
            assert!(engine.take_warning().is_none());
        }
    }

    #[test]
    fn status_names_what_is_missing() {
        let engine = Engine::default();
        assert!(engine.configure(Options::default()));
        let failure = status(&engine).failure.unwrap();
        assert_eq!(failure.code, "ERR_MODEL_NOT_FOUND");
        assert!(failure.reason.contains("KNOWLEDGEPULSE_MODEL_DIR"));
        assert_eq!(status(&engine).failure, Some(failure));
        assert!(engine.take_warning().is_none());
    }

    #[test]
    fn without_an_embedder_a_text_has_no_embedding() {
        let engine = Engine::default();
        assert!(engine.configure(Options::default()));
        let (sender, receiver) = std::sync::mpsc::channel();
        engine.embed(
            "text".into(),
            None,
            Box::new(move |result| sender.send(result).unwrap()),
        );
        let failure = receiver.recv().unwrap().unwrap_err();
        assert_eq!(Some(failure), status(&engine).failure);
        assert!(engine.take_warning().is_none());
    }

    #[test]
    fn a_configured_model_that_is_missing_is_told_once() {
        let engine = Engine::default();
        assert!(engine.configure(Options {
            model_directory: Some("/nowhere/model".into()),
            runtime_library: Some("/nowhere/library".into()),
            model_configured: true,
            ..Options::default()
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
