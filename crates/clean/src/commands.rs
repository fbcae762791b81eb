//! Secrets in the arguments of commands: `--password hunter2`, `curl -u user:hunter2`, `mysql -phunter2`.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::{
    keywords::{Owner, apart},
    names::{is_label, is_secret, is_secret_name},
    pairs::{closing_quote, opening_at},
    random::{is_hexadecimal, is_opaque},
    ranges::{Ranges, expression, find_letter, merged, skip, skip_back, stands_alone},
    text::{Text, is_white_space, is_word, starts_with},
    values::{
        is_expression, is_generated, is_keyword, is_marked, is_mixed, is_nothing, is_path, is_small_number,
    },
};

/// A line of `rules/commands.tsv`: where a command has a secret among its arguments.
struct Row {
    commands: Vec<&'static [u8]>,
    /// Words that the command has.
    words: Vec<&'static [u8]>,
    places: Vec<Place>,
    /// The signs before the secret and behind it, within the argument.
    part: Option<(u8, Option<u8>)>,
}

/// Where a secret stands among the words of a command.
enum Place {
    /// An option, whether its value can be in the next word, and whether in the same one.
    Option(&'static [u8], bool, bool),
    /// So many arguments behind the words of the row.
    Argument(usize),
    HereString,
    Pipe,
}

/// The command that stands for any.
const ANY: &[u8] = b"*";
/// The programs that write a text into a pipe.
const WRITERS: [&str; 3] = ["echo", "printf", "yes"];

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = include_str!("../rules/commands.tsv").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(Row::of)
        .collect()
});

impl Row {
    fn of(line: &'static str) -> Option<Self> {
        let fields: Vec<_> = line.split('\t').collect();
        let [commands, words, places, part, _example] = fields[..] else {
            return None;
        };
        let words_of = |text: &'static str| text.split_ascii_whitespace().map(str::as_bytes).collect();
        Some(Self {
            commands: words_of(commands),
            words: words_of(words),
            places: places.split_ascii_whitespace().map(Place::of).collect(),
            part: part
                .bytes()
                .next()
                .map(|first| (first, part.as_bytes().get(1).copied())),
        })
    }
}

impl Place {
    fn of(text: &'static str) -> Self {
        let bytes = text.as_bytes();
        match bytes {
            b"<<<" => Self::HereString,
            b"|" => Self::Pipe,
            [b'0'..=b'9', ..] => Self::Argument(text.parse().unwrap_or(usize::MAX)),
            [option @ .., b'+'] => Self::Option(option, false, true),
            [option @ .., b'*'] => Self::Option(option, true, true),
            [.., b':' | b'='] => Self::Option(bytes, false, true),
            _ => Self::Option(bytes, true, false),
        }
    }
}

/// A command: its words, without the quotes around them, and what it reads.
#[derive(Default)]
struct Command {
    words: Vec<Range<usize>>,
    here: Option<Range<usize>>,
    piped: Option<Range<usize>>,
    /// The text ends there.
    end: usize,
    is_piped_on: bool,
}

/// Words of a command that are read.
const MOST_WORDS: usize = 64;

impl Command {
    /// Reads a command from a text, up to the end of the line or a sign that ends a command. A line can go on behind a backslash, which is two
    /// in a JSON string. The words can be the strings of a list.
    fn read(letters: &[u8], start: usize) -> Self {
        let limit = letters.len().min(start + MOST_SECRET_LETTERS);
        let letters = &letters[..limit];
        let mut command = Self::default();
        let mut at = start;
        let mut is_here = false;
        loop {
            let end;
            (at, end) = next_word(letters, at);
            if end == at || command.words.len() == MOST_WORDS {
                break;
            }
            let mut word = at..end;
            at = end;
            if letters[word.clone()].starts_with(b"<<<") {
                is_here = true;
                word.start += b"<<<".len();
                if word.is_empty() {
                    continue;
                }
            }
            let word = without_quotes(letters, word);
            if std::mem::take(&mut is_here) {
                command.here.get_or_insert(word);
            } else {
                command.words.push(word);
            }
        }
        command.end = at;
        command.is_piped_on = matches!(letters[at..], [b'|', next, ..] if next != b'|');
        command
    }

