//! Kimi Code (`~/.kimi-code/sessions/*/*/agents/*/wire.jsonl`), and Kimi CLI before it (`wire.jsonl` of MoonshotAI/kimi-cli), whose events
//! are in `message`.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("kimi", add_record);

/// How the user calls a skill or a command of a plugin; the model calls them too.
const CALLED: &str = "user-slash";

/// Returns whose a prompt is that is the program's. The task of a sub-agent is none.
fn origin_of(prompt: &impl Fields) -> Option<&str> {
    let origin = prompt.field("origin")?;
    let kind = str_of(origin.get("kind").or(Some(origin)));
    let is_task = str_of(origin.get("name")) == Some("subagent");
    let is_called = str_of(origin.get("trigger")).is_none_or(|trigger| trigger == CALLED);
    kind.filter(|kind| is_one(kind, "kimi-program") && !is_task || !is_called)
}

/// Returns what a prompt says: the command by which the user has called a skill, in place of its text, and the rest.
fn prompt_of(prompt: &impl Fields, content: Option<&Value>) -> Vec<Part> {
    let origin = fields_of(prompt, "origin");
    let is_called = str_of(origin.get("trigger")) == Some(CALLED);
    let words = ["skillName", "commandName", "skillArgs", "commandArgs"];
    let words = joined(words.iter().filter_map(|name| text_at(origin, name)), " ");
    let command = is_called.then(|| Part::Text(format!("/{words}").into()));
    let rest = parts_of(content).into_iter().skip(usize::from(is_called));
    command.into_iter().chain(rest).collect()
}

fn add_record(say: &mut Events, record: &Value) {
    let message = fields_of(record, "message");
    if is(record, "kimi-old") {
        return add_old(say, message);
    }
    match str_of(record.get("type")).unwrap_or_default() {
        "config.update" => {
            say.fact("cwd", record.get("cwd"));
            say.first_fact("model", record.get("modelAlias"));
        }
        "llm.request" => say.first_fact("model", record.get("model")),
        "context.undo" => {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is a number of turns.
            let turns = number_of(record.get("count")).unwrap_or(1.0) as usize;
            say.add(What::Undo(Undo::Turns(turns)));
        }
        "turn.prompt" | "turn.steer" => match origin_of(record) {
            Some(kind) => say.leave_out(format!("prompt {kind}")),
            None => say.say_parts(TextKind::User, prompt_of(record, record.get("input"))),
        },
        "context.append_loop_event" => add_loop_event(say, fields_of(record, "event")),
        "context.append_message"
            if str_of(message.get("role")) == Some("user") && origin_of(message).is_none() =>
        {
            let prompt = say.text_of_parts(prompt_of(message, message.get("content")));
            say.add(What::Echo(prompt));
        }
        // It follows the undo.
        "context.undone" => say.leave_out("message of the program"),
        kind => say.leave_out(format!("event {kind}")),
    }
}

fn add_loop_event(say: &mut Events, event: &Object) {
    let id = event.get("toolCallId");
    match str_of(event.get("type")) {
        Some("content.part") => add_part(say, event.get("part")),
        Some("tool.call") => say.call(Call::of(event)),
        Some("tool.result") => add_result(say, id, fields_of(event, "result")),
        _ => {}
    }
}

fn add_part(say: &mut Events, part: Option<&Value>) {
    say.say_parts(TextKind::Message, part.into_iter().flat_map(parts_in));
}

fn add_result(say: &mut Events, id: Option<&Value>, result: &Object) {
    let told = ["output", "message"].map(|name| say.text_of(result.get(name)));
    let content = told.into_iter().find(|text| !is_blank(text));
    let failed = failure_of(result).filter(|failed| *failed);
    say.result(string_of(id).cloned(), content.unwrap_or_default(), failed);
}

fn add_old(say: &mut Events, message: &Object) {
    let payload = fields_of(message, "payload");
    match str_of(message.get("type")).unwrap_or_default() {
        "TurnBegin" | "SteerInput" => say.say_content(TextKind::User, payload.get("user_input")),
        "ContentPart" => add_part(say, message.get("payload")),
        "ToolCall" => say.call(Call::of(payload)),
        "ToolResult" => add_result(
            say,
            payload.get("tool_call_id"),
            fields_of(payload, "return_value"),
        ),
        "SubagentEvent" => {
            let call = first_of(payload, &["parent_tool_call_id", "task_tool_call_id", "agent_id"]);
            say.begin(Origin::default());
            say.of_agent(string_of(call));
            add_old(say, fields_of(payload, "event"));
        }
        kind => say.leave_out(format!("event {kind}")),
    }
}
