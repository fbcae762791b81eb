//! Reads JSON.

use crate::{
    Object, Text, Value,
    text::{encoded, push_wtf8},
};

/// The deepest nesting of lists and objects.
pub const MAX_DEPTH: usize = 1_000;

/// A syntax error of JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at}")]
pub struct ParseError {
    /// The problem.
    pub reason: &'static str,
    /// The position, in bytes from the beginning.
    pub at: usize,
}

/// Whether the problem is nesting deeper than [`MAX_DEPTH`].
pub(crate) const TOO_DEEP: &str = "it is nested too deeply";

impl ParseError {
    /// Returns whether the problem is nesting deeper than [`MAX_DEPTH`].
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        self.reason == TOO_DEEP
    }
}

/// Parses bytes of UTF-8 as `JSON.parse` does.
///
/// # Errors
/// If it is not JSON, not UTF-8, or nested more deeply than [`MAX_DEPTH`].
pub fn parse(bytes: &[u8]) -> Result<Value, ParseError> {
    let text = std::str::from_utf8(bytes).map_err(|error| ParseError {
        reason: "no UTF-8",
        at: error.valid_up_to(),
    })?;
    parse_str(text)
}

/// Parses text as `JSON.parse` does.
///
/// # Errors
/// If it is not JSON, or nested more deeply than [`MAX_DEPTH`].
pub fn parse_str(text: &str) -> Result<Value, ParseError> {
    let mut parser = Parser {
        text,
        bytes: text.as_bytes(),
        at: 0,
    };
    let value = parser.value(0)?;
    match parser.skip_blank() {
        None => Ok(value),
        Some(_) => Err(parser.wrong("more after the value")),
    }
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn wrong(&self, reason: &'static str) -> ParseError {
        ParseError { reason, at: self.at }
    }

    /// Returns the error for an unexpected byte.
    fn expected(&self, reason: &'static str) -> ParseError {
        self.wrong(if self.at == self.bytes.len() {
            "cut off"
        } else {
            reason
        })
    }

    /// Returns what is wrong where a value should begin. Python and JavaScript write numbers that JSON does not have.
    fn no_value(&self) -> &'static str {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(b"NaN") {
            "NaN, which JSON does not have,"
        } else if rest.starts_with(b"Infinity") {
            "Infinity, which JSON does not have,"
        } else {
            "no value"
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips white space; returns the byte after it.
    fn skip_blank(&mut self) -> Option<u8> {
        while let Some(byte) = self.peek() {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    fn value(&mut self, depth: usize) -> Result<Value, ParseError> {
        match self.skip_blank() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.expected(self.no_value())),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, ParseError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.wrong("no value"));
        }
        self.at += word.len();
        Ok(value)
    }

    /// Enters a list or an object; returns whether it is empty.
    fn open(&mut self, depth: usize, close: u8) -> Result<bool, ParseError> {
        if depth > MAX_DEPTH {
            return Err(self.wrong(TOO_DEEP));
        }
        self.at += 1;
        let is_over = self.skip_blank() == Some(close);
        self.at += usize::from(is_over);
        Ok(is_over)
    }

    /// Skips the separator after an element; returns whether the list or object has ended.
    fn separator(&mut self, close: u8, reason: &'static str) -> Result<bool, ParseError> {
        let byte = self.skip_blank();
        if byte != Some(b',') && byte != Some(close) {
            return Err(self.expected(reason));
        }
        self.at += 1;
        Ok(byte == Some(close))
    }

    fn array(&mut self, depth: usize) -> Result<Value, ParseError> {
        let mut elements = Vec::new();
        let mut is_over = self.open(depth, b']')?;
        while !is_over {
            elements.push(self.value(depth)?);
            is_over = self.separator(b']', "no comma or bracket after an element")?;
        }
        Ok(Value::Array(elements))
    }

    fn object(&mut self, depth: usize) -> Result<Value, ParseError> {
        let mut object = Object::new();
        let mut is_over = self.open(depth, b'}')?;
        while !is_over {
            if self.skip_blank() != Some(b'"') {
                return Err(self.expected("no name of a field"));
            }
            let name = self.string()?;
            if self.skip_blank() != Some(b':') {
                return Err(self.expected("no colon after the name of a field"));
            }
            self.at += 1;
            object.collect_field(name, self.value(depth)?);
            is_over = self.separator(b'}', "no comma or bracket after a field")?;
        }
        Ok(Value::Object(object.collected()))
    }

    fn digits(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err(self.expected("no digit"))
        }
    }

    fn number(&mut self) -> Result<Value, ParseError> {
        /// Integers of fewer characters are exact as doubles.
        const EXACT_LENGTH: usize = 16;
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        let written = &self.text[start..self.at];
        let number = written.parse().map_err(|_| self.wrong("no number"))?;
        let is_long = written.len() >= EXACT_LENGTH && !written.contains(['.', 'e', 'E']);
        if is_long && written != crate::number(number) {
            return Ok(Value::Digits(written.into()));
        }
        Ok(Value::Number(number))
    }

    /// Reads the part of a string without escapes; returns it and the byte after it.
    fn plain(&mut self) -> Result<(&'a str, u8), ParseError> {
        let start = self.at;
        let Some(length) = first_special(&self.bytes[start..]) else {
            self.at = self.bytes.len();
            return Err(self.wrong("cut off"));
        };
        self.at += length;
        Ok((&self.text[start..self.at], self.bytes[self.at]))
    }

    fn string(&mut self) -> Result<Text, ParseError> {
        self.at += 1;
        let (first, end) = self.plain()?;
        if end == b'"' {
            self.at += 1;
            return Ok(first.into());
        }
        let mut bytes = first.as_bytes().to_vec();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Text::from_wtf8(bytes));
                }
                Some(b'\\') => self.escape(&mut bytes)?,
                _ => return Err(self.wrong("a control character in a string")),
            }
            bytes.extend_from_slice(self.plain()?.0.as_bytes());
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), ParseError> {
        self.at += 1;
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unit(bytes),
            _ => return Err(self.expected("no such escape in a string")),
        };
        self.at += 1;
        bytes.push(byte);
        Ok(())
    }

    /// Reads the four digits of a code unit.
    fn unit(&mut self, bytes: &mut Vec<u8>) -> Result<(), ParseError> {
        let mut unit = 0;
        for _ in 0..4 {
            self.at += 1;
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.expected("no hexadecimal digit in an escape"));
            };
            unit = unit << 4 | digit;
        }
        self.at += 1;
        match char::from_u32(unit) {
            Some(character) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            // The second half of a pair may complete the first. Four digits fit.
            None => push_wtf8(bytes, &encoded(unit as u16)),
        }
        Ok(())
    }
}

