//! Messages as today's trainers take them: TRL and its chat templates, Axolotl, LLaMA-Factory.

use std::collections::BTreeMap;

use knowledgepulse_formats::TOOLS;
use knowledgepulse_json::{Object, Text, Value, object};

use super::{
    session_of, some, time_of,
    turns::{Answer, Call, Turn, results_behind_calls, turns_of},
    with_some,
};

/// Returns a trace as its messages, its tools and its outcome, if that is known. A user's message follows no other one, and an agent's
/// neither, because chat templates refuse that.
pub(crate) fn row_of(trace: &Value, outcome: Option<(bool, f64)>) -> Value {
    let turns = results_behind_calls(turns_of(trace));
    let tools = recorded_tools(trace).map_or_else(|| inferred_tools(&turns), <[Value]>::to_vec);
    let mut joined: Vec<Turn> = Vec::with_capacity(turns.len());
    for turn in turns {
        let turn = match turn {
            // Templates refuse a result without its call.
            Turn::Result(Answer { id, text, .. }) if id == Answer::OF_NO_CALL => Turn::User(text),
            turn => turn,
        };
        match (joined.last_mut(), turn) {
            (Some(Turn::User(before)), Turn::User(text)) => join(before, text),
            (Some(Turn::Agent(before)), Turn::Agent(said)) => {
                join(&mut before.reasoning, said.reasoning);
                join(&mut before.text, said.text);
                before.calls.extend(said.calls);
            }
            (_, turn) => joined.push(turn),
        }
    }
    let messages: Vec<Value> = joined.into_iter().map(message_of).collect();
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

fn message_of(turn: Turn) -> Value {
    match turn {
        Turn::User(text) => object([("role", "user".into()), ("content", text.into())]),
        Turn::Agent(said) => {
            let calls: Vec<Value> = said.calls.into_iter().map(function_call).collect();
            with_some([
                ("role", Some("assistant".into())),
                ("reasoning_content", some(said.reasoning)),
                ("content", Some(said.text.into())),
                ("tool_calls", (!calls.is_empty()).then(|| calls.into())),
            ])
        }
        // The field `is_error` is Anthropic's; chats have none for it.
        Turn::Result(answer) => with_some([
            ("role", Some("tool".into())),
            ("tool_call_id", Some(answer.id.into())),
            ("name", Some(answer.tool.into())),
            ("content", Some(answer.text.into())),
            ("is_error", answer.failed.then(|| true.into())),
        ]),
    }
}

fn function_call(call: Call) -> Value {
    // Templates print the arguments as an object; OpenAI's API has them as a text.
    let function = object([("name", call.tool.into()), ("arguments", call.input.into())]);
    object([
        ("id", call.id.into()),
        ("type", "function".into()),
        ("function", function),
    ])
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
        let function = object([
            ("name", name.into()),
            ("description", "".into()),
            ("parameters", parameters_of(&inputs)),
        ]);
        object([("type", "function".into()), ("function", function)])
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
    let required: Vec<Value> = properties
        .keys()
        .filter(is_everywhere)
        .cloned()
        .map(Value::from)
        .collect();
    object([
        ("type", "object".into()),
        ("properties", properties.into()),
        ("required", required.into()),
    ])
}
