//! Secrets that a sentence tells, in the languages of `rules/languages.tsv`: `das Passwort lautet …`, `비밀번호: …`.

use std::{collections::BTreeMap, ops::Range, sync::LazyLock};

use crate::{
    commands::is_said,
    keywords::{Keyword, Owner, apart},
    names::{begins_marker, is_secret_name, names_page},
    random::{is_hexadecimal, is_id, is_random},
    ranges::{Ranges, merged, skip, skip_back},
    text::{LATIN, OTHER, Text, is_white_space, is_word, letter},
    values::{is_chosen, is_generated, is_mixed, is_of_cases},
    words::Words,
};

/// How far behind the word for it a secret stands.
const MOST_BETWEEN: usize = 96;
/// Words between them.
const MOST_WORDS: usize = 9;
/// Letters that an inflected word has more.
const MOST_ENDING: usize = 4;
/// Shorter words are parts of others in languages that join words.
const LEAST_COMPOUND: usize = 7;
const MOST_SECRET_LETTERS: usize = 256;
/// What joins the parts of a word: `API key`, `api-key`, `api_key`, `apikey`.
const SEPARATORS: [&str; 4] = [" ", "-", "_", ""];
/// Stands among what a secret follows for the word itself.
const ITSELF: &str = "^";

/// Stands for nothing that a secret follows, if its shape alone tells it: words for an account, which are no names of secrets.
const NOTHING: &str = "!";

/// A word in small letters, and what may stand between it and its secret, if not anything.
type Word = (Vec<u16>, Option<Vec<&'static str>>);

/// The words of all languages, as letters with other ones for those beyond ASCII, and what may stand between each and its secret.
static LANGUAGES: LazyLock<Vec<(Vec<u8>, Word)>> = LazyLock::new(|| {
    let mut by_letters: BTreeMap<Vec<u8>, Word> = BTreeMap::new();
    for line in include_str!("../rules/languages.tsv").lines() {
        let fields: Vec<_> = line.split('\t').collect();
        let [language, words, followed, _example] = fields[..] else {
            continue;
        };
        if language.starts_with('#') {
            continue;
        }
        let verbs = (followed != "*").then(|| followed.split(' ').collect());
        for word in words.split(' ') {
            for separator in SEPARATORS {
                let units: Vec<u16> = word.replace('_', separator).encode_utf16().map(small).collect();
                by_letters.insert(
                    units.iter().map(|unit| folded(*unit)).collect(),
                    (units, verbs.clone()),
                );
            }
        }
    }
    by_letters.into_iter().collect()
});

/// Returns a unit in small letters.
fn small(unit: u16) -> u16 {
    let small = char::from_u32(unit.into()).map(|c| c.to_lowercase().next());
    small
        .flatten()
        .and_then(|c| u16::try_from(u32::from(c)).ok())
        .unwrap_or(unit)
}

/// Returns a letter for a unit: several beyond ASCII have the same one.
pub(super) fn folded(unit: u16) -> u8 {
    if let Ok(letter @ ..0x80) = u8::try_from(unit) {
        return letter.to_ascii_lowercase();
    }
    let [high, low] = small(unit).to_be_bytes();
    if high == 0 && low < 0x80 {
        low
    } else {
        0x80 | high.wrapping_mul(31).wrapping_add(low)
    }
}

/// Returns whether a text is one of the words.
pub(super) fn is_word_for_secret(text: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    let found = LANGUAGES.binary_search_by(|(letters, _)| letters.as_slice().cmp(&text));
    found.is_ok_and(|at| is_of_secret(&LANGUAGES[at].1))
}

fn is_of_secret((_, verbs): &Word) -> bool {
    verbs.as_ref().is_none_or(|verbs| !verbs.contains(&NOTHING))
}

/// Returns an expression that finds the words, in a text's letters.
pub(super) fn words_as_expression() -> String {
    let escaped = |word: Vec<u8>| word.escape_ascii().to_string().replace('.', r"\.");
    let letters = |(_, (word, _)): &(_, Word)| word.iter().map(|unit| letter(*unit)).collect::<Vec<u8>>();
    latin().map(letters).map(escaped).collect::<Vec<_>>().join("|")
}

/// Returns the words of Latin letters.
fn latin() -> impl Iterator<Item = &'static (Vec<u8>, Word)> {
    let is_latin = |unit: &u16| letter(*unit) != OTHER;
    let has_latin = |unit: &u16| letter(*unit).is_ascii_alphabetic();
    let words = LANGUAGES.iter().filter(|(_, word)| is_of_secret(word));
    words.filter(move |(_, (word, _))| word.iter().any(has_latin) && word.iter().all(is_latin))
}

