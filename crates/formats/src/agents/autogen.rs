//! AutoGen: messages of agents one a line, results of tasks, and states of agents and teams. A team's thread has the words of all agents.

use crate::prelude::*;

pub static FORMAT: Format =
    Format::of_messages("autogen", add_message_of).also(|record| FORMAT.list_in(record).is_some());

fn add_message_of(say: &mut Events, message: &Value) {
    let kind = str_of(message.get("type")).unwrap_or_default();
    let content = message.get("content");
    let source = str_of(message.get("source"));
    match kind {
        "SystemMessage" => say.system(),
        // The program makes them of results that events have before them.
        "ToolCallSummaryMessage" | "HandoffMessage" if source != Some("user") => {
            say.leave_out("repeated result")
        }
        kind if is_one(kind, "autogen-event") => say.leave_out(format!("event {kind}")),
        "ThoughtEvent" => say.say_content(TextKind::Reasoning, content),
        "CodeExecutionEvent" => {
            let result = fields_of(message, "result");
            say.answer(None, result.get("output"), failed_by(result.get("exit_code")));
        }
        "CodeGenerationEvent" => {
            say.say_content(TextKind::Message, content);
            for block in list_at(message, "code_blocks") {
                say.call(Call::new(None, Some(&"code_execution".into()), Some(block)));
            }
        }
        _ => {
            if let Some(thought) = text_at(message, "thought") {
                say.say(TextKind::Reasoning, thought);
            }
            let is_user = source == Some("user") || (kind == "UserMessage" && source.is_none());
            let role = if is_user { "user" } else { "assistant" };
            let parts = elements_of(content).iter().flat_map(parts_in);
            add_parts(say, object_of(None), role, parts.collect());
        }
    }
}
