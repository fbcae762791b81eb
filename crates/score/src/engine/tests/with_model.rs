//! Tests of the engine with a small model of random weights.

use std::{
    fs,
    path::Path,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
        mpsc::channel,
    },
    time::Duration,
};

use knowledgepulse_embed::{
    DIMENSIONS, Embedder, Embedding, Lane, MOST_TOKENS, Network, model::sha256, parse_tokenizer,
};
use knowledgepulse_encoder::{
    Shape,
    fixtures::{WORDS, small_json, small_model},
};
use knowledgepulse_index::{
    memory::Basis, method::Method, options::MemoryOptions, traces::TraceMemory, vectors::VectorCache,
};
use knowledgepulse_trace::fixtures::with_texts;

use super::super::{load::Loaded, *};
use crate::{Scorer, weights::Profiles};

const THREADS: usize = 3;

static WEIGHTS: LazyLock<Vec<u8>> = LazyLock::new(|| small_model(DIMENSIONS));

fn options() -> EngineOptions {
    let model = ModelInMemory {
        weights: WEIGHTS.as_slice().into(),
        tokenizer: small_json().into(),
    };
    EngineOptions {
        model_in_memory: Some(model).into(),
        model_configured: true,
        threads: THREADS,
        ..EngineOptions::default()
    }
}

fn engine(options: EngineOptions) -> Engine {
    let engine = Engine::default();
    assert!(engine.configure(options));
    engine
}

/// Returns the reply of a call.
fn reply_of<T: Send + 'static>(call: impl FnOnce(Reply<T>)) -> T {
    let (sender, receiver) = channel();
    call(Box::new(move |reply| sender.send(reply).unwrap()));
    receiver.recv().unwrap()
}

fn memory(method: Method) -> Memory {
    match method {
        Method::Prefix => VectorCache::new(MemoryOptions::default()).into(),
        method => TraceMemory::new(method, MemoryOptions::default()).into(),
    }
}

fn request(memory: &Memory, text: &str) -> Request {
    let scorer = Scorer {
        memory: Some(memory.clone()),
        profiles: Profiles::default(),
    };
    let mut trace = with_texts(text, &[]);
    trace.label = Some(text.into());
    Request {
        input: scorer.input_of(trace),
        memory: scorer.memory,
        remember: true,
        explained: false,
        call: None,
    }
}

/// Scores a text, and returns its novelty.
fn novelty(engine: &Engine, memory: &Memory, text: &str) -> Novelty {
    reply_of(|reply| engine.score(request(memory, text), reply))
        .unwrap()
        .0
        .novelty
}

/// Returns texts of 1 to 40 words.
fn texts(count: usize) -> Vec<String> {
    let words: Vec<_> = WORDS.split(' ').skip(5).collect();
    let text = |index: usize| {
        let words = (0..1 + index * 7 % 40).map(|place| words[(index * place + index) % words.len()]);
        words.collect::<Vec<_>>().join(" ")
    };
    (0..count).map(text).collect()
}

#[test]
fn status_describes_a_model_in_memory_whose_bytes_are_freed() {
    let engine = engine(options());
    let status = reply_of(|reply| engine.status(reply));
    let sha256 = sha256(&WEIGHTS);
    let expected = Status {
        model: Some(format!("sha256:{sha256}")),
        model_sha256: Some(sha256),
        dtype: Some("fp32".into()),
        dimensions: Some(DIMENSIONS),
        engine: Some(EngineKind::BuiltIn),
        kernel: status.kernel.clone(),
        threads: THREADS,
        ..Status::default()
    };
    assert_eq!(status, expected);
    assert!(status.kernel.is_some());
    let options = engine.options.get().unwrap();
    assert!(options.model_in_memory.lock().unwrap().is_none());
}

