//! Sessions of Claude Code and of programs that write like it (iFlow), an event a line: the files in `~/.claude/projects/`, and the output
//! of `--output-format stream-json`. They are not documented; Harbor reads them too (`claude_code.py`).

use std::path::Path;

use knowledgepulse_json::{Object, Text, Value};

use super::{Adapter, Decoded};
use crate::{
    FormatName, Wrong,
    event::{Agent, Events, Fact, Origin, Parent, TextKind, What},
    messages::add_said,
    values::{begins_with, fields_of, object_of, str_of, string_of},
};

/// How results begin that say that the user has stopped the tool.
const INTERRUPTED: [&str; 3] = [
    "[Request interrupted by user",
    "The user doesn't want to proceed with this",
    "The user doesn't want to take this",
];

/// Records of the program, by the field that says so.
const OF_PROGRAM: [(&str, &str); 3] = [
    ("isCompactSummary", "summary of a compaction"),
    ("isMeta", "meta message"),
    ("isApiErrorMessage", "error of the API"),
];

/// How iFlow names its sessions. All that answers a prompt has the prompt for its parent there, so its records form no tree.
const OF_IFLOW: &[u8] = b"session-";

/// Sessions of Claude Code.
pub struct ClaudeCode;

fn session_of(event: &Object) -> Option<&Text> {
    let id = |name| string_of(event.get(name));
    id("sessionId").or_else(|| id("session_id"))
}

fn is(event: &Object, name: &str) -> bool {
    event.get(name) == Some(&Value::Bool(true))
}

impl Adapter for ClaudeCode {
    fn format(&self) -> FormatName {
        FormatName::ClaudeCode
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        first.iter().any(|value| {
            let event = object_of(Some(value));
            let Some(kind) = string_of(event.get("type")).filter(|_| !event.contains("role")) else {
                return false;
            };
            // There are more types of events without a message, which are recognised by their session.
            let is_other = || {
                matches!(
                    kind.as_str(),
                    "summary" | "file-history-snapshot" | "queue-operation"
                )
            };
            let fields = ["leafUuid", "messageId", "operation"];
            session_of(event).is_some() || (is_other() && fields.iter().any(|name| event.contains(name)))
        })
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        if !self.recognises(&[record], None) {
            return Ok(Decoded::Unknown);
        }
        let event = object_of(Some(record));
        let Some(session) = session_of(event) else {
            return Ok(Decoded::GoesOn);
        };
        let is_iflow = session.as_bytes().starts_with(OF_IFLOW);
        let message = fields_of(event, "message");
        let agent = agent_of(event);
        let is_named = matches!(&agent, Agent::Named(_)).then(|| string_of(event.get("agentId")));
        say.begin(Origin {
            id: string_of(event.get("uuid")).cloned(),
            parent: if is_iflow {
                Parent::Before
            } else {
                parent_of(event)
            },
            message: string_of(message.get("id")).cloned(),
            run: Some(session.clone()),
            agent,
            ..Origin::default()
        });
        if let Some(agent) = is_named.flatten() {
            say.add(What::Fact(Fact::Agent(agent.clone())));
        }
        if is_iflow {
            say.add(What::Fact(Fact::Framework("iflow".into())));
        }
        for name in ["version", "cwd", "gitBranch"] {
            say.first_fact(name, event.get(name));
        }
        let kind = str_of(event.get("type")).unwrap_or_default();
        match kind {
            "result" => add_outcome(say, event),
            "user" | "assistant"
                if event
                    .get("message")
                    .is_some_and(|message| message.as_object().is_some()) =>
            {
                say.at(event.get("timestamp"));
                add_message(say, event, message, kind)?;
            }
            "attachment" if is_prompt(fields_of(event, "attachment")) => {
                say.at(event.get("timestamp"));
                say.say_content(TextKind::User, fields_of(event, "attachment").get("prompt"));
            }
            kind => say.leave_out(format!("event {kind}")),
        }
        Ok(Decoded::GoesOn)
    }
}

