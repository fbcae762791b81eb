//! Messages of chat APIs, which several formats hold: OpenAI's Chat Completions, Anthropic's Messages, the items of OpenAI's
//! Responses, and the parts of OpenTelemetry's GenAI messages. They are told apart by their contents. `parts` has the shapes
//! of other APIs: Bedrock's Converse, Gemini and the AI SDK of Vercel. Messages of `langchain` and `sharegpt` are converted
//! to such messages first.

use std::borrow::Cow;

use knowledgepulse_json::{Object, Text, Value, object};

use crate::{
    Wrong,
    event::{Call, Events, Outcome, TextKind},
    langchain,
    parts::{self, is_act, is_call, is_item, is_result, translated},
    sharegpt, tagged,
    values::{
        Fields, fields_where, first_of, id_of, is_given, is_truthy, list_of, object_of, or, str_of,
        string_of, text_of_part, truth_of, with_end,
    },
};

/// Fields of a hosted call that are no arguments of it.
#[rustfmt::skip]
const NO_ARGUMENTS: &[&str] = &[
    "id", "call_id", "type", "status", "output", "outputs", "results", "result", "error",
];

/// Where messages have reasoning.
#[rustfmt::skip]
const REASONING: &[&str] = &[
    "reasoning_content", "reasoning", "thinking", "reasoningContent", "reasoningText",
];

/// Where messages of agents have their calls, and the ids of these.
const CALLS: [&str; 4] = ["tool_calls", "toolCalls", "toolRequests", "tool_uses"];
const IDS: [&str; 3] = ["tool_call_id", "toolCallId", "id"];

/// Returns whether a value is a message or an item that [`add_message`] takes.
pub fn is_message(value: &Value) -> bool {
    let Some(fields) = value.as_object() else {
        return false;
    };
    if let Some(Value::String(_)) = fields.get("role") {
        return ["content", "tool_calls", "parts", "function_call"]
            .iter()
            .any(|name| fields.contains(name));
    }
    str_of(fields.get("type")).is_some_and(|kind| is_whole_item(fields, kind))
        || langchain::is_message(value)
        || sharegpt::is_turn(value)
}

/// Returns whether an item has what its type says. Agents have records of these types too, of other fields.
fn is_whole_item(fields: &Object, kind: &str) -> bool {
    let names: &[&str] = match kind {
        "message" => &["content"],
        "reasoning" => &["summary", "content", "encrypted_content"],
        kind if is_call(kind) => &["name", "function"],
        _ => return is_item(kind),
    };
    names.iter().any(|name| fields.contains(name))
}

/// Returns a message of a role.
pub fn message_by(role: &str, content: Value) -> Value {
    object([("role", role.into()), ("content", content)])
}

/// Adds a message, whichever kind it is of.
///
/// # Errors
/// If it is no message.
pub fn add_message(sink: &mut Events, value: &Value) -> Result<(), Wrong> {
    let Some(message) = value.as_object() else {
        return Err(Wrong::new("a message must be an object"));
    };
    if let Some(role) = string_of(message.get("role")) {
        return add_of_role(sink, message, role);
    }
    let translated = langchain::translated(message).or_else(|| sharegpt::translated(message));
    if let Some(Value::Object(message)) = &translated {
        let role = str_of(message.get("role")).unwrap_or_default();
        return add_of_role(sink, message, role);
    }
    match str_of(message.get("type")) {
        Some("message") if message.contains("role") => {
            Err(Wrong::new("a message has a role that is not known"))
        }
        Some("message") => add_of_role(sink, message, "assistant"),
        Some(kind) if is_item(kind) => {
            add_item(sink, message, kind);
            Ok(())
        }
        _ => Err(Wrong::new("a message must have a role, or a type that is known")),
    }
}

/// Adds a message of a role that has nothing else than a content.
///
/// # Errors
/// If the role is not known.
pub fn add_said(sink: &mut Events, role: &str, content: Option<&Value>) -> Result<(), Wrong> {
    add_as(sink, object_of(None), role, content)
}

/// Adds a content as that of a message of the role that a record names.
///
/// # Errors
/// If the role is not known.
pub fn add_by(sink: &mut Events, record: &impl Fields, content: Option<&Value>) -> Result<(), Wrong> {
    add_said(sink, str_of(record.field("role")).unwrap_or_default(), content)
}

