//! Secrets in tables, whose column is named like one: Markdown, psql, CSV, and columns of a terminal. In rows of two, the first names the second. Also a
//! value in the line below its name.

use std::{iter, ops::Range, sync::LazyLock};

use memchr::{memchr, memmem};
use regex::bytes::{Match, Regex};

use crate::{
    commands::{is_algorithm, is_said},
    keywords::{self, Owner},
    languages::{self, is_shaped, password_behind},
    lines::{LEAST_WRAPPED_LETTERS, Lines, of_base64, wrapped},
    names::{begins_marker, is_possible, is_secret_name},
    random::{is_hexadecimal, is_id},
    ranges::{Pattern, Ranges, expression, line_around, merged, skip, skip_back},
    siblings::SECRET_KINDS,
    text::{MARKER, OTHER, Text, is_white_space, is_word},
    values::{is_chosen, is_generated, is_mixed, is_path, is_varied},
};

/// Longer lines are of no table.
pub(super) const MOST_LETTERS: usize = 2048;

/// Names that are no parts of words: the first one neither at its beginning, nor any of them at its end.
const WHOLE: [&str; 8] = ["rand", "sid", "psk", " key", ".key", "_key", "-key", "wg show"];

/// Shorter names are no parts of words: letters at random have them too.
const LEAST_PART: usize = 4;

/// Returns the names of columns and lines.
pub(super) fn names() -> Vec<Vec<u8>> {
    const OTHERS: &str = "whoami pass secret securestring pwd bindpw rootpw credential sessionid sessid apikey authkey community genkey keygen pwgen";
    let own = WHOLE.into_iter().chain(OTHERS.split(' '));
    let own = own.map(|word| word.as_bytes().to_vec());
    own.chain(languages::latin_words()).collect()
}

/// Finds the values of columns and lines that are named like secrets.
pub(super) fn values(text: &Text) -> Ranges {
    let letters = text.letters();
    let is_word_at = |at: Option<usize>| {
        at.and_then(|at| letters.get(at))
            .is_some_and(|letter| is_word(*letter))
    };
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let [name, ..] = keywords::from(text.keywords(Owner::Columns), from) {
        let found = &name.range;
        let is_part = name.number < WHOLE.len() && is_word_at(Some(found.end))
            || (name.number == 0 || found.len() < LEAST_PART) && is_word_at(found.start.checked_sub(1));
        if is_part || begins_marker(letters, found.start) {
            from = if is_part { found.start + 1 } else { found.end };
            continue;
        }
        let line = line_at(letters, found.start);
        from = line.end;
        if line.len() > MOST_LETTERS {
            continue;
        }
        ranges.extend(value_below(letters, &line).map(|value| {
            // Lines of Base64 go on with it.
            let is_line = |line: &[u8]| line.len() >= LEAST_WRAPPED_LETTERS && is_mixed(line);
            let is_base64 = letters[value.clone()].iter().all(|letter| of_base64(*letter));
            let end = is_base64.then(|| wrapped(letters, value.clone(), false, is_line));
            value.start..end.unwrap_or(value.end)
        }));
        if let Some(table) = Table::below(letters, line.clone(), &is_name) {
            from = table.end.max(from);
            let cells = table.rows.into_iter().flatten();
            ranges.extend(cells.filter(|cell| is_value(&letters[cell.clone()])));
        }
        let statement = statement(letters, &line);
        match Cells::of(&letters[statement.clone()]) {
            Some(sort) => {
                let cells = sort.split(letters, line.clone());
                ranges.extend(second_of(letters, &cells, sort));
            }
            None => ranges.extend(word_behind(letters, statement)),
        }
    }
    merged(ranges)
}

/// Returns the line that a place stands in.
pub(super) fn line_at(letters: &[u8], at: usize) -> Range<usize> {
    line_around(letters, at.saturating_sub(MOST_LETTERS), at)
}

/// Returns a line without the blanks around it, and without the sign at its end and a remark behind that.
fn statement(letters: &[u8], line: &Range<usize>) -> Range<usize> {
    let ends = |rest: &[u8]| matches!(rest.trim_ascii_start(), [] | [b'#', ..] | [b'/', b'/', ..]);
    let sign = memchr(b';', &letters[line.clone()]).map(|at| line.start + at);
    let end = sign
        .filter(|at| ends(&letters[at + 1..line.end]))
        .unwrap_or(line.end);
    let start = skip(&letters[..end], line.start, is_white_space);
    start..skip_back(letters, start..end, is_white_space)
}

