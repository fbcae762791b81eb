//! Secrets in the arguments of commands: `--password hunter2`, `curl -u user:hunter2`, `mysql -phunter2`.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::{
    names::{is_marked, is_secret, is_secret_name},
    ranges::{Ranges, expression, find_letter, skip, skip_back},
    text::{is_white_space, is_word, starts_with},
    values::{STOP_WORDS, is_generated, is_keyword, is_mixed, is_placeholder, is_small_number},
};

/// How an option of a command has its secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `-p hunter2`
    Next,
    /// `-phunter2`
    Same,
    /// `-u user:hunter2`
    User(u8),
}

/// Commands whose options can be secrets. Options whose name says so, as `--password`, are found with any command.
struct Command {
    names: &'static str,
    /// A word that has to be among the arguments; empty for none.
    word: &'static str,
    /// Options, and how each has its secret.
    options: Vec<(&'static str, Form)>,
}

/// The commands of `rules/commands.tsv`.
static COMMANDS: LazyLock<Vec<Command>> = LazyLock::new(|| {
    let option = |text: &'static str| match text.as_bytes() {
        [.., b'+'] => (&text[..text.len() - 1], Form::Same),
        [.., sign @ (b':' | b'=' | b'%')] => (&text[..text.len() - 1], Form::User(*sign)),
        _ => (text, Form::Next),
    };
    let lines = include_str!("../rules/commands.tsv").lines().skip(1);
    let fields = lines.map(|line| line.split('\t').collect::<Vec<_>>());
    let command = |fields: Vec<&'static str>| match fields[..] {
        [names, word, options] => Some(Command {
            names,
            word,
            options: options.split(' ').map(option).collect(),
        }),
        _ => None,
    };
    fields.filter_map(command).collect()
});

/// Secrets in options that only their command gives a meaning.
pub(super) fn options_of_commands(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        let names: Vec<_> = COMMANDS
            .iter()
            .map(|command| command.names.replace(' ', "|"))
            .collect();
        expression(&format!(r"\b(?:{})(?:\.exe)?[ \t]", names.join("|")))
    });
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(found) = EXPRESSION.find_at(letters, from) {
        let name_end = found.end() - 1;
        let name = &letters[found.start()..name_end];
        let name = name.strip_suffix(b".exe").unwrap_or(name);
        from = found.end();
        let is_named = |command: &&Command| command.names.split(' ').any(|each| each.as_bytes() == name);
        let Some(Command { word, options, .. }) = COMMANDS.iter().find(is_named) else {
            continue;
        };
        let least = ranges.len();
        let mut has_word = word.is_empty();
        let mut words = Words {
            letters,
            index: name_end,
        };
        let mut before: Option<Form> = None;
        while let Some(range) = words.next() {
            let text = &letters[range.clone()];
            has_word |= text == word.as_bytes();
            let value = match before.take() {
                Some(form) => secret_of(letters, range, form),
                None => {
                    before = options
                        .iter()
                        .find(|(option, form)| *form != Form::Same && option.as_bytes() == text)
                        .map(|(_, form)| *form);
                    if before.is_some() {
                        None
                    } else {
                        glued(letters, range, options)
                    }
                }
            };
            ranges.extend(value);
        }
        if !has_word {
            ranges.truncate(least);
        }
        from = from.max(words.index);
    }
    ranges
}

/// Returns the secret in an option's own word: `-phunter2`, `-uuser:hunter2`, `--user=user:hunter2`.
fn glued(letters: &[u8], range: Range<usize>, options: &[(&str, Form)]) -> Option<Range<usize>> {
    let text = &letters[range.clone()];
    let (value, form) = options.iter().find_map(|(option, form)| {
        let rest = text.strip_prefix(option.as_bytes())?;
        let value = if option.starts_with("--") {
            rest.strip_prefix(b"=")?
        } else {
            rest
        };
        (*form != Form::Next).then_some((value, *form))
    })?;
    secret_of(letters, range.end - value.len()..range.end, form)
}

fn secret_of(letters: &[u8], word: Range<usize>, form: Form) -> Option<Range<usize>> {
    let word = without_quotes(letters, word);
    let secret = match form {
        Form::User(sign) => {
            let separator = letters[word.clone()].iter().position(|letter| *letter == sign)?;
            word.start + separator + 1..word.end
        }
        Form::Next | Form::Same => word,
    };
    let value = &letters[secret.clone()];
    let is_secret =
        !is_placeholder(value) && !is_marked(value) && !value.starts_with(b"-") && !is_keyword(value);
    is_secret.then_some(secret)
}