    /// Returns the text that the command writes into a pipe.
    fn written(&self, letters: &[u8]) -> Option<Range<usize>> {
        let name = self.words.first()?;
        let is_writer = WRITERS
            .iter()
            .any(|each| letters[name.clone()].ends_with(each.as_bytes()));
        let of_text = |word: &&Range<usize>| !matches!(letters[(*word).clone()], [b'-' | b'%', ..]);
        let mut texts = self.words[1..].iter().filter(of_text);
        let last = texts.next_back().filter(|_| is_writer && self.is_piped_on)?;
        // The end of its line.
        let mut end = last.end;
        while letters[last.start..end].ends_with(b"n") && letters[last.start..end - 1].ends_with(b"\\") {
            end = skip_back(letters, last.start..end - 1, |letter| letter == b'\\');
        }
        Some(last.start..end)
    }

    /// Adds the secrets that the rows find.
    fn find(&self, letters: &[u8], ranges: &mut Ranges) {
        let text = |at: usize| self.words.get(at).map_or(&b""[..], |word| &letters[word.clone()]);
        let programs: Vec<_> = (0..self.words.len()).map(|at| program(text(at))).collect();
        let is_known =
            |row: &&Row| row.commands[0] == ANY || row.commands.iter().any(|name| programs.contains(name));
        for row in ROWS.iter().filter(is_known) {
            let names = &row.commands;
            let is_any = names[0] == ANY;
            let mut commands = (0..self.words.len()).filter(|at| names.contains(&programs[*at]));
            let first = if is_any {
                Some(0)
            } else {
                commands.next().map(|at| at + 1)
            };
            let Some(first) = first else { continue };
            let place_of =
                |word: &&'static [u8]| (first..self.words.len()).find(|at| is_like(text(*at), word));
            let places: Option<Vec<_>> = row.words.iter().map(place_of).collect();
            let Some(places) = places else { continue };
            let behind = places.iter().max().map_or(first, |last| last + 1);
            for place in &row.places {
                match *place {
                    Place::HereString => {
                        ranges.extend(self.here.clone().and_then(|word| row.part(letters, word)))
                    }
                    Place::Pipe => ranges.extend(self.piped.clone().and_then(|word| row.part(letters, word))),
                    Place::Argument(count) => {
                        let arguments = self.words.iter().skip(behind);
                        let mut arguments =
                            arguments.filter(|word| !letters[(*word).clone()].starts_with(b"-"));
                        let of_sentence = |word: &&Range<usize>| {
                            letters[(*word).clone()].iter().all(u8::is_ascii_alphabetic)
                        };
                        let word = arguments.nth(count - 1).filter(|word| !of_sentence(word));
                        ranges.extend(word.and_then(|word| row.part(letters, word.clone())));
                    }
                    Place::Option(option, has_next, is_joined) => {
                        for at in first..self.words.len() {
                            let word = self.words[at].clone();
                            let Some(rest) = text(at).strip_prefix(option) else {
                                continue;
                            };
                            let value = match rest {
                                [] if has_next => self.words.get(at + 1).cloned(),
                                [] => None,
                                [b'=', ..] if has_next => Some(word.start + option.len() + 1..word.end),
                                _ if is_joined => Some(word.start + option.len()..word.end),
                                _ => None,
                            };
                            let value = value.map(|value| without_quotes(letters, value));
                            // The options of any program may mean something else.
                            let is_meant = |value: &Range<usize>| {
                                !is_any
                                    || is_said(letters, value, false)
                                        && !letters[value.clone()].contains(&b':')
                            };
                            ranges.extend(value.filter(is_meant).and_then(|value| row.part(letters, value)));
                        }
                    }
                }
            }
        }
    }
}

