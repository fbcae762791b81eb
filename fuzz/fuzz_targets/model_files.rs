//! Any bytes as the JSON files of a model directory: errors with a code, or a tokenizer that works.
//!
//! The input is the files `manifest.json`, `config.json`, `tokenizer_config.json` and `tokenizer.json`, with a line
//! `----` between them. One that is empty is absent.

#![no_main]

use std::{
    fs,
    path::Path,
    sync::LazyLock,
};

use knowledgepulse_embed::{model::ModelFiles, parse_tokenizer};
use knowledgepulse_error::Result;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary directory"));

const FILES: [&str; 4] = [
    "manifest.json",
    "config.json",
    "tokenizer_config.json",
    "tokenizer.json",
];

const TEXT: &str =
    "Hello, W\u{f6}rld! [MASK] \u{4e2d}\u{56fd} \u{3a3} ##a aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fuzz_target!(|bytes: &[u8]| {
    let input = String::from_utf8_lossy(bytes);
    let mut parts = input.split("\n----\n");
    let directory = DIRECTORY.path();
    fs::write(directory.join("model.onnx"), "model").expect("writable");
    for name in FILES {
        let path = directory.join(name);
        match parts.next().unwrap_or("") {
            "" => drop(fs::remove_file(path)),
            contents => fs::write(path, contents).expect("writable"),
        }
    }
    if let Err(error) = use_model(directory) {
        assert!(error.code().starts_with("ERR_"));
        assert!(!error.to_string().is_empty());
    }
});

fn use_model(directory: &Path) -> Result<()> {
    let files = ModelFiles::find(directory)?;
    assert!((2..=512).contains(&files.max_length));
    let tokenizer = parse_tokenizer(&files.read_tokenizer()?, files.max_length)?;
    let tokens = tokenizer.encode(TEXT);
    assert!(tokens.ids.len() <= files.max_length);
    files.weights_sha256()?;
    Ok(())
}
