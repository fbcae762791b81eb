//! The Agent Trajectory Interchange Format of Harbor, versions 1.0 to 1.8, one trajectory in a record:
//! <https://github.com/harbor-framework/harbor/blob/main/rfcs/0001-trajectory-format.md>

use std::{
    collections::HashSet,
    fs,
    path::{Component, Path, PathBuf},
};

use knowledgepulse_json::{Object, Text, Value, parse};

use crate::{
    Context, DEFAULT_LIMIT, Entry, Files, FormatName, FormatReader, Found, Wrong,
    trace::{Call, Outcome, Sink, TextKind, TraceBuilder, fields_of, with_end},
    values::{
        first_of, id_of, is_given, joined, list_of, numeric_of, object_of, or, spelled, string_of, truth_of,
    },
};

#[rustfmt::skip]
fn is_root_field(name: &str) -> bool {
    matches!(
        name,
        "schema_version" | "session_id" | "trajectory_id" | "agent" | "steps" | "notes" | "final_metrics" | "extra"
            | "continued_trajectory_ref" | "subagent_trajectories"
    )
}

#[rustfmt::skip]
fn is_step_field(name: &str) -> bool {
    matches!(
        name,
        "step_id" | "timestamp" | "source" | "model_name" | "reasoning_effort" | "message" | "reasoning_content"
            | "tool_calls" | "observation" | "metrics" | "llm_call_count" | "is_copied_context"
    )
}

/// Harbor keeps a trajectory in `TRIAL/agent/`, and one of several steps in `TRIAL/steps/NAME/agent/`.
const FOLDERS_UP: usize = 4;
const RESULT_FILE: &str = "result.json";
/// The result belongs to these files; others beside the first belong to sub-agents.
const MAIN_FILE: &str = "trajectory.json";
/// A result is some kilobytes long.
const MAX_RESULT_SIZE: u64 = 16 * 1024 * 1024;