#[test]
fn calls_are_settled_on_the_callers_thread_before_they_return() {
    let in_nowhere = EngineOptions {
        model_directory: Some("/nowhere/model".into()),
        model_configured: true,
        ..EngineOptions::default()
    };
    for (options, code) in [(in_nowhere, Some("ERR_MODEL_NOT_FOUND")), (options(), None)] {
        let shared = Arc::default();
        let worker = Worker::new(Arc::new(options), Arc::clone(&shared), true);
        let (sender, embeddings) = channel();
        for text in ["hello", "world"] {
            let sender = sender.clone();
            let reply = move |embedded: Result<_>| sender.send(embedded).unwrap();
            worker.queue.push(job::embed(text.into(), None, Box::new(reply)));
            worker.work_here();
            let embedded = embeddings.try_recv().unwrap();
            assert_eq!(embedded.err().map(|error| error.code()), code);
        }
        assert_eq!(shared.warning.get().map(|failure| failure.code), code);
    }
}

#[test]
fn batch_of_calls_gives_the_novelties_of_single_calls_in_their_order() {
    let texts = texts(60);
    let one_by_one = engine(options());
    for method in [Method::Prefix, Method::Full, Method::Lexical] {
        let memory_of_singles = memory(method);
        let singles: Vec<_> = texts
            .iter()
            .map(|text| novelty(&one_by_one, &memory_of_singles, text))
            .collect();
        // All calls wait while the model loads, and lanes take them then.
        let (side_by_side, memory) = (engine(options()), memory(method));
        let (sender, replies) = channel();
        for text in &texts {
            let sender = sender.clone();
            let reply = move |scored: Result<ComparedScore>| sender.send(scored.unwrap().0.novelty).unwrap();
            side_by_side.score(request(&memory, text), Box::new(reply));
        }
        drop(sender);
        let batch: Vec<_> = replies.iter().collect();
        assert_eq!(batch, singles, "{method:?}");
        assert_eq!(singles[0].basis, Basis::EmptyMemory);
        let again = novelty(&one_by_one, &memory_of_singles, &texts[50]);
        assert!(
            again.basis == Basis::Memory && again.value.abs() < 1e-6,
            "{again:?}"
        );
        assert!(side_by_side.take_warning().is_none());
    }
}

#[test]
fn reading_counts_tokens_and_says_whether_text_was_cut() {
    let engine = engine(options());
    let long = "a ".repeat(MOST_TOKENS);
    for (method, text, cut, tokens, truncated) in [
        (Method::Prefix, "hello world", false, Some(4), false),
        (Method::Prefix, "hello world", true, Some(4), true),
        (Method::Prefix, &*long, false, Some(MOST_TOKENS), true),
        (Method::Full, "hello world", false, Some(4), false),
        (Method::Full, "hello world", true, Some(4), true),
        (Method::Full, &long, false, Some(MOST_TOKENS), false),
        (Method::Lexical, &long, false, None, false),
        (Method::Lexical, "hello world", true, None, true),
    ] {
        let mut request = request(&memory(method), text);
        request.input.incomplete = cut;
        let scored = reply_of(|reply| engine.score(request, reply)).unwrap();
        let reading = scored.0.novelty.reading;
        assert_eq!(reading, Some(Reading { tokens, truncated }), "{method:?}");
    }
}

#[test]
fn embed_trace_returns_the_parts_that_a_store_compares() {
    let engine = engine(options());
    for (method, has_words, has_text) in [
        (Method::Prefix, false, true),
        (Method::Lexical, true, false),
        (Method::Full, true, true),
    ] {
        let comparable = reply_of(|reply| engine.embed_trace(request(&memory(method), "hello"), reply));
        let (request, comparable) = comparable.unwrap();
        assert!(request.input.source.is_none());
        let comparable = comparable.unwrap();
        let words = comparable.words.unwrap_or_default();
        assert_eq!(!words.is_empty(), has_words, "{method:?}");
        let origin = comparable.text.map(|text| text.origin);
        assert_eq!(origin.is_some(), has_text, "{method:?}");
        if let Some(origin) = origin {
            assert_eq!(origin.method.as_deref(), Some(method.name()));
            assert_eq!(origin.model.unwrap().dtype, "fp32");
        }
    }
    let mut cancelled = request(&memory(Method::Lexical), "hello");
    cancelled.memory = None;
    assert!(
        reply_of(|reply| engine.embed_trace(cancelled, reply))
            .unwrap()
            .1
            .is_none()
    );
}

