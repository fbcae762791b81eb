//! The words of a trace and their counts.
//!
//! A word is a run of letters, digits and `_` with their marks, in normalisation form NFKC and with the case folded: each character in
//! upper case, then in lower case, so that `ß` and `SS` or `ς` and `Σ` are the same. Scripts without spaces between words, and Hangul,
//! whose words have endings, give pairs of neighbouring characters instead, or a character that stands alone.
//!
//! A word is identified by the unseeded XXH3-64 of its UTF-8. With 100 million different words, a collision has a probability of 1 in 3,700.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;
use twox_hash::XxHash3_64;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
use unicode_script::{Script, UnicodeScript};

use crate::Trace;

/// The most words of a trace: the words with the largest counts, of equal ones the smallest hashes. crates/index/DESIGN.md
/// has measurements.
pub const MOST_WORDS: usize = 480;

/// The most characters of a trace after normalisation, in runs that are not ASCII. NFKC can make 18 characters of one, so text must be
/// bounded after it too.
const MOST_NORMALISED: usize = 2 << 20;

/// Additive length smoothing: a word of a piece counts 1/√(length + 6). crates/index/DESIGN.md has the measurements.
const MORE_WORDS: usize = 6;

/// The most characters of a spelling.
const MOST_SHOWN: usize = 64;

/// c(t) of a word, with 12 significant bits, so that it takes two bytes. It is at least 2^-16 and below 2^16.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TermWeight(u16);

/// Fixed-point unit of sums of counts, 2^-32, so that their order does not matter.
const UNITS: f64 = 4_294_967_296.0;

impl TermWeight {
    /// The bits after the first significant one.
    const FRACTION: u32 = 11;

    /// The exponent of the smallest count is that much below 0.
    const LEAST: u32 = 16;

    /// Returns the count nearest to a multiple of 2^-32.
    #[allow(clippy::cast_precision_loss)] // Larger values than 2^53 become the largest count.
    fn of_units(units: u64) -> Self {
        const DROPPED: u32 = 52 - TermWeight::FRACTION;
        const LEAST: u64 = (1023 - TermWeight::LEAST as u64) << TermWeight::FRACTION;
        // Exponent and fraction lie as in a double, with fewer bits.
        let rounded = (units as f64 / UNITS).to_bits() + (1 << (DROPPED - 1));
        Self(u16::try_from((rounded >> DROPPED).saturating_sub(LEAST)).unwrap_or(u16::MAX))
    }

    /// Returns the count with this code of [`TermWeight::code`]; every code is valid.
    #[must_use]
    pub fn from_code(code: u16) -> Self {
        Self(code)
    }

    /// Returns the code of the count in two bytes, in the order of the values.
    #[must_use]
    pub fn code(self) -> u16 {
        self.0
    }

    /// The count as a number.
    #[must_use]
    #[inline]
    pub fn value(self) -> f64 {
        self.single().into()
    }

    /// The count in single precision, which holds it exactly.
    #[must_use]
    #[inline]
    pub fn single(self) -> f32 {
        const BIAS: u32 = 127 - TermWeight::LEAST;
        f32::from_bits((u32::from(self.0) << (23 - Self::FRACTION)) + (BIAS << 23))
    }
}

/// A word of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// The hash of the word.
    pub hash: u64,
    /// c(t).
    pub count: TermWeight,
}

/// The words of a trace, at most [`MOST_WORDS`], in the order of their hashes. They do not depend on the order of the steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    list: Vec<Word>,
    /// In the order of the words; empty without spellings.
    spellings: Vec<String>,
}

impl std::ops::Deref for Words {
    type Target = [Word];

    fn deref(&self) -> &[Word] {
        &self.list
    }
}

