//! Secrets that are told by the name that they are assigned to: `DB_PASSWORD=…`, `"apiKey": "…"`, `<password>…</password>`,
//! `os.environ["TOKEN"] = "…"`, `Authorization: Token …`, `Cookie: session=…`.
//!
//! An expression for all of these would have to try each name at each place. So a loop goes from separator to separator, and
//! looks at the name before it and at the value behind it. The text that it reads twice is bounded, which keeps the time
//! linear.

use std::{ops::Range, sync::LazyLock};

use memchr::{memchr, memmem, memrchr, memrchr2};
use regex::bytes::Regex;

use crate::{
    keywords::Owner,
    languages,
    pairs::{MOST_NAME_LETTERS, Pair, closing_quote, name_before, of_name, opening_at},
    random::{is_hexadecimal, is_random, is_uuid, of_key},
    ranges::{Pattern, Ranges, expression, find, skip, skip_at_most, skip_back},
    text::{MARKER, Text, is_white_space, is_word, starts_with},
    values::{
        DECLARATIONS, STOP_WORDS, is_basic_credentials, is_chosen, is_expression, is_generated, is_keyword,
        is_marked, is_mixed, is_nothing, is_of_cases, is_path, is_placeholder, is_small_number, is_term,
        is_varied,
    },
    words::{COMMON, Words},
};

/// The meaning of a name for its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// It is a secret.
    Secret,
    /// It is a secret, unless it is a word: the token of a tokenizer.
    Token,
    /// It is a secret, unless it is a path: `PWD` is also the shell's name of the working directory.
    Directory,
    /// It is a secret if it is in quotes, or has digits and letters: `pass: 12` counts tests.
    Pass,
    /// It is a secret, unless it is of words, or a digest: `update_password: always`.
    Setting,
    /// It is a secret if it is `user:password` in Base64, or looks generated.
    Credentials,
    /// It is a secret if it looks generated.
    Generated,
    /// It is a secret if it is a UUID, or looks generated and is no digest.
    OfService,
    /// It is a secret if it looks generated and is no UUID.
    Request,
    /// It is a secret if it has the shape of one: behind words that people call secrets by.
    Told,
    /// It is an HTTP scheme and a secret.
    Authorization,
    /// It is a secret if it is a list of cookies.
    Cookie,
}

/// Words before `key` in the names of secrets. All other keys are keys of maps, tables and caches.
static KEYS: Words = Words::of("names.keys");

/// Words before `key` in the names of keys of things, which are no secrets.
static OTHER_KEYS: Words = Words::of("names.other_keys");

/// Words before `token` in the names of places in a list, and of calls that are made once.
static OTHER_TOKENS: Words = Words::of("names.other_tokens");

/// Words that may follow the name of a secret: `SECRET_KEY_BASE`, `DB_PASSWORD_PROD`, `passwordConfirmation`.
static QUALIFIERS: Words = Words::of("names.qualifiers");

/// The ends of names of secrets, and the meaning of each; the first one counts. `<pw>` begins a word.
const SORTS: &[(Sort, &str)] = &[
    (Sort::Token, r"^[^a-z\d]*token"),
    // By which a request that is sent twice is told.
    (Sort::Request, "(?:client|request)-?token"),
    (Sort::Pass, r"^[^a-z\d]*pass|(?-i:[A-Z]PASS)|-pass"),
    (
        Sort::Secret,
        concat!(
            r"(?:pass-?(?:word|phrase|code)|passwd|secret(?:-?(?:string|text|id|code))?|credential|mnemonic|seed-?phrase|connect-?sid|phpsessid|jsessionid",
            r"|(?:store|key|db|remote|local|user|smtp|imap|mail|ftp|admin|root|login|become)-?pass|bindpw|rootpw|<pw>|<psw>|<psk>|(?:KEYS)-?key)s?|token|_pass|(?-i:[a-z\d]Pass)"
        ),
    ),
    // In other languages, as far as letters of ASCII write them.
    (
        Sort::Pass,
        "passwort|kennwort|contrase(?:na|nya)|senha|palavra-?passe|wachtwoord|losenord|haslo|mot-?de-?passe|mdp|jelszo|salasana|adgangskode|passord|lozinka",
    ),
    (Sort::Directory, "pwd"),
    (Sort::Credentials, "<auth>(?:ident)?"),
    (Sort::Authorization, "authorization"),
    (Sort::Cookie, "<cookie>s?"),
    (
        Sort::Generated,
        "salt|(?-i:_PAT)|<totp>|<dsn>|<jwt>|<refresh>|<access>|<seed>|<pk>|<plaintext>|(?:primary|secondary|local|user)-?<key>",
    ),
    // Of variables of the environment; elsewhere of any service.
    (Sort::Generated, "[a-z0-9](?:[^a-z0-9]+key|(?-i:Key))"),
];

/// Returns an expression of a word that begins the name, or behind another sign, or with the hump of `camelCase`.
fn beginning(word: &str) -> String {
    let (first, rest) = (word[..1].to_uppercase(), &word[1..]);
    format!(r"(?:(?:^|[^a-z\d]){word}|(?-i:[a-z\d]{first}){rest}|(?-i:{first}{rest}))")
}

