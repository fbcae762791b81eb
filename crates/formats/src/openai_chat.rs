//! Conversations with a model, as chat APIs take and return them: OpenAI's Chat Completions and Responses, Anthropic's Messages,
//! Bedrock's Converse, Gemini, and the AI SDK of Vercel. `messages` has how a message or an item becomes steps.

use std::borrow::Cow;

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    Entry, FormatName, FormatReader, Found, Wrong,
    messages::{add_message, is_message, message_by},
    open_traces::CurrentTrace,
    trace::{Sink, TraceBuilder, fields_of},
    values::{self, list_of, number_of, object_of, spelled, string_of},
};

const IDS: [&str; 10] = [
    "id",
    "instance_id",
    "traj_id",
    "custom_id",
    "task_id",
    "conversation_id",
    "session_id",
    "trial",
    "requestId",
    "responseId",
];

#[rustfmt::skip]
fn is_known(name: &str) -> bool {
    IDS.contains(&name) || matches!(
        name,
        "messages" | "traj" | "choices" | "response" | "request" | "body" | "input" | "output" | "content" | "role"
            | "type" | "system" | "instructions" | "reward" | "success" | "confidence" | "created" | "created_at"
            | "timestamp"
            // The request to the model, which is no action of the agent.
            | "model" | "metadata" | "object" | "usage" | "tools" | "tool_choice" | "parallel_tool_calls" | "temperature"
            | "top_p" | "max_tokens" | "max_completion_tokens" | "max_output_tokens" | "stream" | "status" | "method"
            | "url" | "service_tier" | "system_fingerprint" | "stop_reason" | "stop_sequence" | "reasoning" | "text"
            | "truncation" | "store" | "user" | "error" | "previous_response_id" | "incomplete_details" | "thinking"
            | "stop" | "n" | "seed" | "response_format" | "functions"
            // Of Converse, and of the invocation log of Bedrock.
            | "modelId" | "inferenceConfig" | "toolConfig" | "guardrailConfig" | "additionalModelRequestFields" | "trace"
            | "additionalModelResponseFieldPaths" | "additionalModelResponseFields" | "promptVariables" | "outputConfig"
            | "requestMetadata" | "performanceConfig" | "serviceTier" | "stopReason" | "metrics" | "schemaType"
            | "schemaVersion" | "accountId" | "identity" | "region" | "operation"
            // Of Gemini.
            | "contents" | "candidates" | "systemInstruction" | "generationConfig" | "safetySettings" | "usageMetadata"
            | "modelVersion" | "createTime" | "config"
            // Of data sets, and of states of LangGraph.
            | "conversations" | "values" | "next" | "parent_config" | "tasks" | "interrupts" | "trajectory" | "history"
            | "resolved" | "target" | "patch" | "test_result" | "repo" | "exit_status" | "model_patch"
    )
}

/// A number of seconds since 1970 is less, one of milliseconds is more.
const SECONDS: f64 = 1e11;

/// The role of the first message of a list in JSON is within so many bytes, if the content does not come before.
const ROLE_WITHIN: usize = 64 * 1024;

type Messages<'a> = Vec<Cow<'a, Value>>;

pub fn recognises(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.first().is_some_and(is_message),
        Value::Object(record) => is_message(value) || messages_of(record).is_some(),
        _ => false,
    }
}

/// Returns whether a text begins as a list of messages in JSON does, as data sets have them.
fn begins_messages(text: &Text) -> bool {
    let beginning = text.as_str().unwrap_or_default().trim_start();
    let first = beginning.strip_prefix('[').map(str::trim_start);
    first.is_some_and(|first| {
        first.starts_with('{') && first.get(..ROLE_WITHIN).unwrap_or(first).contains("\"role\"")
    })
}

fn is_message_at(value: Option<&Value>) -> bool {
    value.is_some_and(is_message)
}

