//! A tokenizer and a model for tests, also of other crates.

#![allow(clippy::unwrap_used)] // A test fails by a panic.

use safetensors::tensor::{Dtype, TensorView, serialize};

use crate::Tokenizer;

/// The vocabulary of [`small`].
pub const WORDS: &str =
    "[PAD] [UNK] [CLS] [SEP] [MASK] a b ##a ##b c hello ##llo he world ! , ' σ ς ##σ ##ς ο 中 国 é e i 1 ##1";

/// Returns a tokenizer with a small vocabulary. The real vocabulary is tested where the model is installed.
pub fn small(max_length: usize) -> Tokenizer {
    Tokenizer::from_json(small_json().as_bytes(), max_length).unwrap()
}

/// Returns the `tokenizer.json` of [`small`].
pub fn small_json() -> String {
    let vocabulary: serde_json::Map<String, serde_json::Value> = WORDS
        .split(' ')
        .enumerate()
        .map(|(id, word)| (word.to_owned(), id.into()))
        .collect();
    let added: Vec<_> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        .iter()
        .enumerate()
        .map(|(id, content)| serde_json::json!({"id": id, "content": content}))
        .collect();
    let file = serde_json::json!({
        "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                       "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary},
    });
    file.to_string()
}

/// Returns the `model.safetensors` of a model with one layer of `hidden` dimensions, for the words of [`small`] and texts of up to 512
/// tokens.
pub fn small_model(hidden: usize) -> Vec<u8> {
    const INNER: usize = 32;
    let layer = "encoder.layer.0";
    let mut tensors = vec![
        (
            "embeddings.word_embeddings.weight".to_owned(),
            vec![WORDS.split(' ').count(), hidden],
        ),
        (
            "embeddings.position_embeddings.weight".to_owned(),
            vec![512, hidden],
        ),
        (
            "embeddings.token_type_embeddings.weight".to_owned(),
            vec![2, hidden],
        ),
    ];
    for (name, outputs, inputs) in [
        ("attention.self.query", hidden, hidden),
        ("attention.self.key", hidden, hidden),
        ("attention.self.value", hidden, hidden),
        ("attention.output.dense", hidden, hidden),
        ("intermediate.dense", INNER, hidden),
        ("output.dense", hidden, INNER),
    ] {
        tensors.push((format!("{layer}.{name}.weight"), vec![outputs, inputs]));
        tensors.push((format!("{layer}.{name}.bias"), vec![outputs]));
    }
    for norm in [
        "embeddings",
        &format!("{layer}.attention.output"),
        &format!("{layer}.output"),
    ] {
        tensors.push((format!("{norm}.LayerNorm.weight"), vec![hidden]));
        tensors.push((format!("{norm}.LayerNorm.bias"), vec![hidden]));
    }
    let mut random = 1_u32;
    let bytes: Vec<_> = tensors
        .into_iter()
        .map(|(name, shape)| {
            let numbers = (0..shape.iter().product()).flat_map(|_: usize| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let number = f32::from(random.to_be_bytes()[0]) / 256.0 - 0.5;
                number.to_le_bytes()
            });
            (name, shape, numbers.collect::<Vec<u8>>())
        })
        .collect();
    let views = bytes
        .iter()
        .map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
    serialize(views, None).unwrap()
}