/// Returns whether a line is one between a heading and its rows.
fn is_rule(line: &[u8]) -> bool {
    let is_drawn = |sign: u8| {
        line.contains(&sign)
            && line
                .iter()
                .all(|letter| *letter == sign || b"-+|:= \t\r".contains(letter))
    };
    is_drawn(b'-') || is_drawn(b'=') || is_drawn(OTHER)
}

/// What stands between the cells of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cells {
    Sign(u8),
    /// Two or more, in columns.
    Blanks,
    /// One or more below a heading in capitals, as programs list processes, files and sessions: `PID USER  COMMAND`.
    Words,
}

impl Cells {
    fn of(line: &[u8]) -> Option<Self> {
        // The lines of a box, perhaps only those between its columns.
        let text = line.trim_ascii();
        let is_framed = text.len() > 2 && text.starts_with(&[OTHER]) && text.ends_with(&[OTHER]);
        let is_line = |part: &&[u8]| **part == [b' ', OTHER, b' '];
        if is_framed || line.windows(3).filter(is_line).count() > 1 {
            return Some(Self::Sign(OTHER));
        }
        let signs = [b'|', b'\t', b',', b';'];
        let sign = signs.into_iter().find(|sign| line.contains(sign));
        sign.map(Self::Sign)
            .or_else(|| Self::Blanks.fits(line).then_some(Self::Blanks))
    }

    /// Returns whether a line is the heading of a listing.
    fn heads_listing(line: &[u8]) -> bool {
        const MOST_LETTERS: usize = 160;
        let of_heading = |letter: &u8| letter.is_ascii_uppercase() || b" >%/():+-_".contains(letter);
        line.len() <= MOST_LETTERS && line.iter().all(of_heading)
    }

    /// Returns whether a line can be a row of a table.
    fn fits(self, line: &[u8]) -> bool {
        match self {
            Self::Words => line.contains(&b' '),
            Self::Sign(sign) => line.contains(&sign),
            Self::Blanks => line.trim_ascii().windows(2).any(|pair| pair == b"  "),
        }
    }

    /// Splits a line into cells, without the blanks and the marks around them. Cells at the edge of a frame are left out.
    fn split(self, letters: &[u8], line: Range<usize>) -> Vec<Range<usize>> {
        let mut cells = Vec::new();
        let first = match self {
            Self::Blanks | Self::Words => skip(&letters[..line.end], line.start, |letter| letter == b' '),
            Self::Sign(_) => line.start,
        };
        let mut start = first;
        let mut is_in_string = false;
        for at in first..=line.end {
            let letter = if at < line.end { letters[at] } else { b'\n' };
            is_in_string ^= letter == b'"' && self == Self::Sign(b',');
            let is_end = at == line.end
                || !is_in_string
                    && match self {
                        Self::Sign(sign) => letter == sign,
                        Self::Blanks => letters[at..line.end].starts_with(b"  ") && at > start,
                        Self::Words => letter == b' ' && at > start,
                    };
            if is_end {
                cells.push(trimmed(letters, start..at));
                start = match self {
                    Self::Sign(_) => at + 1,
                    _ => skip(&letters[..line.end], at, |letter| letter == b' '),
                };
            }
        }
        let is_framed =
            |sign: u8| self == Self::Sign(sign) && letters[line.clone()].trim_ascii().starts_with(&[sign]);
        if is_framed(b'|') || is_framed(OTHER) {
            let frame = cells.iter().take_while(|cell| cell.is_empty()).count();
            cells.drain(..frame.max(1));
        }
        while cells.last().is_some_and(Range::is_empty) {
            cells.pop();
        }
        cells
    }
}

fn trimmed(letters: &[u8], cell: Range<usize>) -> Range<usize> {
    let is_around = |letter: u8| letter.is_ascii_whitespace() || b"\"'`*".contains(&letter);
    let start = skip(&letters[..cell.end], cell.start, is_around);
    start..skip_back(letters, start..cell.end, is_around)
}

