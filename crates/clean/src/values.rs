//! The kind of a value, by itself: a placeholder, a piece of a program, or a secret.

use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::Regex;

use crate::{
    base64::Decoder,
    random::{is_hexadecimal, is_random},
    ranges::{Pattern, expression, skip},
    text::{MARKER, OTHER},
    words::{COMMON, Words},
};

/// Words in the place of a secret that mean that there is no secret, or that name its type.
static KEYWORDS: Words = Words::of("values.keywords");

/// Words that follow the name of a secret in a sentence.
pub(super) static STOP_WORDS: Words = Words::of("values.stop_words");

/// The objects whose properties programs read.
const ROOTS: &str = "app|args|argv|body|bun|cfg|client|conf|config|context|crypto|ctx|data|deno|env|event|import|input|key|module|options|opts|os|\
     params|process|props|query|req|request|res|response|result|rows?|secrets|self|session|settings|state|std|sys|system|this|user|\
     val|value|values|var|vars";

/// Returns whether a word says that there is no secret, or its type.
pub(super) fn is_keyword(word: &[u8]) -> bool {
    // `__u32`, `String!`
    let word = word.strip_prefix(b"__").unwrap_or(word);
    let word = word.strip_suffix(b"!").unwrap_or(word);
    KEYWORDS.has(word) || word.strip_suffix(b"2").is_some_and(|word| KEYWORDS.has(word))
}

/// Returns whether a value is a marker already, perhaps in quotes.
pub(super) fn is_marked(value: &[u8]) -> bool {
    let start = skip(value, 0, |letter| matches!(letter, b'\\' | b'"' | b'\''));
    value[start..].starts_with(MARKER)
}

/// Returns whether a value is none, whatever its name: a marker, a placeholder, or a word of a sentence or a program.
pub(super) fn is_nothing(value: &[u8]) -> bool {
    value.is_empty()
        || is_marked(value)
        || is_placeholder(value)
        || is_keyword(value)
        || STOP_WORDS.has(value)
}

/// Returns whether a value stands for another: `<password>`, `${PASSWORD}`, `$PASSWORD`, `%PASSWORD%`, `{{ password }}`,
/// `your-password`, `***`.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    static EXPRESSION: Pattern = Pattern::new(concat!(
        r"^(?:(?:\w+ )?(?:[<\[{]|\$\{)|\([a-z][\w ,]*\)$|[$%][({]|[#@]\{|(?:[A-Za-z]{1,4}[_-])?\.\.\.|(?i:(?:[a-z]{2,6}[_-])?your|\$env:|placeholder|todo|enc\[aes|enter_|insert_|autogenerate|(?:change|replace)[_-]?(?:me|this|with)(?:[_-][a-z]+)*$|(?:required|nullable|sometimes)\|)",
        r"|(?:[$@:][A-Za-z_]*|:[a-z]\w*|@[\w.-]+@|[\w.-]{1,16}(?:\*{3,}|[xX]{5,})[\w-]{0,4}|%[A-Za-z_]*%|[%?&][A-Za-z?]|\$\d{0,2}|!(?:secret|vault|ENV|env_var)(?: \w+)?|(?:user|host)-\d+|[A-Za-z_][\w.]*\(\)|[*.xX_?#=/\\|`,;:(){}\[\]+\x80-\xFF -]*|//[a-z]",
        // A number, an example of AWS, a licence, and words that say what stands there: `my-test-key`.
        r"|[A-Za-z0-9+/-]{9,}EXAMPLE(?:KEY|\d*)|[A-Za-z]+(?:-[A-Za-z]+)*-v?\d{1,2}(?:\.\d{1,2}){1,2}(?:-[a-z]+)*|\d+(?:\.\d+)?e[+-]?\d+|[a-z]+(?::[a-z]+){2,}|(?i:(?:my|test|dev|development|example|sample|fake|dummy|mock|some|provider|shared|bearer|api|auth|access|key|token|secret|sk)[_-]?){2,})$)"
    ));
    EXPRESSION.is_match(value) || is_cut_off(value) || memmem::find(value, b"${").is_some()
}

