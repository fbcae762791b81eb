//! From text to token ids, exactly as the tokenizer of transformers.js 3 produces them.
//!
//! The steps differ from those of the `tokenizers` crate for three reasons. Its BERT normaliser is not that of
//! transformers.js (which leaves ideographs beyond the Basic Multilingual Plane unspaced, lower-cases a final sigma by context,
//! and knows other Unicode versions). It works through the whole text before it cuts: here the work ends with the last token
//! that is kept, however long the text is. And it takes longer to load its vocabulary than the first embedding takes. In the
//! tests it is the second opinion about [`word_piece`].

mod word_piece;
mod words;

use aho_corasick::{AhoCorasick, MatchKind};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use word_piece::WordPiece;
use words::Words;
pub use words::{is_breaker, is_ideograph, is_space, is_visible};

/// The least number of bytes in a block, which ends at the next breaker after that. It is large enough to make the fixed cost of a
/// block negligible, and small compared with the text of 512 tokens.
const BLOCK_BYTES: usize = 1024;

/// The token ids of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// `[CLS]`, the word pieces, and `[SEP]` unless the text was cut; never more than the maximum length.
    pub ids: Vec<u32>,
    /// Whether the text had more tokens than the maximum length.
    pub truncated: bool,
}

/// An uncased BERT WordPiece tokenizer. Any number of threads may use it at once.
#[derive(Debug)]
pub struct Tokenizer {
    word_piece: WordPiece,
    /// Finds the literals of the special tokens: `[MASK]` in a text is the mask token.
    literals: AhoCorasick,
    /// Token ids in the order of the patterns of `literals`.
    literal_ids: Vec<u32>,
    classification: u32,
    separator: u32,
    max_length: usize,
}

/// The parts of `tokenizer.json` that are read. Its truncation and padding (both 128 for this model) are ignored on purpose,
/// because the SDK's tokenizer ignores them too.
#[derive(Deserialize)]
struct TokenizerFile<'j> {
    added_tokens: Vec<AddedToken>,
    normalizer: Normalizer,
    pre_tokenizer: Typed,
    #[serde(borrow)]
    model: &'j RawValue,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
}

impl AddedToken {
    /// Returns whether [`Tokenizer::encode`] would find this literal nowhere or everywhere.
    fn is_unsupported(&self) -> bool {
        self.lstrip || self.rstrip || self.content.is_empty() || self.content.chars().skip(1).any(is_breaker)
    }
}

#[derive(Deserialize)]
struct Typed {
    r#type: String,
}

#[derive(Deserialize)]
struct Normalizer {
    r#type: String,
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: Option<bool>,
    lowercase: bool,
}

impl Normalizer {
    /// Returns whether this is the normaliser that [`words`] implements.
    fn is_bert_uncased(&self) -> bool {
        self.r#type == "BertNormalizer"
            && self.clean_text
            && self.handle_chinese_chars
            && self.strip_accents != Some(false)
            && self.lowercase
    }
}

impl Tokenizer {
    /// Reads the text of a `tokenizer.json`. Texts are cut to `max_length` tokens, special ones included.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the file is malformed or describes anything but an uncased BERT WordPiece
    /// tokenizer.
    pub fn from_json(json: &[u8], max_length: usize) -> Result<Self> {
        let file: TokenizerFile =
            serde_json::from_slice(json).map_err(|error| Error::Tokenizer(error.to_string()))?;
        let unsupported = |what: &str| Err(Error::Tokenizer(format!("unsupported {what}")));
        if !file.normalizer.is_bert_uncased() {
            return unsupported("normalizer: expected an uncased BertNormalizer");
        }
        if file.pre_tokenizer.r#type != "BertPreTokenizer" {
            return unsupported("pre_tokenizer: expected BertPreTokenizer");
        }
        let word_piece = WordPiece::from_json(file.model.get())?;
        if file.added_tokens.iter().any(AddedToken::is_unsupported) {
            return unsupported("added token");
        }

