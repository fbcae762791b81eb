//! Sessions of Gemini CLI: the files in `~/.gemini/tmp/`, in one object or a record a line, and the checkpoints of `/chat save`.
//! `chatRecordingTypes.ts` of google-gemini/gemini-cli has their types.

use std::path::Path;

use knowledgepulse_json::{Object, Text, Value};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    contexts::is_of_program,
    event::{Call, Events, Fact, Origin, Outcome, TextKind, Undo, What},
    messages::add_said,
    values::{
        elements_of, fields_of, first_of, is_given, joined, list_of, object_of, or, str_of, string_of,
        text_of_part,
    },
};

/// The model's answers to the set-up of a checkpoint.
const SET_UP: &str = "Got it. Thanks for the context!";

/// The tool whose results have an exit code, and the text before the code.
const SHELL: &str = "run_shell_command";
const EXIT_CODE: &str = "Exit Code: ";

/// The commands that the program carries out itself.
#[rustfmt::skip]
const COMMANDS: [&str; 52] = [
    "about", "agents", "approval-mode", "arena", "auth", "bashes", "bug", "chat", "clear", "commands", "compress", "copy", "corgi",
    "dir", "directory", "docs", "editor", "exit", "export", "extensions", "footer", "help", "hooks", "ide", "init", "language", "mcp",
    "memory", "model", "permissions", "plan", "policies", "privacy", "profile", "quit", "quit-confirm", "restore", "resume", "rewind",
    "settings", "setup-github", "shells", "shortcuts", "skills", "stats", "summary", "terminal-setup", "theme", "tools", "upgrade",
    "usage", "vim",
];

/// Sessions of Gemini CLI.
pub struct GeminiCli;

fn is_header(record: &Object) -> bool {
    ["sessionId", "projectHash"]
        .iter()
        .all(|name| string_of(record.get(name)).is_some())
}

/// Returns whether a value is a content of the API: a message of a checkpoint.
fn is_content(value: &Value) -> bool {
    let has = |name| value.get(name).is_some();
    has("role") && value.get("parts").is_some_and(|parts| parts.as_array().is_some())
}

/// Returns whether a value is the first message of a checkpoint.
fn is_set_up(value: &Value) -> bool {
    let first = list_of(value.get("parts")).first().and_then(text_of_part);
    is_content(value) && first.is_some_and(|text| is_of_program(text))
}

/// Returns the contents of a checkpoint.
fn checkpoint_of(record: &Object) -> Option<&[Value]> {
    let history = record.get("history")?.as_array()?;
    history.first().is_some_and(is_content).then_some(history)
}

/// Returns whether a record is of the session before it, if there is one.
fn is_rest(value: &Value) -> bool {
    let record = object_of(Some(value));
    let is_type = |kind| matches!(kind, "user" | "gemini" | "info" | "warning" | "error");
    let is_message = string_of(record.get("id")).is_some() && str_of(record.get("type")).is_some_and(is_type);
    record.contains("$set") || record.contains("$rewindTo") || is_message || is_content(value)
}

impl Adapter for GeminiCli {
    fn format(&self) -> FormatName {
        FormatName::GeminiCli
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| {
            let record = object_of(Some(value));
            let is_reply = str_of(record.get("type")) == Some("gemini") && record.contains("content");
            is_header(record) || checkpoint_of(record).is_some() || is_set_up(value) || is_reply
        })
    }

    fn decode(&self, value: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let record = object_of(Some(value));
        if let Some(history) = checkpoint_of(record) {
            for content in history {
                add_entry(say, object_of(Some(content)))?;
            }
            return Ok(Decoded::Whole);
        }
        if is_header(record) {
            add_session(say, record)?;
            return Ok(Decoded::Begins);
        }
        if let Some(Value::Object(fields)) = record.get("$set") {
            add_session(say, fields)?;
        } else if let Some(id) = record.get("$rewindTo") {
            let from = string_of(Some(id)).cloned().unwrap_or_default();
            say.add(What::Undo(Undo::From(from)));
        } else if is_rest(value) {
            add_entry(say, record)?;
        } else {
            return Ok(Decoded::Unknown);
        }
        Ok(if is_set_up(value) {
            Decoded::Begins
        } else {
            Decoded::GoesOn
        })
    }
}

