//! Writes JSON as `JSON.stringify` does.

use crate::{Object, Value};

impl Value {
    fn write(&self, out: &mut Vec<u8>) {
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
    String::from_utf8(json).unwrap_or_default()
}

impl Object {
    /// Returns the object as `JSON.stringify` writes it.
    #[must_use]
    pub fn to_json(&self) -> String {
        written(|json| self.write(json))
    }

    fn write(&self, out: &mut Vec<u8>) {
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
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use crate::parse_str;

    #[test]
    fn values_are_written_as_javascript_writes_them() {
        for (json, written) in [
            (r#"{"b":1.0,"2":[],"1":-0,"b":{}}"#, r#"{"b":{},"2":[],"1":0}"#),
            ("[9007199254740993,-0.0]", "[9007199254740993,0]"),
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
                "\"\u{fffd} \u{fffd}😀 \u{d7ff}\"",
            ),
        ] {
            assert_eq!(parse_str(json).unwrap().to_json(), written);
        }
    }
}