/// Returns whether a file goes on with [`MAIN_FILE`].
fn is_continuation(name: &str) -> bool {
    let number = name
        .strip_prefix("trajectory.cont-")
        .and_then(|name| name.strip_suffix(".json"));
    number.is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub fn recognises(value: &Value) -> bool {
    let version = value.get("schema_version").and_then(Value::as_str);
    version
        .and_then(|version| version.strip_prefix("ATIF-v1."))
        .is_some_and(is_number)
}

/// A trajectory that is to be read: in memory, with the folder of its file, or from a file, with the name that the referring
/// trajectory gives it.
enum Waiting {
    Here(Value, Option<PathBuf>),
    File(PathBuf, Text),
}

pub struct Reader {
    file: Option<PathBuf>,
    files: Files,
    /// A trajectory that refers to the input was read before.
    is_followed: bool,
    root: Option<PathBuf>,
    /// Read once, however many trajectories the file has.
    result: Option<Option<Object>>,
}

impl Reader {
    pub fn new(context: &Context) -> Self {
        let path = context.file.as_ref().and_then(|file| fs::canonicalize(file).ok());
        let is_followed = path.as_ref().is_some_and(|path| !context.files.name(path));
        Self {
            file: context.file.clone(),
            files: context.files.clone(),
            is_followed,
            root: path.as_deref().and_then(Path::parent).map(Path::to_owned),
            result: None,
        }
    }

    /// Returns the next sub-agent, if there is one, and adds the sub-agents that it refers to.
    fn read_subagent(
        &self,
        next: Waiting,
        entry: &Entry,
        waiting: &mut Vec<Waiting>,
    ) -> Result<Option<TraceBuilder>, Wrong> {
        let (mut value, folder, name) = match next {
            Waiting::Here(value, folder) => (value, folder, None),
            Waiting::File(file, name) => {
                let Some((value, folder)) = read_file(&file, self.root.as_deref(), &self.files)? else {
                    return Ok(None);
                };
                (value, Some(folder), Some(name))
            }
        };
        // Moved, because nested ones would be copied at every level.
        let embedded = match &mut value {
            Value::Object(trajectory) => trajectory.remove("subagent_trajectories"),
            _ => None,
        };
        let embedded = match embedded {
            Some(Value::Array(embedded)) => embedded,
            _ => Vec::new(),
        };
        waiting.extend(subagents_of(&value, embedded, folder.as_deref()));
        let mut subagent = build(object_of(Some(&value)), entry)?;
        subagent.place.size = 0;
        subagent.details.insert("is_subagent", true);
        if let Some(name) = name {
            subagent.details.insert("trajectory_path", name);
        }
        Ok(Some(subagent))
    }
}

impl FormatReader for Reader {
    fn read(&mut self, entry: &Entry, found: &mut Vec<Found>) -> Result<(), Wrong> {
        if !recognises(entry.value) {
            return Err(Wrong::new(
                r#"it has no schema_version of ATIF, such as "ATIF-v1.6""#,
            ));
        }
        if self.is_followed {
            return Ok(());
        }
        let file = self.file.as_deref();
        let result = self.result.get_or_insert_with(|| file.and_then(read_result));
        let mut builder = build(object_of(Some(entry.value)), entry)?;
        if let Some(result) = result {
            add_outcome(&mut builder, result);
        }
        found.push(builder.into());
        // Not recursive: a file may nest them more deeply than the stack is.
        let embedded = list_of(entry.value.get("subagent_trajectories")).to_vec();
        let mut waiting = subagents_of(entry.value, embedded, self.root.as_deref());
        while let Some(next) = waiting.pop() {
            let which = match &next {
                Waiting::Here(..) => "a sub-agent".into(),
                Waiting::File(_, name) => joined(["the sub-agent in ".into(), name.clone()], ""),
            };
            match self.read_subagent(next, entry, &mut waiting) {
                Ok(subagent) => found.extend(subagent.map(Found::from)),
                Err(wrong) => found.push(wrong.within(which).into()),
            }
        }
        Ok(())
    }
}

/// Returns the sub-agents of a trajectory, the first one last: embedded ones, then referenced ones. `folder` is the folder
/// of its file, if known.
fn subagents_of(trajectory: &Value, embedded: Vec<Value>, folder: Option<&Path>) -> Vec<Waiting> {
    let id_of = |value: &Value| value.get("trajectory_id").and_then(Value::as_text).cloned();
    let ids: HashSet<Text> = embedded.iter().filter_map(id_of).collect();
    let here = |value| Waiting::Here(value, folder.map(Path::to_owned));
    let mut found: Vec<_> = embedded.into_iter().map(here).collect();
    for reference in references_in(object_of(Some(trajectory))) {
        if let (Some(folder), Some(name)) = (folder, string_of(reference.get("trajectory_path")))
            && id_of(reference).is_none_or(|id| !ids.contains(&id))
        {
            let file = resolved(folder, &name.to_string_lossy());
            found.push(Waiting::File(file, name.clone()));
        }
    }
    found.reverse();
    found
}

/// Returns a path from a folder, without `.` and `..`.
fn resolved(folder: &Path, name: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for component in folder.join(name).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            component => path.push(component),
        }
    }
    path
}

/// Returns the references to sub-agents.
fn references_in(trajectory: &Object) -> impl Iterator<Item = &Value> {
    let steps = list_of(trajectory.get("steps")).iter();
    let results =
        steps.flat_map(|step| list_of(fields_of(object_of(Some(step)), "observation").get("results")));
    results.flat_map(|result| list_of(result.get("subagent_trajectory_ref")))
}

/// Returns the trajectory in a file that another one refers to, and its folder. `None` if it was read already, if it is not
/// there, as where only the other one was copied, or if it is not in the folder `root` nor below: a trajectory does not say
/// which files of a machine are read.
fn read_file(file: &Path, root: Option<&Path>, files: &Files) -> Result<Option<(Value, PathBuf)>, Wrong> {
    let (Ok(path), Some(root)) = (fs::canonicalize(file), root) else {
        return Ok(None);
    };
    let Some(folder) = path.parent().filter(|_| path.starts_with(root)) else {
        return Ok(None);
    };
    if files.has(&path) {
        return Ok(None);
    }
    let unreadable = |_| Wrong::new("it cannot be read");
    let stat = fs::metadata(&path).map_err(unreadable)?;
    if !stat.is_file() {
        return Ok(None);
    }
    files.follow(&path);
    if stat.len() > DEFAULT_LIMIT {
        return Err(Wrong::new(format!(
            "longer than {} MB",
            DEFAULT_LIMIT / 1024 / 1024
        )));
    }
    let bytes = fs::read(&path).map_err(unreadable)?;
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let value = parse(text).map_err(|_| Wrong::new("not JSON in UTF-8"))?;
    if !recognises(&value) {
        return Err(Wrong::new("it has no schema_version of ATIF"));
    }
    Ok(Some((value, folder.to_owned())))
}