impl Row {
    /// Returns the secret within an argument.
    fn part(&self, letters: &[u8], argument: Range<usize>) -> Option<Range<usize>> {
        let text = &letters[argument.clone()];
        let secret = match self.part {
            None => argument,
            Some((first, last)) => {
                let start = argument.start + text.iter().position(|letter| *letter == first)? + 1;
                let last = last.and_then(|last| text.iter().rposition(|letter| *letter == last));
                start..last.map_or(argument.end, |at| argument.start + at).max(start)
            }
        };
        let value = &letters[secret.clone()];
        (is_value(value)
            && !is_marked(text)
            && !is_label(value)
            && !matches!(
                value,
                [b'$' | b'%' | b'@', b'A'..=b'Z' | b'a'..=b'z' | b'(' | b'{', ..] | [b'\\', b'\\', ..]
            ))
        .then_some(secret)
    }
}

/// Returns the name of the program of a path.
fn program(word: &[u8]) -> &[u8] {
    let name = word.rsplit(|letter| matches!(letter, b'/' | b'\\')).next();
    let name = name.unwrap_or_default();
    name.strip_suffix(b".exe").unwrap_or(name)
}

/// Returns whether a word is another one, in which `*` stands for any letters.
fn is_like(word: &[u8], like: &[u8]) -> bool {
    match like.iter().position(|letter| *letter == b'*') {
        None => word == like,
        Some(at) => {
            let (before, behind) = (&like[..at], &like[at + 1..]);
            let rest = word.strip_prefix(before);
            rest.is_some_and(|rest| (0..=rest.len()).any(|skipped| is_like(&rest[skipped..], behind)))
        }
    }
}

/// Skips blanks, and line breaks behind a backslash, which are two in a JSON string, or behind the sign of cmd or PowerShell.
fn skip_blanks(letters: &[u8], at: usize) -> usize {
    static BLANKS: LazyLock<Regex> =
        LazyLock::new(|| expression(r"^(?:[ \t]|(?:\\+[\n\r]|\\{2,}n|[\^`][\n\r])[\n\r]*)*"));
    at + BLANKS.find(&letters[at..]).map_or(0, |found| found.end())
}