fn agent_of(event: &Object) -> Agent {
    let name = |name| string_of(event.get(name)).cloned();
    if is(event, "isSidechain") {
        return name("agentId").map_or(Agent::Unnamed, Agent::Named);
    }
    name("parent_tool_use_id").map_or(Agent::Main, Agent::Named)
}

/// Returns what an event follows. A session goes on after a compaction.
fn parent_of(event: &Object) -> Parent {
    let parent = string_of(event.get("parentUuid")).or_else(|| string_of(event.get("logicalParentUuid")));
    let is_prompt =
        str_of(event.get("type")) == Some("user") && !OF_PROGRAM.iter().any(|(name, _)| is(event, name));
    match parent {
        Some(parent) => Parent::Of(parent.clone()),
        None if is_prompt && event.contains("parentUuid") => Parent::None,
        None => Parent::Before,
    }
}

/// Returns whether an attachment is a prompt that the user typed while the agent worked.
fn is_prompt(attachment: &Object) -> bool {
    let mode = str_of(attachment.get("commandMode"));
    str_of(attachment.get("type")) == Some("queued_command") && mode.is_none_or(|mode| mode == "prompt")
}

/// The end of a run, as `stream-json` prints it. That it ended well does not say whether the task is done. A run that had no turns left
/// says so in the subtype alone in some versions.
fn add_outcome(say: &mut Events, event: &Object) {
    let is_error = str_of(event.get("subtype")).is_some_and(|subtype| subtype.starts_with("error"));
    if is_error || is(event, "is_error") {
        say.add(What::Success(false));
    }
    say.leave_out("event result");
    for name in ["num_turns", "total_cost_usd", "duration_ms", "subtype"] {
        say.fact(name, event.get(name));
    }
}

fn add_message(say: &mut Events, event: &Object, message: &Object, kind: &str) -> Result<(), Wrong> {
    if let Some((_, what)) = OF_PROGRAM.iter().find(|(name, _)| is(event, name)) {
        say.leave_out(*what);
        return Ok(());
    }
    say.first_fact(
        "model",
        message
            .get("model")
            .filter(|model| string_of(Some(model)).is_some()),
    );
    let content = message.get("content");
    let is_user = kind == "user";
    let forgiven = content
        .filter(|_| is_user)
        .and_then(|content| forgiven(content, event));
    if content.and_then(Value::as_array).is_some_and(<[Value]>::is_empty) {
        say.say(TextKind::User, Text::default());
    }
    let role = str_of(message.get("role")).unwrap_or(kind);
    add_said(say, role, forgiven.as_ref().or(content))
}

/// Returns the content that says of tools that the user has stopped that they did not fail, and has the results of iFlow as they were
/// given to the model; `None` if it is the same.
fn forgiven(content: &Value, event: &Object) -> Option<Value> {
    let is_interrupted = is(fields_of(event, "toolUseResult"), "interrupted");
    let is_result = |part: &Value| str_of(part.get("type")) == Some("tool_result");
    let is_stopped =
        |part: &Value| is_result(part) && (is_interrupted || begins_with(part.get("content"), &INTERRUPTED));
    let given = |part: &Value| {
        part.get("content")?
            .get("responseParts")
            .filter(|_| is_result(part))
            .cloned()
    };
    let differs = |part: &Value| is_stopped(part) || given(part).is_some();
    let parts = content.as_array().filter(|parts| parts.iter().any(differs))?;
    let mut parts = parts.to_vec();
    for part in &mut parts {
        let (is_stopped, given) = (is_stopped(part), given(part));
        let Value::Object(fields) = part else {
            continue;
        };
        if is_stopped {
            fields.insert("is_error", false);
        }
        if let Some(given) = given {
            let response = given
                .get("functionResponse")
                .and_then(|response| response.get("response"));
            let text = response.and_then(|response| response.get("output").or(response.get("error")));
            fields.insert("content", text.cloned().unwrap_or(given));
        }
    }
    Some(parts.into())
}
