//! GitHub Copilot CLI: the events in `~/.copilot/session-state/ID/events.jsonl`, as github/copilot-sdk describes them.

use std::path::Path;

use knowledgepulse_json::{Object, Text, Value};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Agent, Call, Events, Fact, Origin, Outcome, Parent, TextKind, Undo, What},
    values::{fields_of, first_of, list_of, object_of, or, str_of, string_of, truth_of},
};

/// What the types of events begin with.
const GROUPS: [&str; 12] = [
    "abort",
    "assistant.",
    "hook.",
    "permission.",
    "session.",
    "skill.",
    "subagent.",
    "system.",
    "tool.",
    "user.",
    "user_input.",
    "pending_messages.",
];

/// Sessions of Copilot CLI.
pub struct CopilotCli;

fn kind_of(record: &Object) -> Option<&str> {
    let kind = str_of(record.get("type"))?;
    let is_known = GROUPS.iter().any(|group| kind.starts_with(group)) && record.contains("timestamp");
    (is_known && record.get("data").is_some_and(|data| data.as_object().is_some())).then_some(kind)
}

impl Adapter for CopilotCli {
    fn format(&self) -> FormatName {
        FormatName::CopilotCli
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first
            .iter()
            .any(|value| kind_of(object_of(Some(value))).is_some())
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let record = object_of(Some(record));
        let Some(kind) = kind_of(record) else {
            return Ok(Decoded::Unknown);
        };
        let data = fields_of(record, "data");
        let text = |name| string_of(data.get(name)).cloned();
        say.begin(Origin {
            id: string_of(record.get("id")).cloned(),
            parent: string_of(record.get("parentId"))
                .map_or(Parent::Before, |parent| Parent::Of(parent.clone())),
            message: text("messageId"),
            agent: text("parentToolCallId").map_or(Agent::Main, Agent::Named),
            time: record.get("timestamp").cloned(),
            ..Origin::default()
        });
        match kind {
            "session.start" => {
                add_start(say, data);
                return Ok(Decoded::Begins);
            }
            "user.message"
                if str_of(data.get("source")).is_some_and(|source| source.starts_with("skill-")) =>
            {
                say.leave_out("message of a skill");
            }
            "user.message" => say.say_content(TextKind::User, data.get("content")),
            // The prompt is in a record of its own too, but not in all exports.
            "hook.start" if str_of(data.get("hookType")) == Some("userPromptSubmitted") => {
                let prompt = say.text_of(fields_of(data, "input").get("prompt"));
                say.add(What::Echo(prompt));
            }
            "assistant.message" => add_reply(say, data),
            "tool.execution_start" | "tool.user_requested" => {
                let call = Call::new(
                    data.get("toolCallId"),
                    data.get("toolName"),
                    data.get("arguments"),
                );
                let server = text("mcpServerName");
                say.call(Call { server, ..call });
            }
            "tool.execution_complete" => add_result(say, data, text("toolCallId")),
            "session.model_change" => say.first_fact("model", data.get("newModel")),
            "session.snapshot_rewind" => {
                if let Some(event) = text("upToEventId") {
                    say.add(What::Undo(Undo::FromIfThere(event)));
                }
            }
            kind => say.leave_out(format!("event {kind}")),
        }
        Ok(Decoded::GoesOn)
    }
}

fn add_start(say: &mut Events, data: &Object) {
    if let Some(id) = string_of(data.get("sessionId")) {
        say.add(What::Fact(Fact::Id(id.clone())));
    }
    let context = fields_of(data, "context");
    say.fact("session_id", data.get("sessionId"));
    say.fact("version", data.get("copilotVersion"));
    say.fact("cwd", context.get("cwd"));
    say.fact("gitBranch", context.get("branch"));
    say.at(data.get("startTime"));
}

fn add_reply(say: &mut Events, data: &Object) {
    if string_of(data.get("reasoningText")).is_some() {
        say.say_content(TextKind::Reasoning, data.get("reasoningText"));
    }
    say.say_content(TextKind::Message, data.get("content"));
    for request in list_of(data.get("toolRequests")) {
        let request = object_of(Some(request));
        say.call(Call::new(
            request.get("toolCallId"),
            request.get("name"),
            request.get("arguments"),
        ));
    }
}

fn add_result(say: &mut Events, data: &Object, id: Option<Text>) {
    let (result, error) = (data.get("result"), data.get("error"));
    let content = or(
        result.and_then(|result| result.get("content")).or(result),
        error.and_then(|error| error.get("message")).or(error),
    );
    let content = say.text_of(content);
    let failed = truth_of(data.get("success"))
        .filter(|success| !success)
        .map(|_| true);
    say.first_fact("model", first_of(data, &["model"]));
    say.result(Outcome { id, content, failed });
}
