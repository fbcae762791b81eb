//! Runs of OpenHands: the events of its server (version 0) and of its SDK (version 1), in an array or one after the other, and the
//! `output.jsonl` of its evaluations. `openhands/events/serialization` and `openhands-sdk/openhands/sdk/event` have their types.

use std::path::Path;

use knowledgepulse_json::{Object, Text, Value};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Call, Events, Fact, Origin, Outcome, TextKind, What},
    values::{
        fields_of, fields_where, first_of, id_of, input_of, is_given, is_truthy, joined, list_of, number_of,
        object_of, or, str_of, string_of, truth_of,
    },
};

/// Runs of OpenHands.
pub struct Openhands;

/// Actions of version 0 that are no call of a tool.
#[rustfmt::skip]
const NO_CALLS: [&str; 12] = [
    "null", "start", "stop", "pause", "resume", "recall", "change_agent_state", "condensation", "condensation_request",
    "loop_recovery", "push", "send_pr",
];

/// Observations of version 0 that are no result.
#[rustfmt::skip]
const NO_RESULTS: [&str; 6] = ["null", "recall", "agent_state_changed", "condense", "think", "loop_detection"];

/// Arguments of version 0 that say how the program carries a call out.
#[rustfmt::skip]
const NO_ARGUMENTS: [&str; 14] = [
    "thought", "confirmation_state", "security_risk", "blocking", "is_static", "hidden", "is_input", "cwd", "include_extra",
    "kernel_init_code", "impl_source", "translated_ipython_code", "return_axtree", "kind",
];

/// An exit code of a command that still runs.
const RUNNING: f64 = -1.0;

/// Returns the kind of an event of version 1.
fn kind_of(event: &Object) -> Option<&str> {
    let is_one = string_of(event.get("source")).is_some() && string_of(event.get("timestamp")).is_some();
    str_of(event.get("kind")).filter(|_| is_one)
}

fn has_object(event: &Object, name: &str) -> bool {
    event.get(name).and_then(Value::as_object).is_some()
}

fn is_event(value: &Value) -> bool {
    let event = object_of(Some(value));
    let is = |name, details| string_of(event.get(name)).is_some() && has_object(event, details);
    let is_first = event.contains("source") && (is("action", "args") || is("observation", "extras"));
    is_first || kind_of(event).is_some()
}

/// Returns the events of a record that holds a whole run. One of an evaluation may have failed before it had any.
fn events_of(value: &Value) -> Option<&[Value]> {
    let record = object_of(Some(value));
    let events = match value {
        Value::Array(events) => events,
        _ => list_of(or(record.get("history"), record.get("trajectory"))),
    };
    let is_output = record.contains("history")
        && string_of(record.get("instance_id")).is_some()
        && has_object(record, "test_result");
    // In older versions, each event was beside its effect.
    let is_run = match events.first() {
        Some(Value::Array(pair)) => pair.first().is_some_and(is_event),
        Some(first) => is_event(first),
        None => false,
    };
    (is_run || is_output).then_some(events)
}

impl Adapter for Openhands {
    fn format(&self) -> FormatName {
        FormatName::Openhands
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first
            .iter()
            .any(|value| is_event(value) || events_of(value).is_some())
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let event = object_of(Some(record));
        if is_event(record) {
            let begins =
                kind_of(event) == Some("SystemPromptEvent") || number_of(event.get("id")) == Some(0.0);
            add_event(say, event, begins);
            return Ok(if begins { Decoded::Begins } else { Decoded::GoesOn });
        }
        let Some(events) = events_of(record) else {
            return Ok(Decoded::Unknown);
        };
        add_names(say, event);
        let pairs = events.iter().flat_map(|event| match event {
            Value::Array(pair) => &pair[..],
            event => std::slice::from_ref(event),
        });
        let has_name = string_of(event.get("instance_id")).is_some();
        for (at, pair) in pairs.enumerate() {
            add_event(say, object_of(Some(pair)), at == 0 && !has_name);
        }
        add_outcome(say, event);
        Ok(Decoded::Whole)
    }
}

