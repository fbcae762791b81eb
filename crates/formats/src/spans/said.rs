//! The input and the output of a model, by the conventions for attributes and events.

use std::{borrow::Cow, collections::BTreeMap};

use super::merged::{Item, items_of_all};
use crate::{conversations, prelude::*};

/// The input and the output of a model.
#[derive(Default)]
pub struct Said {
    /// The items of its input.
    pub input: Vec<Item>,
    /// The items of its output.
    pub output: Vec<Item>,
    /// How many messages its output has.
    pub replies: usize,
}

impl Said {
    /// Returns whether it has neither.
    pub fn is_empty(&self) -> bool {
        self.input.is_empty() && self.output.is_empty()
    }
}

/// Returns the input and the output of a model: in attributes, or else in events.
pub fn said_in(span: &Span) -> Said {
    let mut asked = found_in(&span.attributes, "span-input", "user");
    let mut replies = found_in(&span.attributes, "span-output", "assistant");
    let (has_input, has_output) = (!asked.is_empty(), !replies.is_empty());
    // Pydantic AI had all of them in one attribute.
    let listed = parsed(span.attributes.get("events"));
    let listed = list_of(listed.as_deref()).iter().map(|event| {
        let content = ("gen_ai.event.content".into(), event.clone());
        (
            text_at(event, "event.name").unwrap_or_default(),
            [content].into_iter().collect(),
        )
    });
    for (name, attributes) in span.events.iter().cloned().chain(listed) {
        let (input, output) = messages_of_event(&name, &attributes);
        // Strands has the results of a cycle in a second list of its input.
        let is_later = !asked.is_empty() && !tags("span-event").iter().any(|[event, _]| *event == name);
        let into = if is_later { &mut replies } else { &mut asked };
        into.extend(input.into_iter().filter(|_| !has_input));
        replies.extend(output.into_iter().filter(|_| !has_output));
    }
    // DSPy has the steps so far in a message, and the next one in its reply.
    if let Some((messages, reply)) = replies
        .first()
        .and_then(|reply| conversations::by_fields(&asked, reply))
    {
        (asked, replies) = (messages, vec![reply]);
    }
    Said {
        input: items_of_all(&asked),
        output: items_of_all(&replies),
        replies: replies.len(),
    }
}

/// Returns the only argument that a function of Python was given, of a value with its `args` and `kwargs`, which may be JSON in a text.
pub fn argument_in(value: &Value) -> Option<Value> {
    if value.as_str().is_some_and(|text| !text.contains("\"kwargs\"")) {
        return None;
    }
    let value = parsed(Some(value))?;
    // OpenInference has what smolagents does with them beside them.
    let fields = value.as_object()?;
    let others = fields.keys().filter(|name| *name != "sanitize_inputs_outputs");
    (others.count() == 2).then_some(())?;
    match (fields.get("args")?, fields.get("kwargs")?) {
        (Value::Array(args), Value::Object(named)) if named.is_empty() && args.len() == 1 => {
            args.first().cloned()
        }
        (Value::Array(args), named @ Value::Object(_)) if args.is_empty() => Some(named.clone()),
        _ => None,
    }
}

/// Returns the text in a value, as of an input or an output: for an object with one field, the text in that field.
pub fn text_within(value: &Value) -> Value {
    match value {
        value if let Some(argument) = argument_in(value) => text_within(&argument),
        Value::Object(fields) if fields.len() == 1 => {
            let only = fields.values().next();
            only.map_or(Value::Null, text_within)
        }
        Value::Object(_) | Value::Array(_) => value.to_json().into(),
        value => value.clone(),
    }
}

/// Returns the messages of the first convention that has any.
fn found_in(attributes: &Object, kind: &str, role: &str) -> Vec<Value> {
    let mut found = tags(kind).iter().map(|[name, how]| {
        let value = attributes.get(name);
        match *how {
            "list" => match parsed(value).map(Cow::into_owned) {
                Some(Value::Array(messages)) => messages,
                found => messages_in(found.as_ref(), role),
            },
            "members" => members_of(attributes, name),
            "reply" => response_of(attributes, name),
            "model" if !calls_model(attributes) => Vec::new(),
            _ => messages_in(value, role),
        }
    });
    found.find(|messages| !messages.is_empty()).unwrap_or_default()
}

/// Returns whether a span is the call of a model, whose values are its messages.
fn calls_model(attributes: &Object) -> bool {
    if let Some(kind) = attributes.get("openinference.span.kind") {
        return str_of(Some(kind)) == Some("LLM");
    }
    if let Some(operation) = attributes.get("gen_ai.operation.name") {
        return matches!(
            str_of(Some(operation)),
            Some("chat" | "text_completion" | "generate_content")
        );
    }
    attributes.contains("llm.model_name") || attributes.contains("gen_ai.request.model")
}

