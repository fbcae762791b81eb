//! Secrets that are told by the name that they are assigned to: `DB_PASSWORD=…`, `"apiKey": "…"`, `<password>…</password>`,
//! `os.environ["TOKEN"] = "…"`, `Authorization: Token …`, `Cookie: session=…`.
//!
//! An expression for all of these would have to try each name at each place. So a loop goes from separator to separator, and
//! looks at the name before it and at the value behind it. The text that it reads twice is bounded, which keeps the time
//! linear.

use std::{ops::Range, sync::LazyLock};

use memchr::{memchr, memmem};
use regex::bytes::{Captures, Regex};

use crate::{
    keywords::Owner,
    languages,
    lines::line_start,
    pairs::{MOST_NAME_LETTERS, Pair, closing_quote, name_before, of_name, opening_at},
    random::{is_random, is_uuid, of_key},
    ranges::{Pattern, Ranges, expression, skip, skip_at_most, skip_back},
    text::{MARKER, Text, is_white_space, is_word, starts_with},
    values::{
        STOP_WORDS, is_basic_credentials, is_chosen, is_expression, is_generated, is_marked, is_mixed,
        is_nothing, is_of_cases, is_path, is_small_number, is_term, is_varied,
    },
    words::Words,
};

/// The meaning of a name for its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// It is a secret.
    Secret,
    /// It is a secret, unless it is a word: the token of a tokenizer.
    Token,
    /// It is a secret if it is in quotes, or has digits and letters: `pass: 12` counts tests.
    Pass,
    /// It is a secret if it looks made.
    Made,
    /// It is a secret if it is a UUID, or looks drawn at random.
    OfService,
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
    (Sort::Made, "(?:client|request)-?token"),
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
    (Sort::Secret, "pwd|(?-i:[A-Z0-9]_AUTH)"),
    (Sort::Authorization, "authorization"),
    (Sort::Cookie, "<cookie>s?"),
    (
        Sort::Made,
        "<auth>(?:ident)?|salt|(?-i:_PAT)|<totp>|<dsn>|<jwt>|<refresh>|<access>|<seed>|<pk>|<plaintext>|(?:primary|secondary|local|user)-?<key>",
    ),
    // Of variables of the environment; elsewhere of any service.
    (Sort::Made, "[a-z0-9](?:[^a-z0-9]+key|(?-i:Key))"),
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
        r"|(?i:existing|pull)[_.-]?(?i:secrets?)$|(?:[cC]redentials?|[tT]ls)Secrets?$|(?i:secret|token|key)[_.-]?(?i:hash|digest)$"
    ));
    // Settings of an account.
    static SETTINGS: Pattern = Pattern::new(concat!(
        r"^(?i:update|force|change|reset|require|generate|rotate|ask|prompt|expire|enable|disable|allow|check|validate|verify|hide|show|remember",
        r"|forgot|has|is|no)(?:[_-]|[A-Z])"
    ));
    let name = &name[name.len().saturating_sub(MOST_NAME_LETTERS)..];
    // Groups take memory, also where there is no match.
    if !may_be_secret(name) || !EXPRESSION.is_match(name) {
        return ends_with_word(name).then_some(Sort::Made);
    }
    if names_page(name) || OTHERS.is_match(name) {
        return None;
    }
    let found = EXPRESSION.captures(name)?;
    let at = found.iter().skip(1).position(|group| group.is_some())?;
    let is_other_key = at + 1 == SORTS.len();
    match SORTS[at].0 {
        Sort::Secret | Sort::Pass | Sort::Token if SETTINGS.is_match(name) => Some(Sort::Made),
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
    const OTHERS: &str = "salt|totp|x-|_pat|pk|seed|pass|pw|psw|psk|secre|token|cred|key|auth|cookie|mnemonic|phrase|sid|sessionid|dsn|jwt|refresh|access|secur|sensit|mask|\
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
    matches!(name.last(), Some(b'0'..=b'9' | b'b' | b'B')) || last_two.is_some_and(|end| ENDS.has(end))
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
        Some(Sort::Authorization) => !is_nothing(value) && !is_small_number(value),
        Some(sort) => is_secret_string(sort, value),
        None => false,
    }
}

