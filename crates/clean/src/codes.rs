//! Parts of a text as a reader of it sees them: without escapes, the codes of URLs, HTML and mails, colours of a terminal, and letters that show
//! nothing.

use std::ops::Range;

use crate::{
    ranges::Pattern,
    text::{OTHER, Text, WHITE_SPACE, letter, with_around},
    view::View,
};
use memchr::{memchr, memchr3};

/// What stands around a code is looked at with it.
const MOST_AROUND: usize = 256;
/// Codes within codes: `%2570` is `%70`, which is `p`.
const MOST_LAYERS: usize = 3;

/// Returns a view of the parts of a text around its codes, which are decoded; `None` if there is none.
pub(super) fn view(text: &Text) -> Option<View> {
    if !text.has_any(&[b'%', b'\\', b'&', 0x1B, OTHER, WHITE_SPACE]) {
        return None;
    }
    let mut view = View::default();
    let codes = codes(text.units(), text.letters()).map(|(code, _)| code);
    for part in with_around(text.letters(), codes, (MOST_AROUND, MOST_AROUND)) {
        let mut own: Vec<(u16, Range<usize>)> = part.map(|at| (text.units()[at], at..at + 1)).collect();
        for _ in 0..MOST_LAYERS {
            let Some(next) = decoded(&own) else {
                break;
            };
            own = next;
        }
        view.push_line(own);
    }
    (!view.units.is_empty()).then_some(view)
}

/// Decodes the codes of a part of a text once; `None` if there is none.
fn decoded(part: &[(u16, Range<usize>)]) -> Option<Vec<(u16, Range<usize>)>> {
    let units: Vec<u16> = part.iter().map(|(unit, _)| *unit).collect();
    let letters: Vec<u8> = units.iter().copied().map(letter).collect();
    let mut next = Vec::with_capacity(part.len());
    let mut from = 0;
    for (code, unit) in codes(&units, &letters) {
        next.extend_from_slice(&part[from..code.start]);
        from = code.end;
        next.extend(unit.map(|unit| (unit, part[code.start].1.start..part[code.end - 1].1.end)));
    }
    next.extend_from_slice(&part[from..]);
    (from > 0).then_some(next)
}

/// Returns the codes of a text, and what each stands for.
fn codes<'t>(units: &'t [u16], letters: &'t [u8]) -> impl Iterator<Item = (Range<usize>, Option<u16>)> + 't {
    let is_plain = letters.is_ascii() && memchr(0x1B, letters).is_none();
    let next = move |letters: &[u8]| match is_plain {
        true => memchr3(b'%', b'\\', b'&', letters),
        false => letters.iter().position(|letter| may_begin(*letter)),
    };
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + next(&letters[from..])?;
            let code = code_at(&units[start..], &letters[start..]);
            from = start + code.map_or(1, |(_, length)| length);
            if let Some((unit, _)) = code {
                return Some((start..from, unit));
            }
        }
    })
}

/// Returns whether codes begin with the letter. Letters that show nothing are white space or other ones.
fn may_begin(letter: u8) -> bool {
    matches!(letter, b'%' | b'\\' | b'&' | 0x1B | OTHER | WHITE_SPACE)
}

/// Returns what the code at the beginning of a text stands for, which can be nothing, and its length.
fn code_at(units: &[u16], letters: &[u8]) -> Option<(Option<u16>, usize)> {
    const MOST_LETTERS: usize = 24;
    // Hexadecimal numbers, those of HTML, units of UTF-16 in JSON, decimal numbers, bytes of UTF-8 in URLs and in C, signs behind a backslash, names of HTML;
    // and in no group the colours of a terminal.
    static CODE: Pattern = Pattern::new(concat!(
        r"^(?:(?:%|\\u00|\\x)([2-7][0-9A-Fa-f])|&#[xX]0{0,4}([2-7][0-9A-Fa-f]);",
        r"|\\u((?:00[A-Fa-f]|0[1-9A-Fa-f][0-9A-Fa-f]|[1-9A-Ca-cE-Fe-f][0-9A-Fa-f]{2}|[Dd][0-7][0-9A-Fa-f])[0-9A-Fa-f])|&#0{0,4}(\d{2,3});",
        r"|((?:%[C-Ec-e][0-9A-Fa-f]|\\3[0-5][0-7])(?:%[89ABab][0-9A-Fa-f]|\\2[0-7]{2}){1,2})",
        r"|\\([/@])|\\(\\)u|&(quot|amp|lt|gt|apos|commat);|(?:\x1b|\\x1[bB]|\\u001[bB]|\\033|\\e)\[[\d;]{0,16}[A-Za-z])",
    ));
    const NAMES: [(&str, u8); 6] = [
        ("quot", b'"'),
        ("amp", b'&'),
        ("lt", b'<'),
        ("gt", b'>'),
        ("apos", b'\''),
        ("commat", b'@'),
    ];
    let first = *units.first()?;
    // Letters that show nothing: soft hyphen, of zero width, and the mark of an order of bytes.
    if matches!(first, 0xAD | 0x200B..=0x200D | 0x2060 | 0xFEFF) {
        return Some((None, 1));
    }
    // Told at once, because most backslashes and signs begin none.
    let second = *letters.get(1)?;
    let may_be_code = match first {
        0x1B => second == b'[',
        0x25 => second.is_ascii_hexdigit(),
        0x26 => b"#qalgc".contains(&second),
        0x5C => b"/@ux03e\\".contains(&second),
        _ => false,
    };
    if !may_be_code {
        return None;
    }
    let found = CODE.captures(&letters[..letters.len().min(MOST_LETTERS)])?;
    let length = found[0].len();
    let mut groups = found.iter().enumerate().skip(1);
    let Some((group, text)) = groups.find_map(|(group, part)| Some((group, part?.as_bytes()))) else {
        return Some((None, length));
    };
    let text = str::from_utf8(text).ok()?;
    let shown = match group {
        1..=3 => u16::from_str_radix(text, 16).ok()?,
        4 => text.parse().ok()?,
        5 => {
            let base = if text.starts_with('%') { 16 } else { 8 };
            let bytes = text.split(['%', '\\']).skip(1);
            let bytes: Option<_> = bytes.map(|byte| u8::from_str_radix(byte, base).ok()).collect();
            String::from_utf8(bytes?).ok()?.encode_utf16().next()?
        }
        6 | 7 => u16::from(text.as_bytes()[0]),
        _ => u16::from(NAMES.iter().find(|(name, _)| *name == text)?.1),
    };
    // What stands for no letter is no code. The `u` behind a backslash begins the next one.
    let is_letter = matches!(shown, 0x09 | 0x0A | 0x20..=0x7E | 0xA0..);
    is_letter.then_some((Some(shown), length - usize::from(group == 7)))
}
