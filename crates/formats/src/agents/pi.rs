//! Sessions of Pi and OpenClaw, an entry a line (the files in `~/.pi/agent/sessions/`), and of other programs in the Session Trace
//! Simple Format of the Hub of Hugging Face. `docs/session-format.md` of Pi's coding agent and
//! <https://huggingface.co/docs/hub/session-traces-format> describe them.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("pi", add_entry)
    .end(add_harness)
    .beside(beside);

/// What sub-agents say is below a folder beside the session's file that is named as that: `TIME_ID`. OpenClaw says in a list of the folder
/// which session has spawned another one.
fn beside(path: &Path, say: &mut Events) {
    let mut folders = path.ancestors().skip(1);
    let folder = folders.find(|folder| folder.with_extension("jsonl").is_file());
    let session = folder.and_then(|folder| folder.file_name()?.to_str()?.rsplit('_').next());
    say.sub_agent(session.is_some(), session.map(Value::from).as_ref());
    let spawned_by = listed_beside(path, None).and_then(|own| text_at(&own, "spawnedBy"));
    let parent = spawned_by
        .as_ref()
        .and_then(|key| text_at(&listed_beside(path, Some(key))?, "sessionId"));
    say.sub_agent(spawned_by.is_some(), parent.map(Value::from).as_ref());
}

fn add_harness(say: &mut Events, header: &Value) {
    if let Some(harness) = text_at(header, "harness") {
        say.add(What::Fact(Fact::Framework(harness)));
        say.add(What::Fact(Fact::Domain("default")));
        say.outcome_in(object_of(Some(header)));
    }
}

fn add_entry(say: &mut Events, entry: &Value) {
    let message = fields_of(entry, "message");
    match str_of(entry.get("type")).unwrap_or_default() {
        "message" => add_message_of(say, message),
        "custom_message" => say.say_content(TextKind::Event, entry.get("content")),
        "compaction" | "branch_summary" => say.leave_out("summary of a compaction"),
        kind => say.leave_out(format!("entry {kind}")),
    }
}

fn add_message_of(say: &mut Events, message: &Object) {
    let content = message.get("content");
    match str_of(message.get("role")) {
        Some("user") => {
            let first = first_text(content).filter(|text| text.starts_with('['));
            let first = first.and_then(|text| text.lines().next());
            let begins = |words| first.is_some_and(|line| line.contains(words));
            say.sub_agent(words("openclaw-sub-agent").any(begins), None);
            add_said(say, "user", content);
        }
        Some("system") => say.system(),
        Some("assistant") => {
            say.first_fact("model", message.get("model"));
            if has_text(message, "errorMessage") {
                say.leave_out("error of the API");
            }
            add_as(say, message, "assistant", content);
        }
        Some("toolResult" | "tool") => {
            let text = say.text_of(content);
            let is_stopped = words("pi-interruption").any(|words| text.trim_end().ends_with(words));
            let failed = truth_of(message.get("isError")).map(|failed| failed && !is_stopped);
            say.result(text_at(message, "toolCallId"), text, failed);
        }
        Some("bashExecution") => say.say_shell(message),
        Some("custom" | "hookMessage") => say.say_content(TextKind::Event, content),
        Some("branchSummary" | "compactionSummary") => say.leave_out("summary of a compaction"),
        role => say.leave_out(format!("message {}", role.unwrap_or("of no role"))),
    }
}
