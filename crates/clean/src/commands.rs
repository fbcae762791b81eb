//! Secrets in the arguments of commands: `--password hunter2`, `curl -u user:hunter2`, `mysql -phunter2`.

use std::{collections::HashMap, ops::Range, sync::LazyLock};

use memchr::memmem;
use regex::bytes::Regex;

use crate::{
    keywords::{Owner, apart},
    languages::is_shaped,
    lines::Lines,
    names::{is_of_words, is_possible, is_secret, is_secret_name, names_stored},
    pairs::{closing_quote, opening_at},
    random::{is_opaque, is_random},
    ranges::{Pattern, Ranges, expression, find_letter, merged, skip, skip_back},
    text::{Text, is_white_space, is_word, starts_with},
    values::{is_chosen, is_expression, is_generated, is_keyword, is_marked, is_mixed},
    words::Words,
};

/// A line of `rules/commands.tsv`: where a command has a secret. Its expressions are tried in the words of the command, one a line.
struct Row {
    /// Programs, or words of any command.
    keywords: Vec<&'static [u8]>,
    is_of_any: bool,
    /// Words that the command has.
    words: Vec<Pattern>,
    places: Vec<(Place, Pattern)>,
    /// The signs before the secret and behind it, within the argument.
    part: Option<(u8, Option<u8>)>,
}

/// Where a secret stands.
#[derive(PartialEq, Eq)]
enum Place {
    Option,
    /// Behind the words of the row.
    Argument,
    /// In a here-string, or in what is piped.
    Input,
}

/// The programs that write a text into a pipe.
const WRITERS: [&str; 3] = ["echo", "printf", "yes"];

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = include_str!("../rules/commands.tsv").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(Row::of)
        .collect()
});

/// The rows of each program.
static PROGRAMS: LazyLock<HashMap<&[u8], Vec<&Row>>> = LazyLock::new(|| {
    let mut programs: HashMap<_, Vec<_>> = HashMap::new();
    for row in ROWS.iter().filter(|row| !row.is_of_any) {
        for name in &row.keywords {
            programs.entry(*name).or_default().push(row);
        }
    }
    programs
});

impl Row {
    fn of(line: &'static str) -> Option<Self> {
        let fields: Vec<_> = line.split('\t').collect();
        let [commands, words, places, part, _example] = fields[..] else {
            return None;
        };
        let is_of_any = commands == "*";
        let keywords = if is_of_any { words } else { commands };
        let word = |word| Pattern::of(format!("(?m)^{}\n", regex::escape(word).replace(r"\*", ".*")));
        Some(Self {
            keywords: keywords.split_ascii_whitespace().map(str::as_bytes).collect(),
            is_of_any,
            words: words.split_ascii_whitespace().map(word).collect(),
            places: places.split_ascii_whitespace().map(Place::of).collect(),
            part: part
                .bytes()
                .next()
                .map(|first| (first, part.as_bytes().get(1).copied())),
        })
    }

    /// Returns the secret within an argument.
    fn part(&self, letters: &[u8], argument: Range<usize>) -> Option<Range<usize>> {
        let text = &letters[argument.clone()];
        let start = argument.start;
        let secret = match self.part {
            None => argument,
            Some((first, last)) => {
                let start = argument.start + text.iter().position(|letter| *letter == first)? + 1;
                let last = last.and_then(|last| text.iter().rposition(|letter| *letter == last));
                // A key in the place of a user.
                if start == argument.end && is_generated(text) {
                    argument.start..start - 1
                } else {
                    start..last.map_or(argument.end, |at| argument.start + at).max(start)
                }
            }
        };
        let value = &letters[secret.clone()];
        // Another field, as its name and a word for its value say: `DB_HOST=mysql`.
        let name = &letters[start..secret.start];
        let is_other = name.ends_with(b"=") && is_of_words(value) && !is_secret_name(&name[..name.len() - 1]);
        let is_variable = matches!(
            value,
            [b'$' | b'%' | b'@', b'A'..=b'Z' | b'a'..=b'z' | b'(' | b'{', ..] | [b'\\', b'\\', ..]
        );
        (is_possible(value)
            && !is_other
            && !is_variable
            && !value.starts_with(b"-")
            && value.iter().any(u8::is_ascii_alphanumeric)
            && !is_marked(text))
        .then_some(secret)
    }
}

