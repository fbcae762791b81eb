//! GitHub Copilot in VS Code: chat sessions in `workspaceStorage/*/chatSessions/`, each one object, or the log of its mutations.

use std::{mem, path::Path};

use knowledgepulse_json::{Object, Text, Value};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Call, Events, Origin, Outcome, TextKind},
    values::{fields_of, first_of, is_truthy, list_of, number_of, object_of, or, str_of, string_of},
};

/// What VS Code adds to the ids of calls.
const OF_VSCODE: &str = "__vscode";

/// Chat sessions of VS Code.
pub struct CopilotChat;

fn is_session(value: &Value) -> bool {
    let session = object_of(Some(value));
    let is_of_vscode = ["responderUsername", "creationDate", "initialLocation"]
        .iter()
        .any(|name| session.contains(name));
    is_of_vscode
        && session
            .get("requests")
            .is_some_and(|requests| requests.as_array().is_some())
}

/// Returns the kind of a mutation: the first value, a new value, elements of a list, or the end of a value.
fn mutation_of(record: &Value) -> Option<f64> {
    let kind = number_of(record.get("kind"))?;
    let is_first = || record.get("v").is_some_and(is_session);
    (if kind == 0.0 {
        is_first()
    } else {
        record.get("k").is_some_and(|path| path.as_array().is_some())
    })
    .then_some(kind)
}

impl Adapter for CopilotChat {
    fn format(&self) -> FormatName {
        FormatName::CopilotChat
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first
            .iter()
            .any(|value| is_session(value) || mutation_of(value).is_some())
    }

    fn patch(&self, whole: &mut Value, record: &Value) -> bool {
        let Some(kind) = mutation_of(record) else {
            return false;
        };
        let value = record.get("v");
        if kind == 0.0 {
            *whole = value.cloned().unwrap_or(Value::Null);
        } else if let Some(place) = place_of(whole, list_of(record.get("k"))) {
            match (kind, place) {
                (2.0, Value::Array(list)) => {
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    // A cast keeps it within the bounds.
                    let length = number_of(record.get("i")).map_or(list.len(), |length| length as usize);
                    list.truncate(length);
                    list.extend_from_slice(list_of(value));
                }
                (2.0, place) => *place = value.cloned().unwrap_or(Value::Null),
                (_, place) => *place = value.cloned().unwrap_or(Value::Null),
            }
        }
        true
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        if !is_session(record) {
            return Ok(Decoded::Unknown);
        }
        let session = object_of(Some(record));
        say.begin_run(session.get("sessionId"), session.get("creationDate"));
        say.fact("summary", session.get("customTitle"));
        for request in list_of(session.get("requests")) {
            add_request(say, object_of(Some(request)));
        }
        Ok(Decoded::Whole)
    }
}

/// Returns the place of a path, made if its last field is missing.
fn place_of<'v>(value: &'v mut Value, path: &[Value]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, key| match (value, key) {
        (Value::Object(fields), Value::String(name)) => {
            let name = name.as_str();
            if !fields.contains(name) {
                fields.insert(name, Value::Null);
            }
            fields.get_mut(name)
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // What is beyond the list is not there.
        (Value::Array(list), Value::Number(at)) => list.get_mut(*at as usize),
        _ => None,
    })
}

fn add_request(say: &mut Events, request: &Object) {
    let id = string_of(request.get("requestId")).cloned();
    say.begin(Origin {
        id,
        time: request.get("timestamp").cloned(),
        ..Origin::default()
    });
    let message = request.get("message");
    if ["shouldBeRemovedOnSend", "isHidden"]
        .iter()
        .any(|name| is_truthy(request.get(name)))
    {
        return say.leave_out("message that was taken back");
    }
    say.say_content(
        TextKind::User,
        message.and_then(|message| message.get("text")).or(message),
    );
    say.first_fact("model", request.get("modelId"));
    let known = fields_of(fields_of(request, "result"), "metadata");
    let mut text = Text::default();
    for part in list_of(request.get("response")) {
        let fields = object_of(Some(part));
        match str_of(fields.get("kind")) {
            Some("toolInvocationSerialized") => {
                say.say(TextKind::Message, mem::take(&mut text));
                add_tool(say, fields, known);
            }
            Some("thinking") => {
                say.say(TextKind::Message, mem::take(&mut text));
                say.say_content(TextKind::Reasoning, fields.get("value"));
            }
            Some("inlineReference") => {
                let file = fields_of(fields, "inlineReference");
                let file = file
                    .get("location")
                    .and_then(|location| location.get("uri"))
                    .map_or(file, |uri| object_of(Some(uri)));
                if let Some(path) = first_of(file, &["fsPath", "path"]) {
                    text.push_str(&say.text_of(Some(path)));
                }
            }
            None | Some("markdownContent") => {
                let value = or(fields.get("value"), fields.get("content"));
                let value = value.and_then(|value| value.get("value")).or(value);
                text.push_str(&say.text_of(value));
            }
            Some(kind) => say.leave_out(format!("{kind} part")),
        }
    }
    say.say(TextKind::Message, text);
}

fn is_call(id: &Value, other: Option<&Value>) -> bool {
    let base = |id: &str| id.split(OF_VSCODE).next().map(str::to_owned);
    id.as_str().and_then(base) == other.and_then(Value::as_str).and_then(base)
}

/// Adds a call with its result; both are in the metadata of the answer, with less in the call itself.
fn add_tool(say: &mut Events, tool: &Object, known: &Object) {
    let id = tool.get("toolCallId");
    let rounds = list_of(known.get("toolCallRounds")).iter();
    let call = rounds
        .flat_map(|round| list_of(round.get("toolCalls")))
        .find(|call| call.get("id").is_some_and(|call| is_call(call, id)));
    let own = fields_of(tool, "toolSpecificData");
    let command = own.get("commandLine").and_then(|line| line.get("original"));
    let args = call.and_then(|call| call.get("arguments")).or(command);
    say.call(Call::new(id, tool.get("toolId"), args));
    let results = fields_of(known, "toolCallResults").iter();
    let result = results
        .into_iter()
        .find(|(name, _)| is_call(&Value::from((*name).clone()), id));
    let output = own
        .get("terminalCommandOutput")
        .and_then(|output| output.get("text"));
    let code = number_of(fields_of(own, "terminalCommandState").get("exitCode"));
    let mut texts = Vec::new();
    match result {
        Some((_, result)) => texts_in(result, &mut texts),
        None => texts.extend(output.and_then(Value::as_text).cloned()),
    }
    if !texts.is_empty() {
        let content = texts.concat().into();
        let failed = code.filter(|&code| code != 0.0).map(|_| true);
        say.result(Outcome {
            id: string_of(id).cloned(),
            content,
            failed,
        });
    }
}

/// Collects the texts of a result: its parts are texts, or trees of nodes with texts.
fn texts_in(value: &Value, texts: &mut Vec<Text>) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| texts_in(value, texts)),
        Value::Object(fields) => {
            for name in ["content", "value", "node", "text", "children"] {
                match fields.get(name) {
                    Some(Value::String(text)) => texts.push(text.clone()),
                    Some(value) => texts_in(value, texts),
                    None => {}
                }
            }
        }
        _ => {}
    }
}
