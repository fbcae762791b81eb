//! Keys of providers, by the rules of Betterleaks in `rules/betterleaks.tsv` and our own in `rules/own.tsv`.
//!
//! One automaton finds the keywords of all rules. At each keyword the expressions of its rules are tried, at that place alone, so the
//! time stays linear, and an expression is compiled only when its keyword is first met.

use std::{ops::Range, sync::LazyLock};

use memchr::memmem;
use regex::bytes::Match;

use crate::{
    keywords::{ByKeyword, Keyword, Keywords, Owner},
    lines::of_base64,
    random::{is_hexadecimal, of_key, whole},
    ranges::{Pattern, Ranges, merged, skip},
    text::{Text, is_word},
    values::{is_generated, is_placeholder},
};

const RULES: [&str; 2] = [
    include_str!("../rules/betterleaks.tsv"),
    include_str!("../rules/own.tsv"),
];

/// No key is longer.
const MOST_LETTERS: usize = 1500;
const MOST_TAIL_LETTERS: usize = 48;
/// A shorter prefix of letters and digits alone begins words too.
const LEAST_PREFIX_LETTERS: usize = 3;
/// A prefix tells a key, so only repetitions of a few letters are placeholders.
const LEAST_DIFFERENT_LETTERS: usize = 4;

/// The key of a provider.
struct Rule {
    /// The expression of the key.
    key: &'static str,
    expression: Pattern,
}

impl Rule {
    fn of(line: &'static str) -> Option<(Self, &'static str)> {
        let (keywords, key) = line.split_once('\t')?.1.split_once('\t')?;
        let expression = Pattern::of(format!("^(?:{key})"));
        Some((Self { key, expression }, keywords))
    }

    /// Finds the key that begins with a keyword, whose first letters end at `run`.
    fn key(&self, letters: &[u8], keyword: &Range<usize>, run: usize) -> Option<Range<usize>> {
        let start = keyword.start;
        let prefix = &letters[keyword.clone()];
        // A prefix that hardly begins a word tells a key of any length, because lengths change.
        // One of hexadecimal digits begins UUIDs and digests.
        let is_telling = !is_hexadecimal(prefix)
            && (prefix.len() > LEAST_PREFIX_LETTERS || !letters[keyword.end - 1].is_ascii_alphanumeric());
        let window = &letters[start..letters.len().min(start + MOST_LETTERS)];
        let found = self.expression.find(window);
        let is_varied =
            |found: &Match| different_letters(&found.as_bytes()[prefix.len()..]) >= LEAST_DIFFERENT_LETTERS;
        let end = match found.filter(|key| is_varied(key) && !is_placeholder(key.as_bytes())) {
            Some(found) => start + found.end(),
            None => {
                // The first letters after a prefix tell whether they are generated.
                let tail = &letters[keyword.end..run.min(keyword.end + MOST_TAIL_LETTERS)];
                let is_key = is_telling
                    && prefix.len() > 2
                    && is_generated(tail)
                    && !is_placeholder(tail)
                    && self.has_prefix(prefix);
                is_key.then_some(run)?
            }
        };
        if !is_telling {
            let goes_on = letters.get(end).is_some_and(|next| is_word(*next));
            return (!goes_on).then(|| start..whole(letters, end));
        }
        // The rest of a key that is longer than usual would still be a secret. Keys in Base64 have more signs.
        let is_base64 = self.key.contains("+/");
        let end = skip(letters, end.max(run), |letter| {
            of_key(letter) || is_base64 && of_base64(letter)
        });
        Some(start..whole(letters, end))
    }

    /// Returns whether the expression has this prefix in this case.
    fn has_prefix(&self, prefix: &[u8]) -> bool {
        let plain = self.key.replace('\\', "");
        let has = |prefix: &[u8]| memmem::find(plain.as_bytes(), prefix).is_some();
        // A prefix with alternatives is written otherwise there.
        let has_separator = prefix.last().is_some_and(|last| !last.is_ascii_alphanumeric());
        let is_small = !prefix.iter().any(u8::is_ascii_uppercase) && !has(&prefix.to_ascii_uppercase());
        self.key.starts_with("(?i)") || has_separator && is_small || has(prefix)
    }
}

