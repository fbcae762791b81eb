//! What the tests of the tokenizer and of its users share. It is a module of theirs, which `Tokenizer` is in scope of.

use proptest::prelude::*;

use super::Tokenizer;

/// The vocabulary of [`small`].
pub const WORDS: &str =
    "[PAD] [UNK] [CLS] [SEP] [MASK] a b ##a ##b c hello ##llo he world ! , ' σ ς ##σ ##ς ο 中 国 é e i 1 ##1";

/// A tokenizer with a small vocabulary. The real vocabulary is tested where the model is installed.
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

/// Texts in which every rule of the normaliser and every kind of breaker occurs.
pub fn nasty_text() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(
        "aAbB1 \t\n'.:^_-[]()!Σσςο\u{301}\u{345}\u{200d}\u{200b}\u{ad}\u{feff}\u{fffd}中国\u{f900}\u{20000}가힣İß👩\u{1f3fd}\u{302e}\u{1d16d}\u{0}\u{b}\u{a0}\u{3000}،۔ا\u{64b}"
            .chars()
            .collect::<Vec<_>>(),
    );
    let piece = prop_oneof![
        8 => nasty.prop_map(String::from),
        1 => prop::sample::select(vec!["[MASK]", "[SEP]", "[CLS]", "[MASK", "hello", "HELLO"]).prop_map(String::from),
        1 => any::<char>().prop_map(String::from),
        1 => (1usize..120).prop_map(|n| "a".repeat(n)),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}
