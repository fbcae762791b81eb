//! Writes computed values into the text of a trace, and keeps every other byte: numbers that JavaScript would round or write
//! in another way, the order of keys, spaces and escapes.

use std::{collections::HashMap, ops::Range};

use knowledgepulse_json::{Object, Text, Value, parse_str, write_string};

/// Returns the text of a JSON object on one line, with values of its `metadata` set: replaced where they are, otherwise added at its
/// end. Of a value that is `None`, every member of that name is removed, with one comma. `text` is valid JSON with an object as
/// `metadata`; other text is returned as it is, on one line.
#[must_use]
pub fn set_metadata(text: &str, values: &[(&str, Option<Value>)]) -> String {
    let Some((start, members)) = metadata_of(text) else {
        return on_one_line(text);
    };
    let given = |member: &Member| values.iter().find(|(name, _)| member.is_named(name));
    let first = members.first().map_or(start, |member| member.name_start);
    let (mut result, mut separator, mut end) = (text[..first].to_owned(), "", start);
    for (at, member) in members.iter().enumerate() {
        let before = &text[end..member.name_start];
        end = member.value.end;
        let value = match given(member) {
            Some((_, None)) => continue,
            // Of members of the same name the last one counts, as for JSON.parse.
            Some((name, value)) if !members[at + 1..].iter().any(|later| later.is_named(name)) => value,
            _ => &None,
        };
        // The first member that stays has no comma before it.
        result.push_str(if separator.is_empty() { "" } else { before });
        separator = ",";
        result.push_str(&text[member.name_start..member.value.start]);
        match value {
            Some(value) => result.push_str(&value.to_json()),
            None => result.push_str(&text[member.value.clone()]),
        }
    }
    for (name, value) in values {
        if let Some(value) = value
            && !members.iter().any(|member| member.is_named(name))
        {
            result.push_str(&format!("{separator}\"{name}\":{}", value.to_json()));
            separator = ",";
        }
    }
    result.push_str(&text[end..]);
    on_one_line(&result)
}

/// The text of a JSON value with some strings replaced, and for each of them its old position, by its path of child indexes.
pub struct Replaced {
    /// The text with the new strings.
    pub text: String,
    /// The old positions in bytes, by path.
    pub places: HashMap<Vec<usize>, usize>,
}

/// Returns the text of a JSON value with the strings of another one of the same shape, where these differ; names too. `None` where the two
/// cannot be laid beside each other, because an object has a name twice.
#[must_use]
pub fn replace_strings(text: &str, old: &Value, new: &Value) -> Option<Replaced> {
    let mut strings = Strings {
        scanner: Scanner::of(text, 0),
        result: Vec::with_capacity(text.len()),
        copied: 0,
        path: Vec::new(),
        places: HashMap::new(),
    };
    strings.value(old, new)?;
    strings
        .result
        .extend_from_slice(text.get(strings.copied..)?.as_bytes());
    Some(Replaced {
        text: String::from_utf8(strings.result).ok()?,
        places: strings.places,
    })
}

struct Strings<'t> {
    scanner: Scanner<'t>,
    result: Vec<u8>,
    /// So much of the text is in the result.
    copied: usize,
    path: Vec<usize>,
    places: HashMap<Vec<usize>, usize>,
}

