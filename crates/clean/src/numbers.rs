//! Numbers that are told by their check digits or their groups: payment cards, bank accounts, social security, telephones, and IPv6 addresses.

use std::{net::Ipv6Addr, ops::Range, str};

use crate::{
    random::is_uuid,
    ranges::{Pattern, skip, skip_at_most, skip_back, stands_alone},
    text::{OTHER, is_word},
};

/// Returns the longest number of a payment card that begins with a group of digits: as long as its network makes them, with a valid check digit.
/// `found` is all that can belong to it: groups at its end can belong to a list of numbers.
pub(super) fn card_number(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    // Visa; Mastercard; American Express; Diners Club; Discover, UnionPay and JCB; Maestro.
    static NETWORKS: Pattern = Pattern::new(concat!(
        r"^(?:4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}",
        r"|3[47]\d{13}|(?:30[0-5]\d|3095|36\d\d|3[89]\d\d)(?:\d{10}|\d{12}|\d{15})",
        r"|(?:6011|64[4-9]\d|65\d\d|62\d\d|352[89]|35[3-8]\d)\d{12,15}",
        r"|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{9,15})$"
    ));
    let before = letters[..found.start].last().copied().unwrap_or(b' ');
    // Part of a word, or of the fraction of a number.
    if is_word(before) || before == b'.' {
        return None;
    }
    let mut number = found;
    loop {
        let text = &letters[number.clone()];
        let is_whole = letters.get(number.end).is_none_or(|next| !is_word(*next));
        let digits: Vec<u8> = text.iter().copied().filter(u8::is_ascii_digit).collect();
        if is_whole && NETWORKS.is_match(&digits) && has_luhn_check_digit(&digits) {
            return Some(number.clone()).filter(|number| !is_count_or_id(letters, number));
        }
        number.end = number.start + text.iter().rposition(|letter| matches!(letter, b' ' | b'-'))?;
    }
}

/// Returns whether a number in one piece has a unit, or the name of an id, or goes on behind a point.
fn is_count_or_id(letters: &[u8], range: &Range<usize>) -> bool {
    static BEHIND: Pattern = Pattern::new(concat!(
        r"^(?:\.\d| (?i:b|bits|bytes?|cycles|iterations|items|kb|mb|microseconds|ms|nanoseconds|ns|ops|requests|rows|samples",
        r"|seconds|ticks|tokens|us)\b)"
    ));
    // `userId`, and not `paid`.
    static BEFORE: Pattern = Pattern::new(concat!(
        r"(?:(?:^|[^a-z])id|I[dD]|(?:^|[^A-Za-z])(?i:epoch|iteration|pid|request|revision|seed|span|trace))",
        r#"[ "'=:\\#]+$"#
    ));
    const MOST_NAME_LETTERS: usize = 24;
    let name = &letters[range.start.saturating_sub(MOST_NAME_LETTERS)..range.start];
    let is_in_one_piece = letters[range.clone()].iter().all(u8::is_ascii_digit);
    is_in_one_piece && (BEHIND.is_match(&letters[range.end..]) || BEFORE.is_match(name))
}

/// Returns whether the check digit of digits or of their values is valid by the formula of Luhn, ISO/IEC 7812-1, annex B.
fn has_luhn_check_digit(digits: &[u8]) -> bool {
    let values = digits.iter().map(|digit| u32::from(digit & 0xF));
    // Each second digit is doubled, and its digits are added.
    let added = values.rev().zip([1, 2].into_iter().cycle());
    let added = added.map(|(value, factor)| value * factor / 10 + value * factor % 10);
    added.sum::<u32>().is_multiple_of(10)
}

/// The longest text of an IPv6 address: `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`.
const MOST_IPV6_LETTERS: usize = 45;

/// Returns an IPv6 address, without the end of a sentence. `::` and `::1` say nothing: every machine has them.
pub(super) fn ipv6_address(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let mut range = found.clone();
    while letters[range.clone()].ends_with(b".")
        || (letters[range.clone()].ends_with(b":") && !letters[range.clone()].ends_with(b"::"))
    {
        range.end -= 1;
    }
    (stands_alone(letters, &found) && is_ipv6_address(&letters[range.clone()])).then_some(range)
}

