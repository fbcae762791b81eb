//! Secrets that are told by the structure around them: the data of Kubernetes' secrets, the private parts of JSON Web Keys, sensitive
//! outputs of Terraform, and keys in the lists and tables of Azure.

use std::{ops::Range, sync::LazyLock};

use knowledgepulse_json::{Object, Text, Value};
use memchr::memmem;
use regex::bytes::Regex;

use crate::{
    keywords::{ByKeyword, Owner},
    lines::{Lines, line_start},
    names::{closing_quote, is_marked, opening_at},
    random::prefixed_tokens,
    ranges::{Ranges, expression, merged, skip, skip_back},
    text::{self, is_white_space, is_word},
    values::{STOP_WORDS, is_expression, is_keyword, is_placeholder, is_small_number},
};

/// A line of `rules/structures.tsv`.
struct Structure {
    expression: Regex,
    /// Whether it begins with a word.
    begins_word: bool,
    /// Whether the secret stands before the keyword.
    is_before: bool,
}

impl Structure {
    /// Returns the structure of a line, and its keywords.
    fn of(line: &'static str) -> Option<(Self, &'static str)> {
        let (keywords, pattern) = line.split_once('\t')?.1.split_once('\t')?;
        let is_before = pattern.ends_with('$');
        let own = pattern.strip_prefix(r"\b").unwrap_or(pattern);
        let structure = Self {
            expression: expression(&if is_before {
                own.to_owned()
            } else {
                format!("^(?:{own})")
            }),
            begins_word: own.len() < pattern.len(),
            is_before,
        };
        Some((structure, keywords))
    }
}

static STRUCTURES: LazyLock<ByKeyword<Structure>> = LazyLock::new(|| {
    let lines = include_str!("../rules/structures.tsv").lines().skip(1);
    ByKeyword::of(lines.filter_map(Structure::of), ',')
});

/// Returns the keywords of all structures.
pub(super) fn keywords() -> Vec<Vec<u8>> {
    STRUCTURES.keywords()
}

/// Finds secrets by the expressions of `rules/structures.tsv`.
pub(super) fn of_structures(text: &text::Text) -> Ranges {
    const MOST_LETTERS: usize = 512;
    const MOST_BEFORE: usize = 128;
    let letters = text.letters();
    let mut ranges = Ranges::new();
    for keyword in text.keywords(Owner::Structures) {
        let start = keyword.range.start;
        let follows_word = start > 0 && is_word(letters[start - 1]);
        for (_, row) in STRUCTURES.of_keyword(keyword.number) {
            if row.begins_word && follows_word {
                continue;
            }
            let within = if row.is_before {
                start.saturating_sub(MOST_BEFORE)..start
            } else {
                start..letters.len().min(start + MOST_LETTERS)
            };
            let found = row.expression.captures(&letters[within.clone()]);
            let secret = found.and_then(|found| found.get(1).map(|group| group.range()));
            let secret = secret.map(|secret| within.start + secret.start..within.start + secret.end);
            let is_secret =
                |value: &[u8]| is_value(value) && !is_small_number(value) && !is_expression(value);
            ranges.extend(secret.filter(|range| is_secret(&letters[range.clone()])));
        }
    }
    merged(ranges)
}

/// Returns whether a field is a model's thought that only its provider can read: Base64 under a name that the formats of agents have.
pub(super) fn is_opaque(object: &Object, name: &Text, value: &Value) -> bool {
    const LEAST_LETTERS: usize = 64;
    let of_base64 = |letter: &u8| letter.is_ascii_alphanumeric() || b"+/-_=".contains(letter);
    // A key with a prefix of two parts: `github_pat_…`.
    let is_token = |text: &[u8]| {
        let parts = text[..LEAST_LETTERS].split(|letter| !letter.is_ascii_alphanumeric());
        parts.count() > 2
            && prefixed_tokens(text)
                .first()
                .is_some_and(|token| token.start == 0)
    };
    let is_base64 = |text: &Text| {
        let text = text.as_bytes();
        text.len() >= LEAST_LETTERS && text.iter().all(of_base64)
    };
    if !value.as_text().is_some_and(is_base64) {
        return false;
    }
    let mut name = name.as_bytes().to_ascii_lowercase();
    name.retain(|letter| *letter != b'_');
    let kind = object.get("type").and_then(Value::as_str);
    let is_redacted = name == b"data" && matches!(kind, Some("redacted_thinking" | "reasoning.encrypted"));
    let is_named = is_redacted
        || name.ends_with(b"signature")
        || matches!(name.as_slice(), b"encryptedcontent" | b"reasoningopaque");
    is_named && !value.as_text().is_some_and(|text| is_token(text.as_bytes()))
}