/// Returns the meaning of a name, if its value could be a secret: `password`, `db_password`, `GITHUB_TOKEN`, `apiKey`.
fn sort_of(name: &[u8]) -> Option<Sort> {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        let keys = KEYS.iter().collect::<Vec<_>>().join("|");
        let end = |(_, end): &(Sort, &str)| {
            let end = end.replace("KEYS", &keys).replace("-?", "[_.-]*");
            let parts = end.split(['<', '>']).enumerate();
            let end: String = parts
                .map(|(at, part)| {
                    if at % 2 == 0 {
                        part.to_owned()
                    } else {
                        beginning(part)
                    }
                })
                .collect();
            format!("({end})")
        };
        let ends: Vec<_> = SORTS.iter().map(end).collect();
        let qualifiers: Vec<_> = QUALIFIERS.iter().map(beginning).collect();
        expression(&format!(
            r"(?i)(?:{})(?:[^a-z\d]*\d+|{})*[^a-z\d]*$",
            ends.join("|"),
            qualifiers.join("|")
        ))
    });
    // Digests and public keys, and the names of objects that hold a secret.
    static OTHERS: Pattern = Pattern::new(concat!(
        r"^(?i:checksum|digest|fingerprint|public[_-]?key)|^lib[a-z]+-\d",
        r"|(?i:existing|pull)[_.-]?(?i:secrets?)$|(?:[cC]redentials?|[tT]ls)Secrets?$"
    ));
    // Settings of an account, and digests.
    static SETTINGS: Pattern = Pattern::new(concat!(
        r"^(?i:update|force|change|reset|require|generate|rotate|ask|prompt|expire|enable|disable|allow|check|validate|verify|hide|show|remember",
        r"|forgot|has|is|no)(?:[_-]|[A-Z])|(?i:secret|token|key)[_.-]?(?i:hash|digest)$"
    ));
    let name = &name[name.len().saturating_sub(MOST_NAME_LETTERS)..];
    // Groups take memory, also where there is no match.
    if !may_be_secret(name) || !EXPRESSION.is_match(name) {
        let sort = unqualified(name).and_then(sort_of).map(|_| Sort::Generated);
        let told = || ends_with_word(name).then_some(Sort::Told);
        return is_own_header(name)
            .then_some(Sort::OfService)
            .or(sort)
            .or_else(told);
    }
    if names_page(name) || OTHERS.is_match(name) {
        return None;
    }
    let found = EXPRESSION.captures(name)?;
    let at = found.iter().skip(1).position(|group| group.is_some())?;
    let is_other_key = at + 1 == SORTS.len();
    match SORTS[at].0 {
        Sort::Secret | Sort::Pass | Sort::Token if SETTINGS.is_match(name) => Some(Sort::Setting),
        Sort::Credentials if is_environment(name) && name.len() > "AUTH".len() => Some(Sort::Secret),
        sort if !is_other_key || is_environment(name) && !name.ends_with(b"PUBLIC_KEY") => Some(sort),
        _ => (!OTHER_KEYS.has(word_before(name, "key"))).then_some(Sort::OfService),
    }
}

/// Returns whether a name is that of a place in a list, or of a call that is made once: `continuation token`.
pub(super) fn names_page(name: &[u8]) -> bool {
    OTHER_TOKENS.has(word_before(name, "token"))
}

/// Returns the word of a name before its last one; empty if it ends with another word.
fn word_before<'n>(name: &'n [u8], last: &str) -> &'n [u8] {
    let start = name.len().saturating_sub(last.len());
    if !name[start..].eq_ignore_ascii_case(last.as_bytes()) {
        return &[];
    }
    let before = &name[..start];
    let end = before
        .iter()
        .rposition(u8::is_ascii_alphanumeric)
        .map_or(0, |last| last + 1);
    let starts = |at: usize| !before[at].is_ascii_alphanumeric() || before[at].is_ascii_uppercase();
    let start = (0..end).rev().find(|at| starts(*at)).unwrap_or(0);
    let start = skip(before, start, |letter| !letter.is_ascii_alphanumeric());
    &before[start.min(end)..end]
}

/// Returns whether a name is written as variables of the environment are.
fn is_environment(name: &[u8]) -> bool {
    !name.iter().any(u8::is_ascii_lowercase) && name.iter().any(u8::is_ascii_uppercase)
}

/// How many parts of names come first whose values are told by their look. They let no text be searched.
pub(super) const LOOKS: usize = 2;

/// Returns the parts of the names of secrets, and of fields that tell that the one beside them is one.
pub(super) fn parts() -> Vec<Vec<u8>> {
    const OTHERS: &str = "salt|totp|x-|_pat|pk|seed|pass|pw|psw|psk|secre|token|cred|key|auth|cookie|mnemonic|phrase|sid|sess|dsn|jwt|refresh|access|secur|sensit|mask|\
            encrypt|conceal|kty|openssl|community|domain|httponly|samesite|expirationdate|hostonly|vault|api|plaintext|whoami|wg show";
    let others = OTHERS.split('|').map(|part| part.as_bytes().to_vec());
    others.chain(languages::latin_words()).collect()
}

/// Returns whether a name ends as those of secrets do, by its last letters. Most names do not, and are told at once.
fn may_be_secret(name: &[u8]) -> bool {
    static ENDS: Words = Words::of("names.ends");
    let end = skip_back(name, 0..name.len(), |letter| !letter.is_ascii_alphanumeric());
    let name = &name[..end];
    let name = name
        .strip_suffix(b"s")
        .or(name.strip_suffix(b"S"))
        .unwrap_or(name);
    let last_two = name.last_chunk::<2>();
    matches!(name.last(), Some(b'0'..=b'9' | b'b' | b'B'))
        || last_two.is_some_and(|end| ENDS.has(end))
        || unqualified(name).is_some_and(may_be_secret)
}

/// Returns whether a name ends with a word for a secret, in any language.
fn ends_with_word(name: &[u8]) -> bool {
    static WORD: LazyLock<Regex> = LazyLock::new(|| {
        let words = languages::words_as_expression();
        expression(&format!(r"(?i)(?:^|[ _-])(?:{words})$"))
    });
    WORD.is_match(name)
}

/// Returns the meaning of a name of up to three words.
fn sort_of_label(label: &[u8]) -> Option<Sort> {
    const MOST_BLANKS: usize = 2;
    let is_blank = |letter: &&u8| **letter == b' ';
    match label.iter().filter(is_blank).count() {
        0 => sort_of(label),
        1..=MOST_BLANKS => {
            let joined = label
                .iter()
                .map(|letter| if *letter == b' ' { b'_' } else { *letter });
            sort_of(&joined.collect::<Vec<_>>())
        }
        _ => None,
    }
}

/// Returns whether the value of this name can be a secret.
pub(super) fn is_secret_name(name: &[u8]) -> bool {
    sort_of_label(name).is_some()
}

/// Returns whether a value that stands under a name by itself, as that of a property does, is a secret.
pub(super) fn is_secret(name: &[u8], value: &[u8]) -> bool {
    let value = value.trim_ascii();
    match sort_of_label(name) {
        Some(Sort::Authorization) => !is_harmless(value),
        Some(sort) => is_secret_string(sort, value),
        None => false,
    }
}

/// Returns whether a value is recognisably no secret, whatever its name.
fn is_harmless(value: &[u8]) -> bool {
    is_keyword(value) || is_placeholder(value) || is_small_number(value) || is_term(value)
}