/// Returns the words of Latin letters, folded.
pub(super) fn latin_words() -> impl Iterator<Item = Vec<u8>> {
    latin().map(|(folded, _)| folded.clone())
}

/// Returns all words, folded.
pub(super) fn words() -> Vec<Vec<u8>> {
    LANGUAGES.iter().map(|(folded, _)| folded.clone()).collect()
}

/// Finds secrets behind a word for one.
pub(super) fn said(text: &Text) -> Ranges {
    let letters = text.letters();
    let mut ranges = Ranges::new();
    for Keyword { range: found, number } in apart(text.keywords(Owner::Languages)) {
        let (_, (word, verbs)) = &LANGUAGES[*number];
        let units = &text.units()[found.clone()];
        let is_equal = units.iter().zip(word).all(|(unit, of)| small(*unit) == *of);
        let before = letters[..found.start].last().copied().unwrap_or(b' ');
        // In a program, `$password` is a variable, and so is `$contrasena`, which has a value there.
        let is_variable = before == b'$' && verbs.is_some();
        let is_part = is_word(before)
            || is_variable
            || b"-.+/@".contains(&before)
            || begins_marker(letters, found.start);
        // The last part of a name tells a shape alone, but for `MySQL-lösenord`, which other languages join so.
        let is_joined = matches!(before, b'-' | b'_');
        let is_last_part = is_joined && (before == b'_' || verbs.is_some());
        // `Einmalkennwort`, but not `bypassword`, which English does not join.
        let is_compound = verbs.is_none() && units.len() >= LEAST_COMPOUND && before.is_ascii_lowercase();
        if is_equal && (!(is_part && units[0] < 0x250) || is_joined || is_compound) {
            let told_by = if is_last_part {
                Some(&[][..])
            } else {
                verbs.as_deref()
            };
            let behind = secret_behind(letters, found.end, told_by)
                .filter(|id| !is_id(&letters[id.clone()]) || !names_page(&letters[..found.end]));
            let is_field = || is_name_of_field(letters, found);
            ranges.extend(
                behind.or_else(|| {
                    secret_before(letters, found.start).filter(|_| verbs.is_none() || !is_field())
                }),
            );
        }
    }
    merged(ranges)
}

/// Returns whether a word names a field or counts something: `"input_tokens":7`, `token_type`, `1,200 tokens`, `tokens 7`. What stands before
/// it is of another field then.
fn is_name_of_field(letters: &[u8], word: &Range<usize>) -> bool {
    let is_part = |letter: Option<&u8>| letter.is_some_and(|letter| is_word(*letter) || *letter == b'-');
    let end = word.end + usize::from(letters.get(word.end) == Some(&b's'));
    let next = skip(letters, end, |letter| b" \"'\\".contains(&letter));
    let follows = letters.get(next).copied().unwrap_or(b' ');
    is_part(letters.get(end))
        || is_part(letters[..word.start].last())
        || b":=".contains(&follows)
        || follows.is_ascii_digit()
}

/// Words that join a secret to the word for it behind it.
static COPULAS: Words = Words::new("is was are as est ist es als como comme come som jako je er van este");

