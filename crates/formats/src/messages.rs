//! Messages of chat APIs, which several formats hold: OpenAI's Chat Completions, Anthropic's Messages, the items of OpenAI's
//! Responses, the parts of OpenTelemetry's GenAI messages, and messages of `langchain` and ShareGPT. They are told apart by their
//! contents; `parts` decodes these.

use knowledgepulse_json::{Object, Value, object};

use crate::{
    event::{Events, TextKind},
    langchain,
    parts::{Call, Part, beside, failure_of, is_item, parts_in, parts_of},
    shapes::is,
    tagged,
    trace::UNKNOWN_CALL,
    values::*,
    words::{row_where, tags},
    written::is_like_call,
};

/// Counts messages of roles that are not known.
pub const UNKNOWN_ROLE: &str = "role that is not known";
/// Counts messages in the user's turn that a program wrote.
pub const OF_PROGRAM: &str = "message of the program";

/// Returns whether a value is a message or an item that [`add_message`] takes.
pub fn is_message(value: &Value) -> bool {
    is(value, "message") || langchain::is_message(value) || is_turn(value)
}

/// Returns whether a value is a turn of ShareGPT by somebody who is known.
pub fn is_turn(value: &Value) -> bool {
    let is_known = str_of(value.get("from")).and_then(role_by).is_some();
    is_known && first_named(value, "turn-content").is_some()
}

/// Returns the role that a name of a speaker stands for, in small letters or capitals; `None` for an unknown one.
pub fn role_by(name: &str) -> Option<&'static str> {
    row_where("speaker", |other| other.eq_ignore_ascii_case(name)).map(|[_, role]| role)
}

/// Returns the role that a message without one names, by its sender, who is an agent if not known, or by its type.
fn role_in(message: &Object) -> Option<&str> {
    let sender = str_of(message.get("sender")).map(|sender| role_by(sender).unwrap_or("assistant"));
    let types = ["message_type", "type", "author/role"];
    let types = types.map(|path| str_of(in_path(message, path)).and_then(role_by));
    sender.or_else(|| types.into_iter().flatten().next())
}

/// Returns whether a field of a message in the user's turn says that it is the program's.
pub fn is_of_program(message: &impl Fields) -> bool {
    let is_mark = |value: &Value, mark: &str| match value {
        Value::Bool(truth) => mark == if *truth { "true" } else { "false" },
        value => str_of(Some(value)) == Some(mark),
    };
    tags("program-mark").iter().any(|[path, marks]| {
        let value = in_path(message, path).filter(|value| !value.is_null());
        value.is_some_and(|value| marks.is_empty() || marks.split(' ').any(|mark| is_mark(value, mark)))
    })
}

/// Returns the item that one of the OpenAI Agents SDK has, or the message of a choice or of a node.
fn item_in(value: &Value) -> Option<&Value> {
    let is_item = str_of(value.get("type")).is_some_and(|kind| kind.ends_with("_item"));
    let item = first_of(value, &["raw_item", "rawItem"]).filter(|_| is_item);
    item.or_else(|| value.get("message").filter(|_| is(value, "around-message")))
}

/// Returns a message of a role.
pub fn message_by(role: &str, content: Value) -> Value {
    object([("role", role.into()), ("content", content)])
}

/// Adds a message, whichever kind it is of. What is no object is counted, and a text is an observation.
pub fn add_message(say: &mut Events, value: &Value) {
    let Some(message) = value.as_object() else {
        say.leave_out("message that is no object");
        let text = value.as_text().cloned().into_iter();
        return text.for_each(|text| say.say(TextKind::Event, text));
    };
    if let Some(item) = item_in(value) {
        return add_message(say, item);
    }
    let inner = list_of(first_named(value, "inner-messages"));
    if !inner.is_empty() && !is_given(message.get("content")) && inner.iter().all(is_message) {
        return inner.iter().for_each(|inner| add_message(say, inner));
    }
    if let Some(role) = str_of(message.get("role")) {
        add_of_role(say, message, role);
    } else if let Some((role, fields)) = langchain::unwrapped(value) {
        say.at(fields.get("createdAt"));
        add_as(say, fields, role, fields.get("content"));
    } else if let (Some(from), said @ Some(_)) =
        (str_of(message.get("from")), first_named(message, "turn-content"))
    {
        add_as(say, message, from, said);
    } else {
        match str_of(message.get("type")) {
            Some("message") if !message.contains("role") => add_of_role(say, message, "assistant"),
            Some(kind) if kind != "message" && is_item(kind) => {
                say.say_parts(TextKind::Message, parts_in(value))
            }
            _ if let Some(role) = role_in(message) => add_of_role(say, message, role),
            _ if message.contains("content") => add_parts(say, message, "", parts_of(message.get("content"))),
            _ => add_parts(say, message, "", parts_in(value)),
        }
    }
}

/// Adds the next message of a conversation, whichever kind it is of. The turn of a user that follows a call that the model has written as
/// text is the result of that call.
pub fn add_next(say: &mut Events, before: Option<&Value>, value: &Value) {
    let has_calls = |before: &Value| {
        let is_turn = str_of(before.get("from")).is_some_and(|from| from.contains("call"));
        let is_list = !list_of(before.get("content")).is_empty();
        is_turn || is_list || first_of(before, &["tool_calls", "function_call"]).is_some()
    };
    let awaits_result = before.is_some_and(|before| !has_calls(before)) && say.awaits_result();
    let by_user = || match (str_of(value.get("role")), str_of(value.get("from"))) {
        (Some("user"), _) => value.get("content"),
        (None, Some("human" | "user")) => value.get("value"),
        _ => None,
    };
    match by_user().filter(|_| awaits_result) {
        Some(content) => add_said(say, "tool", Some(content)),
        None => add_message(say, value),
    }
}

