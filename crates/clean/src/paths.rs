//! E-mail addresses, home directories and users in forms that the SDK's expressions miss.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::{
    ranges::{Ranges, expression, find_letter, skip, skip_back},
    text::{LATIN, is_word},
    words::NOBODY,
};

/// The longest local part of an address.
const MOST_LOCAL_LETTERS: usize = 64;

/// E-mail addresses that have an apostrophe, an ampersand or a Latin letter beyond ASCII: `bob.o'brien@example.com`, `josé@example.com`.
pub(super) fn other_emails(letters: &[u8]) -> Ranges {
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(at) = find_letter(letters, from, b'@') {
        let range = email_at(letters, from, at);
        from = range.as_ref().map_or(at + 1, |range| range.end);
        ranges.extend(range);
    }
    ranges
}

fn email_at(letters: &[u8], least: usize, at: usize) -> Option<Range<usize>> {
    let is_plain =
        |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'_' | b'%' | b'+' | b'-');
    let least = least.max(at.saturating_sub(MOST_LOCAL_LETTERS));
    let mut start = skip_back(letters, least..at, |letter| {
        is_plain(letter) || matches!(letter, b'\'' | b'&' | LATIN)
    });
    start = skip(&letters[..at], start, |letter| matches!(letter, b'\'' | b'&'));
    // The text before an apostrophe can be the prefix of a string: f'bob@example.com'.
    if let Some(apostrophe) = letters[start..at].iter().position(|letter| *letter == b'\'') {
        let prefix = &letters[start..start + apostrophe];
        let is_prefix = prefix.len() < 3
            && prefix
                .iter()
                .all(|letter| matches!(letter, b'b' | b'f' | b'r' | b'u'));
        let opens = start.checked_sub(1).is_some_and(|index| letters[index] == b'\'');
        let end = skip(letters, at + 1, |letter| {
            letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'-')
        });
        if is_prefix || (!opens && letters.get(end) == Some(&b'\'')) {
            start += apostrophe + 1;
        }
    }
    let of_domain = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'-' | LATIN);
    let mut end = skip(&letters[..(at + 255).min(letters.len())], at + 1, of_domain);
    // Two letters or more after the last point.
    let domain = &letters[at + 1..end];
    let point = domain.iter().rposition(|letter| *letter == b'.')?;
    let top = skip(domain, point + 1, |letter| {
        letter.is_ascii_alphabetic() || letter == LATIN
    });
    end = at + 1 + if top > point + 2 { top } else { point };
    let domain = &letters[at + 1..end];
    let is_other = !letters[start..at].iter().copied().all(is_plain) || domain.contains(&LATIN);
    (start < at && is_other && domain.contains(&b'.')).then_some(start..end)
}

/// Home directories whose owner has other letters, up to a backslash that begins an escape of JSON; and in forms of programs: JSON's doubled backslashes and escaped slashes, encoded URLs,
/// small drive letters, and the names that Claude Code gives to the folders of its sessions.
pub(super) fn other_homes(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r#"/(?:home|Users)/[A-Za-z0-9._\x81-\xFF@+-]+(?:/(?:[^\s\x80'"`,;)}\]\\]|\\ )*)?"#,
            r#"|\\+/(?:home|Users)\\+/[^\s\x80'"`,;)}\]\\/]+(?:\\+/[^\s\x80'"`,;)}\]\\]*)*"#,
            r#"|\b(?i:[A-Z]:\\{2,}Users\\{2,})[A-Za-z0-9._\x81-\xFF-]+(?:\\{2,}[^\s\x80'"`,;)}\]\\]*)*"#,
            r#"|\b(?i:[a-z]:[\\/]Users[\\/])[A-Za-z0-9._\x81-\xFF-]+(?:[\\/][^\s\x80'"`,;)}\]]*)*"#,
            r#"|(?i:%2F)(?:home|Users)(?i:%2F)[A-Za-z0-9._-]+(?:%[^\s\x80'"`,;)}\]&]*)?"#,
            r#"|(?:\b[A-Za-z]--Users|-home|-Users)-[A-Za-z0-9._\x81-\xFF]+(?:-[^\s\x80'"`,;)}\]/\\]*)?(?:/[^\s\x80'"`,;)}\]\\]*)?"#,
        ))
    });
    static WORDS: LazyLock<Regex> = LazyLock::new(|| expression("home|Users|users|USERS"));
    if !WORDS.is_match(letters) {
        return Ranges::new();
    }
    let stands_first = |range: &Range<usize>| {
        let before = range.start.checked_sub(1).map_or(b' ', |index| letters[index]);
        letters[range.start] != b'-'
            || !(is_word(before) || matches!(before, b'-' | b'.' | b'$' | b'}' | b')'))
    };
    EXPRESSION
        .find_iter(letters)
        .map(|found| found.range())
        .filter(stands_first)
        .collect()
}

/// Owners of files and their groups, in the lists of `ls -l`, `tar -t`, `stat` and `eza`, and users in the answer of `id`.
pub(super) fn owners(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        const NAME: &str = r"([A-Za-z_][\w.@\\-]*)";
        expression(&format!(
            concat!(
                r"[-bcdlps.](?:[r-][w-][xsS-]){{2}}[r-][w-][xtT-][.+@]?[ \t]+(?:\d[\d.,]*[kKMGT]?[ \t]+)?",
                r"{0}(?:(?:[ \t]+|/){0})?[ \t]+\d",
                r"|\b[UG]id: \([ \t]*\d+/[ \t]*{0}\)|\b(?:[ug]id|groups)=\d+\({0}\)"
            ),
            NAME
        ))
    });
    let is_common = |range: &Range<usize>| NOBODY.has(&letters[range.clone()]);
    EXPRESSION
        .captures_iter(letters)
        .flat_map(|found| {
            found
                .iter()
                .skip(1)
                .flatten()
                .map(|name| name.range())
                .collect::<Vec<_>>()
        })
        .filter(|name| !is_common(name))
        .collect()
}