/// Returns the messages of a record that is a conversation, in order; `None` for any other record.
pub fn messages_of(record: &Object) -> Option<Messages<'_>> {
    let response = fields_of(record, "response");
    for name in [
        "messages",
        "contents",
        "conversations",
        "traj",
        "trajectory",
        "history",
    ] {
        // No other format has these for anything else.
        let is_alone = !matches!(name, "trajectory" | "history");
        let messages = match record.get(name) {
            Some(Value::Array(list)) if list.first().map_or(is_alone, is_message) => borrowed(list),
            Some(Value::String(text)) if begins_messages(text) => match text.parse() {
                Ok(Value::Array(list)) if list.first().is_some_and(is_message) => {
                    list.into_iter().map(Cow::Owned).collect()
                }
                _ => continue,
            },
            _ => continue,
        };
        return Some(joined([messages, reply_of(record), reply_of(response)]));
    }
    let body_of_log = fields_of(record, "input").get("inputBodyJson");
    let values = record.get("values");
    for inner in [record.get("request"), record.get("body"), values, body_of_log] {
        let asked = inner.and_then(Value::as_object).and_then(messages_of);
        if let Some(asked) = asked {
            return Some(joined([asked, reply_of(record), reply_of(response)]));
        }
    }
    let output = list_of(record.get("output"));
    let is_response = record.get("object").and_then(Value::as_str) == Some("response");
    if is_message_at(output.first()) || is_response {
        return Some(joined([input_of(record.get("input")), borrowed(output)]));
    }
    let input = list_of(record.get("input"));
    if is_message_at(input.first()) {
        return Some(joined([borrowed(input), reply_of(response)]));
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
    (is_text && !reply.is_empty()).then(|| joined([input_of(record.get("input")), reply]))
}

fn joined<'a, const LISTS: usize>(lists: [Messages<'a>; LISTS]) -> Messages<'a> {
    lists.into_iter().flatten().collect()
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
    let inner = [
        reply.get("body"),
        fields_of(reply, "output").get("outputBodyJson"),
    ];
    if let Some(inner) = inner.into_iter().flatten().find_map(Value::as_object) {
        return reply_of(inner);
    }
    if let Some(message) = message_of(reply) {
        return vec![Cow::Borrowed(message)];
    }
    let is = |name, word| reply.get(name).and_then(Value::as_str) == Some(word);
    if is("type", "message") && is("role", "assistant") {
        return vec![Cow::Owned(reply.clone().into())];
    }
    borrowed(list_of(reply.get("output")))
}

/// Returns the message that a reply has in a field of its own, by its API: Chat Completions, Converse or Gemini; `None`
/// without one.
fn message_of(reply: &Object) -> Option<&Value> {
    let first = |name| object_of(list_of(reply.get(name)).first());
    let message = first("choices").get("message");
    if let Some(message @ Value::Object(_)) = message {
        return Some(message);
    }
    let others = [
        fields_of(reply, "output").get("message"),
        first("candidates").get("content"),
    ];
    others.into_iter().flatten().find(|message| is_message(message))
}

/// Returns whether a value is a whole reply of Anthropic: a message with more fields.
fn is_reply(value: &Object) -> bool {
    value.get("type").and_then(Value::as_str) == Some("message")
        && matches!(value.get("usage"), Some(Value::Object(_)))
        && matches!(value.get("model"), Some(Value::String(_)))
}

/// Reads conversations of chat APIs, and of formats whose messages `messages` takes too.
pub struct Reader {
    format: FormatName,
    current: CurrentTrace,
    /// Where the last message of the current trace stood in its array.
    last: Option<u64>,
}

impl Reader {
    pub fn new(format: FormatName) -> Self {
        Self {
            format,
            current: CurrentTrace::default(),
            last: None,
        }
    }
}

