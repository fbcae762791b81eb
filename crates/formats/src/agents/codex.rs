//! Rollouts of Codex, a line each: the files in `~/.codex/sessions/`, and the events that `codex exec --json` prints.
//! `codex-rs/protocol` and `codex-rs/exec/src/exec_events.rs` of openai/codex have their types.

use crate::prelude::*;

pub static FORMAT: Format = Format::sessions("codex", decode);

/// So much of a result is searched for a refusal and for an exit code, in code units.
const BEGINNING: usize = 128;

/// What another agent sends: the text before it, and the type of a message that is a task.
const PAYLOAD: &str = "Payload:\n";
const NEW_TASK: &str = "Message Type: NEW_TASK";

/// An encrypted text is at least so long.
const ENCRYPTED_LENGTH: usize = 64;

/// Returns what a record of this type is counted as.
fn named(what: &str, record: &impl Fields) -> Text {
    let kind = text_at(record, "type").unwrap_or_default();
    joined([what.into(), kind], " ")
}

fn decode(value: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    let line = object_of(Some(value));
    if is(value, "codex-printed") {
        return Ok(add_printed(say, line));
    }
    let (kind, item) = match str_of(line.get("type")) {
        Some(kind) if is(value, "codex-line") => (kind, line.get("payload").unwrap_or(&Value::Null)),
        // The first line of a rollout without the envelope.
        _ if is(value, "codex-header") => ("session_meta", value),
        _ if is(value, "codex-state") => return Ok(Decoded::GoesOn),
        _ if is_message(value) => ("response_item", value),
        _ => {
            say.leave_out(named("event", line));
            return Ok(Decoded::Unknown);
        }
    };
    say.begin(Origin {
        ordinal: number_of(line.get("ordinal")).filter(|_| kind != "session_meta"),
        time: line.get("timestamp").cloned(),
        ..Origin::default()
    });
    let payload = object_of(Some(item));
    match kind {
        "session_meta" => {
            add_meta(say, payload);
            return Ok(Decoded::Begins);
        }
        "turn_context" => say.first_fact("model", payload.get("model")),
        "response_item" => add_item(say, item),
        "event_msg" => add_event(say, payload),
        "compacted" => {
            let summary = text_at(payload, "message").unwrap_or_default();
            say.add(What::Summary(summary));
        }
        _ => say.leave_out(format!("line {kind}")),
    }
    Ok(Decoded::GoesOn)
}

fn add_meta(say: &mut Events, meta: &Object) {
    let id = first_of(meta, &["id", "session_id"]);
    say.session(id);
    say.first_fact(TOOLS, tools_of(meta.get("dynamic_tools")).as_ref());
    // Guardians and reviews are threads of their own.
    let thread = str_of(meta.get("thread_source")).is_some_and(|thread| thread != "user");
    let is_one =
        fields_of(meta, "source").contains("subagent") || (thread && meta.contains("parent_thread_id"));
    let of = words("codex-parent").filter_map(|path| string_of(in_path(meta, path)));
    let of: Vec<Text> = of.filter(|of| Some(*of) != string_of(id)).cloned().collect();
    say.sub_agent(is_one, of.first().map(|of| of.clone().into()).as_ref());
    say.add(What::Copies {
        of,
        before: number_of(meta.get("subagent_history_start_ordinal")).unwrap_or_default(),
    });
    let base = fields_of(meta, "history_base");
    if let Some(of) = text_at(base, "thread_id") {
        let until = number_of(base.get("end_ordinal_exclusive")).unwrap_or(f64::INFINITY);
        say.add(What::Continues { of, until });
    }
    say.facts("codex-facts", meta);
}

fn add_item(say: &mut Events, item: &Value) {
    match str_of(item.get("type")) {
        Some("function_call_output" | "custom_tool_call_output") => add_result(say, item),
        Some("agent_message") => add_agent_message(say, item),
        _ if is_message(item) => add_message(say, item),
        _ => say.leave_out(named("item", item)),
    }
}

/// Adds what another agent has sent: the task of a sub-agent, which no other line has, or an answer.
fn add_agent_message(say: &mut Events, item: &Value) {
    let texts = list_of(item.get("content")).iter().map(|part| {
        let text = text_of_part(part).or_else(|| string_of(part.get("encrypted_content")));
        let text = text.map(Text::as_str).unwrap_or_default();
        if text.len() >= ENCRYPTED_LENGTH && !text.contains(char::is_whitespace) {
            "[encrypted_content]".to_owned()
        } else {
            text.to_owned()
        }
    });
    let text = texts.collect::<String>();
    match text.split_once(PAYLOAD) {
        Some((head, task)) if head.contains(NEW_TASK) => {
            say.say_parts(TextKind::User, [Part::Text(task.trim().into())]);
        }
        _ => say.say(TextKind::Event, text.into()),
    }
}

