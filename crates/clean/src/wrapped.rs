//! Tokens that go on in the next line, or in the next string of a program.

use std::{iter, ops::Range};

use crate::{
    keywords::Owner,
    providers::begins_word,
    ranges::{Pattern, skip},
    text::{Text, is_word},
    values::is_mixed,
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

/// Returns the part with which a token goes on that ends at `end`.
fn next_part(letters: &[u8], end: usize) -> Option<Range<usize>> {
    const MOST_BETWEEN: usize = 128;
    static GAP: Pattern = Pattern::new(concat!(
        r#"^(?:["'`]?[ \t]*[+\\.&|\xFF]?[ \t]*(?:\r?\n|(?:\\+r)?\\+n)[ \t]*(?:\d{1,6}(?:\t|[^\w\s]{1,3}[ \t]*))?"#,
        r#"[>+|#/*.&\xFF-]{0,2}[ \t]*["'`]?|["'`][ \t]?[+.&][ \t]?["'`])"#
    ));
    let gap = GAP.find(&letters[end..letters.len().min(end + MOST_BETWEEN)])?;
    let start = end + gap.end();
    let part = start..skip(letters, start, of_token);
    let is_part = part.len() >= LEAST_BEHIND
        && !is_of_words(&letters[part.clone()])
        && !is_name(&letters[start..], part.len());
    is_part.then_some(part)
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
