//! Conversations with a model, as chat APIs take and return them: OpenAI's Chat Completions and Responses, Anthropic's Messages,
//! Bedrock's Converse, Gemini, and the AI SDK of Vercel. Rows of data sets, ShareGPT and states of LangGraph hold such messages too;
//! `messages` has how a message or an item becomes steps.

use std::borrow::Cow;

use crate::{langchain, prelude::*, sharegpt};

/// Where conversations have their names.
#[rustfmt::skip]
const IDS: &[&str] = &[
    "id", "instance_id", "traj_id", "custom_id", "task_id", "conversation_id", "session_id", "trial", "requestId", "request_id",
    "responseId",
];

/// Where conversations have their messages.
const MESSAGES: &[&str] = &[
    "messages",
    "contents",
    "conversations",
    "traj",
    "trajectory",
    "history",
];

/// Conversations of one of the formats whose messages `messages` takes, by how it recognises a record.
pub struct Chat(fn(&Value) -> bool);

/// Conversations of chat APIs.
pub const OPENAI_CHAT: Chat = Chat(|value| match value {
    Value::Object(record) => is_message(value) || messages_of(record).is_some(),
    value => is_first(Some(value), is_message),
});

/// Messages of LangChain and states of LangGraph.
pub const LANGCHAIN: Chat = Chat(|value| {
    let of_state = fields_of(value, "values").get("messages");
    let mut lists = [Some(value), value.get("messages"), of_state].into_iter();
    langchain::is_message(value) || lists.any(|list| is_first(list, langchain::is_message))
});

/// Conversations of data sets for fine-tuning.
pub const SHAREGPT: Chat = Chat(|value| {
    let turns = list_at(value, "conversations");
    let is_known = |turn: &Value| sharegpt::is_turn(turn) || is_message(turn);
    sharegpt::is_turn(value)
        || is_first(Some(value), sharegpt::is_turn)
        || has_list(value, "conversations") && turns.first().is_none_or(is_known)
});

/// The role of the first message of a list in JSON is within so many bytes, if the content does not come before.
const ROLE_WITHIN: usize = 64 * 1024;

type Messages<'a> = Vec<Cow<'a, Value>>;

impl Adapter for Chat {
    fn recognises(&self, record: &Value, _path: Option<&Path>) -> bool {
        self.0(record)
    }

    fn decode(&self, value: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let record = object_of(Some(value));
        say.begin(Origin::default());
        if is_message(value) && !is_reply(record) {
            add_message(say, value)?;
            return Ok(Decoded::GoesOn);
        }
        let messages = match value {
            Value::Array(list) => list.first().is_none_or(is_message).then(|| borrowed(list)),
            value if is_reply(record) => Some(vec![Cow::Borrowed(value)]),
            _ => messages_of(record),
        };
        let messages = messages.ok_or_else(|| Wrong::new("it has no messages, and no items"))?;
        let inner = ["body", "request", "response", "request_body", "response_body"];
        let inner = inner.map(|name| fields_of(record, name));
        let input = fields_of(fields_of(record, "input"), "inputBodyJson");
        let output = fields_of(fields_of(record, "output"), "outputBodyJson");
        for details in [record].into_iter().chain(inner).chain([input, output]) {
            add_details(say, details);
        }
        let of_run = fields_of(fields_of(record, "config"), "configurable");
        say.name("thread_id", of_run.get("thread_id"));
        for (at, message) in messages.iter().enumerate() {
            add_message(say, message).map_err(|wrong| wrong.within(format!("messages[{at}]")))?;
        }
        Ok(Decoded::Whole)
    }
}

fn is_first(list: Option<&Value>, holds: fn(&Value) -> bool) -> bool {
    list_of(list).first().is_some_and(holds)
}

fn add_details(say: &mut Events, record: &Object) {
    for name in IDS {
        say.name(name, record.get(name));
    }
    for name in ["created_at", "created", "timestamp", "request_created_at"] {
        say.at(milliseconds_of(record.get(name)).as_ref());
    }
    let models = ["model", "modelId", "modelVersion"].map(|name| record.get(name));
    let model = models.into_iter().find(|model| string_of(*model).is_some());
    say.fact("model", model.flatten());
    say.fact("metadata", record.get("metadata"));
    let texts = record.get("instructions").filter(|text| text.as_text().is_some());
    for prompt in [record.get("system"), record.get("systemInstruction"), texts] {
        if prompt.is_some() {
            say.system(prompt);
        }
    }
    let verdicts = ["resolved", "target"].into_iter();
    let verdicts = verdicts.filter_map(|name| record.get(name).cloned());
    say.add_all(verdicts.map(|verdict| What::Fact(Fact::Verdict(verdict))));
    let reward = record.get("reward").cloned();
    say.add_all(reward.map(|reward| What::Fact(Fact::Reward(reward))));
    let outcome = fields_where(record, |name, _| matches!(name, "success" | "confidence"));
    if !outcome.is_empty() {
        say.add(What::Fact(Fact::Outcome(outcome)));
    }
}

