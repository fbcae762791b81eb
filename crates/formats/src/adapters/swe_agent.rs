//! The `.traj` files of SWE-agent, versions 0 and 1, and of mini-SWE-agent:
//! <https://swe-agent.com/latest/usage/trajectories/>

use std::{mem, path::Path, sync::LazyLock};

use knowledgepulse_json::{Object, Text, Value, is_white_space, object};
use regex::Regex;

use super::{Adapter, Decoded, Kind};
use crate::{
    FormatName, Wrong,
    event::{Call, Events, Fact, Origin, Outcome, TextKind, What},
    messages::add_message,
    parts::some_object,
    values::{
        fields_of, fields_where, is_given, list_of, number_of, object_of, regex, str_of, string_of, trimmed,
        truth_of,
    },
};

/// Runs of SWE-agent and mini-SWE-agent.
pub struct SweAgent;

#[rustfmt::skip]
fn is_root_field(name: &str) -> bool {
    matches!(
        name,
        "trajectory" | "history" | "info" | "environment" | "replay_config" | "attempts" | "instance_id" | "messages"
            | "trajectory_format"
            // Of data sets.
            | "model_name" | "target" | "exit_status" | "generated_patch" | "eval_logs"
    )
}

#[rustfmt::skip]
fn is_turn_field(name: &str) -> bool {
    matches!(
        name,
        "action" | "observation" | "response" | "thought" | "execution_time" | "state"
            // The model's input, which is in the turns before.
            | "query" | "messages" | "extra_info"
    )
}

/// How mini-SWE-agent has a command in a message. It runs none where there are several.
static COMMAND: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?s)```(?:bash|mswea_bash_command)[ \t\r\x0b\x0c]*\n(.*?)\n?```"));

/// What the two agents put before and after a command that they stopped, or that was not run.
const STOPPED: [(&str, &str); 3] = [
    ("The command '", "' was cancelled because it took more than "),
    (
        "The last command <command>",
        "</command> timed out and has been killed",
    ),
    (
        "Your bash command contained syntax errors and was NOT executed",
        "",
    ),
];

/// The last line of the output of a command that was stopped, in SWE-agent 0.
const TIMED_OUT: [&str; 2] = [
    "EXECUTION TIMED OUT",
    "EXECUTION TIMED OUT AND INTERRUPT FAILED. RESTARTING PROCESS.",
];

/// What is around the command of a turn.
const FENCE: &str = "```";

fn is_mini(record: &Object) -> bool {
    let format = record.get("trajectory_format").and_then(Value::as_text);
    format.is_some_and(|format| format.as_bytes().starts_with(b"mini-swe-agent"))
}

fn has_word(fields: &Object, name: &str, word: &str) -> bool {
    fields.get(name).and_then(Value::as_str) == Some(word)
}

fn is_demonstration(message: &Object) -> bool {
    message.get("is_demo") == Some(&Value::Bool(true)) || has_word(message, "message_type", "demonstration")
}

/// Returns whether a history is all that is known of a run, as of demonstrations: its messages name their agent or kind.
fn is_history(record: &Object) -> bool {
    let Some(Value::Array(history)) = record.get("history") else {
        return false;
    };
    let first = object_of(history.first());
    !record.contains("trajectory")
        && matches!(first.get("role"), Some(Value::String(_)))
        && ["agent", "message_type", "is_demo"]
            .iter()
            .any(|name| first.contains(name))
}

fn is_run(record: &Object) -> bool {
    let Some(Value::Array(turns)) = record.get("trajectory") else {
        return false;
    };
    let first = object_of(turns.first());
    let is_empty = || record.get("history").and_then(Value::as_array).is_some() && has_object(record, "info");
    (first.contains("action") && first.contains("observation")) || (turns.is_empty() && is_empty())
}

fn has_object(record: &Object, name: &str) -> bool {
    record.get(name).and_then(Value::as_object).is_some()
}

impl Adapter for SweAgent {
    fn format(&self) -> FormatName {
        FormatName::SweAgent
    }

    fn kind(&self) -> Kind {
        Kind::Rows
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        let mut first = first.iter().map(|value| object_of(Some(value)));
        first.any(|record| is_mini(record) || is_history(record) || is_of_nebius(record) || is_run(record))
    }

