//! Numbers that are told by their check digits or their groups: payment cards, bank accounts, social security, telephones, and IPv6 addresses.

use std::{net::Ipv6Addr, ops::Range, str};

use crate::{
    ranges::{Ranges, skip, stands_alone},
    text::is_word,
};

/// Numbers of payment cards: as long as their network makes them, in one piece or in groups with a space or a hyphen between
/// them, with a valid check digit.
pub(super) fn card_numbers(letters: &[u8]) -> Ranges {
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(start) = letters.iter().skip(from).position(u8::is_ascii_digit) {
        let start = from + start;
        from = match card_at(letters, start) {
            Some(range) if !is_count_or_id(letters, &range) => {
                ranges.push(range.clone());
                range.end
            }
            _ => skip(letters, start, |letter| letter.is_ascii_digit()),
        };
    }
    ranges
}

/// Returns whether a number in one piece has a unit, or the name of an id, or goes on behind a point.
fn is_count_or_id(letters: &[u8], range: &Range<usize>) -> bool {
    const UNITS: &[&[u8]] = &[
        b"b",
        b"bits",
        b"byte",
        b"bytes",
        b"cycles",
        b"iterations",
        b"items",
        b"kb",
        b"mb",
        b"microseconds",
        b"ms",
        b"nanoseconds",
        b"ns",
        b"ops",
        b"requests",
        b"rows",
        b"samples",
        b"seconds",
        b"ticks",
        b"tokens",
        b"us",
    ];
    if !letters[range.clone()].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let rest = &letters[range.end..];
    if rest.len() > 1 && rest[0] == b'.' && rest[1].is_ascii_digit() {
        return true;
    }
    let unit = rest.strip_prefix(b" ").unwrap_or_default();
    let unit = &unit[..unit.iter().take_while(|letter| is_word(**letter)).count().min(16)];
    if UNITS.iter().any(|each| each.eq_ignore_ascii_case(unit)) {
        return true;
    }
    let before = letters[..range.start]
        .iter()
        .rev()
        .skip_while(|letter| matches!(letter, b' ' | b'"' | b'\'' | b'=' | b':' | b'\\' | b'#'));
    let mut before = before.take(3).copied();
    let is_id = matches!(
        (before.next(), before.next()),
        (Some(b'd' | b'D'), Some(b'i' | b'I'))
    );
    is_id
        && range.start > 0
        && !is_word(letters[range.start - 1])
        && before.next().is_none_or(|letter| !letter.is_ascii_lowercase())
}

const MOST_CARD_DIGITS: usize = 19;

/// Returns the longest card number that begins with the group of digits at `start`.
fn card_at(letters: &[u8], start: usize) -> Option<Range<usize>> {
    // Part of a word, or of the fraction of a number.
    let before = letters[..start].last().copied().unwrap_or(b' ');
    if is_word(before) || before == b'.' {
        return None;
    }
    if !matches!(letters[start], b'2'..=b'6') {
        return None;
    }
    let mut digits = [0; MOST_CARD_DIGITS];
    let mut count = 0;
    let mut longest = None;
    let mut index = start;
    let mut group_start = start;
    while let Some(letter) = letters.get(index) {
        if !letter.is_ascii_digit() || count == MOST_CARD_DIGITS {
            break;
        }
        digits[count] = letter - b'0';
        count += 1;
        index += 1;
        let next = letters.get(index).copied().unwrap_or(b' ');
        if !is_word(next) && is_card(&digits[..count]) {
            longest = Some(start..index);
        }
        let follows_digit = letters.get(index + 1).is_some_and(u8::is_ascii_digit);
        if matches!(next, b' ' | b'-') && follows_digit {
            // Groups of other lengths belong to a list of numbers.
            let group = index - group_start;
            if (group_start == start && group != 4) || !(3..=7).contains(&group) {
                return longest;
            }
            index += 1;
            group_start = index;
        }
    }
    longest
}

