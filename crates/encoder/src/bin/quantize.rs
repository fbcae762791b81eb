//! Writes the int8 file of a model: `quantize WEIGHTS IDS OUTPUT`.
//!
//! WEIGHTS is the official `model.safetensors`. IDS has the texts for calibration, one in a line, as token ids with spaces between
//! them; an empty file rounds every weight to its nearest byte. `model/build.py` runs this.

use std::{env, error::Error, fs, process::ExitCode};

use knowledgepulse_encoder::{Source, quantize};

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [weights, ids, output] = &arguments[..] else {
        return Err("usage: quantize WEIGHTS IDS OUTPUT".into());
    };
    let named = |path: &str, error: &dyn Error| format!("{path}: {error}");
    let lines = fs::read_to_string(ids).map_err(|error| named(ids, &error))?;
    let tokens = |line: &str| line.split_whitespace().map(str::parse).collect::<Result<_, _>>();
    let texts: Vec<Vec<u32>> = lines
        .lines()
        .map(tokens)
        .collect::<Result<_, _>>()
        .map_err(|error| named(ids, &error))?;
    let source = fs::File::open(weights).and_then(Source::file);
    let bytes = quantize(source.map_err(|error| named(weights, &error))?, &texts)
        .map_err(|error| named(weights, &error))?;
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
