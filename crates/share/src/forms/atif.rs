//! The Agent Trajectory Interchange Format of Harbor.

use knowledgepulse_json::{Text, Value, json_object};

use super::{
    agent_of,
    messages::recorded_tools,
    model_of, session_of, some, text_at, time_of,
    turns::{Answer, Turn, turns_of},
    with_some,
};

/// Returns a trace as a trajectory.
pub(crate) fn trajectory_of(trace: &Value) -> Value {
    let mut time = time_of(trace);
    let steps = (1_u64..).zip(turns_of(trace));
    let steps: Value = steps.map(|(id, turn)| step_of(id, turn, time.take())).collect();
    let version = text_at(trace, &["metadata", "imported", "version"]).unwrap_or_else(|| "unknown".into());
    let agent = with_some([
        ("name", Some(agent_of(trace).into())),
        ("version", Some(version.into())),
        ("model_name", model_of(trace)),
        (
            "tool_definitions",
            recorded_tools(trace).map(|tools| tools.to_vec().into()),
        ),
    ]);
    json_object! {
        "schema_version": "ATIF-v1.7",
        "session_id": session_of(trace),
        "agent": agent,
        "steps": steps,
    }
}

fn step_of(step: u64, turn: Turn, time: Option<Value>) -> Value {
    let (mut reasoning, mut calls, mut results) = (Text::default(), Vec::new(), Vec::new());
    let (source, text) = match turn {
        Turn::User(text) => ("user", text),
        Turn::Agent(said) => {
            reasoning = said.reasoning;
            for call in said.calls {
                results.extend(call.result.map(|answer| result_of(Some(&call.id), answer)));
                calls.push(json_object! {
                    "tool_call_id": call.id,
                    "function_name": call.tool,
                    "arguments": call.input,
                });
            }
            ("agent", said.text)
        }
        Turn::Result(answer) => {
            results.push(result_of(None, answer));
            ("agent", Text::default())
        }
    };
    with_some([
        ("step_id", Some(step.into())),
        ("source", Some(source.into())),
        ("message", Some(text.into())),
        ("reasoning_content", some(reasoning)),
        ("tool_calls", (!calls.is_empty()).then(|| calls.into())),
        (
            "observation",
            (!results.is_empty()).then(|| json_object! { "results": results }),
        ),
        ("timestamp", time),
    ])
}

fn result_of(call: Option<&str>, answer: Answer) -> Value {
    with_some([
        ("source_call_id", call.map(Value::from)),
        ("content", Some(answer.text.into())),
        ("extra", answer.failed.then(|| json_object! { "is_error": true })),
    ])
}