fn add_of_role(sink: &mut Events, message: &Object, role: &str) -> Result<(), Wrong> {
    sink.at(message.get("createdAt"));
    // Messages of a UI may have their text in both; their tools are in the parts.
    let parts = message.get("parts");
    let own = message.get("content");
    let is_in_parts = !list_of(parts).is_empty() || !is_given(own);
    let content = if is_in_parts { parts } else { own };
    add_as(sink, message, role, content)
}

/// Adds a content, and what a record has beside it, as a message of a role. Fields that no message has are not counted.
///
/// # Errors
/// If the role is not known.
pub fn add_as(sink: &mut Events, record: &Object, role: &str, content: Option<&Value>) -> Result<(), Wrong> {
    let tagged = match role {
        "assistant" | "model" | "ai" => tagged::parts_of_model(content),
        "user" | "human" | "tool" => tagged::parts_of_results(content),
        _ => None,
    };
    let within = parts::within(content);
    let content = tagged.as_ref().or(within.as_ref()).or(content);
    match role {
        "system" | "developer" => sink.system(content),
        "user" | "human" => add_parts(sink, content, TextKind::User),
        "tool" | "function" => add_results(sink, record, content),
        "assistant" | "model" | "ai" => add_reply(sink, record, content),
        _ => return Err(Wrong::new("a message has a role that is not known")),
    }
    Ok(())
}

/// The message of a model.
fn add_reply(sink: &mut Events, message: &Object, content: Option<&Value>) {
    if let Some(reasoning) = first_of(message, REASONING) {
        sink.say_content(TextKind::Reasoning, Some(reasoning));
    }
    add_parts(sink, content, TextKind::Message);
    if let Some(Value::String(refusal)) = message.get("refusal") {
        sink.say(TextKind::Message, refusal.clone());
    }
    // The tools of messages of a UI are in the parts, too.
    if list_of(message.get("parts")).is_empty() {
        let tools = list_of(message.get("toolInvocations")).iter();
        let tools = tools.map(|tool| {
            object([
                ("type", "tool-invocation".into()),
                ("toolInvocation", tool.clone()),
            ])
        });
        add_parts(sink, Some(&tools.collect::<Vec<_>>().into()), TextKind::Message);
    }
    for call in CALLS.iter().flat_map(|name| list_of(message.get(name))) {
        let call = object_of(Some(call));
        let inner = first_of(call, &["function", "custom"]).and_then(Value::as_object);
        add_chat_call(sink, first_of(call, &IDS), inner.unwrap_or(call));
    }
    if let Some(Value::Object(call)) = message.get("function_call") {
        add_chat_call(sink, None, call);
    }
}

/// The message of a tool. Several APIs have more than one result in it.
fn add_results(sink: &mut Events, message: &Object, content: Option<&Value>) {
    let is_result_part = |part: &Value| str_of(part.get("type")).is_some_and(is_result);
    let has_results = list_of(content).iter().any(|part| match translated(part) {
        Some(others) => others.iter().any(is_result_part),
        None => is_result_part(part),
    });
    if has_results {
        return add_parts(sink, content, TextKind::Event);
    }
    let content = sink.text_of(content);
    sink.result(Outcome {
        id: id_of(first_of(message, &IDS[..2])),
        content,
        failed: failure_of(message),
    });
}

/// One of `tool_calls`, with its `function` or `custom`, or with `name` and `arguments` themselves; Inspect has the name in `function`.
fn add_chat_call(sink: &mut Events, id: Option<&Value>, inner: &Object) {
    let name = first_of(inner, &["name", "function", "function_name"]);
    let args = first_of(inner, &["arguments", "input", "args"]);
    sink.call(Call::new(id, name, args));
}