#[test]
fn explained_novelty_has_words_only_if_asked_for() {
    let engine = engine(options());
    for method in [Method::Lexical, Method::Full] {
        let memory = memory(method);
        novelty(&engine, &memory, "hello world");
        for explained in [false, true] {
            let mut request = request(&memory, "hello world");
            request.explained = explained;
            request.remember = false;
            let scored = reply_of(|reply| engine.score(request, reply)).unwrap();
            let nearest = scored.0.novelty.nearest;
            assert_eq!(nearest.unwrap().words.is_some(), explained, "{method:?}");
        }
    }
}

#[test]
fn embed_gives_unit_vectors_and_refuses_cancelled_calls() {
    let engine = engine(options());
    let embed = |text: &str, call| reply_of(|reply| engine.embed(text.into(), call, reply));
    let hello: Box<Embedding> = embed("hello", None).unwrap();
    let length: f32 = hello.iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-5, "{length}");
    assert!(hello != embed("world", None).unwrap());
    let cancelled = Arc::new(Call::default());
    assert!(cancelled.cancel());
    assert_eq!(
        embed("hello", Some(Arc::clone(&cancelled))).unwrap_err().code(),
        "ERR_ABORTED"
    );
    let memory = memory(Method::Prefix);
    let mut request = request(&memory, "hello");
    request.call = Some(cancelled);
    let error = reply_of(|reply| engine.score(request, reply)).unwrap_err();
    assert_eq!(error.code(), "ERR_ABORTED");
    assert_eq!(novelty(&engine, &memory, "hello").basis, Basis::EmptyMemory);
    assert!(engine.take_warning().is_none());
}

/// Writes a model directory with these files of weights.
fn write_model(directory: &Path, weights: &[&str]) {
    for weights in weights {
        fs::write(directory.join(weights), &*WEIGHTS).unwrap();
    }
    for (name, text) in [
        ("tokenizer.json", small_json()),
        ("tokenizer_config.json", "{}".into()),
        (
            "config.json",
            r#"{"hidden_size": 384, "max_position_embeddings": 512}"#.into(),
        ),
    ] {
        fs::write(directory.join(name), text).unwrap();
    }
}

#[test]
fn engine_is_chosen_by_the_files_of_the_model() {
    let both = &["model.safetensors", "model.onnx"][..];
    let (builtin, onnxruntime) = (Some(EngineKind::BuiltIn), Some(EngineKind::OnnxRuntime));
    let auto = None;
    let (not_found, unsupported) = (Some("ERR_RUNTIME_UNUSABLE"), Some("ERR_MODEL_UNUSABLE"));
    for (weights, choice, configured, engine_kind, code) in [
        (&both[..1], auto, false, builtin, None),
        (both, auto, false, builtin, None),
        (both, builtin, false, builtin, None),
        (both, onnxruntime, false, onnxruntime, not_found),
        (&both[1..], auto, true, onnxruntime, not_found),
        (&both[1..], auto, false, onnxruntime, not_found),
        (&both[1..], builtin, false, None, unsupported),
        (&both[..1], onnxruntime, false, None, unsupported),
    ] {
        let directory = tempfile::tempdir().unwrap();
        write_model(directory.path(), weights);
        let engine = engine(EngineOptions {
            engine: choice,
            model_directory: Some(directory.path().into()),
            model_configured: configured,
            // Counts on arm64 alone.
            runtime_packaged: cfg!(not(target_arch = "aarch64")),
            threads: 1,
            ..EngineOptions::default()
        });
        let status = reply_of(|reply| engine.status(reply));
        let dtype = engine_kind.map(|_| "fp32");
        assert_eq!(
            (status.engine, status.dtype.as_deref()),
            (engine_kind, dtype),
            "{choice:?}"
        );
        let failure = status.failure.as_ref();
        assert_eq!(failure.map(|failure| failure.code), code, "{choice:?}");
        if code == not_found {
            assert!(failure.unwrap().reason.contains("none came with this program"));
        }
        // The absence of a runtime that nobody asked for is no warning.
        let is_silent = choice.is_none() && !configured && code == not_found;
        let warning = status.failure.filter(|_| !is_silent);
        assert_eq!(engine.take_warning(), warning, "{choice:?}");
        if code.is_none() {
            assert_eq!(status.model_sha256, Some(sha256(&WEIGHTS)));
            assert_eq!(status.model_directory.as_deref(), Some(directory.path()));
        }
    }
}

