//! Numbers that are told by their check digits or their groups: payment cards, bank accounts, social security, telephones, and IPv6 addresses.

use std::{net::Ipv6Addr, ops::Range, str, sync::LazyLock};

use regex::bytes::Regex;

use crate::{
    ranges::{Ranges, expression, find_letter, runs, skip, skip_back, stands_alone},
    text::{OTHER, Text, is_word},
};

/// Returns the digits of a number, each as its value.
fn digits_of(number: &[u8]) -> Vec<u8> {
    let digits = number.iter().filter(|letter| letter.is_ascii_digit());
    digits.map(|digit| digit - b'0').collect()
}

/// Finds numbers of payment cards: as long as their network makes them, in one piece of at most 16 digits or in groups with a space or a hyphen between them,
/// with a valid check digit.
pub(super) fn card_numbers(text: &Text) -> Ranges {
    static EXPRESSION: LazyLock<Regex> =
        LazyLock::new(|| expression(r"[2-6]\d{3}(?:\d{9,12}|(?:[ -]\d{3,7}){0,4}[ -]\d{1,12})"));
    let letters = text.letters();
    let mut ranges = Ranges::new();
    let mut from = 0;
    for part in text.numbers() {
        from = part.start.max(from);
        while let Some(found) = EXPRESSION.find_at(&letters[..part.end], from.min(part.end)) {
            let card = card_number(letters, found.range());
            from = match &card {
                Some(range) => range.end,
                None => skip(letters, found.start(), |letter| letter.is_ascii_digit()),
            };
            ranges.extend(card);
        }
    }
    ranges
}

/// Returns the longest card number that begins with a group of digits. `found` is all that can belong to it: groups at its end can belong to
/// a list of numbers.
fn card_number(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    // Visa; Mastercard; American Express; Diners Club; Discover, UnionPay and JCB; Maestro.
    static NETWORKS: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r"^(?:4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}",
            r"|3[47]\d{13}|(?:30[0-5]\d|3095|36\d\d|3[89]\d\d)(?:\d{10}|\d{12}|\d{15})",
            r"|(?:6011|64[4-9]\d|65\d\d|62\d\d|352[89]|35[3-8]\d)\d{12,15}",
            r"|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{9,15})$"
        ))
    });
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
        if is_whole && NETWORKS.is_match(&digits) && has_luhn_check_digit(&digits_of(&digits)) {
            return Some(number.clone()).filter(|number| !is_count_or_id(letters, number));
        }
        number.end = number.start + text.iter().rposition(|letter| matches!(letter, b' ' | b'-'))?;
    }
}

/// Returns whether a number in one piece has a unit, or the name of an id, or goes on behind a point.
fn is_count_or_id(letters: &[u8], range: &Range<usize>) -> bool {
    static BEHIND: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r"^(?:\.\d| (?i:b|bits|bytes?|cycles|iterations|items|kb|mb|microseconds|ms|nanoseconds|ns|ops|requests|rows|samples",
            r"|seconds|ticks|tokens|us)\b)"
        ))
    });
    // `userId`, and not `paid`.
    static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r"(?:(?:^|[^a-z])id|I[dD]|(?:^|[^A-Za-z])(?i:epoch|iteration|pid|request|revision|seed|span|trace))",
            r#"[ "'=:\\#]+$"#
        ))
    });
    const MOST_NAME_LETTERS: usize = 24;
    let name = &letters[range.start.saturating_sub(MOST_NAME_LETTERS)..range.start];
    let is_in_one_piece = letters[range.clone()].iter().all(u8::is_ascii_digit);
    is_in_one_piece && (BEHIND.is_match(&letters[range.end..]) || BEFORE.is_match(name))
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
    const MOST_BEFORE: usize = 12;
    let before = &letters[found.start.saturating_sub(MOST_BEFORE)..found.start];
    let country = str::from_utf8(&letters[found.start..found.start + 2]).ok()?;
    // In small letters, digests look like one.
    if country.starts_with(|c: char| c.is_ascii_lowercase())
        && !before.windows(4).any(|word| word.eq_ignore_ascii_case(b"iban"))
    {
        return None;
    }
    let country = country.to_ascii_uppercase();
    let mut lengths = IBAN_LENGTHS.split(' ');
    let length: usize = lengths.find_map(|each| each.strip_prefix(&*country)?.parse().ok())?;
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
    // The first four letters count last.
    number.rotate_left(4);
    let range = found.start..index;
    let remainder = number.into_iter().fold(0, with_letter);
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