fn add_result(say: &mut Events, item: &Value) {
    let output = item.get("output");
    let content = match output {
        // As the oldest versions write it.
        Some(Value::Object(fields)) => say.text_of(fields.get("content").or(output)),
        _ => say.text_of(output),
    };
    let succeeded = truth_of(object_of(output).get("success"));
    // A result with its exit code, as shells had it before they wrote text.
    let has_code = content.as_bytes().starts_with(b"{\"output\":");
    let whole: Option<Value> = has_code.then(|| parse_str(&content).ok()).flatten();
    let whole = object_of(whole.as_ref());
    let beginning = cut(&content, BEGINNING).to_owned();
    let code = number_of(fields_of(whole, "metadata").get("exit_code"));
    let code = code.or_else(|| exit_code_in(&beginning));
    let is_refused = code.is_none() && words("codex-refused").any(|words| beginning.contains(words));
    let said = succeeded.map(|is_true| !is_true).or(code.map(|code| code != 0.0));
    let id = text_at(item, "call_id");
    if is_refused {
        say.add_all(id.clone().map(|id| What::Failed(id, false)));
    }
    let failed = if is_refused { Some(false) } else { said };
    say.result(id, text_at(whole, "output").unwrap_or(content), failed);
}

/// Returns the exit code that a result of a command begins with; the output comes after a line `Output:`.
fn exit_code_in(beginning: &str) -> Option<f64> {
    let mut lines = beginning.lines().take_while(|line| *line != "Output:");
    lines.find_map(|line| {
        let code = words("codex-exit-code").find_map(|before| line.strip_prefix(before))?;
        code.parse().ok()
    })
}

/// Returns whether an item failed, by its status or else by its exit code.
fn failure_of(item: &Object) -> Option<bool> {
    match str_of(item.get("status")) {
        Some("failed") => Some(true),
        Some("completed" | "declined") => Some(false),
        _ => failed_by(item.get("exit_code")),
    }
}

/// Adds an event that `codex exec --json` prints. Items are printed when they begin, change and are over.
fn add_printed(say: &mut Events, event: &Object) -> Decoded {
    let kind = str_of(event.get("type")).unwrap_or_default();
    let item = fields_of(event, "item");
    say.begin(Origin {
        message: text_at(item, "id"),
        ..Origin::default()
    });
    if kind.starts_with("item.") {
        add_printed_item(say, item, kind == "item.completed");
        return Decoded::GoesOn;
    }
    say.leave_out(format!("event {kind}"));
    say.fact("usage", event.get("usage"));
    if kind == "turn.failed" {
        say.add(What::Success(false));
        say.fact("error", fields_of(event, "error").get("message"));
    }
    if kind == "thread.started" {
        say.session(event.get("thread_id"));
        return Decoded::Begins;
    }
    Decoded::GoesOn
}

fn add_printed_item(say: &mut Events, item: &Object, is_over: bool) {
    match str_of(item.get("type")).unwrap_or_default() {
        "reasoning" if is_over => return say.say_content(TextKind::Reasoning, item.get("text")),
        "agent_message" | "plan" if is_over => {
            return say.say_content(TextKind::Message, item.get("text"));
        }
        // Before it is over, its query is empty; its results are not printed.
        "web_search" if !is_over => return,
        _ => {}
    }
    match ran(say, item) {
        Some((call, outcome)) => {
            say.call(call);
            if let Some(outcome) = outcome.filter(|_| is_over) {
                say.add(What::Result(outcome));
            }
        }
        None if is_over => say.leave_out(named("item", item)),
        None => {}
    }
}

/// Returns the call that an item tells of, and its result where it is there.
fn ran(say: &mut Events, item: &Object) -> Option<(Call, Option<ToolResult>)> {
    let kind = str_of(item.get("type"))?;
    let [_, about] = row_where("codex-tool", |of| of == kind)?;
    let mut about = about.split(' ');
    let (name, outcome) = (about.next()?, about.next()?);
    let mut args = input_of(item.get("arguments"));
    for name in about {
        args.insert(name, item.get(name).cloned().unwrap_or_default());
    }
    let id = string_of(first_of(item, &["call_id", "id"])).cloned();
    let call = Call {
        id: id.clone(),
        name: text_at(item, "tool").or(Some(name.into())),
        args,
        server: text_at(item, "server"),
    };
    let error = fields_of(item, "error").get("message");
    let result = error.or_else(|| fields_of(item, outcome).get("content"));
    let result = result.or_else(|| item.get(outcome));
    let result = result.is_some().then(|| ToolResult {
        id,
        content: say.text_of(result),
        failed: failure_of(item),
    });
    Some((call, result))
}

/// Adds an event beside the items: what the user took back, and how calls went. Code mode has one tool, `exec`; what it ran is told by
/// events alone.
fn add_event(say: &mut Events, event: &Object) {
    let kind = str_of(event.get("type"));
    if kind == Some("thread_rolled_back") {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is a number of turns.
        let turns = number_of(event.get("num_turns")).unwrap_or(1.0) as usize;
        return say.add(What::Undo(Undo::Turns(turns)));
    }
    say.fact("summary", event.get("thread_name"));
    let item = event.get("item").and_then(Value::as_object).unwrap_or(event);
    if kind == Some("item_completed")
        && let Some((call, outcome)) = ran(say, item)
    {
        say.add(What::Ran(call, outcome));
    }
    say.leave_out(named("event", event));
    let Some(id) = string_of(first_of(item, &["call_id", "id"])) else {
        return;
    };
    if let Some(is_failed) = failure_of(item) {
        say.add(What::Failed(id.clone(), is_failed));
    }
    let duration = fields_of(item, "duration");
    if let Some(seconds) = number_of(duration.get("secs")) {
        let nanoseconds = number_of(duration.get("nanos")).unwrap_or_default();
        let milliseconds = seconds * 1e3 + (nanoseconds / 1e6).round();
        say.add(What::Took(id.clone(), milliseconds));
    }
}
