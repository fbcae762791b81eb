//! Words that look drawn at random, told by a table of letter pairs, and tokens of services that no list knows: a prefix and such a word.

use std::{ops::Range, sync::LazyLock};

use memchr::memmem;

use crate::{
    phrases,
    ranges::{Letters, Pattern, Ranges, merged, runs, skip},
    text::is_word,
    values::is_mixed,
    words::{COMMON, Words},
};

/// A shorter word says too little.
pub(super) const LEAST_LETTERS: usize = 16;
const LETTERS: usize = 26;
/// Scores are in sixteenths of a bit.
const BIT: f32 = 16.0;
/// The mean score of a pair, in sixteenths of a bit, below which a word is random.
const MOST_MEAN: i32 = -7;
/// Between a letter and a digit, and before the hump of `camelCase`.
const OTHER_KIND: i32 = -24;
const HUMP: i32 = -16;

/// How much more often than by chance a letter follows another in the words of programs and of English.
static PAIRS: LazyLock<[[i32; LETTERS]; LETTERS]> = LazyLock::new(|| {
    let mut counts = [[0.5_f32; LETTERS]; LETTERS];
    for word in COMMON.iter().chain(phrases::WORDS.iter()) {
        for pair in word.as_bytes().windows(2) {
            if let (Some(first), Some(second)) = (letter_of(pair[0]), letter_of(pair[1])) {
                counts[first][second] += 1.0;
            }
        }
    }
    counts.map(|row| {
        let sum: f32 = row.iter().sum();
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // Scores are small.
        row.map(|count| ((LETTERS as f32 * count / sum).log2() * BIT) as i32)
    })
});

fn letter_of(letter: u8) -> Option<usize> {
    letter
        .is_ascii_alphabetic()
        .then(|| usize::from(letter.to_ascii_lowercase() - b'a'))
}

/// Returns whether letters and digits look drawn at random. Other signs are passed over.
pub(super) fn is_random(word: &[u8]) -> bool {
    /// Enough to tell, however long the word is.
    const MOST_LETTERS: usize = 128;
    let letters = word.iter().copied().filter(u8::is_ascii_alphanumeric);
    let letters: Vec<u8> = letters.take(MOST_LETTERS).collect();
    let (mut sum, mut rows) = (0, 0);
    for pair in letters.windows(2) {
        rows += usize::from(pair[1] == pair[0] || pair[1] == pair[0].wrapping_add(1));
        sum += match (letter_of(pair[0]), letter_of(pair[1])) {
            (Some(_), Some(_)) if pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase() => HUMP,
            (Some(first), Some(second)) => PAIRS[first][second],
            (None, None) => 0,
            _ => OTHER_KIND,
        };
    }
    let pairs = letters.len().saturating_sub(1);
    letters.len() >= LEAST_LETTERS
        && letters.iter().any(u8::is_ascii_alphabetic)
        // Alphabets, and digits in a row.
        && rows * 3 < pairs
        && i64::from(sum) < i64::from(MOST_MEAN) * pairs as i64
}

/// Returns whether a word is a long one at random that names no thing: neither an id nor a digest.
pub(super) fn is_opaque(word: &[u8]) -> bool {
    const LEAST: usize = 24;
    word.len() >= LEAST
        && word.iter().all(|letter| of_key(*letter))
        && is_mixed(word)
        && is_random(word)
        && !is_hexadecimal(word)
        && !is_id(word)
}

/// Returns whether a word is of hexadecimal digits, as digests and the ids of commits are.
pub(super) fn is_hexadecimal(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_hexdigit)
}

/// What the ids of formats, of requests and of things begin with, and names of digests.
static IDS: Words = Words::new(include_str!("../rules/ids.txt"));

/// Returns whether a word names a thing: an UUID, an id with a known prefix, a public key of age or Nostr, or a certificate.
pub(super) fn is_id(word: &[u8]) -> bool {
    const PUBLIC: [&[u8]; 3] = [b"age1", b"npub1", b"LS0tLS1CRUdJTiBDRVJU"];
    is_uuid(word) || PUBLIC.iter().any(|prefix| word.starts_with(prefix)) || {
        let prefix = word.split(|letter| !letter.is_ascii_alphanumeric()).next();
        prefix.is_some_and(|prefix| prefix.len() < word.len() && IDS.has(prefix))
    }
}

