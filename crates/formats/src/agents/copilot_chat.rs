//! GitHub Copilot in VS Code: chat sessions in `workspaceStorage/*/chatSessions/`, each one object, or the log of its mutations.

use std::{collections::HashSet, mem};

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("copilot-chat", add_request).patch(patch);

/// What VS Code adds to the ids of calls.
const OF_VSCODE: &str = "__vscode";

/// Carries out a mutation: the first value, a new value, elements of a list, or the end of a value.
fn patch(whole: &mut Value, record: &Value) -> bool {
    let Some(kind) = number_of(record.get("kind")).filter(|_| is(record, "copilot-mutation")) else {
        return false;
    };
    let value = record.get("v");
    let place = if kind == 0.0 {
        Some(whole)
    } else {
        place_of(whole, list_at(record, "k"))
    };
    match place {
        Some(Value::Array(list)) if kind == 2.0 => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            // A cast keeps it within the bounds.
            let length = number_of(record.get("i")).map_or(list.len(), |length| length as usize);
            list.truncate(length);
            list.extend_from_slice(list_of(value));
        }
        Some(place) => *place = value.cloned().unwrap_or_default(),
        None => {}
    }
    true
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

/// The field of a call that names the call of the sub-agent which has made it.
const OF_SUB_AGENT: &str = "subAgentInvocationId";

fn add_request(say: &mut Events, request: &Value) {
    let is_set = |name: &&str| is_truthy(request.get(name));
    if ["shouldBeRemovedOnSend", "isHidden"].iter().any(is_set) {
        return say.leave_out("message that was taken back");
    }
    if ["isSystemInitiated", "hiddenFromTranscript"].iter().any(is_set) {
        say.leave_out("prompt of the program");
    } else {
        let prompt = in_path(request, "message/text").or(request.get("message"));
        say.say_content(TextKind::User, prompt);
    }
    let known = fields_of(fields_of(request, "result"), "metadata");
    say.first_fact("model", known.get("resolvedModel").or(request.get("modelId")));
    let mut text = Text::default();
    let response = list_at(request, "response");
    let mut prompted = HashSet::new();
    for part in response {
        match str_of(part.get("kind")) {
            Some("toolInvocationSerialized") => {
                say.say(TextKind::Message, mem::take(&mut text));
                let Some(of) = text_at(part, OF_SUB_AGENT) else {
                    add_tool(say, part, known);
                    continue;
                };
                say.begin(Origin::default());
                say.of_agent(Some(&of));
                if prompted.insert(of.clone()) {
                    let task = response
                        .iter()
                        .find(|part| string_of(part.get("toolCallId")) == Some(&of));
                    let task = task.map(|task| fields_of(task, "toolSpecificData"));
                    say.say_content(TextKind::User, task.and_then(|task| task.get("prompt")));
                }
                add_tool(say, part, known);
                say.begin(Origin::default());
            }
            Some("thinking") => {
                say.say(TextKind::Message, mem::take(&mut text));
                say.say_content(TextKind::Reasoning, part.get("value"));
            }
            Some("inlineReference") => {
                // A file, a place in one, or a symbol, which has a name.
                let file = fields_of(part, "inlineReference");
                text.push_str(&say.text_of(first_at(file, "name fsPath path uri/fsPath uri/path")));
            }
            None | Some("markdownContent") => {
                let value = first_of(part, &["value", "content"]);
                let value = value.and_then(|value| value.get("value")).or(value);
                text.push_str(&say.text_of(value));
            }
            Some(kind) => say.leave_out(format!("{kind} part")),
        }
    }
    say.say(TextKind::Message, text);
}

/// Adds a call with its result; both are in the metadata of the answer, with less in the call itself.
fn add_tool(say: &mut Events, tool: &Value, known: &Object) {
    let id = tool.get("toolCallId");
    let base = |id: &str| id.split(OF_VSCODE).next().map(str::to_owned);
    let is_own = |other: Option<&str>| other.and_then(base) == str_of(id).and_then(base);
    let rounds = list_at(known, "toolCallRounds").iter();
    let call = rounds
        .flat_map(|round| list_at(round, "toolCalls"))
        .find(|call| has_all(*call, &["id"]) && is_own(str_of(call.get("id"))));
    let own = fields_of(tool, "toolSpecificData");
    let args = call.and_then(|call| call.get("arguments"));
    let args = args.or(fields_of(own, "commandLine").get("original"));
    say.call(Call::new(id, tool.get("toolId"), args));
    let mut results = fields_of(known, "toolCallResults").iter();
    let result = results.find(|(name, _)| is_own(Some(name)));
    let output = text_at(fields_of(own, "terminalCommandOutput"), "text");
    let code = number_of(fields_of(own, "terminalCommandState").get("exitCode"));
    let mut texts = Vec::new();
    match result {
        Some((_, result)) => texts_in(result, &mut texts),
        None => texts.extend(output),
    }
    if !texts.is_empty() {
        let failed = code.is_some_and(|code| code != 0.0).then_some(true);
        say.result(string_of(id).cloned(), texts.concat().into(), failed);
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