/// Returns where a word of a command ends that begins at `start`: there, if a sign ends the command.
fn word_end(letters: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(letter) = letters.get(at) {
        let before = letters[start..at].last();
        let is_text = matches!(letter, b'"' | b'\'' | b'\\') && opening_at(letters, at).is_some();
        // A quote within a word belongs to the text around the command, unless a value begins there.
        let is_option = at == start + 2 && letters[start] == b'-';
        if is_text && (before.is_none_or(|before| b"=:<".contains(before)) || is_option) {
            let Some(opening) = opening_at(letters, at) else {
                return at;
            };
            let end = closing_quote(letters, opening.clone());
            at = letters.len().min(end + opening.len());
            // A text that the end of the line cuts off.
            if letters.get(at.wrapping_sub(1)) != letters.get(opening.end - 1) {
                return end;
            }
            continue;
        }
        match letter {
            _ if is_text => return at,
            b'&' if letters.get(at + 1).is_some_and(|next| is_word(*next)) => {}
            b'|' | b';' | b'&' | b'`' => return at,
            b')' | b']' | b'}' if before.is_none() => return at,
            b'\\'
                if before != Some(&b'\\')
                    && matches!(letters.get(at + 1), Some(b'n' | b'r' | b'\n' | b'\r')) =>
            {
                return at;
            }
            letter if is_white_space(*letter) => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Returns a word without the quotes around it.
fn without_quotes(letters: &[u8], word: Range<usize>) -> Range<usize> {
    let Some(opening) = opening_at(letters, word.start).filter(|opening| opening.end <= word.end) else {
        return word;
    };
    let inner = opening.end..closing_quote(&letters[..word.end], opening);
    inner.start..inner.end.min(word.end)
}

/// Finds secrets in the arguments of commands, by `rules/commands.tsv`.
pub(super) fn arguments(text: &Text) -> Ranges {
    let letters = text.letters();
    let mut secrets = Ranges::new();
    let mut from = 0;
    let mut piped = None;
    for keyword in apart(text.keywords(Owner::Commands)) {
        let mut start = keyword.range.start;
        if start < from || !stands_alone(letters, &keyword.range) {
            continue;
        }
        loop {
            let mut command = Command::read(letters, start);
            command.piped = piped.take();
            command.find(letters, &mut secrets);
            // The words of a text in quotes can be a command of their own: `sh -c "…"`.
            let is_script = |word: &&Range<usize>| letters[(*word).clone()].contains(&b' ');
            let end = command
                .words
                .iter()
                .find(is_script)
                .map_or(command.end, |word| word.start);
            from = end.max(start + 1);
            if !command.is_piped_on {
                break;
            }
            piped = command.written(letters);
            start = command.end.max(start + 1) + 1;
        }
    }
    merged(secrets)
}

/// Returns the words that the rows begin with.
pub(super) fn keywords() -> &'static [&'static [u8]] {
    static KEYWORDS: LazyLock<Vec<&[u8]>> = LazyLock::new(|| {
        let names = |row: &Row| match row.commands[..] {
            [ANY] => row.words.clone(),
            _ => row.commands.clone(),
        };
        let mut words: Vec<_> = ROWS.iter().flat_map(names).collect();
        words.extend(WRITERS.map(str::as_bytes));
        words.sort_unstable();
        words.dedup();
        words
    });
    &KEYWORDS
}

/// Returns where the next word of a command begins behind `at`, in a list of strings too, and where it ends.
fn next_word(letters: &[u8], at: usize) -> (usize, usize) {
    match gap_at(letters, at) {
        Some(start) => {
            let of_string = |letter: u8| !b"\"'`\\\n\r".contains(&letter);
            (start, skip(letters, start, of_string))
        }
        None => {
            let start = skip_blanks(letters, at);
            (start, word_end(letters, start))
        }
    }
}

/// Returns where the next word of a list of strings begins, if one ends at `at`: behind a comma between quotes, in the next call of a chain, or behind
/// the hyphen of a line of YAML.
fn gap_at(letters: &[u8], at: usize) -> Option<usize> {
    const MOST_LETTERS: usize = 64;
    static GAP: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r#"^(?:\\*["'`](?:\s*,(?:\s|\\n)*|\)\s*\.args?\(\[?)\\*["'`]"#,
            r#"|["'`]?[ \t]*\r?\n[ \t]*- ["'`]?)"#
        ))
    });
    let may_begin = matches!(
        letters.get(at)?,
        b'"' | b'\'' | b'`' | b'\\' | b'\n' | b'\r' | b' '
    );
    let within = &letters[at..letters.len().min(at + MOST_LETTERS)];
    let found = may_begin.then(|| GAP.find(within)).flatten();
    found.map(|found| at + found.end())
}

/// `--password hunter2`, `-token abc`, also in the list of arguments of a program: `["--password", "hunter2"]`.
pub(super) fn named_options(letters: &[u8]) -> Ranges {
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(start) = find_letter(letters, from, b'-') {
        let name_start = skip(letters, start, |letter| letter == b'-');
        let name_end = skip(letters, name_start, |letter| {
            is_word(letter) || b"-.".contains(&letter)
        });
        from = name_end;
        let before = start.checked_sub(1).map_or(b' ', |index| letters[index]);
        if name_start - start > 2 || is_word(before) || matches!(before, b'.' | b'/') {
            continue;
        }
        let limit = letters.len().min(name_end + MOST_SECRET_LETTERS);
        let (value, end) = next_word(&letters[..limit], name_end);
        if value == name_end {
            continue;
        }
        // A page of help explains the option in the next column.
        let blanks = letters[name_end..value].iter().filter(|letter| **letter == b' ');
        let is_help = blanks.count() > 1;
        let word = without_quotes(letters, value..end);
        // Of a string in JSON that ends the option's text.
        let end = skip(&letters[..word.end], word.start, |letter| letter != b'"');
        let is_behind = |letter: u8| matches!(letter, b')' | b']' | b'}' | b',');
        let word = word.start..skip_back(letters, word.start..end, is_behind);
        let (name, text) = (&letters[name_start..name_end], &letters[word.clone()]);
        let is_named = || is_secret_name(name) && is_argument(text) && is_secret(name, text);
        let is_place = name.is_empty() || name.ends_with(b"id") || name.ends_with(b"ref");
        let is_key = || name.ends_with(b"key") && text.len() >= LEAST_KEY && is_hexadecimal(text);
        if (is_named() || !is_place && is_opaque(text) || is_key()) && (!is_help || is_mixed(text)) {
            from = word.end;
            ranges.push(word);
        }
    }
    ranges
}

