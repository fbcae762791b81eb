//! Tests of the engine with a small model of random weights.

use std::{
    fs,
    path::Path,
    sync::{LazyLock, Mutex, mpsc::channel},
    time::Instant,
};

use knowledgepulse_embed::{DIMENSIONS, Embedding, MOST_TOKENS, model::sha256};
use knowledgepulse_encoder::fixtures::{WORDS, small_json, small_model};
use knowledgepulse_index::{memory::Basis, method::Method, traces::TraceMemory, vectors::Options as Bounds};
use knowledgepulse_trace::fixtures::with_texts;

use super::*;
use crate::{Scorer, weights::Profiles};

const THREADS: usize = 3;

static WEIGHTS: LazyLock<Vec<u8>> = LazyLock::new(|| small_model(DIMENSIONS));

fn options() -> Options {
    let model = ModelInMemory::new(WEIGHTS.clone(), small_json().into());
    Options {
        model_in_memory: Some(model),
        threads: Some(THREADS),
        ..Options::default()
    }
}

fn engine(options: Options) -> Engine {
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
    if method == Method::Prefix {
        return Memory::of_vectors(Arc::default());
    }
    let traces = TraceMemory::new(method, Bounds::default());
    Memory::of_traces(Arc::new(Mutex::new(traces)), method)
}

fn request(memory: &Memory, text: &str) -> Request {
    let scorer = Scorer {
        memory: Some(memory.clone()),
        profiles: Profiles::default(),
    };
    let mut trace = with_texts(text, &[]);
    trace.label = Some(text.into());
    Request {
        summary: scorer.summarize(trace),
        memory: scorer.memory,
        uncompared: Novelty::NEUTRAL,
        remember: true,
        explained: false,
        call: None,
    }
}

/// Scores a text, and returns its novelty.
fn novelty(engine: &Engine, memory: &Memory, text: &str) -> Novelty {
    reply_of(|reply| engine.score(request(memory, text), reply))
        .unwrap()
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
fn status_describes_a_model_in_memory_which_is_loaded_once() {
    let options = options();
    let first = engine(options.clone());
    let status = reply_of(|reply| first.status(reply));
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
    let second = engine(options);
    let failure = reply_of(|reply| second.status(reply)).failure.unwrap();
    assert_eq!(failure.code, "ERR_INTERNAL");
    assert_eq!(second.take_warning(), Some(failure));
    // A memory is then not compared, at once.
    assert!(
        second
            .score_at_once(&request(&memory(Method::Prefix), "a"))
            .is_some()
    );
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
            let reply = move |scored: Result<Breakdown>| sender.send(scored.unwrap().novelty).unwrap();
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
        request.summary.incomplete = cut;
        let reading = reply_of(|reply| engine.score(request, reply))
            .unwrap()
            .novelty
            .reading;
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
        let comparable = comparable.unwrap().unwrap();
        assert_eq!(comparable.words.is_some(), has_words, "{method:?}");
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
            let nearest = reply_of(|reply| engine.score(request, reply))
                .unwrap()
                .novelty
                .nearest;
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
        embed("hello", Some(Arc::clone(&cancelled))).unwrap_err().code,
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

#[test]
fn commit_and_roll_back_follow_the_calls_before() {
    let engine = engine(options());
    for method in [Method::Prefix, Method::Lexical, Method::Full] {
        for (cancel, basis) in [(false, Basis::Memory), (true, Basis::EmptyMemory)] {
            let memory = memory(method);
            let draft = memory.with_draft(Bounds::default());
            let call = Arc::new(Call::default());
            let (sender, scored) = channel();
            let mut request_in_draft = request(&draft, "hello");
            request_in_draft.call = Some(Arc::clone(&call));
            engine.score(request_in_draft, Box::new(move |_| sender.send(()).unwrap()));
            if cancel {
                scored.recv().unwrap();
                assert!(call.cancel());
            }
            let committed = reply_of(|reply| engine.commit(draft.clone(), call, reply));
            assert_eq!(committed.is_err(), cancel, "{method:?}");
            assert_eq!(novelty(&engine, &memory, "hello").basis, basis, "{method:?}");
        }
        let memory = memory(method);
        let draft = memory.with_draft(Bounds::default());
        novelty(&engine, &draft, "hello");
        engine.roll_back(draft.clone());
        reply_of(|reply| engine.after_others(&memory, reply));
        if method != Method::Prefix {
            draft.commit(Instant::now()).unwrap();
            assert_eq!(novelty(&engine, &memory, "hello").basis, Basis::EmptyMemory);
        }
    }
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
    use EngineChoice::{Auto, BuiltIn, OnnxRuntime};
    let both = &["model.safetensors", "model.onnx"][..];
    let (builtin, onnxruntime) = (Some(EngineKind::BuiltIn), Some(EngineKind::OnnxRuntime));
    let (not_found, unsupported) = (Some("ERR_RUNTIME_NOT_FOUND"), Some("ERR_MODEL_UNSUPPORTED"));
    for (weights, choice, configured, engine_kind, code) in [
        (&both[..1], Auto, false, builtin, None),
        (both, BuiltIn, false, builtin, None),
        (both, OnnxRuntime, false, onnxruntime, not_found),
        (&both[1..], Auto, true, onnxruntime, not_found),
        (&both[1..], Auto, false, onnxruntime, not_found),
        (&both[1..], BuiltIn, false, None, unsupported),
        (&both[..1], OnnxRuntime, false, None, unsupported),
    ] {
        let directory = tempfile::tempdir().unwrap();
        write_model(directory.path(), weights);
        let engine = engine(Options {
            engine: choice,
            model_directory: Some(directory.path().into()),
            model_configured: configured,
            threads: Some(1),
            ..Options::default()
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
        // The absence of a runtime that nobody asked for is no warning.
        let is_silent = choice == Auto && !configured && code == not_found;
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
    assert!(engine.configure(Options::default()) && engine.is_configured());
    assert!(!engine.can_compare(None));
    for (method, compares) in [
        (Method::Prefix, false),
        (Method::Lexical, true),
        (Method::Full, false),
    ] {
        let memory = memory(method);
        assert_eq!(engine.can_compare(Some(&memory)), compares, "{method:?}");
        let comparable = reply_of(|reply| engine.embed_trace(request(&memory, "hello"), reply));
        assert_eq!(comparable.unwrap().is_some(), compares, "{method:?}");
        let draft = memory.with_draft(Bounds::default());
        let basis = if compares {
            Basis::EmptyMemory
        } else {
            Basis::NoEmbedder
        };
        assert_eq!(novelty(&engine, &draft, "hello").basis, basis, "{method:?}");
        let call = Arc::new(Call::default());
        reply_of(|reply| engine.commit(draft, call, reply)).unwrap();
        let basis = if compares {
            Basis::Memory
        } else {
            Basis::NoEmbedder
        };
        assert_eq!(novelty(&engine, &memory, "hello").basis, basis, "{method:?}");
    }
    // No embedder was looked for.
    assert!(engine.inlet.get().is_none());
}

#[test]
fn names_of_engines_are_those_of_the_options() {
    let names = EngineChoice::ALL.map(EngineChoice::name);
    assert_eq!(names, ["auto", "builtin", "onnxruntime"]);
    assert_eq!(
        format!("{:?}", ModelInMemory::new(vec![1], vec![])),
        "ModelInMemory"
    );
}
