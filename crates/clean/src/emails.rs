//! E-mail addresses in forms that the SDK's expression misses.

use std::ops::Range;

use memchr::memchr;

use crate::{identity::PUBLIC_HOSTS, ranges::Pattern};

/// The most letters of an address around the address in it.
const MOST_INNER: usize = 80;

/// Returns an e-mail address that is not the same for everybody: `bob.o'brien@example.com`, and not `git@github.com`, `noreply@…`, the name of a
/// picture or of an algorithm of SSH. An address within it belongs to it: `bounces+bob=example.com@lists.example.org`.
pub(super) fn own_email(letters: &[u8], mut found: Range<usize>) -> Option<Range<usize>> {
    static OUTER: Pattern =
        Pattern::new(r"(?:(?i:bounces?|srs\d)|[A-Za-z0-9._-]{1,40}\+)[A-Za-z0-9._%+=-]{0,80}=$");
    let text = &letters[found.clone()];
    let (local, domain) = text.split_at(memchr(b'@', text)?);
    let is_of_git = local == b"git" && PUBLIC_HOSTS.iter().any(|host| domain[1..] == *host.as_bytes());
    let is_of_nobody = matches!(local, b"noreply" | b"no-reply" | b"donotreply")
        || matches!(domain, [b'@', b'1'..=b'4', b'x', b'.', ..])
        || matches!(&domain[1..], b"openssh.com" | b"libssh.org") && local.contains(&b'-');
    // The text before an apostrophe can be the prefix of a string: f'bob@example.com'.
    if let Some(apostrophe) = memchr(b'\'', local) {
        let is_prefix = apostrophe < 3 && local[..apostrophe].iter().all(|letter| b"bfru".contains(letter));
        let opens = letters[..found.start].ends_with(b"'");
        if is_prefix || !opens && letters.get(found.end) == Some(&b'\'') {
            found.start += apostrophe + 1;
        }
    }
    let least = found.start.saturating_sub(MOST_INNER);
    let outer = OUTER.find(&letters[least..found.start]);
    found.start = outer.map_or(found.start, |outer| least + outer.start());
    (!is_of_git && !is_of_nobody).then_some(found)
}
