//! Conversations with a model, as chat APIs take and return them: OpenAI's Chat Completions and Responses, Anthropic's Messages,
//! Bedrock's Converse, Gemini, and the AI SDK of Vercel. Rows of data sets, ShareGPT and states of LangGraph hold such messages too;
//! `messages` has how a message or an item becomes steps.

use std::borrow::Cow;

use crate::{
    conversations::{JOINED, borrowed, is_of_member, messages_of, state_in, updates_of, without_event},
    langchain,
    messages::is_turn,
    prelude::*,
    verdicts::verdicts_of,
};

/// Conversations of chat APIs.
pub static OPENAI_CHAT: Format = Format::new("openai-chat", Kind::Rows, decode).also(|value| match value {
    value if is(value, "unread-chat") => false,
    Value::Object(record) => is_message(value) || is(value, "agentkit-part") || messages_of(record).is_some(),
    value => is_first(Some(value), is_message),
});

/// Messages of LangChain and states of LangGraph.
pub static LANGCHAIN: Format = Format::new("langchain", Kind::Rows, decode).also(|value| {
    let value = without_event(value);
    let of_state = state_in(value).get("messages");
    let is_update = !updates_of(value).is_empty() && !is(value, "agentkit-part");
    if is(value, "langgraph-state") || is_update {
        return true;
    }
    let mut lists = [Some(value), value.get("messages"), of_state].into_iter();
    langchain::is_message(value) || lists.any(|list| is_first(list, langchain::is_message))
});

/// Conversations of data sets for fine-tuning.
pub static SHAREGPT: Format = Format::new("sharegpt", Kind::Rows, decode).also(|value| {
    let turns = list_at(value, "conversations");
    let is_known = |turn: &Value| is_turn(turn) || is_message(turn);
    is_turn(value)
        || is_first(Some(value), is_turn)
        || has_list(value, "conversations") && turns.first().is_none_or(is_known)
});

fn decode(value: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    let value = without_event(value);
    let record = object_of(Some(value));
    say.begin(Origin::default());
    if let updates @ [_, ..] = &updates_of(value)[..] {
        updates.iter().for_each(|message| add_message(say, message));
        return Ok(Decoded::GoesOn);
    }
    if is_message(value) && !is(value, "anthropic-reply") {
        add_message(say, value);
        return Ok(Decoded::GoesOn);
    }
    let messages = match value {
        Value::Array(list) => list.first().is_none_or(is_message).then(|| borrowed(list)),
        value if is(value, "anthropic-reply") => Some(vec![Cow::Borrowed(value)]),
        _ => messages_of(record),
    };
    let messages = messages.ok_or_else(|| {
        Wrong::from(if is(value, "langgraph-state") {
            "a LangGraph checkpoint without messages"
        } else {
            "it has no messages, and no items"
        })
    })?;
    for _ in list_at(record, "runs").iter().filter(|run| is_of_member(*run)) {
        say.leave_out("run of a member of the team");
    }
    let record = list_at(record, JOINED)
        .first()
        .map_or(record, |first| object_of(Some(first)));
    let of_log = ["input/inputBodyJson", "output/outputBodyJson"];
    let inner = words("asked").chain(words("replied")).chain(of_log);
    let inner = inner.filter_map(|path| in_path(record, path)?.as_object());
    for details in [record].into_iter().chain(inner) {
        add_details(say, details);
    }
    say.name("thread_id", in_path(record, "config/configurable/thread_id"));
    let asked = words("question").filter_map(|name| text_at(record, name));
    // Names of kinds of tasks are single words.
    let asked = asked.filter(|text| text.trim().contains(char::is_whitespace));
    say.add_all(asked.take(1).map(What::Before));
    let mut before = None;
    for message in &messages {
        add_next(say, before.replace(&**message), message);
    }
    say.without_null_arguments();
    Ok(Decoded::Whole)
}

fn is_first(list: Option<&Value>, holds: fn(&Value) -> bool) -> bool {
    list_of(list).first().is_some_and(holds)
}

fn add_details(say: &mut Events, record: &Object) {
    for name in words("conversation-id") {
        say.name(name, record.get(name));
    }
    for name in ["created_at", "created", "timestamp", "request_created_at"] {
        say.at(record.get(name));
    }
    let mut models = words("model").filter_map(|name| record.get(name));
    say.fact("model", models.find(|model| string_of(Some(model)).is_some()));
    say.first_fact(
        TOOLS,
        tools_of(first_of(record, &["tools", "functions"])).as_ref(),
    );
    say.fact("metadata", record.get("metadata"));
    let texts = record.get("instructions").filter(|text| text.as_text().is_some());
    for prompt in [record.get("system"), record.get("systemInstruction"), texts] {
        if prompt.is_some() {
            say.system();
        }
    }
    say.add_all(verdicts_of(record).into_iter().map(What::Fact));
    say.outcome_in(record);
}