/// What stands before the names of fields, by the kind of the member that has them.
const AROUND: [&str; 3] = ["message.", "message_content.", "tool_call."];

/// Names with more dots are no paths.
const MOST_DOTS: usize = 16;

/// Returns the messages of a list that is written as attributes, `PREFIX.0.NAME`.
fn members_of(attributes: &Object, prefix: &str) -> Vec<Value> {
    let fields = attributes.iter().filter_map(|(name, value)| {
        let path = name.strip_prefix(prefix)?.strip_prefix('.')?;
        let (at, _) = path.split_once('.')?;
        let is_member = at.len() <= 9 && at.bytes().all(|digit| digit.is_ascii_digit());
        (is_member && path.matches('.').count() <= MOST_DOTS).then_some((path, value))
    });
    let members = unflattened(fields);
    list_of(Some(&members)).iter().map(message_of).collect()
}

/// A path of names with dots between them, and the value at its end.
type Field<'a> = (&'a str, &'a Value);

/// Returns the object that the fields behind these paths make, or the list where all of them begin with numbers.
fn unflattened<'a>(fields: impl Iterator<Item = Field<'a>>) -> Value {
    let mut inner: BTreeMap<(Option<u32>, &str), Vec<Field>> = BTreeMap::new();
    for (path, value) in fields {
        let within = AROUND.iter().find_map(|around| path.strip_prefix(around));
        let path = within.unwrap_or(path);
        let (name, rest) = path.split_once('.').unwrap_or((path, ""));
        inner
            .entry((name.parse().ok(), name))
            .or_default()
            .push((rest, value));
    }
    let is_list = inner.keys().all(|(at, _)| at.is_some());
    let values = inner.into_iter().map(|((_, name), inner)| match inner[..] {
        [("", value)] => (Text::from(name), value.clone()),
        _ => (name.into(), unflattened(inner.into_iter())),
    });
    match is_list {
        true => Value::Array(values.map(|(_, value)| value).collect()),
        false => Value::Object(values.collect()),
    }
}

/// Returns the messages in the value of an attribute: those in its JSON, if there are any, or else all of it as one of
/// `role`.
pub fn messages_in(value: Option<&Value>, role: &str) -> Vec<Value> {
    let is_empty = |value: &Value| value.is_null() || value.as_text().is_some_and(Text::is_empty);
    let Some(value) = value.filter(|value| !is_empty(value)) else {
        return Vec::new();
    };
    if let Some(argument) = argument_in(value) {
        return messages_in(Some(&text_within(&argument)), role);
    }
    let whole = || vec![message_by(role, json_of(value).into_owned().into())];
    messages_within(value, role).unwrap_or_else(whole)
}

/// Returns the messages in a value or its JSON; texts in a list are of `role`. `None` if there are no messages.
pub fn messages_within(value: &Value, role: &str) -> Option<Vec<Value>> {
    match parsed(Some(value)).as_deref()? {
        Value::Array(found) => {
            if let Some(messages) = conversations::pairs_in(found) {
                return Some(messages);
            }
            let list: Vec<&Value> = match found.first() {
                Some(Value::Array(_)) => found.iter().flat_map(|each| elements_of(Some(each))).collect(),
                _ => found.iter().collect(),
            };
            if list.is_empty() {
                return Some(Vec::new());
            }
            if list.iter().any(|each| is_message(each)) {
                return Some(list.into_iter().cloned().collect());
            }
            if let [reply @ Value::Object(_)] = list[..] {
                return messages_within(reply, role);
            }
            let of_role = |text: &Value| message_by(role, text.clone());
            list.iter()
                .all(|each| each.as_text().is_some())
                .then(|| list.into_iter().map(of_role).collect())
        }
        found @ Value::Object(_) if is_message(found) => Some(vec![found.clone()]),
        // The reply of a step, as the AI SDK and Mastra have it.
        Value::Object(found) if has_list(found, "toolCalls") && !has_list(found, "messages") => {
            Some(reply_with(|name| found.get(name)))
        }
        Value::Object(found) => {
            // The request to a model, and its reply.
            let messages = conversations::messages_of(found)
                .map(|messages| messages.into_iter().map(Cow::into_owned).collect())
                .or_else(|| messages_of_langchain(found, role))
                .unwrap_or_else(|| messages_in(found.get("prompt"), role));
            if messages.is_empty() {
                return None;
            }
            let system = found.get("system").filter(|system| is_truthy(Some(system)));
            let prompt = system.map(|text| message_by("system", text.clone()));
            Some(prompt.into_iter().chain(messages).collect())
        }
        _ => None,
    }
}

