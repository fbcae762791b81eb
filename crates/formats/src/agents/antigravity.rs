//! Antigravity: `~/.gemini/antigravity*/brain/ID/.system_generated/logs/transcript.jsonl`, a step a line, or all of it in
//! `transcript_full.jsonl`.

use std::{ffi::OsStr, fs};

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("antigravity", add_step).beside(beside);

/// The step that starts conversations of sub-agents, and what stands before the name of each in it. Nothing else names both.
const STARTS: [&str; 2] = ["\"INVOKE_SUBAGENT\"", "\"conversationId\""];

/// Says which conversation has started this one, and the folder that it was begun in, which the list of prompts has: commands may run in
/// another one.
fn beside(path: &Path, say: &mut Events) {
    let list = path.ancestors().nth(5).map(|folder| folder.join("history.jsonl"));
    let list = list.and_then(|list| text_of_small(&list)).unwrap_or_default();
    let folder = path.ancestors().nth(3).and_then(Path::file_name);
    let name = folder.and_then(OsStr::to_str).unwrap_or_default();
    let mut own = list.lines().filter(|line| line.contains(name));
    let own = own.find_map(|line| parse_str(line).ok()).unwrap_or_default();
    say.fact("cwd", own.get("workspace"));
    let brain = path.ancestors().nth(4);
    let parent = brain.and_then(|brain| told_beside(brain, name, parents_in));
    say.sub_agent(parent.is_some(), parent.as_ref());
}

/// Looks through the conversations in a folder for those that they have started, and returns by each the one that has.
fn parents_in(brain: &Path) -> Told {
    let mut parents = Told::new();
    for entry in fs::read_dir(brain).into_iter().flatten().flatten() {
        let steps = entry.path().join(".system_generated/logs/transcript.jsonl");
        let steps = fs::read_to_string(steps).unwrap_or_default();
        for step in steps.lines().filter(|line| line.contains(STARTS[0])) {
            let step = parse_str(step).unwrap_or_default();
            let content = str_of(step.get("content")).unwrap_or_default();
            let started = content.split(STARTS[1]).skip(1);
            let started = started.filter_map(|rest| rest.split('"').nth(1));
            let parent = Value::from(entry.file_name().to_string_lossy().as_ref());
            parents.extend(started.map(|name| (name.into(), parent.clone())));
        }
    }
    parents
}

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
    let is_time = |line: &&str| {
        line.trim().is_empty() || words("antigravity-time").any(|time| line.trim_start().starts_with(time))
    };
    let lines: Vec<_> = text.lines().skip_while(is_time).collect();
    let is_error = str_of(step.get("status")).is_some_and(|status| status.contains("ERROR"));
    let failed = (is_error || lines.first().is_some_and(|line| line.contains(FAILED))).then_some(true);
    say.result(None, lines.join("\n").into(), failed);
}