fn without_quotes(letters: &[u8], word: Range<usize>) -> Range<usize> {
    let is_quote = |letter: u8| matches!(letter, b'"' | b'\'' | b'\\');
    let start = skip(&letters[..word.end], word.start, is_quote);
    start..skip_back(letters, start..word.end, is_quote)
}

/// The words of a command, with their quotes, to its end.
struct Words<'l> {
    letters: &'l [u8],
    index: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Option<Range<usize>> {
        let letters = self.letters;
        loop {
            self.index = skip(letters, self.index, |letter| matches!(letter, b' ' | b'\t'));
            // A command goes on in the next line after a backslash, which is two in a JSON string.
            let slashes = skip(letters, self.index, |letter| letter == b'\\');
            let is_break = slashes > self.index && matches!(letters.get(slashes), Some(b'\n' | b'\r'));
            let is_written_break = slashes > self.index + 1 && letters.get(slashes) == Some(&b'n');
            if is_break || is_written_break {
                self.index = slashes + 1;
                continue;
            }
            break;
        }
        let start = self.index;
        let mut quote = None;
        while let Some(letter) = letters.get(self.index).copied() {
            match quote {
                Some(open) if letter == open => quote = None,
                Some(_) if matches!(letter, b'\n' | b'\r') => break,
                Some(_) => {}
                None if matches!(letter, b'"' | b'\'') => {
                    // A quote that ends the text which the command stands in.
                    let follows = letters.get(self.index + 1).is_none_or(|next| {
                        is_white_space(*next) || matches!(next, b',' | b'}' | b']' | b')' | b'.')
                    });
                    if self.index > start && follows {
                        break;
                    }
                    quote = Some(letter);
                }
                None if is_white_space(letter) || matches!(letter, b'|' | b';' | b'`') => break,
                None if letter == b'&' && letters.get(self.index + 1) == Some(&b'&') => break,
                None if letter == b'\\'
                    && matches!(letters.get(self.index + 1), Some(b'n' | b'r' | b'\n')) =>
                {
                    break;
                }
                None => {}
            }
            self.index += 1;
        }
        (self.index > start).then_some(start..self.index)
    }
}

/// `--password hunter2`, `-token abc`, also in the list of arguments of a program: `["--password", "hunter2"]`.
pub(super) fn named_options(letters: &[u8]) -> Ranges {
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(start) = find_letter(letters, from, b'-') {
        let name_start = skip(letters, start, |letter| letter == b'-');
        let name_end = skip(letters, name_start, |letter| is_word(letter) || letter == b'-');
        from = name_end;
        let before = start.checked_sub(1).map_or(b' ', |index| letters[index]);
        if name_start - start > 2 || is_word(before) || matches!(before, b'.' | b'/') {
            continue;
        }
        let quote = skip(letters, name_end, |letter| letter == b'\\');
        let value = if matches!(letters[quote.min(letters.len())..], [b'"' | b'\'', b',', ..]) {
            skip(letters, quote + 2, is_white_space)
        } else {
            skip(letters, name_end, |letter| matches!(letter, b' ' | b'\t'))
        };
        if value == name_end {
            continue;
        }
        // A page of help explains the option in the next column.
        let is_help = letters[name_end..value]
            .iter()
            .filter(|letter| **letter == b' ')
            .count()
            > 1;
        let secret = value_of_word(letters, name_start..name_end, value);
        if let Some(secret) = secret.filter(|secret| !is_help || is_mixed(&letters[secret.clone()])) {
            from = secret.end;
            ranges.push(secret);
        }
    }
    ranges
}

/// `ENV DB_PASSWORD hunter2`, `setx DB_PASSWORD hunter2`, `aws configure set aws_secret_access_key …`
pub(super) fn set_variable(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let name_end = skip_back(letters, found.clone(), is_white_space);
    let name = skip_back(letters, 0..name_end, |letter| {
        is_word(letter) || matches!(letter, b'-' | b'.')
    });
    value_of_word(letters, name..name_end, found.end)
}