impl Strings<'_> {
    fn value(&mut self, old: &Value, new: &Value) -> Option<()> {
        self.scanner.skip_blank()?;
        match (old, new) {
            (Value::Object(old), Value::Object(new)) if old.len() == new.len() => self.object(old, new),
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
                self.scanner.at += 1;
                for (at, (old, new)) in old.iter().zip(new).enumerate() {
                    self.path.push(at);
                    self.value(old, new)?;
                    self.path.pop();
                    self.scanner.skip_to(b",]")?;
                }
                // Of an empty array the closing bracket is still there.
                if old.is_empty() {
                    self.scanner.skip_to(b"]")?;
                }
                Some(())
            }
            _ => {
                let start = self.scanner.at;
                self.scanner.skip_value();
                match new {
                    Value::String(new) if !matches!(old, Value::String(old) if old == new) => {
                        self.put(start, new)
                    }
                    _ => Some(()),
                }
            }
        }
    }

    fn object(&mut self, old: &Object, new: &Object) -> Option<()> {
        // The order of an object's members is not always that of its text.
        let members: HashMap<_, _> = old
            .iter()
            .zip(new.iter())
            .enumerate()
            .map(|(at, (old, new))| (old.0, (at, old.1, new)))
            .collect();
        self.scanner.at += 1;
        for _ in 0..members.len() {
            self.scanner.skip_blank()?;
            let start = self.scanner.at;
            self.scanner.skip_string();
            let name = parse_str(self.scanner.text.get(start..self.scanner.at)?).ok()?;
            let name = name.as_text()?;
            let &(at, old, (new_name, new)) = members.get(name)?;
            self.path.push(at);
            if new_name != name {
                self.put(start, new_name)?;
            }
            self.scanner.skip_to(b":")?;
            self.value(old, new)?;
            self.path.pop();
            self.scanner.skip_to(b",}")?;
        }
        if members.is_empty() {
            self.scanner.skip_to(b"}")?;
        }
        // A name that stands twice leaves members over.
        (self.scanner.text.as_bytes().get(self.scanner.at - 1) == Some(&b'}')).then_some(())
    }

    /// Replaces the string from `start` to here by another one, of which the parts beside its markers keep their escapes.
    fn put(&mut self, start: usize, new: &Text) -> Option<()> {
        let text = self.scanner.text;
        let old = text.get(start..self.scanner.at)?;
        self.result
            .extend_from_slice(text.as_bytes().get(self.copied..start)?);
        match with_old_escapes(old, new) {
            Some(literal) => self.result.extend_from_slice(literal.as_bytes()),
            None => write_string(new, &mut self.result),
        }
        self.copied = self.scanner.at;
        self.places.entry(self.path.clone()).or_insert(start);
        Some(())
    }
}

/// Returns a new string as JSON whose parts between markers are those of an old literal, escapes included. `None` if the old one is no
/// string, has escapes of half characters, or has no such parts.
fn with_old_escapes(old: &str, new: &str) -> Option<String> {
    let inner = old.strip_prefix('"')?.strip_suffix('"')?;
    let value = parse_str(old).ok()?;
    let value = value.as_str()?;
    // For each byte of the value, where it is in the literal.
    let mut places = Vec::with_capacity(value.len() + 1);
    let (mut at, mut letters) = (0, value.chars());
    while at < inner.len() {
        let letter = letters.next()?;
        places.extend(std::iter::repeat_n(at, letter.len_utf8()));
        at += match inner.as_bytes().get(at..at + 2) {
            Some(b"\\u") => 6 * letter.len_utf16(),
            Some([b'\\', _]) => 2,
            _ => letter.len_utf8(),
        };
    }
    places.push(inner.len());
    let mut literal = String::from("\"");
    let (mut rest, mut from) = (new, 0);
    loop {
        let marker = marker_in(rest);
        let part = &rest[..marker.as_ref().map_or(rest.len(), |marker| marker.start)];
        let found = match marker {
            // What is behind the last marker ends the string.
            None => value
                .len()
                .checked_sub(part.len())
                .filter(|at| *at >= from && value.ends_with(part))?,
            Some(_) => from + value.get(from..)?.find(part)?,
        };
        literal.push_str(inner.get(*places.get(found)?..*places.get(found + part.len())?)?);
        from = found + part.len();
        let Some(marker) = marker else {
            literal.push('"');
            return Some(literal);
        };
        literal.push_str(&rest[marker.clone()]);
        rest = &rest[marker.end..];
    }
}

/// Returns the place of the first marker in a text.
fn marker_in(text: &str) -> Option<Range<usize>> {
    let starts = ["[REDACTED:", "[user-", "[host-"];
    let start = starts.iter().filter_map(|start| text.find(start)).min()?;
    let end = start + text[start..].find(']')? + 1;
    Some(start..end)
}

/// A member of an object.
struct Member<'t> {
    /// Its name in JSON, with the quotes.
    name: &'t str,
    name_start: usize,
    value: Range<usize>,
}

impl Member<'_> {
    fn is_named(&self, name: &str) -> bool {
        let inner = self.name.trim_matches('"');
        // Few names have escapes.
        inner == name
            || inner.contains('\\') && parse_str(self.name).is_ok_and(|value| value.as_str() == Some(name))
    }
}

/// Returns where the members of `metadata` may begin, and the members.
fn metadata_of(text: &str) -> Option<(usize, Vec<Member<'_>>)> {
    let trace = Scanner::of(text, 0).members()?;
    let metadata = trace.iter().rev().find(|member| member.is_named("metadata"))?;
    let start = metadata.value.start;
    Some((start + 1, Scanner::of(text, start).members()?))
}

