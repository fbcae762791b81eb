//! Sessions in their own format, where Hugging Face's `datasets` loads it as agent traces.

use std::borrow::Cow;

use knowledgepulse_formats::{DEFAULT_LIMIT, FormatName};
use knowledgepulse_json::{Text, Value, parse_str, without_lone_surrogates};

/// Returns the lines of a session file: of a JSON object its text, with the end of the line, and its value, and `None` of any other line.
/// Blank lines are no lines.
pub(crate) fn records_of(text: &str) -> impl Iterator<Item = Option<(&str, Value)>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.split_inclusive('\n').filter(|line| !line.trim().is_empty());
    lines.map(|line| {
        let is_read = line.len() as u64 <= DEFAULT_LIMIT;
        let value = is_read.then(|| parse_str(line.trim()).ok()).flatten();
        let object = value.filter(|value| matches!(value, Value::Object(_)));
        object.map(|value| (line, value))
    })
}

/// What the records of a file say of it.
pub(crate) struct Shape {
    format: FormatName,
    count: u64,
    /// Whether `datasets` takes the file for a session of the format.
    is_recognised: bool,
    /// Of Claude Code, the session that the records name, and whether they name others.
    session: Option<Text>,
    has_others: bool,
}

impl Shape {
    pub(crate) fn new(format: FormatName) -> Self {
        Self {
            format,
            count: 0,
            is_recognised: false,
            session: None,
            has_others: false,
        }
    }

    /// Takes the next record.
    pub(crate) fn see(&mut self, record: &Value) {
        let text = |name: &str| record.get(name).and_then(Value::as_text);
        self.count += 1;
        if self.format != FormatName::ClaudeCode {
            self.is_recognised |= self.count == 1 && is_recognised(self.format, record);
        } else if let Some(session) = text("sessionId").or(text("session_id")) {
            self.is_recognised |= is_recognised(self.format, record);
            self.has_others |= self.session.get_or_insert_with(|| session.clone()) != session;
        }
    }

    /// Returns whether the file can be shared as it is: `datasets` recognises it, and it has one session.
    pub(crate) fn is_loadable(&self) -> bool {
        self.is_recognised && !self.has_others && (self.format != FormatName::Hermes || self.count == 1)
    }
}

/// Returns whether `datasets` takes a file for a session of a format by a record: the first one, or of Claude Code any.
fn is_recognised(format: FormatName, record: &Value) -> bool {
    let field = |name: &str| record.get(name).filter(|value| !value.is_null());
    let kind = field("type").and_then(Value::as_str).unwrap_or_default();
    match (format, kind) {
        (FormatName::ClaudeCode, "user" | "assistant") => record.get("message").is_some(),
        (FormatName::Codex, "session_meta" | "turn_context" | "response_item" | "event_msg") => {
            record.get("payload").is_some()
        }
        (FormatName::Pi, "session") => true,
        (FormatName::Droid, "session_start") => {
            field("cwd").is_some_and(|cwd| cwd.as_text().is_some()) && field("version").is_some()
        }
        (FormatName::Hermes, _) => {
            let time = field("started_at").and_then(Value::as_number);
            time.is_some() && field("messages").is_some_and(|list| list.as_array().is_some())
        }
        _ => false,
    }
}

/// Returns whether a record is a piece of a message that another record has whole: a secret may be cut in two between such pieces.
pub(crate) fn is_piece(record: &Value) -> bool {
    let kinds = [&["type"][..], &["payload", "type"], &["msg", "type"]];
    kinds.iter().any(|path| {
        let kind = record.at(path).and_then(Value::as_str).unwrap_or_default();
        kind.ends_with("_delta")
            || ["stream_event", "message_update", "tool_execution_update"].contains(&kind)
    })
}

/// How documents begin in Base64: PDF, ZIP and the formats of offices in it, and the older ones of Microsoft; and how pictures do: PNG, JPEG,
/// GIF and WebP.
const DOCUMENTS: [&str; 8] = [
    "JVBERi0",
    "UEsDB",
    "0M8R4KGx",
    "e1xydGY",
    "iVBORw0KGgo",
    "/9j/",
    "R0lGOD",
    "UklGR",
];
const MEDIA_TYPES: [&str; 4] = ["media_type", "mimeType", "mime_type", "mediaType"];
/// A shorter text is no document. The cleaner does not decode a longer text than the second.
const LEAST_DOCUMENT: usize = 64;
const MOST_DECODED: usize = 131_072;
pub(crate) const DOCUMENT: &str = "document";

/// Replaces documents, pictures, sounds and films in Base64 in a value, in which nothing can be searched. Returns how many there were.
pub(crate) fn leave_out_documents(value: &mut Value) -> u64 {
    match value {
        Value::String(text) if is_document(text) => hide(value),
        Value::Array(elements) => elements.iter_mut().map(leave_out_documents).sum(),
        Value::Object(object) => {
            let is_named = MEDIA_TYPES.iter().any(|name| object.contains(name));
            let fields = object.iter_mut().map(|(_, field)| match field.as_str() {
                Some(text) if is_named && is_base64(text) => hide(field),
                _ => leave_out_documents(field),
            });
            fields.sum()
        }
        _ => 0,
    }
}

/// Replaces a document by a marker, and counts it.
fn hide(value: &mut Value) -> u64 {
    *value = format!("[REDACTED:{DOCUMENT}]").into();
    1
}

/// Returns whether a text is a document by its beginning, by its `data:` address, or because nothing else is so long.
fn is_document(text: &str) -> bool {
    let address = text.strip_prefix("data:");
    let letters = address.and_then(|address| address.split_once(";base64,"));
    let is_one = letters.is_some()
        || text.len() > MOST_DECODED
        || DOCUMENTS.iter().any(|start| text.starts_with(start));
    is_one && is_base64(letters.map_or(text, |(_, letters)| letters))
}

fn is_base64(text: &str) -> bool {
    let is_of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_\r\n".contains(&byte);
    text.len() >= LEAST_DOCUMENT && text.bytes().all(is_of_base64)
}

/// Returns the `session_id` that `datasets` finds in a session: that of the first record with one.
pub(crate) fn session_id_of(document: &str) -> Option<Value> {
    let mut records = document.lines().filter_map(|line| parse_str(line).ok());
    records.find_map(|record| {
        let kind = record.get("type").and_then(Value::as_str);
        let is_header = kind.map_or(record.get("messages").is_some(), |kind| {
            ["session", "session_start"].contains(&kind)
        });
        let names = [&["sessionId"][..], &["session_id"], &["payload", "id"]];
        let names = names.into_iter().chain(is_header.then_some(&["id"][..]));
        let mut ids = names.filter_map(|path| record.at(path).filter(|id| id.as_str().is_some()));
        ids.next().cloned()
    })
}

/// Returns a line of JSON as Python reads it: without lone surrogates, which no file can hold, and with escapes for the
/// signs at which `splitlines` would cut it.
pub(crate) fn for_python(line: &str) -> Cow<'_, str> {
    let signs = [
        ('\u{85}', "\\u0085"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    let mut line = without_lone_surrogates(line);
    if line.is_ascii() {
        return line;
    }
    for (sign, escape) in signs {
        if line.contains(sign) {
            line = line.replace(sign, escape).into();
        }
    }
    line
}

/// Returns a value as a line of JSON, as Python reads it.
pub(crate) fn line_for_python(value: &Value) -> String {
    for_python(&(value.to_json() + "\n")).into_owned()
}
