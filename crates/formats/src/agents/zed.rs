//! Zed: the threads of `threads.db`, compressed or not, of both generations (`crates/agent` of zed-industries/zed).

use crate::prelude::*;

pub static FORMAT: Format = Format::new("zed", Kind::Sessions, &Plain(recognises, decode));

fn is_message(message: &Value) -> bool {
    let names = ["User", "Agent", "segments"];
    message.as_str().is_some() || names.iter().any(|name| message.get(name).is_some())
}

fn recognises(thread: &Value, _path: Option<&Path>) -> bool {
    let messages = list_at(thread, "messages");
    thread.get("version").is_some()
        && messages.iter().any(|message| message.as_object().is_some())
        && messages.iter().all(is_message)
}

fn decode(thread: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    say.begin_run(thread.get("id"), thread.get("updated_at"));
    say.fact("summary", first_of(thread, &["title", "summary"]));
    say.fact("model", fields_of(thread, "model").get("model"));
    say.sub_agent(has_text(thread, "parent_id"), thread.get("parent_id"));
    for message in list_at(thread, "messages") {
        let (user, agent) = (fields_of(message, "User"), fields_of(message, "Agent"));
        say.begin_record(user.get("id"), None);
        let contents = [user, agent].into_iter();
        let parts = contents
            .flat_map(|said| list_at(said, "content"))
            .map(of_anthropic);
        let segments = list_at(message, "segments")
            .iter()
            .map(|segment| part_of(str_of(segment.get("type")).unwrap_or_default(), segment));
        let calls = list_at(message, "tool_uses").iter();
        let calls = calls.map(|call| call_of(call.get("id"), call.get("name"), call.get("input")));
        let parts: Vec<_> = parts.chain(segments).chain(calls).collect();
        let is_agent = message.get("Agent").is_some();
        let role = str_of(message.get("role")).unwrap_or(if is_agent { "assistant" } else { "user" });
        if !parts.is_empty() {
            add_said(say, role, Some(&parts.into()))?;
        }
        let results = fields_of(agent, "tool_results").values();
        let results = results.chain(list_at(message, "tool_results")).map(result_in);
        let results: Vec<_> = results.collect();
        if !results.is_empty() {
            add_said(say, "user", Some(&results.into()))?;
        }
    }
    Ok(Decoded::Whole)
}

/// Returns a part that its only field names as Anthropic writes it. A mention is a file or another thing that the user names; its text is
/// the program's.
fn of_anthropic(part: &Value) -> Value {
    match object_of(Some(part)).iter().next() {
        Some((name, value)) => part_of(name, value),
        None => part.clone(),
    }
}

fn result_in(result: &Value) -> Value {
    let blocks = elements_of(result.get("content")).iter().map(of_anthropic);
    let content = match blocks.collect::<Vec<_>>() {
        blocks if blocks.is_empty() => result.get("output").cloned(),
        blocks => Some(blocks.into()),
    };
    let failed = is_true(result, "is_error").then_some(true);
    result_of(result.get("tool_use_id"), content, failed)
}