impl Words {
    /// The words of `trace`.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        // Of each word the last piece that has it, and the sum of its shares.
        let mut sums: HashMap<u64, (usize, u64), FxBuildHasher> = HashMap::default();
        let mut hashes = Vec::new();
        let mut left = MOST_NORMALISED;
        for (at, piece) in (1..).zip(pieces(trace)) {
            hashes.clear();
            split_words(piece, &mut left, &mut |word| {
                let hash = hash_of(word);
                let (last, _) = sums.entry(hash).or_default();
                if std::mem::replace(last, at) < at {
                    hashes.push(hash);
                }
            });
            #[allow(clippy::cast_precision_loss)] // No text has 2^53 words.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // At most 2^32.
            let share = (UNITS / ((hashes.len() + MORE_WORDS) as f64).sqrt()).round() as u64;
            for hash in &hashes {
                if let Some((_, sum)) = sums.get_mut(hash) {
                    *sum = sum.saturating_add(share);
                }
            }
        }
        let words = sums.into_iter().map(|(hash, (_, units))| Word {
            hash,
            count: TermWeight::of_units(units),
        });
        let mut list: Vec<Word> = words.collect();
        if list.len() > MOST_WORDS {
            list.select_nth_unstable_by_key(MOST_WORDS, |word| (std::cmp::Reverse(word.count), word.hash));
            list.truncate(MOST_WORDS);
        }
        list.sort_unstable_by_key(|word| word.hash);
        let spellings = Vec::new();
        Self { list, spellings }
    }

    /// Returns the words of `trace`, each with its first spelling after normalisation, cut to 64 characters.
    #[must_use]
    pub fn spelled(trace: &Trace) -> Self {
        let words = Self::of(trace);
        let mut spellings = vec![String::new(); words.len()];
        let mut left = MOST_NORMALISED;
        for piece in pieces(trace) {
            split_words(piece, &mut left, &mut |word| {
                let spelling = words.place_of(hash_of(word)).map(|at| &mut spellings[at]);
                // No word is empty, so an empty spelling is a missing one.
                if let Some(spelling) = spelling.filter(|spelling| spelling.is_empty()) {
                    spelling.extend(word.chars().take(MOST_SHOWN));
                }
            });
        }
        Self { spellings, ..words }
    }

    /// Returns the spelling of the word with this hash; `None` if the trace lacks the word, or the words are not [`Words::spelled`].
    #[must_use]
    pub fn spelling(&self, hash: u64) -> Option<&str> {
        self.spellings.get(self.place_of(hash)?).map(String::as_str)
    }

    fn place_of(&self, hash: u64) -> Option<usize> {
        self.binary_search_by_key(&hash, |word| word.hash).ok()
    }

    /// Checks stored words, in any order; `None` if no trace can have them.
    #[must_use]
    pub fn from_stored(mut list: Vec<Word>) -> Option<Self> {
        list.sort_unstable_by_key(|word| word.hash);
        let are_different = list.windows(2).all(|pair| pair[0].hash != pair[1].hash);
        let spellings = Vec::new();
        (are_different && list.len() <= MOST_WORDS).then_some(Self { list, spellings })
    }
}

/// The hash that identifies a word.
fn hash_of(word: &str) -> u64 {
    XxHash3_64::oneshot(word.as_bytes())
}

/// The objective, and the content of each step.
pub(super) fn pieces(trace: &Trace) -> impl Iterator<Item = &str> {
    let contents = trace
        .steps
        .iter()
        .map(|step| step.content.as_deref().unwrap_or(""));
    std::iter::once(trace.objective.as_str()).chain(contents)
}

/// Returns the characters of a text in NFKC and without case.
fn folded(text: &str) -> impl Iterator<Item = char> {
    let folded = text
        .nfkc()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase);
    folded.nfkc()
}

/// Passes each occurrence of a word of a piece to a sink. `left` is how many characters may still be normalised; the rest is left out.
fn split_words(piece: &str, left: &mut usize, sink: &mut dyn FnMut(&str)) {
    let mut splitter = Splitter::default();
    let piece = piece.to_ascii_lowercase();
    // No ASCII character outside of words becomes a part of one by what follows it. So text can be cut there, and ASCII needs no
    // normalisation.
    let is_end = |byte: &u8| byte.is_ascii() && !is_word((*byte).into());
    // Cut at ASCII, all of them are UTF-8.
    let sections = piece.as_bytes().split(is_end).flat_map(str::from_utf8);
    for section in sections.filter(|section| !section.is_empty()) {
        if section.is_ascii() {
            sink(section);
            continue;
        }
        for c in folded(section).take(*left) {
            *left -= 1;
            splitter.push(c, sink);
        }
        splitter.end(sink);
    }
}

/// Joins characters to words.
#[derive(Default)]
struct Splitter {
    /// A word; or the last two characters of a run that gives pairs, each with its marks, or the first alone.
    open: String,
    /// The beginning of the last character of a run that gives pairs.
    last: Option<usize>,
}

impl Splitter {
    fn push(&mut self, c: char, sink: &mut dyn FnMut(&str)) {
        if is_mark(c) {
            // A mark belongs to the character before it; after one outside of words it is part of no word.
            if !self.open.is_empty() {
                self.open.push(c);
            }
            return;
        }
        if !is_word(c) {
            return self.end(sink);
        }
        let gives_pairs = gives_pairs(c);
        if gives_pairs != self.last.is_some() {
            self.end(sink);
        }
        if let Some(last) = self.last.filter(|last| *last > 0) {
            sink(&self.open);
            self.open.drain(..last);
        }
        self.last = gives_pairs.then_some(self.open.len());
        self.open.push(c);
    }

