//! Runs of OpenHands: the events of its server (version 0) and of its SDK (version 1), in an array or one after the other, and the
//! `output.jsonl` of its evaluations. `openhands/events/serialization` and `openhands-sdk/openhands/sdk/event` have their types.

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    Entry, FormatName, FormatReader, Found, Wrong,
    open_traces::CurrentTrace,
    trace::{Call, Outcome, Sink, TextKind, TraceBuilder, fields_of},
    values::{
        fields_where, first_of, id_of, input_of, is_given, is_truthy, joined, list_of, number_of, object_of,
        or, str_of, string_of, truth_of,
    },
};

/// Returns whether an action of version 0 is no call of a tool.
#[rustfmt::skip]
fn is_no_call(action: &str) -> bool {
    matches!(
        action,
        "null" | "start" | "stop" | "pause" | "resume" | "recall" | "change_agent_state" | "condensation"
            | "condensation_request" | "loop_recovery" | "push" | "send_pr"
    )
}

/// Returns whether an observation of version 0 is no result.
fn is_no_result(observation: &str) -> bool {
    matches!(
        observation,
        "null" | "recall" | "agent_state_changed" | "condense" | "think" | "loop_detection"
    )
}

/// Arguments of version 0 that say how the program carries a call out.
#[rustfmt::skip]
fn is_no_argument(name: &str) -> bool {
    matches!(
        name,
        "thought" | "confirmation_state" | "security_risk" | "blocking" | "is_static" | "hidden" | "is_input" | "cwd"
            | "include_extra" | "kernel_init_code" | "impl_source" | "translated_ipython_code" | "return_axtree" | "kind"
    )
}

/// Tools of version 1 that only say something.
fn is_said(tool: Option<&str>) -> bool {
    matches!(tool, Some("finish" | "think"))
}

/// An exit code of a command that still runs.
const RUNNING: f64 = -1.0;

/// Returns the kind of an event of version 1.
fn kind_of(event: &Object) -> Option<&str> {
    let is_one = string_of(event.get("source")).is_some() && string_of(event.get("timestamp")).is_some();
    str_of(event.get("kind")).filter(|_| is_one)
}

fn is_event(value: &Value) -> bool {
    let event = object_of(Some(value));
    let is = |name, details| string_of(event.get(name)).is_some() && has_object(event, details);
    let is_first = event.contains("source") && (is("action", "args") || is("observation", "extras"));
    is_first || kind_of(event).is_some()
}

fn has_object(event: &Object, name: &str) -> bool {
    event.get(name).and_then(Value::as_object).is_some()
}

/// Returns the events of a record that holds a whole run.
fn events_of(value: &Value) -> Option<&[Value]> {
    let events = match value {
        Value::Array(events) => events,
        Value::Object(record) => list_of(or(record.get("history"), record.get("trajectory"))),
        _ => &[],
    };
    let first = events.first()?;
    // In older versions, each event was beside its effect.
    let first = first.as_array().and_then(<[Value]>::first).unwrap_or(first);
    is_event(first).then_some(events)
}

/// Returns whether a record is of this format.
pub fn recognises(value: &Value) -> bool {
    is_event(value) || events_of(value).is_some() || is_output(object_of(Some(value)))
}

/// Returns the record of a run in an evaluation, which may have failed before it had a history.
fn is_output(record: &Object) -> bool {
    record.contains("history")
        && string_of(record.get("instance_id")).is_some()
        && has_object(record, "test_result")
}

/// Reads the runs of an input.
#[derive(Default)]
pub struct Reader {
    current: CurrentTrace,
    /// The number of the event before, if it stood alone.
    last: Option<f64>,
}