/// Returns whether a cell names a secret.
fn is_name(cell: &[u8]) -> bool {
    let is_file = cell.contains(&b'/') && cell.contains(&b'.');
    is_heading(cell) && !is_file && is_secret_name(cell)
}

/// Returns whether a cell can be the heading of a column.
fn is_heading(cell: &[u8]) -> bool {
    const MOST_LETTERS: usize = 40;
    const MOST_BLANKS: usize = 2;
    cell.len() <= MOST_LETTERS
        && cell.iter().filter(|letter| **letter == b' ').count() <= MOST_BLANKS
        && cell
            .iter()
            .all(|letter| letter.is_ascii_alphanumeric() || b" _-./()#\xFE".contains(letter))
}

/// Some columns of a table: their headings, and in each row their cells, which are empty where the row is shorter.
pub(super) struct Table {
    pub(super) headings: Ranges,
    pub(super) rows: Vec<Ranges>,
    pub(super) end: usize,
}

impl Table {
    /// Reads the wanted columns of the table that a line heads, or of the rows that it inserts into one.
    pub(super) fn below(
        letters: &[u8],
        line: Range<usize>,
        is_wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Option<Self> {
        if let Some(table) = Self::inserted(letters, &line, is_wanted) {
            return Some(table);
        }
        let heading = &letters[line.clone()];
        let listing = Cells::heads_listing(heading).then_some(Cells::Words);
        let sorts = Cells::of(heading).into_iter().chain(listing);
        let tables = sorts.filter_map(|sort| {
            Self::at(
                letters,
                &line,
                &sort.split(letters, line.clone()),
                sort,
                is_wanted,
            )
        });
        tables.max_by_key(|table| table.headings.len())
    }

    /// Reads the wanted columns of the rows that a statement of SQL inserts, whose names begin in a line.
    fn inserted(letters: &[u8], line: &Range<usize>, is_wanted: &dyn Fn(&[u8]) -> bool) -> Option<Self> {
        static NAMES: Pattern = Pattern::new(r"(?i)\binto [^\s(]{1,80} ?\(([^()]{1,900})\)\s{0,20}values");
        static ROW: Pattern = Pattern::new(r"^[\s,]{0,20}\(((?:[^()']|'[^']*'|\([^()]*\))*)\)");
        static CELL: Pattern = Pattern::new(r"(?:'[^']*'|\([^()]*\)|[^,'(])+");
        let most = letters.len().min(line.end + MOST_LETTERS);
        let has = |word: &[u8]| memmem::find(&letters[line.clone()], word).is_some();
        if !has(b"INTO ") && !has(b"into ") {
            return None;
        }
        let found = NAMES.captures_at(&letters[..most], line.start)?;
        let cells_in = |row: Match, from: usize| -> Ranges {
            let cells = CELL.find_iter(row.as_bytes());
            let cells = cells.map(|cell| from + row.start() + cell.start()..from + row.start() + cell.end());
            cells.map(|cell| trimmed(letters, cell)).collect()
        };
        let names = cells_in(found.get(1).filter(|names| names.start() < line.end)?, 0);
        let wanted = (0..names.len()).filter(|at| is_wanted(&letters[names[*at].clone()]));
        let wanted: Vec<usize> = wanted.collect();
        let pick = |row: &Ranges| -> Ranges {
            let cells = wanted.iter().map(|at| row.get(*at).cloned());
            cells.map(Option::unwrap_or_default).collect()
        };
        let mut end = found.get(0)?.end();
        let rows = iter::from_fn(|| {
            let from = end;
            let row = ROW.captures(&letters[from..letters.len().min(from + MOST_LETTERS)])?;
            let row = row.get(1)?;
            end += row.end() + 1;
            Some(pick(&cells_in(row, from)))
        });
        let rows = rows.collect();
        let headings = pick(&names);
        (!wanted.is_empty()).then_some(Self { headings, rows, end })
    }

    /// Reads the wanted columns of the table whose headings are the cells of a line; `None` if the line heads none.
    fn at(
        letters: &[u8],
        line: &Range<usize>,
        cells: &[Range<usize>],
        sort: Cells,
        is_wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Option<Self> {
        // A string is an argument of a program.
        let is_string = |cell: &Range<usize>| sort == Cells::Blanks && letters[..cell.start].ends_with(b"\"");
        let is_heading = |cell: &Range<usize>| {
            sort == Cells::Words || is_heading(&letters[cell.clone()]) && !is_string(cell)
        };
        if cells.len() < 2 || !cells.iter().all(is_heading) {
            return None;
        }
        let wanted: Vec<usize> = (0..cells.len())
            .filter(|at| is_wanted(&letters[cells[*at].clone()]))
            .collect();
        // A ruler below the headings or above them, or a row of as many cells.
        let is_ruled = || {
            let next = line_at(letters, (line.end + 1).min(letters.len()));
            let before = line_at(letters, line.start.saturating_sub(1));
            is_rule(&letters[next.clone()])
                || line.start > 0 && is_rule(&letters[before.clone()])
                || cells.len() > 2
                    && (line.start == 0 || !sort.fits(&letters[before]))
                    && sort.split(letters, next).len() == cells.len()
        };
        let heads = !wanted.is_empty() && (!matches!(sort, Cells::Sign(b'|' | OTHER)) || is_ruled());
        heads.then(|| {
            let (rows, end) = rows_below(letters, line, cells, sort, &wanted);
            let headings = wanted.iter().map(|at| cells[*at].clone()).collect();
            Self { headings, rows, end }
        })
    }
}

/// Returns the cells of the wanted columns in the rows below a heading, and where the rows end.
fn rows_below(
    letters: &[u8],
    heading: &Range<usize>,
    cells: &[Range<usize>],
    sort: Cells,
    wanted: &[usize],
) -> (Vec<Ranges>, usize) {
    let mut rows = Vec::new();
    let mut end = heading.end;
    while end < letters.len() {
        let line = line_at(letters, end + 1);
        let text = &letters[line.clone()];
        let is_rule = is_rule(text);
        if text.trim_ascii().is_empty() || line.len() > MOST_LETTERS || !is_rule && !sort.fits(text) {
            break;
        }
        end = line.end;
        if is_rule {
            continue;
        }
        let row = sort.split(letters, line.clone());
        let cell = |at: &usize| {
            let (first, last) = (cells[*at].start - heading.start, cells[*at].end - heading.start);
            let is_below = |cell: &&Range<usize>| {
                (cell.start - line.start).abs_diff(first) < 2 || cell.end - line.start == last
            };
            let cell = match sort {
                // In a terminal, below the first letter of the heading, or below its last one.
                Cells::Blanks => row.iter().find(is_below),
                Cells::Words => row
                    .iter()
                    .find(|cell| cell.start - line.start < last && cell.end - line.start > first),
                Cells::Sign(_) => row.get(*at),
            };
            cell.cloned().unwrap_or_default()
        };
        rows.push(wanted.iter().map(cell).collect());
    }
    (rows, end)
}

/// Returns the second cell of a row whose first one names a secret, or the one behind a cell that says of what kind it is, or the last one.
fn second_of(letters: &[u8], cells: &[Range<usize>], sort: Cells) -> Option<Range<usize>> {
    const LEAST_LETTERS: usize = 6;
    let text = |cell: &Range<usize>| &letters[cell.clone()];
    // Types of the registry of Windows stand before a value.
    let cells: Vec<_> = cells
        .iter()
        .filter(|cell| !text(cell).starts_with(b"REG_"))
        .collect();
    let [name, kinds @ .., last] = &cells[..] else {
        return None;
    };
    let is_table = matches!(sort, Cells::Sign(b'|' | b'\t' | OTHER) | Cells::Blanks);
    let kind = kinds.iter().position(|cell| SECRET_KINDS.has(text(cell)));
    let is_kind = kind.is_some();
    let value = match kind {
        Some(at) if is_value(text(cells[at + 2])) => cells[at + 2],
        Some(_) => last,
        None => cells[1],
    };
    let is_possible = |cell: &Range<usize>| {
        let cell = text(cell);
        is_table && cell.len() >= LEAST_LETTERS && is_mixed(cell) && is_value(cell) && !is_algorithm(cell)
    };
    if is_possible(value) && (is_kind || is_name(text(name))) {
        return Some(value.clone());
    }
    // In a row without a heading, the name may stand in any column.
    let mut pairs = cells.windows(2).skip(1);
    let is_pair =
        |pair: &&[&Range<usize>]| is_possible(pair[1]) && is_varied(text(pair[1])) && is_name(text(pair[0]));
    pairs.find(is_pair).map(|pair| pair[1].clone())
}

/// Returns the word behind the name of a secret in a line of words alone, as in files of configuration: `bindpw …`, `enable secret 0 …`,
/// `crypto isakmp key … address 10.0.0.1`. In a line of more than two, names may be parts of other words.
fn word_behind(letters: &[u8], line: Range<usize>) -> Option<Range<usize>> {
    const MOST_WORDS: usize = 24;
    const MOST_WORDS_OF_NAME: usize = 12;
    // How a secret is written.
    static KIND: Pattern = Pattern::new(
        r"^(?:\d{1,3}|md5|sha\d.*|hmac-.*|(?:ascii|hex)\S*|-*(?:plain|clear)-?text|cipher|simple|encrypted|ENC|local|remote)$",
    );
    let whole = &letters[line.clone()];
    // Base64 ends with `=`.
    let of_line = |(at, letter): (usize, &u8)| match letter {
        b'=' => matches!(whole.get(at + 1), None | Some(b'=' | b'"')),
        letter => letter.is_ascii_graphic() && !b"(){}[]<>;|`".contains(letter) || *letter == b' ',
    };
    if whole.ends_with(b".") || !whole.iter().enumerate().all(of_line) {
        return None;
    }
    let words = Cells::Words.split(letters, line);
    let text = |word: &Range<usize>| &letters[word.clone()];
    let is_secret =
        |word: &Range<usize>| (is_mixed(text(word)) || has_sign(text(word))) && !text(word).ends_with(b":");
    if words.len() > MOST_WORDS || !words.iter().skip(1).any(is_secret) {
        return None;
    }
    let names_secret = |(at, word): (usize, &Range<usize>)| {
        let is_quoted = matches!(letters[..word.start].last(), Some(b'"' | b'\''));
        // `kubectl get secret app-tls-2`
        let is_read = at > 0 && matches!(text(&words[at - 1]), b"get" | b"describe" | b"delete" | b"edit");
        let word = text(word);
        let is_key = at > 0 && (word == b"key" || word.ends_with(b"-key"))
            || word.ends_with(b"community")
            || word == b"key-string";
        !is_quoted
            && !is_read
            && word
                .first()
                .is_some_and(|first| first.is_ascii_alphabetic() || *first == b'/')
            && (is_key || words.len() <= MOST_WORDS_OF_NAME && is_name(word))
    };
    let mut names = words.iter().enumerate().filter(|name| names_secret(*name));
    let value = names.find_map(|(at, _)| {
        let value = words[at + 1..].iter().find(|word| !KIND.is_match(text(word)))?;
        // The id of a key of PGP.
        let id = text(value).strip_suffix(b":").unwrap_or(text(value));
        let is_id =
            matches!(id.len(), 16 | 40) && is_hexadecimal(id) && !id.iter().any(u8::is_ascii_lowercase);
        (!is_id && is_secret(value) && is_value(text(value)) && is_said(letters, value, false))
            .then_some(value)
    });
    value.cloned()
}

/// Returns the only word of one of the two lines below a line that tells of a secret: by its shape, or if the line ends with the name of a secret, as
/// `Password:` and `password: >-`, or is a command that prints one.
fn value_below(letters: &[u8], line: &Range<usize>) -> Option<Range<usize>> {
    const LINES: usize = 2;
    const LEAST_LETTERS: usize = 6;
    const LEAST_ANSWER: usize = 8;
    const LEAST_DIGEST: usize = 32;
    /// A line of a file has more fields.
    const MOST_FIELDS: usize = 3;
    static TYPED: LazyLock<Regex> = LazyLock::new(|| {
        const PRINTS: &str = r"cat|pass|op|bw|security|openssl rand|wg|pwgen|terraform|argocd|vault|docker exec|kubectl|oc|gh|gcloud|heroku|fly|sudo|rails|php artisan|head -c|python3? -c|node -e|dd|mkpasswd|apg|makepasswd|echo \$\w+|printenv \w+";
        const WORDS: &str = r#"(?:[^|>'"]|'[^']*'|"[^"]*")*"#;
        expression(&format!(
            r"^[^\n$#%>]{{0,60}}[$#%>] +(?:{PRINTS})\b{WORDS}(?:\| *(?:base64|jq|tr|cut|head|tail)\b{WORDS})*$"
        ))
    });
    // A label of one word may have no colon.
    static LABEL: Pattern = Pattern::new(
        r#"(?:^[ \t]*([A-Z][A-Za-z]+)|([\w-]{2,64}(?: key| code)?)["'*`]{0,3}[ \t]*[:?][*`]{0,2}[ \t]*(?:[>|][+-]?)?)\s*$"#,
    );
    // The name of a thing that has the secret, or of an account, or what tells a key without being it.
    static NAME: Pattern =
        Pattern::new(r"(?i)(?:(?:name|id|identifier|fingerprint|peer): *|PUBLIC KEY-----)$");
    let text = letters[line.clone()].trim_ascii_end();
    if NAME.is_match(text) {
        return None;
    }
    let ends_with_colon = text.ends_with(b":");
    let is_prompt = |pair: &[u8]| matches!(pair, [b'$' | b'#' | b'%' | b'>', b' ']);
    let is_typed = text.windows(2).any(is_prompt) && TYPED.is_match(text);
    let label = LABEL
        .captures(text)
        .and_then(|found| found.get(1).or(found.get(2)));
    let is_labelled = label.is_some_and(|label| is_name(label.as_bytes()));
    let rest = line.end..letters.len().min(line.end + MOST_LETTERS);
    // The key in the columns that a command prints, and the password behind an account and a slash.
    let part = |line: Range<usize>| {
        let columns = Cells::Sign(b'\t').split(letters, line.clone());
        let key = columns.into_iter().find(|cell| is_shaped(&letters[cell.clone()]));
        password_behind(letters, &line).or(key).unwrap_or(line)
    };
    let lines = Lines::new(letters, rest)
        .skip(1)
        .map(|line| trimmed(letters, line));
    // What was cleaned before is told no more.
    let is_clean = |value: &Range<usize>| memmem::find(&letters[value.clone()], MARKER).is_some();
    let lines = lines.filter(|line| !line.is_empty()).take(LINES);
    lines.take_while(|line| !is_clean(line)).map(part).find(|value| {
        let text = &letters[value.clone()];
        let is_varied = is_mixed(text) || has_sign(text);
        let is_told = is_labelled && is_varied && text.len() >= LEAST_LETTERS && !text.contains(&b'=');
        let is_line = text.contains(&b' ') || text.split(|letter| *letter == b':').count() > MOST_FIELDS;
        let is_answer = is_typed && is_varied && text.len() >= LEAST_ANSWER && !is_line;
        let is_answer = is_answer && !text.contains(&b'(') && !is_path(text);
        let is_digest =
            ends_with_colon && text.len() >= LEAST_DIGEST && is_hexadecimal(text) && is_mixed(text);
        let is_made = is_shaped(text) || is_chosen(text) && letters[..value.start].ends_with(b"/");
        let is_value = (is_made || is_told || is_digest) && is_value(text) && !is_id(text);
        (is_answer || is_value && !text.starts_with(b"-")) && !text.ends_with(b":")
    })
}

fn has_sign(text: &[u8]) -> bool {
    text.iter().any(|letter| b"!#$%&@^~".contains(letter))
}

fn is_value(value: &[u8]) -> bool {
    const LEAST_LETTERS: usize = 4;
    let is_constant = |letter: &u8| letter.is_ascii_uppercase() || letter.is_ascii_digit() || *letter == b'_';
    value.len() >= LEAST_LETTERS
        && is_possible(value)
        // A word or a constant of a program.
        && value.iter().any(|letter| !letter.is_ascii_alphabetic() && *letter != b'_')
        && (is_generated(value) || value[0].is_ascii_digit() || !value.iter().all(is_constant))
        && !value.iter().any(|letter| b"()<>{}[] ".contains(letter))
}
