//! The Agent Trajectory Interchange Format of Harbor, versions 1.0 to 1.8, one trajectory in a record:
//! <https://github.com/harbor-framework/harbor/blob/main/rfcs/0001-trajectory-format.md>

use crate::prelude::*;

pub static FORMAT: Format = Format::new("atif", Kind::Rows, decode).beside(beside);

/// Harbor keeps a trajectory in `TRIAL/agent/`, and one of several steps in `TRIAL/steps/NAME/agent/`.
const FOLDERS_UP: usize = 4;
const RESULT_FILE: &str = "result.json";
/// The result belongs to these files; others beside the first belong to sub-agents.
const MAIN_FILE: &str = "trajectory.json";

/// How the names of files begin that go on with [`MAIN_FILE`]; a number follows.
const CONTINUATION: &str = "trajectory.cont-";

/// Says the success and the confidence of the trial that a trajectory is of, by the file `result.json`. That of a job, which is
/// further up, has neither of these fields.
fn beside(path: &Path, say: &mut Events) {
    let Ok(path) = std::path::absolute(path) else {
        return;
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = name
        .strip_prefix(CONTINUATION)
        .and_then(|name| name.strip_suffix(".json"));
    let is_main = name == MAIN_FILE || number.is_some_and(|number| number.parse::<u32>().is_ok());
    if !is_main && path.with_file_name(MAIN_FILE).exists() {
        return;
    }
    let is_of_trial =
        |result: &Object| result.contains("verifier_result") || result.contains("exception_info");
    let mut folders = path.ancestors().skip(1).take(FOLDERS_UP);
    let result = folders.find_map(|folder| read_small(&folder.join(RESULT_FILE)).filter(is_of_trial));
    if let Some(result) = result {
        say_outcome(say, &result);
    }
}

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    let trajectory = object_of(Some(record));
    let Some(Value::Array(steps)) = trajectory.get("steps") else {
        return Err(Wrong::from(if is(record, "atif") {
            "steps must be an array"
        } else {
            r#"it has no schema_version of ATIF, such as "ATIF-v1.6""#
        }));
    };
    for name in ["trajectory_id", "session_id"] {
        let id = trajectory.get(name).and_then(Value::as_text).cloned();
        say.add_all(id.map(|id| What::Fact(Fact::Name(id))));
    }
    let agent = text_at(fields_of(trajectory, "agent"), "name");
    say.add_all(agent.map(|name| What::Fact(Fact::Framework(name))));
    say.facts("atif-facts", trajectory);
    for (at, step) in steps.iter().enumerate() {
        let Value::Object(step) = step else {
            return Err(Wrong::from(format!("steps[{at}] must be an object")));
        };
        add_step(say, step, at)?;
    }
    Ok(Decoded::Whole)
}

fn add_step(say: &mut Events, step: &Object, at: usize) -> Result<(), Wrong> {
    let source = str_of(step.get("source"));
    let message = step.get("message");
    if is_true(step, "is_copied_context") {
        if source == Some("user") {
            let turn = say.text_of(message);
            say.add(What::Before(turn));
        }
        say.leave_out("copied step");
        return Ok(());
    }
    say.begin_record(None, step.get("timestamp"));
    let role = match source {
        Some(role @ ("system" | "user")) => role,
        Some("agent") => "assistant",
        _ => {
            let problem = format!("steps[{at}].source must be system, user or agent");
            return Err(Wrong::from(problem));
        }
    };
    add_as(say, step, role, message);
    let calls = list_at(step, "tool_calls");
    let results = list_at(fields_of(step, "observation"), "results");
    // Some agents omit which call a result belongs to.
    let has_call = |result: &Value| is_given(result.get("source_call_id"));
    let is_paired = results.len() == calls.len() && !results.iter().any(has_call);
    for (at, result) in results.iter().enumerate() {
        let id = if is_paired {
            calls[at].get("tool_call_id")
        } else {
            result.get("source_call_id")
        };
        add_result(say, result, id);
    }
    Ok(())
}

fn add_result(say: &mut Events, result: &Value, id: Option<&Value>) {
    let references = list_at(result, "subagent_trajectory_ref").iter();
    let names = references.map(|reference| {
        let names = ["trajectory_id", "trajectory_path", "session_id"];
        id_of(first_of(reference, &names)).unwrap_or_else(|| "unnamed".into())
    });
    let names: Vec<Text> = names.collect();
    let content = match first_of(result, &["content"]) {
        Some(content) => say.text_of(Some(content)),
        None if names.is_empty() => Text::default(),
        None => format!("[sub-agent {}]", joined(names, ", ")).into(),
    };
    if !is_given(id) {
        return say.say(TextKind::Event, content);
    }
    let extra = fields_of(result, "extra");
    let code = numeric_of(first_of(extra, &["exit_code", "returncode"]));
    let is_error = truth_of(first_of(extra, &["is_error", "tool_result_is_error"]));
    let (id, failed) = (id_of(id), is_error.or(code.map(|code| code != 0.0)));
    say.result(id, content, failed);
}

fn say_outcome(say: &mut Events, result: &Object) {
    say.facts("atif-trial-facts", result);
    let rewards = object_of(in_path(result, "verifier_result/rewards"));
    // By the name that Harbor gives to the only one.
    let only = rewards.values().next().filter(|_| rewards.len() == 1);
    if let Some(reward) = or(rewards.get("reward"), only) {
        say.add(What::Fact(Fact::Reward(reward.clone())));
    } else if in_path(result, "exception_info/exception_type").is_some() {
        say.add(What::Success(false));
    }
}
