//! Antigravity: `~/.gemini/antigravity*/brain/ID/.system_generated/logs/transcript.jsonl`, a step a line.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("antigravity", add_step);

/// How the lines begin with which a result opens.
const TIMES: [&str; 2] = ["Created At:", "Completed At:"];

/// What says in a result that its command failed.
const FAILED: &str = "failed with exit code";

fn add_step(say: &mut Events, step: &Value) {
    let kind = str_of(step.get("type"));
    match (str_of(step.get("source")), kind) {
        (Some("USER_EXPLICIT"), _) => say.say_content(TextKind::User, step.get("content")),
        (Some("MODEL"), None | Some("PLANNER_RESPONSE")) => {
            let mut step = object_of(Some(step)).clone();
            decode_arguments(say, &mut step);
            add_as(say, &step, "assistant", step.get("content"));
        }
        (Some("MODEL"), _) => add_result(say, step),
        _ => say.leave_out(format!("event {}", kind.unwrap_or("of an unknown kind"))),
    }
}

/// Reads the arguments of calls, each of which is JSON in a text but for numbers, and says the folder that a command ran in.
fn decode_arguments(say: &mut Events, step: &mut Object) {
    let Some(Value::Array(calls)) = step.get_mut("tool_calls") else {
        return;
    };
    for call in calls {
        let Value::Object(call) = call else { continue };
        let Some(Value::Object(args)) = call.get_mut("args") else {
            continue;
        };
        for (_, value) in args.iter_mut() {
            let text = str_of(Some(&*value)).filter(|text| text.starts_with(['"', '[', '{']));
            if let Some(read) = text.and_then(|text| parse_str(text).ok()) {
                *value = read;
            }
        }
        say.first_fact("cwd", args.get("Cwd"));
    }
}

/// The step of a tool; it does not name its call.
fn add_result(say: &mut Events, step: &Value) {
    let text = str_of(step.get("content")).unwrap_or_default();
    let is_time =
        |line: &&str| line.trim().is_empty() || TIMES.iter().any(|time| line.trim_start().starts_with(time));
    let lines: Vec<_> = text.lines().skip_while(is_time).collect();
    let is_error = str_of(step.get("status")).is_some_and(|status| status.contains("ERROR"));
    let failed = (is_error || lines.first().is_some_and(|line| line.contains(FAILED))).then_some(true);
    say.result(None, lines.join("\n").into(), failed);
}
