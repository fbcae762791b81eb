//! Whether a text is the name of a person, an account, or nobody.

use std::sync::LazyLock;

use super::{rules::expanded, spellings::spellings};
use crate::{
    phrases,
    random::is_uuid,
    ranges::Pattern,
    values::{is_expression, is_keyword, is_placeholder},
    words::{COMMON, NOBODY, Words},
};

/// Owners of repositories that many people work with: they say nothing about who does.
static ORGANISATIONS: Words = Words::new(include_str!("../../rules/organisations.txt"));
/// Given names of many countries, in small letters without accents; none that sources often have as a word.
static GIVEN: Words = Words::new(include_str!("../../rules/given-names.txt"));
/// The names of companies.
static COMPANY: LazyLock<Pattern> = LazyLock::new(|| Pattern::of(expanded(" <LEGAL>$".to_owned())));
/// Words in small letters within the names of people.
pub(super) static PARTICLES: Words =
    Words::new("af al bin da de del den der di do dos el la le ten ter van von y");

/// Returns whether a word is a given name, with or without its accents.
pub(super) fn is_given(word: &str) -> bool {
    GIVEN.has(spellings(word.to_owned())[0].as_bytes())
}

/// Returns whether a name is one of everybody, or a marker: `user-1`.
pub(super) fn is_nobody(name: &str) -> bool {
    let number = ["user-", "host-"]
        .iter()
        .find_map(|marker| name.strip_prefix(marker));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        || NOBODY.has(name.as_bytes())
        || ORGANISATIONS.has(name.as_bytes())
        || name
            .split(['-', '_', '.'])
            .all(|part| NOBODY.has(part.as_bytes()))
}

/// Returns whether a text looks like the name of a person: one to four words with capitals, or of letters that have none.
pub(super) fn is_person(text: &str) -> bool {
    let is_of_name = |c: char| c.is_alphabetic() || matches!(c, '\'' | '’' | '-' | '.');
    let is_word = |word: &str| {
        word.chars().all(is_of_name)
            && !word.starts_with(char::is_lowercase)
            && word.chars().any(char::is_alphabetic)
            // `McLeod`, and neither `WriteFile` nor `UIImage`.
            && !word.as_bytes().windows(2).skip(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
            && !word.as_bytes().windows(3).any(|next| next[0].is_ascii_uppercase() && next[1].is_ascii_uppercase() && next[2].is_ascii_lowercase())
    };
    let words: Vec<&str> = text.split(' ').collect();
    let is_common = |word: &&str| is_nobody(word) || COMMON.has(word.as_bytes());
    text.chars().count() >= 2
        && words.len() <= 4
        && words.iter().all(|word| is_word(word))
        && !words.iter().all(is_common)
        && !COMPANY.is_match(text.as_bytes())
}

/// Returns whether a word is a common one, also in the plural, or ends as words of English do; or several, as names in programs are.
pub(super) fn is_english(word: &str) -> bool {
    static SUFFIX: Pattern = Pattern::new(concat!(
        r"^.{3,}(?:[ts]ions?|ments?|ness|it(?:y|ies)|ings?|[ai]bles?|ful|less|[ae]nces?|isms?|ships?|ware|ally|[^jkv]ics?|[eo]rs|ives?|i[sz]ed?|ate[ds]?|ages?",
        r"|ures?|als?|ous|ed)$"
    ));
    let is_listed = |word: &str| {
        [&COMMON, &phrases::WORDS, &NOBODY]
            .iter()
            .any(|words| words.has(word.as_bytes()))
    };
    let word = word.to_lowercase();
    word.split(['_', '.']).all(|word| {
        is_listed(word)
            || word.strip_suffix('s').is_some_and(is_listed)
            || SUFFIX.is_match(word.as_bytes()) && !begins_oddly(word)
    })
}

/// Returns whether a word looks like a login: it has a digit or a sign, is a given name, or begins with two consonants that begin
/// no word, as an initial and a last name do.
pub(super) fn is_login(word: &str) -> bool {
    !is_english(word)
        && (word.bytes().any(|byte| byte.is_ascii_digit() || byte == b'.')
            || is_given(word)
            || begins_oddly(word))
}

/// Returns whether a word begins with two consonants that begin no word.
fn begins_oddly(word: &str) -> bool {
    static ONSETS: Words = Words::of("identity.onsets");
    let is_consonant = |letter: &u8| letter.is_ascii_lowercase() && !b"aeiouy".contains(letter);
    let onset = word.as_bytes().get(..2).unwrap_or_default();
    onset.iter().all(is_consonant) && !ONSETS.has(onset)
}

/// Returns whether a text is the name of a person whatever stands beside it: two or three words, none of which is common.
pub(super) fn is_full_name(text: &str) -> bool {
    let is_initial = |word: &str| matches!(word.as_bytes(), [b'A'..=b'Z', b'.']);
    let words = text
        .split(' ')
        .filter(|word| !PARTICLES.has(word.as_bytes()) && !is_initial(word));
    let words: Vec<&str> = words.collect();
    let is_own = |word: &&str| {
        word.chars().any(char::is_lowercase)
            && is_person(word)
            && !is_nobody(word)
            && !COMMON.has(word.as_bytes())
    };
    matches!(words.len(), 2 | 3) && words.iter().all(is_own)
}

/// Returns whether a word may be the name of an account.
pub(super) fn is_name(name: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~');
    name.chars().count() >= 2
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(is_of_name)
        && !is_uuid(name.as_bytes())
        && !is_nobody(name)
        && !is_property(name)
}

/// Returns whether a name is a property that a program reads, or says that there is none: `var.ssh_username`, `comment.user`, `nil`.
fn is_property(name: &str) -> bool {
    let is_read = |(object, last): (&str, &str)| COMMON.has(last.as_bytes()) && !is_given(object);
    is_keyword(name.as_bytes())
        || name.is_ascii() && is_placeholder(name.as_bytes())
        || is_expression(name.as_bytes())
        || name.rsplit_once('.').is_some_and(is_read)
}