/// Returns a social security number of the United States, Canada, Switzerland, Brazil, France, Sweden, Korea or China.
pub(super) fn social_security_number(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let text = &letters[found.clone()];
    let digits = digits_of(text);
    let is_valid = match (text.len(), digits.len()) {
        (11, 9) if text[6] == b'-' => is_american(&digits),
        (11, 9) => has_luhn_check_digit(&digits) && number(&digits) != 0,
        (16, 13) => is_swiss(&digits),
        (11, 10) | (13, 12) => {
            has_date(&digits[digits.len() - 8..]) && has_luhn_check_digit(&digits[digits.len() - 10..])
        }
        (14, 13) if text[6] == b'-' => has_date(&digits[2..]),
        (14, 11) => is_brazilian(&digits),
        (18, 17 | 18) => has_date(&digits[10..]) && is_chinese(text),
        _ => is_french(&digits),
    };
    (is_valid && is_whole_number(letters, &found)).then_some(found)
}

/// Returns whether digits begin with a month and a day.
fn has_date(digits: &[u8]) -> bool {
    (1..=12).contains(&number(&digits[..2])) && (1..=31).contains(&number(&digits[2..4]))
}

/// Returns whether the check digit is valid, ISO 7064 MOD 11-2.
fn is_chinese(text: &[u8]) -> bool {
    let value = |letter: &u8| {
        u32::from(if letter.is_ascii_digit() {
            letter - b'0'
        } else {
            10
        })
    };
    let sum = text.iter().fold(0, |sum, letter| (sum * 2 + value(letter)) % 11);
    sum == 1
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
    let mut end = skip_back(letters, start..end, |letter| !is_part(letter));
    // The words behind it.
    while let Some(word) = letters
        .get(start..end)?
        .iter()
        .rposition(|letter| *letter == b' ')
        && !letters[start + word..end].iter().any(u8::is_ascii_digit)
        && end - start - word > 2
    {
        end = start + word;
    }
    let digits = digits_of(letters.get(start..end)?);
    let is_number = match letters[found.start] {
        OTHER => is_japanese(&digits),
        // Of letters and digits, as those of passports.
        _ => (6..=18).contains(&digits.len()) || digits.len() >= 4 && (8..=14).contains(&(end - start)),
    };
    (is_number && stands_alone(letters, &(start..end))).then_some(start..end)
}

/// Returns the text behind a label, up to a quote, a bracket or the end of the line, if it has a digit.
pub(super) fn beside_label(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    const MOST: usize = 80;
    let most = letters.len().min(found.end + MOST);
    let end = skip(&letters[..most], found.end, |letter| {
        !b"\n\r\t\"'`<>;|\\{}()[]".contains(&letter)
    });
    let value = found.end..skip_back(letters, found.end..end, |letter| b" ,.".contains(&letter));
    let text = &letters[value.clone()];
    // The number of a house can be a field of its own.
    let is_field = || {
        let label = &letters[found.clone()];
        label
            .to_ascii_lowercase()
            .windows(6)
            .any(|part| part == b"street")
            && label.ends_with(b"\"")
            && text.iter().filter(|letter| **letter == b' ').count() > 0
    };
    let has_number = text.iter().any(u8::is_ascii_digit);
    (text.iter().any(u8::is_ascii_uppercase) && (has_number || is_field())).then_some(value)
}

