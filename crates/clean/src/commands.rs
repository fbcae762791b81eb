//! Secrets in the arguments of commands: `--password hunter2`, `curl -u user:hunter2`, `mysql -phunter2`.

use std::{ops::Range, sync::LazyLock};

use memchr::{memchr_iter, memchr3, memmem};
use regex::bytes::Regex;

use crate::{
    keywords::{self, Owner, apart},
    names::{closing_quote, is_label, is_marked, is_secret, is_secret_name, opening_at},
    random::is_opaque,
    ranges::{Ranges, expression, find_letter, merged, skip, skip_back, stands_alone},
    text::{Text, is_white_space, is_word, starts_with},
    values::{
        STOP_WORDS, is_expression, is_generated, is_keyword, is_mixed, is_path, is_placeholder,
        is_small_number,
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
    /// in a JSON string.
    fn read(letters: &[u8], start: usize) -> Self {
        let limit = letters.len().min(start + MOST_SECRET_LETTERS);
        let letters = &letters[..limit];
        let mut command = Self::default();
        let mut at = start;
        let mut is_here = false;
        loop {
            at = skip_blanks(letters, at);
            let end = word_end(letters, at);
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
            && !is_keyword(value)
            && !is_label(value)
            && !matches!(
                value,
                [b'$' | b'%' | b'@', b'A'..=b'Z' | b'a'..=b'z' | b'(' | b'{', ..]
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

/// Skips blanks, and line breaks behind a backslash.
fn skip_blanks(letters: &[u8], mut at: usize) -> usize {
    loop {
        at = skip(letters, at, |letter| matches!(letter, b' ' | b'\t'));
        let slashes = skip(letters, at, |letter| letter == b'\\');
        // Of cmd and of PowerShell.
        if matches!(letters.get(at..at + 2), Some([b'^' | b'`', b'\n' | b'\r'])) {
            at += 2;
            continue;
        }
        let is_break = match letters.get(slashes) {
            Some(b'\n' | b'\r') => slashes > at,
            Some(b'n') => slashes > at + 1,
            _ => false,
        };
        if !is_break {
            return at;
        }
        at = skip(letters, slashes + 1, |letter| matches!(letter, b'\n' | b'\r'));
    }
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

/// Finds secrets in the arguments of commands, by `rules/commands.tsv`: of those in the text, and of those in lists of strings.
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
            from = command.end.max(start + 1);
            if !command.is_piped_on {
                break;
            }
            piped = command.written(letters);
            start = from + 1;
        }
    }
    for words in lists(text) {
        let command = Command {
            words,
            ..Command::default()
        };
        command.find(letters, &mut secrets);
        secrets.extend(command.named_options(letters));
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

/// Returns the lists of strings in a text: with commas between them, as arguments of a chain of calls, and in lines of YAML.
fn lists(text: &Text) -> Vec<Vec<Range<usize>>> {
    const MOST_STRING_LETTERS: usize = 512;
    const OPTIONS: [&str; 4] = ["\"-", "'-", "`-", "- -"];
    let (letters, commands) = (text.letters(), text.keywords(Owner::Commands));
    // Most lists have neither a command nor an option.
    let has = |option: &str| memmem::find(letters, option.as_bytes()).is_some();
    if commands.is_empty() && !OPTIONS.into_iter().any(has) {
        return Vec::new();
    }
    let of_string = |letter: u8| !matches!(letter, b'"' | b'\'' | b'`' | b'\n' | b'\r');
    let mut lists: Vec<Vec<Range<usize>>> = Vec::new();
    let mut last_end = usize::MAX;
    let mut from = 0;
    while let Some(at) = memchr3(b',', b'-', b')', &letters[from..]).map(|at| from + at) {
        from = at + 1;
        let Some(gap) = gap_at(letters, at) else { continue };
        from = gap.end.max(from);
        let is_line = letters[at] == b'-';
        if gap.start != last_end {
            let least = gap.start.saturating_sub(MOST_STRING_LETTERS);
            let start = skip_back(letters, least..gap.start, of_string);
            let first = (!is_line).then_some(start..gap.start);
            lists.push(first.into_iter().collect());
        }
        let limit = letters.len().min(gap.end + MOST_STRING_LETTERS);
        let end = skip(&letters[..limit], gap.end, |letter| {
            if is_line {
                !matches!(letter, b'\n' | b'\r')
            } else {
                of_string(letter)
            }
        });
        last_end = skip_back(letters, gap.end..end, |letter| letter == b'\\');
        if let Some(words) = lists.last_mut().filter(|words| words.len() < MOST_WORDS) {
            words.push(without_quotes(letters, gap.end..last_end));
        }
    }
    lists.retain(|words| {
        let has_command = || {
            let (start, end) = (words[0].start, words[words.len() - 1].end);
            let within = keywords::from(commands, start).iter();
            let mut within = within.take_while(|command| command.range.start < end);
            within.any(|command| command.range.end <= end)
        };
        let is_option = |word: &Range<usize>| letters[word.clone()].starts_with(b"-");
        words.len() > 1 && (words.iter().any(is_option) || has_command())
    });
    lists
}

/// Returns what stands between two strings of a list, quotes included, around a comma, a hyphen of YAML or the end of a call.
fn gap_at(letters: &[u8], at: usize) -> Option<Range<usize>> {
    const MOST_BLANKS: usize = 64;
    let least = at.saturating_sub(MOST_BLANKS);
    let before = skip_back(letters, least..at, |letter| matches!(letter, b' ' | b'\t'));
    if letters[at] == b'-' {
        let is_line = letters.get(at + 1) == Some(&b' ') && (before == 0 || letters[before - 1] == b'\n');
        return is_line.then_some(before.saturating_sub(1)..at + 2);
    }
    let is_quote = |letter: u8| matches!(letter, b'"' | b'\'' | b'`');
    let close = before.checked_sub(1).filter(|close| is_quote(letters[*close]))?;
    let start = skip_back(letters, least.min(close)..close, |letter| letter == b'\\');
    let mut next = at + 1;
    if letters[at] == b')' {
        next = skip(letters, next, |letter| letter.is_ascii_whitespace());
        next += [&b".arg("[..], b".args(["]
            .iter()
            .find(|call| letters[next..].starts_with(call))?
            .len();
    }
    let limit = letters.len().min(next + MOST_BLANKS);
    let open = skip(&letters[..limit], next, |letter| letter.is_ascii_whitespace());
    let open = if letters[open..].starts_with(b"\\n") {
        skip(&letters[..limit], open + 2, |letter| letter == b' ')
    } else {
        open
    };
    let open = opening_at(letters, open)?;
    Some(start..open.end)
}

impl Command {
    /// Returns the values of options that are named like secrets.
    fn named_options(&self, letters: &[u8]) -> Ranges {
        let value_of = |pair: &[Range<usize>]| {
            let option = &letters[pair[0].clone()];
            let name = option.strip_prefix(b"-")?;
            let name = name.strip_prefix(b"-").unwrap_or(name);
            let value = &letters[pair[1].clone()];
            (is_secret_name(name) && is_argument(value) && is_secret(name, value)).then(|| pair[1].clone())
        };
        self.words.windows(2).filter_map(value_of).collect()
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
        let secret = value_of_word(letters, name_start..name_end, value).or_else(|| {
            let word = argument(letters, value);
            let is_place = letters[..name_end].ends_with(b"id") || letters[..name_end].ends_with(b"ref");
            (!is_place && name_end > name_start && is_opaque(&letters[word.clone()])).then_some(word)
        });
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
    let name = &letters[name];
    let value = argument(letters, start);
    let text = &letters[value.clone()];
    (is_secret_name(name) && is_argument(text) && is_secret(name, text)).then_some(value)
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
    !is_name_of_argument && is_value(value)
}

fn is_value(value: &[u8]) -> bool {
    !value.is_empty()
        && !value.starts_with(b"-")
        && !STOP_WORDS.has(value)
        && !is_marked(value)
        && !is_placeholder(value)
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
                || !has(b"(=/<:[.@"))
    };
    is_spoken
        && has_letter
        && is_argument(text)
        && !is_small_number(text)
        && !is_path(text)
        && !text.starts_with(b"[")
}

/// Finds the last fields of lines of `.pgpass`: `localhost:5432:shop:ann:hunter2`.
pub(super) fn passwords_of_lines(letters: &[u8]) -> Ranges {
    static FIELDS: LazyLock<Regex> =
        LazyLock::new(|| expression(r#"^:(?:543\d|6432|\*|\d{5}):[\w*-]+:[\w.*-]+:([^\s\x80:'"`,;\\]{3,})"#));
    let mut ranges = Ranges::new();
    let mut from = 0;
    for colon in memchr_iter(b':', letters) {
        let is_port = |length: usize| letters.get(colon + 1 + length) == Some(&b':');
        let may_begin = match letters.get(colon + 1) {
            Some(b'*') => is_port(1),
            Some(b'0'..=b'9') => is_port(4) || is_port(5),
            _ => false,
        };
        let host = letters[..colon].last().copied().unwrap_or(b' ');
        if colon < from || !may_begin || !(is_word(host) || b"*-".contains(&host)) {
            continue;
        }
        if let Some(value) = FIELDS.captures(&letters[colon..]).and_then(|found| found.get(1)) {
            from = colon + value.end();
            let text = value.as_bytes();
            ranges
                .extend((!is_placeholder(text) && !is_keyword(text)).then_some(colon + value.start()..from));
        }
    }
    ranges
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