/// Returns JSON without line ends and the indentation after them; no string of valid JSON holds a line end.
fn on_one_line(json: &str) -> String {
    let mut lines = json.split(['\r', '\n']);
    let mut line = lines.next().unwrap_or_default().to_owned();
    for rest in lines {
        line.push_str(rest.trim_start_matches([' ', '\t']));
    }
    line
}

/// Finds the members of an object in valid JSON.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    fn of(text: &'t str, at: usize) -> Self {
        Self { text, at }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blank(&mut self) -> Option<u8> {
        while matches!(self.byte()?, b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
        self.byte()
    }

    /// Skips white space and one of these signs; `None` if another sign is next.
    fn skip_to(&mut self, signs: &[u8]) -> Option<()> {
        let byte = self.skip_blank()?;
        self.at += 1;
        signs.contains(&byte).then_some(())
    }

    /// Returns the members of the object that begins here; `None` where none does.
    fn members(mut self) -> Option<Vec<Member<'t>>> {
        let mut members = Vec::new();
        if self.skip_blank()? != b'{' {
            return None;
        }
        self.at += 1;
        loop {
            match self.skip_blank()? {
                b'}' => return Some(members),
                b',' => self.at += 1,
                _ => {
                    let name_start = self.at;
                    self.skip_string();
                    let name = self.text.get(name_start..self.at)?;
                    self.skip_blank()?;
                    // The colon.
                    self.at += 1;
                    self.skip_blank()?;
                    let start = self.at;
                    self.skip_value();
                    members.push(Member {
                        name,
                        name_start,
                        value: start..self.at,
                    });
                }
            }
        }
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.byte() {
            self.at += 1;
            match byte {
                b'"' => return,
                b'\\' => self.at += 1,
                _ => {}
            }
        }
    }

    /// Skips a value. Without recursion: a trace may be nested more deeply than the stack is.
    fn skip_value(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.byte() {
            match byte {
                b'"' => self.skip_string(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth == 0 => return,
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn score() -> (&'static str, Option<Value>) {
        ("quality_score", Some(0.8125.into()))
    }

    #[test]
    fn set_metadata_replaces_or_adds_a_value_and_nothing_else() {
        for (before, after) in [
            (
                r#"{"metadata": {"quality_score": 0, "x": 1}}"#,
                r#"{"metadata": {"quality_score": 0.8125, "x": 1}}"#,
            ),
            (
                r#"{"metadata":{"quality_score":{"a":[1,"}"]}}}"#,
                r#"{"metadata":{"quality_score":0.8125}}"#,
            ),
            (
                r#"{"metadata":{"x": "}" }, "y":1}"#,
                r#"{"metadata":{"x": "}","quality_score":0.8125 }, "y":1}"#,
            ),
            (
                r#"{"metadata": { } }"#,
                r#"{"metadata": {"quality_score":0.8125 } }"#,
            ),
            (
                r#"{"quality_score":1,"a":{"metadata":{"quality_score":2}},"metadata":{"b":{"quality_score":3}}}"#,
                r#"{"quality_score":1,"a":{"metadata":{"quality_score":2}},"metadata":{"b":{"quality_score":3},"quality_score":0.8125}}"#,
            ),
            (
                r#"{"m\u0065tadata":{"quality\u005fscore":0}}"#,
                r#"{"m\u0065tadata":{"quality\u005fscore":0.8125}}"#,
            ),
            (
                r#"{"metadata":{"quality_score":1},"metadata":{"quality_score":2,"quality_score":3}}"#,
                r#"{"metadata":{"quality_score":1},"metadata":{"quality_score":2,"quality_score":0.8125}}"#,
            ),
            (
                r#"{"a":1.0,"b":12345678901234567890,"c":1E+2,"metadata":{"d":-0.0}}"#,
                r#"{"a":1.0,"b":12345678901234567890,"c":1E+2,"metadata":{"d":-0.0,"quality_score":0.8125}}"#,
            ),
            (
                "{\r\n  \"metadata\": {\r\n\t\"x\": \"a\\nb\"\r\n  }\r\n}",
                r#"{"metadata": {"x": "a\nb","quality_score":0.8125}}"#,
            ),
        ] {
            assert_eq!(set_metadata(before, &[score()]), after);
        }
    }

    #[test]
    fn set_metadata_keeps_the_order_of_several_values() {
        let values = [("a", Some(1.0.into())), score(), ("b", Some("c".into()))];
        assert_eq!(
            set_metadata(r#"{"metadata":{"quality_score":0}}"#, &values),
            r#"{"metadata":{"quality_score":0.8125,"a":1,"b":"c"}}"#
        );
    }

    #[test]
    fn set_metadata_removes_a_member_with_one_comma() {
        for (before, after) in [
            (
                r#"{"x":1.0 , "old": {"a":[1,"}"]} }"#,
                r#"{"x":1.0,"quality_score":0.8125 }"#,
            ),
            (r#"{ "old":1 , "x":1}"#, r#"{ "x":1,"quality_score":0.8125}"#),
            (
                r#"{"x":1, "old":1 , "y":2}"#,
                r#"{"x":1 , "y":2,"quality_score":0.8125}"#,
            ),
            (r#"{"quality_score":0,"old":1}"#, r#"{"quality_score":0.8125}"#),
            (r#"{"old":1,"quality_score":0}"#, r#"{"quality_score":0.8125}"#),
            (
                r#"{"old":1,"x":2,"old":3,"\u006fld":4}"#,
                r#"{"x":2,"quality_score":0.8125}"#,
            ),
            (r#"{ "old":1,"old":2 }"#, r#"{ "quality_score":0.8125 }"#),
            (r#"{"older":1}"#, r#"{"older":1,"quality_score":0.8125}"#),
        ] {
            let text = |metadata| format!(r#"{{"old":0,"metadata":{metadata},"y":{{"old":1}}}}"#);
            assert_eq!(
                set_metadata(&text(before), &[score(), ("old", None)]),
                text(after)
            );
        }
    }

    #[test]
    fn set_metadata_takes_a_trace_that_is_nested_deeply() {
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        let text = |score| format!(r#"{{"input":{deep},"metadata":{{"quality_score":{score}}}}}"#);
        assert_eq!(set_metadata(&text("0"), &[score()]), text("0.8125"));
    }

    proptest! {
        #[test]
        fn set_metadata_writes_json_that_reads_as_before_but_for_the_values(
            members in proptest::collection::vec(("[ \n]{0,2}", "old|a|quality_score", "[ \n]{0,2}", "0|\"\\}\"|\\[1,\\{\\}\\]|null"), 0..6),
            blank in "[ \n]{0,2}",
        ) {
            let inner = members.iter().map(|(a, name, b, value)| format!("{a}\"{name}\"{b}:{value}{b}"));
            let inner = inner.collect::<Vec<_>>().join(",");
            let written = set_metadata(&format!("{{\"metadata\":{{{inner}{blank}}}}}"), &[score(), ("old", None)]);
            let mut expected = parse_str(&format!("{{{inner}}}")).unwrap().as_object().cloned().unwrap();
            expected.remove("old");
            expected.insert("quality_score", 0.8125);
            let read = parse_str(&written).unwrap();
            prop_assert_eq!(read.get("metadata").unwrap().as_object(), Some(&expected));
            prop_assert!(!written.contains("\"old\"") && !written.contains('\n'));
        }

        #[test]
        fn replace_strings_keeps_the_value_and_the_escapes_around_markers(
            parts in proptest::collection::vec("[aé\"\\\\😀\n]{0,3}", 1..5),
            secrets in proptest::collection::vec("[aé😀]{1,3}", 4),
            is_escaped in proptest::collection::vec(any::<bool>(), 40),
        ) {
            let escaped = |text: &str| {
                let letters = text.chars().zip(is_escaped.iter().cycle()).map(|(letter, escaped)| {
                    let mut units = [0; 2];
                    match *escaped || letter.is_control() || "\"\\".contains(letter) {
                        true => letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
                        false => letter.to_string(),
                    }
                });
                letters.collect::<String>()
            };
            let mut literals = parts.iter().map(|part| escaped(part));
            let first = literals.next().unwrap();
            let rest: Vec<_> = literals.zip(&secrets).collect();
            let old: String = rest.iter().map(|(part, secret)| format!("{}{part}", escaped(secret))).collect();
            let new: String = rest.iter().map(|(part, _)| format!("[user-1]{part}")).collect();
            let (old, new) = (format!("\"{first}{old}\""), format!("\"{first}{new}\""));
            let [old_value, new_value] = [&old, &new].map(|text| parse_str(text).unwrap());
            let replaced = replace_strings(&old, &old_value, &new_value).unwrap().text;
            prop_assert_eq!(parse_str(&replaced).unwrap(), new_value);
            // One secret can be told from what is around it, several may stand elsewhere too.
            if rest.len() <= 1 && parts.iter().all(|part| !part.contains(secrets[0].as_str())) {
                prop_assert_eq!(replaced, new);
            }
        }
    }
}
