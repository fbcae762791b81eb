//! The time of each cost grows with the text, and not faster: the work is doubled four times. Processor time is measured, which other
//! programs do not take from us; a quadratic cost would grow 256 times.

#![cfg(unix)]

use std::hint::black_box;

use knowledgepulse_clean::{CleanOptions, Cleaner, Identities, places_in_text};
use knowledgepulse_formats::{
    reader::{Settings, TraceReader},
    sections::Sections,
};
use knowledgepulse_json::Value;

/// Sixteen times the work takes sixteen times the time; more by caches and by what a machine does besides.
const MOST_GROWTH: f64 = 64.0;
const DOUBLINGS: u32 = 4;
/// Less work is lost in the noise.
const LEAST_BYTES: usize = 2048;

/// Returns the processor time of this thread in seconds.
fn processor_time() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes the time that is passed, and nothing else.
    #[allow(unsafe_code)]
    unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
    }
    #[allow(clippy::cast_precision_loss)] // A test takes seconds.
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    seconds
}

/// Returns the time that something takes with a text.
fn time_of(work: fn(&str), text: &str) -> f64 {
    let start = processor_time();
    work(text);
    processor_time() - start
}

/// Splits a text that comes in pieces.
fn split(text: &str) {
    let mut sections = Sections::new(u64::MAX, str::len);
    for piece in text.as_bytes().chunks(1024) {
        sections.push(piece);
        black_box(sections.by_ref().count());
    }
    sections.finish();
    black_box(sections.count());
}

/// Reads the traces of a file.
fn read(text: &str) {
    let reader = TraceReader::new(Settings::default());
    black_box(reader.read_all(text.as_bytes()).ok());
}

/// Learns who is named in a text.
fn learn(text: &str) {
    Identities::default().learn_json(&Value::Array(vec![text.into()]));
}

/// Cleans a text as the SDK does, learns from it, cleans it as a text of JSON, and looks for places to review.
fn clean(text: &str) {
    let sdk = CleanOptions {
        identifiers: true,
        strict: false,
    };
    let units: Vec<_> = text.encode_utf16().collect();
    black_box(Cleaner::new(sdk).clean_text(&units));
    let value = Value::Array(vec![text.into()]);
    let mut identities = Identities::default();
    identities.learn_json(&value);
    let options = CleanOptions {
        identifiers: true,
        strict: true,
    };
    let mut cleaner = Cleaner::new(options);
    cleaner.set_identities(identities);
    black_box(cleaner.clean_json(&value).ok());
    black_box(places_in_text(text).count());
}

/// Checks that the time to clean grows linearly with the units of a text, which a number can tell apart.
fn expect_linear(name: &str, unit: impl Fn(usize) -> String) {
    let text = |count: usize| (0..count).map(&unit).collect::<String>();
    let least = LEAST_BYTES / unit(0).len() + 1;
    expect_linear_work(name, clean, [text(least), text(least << DOUBLINGS)]);
}

/// Checks that the time grows linearly from a text to a longer one.
fn expect_linear_work(name: &str, work: fn(&str), [short, long]: [String; 2]) {
    // Compiles what is compiled once.
    work(&short);
    let before = (0..3)
        .map(|_| time_of(work, &short))
        .fold(f64::INFINITY, f64::min);
    let growth = || time_of(work, &long) / before;
    assert!(
        (0..3).any(|_| growth() < MOST_GROWTH),
        "{name}: {} times",
        growth()
    );
}

#[test]
fn time_grows_linearly_with_the_findings_of_a_text() {
    expect_linear("addresses", |at| format!("bob{at}@x{at}.example, "));
    expect_linear("passwords", |at| format!("password=hunter{at}x\n"));
    expect_linear("one address", |_| "bob@x.example ".into());
    expect_linear("names", |at| {
        format!("Author: Ann{at} Lind{at} <ann{at}@x.example>\n")
    });
    expect_linear("homes", |at| format!("/home/zorb{at}x/a "));
    // To look for something in a text takes so little that it shows in long ones alone.
    let table = |rows: usize| (0..rows).map(row_of_names).collect::<String>();
    let texts = [table(8000), table(8000 << DOUBLINGS)];
    expect_linear_work("names that no list knows", learn, texts);
}