impl FormatReader for Reader {
    fn read(&mut self, entry: &Entry, found: &mut Vec<Found>) -> Result<(), Wrong> {
        let record = object_of(Some(entry.value));
        if !is_event(entry.value) {
            self.current.end(found);
            let events = events_of(entry.value).or_else(|| is_output(record).then_some(&[]));
            let events = events.ok_or_else(|| Wrong::new("it is no event, and no run"))?;
            found.push(read(entry, record, events).into());
            return Ok(());
        }
        let number = number_of(record.get("id"));
        let is_first = entry.place.index == Some(0)
            || kind_of(record) == Some("SystemPromptEvent")
            || number.zip(self.last).is_some_and(|(number, last)| number <= last);
        if is_first {
            self.current.end(found);
        }
        self.last = number;
        let builder = self.current.add(entry, |entry| begin(entry, record))?;
        add_event(builder, record);
        Ok(())
    }

    fn end(&mut self, found: &mut Vec<Found>) {
        self.current.end(found);
    }
}

fn begin(entry: &Entry, first: &Object) -> TraceBuilder {
    let mut builder = TraceBuilder::of_coding_agent(FormatName::Openhands, entry);
    builder.ids = string_of(first.get("id")).into_iter().cloned().collect();
    builder
}

fn read(entry: &Entry, record: &Object, events: &[Value]) -> TraceBuilder {
    let mut builder = begin(entry, object_of(events.first()));
    if let Some(id) = string_of(record.get("instance_id")) {
        builder.ids = vec![id.clone()];
        builder.keep("instance_id", record.get("instance_id"));
    }
    let metadata = fields_of(record, "metadata");
    builder.keep("agent_class", metadata.get("agent_class"));
    builder.keep_first("model", fields_of(metadata, "llm_config").get("model"));
    builder.keep("error", record.get("error"));
    for event in events {
        match event {
            Value::Array(events) => events
                .iter()
                .for_each(|event| add_event(&mut builder, object_of(Some(event)))),
            event => add_event(&mut builder, object_of(Some(event))),
        }
    }
    if string_of(record.get("error")).is_some() {
        builder.success = Some(false);
    }
    let mut result = fields_of(record, "test_result").clone();
    let resolved = fields_of(&result, "report").get("resolved");
    builder.success = truth_of(or(resolved, result.get("resolved"))).or(builder.success);
    for patch in ["git_patch", "model_patch", "test_output", "apply_patch_output"] {
        if is_given(result.remove(patch).as_ref()) {
            builder.leave_out(patch);
        }
    }
    if !result.is_empty() {
        builder.details.insert("test_result", result);
    }
    builder
}

fn add_event(builder: &mut TraceBuilder, event: &Object) {
    builder.at(event.get("timestamp"));
    if let Some(kind) = kind_of(event) {
        add_of_sdk(builder, event, kind);
    } else if let Some(action) = string_of(event.get("action")) {
        add_action(builder, event, action);
    } else if let Some(observation) = string_of(event.get("observation")) {
        add_observation(builder, event, observation);
    } else {
        builder.leave_out("event of an unknown kind");
    }
}

