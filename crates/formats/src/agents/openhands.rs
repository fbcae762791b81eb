//! Runs of OpenHands: the events of its server (version 0) and of its SDK (version 1), in an array or one after the other, and the
//! `output.jsonl` of its evaluations. `openhands/events/serialization` and `openhands-sdk/openhands/sdk/event` have their types.

use crate::prelude::*;

pub static FORMAT: Format = Format::sessions("openhands", decode).also(|record| events_of(record).is_some());

/// An exit code of a command that still runs.
const RUNNING: f64 = -1.0;

/// Returns the events of a record that holds a whole run. One of an evaluation may have failed before it had any.
fn events_of(record: &Value) -> Option<impl Iterator<Item = &Value>> {
    let list = match record {
        Value::Array(events) => events,
        // `items` is a page of the server's events.
        _ => list_of(first_of(record, &["history", "trajectory", "items"])),
    };
    // In older versions, each event was beside its effect.
    let mut events = list.iter().flat_map(|each| elements_of(Some(each))).peekable();
    let is_run =
        is(record, "openhands-output") || events.peek().is_some_and(|first| is(first, "openhands-event"));
    is_run.then_some(events)
}

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    if is(record, "openhands-event") {
        let is_first = number_of(record.get("id")) == Some(0.0);
        let begins = is_first || str_of(record.get("kind")) == Some("SystemPromptEvent");
        add_event(say, record, begins);
        return Ok(if begins { Decoded::Begins } else { Decoded::GoesOn });
    }
    let Some(events) = events_of(record) else {
        return Ok(Decoded::Unknown);
    };
    let name = text_at(record, "instance_id");
    say.begin_run("openhands-facts", record);
    say.add_all(name.clone().map(|id| What::Fact(Fact::Id(id))));
    for (at, event) in events.enumerate() {
        add_event(say, event, at == 0 && name.is_none());
    }
    add_outcome(say, record);
    Ok(Decoded::Whole)
}

/// Says what an evaluation knows of the outcome.
fn add_outcome(say: &mut Events, record: &Value) {
    if has_text(record, "error") {
        say.add(What::Success(false));
    }
    let mut result = fields_of(record, "test_result").clone();
    let success = truth_of(first_at(&result, "report/resolved resolved"));
    say.add_all(success.map(What::Success));
    for patch in words("openhands-patch") {
        if is_given(result.remove(patch).as_ref()) {
            say.leave_out(patch);
        }
    }
    if !result.is_empty() {
        say.fact("test_result", Some(&result.into()));
    }
}

fn add_event(say: &mut Events, event: &Value, is_first: bool) {
    say.begin_record(None, event.get("timestamp"));
    if let Some(id) = text_at(event, "id").filter(|_| is_first) {
        say.add(What::Fact(Fact::Id(id)));
    }
    let kind = str_of(event.get("kind")).filter(|_| is(event, "openhands-sdk"));
    if let Some(kind) = kind {
        add_of_sdk(say, event, kind);
    } else if let Some(action) = str_of(event.get("action")) {
        add_action(say, event, action);
    } else if let Some(observation) = str_of(event.get("observation")) {
        add_observation(say, event, observation);
    } else {
        say.leave_out("event of an unknown kind");
    }
}

fn add_action(say: &mut Events, event: &Value, action: &str) {
    let is_user = str_of(event.get("source")) == Some("user");
    let args = fields_of(event, "args");
    let tool_call = fields_of(event, "tool_call_metadata");
    say.first_fact("model", fields_of(tool_call, "model_response").get("model"));
    let thought = args.get("thought");
    match action {
        "system" => say.system(),
        name if is_one(name, "openhands-action") => say.leave_out(format!("action {name}")),
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
            let is_used =
                |name: &str, value: &Value| is_truthy(Some(value)) && !is_one(name, "openhands-argument");
            say.call(Call {
                id: id_of(event.get("id")),
                name: text_at(tool_call, "function_name").or(Some(action.into())),
                args: asked_of(tool_call).unwrap_or_else(|| fields_where(args, is_used)),
                server: None,
            });
        }
    }
}

/// Returns the arguments of a call as the model gave them.
fn asked_of(tool_call: &Object) -> Option<Object> {
    let id = text_at(tool_call, "tool_call_id")?;
    let calls = in_path(tool_call, "model_response/choices/0/message/tool_calls");
    let call = list_of(calls)
        .iter()
        .find(|call| string_of(call.get("id")) == Some(&id))?;
    Some(input_of(call.get("function")?.get("arguments")))
}

fn add_observation(say: &mut Events, event: &Value, name: &str) {
    let extras = fields_of(event, "extras");
    let content = event.get("content");
    if is_one(name, "openhands-observation") {
        return say.leave_out(format!("observation {name}"));
    }
    let Some(cause) = id_of(event.get("cause")) else {
        return say.say_content(TextKind::Event, content);
    };
    let code = fields_of(extras, "metadata").get("exit_code");
    let failed = match name {
        "error" => Some(true),
        "user_rejected" => Some(false),
        _ => failure_of(
            or(code, extras.get("exit_code")),
            first_of(extras, &["error", "is_error"]),
        ),
    };
    say.answer(Some(cause), content, failed);
}

/// Returns whether a call failed, by its exit code or else by its text; `None` if the command still runs.
fn failure_of(code: Option<&Value>, error: Option<&Value>) -> Option<bool> {
    match number_of(code) {
        Some(RUNNING) => None,
        Some(code) => Some(code != 0.0),
        None => truth_of(error),
    }
}

fn add_of_sdk(say: &mut Events, event: &Value, kind: &str) {
    let tool = str_of(event.get("tool_name"));
    let id = text_at(event, "tool_call_id");
    match kind {
        "SystemPromptEvent" => say.system(),
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
        // Tools that only say something.
        _ if matches!(tool, Some("finish" | "think")) => say.leave_out("answer of the program"),
        "ObservationEvent" => {
            let observation = fields_of(event, "observation");
            let error = first_of(observation, &["is_error", "error"]);
            let failed = failure_of(observation.get("exit_code"), error);
            let content = first_of(observation, &["content", "output", "result"]);
            say.answer(id, content, failed);
        }
        "AgentErrorEvent" => say.answer(id, event.get("error"), Some(true)),
        "UserRejectObservation" => say.answer(id, event.get("rejection_reason"), Some(false)),
        "Condensation" => say.leave_out("summary of a compaction"),
        kind => say.leave_out(format!("event {kind}")),
    }
}

fn add_reasoning(say: &mut Events, fields: &impl Fields) {
    let summary = fields_of(fields, "responses_reasoning_item").get("summary");
    let blocks = list_at(fields, "thinking_blocks").iter();
    let blocks = blocks.map(|block| block.get("thinking"));
    // The same reasoning may be in all of them.
    let given = [fields.field("reasoning_content"), summary].into_iter();
    let text = say.text_of(given.chain(blocks).find(|text| is_truthy(*text)).flatten());
    if !text.is_empty() {
        say.say(TextKind::Reasoning, text);
    }
}

fn add_tool_call(say: &mut Events, event: &Value, action: &Object) {
    let mut args = Call::of(fields_of(event, "tool_call")).args;
    if args.is_empty() {
        args = action.clone();
    }
    args.remove("kind");
    say.call(Call {
        id: text_at(event, "tool_call_id"),
        name: text_at(event, "tool_name"),
        args,
        server: None,
    });
}
