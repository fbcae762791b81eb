//! Messages of chat APIs, which several formats hold: OpenAI's Chat Completions, Anthropic's Messages, the items of OpenAI's
//! Responses, the parts of OpenTelemetry's GenAI messages, and messages of `langchain` and `sharegpt`. They are told apart by their
//! contents; `parts` decodes these.

use knowledgepulse_json::{Object, Value, object};

use crate::{
    event::{Events, TextKind},
    langchain,
    parts::{Part, beside, failure_of, is_item, parts_in, parts_of},
    shapes::is,
    sharegpt, tagged,
    trace::UNKNOWN_CALL,
    values::{Fields, fields_of, first_of, id_of, is_given, list_of, object_of, role_of, str_of},
};

/// Counts messages of roles that are not known.
pub const UNKNOWN_ROLE: &str = "role that is not known";

/// Where messages have their content: of most APIs, of Microsoft's Agent Framework and Semantic Kernel, of LlamaIndex, and
/// of data sets.
const CONTENTS: &[&str] = &["content", "contents", "items", "blocks", "value"];

/// Where messages of tools name the call.
const RESULT_IDS: &[&str] = &["tool_call_id", "toolCallId"];

/// Returns whether a value is a message or an item that [`add_message`] takes.
pub fn is_message(value: &Value) -> bool {
    is(value, "message") || langchain::is_message(value) || sharegpt::is_turn(value)
}

/// Returns the item that one of the OpenAI Agents SDK has, or the message of a choice.
fn item_in(fields: &Object) -> Option<&Value> {
    let is_item = str_of(fields.get("type")).is_some_and(|kind| kind.ends_with("_item"));
    let is_choice = fields.contains("finish_reason") && !fields.contains("role");
    let item = first_of(fields, &["raw_item", "rawItem"]).filter(|_| is_item);
    item.or_else(|| fields.get("message").filter(|_| is_choice))
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
    if let Some(item) = item_in(message) {
        return add_message(say, item);
    }
    if let Some(role) = str_of(message.get("role")) {
        add_of_role(say, message, role);
    } else if let Some((role, fields, parts)) = langchain::read(value) {
        say.at(fields.get("createdAt"));
        add_parts(say, fields, role, parts);
    } else if let Some((role, parts)) = sharegpt::read(message) {
        add_parts(say, message, role, parts);
    } else {
        match str_of(message.get("type")) {
            Some("message") if !message.contains("role") => add_of_role(say, message, "assistant"),
            Some(kind) if kind != "message" && is_item(kind) => {
                say.say_parts(TextKind::Message, parts_in(value))
            }
            _ if message.contains("content") => add_by_shape(say, message, parts_of(message.get("content"))),
            _ => add_by_shape(say, message, parts_in(value)),
        }
    }
}

/// Adds the next message of a conversation, whichever kind it is of. The turn of a user that follows a call that the model has written as
/// text is the result of that call.
pub fn add_next(say: &mut Events, before: Option<&Value>, value: &Value) {
    let has_calls = |before: &Value| {
        let is_turn = str_of(before.get("from")).is_some_and(|from| from.contains("call"));
        is_turn || first_of(before, &["tool_calls", "function_call"]).is_some()
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

/// Adds a content as that of a message of the role that a record names.
pub fn add_by(say: &mut Events, record: &impl Fields, content: Option<&Value>) {
    add_said(say, role_of(record), content)
}

fn add_of_role(say: &mut Events, message: &Object, role: &str) {
    say.at(message.get("createdAt"));
    // Messages of a UI may have their text in both; their tools are in the parts.
    let parts = message.get("parts");
    let own = first_of(message, CONTENTS).or(message.get("content"));
    let is_in_parts = !list_of(parts).is_empty() || !is_given(own);
    let content = if is_in_parts { parts } else { own };
    add_as(say, message, role, content)
}

/// Adds a content, and what a record has beside it, as a message of a role. Fields that no message has are not counted.
pub fn add_as(say: &mut Events, record: &Object, role: &str, content: Option<&Value>) {
    // LlamaIndex has what is not in the content in a field, in TypeScript results too.
    let more = record.get("additional_kwargs").and_then(Value::as_object);
    let more = more.filter(|_| record.contains("blocks"));
    let options = fields_of(record, "options");
    if let Some(result @ Value::Object(_)) = options.get("toolResult") {
        let result = Part::result(result.get("id"), result.get("result"), failure_of(result));
        return say.say_parts(TextKind::Event, vec![result]);
    }
    let more = more.or(Some(options).filter(|options| options.contains("toolCall")));
    let record = more.unwrap_or(record);
    let called = || sharegpt::calls_of(role, content?.as_str()?);
    if let Some(calls) = called() {
        return add_parts(say, record, "assistant", calls);
    }
    let role = usual(role);
    add_parts(say, record, role, tagged::parts_by(role, content))
}

/// Returns the usual name of a role that models' templates name otherwise, such as `ipython`.
fn usual(role: &str) -> &str {
    sharegpt::role_of(role)
        .filter(|role| *role != sharegpt::CALLS)
        .unwrap_or(role)
}

/// Adds the parts of a content, and what a record has beside them, as a message of a role.
pub fn add_parts(say: &mut Events, record: &impl Fields, role: &str, parts: Vec<Part>) {
    match usual(role) {
        "system" | "developer" => say.system(),
        "user" | "human" => say.say_parts(TextKind::User, parts),
        "tool" | "function" | tagged::RESULT_ROLE => {
            say.say_parts(TextKind::Event, results_in(record, parts))
        }
        "assistant" | "model" | "ai" | tagged::CALL_ROLE => {
            let [before, after] = beside(record);
            for _ in parts.iter().filter(|part| tagged::is_unread_call(part)) {
                say.leave_out(UNKNOWN_CALL);
            }
            say.say_parts(TextKind::Message, before.into_iter().chain(parts).chain(after));
        }
        _ => add_by_shape(say, record, parts),
    }
}

/// Adds a message of an unknown role as what its shape says: a result if it names a call, the agent's if it has calls, else an
/// observation.
fn add_by_shape(say: &mut Events, record: &impl Fields, parts: Vec<Part>) {
    say.leave_out(UNKNOWN_ROLE);
    if first_of(record, RESULT_IDS).is_some() {
        return say.say_parts(TextKind::Event, results_in(record, parts));
    }
    let [before, after] = beside(record);
    let is_call = |part: &Part| matches!(part, Part::Call(_));
    let has_calls = after.iter().chain(&parts).any(is_call);
    let kind = if has_calls {
        TextKind::Message
    } else {
        TextKind::Event
    };
    say.say_parts(kind, before.into_iter().chain(parts).chain(after));
}

/// Returns the parts of a message of a tool. Several APIs have more than one result in it.
fn results_in(message: &impl Fields, parts: Vec<Part>) -> Vec<Part> {
    if parts.iter().any(|part| matches!(part, Part::Result { .. })) {
        return parts;
    }
    vec![Part::Result {
        id: id_of(first_of(message, RESULT_IDS)),
        content: parts,
        failed: failure_of(message),
    }]
}
