//! Secrets that go on in the next line, or in the next string of a program: tokens, by a view that joins them, and what was replaced so far as it
//! was known.

use std::{iter, ops::Range};

use memchr::{memchr, memmem};

use crate::{
    keywords::Owner,
    providers::begins_word,
    random::{is_hexadecimal, is_id, is_random},
    ranges::{Pattern, Ranges, skip},
    text::{MARKER, Text, is_word},
    values::{is_mixed, is_of_cases, is_path},
    view::View,
};

/// A shorter part of a token at the beginning of a line is a word.
const LEAST_BEHIND: usize = 8;
const MOST_LETTERS: usize = 2048;

/// Returns whether letters have no digit and no more capitals than a word.
fn is_of_words(part: &[u8]) -> bool {
    !is_mixed(part)
        && part
            .iter()
            .skip(1)
            .filter(|letter| letter.is_ascii_uppercase())
            .count()
            < 2
}

/// Returns whether a line begins with a name of so many letters and its value: `AWS_SECRET_ACCESS_KEY=…`.
fn is_name(line: &[u8], length: usize) -> bool {
    let name = &line[..length];
    let is_constant = || name.contains(&b'_') && !name.iter().any(u8::is_ascii_lowercase);
    matches!(line.get(length), Some(b'=' | b':')) && (!is_mixed(name) || is_constant())
}

fn of_token(letter: u8) -> bool {
    is_word(letter) || matches!(letter, b'-' | b'.')
}

/// Returns where the next line or string goes on with a token that ends at `end`.
fn gap_behind(letters: &[u8], end: usize) -> Option<Range<usize>> {
    const MOST_BETWEEN: usize = 128;
    static GAP: Pattern = Pattern::new(concat!(
        r#"^(?:(?:\\{0,3}["'`])?[ \t]*(?:[+\\.&|=\xFF]|=20)?[ \t]*(?:\r?\n|(?:\\+r)?\\+n)[ \t]*(?:\d{1,6}(?:\t|[^\w\s]{1,3}[ \t]*))?"#,
        r#"[>+|#/*.&\xFF-]{0,2}[ \t]*(?:\\{0,3}["'`])?|\\{0,3}["'`][ \t]?(?:[+.&]|->)[ \t]?\\{0,3}["'`])"#
    ));
    let gap = GAP.find(&letters[end..letters.len().min(end + MOST_BETWEEN)])?;
    Some(end..end + gap.end())
}

/// Returns the part with which a token goes on that ends at `end`.
fn next_part(letters: &[u8], end: usize) -> Option<Range<usize>> {
    let start = gap_behind(letters, end)?.end;
    let part = start..skip(letters, start, of_token);
    let is_part = part.len() >= LEAST_BEHIND
        && !is_of_words(&letters[part.clone()])
        && !is_name(&letters[start..], part.len());
    is_part.then_some(part)
}

/// Returns the rest of a secret whose beginning, or its marker, ends at `end`: in the next string any with digits, in the next line one at random.
fn rest_behind(letters: &[u8], end: usize) -> Option<Range<usize>> {
    const DIGESTS: [usize; 2] = [40, 64];
    let gap = gap_behind(letters, end)?;
    let (start, between) = (gap.end, &letters[gap]);
    let of_rest = |letter: u8| letter.is_ascii_graphic() && !b"\"'`\\|,;".contains(&letter);
    let rest = start..skip(letters, start, of_rest);
    let text = &letters[rest.clone()];
    let is_quoted = |signs: &[u8]| signs.iter().any(|sign| b"\"'`".contains(sign));
    let middle = between
        .iter()
        .rposition(|letter| b"+.&>".contains(letter))
        .unwrap_or(0);
    let is_joined = is_quoted(&between[..middle]) && is_quoted(&between[middle..]);
    let is_line = || {
        let ends = letters[rest.end..]
            .first()
            .is_none_or(|letter| !b",; ".contains(letter));
        let is_digest = is_hexadecimal(text) && DIGESTS.contains(&text.len());
        ends && is_random(text) && (is_mixed(text) || is_of_cases(text)) && !is_digest && !is_id(text)
    };
    let is_other = text.starts_with(MARKER) || is_path(text) || is_name(text, skip(text, 0, is_word));
    (!is_other && (is_joined && is_mixed(text) || is_line())).then_some(rest)
}

/// Finds the rest of each secret that was replaced as far as its line or its string told it.
pub(super) fn rests(letters: &[u8]) -> Ranges {
    const MOST_MARKER: usize = 32;
    const MOST_PARTS: usize = 32;
    let mut ranges = Ranges::new();
    for start in memmem::find_iter(letters, MARKER) {
        let marker = &letters[start..letters.len().min(start + MOST_MARKER)];
        // Nothing names what stands in a line of Base64.
        let before = letters[..start].last();
        let has_name = before.is_some_and(|letter| *letter != b'\n' && !letter.is_ascii_alphanumeric());
        let kind = &marker[MARKER.len()..];
        let is_named = has_name && (kind.starts_with(b"password") || kind.starts_with(b"bearer"));
        let Some(length) = memchr(b']', marker).filter(|_| is_named) else {
            continue;
        };
        let parts = iter::successors(rest_behind(letters, start + length + 1), |part| {
            rest_behind(letters, part.end)
        });
        ranges.extend(parts.take(MOST_PARTS));
    }
    ranges
}

/// Returns a view of the words of several parts, whose first one begins with the keyword of a token.
pub(super) fn view(text: &Text) -> View {
    let letters = text.letters();
    let of_providers = text.keywords(Owner::Providers).iter();
    let kinds = text.keywords(Owner::Kinds).iter();
    let web_tokens = kinds.filter(|keyword| letters[keyword.range.clone()] == *b"eyJ");
    let mut starts: Vec<usize> = of_providers
        .chain(web_tokens)
        .map(|keyword| keyword.range.start)
        .collect();
    starts.sort_unstable();
    let mut view = View::default();
    let mut from = 0;
    for start in starts {
        if start < from || !begins_word(letters, start) {
            continue;
        }
        let first = start..skip(letters, start, of_token);
        let parts = iter::successors(Some(first), |part| {
            next_part(letters, part.end).filter(|next| next.end - start < MOST_LETTERS)
        });
        let parts: Vec<_> = parts.collect();
        from = parts.last().map_or(start, |part| part.end);
        if parts.len() > 1 {
            let places = parts.into_iter().flatten();
            view.push_line(places.map(|at| (text.units()[at], at..at + 1)));
        }
    }
    view
}