impl Place {
    /// Returns an expression whose group is the secret.
    fn of(text: &str) -> (Self, Pattern) {
        if let Ok(number) = text.parse::<usize>() {
            let before = number.saturating_sub(1);
            let option = "(?:-|/[A-Za-z]+:).*";
            // A word of letters alone is one of a sentence.
            let expression = format!(
                r"^(?:(?:{option}\n)*(?:[^\n-].*)?\n){{{before}}}(?:{option}\n)*([A-Za-z]+[^A-Za-z\n].*|[^A-Za-z\n/-].*)"
            );
            return (Self::Argument, Pattern::of(expression));
        }
        let (place, option, joint) = match text.as_bytes() {
            b"<<<" | b"|" => (Self::Input, format!("-{text}"), r"\n"),
            [.., b'+'] => (Self::Option, text.replace('+', ""), ""),
            [.., b'*'] => (Self::Option, text.replace('*', ""), r"[\n=]?"),
            [.., b':' | b'='] => (Self::Option, text.to_owned(), ""),
            _ => (Self::Option, text.to_owned(), r"[\n=]"),
        };
        let option = regex::escape(&option);
        (place, Pattern::of(format!(r"(?m)^{option}{joint}([^\n-].*)")))
    }
}

/// A command that was read.
#[derive(Default)]
struct Command<'l> {
    /// Its words, without the quotes around them, each with a line break behind it. What it reads follows an option `-<<<` or `-|`.
    lines: Vec<u8>,
    /// Where each letter of the lines stands in the text.
    places: Vec<usize>,
    /// The names of the programs that the words can be, and where the lines go on behind them.
    programs: Vec<(&'l [u8], usize)>,
    /// Where the command ends, or a word begins that can be a command of its own: `sh -c "…"`.
    rest: usize,
    /// The sign of a pipe behind it, and the text that it writes there.
    pipe: Option<(usize, Option<Range<usize>>)>,
}

/// Words of a command that are read.
const MOST_WORDS: usize = 64;