/// Returns whether a value is a sentence: it begins with a capital, goes on with words in small letters, and ends with a point or has letters beyond
/// ASCII or many words.
fn is_sentence(value: &[u8]) -> bool {
    static SENTENCE: Pattern = Pattern::new(
        r"^[A-Z\xFE\xFF][a-z\xFE\xFF'-]*(?:(?: [^\d ]+)+[.!?]|(?: [^\d ]+){5,}|(?: [^\d ]+)*[ a-z][\xFE\xFF][^\d]*)$",
    );
    SENTENCE.is_match(value) && value.contains(&b' ')
}

/// Returns whether a value in quotes is a secret.
fn is_secret_string(sort: Sort, value: &[u8]) -> bool {
    let is_word_alone = || value.iter().all(u8::is_ascii_alphabetic);
    // The number of a token of a tokenizer.
    let is_of_vocabulary = || value.len() < LEAST_TOKEN_DIGITS && value.iter().all(u8::is_ascii_digit);
    !is_harmless(value)
        && !is_label(value)
        && !is_path(value)
        && match sort {
            Sort::Secret | Sort::Pass => true,
            Sort::Setting => !is_of_words(value) && !is_hexadecimal(value),
            Sort::Token => !is_of_vocabulary() && (value.len() > MOST_TOKEN_LETTERS || !is_word_alone()),
            Sort::Directory => !value.starts_with(b"/"),
            Sort::Credentials => is_basic_credentials(value) || is_generated(value),
            Sort::Generated => is_generated(value) || is_drawn(value) || languages::is_shaped(value),
            Sort::OfService => {
                is_uuid(value)
                    || is_mixed(value)
                        && is_random(value)
                        && !is_environment(value)
                        && value.iter().all(|letter| of_key(*letter))
                    || is_generated(value) && (is_of_cases(value) || value.contains(&b'.'))
            }
            Sort::Request => is_generated(value),
            Sort::Told => {
                languages::is_shaped(value)
                    || is_chosen(value)
                    || is_mixed(value)
                        && value.len() >= LEAST_TOLD_LETTERS
                        && !is_environment(value)
                        && !value.iter().any(|letter| b"(){}:/ ".contains(letter))
            }
            Sort::Cookie => is_list_of_cookies(value),
            Sort::Authorization => false,
        }
}

/// Returns a variable of the environment without its last word, if that says of no id, digest, place or number: `API_TOKEN_READ`.
fn unqualified(name: &[u8]) -> Option<&[u8]> {
    let at = memrchr(b'_', name).filter(|_| is_environment(name))?;
    (!OTHERS.has(&name[at + 1..])).then_some(&name[..at])
}

/// Names of what is no secret.
static OTHERS: Words = Words::of("names.others");

/// Returns whether a name is that of a header of somebody's own, which says of no id, digest or place.
fn is_own_header(name: &[u8]) -> bool {
    starts_with(name, "x-")
        && !name.ends_with(b"id")
        && !name.split(|letter| *letter == b'-').any(|part| OTHERS.has(part))
}

/// Returns whether a value has the look of one drawn from all signs, as WordPress's salts are.
fn is_drawn(value: &[u8]) -> bool {
    const LEAST_LETTERS: usize = 40;
    const LEAST_SIGNS: usize = 8;
    let signs = value.iter().filter(|letter| letter.is_ascii_punctuation());
    value.len() >= LEAST_LETTERS && is_mixed(value) && !value.contains(&b' ') && signs.count() >= LEAST_SIGNS
}

/// Tokens that are words are no longer.
const MOST_TOKEN_LETTERS: usize = 10;
const LEAST_TOKEN_DIGITS: usize = 6;
/// Shorter values behind a word for a secret are numbers and names.
const LEAST_TOLD_LETTERS: usize = 8;

/// Names of secrets that programs and documents write as values.
static LABELS: Words = Words::of("names.labels");

/// Returns whether a text names a secret instead of being one: `Enter your password`, `DB_PASSWORD`, `accessToken`.
pub(super) fn is_label(value: &[u8]) -> bool {
    let of_name = |letter: &u8| is_word(*letter) || matches!(letter, b'-' | b'.');
    if value.len() > MOST_NAME_LETTERS {
        return false;
    }
    if languages::is_word_for_secret(value) || value.ends_with(b":") && !is_mixed(value) {
        return true;
    }
    let names_secret = |word: &[u8]| {
        let word = word.strip_suffix(b"s").unwrap_or(word);
        (!word.iter().any(u8::is_ascii_digit) || is_stored(word) || is_environment(word))
            && sort_of(word)
                .is_some_and(|sort| !matches!(sort, Sort::Generated | Sort::OfService | Sort::Told))
    };
    if value.iter().all(of_name) {
        return names_secret(value) && {
            let letters = value.iter().copied().filter(u8::is_ascii_alphanumeric);
            is_environment(value)
                || is_camel(value)
                || value.iter().any(|letter| b"_.".contains(letter))
                || is_mixed(value)
                || LABELS.has(&letters.collect::<Vec<_>>())
        };
    }
    let is_separator = |letter: &u8| !is_word(*letter);
    static WORDS: LazyLock<Regex> = LazyLock::new(|| {
        expression(&format!(
            r"(?i)(?:^|[^a-z\xFE])(?:{})",
            languages::words_as_expression()
        ))
    });
    let has_blank = value.contains(&b' ');
    let is_sentence = has_blank || matches!(value.last(), Some(b':' | b'?'));
    is_sentence
        && (has_blank && (value.ends_with(b"?") || WORDS.is_match(value))
            || value
                .split(is_separator)
                .any(|word| names_secret(word) || word.eq_ignore_ascii_case(b"key")))
}

/// Returns whether a value can be the name of a secret in a store: `prod/db-creds`, `prod-db-01-password`.
fn is_stored(value: &[u8]) -> bool {
    static STORED: Pattern =
        Pattern::new(r"^[a-z0-9]+(?:[-_/.](?:[a-z]+|[a-z]*\d{1,3}))*(?:[-_/][a-z]+|-\d{1,3})$");
    STORED.is_match(value)
}

/// Returns whether the value of an option can be such a name, and no secret.
pub(super) fn names_stored(option: &[u8], value: &[u8]) -> bool {
    matches!(option, b"secret" | b"secret-id" | b"secret-name") && is_stored(value)
}

/// Returns whether a value is of words, as names are.
pub(super) fn is_of_words(value: &[u8]) -> bool {
    value
        .iter()
        .all(|letter| letter.is_ascii_alphabetic() || matches!(letter, b'_' | b'-' | b'.'))
}

