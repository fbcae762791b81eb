//! Numbers that are told by their check digits or their groups: payment cards, bank accounts, social security, telephones, and IPv6 addresses.

use std::{net::Ipv6Addr, ops::Range, str};

use crate::{
    ranges::{Ranges, find, find_letter, skip, skip_back, stands_alone},
    text::is_word,
    words::Words,
};

/// Numbers of payment cards: as long as their network makes them, in one piece or in groups with a space or a hyphen between
/// them, with a valid check digit.
pub(super) fn card_numbers(letters: &[u8]) -> Ranges {
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(start) = find(letters, from, |letter| letter.is_ascii_digit()) {
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
    static UNITS: Words = Words::new(
        "b bits byte bytes cycles iterations items kb mb microseconds ms nanoseconds ns ops requests rows \
         samples seconds ticks tokens us",
    );
    static IDS: Words = Words::new("epoch iteration pid request revision seed span trace");
    const MOST_NAME_LETTERS: usize = 16;
    if !letters[range.clone()].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let rest = &letters[range.end..];
    if rest.len() > 1 && rest[0] == b'.' && rest[1].is_ascii_digit() {
        return true;
    }
    let unit = rest.strip_prefix(b" ").unwrap_or_default();
    let unit = &unit[..skip(unit, 0, is_word).min(16)];
    if UNITS.has(unit) {
        return true;
    }
    let before = letters[..range.start]
        .iter()
        .rev()
        .skip_while(|letter| matches!(letter, b' ' | b'"' | b'\'' | b'=' | b':' | b'\\' | b'#'));
    let mut word: Vec<u8> = before
        .take_while(|letter| letter.is_ascii_alphabetic())
        .take(MOST_NAME_LETTERS)
        .copied()
        .collect();
    word.reverse();
    // `userId`, and not `paid`.
    let of_camel = |name: &[u8]| name.last().is_none_or(|last| !last.is_ascii_lowercase());
    let is_id = match word.as_slice() {
        [name @ .., b'i', b'd'] => of_camel(name),
        [.., b'I', b'd' | b'D'] => true,
        name => IDS.has(name),
    };
    is_id && !is_word(letters[range.start - 1])
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
        if matches!(next, b' ' | b'-') {
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
    while let Some(colon) = find_letter(letters, from, b':') {
        let start = skip_back(letters, from..colon, of_address);
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

/// How many letters the account numbers of countries have, by ISO 13616.
const IBAN_LENGTHS: &[(usize, &str)] = &[
    (15, "NO"),
    (16, "BE"),
    (18, "DK FI FK FO GL NL SD"),
    (19, "MK SI"),
    (20, "AT BA EE KZ LT LU MN XK"),
    (21, "CH HR LI LV"),
    (22, "BG BH CR DE GB GE IE ME RS VA"),
    (23, "AE GI IL IQ OM SO TL"),
    (24, "AD CZ ES MD PK RO SA SE SK TN VG"),
    (25, "LY PT ST"),
    (26, "IS TR"),
    (27, "BI DJ FR GR IT MC MR SM"),
    (28, "AL AZ BY CY DO GT HN HU LB NI PL SV"),
    (29, "BR EG PS QA UA"),
    (30, "JO KW MU YE"),
    (31, "MT SC"),
    (32, "LC"),
    (33, "RU"),
];

/// Returns an international bank account number, in one piece or in groups, with valid check digits. `found` is its
/// beginning.
pub(super) fn iban(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let country = [
        letters[found.start].to_ascii_uppercase(),
        letters[found.start + 1].to_ascii_uppercase(),
    ];
    let is_of = |countries: &str| {
        countries
            .as_bytes()
            .chunks(3)
            .any(|each| each.starts_with(&country))
    };
    let (length, _) = IBAN_LENGTHS.iter().find(|(_, countries)| is_of(countries))?;
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
    while let Some(start) = find(letters, from, |letter| letter.is_ascii_digit()) {
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
static CALLING_CODES: [Words; 3] = [
    Words::new("1 7"),
    Words::new(
        "20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 \
         66 81 82 84 86 90 91 92 93 94 95 98",
    ),
    Words::new("21 22 23 24 25 26 29 35 37 38 42 50 59 67 68 69 80 85 87 88 96 97 99"),
];

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
    let known = (1..=3).contains(&code) && CALLING_CODES[code - 1].has(&text[..code.min(2)]);
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
    (known && is_grouped && !has_point_alone && DIGITS.contains(&digits)).then_some(found)
}

/// Returns a telephone number without a country's code, in pairs of digits or behind a word that says so.
pub(super) fn national_phone(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    const DIGITS: std::ops::RangeInclusive<usize> = 7..=15;
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
    (DIGITS.contains(&digits.count()) && !is_in_row && is_whole_number(letters, &range)).then_some(range)
}

/// Returns a telephone number that is no part of a UUID.
pub(super) fn phone_outside_uuid(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    const UUID_LETTERS: usize = 36;
    let of_uuid = |letter: u8| letter.is_ascii_hexdigit() || letter == b'-';
    let start = skip_back(
        letters,
        found.start.saturating_sub(UUID_LETTERS)..found.start,
        of_uuid,
    );
    let end = skip(
        &letters[..letters.len().min(start + UUID_LETTERS)],
        start,
        of_uuid,
    );
    let groups = letters[start..end]
        .split(|letter| *letter == b'-')
        .map(<[u8]>::len);
    (!groups.eq([8, 4, 4, 4, 12])).then_some(found)
}

/// Returns a hardware address: six pairs of hexadecimal digits, or three groups of four. Those of all machines say nothing.
pub(super) fn mac_address(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let text = &letters[found.clone()];
    let digits = || text.iter().filter(|letter| letter.is_ascii_hexdigit());
    let is_one_digit = digits().all(|digit| digit.eq_ignore_ascii_case(&text[0]));
    // With other signs, it can be a time or a list of numbers.
    let is_hexadecimal = text.contains(&b':') || digits().any(u8::is_ascii_alphabetic);
    let continues = |sign: Option<&u8>| sign.is_some_and(|sign| matches!(sign, b':' | b'-' | b'.'));
    let continues_behind =
        continues(letters.get(found.end)) && letters.get(found.end + 1).is_some_and(u8::is_ascii_hexdigit);
    let continues_before = continues(found.start.checked_sub(1).and_then(|before| letters.get(before)));
    (!is_one_digit && is_hexadecimal && !continues_before && !continues_behind).then_some(found)
}
