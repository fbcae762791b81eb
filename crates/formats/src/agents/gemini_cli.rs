//! Sessions of Gemini CLI: the files in `~/.gemini/tmp/`, in one object or a record a line, and the checkpoints of `/chat save`.
//! `chatRecordingTypes.ts` of google-gemini/gemini-cli has their types.

use crate::prelude::*;

pub static FORMAT: Format = Format::sessions("gemini-cli", decode)
    .also(is_set_up)
    .beside(beside);

/// The model's answers to the set-up of a checkpoint.
const SET_UP: &str = "Got it. Thanks for the context!";

/// The model's answer to the summary of a compression.
const COMPRESSED: &str = "Got it. Thanks for the additional context!";

/// What stands around the contents of the files that a prompt names.
const REFERENCED: [&str; 2] = ["--- Content from referenced files ---", "--- End of content ---"];

/// The tool whose results have an exit code, and the text before the code.
const SHELL: &str = "run_shell_command";
const EXIT_CODE: &str = "Exit Code: ";

/// Says the folder that the agent worked in, by `.project_root` beside `chats/`, and that it is Qwen Code, which wrote the same before 2026.
fn beside(path: &Path, say: &mut Events) {
    let chats = path.ancestors().find(|folder| folder.ends_with("chats"));
    let of_qwen = path.iter().any(|folder| folder == ".qwen");
    say.add_all(of_qwen.then(|| What::Fact(Fact::Framework("qwen-code".into()))));
    let root = chats.and_then(|chats| text_of_small(&chats.with_file_name(".project_root")));
    say.fact("cwd", root.map(|root| root.trim().into()).as_ref());
}

/// Returns whether a value is the first message of a checkpoint.
fn is_set_up(value: &Value) -> bool {
    is(value, "gemini-content") && begins_with(value.get("parts"), "program")
}

/// Adds a record that `gemini --output-format stream-json` prints; `None` for another record.
fn add_printed(say: &mut Events, record: &Value) -> Option<Decoded> {
    let kind = str_of(record.get("type"))
        .filter(|_| record.get("timestamp").is_some() && record.get("id").is_none())?;
    say.begin_record(None, record.get("timestamp"));
    let id = record.get("tool_id");
    match (kind, str_of(record.get("role"))) {
        ("init", _) => {
            say.session(record.get("session_id"));
            say.first_fact("model", record.get("model"));
            return Some(Decoded::Begins);
        }
        ("message", Some("assistant")) => {
            let text = say.text_of(record.get("content"));
            say.add(What::Piece(TextKind::Message, text));
        }
        ("message", Some(role)) => add_said(say, role, record.get("content")),
        ("tool_use", _) => say.call(Call::new(id, record.get("tool_name"), record.get("parameters"))),
        ("tool_result", _) => {
            let error = fields_of(record, "error").get("message");
            let failed = str_of(record.get("status")).map(|status| status == "error");
            say.answer(id_of(id), or(error, record.get("output")), failed);
        }
        ("result", _) => {
            if str_of(record.get("status")) == Some("error") {
                say.add(What::Success(false));
            }
            say.leave_out("event result");
        }
        _ => return None,
    }
    Some(Decoded::GoesOn)
}

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    let history = list_at(record, "history");
    if history.first().is_some_and(|first| is(first, "gemini-content")) {
        history.iter().for_each(|content| add_entry(say, content));
        return Ok(Decoded::Whole);
    }
    if is(record, "gemini-header") {
        add_session(say, record);
        // A session that is resumed within a minute goes on in its file.
        let until = f64::INFINITY;
        say.add_all(text_at(record, "sessionId").map(|of| What::Continues { of, until }));
        return Ok(Decoded::Begins);
    }
    if let Some(decoded) = add_printed(say, record) {
        return Ok(decoded);
    }
    let kind = str_of(record.get("type"));
    let is_kind = matches!(kind, Some("user" | "gemini" | "info" | "warning" | "error"));
    let set = fields_of(record, "$set");
    let is_summary = |message: &Value| {
        first_text(message.get("content")).is_some_and(|text| text.as_str().starts_with(COMPRESSED))
    };
    if list_at(set, "messages").iter().any(is_summary) {
        // All else in it stands in records before this one.
        say.leave_out("summary of a compaction");
    } else if has_object(record, "$set") {
        add_session(say, set);
    } else if record.get("$rewindTo").is_some() {
        let from = text_at(record, "$rewindTo").unwrap_or_default();
        say.add(What::Undo(Undo::From(from)));
    } else if is(record, "gemini-content") || has_all(record, &["$set"]) || is_kind && has_text(record, "id")
    {
        add_entry(say, record);
    } else {
        return Ok(Decoded::Unknown);
    }
    let begins = is_set_up(record).then_some(Decoded::Begins);
    Ok(begins.unwrap_or(Decoded::GoesOn))
}