fn is_card(digits: &[u8]) -> bool {
    if !(13..=MOST_CARD_DIGITS).contains(&digits.len()) {
        return false;
    }
    let first = digits[..4]
        .iter()
        .fold(0, |number: u32, digit| number * 10 + u32::from(*digit));
    let is_long_enough = match (first, digits.len()) {
        // Visa
        (4000..=4999, length) => matches!(length, 13 | 16 | 19),
        // Mastercard
        (5100..=5599 | 2221..=2720, length) => length == 16,
        // American Express
        (3400..=3499 | 3700..=3799, length) => length == 15,
        // Diners Club
        (3000..=3059 | 3095 | 3600..=3699 | 3800..=3999, length) => matches!(length, 14 | 16 | 19),
        // Discover and UnionPay
        (6011 | 6440..=6599 | 6200..=6299, length) => length >= 16,
        // Maestro
        (5018 | 5020 | 5038 | 5893 | 6304 | 6759 | 6761..=6763, length) => length >= 13,
        // JCB
        (3528..=3589, length) => length >= 16,
        _ => false,
    };
    is_long_enough && has_luhn_check_digit(digits)
}

/// Returns whether the check digit is valid by the formula of Luhn, ISO/IEC 7812-1, annex B.
fn has_luhn_check_digit(digits: &[u8]) -> bool {
    let doubled = |digit: u8| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| u32::from(if index % 2 == 1 { doubled(*digit) } else { *digit }))
        .sum();
    sum.is_multiple_of(10)
}

/// The longest text of an IPv6 address: `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`.
const MOST_IPV6_LETTERS: usize = 45;

/// IPv6 addresses. `::` and `::1` say nothing: every machine has them.
pub(super) fn ipv6_addresses(letters: &[u8]) -> Ranges {
    let of_address = |letter: u8| letter.is_ascii_hexdigit() || matches!(letter, b':' | b'.');
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(colon) = letters.iter().skip(from).position(|letter| *letter == b':') {
        let colon = from + colon;
        let before = letters[from..colon].iter().rev();
        let start = colon - before.take_while(|letter| of_address(**letter)).count();
        let run_end = skip(letters, colon, of_address);
        from = run_end;
        let mut range = start..run_end;
        // The end of a sentence.
        while letters[range.clone()].ends_with(b".")
            || (letters[range.clone()].ends_with(b":") && !letters[range.clone()].ends_with(b"::"))
        {
            range.end -= 1;
        }
        if stands_alone(letters, &(start..run_end)) && is_ipv6_address(&letters[range.clone()]) {
            ranges.push(range);
        }
    }
    ranges
}

fn is_ipv6_address(letters: &[u8]) -> bool {
    const LEAST_LETTERS: usize = 4;
    let groups = || {
        letters
            .split(|letter| *letter == b':')
            .filter(|group| !group.is_empty())
    };
    // With two groups, it can be a path of a program: `f32::add`. The first group of all networks that are in use has four letters.
    let says_something = groups().count() > 2
        || (groups()
            .next()
            .is_some_and(|group| group.len() == LEAST_LETTERS && matches!(group[0], b'2' | b'f' | b'F'))
            && groups().count() == 2)
        || letters.contains(&b'.');
    let text = str::from_utf8(letters).unwrap_or_default();
    letters.len() <= MOST_IPV6_LETTERS && says_something && text.parse::<Ipv6Addr>().is_ok()
}

/// How many letters the account numbers of a country have, by ISO 13616.
const IBAN_LENGTHS: &[(&[u8; 2], usize)] = &[
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BI", 27),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DJ", 27),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FK", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HN", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"LY", 25),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MN", 20),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NI", 28),
    (b"NL", 18),
    (b"NO", 15),
    (b"OM", 23),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"RU", 33),
    (b"SA", 24),
    (b"SC", 31),
    (b"SD", 18),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"SO", 23),
    (b"ST", 25),
    (b"SV", 28),
    (b"TL", 23),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VA", 22),
    (b"VG", 24),
    (b"XK", 20),
    (b"YE", 30),
];

