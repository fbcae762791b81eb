//! Measures passes of kernels in turns, and compares the bits of their embeddings: a program for other machines.
//!
//! ```text
//! cargo run --release -p knowledgepulse-encoder --example passes -- MODEL KERNELS TOKENS THREADS SECONDS
//! ```
//!
//! MODEL is a `model.safetensors`. KERNELS, TOKENS and THREADS are lists with commas: `avx512-vnni,avx512-amx 15,54 1,2`. Each
//! combination of tokens and threads takes SECONDS, during which the kernels take turns. A line has the least and the median time
//! of a pass for each kernel, in milliseconds. If the embeddings of an int8 model differ, the program fails.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use knowledgepulse_encoder::{Encoder, Kernel, Model, Options, Precision};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, kernels, tokens, threads, seconds] = arguments.as_slice() else {
        return Err("usage: passes MODEL KERNELS TOKENS THREADS SECONDS".into());
    };
    let kernels: Vec<Kernel> = kernels.split(',').filter_map(Kernel::from_name).collect();
    let tokens: Vec<usize> = tokens.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let threads: Vec<usize> = threads.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let limit = Duration::from_secs_f64(seconds.parse()?);
    let model = Arc::new(Model::open(path, 2)?);
    println!("tokens threads kernel least median");
    for threads in threads {
        let encoder = |kernel: &Kernel| {
            let mut options = Options::default();
            options.kernel = Some(*kernel);
            options.threads = threads;
            Encoder::new(Arc::clone(&model), options)
        };
        let mut encoders = kernels.iter().map(encoder).collect::<Result<Vec<_>, _>>()?;
        for &tokens in &tokens {
            let text: Vec<u32> = (0..tokens)
                .map(|index| (index * 7919 % model.shape().vocabulary) as u32)
                .collect();
            let mut times = vec![Vec::new(); kernels.len()];
            let mut first: Option<Vec<f32>> = None;
            let start = Instant::now();
            while start.elapsed() < limit {
                for (encoder, times) in encoders.iter_mut().zip(&mut times) {
                    // Each turn begins with a pass that brings the weights back into the caches.
                    for turn in 0..4 {
                        let start = Instant::now();
                        let embedding = encoder.embed(&text)?;
                        if turn > 0 {
                            times.push(start.elapsed().as_secs_f64() * 1e3);
                        }
                        let first = first.get_or_insert_with(|| embedding.clone());
                        let is_same = first
                            .iter()
                            .zip(&embedding)
                            .all(|(a, b)| a.to_bits() == b.to_bits());
                        if !is_same && model.precision() == Precision::Int8 {
                            return Err(format!("{} differs: {tokens} tokens", encoder.kernel()).into());
                        }
                    }
                }
            }
            for (kernel, times) in kernels.iter().zip(&mut times) {
                times.sort_by(f64::total_cmp);
                println!(
                    "{tokens} {threads} {kernel} {:.3} {:.3}",
                    times[0],
                    times[times.len() / 2]
                );
            }
        }
    }
    Ok(())
}
