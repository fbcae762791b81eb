//! Sessions of Gemini CLI: the files in `~/.gemini/tmp/`, in one object or a record a line, and the checkpoints of `/chat save`.
//! `chatRecordingTypes.ts` of google-gemini/gemini-cli has their types.

use std::{
    collections::{HashMap, HashSet},
    mem,
};

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    Entry, FormatName, FormatReader, Found, Wrong,
    messages::add_said,
    open_traces::CurrentTrace,
    trace::{Call, Outcome, Sink, TextKind, TraceBuilder, fields_of, text_of_part},
    values::{elements_of, first_of, is_given, joined, list_of, object_of, or, str_of, string_of},
};

/// How messages begin that the program writes in the user's name.
const OF_PROGRAM: [&str; 3] = [
    "<session_context>",
    "<hook_context>",
    "This is the Gemini CLI. We are setting up the context for our chat.",
];

/// The model's answers to the last of these.
const SET_UP: &str = "Got it. Thanks for the context!";

/// The tool whose results have an exit code, and the text before the code.
const SHELL: &str = "run_shell_command";
const EXIT_CODE: &str = "Exit Code: ";

fn is_header(record: &Object) -> bool {
    ["sessionId", "projectHash"]
        .iter()
        .all(|name| string_of(record.get(name)).is_some())
}

/// Returns a content of the API: a message of a checkpoint.
fn is_content(value: &Value) -> bool {
    let has = |name| value.get(name).is_some();
    has("role") && value.get("parts").is_some_and(|parts| parts.as_array().is_some())
}

/// Returns the first message of a checkpoint.
fn is_set_up(value: &Value) -> bool {
    let parts = list_of(value.get("parts"));
    is_content(value)
        && parts
            .first()
            .is_some_and(|part| begins_with(text_of_part(part), &OF_PROGRAM))
}

fn begins_with(text: Option<&Text>, beginnings: &[&str]) -> bool {
    text.is_some_and(|text| {
        let text = text.to_string_lossy();
        let text = text.trim_start();
        beginnings.iter().any(|beginning| text.starts_with(beginning))
    })
}

/// Returns the contents of a checkpoint.
fn checkpoint_of(record: &Object) -> Option<&[Value]> {
    let history = record.get("history")?.as_array()?;
    history.first().is_some_and(is_content).then_some(history)
}

/// Returns whether a record is of this format.
pub fn recognises(value: &Value) -> bool {
    let record = object_of(Some(value));
    let is_reply = str_of(record.get("type")) == Some("gemini") && record.contains("content");
    is_header(record) || checkpoint_of(record).is_some() || is_set_up(value) || is_reply
}

/// The messages of a session up to its end: later records may replace earlier ones.
#[derive(Default)]
struct Session {
    messages: Vec<Value>,
    /// Where the message with an id is.
    places: HashMap<Text, usize>,
}

impl Session {
    fn add(&mut self, message: &Value) {
        let count = self.messages.len();
        let id = string_of(message.get("id"));
        let at = id.map_or(count, |id| *self.places.entry(id.clone()).or_insert(count));
        if at == count {
            self.messages.push(message.clone());
        } else {
            self.messages[at] = message.clone();
        }
    }

    fn set(&mut self, builder: &mut TraceBuilder, fields: &Object) {
        if let Some(id) = string_of(fields.get("sessionId")) {
            builder.ids = vec![id.clone()];
            builder.keep("session_id", fields.get("sessionId"));
        }
        builder.at(fields.get("startTime"));
        builder.keep("summary", fields.get("summary"));
        if str_of(fields.get("kind")) == Some("subagent") {
            builder.details.insert("is_subagent", true);
        }
        if let Some(Value::Array(messages)) = fields.get("messages") {
            self.messages.clear();
            self.places = HashMap::new();
            messages.iter().for_each(|message| self.add(message));
        }
    }

    /// Takes back the message with an id and all after it; without one that is known, all.
    fn rewind(&mut self, builder: &mut TraceBuilder, id: Option<&Text>) {
        let kept = id.and_then(|id| self.places.get(id)).copied().unwrap_or_default();
        for message in self.messages.drain(kept..) {
            builder.leave_out("message that was taken back");
            if let Some(id) = string_of(message.get("id")) {
                self.places.remove(id);
            }
        }
    }

    fn finish(self, mut builder: TraceBuilder) -> Result<TraceBuilder, Wrong> {
        let mut answered = HashSet::new();
        for message in &self.messages {
            add_message_of(&mut builder, object_of(Some(message)), &mut answered)?;
        }
        Ok(builder)
    }
}

/// Reads the sessions of an input.
#[derive(Default)]
pub struct Reader {
    current: CurrentTrace,
    session: Session,
    is_open: bool,
}

/// Returns whether a record is of the session before it, if there is one.
pub fn is_rest(value: &Value) -> bool {
    let record = object_of(Some(value));
    let is_type = |kind| matches!(kind, "user" | "gemini" | "info" | "warning" | "error");
    let is_message = string_of(record.get("id")).is_some() && str_of(record.get("type")).is_some_and(is_type);
    record.contains("$set") || record.contains("$rewindTo") || is_message || is_content(value)
}