/// Returns an international bank account number, in one piece or in groups, with valid check digits. `found` is its
/// beginning.
pub(super) fn iban(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let country = [
        letters[found.start].to_ascii_uppercase(),
        letters[found.start + 1].to_ascii_uppercase(),
    ];
    let (_, length) = IBAN_LENGTHS.iter().find(|(each, _)| **each == country)?;
    let mut remainder = 0;
    // The first four letters count last.
    let mut first = Vec::with_capacity(4);
    let mut count = 0;
    let mut index = found.start;
    while count < *length {
        let letter = *letters.get(index)?;
        if letter.is_ascii_alphanumeric() {
            if count < 4 {
                first.push(letter);
            } else {
                remainder = with_letter(remainder, letter);
            }
            count += 1;
        } else if !matches!(letter, b' ' | b'-' | 0x80) || !letters[index - 1].is_ascii_alphanumeric() {
            return None;
        }
        index += 1;
    }
    let remainder = first.into_iter().fold(remainder, with_letter);
    let range = found.start..index;
    (remainder == 1 && stands_alone(letters, &range)).then_some(range)
}

/// Returns the remainder by 97 of a number with one more letter: a digit, or two digits from `A` = 10 on.
fn with_letter(remainder: u32, letter: u8) -> u32 {
    let letter = letter.to_ascii_uppercase();
    if letter.is_ascii_digit() {
        (remainder * 10 + u32::from(letter - b'0')) % 97
    } else {
        (remainder * 100 + u32::from(letter - b'A') + 10) % 97
    }
}

/// Whether the digits of a number are valid.
type Check = fn(&[u8]) -> bool;

/// The forms of social security numbers, `0` standing for a digit, and the check of each.
const SOCIAL_SECURITY_NUMBERS: &[(&[u8], Check)] = &[
    (b"000-00-0000", is_american),
    (b"000-000-000", |digits| {
        has_luhn_check_digit(digits) && number(digits) != 0
    }),
    (b"000.0000.0000.00", is_swiss),
    (b"000.000.000-00", is_brazilian),
    (b"0 00 00 00 000 000 00", is_french),
];

/// The most digits of these.
const MOST_SOCIAL_DIGITS: usize = 15;

/// Social security numbers of the United States, Canada, Switzerland, Brazil and France.
pub(super) fn social_security_numbers(letters: &[u8]) -> Ranges {
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(index) = letters.iter().skip(from).position(u8::is_ascii_digit) {
        let start = from + index;
        let group = skip(letters, start, |letter| letter.is_ascii_digit());
        let found = match (group - start, letters.get(group)) {
            (1 | 3, Some(b'-' | b'.' | b' ')) => SOCIAL_SECURITY_NUMBERS
                .iter()
                .find_map(|(form, check)| social_security_number(letters, start, form, *check)),
            _ => None,
        };
        from = found.as_ref().map_or(group, |range| range.end);
        ranges.extend(found);
    }
    ranges
}

fn social_security_number(letters: &[u8], start: usize, form: &[u8], check: Check) -> Option<Range<usize>> {
    let range = start..start + form.len();
    let mut digits = [0; MOST_SOCIAL_DIGITS];
    let mut count = 0;
    for (letter, sign) in letters.get(range.clone())?.iter().zip(form) {
        if *sign == b'0' && letter.is_ascii_digit() {
            digits[count] = letter - b'0';
            count += 1;
        } else if letter != sign {
            return None;
        }
    }
    (is_whole_number(letters, &range) && check(&digits[..count])).then_some(range)
}

/// Returns whether no digit stands beside a number, also behind a hyphen or a point.
fn is_whole_number(letters: &[u8], range: &Range<usize>) -> bool {
    let continues = |sign: Option<&u8>, digit: Option<&u8>| {
        sign.is_some_and(|sign| matches!(sign, b'-' | b'.' | b'/'))
            && digit.is_some_and(u8::is_ascii_alphanumeric)
    };
    let before = |count: usize| {
        range
            .start
            .checked_sub(count)
            .and_then(|index| letters.get(index))
    };
    stands_alone(letters, range)
        && !continues(before(1), before(2))
        && !continues(letters.get(range.end), letters.get(range.end + 1))
}