const MOST_SECRET_LETTERS: usize = 4096;

fn value_of_word(letters: &[u8], name: Range<usize>, start: usize) -> Option<Range<usize>> {
    let name = str::from_utf8(&letters[name])
        .ok()
        .filter(|name| is_secret_name(name))?;
    let value = argument(letters, start);
    let text = &letters[value.clone()];
    // Letters of other alphabets stand as bytes that no text has.
    let is_one = str::from_utf8(text).map_or(true, |text| is_secret(name, text));
    (is_argument(text) && is_one).then_some(value)
}

/// Returns the word that begins at `start`, without its quotes.
fn argument(letters: &[u8], start: usize) -> Range<usize> {
    let limit = (start + MOST_SECRET_LETTERS).min(letters.len());
    let letters = &letters[..limit];
    let opening = skip(letters, start, |letter| letter == b'\\');
    if let Some(quote @ (b'"' | b'\'' | b'`')) = letters.get(opening).copied() {
        let inner = opening + 1;
        let end = skip(letters, inner, |letter| {
            letter != quote && !matches!(letter, b'\n' | b'\r')
        });
        let slashes = (opening - start).min(end - inner);
        return inner..end - slashes;
    }
    let end = skip(letters, start, |letter| {
        !is_white_space(letter) && !matches!(letter, b'"' | b'\'' | b'`' | b'|' | b';' | b'\\')
    });
    start..skip_back(letters, start..end, |letter| {
        matches!(letter, b')' | b']' | b'}' | b',')
    })
}

fn is_argument(value: &[u8]) -> bool {
    let is_name_of_argument = value
        .iter()
        .all(|letter| letter.is_ascii_uppercase() || *letter == b'_');
    !value.is_empty()
        && !value.starts_with(b"-")
        && !STOP_WORDS.has(value)
        && !is_name_of_argument
        && !is_marked(value)
        && !is_placeholder(value)
}

/// Sentences with a secret, and lines of `.netrc`: `password is hunter2`, `password hunter2`, `identified by 'hunter2'`.
pub(super) fn said(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    const ALGORITHMS: &[&str] = &[
        "argon2", "base64", "md5", "oauth2", "pbkdf2", "sha", "utf", "http", "bcrypt", "scrypt", "v1", "v2",
        "v3", "2fa", "aes", "rs256", "hs256", "es256",
    ];
    let value = argument(letters, found.end);
    let text = &letters[value.clone()];
    let text = text.strip_suffix(b".").unwrap_or(text);
    let value = value.start..value.start + text.len();
    // Backticks mark any word of a document.
    let is_quoted = value.start > found.end && letters[value.start - 1] != b'`';
    let is_algorithm = || ALGORITHMS.iter().any(|each| starts_with(text, each));
    let has_letter = text.iter().any(|letter| letter.is_ascii_alphabetic());
    let is_spoken = if is_quoted {
        text.len() > 2 && !text.contains(&b' ') && !is_keyword(text)
    } else {
        text.len() > 5
            && is_mixed(text)
            && !is_algorithm()
            && (is_generated(text)
                || !text
                    .iter()
                    .any(|letter| matches!(letter, b'(' | b'=' | b'/' | b'<' | b':')))
    };
    (is_spoken && has_letter && is_argument(text) && !is_small_number(text)).then_some(value)
}

/// Returns the password of a machine in `.netrc`, which can be a word.
pub(super) fn machine_password(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let value = argument(letters, found.end);
    is_argument(&letters[value.clone()]).then_some(value)
}

/// Returns the last field of a line of `.pgpass`.
pub(super) fn password_of_line(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let value = skip_back(letters, found.clone(), |letter| letter != b':')..found.end;
    let text = &letters[value.clone()];
    (!is_placeholder(text) && !is_keyword(text)).then_some(value)
}

/// Texts that are written to the standard input of a command that takes a password there: `echo hunter2 | sudo -S …`.
pub(super) fn piped(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let mut start = skip(letters, found.start, is_word);
    start = skip(letters, start, |letter| letter == b' ');
    while letters[start..].starts_with(b"-n ") || letters[start..].starts_with(b"-e ") {
        start = skip(letters, start + 2, |letter| letter == b' ');
    }
    let value = argument(letters, start);
    (value.end <= found.end && is_argument(&letters[value.clone()])).then_some(value)
}
