//! CodeBuddy and WorkBuddy: `~/.codebuddy/projects/*/ID.jsonl`, an item of the OpenAI Agents SDK a line.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("codebuddy", add_item);

fn add_item(say: &mut Events, item: &Value) {
    let data = fields_of(item, "providerData");
    if words("codebuddy-program").any(|name| is_true(data, name)) {
        return say.leave_out("message of the program");
    }
    say.first_fact("model", data.get("model"));
    match str_of(item.get("type")).unwrap_or_default() {
        "message" => add_message(say, item),
        "reasoning" => say.say_content(TextKind::Reasoning, first_of(item, &["rawContent", "content"])),
        "function_call" => say.call(Call::of(item)),
        "function_call_result" => {
            let failed = str_of(item.get("status")).is_some_and(|status| status != "completed");
            say.answer(
                text_at(item, "callId"),
                item.get("output"),
                failed.then_some(true),
            );
        }
        "ai-title" => say.fact("summary", item.get("aiTitle")),
        kind => say.leave_out(format!("event {kind}")),
    }
}