/// Adds the fields of a session, which may hold all of its messages.
fn add_session(say: &mut Events, fields: &impl Fields) {
    say.begin_run("gemini-facts", fields);
    let is_sub_agent = str_of(fields.field("kind")) == Some("subagent");
    let is_whole = has_list(fields, "messages");
    // Before it had an id of its own, a sub-agent had that of its session, and all messages in one object.
    say.sub_agent(is_sub_agent, fields.field("sessionId").filter(|_| is_whole));
    if is_whole {
        say.add(What::Undo(Undo::All));
    }
    let messages = list_at(fields, "messages").iter();
    messages.for_each(|message| add_entry(say, message));
}

/// Adds a message of a session, or a content of a checkpoint.
fn add_entry(say: &mut Events, message: &Value) {
    say.begin_record(message.get("id"), message.get("timestamp"));
    say.first_fact("model", message.get("model"));
    let content = or(message.get("content"), message.get("parts"));
    match str_of(first_of(message, &["type", "role"])) {
        // What the user saw is without what the program has added.
        Some("user") => add_turn(say, or(message.get("displayContent"), content), None),
        Some("gemini") => {
            for thought in list_at(message, "thoughts") {
                let parts = ["subject", "description"].map(|name| text_at(thought, name));
                say.say(TextKind::Reasoning, joined(parts.into_iter().flatten(), "\n"));
            }
            say.say_content(TextKind::Message, content);
            for call in list_at(message, "toolCalls") {
                say.call(Call::of(call));
                let status = str_of(call.get("status"));
                for part in elements_of(call.get("result")) {
                    if let Some(Value::Object(result)) = part.get("functionResponse") {
                        add_result(say, result, status);
                    }
                }
            }
        }
        Some("model") => {
            let begins = |text: &Text| text.trim_start().starts_with(SET_UP);
            if first_text(content).is_some_and(begins) {
                say.leave_out("context of the program");
            } else {
                add_said(say, "model", content);
            }
        }
        kind => say.leave_out(format!("message {}", kind.unwrap_or("of no type"))),
    }
}

/// Returns whether a prompt is a command that the program carries out itself.
fn is_command(text: &Text) -> bool {
    let command = text.trim().strip_prefix('/');
    let name = command.and_then(|command| command.split_whitespace().next());
    name.is_some_and(|name| is_one(name, "gemini-command")) || matches!(text.trim(), "?" | "/")
}

/// Adds a turn of the user, which may hold results of tools, of a status that stands beside it.
pub fn add_turn(say: &mut Events, content: Option<&Value>, status: Option<&str>) {
    if first_text(content).is_some_and(is_command) {
        return say.leave_out("command of the program");
    }
    let parts = elements_of(content);
    let has_result = parts.iter().any(|part| has_object(part, "functionResponse"));
    let (mut own, mut is_referenced) = (Vec::new(), false);
    for part in parts {
        let text = text_of_part(part).map(|text| text.trim());
        let before = text.and_then(|text| text.split_once(REFERENCED[0]));
        own.extend(before.map(|(before, _)| Part::Text(before.trim().into())));
        is_referenced |= before.is_some();
        match part.get("functionResponse").and_then(Value::as_object) {
            Some(result) => add_result(say, result, status),
            None if is_referenced && text.is_some() => say.leave_out("context of the program"),
            // The picture of a tool stands beside its result.
            None if has_result && text.is_none() => say.leave_out("file part"),
            None => own.extend(parts_in(part)),
        }
        is_referenced &= !text.is_some_and(|text| text.ends_with(REFERENCED[1]));
    }
    say.say_parts(TextKind::User, own);
}

/// Adds the result of a call with this status.
fn add_result(say: &mut Events, result: &Object, status: Option<&str>) {
    let response = fields_of(result, "response");
    let error = first_of(response, &["error"]);
    let content = error.or(response.get("output")).or(result.get("response"));
    let content = say.text_of(content);
    let says_code = |text: &str| {
        let mut codes = text.lines().filter_map(|line| line.strip_prefix(EXIT_CODE));
        codes.next_back().is_some_and(|code| code.trim() != "0")
    };
    let is_shell = str_of(result.get("name")) == Some(SHELL);
    let failed = match status {
        Some("cancelled") => Some(false),
        Some("error") => Some(true),
        _ if error.is_some() || (is_shell && says_code(&content)) => Some(true),
        Some("success") => Some(false),
        _ => None,
    };
    let id = text_at(result, "id");
    say.result(id, content, failed);
}