const MOST_SECRET_LETTERS: usize = 4096;
/// The least hexadecimal digits of a key.
const LEAST_KEY: usize = 32;

fn is_argument(value: &[u8]) -> bool {
    let is_name_of_argument = value
        .iter()
        .all(|letter| letter.is_ascii_uppercase() || *letter == b'_');
    !is_name_of_argument && is_value(value)
}

fn is_value(value: &[u8]) -> bool {
    !value.starts_with(b"-") && !is_nothing(value)
}

/// Returns whether a value that a sentence tells can be a secret.
pub(super) fn is_said(letters: &[u8], value: &Range<usize>, is_quoted: bool) -> bool {
    const ALGORITHMS: &[&str] = &[
        "argon2", "base64", "md5", "oauth2", "pbkdf2", "sha", "utf", "http", "bcrypt", "scrypt", "v1", "v2",
        "v3", "2fa", "aes", "rs256", "hs256", "es256", "0x", "ed25519", "x25519", "x509", "k8s", "i18n",
        "l10n", "s3",
    ];
    const SIGNS: &[u8] = b"!#$%&*+?@^~";
    let text = &letters[value.clone()];
    let is_algorithm = || ALGORITHMS.iter().any(|each| starts_with(text, each));
    let has_letter = text.iter().any(u8::is_ascii_alphabetic);
    let has = |signs: &[u8]| text.iter().any(|letter| signs.contains(letter));
    let is_spoken = if is_quoted {
        text.len() > 2 && !text.contains(&b' ') && !is_keyword(text)
    } else {
        text.len() > 5
            && (is_mixed(text) || has_letter && has(SIGNS) && !has(b"()=,;"))
            && !is_algorithm()
            && (is_generated(text)
                || has(SIGNS) && !has(b"(=<\\") && !is_expression(text)
                || !has(b"(=/<:[@") && !ends_with_name(text))
    };
    is_spoken
        && has_letter
        && is_argument(text)
        && !is_small_number(text)
        && !is_path(text)
        && !text.starts_with(b"[")
}

/// Returns whether a word has a point that no long number stands behind, as names of files and versions have.
fn ends_with_name(word: &[u8]) -> bool {
    const LEAST_DIGITS: usize = 4;
    let last = word.rsplit(|letter| *letter == b'.').next().unwrap_or_default();
    last.len() < word.len() && (last.len() < LEAST_DIGITS || !last.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_finds_the_secret_of_each_example() {
        let lines = include_str!("../rules/commands.tsv").lines();
        let lines: Vec<_> = lines.filter(|line| !line.starts_with('#')).collect();
        assert_eq!(ROWS.len(), lines.len());
        for line in lines {
            let example = line.rsplit('\t').next().unwrap().replace('⏎', "\n");
            let (before, rest) = example.split_once('«').unwrap();
            let (secret, behind) = rest.split_once('»').unwrap();
            let text = format!("{before}{secret}{behind}");
            let units: Vec<u16> = text.encode_utf16().collect();
            let found = arguments(&Text::new(&units));
            let found: Vec<_> = found.into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, [secret], "{line}");
        }
    }
}
