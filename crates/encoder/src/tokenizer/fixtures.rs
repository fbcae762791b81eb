//! A tokenizer for tests, also of other crates.

#![allow(clippy::unwrap_used)] // A test fails by a panic.

use crate::Tokenizer;

/// The vocabulary of [`small`].
pub const WORDS: &str =
    "[PAD] [UNK] [CLS] [SEP] [MASK] a b ##a ##b c hello ##llo he world ! , ' σ ς ##σ ##ς ο 中 国 é e i 1 ##1";

/// Returns a tokenizer with a small vocabulary. The real vocabulary is tested where the model is installed.
pub fn small(max_length: usize) -> Tokenizer {
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
    Tokenizer::from_json(file.to_string().as_bytes(), max_length).unwrap()
}