/// Returns whether a value can be a secret, if something tells that it is one.
pub(super) fn is_possible(value: &[u8]) -> bool {
    !is_nothing(value)
        && !is_small_number(value)
        && !is_term(value)
        && !is_label(value)
        && !is_path(value)
        && !is_sentence(value)
}

/// Returns whether a value is a sentence: it begins with a capital, goes on with words in small letters, and ends with a point or has letters beyond
/// ASCII or many words.
fn is_sentence(value: &[u8]) -> bool {
    static SENTENCE: Pattern = Pattern::new(
        r"^[A-Z\xFE\xFF][a-z\xFE\xFF'-]*(?:(?: [^\d ]+)+[.!?]|(?: [^\d ]+){5,}|(?: [^\d ]+)*[ a-z][\xFE\xFF][^\d]*)$",
    );
    value.contains(&b' ') && SENTENCE.is_match(value)
}

/// Returns whether a value in quotes is a secret.
fn is_secret_string(sort: Sort, value: &[u8]) -> bool {
    let is_word_alone = || value.iter().all(u8::is_ascii_alphabetic);
    // The number of a token of a tokenizer.
    let is_of_vocabulary = || value.len() < LEAST_TOKEN_DIGITS && value.iter().all(u8::is_ascii_digit);
    is_possible(value)
        && match sort {
            Sort::Secret | Sort::Pass => true,
            Sort::Token => !is_of_vocabulary() && (value.len() > MOST_TOKEN_LETTERS || !is_word_alone()),
            Sort::Made => is_made(value) && !is_uuid(value) || is_basic_credentials(value),
            Sort::OfService => {
                let of_key = value.iter().all(|letter| of_key(*letter));
                let is_drawn = of_key && is_mixed(value) && is_random(value) && !is_environment(value);
                is_uuid(value) || is_drawn || is_generated(value) && is_of_cases(value)
            }
            Sort::Cookie => is_list_of_cookies(value),
            Sort::Authorization => false,
        }
}

/// Returns whether a value looks generated, or made of words and digits as passwords are.
pub(super) fn is_made(value: &[u8]) -> bool {
    let is_made = is_generated(value) || is_varied(value) || languages::is_shaped(value) || is_chosen(value);
    is_made && memmem::find(value, MARKER).is_none()
}

/// Tokens that are words are no longer.
const MOST_TOKEN_LETTERS: usize = 10;
const LEAST_TOKEN_DIGITS: usize = 6;

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
            && sort_of(word).is_some_and(|sort| !matches!(sort, Sort::Made | Sort::OfService))
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
        let may_be_name = may_be_secret(&letters[part.range.start..end]);
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
    /// Whether a program compares them: `password == "…"`.
    is_compared: bool,
}

