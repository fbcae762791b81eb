//! E-mail addresses in forms that the SDK's expression misses.

use std::{ops::Range, sync::LazyLock};

use memchr::{memchr, memmem};
use regex::bytes::Regex;

use crate::{
    identity::PUBLIC_HOSTS,
    ranges::{Ranges, expression},
    text::LATIN,
};

/// Returns an e-mail address that has an apostrophe, an ampersand or a Latin letter beyond ASCII: `bob.o'brien@example.com`,
/// `josé@example.com`.
pub(super) fn other_email(letters: &[u8], mut found: Range<usize>) -> Option<Range<usize>> {
    let text = &letters[found.clone()];
    let at = memchr(b'@', text)?;
    let of_local = |letter: &u8| letter.is_ascii_alphanumeric() || b"._%+-".contains(letter);
    let is_other = !text[..at].iter().all(of_local) || text.contains(&LATIN);
    // The text before an apostrophe can be the prefix of a string: f'bob@example.com'.
    if let Some(apostrophe) = memchr(b'\'', &text[..at]) {
        let is_prefix = apostrophe < 3 && text[..apostrophe].iter().all(|letter| b"bfru".contains(letter));
        let opens = letters[..found.start].ends_with(b"'");
        if is_prefix || !opens && letters.get(found.end) == Some(&b'\'') {
            found.start += apostrophe + 1;
        }
    }
    is_other.then_some(found)
}

/// Returns an e-mail address that is not the same for everybody: `git@github.com`, `noreply@…`.
pub(super) fn own_email(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let text = &letters[found.clone()];
    let (local, domain) = text.split_at(memchr(b'@', text)?);
    let is_of_git = local == b"git" && PUBLIC_HOSTS.iter().any(|host| domain[1..] == *host.as_bytes());
    let is_of_nobody = matches!(local, b"noreply" | b"no-reply" | b"donotreply");
    (!is_of_git && !is_of_nobody).then_some(found)
}

/// Finds e-mail addresses whose signs are words: `bob (at) example (dot) com`.
pub(super) fn emails_in_words(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r"[A-Za-z0-9._+-]{1,64}(?: dot [A-Za-z0-9-]{1,63}){0,3} ?(?:\((?i:at)\)|\[(?i:at)\]|\{(?i:at)\}) ?[A-Za-z0-9-]{1,63}",
            r"(?:(?:\.| ?[\[({](?i:dot)[\])}] ?| dot )[A-Za-z0-9-]{2,63}){1,5}",
            r"|[A-Za-z0-9._+-]{1,64}(?: dot [A-Za-z0-9-]{1,63}){0,3} at [A-Za-z0-9-]{1,63}(?: dot [A-Za-z0-9-]{2,63}){1,5}"
        ))
    });
    const MOST_BEFORE: usize = 65;
    const MOST_BEHIND: usize = 512;
    let mut ranges = Ranges::new();
    let mut from = 0;
    for at in memmem::find_iter(letters, b"at") {
        let (before, behind) = (letters[..at].last(), letters.get(at + 2));
        let is_sign = matches!(
            (before, behind),
            (Some(b'(' | b'[' | b'{' | b' '), Some(b')' | b']' | b'}' | b' '))
        );
        let part = &letters[..letters.len().min(at + MOST_BEHIND)];
        let is_spoken = || before != Some(&b' ') || memmem::find(&part[at..], b" dot ").is_some();
        if at < from || !is_sign || !is_spoken() {
            continue;
        }
        let found = EXPRESSION.find_at(part, at.saturating_sub(MOST_BEFORE).max(from));
        if let Some(found) = found.filter(|found| found.start() < at) {
            from = found.end();
            ranges.push(found.range());
        }
    }
    ranges
}