/// Returns whether a word is an id of 26 letters of Crockford's Base32 that begins with a time, as ULIDs and those of TypeID do.
fn is_ulid(word: &[u8]) -> bool {
    let is_of_ulid = |letter: &u8| letter.is_ascii_alphanumeric() && !b"ilouILOU".contains(letter);
    word.len() == 26 && matches!(word[..2], [b'0', b'0'..=b'2']) && word.iter().all(is_of_ulid)
}

/// Returns whether a word is a UUID.
pub(super) fn is_uuid(word: &[u8]) -> bool {
    let groups = word.split(|letter| *letter == b'-');
    groups.map(<[u8]>::len).eq([8, 4, 4, 4, 12])
        && word
            .iter()
            .all(|letter| letter.is_ascii_hexdigit() || *letter == b'-')
}

/// Returns whether a letter can stand in a key.
pub(super) fn of_key(letter: u8) -> bool {
    is_word(letter) || matches!(letter, b'-' | b'~')
}

/// Returns the end of a key whose first part ends at `end`, and which may have more parts: `.…`, `:…`.
pub(super) fn whole(letters: &[u8], mut end: usize) -> usize {
    const LEAST_PART_LETTERS: usize = 6;
    let mut next = end;
    while matches!(letters.get(next), Some(b'.' | b':')) {
        let part = next + 1;
        next = skip(letters, part, of_key);
        if next - part >= LEAST_PART_LETTERS && is_mixed(&letters[part..next]) {
            end = next;
        }
    }
    end
}

/// Finds tokens of services: letters that are no id of a known kind, a hyphen or `_`, and letters and digits at random.
pub(super) fn prefixed_tokens(letters: &[u8]) -> Ranges {
    static OF_TOKEN: Letters = Letters::of(b"A-Za-z0-9_-");
    let mut ranges = Ranges::new();
    for Range { mut start, end } in runs(letters, LEAST_TOKEN_LETTERS, &OF_TOKEN) {
        // The letter of an escape in a JSON string: `\n`.
        start += usize::from(letters[..start].ends_with(b"\\"));
        let before = letters[..start].last().copied().unwrap_or(b' ');
        let behind = letters.get(end).copied().unwrap_or(b' ');
        let is_part = is_word(before) || b"/.+\\@#%$-~".contains(&before) || b"/+(".contains(&behind);
        let whole = whole(letters, end);
        let is_file =
            || behind == b'.' && whole == end && letters.get(end + 1).is_some_and(u8::is_ascii_alphabetic);
        if !is_part && !is_file() && is_prefixed(&letters[start..end]) {
            ranges.push(start..whole);
        }
    }
    merged(ranges)
}

const LEAST_TOKEN_LETTERS: usize = LEAST_LETTERS + 3;

/// Returns whether a word is a prefix, a sign, and a text at random.
fn is_prefixed(word: &[u8]) -> bool {
    const MOST_PREFIX_LETTERS: usize = 12;
    const MOST_TOKEN_LETTERS: usize = 512;
    if word.len() > MOST_TOKEN_LETTERS {
        return false;
    }
    let mut rest: Range<usize> = 0..word.len();
    let mut prefixes = 0;
    loop {
        let part = skip(word, rest.start, |letter| letter.is_ascii_alphanumeric());
        let text = &word[rest.start..part];
        let is_prefix = part < word.len() && text.len() <= MOST_PREFIX_LETTERS && is_name_part(text);
        if !is_prefix {
            break;
        }
        // `tr_prod_…` is of an environment, `prod_…` a product.
        if IDS.has(text) && !(text == b"prod" && rest.start > 0) {
            return false;
        }
        prefixes += text.len();
        rest.start = skip(word, part, |letter| matches!(letter, b'-' | b'_'));
    }
    let tail = &word[rest];
    let mut parts = tail.split(|letter| matches!(letter, b'-' | b'_'));
    let is_long = parts.any(|part| part.len() >= LEAST_LETTERS);
    // A UUID is the name of a thing, and a digest behind a hyphen that of a file or an image, unless a word before it says otherwise.
    let before = word[..word.len() - tail.len()].to_ascii_lowercase();
    let mut words = before.split(|letter| matches!(letter, b'-' | b'_'));
    let is_named = words.any(|word| {
        [&b"sk"[..], b"key", b"pat", b"token", b"secret", b"live"]
            .iter()
            .any(|end| word.ends_with(end))
    });
    if is_ulid(tail) || tail.last_chunk::<36>().is_some_and(|last| is_uuid(last)) {
        return is_named;
    }
    let is_digest = || {
        let is_as_long = tail.len() <= 32 || matches!(tail.len(), 40 | 56 | 64 | 96 | 128);
        is_hexadecimal(tail) && is_as_long && word.contains(&b'-') && !is_named
    };
    prefixes > 1 && is_long && tail.iter().any(u8::is_ascii_digit) && !is_digest() && is_random(tail)
}

