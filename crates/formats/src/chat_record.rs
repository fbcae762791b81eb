//! The messages of a record of a chat API: of a request, of its reply, or of both.

use knowledgepulse_json::{Object, Value};

use crate::{
    mapping::{fields_of, object},
    messages::is_message,
    values::{list_of, object_of, str_of},
};

/// The messages of a record that is a conversation, in order; `None` for any other record.
pub fn messages_of_record(record: &Object) -> Option<Vec<Value>> {
    let response = fields_of(record, "response");
    let with_replies = |mut messages: Vec<Value>, replies: &[&Object]| {
        for reply in replies {
            messages.extend(reply_of(reply));
        }
        Some(messages)
    };
    for name in ["messages", "contents", "traj"] {
        if let Some(Value::Array(list)) = record.get(name)
            && list.first().is_none_or(is_message)
        {
            return with_replies(list.clone(), &[record, response]);
        }
    }
    let input_body = fields_of(record, "input").get("inputBodyJson");
    for inner in [record.get("request"), record.get("body"), input_body] {
        let asked = inner.and_then(Value::as_object).and_then(messages_of_record);
        if let Some(asked) = asked {
            return with_replies(asked, &[record, response]);
        }
    }
    let output = list_of(record.get("output"));
    if output.first().is_some_and(is_message) || str_of(record.get("object")) == Some("response") {
        let mut messages = input_of(record.get("input"));
        messages.extend_from_slice(output);
        return Some(messages);
    }
    let input = list_of(record.get("input"));
    if input.first().is_some_and(is_message) {
        return with_replies(input.to_vec(), &[response]);
    }
    // A reply alone, as in the output of a batch.
    for reply in [record, response] {
        let body = reply.get("body").and_then(Value::as_object);
        if let Some(message) = message_of(body.unwrap_or(reply)) {
            return Some(vec![message.clone()]);
        }
    }
    // The request with a text only, and its reply in another field.
    let replies = reply_of(response);
    let has_text = matches!(record.get("input"), Some(Value::String(_)));
    (has_text && !replies.is_empty())
        .then(|| input_of(record.get("input")).into_iter().chain(replies).collect())
}

fn input_of(input: Option<&Value>) -> Vec<Value> {
    match input {
        Some(text @ Value::String(_)) => vec![object([("role", "user".into()), ("content", text.clone())])],
        input => list_of(input).to_vec(),
    }
}

/// What the model replied: the message of the reply, a message of Anthropic, or items; nothing without any of these.
fn reply_of(reply: &Object) -> Vec<Value> {
    let output_body = fields_of(reply, "output").get("outputBodyJson");
    for inner in [reply.get("body"), output_body] {
        if let Some(Value::Object(inner)) = inner {
            return reply_of(inner);
        }
    }
    if let Some(message) = message_of(reply) {
        return vec![message.clone()];
    }
    let is = |name, text| str_of(reply.get(name)) == Some(text);
    if is("type", "message") && is("role", "assistant") {
        return vec![reply.clone().into()];
    }
    list_of(reply.get("output")).to_vec()
}

/// The message that a reply has in a field of its own, by its API: Chat Completions, Converse or Gemini.
fn message_of(reply: &Object) -> Option<&Value> {
    let first = |name| object_of(list_of(reply.get(name)).first());
    if let Some(message @ Value::Object(_)) = first("choices").get("message") {
        return Some(message);
    }
    let found = [
        fields_of(reply, "output").get("message"),
        first("candidates").get("content"),
    ];
    found.into_iter().flatten().find(|message| is_message(message))
}
