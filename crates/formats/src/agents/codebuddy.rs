//! CodeBuddy and WorkBuddy: `~/.codebuddy/projects/*/ID.jsonl`, an item of the OpenAI Agents SDK a line.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("codebuddy", add_item);

fn add_item(say: &mut Events, item: &Value) {
    let data = fields_of(item, "providerData");
    if is_of_program(item) {
        return say.leave_out(OF_PROGRAM);
    }
    say.first_fact("model", data.get("model"));
    match str_of(item.get("type")).unwrap_or_default() {
        "reasoning" => say.say_content(TextKind::Reasoning, first_of(item, &["rawContent", "content"])),
        _ if is_message(item) => add_message(say, item),
        "ai-title" => say.fact("summary", item.get("aiTitle")),
        kind => say.leave_out(format!("event {kind}")),
    }
}