fn build(trajectory: &Object, entry: &Entry) -> Result<TraceBuilder, Wrong> {
    let mut builder = TraceBuilder::new(FormatName::Atif, entry);
    let Some(Value::Array(steps)) = trajectory.get("steps") else {
        return Err(Wrong::new("steps must be an array"));
    };
    let agent = fields_of(trajectory, "agent");
    let ids = ["trajectory_id", "session_id"].into_iter();
    builder.ids = ids
        .filter_map(|name| trajectory.get(name)?.as_text().cloned())
        .collect();
    builder.framework = string_of(agent.get("name")).cloned();
    builder.keep("version", trajectory.get("schema_version"));
    builder.keep_all(trajectory, &["session_id", "trajectory_id"]);
    builder.keep("agent_version", agent.get("version"));
    builder.keep("model", agent.get("model_name"));
    let others = ["notes", "final_metrics", "continued_trajectory_ref", "extra"];
    builder.keep_all(trajectory, &others);
    builder.count_unknown(trajectory, is_root_field);
    for (at, step) in steps.iter().enumerate() {
        let Value::Object(step) = step else {
            return Err(Wrong::new(format!("steps[{at}] must be an object")));
        };
        add_step(&mut builder, step, at)?;
    }
    Ok(builder)
}

fn add_step(builder: &mut TraceBuilder, step: &Object, at: usize) -> Result<(), Wrong> {
    let source = step.get("source").and_then(Value::as_str);
    let message = step.get("message");
    if step.get("is_copied_context") == Some(&Value::Bool(true)) {
        if source == Some("user") {
            builder.user_before(message);
        }
        builder.leave_out("copied step");
        return Ok(());
    }
    builder.count_unknown(step, is_step_field);
    builder.at(step.get("timestamp"));
    match source {
        Some("system") => builder.system(message),
        Some("user") => builder.say_content(TextKind::User, message),
        Some("agent") => {
            if let Some(reasoning) = first_of(step, &["reasoning_content"]) {
                builder.say_content(TextKind::Reasoning, Some(reasoning));
            }
            builder.say_content(TextKind::Message, message);
        }
        _ => {
            return Err(Wrong::new(format!(
                "steps[{at}].source must be system, user or agent"
            )));
        }
    }
    let calls = list_of(step.get("tool_calls"));
    for call in calls {
        let [id, name, args] = ["tool_call_id", "function_name", "arguments"].map(|name| call.get(name));
        builder.call(Call::new(id, name, args));
    }
    let results = list_of(fields_of(step, "observation").get("results")).iter();
    let results: Vec<&Object> = results.map(|result| object_of(Some(result))).collect();
    // Some agents omit which call a result belongs to.
    let is_paired = results.len() == calls.len()
        && results
            .iter()
            .all(|result| !is_given(result.get("source_call_id")));
    for (place, result) in results.iter().enumerate() {
        let id = if is_paired {
            calls[place].get("tool_call_id")
        } else {
            result.get("source_call_id")
        };
        add_result(builder, result, id);
    }
    Ok(())
}

fn add_result(builder: &mut TraceBuilder, result: &Object, id: Option<&Value>) {
    let references = list_of(result.get("subagent_trajectory_ref")).iter();
    let names = references.map(|reference| {
        let names = ["trajectory_id", "trajectory_path", "session_id"];
        first_of(object_of(Some(reference)), &names).map_or("unnamed".into(), spelled)
    });
    let names: Vec<Text> = names.collect();
    let content = match first_of(result, &["content"]) {
        Some(content) => builder.text_of(Some(content)),
        None if names.is_empty() => Text::default(),
        None => with_end(&joined(["[sub-agent ".into(), joined(names, ", ")], ""), "]"),
    };
    let extra = fields_of(result, "extra");
    let code = numeric_of(or(extra.get("exit_code"), extra.get("returncode")));
    let is_error = truth_of(or(extra.get("is_error"), extra.get("tool_result_is_error")));
    if is_given(id) {
        builder.result(Outcome {
            id: id_of(id),
            content,
            failed: is_error.or(code.map(|code| code != 0.0)),
        });
    } else {
        builder.say(TextKind::Event, content);
    }
}