/// Returns a row of a table with names of its own, which look like no word.
fn row_of_names(at: usize) -> String {
    const TO_LETTERS: u8 = b'a' - b'0';
    let letters = format!("{at:05}").into_bytes();
    let letters: String = letters
        .into_iter()
        .map(|digit| char::from(digit + TO_LETTERS))
        .collect();
    format!("| Wv{letters}k Qj{letters}zt |\n")
}

#[test]
fn time_grows_linearly_with_repeated_beginnings() {
    for unit in [
        "@",
        "a@",
        "=",
        "password ",
        "password:",
        "token",
        "-password",
        ":'",
        "value:\"",
        "pw \"",
        "{",
        "{\"name\":",
        "<a ",
        "%40",
        "\\u0040",
        "&#64;",
        "\\",
        "\"",
        "-----BEGIN ",
        "sk-",
        "ghp_-",
        "eyJ",
        "QUJD",
        "00",
        "1 ",
        "curl -u ",
        "echo x | ",
        "customer: ",
        "customer|",
        "name,",
        "| name |\n",
        "Dear ",
        "abandon ",
        "Bearer ",
        "https://",
        "://a:",
        "Cookie: ",
        "Authorization: ",
        "kind: Secret\ndata:\n",
        "key\n",
        "token\nx\n",
        "password\t",
        "a\n+",
        "\u{200b}",
        "secret 0 ",
        "'a','-",
        "a",
        "1234567890",
        "token: [REDACTED",
        "1.",
        "4111 1111 1111 1112 ",
        "xoxd-",
        "<password>",
        "mysql -p",
        "a:5432:b:c:",
        "DE89 3704",
        "+49 30 ",
        "a'b@",
    ] {
        expect_linear(unit, |_| unit.to_owned());
    }
    expect_linear("dots and hyphens after an @", |at| match at {
        0 => "a@b-.".into(),
        _ => "b-.".into(),
    });
    expect_linear("names and long words", |_| format!("x_key={} ", "a".repeat(200)));
}

#[test]
fn time_grows_linearly_with_tables_and_with_fields() {
    expect_linear("rows", |at| format!("| Ann Lind | hunter{at}x |\n"));
    expect_linear("tables", |at| {
        format!("| name | password |\n|---|---|\n| Ann Lind | hunter{at}x |\n\n")
    });
    expect_linear("columns", |_| "name | customer | password | ".into());
    expect_linear("fields", |at| {
        format!("\"name\": \"a{at}\", \"value\": \"b{at}\", ")
    });
    expect_linear("objects", |at| {
        format!("{{\"name\": \"API_KEY\", \"value\": \"hunter{at}x\"}}, ")
    });
    expect_linear("lines of YAML", |at| {
        format!("- name: DB_PASSWORD\n  value: hunter{at}x\n")
    });
}

#[test]
fn time_grows_linearly_with_a_line_that_comes_in_pieces() {
    const LEAST: usize = 100_000;
    for (begin, unit) in [
        ("", "text "),
        ("[1,", "2"),
        ("[", " "),
        ("{\"a\":\"b\"}", " "),
        ("{\"a\":\"b\"}", "text "),
        ("[{\"a\":b}", "text "),
    ] {
        let text = |count: usize| format!("{begin}{}", unit.repeat(count));
        expect_linear_work(begin, split, [text(LEAST), text(LEAST << DOUBLINGS)]);
    }
    let long_value = |count: usize| format!("{{\"a\":\"{0}\"}} {0}", "text ".repeat(count));
    expect_linear_work(
        "text behind a value",
        split,
        [long_value(LEAST), long_value(LEAST << DOUBLINGS)],
    );
}

#[test]
fn time_grows_linearly_with_the_sub_agents_of_a_session() {
    const LEAST: usize = 1000;
    let record = |of: &str, part: &str| {
        format!(
            r#"{{"type":"assistant","session_id":"s","parent_tool_use_id":{of},"message":{{"role":"assistant","content":[{part}]}}}}"#
        ) + "\n"
    };
    let unit = |at: usize| {
        let call =
            format!(r#"{{"type":"tool_use","id":"call-{at}","name":"Task","input":{{"prompt":"p"}}}}"#);
        record("null", &call) + &record(&format!(r#""call-{at}""#), r#"{"type":"text","text":"t"}"#)
    };
    let text = |count: usize| (0..count).map(unit).collect();
    expect_linear_work("sub-agents", read, [text(LEAST), text(LEAST << DOUBLINGS)]);
}