/// Returns whether a value is the beginning of a key alone: `sk-ant-...`, `eyJhbGciOi…`.
fn is_cut_off(value: &[u8]) -> bool {
    const MOST_LETTERS: usize = 20;
    let shown = value.strip_suffix(b"...").or(value.strip_suffix(&[OTHER]));
    shown.is_some_and(|shown| {
        let is_prefix = !is_mixed(shown) || matches!(shown.last(), Some(b'-' | b'_'));
        shown.len() <= MOST_LETTERS && (is_prefix || shown.starts_with(b"eyJ"))
    })
}

/// Returns whether a value has the shape of a password that somebody has made of words and digits: `copperFalcon1704`, `Falconstone170`,
/// `falcon-violet-89`.
pub(super) fn is_chosen(value: &[u8]) -> bool {
    static EXPRESSION: Pattern = Pattern::new(
        r"^(?:[A-Za-z][a-z]{2,}[A-Z][a-z]{2,}\d{2,}|[A-Z][a-z]{4,}\d{3,}|[A-Z][a-z]{6,}\d{2}|[a-z]{3,}(?:-[a-z]{3,})+-\d{2,}|([a-z]{3,}(?:[-.][a-z]{3,}){0,2})[-.!]?\d{3,5})[!?]?$",
    );
    // Names of things have words that are common.
    let is_rare = |word: &[u8]| word.len() > 4 && !COMMON.has(word);
    let of_words = |words: &[u8]| words.split(|letter| b"-.".contains(letter)).any(is_rare);
    let found = EXPRESSION.captures(value);
    found.is_some_and(|found| found.get(1).is_none_or(|words| of_words(words.as_bytes())))
}

/// Returns whether a value is a term of common words and of some with a number: `cl100k_base`, `oauth2-code`, `v2-legacy`.
pub(super) fn is_term(value: &[u8]) -> bool {
    static TERM: Pattern = Pattern::new(
        r"^(?:[a-z]{3,}|[a-z]{1,4}\d{1,5}[a-z]?)(?:[_-](?:[a-z]{3,}|[a-z]{1,4}\d{1,5}[a-z]?))+$",
    );
    let is_rare = |part: &[u8]| !is_mixed(part) && !COMMON.has(part);
    is_mixed(value) && TERM.is_match(value) && !value.split(|letter| b"_-".contains(letter)).any(is_rare)
}

/// Returns whether a value has the look of a generated one: letters and digits, both of them, and nothing that separates
/// words.
pub(super) fn is_mixed(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
}

/// Returns whether a value has small letters and capitals.
pub(super) fn is_of_cases(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_lowercase) && value.iter().any(u8::is_ascii_uppercase)
}

/// Returns whether a value has digits and letters of both cases, or letters at random, as no word of a table has.
pub(super) fn is_varied(value: &[u8]) -> bool {
    const LEAST: usize = 10;
    let digits = value.iter().filter(|letter| letter.is_ascii_digit()).count();
    let is_word = value.len() >= LEAST && digits > 1 && !value.contains(&b' ');
    is_word && (is_of_cases(value) || is_random(value) && !is_hexadecimal(value))
}