    fn decode(&self, value: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        if !self.recognises(&[value], None) {
            return Err(Wrong::new("it has no trajectory of actions and observations"));
        }
        let record = object_of(Some(value));
        let info = fields_of(record, "info");
        say.begin(Origin::default());
        say.count_unknown(record, is_root_field);
        say.facts(record, &["environment", "instance_id"]);
        say.fact("version", record.get("trajectory_format"));
        say.fact("exit_status", info.get("exit_status"));
        let rest = fields_where(info, |name, _| name != "exit_status" && name != "submission");
        if !rest.is_empty() {
            say.fact("info", Some(&rest.into()));
        }
        if is_given(info.get("submission")) {
            say.leave_out("submission");
        }
        // That it was submitted says nothing of the task; only tests know whether the patch is right. A run that did not finish failed.
        let mut statuses = [info.get("exit_status"), record.get("exit_status")]
            .into_iter()
            .filter_map(string_of);
        let is_unfinished = |status: &Text| !status.to_lowercase().starts_with("submitted");
        say.add_all(statuses.any(is_unfinished).then_some(What::Success(false)));
        let turns = list_of(record.get("trajectory"));
        let framework = if is_mini(record) {
            "mini-swe-agent"
        } else {
            "swe-agent"
        };
        say.add(What::Fact(Fact::Framework(framework.into())));
        say.add(What::Fact(Fact::Domain("code")));
        if is_mini(record) {
            add_messages(say, list_of(record.get("messages")))?;
        } else if is_of_nebius(record) {
            say.fact("model_name", record.get("model_name"));
            say.add_all(truth_of(record.get("target")).map(What::Success));
            add_history(say, turns.iter().map(message_of).collect())?;
        } else if turns.is_empty() {
            add_history(say, list_of(record.get("history")).to_vec())?;
        } else {
            let turns = messages_of_turns(say, record, turns)?;
            add_history(say, turns)?;
        }
        Ok(Decoded::Whole)
    }
}

/// Returns whether a record is a row of the data set of Nebius: turns with a `text`.
fn is_of_nebius(record: &Object) -> bool {
    let first = object_of(list_of(record.get("trajectory")).first());
    let is_turn = first.contains("text") || first.contains("system_prompt");
    is_turn && string_of(first.get("role")).is_some() && !first.contains("content")
}

/// Returns a turn of such a row as a message of a history: the last code block of the agent is its action.
fn message_of(turn: &Value) -> Value {
    let turn = object_of(Some(turn));
    let text = string_of(turn.get("text"))
        .or(string_of(turn.get("system_prompt")))
        .cloned()
        .unwrap_or_default();
    if !matches!(str_of(turn.get("role")), Some("ai" | "assistant")) {
        return object([
            ("role", turn.get("role").cloned().unwrap_or_default()),
            ("content", text.into()),
        ]);
    }
    let plain = text.as_str();
    let block = plain
        .trim_end()
        .strip_suffix(FENCE)
        .and_then(|text| text.rsplit_once(FENCE));
    let (thought, action) = block.unwrap_or((&plain, ""));
    object([
        ("role", "assistant".into()),
        ("content", thought.trim_end().into()),
        ("action", action.trim().into()),
    ])
}

/// Returns the turns as messages of a history, after the beginning of the history up to the task.
fn messages_of_turns(say: &mut Events, record: &Object, turns: &[Value]) -> Result<Vec<Value>, Wrong> {
    let history = list_of(record.get("history"));
    let is_task = |message: &Value| {
        let message = object_of(Some(message));
        has_word(message, "role", "user") && !is_demonstration(message)
    };
    let end = history
        .iter()
        .position(is_task)
        .map_or(history.len(), |at| at + 1);
    let is_asked = |message: &&Value| {
        let message = object_of(Some(message));
        is_demonstration(message) || matches!(str_of(message.get("role")), Some("system" | "user"))
    };
    let mut messages: Vec<Value> = history[..end].iter().filter(is_asked).cloned().collect();
    for (at, turn) in turns.iter().enumerate() {
        let Value::Object(turn) = turn else {
            return Err(Wrong::new(format!("trajectory[{at}] must be an object")));
        };
        say.count_unknown(turn, is_turn_field);
        let field = |name| turn.get(name).cloned();
        messages.push(some_object([
            ("role", Some("assistant".into())),
            ("thought", field("thought")),
            ("content", field("response")),
            ("action", field("action")),
        ]));
        if is_given(turn.get("observation")) {
            let (content, took) = (field("observation"), field("execution_time"));
            messages.push(some_object([
                ("role", Some("tool".into())),
                ("content", content),
                ("took", took),
            ]));
        }
    }
    Ok(messages)
}