        let literals = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(file.added_tokens.iter().map(|token| &token.content))
            .map_err(|error| Error::Tokenizer(error.to_string()))?;
        let special = |name: &str| {
            let added = file.added_tokens.iter().find(|token| token.content == name);
            added
                .map(|token| token.id)
                .or_else(|| word_piece.id(name))
                .ok_or_else(|| Error::Tokenizer(format!("no {name} token")))
        };
        Ok(Self {
            classification: special("[CLS]")?,
            separator: special("[SEP]")?,
            literal_ids: file.added_tokens.iter().map(|token| token.id).collect(),
            literals,
            word_piece,
            max_length,
        })
    }

    /// Returns the largest id that a text can get: a model needs a larger vocabulary.
    #[must_use]
    pub fn largest_id(&self) -> u32 {
        let literals = self.literal_ids.iter().copied();
        literals.fold(self.word_piece.largest_id, u32::max)
    }

    /// Lowers the maximum length to `positions`, if it is higher: a model takes no more tokens.
    pub fn limit_to(&mut self, positions: usize) {
        self.max_length = self.max_length.min(positions);
    }

    /// Tokenizes `text` up to the maximum length.
    ///
    /// As in transformers.js, the cut comes after the special tokens are added, so a text that is too long loses its `[SEP]`: of 512
    /// tokens, `[CLS]` and 511 word pieces remain.
    #[must_use]
    pub fn encode(&self, text: &str) -> Tokens {
        self.encode_blocks(text, BLOCK_BYTES)
    }

    fn encode_blocks(&self, text: &str, block_bytes: usize) -> Tokens {
        let mut ids = Ids {
            tokenizer: self,
            ids: Vec::with_capacity(self.max_length.min(text.len() + 2)),
            most: self.max_length,
        };
        ids.ids.push(self.classification);
        self.encode_into(&mut ids, text, block_bytes);
        // Whether the text was cut: it was if there is no room for the separator.
        let truncated = ids.is_full();
        if !truncated {
            ids.ids.push(self.separator);
        }
        Tokens {
            ids: ids.ids,
            truncated,
        }
    }

    fn encode_into(&self, ids: &mut Ids, text: &str, block_bytes: usize) {
        let mut words = Words::new(self.word_piece.longest_word);
        for block in words::blocks(text, block_bytes) {
            let mut start = 0;
            for literal in self.literals.find_iter(block) {
                words.push_section(&block[start..literal.start()], &mut |word| ids.push_word(word));
                words.end(&mut |word| ids.push_word(word));
                ids.push(self.literal_ids[literal.pattern().as_usize()]);
                if ids.is_full() {
                    return;
                }
                start = literal.end();
            }
            words.push_section(&block[start..], &mut |word| ids.push_word(word));
            if ids.is_full() {
                return;
            }
        }
        words.end(&mut |word| ids.push_word(word));
    }
}

/// The ids that were collected so far, up to the maximum length.
struct Ids<'t> {
    tokenizer: &'t Tokenizer,
    ids: Vec<u32>,
    most: usize,
}