/// Returns the position of the first byte that ends or escapes a string.
pub(crate) fn first_special(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let special = specials_of(u64::from_le_bytes(*word));
        if special != 0 {
            return Some(at * 8 + special.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|&byte| is_special(byte))?;
    Some(words.len() * 8 + at)
}

/// Returns whether a byte cannot appear in a string unescaped.
pub(crate) fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns the high bits of the bytes that cannot appear in a string unescaped. Bits above the lowest may be false.
fn specials_of(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word;
    let quotes = zeros(word ^ (ONES * u64::from(b'"')));
    let backslashes = zeros(word ^ (ONES * u64::from(b'\\')));
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    (quotes | backslashes | controls) & (ONES * 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_doubles_keep_their_digits() {
        for (text, kept) in [
            ("9007199254740993", true),
            ("-12345678901234567890", true),
            ("9007199254740992", false),
            ("123456789012345", false),
            ("1e300", false),
        ] {
            let value = parse_str(text).unwrap();
            assert_eq!(matches!(value, Value::Digits(_)), kept, "{text}");
            assert!(value.as_number().is_some(), "{text}");
            if kept {
                assert_eq!(value.to_json(), text);
            }
        }
    }

    #[test]
    fn errors_say_what_is_wrong_and_where() {
        for (text, wrong) in [
            ("", "cut off at byte 0"),
            ("{\"a\":1,}", "no name of a field at byte 7"),
            ("{\"a\" 1}", "no colon after the name of a field at byte 5"),
            ("{\"a\":1 \"b\"}", "no comma or bracket after a field at byte 7"),
            ("[1 2]", "no comma or bracket after an element at byte 3"),
            ("[1,]", "no value at byte 3"),
            ("{\"a\":NaN}", "NaN, which JSON does not have, at byte 5"),
            ("[Infinity]", "Infinity, which JSON does not have, at byte 1"),
            ("nul", "no value at byte 0"),
            ("01", "more after the value at byte 1"),
            ("-", "cut off at byte 1"),
            ("1.x", "no digit at byte 2"),
            ("\"a\nb\"", "a control character in a string at byte 2"),
            ("\"abc", "cut off at byte 4"),
            ("\"\\x\"", "no such escape in a string at byte 2"),
            ("\"\\u12g4\"", "no hexadecimal digit in an escape at byte 5"),
            ("{} {}", "more after the value at byte 3"),
        ] {
            assert_eq!(parse_str(text).unwrap_err().to_string(), wrong, "{text}");
        }
        assert_eq!(parse(b"\"\xff\"").unwrap_err().to_string(), "no UTF-8 at byte 1");
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse_str(&nested(MAX_DEPTH)).is_ok());
        assert!(parse_str(&nested(MAX_DEPTH + 1)).unwrap_err().is_too_deep());
        assert!(parse_str(&"{\"a\":".repeat(1_000_000)).unwrap_err().is_too_deep());
    }

    #[test]
    fn halves_of_pairs_join_and_lone_ones_stay() {
        let text = |json| parse_str(json).unwrap().as_text().unwrap().clone();
        assert_eq!(text(r#""\ud83d\ude00""#), "😀");
        assert_eq!(text(r#""\ude00\ud83d""#), Text::from_units(&[0xde00, 0xd83d]));
        assert_eq!(text(r#""a\ud800b""#), Text::from_units(&[0x61, 0xd800, 0x62]));
    }
}