impl<'l> Command<'l> {
    /// Reads a command from a text, up to the end of the line or a sign that ends a command. A line can go on behind a backslash, which is two
    /// in a JSON string. The words can be the strings of a list.
    fn read(letters: &'l [u8], start: usize, piped: Option<Range<usize>>) -> Self {
        // What programs write into a pipe: the last text, without the end of its line.
        static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
            expression(&format!(
                r"^.*(?:{})\n(?:.*\n)*((?:[^\n%-].*?)??)(?:\\+n)*\n",
                WRITERS.join("|")
            ))
        });
        let limit = letters.len().min(start + MOST_SECRET_LETTERS);
        let letters = &letters[..limit];
        let mut command = Self::default();
        let mut inputs = Vec::new();
        let (mut script, mut has_document) = (None, false);
        let (mut at, mut end) = next_word(letters, start);
        // The end of a program's path in quotes: `"C:\Program Files\x.exe" /p …`.
        if matches!(letters[end..], [b'"' | b'\'', b' ', ..]) {
            command.push(letters, at..end);
            (at, end) = next_word(letters, end + 1);
        }
        while at < end && command.programs.len() < MOST_WORDS {
            let signs = skip(&letters[..end], at, |letter| letter == b'<') - at;
            let is_here = signs > 1;
            if is_here {
                at += signs;
            }
            if at == end {
                (at, end) = next_word(letters, end);
            }
            let word = without_quotes(letters, at..end);
            if signs == b"<<".len() {
                has_document = true;
            } else if is_here {
                inputs.push(("-<<<\n", word));
            } else {
                if letters[word.clone()].contains(&b' ') {
                    script.get_or_insert(word.start);
                }
                command.push(letters, word);
            }
            (at, end) = next_word(letters, end);
        }
        command.rest = script.unwrap_or(at);
        if matches!(letters[at..], [b'|', next, ..] if next != b'|') {
            let written = WRITTEN.captures(&command.lines).and_then(|found| found.get(1));
            let written = written.map(|text| command.places[text.start()]..command.places[text.end()]);
            command.pipe = Some((at, written));
        }
        inputs.extend(piped.map(|text| ("-|\n", text)));
        // The first line of a document.
        let line = has_document.then(|| Lines::new(letters, at.min(limit)..limit).nth(1));
        let is_password = |line: &_| is_said(letters, line, false) && !letters[line.clone()].contains(&b' ');
        inputs.extend(line.flatten().filter(is_password).map(|line| ("-<<<\n", line)));
        for (option, text) in inputs {
            command.lines.extend_from_slice(option.as_bytes());
            command.places.resize(command.lines.len(), text.start);
            command.push(letters, text);
        }
        command
    }

    fn push(&mut self, letters: &'l [u8], word: Range<usize>) {
        self.lines.extend_from_slice(&letters[word.clone()]);
        self.lines.push(b'\n');
        self.programs
            .push((program(&letters[word.clone()]), self.lines.len()));
        self.places.extend(word.start..=word.end);
    }

    /// Adds the secrets that the rows find.
    fn find(&self, letters: &[u8], ranges: &mut Ranges) {
        let of_any = ROWS.iter().filter(|row| row.is_of_any).map(|row| (row, 0));
        let of_program = self.programs.iter().flat_map(|(name, end)| {
            let rows = PROGRAMS.get(name).into_iter().flatten();
            rows.map(|row| (*row, *end))
        });
        for (row, first) in of_any.chain(of_program) {
            let end_of = |word: &Pattern| Some(first + word.find(&self.lines[first..])?.end());
            let ends: Option<Vec<_>> = row.words.iter().map(end_of).collect();
            let Some(ends) = ends else { continue };
            for (place, expression) in &row.places {
                let from = match place {
                    Place::Argument => ends.iter().copied().max().unwrap_or(first),
                    _ => first,
                };
                let found = expression.captures_iter(&self.lines[from..]);
                for value in found.filter_map(|found| found.get(1)) {
                    let value = self.places[from + value.start()]..self.places[from + value.end()];
                    let value = without_quotes(letters, value);
                    // The options of any program may mean something else.
                    let is_meant = !row.is_of_any
                        || *place == Place::Input
                        || is_said(letters, &value, false) && !letters[value.clone()].contains(&b':');
                    ranges.extend(row.part(letters, value).filter(|_| is_meant));
                }
            }
        }
    }
}

/// Returns the name of the program of a path.
fn program(word: &[u8]) -> &[u8] {
    let name = word.rsplit(|letter| matches!(letter, b'/' | b'\\')).next();
    let name = name.unwrap_or_default();
    name.strip_suffix(b".exe").unwrap_or(name)
}

/// Skips blanks, and line breaks behind a backslash, which are two in a JSON string, or behind the sign of cmd or PowerShell.
fn skip_blanks(letters: &[u8], at: usize) -> usize {
    static BLANKS: Pattern = Pattern::new(r"^(?:[ \t]|(?:\\+[\n\r]|\\{2,}n|[\^`][\n\r])[\n\r]*)*");
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
    for keyword in apart(text.keywords(Owner::Commands)) {
        let mut start = keyword.range.start;
        if start < from {
            continue;
        }
        let mut piped = None;
        loop {
            let command = Command::read(letters, start, piped);
            command.find(letters, &mut secrets);
            from = command.rest.max(start + 1);
            let Some((pipe, written)) = command.pipe else {
                break;
            };
            piped = written;
            start = pipe.max(start + 1) + 1;
        }
    }
    merged(secrets)
}