impl<'l> Assignment<'l> {
    fn of(letters: &'l [u8], pair: Pair) -> Option<Self> {
        let (name, sign) = (&pair.name, pair.sign);
        let (before, joint) = (&letters[..name.start], &letters[name.end..pair.start]);
        let text = &letters[name.clone()];
        let sort = sort_of(text).or_else(|| spaced(letters, name))?;
        let is_header = matches!(sort, Sort::Authorization | Sort::Cookie);
        let is_element_of = joint.contains(&b']');
        // `[password] => …`, as PHP prints.
        let is_printed = joint.starts_with(b"]") && joint.ends_with(b"=>");
        let is_refused = match sign {
            b',' => !pair.is_quoted || is_header,
            b'>' => !is_element(letters, name, pair.is_quoted),
            b'=' => is_element_of && !is_printed && !pair.is_quoted,
            b'\n' => !before.ends_with(b"=\"") && !before.ends_with(b"=\\\""),
            // The number of an account stands before a colon in names of Amazon's resources.
            _ => is_element_of || matches!(before, [.., b'0'..=b'9', b':']),
        };
        let is_compared = matches!(joint, [.., b'=' | b'!', b'=']);
        // `--- PASS: TestLogin2` of Go's tests, `All tests pass: …`, `render pass: …`, `checksum/secret: …`, and the name of a field of a secret of
        // Kubernetes.
        static VERB: Pattern = Pattern::new(
            r"(?:(?:---|\b(?:tests|checks|builds|specs|suites|cases|jobs|all|should|must|to|not|first|second|third|final|render|depth|shadow|lighting|geometry|color|compute|shading|compiler)) (?i:pass)|checksum/[^/]*|\balias \w+|- secretKey)$",
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
        let joint = &letters[self.pair.name.end..self.pair.start];
        // Behind an arrow, text without quotes is the body of a function.
        let has_arrow = joint.ends_with(b"<-") || joint.ends_with(b">") && !joint.starts_with(b"]");
        let is_program = self.is_compared || !self.is_environment && joint.ends_with(b":=");
        if self.pair.sign == b',' || has_arrow || is_program {
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
        // The next argument of a call, and what a program compares with, can be anything.
        let is_set = || is_argument(letters, self.pair.name.start) && !is_of_words(value);
        let may_be_any = !self.is_compared && (self.pair.sign != b',' || is_set());
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
        // The SDK replaces any word in quotes behind `token = `.
        let sort = match self.sort {
            Sort::Token if !self.pair.is_quoted && self.pair.name.len() == b"token".len() => Sort::Secret,
            sort => sort,
        };
        let is_secret = is_cut(value)
            || (may_be_any || is_made(value))
                && value.len() > 1
                && !is_between
                && !is_type
                && !self.repeats_name(value)
                && is_secret_string(sort, value.trim_ascii());
        ranges.extend(is_secret.then(|| inner.clone()));
        if is_secret || value.len() > MOST_VALUE_LETTERS {
            inner.end
        } else {
            self.pair.start
        }
    }

    /// Strings of a list, and of an object whose values are strings: `"secret": {"value": "…"}`; also numbers, and the only item of a list as
    /// Java and Go print it: `X-Api-Key:[…]`. An object that names a secret of its own has fields of other kinds too.
    fn find_list(&self, start: usize, ranges: &mut Ranges) -> usize {
        static ITEM: Pattern =
            Pattern::new(r#"\\*["']([^"'\\\n]*)\\*["'](\s{0,8}:)?|([^\s,;\[\]{}()"'\\]+)|[\]}]"#);
        let letters = self.letters;
        let most = letters.len().min(start + MOST_PARAMETER_LETTERS);
        let items = ITEM.captures_iter(&letters[start..most]);
        let items: Vec<_> = items
            .take_while(|item| !matches!(item[0], [b']' | b'}']))
            .collect();
        let is_other = |name: &[u8]| {
            matches!(name, b"integrity" | b"resolved" | b"message" | b"code") || is_secret_name(name)
        };
        let is_other = |item: &Captures| match item.get(3) {
            Some(word) => word.as_bytes().ends_with(b":"),
            None => item.get(2).is_some() && is_other(&item[1]),
        };
        let inner = skip(letters, start, |letter| letter == b'[') - 1;
        if is_marked(&letters[inner..]) || items.iter().any(is_other) {
            return start;
        }
        for item in &items {
            let (string, other) = (item.get(1).filter(|_| item.get(2).is_none()), item.get(3));
            // A number, or what has letters and digits, and no word of a program.
            if other.is_some_and(|item| !item.as_bytes().iter().any(u8::is_ascii_digit)) {
                break;
            }
            let value = string.or(other).filter(|value| {
                !is_marked(value.as_bytes()) && is_secret_string(self.sort, value.as_bytes().trim_ascii())
            });
            ranges.extend(value.map(|value| start + value.start()..start + value.end()));
        }
        items
            .last()
            .map_or(start, |item| start + item.get(0).map_or(0, |item| item.end()))
    }

    /// `<password>…</password>`, also with `<![CDATA[…]]>` in it.
    fn find_element(&self, ranges: &mut Ranges) -> usize {
        static CONTENT: Pattern = Pattern::new(r"^(?:<!\[CDATA\[|\s{0,64}<[Vv]alue>)?([^<>]*?)(?:\]\]>|</)");
        let start = self.pair.start;
        let Some(content) = CONTENT
            .captures(&self.letters[start..])
            .and_then(|found| found.get(1))
        else {
            return start;
        };
        let text = content.as_bytes().trim_ascii();
        let is_secret = !is_marked(text) && !is_expression(text) && is_secret_string(self.sort, text);
        ranges.extend(is_secret.then(|| start + content.start()..start + content.end()));
        start + content.end()
    }

    /// Finds a value without quotes.
    fn find_bare(&self, start: usize, ranges: &mut Ranges) -> usize {
        let letters = self.letters;
        let end = bare_end(letters, start);
        let value = &letters[start..end];
        if is_cut(value) {
            ranges.push(start..end);
            return end;
        }
        if is_marked(value) || value.is_empty() {
            return start;
        }
        // `password: str = "…"`, `SecretStr("…")`, `getenv("PASSWORD") or "…"`
        static COMPUTED: Pattern = Pattern::new(
            r"^(?:[\w.:<>\[\]&? ]{1,40} = )?(?:[\w.:()\[\]]{1,60} (?:\|\||\?\?|or) |[\w.:]{1,40}\()?",
        );
        let computed = COMPUTED.find(&letters[start..]).filter(|found| !found.is_empty());
        if let Some(opening) = computed.and_then(|found| opening_at(letters, start + found.end()))
            && !is_of_words(&letters[opening.end..closing_quote(letters, opening.clone())])
        {
            return self.find_string(opening, ranges).max(start);
        }
        // Without the end of a sentence, and the marks of a type.
        let said = skip(value, 0, |letter| b"&*?".contains(&letter))
            ..skip_back(value, 0..value.len(), |letter| b".?".contains(&letter));
        let said = value.get(said).unwrap_or_default();
        // Words to the end of the line.
        let of_words = |letter: u8| letter == b' ' || letter.is_ascii_lowercase();
        let line_end = skip(letters, end, |letter| self.pair.sign == b':' && of_words(letter));
        let mut words = letters[end..line_end].split(|letter| *letter == b' ');
        let is_whole = matches!(letters.get(line_end), None | Some(b'\n' | b'\r' | b'#'));
        let end = match is_whole && self.sort == Sort::Secret && !words.any(|word| STOP_WORDS.has(word)) {
            true => skip_back(letters, end..line_end, |letter| letter == b' '),
            false => end,
        };
        let is_secret = value.len() > 1
            && (value.len() > MOST_VALUE_LETTERS || !is_expression(value))
            && !is_nothing(said)
            && (self.is_environment || !is_reference(value))
            && is_secret_string(self.sort, value)
            && (self.sort != Sort::Pass || is_mixed(value) && value.len() > 5 || is_random(value))
            && !(self.pair.sign == b':' && letters[end..].starts_with(b" = "))
            && (!is_of_words(said)
                || is_random(said)
                || self.sort == Sort::Made
                || self.is_configured(said, start..end));
        if !is_secret {
            return start;
        }
        ranges.push(start..end);
        end
    }

    /// Returns whether words without quotes are a value of configuration, and no name, type or words of a program or sentence: the only ones of
    /// their line, or joined to their name as in the environment, options and connection strings.
    fn is_configured(&self, words: &[u8], value: Range<usize>) -> bool {
        let (letters, pair) = (self.letters, &self.pair);
        let name = &letters[pair.name.clone()];
        let next = letters.get(value.end).copied().unwrap_or(b'\n');
        if self.repeats_name(words) || self.is_own_name(words) {
            return false;
        }
        if pair.sign == b'=' && value.start == pair.name.end + 1 {
            let option = name.strip_prefix(b"--").unwrap_or_default();
            let is_variable = b"),".contains(&next) || !words.iter().any(u8::is_ascii_lowercase);
            return self.is_environment || !is_variable && !names_stored(option, words);
        }
        let line = line_start(letters, pair.name.start, MOST_BLANKS);
        let before = &letters[line..pair.name.start];
        let behind = &letters[value.end..];
        let is_alone = before.iter().all(|letter| b" \t\"'+-".contains(letter))
            && (b"\\\"'".contains(&next) || matches!(behind, [] | [b'\n' | b'\r', ..] | [b' ', b'#', ..]));
        let is_variable = is_camel(words) || self.sort == Sort::Token && words.contains(&b'_');
        is_alone && !is_variable && !name.contains(&b'.')
    }

    /// Returns whether a word is the name again, as in `self.apiToken = api_token` and `apiKey: apiKeyOption`.
    fn is_own_name(&self, value: &[u8]) -> bool {
        let joined = |text: &[u8]| {
            let letters = text.iter().filter(|letter| !b"_-".contains(letter));
            letters.map(u8::to_ascii_lowercase).collect::<Vec<_>>()
        };
        let (name, own) = (joined(&self.letters[self.pair.name.clone()]), joined(value));
        name.starts_with(&own) || !self.is_environment && (name.ends_with(&own) || own.starts_with(&name))
    }

    /// Returns whether a value is of several words, of which the last one is that of the name: `SECRET_KEY=build-key`.
    fn repeats_name(&self, value: &[u8]) -> bool {
        let is_joint = |letter: &u8| b"_-.".contains(letter);
        let name = self.letters[self.pair.name.clone()].rsplit(is_joint).next();
        let mut words = value.rsplit(is_joint);
        let last = words.next().zip(name);
        let is_again = last.is_some_and(|(last, name)| last.eq_ignore_ascii_case(name));
        is_again && words.next().is_some() && is_of_words(value)
    }

    /// `Authorization: Token …` and `Cookie: name=…; name=…`: all but the scheme. `header_end` is the end of the last header without quotes. A header
    /// that begins before it ends there too, so a line of many headers is read once.
    fn find_header(&self, header_end: &mut usize, ranges: &mut Ranges) -> usize {
        static SCHEMES: Words = Words::of("names.schemes");
        let letters = self.letters;
        let start = self.blanks_from(self.pair.start);
        let opening = opening_at(letters, start);
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
        let is_cookie = self.sort == Sort::Cookie;
        let is_set = is_cookie && starts_with(&letters[self.pair.name.clone()], "set-");
        let secret = match is_cookie {
            // The name of a cookie says what it is for.
            true => skip(header, start, |letter| letter != b'=' && !is_white_space(letter)) + 1,
            false if is_scheme => credentials,
            false => start,
        };
        let all = header.get(secret..).unwrap_or_default();
        let first = &all[..skip(all, 0, |letter| !is_white_space(letter))];
        let value = first.strip_suffix(b";").unwrap_or(first);
        let is_short = self.pair.is_quoted || all.iter().filter(|letter| **letter == b' ').count() <= 2;
        let is_secret = match is_cookie {
            true => is_list_of_cookies(&header[start..]) && !(is_set && is_of_words(value)),
            false if is_expression(value) => false,
            false => is_scheme || is_mixed(value) && value.len() >= 6 && is_short,
        };
        if is_secret && is_possible(value) {
            // One word, but for schemes that have parameters, and for cookies. What stands behind a cookie that is set is no secret.
            let length = match is_cookie {
                true if is_set => skip(all, 0, |letter| letter != b';'),
                false if is_scheme && !value.ends_with(b",") => first.len(),
                _ => all.len(),
            };
            ranges.push(secret..secret + length);
            return secret + length;
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
        Sort::Made if !is_key => Some(Sort::Made),
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

/// Returns whether the text before a `>` is an element of XML that is named like a secret, or has an attribute with such a name.
fn is_element(letters: &[u8], name: &Range<usize>, is_quoted: bool) -> bool {
    static ELEMENT: Pattern = Pattern::new(r"<(?:\w*:)?$");
    static ATTRIBUTE: Pattern = Pattern::new(r#"(?i)(?:name|key|id)=\\*["']$"#);
    let element = if is_quoted { &ATTRIBUTE } else { &ELEMENT };
    element.is_match(before(letters, name.start))
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
