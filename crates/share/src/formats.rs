//! Writers of the formats that a trace is shared in. Each takes a clean trace.

use std::collections::BTreeMap;

use knowledgepulse_json::{Object, Text, Value, object};

use crate::conversation::{Answer, Call, Turn, turns_of, with_results_behind_calls};

fn text_at(value: &Value, path: &[&str]) -> Option<Text> {
    let text = value.at(path).and_then(Value::as_text);
    text.filter(|text| !text.is_empty()).cloned()
}

/// Returns when a trace began.
fn time_of(trace: &Value) -> Option<Value> {
    text_at(trace, &["metadata", "created_at"]).map(Value::from)
}

/// Returns the model of a trace.
fn model_of(trace: &Value) -> Option<Value> {
    text_at(trace, &["metadata", "imported", "model"]).map(Value::from)
}

/// Returns the name of the agent of a trace.
fn agent_of(trace: &Value) -> Text {
    let names = [["metadata", "framework"], ["metadata", "agent_id"]];
    let name = names.iter().find_map(|path| text_at(trace, path));
    name.or_else(|| text_at(trace, &["metadata", "imported", "format"]))
        .unwrap_or_else(|| "unknown".into())
}

/// Returns the name of a session: that of its trace without what all ids begin with.
fn session_of(trace: &Value) -> Text {
    let id = text_at(trace, &["id"]).unwrap_or_else(|| "unknown".into());
    id.strip_prefix("kp:trace:").unwrap_or(&id).into()
}

fn with_some<const FIELDS: usize>(fields: [(&str, Option<Value>); FIELDS]) -> Value {
    object(
        fields
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?))),
    )
}

/// Writes a trace in the Session Trace Simple Format of the Hub of Hugging Face, whose entries are Pi's.
pub(crate) fn sts(trace: &Value) -> String {
    let mut entries = vec![with_some([
        ("type", Some("session".into())),
        ("version", Some(3.0.into())),
        ("id", Some(session_of(trace).into())),
        ("timestamp", time_of(trace)),
        ("harness", Some(agent_of(trace).into())),
    ])];
    let model = model_of(trace);
    for (at, turn) in turns_of(trace).into_iter().enumerate() {
        let message = match turn {
            Turn::User(text) => object([("role", "user".into()), ("content", text.into())]),
            Turn::Agent(text, calls) => {
                let text = (!text.is_empty()).then(|| text_part(text));
                let calls = calls.into_iter().map(|call| {
                    object([
                        ("type", "toolCall".into()),
                        ("id", call.id.into()),
                        ("name", call.tool.into()),
                        ("arguments", call.input.into()),
                    ])
                });
                let content: Vec<Value> = text.into_iter().chain(calls).collect();
                with_some([
                    ("role", Some("assistant".into())),
                    ("content", Some(content.into())),
                    ("model", model.clone()),
                ])
            }
            Turn::Result(Answer {
                id,
                tool,
                text,
                failed,
            }) => object([
                ("role", "toolResult".into()),
                ("toolCallId", id.into()),
                ("toolName", tool.into()),
                ("content", vec![text_part(text)].into()),
                ("isError", failed.into()),
            ]),
        };
        let parent = at.checked_sub(1).map(|parent| Value::from(parent.to_string()));
        entries.push(object([
            ("type", "message".into()),
            ("id", at.to_string().into()),
            ("parentId", parent.unwrap_or_default()),
            ("message", message),
        ]));
    }
    entries.iter().map(|entry| entry.to_json() + "\n").collect()
}

fn text_part(text: Text) -> Value {
    object([("type", "text".into()), ("text", text.into())])
}

/// Writes a trace as a line of OpenAI's messages, with the tools that it calls and its outcome, if that is known.
pub(crate) fn messages(trace: &Value, outcome: Option<(bool, f64)>) -> String {
    let turns = with_results_behind_calls(turns_of(trace));
    let tools = tools_of(&turns);
    let messages: Vec<Value> = turns.into_iter().map(message_of).collect();
    let row = with_some([
        ("id", text_at(trace, &["id"]).map(Value::from)),
        ("created_at", time_of(trace)),
        ("messages", Some(messages.into())),
        ("tools", Some(tools.into())),
        ("success", outcome.map(|(success, _)| success.into())),
        ("confidence", outcome.map(|(_, confidence)| confidence.into())),
    ]);
    row.to_json() + "\n"
}

