//! The input and the output of a model, by the conventions for attributes and events.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use knowledgepulse_json::{Object, Text, Value, object, parse_str};

use super::attributes::{Attributes, parsed};
use crate::{
    Wrong,
    adapters::chat,
    messages::{is_message, message_by},
    parts::some_object,
    values::{elements_of, is_given, is_truthy, list_of, object_of, or, spelled, str_of},
};

/// Messages, which several spans may share.
pub type Messages = Vec<Arc<Value>>;

/// The input and the output of a model.
#[derive(Default)]
pub struct Said {
    pub input: Messages,
    pub output: Messages,
}

impl Said {
    pub fn is_empty(&self) -> bool {
        self.input.is_empty() && self.output.is_empty()
    }
}

/// Attributes with a model's input, in JSON.
pub const INPUTS: [&str; 2] = ["gen_ai.input.messages", "ai.prompt.messages"];

/// Messages that a model was given, and the JSON that they were read from.
#[derive(Clone)]
pub struct MessageList {
    json: Text,
    pub messages: Messages,
}

impl MessageList {
    /// Returns the list that is written in JSON; `None` for other values. A model's input mostly repeats the one before and
    /// adds to it: then only the addition is parsed, and the rest is shared. So a run of many calls takes no more time and
    /// memory than its conversation.
    pub fn read(json: Option<&Value>, before: Option<&Self>) -> Option<Self> {
        let json = json?.as_text()?;
        if let Some(before) = before {
            if json == &before.json && !before.messages.is_empty() {
                return Some(before.clone());
            }
            if let Some(added) = before.added(json) {
                let messages = before.messages.iter().cloned().chain(added).collect();
                return Some(Self {
                    json: json.clone(),
                    messages,
                });
            }
        }
        match json.parse() {
            Ok(Value::Array(messages)) => Some(Self {
                json: json.clone(),
                messages: shared(messages),
            }),
            _ => None,
        }
    }

    /// Returns the part of a list in JSON after this one.
    fn added(&self, json: &Text) -> Option<Messages> {
        let before = self.json.as_str()?.strip_suffix(']')?;
        let more = json.as_str()?.strip_prefix(before)?.strip_prefix(',')?;
        match parse_str(&format!("[{more}")) {
            Ok(Value::Array(added)) if !added.is_empty() && !self.messages.is_empty() => Some(shared(added)),
            _ => None,
        }
    }
}

fn shared(messages: Vec<Value>) -> Messages {
    messages.into_iter().map(Arc::new).collect()
}

/// Returns the input and the output of a model: in attributes, or else in events. `lists` are the lists of [`INPUTS`].
pub fn said_in(
    attributes: &Attributes,
    lists: &[Option<MessageList>],
    events: Option<&Value>,
) -> Result<Said, Wrong> {
    let mut said = messages_of(attributes, lists);
    let (has_input, has_output) = (!said.input.is_empty(), !said.output.is_empty());
    for event in list_of(events) {
        let told = messages_of_event(object_of(Some(event)))?;
        if !has_input {
            said.input.extend(told.input);
        }
        if !has_output {
            said.output.extend(told.output);
        }
    }
    Ok(said)
}

/// Returns the messages in attributes, by the first convention that has any.
fn messages_of(attributes: &Attributes, lists: &[Option<MessageList>]) -> Said {
    let flat = |prefix| -> Messages {
        let members = attributes.unflattened(prefix);
        members
            .iter()
            .map(|member| Arc::new(message_of(member)))
            .collect()
    };
    let value = |name, role| shared(messages_in(attributes.get(name), role));
    let list = |name, role| match parsed(attributes.get(name)) {
        Some(Cow::Owned(Value::Array(messages))) => shared(messages),
        Some(Cow::Borrowed(Value::Array(messages))) => shared(messages.clone()),
        found => shared(messages_in(found.as_deref(), role)),
    };
    let given = |at: usize| match lists.get(at) {
        Some(Some(list)) => list.messages.clone(),
        _ => list(INPUTS[at], "user"),
    };
    let is_model_call = calls_model(attributes);
    let of_call = |name, role| {
        if is_model_call {
            value(name, role)
        } else {
            Vec::new()
        }
    };
    let first = |conventions: &[&dyn Fn() -> Messages]| {
        let found = conventions.iter().map(|messages| messages());
        found
            .into_iter()
            .find(|messages| !messages.is_empty())
            .unwrap_or_default()
    };
    Said {
        input: first(&[
            &|| given(0),
            &|| given(1),
            &|| flat("llm.input_messages"),
            &|| flat("gen_ai.prompt"),
            &|| value("gen_ai.prompt", "user"),
            &|| value("ai.prompt", "user"),
            &|| of_call("input.value", "user"),
        ]),
        output: first(&[
            &|| list("gen_ai.output.messages", "assistant"),
            &|| flat("llm.output_messages"),
            &|| flat("gen_ai.completion"),
            &|| value("gen_ai.completion", "assistant"),
            &|| response_of(attributes, "ai.response"),
            &|| response_of(attributes, "ai.result"),
            &|| of_call("output.value", "assistant"),
        ]),
    }
}