/// Returns whether letters are a word in one case, or the version behind one: `sk`, `LIVE`, `v1`.
fn is_name_part(part: &[u8]) -> bool {
    let letters = || part.iter().filter(|letter| letter.is_ascii_alphabetic());
    let is_one_case = letters().all(u8::is_ascii_lowercase) || letters().all(u8::is_ascii_uppercase);
    let digits = part.len() - letters().count();
    part.first().is_some_and(u8::is_ascii_alphabetic) && is_one_case && digits <= 2
}

/// Returns the address of a hook or a bot, which has a segment that nobody can guess.
pub(super) fn hook(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    /// Of addresses that let in whoever has them, segments can be short or hexadecimal, and stand in the query.
    static LINK: Pattern = Pattern::new(
        r"^\w+://[^/]*(?:hooks|infura|alchemy|quiknode|ankr)|t\.me/\+|chat\.whatsapp|/joinchat/|/reset|/magic|/private-",
    );
    static PICTURE: Pattern = Pattern::new(r"^[^?#]*\.(?:png|svg|jpg|gif|webp)(?:[?#]|$)");
    const LEAST_LETTERS_OF_LINK: usize = 7;
    let text = &letters[found.clone()];
    let is_of_link = LINK.is_match(text);
    // Behind the method of a request stands a path alone.
    let host = memmem::find(text, b"://").map_or(0, |at| at + 3);
    let path = host + text[host..].iter().position(|letter| *letter == b'/')?;
    let found = if host == 0 {
        found.start + path..found.end
    } else {
        found
    };
    let address = &text[path..];
    let path = address.split(|letter| matches!(letter, b'?' | b'#')).next();
    let searched = if is_of_link { address } else { path? };
    let mut segments = searched.split(|letter| !is_word(*letter) && *letter != b'-');
    let is_secret = |segment: &[u8]| {
        is_uuid(segment)
            || is_random(segment) && (is_of_link || !is_hexadecimal(segment))
            || is_of_link && segment.len() >= LEAST_LETTERS_OF_LINK && is_mixed(segment)
    };
    (segments.any(is_secret) && !PICTURE.is_match(text)).then_some(found)
}

/// Returns the value of a name in a query, if it is random.
pub(super) fn of_query(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let start = found.start + letters[found.clone()].iter().position(|letter| *letter == b'=')? + 1;
    let value = &letters[start..found.end];
    let is_date = value.get(4) == Some(&b'-') && value[..4].iter().all(u8::is_ascii_digit);
    (is_random(value) && !is_date || is_uuid(value)).then_some(start..found.end)
}

/// Returns a token that stands alone, if it is at random: the key of a wallet.
pub(super) fn token_alone(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let before = letters[..found.start].last();
    let mut around = before.into_iter().chain(letters.get(found.end));
    let is_apart = !around.any(|letter| b"+/=-_.@\\(".contains(letter));
    (is_apart && is_opaque(&letters[found.clone()])).then_some(found)
}

/// Returns the numbers of a key in a list: each of one byte, and most of them different.
pub(super) fn numbers_of_key(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    const LEAST_DIFFERENT: usize = 40;
    let numbers = letters[found.clone()]
        .split(|letter| !letter.is_ascii_digit())
        .filter(|number| !number.is_empty());
    let bytes: Option<Vec<u8>> = numbers
        .map(|number| std::str::from_utf8(number).ok()?.parse().ok())
        .collect();
    let mut bytes = bytes?;
    let is_in_order = bytes.is_sorted() || bytes.iter().rev().is_sorted();
    bytes.sort_unstable();
    bytes.dedup();
    (bytes.len() >= LEAST_DIFFERENT && !is_in_order).then_some(found)
}
