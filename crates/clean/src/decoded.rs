//! Parts of a text as a reader of it sees them: without escapes, the codes of URLs, HTML and mails, colours of a terminal, and letters that show
//! nothing; and tables of HTML as lines of cells with tabs between them.

use std::{ops::Range, sync::LazyLock};

use memchr::{memchr3, memmem};
use regex::bytes::Regex;

use crate::{
    ranges::expression,
    text::{OTHER, Text, WHITE_SPACE, letter},
};

/// What stands around a code, in its line, is looked at with it.
const MOST_AROUND: usize = 512;
/// Codes within codes: `%2570` is `%70`, which is `p`.
const MOST_LAYERS: usize = 3;

/// Returns whether a text has a table or a list of HTML, whose elements are codes.
fn has_elements(text: &Text) -> bool {
    let has = |element: &[u8]| memmem::find(text.letters(), element).is_some();
    text.has_any(b"<") && (has(b"<td") || has(b"<dt"))
}

/// Decoded parts of a text, one a line, and where each unit comes from.
#[derive(Default)]
pub(super) struct Decoded {
    pub(super) units: Vec<u16>,
    places: Vec<Range<usize>>,
}

impl Decoded {
    /// Returns the lines of a text that have codes; `None` if there is none.
    pub(super) fn of(text: &Text) -> Option<Self> {
        let (units, letters) = (text.units(), text.letters());
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        let has_elements = has_elements(text);
        let is_plain = !has_elements && !text.has_any(&[0x1B, OTHER, WHITE_SPACE]);
        let next_of = |letters: &[u8]| match is_plain {
            true => memchr3(b'%', b'\\', b'&', letters),
            false => letters.iter().position(|letter| may_begin(*letter, has_elements)),
        };
        while let Some(next) = next_of(&letters[at..]) {
            at += next;
            let Some((_, length)) = code_at(&units[at..], has_elements) else {
                at += 1;
                continue;
            };
            let is_end = |unit: &u16| *unit == u16::from(b'\n');
            let last = parts.last().map_or(0, |part| part.end);
            let least = at.saturating_sub(MOST_AROUND).max(last.min(at));
            let start = units[least..at]
                .iter()
                .rposition(is_end)
                .map_or(least, |end| least + end + 1);
            let most = units.len().min(at + length + MOST_AROUND);
            let end = units[at + length..most]
                .iter()
                .position(is_end)
                .map_or(most, |end| at + length + end);
            match parts.last_mut() {
                Some(part) if start <= part.end => part.end = part.end.max(end),
                _ => parts.push(start..end),
            }
            at += length;
        }
        let mut decoded = Self::default();
        for part in parts {
            let mut own: Vec<(u16, Range<usize>)> = part.map(|at| (units[at], at..at + 1)).collect();
            for _ in 0..MOST_LAYERS {
                let Some(next) = once(&own, has_elements) else {
                    break;
                };
                own = next;
            }
            for (unit, place) in own {
                decoded.units.push(unit);
                decoded.places.push(place);
            }
            decoded.end_line();
        }
        (!decoded.units.is_empty()).then_some(decoded)
    }

    /// Adds a part of a text as it is.
    pub(super) fn push(&mut self, text: &Text, part: Range<usize>) {
        self.units.extend_from_slice(&text.units()[part.clone()]);
        self.places.extend(part.map(|at| at..at + 1));
    }

    pub(super) fn end_line(&mut self) {
        let end = self.places.last().map_or(0, |place| place.end);
        self.units.push(u16::from(b'\n'));
        self.places.push(end..end);
    }

    /// Returns the part of the text that a range of the decoded units comes from, if there is a code or a gap in it, or no more than so many units
    /// before it.
    pub(super) fn original(&self, range: &Range<usize>, most_before: usize) -> Option<Range<usize>> {
        let before = range.start.saturating_sub(most_before);
        let near = self
            .places
            .get(before..(range.end + usize::from(most_before > 0)).min(self.places.len()))?;
        let has_code = near
            .windows(2)
            .any(|pair| pair[0].len() > 1 || pair[0].end != pair[1].start);
        let (first, last) = (self.places.get(range.start)?, self.places.get(range.end - 1)?);
        has_code.then_some(first.start..last.end)
    }
}

/// Decodes the codes of a text once; `None` if there is none.
fn once(text: &[(u16, Range<usize>)], has_elements: bool) -> Option<Vec<(u16, Range<usize>)>> {
    let units: Vec<u16> = text.iter().map(|(unit, _)| *unit).collect();
    let mut next = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < units.len() {
        match code_at(&units[at..], has_elements) {
            Some((unit, length)) => {
                let place = text[at].1.start..text[at + length - 1].1.end;
                next.extend(unit.map(|unit| (unit, place)));
                at += length;
            }
            None => {
                next.push(text[at].clone());
                at += 1;
            }
        }
    }
    (next.len() < text.len()).then_some(next)
}

