//! Sessions of Claude Code and of programs that write like it (iFlow), an event a line: the files in `~/.claude/projects/`, and the output
//! of `--output-format stream-json`. They are not documented; Harbor reads them too (`claude_code.py`).

use std::fs;

use crate::prelude::*;

pub static FORMAT: Format = Format::sessions("claude-code", decode).beside(beside);

/// How iFlow names its sessions. All that answers a prompt has the prompt for its parent there, so its records form no tree.
const OF_IFLOW: &[u8] = b"session-";

/// A teammate is named in one of so many records at the beginning.
const NAMED_WITHIN: usize = 10;

/// Returns the team of a teammate that has a session of its own: the lead's names no agent.
fn team_of(event: &Value) -> Option<Text> {
    let agent = text_at(event, "agentName").filter(|agent| agent != "team-lead");
    text_at(event, "teamName").filter(|_| agent.is_some() && !is_true(event, "isSidechain"))
}

/// Says the session of the lead of a teammate, which the folder `teams` has as long as the team works.
fn beside(path: &Path, say: &mut Events) {
    let projects = path.ancestors().find(|folder| folder.ends_with("projects"));
    let teams = projects.map(|projects| projects.with_file_name("teams"));
    let Some(teams) = teams.filter(|teams| teams.is_dir()) else {
        return;
    };
    let text = text_of_small(path).unwrap_or_default();
    let records = text
        .lines()
        .take(NAMED_WITHIN)
        .map_while(|line| parse_str(line).ok());
    let team = records.filter_map(|record| team_of(&record)).next();
    let lead = team.and_then(|team| told_beside(&teams, &team, leads_in));
    say.sub_agent(lead.is_some(), lead.as_ref());
}

/// Returns by the name of each team the session of its lead.
fn leads_in(teams: &Path) -> Told {
    let teams = fs::read_dir(teams).into_iter().flatten().flatten();
    let teams = teams.filter_map(|team| read_small(&team.path().join("config.json")));
    let leads = teams.filter_map(|team| Some((text_at(&team, "name")?, team.get("leadSessionId")?.clone())));
    leads.collect()
}

/// Returns the event that the Agent SDK in Python has made an object of, whose class was its type, and the session that it begins.
fn printed(event: &Value) -> Option<(Value, Option<&Value>)> {
    let [_, kind] = row_where("claude-printed", |shape| is(event, shape))?;
    let data = fields_of(event, "data");
    let own = if kind == "system" {
        data
    } else {
        object_of(Some(event))
    };
    let mut printed = own.clone();
    // Prompts and results name no session.
    printed.remove("session_id");
    if let Some(content) = printed.remove("content") {
        let get = |name| own.get(name).cloned().unwrap_or_default();
        let message = [
            ("content", content),
            ("model", get("model")),
            ("id", get("message_id")),
        ];
        printed.insert("message", object(message));
    }
    printed.insert("type", kind);
    Some((printed.into(), data.get("session_id")))
}

fn decode(event: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    if let Some((event, begun)) = printed(event) {
        add_event(&event, None, say);
        let Some(session) = begun.and_then(Value::as_text) else {
            return Ok(Decoded::GoesOn);
        };
        // Each prompt of a session begins so.
        let (of, until) = (session.clone(), f64::INFINITY);
        say.add(What::Continues { of, until });
        say.session(begun);
        return Ok(Decoded::Begins);
    }
    let session = string_of(first_of(event, &["sessionId", "session_id"]));
    if !is(event, "claude-code") && (session.is_none() || str_of(event.get("type")).is_none()) {
        return Ok(Decoded::Unknown);
    }
    if session.is_some() || has_object(event, "message") {
        add_event(event, session, say);
    }
    Ok(Decoded::GoesOn)
}