impl FormatReader for Reader {
    fn read(&mut self, entry: &Entry, found: &mut Vec<Found>) -> Result<(), Wrong> {
        let record = object_of(Some(entry.value));
        let history = checkpoint_of(record);
        if is_header(record) || history.is_some() || is_set_up(entry.value) {
            self.end(found);
        } else if !is_rest(entry.value) {
            return Err(Wrong::new("it is no record of a session"));
        }
        let begin = |entry: &Entry| TraceBuilder::of_coding_agent(FormatName::GeminiCli, entry);
        let builder = self.current.add(entry, begin)?;
        let session = &mut self.session;
        self.is_open = history.is_none();
        if let Some(history) = history {
            session.messages = history.to_vec();
        } else if is_header(record) {
            session.set(builder, record);
        } else if let Some(Value::Object(fields)) = record.get("$set") {
            session.set(builder, fields);
        } else if record.contains("$rewindTo") {
            session.rewind(builder, string_of(record.get("$rewindTo")));
        } else {
            session.add(entry.value);
        }
        Ok(())
    }

    fn goes_on(&self, value: &Value) -> bool {
        self.is_open && is_rest(value) && !is_header(object_of(Some(value)))
    }

    fn end(&mut self, found: &mut Vec<Found>) {
        let session = mem::take(&mut self.session);
        let builder = self.current.take();
        found.extend(builder.map(|builder| Found::later(|| session.finish(builder))));
        self.is_open = false;
    }
}

/// Adds a message of a session, or a content of a checkpoint.
fn add_message_of(
    builder: &mut TraceBuilder,
    message: &Object,
    answered: &mut HashSet<Text>,
) -> Result<(), Wrong> {
    builder.at(message.get("timestamp"));
    builder.keep_first("model", message.get("model"));
    let content = or(message.get("content"), message.get("parts"));
    let kind = first_of(message, &["type", "role"]);
    match str_of(kind) {
        Some("user") => add_turn(builder, content, answered)?,
        Some("gemini") => {
            builder.is_conversation = true;
            for thought in list_of(message.get("thoughts")) {
                let parts = ["subject", "description"].map(|name| string_of(thought.get(name)).cloned());
                builder.say(TextKind::Reasoning, joined(parts.into_iter().flatten(), "\n"));
            }
            builder.say_content(TextKind::Message, content);
            for call in list_of(message.get("toolCalls")) {
                add_call(builder, object_of(Some(call)), answered);
            }
        }
        Some("model") => {
            let first = list_of(content).first().and_then(text_of_part);
            if begins_with(first, &[SET_UP]) {
                builder.leave_out("context of the program");
            } else {
                builder.is_conversation = true;
                add_said(builder, "model", content)?;
            }
        }
        Some(kind @ ("info" | "warning" | "error")) => {
            builder.leave_out(joined(["message".into(), kind.into()], " "));
        }
        _ => return Err(Wrong::new("a message has a type that is not known")),
    }
    Ok(())
}

/// Adds a turn of the user, which may hold results of tools.
fn add_turn(
    builder: &mut TraceBuilder,
    content: Option<&Value>,
    answered: &mut HashSet<Text>,
) -> Result<(), Wrong> {
    let parts = elements_of(content);
    let first = parts.first().and_then(text_of_part);
    if begins_with(first, &OF_PROGRAM) {
        builder.leave_out("context of the program");
        return Ok(());
    }
    if begins_with(first, &["/", "?"]) {
        builder.leave_out("command of the program");
        return Ok(());
    }
    let mut own = Vec::new();
    for part in parts {
        match part.get("functionResponse").and_then(Value::as_object) {
            // The result of a call is repeated in the user's name.
            Some(result) if id_in(result).is_some_and(|id| answered.contains(id)) => {}
            Some(result) => add_result(builder, result, None),
            None => own.push(part.clone()),
        }
    }
    if own.is_empty() {
        return Ok(());
    }
    builder.is_conversation = true;
    add_said(builder, "user", Some(&own.into()))
}

fn add_call(builder: &mut TraceBuilder, call: &Object, answered: &mut HashSet<Text>) {
    builder.call(Call {
        id: string_of(call.get("id")).cloned(),
        ..Call::new(None, call.get("name"), call.get("args"))
    });
    let status = str_of(call.get("status"));
    for part in elements_of(call.get("result")) {
        if let Some(Value::Object(result)) = part.get("functionResponse") {
            answered.extend(id_in(result).cloned());
            add_result(builder, result, status);
        }
    }
}

fn id_in(result: &Object) -> Option<&Text> {
    string_of(result.get("id"))
}

/// Adds the result of a call with this status.
fn add_result(builder: &mut TraceBuilder, result: &Object, status: Option<&str>) {
    builder.is_conversation = true;
    let response = fields_of(result, "response");
    let error = response.get("error").filter(|error| is_given(Some(error)));
    let content = error.or(response.get("output")).or(result.get("response"));
    let content = builder.text_of(content);
    let says_code = |text: &str| {
        let mut codes = text.lines().filter_map(|line| line.strip_prefix(EXIT_CODE));
        codes.next_back().is_some_and(|code| code.trim() != "0")
    };
    let is_shell = str_of(result.get("name")) == Some(SHELL);
    let is_failed = error.is_some() || (is_shell && says_code(&content.to_string_lossy()));
    builder.result(Outcome {
        id: id_in(result).cloned(),
        content,
        failed: match status {
            Some("cancelled") => Some(false),
            Some("error") => Some(true),
            _ if is_failed => Some(true),
            Some("success") => Some(false),
            _ => None,
        },
    });
}
