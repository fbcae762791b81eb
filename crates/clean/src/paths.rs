//! E-mail addresses, home directories and users in forms that the SDK's expressions miss.

use std::{ops::Range, sync::LazyLock};

use memchr::memchr;
use regex::bytes::Regex;

use crate::{
    ranges::{Ranges, expression},
    text::{LATIN, is_word},
    words::NOBODY,
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
