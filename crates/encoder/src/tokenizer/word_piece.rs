//! `WordPiece`: a word becomes the longest piece that it begins with, then the longest that the rest begins with, and so on.

use std::{collections::HashMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

use crate::error::{Error, Result};

/// A vocabulary of pieces of words.
#[derive(Debug)]
pub(super) struct WordPiece {
    /// The pieces that begin a word.
    beginnings: Pieces,
    /// Pieces that continue a word, without the prefix that marks them.
    continuations: Pieces,
    unknown: u32,
    /// Longer words, in characters, are unknown.
    pub longest_word: usize,
    pub largest_id: u32,
}

#[derive(Debug, Default)]
struct Pieces {
    ids: HashMap<String, u32>,
    /// The length of the longest, in bytes.
    longest: usize,
}

/// The `model` of a `tokenizer.json`.
#[derive(Deserialize)]
struct File {
    r#type: String,
    unk_token: String,
    continuing_subword_prefix: String,
    max_input_chars_per_word: usize,
    vocab: Entries,
}

/// The entries of a JSON object, in their order.
struct Entries(Vec<(String, u32)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Entries;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object of pieces and their ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl Pieces {
    fn insert(&mut self, piece: String, id: u32) {
        self.longest = self.longest.max(piece.len());
        self.ids.insert(piece, id);
    }

    /// Returns the longest piece that `text` begins with: its length in bytes, and its id.
    fn longest_prefix(&self, text: &str) -> Option<(usize, u32)> {
        let mut length = text.floor_char_boundary(self.longest);
        while length > 0 {
            if let Some(&id) = self.ids.get(&text[..length]) {
                return Some((length, id));
            }
            length = text.floor_char_boundary(length - 1);
        }
        None
    }
}

impl WordPiece {
    /// Reads the `model` of a `tokenizer.json`.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] if it is malformed or no WordPiece.
    pub fn from_json(json: &str) -> Result<Self> {
        let unsupported = |what: String| Error::Tokenizer(format!("unsupported model: {what}"));
        let file: File = serde_json::from_str(json).map_err(|error| unsupported(error.to_string()))?;
        if file.r#type != "WordPiece" {
            return Err(unsupported(format!("{}, not WordPiece", file.r#type)));
        }
        let (mut beginnings, mut continuations) = (Pieces::default(), Pieces::default());
        let mut largest_id = 0;
        for (mut piece, id) in file.vocab.0 {
            largest_id = largest_id.max(id);
            if let Some(rest) = piece.strip_prefix(&file.continuing_subword_prefix) {
                continuations.insert(rest.to_owned(), id);
            }
            piece.shrink_to_fit();
            beginnings.insert(piece, id);
        }
        let unknown = beginnings.ids.get(&file.unk_token).copied();
        Ok(Self {
            unknown: unknown.ok_or_else(|| unsupported("the vocabulary lacks its unknown token".into()))?,
            beginnings,
            continuations,
            longest_word: file.max_input_chars_per_word,
            largest_id,
        })
    }

    /// Returns the id of a whole piece, with the prefix if it continues a word.
    pub fn id(&self, piece: &str) -> Option<u32> {
        self.beginnings.ids.get(piece).copied()
    }

    /// Appends the pieces of `word` to `ids`, or the unknown token if there is a part that no piece fits.
    pub fn tokenize(&self, word: &str, ids: &mut Vec<u32>) {
        let before = ids.len();
        let mut rest = word;
        let mut pieces = &self.beginnings;
        // A word has at most as many characters as bytes.
        let mut fits = word.len() <= self.longest_word || word.chars().count() <= self.longest_word;
        while fits && !rest.is_empty() {
            if let Some((length, id)) = pieces.longest_prefix(rest) {
                ids.push(id);
                rest = &rest[length..];
                pieces = &self.continuations;
            } else {
                fits = false;
            }
        }
        if !fits {
            ids.truncate(before);
            ids.push(self.unknown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The longest pieces first, as section 3.3 of "Japanese and Korean Voice Search" (Schuster and Nakajima, 2012) and BERT's own tokenizer take them.
    fn longest_first(vocabulary: &[String], longest_word: usize, word: &str) -> Vec<u32> {
        let letters: Vec<char> = word.chars().collect();
        let id_of = |piece: String| vocabulary.iter().position(|other| *other == piece);
        let mut ids = Vec::new();
        let mut start = 0;
        while start < letters.len() && letters.len() <= longest_word {
            let prefix = if start == 0 { "" } else { "##" };
            let found = (start + 1..=letters.len()).rev().find_map(|end| {
                let piece: String = letters[start..end].iter().collect();
                Some((end, id_of(format!("{prefix}{piece}"))? as u32))
            });
            let Some((end, id)) = found else { break };
            ids.push(id);
            start = end;
        }
        if start < letters.len() {
            vec![id_of("[UNK]".to_owned()).unwrap() as u32]
        } else {
            ids
        }
    }

    proptest! {
        #[test]
        fn pieces_are_the_longest_that_the_vocabulary_has(
            pieces in prop::collection::btree_set("(##)?[abé]{1,3}|##", 0..20),
            words in prop::collection::vec("[abéc#]{1,12}", 1..20),
            longest_word in 0_usize..12,
        ) {
            let vocabulary: Vec<String> = pieces.into_iter().chain(["[UNK]".to_owned()]).collect();
            let ids: serde_json::Map<_, _> =
                vocabulary.iter().enumerate().map(|(id, piece)| (piece.clone(), id.into())).collect();
            let json = serde_json::json!({
                "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": longest_word, "vocab": ids,
            })
            .to_string();
            let ours = WordPiece::from_json(&json).unwrap();
            for word in &words {
                let mut ids = Vec::new();
                ours.tokenize(word, &mut ids);
                prop_assert_eq!(ids, longest_first(&vocabulary, longest_word, word), "{}", word);
            }
        }
    }
}