fn message_of(turn: Turn) -> Value {
    match turn {
        Turn::User(text) => object([("role", "user".into()), ("content", text.into())]),
        Turn::Agent(text, calls) => {
            let calls: Vec<Value> = calls.into_iter().map(function_call).collect();
            with_some([
                ("role", Some("assistant".into())),
                ("content", Some(text.into())),
                ("tool_calls", (!calls.is_empty()).then(|| calls.into())),
            ])
        }
        // The field is Anthropic's; chats have none for it.
        Turn::Result(Answer { id, text, failed, .. }) => with_some([
            ("role", Some("tool".into())),
            ("tool_call_id", Some(id.into())),
            ("content", Some(text.into())),
            ("is_error", failed.then(|| true.into())),
        ]),
    }
}

fn function_call(call: Call) -> Value {
    let function = object([
        ("name", call.tool.into()),
        ("arguments", call.input.to_json().into()),
    ]);
    object([
        ("id", call.id.into()),
        ("type", "function".into()),
        ("function", function),
    ])
}

/// Returns the definitions of the tools that are called, with parameters by the arguments of the calls: logs do not have the definitions.
fn tools_of(turns: &[Turn]) -> Vec<Value> {
    let mut tools: BTreeMap<String, Vec<&Object>> = BTreeMap::new();
    for turn in turns {
        let Turn::Agent(_, calls) = turn else { continue };
        for call in calls {
            tools.entry(call.tool.to_string()).or_default().push(&call.input);
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

/// Writes a trace in the Agent Trajectory Interchange Format.
pub(crate) fn atif(trace: &Value) -> String {
    let mut steps: Vec<Step> = Vec::new();
    for turn in with_results_behind_calls(turns_of(trace)) {
        match turn {
            Turn::User(text) => steps.push(Step::new("user", text, Vec::new())),
            Turn::Agent(text, calls) => steps.push(Step::new("agent", text, calls)),
            Turn::Result(answer) => {
                let is_call = |call: &Call| call.id == answer.id;
                let has_call = steps.last().is_some_and(|step| step.calls.iter().any(is_call));
                // Where the trace does not have the call, the result is a step of its own.
                if !has_call {
                    steps.push(Step::new("agent", Text::default(), Vec::new()));
                }
                if let Some(step) = steps.last_mut() {
                    step.results.push((has_call, answer));
                }
            }
        }
    }
    let mut steps: Vec<Object> = (1_u32..)
        .zip(steps)
        .map(|(id, step)| step.into_object(id))
        .collect();
    if let (Some(first), Some(time)) = (steps.first_mut(), time_of(trace)) {
        first.insert("timestamp", time);
    }
    let version = text_at(trace, &["metadata", "imported", "version"]).unwrap_or_else(|| "unknown".into());
    let agent = with_some([
        ("name", Some(agent_of(trace).into())),
        ("version", Some(version.into())),
        ("model_name", model_of(trace)),
    ]);
    let steps: Vec<Value> = steps.into_iter().map(Value::from).collect();
    let trajectory = object([
        ("schema_version", "ATIF-v1.7".into()),
        ("session_id", session_of(trace).into()),
        ("agent", agent),
        ("steps", steps.into()),
    ]);
    trajectory.to_json() + "\n"
}

/// A step of ATIF.
struct Step {
    source: &'static str,
    text: Text,
    calls: Vec<Call>,
    /// The results, and whether the step has their calls.
    results: Vec<(bool, Answer)>,
}

impl Step {
    fn new(source: &'static str, text: Text, calls: Vec<Call>) -> Self {
        Self {
            source,
            text,
            calls,
            results: Vec::new(),
        }
    }

    fn into_object(self, id: u32) -> Object {
        let call = |call: Call| {
            object([
                ("tool_call_id", call.id.into()),
                ("function_name", call.tool.into()),
                ("arguments", call.input.into()),
            ])
        };
        let result = |(has_call, Answer { id, text, failed, .. }): (bool, Answer)| {
            with_some([
                ("source_call_id", has_call.then(|| id.into())),
                ("content", Some(text.into())),
                ("extra", failed.then(|| object([("is_error", true.into())]))),
            ])
        };
        let mut step = Object::new();
        step.insert("step_id", f64::from(id));
        step.insert("source", self.source);
        step.insert("message", self.text);
        if !self.calls.is_empty() {
            step.insert("tool_calls", self.calls.into_iter().map(call).collect::<Vec<_>>());
        }
        if !self.results.is_empty() {
            let results: Vec<_> = self.results.into_iter().map(result).collect();
            step.insert("observation", object([("results", results.into())]));
        }
        step
    }
}