/// The content of a message in the order of its parts; text that follows text is one message.
fn add_parts(sink: &mut Events, content: Option<&Value>, kind: TextKind) {
    let Some(Value::Array(parts)) = content else {
        if is_given(content) {
            sink.say_content(kind, content);
        }
        return;
    };
    let mut text = Vec::new();
    for part in parts {
        match translated(part) {
            None => add_part(sink, Cow::Borrowed(part), &mut text, kind),
            Some(others) if others.is_empty() => {
                let fields = object_of(Some(part));
                let name = string_of(fields.get("type")).cloned();
                let name = name.or_else(|| fields.keys().next().cloned()).unwrap_or_default();
                sink.leave_out(with_end(&name, " part"));
            }
            Some(others) => {
                for other in others {
                    add_part(sink, Cow::Owned(other), &mut text, kind);
                }
            }
        }
    }
    flush(sink, &mut text, kind);
}

fn add_part<'a>(sink: &mut Events, part: Cow<'a, Value>, text: &mut Vec<Cow<'a, Value>>, kind: TextKind) {
    let fields = object_of(Some(&part));
    let name = string_of(fields.get("type"));
    if let Some(name) = name.map(Text::as_str).filter(|name| is_act(name)) {
        flush(sink, text, kind);
        return add_item(sink, fields, name);
    }
    if name.is_none() && text_of_part(&part).is_none() {
        sink.leave_out("part of an unknown kind");
    }
    text.push(part);
}

/// Adds the text that has come together.
fn flush(sink: &mut Events, text: &mut Vec<Cow<'_, Value>>, kind: TextKind) {
    if !text.is_empty() {
        sink.say_parts(kind, text.iter().map(AsRef::as_ref));
        text.clear();
    }
}

/// A part or an item that is more than text, and no message.
fn add_item(sink: &mut Events, item: &Object, kind: &str) {
    if kind == "redacted_thinking" {
        return sink.leave_out("encrypted reasoning");
    }
    if matches!(kind, "thinking" | "reasoning" | "think") {
        return add_reasoning(sink, item);
    }
    let id = id_of(or(
        first_of(item, &["call_id", "tool_use_id", "tool_call_id"]),
        item.get("id"),
    ));
    if is_result(kind) {
        let content = sink.text_of(first_of(item, &["content", "output", "response", "result"]));
        let failed = failure_of(item);
        return sink.result(Outcome { id, content, failed });
    }
    if is_call(kind) {
        let args = first_of(item, &["input", "arguments", "args"]);
        return sink.call(Call {
            id,
            server: string_of(item.get("server_name")).cloned(),
            ..Call::new(None, item.get("name"), args)
        });
    }
    add_hosted_call(sink, item, kind, id);
}

/// Returns whether the call failed, if the format says so; that it did not is not said of the text.
fn failure_of(item: &Object) -> Option<bool> {
    let says_so = || {
        let status = item.get("status").and_then(Value::as_str);
        let is_failed =
            matches!(status, Some("failed" | "error" | "incomplete")) || is_truthy(item.get("error"));
        is_failed.then_some(true)
    };
    truth_of(item.get("is_error")).or_else(says_so)
}

fn add_reasoning(sink: &mut Events, item: &Object) {
    let content = item.get("content");
    let parts = list_of(item.get("summary")).iter().chain(list_of(content));
    let mut text: Vec<&Value> = parts.collect();
    let single = first_of(item, &["thinking", "text", "reasoning", "think"]);
    text.extend(single.or(content.filter(|content| content.as_text().is_some())));
    if text.is_empty() {
        return sink.leave_out("encrypted reasoning");
    }
    let text = sink.text_of_parts(text);
    sink.say(TextKind::Reasoning, text);
}

/// A call of a tool that the API runs itself, and its result where it is there.
fn add_hosted_call(sink: &mut Events, item: &Object, kind: &str, id: Option<Text>) {
    let call = if kind == "mcp_call" {
        Call {
            server: string_of(item.get("server_label")).cloned(),
            ..Call::new(None, item.get("name"), item.get("arguments"))
        }
    } else {
        Call {
            name: kind.strip_suffix("_call").map(Text::from),
            args: fields_where(item, |name, _| !NO_ARGUMENTS.contains(&name)),
            ..Call::default()
        }
    };
    sink.call(Call {
        id: id.clone(),
        ..call
    });
    let failed = failure_of(item);
    let error = item.get("error").filter(|_| failed == Some(true));
    let content = first_of(item, &["output", "outputs", "results", "result"]).or(error);
    if is_given(content) {
        let content = sink.text_of(content);
        sink.result(Outcome { id, content, failed });
    }
}