#[test]
fn engine_without_a_model_compares_words_alone() {
    let engine = Engine::default();
    assert!(!engine.is_configured());
    assert!(engine.configure(EngineOptions::default()) && engine.is_configured());
    assert!(!engine.can_compare(None));
    for (method, compares) in [
        (Method::Prefix, false),
        (Method::Lexical, true),
        (Method::Full, false),
    ] {
        let memory = memory(method);
        assert_eq!(engine.can_compare(Some(&memory)), compares, "{method:?}");
        let comparable = reply_of(|reply| engine.embed_trace(request(&memory, "hello"), reply));
        assert_eq!(comparable.unwrap().1.is_some(), compares, "{method:?}");
        let basis = if compares {
            Basis::EmptyMemory
        } else {
            Basis::NoEmbedder
        };
        assert_eq!(novelty(&engine, &memory, "hello").basis, basis, "{method:?}");
    }
    // No embedder was looked for.
    assert!(engine.inlet.get().is_none());
}

/// A network without shared passes, on this many threads. Its lanes count their texts, and fail for "world".
struct Failing(usize, Arc<AtomicUsize>);

impl Network for Failing {
    fn open_lane(&self, threads: usize) -> Result<Box<dyn Lane>> {
        Ok(Box::new(Self(threads, Arc::clone(&self.1))))
    }

    fn shape(&self) -> Option<Shape> {
        None
    }

    fn pass_tokens(&self) -> usize {
        0
    }
}

impl Lane for Failing {
    fn embed(&mut self, texts: &[&[u32]]) -> Result<Vec<Embedding>> {
        self.1.fetch_add(texts.len(), Ordering::Relaxed);
        let world = WORDS.split(' ').position(|word| word == "world").unwrap();
        if texts.concat().contains(&(world as u32)) {
            return Err(Error::Inference("as tested".into()));
        }
        Ok(vec![[0.0; DIMENSIONS]; texts.len()])
    }

    fn threads(&self) -> usize {
        self.0
    }

    fn kernel(&self) -> Option<String> {
        None
    }
}

fn failing(embedded: &Arc<AtomicUsize>) -> (Loaded, Box<dyn Lane>) {
    let open = || Ok(Box::new(Failing(1, Arc::clone(embedded))) as Box<dyn Network>);
    let tokenizer = || parse_tokenizer(small_json().as_bytes(), MOST_TOKENS);
    let (embedder, lane) = Embedder::load(open, tokenizer, 1).unwrap();
    let identity = Status::default().identity();
    (Loaded { embedder, identity }, lane)
}

#[test]
fn failing_text_costs_its_own_call_alone() {
    for (texts, expected, count) in [
        (&["world"][..], &["ERR_RUNTIME_UNUSABLE"][..], 1),
        (&["hello", "world"], &["", "ERR_RUNTIME_UNUSABLE"], 3),
    ] {
        let embedded = Arc::default();
        let (loaded, mut lane) = failing(&embedded);
        let (sender, replies) = channel();
        let job = |text: &&str| {
            let sender = sender.clone();
            let reply = move |result: Result<_>| {
                sender
                    .send(result.map_or_else(|error| error.code(), |_| ""))
                    .unwrap()
            };
            job::embed((*text).into(), None, Box::new(reply)).prepare(&loaded.embedder)
        };
        let jobs = texts.iter().map(job).collect();
        for settlement in job::embed_together(&loaded, &mut *lane, jobs) {
            settlement(&Shared::default());
        }
        assert_eq!(replies.try_iter().collect::<Vec<_>>(), expected);
        assert_eq!(embedded.load(Ordering::Relaxed), count, "{texts:?}");
    }
}