/// Returns whether a text begins as a list of messages in JSON does.
fn begins_messages(text: &Text) -> bool {
    let first = text.trim_start().strip_prefix('[').map(str::trim_start);
    first.is_some_and(|first| {
        first.starts_with('{') && first.get(..ROLE_WITHIN).unwrap_or(first).contains("\"role\"")
    })
}

/// Returns the messages in a field of a record, which may be JSON in a text, as data sets have them.
fn list_in<'a>(record: &'a Object, name: &str) -> Option<Messages<'a>> {
    match record.get(name)? {
        Value::Array(list) => {
            // No other format has these for anything else.
            let is_alone = !matches!(name, "trajectory" | "history");
            list.first().map_or(is_alone, is_message).then(|| borrowed(list))
        }
        Value::String(text) if begins_messages(text) => match parse_str(text).ok()? {
            Value::Array(list) if list.first().is_some_and(is_message) => {
                Some(list.into_iter().map(Cow::Owned).collect())
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the messages of a record that is a conversation, in order; `None` for any other record.
pub fn messages_of(record: &Object) -> Option<Messages<'_>> {
    let is_logged = record.contains("response_body");
    let response = fields_of(record, if is_logged { "response_body" } else { "response" });
    let body_of_log = fields_of(record, "input").get("inputBodyJson");
    let asked = ["request", "request_body", "body", "values"].map(|name| record.get(name));
    let asked = asked.into_iter().chain([body_of_log]);
    let mut asked = asked.filter_map(|inner| messages_of(inner?.as_object()?));
    let mut lists = MESSAGES.iter().filter_map(|name| list_in(record, name));
    if let Some(asked) = lists.next().or_else(|| asked.next()) {
        return Some([asked, reply_of(record), reply_of(response)].concat());
    }
    let output = list_of(record.get("output"));
    if output.first().is_some_and(is_message) || str_of(record.get("object")) == Some("response") {
        return Some([input_of(record.get("input")), borrowed(output)].concat());
    }
    let input = list_of(record.get("input"));
    if input.first().is_some_and(is_message) {
        return Some([borrowed(input), reply_of(response)].concat());
    }
    // A reply alone, as in the output of a batch.
    for reply in [record, response] {
        let body = reply.get("body").and_then(Value::as_object);
        if let Some(message) = message_of(body.unwrap_or(reply)) {
            return Some(vec![Cow::Borrowed(message)]);
        }
    }
    // The request with a text only, and its reply in another field.
    let reply = reply_of(response);
    let is_text = matches!(record.get("input"), Some(Value::String(_)));
    (is_text && !reply.is_empty()).then(|| [input_of(record.get("input")), reply].concat())
}

fn borrowed(list: &[Value]) -> Messages<'_> {
    list.iter().map(Cow::Borrowed).collect()
}

fn input_of(input: Option<&Value>) -> Messages<'_> {
    match input {
        Some(text @ Value::String(_)) => vec![Cow::Owned(message_by("user", text.clone()))],
        input => borrowed(list_of(input)),
    }
}

/// Returns the model's reply: the message of the reply, a message of Anthropic, or items; empty without any of these.
fn reply_of(reply: &Object) -> Messages<'_> {
    let of_log = fields_of(reply, "output").get("outputBodyJson");
    let mut inner = [reply.get("body"), of_log].into_iter().flatten();
    if let Some(inner) = inner.find_map(Value::as_object) {
        return reply_of(inner);
    }
    if let Some(message) = message_of(reply) {
        return vec![Cow::Borrowed(message)];
    }
    if str_of(reply.get("type")) == Some("message") && str_of(reply.get("role")) == Some("assistant") {
        return vec![Cow::Owned(reply.clone().into())];
    }
    borrowed(list_of(reply.get("output")))
}

/// Returns the message that a reply has in a field of its own, by its API: Chat Completions, Converse or Gemini; `None`
/// without one.
fn message_of(reply: &Object) -> Option<&Value> {
    let first = |name| object_of(list_of(reply.get(name)).first());
    let choice = first("choices")
        .get("message")
        .filter(|message| message.as_object().is_some());
    let others = [
        fields_of(reply, "output").get("message"),
        first("candidates").get("content"),
    ];
    choice.or_else(|| others.into_iter().flatten().find(|message| is_message(message)))
}

/// Returns whether a value is a whole reply of Anthropic: a message with more fields.
fn is_reply(value: &Object) -> bool {
    str_of(value.get("type")) == Some("message")
        && matches!(value.get("usage"), Some(Value::Object(_)))
        && matches!(value.get("model"), Some(Value::String(_)))
}