/// Returns whether a value has a capital behind a small letter.
pub(super) fn is_camel(value: &[u8]) -> bool {
    value
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

/// White space between a name, a separator and a value.
const MOST_BLANKS: usize = 64;
/// The length of a value that is read to tell its kind.
const MOST_VALUE_LETTERS: usize = 128;

/// The length of what tells that `pass` is a verb.
const MOST_VERB_LETTERS: usize = 10;

/// How far into the value of a header a comma tells that it has parameters.
const MOST_PARAMETER_LETTERS: usize = 512;

/// Values of names.
pub(super) fn assigned(text: &Text) -> Ranges {
    let letters = text.letters();
    let mut ranges = Ranges::new();
    let (mut from, mut header_end, mut last_end) = (0, 0, 0);
    for part in text.keywords(Owner::Names) {
        // Another part of the same name.
        if part.range.end <= last_end {
            continue;
        }
        let end = skip(letters, part.range.end, of_name);
        last_end = end;
        let name = &letters[part.range.start..end];
        let may_be_name = may_be_secret(name) || starts_with(name, "x-");
        let pair = may_be_name.then(|| Pair::at(letters, end)).flatten();
        let pair = pair.filter(|pair| pair.start > from);
        if let Some(assignment) = pair.and_then(|pair| Assignment::of(letters, pair)) {
            let end = match assignment.sort {
                Sort::Authorization | Sort::Cookie => assignment.find_header(&mut header_end, &mut ranges),
                _ => assignment.find(&mut ranges),
            };
            from = end.max(assignment.pair.start - 1);
        }
    }
    ranges
}

/// A name of a secret, and what separates it from its value.
struct Assignment<'l> {
    letters: &'l [u8],
    sort: Sort,
    pair: Pair,
    is_environment: bool,
    /// Whether PHP has printed the name and the value, both without quotes.
    is_printed: bool,
    /// Whether a program compares them: `password == "…"`.
    is_compared: bool,
}

impl<'l> Assignment<'l> {
    fn of(letters: &'l [u8], pair: Pair) -> Option<Self> {
        let Pair {
            name,
            is_quoted,
            sign,
            start,
        } = &pair;
        let (before, before_value) = (&letters[..name.start], &letters[..*start]);
        let text = &letters[name.clone()];
        let sort = sort_of(text).or_else(|| spaced(letters, name))?;
        // An item of a list that is called so names a field of a secret of Kubernetes.
        let is_item = text == b"secretKey" && before.ends_with(b"- ");
        let sort = if is_item { Sort::Generated } else { sort };
        let is_header = matches!(sort, Sort::Authorization | Sort::Cookie);
        let is_element_of = letters[name.end..*start].contains(&b']');
        // `[password] => …`, as PHP prints.
        let is_printed = letters[name.end..*start].starts_with(b"]")
            && before_value.ends_with(b"=>")
            && before
                .strip_suffix(b"[")
                .is_some_and(|before| before.last().is_none_or(u8::is_ascii_whitespace));
        let is_refused = match sign {
            b',' => !is_quoted || is_header && !is_argument(letters, name.start),
            b'>' => !is_element(letters, name, *is_quoted),
            b'=' => is_element_of && !is_printed && !is_quoted,
            b'\n' => ![&b"name=\""[..], b"name=\\\""]
                .iter()
                .any(|label| before.ends_with(label)),
            // The number of an account stands before a colon in names of Amazon's resources.
            _ => is_element_of || matches!(before, [.., b'0'..=b'9', b':']),
        };
        let is_compared = matches!(before_value, [.., b'=' | b'!', b'=']);
        // `--- PASS: TestLogin2` of Go's tests, `All tests pass: …`, `render pass: …`, `checksum/secret: …`
        static VERB: Pattern = Pattern::new(
            r"(?:(?:---|\b(?:tests|checks|builds|specs|suites|cases|jobs|all|should|must|to|not|first|second|third|final|render|depth|shadow|lighting|geometry|color|compute|shading|compiler)) (?i:pass)|checksum/[^/]*|\balias \w+)$",
        );
        if name.is_empty()
            || is_refused
            || is_compared && is_header
            || VERB.is_match(&letters[name.start.saturating_sub(MOST_VERB_LETTERS)..name.end])
        {
            return None;
        }
        Some(Self {
            letters,
            sort,
            is_environment: !text.iter().any(u8::is_ascii_lowercase),
            is_printed,
            is_compared,
            pair,
        })
    }

