//! Embeds texts, and tells how new each is among those before it: a program that shows whether another platform computes the same.
//!
//! ```text
//! cargo run --release -p knowledgepulse-encoder --example embed -- MODEL IDS
//! ```
//!
//! MODEL is a `model.safetensors`, the official one or one in int8. IDS is a file of token ids, a line for each text. Each line of
//! the output is for a text: its novelty, one minus the largest cosine to those before it, and then its embedding, each number as
//! the eight hexadecimal digits of its bits.

use std::{error::Error, fs, sync::Arc};

use knowledgepulse_encoder::{Encoder, Model, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let [path, ids] = files.as_slice() else {
        return Err("usage: embed MODEL IDS".into());
    };
    let model = Model::open(path, 2)?;
    let mut encoder = Encoder::new(Arc::new(model), Options::default())?;
    let mut before: Vec<Vec<f32>> = Vec::new();
    for line in fs::read_to_string(ids)?.lines() {
        let tokens = line
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<Vec<u32>, _>>()?;
        let embedding = encoder.embed(&tokens)?;
        let cosine = |other: &Vec<f32>| -> f32 { other.iter().zip(&embedding).map(|(a, b)| a * b).sum() };
        let novelty = 1.0 - before.iter().map(cosine).fold(0.0, f32::max);
        let digits: String = embedding
            .iter()
            .map(|number| format!("{:08x}", number.to_bits()))
            .collect();
        println!("{novelty} {digits}");
        before.push(embedding);
    }
    Ok(())
}
