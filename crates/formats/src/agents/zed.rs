//! Zed: the threads of `threads.db`, compressed or not, of both generations (`crates/agent` of zed-industries/zed).

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("zed", add_message_of);

fn add_message_of(say: &mut Events, message: &Value) {
    let (user, agent) = (fields_of(message, "User"), fields_of(message, "Agent"));
    let contents = [user, agent].into_iter();
    let parts = contents.flat_map(|said| list_at(said, "content")).map(part_of);
    let segments = list_at(message, "segments").iter();
    let segments =
        segments.map(|segment| Part::named(str_of(segment.get("type")).unwrap_or_default(), segment));
    let calls = list_at(message, "tool_uses").iter();
    let calls = calls.map(|call| Part::Call(Call::of(call)));
    let parts = parts.chain(segments).chain(calls).collect();
    let is_agent = message.get("Agent").is_some();
    let role = str_of(message.get("role")).unwrap_or(if is_agent { "assistant" } else { "user" });
    add_parts(say, object_of(None), role, parts);
    let results = fields_of(agent, "tool_results").values();
    let results = results.chain(list_at(message, "tool_results")).map(result_in);
    say.say_parts(TextKind::User, results);
}

/// Returns a part that its only field names. A mention is a file or another thing that the user names; its text is
/// the program's.
fn part_of(part: &Value) -> Part {
    match object_of(Some(part)).iter().next() {
        Some((name, value)) => Part::named(name, value),
        None => Part::Text(text_of_part(part).cloned().unwrap_or_default()),
    }
}

fn result_in(result: &Value) -> Part {
    let mut content: Vec<_> = elements_of(result.get("content")).iter().map(part_of).collect();
    if content.is_empty() {
        content = parts_of(result.get("output"));
    }
    Part::Result {
        id: text_at(result, "tool_use_id"),
        content,
        failed: is_true(result, "is_error").then_some(true),
    }
}
