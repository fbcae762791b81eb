//! Writes the int8 file of a model: `quantize WEIGHTS IDS OUTPUT`.
//!
//! WEIGHTS is the official `model.safetensors`. IDS has the texts for calibration, one in a line, as token ids with spaces between
//! them; an empty file rounds every weight to its nearest byte. `model/build.py` runs this.

mod calibration;
mod decomposition;
mod quantize;
mod rounding;
#[cfg(test)]
mod tests;

use std::{env, error::Error, fs, process::ExitCode};

use quantize::quantize;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

fn run() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [weights, ids, output] = &arguments[..] else {
        return Err("usage: quantize WEIGHTS IDS OUTPUT".into());
    };
    let named = |path: &str, error: &dyn Error| format!("{path}: {error}");
    let lines = fs::read_to_string(ids).map_err(|error| named(ids, &error))?;
    let tokens = |line: &str| line.split_whitespace().map(str::parse).collect::<Result<_, _>>();
    let texts: Result<Vec<Vec<u32>>, _> = lines.lines().map(tokens).collect();
    let texts = texts.map_err(|error| named(ids, &error))?;
    let bytes = fs::read(weights).map_err(|error| named(weights, &error))?;
    let bytes = quantize(bytes, &texts).map_err(|error| named(weights, &*error))?;
    fs::write(output, bytes).map_err(|error| named(output, &error))?;
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quantize: {error}");
            ExitCode::FAILURE
        }
    }
}
