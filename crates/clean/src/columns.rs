//! Secrets in tables, whose column is named like one: Markdown, psql, CSV, and columns of a terminal. In rows of two, the first names the second. Also a
//! value in the line below its name.

use std::{ops::Range, sync::LazyLock};

use memchr::{memchr, memrchr};
use regex::bytes::Regex;

use crate::{
    names::{is_label, is_marked, is_secret_name},
    random::is_uuid,
    ranges::{Ranges, expression, merged, skip, skip_back},
    values::{is_expression, is_keyword, is_mixed, is_path, is_placeholder, is_small_number},
};

/// Longer lines are of no table.
const MOST_LETTERS: usize = 2048;

/// Finds the values of columns and lines that are named like secrets.
pub(super) fn values(letters: &[u8]) -> Ranges {
    static NAME: LazyLock<Regex> = LazyLock::new(|| {
        expression(r"(?i)pass|secret|token|pwd|credential|sessionid|_?sid\b|[ _-]key\b|apikey|\bpin\b")
    });
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(found) = NAME.find_at(letters, from) {
        let line = line_at(letters, found.start());
        from = line.end;
        if line.len() > MOST_LETTERS {
            continue;
        }
        let text = &letters[line.clone()];
        if let Some(value) = value_below(letters, &line) {
            ranges.push(value);
        }
        let Some(sort) = Cells::of(text) else { continue };
        let cells = sort.split(letters, line.clone());
        let wanted: Vec<usize> = (0..cells.len())
            .filter(|at| is_name(&letters[cells[*at].clone()]))
            .collect();
        let names = cells.iter().all(|cell| is_heading(&letters[cell.clone()]));
        let next = line_at(letters, (line.end + 1).min(letters.len()));
        let is_ruled = is_rule(&letters[next]);
        if names && !wanted.is_empty() && cells.len() > 1 && (is_ruled || sort != Cells::Sign(b'|')) {
            from = rows_below(letters, &line, &cells, sort, &wanted, &mut ranges);
        }
        ranges.extend(second_of(letters, &cells, sort));
    }
    merged(ranges)
}

/// Returns the line that a place stands in.
fn line_at(letters: &[u8], at: usize) -> Range<usize> {
    let least = at.saturating_sub(MOST_LETTERS);
    let start = memrchr(b'\n', &letters[least..at]).map_or(least, |before| least + before + 1);
    start..memchr(b'\n', &letters[at..]).map_or(letters.len(), |length| at + length)
}

/// Returns whether a line is one between a heading and its rows.
fn is_rule(line: &[u8]) -> bool {
    line.contains(&b'-') && line.iter().all(|letter| b"-+|:= \t\r".contains(letter))
}

/// What stands between the cells of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cells {
    Sign(u8),
    Blanks,
}

impl Cells {
    fn of(line: &[u8]) -> Option<Self> {
        let signs = [b'|', b'\t', b',', b';'];
        let sign = signs.into_iter().find(|sign| line.contains(sign));
        sign.map(Self::Sign).or_else(|| {
            line.trim_ascii()
                .windows(2)
                .any(|pair| pair == b"  ")
                .then_some(Self::Blanks)
        })
    }