/// Returns the words that the rows begin with, and the programs that write into a pipe.
pub(super) fn keywords() -> &'static [&'static [u8]] {
    static KEYWORDS: LazyLock<Vec<&[u8]>> = LazyLock::new(|| {
        let words = ROWS.iter().flat_map(|row| row.keywords.iter().copied());
        let mut words: Vec<_> = words.chain(WRITERS.map(str::as_bytes)).collect();
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
    static GAP: Pattern = Pattern::new(concat!(
        r#"^(?:\\*["'`](?:\s*,(?:\s|\\n)*|\)\s*\.args?\(\[?)\\*["'`]"#,
        r#"|["'`]?[ \t]*\r?\n[ \t]*- ["'`]?)"#
    ));
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
        if name_start - start > 2 || is_word(before) || before >= 0x80 || b"./)+".contains(&before) {
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
        // Of some service.
        let name = if name == b"key" { b"x-key" } else { name };
        let is_named = || is_secret_name(name) && is_argument(text) && is_secret(name, text);
        let is_place = name.is_empty() || name.ends_with(b"id") || name.ends_with(b"ref");
        if let Some(secret) = chosen_in(letters, start, name_start..name_end, &word) {
            from = secret.end;
            ranges.push(secret);
        } else if !names_stored(name, text)
            && (is_named() || !is_place && is_opaque(text))
            && (!is_help || is_mixed(text))
        {
            from = word.end;
            ranges.push(word);
        }
    }
    ranges
}

/// Returns the password of an option that is one's in many programs, by its shape: `-p falcon-violet-89`, `-pFalcon1704`, `-C bob:Falcon1704`.
fn chosen_in(
    letters: &[u8],
    command: usize,
    name: Range<usize>,
    value: &Range<usize>,
) -> Option<Range<usize>> {
    const MOST_BEFORE: usize = 256;
    static OPTIONS: Words = Words::of("commands.options");
    /// Programs whose options mean something else.
    static OTHERS: Words = Words::of("commands.others");
    let option = &letters[name.clone()];
    let colon = letters[value.clone()].iter().rposition(|letter| *letter == b':');
    let own = value.start + colon.map_or(0, |at| at + 1)..value.end;
    let text = &letters[own.clone()];
    let is_password = is_chosen(text) || is_shaped(text);
    let last = option.rsplit(|letter| *letter == b'-').next()?;
    let is_of_password = OPTIONS.has(last) || last.ends_with(b"auth");
    let secret = match option {
        [b'p' | b'k', glued @ ..] if is_chosen(glued) => name.start + 1..name.end,
        _ if is_password && is_of_password => own,
        _ => return None,
    };
    let before = command.saturating_sub(MOST_BEFORE)..command;
    let start = skip_back(letters, before, |letter| !b"\n\r;|&`(".contains(&letter));
    let mut words = letters[start..command].split(|letter| !is_word(*letter) && *letter != b'+');
    (!words.any(|word| OTHERS.has(word))).then_some(secret)
}

const MOST_SECRET_LETTERS: usize = 4096;

fn is_argument(value: &[u8]) -> bool {
    let is_name_of_argument = value
        .iter()
        .all(|letter| letter.is_ascii_uppercase() || *letter == b'_');
    !is_name_of_argument && !matches!(value, [b'-' | b'(' | b'[', ..])
}

/// Returns whether a text is the name of an algorithm, a format or a version.
pub(super) fn is_algorithm(text: &[u8]) -> bool {
    const ALGORITHMS: &[&str] = &[
        "argon2", "base64", "md5", "oauth2", "pbkdf2", "sha", "utf", "http", "bcrypt", "scrypt", "v1", "v2",
        "v3", "2fa", "aes", "rs256", "hs256", "es256", "0x", "ed25519", "x25519", "x509", "k8s", "i18n",
        "l10n", "s3", "gpio",
    ];
    ALGORITHMS.iter().any(|each| starts_with(text, each))
}

/// Returns whether a value that a sentence tells can be a secret.
pub(super) fn is_said(letters: &[u8], value: &Range<usize>, is_quoted: bool) -> bool {
    const SIGNS: &[u8] = b"!#$%&*+?@^~";
    let text = &letters[value.clone()];
    let has_letter = text.iter().any(u8::is_ascii_alphabetic);
    // A sign behind a word ends a sentence.
    let inner = text.strip_suffix(b"!").unwrap_or(text);
    let has = |signs: &[u8]| inner.iter().any(|letter| signs.contains(letter));
    let is_spoken = if is_quoted {
        text.len() > 2 && !text.contains(&b' ') && !is_keyword(text)
    } else {
        text.len() > 5
            && (is_mixed(text) || is_random(text) || has_letter && has(SIGNS) && !has(b"()=,;"))
            && !is_algorithm(text)
            && !is_expression(text)
            && memmem::find(text, b"://").is_none()
            && (is_generated(text) || has(SIGNS) && !has(b"(=<\\") || !has(b"(=/<:[@"))
    };
    is_spoken && has_letter && is_argument(text) && is_possible(text)
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