/// Returns whether codes begin with the letter. Letters that show nothing are white space or other ones.
fn may_begin(letter: u8, has_elements: bool) -> bool {
    matches!(letter, b'%' | b'\\' | b'&' | 0x1B | OTHER | WHITE_SPACE) || has_elements && letter == b'<'
}

/// Returns what the code at the beginning of a text stands for, which can be nothing, and its length.
fn code_at(units: &[u16], has_elements: bool) -> Option<(Option<u16>, usize)> {
    const MOST_LETTERS: usize = 24;
    const MOST_LETTERS_OF_ELEMENTS: usize = 320;
    // Hexadecimal and decimal numbers, signs behind a backslash, those of HTML, the colours of a terminal, and elements: each row is a line,
    // and a tab stands before each cell.
    static CODE: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r"^(?:(?:%|\\u00|\\x)(?P<hexadecimal>[2-7][0-9A-Fa-f])|&#[xX]0{0,4}(?P<html>[2-7][0-9A-Fa-f]);|&#0{0,4}(?P<decimal>\d{2,3});",
            r"|\\(?P<sign>/)|\\(?P<backslash>\\)u|&(?P<name>quot|amp|lt|gt|apos);|(?:\x1b|\\x1[bB]|\\u001[bB]|\\033|\\e)\[[\d;]{0,16}[A-Za-z]",
            r"|(?i:(?P<line>(?:</?t(?:r|head|body|foot)\b[^<>]{0,80}>\s{0,40}){1,5}(?:<t[dh]\b[^<>]{0,80}>\s{0,40})?|<dt\b[^<>]{0,80}>\s{0,40})",
            r"|(?P<tab><(?:t[dh]|dd)\b[^<>]{0,80}>\s{0,40})|</?(?:t[dh]|d[dlt])\b[^<>]{0,80}>\s{0,40}|</?(?:b|i|em|code|strong)>))"
        ))
    });
    const NAMES: [(&[u8], u8); 5] = [
        (b"quot", b'"'),
        (b"amp", b'&'),
        (b"lt", b'<'),
        (b"gt", b'>'),
        (b"apos", b'\''),
    ];
    let first = *units.first()?;
    // Letters that show nothing: soft hyphen, of zero width, and the mark of an order of bytes.
    if matches!(first, 0xAD | 0x200B..=0x200D | 0x2060 | 0xFEFF) {
        return Some((None, 1));
    }
    // Told at once, because most backslashes and signs begin none.
    let second = u8::try_from(*units.get(1)?).ok()?;
    let may_be_code = match first {
        0x1B => second == b'[',
        0x25 => second.is_ascii_hexdigit(),
        0x26 => b"#qalg".contains(&second),
        0x3C => has_elements,
        0x5C => b"/ux0e\\".contains(&second),
        _ => false,
    };
    if !may_be_code {
        return None;
    }
    let most = if first == 0x3C {
        MOST_LETTERS_OF_ELEMENTS
    } else {
        MOST_LETTERS
    };
    let letters: Vec<u8> = units.iter().take(most).map(|unit| letter(*unit)).collect();
    let found = CODE.captures(&letters)?;
    let group = |name| found.name(name).map(|part| part.as_bytes());
    let number = |digits: &[u8], base| u8::from_str_radix(std::str::from_utf8(digits).ok()?, base).ok();
    let named = |name: &[u8]| {
        NAMES
            .iter()
            .find(|(each, _)| *each == name)
            .map(|(_, sign)| *sign)
    };
    let hexadecimal = || number(group("hexadecimal").or(group("html"))?, 16);
    let decimal = || number(group("decimal")?, 10);
    let sign = || group("sign").or(group("backslash"))?.first().copied();
    let of_table = || group("tab").map(|_| b'\t').or(group("line").map(|_| b'\n'));
    let shown = hexadecimal()
        .or_else(decimal)
        .or_else(sign)
        .or_else(of_table)
        .or_else(|| named(group("name")?));
    // A number that stands for no letter is no code; a colour stands for nothing.
    let is_code = shown.map_or(group("decimal").is_none(), |shown| {
        matches!(shown, b'\t' | b'\n' | 0x20..=0x7E)
    });
    let length = found[0].len() - usize::from(group("backslash").is_some());
    is_code.then_some((shown.map(u16::from), length))
}
