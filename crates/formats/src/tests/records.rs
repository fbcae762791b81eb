use proptest::prelude::*;

use crate::records::{Record, Records};

/// Returns a line for each record of a text that comes in pieces of this size: where it is, and its value or the problem.
fn found(text: &str, size: usize, limit: u64) -> Vec<String> {
    let mut records = Records::new(limit);
    let mut found = Vec::new();
    for piece in text.as_bytes().chunks(size) {
        records.push(piece).unwrap();
        found.extend(records.by_ref().map(line_of));
    }
    records.finish().unwrap();
    found.extend(records.map(line_of));
    found
}

fn line_of(record: Record) -> String {
    let line = record.line.unwrap_or_default();
    let index = record.index.map(|index| format!("[{index}]")).unwrap_or_default();
    let content = record.content.map(|(value, _)| value.to_json());
    format!(
        "{line}{index} {}",
        content.unwrap_or_else(|error| format!("! {error}"))
    )
}

const LIMIT: u64 = 1000;

#[test]
fn a_broken_element_of_an_array_over_many_lines_costs_itself_alone() {
    let nan = "2[0] ! not JSON: NaN, which JSON does not have, at byte 11";
    let swallowing = "2[0] ! not JSON: key must be a string at byte 20";
    for (element, error) in [("\"a\": NaN\n  }", nan), ("\"a\": {\n  }", swallowing)] {
        let text = format!("[\n  {{\n    {element},\n  {{\n    \"b\": 2\n  }}\n]\n{{}}");
        let found = found(&text, 3, LIMIT);
        assert_eq!(found[0], error);
        assert_eq!(found[1..].join(" ").replace("[1]", ""), "5 {\"b\":2} 9 {}");
    }
}

#[test]
fn records_that_are_too_long_are_let_go_and_those_behind_them_are_read() {
    let too_long = "! longer than 0.00003814697265625 MB";
    let long = "x".repeat(50);
    for text in [
        format!("{{\"a\":\"{long}\"}}\n{{}}"),
        format!("{long}\n{{}}"),
        format!("[\n{{\"a\":\"{long}\",\n\"b\":{{\n{{}}"),
    ] {
        let found = found(&text, 5, 40);
        assert!(found[0].ends_with(too_long), "{found:?}");
        assert!(found.last().unwrap().ends_with(" {}"), "{found:?}");
    }
    assert_eq!(
        found(&format!("[{{\"a\":\"{long}\"}},{{}}]"), 5, 40)[1],
        "1[1] {}"
    );
    assert_eq!(
        found(&format!("a,b\n\"{long}\n\",1\n2,3"), 5, 40),
        [format!("2 {too_long}"), "4 {\"a\":\"2\",\"b\":\"3\"}".into()]
    );
}

proptest! {
    #[test]
    fn records_are_the_same_however_the_text_is_cut_into_pieces(
        parts in prop::collection::vec(prop::sample::select(vec![
            "{\"a\":1}", "{\n  \"b\": [\n    {}\n  ]\n}", "{\"n\":NaN}", "[", "]", ",", "\n", "\n", "\r", "{", "}", "\"", "\\", "x", " ",
        ]), 0..14),
        size in 1_usize..9,
    ) {
        let text = parts.concat();
        prop_assert_eq!(found(&text, size, LIMIT), found(&text, usize::MAX, LIMIT));
    }
}