/// Finds Azure's keys of storage accounts: 64 bytes in Base64 near a word that names them.
pub(super) fn account_keys(letters: &[u8]) -> Ranges {
    static WORDS: LazyLock<Regex> = LazyLock::new(|| {
        expression(r"(?i)\bkey ?\d\b|account ?key|keyname|\bfull\b|primary|secondary|storage")
    });
    const LETTERS: usize = 86;
    const MOST_AROUND: usize = 160;
    let of_base64 = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/');
    let mut ranges = Ranges::new();
    for padding in memmem::find_iter(letters, "==") {
        let least = padding.saturating_sub(LETTERS + 1);
        let start = skip_back(letters, least..padding, of_base64);
        let before = &letters[start.saturating_sub(MOST_AROUND)..start];
        let end = padding + 2;
        let behind = &letters[end..letters.len().min(end + MOST_AROUND)];
        let is_named = || WORDS.is_match(before) || WORDS.is_match(behind);
        if padding - start == LETTERS && !before.ends_with(b"-") && is_named() {
            ranges.push(start..end);
        }
    }
    ranges
}

fn is_value(value: &[u8]) -> bool {
    !value.is_empty()
        && !is_marked(value)
        && !is_placeholder(value)
        && !is_keyword(value)
        && !STOP_WORDS.has(value)
}

/// Finds the values of the data of Kubernetes' secrets, in JSON and YAML.
pub(super) fn kubernetes_secrets(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r#"(?:^|[^-])---(?:\s|\\)|(?:\b|\\[nr])kind\\*["']?\s*:\s*\\*["']?(\w+)"#,
            r#"|(?:\b|\\[nr])(data|stringData)\\*["']?\s*:"#
        ))
    });
    if memmem::find(letters, b"Secret").is_none() {
        return Ranges::new();
    }
    let mut data = Data {
        letters,
        ranges: Ranges::new(),
        end: 0,
    };
    // The names of data before the kind of their object.
    let mut waiting = Vec::new();
    let mut is_secret = false;
    for found in EXPRESSION.captures_iter(letters) {
        if let Some(kind) = found.get(1) {
            is_secret = kind.as_bytes() == b"Secret";
            if is_secret {
                waiting.drain(..).for_each(|name| data.find(name));
            }
            waiting.clear();
        } else if let Some(name) = found.get(2) {
            let name = name.start()..found.get(0).map_or(name.end(), |whole| whole.end());
            if is_secret {
                data.find(name);
            } else {
                waiting.push(name);
            }
        } else {
            // A line between documents.
            is_secret = false;
            waiting.clear();
        }
    }
    data.ranges
}

/// The values of maps.
struct Data<'l> {
    letters: &'l [u8],
    ranges: Ranges,
    /// Where the text ends that has been searched.
    end: usize,
}

