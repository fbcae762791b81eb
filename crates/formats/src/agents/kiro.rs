//! Kiro CLI: `~/.kiro/sessions/cli/*.jsonl`, records of a kind and data, and the conversations of its database.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("kiro", add_turn);

fn add_line(say: &mut Events, record: &Value) {
    let is_reply = str_of(record.get("kind")) == Some("AssistantMessage");
    let role = if is_reply { "assistant" } else { "user" };
    let data = fields_of(record, "data");
    let time = fields_of(data, "meta").get("timestamp");
    say.begin_record(data.get("message_id"), time);
    let parts = list_at(data, "content").iter().map(part_of).collect();
    add_parts(say, object_of(None), role, parts);
}

/// Returns a part of a kind and data.
fn part_of(part: &Value) -> Part {
    let data = part.get("data").unwrap_or(&Value::Null);
    match str_of(part.get("kind")) {
        Some("toolResult") => result_in(data, data.get("toolUseId")),
        kind => Part::named(kind.unwrap_or("part"), data),
    }
}

/// Returns a result, whose contents are texts, or JSON that may have an exit status.
fn result_in(result: &impl Fields, id: Option<&Value>) -> Part {
    let inner = |block: &Value| first_of(block, &["data", "Json", "Text"]).cloned();
    let blocks: Vec<_> = list_at(result, "content").iter().filter_map(inner).collect();
    // `exit status: 1`, or the number alone.
    let has_failed = |block: &Value| {
        let status =
            string_of(block.get("exit_status")).and_then(|status| status.as_str().rsplit(' ').next());
        status.is_some_and(|status| status != "0")
    };
    let is_error = str_of(result.field("status")).is_some_and(|status| status.eq_ignore_ascii_case("error"));
    let failed = (is_error || blocks.iter().any(has_failed)).then_some(true);
    Part::result(id, Some(&blocks.into()), failed)
}

fn add_turn(say: &mut Events, turn: &Value) {
    if is(turn, "kiro-line") {
        return add_line(say, turn);
    }
    let user = fields_of(turn, "user");
    say.begin_record(None, user.get("timestamp"));
    let folder = in_path(user, "env_context/env_state/current_working_directory");
    say.first_fact("cwd", folder);
    for (_, content) in fields_of(user, "content") {
        let results = list_at(content, "tool_use_results").iter();
        let results = results.map(|result| result_in(result, result.get("tool_use_id")));
        let prompt = text_at(content, "prompt").map(Part::Text);
        say.say_parts(TextKind::User, results.chain(prompt));
    }
    let ended = fields_of(turn, "request_metadata").get("stream_end_timestamp_ms");
    for (_, reply) in fields_of(turn, "assistant") {
        say.begin_record(reply.get("message_id"), ended);
        add_as(say, object_of(Some(reply)), "assistant", reply.get("content"));
    }
}
