//! Keys of providers, by the rules of Betterleaks in `rules/betterleaks.tsv`.
//!
//! One automaton finds the keywords of all rules. At each keyword the expressions of its rules are tried, at that place alone, so the
//! time stays linear, and an expression is compiled only when its keyword is first met.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{LazyLock, OnceLock},
};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};
use regex::bytes::Regex;

use crate::{
    ranges::{Ranges, expression, skip},
    text::is_word,
    values::{is_generated, is_placeholder},
};

const RULES: &str = include_str!("../rules/betterleaks.tsv");

/// The text between the name of a provider and its key, also in JSON within JSON.
const CONNECTION: &str = r#"[ \t\w.-]{0,20}[\s'"\\]{0,6}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=\\]{0,8}"#;
/// No key is longer.
const MOST_LETTERS: usize = 1500;
/// The separator stands no further behind the beginning of a name.
const MOST_NAME_LETTERS: usize = 96;
/// How far before a keyword within a key the key begins at most.
const MOST_BEFORE: usize = 96;
const MOST_TAIL_LETTERS: usize = 48;
/// A prefix tells a key, so only runs of a letter or two are placeholders.
const LEAST_ENTROPY: f64 = 2.0;

/// A rule of Betterleaks.
struct Rule {
    /// The expressions of the provider's name, empty where the key is told by itself, and of the key.
    name: &'static str,
    key: &'static str,
    least_entropy: f64,
    /// The expression of both, compiled when first needed.
    expression: OnceLock<Regex>,
}

impl Rule {
    fn of(line: &'static str) -> Option<(Self, &'static str)> {
        let mut fields = line.split('\t').skip(1);
        let keywords = fields.next()?;
        let rule = Self {
            least_entropy: fields.next()?.parse().ok()?,
            name: fields.next()?,
            key: fields.next()?,
            expression: OnceLock::new(),
        };
        Some((rule, keywords))
    }

    fn is_named(&self) -> bool {
        !self.name.is_empty()
    }

    fn expression(&self) -> &Regex {
        self.expression.get_or_init(|| {
            let Self { name, key, .. } = self;
            expression(&if self.is_named() {
                format!("^(?:{name}){CONNECTION}({key})")
            } else {
                format!("^(?:{key})")
            })
        })
    }

    /// Finds the key that stands under the provider's name, which begins at `start`.
    fn named_key(&self, letters: &[u8], start: usize) -> Option<Range<usize>> {
        let name = &letters[start..letters.len().min(start + MOST_NAME_LETTERS)];
        if !name
            .iter()
            .any(|letter| matches!(letter, b'=' | b':' | b'>' | b'|' | b','))
        {
            return None;
        }
        let window = &letters[start..letters.len().min(start + MOST_LETTERS)];
        let found = self.expression().captures(window)?.get(1)?;
        let key = start + found.start()..start + found.end();
        let text = &letters[key.clone()];
        let ends = letters
            .get(key.end)
            .is_none_or(|next| !is_word(*next) && *next != b'-');
        let digits = text.iter().filter(|letter| letter.is_ascii_digit()).count();
        let is_key = ends
            && digits > text.len() / 16
            && entropy(text) >= self.least_entropy
            && is_telling(&letters[start..key.start]);
        is_key.then_some(key)
    }

    /// Finds the key that begins at `start`, has the keyword there or further on, and has no letters behind `run`.
    fn key(&self, letters: &[u8], start: usize, keyword: &Range<usize>, run: usize) -> Option<Range<usize>> {
        if !begins_word(letters, start) {
            return None;
        }
        let has_separator = !letters[keyword.end - 1].is_ascii_alphanumeric();
        let window = &letters[start..letters.len().min(start + MOST_LETTERS)];
        let found = self.expression().find(window);
        if let Some(found) = found
            && entropy(found.as_bytes()) >= self.least_entropy.min(LEAST_ENTROPY)
        {
            let end = start + found.end();
            let goes_on = letters.get(end).is_some_and(|next| is_word(*next));
            // The rest of a key that is longer than usual would still be a secret.
            return (!goes_on || has_separator).then(|| start..whole(letters, end.max(run)));
        }
        // A key of another length than the rule knows.
        let prefix = &letters[keyword.clone()];
        // The first letters after a prefix tell whether they are generated.
        let tail = &letters[keyword.end..run.min(keyword.end + MOST_TAIL_LETTERS)];
        let is_key = has_separator
            && prefix.len() > 2
            && is_generated(tail)
            && !is_placeholder(tail)
            && self.has_prefix(prefix);
        is_key.then(|| start..whole(letters, run))
    }

