//! Writes JSON as `JSON.stringify` does.

use crate::{
    Object, Text, Value,
    parse::{first_special, is_special},
};

impl Value {
    /// Appends the value as `JSON.stringify` writes it.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Number(number) if !number.is_finite() => out.extend_from_slice(b"null"),
            Self::Number(number) => {
                out.extend_from_slice(ryu_js::Buffer::new().format_finite(*number).as_bytes());
            }
            Self::Digits(digits) => out.extend_from_slice(digits.as_bytes()),
            Self::String(text) => write_string(text, out),
            Self::Array(elements) => {
                out.push(b'[');
                for (at, element) in elements.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    element.write(out);
                }
                out.push(b']');
            }
            Self::Object(object) => object.write(out),
        }
    }

    /// Returns the value as `JSON.stringify` writes it.
    #[must_use]
    pub fn to_json(&self) -> String {
        written(|json| self.write(json))
    }
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut json = Vec::new();
    write(&mut json);
    // Lone surrogates are escaped, so that all of it is UTF-8.
    String::from_utf8(json).unwrap_or_default()
}

impl Object {
    /// Returns the object as `JSON.stringify` writes it.
    #[must_use]
    pub fn to_json(&self) -> String {
        written(|json| self.write(json))
    }

    /// Appends the object as `JSON.stringify` writes it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (at, (name, value)) in self.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_string(name, out);
            out.push(b':');
            value.write(out);
        }
        out.push(b'}');
    }
}

/// Appends a string in quotes, with the escapes of `JSON.stringify`.
pub fn write_string(text: &Text, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    let is_utf8 = text.as_str().is_some();
    while let Some((at, size)) = first_escaped(rest, is_utf8) {
        let (plain, after) = rest.split_at(at);
        let (character, after) = after.split_at(size);
        out.extend_from_slice(plain);
        write_escape(character, out);
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Returns the position of the first character that must be escaped, and its size in bytes.
fn first_escaped(bytes: &[u8], is_utf8: bool) -> Option<(usize, usize)> {
    if is_utf8 {
        return first_special(bytes).map(|at| (at, 1));
    }
    bytes.iter().enumerate().find_map(|(at, &byte)| match byte {
        0xed if bytes.get(at + 1).is_some_and(|&byte| byte >= 0xa0) => Some((at, 3)),
        _ => is_special(byte).then_some((at, 1)),
    })
}

/// Appends the escape of a character or of a lone surrogate.
fn write_escape(character: &[u8], out: &mut Vec<u8>) {
    let unit = match *character {
        [byte @ (b'"' | b'\\')] => return out.extend_from_slice(&[b'\\', byte]),
        [0x08] => return out.extend_from_slice(b"\\b"),
        [b'\t'] => return out.extend_from_slice(b"\\t"),
        [b'\n'] => return out.extend_from_slice(b"\\n"),
        [0x0c] => return out.extend_from_slice(b"\\f"),
        [b'\r'] => return out.extend_from_slice(b"\\r"),
        [byte] => u16::from(byte),
        [_, b, c] => 0xd000 | u16::from(b & 0x3f) << 6 | u16::from(c & 0x3f),
        _ => return,
    };
    out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
}

#[cfg(test)]
mod tests {
    use crate::parse_str;

    #[test]
    fn values_are_written_as_javascript_writes_them() {
        for (json, written) in [
            (r#"{"b":1.0,"2":[],"1":-0,"b":{}}"#, r#"{"1":0,"2":[],"b":{}}"#),
            ("[1e400,-1e400,9007199254740993]", "[null,null,9007199254740993]"),
            (
                "[1e21,123456789012345680000,1e-7,0.000001]",
                "[1e+21,123456789012345680000,1e-7,0.000001]",
            ),
            (
                r#""\u0000\u001F\b\f\n\r\t\"\\\/\u007f\u2028é""#,
                "\"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\/\u{7f}\u{2028}é\"",
            ),
            (
                r#""\uD83D \uDE00\uD83D\uDE00 ퟿""#,
                "\"\\ud83d \\ude00😀 \u{d7ff}\"",
            ),
        ] {
            assert_eq!(parse_str(json).unwrap().to_json(), written);
        }
    }
}
