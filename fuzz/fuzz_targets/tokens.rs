//! The tokenizer against one that takes whole texts and shares no code with it, and the reader that stops when enough
//! of a text is there against one that reads all of it.
//!
//! The input is text. A line is a part of a trace's text; a number in the first line says how often the parts are
//! repeated, so that short inputs get past the cut. U+E000 and U+E001 stand for lone surrogates.

#![no_main]

use std::{collections::HashMap, path::Path, sync::LazyLock};

use knowledgepulse_encoder::Tokenizer;
use knowledgepulse_embed::{MOST_TOKENS, sufficiency::Sufficiency};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{
    GeneralCategory::{Control, Format, NonspacingMark, PrivateUse, Surrogate},
    GeneralCategoryGroup, UnicodeGeneralCategory,
};

/// Texts longer than this say no more, and take long.
const MOST_UNITS: usize = 1 << 12;

static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../npm/all-minilm-l6-v2/tokenizer.json");
    std::fs::read(path).expect("`npm run setup` builds the model")
});
static TOKENIZER: LazyLock<Tokenizer> =
    LazyLock::new(|| Tokenizer::from_json(&FILE, MOST_TOKENS).expect("the model's tokenizer"));
static VOCABULARY: LazyLock<HashMap<String, u32>> = LazyLock::new(|| {
    let file: Value = serde_json::from_slice(&FILE).expect("JSON");
    serde_json::from_value(file["model"]["vocab"].clone()).expect("a vocabulary")
});
/// No longer piece is looked for.
static LONGEST_PIECE: LazyLock<usize> = LazyLock::new(|| {
    VOCABULARY
        .keys()
        .map(|piece| piece.chars().count())
        .max()
        .unwrap_or(0)
});

fuzz_target!(|bytes: &[u8]| {
    let input = String::from_utf8_lossy(bytes);
    let (first, rest) = input.split_once('\n').unwrap_or((&input, ""));
    let (repetitions, text) = match first.parse::<u16>() {
        Ok(repetitions) => (repetitions.max(1), rest),
        Err(_) => (1, &*input),
    };
    let parts: Vec<Vec<u16>> = text.split('\n').map(units).collect();
    let length: usize = parts.iter().map(|part| part.len() + 1).sum();
    let repetitions = usize::from(repetitions).min(MOST_UNITS / length);

    let mut sufficiency = Sufficiency::default();
    let (mut whole, mut prefix) = (Vec::new(), Vec::new());
    for _ in 0..repetitions.max(1) {
        for part in &parts {
            whole.extend(part);
            whole.push(u16::from(b' '));
            let needed = sufficiency.read(part);
            prefix.extend(&part[..needed]);
            prefix.push(u16::from(b' '));
        }
    }
    let whole = String::from_utf16_lossy(&whole);
    let prefix = String::from_utf16_lossy(&prefix);

    let (mut expected, truncated) = naive(&whole);
    expected.truncate(MOST_TOKENS);
    let found = TOKENIZER.encode(&whole);
    assert_eq!(found.truncated, truncated);
    assert_eq!(found.ids, expected);
    assert_eq!(TOKENIZER.encode(&prefix).ids, expected);
});

fn units(part: &str) -> Vec<u16> {
    let surrogate = |unit| match unit {
        0xe000 => 0xd800,
        0xe001 => 0xdc00,
        unit => unit,
    };
    part.encode_utf16().map(surrogate).collect()
}

/// The ids of a text without any cut, and whether there are too many. A text that is cut has no separator.
fn naive(text: &str) -> (Vec<u32>, bool) {
    let mut ids = vec![VOCABULARY["[CLS]"]];
    let mut rest = text;
    while let Some((at, literal)) = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        .iter()
        .filter_map(|literal| Some((rest.find(literal)?, literal)))
        .min()
    {
        pieces_of_words(&rest[..at], &mut ids);
        ids.push(VOCABULARY[*literal]);
        rest = &rest[at + literal.len()..];
    }
    pieces_of_words(rest, &mut ids);
    ids.push(VOCABULARY["[SEP]"]);
    let truncated = ids.len() > MOST_TOKENS;
    (ids, truncated)
}

fn pieces_of_words(text: &str, ids: &mut Vec<u32>) {
    let cleaned: String = text
        .chars()
        .flat_map(|c| match c {
            '\t' | '\n' | '\r' => vec![' '],
            '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => vec![' ', c, ' '],
            '\u{fffd}' => vec![],
            c if matches!(c.general_category(), Control | Format | PrivateUse | Surrogate) => vec![],
            c if c.is_whitespace() => vec![' '],
            c => vec![c],
        })
        .collect();
    let spaced: String = cleaned
        .to_lowercase()
        .nfd()
        .filter(|c| c.general_category() != NonspacingMark)
        .flat_map(|c| {
            let punctuation =
                c.is_ascii_punctuation() || c.general_category_group() == GeneralCategoryGroup::Punctuation;
            if punctuation { vec![' ', c, ' '] } else { vec![c] }
        })
        .collect();
    for word in spaced.split(' ').filter(|word| !word.is_empty()) {
        match pieces(&word.chars().collect::<Vec<_>>()) {
            Some(pieces) => ids.extend(pieces),
            None => ids.push(VOCABULARY["[UNK]"]),
        }
    }
}

/// The longest piece that the vocabulary has, then the longest one after it; `None` where there is none.
fn pieces(word: &[char]) -> Option<Vec<u32>> {
    if word.len() > 100 {
        return None;
    }
    let mut ids = Vec::new();
    let mut start = 0;
    while start < word.len() {
        let prefix = if start == 0 { "" } else { "##" };
        let ends = start + 1..=word.len().min(start + *LONGEST_PIECE);
        let (end, id) = ends.rev().find_map(|end| {
            let piece: String = prefix.chars().chain(word[start..end].iter().copied()).collect();
            Some((end, *VOCABULARY.get(&piece)?))
        })?;
        ids.push(id);
        start = end;
    }
    Some(ids)
}