impl Data<'_> {
    /// Finds the values of the map behind a name and a colon.
    fn find(&mut self, name: Range<usize>) {
        if name.start < self.end {
            return;
        }
        let opening = skip(self.letters, name.end, is_white_space);
        self.end = if self.letters.get(opening) == Some(&b'{') {
            self.members(opening + 1)
        } else {
            self.entries(name)
        };
    }

    /// Finds the strings of a JSON object that are no names. Returns its end.
    fn members(&mut self, mut at: usize) -> usize {
        let letters = self.letters;
        loop {
            at = skip(letters, at, |letter| {
                !matches!(letter, b'"' | b'\\' | b'}' | b' ')
            });
            let Some(opening) = opening_at(letters, at) else {
                match letters.get(at) {
                    Some(b'\\') => at += 1,
                    Some(b' ') => {
                        let value = at + 1..skip(letters, at + 1, |letter| {
                            !is_white_space(letter) && !matches!(letter, b'"' | b'\\' | b',' | b'}')
                        });
                        at = value.end;
                        // YAML has values without quotes there.
                        let text = &letters[value.clone()];
                        if is_value(text) && !text.ends_with(b":") {
                            self.ranges.push(value);
                        }
                    }
                    _ => return at,
                }
                continue;
            };
            let inner = opening.end..closing_quote(letters, opening.clone());
            at = (inner.end + opening.len()).min(letters.len());
            let behind = skip(letters, at, is_white_space);
            if letters.get(behind) != Some(&b':') && is_value(&letters[inner.clone()]) {
                self.ranges.push(inner);
            }
        }
    }

    /// Finds the values in the lines of YAML that are indented further than a name, whatever stands before each line. Returns their end.
    fn entries(&mut self, name: Range<usize>) -> usize {
        const MOST_BEFORE: usize = 120;
        let letters = self.letters;
        let before = line_start(letters, name.start, MOST_BEFORE)..name.start;
        // A text in a JSON string begins behind a quote.
        let quote = letters[before.clone()].iter().rposition(|letter| *letter == b'"');
        let prefix = &letters[quote.map_or(before.start, |quote| before.start + quote + 1)..before.end];
        for line in Lines::new(letters, name.end..letters.len()).skip(1) {
            if letters[line.clone()].trim_ascii().is_empty() {
                continue;
            }
            let indent = after_prefix(&letters[line.clone()], prefix).map(|length| line.start + length);
            let Some(entry) = indent.filter(|indent| letters.get(*indent) == Some(&b' ')) else {
                return line.start;
            };
            let text = &letters[entry..line.end];
            let value = match memmem::find(text, b": ") {
                Some(colon) if has_whole_strings(&text[..colon]) => entry + colon + 2,
                _ if text.ends_with(b":") => continue,
                _ => entry,
            };
            let is_around = |letter: u8| is_white_space(letter) || matches!(letter, b'"' | b'\'' | b'\\');
            let value = skip(&letters[..line.end], value, is_around);
            let value = value..skip_back(letters, value..line.end, is_around);
            let text = &letters[value.clone()];
            if is_value(text) && !(text.len() < 3 && matches!(text[0], b'|' | b'>')) {
                self.ranges.push(value);
            }
        }
        letters.len()
    }
}

fn has_whole_strings(text: &[u8]) -> bool {
    text.iter()
        .filter(|letter| **letter == b'"')
        .count()
        .is_multiple_of(2)
}

/// Returns the length of the text before a line, if it is like that before another line: numbers and words differ, and the signs of a diff.
fn after_prefix(line: &[u8], prefix: &[u8]) -> Option<usize> {
    let of_diff = |letter: u8| matches!(letter, b'+' | b'-' | b' ');
    let (mut at, mut of) = (0, 0);
    while of < prefix.len() {
        let word = skip(prefix, of, |letter| letter == b' ');
        if prefix.get(word).is_some_and(u8::is_ascii_alphanumeric) {
            let start = skip(line, at, |letter| letter == b' ');
            at = skip(line, start, |letter| letter.is_ascii_alphanumeric());
            of = skip(prefix, word, |letter| letter.is_ascii_alphanumeric());
            if at == start {
                return None;
            }
        } else {
            let (letter, other) = (*line.get(at)?, prefix[of]);
            if letter != other && !(of_diff(letter) && of_diff(other)) {
                return None;
            }
            at += 1;
            of += 1;
        }
    }
    Some(at)
}
