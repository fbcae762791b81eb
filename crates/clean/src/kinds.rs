//! The kinds of findings, in the order of the search: the SDK's fourteen kinds, and between them kinds that the SDK misses. `rules/kinds.tsv`
//! lists them.

use std::{ops::Range, sync::LazyLock};

use knowledgepulse_json::Value;

use crate::{
    base64, columns, commands, emails, keys,
    keywords::ByKeyword,
    languages, names, numbers, pem, phrases, providers, random,
    ranges::{Pattern, Ranges, skip},
    siblings, structures,
    text::{Text, is_word},
    wrapped,
};

/// Finds the ranges to replace, in linear time, in the letters of a text.
type Find = fn(&[u8]) -> Ranges;
/// Checks a match of an expression, and returns the part of it, or the text behind it, to replace.
type Check = fn(&[u8], Range<usize>) -> Option<Range<usize>>;

/// How a kind is found.
#[derive(Clone, Copy)]
enum Finder {
    Own(Find),
    /// In the units of a text, which tell letters beyond ASCII.
    InText(fn(&Text) -> Ranges),
    Match(Check),
}
use Finder::{InText, Match, Own};

/// Something to be found.
pub(super) struct Kind {
    /// The type.
    pub(super) name: &'static str,
    /// The text between the marker and the rest of the match.
    pub(super) before: &'static str,
    /// Whether it says who somebody is or where; all others are secrets.
    pub(super) is_identifier: bool,
    /// Whether it is applied with `strict`, and whether without.
    modes: (bool, bool),
    /// Letters that every match has, or which tell where alone it is searched, as `rules/kinds.tsv` says: a text without one of them is not searched.
    needs: &'static [u8],
    /// Words with `|` between them, one of which every match has, in any case; none if that is not so.
    words: &'static str,
    /// The bit of its line, which a text has that has one of the words.
    bit: u128,
    finder: Finder,
    expression: Pattern,
}

/// The kinds of findings that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanOptions {
    /// Whether identifiers (e-mail addresses, telephone numbers, IP addresses, home directories) are replaced as well as
    /// secrets. They are, except at the SDK's level `private`.
    pub identifiers: bool,
    /// Whether to find kinds that the SDK does not know.
    pub strict: bool,
}

/// All kinds.
pub(super) static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let lines = include_str!("../rules/kinds.tsv").lines();
    let kinds = lines.filter(|line| !line.starts_with('#'));
    (0..).zip(kinds).filter_map(Kind::of).collect()
});

/// The bits of the kinds that need a word.
static BY_WORD: LazyLock<ByKeyword<u128>> = LazyLock::new(|| {
    let with_words = KINDS.iter().filter(|kind| !kind.words.is_empty());
    ByKeyword::of(with_words.map(|kind| (kind.bit, kind.words)), '|')
});

/// Returns the bits of the kinds that need the word of a number.
pub(super) fn of_word(number: usize) -> u128 {
    BY_WORD.of_keyword(number).fold(0, |bits, (_, bit)| bits | bit)
}

/// Returns the words that kinds need, folded.
pub(super) fn keywords() -> Vec<Vec<u8>> {
    let folded = |word: Vec<u8>| {
        let word = String::from_utf8_lossy(&word).into_owned();
        word.encode_utf16().map(languages::folded).collect()
    };
    BY_WORD.keywords().into_iter().map(folded).collect()
}

/// The functions of kinds.
const FINDERS: &[(&str, Finder)] = &[
    ("", Match(|_, found| Some(found))),
    ("arguments", InText(commands::arguments)),
    ("assigned", InText(names::assigned)),
    ("card_number", Match(numbers::card_number)),
    ("columns", InText(columns::values)),
    ("encoded_secrets", InText(encoded_secrets)),
    ("iban", Match(numbers::iban)),
    ("international_phone", Match(numbers::international_phone)),
    ("ipv6_address", Match(numbers::ipv6_address)),
    ("json_web_tokens", Own(keys::json_web_tokens)),
    ("kubernetes_secrets", Own(siblings::kubernetes_secrets)),
    ("mac_address", Match(numbers::mac_address)),
    ("named_options", Own(commands::named_options)),
    ("national_id", Match(numbers::national_id)),
    ("national_phone", Match(numbers::national_phone)),
    ("of_structures", InText(structures::of_structures)),
    ("own_address", Match(numbers::own_address)),
    ("own_email", Match(emails::own_email)),
    ("phone_outside_uuid", Match(numbers::phone_outside_uuid)),
    ("token_alone", Match(random::token_alone)),
    ("hook", Match(random::hook)),
    ("of_query", Match(random::of_query)),
    ("numbers_of_key", Match(random::numbers_of_key)),
    ("recovery_codes", Own(phrases::recovery_codes)),
    ("prefixed_tokens", Own(random::prefixed_tokens)),
    ("private_keys", Own(pem::private_keys)),
    ("provider_keys", InText(providers::keys)),
    ("seed_phrases", Own(phrases::seed_phrases)),
    ("rests", Own(wrapped::rests)),
    ("siblings", Own(siblings::values)),
    ("social_security_number", Match(numbers::social_security_number)),
    ("told", InText(languages::said)),
    ("url_credentials", Own(keys::url_credentials)),
    ("with_credentials", Match(keys::with_credentials)),
    ("wrapped_keys", InText(wrapped_keys)),
];