fn add_event(event: &Value, session: Option<&Text>, say: &mut Events) {
    let message = fields_of(event, "message");
    let is_iflow = session.is_some_and(|session| session.as_bytes().starts_with(OF_IFLOW));
    let (agent, agent_id) = agent_of(event);
    say.begin(Origin {
        id: text_at(event, "uuid"),
        parent: if is_iflow {
            Parent::Before
        } else {
            parent_of(event)
        },
        message: text_at(message, "id"),
        run: session.cloned(),
        agent,
        ..Origin::default()
    });
    say.add_all(agent_id.map(|id| What::Fact(Fact::Agent(id))));
    say.sub_agent(team_of(event).is_some(), None);
    if is_iflow {
        say.add(What::Fact(Fact::Framework("iflow".into())));
    }
    for name in ["version", "cwd", "gitBranch"] {
        say.first_fact(name, event.get(name));
    }
    match str_of(event.get("type")).unwrap_or_default() {
        "result" => add_outcome(say, event),
        kind @ ("user" | "assistant") if has_object(event, "message") => {
            say.at(event.get("timestamp"));
            add_message(say, event, message, kind);
        }
        "attachment" if is_prompt(fields_of(event, "attachment")) => {
            say.at(event.get("timestamp"));
            say.say_content(TextKind::User, fields_of(event, "attachment").get("prompt"));
        }
        "ai-title" => say.fact("summary", event.get("aiTitle")),
        "custom-title" => say.fact("summary", event.get("customTitle")),
        kind => {
            if has_object(event, "compactMetadata") {
                say.add(What::Compacted);
            }
            say.leave_out(format!("event {kind}"));
        }
    }
}

/// Returns whose words an event has, and the id of a sub-agent. Requests to the API are a sub-agent's where they have an id.
fn agent_of(event: &Value) -> (Agent, Option<Text>) {
    let id = text_at(event, "agentId");
    if truth_of(event.get("isSidechain")).unwrap_or(id.is_some()) {
        return (id.clone().map_or(Agent::Unnamed, Agent::Named), id);
    }
    match text_at(event, "parent_tool_use_id") {
        Some(call) => (Agent::Named(call), id),
        None => (Agent::Main, None),
    }
}

/// Returns what an event follows. A session goes on after a compaction.
fn parent_of(event: &Value) -> Parent {
    let parent = text_at(event, "parentUuid").or_else(|| text_at(event, "logicalParentUuid"));
    let is_prompt =
        str_of(event.get("type")) == Some("user") && !words("claude-field").any(|name| is_true(event, name));
    match parent {
        Some(parent) => Parent::Of(parent),
        None if is_prompt => Parent::of(event, "parentUuid"),
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
fn add_outcome(say: &mut Events, event: &Value) {
    let is_error = str_of(event.get("subtype")).is_some_and(|subtype| subtype.starts_with("error"));
    if is_error || is_true(event, "is_error") {
        say.add(What::Success(false));
    }
    say.leave_out("event result");
    say.facts("claude-code-facts", event);
}

fn add_message(say: &mut Events, event: &Value, message: &Object, kind: &str) {
    if let Some([_, what]) = row_where("claude-field", |name| is_true(event, name)) {
        return say.leave_out(what);
    }
    if is_of_program(event) {
        return say.leave_out(OF_PROGRAM);
    }
    say.first_fact("model", text_at(message, "model").map(Value::from).as_ref());
    let content = message.get("content");
    if content == Some(&Value::Array(Vec::new())) {
        say.say(TextKind::User, Text::default());
    }
    let is_interrupted = is_true(fields_of(event, "toolUseResult"), "interrupted");
    let role = str_of(message.get("role")).unwrap_or(kind);
    match content {
        Some(Value::Array(parts)) if kind == "user" => {
            let parts = parts.iter().flat_map(|part| user_parts(part, is_interrupted));
            add_parts(say, object_of(None), role, parts.collect())
        }
        content => add_said(say, role, content),
    }
}

/// Returns the parts that one of the user's stands for. A tool that the user has stopped did not fail. iFlow has what it gave to the model
/// in a result of its own shape.
fn user_parts(part: &Value, is_interrupted: bool) -> Vec<Part> {
    let content = part.get("content");
    let is_stopped = is_interrupted || begins_with(content, "claude-interruption");
    let given = content.and_then(|content| content.get("responseParts"));
    let mut parts = parts_in(part);
    if let [Part::Result { content, failed, .. }] = &mut parts[..] {
        if is_stopped {
            *failed = Some(false);
        }
        if let Some(given) = given {
            let response = first_at(
                given,
                "functionResponse/response/output functionResponse/response/error",
            );
            *content = parts_of(response.or(Some(given)));
        }
    }
    parts
}
