//! opencode and its forks (Kilo, MiMoCode, ZCode): `opencode export`, and the same from `opencode.db`.

use std::path::Path;

use knowledgepulse_json::{Object, Value, object};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Call, Events, Origin, Outcome, TextKind, Undo, What},
    values::{fields_of, first_of, id_of, list_of, number_of, object_of, str_of, string_of},
};

/// Sessions of opencode.
pub struct Opencode;

impl Adapter for Opencode {
    fn format(&self) -> FormatName {
        FormatName::Opencode
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| {
            let session = object_of(Some(value));
            let messages = list_of(session.get("messages"));
            let is_message =
                |message: &Value| message.get("info").is_some() && message.get("parts").is_some();
            let info = fields_of(session, "info");
            info.contains("id") && !messages.is_empty() && messages.iter().all(is_message)
        })
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let session = object_of(Some(record));
        let info = fields_of(session, "info");
        say.begin_run(info.get("id"), fields_of(info, "time").get("created"));
        for (name, field) in [("version", "version"), ("cwd", "directory"), ("summary", "title")] {
            say.fact(name, info.get(field));
        }
        if string_of(info.get("parentID")).is_some() {
            say.fact("is_subagent", Some(&true.into()));
        }
        for message in list_of(session.get("messages")) {
            add_message(say, object_of(Some(message)));
        }
        let revert = fields_of(info, "revert");
        say.begin(Origin::default());
        if let Some(from) = string_of(first_of(revert, &["partID", "messageID"])) {
            say.add(What::Undo(Undo::FromIfThere(from.clone())));
        }
        Ok(Decoded::Whole)
    }
}

fn add_message(say: &mut Events, message: &Object) {
    let info = fields_of(message, "info");
    let time = fields_of(info, "time").get("created").cloned();
    say.begin(Origin {
        id: string_of(info.get("id")).cloned(),
        time: time.clone(),
        ..Origin::default()
    });
    say.first_fact("model", info.get("modelID"));
    let parts = list_of(message.get("parts"));
    if info.get("summary") == Some(&Value::Bool(true)) {
        say.leave_out("summary of a compaction");
    } else if str_of(info.get("role")) == Some("user") {
        let parts: Vec<_> = parts.iter().filter_map(|part| of_user(say, part)).collect();
        if !parts.is_empty() {
            say.say_content(TextKind::User, Some(&parts.into()));
        }
    } else {
        for part in parts {
            let part = object_of(Some(part));
            say.begin(Origin {
                id: string_of(part.get("id")).cloned(),
                time: time.clone(),
                ..Origin::default()
            });
            add_part(say, part);
        }
    }
}

/// Returns a part of the user's turn; others are the program's.
fn of_user(say: &mut Events, part: &Value) -> Option<Value> {
    let is_set = |name| part.get(name) == Some(&Value::Bool(true));
    match str_of(part.get("type")) {
        Some("text") if !is_set("synthetic") && !is_set("ignored") => Some(part.clone()),
        Some("file") => {
            let is_image = str_of(part.get("mime")).is_some_and(|mime| mime.starts_with("image/"));
            Some(object([("type", if is_image { "image" } else { "file" }.into())]))
        }
        kind => {
            say.leave_out(format!("{} part", kind.unwrap_or("unknown")));
            None
        }
    }
}

fn add_part(say: &mut Events, part: &Object) {
    match str_of(part.get("type")) {
        Some("text") => say.say_content(TextKind::Message, part.get("text")),
        Some("reasoning") => say.say_content(TextKind::Reasoning, part.get("text")),
        Some("tool") => add_tool(say, part),
        kind => say.leave_out(format!("{} part", kind.unwrap_or("unknown"))),
    }
}

/// Adds a call, and its result if it has ended.
fn add_tool(say: &mut Events, part: &Object) {
    let state = fields_of(part, "state");
    say.call(Call::new(
        part.get("callID"),
        part.get("tool"),
        state.get("input"),
    ));
    let code = number_of(fields_of(state, "metadata").get("exit"));
    let (content, failed) = match str_of(state.get("status")) {
        Some("completed") => (state.get("output"), code.map(|code| code != 0.0)),
        Some("error") => (state.get("error"), Some(true)),
        _ => return,
    };
    let id = id_of(part.get("callID"));
    let content = say.text_of(content);
    say.result(Outcome {
        id: id.clone(),
        content,
        failed,
    });
    let [start, end] = ["start", "end"].map(|name| number_of(fields_of(state, "time").get(name)));
    if let (Some(id), Some(start), Some(end)) = (id, start, end) {
        say.add(What::Took(id, end - start));
    }
}
