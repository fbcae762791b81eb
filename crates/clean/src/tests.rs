//! Tests of all kinds together: recorded texts, marked texts, and JSON.

use super::*;
use crate::{
    kinds::KINDS,
    text::{BLOCK, Text},
};
use ::base64::prelude::{BASE64_STANDARD, Engine as _};
use knowledgepulse_error::Result;
use knowledgepulse_json::{self as json, Object, Value};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::{env, fs, path::Path};

pub(crate) const SDK: CleanOptions = CleanOptions {
    identifiers: true,
    strict: false,
};

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

pub(crate) fn cleaned(text: &str, options: CleanOptions) -> String {
    let clean = Cleaner::new(options).clean_text(&units(text));
    clean.map_or_else(|| text.to_owned(), |units| String::from_utf16(&units).unwrap())
}

/// Returns a clean text without the numbers of its markers.
fn unnumbered(text: &str) -> String {
    let mut parts = text.split("[REDACTED:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (kind, rest) = part.split_once(']').unwrap();
        let kind = kind.trim_end_matches(|c: char| c.is_ascii_digit());
        format!("{text}[REDACTED:{}]{rest}", kind.trim_end_matches('-'))
    })
}

#[test]
fn every_kind_compiles() {
    let lines = include_str!("../rules/kinds.tsv").lines();
    assert_eq!(KINDS.len(), lines.filter(|line| !line.starts_with('#')).count());
    for kind in &*KINDS {
        assert!(kind.find(&Text::new(units("0"))).is_empty());
    }
}

#[test]
fn lone_surrogates_stay() {
    let mut text = vec![0xD800];
    text.extend("a@b.cc".encode_utf16());
    text.push(0xDC00);
    let mut expected = vec![0xD800];
    expected.extend("[REDACTED:email]".encode_utf16());
    expected.push(0xDC00);
    let mut cleaner = Cleaner::new(SDK);
    assert_eq!(cleaner.clean_text(&text), Some(expected));
    assert_eq!(cleaner.clean_text(&[0xDFFF, 0xD800]), None);
}

#[test]
fn identifiers_stay_where_they_are_not_wanted() {
    let text = "a@b.cc +4912345678 1.2.3.4 /home/bob C:\\Users\\bob password=secret";
    let private = CleanOptions {
        identifiers: false,
        ..SDK
    };
    assert_eq!(
        cleaned(text, private),
        "a@b.cc +4912345678 1.2.3.4 /home/bob C:\\Users\\bob password=[REDACTED:password]"
    );
    assert_eq!(
        cleaned(text, SDK),
        "[REDACTED:email] [REDACTED:phone] [REDACTED:ip] [REDACTED:filepath] [REDACTED:filepath] password=[REDACTED:password]"
    );
}

/// Compares each row of a file of `__test__/support` with what `redo` makes of it. KNOWLEDGEPULSE_WRITE_EXPECTED=1 writes the rows
/// anew, with broken bars that keep other programs from taking the keys in them for real ones.
fn expect_rows(file: &str, redo: impl Fn(&mut Object)) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../__test__/support")
        .join(file);
    let writes = env::var_os("KNOWLEDGEPULSE_WRITE_EXPECTED").is_some();
    let mut written = String::new();
    for line in fs::read_to_string(&path).unwrap().lines() {
        let line = line.replace('¦', "");
        let mut row = json::parse_str(&line).unwrap().as_object().unwrap().clone();
        redo(&mut row);
        assert!(writes || row.to_json() == line, "{line}");
        for name in ["text", "plain", "strict"] {
            if let Some(text) = row.get(name).and_then(Value::as_str).map(barred) {
                row.insert(name, text);
            }
        }
        written += &format!("{}\n", row.to_json());
    }
    if writes {
        fs::write(path, written).unwrap();
    }
}

/// Returns a text with a bar after each eight characters in a row of which keys may be made.
fn barred(text: &str) -> String {
    let mut in_row = 0;
    let mut out = String::new();
    for c in text.chars() {
        let is_of_key = c.is_ascii_alphanumeric() || "_+/=-".contains(c);
        if is_of_key && in_row == 8 {
            out.push('¦');
            in_row = 0;
        }
        in_row = if is_of_key { in_row + 1 } else { 0 };
        out.push(c);
    }
    out
}

