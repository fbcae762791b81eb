//! How far int8 is from single precision: of the embeddings, and of the scores that novelty makes of them.
//!
//! ```text
//! cargo run --release -p knowledgepulse-quantize --example accuracy -- MODEL INT8 IDS...
//! ```
//!
//! MODEL is the official `model.safetensors`, INT8 the file that `quantize` makes of it. Each file of token ids (a line for
//! each text; `accuracy.py` writes such files) is a set that is measured on its own: the score of a text is 0.35 times the novelty
//! among the texts before it, one minus the largest cosine to them.

use std::{error::Error, fs, sync::Arc};

use knowledgepulse_encoder::{Encoder, Model, Options};

/// The weight of novelty in a score.
const NOVELTY: f64 = 0.35;

fn texts(path: &str) -> Result<Vec<Vec<u32>>, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let line = |line: &str| line.split_whitespace().map(str::parse).collect::<Result<_, _>>();
    Ok(text.lines().map(line).collect::<Result<_, _>>()?)
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// The part of each text's score that depends on those before it.
fn scores(embeddings: &[Vec<f32>]) -> Vec<f64> {
    let similarity = |index: usize| {
        let earlier = embeddings[..index].iter();
        earlier
            .map(|other| cosine(other, &embeddings[index]))
            .fold(f64::MIN, f64::max)
    };
    (1..embeddings.len())
        .map(|index| NOVELTY * (1.0 - similarity(index)))
        .collect()
}

fn report(name: &str, texts: usize, mut cosines: Vec<f64>, mut scores: Vec<f64>) {
    let of = |numbers: &mut Vec<f64>| {
        numbers.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = numbers.len().saturating_sub(1) as f64;
            numbers.get((last * share) as usize).copied().unwrap_or(0.0)
        };
        format!("{:.2e} {:.2e} {:.2e}", at(0.5), at(0.99), at(1.0))
    };
    println!(
        "{name:<28} {texts:>4}   {}   {}",
        of(&mut cosines),
        of(&mut scores)
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let [model, int8, sets @ ..] = files.as_slice() else {
        return Err("usage: accuracy MODEL INT8 IDS...".into());
    };
    let encoder = |model| Encoder::new(Arc::new(model), Options::default());
    let mut floats = encoder(Model::open(model, 2)?)?;
    let mut bytes = encoder(Model::open(int8, 2)?)?;
    println!("set, texts, error of the cosine (median, 99 %, largest), difference of scores (the same)");
    for path in sets {
        let texts = texts(path)?;
        let (expected, found) = (floats.embed_batch(&texts)?, bytes.embed_batch(&texts)?);
        let pairs = expected.iter().zip(&found);
        let cosines = pairs.map(|(expected, found)| 1.0 - cosine(expected, found));
        let (expected_scores, found_scores) = (scores(&expected), scores(&found));
        let differences = expected_scores.iter().zip(&found_scores);
        let differences = differences.map(|(expected, found)| (expected - found).abs());
        report(path, texts.len(), cosines.collect(), differences.collect());
    }
    Ok(())
}