    fn end(&mut self, sink: &mut dyn FnMut(&str)) {
        if !self.open.is_empty() {
            sink(&self.open);
            self.open.clear();
        }
        self.last = None;
    }
}

fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    matches!(
        c.general_category_group(),
        GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number
    )
}

fn is_mark(c: char) -> bool {
    !c.is_ascii() && c.general_category_group() == GeneralCategoryGroup::Mark
}

/// Returns whether a character stands in words: a letter, a digit, `_` or a mark.
#[must_use]
pub fn is_in_word(c: char) -> bool {
    is_word(c) || is_mark(c)
}

/// Whether `c` is of a script that is written without spaces between words, or of Hangul.
fn gives_pairs(c: char) -> bool {
    const SCRIPTS: [Script; 8] = [
        Script::Han,
        Script::Hiragana,
        Script::Katakana,
        Script::Hangul,
        Script::Thai,
        Script::Lao,
        Script::Khmer,
        Script::Myanmar,
    ];
    if c.is_ascii() {
        return false;
    }
    let extension = c.script_extension();
    // A character of all scripts is of none of these.
    !extension.is_common()
        && !extension.is_inherited()
        && SCRIPTS.iter().any(|&script| extension.contains_script(script))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixtures::with_texts, nasty_text::nasty_text};
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        split_words(text, &mut usize::MAX.clone(), &mut |word| {
            words.push(word.to_owned())
        });
        words
    }

    #[test]
    fn words_are_runs_of_letters_digits_and_underscores() {
        let of = |text: &str| words(text).join("|");
        assert_eq!(
            of("Hi! user_id=mia_li_3668, $5.00"),
            "hi|user_id|mia_li_3668|5|00"
        );
        assert_eq!(of("ＦＵＬＬ ﬁne x²"), "full|fine|x2");
        assert_eq!(of("Straße STRASSE strasse"), "strasse|strasse|strasse");
        assert_eq!(of("λόγος ΛΌΓΟΣ"), "λόγοσ|λόγοσ");
        assert_eq!(of("cafe\u{301} café CAFÉ"), "café|café|café");
        assert_eq!(of("नमस्ते दुनिया"), "नमस्ते|दुनिया");
        assert_eq!(of("naˈiːv x\u{338}y"), "naˈiːv|x\u{338}y");
        for text in ["a=\u{338}b", "a \u{301}b", "a✈\u{fe0f}b", "\u{301}a \u{e31}b"] {
            assert_eq!(of(text), "a|b", "a mark after a character outside of words");
        }
    }

    #[test]
    fn scripts_without_spaces_and_hangul_give_pairs() {
        let of = |text: &str| words(text).join("|");
        assert_eq!(of("東京都"), "東京|京都");
        assert_eq!(of("日"), "日");
        assert_eq!(of("iPhone手机 and 机"), "iphone|手机|and|机");
        assert_eq!(of("データ"), "デー|ータ");
        assert_eq!(of("ﾃﾞｰﾀ"), "デー|ータ");
        assert_eq!(of("สวัส"), "สวั|วัส");
        assert_eq!(of("ที่นี่"), "ที่นี่");
        assert_eq!(of("ที่"), "ที่");
        assert_eq!(of("日\u{301}本"), "日\u{301}本");
        assert_eq!(of("日本3月"), "日本|3|月");
        assert_eq!(of("서울은 서울에서 Seoul을"), "서울|울은|서울|울에|에서|seoul|을");
        // Conjoining letters are composed first.
        assert_eq!(of("\u{1109}\u{1165}\u{110b}\u{116e}\u{11af}"), "서울");
    }

    #[test]
    fn normalisation_is_bounded() {
        let mut left = 20;
        let mut found = Vec::new();
        for piece in ["\u{fdfa}".repeat(1_000), "plain é".into()] {
            split_words(&piece, &mut left, &mut |word| found.push(word.to_owned()));
        }
        assert_eq!(left, 0);
        // The first one is 18 characters of four words.
        assert_eq!(found.len(), 5);
        assert_eq!((&*found[0], &*found[4]), ("صلى", "plain"));
    }

    #[test]
    fn counts_keep_twelve_bits() {
        for units in (0..64)
            .flat_map(|bits| [0, 1, 12_345].map(|more| (1_u64 << bits).saturating_add(more << bits >> 17)))
        {
            #[allow(clippy::cast_precision_loss)]
            let expected = (units as f64 / UNITS).clamp(2.0_f64.powi(-16), 65_520.0);
            let value = TermWeight::of_units(units).value();
            assert!(
                (value / expected - 1.0).abs() <= 1.0 / 4096.0,
                "{units} {value} {expected}"
            );
        }
        for code in 0..=u16::MAX {
            let count = TermWeight::from_code(code);
            assert_eq!(f64::from(count.single()), count.value());
        }
        assert_eq!(TermWeight::of_units(1 << 32).value(), 1.0);
        assert_eq!(TermWeight::of_units(u64::MAX).code(), u16::MAX);
        assert!(TermWeight::of_units(5 << 32) > TermWeight::of_units(4 << 32));
    }

    #[test]
    fn every_step_counts_alike() {
        let words = Words::of(&with_texts("a", &["b c", "c d e f"]));
        let count = |word| {
            words
                .iter()
                .find(|w| w.hash == hash_of(word))
                .map(|w| w.count.value())
        };
        let near = |word, expected: f64| {
            let count = count(word).unwrap();
            assert!((count - expected).abs() < 1e-3, "{word} {count}");
        };
        near("a", 7_f64.powf(-0.5));
        near("c", 8_f64.powf(-0.5) + 10_f64.powf(-0.5));
        near("d", 10_f64.powf(-0.5));
        assert_eq!(count("g"), None);
    }

    #[test]
    fn words_with_the_largest_counts_are_kept() {
        let dump: String = (0..2_000).map(|number| format!("n{number} ")).collect();
        let words = Words::of(&with_texts("the objective", &[&dump, "a short step"]));
        assert_eq!(words.len(), MOST_WORDS);
        assert!(words.is_sorted_by_key(|word| word.hash));
        for word in ["the", "objective", "a", "short", "step"] {
            assert!(words.iter().any(|w| w.hash == hash_of(word)), "{word}");
        }
        assert_eq!(Words::from_stored(words.to_vec()), Some(words.clone()));
        let just_enough: String = (0..MOST_WORDS).map(|number| format!("n{number} ")).collect();
        assert_eq!(Words::of(&with_texts(&just_enough, &[])).len(), MOST_WORDS);
        let twice = [words[0], words[0]];
        assert_eq!(Words::from_stored(twice.to_vec()), None);
    }

    #[test]
    fn spelled_words_tell_the_first_spelling_of_each_word() {
        let trace = with_texts("Book a FLIGHT", &["東京 flight", &"long".repeat(20)]);
        let spelled = Words::spelled(&trace);
        assert_eq!(spelled[..], Words::of(&trace)[..]);
        let spelling = |word| spelled.spelling(hash_of(word));
        let found = ["flight", "東京", "gone", "book"].map(spelling);
        assert_eq!(found, [Some("flight"), Some("東京"), None, Some("book")]);
        assert_eq!(spelling(&"long".repeat(20)), Some(&*"long".repeat(16)));
        assert_eq!(Words::of(&trace).spelling(hash_of("flight")), None);
    }

    proptest! {
        /// Cutting at ASCII changes nothing.
        #[test]
        fn sections_have_the_words_of_the_whole(text in prop_oneof![nasty_text(), "\\PC{0,80}", "[a-z=<\u{338}\u{301}é 東ー３ｱﾞ]{0,40}"]) {
            let (mut sections, mut whole) = (Vec::new(), Vec::new());
            split_words(&text, &mut usize::MAX.clone(), &mut |word| sections.push(word.to_owned()));
            let mut splitter = Splitter::default();
            let mut sink = |word: &str| whole.push(word.to_owned());
            folded(&text).for_each(|c| splitter.push(c, &mut sink));
            splitter.end(&mut sink);
            prop_assert_eq!(sections, whole);
        }

        #[test]
        fn order_case_and_white_space_change_nothing(
            contents in prop::collection::vec(prop_oneof![nasty_text(), "[a-zA-Z ,.]{0,60}"], 1..20),
            rotation in 0usize..20,
        ) {
            let rotated: Vec<_> = contents.iter().cycle().skip(rotation % contents.len()).take(contents.len()).map(String::as_str).collect();
            let plain: Vec<_> = contents.iter().map(String::as_str).collect();
            let expected = Words::of(&with_texts("objective", &plain));
            prop_assert_eq!(&Words::of(&with_texts("  OBJECTIVE!", &rotated)), &expected);
            let changed: Vec<_> = contents.iter().map(|text| if text.is_ascii() {
                format!("\n{}..", text.to_uppercase().replace(' ', " - \t"))
            } else {
                text.clone()
            }).collect();
            let changed: Vec<_> = changed.iter().map(String::as_str).collect();
            prop_assert_eq!(Words::of(&with_texts("objective", &changed)), expected);
        }
    }
}