/// Returns the secret before a word that begins at `start`: by its shape, or by what joins it to the word: `… is the password`, `「…」が`.
fn secret_before(letters: &[u8], start: usize) -> Option<Range<usize>> {
    /// Words between a secret that is joined and the word for it.
    const MOST_JOINED: usize = 3;
    let least = start.saturating_sub(MOST_BETWEEN);
    let is_sign = |letter: u8| is_white_space(letter) || letter >= 0x80 || b"\"'`.,;:()[]".contains(&letter);
    let is_blank = |letter: u8| is_sign(letter) && !matches!(letter, b'\n' | b'\r' | b';');
    let mut next = start..start;
    for count in 0..=MOST_WORDS {
        let end = skip_back(letters, least..next.start, is_blank);
        let word = skip_back(letters, least..end, |letter| !is_sign(letter))..end;
        let gap = &letters[end..next.start];
        let is_copula = || count > 0 && COPULAS.has(&letters[next.clone()]) || gap.contains(&OTHER);
        let is_joined = || count <= MOST_JOINED && is_copula();
        let is_medium = || is_mixed(&letters[word.clone()]) && !is_secret_name(&letters[word.clone()]);
        if is_shaped(&letters[word.clone()]) || is_joined() && is_medium() {
            return (word.start > least || least == 0)
                .then_some(word)
                .filter(|word| !letters[word.end..].starts_with(b"::") && is_said(letters, word, false));
        }
        next = word;
    }
    None
}

/// Returns whether a word has the shape of a password, with letters, digits and signs, or of a generated key.
pub(super) fn is_shaped(word: &[u8]) -> bool {
    const LEAST_KEY: usize = 20;
    const LENGTHS: std::ops::RangeInclusive<usize> = 8..=64;
    let has = |sort: fn(&u8) -> bool| word.iter().filter(|letter| sort(letter)).count();
    // Other signs also stand between the parts of names and terms.
    let is_varied = || is_of_cases(word) && has(u8::is_ascii_digit) > 1;
    let of_password = |letter: &u8| letter.is_ascii_alphanumeric() || b"!#$%?^&*+@~_-".contains(letter);
    let is_password = || {
        LENGTHS.contains(&word.len())
            && is_mixed(word)
            && (has(|letter| b"!#$%?^".contains(letter)) > 0
                || has(|letter| b"&*+@~".contains(letter)) > 0 && is_varied())
            && word.iter().all(of_password)
            && word[0].is_ascii_alphanumeric()
    };
    let of_key = |letter: &u8| letter.is_ascii_alphanumeric() || b"+/=_~-".contains(letter);
    let is_key = || is_generated(word) || word.len() >= LEAST_KEY && is_mixed(&word[..word.len() - 1]);
    is_password() || is_key() && word.iter().all(of_key) && is_random(word) && !is_hexadecimal(word)
}

/// Returns the password in a value behind an account and a slash.
pub(super) fn password_behind(letters: &[u8], value: &Range<usize>) -> Option<Range<usize>> {
    let slash = value.start + letters[value.clone()].iter().position(|letter| *letter == b'/')?;
    // Capitals are of a key with a slash.
    let of_account = |letter: &u8| is_word(*letter) && !letter.is_ascii_uppercase();
    let is_account = letters[value.start..slash].iter().all(of_account);
    let password = &letters[slash + 1..value.end];
    (is_account && (is_chosen(password) || is_shaped(password))).then_some(slash + 1..value.end)
}