/// Says which run an evaluation has.
fn add_names(say: &mut Events, record: &Object) {
    say.begin(Origin::default());
    if let Some(id) = string_of(record.get("instance_id")) {
        say.add(What::Fact(Fact::Id(id.clone())));
        say.fact("instance_id", record.get("instance_id"));
    }
    let metadata = fields_of(record, "metadata");
    say.fact("agent_class", metadata.get("agent_class"));
    say.first_fact("model", fields_of(metadata, "llm_config").get("model"));
    say.fact("error", record.get("error"));
}

/// Says what an evaluation knows of the outcome.
fn add_outcome(say: &mut Events, record: &Object) {
    if string_of(record.get("error")).is_some() {
        say.add(What::Success(false));
    }
    let mut result = fields_of(record, "test_result").clone();
    let resolved = fields_of(&result, "report").get("resolved");
    if let Some(success) = truth_of(or(resolved, result.get("resolved"))) {
        say.add(What::Success(success));
    }
    for patch in ["git_patch", "model_patch", "test_output", "apply_patch_output"] {
        if is_given(result.remove(patch).as_ref()) {
            say.leave_out(patch);
        }
    }
    if !result.is_empty() {
        say.fact("test_result", Some(&result.into()));
    }
}

fn add_event(say: &mut Events, event: &Object, is_first: bool) {
    say.begin(Origin {
        time: event.get("timestamp").cloned(),
        ..Origin::default()
    });
    if let Some(id) = string_of(event.get("id")).filter(|_| is_first) {
        say.add(What::Fact(Fact::Id(id.clone())));
    }
    if let Some(kind) = kind_of(event) {
        add_of_sdk(say, event, kind);
    } else if let Some(action) = string_of(event.get("action")) {
        add_action(say, event, action);
    } else if let Some(observation) = string_of(event.get("observation")) {
        add_observation(say, event, observation);
    } else {
        say.leave_out("event of an unknown kind");
    }
}

fn add_action(say: &mut Events, event: &Object, action: &Text) {
    let is_user = str_of(event.get("source")) == Some("user");
    let args = fields_of(event, "args");
    let tool_call = fields_of(event, "tool_call_metadata");
    say.first_fact("model", fields_of(tool_call, "model_response").get("model"));
    let thought = args.get("thought");
    match action.as_str() {
        "system" => say.system(None),
        name if NO_CALLS.contains(&name) => say.leave_out(joined(["action".into(), action.clone()], " ")),
        "message" if is_user => say.say_content(TextKind::User, args.get("content")),
        _ if is_user => say.say_content(TextKind::Event, event.get("message")),
        "message" => say.say_content(TextKind::Message, args.get("content")),
        "think" => say.say_content(TextKind::Reasoning, thought),
        // That the agent says it is done says nothing of the task.
        "finish" | "reject" => {
            say.say_content(TextKind::Message, thought);
            say.say_content(TextKind::Message, first_of(args, &["final_thought", "message"]));
        }
        _ => {
            say.say_content(TextKind::Message, thought);
            let used = || {
                fields_where(args, |name, value| {
                    is_truthy(Some(value)) && !NO_ARGUMENTS.contains(&name)
                })
            };
            say.call(Call {
                id: id_of(event.get("id")),
                name: string_of(tool_call.get("function_name"))
                    .or(Some(action))
                    .cloned(),
                args: asked_of(tool_call).unwrap_or_else(used),
                server: None,
            });
        }
    }
}

/// Returns the arguments of a call as the model gave them.
fn asked_of(tool_call: &Object) -> Option<Object> {
    let id = string_of(tool_call.get("tool_call_id"))?;
    let choice = list_of(fields_of(tool_call, "model_response").get("choices")).first()?;
    let mut calls = list_of(choice.get("message")?.get("tool_calls")).iter();
    let call = calls.find(|call| string_of(call.get("id")) == Some(id))?;
    Some(input_of(call.get("function")?.get("arguments")))
}