    /// Returns whether the expression has this prefix, in this case.
    fn has_prefix(&self, prefix: &[u8]) -> bool {
        let key = self.key.as_bytes();
        let is_in_any_case = key.starts_with(b"(?i)");
        let plain: Vec<u8> = key.iter().copied().filter(|letter| *letter != b'\\').collect();
        plain.windows(prefix.len()).any(|part| {
            if is_in_any_case {
                part.eq_ignore_ascii_case(prefix)
            } else {
                part == prefix
            }
        })
    }
}

/// The rules, and the automaton of their keywords.
struct Rules {
    rules: Vec<Rule>,
    keywords: AhoCorasick,
    /// For each keyword the rules that have it, and whether it stands within their keys.
    of_keyword: Vec<Vec<(usize, bool)>>,
}

impl Rules {
    fn get() -> &'static Self {
        static LOADED: LazyLock<Rules> = LazyLock::new(Rules::load);
        &LOADED
    }

    fn load() -> Self {
        let mut rules = Vec::new();
        let mut by_keyword: BTreeMap<&str, Vec<(usize, bool)>> = BTreeMap::new();
        for (rule, keywords) in RULES
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(Rule::of)
        {
            for keyword in keywords.split(' ') {
                let within = keyword.strip_prefix('*');
                let places = by_keyword.entry(within.unwrap_or(keyword)).or_default();
                places.push((rules.len(), within.is_some()));
            }
            rules.push(rule);
        }
        // A test builds it.
        #[allow(clippy::expect_used)]
        let keywords = AhoCorasickBuilder::new()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(by_keyword.keys())
            .expect("the keywords are few and short");
        Self {
            rules,
            keywords,
            of_keyword: by_keyword.into_values().collect(),
        }
    }
}

/// Finds keys by the rules of Betterleaks.
pub(super) fn keys(letters: &[u8]) -> Ranges {
    let all = Rules::get();
    let mut ranges = Ranges::new();
    let mut done = 0;
    // Where the letters of a key end that were looked at last.
    let mut run = 0;
    for found in all.keywords.find_overlapping_iter(letters) {
        let keyword = found.start()..found.end();
        if keyword.start < done {
            continue;
        }
        if run < keyword.end {
            run = skip(letters, keyword.end, of_key);
        }
        for &(rule, is_within) in &all.of_keyword[found.pattern().as_usize()] {
            let rule = &all.rules[rule];
            let key = if rule.is_named() {
                rule.named_key(letters, keyword.start)
            } else {
                let start = if is_within {
                    key_start(letters, keyword.start)
                } else {
                    Some(keyword.start)
                };
                start.and_then(|start| rule.key(letters, start, &keyword, run))
            };
            if let Some(key) = key {
                done = done.max(key.end);
                ranges.push(key);
            }
        }
    }
    merged(ranges)
}