/// Adds the fields of a session, which may hold all of its messages.
fn add_session(say: &mut Events, fields: &Object) -> Result<(), Wrong> {
    say.begin(Origin {
        time: fields.get("startTime").cloned(),
        ..Origin::default()
    });
    if let Some(id) = string_of(fields.get("sessionId")) {
        say.add(What::Fact(Fact::Id(id.clone())));
        say.fact("session_id", fields.get("sessionId"));
    }
    say.fact("summary", fields.get("summary"));
    if str_of(fields.get("kind")) == Some("subagent") {
        say.fact("is_subagent", Some(&true.into()));
    }
    if let Some(Value::Array(messages)) = fields.get("messages") {
        say.add(What::Undo(Undo::All));
        for message in messages {
            add_entry(say, object_of(Some(message)))?;
        }
    }
    Ok(())
}

/// Adds a message of a session, or a content of a checkpoint.
fn add_entry(say: &mut Events, message: &Object) -> Result<(), Wrong> {
    say.begin(Origin {
        id: string_of(message.get("id")).cloned(),
        time: message.get("timestamp").cloned(),
        ..Origin::default()
    });
    say.first_fact("model", message.get("model"));
    let content = or(message.get("content"), message.get("parts"));
    match str_of(first_of(message, &["type", "role"])) {
        Some("user") => add_turn(say, content, None)?,
        Some("gemini") => {
            for thought in list_of(message.get("thoughts")) {
                let parts = ["subject", "description"].map(|name| string_of(thought.get(name)).cloned());
                say.say(TextKind::Reasoning, joined(parts.into_iter().flatten(), "\n"));
            }
            say.say_content(TextKind::Message, content);
            for call in list_of(message.get("toolCalls")) {
                add_call(say, object_of(Some(call)));
            }
        }
        Some("model") => {
            let first = list_of(content).first().and_then(text_of_part).map(Text::as_str);
            if first.is_some_and(|text| text.trim_start().starts_with(SET_UP)) {
                say.leave_out("context of the program");
            } else {
                add_said(say, "model", content)?;
            }
        }
        Some(kind @ ("info" | "warning" | "error")) => say.leave_out(format!("message {kind}")),
        _ => return Err(Wrong::new("a message has a type that is not known")),
    }
    Ok(())
}

/// Returns whether a prompt is a command that the program carries out itself.
fn is_command(text: &Text) -> bool {
    let command = text.trim().strip_prefix('/');
    let name = command.and_then(|command| command.split_whitespace().next());
    name.is_some_and(|name| COMMANDS.contains(&name)) || matches!(text.trim(), "?" | "/")
}

/// Adds a turn of the user, which may hold results of tools, of a status that stands beside it.
pub fn add_turn(say: &mut Events, content: Option<&Value>, status: Option<&str>) -> Result<(), Wrong> {
    let parts = elements_of(content);
    if parts.first().and_then(text_of_part).is_some_and(is_command) {
        say.leave_out("command of the program");
        return Ok(());
    }
    let mut own = Vec::new();
    for part in parts {
        match part.get("functionResponse").and_then(Value::as_object) {
            Some(result) => add_result(say, result, status),
            None => own.push(part.clone()),
        }
    }
    if own.is_empty() {
        return Ok(());
    }
    add_said(say, "user", Some(&own.into()))
}

fn add_call(say: &mut Events, call: &Object) {
    say.call(Call {
        id: string_of(call.get("id")).cloned(),
        ..Call::new(None, call.get("name"), call.get("args"))
    });
    let status = str_of(call.get("status"));
    for part in elements_of(call.get("result")) {
        if let Some(Value::Object(result)) = part.get("functionResponse") {
            add_result(say, result, status);
        }
    }
}

/// Adds the result of a call with this status.
fn add_result(say: &mut Events, result: &Object, status: Option<&str>) {
    let response = fields_of(result, "response");
    let error = response.get("error").filter(|error| is_given(Some(error)));
    let content = error.or(response.get("output")).or(result.get("response"));
    let content = say.text_of(content);
    let says_code = |text: &str| {
        let mut codes = text.lines().filter_map(|line| line.strip_prefix(EXIT_CODE));
        codes.next_back().is_some_and(|code| code.trim() != "0")
    };
    let is_shell = str_of(result.get("name")) == Some(SHELL);
    let is_failed = error.is_some() || (is_shell && says_code(&content));
    say.result(Outcome {
        id: string_of(result.get("id")).cloned(),
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