static ALL: LazyLock<ByKeyword<Rule>> = LazyLock::new(|| {
    let lines = RULES.iter().flat_map(|rules| rules.lines());
    let rules = lines.filter(|line| !line.starts_with('#')).filter_map(Rule::of);
    ByKeyword::of(rules, ' ')
});

/// Returns the keywords of all rules.
pub(super) fn keywords() -> Vec<Vec<u8>> {
    ALL.keywords()
}

/// Finds keys by their rules in the letters of a short text.
pub(super) fn keys_in(letters: &[u8]) -> Ranges {
    keys_at(
        letters,
        Keywords::of(letters, &letters.to_ascii_lowercase()).of_owner(Owner::Providers),
    )
}

/// Finds keys by their rules.
pub(super) fn keys(text: &Text) -> Ranges {
    keys_at(text.letters(), text.keywords(Owner::Providers))
}

fn keys_at(letters: &[u8], keywords: &[Keyword]) -> Ranges {
    let mut ranges = Ranges::new();
    let mut last = 0..0;
    // Where the letters of a key end that were looked at last.
    let mut run = 0;
    for Keyword {
        range: keyword,
        number,
    } in keywords
    {
        // Of two keywords with one beginning, the longer one can tell more of the key.
        if keyword.start != last.start && keyword.start < last.end {
            continue;
        }
        if !begins_word(letters, keyword.start) {
            continue;
        }
        if run < keyword.end {
            run = skip(letters, keyword.end, of_key);
        }
        for (_, rule) in ALL.of_keyword(*number) {
            if let Some(key) = rule.key(letters, keyword, run) {
                last = key.start..key.end.max(last.end);
                ranges.push(key);
            }
        }
    }
    merged(ranges)
}

/// Returns whether a word begins at `start`: behind another sign, the escape of one, or `%3D` and `=3D`, but not behind the name of a hash.
pub(super) fn begins_word(letters: &[u8], start: usize) -> bool {
    match &letters[..start] {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b's', b'h', b'a', _, _, _, b'-'] => false,
        [.., b'%' | b'=', first, second] if first.is_ascii_hexdigit() && second.is_ascii_hexdigit() => true,
        [.., last] => !is_word(*last) && *last != b'+',
        [] => true,
    }
}

/// Returns how many different letters a text has.
fn different_letters(text: &[u8]) -> usize {
    let mut letters = text.to_vec();
    letters.sort_unstable();
    letters.dedup();
    letters.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_read_and_compiles() {
        let all = &*ALL;
        let lines = RULES.iter().flat_map(|rules| rules.lines());
        assert_eq!(
            all.rows.len(),
            lines.filter(|line| !line.starts_with('#')).count()
        );
        assert!(all.rows.len() > 200);
        for rule in &all.rows {
            assert!(!rule.expression.is_match(b"a text"));
        }
    }

    const KEY: &str = "ghp_aB3dE5fG7hJaB3dE5fG7hJaB3dE5fG7hJaB3";

    fn found(text: &str) -> Vec<&str> {
        keys_in(text.as_bytes())
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
    fn a_key_is_found_behind_many_prefixes_of_its_own() {
        for prefixes in [1, 20, 400] {
            let text = format!("{}{KEY}", "ghp_-".repeat(prefixes));
            assert!(found(&text).iter().any(|key| key.ends_with(KEY)), "{prefixes}");
        }
        let line = "ghp_list/".repeat(7);
        let named = format!("{line}ghp_={KEY}/{}", "x".repeat(1000));
        assert_eq!(found(&named), [KEY]);
    }

    #[test]
    fn placeholders_and_pieces_of_longer_words_are_no_keys() {
        for text in [
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx".to_owned(),
            format!("x{KEY}"),
            format!("100%of{KEY}"),
            format!("50%a_{KEY}"),
            format!("ghp_{}", "ab".repeat(18)),
            "npm_config_registry npm_lifecycle_event hf_model_name".to_owned(),
        ] {
            assert!(found(&text).is_empty(), "{text}");
        }
    }
}