/// Returns the sum of digits, each with its weight.
fn weighted(digits: &[u8], weights: impl IntoIterator<Item = u64>) -> u64 {
    let pairs = digits.iter().zip(weights);
    pairs.map(|(digit, weight)| u64::from(*digit) * weight).sum()
}

/// Returns whether the last of twelve digits is the check digit of the others.
fn is_japanese(digits: &[u8]) -> bool {
    let remainder = weighted(digits, [6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    digits.len() == 12 && u64::from(digits[11]) == (11 - remainder) % 11 % 10
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
    let sum = weighted(digits, [1, 3].into_iter().cycle());
    digits.starts_with(&[7, 5, 6]) && sum.is_multiple_of(10)
}

/// Returns whether both check digits are valid, each the weighted sum of all before it.
fn is_brazilian(digits: &[u8]) -> bool {
    let check = |count: usize| weighted(digits, (2..=count as u64 + 1).rev()) * 10 % 11 % 10;
    let is_check = |at: usize| check(at) == u64::from(digits[at]);
    is_check(9) && is_check(10) && digits.iter().any(|digit| *digit != digits[0])
}

/// Returns whether the last two digits complement the remainder of the others by 97.
fn is_french(digits: &[u8]) -> bool {
    matches!(digits[0], 1 | 2) && 97 - number(&digits[..13]) % 97 == number(&digits[13..])
}

/// Returns an international telephone number in groups: `+49 30 901820`, `+44 (0)20 7946 0958`. `found` is all that can
/// belong to it.
pub(super) fn international_phone(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    const DIGITS: std::ops::RangeInclusive<usize> = 8..=15;
    /// Of one digit, of two, and of three.
    static CALLING_CODES: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r"^(?:[17]|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]",
            r"|(?:2[1-69]|3[578]|42|5[09]|6[789]|8[0578]|9[679])\d)(?:\D|$)"
        ))
    });
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
    let known = CALLING_CODES.is_match(text);
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
    let count = digits.count();
    // Without a word before it, or pairs, a number of groups has ten digits.
    let least = if start == found.start && letters[start] == b'0' {
        10
    } else {
        7
    };
    ((least..=15).contains(&count) && !is_in_row && is_whole_number(letters, &range)).then_some(range)
}

/// Returns a telephone number that is no part of a UUID or of a longer number.
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
    let goes_on = letters[..found.start].last().is_some_and(u8::is_ascii_digit);
    (!goes_on && !groups.eq([8, 4, 4, 4, 12])).then_some(found)
}

/// Returns an IPv4 address that not every machine has: `127.0.0.1` and `0.0.0.0` say nothing.
pub(super) fn own_address(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let text = &letters[found.clone()];
    let is_everybodys = [&b"127."[..], b"255.", b"0.0.0.0"];
    (!is_everybodys.iter().any(|each| text.starts_with(each))).then_some(found)
}

/// Finds hardware addresses: six pairs of hexadecimal digits, or three groups of four. Those of all machines say nothing.
pub(super) fn mac_addresses(letters: &[u8]) -> Ranges {
    const LEAST_LETTERS: usize = 14;
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r"\b[0-9A-Fa-f]{2}(?:(?::[0-9A-Fa-f]{2}){5}|(?:-[0-9A-Fa-f]{2}){5})\b",
            r"|\b[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\b"
        ))
    });
    let of_address = |letter: u8| letter.is_ascii_hexdigit() || matches!(letter, b':' | b'-' | b'.');
    let mut ranges = Ranges::new();
    for run in runs(letters, LEAST_LETTERS, of_address) {
        // With the letter behind the run, which ends a word or goes on with it.
        let part = &letters[..letters.len().min(run.end + 1)];
        let mut from = run.start;
        while let Some(found) = EXPRESSION.find_at(part, from) {
            from = found.end();
            ranges.extend(mac_address(letters, found.range()));
        }
    }
    ranges
}

fn mac_address(letters: &[u8], found: Range<usize>) -> Option<Range<usize>> {
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
