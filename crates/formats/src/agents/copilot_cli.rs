//! GitHub Copilot CLI: the events in `~/.copilot/session-state/ID/events.jsonl`, as github/copilot-sdk describes them.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("copilot-cli", add_event);

fn add_event(say: &mut Events, record: &Value) {
    let data = fields_of(record, "data");
    let source = str_of(data.get("source")).unwrap_or_default();
    match str_of(record.get("type")).unwrap_or_default() {
        // Sessions of before its events are lists of messages.
        "" => add_message(say, record),
        "user.message" if source.starts_with("skill-") => say.leave_out("message of a skill"),
        "user.message" if is_one(source, "copilot-program") => say.leave_out("message of the program"),
        "user.message" if source == "autopilot" || is_true(data, "isAutopilotContinuation") => {
            say.leave_out("continuation by the autopilot")
        }
        "user.message" if source.starts_with("agent-") => {
            let told = say.text_of(data.get("content"));
            say.say(TextKind::Told, told);
        }
        "user.message" => say.say_content(TextKind::User, data.get("content")),
        // The prompt is in a record of its own too, but not in all exports.
        "hook.start" if str_of(data.get("hookType")) == Some("userPromptSubmitted") => {
            let prompt = say.text_of(fields_of(data, "input").get("prompt"));
            say.add(What::Echo(prompt));
        }
        "assistant.message" => {
            say.first_fact("model", data.get("model"));
            add_as(say, data, "assistant", data.get("content"));
        }
        "tool.execution_start" | "tool.user_requested" => {
            let server = text_at(data, "mcpServerName");
            say.call(Call {
                server,
                ..Call::of(data)
            });
        }
        "tool.execution_complete" => add_result(say, data),
        "session.model_change" => say.first_fact("model", data.get("newModel")),
        "session.snapshot_rewind" => {
            let event = text_at(data, "upToEventId").map(Undo::FromIfThere);
            say.add_all(event.map(What::Undo));
        }
        kind => say.leave_out(format!("event {kind}")),
    }
}

fn add_result(say: &mut Events, data: &Object) {
    let content = in_path(data, "result/content").or(data.get("result"));
    let content = or(content, first_at(data, "error/message error"));
    say.first_fact("model", data.get("model"));
    let failed = (truth_of(data.get("success")) == Some(false)).then_some(true);
    let failed = failed.or_else(|| failed_by(fields_of(data, "shellExecution").get("exitCode")));
    say.answer(text_at(data, "toolCallId"), content, failed);
}
