//! Replies of models in pieces, as APIs and frameworks stream them: Chat Completions, Responses, Messages of Anthropic, the AI SDK of Vercel,
//! the streams and events of LangGraph, and the events of other frameworks. The same message may come in pieces, as it grows, and whole: it counts once, by its id.

use crate::{
    conversations::{is_asked, messages_of},
    langchain,
    parts::failure_of,
    prelude::*,
    written::react_in,
};

pub static FORMAT: Format = Format::sessions("streams", decode).also(|record| {
    let mut chunks = [record].into_iter().chain(list_of(Some(record)).first());
    is_mode(record) || chunks.any(is_chunk)
});

fn is_mode(record: &Value) -> bool {
    record.as_str().is_some_and(|name| is_one(name, "stream-mode"))
}

/// Returns whether a value is a piece of a message of LangChain.
fn is_chunk(value: &Value) -> bool {
    let name = list_at(value, "id").last().or(value.get("type"));
    str_of(name).is_some_and(|name| name.ends_with("MessageChunk"))
}

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    if is_mode(record) || is(record, "langgraph-stream") {
        return Ok(Decoded::Joins);
    }
    let data = fields_of(record, "data");
    match str_of(record.get("event")).unwrap_or_default() {
        "on_chat_model_end" | "on_tool_end" => add_all(say, data.get("output"), true),
        "on_tool_error" => {
            begin(say, None);
            say.answer(id_of(data.get("tool_call_id")), data.get("error"), Some(true));
        }
        // In JavaScript, events have no parents.
        "on_chain_start"
            if list_at(record, "parent_ids").is_empty()
                && !fields_of(record, "metadata").contains("langgraph_node") =>
        {
            add_all(say, data.get("input"), true)
        }
        event if event.starts_with("on_") => {}
        _ if str_of(record.get("object")) == Some("chat.completion.chunk") => {
            let delta = object_of(in_path(record, "choices/0/delta"));
            add_pieces(say, record.get("id"), delta, delta.get("tool_calls"));
        }
        // Mastra says where a chunk is from.
        "" if has_text(record, "from") && has_object(record, "payload") => {
            return Ok(add_of_type(say, record, record.get("payload").unwrap_or(record)));
        }
        "" if has_text(record, "type")
            && first_of(record, &["payload", "data"]).is_none()
            && !langchain::is_message(record)
            || is(record, "untyped-event") =>
        {
            return Ok(add_of_type(say, record, record));
        }
        event => {
            let inner = first_of(record, &["data", "payload"]).unwrap_or(record);
            if let thread @ Some(_) = in_path(inner, "config/configurable/thread_id") {
                begin(say, None);
                say.name("thread_id", thread);
            }
            let sides = ["input", "values", "result"].map(|name| inner.get(name));
            for side in [Some(inner)].into_iter().chain(sides) {
                add_all(say, side, event == "messages/partial");
            }
        }
    }
    Ok(Decoded::Joins)
}

/// Adds the messages of LangChain in a value: itself, a list of them, those of a state, or those of each node of a graph. A piece is as
/// whole as it is so far where `is_whole` says so, and in a state.
fn add_all(say: &mut Events, value: Option<&Value>, is_whole: bool) {
    let Some(value) = value else { return };
    let of_state = elements_of(value.get("messages"));
    let of_nodes = object_of(Some(value))
        .values()
        .flat_map(|node| elements_of(node.get("messages")));
    let alone = elements_of(Some(value)).iter().map(|message| (message, is_whole));
    let of_states = of_state.iter().chain(of_nodes).map(|message| (message, true));
    for (message, is_whole) in alone.chain(of_states) {
        let pair = list_of(Some(message));
        let fields = langchain::unwrapped(message).map(|(_, fields)| fields);
        if let ([Value::String(_), messages @ Value::Array(list)], None) = (pair, fields)
            && list.first().is_some_and(langchain::is_message)
        {
            // What a task has written to a channel.
            add_all(say, Some(messages), true);
        } else if let ([Value::String(role), content], None) = (pair, fields) {
            begin(say, None);
            add_said(say, role, Some(content));
        } else if let Some(fields) = fields.filter(|_| is_chunk(message) && !is_whole) {
            add_pieces(say, fields.get("id"), fields, fields.get("tool_call_chunks"));
        } else if fields.is_some() || is_message(message) {
            let own = fields.unwrap_or(object_of(Some(message)));
            begin(say, own.get("id"));
            add_message(say, message);
        }
    }
}

/// Returns the words of a ReAct agent of LlamaIndex without its calls, which have events of their own; `None` of another message.
fn words_beside_calls(record: &Value, message: &Value) -> Option<Vec<Part>> {
    let [Part::Text(text)] = &parts_of(message.get("blocks"))[..] else {
        return None;
    };
    let parts = react_in(text).filter(|_| !list_at(record, "tool_calls").is_empty())?;
    let words = parts.into_iter().filter(|part| matches!(part, Part::Text(_)));
    Some(words.collect())
}

fn say_alone(say: &mut Events, kind: TextKind, content: Option<&Value>) {
    begin(say, None);
    say.say_content(kind, content);
}

fn begin(say: &mut Events, message: Option<&Value>) {
    say.begin(Origin {
        message: id_of(message),
        ..Origin::default()
    });
}