impl FormatReader for Reader {
    fn read(&mut self, entry: &Entry, found: &mut Vec<Found>) -> Result<(), Wrong> {
        let stands_alone = is_message(entry.value) && !is_reply(object_of(Some(entry.value)));
        // The elements of one array follow each other, and so do lines.
        let goes_on = stands_alone
            && match (self.last, entry.place.index) {
                (None, None) => true,
                (Some(last), Some(index)) => index == last + 1,
                _ => false,
            };
        if !goes_on {
            self.current.end(found);
        }
        if !stands_alone {
            found.push(read(self.format, entry)?.into());
            return Ok(());
        }
        self.last = entry.place.index;
        let make = |entry: &Entry| TraceBuilder::new(self.format, entry);
        let builder = self.current.add(entry, make)?;
        // A message that cannot be read is named already.
        builder.is_conversation = false;
        add_message(builder, entry.value)?;
        builder.is_conversation = true;
        Ok(())
    }

    fn end(&mut self, found: &mut Vec<Found>) {
        self.current.end(found);
    }
}

fn read(format: FormatName, entry: &Entry) -> Result<TraceBuilder, Wrong> {
    let mut builder = TraceBuilder::new(format, entry);
    let record = object_of(Some(entry.value));
    let messages = match entry.value {
        Value::Array(list) => list.first().is_none_or(is_message).then(|| borrowed(list)),
        value if is_reply(record) => Some(vec![Cow::Borrowed(value)]),
        _ => messages_of(record),
    };
    let messages = messages.ok_or_else(|| Wrong::new("it has no messages, and no items"))?;
    let input = fields_of(record, "input");
    let output = fields_of(record, "output");
    for details in [
        record,
        fields_of(record, "body"),
        fields_of(record, "request"),
        fields_of(record, "response"),
        fields_of(input, "inputBodyJson"),
        fields_of(output, "outputBodyJson"),
    ] {
        add_details(&mut builder, details);
    }
    let of_run = fields_of(fields_of(record, "config"), "configurable");
    add_id(&mut builder, "thread_id", of_run.get("thread_id"));
    for (at, message) in messages.iter().enumerate() {
        add_message(&mut builder, message).map_err(|wrong| wrong.within(format!("messages[{at}]")))?;
    }
    Ok(builder)
}

/// Adds the record's name for its trace.
pub fn add_id(builder: &mut TraceBuilder, name: &str, id: Option<&Value>) {
    if let Some(id @ (Value::String(_) | Value::Number(_) | Value::Digits(_))) = id {
        builder.ids.push(values::joined([name.into(), spelled(id)], " "));
        builder.keep(name, Some(id));
    }
}

/// Adds a time: text, seconds or milliseconds.
pub fn add_time(builder: &mut TraceBuilder, time: Option<&Value>) {
    match number_of(time) {
        None => builder.at(time),
        Some(number) if number > 0.0 && number < SECONDS => builder.at_number(number * 1000.0),
        Some(number) if number > 0.0 && number < SECONDS * 1000.0 => builder.at_number(number),
        Some(_) => {}
    }
}

fn add_details(builder: &mut TraceBuilder, record: &Object) {
    for name in IDS {
        add_id(builder, name, record.get(name));
    }
    for name in ["created_at", "created", "timestamp"] {
        add_time(builder, record.get(name));
    }
    let model = ["model", "modelId", "modelVersion"];
    let model = model.into_iter().find_map(|name| string_of(record.get(name)));
    if let Some(model) = model {
        builder.details.insert("model", model.clone());
    }
    builder.keep("metadata", record.get("metadata"));
    for name in ["system", "systemInstruction"] {
        if let Some(prompt) = record.get(name) {
            builder.system(Some(prompt));
        }
    }
    if let Some(instructions @ Value::String(_)) = record.get("instructions") {
        builder.system(Some(instructions));
    }
    for name in ["resolved", "target"] {
        builder.verdict(record.get(name));
    }
    builder.reward(record.get("reward"));
    builder.outcome(record);
    builder.count_unknown(record, is_known);
}