fn is_ipv6_address(letters: &[u8]) -> bool {
    let groups = letters.split(|letter| *letter == b':');
    let groups: Vec<_> = groups.filter(|group| !group.is_empty()).collect();
    // With two groups, it can be a path of a program: `f32::add`. The first group of all networks that are in use has four letters.
    let says_something = match groups[..] {
        [_, _, _, ..] | [[b'2' | b'f' | b'F', _, _, _], _] => true,
        _ => letters.contains(&b'.'),
    };
    let text = str::from_utf8(letters).unwrap_or_default();
    letters.len() <= MOST_IPV6_LETTERS
        && says_something
        && text
            .parse::<Ipv6Addr>()
            .is_ok_and(|address| !address.is_multicast())
}

/// How many letters the account numbers of countries have, by ISO 13616.
const IBAN_LENGTHS: &str = "NO15 BE16 DK18 FI18 FK18 FO18 GL18 NL18 SD18 MK19 SI19 AT20 BA20 EE20 KZ20 LT20 LU20 MN20 XK20 CH21 HR21 LI21 \
     LV21 BG22 BH22 CR22 DE22 GB22 GE22 IE22 ME22 RS22 VA22 AE23 GI23 IL23 IQ23 OM23 SO23 TL23 AD24 CZ24 ES24 MD24 PK24 RO24 SA24 SE24 \
     SK24 TN24 VG24 LY25 PT25 ST25 IS26 TR26 BI27 DJ27 FR27 GR27 IT27 MC27 MR27 SM27 AL28 AZ28 BY28 CY28 DO28 GT28 HN28 HU28 LB28 NI28 \
     PL28 SV28 BR29 EG29 PS29 QA29 UA29 JO30 KW30 MU30 YE30 MT31 SC31 LC32 RU33";

/// Returns an international bank account number, in one piece or in groups, with valid check digits. `found` is its
/// beginning.
pub(super) fn iban(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let country = str::from_utf8(&letters[found.start..found.start + 2]).ok()?;
    let mut lengths = IBAN_LENGTHS.split(' ');
    let length: usize = lengths.find_map(|each| each.strip_prefix(country)?.parse().ok())?;
    let mut number = Vec::with_capacity(length);
    let mut index = found.start;
    while number.len() < length {
        let letter = *letters.get(index)?;
        if letter.is_ascii_alphanumeric() {
            number.push(letter);
        } else if !matches!(letter, b' ' | b'-' | b'.' | 0x80) || !letters[index - 1].is_ascii_alphanumeric()
        {
            return None;
        }
        index += 1;
    }
    // The first four letters count last, and letters as two digits, from `A` = 10 on.
    number.rotate_left(4);
    let range = found.start..index;
    let values = number
        .iter()
        .filter_map(|letter| char::from(*letter).to_digit(36));
    let remainder = values.fold(0, |remainder, value| {
        (remainder * if value < 10 { 10 } else { 100 } + value) % 97
    });
    (remainder == 1 && stands_alone(letters, &range)).then_some(range)
}

/// Returns a national number that its shape tells, if its check digit is right.
pub(super) fn social_security_number(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    (is_checked(&letters[found.clone()], true) && is_whole_number(letters, &found)).then_some(found)
}