/// Returns whether a value is long, and of hexadecimal digits or Base64 as generated keys are. A UUID is the name of a
/// thing.
pub(super) fn is_generated(value: &[u8]) -> bool {
    const LEAST: usize = 16;
    const LEAST_DIGITS: usize = 2;
    let run = |separates: fn(&u8) -> bool| value.split(separates).map(<[u8]>::len).max().unwrap_or_default();
    value.len() >= LEAST
        && value
            .iter()
            .filter(|letter| letter.is_ascii_digit())
            .take(LEAST_DIGITS)
            .count()
            == LEAST_DIGITS
        && value.iter().any(u8::is_ascii_alphabetic)
        && run(|letter| !(letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/'))) >= LEAST
        && !value.contains(&b' ')
}

/// Returns whether a value is Base64 of `user:password`, as HTTP's basic authentication and Docker have it.
pub(super) fn is_basic_credentials(value: &[u8]) -> bool {
    const MOST_LETTERS: usize = 4096;
    const LEAST_BYTES: usize = 3;
    let mut decoder = Decoder::default();
    let is_text = decoder.push(&value[..value.len().min(MOST_LETTERS)]);
    let text = decoder.text().filter(|text| text.len() >= LEAST_BYTES);
    is_text && text.is_some_and(|text| text.contains(':'))
}

/// Returns whether a value without quotes is a number, a version, or a share, and shorter than one that is a secret.
pub(super) fn is_small_number(value: &[u8]) -> bool {
    const LEAST_DIGITS: usize = 4;
    const MOST_HEXADECIMAL: usize = 8;
    // A range of versions, a time, or a constant of a program.
    let value = match value {
        [time @ .., b's' | b'm' | b'h' | b'd'] if !time.is_empty() && time.iter().all(u8::is_ascii_digit) => {
            time
        }
        [b'^' | b'~' | b'v', rest @ ..] => rest,
        [b'0', b'x' | b'X', digits @ ..] if digits.len() <= MOST_HEXADECIMAL => {
            return digits.iter().all(u8::is_ascii_hexdigit);
        }
        value => value,
    };
    let digits = value.iter().filter(|letter| letter.is_ascii_digit()).count();
    let of_number =
        |letter: &u8| letter.is_ascii_digit() || matches!(letter, b'.' | b'-' | b'+' | b'%' | b'_');
    value.iter().all(of_number) && (digits < LEAST_DIGITS || value.contains(&b'.') || value.ends_with(b"%"))
}

/// Returns whether a value is an address, or a path or name of a file that could have the secret, and not the secret.
pub(super) fn is_path(value: &[u8]) -> bool {
    static EXPRESSION: Pattern = Pattern::new(concat!(
        r"^(?:~/|[A-Za-z][A-Za-z+]*://|unix:|\.\.?/|[A-Za-z]:[\\/]|/(?i:home|users|etc|var|tmp|opt|usr|run|root|mnt|srv|dev|proc|app|data|workspaces?|private",
        r"|secrets|keys)(?:/|$)|/[A-Za-z_-]+/[A-Za-z_/-]*$|(?:[\w.-]+/)*[\w.-]+\.(?:pem|crt|cer|key|md|json|ya?ml|txt|html?|conf|ini|env)$)"
    ));
    EXPRESSION.is_match(value)
}

/// Returns whether a value is a piece of a program that computes one: a call, a property, a comparison, an operator.
pub(super) fn is_expression(value: &[u8]) -> bool {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        let operator = r"[=>|]|\+(?:[^A-Za-z0-9]|$)|![=\[]|&&|&['\[]";
        // A call, an element, or a type with its parameters.
        let call = r"\.?[A-Za-z_$][\w.$:?!>,-]*(?:[(\[]|\{(?:$|[A-Z])|<.*>$)";
        // Of Rust, the optional one of a property, and of PowerShell, as `Read-Host`.
        let path = r"[A-Za-z_$][\w$.]*\?\.[A-Za-z_$]|(?:::)?[A-Za-z_$][\w$]*::[A-Za-z<]|[A-Z][A-Za-z]+-[A-Z][A-Za-z]+$";
        let property = format!(r"(?:\$[\w$]*|@\w+|(?i:{ROOTS}))(?:\.|->|[?!]\.|::)");
        // The attribute of a resource of Terraform, and an expression between slashes.
        let attribute = r"[a-z][a-z\d]*(?:_[a-z\d]+)+(?:\.[a-z_][a-z\d_]*){2,}$|/(?:\^|\(|\\[bdsw])";
        // The reference of C, the negation of a variable, and pointers and references of Rust.
        expression(&format!(
            r"(?s)^(?:{operator}|\*(?:const|mut)\b|&(?:'|mut\b|[A-Z][A-Za-z]*[,)]?$)|[\w:]+<[A-Z&'(\[]|[A-Za-z]*[A-Z]\w*<[a-z]|{attribute}|[&*!]?(?:{call}|{path}|{property}))"
        ))
    });
    EXPRESSION.is_match(value)
}