impl Ids<'_> {
    fn is_full(&self) -> bool {
        self.ids.len() >= self.most
    }

    fn push(&mut self, id: u32) {
        if !self.is_full() {
            self.ids.push(id);
        }
    }

    fn push_word(&mut self, word: &str) {
        if !self.is_full() {
            self.tokenizer.word_piece.tokenize(word, &mut self.ids);
            self.ids.truncate(self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, small};
    use crate::nasty_text::nasty_text;
    use proptest::prelude::*;

    fn pieces(text: &str) -> Vec<String> {
        let ids = small(512).encode(text).ids.into_iter();
        let words: Vec<&str> = fixtures::WORDS.split(' ').collect();
        ids.map(|id| words[id as usize].to_owned()).collect()
    }

    fn middle(text: &str) -> String {
        let pieces = pieces(text);
        pieces[1..pieces.len() - 1].join(" ")
    }

    #[test]
    fn splits_words_punctuation_and_pieces() {
        assert_eq!(pieces("Hello, world!").join(" "), "[CLS] hello , world ! [SEP]");
        assert_eq!(middle("hello hellox heb"), "hello [UNK] he ##b");
        assert_eq!(middle(""), "");
        assert_eq!(middle("\t \n"), "");
    }

    #[test]
    fn special_token_literals_are_tokens() {
        assert_eq!(middle("a[MASK]b"), "a [MASK] b");
        assert_eq!(middle("[SEP][SEP]"), "[SEP] [SEP]");
        // A literal in lower case is ordinary text, and so is a broken one.
        assert_eq!(middle("[mask]"), "[UNK] [UNK] [UNK]");
        assert_eq!(middle("[MA\u{200b}SK]"), "[UNK] [UNK] [UNK]");
    }

    #[test]
    fn accents_case_and_invisible_characters_vanish() {
        assert_eq!(middle("É e\u{301} \u{130}"), "e e i");
        assert_eq!(
            middle("a\u{0}b a\u{200d}b a\u{fffd}b a\u{ad}b"),
            "a ##b a ##b a ##b a ##b"
        );
        // A line tabulation is a control character, so it joins; a no-break space is a space.
        assert_eq!(
            middle("a\u{b}b a\u{a0}b a\u{85}b a\u{3000}b"),
            "a ##b a b a ##b a b"
        );
    }

    #[test]
    fn final_sigma_follows_its_context() {
        assert_eq!(middle("ΟΣ ΟΣΟ Σ"), "ο ##ς [UNK] σ");
        // An apostrophe is skipped when looking for the next letter; a literal ends the context.
        assert_eq!(middle("ΟΣ'Ο"), "ο ##σ ' ο");
        assert_eq!(middle("ΟΣ[MASK]Ο"), "ο ##ς [MASK] ο");
    }

    #[test]
    fn ideographs_are_words_within_the_basic_plane_only() {
        assert_eq!(middle("中国a"), "中 国 a");
        assert_eq!(middle("a\u{20000}a"), "[UNK]");
    }

    #[test]
    fn words_over_a_hundred_characters_are_unknown() {
        assert_eq!(middle(&"a".repeat(100)).split(' ').count(), 100);
        assert_eq!(middle(&"a".repeat(101)), "[UNK]");
        assert_eq!(middle(&format!("{} b", "a".repeat(5000))), "[UNK] b");
    }

    #[test]
    fn the_cut_drops_the_separator() {
        let tokenizer = small(8);
        let encode = |words: usize| tokenizer.encode(&"a ".repeat(words));
        assert_eq!(encode(6).ids, [2, 5, 5, 5, 5, 5, 5, 3]);
        assert!(!encode(6).truncated);
        assert_eq!(encode(7).ids, [2, 5, 5, 5, 5, 5, 5, 5]);
        assert!(encode(7).truncated);
        assert_eq!(encode(7), encode(1_000_000));
    }

    #[test]
    fn other_tokenizers_are_refused() {
        for (json, message) in [
            ("", "EOF"),
            ("{}", "missing field"),
            (
                r#"{"added_tokens":[],"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":false},"pre_tokenizer":{"type":"BertPreTokenizer"},"model":{}}"#,
                "normalizer",
            ),
            (
                r#"{"added_tokens":[],"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},"pre_tokenizer":{"type":"ByteLevel"},"model":{}}"#,
                "pre_tokenizer",
            ),
            (
                r#"{"added_tokens":[],"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"},"model":{"type":"BPE"}}"#,
                "model",
            ),
        ] {
            let error = Tokenizer::from_json(json.as_bytes(), 512).unwrap_err();
            assert!(matches!(error, Error::Tokenizer(_)), "{error:?}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn added_tokens_that_would_be_found_wrongly_are_refused() {
        let valid = serde_json::json!({
            "added_tokens": [{"id": 0, "content": "[CLS]"}, {"id": 1, "content": "[SEP]"}],
            "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                           "strip_accents": null, "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": {"[UNK]": 2}},
        });
        let read = |file: &serde_json::Value| Tokenizer::from_json(file.to_string().as_bytes(), 512);
        assert!(read(&valid).is_ok());
        for wrong in [
            serde_json::json!({"id": 3, "content": ""}),
            serde_json::json!({"id": 3, "content": "a b"}),
            serde_json::json!({"id": 3, "content": "a", "lstrip": true}),
            serde_json::json!({"id": 3, "content": "a", "rstrip": true}),
        ] {
            let mut file = valid.clone();
            file["added_tokens"].as_array_mut().unwrap().push(wrong);
            assert!(read(&file).unwrap_err().to_string().contains("added token"));
        }
    }

    proptest! {
        #[test]
        fn blocks_do_not_show(text in nasty_text(), block_bytes in 0usize..40) {
            let tokenizer = small(512);
            let whole = tokenizer.encode_blocks(&text, usize::MAX);
            prop_assert_eq!(tokenizer.encode_blocks(&text, block_bytes), whole);
        }

        #[test]
        fn the_cut_is_a_prefix_of_the_whole(text in nasty_text(), max_length in 2usize..40) {
            let whole = small(100_000).encode(&text);
            let cut = small(max_length).encode(&text);
            prop_assert_eq!(cut.truncated, whole.ids.len() > max_length);
            prop_assert_eq!(&cut.ids[..], &whole.ids[..max_length.min(whole.ids.len())]);
        }
    }
}
