//! AutoGen: messages of agents one a line, results of tasks, and states of agents and teams. A team's thread has the words of all agents.

use crate::prelude::*;

pub static FORMAT: Format = Format::sessions("autogen", decode)
    .also(|record| is_message(record) || messages_of(record).is_some())
    .of_any_domain();

/// How the types of messages end.
const ENDS: [&str; 2] = ["Message", "Event"];

fn is_message(record: &Value) -> bool {
    let kind = str_of(record.get("type")).unwrap_or_default();
    let is_kind = ENDS
        .iter()
        .any(|end| kind.len() > end.len() && kind.ends_with(end));
    let is_of_results = kind == "FunctionExecutionResultMessage";
    is_kind && record.get("content").is_some() && (is_of_results || has_text(record, "source"))
}

fn are_messages(list: &[Value]) -> bool {
    list.first().is_some_and(is_message)
}

/// Returns the messages of a result of a task, or of a state: of a team, the thread of its manager, else those of the agent with the most.
fn messages_of(record: &Value) -> Option<&[Value]> {
    let own = [
        list_at(record, "messages"),
        list_at(record, "message_thread"),
        list_at(fields_of(record, "llm_context"), "messages"),
    ];
    if let Some(own) = own.into_iter().find(|list| are_messages(list)) {
        return Some(own);
    }
    let states = fields_of(record, "agent_states");
    let thread = states
        .values()
        .map(|state| list_at(state, "message_thread"))
        .find(|list| are_messages(list));
    let of_agent = |state| {
        list_at(
            fields_of(fields_of(state, "agent_state"), "llm_context"),
            "messages",
        )
    };
    let agents = states.values().map(of_agent).filter(|list| are_messages(list));
    thread.or_else(|| agents.max_by_key(|list| list.len()))
}

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    if is_message(record) {
        add_message_of(say, record);
        return Ok(Decoded::GoesOn);
    }
    let Some(messages) = messages_of(record) else {
        return Ok(Decoded::Unknown);
    };
    say.begin_run("autogen-facts", record);
    messages.iter().for_each(|message| add_message_of(say, message));
    Ok(Decoded::Whole)
}

fn add_message_of(say: &mut Events, message: &Value) {
    say.begin_record(message.get("id"), message.get("created_at"));
    let kind = str_of(message.get("type")).unwrap_or_default();
    let content = message.get("content");
    let source = str_of(message.get("source"));
    match kind {
        "SystemMessage" => say.system(),
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
            let text = if is_user {
                TextKind::User
            } else {
                TextKind::Message
            };
            say.say_parts(text, elements_of(content).iter().flat_map(parts_in));
        }
    }
}