    /// Finds the value, and returns where to go on.
    fn find(&self, ranges: &mut Ranges) -> usize {
        // Prefixes of strings, two more quotes of a text of several lines, the type of a string that PHP prints, and the bytes of one in Go.
        static OPENING: Pattern =
            Pattern::new(r#"^(?:[bfruBFRL@&$]{0,2}|string\(\d{1,5}\) |\[\]byte\()(?:""|'')?(\\{0,15}["'`])"#);
        let letters = self.letters;
        if self.pair.sign == b'>' {
            return self.find_element(ranges);
        }
        let start = self.blanks_from(self.pair.start);
        if let Some(opening) = OPENING.captures(&letters[start..]).and_then(|found| found.get(1)) {
            return self.find_string(start + opening.start()..start + opening.end(), ranges);
        }
        // Behind an arrow, text without quotes is the body of a function.
        let has_arrow = [&b">"[..], b"<-"]
            .iter()
            .any(|arrow| letters[..self.pair.start].ends_with(arrow));
        let is_program =
            self.is_compared || !self.is_environment && letters[..self.pair.start].ends_with(b":=");
        if self.pair.sign == b',' || has_arrow && !self.is_printed || is_program {
            return self.pair.start;
        }
        match letters.get(start) {
            None => start,
            Some(b'[') => self.find_list(start, ranges),
            Some(b'{') if self.pair.is_quoted => self.find_list(start, ranges),
            Some(_) => self.find_bare(start, ranges),
        }
    }

    fn blanks_from(&self, start: usize) -> usize {
        skip_at_most(self.letters, start, MOST_BLANKS, |letter| {
            is_white_space(letter) && (self.pair.is_quoted || !matches!(letter, b'\n' | b'\r'))
        })
    }

    fn find_string(&self, opening: Range<usize>, ranges: &mut Ranges) -> usize {
        let letters = self.letters;
        let inner = opening.end..closing_quote(letters, opening.clone());
        let value = &letters[inner.clone()];
        let is_short = value.len() <= MOST_VALUE_LETTERS;
        let is_set = || is_argument(letters, self.pair.name.start);
        let is_made =
            || is_generated(value) || is_varied(value) || languages::is_shaped(value) || is_chosen(value);
        let may_be_next = || !is_of_words(value) && (is_made() || is_set());
        let may_be_equal = || self.sort != Sort::Token && is_mixed(value) && value.len() > 5;
        if self.pair.sign == b',' && !may_be_next() || self.is_compared && !may_be_equal() {
            return if is_short { self.pair.start } else { inner.end };
        }
        // The text between two strings of a program: `"token: " + token + "."`.
        let is_between = matches!(
            value.trim_ascii(),
            [b'+' | b'.' | b',' | b'%' | b'|', b' ', ..]
                | [.., b' ', b'+' | b'.' | b',']
                | [b',' | b'+']
                | [b')' | b']' | b'}' | b';', ..]
        );
        // A type that is one of some words: `secrets?: "read" | "write"`.
        let behind = &letters[letters.len().min(inner.end + opening.len())..];
        let is_type = matches!(behind, [b' ', b'|', b' ', quote, ..] if *quote == letters[opening.end - 1]);
        if is_cut(value) {
            ranges.push(inner.clone());
            return inner.end;
        }
        // The SDK replaces any word in quotes behind `token = `.
        let sort = match self.sort {
            Sort::Token if !self.pair.is_quoted && self.pair.name.len() == b"token".len() => Sort::Secret,
            sort => sort,
        };
        if value.len() < 2
            || is_marked(value)
            || is_between
            || is_type
            || self.repeats_name(value)
            || is_sentence(value)
            || !is_secret_string(sort, value.trim_ascii())
        {
            return if is_short { self.pair.start } else { inner.end };
        }
        ranges.push(inner.clone());
        inner.end
    }

    /// Strings and numbers of a list, and of an object whose values are strings: `"secret": {"value": "…"}`. An object that names a secret
    /// of its own has fields of other kinds too.
    fn find_list(&self, start: usize, ranges: &mut Ranges) -> usize {
        let letters = self.letters;
        let most = letters.len().min(start + MOST_PARAMETER_LETTERS);
        let end = find(&letters[..most], start, |letter| letter == b'}').unwrap_or(most);
        let strings = letters[start..end]
            .split(|letter| *letter == b'"')
            .skip(1)
            .step_by(2);
        let is_of_package =
            |string: &[u8]| matches!(string, b"integrity" | b"resolved" | b"message" | b"code");
        if strings.clone().any(is_of_package) || letters[start] == b'{' && strings.clone().any(is_secret_name)
        {
            return start;
        }
        let mut index = start + 1;
        loop {
            index = skip(letters, index, |letter| {
                is_white_space(letter) || matches!(letter, b',' | b'n')
            });
            let Some(opening) = opening_at(letters, index) else {
                // A number, or the only item of a list as Java and Go print it: `X-Api-Key:[…]`.
                let end = skip(&letters[..most], index, |letter| {
                    letter.is_ascii_graphic() && !b",[]{}()".contains(&letter)
                });
                let item = &letters[index..end];
                let is_number = item.iter().all(u8::is_ascii_digit);
                let is_item = index == start + 1
                    && !is_marked(&letters[start..])
                    && is_mixed(item)
                    && letters.get(end) == Some(&b']');
                let is_end = !matches!(letters.get(end), Some(b',' | b']' | b'}' | b' ' | b'\n'));
                if item.is_empty() || is_end || !is_number && !is_item {
                    return index;
                }
                if is_secret_string(self.sort, item) || is_number && !is_small_number(item) {
                    ranges.push(index..end);
                }
                index = end;
                continue;
            };
            let inner = opening.end..closing_quote(letters, opening.clone());
            let end = (inner.end + opening.len()).min(letters.len());
            let behind = skip_at_most(letters, end, MOST_BLANKS, is_white_space);
            if letters.get(behind) == Some(&b':') {
                index = behind + 1;
                continue;
            }
            let value = &letters[inner.clone()];
            if !is_marked(value) && is_secret_string(self.sort, value.trim_ascii()) {
                ranges.push(inner);
            }
            index = end;
        }
    }

    /// `<password>…</password>`, also with `<![CDATA[…]]>` in it.
    fn find_element(&self, ranges: &mut Ranges) -> usize {
        const CDATA: &[u8] = b"<![CDATA[";
        let letters = self.letters;
        let is_cdata = letters[self.pair.start..].starts_with(CDATA);
        // `<AdministratorPassword><Value>…`
        let inner = skip_at_most(letters, self.pair.start, MOST_BLANKS, is_white_space);
        let start = match () {
            () if is_cdata => self.pair.start + CDATA.len(),
            () if starts_with(&letters[inner..], "<value>") => inner + "<value>".len(),
            () => self.pair.start,
        };
        let end = skip(letters, start, |letter| {
            !(matches!(letter, b'<' | b'>') || is_cdata && letter == b']')
        });
        let closing: &[u8] = if is_cdata { b"]]>" } else { b"</" };
        let text = letters[start..end].trim_ascii();
        if letters[end..].starts_with(closing)
            && !is_marked(text)
            && !is_expression(text)
            && is_secret_string(self.sort, text)
        {
            ranges.push(start..end);
        }
        end
    }

    /// Returns a value without quotes.
    fn find_bare(&self, start: usize, ranges: &mut Ranges) -> usize {
        let letters = self.letters;
        let end = bare_end(letters, start);
        let value = &letters[start..end];
        if value.len() > MOST_VALUE_LETTERS {
            let is_name = matches!(
                self.sort,
                Sort::Secret | Sort::Token | Sort::Pass | Sort::Directory
            );
            if (is_name || is_generated(value)) && !is_marked(value) {
                ranges.push(start..end);
            }
            return end;
        }
        if is_cut(value) {
            ranges.push(start..end);
            return end;
        }
        if is_marked(value) || value.is_empty() {
            return start;
        }
        // Without the end of a sentence.
        let said = value.strip_suffix(b".").unwrap_or(value);
        let is_word_alone = is_of_words(said);
        let is_secret = value.len() > 1
            && !is_expression(value)
            && !STOP_WORDS.has(said)
            && !is_keyword(said)
            && (self.is_environment || !is_reference(value))
            && !is_keyword(without_marks(value))
            && !self.is_own_name(without_marks(value))
            && !self.is_part_of_program(start..end)
            && is_secret_string(self.sort, value)
            && !(self.is_environment
                && self.pair.sign == b'='
                && value.ends_with(b"=")
                && !is_generated(value))
            && (self.sort != Sort::Pass || is_mixed(value) && value.len() > 5 || is_random(value))
            // A type: `TOKEN: __u32_t7 = 7`.
            && !(self.pair.sign == b':'
                && value.iter().all(|letter| is_word(*letter))
                && letters[end..].starts_with(b" = "))
            && !(is_word_alone && self.sort != Sort::Generated && self.is_in_program(start, end))
            && !self.begins_sentence(start..end);
        if is_secret {
            let end = self.line_from(start, end);
            let names_secret = !is_mixed(value) && is_label(&letters[start..end]);
            ranges.extend((!names_secret).then_some(start..end));
            return end;
        }
        // `password: str = "…"`, `getenv("PASSWORD") or "…"`, `SecretStr("…")`.
        match self.string_behind(start, end) {
            Some(opening) => self.find_string(opening, ranges).max(start),
            None => start,
        }
    }

    /// Returns the string that a value which computes one falls back to, or the value of a name with a type.
    fn string_behind(&self, start: usize, end: usize) -> Option<Range<usize>> {
        let letters = self.letters;
        let most = (start + MOST_NAME_LETTERS).min(letters.len());
        // A call.
        let argument = self.argument_of(start..end).filter(|_| self.pair.sign == b'=');
        if let Some(opening) = argument.and_then(|at| opening_at(letters, at)) {
            return Some(opening);
        } else if letters[end - 1] == b'('
            && letters[start..end - 1]
                .iter()
                .all(|letter| is_word(*letter) || matches!(letter, b'.' | b':'))
        {
            let value = |opening: &Range<usize>| {
                &letters[opening.end..closing_quote(&letters[..most.max(opening.end)], opening.clone())]
            };
            if let Some(opening) = opening_at(letters, end).filter(|opening| !is_of_words(value(opening))) {
                return Some(opening);
            }
        } else if self.is_environment && self.pair.sign == b'=' && self.pair.start == start {
            return None;
        }
        let has_type = self.pair.sign == b':' && !self.pair.is_quoted;
        for index in start..most {
            let sign = match letters[index] {
                // No other line, statement or name may be between.
                b'\n' | b'\r' | b';' | b'{' | b'}' => return None,
                b':' if letters.get(index + 1) == Some(&b' ') => return None,
                b'=' if has_type && letters[index - 1] == b' ' => 1,
                b'=' => return None,
                b'|' if letters[index..].starts_with(b"|| ") => 2,
                b'?' if letters[index..].starts_with(b"?? ") => 2,
                b'o' if letters[index..].starts_with(b"or ") && letters[index - 1] == b' ' => 2,
                _ => continue,
            };
            let value = skip_at_most(letters, index + sign, MOST_BLANKS, is_white_space);
            let call = skip(&letters[..most], value, |letter| {
                is_word(letter) || matches!(letter, b'.' | b':')
            });
            let is_call = sign == 1 && letters.get(call) == Some(&b'(');
            return opening_at(letters, if is_call { call + 1 } else { value });
        }
        None
    }

    /// Returns whether a value is the name again, as in `self.apiToken = api_token` and `apiKey: apiKeyOption`.
    fn is_own_name(&self, value: &[u8]) -> bool {
        let joined = |text: &[u8]| {
            let letters = text.iter().filter(|letter| !b"_-".contains(letter));
            letters.map(u8::to_ascii_lowercase).collect::<Vec<_>>()
        };
        let (name, own) = (joined(&self.letters[self.pair.name.clone()]), joined(value));
        let goes_on = || (name.starts_with(&own) || own.starts_with(&name)) && is_of_words(value);
        let is_token = self.sort == Sort::Token && self.pair.sign == b'=';
        let is_argument = || is_token && value.contains(&b'_') && is_of_words(value);
        // `POSTGRES_PASSWORD: postgres`
        let is_example = || value.len() > 3 && name.starts_with(&own) && is_of_words(value);
        self.repeats_name(value)
            || is_example()
            || !self.is_environment && !own.is_empty() && (name.ends_with(&own) || goes_on() || is_argument())
    }

    /// Returns whether a value is of several words, of which the last one is that of the name: `SECRET_KEY=build-key`.
    fn repeats_name(&self, value: &[u8]) -> bool {
        let is_joint = |letter: &u8| b"_-.".contains(letter);
        let name = self.letters[self.pair.name.clone()].rsplit(is_joint).next();
        let mut words = value.rsplit(is_joint);
        let last = words
            .next()
            .zip(name)
            .is_some_and(|(last, name)| last.eq_ignore_ascii_case(name));
        last && words.next().is_some() && is_of_words(value)
    }

    /// Returns where the argument of a function begins that a word without quotes can be: `Just secret`.
    fn argument_of(&self, word: Range<usize>) -> Option<usize> {
        let is_apart = self.letters[word.start - 1] == b' ' && self.letters[word.end..].starts_with(b" ");
        let is_function = is_apart && self.letters[word.clone()].iter().all(|letter| is_word(*letter));
        is_function.then_some(word.end + 1)
    }

    /// Returns whether a value without quotes is called with what follows it, is joined to a variable, or stands for a word: `Just secret`,
    /// `name:${file}`, `--secret=NAME`.
    fn is_part_of_program(&self, value: Range<usize>) -> bool {
        let (letters, name) = (self.letters, &self.letters[self.pair.name.clone()]);
        let text = &letters[value.clone()];
        let is_called = self.argument_of(value).is_some_and(|at| {
            let end = skip(letters, at, is_word);
            opening_at(letters, at).is_some()
                || is_secret_name(&letters[at..end]) && !matches!(letters.get(end), Some(b'=' | b':'))
        });
        let joined = memmem::find(text, b"${").is_some_and(|at| !is_mixed(&text[..at]));
        let is_variable = || is_of_words(text) && !text.iter().any(u8::is_ascii_lowercase);
        is_called
            || joined
            || name
                .strip_prefix(b"--")
                .is_some_and(|option| is_variable() || names_stored(option, text))
            || letters[..self.pair.name.start].ends_with(b"/") && is_of_words(text)
    }

    /// Returns whether a value is the first word of what a sentence explains: `The secret: keep functions short`.
    fn begins_sentence(&self, value: Range<usize>) -> bool {
        let (letters, name) = (self.letters, &self.pair.name);
        let is_word = b"secret".len() >= name.len();
        let is_said = matches!(
            letters[..name.start],
            [.., b'a'..=b'z' | b'A'..=b'Z', b' ' | b'-']
        );
        let goes_on = matches!(letters[value.end..], [b' ', b'a'..=b'z', ..]);
        // An entry of a list: `'secrets:Manage deployment secrets'`.
        let is_entry = matches!(letters[..name.start], [.., b'\'' | b'"']) && value.start == name.end + 1;
        let text = &letters[value];
        self.pair.sign == b':'
            && goes_on
            && (is_word && is_said && COMMON.has(text)
                || is_entry && is_of_words(text) && text[0].is_ascii_uppercase())
    }

    /// Returns whether a word without quotes stands in a program, where it is a name or a type.
    fn is_in_program(&self, start: usize, end: usize) -> bool {
        let letters = self.letters;
        if self.is_environment && self.pair.sign == b'=' {
            return false;
        }
        let next = letters
            .get(skip_at_most(letters, end, MOST_BLANKS, |letter| letter == b' '))
            .copied()
            .unwrap_or(b'\n');
        let has_space = letters.get(start.wrapping_sub(1)) == Some(&b' ');
        if has_space
            && matches!(
                next,
                b';' | b',' | b')' | b'}' | b'{' | b'|' | b'?' | b'=' | b'<' | b'[' | b'(' | b'+' | b'&'
            )
        {
            return true;
        }
        let least = self.pair.name.start.saturating_sub(MOST_VALUE_LETTERS);
        let before = &letters[least..self.pair.name.end];
        let line = match memrchr2(b'\n', b'\r', before) {
            Some(end) => &before[end + 1..],
            // Further on in a long line no declaration begins.
            None if before.len() == MOST_VALUE_LETTERS => return false,
            None => before,
        };
        let words = line
            .split(|letter| !is_word(*letter))
            .filter(|word| !word.is_empty());
        words.take(2).any(|word| DECLARATIONS.has(word))
    }

    /// Returns the end of a value of several words: the rest of a line that begins with `name: `, as in the text of a call
    /// and in YAML.
    fn line_from(&self, start: usize, end: usize) -> usize {
        const MOST_WORDS: usize = 24;
        static INDENT: Pattern = Pattern::new(r"(?:^|[\n\r])([ \t+-]{0,63})$");
        let letters = self.letters;
        let is_call = &letters[self.pair.name.end..start] == b": ";
        let next = letters.get(end).copied().unwrap_or(b'\n');
        let before = &letters[self.pair.name.start.saturating_sub(MOST_BLANKS)..self.pair.name.start];
        let Some(indent) = INDENT
            .captures(before)
            .filter(|_| is_call && b" \t,;\"'`)}][".contains(&next))
        else {
            return end;
        };
        let line_end = skip(letters, end, |letter| !matches!(letter, b'\n' | b'\r'));
        let line_end = letters[end..line_end]
            .windows(2)
            .position(|pair| matches!(pair, [b' ', b'#'] | [b'\\', b'n' | b'r']))
            .map_or(line_end, |index| end + index);
        let rest = letters[end..line_end].trim_ascii();
        // Elsewhere than in a call, prose and programs follow too.
        if !indent[1].is_empty() {
            let words = rest.split(|letter| *letter == b' ').count();
            let is_other = |word: &[u8]| STOP_WORDS.has(word) || word.ends_with(b":") || word.contains(&b'=');
            if words > MOST_WORDS
                || rest.split(|letter| *letter == b' ').any(is_other)
                || matches!(rest.last(), Some(b',' | b';' | b'{' | b'('))
            {
                return end;
            }
        }
        if rest.is_empty() { end } else { line_end }
    }

    /// `Authorization: Token …` and `Cookie: name=…; name=…`: all but the scheme. `header_end` is the end of the last header without quotes. A header
    /// that begins before it ends there too, so a line of many headers is read once.
    fn find_header(&self, header_end: &mut usize, ranges: &mut Ranges) -> usize {
        static SCHEMES: Words = Words::of("names.schemes");
        let letters = self.letters;
        let start = self.blanks_from(self.pair.start);
        let opening = opening_at(letters, start);
        let is_string = self.pair.is_quoted && opening.is_some();
        let (start, end) = match opening {
            Some(opening) => (opening.end, closing_quote(letters, opening)),
            None => {
                if start >= *header_end {
                    *header_end = skip(letters, start, |letter| {
                        !matches!(letter, b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'\\')
                    });
                }
                (start, *header_end)
            }
        };
        let header = &letters[..end.max(start)];
        let word = skip_at_most(header, start, MOST_NAME_LETTERS, |letter| {
            is_word(letter) || letter == b'-'
        });
        let credentials = skip_at_most(header, word, MOST_BLANKS, |letter| matches!(letter, b' ' | b'\t'));
        let is_scheme = credentials > word
            && (SCHEMES.has(&letters[start..word]) || is_generated(header[credentials..].trim_ascii()));
        let secret = if is_scheme { credentials } else { start };
        let first_end = skip(header, secret, |letter| !is_white_space(letter));
        let (all, first) = (&header[secret..], &header[secret..first_end]);
        let is_list =
            first.trim_ascii_end().ends_with(b",") || first.ends_with(b";") || first.contains(&b'=');
        let is_sentence = || !self.pair.is_quoted && all.iter().filter(|letter| **letter == b' ').count() > 2;
        // The name of a cookie says what it is for.
        let name = match self.sort {
            Sort::Cookie => skip(&header[..first_end], secret, |letter| letter != b'=') + 1,
            _ => secret,
        };
        let cookie = header.get(name..first_end).unwrap_or_default();
        let cookie = cookie.strip_suffix(b";").unwrap_or(cookie);
        let is_set = self.sort == Sort::Cookie && starts_with(&letters[self.pair.name.clone()], "set-");
        let is_word = is_set && is_of_words(cookie);
        let is_possible = !is_word && !is_nothing(cookie) && !is_small_number(cookie) && !is_label(cookie);
        let is_secret = match self.sort {
            Sort::Cookie => is_list_of_cookies(all),
            _ if is_expression(first) => false,
            _ => {
                is_scheme
                    || is_mixed(first) && first.len() >= 6 && !is_sentence()
                    || is_string && !is_label(all.trim_ascii())
            }
        };
        if is_possible && is_secret {
            // One word, but for schemes that have parameters, and for cookies.
            let beginning = &all[..all.len().min(MOST_PARAMETER_LETTERS)];
            let is_whole = self.sort == Sort::Cookie
                || !is_scheme
                || is_list && memmem::find(beginning, b", ").is_some();
            let end = if is_whole { header.len() } else { first_end };
            // What stands behind a cookie that is set is no secret.
            let end = if is_set {
                skip(&header[..end], name, |letter| letter != b';')
            } else {
                end
            };
            ranges.extend((name < end).then_some(name..end));
            return end;
        }
        if header.len() - start > MOST_VALUE_LETTERS {
            header.len()
        } else {
            start
        }
    }
}

/// Returns whether a value has cookies that may be of a session.
fn is_list_of_cookies(value: &[u8]) -> bool {
    let value = &value[..value.len().min(MOST_PARAMETER_LETTERS)];
    let name = skip(value, 0, |letter| letter.is_ascii_graphic() && letter != b'=');
    value.get(name) == Some(&b'=') && is_mixed(value)
}

/// Names of two words: `API key: …`, `access code = …`.
fn spaced(letters: &[u8], name: &Range<usize>) -> Option<Sort> {
    static WORDS: Words = Words::new("api secret access private signing license");
    let is_key = letters[name.clone()].eq_ignore_ascii_case(b"key");
    // `key = …` in a file of settings.
    if is_key && letters[..name.start].last().is_none_or(|letter| *letter == b'\n') {
        return Some(Sort::OfService);
    }
    let blank = name.start.checked_sub(1).filter(|at| letters[*at] == b' ')?;
    let word = name_before(letters, blank);
    match sort_of_label(&letters[word.start..name.end])? {
        Sort::Told => Some(Sort::Told),
        _ if !is_key || !letters[word.clone()].iter().all(u8::is_ascii_alphanumeric) => None,
        _ if WORDS.has(&letters[word]) => Some(Sort::Secret),
        _ => Some(Sort::OfService),
    }
}

/// Returns whether a name in quotes is the first argument of a function that sets, or that returns a default.
fn is_argument(letters: &[u8], start: usize) -> bool {
    static EXPRESSION: Pattern = Pattern::new(concat!(
        r"(?i)(?:^|[^\w-])(?:(?:set|put|get|env|add|insert|append|define|header|with|make_pair|entry|field|param|fetch|string)[\w-]*|[\w-]*env)",
        r#"\(["'\\ ]+$"#
    ));
    EXPRESSION.is_match(before(letters, start))
}

/// Returns whether the text before a `>` is an element of XML that is named like a secret, or has an attribute that is.
fn is_element(letters: &[u8], name: &Range<usize>, is_quoted: bool) -> bool {
    static ELEMENT: Pattern = Pattern::new(r"<(?:\w*:)?$");
    let before = before(letters, name.start);
    if is_quoted {
        matches!(before, [.., b'"' | b'\''])
    } else {
        ELEMENT.is_match(before)
    }
}

/// Returns the text before a name that can tell what the name means.
fn before(letters: &[u8], start: usize) -> &[u8] {
    &letters[start.saturating_sub(MOST_NAME_LETTERS + MOST_VALUE_LETTERS)..start]
}

/// Returns the end of a value without quotes: before white space, a quote, the break of a line in a JSON string, and a
/// separator.
fn bare_end(letters: &[u8], start: usize) -> usize {
    let mut index = start;
    while let Some(letter) = letters.get(index).copied() {
        // A marker behind the beginning of a value: `scott/[REDACTED:password-1]`.
        let marker = &letters[index..letters.len().min(index + MOST_BLANKS)];
        if index > start
            && marker.starts_with(MARKER)
            && let Some(end) = memchr(b']', marker)
        {
            index += end + 1;
            continue;
        }
        let next = letters.get(index + 1).copied().unwrap_or(b' ');
        let ends = match letter {
            b'"' | b'`' => true,
            b'\'' => !next.is_ascii_alphanumeric(),
            b'\\' => matches!(next, b'n' | b'r' | b't' | b'"' | b'\'' | b'\\' | b'\n' | b'\r'),
            b'<' => matches!(next, b'/'),
            b',' | b';' => !(next.is_ascii_alphanumeric()) || begins_name(letters, index + 1),
            b'&' => begins_name(letters, index + 1),
            b')' | b'}' | b']' => !next.is_ascii_alphanumeric(),
            b'(' => return index + 1,
            // The end of a command to a terminal.
            letter => is_white_space(letter) || matches!(letter, 0x07 | 0x1B),
        };
        if ends {
            break;
        }
        index += 1;
    }
    index
}

/// Returns whether a name and a separator begin here.
fn begins_name(letters: &[u8], start: usize) -> bool {
    let end = skip_at_most(letters, start, MOST_BLANKS, |letter| {
        is_word(letter) || matches!(letter, b'-' | b'.')
    });
    end > start && matches!(letters.get(end), Some(b'=' | b':'))
}

/// Returns whether the type of a marker begins at a place.
pub(super) fn begins_marker(letters: &[u8], at: usize) -> bool {
    letters[..at].ends_with(MARKER)
}

/// Returns whether a value is the marker of a key that was taken for shorter than it is, and the rest of the key.
fn is_cut(value: &[u8]) -> bool {
    let end = value.starts_with(MARKER).then(|| memchr(b']', value)).flatten();
    let Some(end) = end else { return false };
    let rest = &value[end + 1..];
    rest.len() > 1
        && rest
            .iter()
            .all(|letter| letter.is_ascii_graphic() && !b"@/:[]\\".contains(letter))
        && rest.iter().any(u8::is_ascii_alphanumeric)
}

/// Returns whether a value is the name of a constant or of a property: `SOME_TYPES`, `Kind.None`, `token1.token`.
fn is_reference(value: &[u8]) -> bool {
    static REFERENCE: Pattern = Pattern::new(
        r"^(?:[A-Z]*_[A-Z_]*|[A-Z][A-Za-z_.]*\.[A-Z][A-Za-z_]*|(?:[a-z_]|[A-Z][a-z]+[A-Z])\w*(?:\.[A-Za-z_]+)+)$",
    );
    REFERENCE.is_match(value)
}

/// Returns a type without the marks of a reference or an option.
fn without_marks(value: &[u8]) -> &[u8] {
    let start = skip(value, 0, |letter| matches!(letter, b'&' | b'*' | b'?'));
    value[start..].strip_suffix(b"?").unwrap_or(&value[start..])
}