/// Returns the secret behind a word that ends at `end`: the first one of the next words that can be one. With `verbs` it has to follow one of
/// them or a colon, or have the shape of a password.
fn secret_behind(letters: &[u8], end: usize, verbs: Option<&[&str]>) -> Option<Range<usize>> {
    let limit = letters.len().min(end + MOST_BETWEEN);
    // Letters of other scripts go on with their own alone.
    let is_other = letters[end - 1] == OTHER;
    let of_ending =
        |letter: u8| letter == OTHER || !is_other && (letter.is_ascii_alphabetic() || letter == LATIN);
    let ending = skip(&letters[..limit], end, of_ending);
    let is_short = ending - end <= MOST_ENDING || letters[end..ending].iter().all(|letter| *letter >= LATIN);
    // Of the word in English, only the plural.
    if !is_short || verbs.is_some() && !is_other && !matches!(&letters[end..ending], [] | [b's']) {
        return None;
    }
    let is_named = verbs.is_none_or(|verbs| !verbs.contains(&NOTHING));
    // The value of a field is the account itself.
    if !is_named && matches!(letters[ending..], [b':' | b'=', ..]) {
        return None;
    }
    let may_be_number = verbs.is_none_or(|verbs| verbs.contains(&":"));
    let mut at = ending;
    let is_around =
        |letter: u8| is_white_space(letter) || letter >= 0x80 || b"\"'`*()[]<>,".contains(&letter);
    // Quotes or a dash may stand between the word and its secret: `pw "…"`.
    let is_next = || {
        let next = skip(&letters[..limit], at, |letter| {
            letter == OTHER || b" \"'`*-".contains(&letter)
        });
        (next > at || is_other)
            && letters[next..limit]
                .first()
                .is_some_and(u8::is_ascii_alphanumeric)
    };
    let mut is_told = verbs.is_none_or(|verbs| verbs.contains(&ITSELF) && is_next());
    // A field's colon tells its own value, not that of the next field: `tokens: 7, cache key: page-1`.
    let may_tell = verbs.is_none() || !matches!(letters[at..limit], [b':' | b'=', ..]);
    // Whether the sentence has ended; then a shape alone tells.
    let mut is_over = false;
    // Whether only a colon has told it, which in English is the name of a field.
    let mut is_field = true;
    // Letters beyond ASCII end no word.
    let mut words = 0;
    for count in 0.. {
        let is_blank = |letter| is_around(letter) && !matches!(letter, b'\n' | b'\r');
        let start = skip(&letters[..limit], at, is_blank);
        words += usize::from(count > 0 && (verbs.is_some() || letters[at..start].contains(&b' ')));
        // The secret was replaced before.
        let is_found = letters[start..].starts_with(b"REDACTED:password");
        if start >= limit || words > MOST_WORDS || is_found || matches!(letters[start], b'\n' | b'\r') {
            return None;
        }
        // The end of a string in a list.
        is_over |= letters[at..start].windows(2).any(|signs| signs == b"\",");
        let most = letters.len().min(start + MOST_SECRET_LETTERS);
        let of_secret = |letter: u8| letter.is_ascii_graphic() && !b"\"`<>\\".contains(&letter);
        let end = skip(&letters[..most], start, of_secret);
        let text = &letters[start..end];
        at = end.max(start + 1);
        // In English a sign of assignment is one of a program.
        if verbs.is_some() && text.contains(&b'=') {
            return None;
        }
        if matches!(text, b":" | b"=" | b"-" | b"->" | b"=>" | b"/" | b":=") {
            is_told |= count > 0 || verbs.is_none() || may_be_number;
            continue;
        }
        let begins = skip(letters, start, |letter| matches!(letter, b':' | b'=' | b'\'')).min(end);
        // Backticks mark any word of a document.
        let is_quoted = !is_field && matches!(letters[begins - 1], b'"' | b'\'' | OTHER);
        let is_behind = |letter: u8| b".,;:!?'\")]}*".contains(&letter);
        let value = begins..skip_back(letters, begins..end, is_behind);
        let value = password_behind(letters, &value).unwrap_or(value);
        // A sign at its end can belong to a secret that has others, or is made of words.
        let word = &letters[value.clone()];
        let has_sign = is_chosen(word) || !word.iter().all(u8::is_ascii_alphanumeric);
        let ends_so = has_sign && matches!(letters[value.end..end], [b'!' | b'?' | b'*', ..]);
        let value = value.start..value.end + usize::from(ends_so);
        let word = &letters[value.clone()];
        // The rest of an escape: `\u003c!`. An id is told by the word before it alone: `token for job UUID` is none.
        let may_be_shape = letters[begins - 1] != b'\\';
        let digits = word.iter().filter(|letter| letter.is_ascii_digit()).count();
        let follows_colon = || {
            /// A quote and a blank behind a colon.
            const MOST_BEFORE: usize = 4;
            let before = skip_back(letters, start.saturating_sub(MOST_BEFORE)..start, |letter| {
                b" \t\"'`*".contains(&letter)
            });
            letters[..before].ends_with(b":")
        };
        let is_pin = may_be_number
            && (verbs.is_some() || follows_colon() || is_other && count == 0)
            && matches!(digits, 4..=8)
            && word.iter().all(|letter| b"0123456789#*-".contains(letter));
        // A number with its letters, not a word.
        let is_told_so = is_told && is_named && (!may_be_number || verbs.is_none() || digits > 0);
        if is_told_so && is_pin
            || (is_told_so && !is_over
                || may_be_shape && is_shaped(word) && (is_named && words == 0 || !is_id(word)))
                && is_said(letters, &value, is_quoted)
        {
            return Some(value);
        }
        let closing = skip_back(text, 0..text.len(), |letter| b"\"'),".contains(&letter));
        let is_sentence =
            text[..closing].ends_with(b".") || text.iter().any(|letter| b";(){}=".contains(letter));
        if verbs.is_some() && letters[end..].starts_with(b"\"") {
            return None;
        }
        is_over |= is_sentence;
        let is_verb = |verbs: &[&str]| {
            verbs.iter().any(|verb| {
                text.trim_ascii_end()
                    .strip_suffix(b":")
                    .unwrap_or(text)
                    .eq_ignore_ascii_case(verb.as_bytes())
            })
        };
        let is_verb = verbs.is_none_or(is_verb);
        // A word in quotes can be anything behind `to`.
        is_field = !is_verb || text == b"to";
        is_told = is_verb || may_tell && count > 0 && text.ends_with(b":");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(text: &str) -> Vec<String> {
        let units: Vec<u16> = text.encode_utf16().collect();
        let ranges = said(&Text::new(&units)).into_iter();
        ranges
            .map(|range| String::from_utf16_lossy(&units[range]))
            .collect()
    }

    /// Returns a text without the marks of its secret, and the secret.
    fn unmarked(example: &str) -> (String, &str) {
        let (before, rest) = example.split_once('«').unwrap();
        let (secret, behind) = rest.split_once('»').unwrap();
        (format!("{before}{secret}{behind}"), secret)
    }

    #[test]
    fn said_finds_the_secret_of_each_example() {
        let lines = include_str!("../rules/languages.tsv").lines();
        for line in lines.filter(|line| !line.starts_with('#')) {
            let (text, secret) = unmarked(line.rsplit('\t').next().unwrap());
            assert_eq!(found_in(&text), [secret], "{line}");
        }
    }

    #[test]
    fn said_finds_a_secret_before_the_word_for_it() {
        for example in [
            "«Falcon-Castle#44» is the root password, do not share",
            "try «otter3621» as password",
            "«gOAjB3FqMSfs5yhr» — это пароль от админки",
            "「«otter3621»」がパスワードです",
            "«otter3621»가 비밀번호입니다",
            "«Harbor2019!»是数据库的密码",
        ] {
            let (text, secret) = unmarked(example);
            assert_eq!(found_in(&text), [secret], "{example}");
        }
        for text in [
            "secret1 or secret2 are secret numbers",
            "Update the metadata **structures2** to include token stats",
            "utf8 is the password encoding",
        ] {
            assert!(found_in(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn said_finds_secrets_that_a_sentence_calls_one() {
        for example in [
            "The Datadog app key is `«3f9c0b1e7a64d25580c3b9e1f7a6d4028c5b9e13»`.",
            "The Confluent secret is «kT9vQ2mZx8LrB4nWc7YpJ1sHd6GfA3eUo5RiXt0KqNbVw».",
            "The Twitter API secret is «Zx8LrB4nWc7YpJ1sHd6GfA3eUo5RiXt0KqNbVwkT9vQ2m», please rotate it.",
            "The session secret is `«+nWc7YpJ1s/Hd6GfA3eUo5RiXt0KqNbV»`\nThanks!",
            "our webhook signing secret was «nWc7YpJ1sHd6GfA3eUo5»",
            "The api-key is «3f9c0b1e7a64d255», the rest is public",
            "the client_secret is «nWc7YpJ1sHd6GfA3eUo5»",
        ] {
            let (text, secret) = unmarked(example);
            assert_eq!(found_in(&text), [secret], "{example}");
        }
    }

    #[test]
    fn said_leaves_sentences_about_secrets_unchanged() {
        for text in [
            "kubectl get secret app-tls-v2",
            "mount the secret db_creds_2 into the pod",
            "the secret is stored in vault-2",
            "secretary is room42b",
            "tokens: 417039, cache key: page-59577, next_page_token=6",
        ] {
            assert_eq!(found_in(text), [""; 0], "{text}");
        }
    }
}