/// Returns whether a span is the call of a model, whose values are its messages.
fn calls_model(attributes: &Attributes) -> bool {
    if let Some(kind) = attributes.get("openinference.span.kind") {
        return str_of(Some(kind)) == Some("LLM");
    }
    if let Some(operation) = attributes.get("gen_ai.operation.name") {
        let operation = spelled(operation);
        return matches!(
            operation.as_str(),
            Some("chat" | "text_completion" | "generate_content")
        );
    }
    attributes.has("llm.model_name") || attributes.has("gen_ai.request.model")
}

/// Returns the messages in the value of an attribute: those in its JSON, if there are any, or else all of it as one of
/// `role`.
pub fn messages_in(value: Option<&Value>, role: &str) -> Vec<Value> {
    let Some(value) =
        value.filter(|value| !value.is_null() && value.as_text().is_none_or(|text| !text.is_empty()))
    else {
        return Vec::new();
    };
    if let Some(messages) = messages_within(value, role) {
        return messages;
    }
    vec![message_by(
        role,
        match value {
            Value::Array(_) | Value::Object(_) => value.to_json().into(),
            value => value.clone(),
        },
    )]
}

/// Returns the messages in a value or its JSON; texts in a list are of `role`. `None` if there are no messages.
pub fn messages_within(value: &Value, role: &str) -> Option<Vec<Value>> {
    match parsed(Some(value)).as_deref()? {
        Value::Array(found) => {
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
            let of_role = |text: &Value| message_by(role, text.clone());
            list.iter()
                .all(|each| each.as_text().is_some())
                .then(|| list.into_iter().map(of_role).collect())
        }
        found @ Value::Object(_) if is_message(found) => Some(vec![found.clone()]),
        Value::Object(found) => {
            // The request to a model, and its reply.
            let messages = chat::messages_of(found)
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
fn response_of(attributes: &Attributes, prefix: &str) -> Messages {
    let field = |name: &str| attributes.get(&format!("{prefix}.{name}"));
    let text = or(field("text"), field("object"));
    let reasoning = field("reasoning");
    let calls = parsed(field("toolCalls"));
    let calls = list_of(calls.as_deref());
    if or(text, reasoning).is_none() && calls.is_empty() {
        return Vec::new();
    }
    let text = text
        .filter(|text| !text.is_null())
        .cloned()
        .unwrap_or_else(|| "".into());
    let mut parts = vec![object([("type", "text".into()), ("text", text)])];
    parts.extend(calls.iter().map(|call| {
        let mut part = object_of(Some(call)).clone();
        part.insert("type", "tool-call");
        part.into()
    }));
    let message = some_object([
        ("role", Some("assistant".into())),
        ("reasoning", reasoning.cloned()),
        ("content", Some(parts.into())),
    ]);
    vec![Arc::new(message)]
}

/// Returns a message of the flattened kinds as one of a chat.
fn message_of(member: &Attributes) -> Value {
    let fields = member.without("message.");
    let calls = fields.unflattened("tool_calls");
    let id_of = |call: &Attributes| call.get("tool_call.id").map(Value::to_json);
    let ids: HashSet<_> = calls
        .iter()
        .map(|call| call.first_given(&["tool_call.id", "id"]).map(Value::to_json))
        .collect();
    let mut calls: Vec<Value> = calls.iter().map(call_of).collect();
    let mut parts = Vec::new();
    for part in fields.unflattened("contents") {
        let kind = part.first_given(&["message_content.type"]);
        let kind = kind.cloned().unwrap_or_else(|| "text".into());
        if str_of(Some(&kind)) != Some("tool_use") {
            parts.push(some_object([
                ("type", Some(kind)),
                ("text", part.get("message_content.text").cloned()),
            ]));
        } else if !ids.contains(&id_of(&part)) {
            // OpenInference has a call of Anthropic's API in both places.
            calls.push(call_of(&part));
        }
    }
    // A message has its only text in either way, and once more in the other when it is given again.
    let text = match &parts[..] {
        [part] if str_of(part.get("type")) == Some("text") => part.get("text").cloned(),
        _ => None,
    };
    let content = fields.first_given(&["content"]).cloned();
    let content = content
        .or(text.filter(|text| !text.is_null()))
        .unwrap_or(Value::Array(parts));
    let role = fields
        .first_given(&["role"])
        .cloned()
        .unwrap_or_else(|| "assistant".into());
    let calls = (!calls.is_empty()).then_some(Value::Array(calls));
    some_object([
        ("role", Some(role)),
        ("content", Some(content)),
        ("tool_calls", calls),
        ("tool_call_id", fields.get("tool_call_id").cloned()),
    ])
}

/// Returns a call of the flattened kinds as one of a chat.
fn call_of(call: &Attributes) -> Value {
    let first = |names| call.first_given(names).cloned();
    some_object([
        ("id", first(&["tool_call.id", "id"])),
        ("name", first(&["tool_call.function.name", "name"])),
        ("arguments", first(&["tool_call.function.arguments", "arguments"])),
    ])
}

/// Returns the role of an event that was a message, before messages were attributes.
fn role_of_event(name: &str) -> Option<&'static str> {
    match name {
        "gen_ai.system.message" => Some("system"),
        "gen_ai.user.message" => Some("user"),
        "gen_ai.assistant.message" | "gen_ai.choice" => Some("assistant"),
        "gen_ai.tool.message" => Some("tool"),
        _ => None,
    }
}

fn messages_of_event(event: &Object) -> Result<Said, Wrong> {
    let attributes = Attributes::of(event.get("attributes"))?;
    let name = event.get("name").map(spelled);
    let name = name.as_ref().and_then(Text::as_str).unwrap_or_default();
    let Some(role) = role_of_event(name) else {
        return Ok(messages_of(&attributes, &[]));
    };
    let whole = attributes.first_given(&["gen_ai.event.content", "message"]);
    let body = parsed(whole);
    // Strands has the content alone.
    let alone = whole.filter(|_| body.as_deref().is_none_or(|body| body.as_object().is_none()));
    let body = object_of(body.as_deref());
    let mut message = match body.get("message") {
        Some(Value::Object(message)) => message.clone(),
        _ => {
            let mut message = body.clone();
            message.remove("message");
            message
        }
    };
    let content = or(message.get("content"), attributes.get("content"));
    let content = or(content, alone);
    let text = body.get("message").filter(|message| message.as_text().is_some());
    let content = or(content, text).cloned();
    let id = message.remove("id");
    message.insert("role", role);
    message.insert("content", content.unwrap_or_default());
    if role == "tool" {
        let id = id.filter(|id| is_given(Some(id)));
        message.insert(
            "tool_call_id",
            id.or_else(|| attributes.get("id").cloned()).unwrap_or_default(),
        );
    }
    let said = vec![Arc::new(message.into())];
    let is_choice = name == "gen_ai.choice";
    let (input, output) = if is_choice {
        (Vec::new(), said)
    } else {
        (said, Vec::new())
    };
    Ok(Said { input, output })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_shares_the_messages_of_the_list_before() {
        let list = |json: &str, before: Option<&MessageList>| MessageList::read(Some(&json.into()), before);
        let empty = list("[]", None).unwrap();
        let first = list("[1]", Some(&empty)).unwrap();
        for (json, count, shares) in [
            ("[1]", 1, true),
            ("[1,2,3]", 3, true),
            ("[1]2]", 0, false),
            ("[1,]", 0, false),
            ("[2]", 1, false),
        ] {
            let found = list(json, Some(&first));
            let messages = found.map(|list| list.messages).unwrap_or_default();
            assert_eq!(messages.len(), count, "{json}");
            assert_eq!(
                messages
                    .first()
                    .is_some_and(|message| Arc::ptr_eq(message, &first.messages[0])),
                shares,
                "{json}"
            );
        }
        assert!(list("{}", Some(&first)).is_none());
    }
}