/// Adds a piece of a message: its reasoning, its text, and pieces of its calls, of which the first one of each has the name.
fn add_pieces(say: &mut Events, id: Option<&Value>, delta: &Object, calls: Option<&Value>) {
    let inner = [delta, fields_of(delta, "additional_kwargs")].into_iter();
    let mut reasoning = inner.filter_map(|inner| first_named(inner, "reasoning-field"));
    let parts = parts_of(delta.get("content"));
    let is_in_content = parts.iter().any(|part| matches!(part, Part::Thought(_)));
    let reasoning = reasoning.next().filter(|_| !is_in_content).map(Part::thought);
    for part in reasoning.into_iter().chain(parts) {
        let (kind, text) = match part {
            Part::Thought(text) => (TextKind::Reasoning, text.unwrap_or_default()),
            Part::Text(text) => (TextKind::Message, text),
            _ => continue,
        };
        add_piece(say, id, kind, text);
    }
    for call in list_of(calls) {
        let told = Some(fields_of(call, "function")).filter(|told| !told.is_empty());
        let told = told.unwrap_or(object_of(Some(call)));
        if has_text(told, "name") {
            begin(say, id);
            say.call(Call::new(call.get("id"), told.get("name"), None));
        }
        add_arguments(say, first_of(told, &["args", "arguments"]));
    }
}

fn add_piece(say: &mut Events, id: Option<&Value>, kind: TextKind, text: Text) {
    if !text.is_empty() {
        begin(say, id);
        say.add(What::Piece(kind, text));
    }
}

fn add_arguments(say: &mut Events, text: Option<&Value>) {
    if let Some(text) = string_of(text) {
        begin(say, None);
        say.add(What::Arguments(text.clone()));
    }
}

/// Adds what an event of the AI SDK, of Anthropic's API, of Responses, of AG-UI, of the OpenAI Agents SDK, of Mastra, of LlamaIndex or of CrewAI
/// has. The table says what each type is, or each shape where events have no type.
fn add_of_type(say: &mut Events, event: &Value, record: &Value) -> Decoded {
    let call = id_of(first_named(record, "stream-call-id"));
    let kind = str_of(event.get("type")).unwrap_or_default();
    let is_one = |name: &str| name == kind || kind.is_empty() && is(record, name);
    let what = row_where("stream-event", is_one).map(|[_, what]| what);
    say.first_fact("model", record.get("model"));
    let delta = record.get("delta");
    let add_text = |say: &mut Events, kind| {
        let text = first_of(record, &["delta", "text"]).and_then(Value::as_text);
        let id = first_of(record, &["id", "messageId", "message_id"]);
        add_piece(say, id, kind, text.cloned().unwrap_or_default());
    };
    match what {
        Some(what @ ("request" | "conversation")) => {
            let asked = first_of(record, &["request", "input"]).filter(|asked| asked.as_object().is_some());
            let asked = asked.unwrap_or(record);
            let body = parsed(asked.get("body"));
            let messages = messages_of(object_of(body.as_deref().or(Some(asked))));
            for (at, message) in messages.unwrap_or_default().iter().enumerate() {
                // A request has the turns before it, too.
                if what == "conversation" || is_asked(message) {
                    let id = message.get("id").cloned();
                    begin(say, Some(&id.unwrap_or_else(|| at.to_string().into())));
                    add_message(say, message);
                }
            }
        }
        Some("message") => add_text(say, TextKind::Message),
        Some("reasoning") => add_text(say, TextKind::Reasoning),
        Some("arguments") => add_arguments(say, delta),
        Some("delta") => {
            let piece = |name| delta.and_then(|delta| text_at(delta, name)).unwrap_or_default();
            add_piece(say, None, TextKind::Message, piece("text"));
            add_piece(say, None, TextKind::Reasoning, piece("thinking"));
            add_arguments(say, delta.and_then(|delta| delta.get("partial_json")));
        }
        Some(what @ ("call" | "result" | "error" | "item" | "block")) => {
            begin(say, first_of(record, &["parentMessageId", "parent_message_id"]));
            let inner = first_of(record, &["item", "content_block", "response"]).unwrap_or(record);
            let output = first_of(record, &["output", "content", "result"]);
            let output = output.map(|output| Value::from(json_of(output).into_owned()));
            let told = object_of(first_of(record, &["tool_output", "toolOutput"]));
            let output = first_of(told, &["blocks", "content", "result"]).or(output.as_ref());
            match what {
                "call" => {
                    let own = Call::of(record);
                    let id = call.or(own.id);
                    say.call(Call { id, ..own });
                }
                "result" => say.answer(call, output, failure_of(told)),
                "error" => say.answer(call, first_of(record, &["errorText", "error"]), Some(true)),
                "item" => match words_beside_calls(record, inner) {
                    Some(words) => say.say_parts(TextKind::Message, words),
                    None => add_message(say, inner),
                },
                // The text of a block comes in pieces.
                _ if str_of(inner.get("type")) == Some("text") => {}
                _ => say.say_parts(TextKind::Message, parts_in(inner)),
            }
        }
        Some("task") => say_alone(say, TextKind::User, in_path(record, "task/description")),
        Some("answer") => say_alone(say, TextKind::Message, record.get("output")),
        Some(_) => {}
        None if kind.starts_with("response.") || kind.starts_with("RUN_") => {}
        None if kind.ends_with("_START") || kind.ends_with("_END") => {}
        None => return Decoded::Unknown,
    }
    Decoded::GoesOn
}