/// Success and confidence of the trial that a trajectory is of, by the file `result.json` of Harbor.
fn add_outcome(builder: &mut TraceBuilder, result: &Object) {
    builder.keep("trial", result.get("trial_name"));
    builder.keep("task", result.get("task_name"));
    let exception = fields_of(result, "exception_info").get("exception_type");
    builder.keep("exception", exception);
    let rewards = fields_of(fields_of(result, "verifier_result"), "rewards");
    // By the name that Harbor gives to the only one.
    let only = rewards.values().next().filter(|_| rewards.len() == 1);
    let reward = or(rewards.get("reward"), only);
    if reward.is_some() {
        builder.reward(reward);
    } else if exception.is_some() {
        builder.success = Some(false);
    }
}

/// Returns the result of the trial; `None` without one, or if it belongs to another file. That of a job, which is further
/// up, has neither of these fields.
fn read_result(file: &Path) -> Option<Object> {
    let path = std::path::absolute(file).ok()?;
    let name = file.file_name()?.to_string_lossy();
    let mut folder = path.parent()?;
    if name != MAIN_FILE && !is_continuation(&name) && folder.join(MAIN_FILE).exists() {
        return None;
    }
    for _ in 0..FOLDERS_UP {
        let name = folder.join(RESULT_FILE);
        let is_small = |stat: &fs::Metadata| stat.is_file() && stat.len() <= MAX_RESULT_SIZE;
        let bytes = fs::metadata(&name)
            .ok()
            .filter(is_small)
            .and_then(|_| fs::read(&name).ok());
        if let Some(Ok(Value::Object(result))) = bytes.map(|bytes| parse(&bytes))
            && (result.contains("verifier_result") || result.contains("exception_info"))
        {
            return Some(result);
        }
        folder = folder.parent().unwrap_or(folder);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Known,
        reader::{Content, Settings, TraceReader},
        records::Records,
    };
    use tempfile::TempDir;

    /// Writes files into a new directory.
    fn folder_of(files: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, contents) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, contents).unwrap();
        }
        folder
    }

    /// Returns the JSON of a trajectory with a task and references to files.
    fn trajectory(task: &str, files: &[&str]) -> String {
        let references: Vec<_> = files
            .iter()
            .map(|file| serde_json::json!({ "trajectory_path": file, "trajectory_id": file }))
            .collect();
        let steps = serde_json::json!([
            { "source": "user", "message": task },
            { "source": "agent", "observation": { "results": [{ "subagent_trajectory_ref": references }] } },
        ]);
        let agent = serde_json::json!({ "name": "a" });
        serde_json::json!({ "schema_version": "ATIF-v1.6", "agent": agent, "steps": steps }).to_string()
    }

    /// Returns the traces of a file, and what is known of each.
    fn traces_of(file: PathBuf, files: &Files) -> Vec<Result<(Value, Known), String>> {
        let mut records = Records::default();
        records.push(&fs::read(&file).unwrap()).unwrap();
        records.finish().unwrap();
        let mut reader = TraceReader::new(Settings {
            context: Context {
                file: Some(file),
                files: files.clone(),
            },
            ..Settings::default()
        });
        let items = records.flat_map(|record| reader.read(record));
        let results = items.map(|item| match item.build().content {
            Content::Converted(trace, known) => Ok((trace, known)),
            Content::Wrong(reason) => Err(reason.to_string_lossy().into_owned()),
            other => panic!("{other:?}"),
        });
        results.collect()
    }

    /// Returns the tasks of the traces in a file, and the problems.
    fn tasks_of(file: PathBuf, files: &Files) -> Vec<String> {
        let results = traces_of(file, files).into_iter();
        let task_of = |trace: Value| {
            let task = trace.get("task").unwrap().get("objective").unwrap();
            task.as_str().unwrap().to_owned()
        };
        results
            .map(|result| result.map_or_else(|error| error, |(trace, _)| task_of(trace)))
            .collect()
    }

    #[test]
    fn files_of_sub_agents_are_read_in_the_folder_and_below_once() {
        let references = [
            "sub/one.json",
            "./sub/../sub/one.json",
            "../outside.json",
            "missing.json",
            "sub",
            ".",
            "trajectory.json",
            "embedded",
        ];
        let main = trajectory("main", &references);
        let embedded = trajectory("embedded", &[]).replacen('{', r#"{"trajectory_id":"embedded","#, 1);
        let main = main.replacen('{', &format!(r#"{{"subagent_trajectories":[{embedded}],"#), 1);
        let folder = folder_of(&[
            ("agent/trajectory.json", &main),
            ("agent/embedded", &trajectory("embedded file", &[])),
            ("agent/sub/one.json", &trajectory("one", &["two.json"])),
            ("agent/sub/two.json", &trajectory("two", &["../trajectory.json"])),
            ("outside.json", &trajectory("outside", &[])),
        ]);
        let file = |name| folder.path().join("agent").join(name);
        let files = Files::default();
        assert_eq!(
            tasks_of(file("trajectory.json"), &files),
            ["main", "embedded", "one", "two"]
        );
        assert!(tasks_of(file("sub/one.json"), &files).is_empty());

        let files = Files::default();
        assert_eq!(tasks_of(file("sub/one.json"), &files), ["one", "two"]);
        assert_eq!(tasks_of(file("trajectory.json"), &files), ["main", "embedded"]);
    }

    #[test]
    fn files_of_sub_agents_that_cannot_be_read_are_named() {
        let names = [
            "words.json",
            "other.json",
            "longest.json",
            "long.json",
            "good.json",
        ];
        let folder = folder_of(&[
            ("trajectory.json", &trajectory("main", &names)),
            ("words.json", "no JSON"),
            ("other.json", "{}"),
            ("good.json", &format!("\u{feff}{}", trajectory("good", &[]))),
        ]);
        for (name, length) in [("longest.json", DEFAULT_LIMIT), ("long.json", DEFAULT_LIMIT + 1)] {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_len(length).unwrap();
        }
        let found = tasks_of(folder.path().join("trajectory.json"), &Files::default());
        let problem = |name, reason| format!("not atif: the sub-agent in {name}: {reason}");
        assert_eq!(
            found,
            [
                "main".into(),
                problem("words.json", "not JSON in UTF-8"),
                problem("other.json", "it has no schema_version of ATIF"),
                problem("longest.json", "not JSON in UTF-8"),
                problem("long.json", "longer than 64 MB"),
                "good".into(),
            ]
        );
    }

    #[test]
    fn the_result_of_a_trial_belongs_to_its_trajectory_and_the_continuations() {
        let text = trajectory("main", &[]);
        let solved = r#"{"verifier_result":{"rewards":{"tests":1}}}"#;
        let scored = r#"{"verifier_result":{"rewards":{"tests":1,"style":0}}}"#;
        let failed = r#"{"exception_info":{"exception_type":"AgentTimeoutError"}}"#;
        let folder = folder_of(&[
            ("solved/result.json", solved),
            ("solved/agent/trajectory.json", &text),
            ("solved/agent/trajectory.cont-1.json", &text),
            ("solved/agent/trajectory.cont-a.json", &text),
            ("solved/agent/trajectory.cont-.json", &text),
            ("solved/agent/helper.json", &text),
            ("solved/alone/helper.json", &text),
            ("scored/result.json", scored),
            ("scored/agent/trajectory.json", &text),
            ("failed/result.json", failed),
            ("failed/steps/one/agent/trajectory.json", &text),
        ]);
        for (name, success) in [
            ("solved/agent/trajectory.json", Some(true)),
            ("solved/agent/trajectory.cont-1.json", Some(true)),
            ("solved/agent/trajectory.cont-a.json", None),
            ("solved/agent/trajectory.cont-.json", None),
            ("solved/agent/helper.json", None),
            ("solved/alone/helper.json", Some(true)),
            ("scored/agent/trajectory.json", None),
            ("failed/steps/one/agent/trajectory.json", Some(false)),
        ] {
            let found = traces_of(folder.path().join(name), &Files::default());
            let [Ok((trace, known))] = &found[..] else {
                panic!("{name}: {found:?}");
            };
            let is_success = trace.get("metadata").unwrap().get("success") == Some(&Value::Bool(true));
            assert_eq!(known.success.then_some(is_success), success, "{name}");
        }
    }
}