fn add_observation(say: &mut Events, event: &Object, observation: &Text) {
    let extras = fields_of(event, "extras");
    let name = observation.as_str();
    if NO_RESULTS.contains(&name) {
        return say.leave_out(joined(["observation".into(), observation.clone()], " "));
    }
    let Some(cause) = id_of(event.get("cause")) else {
        return say.say_content(TextKind::Event, event.get("content"));
    };
    let code = or(
        fields_of(extras, "metadata").get("exit_code"),
        extras.get("exit_code"),
    );
    let failed = match name {
        "error" => Some(true),
        "user_rejected" => Some(false),
        _ => failure_of(code, or(extras.get("error"), extras.get("is_error"))),
    };
    let content = say.text_of(event.get("content"));
    say.result(Outcome {
        id: Some(cause),
        content,
        failed,
    });
}

/// Returns whether a call failed, by its exit code or else by its text; `None` if the command still runs.
fn failure_of(code: Option<&Value>, error: Option<&Value>) -> Option<bool> {
    match number_of(code) {
        Some(RUNNING) => None,
        Some(code) => Some(code != 0.0),
        None => truth_of(error),
    }
}

fn add_of_sdk(say: &mut Events, event: &Object, kind: &str) {
    let tool = str_of(event.get("tool_name"));
    // Tools that only say something.
    let is_said = matches!(tool, Some("finish" | "think"));
    let result = |say: &mut Events, content, failed| {
        let content = say.text_of(content);
        let id = string_of(event.get("tool_call_id")).cloned();
        say.result(Outcome { id, content, failed });
    };
    match kind {
        "SystemPromptEvent" => say.system(None),
        "MessageEvent" => {
            let message = fields_of(event, "llm_message");
            add_reasoning(say, message);
            let kind = match str_of(event.get("source")) {
                Some("user") => TextKind::User,
                Some("agent") => TextKind::Message,
                _ => TextKind::Event,
            };
            say.say_content(kind, message.get("content"));
        }
        "ActionEvent" => {
            add_reasoning(say, event);
            say.say_content(TextKind::Message, event.get("thought"));
            let action = fields_of(event, "action");
            match tool {
                Some("finish") => say.say_content(TextKind::Message, action.get("message")),
                Some("think") => say.say_content(TextKind::Reasoning, action.get("thought")),
                _ => add_tool_call(say, event, action),
            }
        }
        _ if is_said => say.leave_out("answer of the program"),
        "ObservationEvent" => {
            let observation = fields_of(event, "observation");
            let error = or(observation.get("is_error"), observation.get("error"));
            let failed = failure_of(observation.get("exit_code"), error);
            result(
                say,
                first_of(observation, &["content", "output", "result"]),
                failed,
            );
        }
        "AgentErrorEvent" => result(say, event.get("error"), Some(true)),
        "UserRejectObservation" => result(say, event.get("rejection_reason"), Some(false)),
        "Condensation" => say.leave_out("summary of a compaction"),
        kind => say.leave_out(format!("event {kind}")),
    }
}

fn add_reasoning(say: &mut Events, fields: &Object) {
    let summary = fields_of(fields, "responses_reasoning_item").get("summary");
    let blocks = list_of(fields.get("thinking_blocks")).iter();
    let blocks = blocks.map(|block| block.get("thinking"));
    // The same reasoning may be in all of them.
    let mut given = [fields.get("reasoning_content"), summary]
        .into_iter()
        .chain(blocks);
    let text = say.text_of(given.find(|text| is_truthy(*text)).flatten());
    if !text.is_empty() {
        say.say(TextKind::Reasoning, text);
    }
}

fn add_tool_call(say: &mut Events, event: &Object, action: &Object) {
    let call = fields_of(event, "tool_call");
    let arguments = or(
        call.get("arguments"),
        fields_of(call, "function").get("arguments"),
    );
    let mut args = arguments.map_or_else(|| action.clone(), |arguments| input_of(Some(arguments)));
    args.remove("kind");
    say.call(Call {
        id: string_of(event.get("tool_call_id")).cloned(),
        name: string_of(event.get("tool_name")).cloned(),
        args,
        server: None,
    });
}