fn number(digits: &[u8]) -> u64 {
    digits
        .iter()
        .fold(0, |number, digit| number * 10 + u64::from(*digit))
}

/// Numbers of the United States have no check digit; some areas, groups and serials are never given.
fn is_american(digits: &[u8]) -> bool {
    let (area, group, serial) = (number(&digits[..3]), number(&digits[3..5]), number(&digits[5..]));
    area != 0 && area != 666 && area < 900 && group != 0 && serial != 0
}

/// Returns whether the check digit of EAN-13 and the prefix of the country are valid.
fn is_swiss(digits: &[u8]) -> bool {
    let sum: u64 = digits
        .iter()
        .enumerate()
        .map(|(index, digit)| u64::from(*digit) * if index % 2 == 1 { 3 } else { 1 })
        .sum();
    digits.starts_with(&[7, 5, 6]) && sum.is_multiple_of(10)
}

/// Returns whether both check digits are valid, each the weighted sum of all before it.
fn is_brazilian(digits: &[u8]) -> bool {
    let check = |count: usize| {
        let sum: usize = digits[..count]
            .iter()
            .enumerate()
            .map(|(index, digit)| usize::from(*digit) * (count + 1 - index))
            .sum();
        sum * 10 % 11 % 10 == usize::from(digits[count])
    };
    check(9) && check(10) && digits.iter().any(|digit| *digit != digits[0])
}

/// Returns whether the last two digits complement the remainder of the others by 97.
fn is_french(digits: &[u8]) -> bool {
    matches!(digits[0], 1 | 2) && 97 - number(&digits[..13]) % 97 == number(&digits[13..])
}

/// Calling codes of countries: of one digit, of two, and the first two digits of the codes with three.
const CALLING_CODES: (&[u8], &[&[u8; 2]], &[&[u8; 2]]) = (
    b"17",
    &[
        b"20", b"27", b"30", b"31", b"32", b"33", b"34", b"36", b"39", b"40", b"41", b"43", b"44", b"45",
        b"46", b"47", b"48", b"49", b"51", b"52", b"53", b"54", b"55", b"56", b"57", b"58", b"60", b"61",
        b"62", b"63", b"64", b"65", b"66", b"81", b"82", b"84", b"86", b"90", b"91", b"92", b"93", b"94",
        b"95", b"98",
    ],
    &[
        b"21", b"22", b"23", b"24", b"25", b"26", b"29", b"35", b"37", b"38", b"42", b"50", b"59", b"67",
        b"68", b"69", b"80", b"85", b"87", b"88", b"96", b"97", b"99",
    ],
);

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
    let code = text.iter().take_while(|letter| letter.is_ascii_digit()).count();
    let (one, two, three) = CALLING_CODES;
    let known = match code {
        1 => one.contains(&text[0]),
        2 => two.iter().any(|each| text.starts_with(*each)),
        3 => three.iter().any(|each| text.starts_with(*each)),
        _ => false,
    };
    let groups = || {
        text[code..]
            .split(|letter| !letter.is_ascii_digit())
            .filter(|group| !group.is_empty())
    };
    let digits = code + groups().map(<[u8]>::len).sum::<usize>();
    // Numbers of France are of pairs, all others have a longer group. A line that a diff adds begins with `+` too.
    let is_grouped = groups().any(|group| group.len() > 2)
        || (code == 2 && groups().filter(|group| group.len() == 2).count() >= 4);
    let has_point_alone = text
        .iter()
        .filter(|letter| !letter.is_ascii_digit())
        .all(|letter| *letter == b'.')
        && groups().count() < 3;
    (known && is_grouped && !has_point_alone && DIGITS.contains(&digits)).then_some(found)
}