#[test]
fn embed_trace_warns_of_a_failure_and_raises_cancellation() {
    for (cancel, warning) in [(false, Some("ERR_RUNTIME_UNUSABLE")), (true, None)] {
        let embedded = Arc::default();
        let (loaded, mut lane) = failing(&embedded);
        let (sender, replies) = channel();
        let mut request = request(&memory(Method::Prefix), "world");
        let call = Arc::new(Call::default());
        request.call = Some(Arc::clone(&call));
        let settle = job::embedded(Box::new(move |reply| sender.send(reply).unwrap()));
        let job = job::of_trace(request, settle).prepare(&loaded.embedder);
        assert!(!cancel || call.cancel());
        let shared = Shared::default();
        for settlement in job::embed_together(&loaded, &mut *lane, vec![job]) {
            settlement(&shared);
        }
        let reply = replies.try_recv().unwrap();
        assert!(if cancel {
            matches!(reply, Err(Error::Aborted))
        } else {
            matches!(reply, Ok((_, None)))
        });
        let found = shared.warning.get().map(|failure| failure.code);
        assert_eq!(found, warning);
        assert_eq!(embedded.load(Ordering::Relaxed), usize::from(!cancel));
    }
}

#[test]
fn worker_divides_threads_among_lanes_and_jobs_among_passes() {
    let worker = |threads, embeds| {
        let options = EngineOptions { threads, ..options() };
        Worker::new(Arc::new(options), Arc::default(), embeds)
    };
    let (without_passes, _) = failing(&Arc::default());
    let (with_passes, _) = load::load(&options(), &Shared::default()).unwrap();
    for (loaded, threads, count, each) in [
        (&with_passes, 9, 9, 1),
        (&without_passes, 9, 4, 2),
        (&without_passes, 3, 3, 1),
    ] {
        let words = worker(threads, false);
        let worker = worker(threads, true);
        assert_eq!(worker.lanes_of(&loaded.embedder), count);
        let mut lanes = Vec::new();
        worker.open_lanes(&loaded.embedder, &mut lanes, count);
        assert_eq!(
            lanes.iter().map(|lane| lane.threads()).collect::<Vec<_>>(),
            vec![each; count]
        );
        assert_eq!((worker.threads(), words.threads()), (1, threads.min(4)));
    }
    // Each text has four tokens.
    for (room, most, expected) in [
        (0, 9, &[0][..]),
        (7, 9, &[0, 1]),
        (8, 9, &[0, 1]),
        (9, 9, &[0, 1, 2]),
        (9, 1, &[0]),
        (99, 9, &[0, 1, 2, 3]),
    ] {
        let worker = worker(1, true);
        for _ in 0..4 {
            worker
                .queue
                .push(job::embed("hello world".into(), None, Box::new(|_| ())));
        }
        let (numbers, jobs) = worker.take_for_a_pass(&with_passes.embedder, room, most);
        assert_eq!(
            (&*numbers, jobs.len()),
            (expected, expected.len()),
            "{room} {most}"
        );
    }
}

#[test]
fn lane_works_until_fewer_calls_wait_and_once_more() {
    for (least, left) in [(1, 0), (3, 1), (9, 7)] {
        let embedded = Arc::default();
        let (loaded, lane) = failing(&embedded);
        let worker = Worker::new(Arc::new(options()), Arc::default(), true);
        for _ in 0..8 {
            worker
                .queue
                .push(job::embed("world".into(), None, Box::new(|_| ())));
        }
        worker.work_side_by_side(&loaded, &mut [lane], least);
        assert_eq!(
            (
                worker.queue.wait_for_backlog(Duration::ZERO),
                embedded.load(Ordering::Relaxed)
            ),
            (left, 8 - left),
            "{least}"
        );
    }
}

#[test]
fn names_of_engines_are_those_of_the_options() {
    let names: Vec<_> = EngineKind::ALL.iter().map(|engine| engine.name()).collect();
    assert_eq!(names, ["builtin", "onnxruntime"]);
}
