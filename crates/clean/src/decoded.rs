//! Parts of a text as a reader of it sees them: without escapes, the codes of URLs and HTML, colours of a terminal, and letters that show nothing.

use std::ops::Range;

use memchr::memchr3;

use crate::text::{OTHER, Text, WHITE_SPACE};

/// What stands around a code, in its line, is looked at with it.
const MOST_AROUND: usize = 512;
/// Codes within codes: `%2570` is `%70`, which is `p`.
const MOST_LAYERS: usize = 3;

/// Decoded parts of a text, one a line, and where each unit comes from.
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
        let is_plain = !text.has_any(&[0x1B, OTHER, WHITE_SPACE]);
        let next_of = |letters: &[u8]| match is_plain {
            true => memchr3(b'%', b'\\', b'&', letters),
            false => letters.iter().position(|letter| may_begin(*letter)),
        };
        while let Some(next) = next_of(&letters[at..]) {
            at += next;
            let Some((_, length)) = code_at(&units[at..]) else {
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
        let mut decoded = Self {
            units: Vec::new(),
            places: Vec::new(),
        };
        for part in parts {
            let mut own: Vec<(u16, Range<usize>)> = part.map(|at| (units[at], at..at + 1)).collect();
            for _ in 0..MOST_LAYERS {
                let Some(next) = once(&own) else { break };
                own = next;
            }
            for (unit, place) in own {
                decoded.units.push(unit);
                decoded.places.push(place);
            }
            let end = decoded.places.last().map_or(0, |place| place.end);
            decoded.units.push(u16::from(b'\n'));
            decoded.places.push(end..end);
        }
        (!decoded.units.is_empty()).then_some(decoded)
    }

    /// Returns the part of the text that a range of the decoded units comes from, if there is a code in it or just before it.
    pub(super) fn original(&self, range: &Range<usize>) -> Option<Range<usize>> {
        const MOST_BEFORE: usize = 64;
        let before = range.start.saturating_sub(MOST_BEFORE);
        let near = self.places.get(before..(range.end + 1).min(self.places.len()))?;
        let has_code = near
            .windows(2)
            .any(|pair| pair[0].len() > 1 || pair[0].end != pair[1].start);
        let (first, last) = (self.places.get(range.start)?, self.places.get(range.end - 1)?);
        has_code.then_some(first.start..last.end)
    }
}

/// Decodes the codes of a text once; `None` if there is none.
fn once(text: &[(u16, Range<usize>)]) -> Option<Vec<(u16, Range<usize>)>> {
    let units: Vec<u16> = text.iter().map(|(unit, _)| *unit).collect();
    let mut next = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < units.len() {
        match code_at(&units[at..]) {
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
fn may_begin(letter: u8) -> bool {
    matches!(letter, b'%' | b'\\' | b'&' | 0x1B | OTHER | WHITE_SPACE)
}

/// Returns what the code at the beginning of a text stands for, which can be nothing, and its length.
fn code_at(units: &[u16]) -> Option<(Option<u16>, usize)> {
    const MOST_LETTERS: usize = 24;
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
        0x5C => b"/ux0e\\".contains(&second),
        _ => false,
    };
    if !may_be_code {
        return None;
    }
    let mut letters = [OTHER; MOST_LETTERS];
    for (letter, unit) in letters.iter_mut().zip(units) {
        *letter = u8::try_from(*unit).unwrap_or(OTHER);
    }
    let letters = &letters[..units.len().min(MOST_LETTERS)];
    let shown = |number: Option<u32>, length: usize| {
        let unit = u16::try_from(number?).ok()?;
        matches!(unit, 0x1B | 0x20..=0x7E).then_some((Some(unit), length))
    };
    let hexadecimal = |digits: &[u8]| {
        let text = std::str::from_utf8(digits).ok()?;
        digits
            .iter()
            .all(u8::is_ascii_hexdigit)
            .then(|| u32::from_str_radix(text, 16).ok())
            .flatten()
    };
    match letters {
        [b'%', a, b, ..] => shown(hexadecimal(&[*a, *b]).filter(|code| *code != 0x1B), 3),
        [0x1B, b'[', ..] => colour(letters, 2),
        [b'\\', b'/', ..] => Some((Some(u16::from(b'/')), 2)),
        [b'\\', b'u', a, b, c, d, ..] => shown(hexadecimal(&[*a, *b, *c, *d]), 6),
        [b'\\', b'x', b'1', b'b' | b'B', b'[', ..] => colour(letters, 5),
        [b'\\', b'x', a, b, ..] => shown(hexadecimal(&[*a, *b]), 4),
        [b'\\', b'0', b'3', b'3', b'[', ..] => colour(letters, 5),
        [b'\\', b'e', b'[', ..] => colour(letters, 3),
        [b'\\', b'\\', b'u', ..] => Some((Some(u16::from(b'\\')), 2)),
        [b'&', b'#', ..] => {
            let end = letters.iter().position(|letter| *letter == b';')?;
            let number = match &letters[2..end] {
                [b'x' | b'X', digits @ ..] => hexadecimal(digits),
                digits => std::str::from_utf8(digits).ok()?.parse().ok(),
            };
            shown(number, end + 1)
        }
        [b'&', ..] => {
            const NAMED: [(&[u8], u8); 5] = [
                (b"&quot;", b'"'),
                (b"&amp;", b'&'),
                (b"&lt;", b'<'),
                (b"&gt;", b'>'),
                (b"&apos;", b'\''),
            ];
            let (name, letter) = NAMED.iter().find(|(name, _)| letters.starts_with(name))?;
            Some((Some(u16::from(*letter)), name.len()))
        }
        _ => None,
    }
}

/// Returns the length of the code of a colour, whose numbers begin at `start`.
fn colour(letters: &[u8], start: usize) -> Option<(Option<u16>, usize)> {
    let numbers = letters[start..]
        .iter()
        .take_while(|letter| letter.is_ascii_digit() || **letter == b';');
    let end = start + numbers.count();
    letters
        .get(end)
        .is_some_and(u8::is_ascii_alphabetic)
        .then_some((None, end + 1))
}
