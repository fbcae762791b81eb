use knowledgepulse_clean::CleanOptions;
use knowledgepulse_formats::FormatName;
use knowledgepulse_json::{Value, parse_str};

use super::*;

/// Returns the log of a trace.
fn session(trace: &str) -> Log<'static> {
    let trace = parse_str(trace).unwrap();
    let trace = Box::new(move || Ok(trace.clone()));
    Log::of_trace("/home/maja/traces.jsonl".into(), FormatName::Trace, trace)
}

const KEY: &str = "ghp_a1B2c3D4e5F6g7H8i9a1B2c3D4e5F6g7H8i9";

/// Returns a trace whose call and result hold a key, and whose user tells an address.
fn trace() -> String {
    let steps = [
        r#"{"type":"thought","content":"I look."}"#.to_owned(),
        format!(
            r#"{{"type":"tool_call","content":"Bash\ncommand: curl -H 'Authorization: Bearer {KEY}'","tool":{{"name":"Bash"}},"input":{{"command":"curl -H 'Authorization: Bearer {KEY}'"}}}}"#
        ),
        format!(r#"{{"type":"error_recovery","content":"refused {KEY}"}}"#),
        r#"{"type":"observation","content":"Ship to via Garibaldi 7, go on"}"#.to_owned(),
    ];
    format!(
        r#"{{"@type":"ReasoningTrace","id":"kp:trace:a","metadata":{{"created_at":"2026-09-01T05:26:00.000Z","imported":{{"format":"claude-code","known":{{"success":false}},"cwd":"/home/maja/code/shop"}}}},"task":{{"objective":"Ask bob@example.com\nfor it"}},"steps":[{}],"outcome":{{"result_summary":"refused {KEY}"}}}}"#,
        steps.join(",")
    )
}

fn cleaner() -> Cleaner {
    Cleaner::new(CleanOptions {
        identifiers: true,
        strict: true,
    })
}

#[test]
fn described_is_clean_and_counts_each_finding_once() {
    let (row, conversation) = described(&session(&trace()), Some(&cleaner())).unwrap();
    let text = row.to_json() + &conversation.to_json();
    assert!(
        !text.contains(KEY) && !text.contains("bob@example.com") && !text.contains("maja"),
        "{text}"
    );
    let field = |name| row.get(name).map(Value::to_json).unwrap_or_default();
    assert_eq!(field("name"), r#""Ask [REDACTED:email-1] for it""#);
    assert_eq!(field("replaced"), r#""2 secrets, 1 e-mail address""#);
    assert_eq!(
        [field("secrets"), field("personal"), field("places")],
        ["2", "1", "1"]
    );
    assert_eq!(
        [field("agent"), field("project")],
        [r#""claude-code""#, r#""shop""#]
    );
    assert_eq!(
        [field("calls"), field("failedCalls"), field("turns")],
        ["1", "1", "2"]
    );
    assert_eq!(field("success"), "null");
    let told = trace().replace(r#""known":{"success":false}"#, r#""known":{"success":true}"#);
    let told = told.replace(r#""metadata":{"#, r#""metadata":{"success":true,"#);
    let (row, _) = described(&session(&told), Some(&cleaner())).unwrap();
    assert_eq!(row.get("success"), Some(&true.into()));
}

#[test]
fn described_counts_dates_of_birth_as_personal() {
    let born = trace().replace("for it", "for it\\nDate of birth: 1984-03-12");
    let (row, _) = described(&session(&born), Some(&cleaner())).unwrap();
    let replaced = row.get("replaced").and_then(Value::as_str);
    assert_eq!(replaced, Some("2 secrets, 1 e-mail address, 1 date of birth"));
    assert_eq!(row.get("personal"), Some(&2.0.into()));
}

#[test]
fn described_without_a_cleaner_is_the_original() {
    let (row, conversation) = described(&session(&trace()), None).unwrap();
    assert!(conversation.to_json().contains(KEY));
    assert_eq!(row.get("replaced").and_then(Value::as_str), Some(""));
}

#[test]
fn a_conversation_has_results_with_their_calls_and_the_words_of_places() {
    let (_, conversation) = described(&session(&trace()), Some(&cleaner())).unwrap();
    let turns = conversation.get("turns").and_then(Value::as_array).unwrap();
    let by: Vec<_> = turns
        .iter()
        .map(|turn| turn.get("by").and_then(Value::as_str).unwrap())
        .collect();
    assert_eq!(by, ["user", "agent", "user"]);
    let call = turns[1].get("calls").and_then(Value::as_array).unwrap()[0].clone();
    assert_eq!(call.get("failed"), Some(&true.into()));
    assert_eq!(
        call.get("result").and_then(Value::as_str),
        Some("refused [REDACTED:api_key-1]")
    );
    assert_eq!(
        conversation.get("places").map(Value::to_json).unwrap(),
        r#"["via Garibaldi 7"]"#
    );
}

#[test]
fn a_long_objective_is_cut_in_its_row_alone() {
    let long = format!(
        r#"{{"@type":"ReasoningTrace","id":"a","metadata":{{}},"task":{{"objective":"{}"}},"steps":[]}}"#,
        "x ".repeat(200_000)
    );
    let (row, conversation) = described(&session(&long), Some(&cleaner())).unwrap();
    assert!(conversation.to_json().len() > 400_000);
    assert!(row.to_json().len() < 1_000);
}

#[test]
fn tell_apart_leaves_out_what_the_names_of_rows_share() {
    let rest = ["Fix the login", "Fix the date", "Sort the list"];
    let mut rows = rest.map(|rest| {
        let trace = trace().replace(
            "Ask bob@example.com",
            &format!("{}: {rest}", "Solve this issue of our own repository ".repeat(10)),
        );
        described(&session(&trace), Some(&cleaner())).unwrap().0
    });
    tell_apart(&mut rows);
    let names = rows.map(|row| row.get("name").and_then(Value::as_str).unwrap().to_owned());
    assert_eq!(names, rest.map(|rest| format!("… {rest} for it")));
}

#[test]
fn apart_takes_a_page_with_one_place_each() {
    let page = format!("a{DATA}b{CONVERSATIONS}c");
    assert_eq!(apart(&page), Some(["a", "b", "c"].map(String::from)));
    for page in [
        "",
        "<html>",
        DATA,
        &page.repeat(2),
        &format!("{CONVERSATIONS}{DATA}"),
    ] {
        assert_eq!(apart(page), None);
    }
}

#[test]
fn escaped_json_neither_ends_nor_begins_an_element() {
    let json = escaped("\"</script><!--&\u{2028}\"", is_markup);
    assert_eq!(json, r#""\u003c/script\u003e\u003c!--\u0026\u2028""#);
}
