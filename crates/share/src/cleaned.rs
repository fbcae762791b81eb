//! Cleans a record of a file. One without findings keeps every byte; one with findings is written anew from its clean value.

use std::borrow::Cow;

use knowledgepulse_clean::{Cleaner, Finding, PlaceToReview, block_of, places_in_json, places_in_text};
use knowledgepulse_error::Result;
use knowledgepulse_json::Value;
use memchr::memchr2;

/// A clean text, and what was redacted in it.
#[derive(Debug)]
pub struct CleanText<'t> {
    /// The text.
    pub text: Cow<'t, str>,
    /// The findings, each with the number of lines of the text before it. In JSON their paths say where they are, and the number is 0.
    pub found: Vec<(usize, Finding)>,
    /// The places of the clean text that a person should look at.
    pub review: Vec<PlaceToReview>,
}

/// Cleans the text of a JSON value. The white space around the value stays.
///
/// # Errors
/// [`knowledgepulse_error::Error::OutOfRange`] if the value is nested deeper than the cleaner follows.
pub fn clean_json_text<'t>(cleaner: &mut Cleaner, text: &'t str, value: &Value) -> Result<CleanText<'t>> {
    let clean = cleaner.clean_json(value);
    let found = cleaner.take_findings();
    let clean = clean?;
    // A parser keeps the last of the members with one name, so the others were not searched.
    let text = if found.is_empty() && members_in(text) == members_of(value) {
        Cow::Borrowed(text)
    } else {
        let inner = text.trim();
        let start = text.len() - text.trim_start().len();
        let mut json = clean.to_json();
        // In place, because a line may have 60 MB.
        json.insert_str(0, &text[..start]);
        json.push_str(&text[start + inner.len()..]);
        Cow::Owned(json)
    };
    let found = found.into_iter().map(|finding| (0, finding)).collect();
    let review = places_in_json(&clean);
    Ok(CleanText { text, found, review })
}

/// Counts the members of all objects in a JSON text, as often as a name stands there.
fn members_in(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut count, mut at) = (0, 0);
    while let Some(next) = memchr2(b'"', b':', &bytes[at..]) {
        at += next + 1;
        if bytes[at - 1] == b':' {
            count += 1;
            continue;
        }
        while let Some(next) = memchr2(b'"', b'\\', &bytes[at..]) {
            at += next + 1;
            if bytes[at - 1] == b'"' {
                break;
            }
            at += 1;
        }
    }
    count
}

/// Counts the members of all objects in a JSON value.
fn members_of(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter().map(members_of).sum(),
        Value::Object(object) => object.len() + object.values().map(members_of).sum::<usize>(),
        _ => 0,
    }
}

/// Cleans a text that is no JSON, block by block.
pub fn clean_plain_text<'t>(cleaner: &mut Cleaner, text: &'t str) -> CleanText<'t> {
    let (mut clean, mut found, mut lines) = (String::new(), Vec::new(), 0);
    let (mut rest, mut is_changed) = (text, false);
    while !rest.is_empty() {
        let (block, after) = rest.split_at(block_of(rest));
        rest = after;
        let units: Vec<u16> = block.encode_utf16().collect();
        let cleaned = cleaner.clean_text(&units);
        is_changed |= cleaned.is_some();
        // The text was valid, and markers are ASCII between its characters.
        clean += &cleaned.map_or(Cow::Borrowed(block), |clean| {
            String::from_utf16_lossy(&clean).into()
        });
        let mut findings = cleaner.take_findings();
        findings.sort_by_key(|finding| finding.start);
        let mut unit = 0;
        let mut count_to = |end: usize| {
            let between = units.get(unit..end).unwrap_or_default();
            lines += between.iter().filter(|unit| **unit == u16::from(b'\n')).count();
            unit = unit.max(end);
            lines
        };
        let place = |finding: Finding| (count_to(finding.start), finding);
        found.extend(findings.into_iter().map(place));
        count_to(units.len());
    }
    let text = if is_changed {
        clean.into()
    } else {
        Cow::Borrowed(text)
    };
    let review = places_in_text(&text).collect();
    CleanText { text, found, review }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_clean::CleanOptions;
    use knowledgepulse_json::parse_str;
    use proptest::prelude::*;

    use super::*;

    fn cleaner() -> Cleaner {
        Cleaner::new(CleanOptions {
            identifiers: true,
            strict: true,
        })
    }

    /// Texts of JSON with white space, escapes, numbers in other spellings, and names that stand twice.
    fn json() -> impl Strategy<Value = String> {
        let text = r#"a@b\.cc|\\u0061@b\.cc|[ -!#-\[\]-~é😀]{0,5}|\\n|\\/"#;
        let leaf = prop_oneof![
            "null|true|-0\\.0|1\\.50|1E2|12345678901234567890",
            text.prop_map(|text| format!("\"{text}\"")),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let member = ("[ \n]{0,2}", "a|b|\\\\u0061|token|e@f\\.gg", inner.clone());
            let member = member.prop_map(|(blank, name, value)| format!("{blank}\"{name}\":{blank}{value}"));
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(|list| format!("[{}]", list.join(" , "))),
                proptest::collection::vec(member, 0..4).prop_map(|list| format!("{{{}}}", list.join(","))),
            ]
        })
    }

    proptest! {
        #[test]
        fn clean_json_text_parses_as_the_clean_value_and_keeps_texts_without_findings(
            json in json(), before in "[ \t]{0,2}", after in "\r?\n|",
        ) {
            let text = format!("{before}{json}{after}");
            let value = parse_str(text.trim()).unwrap();
            let clean = clean_json_text(&mut cleaner(), &text, &value).unwrap();
            let expected = cleaner().clean_json(&value).unwrap();
            prop_assert_eq!(parse_str(clean.text.trim()).unwrap(), expected);
            prop_assert!(clean.text.starts_with(&before) && clean.text.ends_with(&after));
            if clean.found.is_empty() && members_in(&text) == members_of(&value) {
                prop_assert_eq!(&*clean.text, &*text);
            }
            // Not even what a parser does not see.
            prop_assert!(!clean.text.contains("a@b.cc"), "{}", clean.text);
        }
    }

    #[test]
    fn clean_json_text_hides_members_whose_name_stands_twice() {
        for (text, expected) in [
            (r#"{"a":"b@c.dd","a":"x"}"#, r#"{"a":"x"}"#),
            (r#"[{"a":"b@c.dd","\u0061":1.0}] "#, r#"[{"a":1}] "#),
            (r#"{"a": "x:\"b:\\", "b": 1.0}"#, r#"{"a": "x:\"b:\\", "b": 1.0}"#),
        ] {
            let value = parse_str(text.trim()).unwrap();
            assert_eq!(
                clean_json_text(&mut cleaner(), text, &value).unwrap().text,
                expected
            );
        }
    }

    #[test]
    fn clean_json_text_refuses_what_is_nested_too_deeply() {
        let text = "[".repeat(300) + r#""\u0067hp_""# + &"]".repeat(300);
        assert!(clean_json_text(&mut cleaner(), &text, &parse_str(&text).unwrap()).is_err());
    }

    #[test]
    fn clean_plain_text_tells_the_lines_of_its_findings() {
        let clean = clean_plain_text(&mut cleaner(), "é a@b.cc\n😀\npassword=hunter22 c@d.ee");
        let lines: Vec<_> = clean
            .found
            .iter()
            .map(|(line, finding)| (*line, &*finding.name))
            .collect();
        assert_eq!(lines, [(0, "email"), (2, "password"), (2, "email")]);
    }
}
