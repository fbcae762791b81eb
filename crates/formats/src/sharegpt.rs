//! Conversations of data sets for fine-tuning, as ShareGPT wrote them first, and LLaMA-Factory, Axolotl and Hermes after it.

use knowledgepulse_json::{Object, Value};

use crate::{
    tagged,
    values::{fields_where, str_of, string_of},
};

/// Returns whether a value is a turn by somebody who is known.
pub fn is_turn(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|turn| turn.contains("value") && str_of(turn.get("from")).and_then(role_of).is_some())
}

/// The role of turns of the agent that have calls in JSON.
const CALLS: &str = "calls";

fn role_of(from: &str) -> Option<&'static str> {
    Some(match from {
        "human" | "user" => "user",
        "gpt" | "chatgpt" | "assistant" | "model" | "bot" | "bing" | "bard" | "claude" => "assistant",
        "system" => "system",
        "tool" | "observation" | "function" | "function_response" | "tool_response" | "ipython"
        | "environment" => "tool",
        "function_call" | "function-call" | "tool_call" | "tool_calls" => CALLS,
        _ => return None,
    })
}

/// Returns the message of a chat that a turn stands for; `None` for anything else than a turn.
pub fn translated(turn: &Object) -> Option<Value> {
    let from = string_of(turn.get("from"))?;
    let value = turn.get("value")?;
    let role = role_of(from);
    let calls = value.as_str().filter(|_| role == Some(CALLS));
    let calls = calls.and_then(tagged::calls_in).map(Value::from);
    let mut message = Object::new();
    message.insert(
        "role",
        match role {
            Some(CALLS) => "assistant".into(),
            Some(role) => role.into(),
            None => from.clone(),
        },
    );
    message.insert("content", calls.unwrap_or_else(|| value.clone()));
    message.extend(fields_where(turn, |name, _| {
        !matches!(name, "from" | "value" | "weight" | "loss" | "train")
    }));
    Some(message.into())
}
