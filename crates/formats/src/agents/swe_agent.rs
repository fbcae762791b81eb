//! The `.traj` files of SWE-agent, versions 0 and 1, and of mini-SWE-agent: <https://swe-agent.com/latest/usage/trajectories/>

use std::sync::LazyLock;

use ::regex::Regex;

use crate::prelude::*;

pub static FORMAT: Format = Format::new("swe-agent", Kind::Rows, decode);

/// How mini-SWE-agent has a command in a message. It runs none where there are several.
static COMMAND: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?s)```(?:bash|mswea_bash_command)[ \t\r\x0b\x0c]*\n(.*?)\n?```"));

/// What the two agents say of a command that they stopped, or that was not run.
static STOPPED: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        "(?s)^(The command '.*' was cancelled because it took more than |",
        "The last command <command>.*</command> timed out and has been killed|",
        "Your bash command contained syntax errors and was NOT executed)|",
        r"(^|\n)EXECUTION TIMED OUT( AND INTERRUPT FAILED\. RESTARTING PROCESS\.)?(?-u:\s)*$",
    ))
});

/// What is around the command of a turn.
const FENCE: &str = "```";

/// Messages of mini-SWE-agent.
const MINI: &str = "swe-agent-mini";
/// A row of the data set of Nebius: turns with a `text`.
const NEBIUS: &str = "swe-agent-nebius";
/// Turns of an action and an observation.
const TURNS: &str = "swe-agent-turns";
/// The shapes of a run; the last one is a history that is all that is known of it, as of demonstrations.
const SHAPES: [&str; 4] = [MINI, NEBIUS, TURNS, "swe-agent-history"];

fn has_word(fields: &impl Fields, name: &str, word: &str) -> bool {
    str_of(fields.field(name)) == Some(word)
}

fn is_demonstration(message: &Value) -> bool {
    is_true(message, "is_demo") || has_word(message, "message_type", "demonstration")
}

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    let shape = SHAPES.into_iter().find(|shape| is(record, shape));
    let shape = shape.ok_or_else(|| Wrong::from("it has no trajectory of actions and observations"))?;
    let info = fields_of(record, "info");
    say.begin(Origin::default());
    say.facts("swe-agent-facts", record);
    let rest = fields_where(info, |name, _| name != "exit_status" && name != "submission");
    if !rest.is_empty() {
        say.fact("info", Some(&rest.into()));
    }
    if is_given(info.get("submission")) {
        say.leave_out("submission");
    }
    // That it was submitted says nothing of the task; only tests know whether the patch is right. A run that did not finish failed.
    let statuses = [info.get("exit_status"), record.get("exit_status")].into_iter();
    let is_unfinished = |status: &Text| !status.to_lowercase().starts_with("submitted");
    if statuses.filter_map(string_of).any(is_unfinished) {
        say.add(What::Success(false));
    }
    let is_mini = shape == MINI;
    let framework = if is_mini { "mini-swe-agent" } else { "swe-agent" };
    say.add(What::Fact(Fact::Framework(framework.into())));
    say.add(What::Fact(Fact::Domain("code")));
    let turns = list_at(record, "trajectory");
    let history = list_at(record, "history");
    match shape {
        MINI => add_messages(say, list_at(record, "messages")),
        NEBIUS => {
            say.fact("model_name", record.get("model_name"));
            say.add_all(truth_of(record.get("target")).map(What::Success));
            turns.iter().for_each(|turn| add_turn(say, turn));
        }
        TURNS if !turns.is_empty() => {
            // The history up to the task: what follows is in the turns too.
            let is_task = |message: &Value| has_word(message, "role", "user") && !is_demonstration(message);
            let task = history.iter().position(is_task);
            add_history(say, &history[..task.map_or(history.len(), |at| at + 1)], true);
            turns.iter().for_each(|turn| add_turn(say, turn));
        }
        _ => add_history(say, history, false),
    }
    Ok(Decoded::Whole)
}