fn add_action(builder: &mut TraceBuilder, event: &Object, action: &Text) {
    let is_user = str_of(event.get("source")) == Some("user");
    let args = fields_of(event, "args");
    let tool_call = fields_of(event, "tool_call_metadata");
    builder.keep_first("model", fields_of(tool_call, "model_response").get("model"));
    let name = action.as_str().unwrap_or_default();
    if name == "system" {
        return builder.system(None);
    }
    if is_no_call(name) {
        return builder.leave_out(joined(["action".into(), action.clone()], " "));
    }
    builder.is_conversation = true;
    let content = builder.text_of(args.get("content"));
    if name == "message" && is_user {
        return builder.say(TextKind::User, content);
    }
    if is_user {
        return builder.say_content(TextKind::Event, event.get("message"));
    }
    let thought = builder.text_of(args.get("thought"));
    match name {
        "message" => builder.say(TextKind::Message, content),
        "think" => builder.say(TextKind::Reasoning, thought),
        // That the agent says it is done says nothing of the task.
        "finish" | "reject" => {
            builder.say(TextKind::Message, thought);
            let last = first_of(args, &["final_thought", "message"]);
            builder.say_content(TextKind::Message, last);
        }
        _ => {
            builder.say(TextKind::Message, thought);
            builder.call(Call {
                id: id_of(event.get("id")),
                name: Some(
                    string_of(tool_call.get("function_name"))
                        .unwrap_or(action)
                        .clone(),
                ),
                args: asked_of(tool_call).unwrap_or_else(|| arguments_of(args)),
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

/// Returns the arguments that the program has used.
fn arguments_of(args: &Object) -> Object {
    fields_where(args, |name, value| {
        is_truthy(Some(value)) && !is_no_argument(name)
    })
}

fn add_observation(builder: &mut TraceBuilder, event: &Object, observation: &Text) {
    let extras = fields_of(event, "extras");
    let name = observation.as_str().unwrap_or_default();
    if is_no_result(name) {
        return builder.leave_out(joined(["observation".into(), observation.clone()], " "));
    }
    let content = builder.text_of(event.get("content"));
    let Some(cause) = id_of(event.get("cause")) else {
        return builder.say(TextKind::Event, content);
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
    builder.result(Outcome {
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

fn add_of_sdk(builder: &mut TraceBuilder, event: &Object, kind: &str) {
    let tool = string_of(event.get("tool_name"));
    let result = |content, failed| Outcome {
        id: string_of(event.get("tool_call_id")).cloned(),
        content,
        failed,
    };
    match kind {
        "SystemPromptEvent" => builder.system(None),
        "MessageEvent" => {
            builder.is_conversation = true;
            let message = fields_of(event, "llm_message");
            add_reasoning(builder, message);
            let text = builder.text_of(message.get("content"));
            let kind = match str_of(event.get("source")) {
                Some("user") => TextKind::User,
                Some("agent") => TextKind::Message,
                _ => TextKind::Event,
            };
            builder.say(kind, text);
        }
        "ActionEvent" => {
            builder.is_conversation = true;
            add_reasoning(builder, event);
            builder.say_content(TextKind::Message, event.get("thought"));
            add_tool_call(builder, event, tool);
        }
        _ if is_said(tool.and_then(Text::as_str)) => builder.leave_out("answer of the program"),
        "ObservationEvent" => {
            let observation = fields_of(event, "observation");
            let content = builder.text_of(first_of(observation, &["content", "output", "result"]));
            let error = or(observation.get("is_error"), observation.get("error"));
            builder.result(result(content, failure_of(observation.get("exit_code"), error)));
        }
        "AgentErrorEvent" => {
            let content = builder.text_of(event.get("error"));
            builder.result(result(content, Some(true)));
        }
        "UserRejectObservation" => {
            let content = builder.text_of(event.get("rejection_reason"));
            builder.result(result(content, Some(false)));
        }
        "Condensation" => builder.leave_out("summary of a compaction"),
        kind => builder.leave_out(joined(["event".into(), kind.into()], " ")),
    }
}

fn add_reasoning(builder: &mut TraceBuilder, fields: &Object) {
    let summary = fields_of(fields, "responses_reasoning_item").get("summary");
    let given = [fields.get("reasoning_content"), summary];
    let blocks = list_of(fields.get("thinking_blocks")).iter();
    let blocks = blocks.filter_map(|block| block.get("thinking"));
    // The same reasoning may be in all of them.
    let reasoning = given
        .into_iter()
        .flatten()
        .chain(blocks)
        .find(|text| is_truthy(Some(text)));
    let text = builder.text_of(reasoning);
    if !text.is_empty() {
        builder.say(TextKind::Reasoning, text);
    }
}

fn add_tool_call(builder: &mut TraceBuilder, event: &Object, tool: Option<&Text>) {
    let action = fields_of(event, "action");
    match tool.and_then(Text::as_str) {
        Some("finish") => return builder.say_content(TextKind::Message, action.get("message")),
        Some("think") => return builder.say_content(TextKind::Reasoning, action.get("thought")),
        _ => {}
    }
    let call = fields_of(event, "tool_call");
    let arguments = or(
        call.get("arguments"),
        fields_of(call, "function").get("arguments"),
    );
    let mut args = arguments.map_or_else(|| action.clone(), |arguments| input_of(Some(arguments)));
    args.remove("kind");
    builder.call(Call {
        id: string_of(event.get("tool_call_id")).cloned(),
        name: tool.cloned(),
        args,
        server: None,
    });
}