/// How the last digit of a national number follows from the others.
enum Formula {
    Luhn,
    /// The last two digits complement the remainder of the others by 97.
    Complement,
    /// `(factor * sum + first) % modulus % 10`, with the weights of the others in the sum: one a letter, from `A` = 10 on.
    Sum(&'static str, [u32; 3]),
}
use Formula::{Complement, Luhn, Sum};

/// National numbers by their shape, in which 9 stands for a digit: Canada, Israel, Sweden; France; Brazil, Switzerland, China, Japan, Bulgaria.
const CHECKS: [(&str, Formula); 10] = [
    ("999-999-999", Luhn),
    ("999999999", Luhn),
    ("999999-9999", Luhn),
    ("99999999-9999", Luhn),
    ("9 99 99 99 999 999 99", Complement),
    ("999.999.999-99", Sum("BA98765432", [10, 0, 11])),
    ("999.9999.9999.99", Sum("131313131313", [9, 0, 10])),
    ("999999999999999999", Sum("79A584216379A5842", [10, 1, 11])),
    ("999999999999", Sum("65432765432", [10, 0, 11])),
    ("9999999999", Sum("2485A9736", [1, 0, 11])),
];

/// Returns whether the check digit of a national number is right; `otherwise` if no shape is its.
fn is_checked(number: &[u8], otherwise: bool) -> bool {
    const LUHN_DIGITS: usize = 10;
    let is_of = |(letter, shape): (&u8, u8)| match shape {
        b'9' => letter.is_ascii_digit() || letter.eq_ignore_ascii_case(&b'X'),
        sign => *letter == sign || sign == b'-' && *letter == b'+',
    };
    let fits = |shape: &str| shape.len() == number.len() && number.iter().zip(shape.bytes()).all(is_of);
    // An `X` stands for 10, which counts as 0.
    let digits = number.iter().filter(|letter| letter.is_ascii_alphanumeric());
    let digits: Vec<u8> = digits
        .map(|digit| if digit.is_ascii_digit() { digit - b'0' } else { 0 })
        .collect();
    let read = |digits: &[u8]| {
        digits
            .iter()
            .fold(0, |number, digit| number * 10 + u64::from(*digit))
    };
    let is_right = |formula: &Formula| match formula {
        // Without the century.
        Luhn => has_luhn_check_digit(&digits[digits.len().saturating_sub(LUHN_DIGITS)..]),
        Complement => (read(&digits[..13]) + read(&digits[13..])).is_multiple_of(97),
        Sum(weights, [factor, first, modulus]) => {
            let weights = weights.chars().filter_map(|weight| weight.to_digit(36));
            let weighted = digits
                .iter()
                .zip(weights)
                .map(|(digit, weight)| u32::from(*digit) * weight);
            let check = (factor * weighted.sum::<u32>() + first) % modulus % 10;
            digits.last().is_some_and(|digit| u32::from(*digit) == check)
        }
    };
    let mut checks = CHECKS.iter().filter(|(shape, _)| fits(shape));
    let is_drawn = digits.iter().any(|digit| *digit != digits[0]);
    is_drawn && checks.next().map_or(otherwise, |(_, formula)| is_right(formula))
}

/// Returns the national number that stands behind its name: groups of digits and capitals, with six digits or more.
pub(super) fn national_id(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    const MOST: usize = 24;
    let is_part = |letter: u8| letter.is_ascii_digit() || letter.is_ascii_uppercase();
    let start = skip(letters, found.start, |letter| !is_part(letter)).max(found.end);
    let most = letters.len().min(start + MOST);
    let end = skip(&letters[..most], start, |letter| {
        is_part(letter) || b" .-/".contains(&letter)
    });
    let end = skip_back(letters, start..end, |letter| !is_part(letter));
    let digits: Vec<u8> = letters
        .get(start..end)?
        .iter()
        .copied()
        .filter(u8::is_ascii_digit)
        .collect();
    let is_number = match letters[found.start] {
        OTHER => is_checked(&digits, false),
        // Of letters and digits, as those of passports.
        _ => (6..=18).contains(&digits.len()) || digits.len() >= 4 && (8..=14).contains(&(end - start)),
    };
    (is_number && stands_alone(letters, &(start..end))).then_some(start..end)
}

/// Returns whether no digit stands beside a number, also behind a hyphen or a point.
fn is_whole_number(letters: &[u8], range: &Range<usize>) -> bool {
    let (before, behind) = (&letters[..range.start], &letters[range.end..]);
    stands_alone(letters, range)
        && !matches!(before, [.., digit, b'-' | b'.' | b'/'] if digit.is_ascii_alphanumeric())
        && !matches!(behind, [b'-' | b'.' | b'/', digit, ..] if digit.is_ascii_alphanumeric())
}

/// Returns an international telephone number in groups: `+49 30 901820`, `+44 (0)20 7946 0958`. `found` is all that can
/// belong to it.
pub(super) fn international_phone(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    const DIGITS: std::ops::RangeInclusive<usize> = 8..=15;
    let end = found.end;
    if found
        .start
        .checked_sub(1)
        .is_some_and(|index| is_word(letters[index]) || letters[index] == b'+')
        || letters.get(end).is_some_and(|letter| is_word(*letter))
    {
        return None;
    }
    let text = &letters[found.start + 1..end];
    let code = skip(text, 0, |letter| letter.is_ascii_digit());
    let groups = || {
        text[code..]
            .split(|letter| !letter.is_ascii_digit())
            .filter(|group| !group.is_empty())
    };
    let digits = code + groups().map(<[u8]>::len).sum::<usize>();
    // Numbers of some countries are of pairs, all others have a longer group. A line that a diff adds begins with `+` too.
    let is_grouped = groups().any(|group| group.len() > 2)
        || (code > 1 && groups().filter(|group| group.len() == 2).count() >= 4);
    let has_point_alone = text
        .iter()
        .filter(|letter| !letter.is_ascii_digit())
        .all(|letter| *letter == b'.')
        && groups().count() < 3;
    // Two numbers in a line that a diff adds.
    let is_added = text.get(code) == Some(&b' ')
        && groups().count() == 1
        && matches!(letters[..found.start], [] | [.., b'\n']);
    (is_grouped && !is_added && !has_point_alone && DIGITS.contains(&digits)).then_some(found)
}

/// Returns a telephone number without a country's code, in pairs of digits or behind a word that says so.
pub(super) fn national_phone(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let start = skip(letters, found.start, |letter| {
        !letter.is_ascii_digit() && !matches!(letter, b'+' | b'(')
    });
    let range = start..found.end;
    let digits = letters[range.clone()]
        .iter()
        .filter(|letter| letter.is_ascii_digit());
    // In a longer row of groups it is another number.
    let before = skip_back(letters, 0..start, |letter| letter == b' ');
    let behind = skip(letters, range.end, |letter| letter == b' ');
    let is_digit = |index: Option<usize>| {
        index
            .and_then(|at| letters.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    let is_in_row = is_digit(before.checked_sub(1)) || is_digit(Some(behind));
    let is_date = matches!(&letters[range.clone()], [_, _, _, _, b'-', _, _, b'-', _, _]);
    let count = digits.count();
    // Without a word before it, or pairs, a number of groups has ten digits.
    let least = if start == found.start && letters[start] == b'0' {
        10
    } else {
        7
    };
    ((least..=15).contains(&count) && !is_in_row && !is_date && is_whole_number(letters, &range))
        .then_some(range)
}

/// Returns a telephone number that is no part of a UUID or of a longer number.
pub(super) fn phone_outside_uuid(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    const UUID_LETTERS: usize = 36;
    let of_uuid = |letter: u8| letter.is_ascii_hexdigit() || letter == b'-';
    let least = found.start.saturating_sub(UUID_LETTERS);
    let start = skip_back(letters, least..found.start, of_uuid);
    let end = skip_at_most(letters, start, UUID_LETTERS, of_uuid);
    let behind = match letters.get(found.end) {
        Some(b'.') => found.end + 1,
        // Between blanks, more numbers are those of a list.
        Some(b' ') if letters[found.clone()].contains(&b' ') => {
            skip_at_most(letters, found.end, UUID_LETTERS, |letter| letter == b' ')
        }
        _ => letters.len(),
    };
    let goes_on = letters[..found.start].last().is_some_and(u8::is_ascii_digit)
        || letters.get(behind).is_some_and(u8::is_ascii_digit);
    (!goes_on && !is_uuid(&letters[start..end])).then_some(found)
}

/// Returns an IPv4 address that not every machine has: `127.0.0.1`, networks such as `224.0.0.0` and `10.1.2.0/24`, and public resolvers say nothing. Four small numbers
/// are a version, outside of the network of machines that begins with 10.
pub(super) fn own_address(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let text = &letters[found.clone()];
    let is_everybodys = [&b"127."[..], b"255.", b"8.8.8.8", b"8.8.4.4", b"1.1.1.1"];
    let goes_on = matches!(letters[found.end..], [b'.', digit, ..] if digit.is_ascii_digit())
        || matches!(letters[..found.start], [.., digit, b'.'] if digit.is_ascii_digit());
    let is_small = |number: &[u8]| number.len() == 1 || number.len() == 2 && number < &b"32"[..];
    let is_version = text.split(|letter| *letter == b'.').all(is_small) && !text.starts_with(b"10.");
    let is_private = [&b"10."[..], b"172.", b"192.168."]
        .iter()
        .any(|each| text.starts_with(each));
    let is_network = text.ends_with(b".0.0.0")
        || is_private && text.ends_with(b".0") && letters[found.end..].starts_with(b"/");
    let is_own = !is_version && !is_network && !is_everybodys.iter().any(|each| text.starts_with(each));
    (is_own && !goes_on).then_some(found)
}

/// Returns a hardware address: six pairs of hexadecimal digits, or three groups of four. Those of all machines say nothing.
pub(super) fn mac_address(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let text = &letters[found.clone()];
    let digits = || text.iter().filter(|letter| letter.is_ascii_hexdigit());
    let is_one_digit = digits().all(|digit| digit.eq_ignore_ascii_case(&text[0]));
    // With other signs, it can be a time or a list of numbers.
    let is_hexadecimal = text.contains(&b':') || digits().any(u8::is_ascii_alphabetic);
    let (before, behind) = (&letters[..found.start], &letters[found.end..]);
    let goes_on = before.ends_with(b"erial Number: ")
        || matches!(before, [.., b':' | b'-' | b'.'])
        || matches!(behind, [b':' | b'-' | b'.', digit, ..] if digit.is_ascii_hexdigit());
    (!is_one_digit && is_hexadecimal && !goes_on).then_some(found)
}