    /// Splits a line into cells, without the blanks and the marks around them. Cells at the edge of a frame are left out.
    fn split(self, letters: &[u8], line: Range<usize>) -> Vec<Range<usize>> {
        let mut cells = Vec::new();
        let mut start = line.start;
        let mut is_in_string = false;
        for at in line.start..=line.end {
            let letter = if at < line.end { letters[at] } else { b'\n' };
            is_in_string ^= letter == b'"' && self == Self::Sign(b',');
            let is_end = at == line.end
                || !is_in_string
                    && match self {
                        Self::Sign(sign) => letter == sign,
                        Self::Blanks => letters[at..line.end].starts_with(b"  ") && at > start,
                    };
            if is_end {
                cells.push(trimmed(letters, start..at));
                start = if self == Self::Blanks {
                    skip(&letters[..line.end], at, |letter| letter == b' ')
                } else {
                    at + 1
                };
            }
        }
        let is_framed = self == Self::Sign(b'|') && letters[line.clone()].trim_ascii().starts_with(b"|");
        if is_framed {
            cells.remove(0);
        }
        if cells.last().is_some_and(Range::is_empty) {
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
    let name: Vec<u8> = cell
        .iter()
        .map(|letter| if *letter == b' ' { b'_' } else { *letter })
        .collect();
    is_heading(cell) && is_secret_name(&name)
}

/// Returns whether a cell can be the heading of a column.
fn is_heading(cell: &[u8]) -> bool {
    const MOST_LETTERS: usize = 40;
    const MOST_BLANKS: usize = 2;
    cell.len() <= MOST_LETTERS
        && cell.iter().filter(|letter| **letter == b' ').count() <= MOST_BLANKS
        && cell
            .iter()
            .all(|letter| letter.is_ascii_alphanumeric() || b" _-./()#".contains(letter))
}

/// Finds the values in the rows below a heading. Returns where they end.
fn rows_below(
    letters: &[u8],
    heading: &Range<usize>,
    cells: &[Range<usize>],
    sort: Cells,
    wanted: &[usize],
    ranges: &mut Ranges,
) -> usize {
    let mut end = heading.end;
    while end < letters.len() {
        let line = line_at(letters, end + 1);
        let text = &letters[line.clone()];
        let is_rule = is_rule(text);
        if text.trim_ascii().is_empty()
            || line.len() > MOST_LETTERS
            || !is_rule && Cells::of(text) != Some(sort)
        {
            break;
        }
        end = line.end;
        if is_rule {
            continue;
        }
        let row = sort.split(letters, line.clone());
        for at in wanted {
            let column = cells[*at].start - heading.start;
            let cell = match sort {
                // In a terminal, below the heading.
                Cells::Blanks => row
                    .iter()
                    .find(|cell| (cell.start - line.start).abs_diff(column) < 2),
                Cells::Sign(_) => row.get(*at),
            };
            ranges.extend(cell.filter(|cell| is_value(&letters[(*cell).clone()])).cloned());
        }
    }
    end
}

/// Returns the second cell of a row whose first one names a secret.
fn second_of(letters: &[u8], cells: &[Range<usize>], sort: Cells) -> Option<Range<usize>> {
    const LEAST_LETTERS: usize = 6;
    // Cookies in the format of Netscape.
    const COOKIE_FIELDS: usize = 7;
    if sort == Cells::Sign(b'\t') && cells.len() == COOKIE_FIELDS {
        let value = &letters[cells[COOKIE_FIELDS - 1].clone()];
        let is_flag = matches!(&letters[cells[3].clone()], b"TRUE" | b"FALSE");
        return (is_flag && is_value(value) && value.len() >= LEAST_LETTERS)
            .then(|| cells[COOKIE_FIELDS - 1].clone());
    }
    let [first, second, ..] = cells else { return None };
    let (name, value) = (&letters[first.clone()], &letters[second.clone()]);
    let is_table = matches!(sort, Cells::Sign(b'|' | b'\t') | Cells::Blanks);
    (is_table && is_name(name) && is_value(value) && is_mixed(value) && value.len() >= LEAST_LETTERS)
        .then(|| second.clone())
}

/// Returns the only word of the line below a line that ends with the name of a secret: `Password:`, `password: >-`.
fn value_below(letters: &[u8], line: &Range<usize>) -> Option<Range<usize>> {
    static LABEL: LazyLock<Regex> = LazyLock::new(|| {
        expression(r#"([\w-]{2,64}(?: key| code)?)["'*`]{0,3}[ \t]*:[*`]{0,2}[ \t]*(?:[>|][+-]?)?\s*$"#)
    });
    const LEAST_LETTERS: usize = 6;
    let last = letters[line.clone()].trim_ascii_end().last()?;
    if !b":>|+-*`".contains(last) {
        return None;
    }
    let label = LABEL.captures(&letters[line.clone()])?.get(1)?.as_bytes();
    let next = line_at(letters, (line.end + 1).min(letters.len()));
    let value = trimmed(letters, next);
    let text = &letters[value.clone()];
    let has_sign = text.iter().any(|letter| b"!#$%&@^~".contains(letter));
    (is_name(label)
        && is_value(text)
        && text.len() >= LEAST_LETTERS
        && (is_mixed(text) || has_sign)
        && !text.ends_with(b":")
        && !text.contains(&b'=')
        && !text.starts_with(b"-"))
    .then_some(value)
}

fn is_value(value: &[u8]) -> bool {
    const LEAST_LETTERS: usize = 4;
    value.len() >= LEAST_LETTERS
        && !value.contains(&b' ')
        && !is_marked(value)
        && !is_placeholder(value)
        && !is_keyword(value)
        && !is_label(value)
        && !is_expression(value)
        && !is_path(value)
        && !is_small_number(value)
        && !is_uuid(value)
        && value.iter().any(|letter| !letter.is_ascii_alphabetic())
        && !value.iter().any(|letter| b"()<>{}[]".contains(letter))
}
