//! Messages as today's trainers take them: TRL and its chat templates, Axolotl, LLaMA-Factory.

use std::collections::BTreeMap;

use knowledgepulse_formats::TOOLS;
use knowledgepulse_json::{Object, Text, Value, json_object, object};

use super::{
    session_of, some, time_of,
    turns::{Answer, Turn, turns_of},
    with_some,
};

/// Returns a trace as its messages, its tools and its outcome, if that is known. A user's message follows no other one, and an agent's
/// neither, because chat templates refuse that.
pub(crate) fn row_of(trace: &Value, outcome: Option<(bool, f64)>) -> Value {
    let turns = turns_of(trace);
    let tools = recorded_tools(trace).map_or_else(|| inferred_tools(&turns), <[Value]>::to_vec);
    let mut joined: Vec<Turn> = Vec::with_capacity(turns.len());
    for turn in turns {
        let turn = match turn {
            // Templates refuse a result without its call.
            Turn::Result(answer) => Turn::User(answer.text),
            turn => turn,
        };
        match (joined.last_mut(), turn) {
            (Some(Turn::User(before)), Turn::User(text)) => join(before, text),
            (Some(Turn::Agent(before)), Turn::Agent(said))
                if before.calls.iter().all(|call| call.result.is_none()) =>
            {
                join(&mut before.reasoning, said.reasoning);
                join(&mut before.text, said.text);
                before.calls.extend(said.calls);
            }
            (_, turn) => joined.push(turn),
        }
    }
    let mut messages = Vec::with_capacity(joined.len());
    joined.into_iter().for_each(|turn| add(&mut messages, turn));
    with_some([
        ("session_id", Some(session_of(trace).into())),
        ("created_at", time_of(trace)),
        ("messages", Some(messages.into())),
        ("tools", Some(tools.into())),
        ("success", outcome.map(|(success, _)| success.into())),
        ("confidence", outcome.map(|(_, confidence)| confidence.into())),
    ])
}

fn join(before: &mut Text, text: Text) {
    if before.is_empty() {
        *before = text;
    } else if !text.is_empty() {
        *before = [before.as_str(), &text].join("\n\n").into();
    }
}

/// Adds the message of a turn, and behind it the results of its calls.
fn add(messages: &mut Vec<Value>, turn: Turn) {
    let said = match turn {
        Turn::Agent(said) => said,
        Turn::User(text) | Turn::Result(Answer { text, .. }) => {
            messages.push(json_object! { "role": "user", "content": text });
            return;
        }
    };
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for call in said.calls {
        // The field `is_error` is Anthropic's; chats have none for it.
        results.extend(call.result.map(|answer| {
            with_some([
                ("role", Some("tool".into())),
                ("tool_call_id", Some(call.id.clone().into())),
                ("name", Some(call.tool.clone().into())),
                ("content", Some(answer.text.into())),
                ("is_error", answer.failed.then(|| true.into())),
            ])
        }));
        // Templates print the arguments as an object; OpenAI's API has them as a text.
        let function = json_object! { "name": call.tool, "arguments": call.input };
        calls.push(json_object! { "id": call.id, "type": "function", "function": function });
    }
    messages.push(with_some([
        ("role", Some("assistant".into())),
        ("reasoning_content", some(said.reasoning)),
        ("content", Some(said.text.into())),
        ("tool_calls", (!calls.is_empty()).then(|| calls.into())),
    ]));
    messages.extend(results);
}

/// Returns the definitions of tools that the log of a trace has; `None` if it has none.
pub(crate) fn recorded_tools(trace: &Value) -> Option<&[Value]> {
    let tools = trace.at(&["metadata", "imported", TOOLS])?.as_array()?;
    (!tools.is_empty()).then_some(tools)
}

/// Returns definitions of the tools that are called, with parameters by the arguments of the calls.
fn inferred_tools(turns: &[Turn]) -> Vec<Value> {
    let mut tools: BTreeMap<String, Vec<&Object>> = BTreeMap::new();
    for turn in turns {
        if let Turn::Agent(said) = turn {
            for call in &said.calls {
                tools.entry(call.tool.to_string()).or_default().push(&call.input);
            }
        }
    }
    let definition = |(name, inputs): (String, Vec<&Object>)| {
        let parameters = parameters_of(&inputs);
        let function = json_object! { "name": name, "description": "", "parameters": parameters };
        json_object! { "type": "function", "function": function }
    };
    tools.into_iter().map(definition).collect()
}

/// Returns a JSON Schema of the inputs of calls. A parameter that all calls have is required.
fn parameters_of(inputs: &[&Object]) -> Value {
    let mut properties = Object::new();
    for (name, value) in inputs.iter().copied().flatten() {
        let kind: Value = match value {
            Value::Number(number) if number.fract() == 0.0 => "integer".into(),
            Value::Digits(_) => "integer".into(),
            value => value.kind().into(),
        };
        let name = name.to_string();
        let known = properties
            .get(&name)
            .map(|schema| schema.get("type") == Some(&kind));
        match known {
            None => properties.insert(name.as_str(), object([("type", kind)])),
            // Values of several types.
            Some(false) => properties.insert(name.as_str(), Object::new()),
            Some(true) => {}
        }
    }
    let is_everywhere = |name: &&Text| inputs.iter().all(|input| input.contains(name));
    let required: Value = properties.keys().filter(is_everywhere).cloned().collect();
    json_object! { "type": "object", "properties": properties, "required": required }
}
