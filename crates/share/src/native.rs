//! Sessions in their own format, where Hugging Face's `datasets` loads it as agent traces.

use knowledgepulse_formats::FormatName;
use knowledgepulse_json::{Value, parse_str, without_lone_surrogates};

/// A line of a session, and its value.
pub(crate) struct Line<'t> {
    /// The text, with the end of the line.
    pub text: &'t str,
    pub value: Value,
}

/// Returns the lines of a session file that are JSON objects, and how many others it has. Blank lines are no lines. Of a file of several
/// sessions of Hermes, only the one on this line.
pub(crate) fn lines_of(text: &str, format: FormatName, line: Option<u64>) -> (Vec<Line<'_>>, usize) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut lines, mut others) = (Vec::new(), 0);
    for (number, text) in (1..).zip(text.split_inclusive('\n')) {
        let is_other_session = format == FormatName::Hermes && line.is_some_and(|line| line != number);
        if is_other_session || text.trim().is_empty() {
            continue;
        }
        match parse_str(text.trim()) {
            Ok(value @ Value::Object(_)) => lines.push(Line { text, value }),
            _ => others += 1,
        }
    }
    (lines, others)
}

/// Returns whether `datasets` recognises the lines as a session of this format.
pub(crate) fn is_loadable(format: FormatName, lines: &[Line]) -> bool {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).is_some();
    let is_type = |value: &Value, types: &[&str]| {
        let kind = value.get("type").and_then(Value::as_str);
        kind.is_some_and(|kind| types.contains(&kind))
    };
    let Some(Line { value: first, .. }) = lines.first() else {
        return false;
    };
    match format {
        FormatName::ClaudeCode => lines.iter().any(|Line { value, .. }| {
            let has_session = text(value, "sessionId") || text(value, "session_id");
            is_type(value, &["user", "assistant"]) && value.get("message").is_some() && has_session
        }),
        FormatName::Codex => {
            let types = ["session_meta", "turn_context", "response_item", "event_msg"];
            is_type(first, &types) && first.get("payload").is_some()
        }
        FormatName::Pi => is_type(first, &["session"]),
        FormatName::Droid => {
            let has_version = first.get("version").is_some_and(|version| !version.is_null());
            is_type(first, &["session_start"]) && text(first, "cwd") && has_version
        }
        FormatName::Hermes => {
            let time = first.get("started_at").and_then(Value::as_number);
            let messages = first.get("messages").and_then(Value::as_array);
            lines.len() == 1 && time.is_some() && messages.is_some()
        }
        _ => false,
    }
}

/// Returns a line of JSON as Python reads it: without lone surrogates, which no file can hold, and with escapes for the
/// signs at which `splitlines` would cut it.
pub(crate) fn for_python(line: String) -> String {
    let signs = [
        ('\u{85}', "\\u0085"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    let line = signs.iter().fold(line, |line, (sign, escape)| {
        if line.contains(*sign) {
            line.replace(*sign, escape)
        } else {
            line
        }
    });
    without_lone_surrogates(&line).into_owned()
}