/// Adds the messages of a run. Where all are a demonstration, that is the run.
fn add_history(say: &mut Events, history: Vec<Value>) -> Result<(), Wrong> {
    let messages = || history.iter().map(|message| object_of(Some(message)));
    let is_run = messages().any(|message| !has_word(message, "role", "system") && !is_demonstration(message));
    let mut is_waiting = false;
    for (at, message) in messages().enumerate() {
        let content = message.get("content");
        match str_of(message.get("role")) {
            _ if is_run && is_demonstration(message) => say.leave_out("demonstration"),
            Some("system") => say.system(content),
            Some("assistant") => {
                let thought = message
                    .get("thought")
                    .filter(|thought| string_of(Some(thought)).is_some());
                say.say_content(TextKind::Message, thought.or(content));
                let command = say.text_of(message.get("action"));
                is_waiting = add_command(say, &command);
            }
            Some("user" | "tool") if mem::take(&mut is_waiting) => {
                let took = number_of(message.get("took")).map(|seconds| seconds * 1000.0);
                say.add_all(took.map(|took| What::Took(Text::default(), took)));
                add_result(say, content, None);
            }
            Some("tool") => say.say_content(TextKind::Event, content),
            Some("user") => say.say_content(TextKind::User, content),
            _ => return Err(Wrong::new(format!("history[{at}] has a role that is not known"))),
        }
    }
    Ok(())
}

/// Adds the call of a command, unless it is blank. Returns whether there is one.
fn add_command(say: &mut Events, command: &Text) -> bool {
    let command = trimmed(command);
    let name = command.split(is_white_space).next();
    if !command.is_empty() {
        say.call(Call {
            name: name.map(Text::from),
            args: [("command".into(), command.clone().into())].into_iter().collect(),
            ..Call::default()
        });
    }
    !command.is_empty()
}

/// Adds the result of the command before. `failed` is the agent's own verdict; without it the text decides.
fn add_result(say: &mut Events, content: Option<&Value>, failed: Option<bool>) {
    let text = say.text_of(content);
    let plain = text.as_str();
    let begins_so = |(start, end): &(&str, &str)| plain.starts_with(start) && plain.contains(end);
    let last = plain.trim_end_matches(is_white_space).rsplit('\n').next();
    let is_stopped = STOPPED.iter().any(begins_so) || last.is_some_and(|last| TIMED_OUT.contains(&last));
    say.result(Outcome {
        id: None,
        content: text,
        failed: failed.or(is_stopped.then_some(true)),
    });
}

/// Returns whether a command of mini-SWE-agent failed; `None` where it does not say so, as in version 1.
fn failure_of(extra: &Object) -> Option<bool> {
    if string_of(extra.get("exception_info")).is_some() {
        return Some(true);
    }
    number_of(extra.get("returncode")).map(|code| code != 0.0)
}

/// Returns the command that a message of the agent has in its text; nothing without one. `actions` are the commands that ran, which
/// version 1 leaves out.
fn command_of(say: &mut Events, message: &Object, actions: Option<&Value>) -> Text {
    if !has_word(message, "role", "assistant") || !list_of(message.get("tool_calls")).is_empty() {
        return Text::default();
    }
    if let Some(Value::Array(actions)) = actions {
        let only = actions.first().filter(|_| actions.len() == 1);
        return say.text_of(only.and_then(|action| action.get("command")));
    }
    let text = say.text_of(message.get("content"));
    let mut commands = COMMAND.captures_iter(&text);
    match (commands.next(), commands.next()) {
        (Some(only), None) => only[1].into(),
        _ => Text::default(),
    }
}

fn add_messages(say: &mut Events, messages: &[Value]) -> Result<(), Wrong> {
    let mut is_waiting = false;
    for value in messages {
        let mut message = object_of(Some(value)).clone();
        let extra = message.remove("extra");
        let extra = object_of(extra.as_ref());
        let failed = failure_of(extra);
        say.begin(Origin {
            time: number_of(extra.get("timestamp")).map(|seconds| (seconds * 1000.0).into()),
            ..Origin::default()
        });
        if mem::take(&mut is_waiting) && has_word(&message, "role", "user") {
            add_result(say, message.get("content"), failed);
        } else if has_word(&message, "role", "exit") {
            // How it ended, which `info` says too.
            say.leave_out("exit message");
        } else {
            let command = command_of(say, &message, extra.get("actions"));
            if has_word(&message, "object", "response") {
                // A reply of the Responses API.
                list_of(message.get("output"))
                    .iter()
                    .try_for_each(|item| add_message(say, item))?;
            } else {
                if let Some(failed) = failed {
                    message.insert("is_error", failed);
                }
                add_message(say, &message.into())?;
            }
            is_waiting = add_command(say, &command);
        }
    }
    Ok(())
}