/// Returns the checksum of what becomes of a text that ends earlier, or that lacks one of its characters.
fn checksum_of_variants(text: &str, options: CleanOptions) -> String {
    let mut hash = Sha256::new();
    for (index, c) in text.char_indices() {
        let (before, rest) = text.split_at(index);
        hash.update(cleaned(before, options));
        hash.update(cleaned(&format!("{before}{}", &rest[c.len_utf8()..]), options));
    }
    let bytes = hash.finalize();
    bytes[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn texts_are_cleaned_as_recorded() {
    let strict = CleanOptions { strict: true, ..SDK };
    expect_rows("cleaned-texts.jsonl", |row| {
        let text = row.get("text").unwrap().as_str().unwrap().to_owned();
        let alone = |text: &str| {
            let clean = Cleaner::new(strict).clean_single_text(&units(text));
            clean.map_or_else(|| text.to_owned(), |clean| String::from_utf16_lossy(&clean))
        };
        let clean = alone(&text);
        assert_eq!(alone(&clean), clean);
        row.insert("plain", cleaned(&text, SDK));
        row.insert("strict", clean);
        if row.contains("checksum") {
            row.insert("checksum", checksum_of_variants(&text, strict));
        }
    });
}

#[test]
fn strict_replaces_no_more_than_the_sdk_in_harmless_lines() {
    let strict = CleanOptions { strict: true, ..SDK };
    for line in include_str!("../../../__test__/support/harmless-lines.txt").lines() {
        let found = cleaned(line, strict);
        assert!(
            found == line || unnumbered(&found) == cleaned(line, SDK),
            "{found}"
        );
    }
}

/// A row has a type, `-` for none, and a text. What is replaced stands in `«»`. Cleaning a clean text changes nothing.
#[test]
fn strict_replaces_the_marked_parts_and_no_more() {
    let strict = CleanOptions { strict: true, ..SDK };
    let mut wrong = Vec::new();
    let ends = ["\n", "\r\n"];
    let rows = include_str!("fixtures/marked.txt")
        .lines()
        .flat_map(|row| ends.map(|end| row.replace('⏎', end)));
    for row in rows {
        let row = row.replace('¦', "");
        let (kind, text) = row.split_once(' ').unwrap();
        let marker = format!("[REDACTED:{kind}]");
        let parts: Vec<_> = text.split(['«', '»']).collect();
        let expected: Vec<_> = (0..)
            .zip(&parts)
            .map(|(at, part)| if at % 2 == 0 { part } else { &*marker })
            .collect();
        let found = cleaned(&parts.concat(), strict);
        if unnumbered(&found) != expected.concat() || cleaned(&found, strict) != found {
            wrong.push(found);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn strict_finds_addresses_secrets_and_cards_behind_codes() {
    let strict = CleanOptions { strict: true, ..SDK };
    for (text, kind) in [
        ("maria%40corp.example", "email"),
        ("maria\\u0040corp.example", "email"),
        ("maria&#64;corp.example", "email"),
        // `$password="hunter22hunter22"` in UTF-16.
        (
            "JABwAGEAcwBzAHcAbwByAGQAPQAiAGgAdQBuAHQAZQByADIAMgBoAHUAbgB0AGUAcgAyADIAIgA=",
            "encoded_secret",
        ),
        ("ghp_aB3dE5fG\u{200b}7hJaB3dE5fG7hJaB3dE5fG7hJaB3", "api_key"),
    ] {
        assert_eq!(cleaned(text, strict), format!("[REDACTED:{kind}-1]"), "{text}");
    }
    let token = cleaned(
        "> Authorization: Bearer gT7bQz0LkX9wPe4Rm2Vn\n  yaXRlIiwiaWF0IjoxNzk1ODcwMDAwfQ.VIctFJ4s2fpc\n> Accept: */*",
        strict,
    );
    assert!(
        token.ends_with("\n  [REDACTED:password-1]\n> Accept: */*"),
        "{token}"
    );
    let number = cleaned_trace(r#"{"cardNumber":4111111111111111}"#).unwrap();
    assert_eq!(unnumbered(&number), r#"{"cardNumber":"[REDACTED:card_number]"}"#);
    let key = format!("github_pat_{}", "aB3dE5fG7hJ".repeat(5));
    let signed = cleaned_trace(&format!(r#"{{"signature":"{}"}}"#, &key[..64])).unwrap();
    assert_eq!(unnumbered(&signed), r#"{"signature":"[REDACTED:api_key]"}"#);
}

#[test]
fn basic_credentials_are_base64_of_a_text_with_a_colon() {
    for (value, is_credentials) in [
        (&b"Ym9iOmh1bnRlcjI="[..], true),
        (b"YTpi", true),
        (b"Ym9iOmEgYg==", true),
        (b"Oj8/Pz8+Pg==", true),
        (b"Oj8_Pz8-Pg", true),
        (b"YTo=", false),
        (b"Ym9iaHVudGVyMg==", false),
        // A control character, DEL, and a letter that is not of Base64.
        (b"YQE6Yg==", false),
        (b"YX86Yg==", false),
        (b"Ym9i!mh1", false),
    ] {
        assert_eq!(values::is_basic_credentials(value), is_credentials, "{value:?}");
    }
}

#[test]
fn the_beginning_of_a_marker_in_a_value_hides_nothing() {
    let strict = CleanOptions { strict: true, ..SDK };
    let marker = "[REDACTED:password-1]";
    for length in "[REDACTED:".len()..marker.len() {
        let text = format!("password = x9{}", &marker[..length]);
        assert_eq!(cleaned(&text, strict), text);
    }
    let key = "curl -H \"x-api-key: be'rd,wCBx6K0bkT5gZlrk3e[REDACTED:QzMDMUrZNj\" x";
    assert_eq!(
        cleaned(key, strict),
        "curl -H \"x-api-key: [REDACTED:password-1]\" x"
    );
}

#[test]
fn lines_of_a_secret_end_with_any_blanks() {
    let strict = CleanOptions { strict: true, ..SDK };
    let line = "q7Vd0XyR2mKp9LsTb4NcW8hZe1JgUa6Fo3Hi5Dk/+QwErTy";
    for end in ["\n", "\r\n", "  \n", "\t\r\n"] {
        let text = format!("Password:{end}{line}{end}{line}{end}done{end}");
        let expected = format!("Password:{end}[REDACTED:password]{end}done{end}");
        assert_eq!(unnumbered(&cleaned(&text, strict)), expected, "{end:?}");
    }
}

/// Returns how often each type was found, in the order in which the types were first found.
fn counts(cleaner: &mut Cleaner) -> Vec<(String, usize)> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for Finding { name, .. } in cleaner.take_findings() {
        match counts.iter_mut().find(|(other, _)| *other == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts
}

#[test]
fn clean_text_finds_types_in_the_order_of_the_kinds() {
    let text = r#"/home/bob a@b.cc kp_0123456789abcdef +4912345678 token="xoxb-1""#;
    let mut cleaner = Cleaner::new(SDK);
    cleaner.clean_text(&units(text));
    let expected = [
        ("api_key", 2),
        ("password", 1),
        ("email", 1),
        ("phone", 1),
        ("filepath", 1),
    ];
    assert_eq!(
        counts(&mut cleaner),
        expected.map(|(name, count)| (name.to_owned(), count))
    );
}

#[test]
fn block_of_ends_with_a_line_and_before_a_private_key() {
    let line = "0123456 \n".repeat(BLOCK / 9 + 1);
    assert_eq!(block_of(&line), BLOCK / 9 * 9);
    let key = format!(
        "{}-----BEGIN X KEY-----\n{}",
        &line[..BLOCK - 100],
        "abcdef\n".repeat(200)
    );
    assert_eq!(block_of(&key), (BLOCK - 100) / 9 * 9);
    for first in ["-----BEGIN X KEY-----", "---- BEGIN SSH2 KEY ----"] {
        let words = "0123456 ".repeat(BLOCK / 8 - 32);
        let key = format!("{words}{first} {}", "abcdef ".repeat(200));
        assert_eq!(block_of(&key), words.len() - 8, "{first}");
    }
    assert_eq!(block_of(&"é".repeat(BLOCK)), BLOCK);
    assert_eq!(block_of(&format!("a{}", "é".repeat(BLOCK))), BLOCK - 1);
    assert_eq!(block_of("short"), 5);
}

#[test]
fn long_texts_are_cleaned_as_short_ones_are() {
    let strict = CleanOptions { strict: true, ..SDK };
    let unit = "mail bob@example.com, password=hunter22\nüber the lazy dog 1234567\n";
    let text = unit.repeat(BLOCK * 5 / 2 / unit.len());
    let trace = json::Value::Array(vec![text.as_str().into()]);
    let mut cleaner = Cleaner::new(strict);
    let clean = cleaner.clean_trace(&trace).unwrap();
    let expected = "mail [REDACTED:email-1], password=[REDACTED:password-1]\nüber the lazy dog 1234567\n";
    let count = text.len() / unit.len();
    assert_eq!(
        clean.as_array().unwrap()[0].as_str().unwrap(),
        expected.repeat(count)
    );
    assert!(counts(&mut cleaner).iter().all(|(_, each)| *each == count));
}

/// Cleans a trace in JSON with `strict`.
fn cleaned_trace(trace: &str) -> Result<String> {
    let strict = CleanOptions { strict: true, ..SDK };
    let value = json::parse_str(trace).unwrap();
    Cleaner::new(strict)
        .clean_trace(&value)
        .map(|trace| trace.to_json())
}

#[test]
fn clean_trace_cleans_texts_names_and_what_stands_under_names() {
    for (trace, expected) in [
        ("[]", "[]"),
        ("7", "7"),
        (
            r#"{"id":"a@b.cc","x":"a@b.cc","steps":[{"type":"a@b.cc"}]}"#,
            r#"{"id":"[REDACTED:email]","x":"[REDACTED:email]","steps":[{"type":"[REDACTED:email]"}]}"#,
        ),
        (
            r#"{"id":"kp_0123456789abcdef","y":[{"uuid":"n-415-555-0142"}],"metadata":{"created_at":"Bob, 415-555-0142"}}"#,
            r#"{"id":"[REDACTED:api_key]","y":[{"uuid":"n-415-555-0142"}],"metadata":{"created_at":"Bob, [REDACTED:phone]"}}"#,
        ),
        (
            r#"{"@context":"n-415-555-0142","@type":"n-415-555-0142","source_skill":"n-415-555-0142","metadata":{"created_at":"n-415-555-0142","task_domain":"n-415-555-0142","visibility":"n-415-555-0142","privacy_level":"n-415-555-0142"},"steps":[{"type":"n-415-555-0142"}],"knowledge_graph_delta":{"entities":[{"name":"a@b.cc","type":"n-415-555-0142"}],"relationships":[{"fact":"a@b.cc","valid_from":"n-415-555-0142"}]}}"#,
            r#"{"@context":"n-415-555-0142","@type":"n-415-555-0142","source_skill":"n-415-555-0142","metadata":{"created_at":"n-415-555-0142","task_domain":"n-415-555-0142","visibility":"n-415-555-0142","privacy_level":"n-415-555-0142"},"steps":[{"type":"n-415-555-0142"}],"knowledge_graph_delta":{"entities":[{"name":"[REDACTED:email]","type":"n-415-555-0142"}],"relationships":[{"fact":"[REDACTED:email]","valid_from":"n-415-555-0142"}]}}"#,
        ),
        (
            r#"{"a@b.cc":1,"2":[[]],"c@d.ee":{"e":null}}"#,
            r#"{"[REDACTED:email]":1,"2":[[]],"[REDACTED:email]":{"e":null}}"#,
        ),
        (
            r#"{"a":["x-api-key","hunter2"],"b":[["x-api-key","x-auth"]],"c":"kp_0123456789abcdef"}"#,
            r#"{"a":["x-api-key","hunter2"],"b":[["x-api-key","x-auth"]],"c":"[REDACTED:api_key]"}"#,
        ),
        (
            r#"{"Authorization":"hunter2","authorization":"none"}"#,
            r#"{"Authorization":"[REDACTED:password]","authorization":"none"}"#,
        ),
        (
            r#"{"token":{"a":[123456]},"b":[["x-api-key","hunter2"]],"c":{"key":"API_KEY","value":"x1"}}"#,
            r#"{"token":{"a":["[REDACTED:password]"]},"b":[["x-api-key","[REDACTED:password]"]],"c":{"key":"API_KEY","value":"[REDACTED:password]"}}"#,
        ),
    ] {
        assert_eq!(unnumbered(&cleaned_trace(trace).unwrap()), expected);
    }
}

#[test]
fn clean_trace_cleans_values_that_their_structure_tells() {
    for (trace, expected) in [
        (
            r#"{"kind":"Secret","data":{"a":"c3Zj","b":["c3Zj"]},"stringData":{"c":"x1"},"type":"c3Zj"}"#,
            r#"{"kind":"Secret","data":{"a":"[REDACTED:password]","b":["[REDACTED:password]"]},"stringData":{"c":"[REDACTED:password]"},"type":"c3Zj"}"#,
        ),
        (
            r#"{"kind":"ConfigMap","data":{"a":"c3Zj"}}"#,
            r#"{"kind":"ConfigMap","data":{"a":"c3Zj"}}"#,
        ),
        (
            r#"{"a":{"keyName":"key1","value":"x1"},"b":{"sensitive":true,"value":"x1"},"c":{"kty":"oct","k":"x1"},"d":{"type":"api","key":"x1"}}"#,
            r#"{"a":{"keyName":"key1","value":"[REDACTED:password]"},"b":{"sensitive":true,"value":"[REDACTED:password]"},"c":{"kty":"oct","k":"[REDACTED:password]"},"d":{"type":"api","key":"[REDACTED:password]"}}"#,
        ),
        (
            r#"["-----BEGIN PRIVATE KEY-----\n","MIIEvQIBADANBgkqhkiG9w0BAQ\n","-----END PRIVATE KEY-----\n","print()"]"#,
            r#"["[REDACTED:private_key]","[REDACTED:private_key]","[REDACTED:private_key]","print()"]"#,
        ),
        (
            r#"["-----BEGIN PRIVATE KEY-----",7,"MIIEvQIBADANBgkqhkiG9w0BAQ"]"#,
            r#"["-----BEGIN PRIVATE KEY-----",7,"MIIEvQIBADANBgkqhkiG9w0BAQ"]"#,
        ),
    ] {
        assert_eq!(unnumbered(&cleaned_trace(trace).unwrap()), expected);
    }
}

#[test]
fn clean_trace_leaves_opaque_thoughts_and_no_other_value_under_their_names() {
    let opaque = "sk-aB3dE5fG7hJaB3dE5fG7hJaB3dE5fG7hJaB3dE5fG7hJaB3dE5fG7hJaB3dE5fG7hJaB3dE5fG7hJ";
    for name in [
        "signature",
        "thinkingSignature",
        "thought_signature",
        "encrypted_content",
    ] {
        let trace = format!(r#"{{"{name}":"{opaque}"}}"#);
        assert_eq!(cleaned_trace(&trace).unwrap(), trace);
        for other in ["bob@example.com", &opaque[..40]] {
            let trace = format!(r#"{{"{name}":"{other}"}}"#);
            assert_ne!(cleaned_trace(&trace).unwrap(), trace);
        }
    }
    let thought = format!(r#"{{"type":"redacted_thinking","data":"{opaque}"}}"#);
    assert_eq!(cleaned_trace(&thought).unwrap(), thought);
    let image = thought.replace("redacted_thinking", "text");
    assert_ne!(cleaned_trace(&image).unwrap(), image);
}

#[test]
fn traces_are_cleaned_as_recorded() {
    let strict = CleanOptions { strict: true, ..SDK };
    expect_rows("cleaned-traces.jsonl", |row| {
        let trace = row.get("trace").unwrap().clone();
        let mut cleaner = Cleaner::new(strict);
        let cleaned = cleaner.clean_trace(&trace).unwrap();
        let counts: Vec<Value> = counts(&mut cleaner)
            .into_iter()
            .map(|(name, count)| {
                json::object([
                    ("type", name.as_str().into()),
                    ("count", f64::from(u32::try_from(count).unwrap()).into()),
                ])
            })
            .collect();
        row.insert("strict", cleaned);
        row.insert("redactions", counts);
    });
}

#[test]
fn clean_trace_refuses_more_than_256_levels() {
    let nested = |levels: usize| format!("{}1{}", r#"{"a b":"#.repeat(levels), "}".repeat(levels));
    assert_eq!(cleaned_trace(&nested(256)).unwrap(), nested(256));
    let error = cleaned_trace(&nested(257)).unwrap_err().to_string();
    let path = r#"["a b"]"#.repeat(256);
    assert_eq!(
        error,
        format!("trace is nested deeper than 256 levels, at trace{path}")
    );
}

#[test]
fn clean_trace_replaces_values_under_the_name_of_a_secret_but_no_schema() {
    for (trace, expected) in [
        (
            r#"{"a":{"value":"hunter2"},"token":{"value":"hunter2"}}"#,
            r#"{"a":{"value":"hunter2"},"token":{"value":"[REDACTED:password]"}}"#,
        ),
        (
            r#"{"password":{"type":"string"}}"#,
            r#"{"password":{"type":"string"}}"#,
        ),
        (
            r#"{"password":{"type":"string","value":"hunter2"}}"#,
            r#"{"password":{"type":"string","value":"[REDACTED:password]"}}"#,
        ),
    ] {
        let strict = CleanOptions { strict: true, ..SDK };
        let trace = json::parse_str(trace).unwrap();
        let clean = Cleaner::new(strict).clean_trace(&trace).unwrap();
        assert_eq!(unnumbered(&clean.to_json()), expected);
    }
}

/// Texts of pieces that stand close to each other in the list, with others between them.
fn hostile_text() -> impl Strategy<Value = String> {
    let pieces: Vec<String> = include_str!("fixtures/pieces.txt")
        .lines()
        .map(|piece| piece.replace('⏎', "\n"))
        .collect();
    (0..pieces.len()).prop_flat_map(move |start| {
        let neighbours = pieces[start..pieces.len().min(start + 12)].to_vec();
        let piece = prop_oneof![
            6 => prop::sample::select(neighbours),
            2 => prop::sample::select(pieces.clone()),
            1 => "[a-zA-Z0-9+/_-]{16,48}",
            1 => "[0-9 .-]{1,16}",
            1 => any::<char>().prop_map(String::from),
            1 => prop::sample::select(vec!["\r\n".to_owned(), "  \n".to_owned()]),
        ];
        prop::collection::vec(piece, 1..24).prop_map(|pieces| pieces.concat())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn ranges_of_a_kind_are_in_order_and_do_not_overlap(text in hostile_text()) {
        let units = units(&text);
        let text = Text::new(&units);
        for kind in &*KINDS {
            let mut end = 0;
            for range in kind.find(&text) {
                prop_assert!(end <= range.start && range.start < range.end, "{}: {range:?} behind {end}", kind.name);
                end = range.end;
            }
            prop_assert!(end <= units.len());
        }
    }
}

#[test]
fn the_strings_of_a_list_are_one_command_line() {
    let strict = CleanOptions { strict: true, ..SDK };
    for text in [
        r#"["curl","-u","bob:hunter22"]"#,
        r#"["mysql","-phunter22"]"#,
        r#"subprocess.run(["sshpass", "-p", "hunter22", "ssh", "x"])"#,
        r#"CMD ["redis-cli", "-a", "hunter22"]"#,
        r#"Command::new("mysql").arg("-u").arg("root").arg("-phunter22")"#,
        r#"["--token","hunter22"]"#,
        "args:\n  - redis-cli\n  - -a\n  - hunter22\n",
    ] {
        assert!(!cleaned(text, strict).contains("hunter22"), "{text}");
    }
}

#[test]
fn the_lines_of_a_wrapped_password_below_its_name_are_replaced() {
    let strict = CleanOptions { strict: true, ..SDK };
    for seed in 0..20 {
        let bytes: Vec<u8> = (0..3_u8).flat_map(|part| Sha256::digest([seed, part])).collect();
        let encoded = BASE64_STANDARD.encode(bytes);
        let (first, second) = encoded.split_at(64);
        let clean = cleaned(&format!("Password:\n{first}\n{second}\n"), strict);
        assert!(!clean.contains(first) && !clean.contains(second), "{clean}");
    }
}