/// Sorts ranges, and joins overlapping ones.
fn merged(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Ranges = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Returns whether a word begins at `start`: behind another sign, the escape of one, or `%3D`.
fn begins_word(letters: &[u8], start: usize) -> bool {
    match &letters[..start] {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', first, second] if first.is_ascii_hexdigit() && second.is_ascii_hexdigit() => true,
        [.., last] => !is_word(*last) && *last != b'+',
        [] => true,
    }
}

fn of_key(letter: u8) -> bool {
    is_word(letter) || matches!(letter, b'-' | b'~')
}

/// Returns the end of a key whose last part ends at `end`, and which may have more: `.…`, `:…`.
fn whole(letters: &[u8], mut end: usize) -> usize {
    while matches!(letters.get(end), Some(b'.' | b':')) {
        let next = skip(letters, end + 1, of_key);
        if !is_generated(&letters[end + 1..next]) {
            break;
        }
        end = next;
    }
    end
}

/// Returns where the key begins that has a keyword at `at`.
fn key_start(letters: &[u8], at: usize) -> Option<usize> {
    let before = letters[..at].iter().rev().take(MOST_BEFORE);
    let length = before
        .take_while(|letter| of_key(**letter) || **letter == b'.')
        .count();
    (length < MOST_BEFORE).then_some(at - length)
}

/// Returns whether the text before a key names it: the provider's name alone, or with a word such as `key`.
fn is_telling(before: &[u8]) -> bool {
    const WORDS: &[&[u8]] = &[
        b"key", b"token", b"secret", b"api", b"auth", b"pass", b"cred", b"access", b"pat", b"sdk",
    ];
    let mut words = before
        .split(|letter| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let is_alone = words.clone().count() == 1;
    let has_word = |word: &[u8]| {
        let word = word.to_ascii_lowercase();
        WORDS
            .iter()
            .any(|each| word.windows(each.len()).any(|part| part == *each))
    };
    is_alone || words.any(has_word)
}

/// Shannon's entropy of the letters, in bits.
fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for letter in text {
        counts[usize::from(*letter)] += 1;
    }
    #[allow(clippy::cast_precision_loss)] // No key has 2^53 letters.
    let length = text.len() as f64;
    let share = |count: &u32| f64::from(*count) / length;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| -share(count) * share(count).log2())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_read_and_compiles() {
        let all = Rules::get();
        let lines = RULES.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(all.rules.len(), lines.count());
        assert!(all.rules.len() > 300);
        for rule in &all.rules {
            assert!(!rule.expression().is_match(b"a text"));
        }
    }

    const KEY: &str = "ghp_aB3dE5fG7hJaB3dE5fG7hJaB3dE5fG7hJaB3";

    fn found(text: &str) -> Vec<&str> {
        keys(text.as_bytes())
            .into_iter()
            .map(|range| &text[range])
            .collect()
    }

    #[test]
    fn a_key_is_found_to_its_end_whatever_stands_around_it() {
        for text in [
            format!("use {KEY}."),
            format!(r#"{{\"a\":\"x\n{KEY}\"}}"#),
            format!("?q=%3D{KEY}&x"),
        ] {
            assert_eq!(found(&text), [KEY], "{text}");
        }
        let longer = format!("{KEY}moreOfIt");
        assert_eq!(found(&longer), [longer.as_str()]);
        assert_eq!(found("ghp_aB3dE5fG7hJaB3dE5fG"), ["ghp_aB3dE5fG7hJaB3dE5fG"]);
        let openai = format!("sk-proj-{0}T3BlbkFJ{0}", "aB3dE5fG7hJaB3dE5fG7");
        assert_eq!(found(&format!("k={openai}")), [openai.as_str()]);
    }

    #[test]
    fn a_key_stands_under_its_name_only_if_that_is_telling() {
        let key = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
        assert_eq!(found(&format!("datadog_key = {key}")), [key]);
        assert_eq!(found(&format!(r#"\"datadog\": \"{key}\""#)), [key]);
        assert!(found(&format!("datadog commit: {key}")).is_empty());
        assert!(found(&format!("datadog_key = {key}0")).is_empty());
    }

    #[test]
    fn placeholders_and_pieces_of_longer_words_are_no_keys() {
        for text in [
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx".to_owned(),
            format!("x{KEY}"),
            "npm_config_registry npm_lifecycle_event hf_model_name".to_owned(),
        ] {
            assert!(found(&text).is_empty(), "{text}");
        }
    }

    #[test]
    fn entropy_is_that_of_the_letters() {
        assert!(entropy(b"aaaa").abs() < 1e-9);
        assert!((entropy(b"abcd") - 2.0).abs() < 1e-9);
    }
}