impl Kind {
    fn of((at, line): (u32, &'static str)) -> Option<Self> {
        let fields: Vec<_> = line.split('\t').collect();
        let [name, sort, when, needs, function, pattern] = fields[..] else {
            return None;
        };
        let (_, finder) = FINDERS.iter().find(|(name, _)| *name == function)?;
        let (needs, words) = needs.split_once('|').unwrap_or((needs, ""));
        Some(Self {
            name,
            before: if name == "bearer_token" { " " } else { "" },
            is_identifier: sort == "identifier",
            modes: (!when.ends_with("without strict"), when != "strict"),
            needs: needs.as_bytes(),
            words,
            bit: 1 << at,
            finder: *finder,
            expression: Pattern::new(pattern),
        })
    }

    pub(super) fn is_wanted(&self, options: CleanOptions) -> bool {
        let (strict, others) = self.modes;
        (if options.strict { strict } else { others }) && (options.identifiers || !self.is_identifier)
    }

    /// Returns whether a text has one of the words that the kind needs, if it needs any.
    fn has_word(&self, text: &Text) -> bool {
        self.words.is_empty() || text.all_keywords().kinds & self.bit != 0
    }

    /// Returns the ranges of a text to replace.
    pub(super) fn find(&self, text: &Text) -> Ranges {
        let letters = text.letters();
        let check = match self.finder {
            _ if !self.has_word(text) || !text.has_all(self.needs) => return Ranges::new(),
            Own(find) => return find(letters),
            InText(find) => return find(text),
            Match(check) => check,
        };
        let expression = &self.expression;
        let mut ranges = Ranges::new();
        let has_number = self.needs.contains(&b'6');
        let has_group = expression.captures_len() > 1;
        let mut from = 0;
        let mut find_in = |part: Range<usize>| {
            from = part.start.max(from);
            while let Some(found) = expression.find_at(&letters[..part.end], from.min(part.end)) {
                let group = || {
                    expression
                        .captures_at(&letters[..part.end], found.start())?
                        .get(1)
                };
                let range = match has_group {
                    true => group().map(|part| part.range()),
                    false => check(letters, found.range()),
                };
                // A number can begin with the next group of one that is none.
                from = match &range {
                    Some(range) => range.end.max(found.end()),
                    None if has_number => skip(&letters[..found.end()], found.start() + 1, is_word),
                    None => found.end(),
                };
                // What belongs to a match can have been found before it.
                let least = ranges.last().map_or(0, |last| last.end);
                ranges.extend(range.map(|range| range.start.max(least)..range.end));
            }
        };
        match self.needs.iter().find_map(|need| text.parts(*need)) {
            Some(parts) => parts.iter().cloned().for_each(find_in),
            None => find_in(0..letters.len()),
        }
        ranges
    }
}

/// Returns whether a text has a secret, also in Base64.
pub(super) fn has_secret(text: &str) -> bool {
    let text = Text::of(text);
    !plain_secrets(&text).is_empty() || !base64::view(text.letters()).find(plain_secrets).is_empty()
}

/// Finds secrets that stand there as they are.
fn plain_secrets(text: &Text) -> Ranges {
    let of_secrets = CleanOptions {
        identifiers: false,
        strict: true,
    };
    let kinds = KINDS.iter().filter(|kind| kind.is_wanted(of_secrets));
    let kinds = kinds.filter(|kind| kind.name != "encoded_secret");
    kinds.flat_map(|kind| kind.find(text)).collect()
}

/// Finds Base64 of texts that have a secret, perhaps in Base64 again.
fn encoded_secrets(text: &Text) -> Ranges {
    base64::view(text.letters()).find(|inner| {
        let mut found = base64::view(inner.letters()).find(plain_secrets);
        found.extend(plain_secrets(inner));
        found
    })
}

/// Finds keys that go over several lines.
fn wrapped_keys(text: &Text) -> Ranges {
    wrapped::view(text).find(|joined| {
        let mut found = providers::keys(joined);
        found.extend(keys::json_web_tokens(joined.letters()));
        found
    })
}

/// Returns for each string of a list the type of a secret that goes over several of them, as over the lines of a file; nothing for another list.
pub(super) fn over_strings(list: &[Value]) -> Vec<Option<&'static str>> {
    const FIND: [(&str, Find); 2] = [
        ("private_key", pem::private_keys),
        ("seed_phrase", phrases::seed_phrases),
    ];
    let mut joined = Vec::new();
    let mut ends = Vec::with_capacity(list.len());
    for string in list {
        let Some(text) = string.as_text() else {
            return Vec::new();
        };
        joined.extend_from_slice(text.as_bytes());
        joined.push(b'\n');
        ends.push(joined.len());
    }
    let mut types = vec![None; list.len()];
    for (name, find) in FIND {
        for range in find(&joined) {
            let string_of = |at: usize| ends.partition_point(|end| *end <= at);
            let strings = string_of(range.start)..string_of(range.end - 1) + 1;
            if strings.len() > 1 {
                types[strings].fill(Some(name));
            }
        }
    }
    types
}