/// LangChain's inputs and outputs of a model: lists of lists, because it takes several conversations at once.
fn messages_of_langchain(found: &Object, role: &str) -> Option<Vec<Value>> {
    if let Some(given) = found.get("messages").or_else(|| found.get("prompts")) {
        return messages_within(given, role);
    }
    let first = list_of(found.get("generations")).first()?;
    let message = |reply: &Value| match reply.get("message") {
        Some(message) if is_message(message) => Some(message.clone()),
        _ => reply.get("text").map(|text| message_by(role, text.clone())),
    };
    elements_of(Some(first)).iter().map(message).take(1).collect()
}

/// Returns a model's reply to the AI SDK, as a message.
fn response_of(attributes: &Object, prefix: &str) -> Vec<Value> {
    reply_with(|name| attributes.get(&format!("{prefix}.{name}")))
}

/// Returns the reply whose fields are so, as a message.
fn reply_with<'a>(field: impl Fn(&str) -> Option<&'a Value>) -> Vec<Value> {
    let text = or(field("text"), field("object"));
    let reasoning = field("reasoning");
    let calls = parsed(field("toolCalls"));
    let calls = list_of(calls.as_deref());
    if or(text, reasoning).is_none() && calls.is_empty() {
        return Vec::new();
    }
    let text = text.filter(|text| !text.is_null()).cloned();
    vec![some_object([
        ("role", Some("assistant".into())),
        ("content", Some(text.unwrap_or("".into()))),
        ("reasoning", reasoning.cloned()),
        ("tool_calls", Some(calls.to_vec().into())),
    ])]
}

/// Returns a member of a list as a message, which is the model's where it has no role.
fn message_of(member: &Value) -> Value {
    let mut message = object_of(Some(member)).clone();
    if first_of(&message, &["role"]).is_none() {
        message.insert("role", "assistant");
    }
    // AutoGen has reasoning beside the calls, and each result in JSON.
    if let Some(thought) = message.remove("thought") {
        message.insert("reasoning", thought);
    }
    if let Some(Value::Array(results)) = message.remove("function") {
        let results = results
            .iter()
            .filter_map(|result| Some(parsed(Some(result))?.into_owned()));
        message.insert("content", results.collect::<Value>());
    }
    if first_of(&message, &["content"]).is_none() {
        // A message has its only text in either way, and once more in the other when it is given again.
        let parts = list_at(&message, "contents");
        let text = match parts {
            [part] if str_of(part.get("type")).is_none_or(|kind| kind == "text") => first_of(part, &["text"]),
            _ => None,
        };
        let content = text.cloned().unwrap_or_else(|| parts.to_vec().into());
        message.insert("content", content);
    }
    message.into()
}

/// Returns the input and the output that an event has. It was a message, before messages were attributes.
fn messages_of_event(name: &Text, attributes: &Object) -> (Vec<Value>, Vec<Value>) {
    let Some([_, role]) = row_where("span-event", |event| event == name) else {
        let asked = found_in(attributes, "span-input", "user");
        return (asked, found_in(attributes, "span-output", "assistant"));
    };
    let whole = first_of(attributes, &["gen_ai.event.content", "message"]);
    let body = parsed(whole);
    // Strands has the content alone.
    let alone = whole.filter(|_| body.as_deref().is_none_or(|body| body.as_object().is_none()));
    let body = object_of(body.as_deref());
    let inner = body.get("message");
    let mut message = match inner {
        Some(Value::Object(message)) => message.clone(),
        _ => fields_where(body, |name, _| !matches!(name, "message" | "event.name")),
    };
    let text = inner.filter(|message| message.as_text().is_some());
    let contents = [message.get("content"), attributes.get("content"), alone, text];
    let content = contents.into_iter().find(|content| is_given(*content));
    let content = content.flatten().cloned().unwrap_or_default();
    let id = message.remove("id").filter(|id| !id.is_null());
    message.insert("role", role);
    message.insert("content", content);
    if role == "tool" {
        let id = id.or_else(|| attributes.get("id").cloned());
        message.insert("tool_call_id", id.unwrap_or_default());
    }
    let said = vec![message.into()];
    match name.as_str() {
        "gen_ai.choice" => (Vec::new(), said),
        _ => (said, Vec::new()),
    }
}