/// Adds a turn: what the agent said and did, and what came of it, or what somebody else said. The last code block of a text that has
/// no action beside it is one.
fn add_turn(say: &mut Events, turn: &Value) {
    let content = first_of(turn, &["content", "text", "system_prompt"]);
    match str_of(turn.get("role")) {
        Some("ai" | "assistant") => {}
        None if content.is_none() => {}
        role => return add_other(say, role, content),
    }
    let thought = turn.get("thought").filter(|_| has_text(turn, "thought"));
    let said = thought.or(turn.get("response")).or(content);
    let block =
        str_of(turn.get("text")).and_then(|text| text.trim_end().strip_suffix(FENCE)?.rsplit_once(FENCE));
    let [before, code] = block.map_or([None, None], |(before, code)| {
        [before.trim_end(), code.trim()].map(|text| Some(Value::from(text)))
    });
    say.say_content(TextKind::Message, before.as_ref().or(said));
    let command = say.text_of(code.as_ref().or(turn.get("action")));
    add_command(say, &command);
    if is_given(turn.get("observation")) {
        let is_waiting = say.awaits_result();
        let took = number_of(turn.get("execution_time")).filter(|_| is_waiting);
        add_other(say, Some("tool"), turn.get("observation"));
        say.add_all(took.map(|seconds| What::Took(Text::default(), seconds * 1000.0)));
    }
}

/// Adds the messages of a run. Where all are a demonstration, and nothing follows, that is the run.
fn add_history(say: &mut Events, messages: &[Value], goes_on: bool) {
    let is_own = |message: &Value| !has_word(message, "role", "system") && !is_demonstration(message);
    let is_run = goes_on || messages.iter().any(is_own);
    for message in messages {
        if is_run && is_demonstration(message) {
            say.leave_out("demonstration");
        } else {
            add_turn(say, message);
        }
    }
}

/// Adds what somebody else said: the result of the command that waits for it, or a message.
fn add_other(say: &mut Events, role: Option<&str>, content: Option<&Value>) {
    match role {
        Some("system") => say.system(),
        Some("user" | "tool") if say.awaits_result() => add_result(say, content, None),
        Some("tool") => say.say_content(TextKind::Event, content),
        Some("user") => say.say_content(TextKind::User, content),
        _ => {
            say.leave_out(UNKNOWN_ROLE);
            say.say_content(TextKind::Event, content);
        }
    }
}

/// Adds the call of a command, unless it is blank.
fn add_command(say: &mut Events, command: &Text) {
    let command = trim(command);
    if let Some(name) = command
        .split(is_white_space)
        .next()
        .filter(|name| !name.is_empty())
    {
        let args = [("command".into(), command.into())];
        say.call(Call::named(name, args.into_iter().collect()));
    }
}

/// Adds the result of the command before. `failed` is the agent's own verdict; without it the text decides.
fn add_result(say: &mut Events, content: Option<&Value>, failed: Option<bool>) {
    let content = say.text_of(content);
    let is_stopped = STOPPED.is_match(&content);
    say.result(None, content, failed.or(is_stopped.then_some(true)));
}

/// Returns whether a command of mini-SWE-agent failed; `None` where it does not say so, as in version 1.
fn failure_of(extra: &Object) -> Option<bool> {
    if has_text(extra, "exception_info") {
        return Some(true);
    }
    failed_by(extra.get("returncode"))
}

/// Returns the command that a message of the agent has in its text; nothing without one. `actions` are the commands that ran, which
/// version 1 leaves out.
fn command_of(say: &mut Events, message: &Object, actions: Option<&Value>) -> Text {
    if !has_word(message, "role", "assistant") || !list_at(message, "tool_calls").is_empty() {
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

fn add_messages(say: &mut Events, messages: &[Value]) {
    for value in messages {
        let mut message = object_of(Some(value)).clone();
        let extra = message.remove("extra");
        let extra = object_of(extra.as_ref());
        let failed = failure_of(extra);
        let is_waiting = say.awaits_result();
        say.begin_record(None, extra.get("timestamp"));
        if is_waiting && has_word(&message, "role", "user") {
            add_result(say, message.get("content"), failed);
        } else if has_word(&message, "role", "exit") {
            // How it ended, which `info` says too.
            say.leave_out("exit message");
        } else {
            let command = command_of(say, &message, extra.get("actions"));
            if has_word(&message, "object", "response") {
                // A reply of the Responses API.
                let items = list_at(&message, "output").iter();
                items.for_each(|item| add_message(say, item));
            } else {
                if let Some(failed) = failed {
                    message.insert("is_error", failed);
                }
                add_message(say, &message.into());
            }
            // It may be read from the text.
            if !say.awaits_result() {
                add_command(say, &command);
            }
        }
    }
}