/// Adds a message of a role that has nothing else than a content.
pub fn add_said(say: &mut Events, role: &str, content: Option<&Value>) {
    add_as(say, object_of(None), role, content)
}

fn add_of_role(say: &mut Events, message: &Object, role: &str) {
    say.at(message.get("createdAt"));
    // Messages of a UI may have their text in both; their tools are in the parts.
    let parts = message.get("parts");
    let own = first_named(message, "content-field").or(message.get("content"));
    let is_in_parts = !list_of(parts).is_empty() || !is_given(own);
    let content = if is_in_parts { parts } else { own };
    add_as(say, message, role, content)
}

/// Adds a content, and what a record has beside it, as a message of a role. Fields that no message has are not counted.
pub fn add_as(say: &mut Events, record: &Object, role: &str, content: Option<&Value>) {
    // LlamaIndex has results in a field in TypeScript.
    if let Some(result @ Value::Object(_)) = fields_of(record, "options").get("toolResult") {
        let result = Part::result(result.get("id"), result.get("result"), failure_of(result));
        return say.say_parts(TextKind::Event, [result]);
    }
    let role = role_by(role).unwrap_or(role);
    add_parts(say, record, role, tagged::parts_by(role, content))
}

/// Adds the parts of a content, and what a record has beside them, as a message of a role. One of an unknown role is what its shape says:
/// a result if it names a call, the agent's if it has calls, else an observation.
pub fn add_parts(say: &mut Events, record: &Object, role: &str, parts: Vec<Part>) {
    let role = role_by(role).unwrap_or_default();
    let is_unread = |part: &Part| matches!(part, Part::Text(text) if is_like_call(text));
    let names_call = || first_named(record, "tool-call-id").is_some();
    if role.is_empty() {
        say.leave_out(UNKNOWN_ROLE);
    }
    match role {
        "system" => say.system(),
        "user" if is_of_program(record) => {
            say.leave_out(OF_PROGRAM);
            let results = parts
                .into_iter()
                .filter(|part| matches!(part, Part::Result { .. }));
            say.say_parts(TextKind::User, results);
        }
        "user" => say.say_parts(TextKind::User, parts),
        "tool" => say.say_parts(TextKind::Event, results_in(record, parts)),
        "" if names_call() => say.say_parts(TextKind::Event, results_in(record, parts)),
        _ => {
            let parts = whole(record, parts);
            for _ in parts.iter().filter(|part| !role.is_empty() && is_unread(part)) {
                say.leave_out(UNKNOWN_CALL);
            }
            let has_calls = parts.iter().any(|part| matches!(part, Part::Call(_)));
            let is_agent = !role.is_empty() || has_calls;
            let kind = if is_agent {
                TextKind::Message
            } else {
                TextKind::Event
            };
            say.say_parts(kind, parts);
        }
    }
}

/// Returns the parts of a message of an agent: a call if it names the tool that gets them, reasoning by its channel, or a call by Gradio's title.
fn addressed(message: &Object, parts: Vec<Part>) -> Vec<Part> {
    let title = in_path(message, "metadata/title").filter(|_| message.contains("options"));
    let used = str_of(title).and_then(|title| Some(title.rsplit_once("tool ")?.1));
    let tool = str_of(message.get("recipient")).filter(|to| !matches!(*to, "all" | "assistant" | "user"));
    let tool = tool.filter(|_| first_of(message, &["author", "channel", "content_type"]).is_some());
    if tool.is_none() && title.is_none() && str_of(message.get("channel")) != Some("analysis") {
        return parts;
    }
    let words = joined_parts(parts.into_iter().map(Part::words));
    match (used, tool) {
        (Some(used), _) => vec![Part::called(used, ""), Part::observed(&words)],
        (_, Some(tool)) => vec![Part::called(tool.trim_start_matches("functions."), &words)],
        _ => vec![Part::thinking(&words)],
    }
}

/// Returns the parts of a message of an agent: its reasoning, its content and its calls. Reasoning and calls, which some write without ids,
/// may be in the content too.
fn whole(message: &Object, parts: Vec<Part>) -> Vec<Part> {
    let mut parts = addressed(message, parts);
    let [mut before, after] = beside(message);
    let is_told = |call: &Call| {
        let is_same =
            |other: &Part| matches!(other, Part::Call(other) if call.id.is_none() || other.id == call.id);
        after.iter().any(is_same)
    };
    parts.retain(|part| !matches!(part, Part::Call(call) if is_told(call)));
    if parts.iter().any(|part| matches!(part, Part::Thought(Some(_)))) {
        before.retain(|part| !matches!(part, Part::Thought(_)));
    }
    before.into_iter().chain(parts).chain(after).collect()
}

/// Returns the parts of a message of a tool. Several APIs have more than one result in it.
fn results_in(message: &Object, parts: Vec<Part>) -> Vec<Part> {
    if parts.iter().any(|part| matches!(part, Part::Result { .. })) {
        return parts;
    }
    let more = fields_of(message, "additional_kwargs");
    vec![Part::Result {
        id: id_of(first_named(message, "tool-call-id").or_else(|| first_named(more, "tool-call-id"))),
        content: parts,
        failed: failure_of(message),
    }]
}
