//! The Session Trace Simple Format of the Hub of Hugging Face, whose entries are Pi's.

use knowledgepulse_json::{Text, Value, json_object, object};

use super::{
    agent_of, model_of, session_of, time_of,
    turns::{Answer, Turn, turns_of},
    with_some,
};

/// Returns the entries of a trace, a line each; the first one has the outcome, if that is known.
pub(crate) fn entries_of(trace: &Value, outcome: Option<(bool, f64)>) -> Vec<Value> {
    let mut entries = vec![with_some([
        ("type", Some("session".into())),
        ("version", Some(3.0.into())),
        ("id", Some(session_of(trace).into())),
        ("timestamp", time_of(trace)),
        ("harness", Some(agent_of(trace).into())),
        ("success", outcome.map(|(success, _)| success.into())),
        ("confidence", outcome.map(|(_, confidence)| confidence.into())),
    ])];
    let mut messages = Vec::new();
    for turn in turns_of(trace) {
        add(&mut messages, turn, model_of(trace));
    }
    for (at, message) in messages.into_iter().enumerate() {
        let parent = at.checked_sub(1).map(|parent| parent.to_string());
        entries.push(json_object! {
            "type": "message",
            "id": at.to_string(),
            "parentId": parent,
            "message": message,
        });
    }
    entries
}

/// The id and the tool of a result whose call the trace does not have.
const NO_CALL: (&str, &str) = ("call_0", "unknown");

/// Adds the message of a turn, and behind it the results of its calls.
fn add(messages: &mut Vec<Value>, turn: Turn, model: Option<Value>) {
    let result_of = |id: &str, tool: &str, Answer { text, failed }| {
        json_object! {
            "role": "toolResult",
            "toolCallId": id,
            "toolName": tool,
            "content": vec![part("text", text)],
            "isError": failed,
        }
    };
    let said = match turn {
        Turn::User(text) => return messages.push(json_object! { "role": "user", "content": text }),
        Turn::Result(answer) => return messages.push(result_of(NO_CALL.0, NO_CALL.1, answer)),
        Turn::Agent(said) => said,
    };
    let texts = [("thinking", said.reasoning), ("text", said.text)].into_iter();
    let texts = texts.filter(|(_, text)| !text.is_empty());
    let mut content: Vec<_> = texts.map(|(kind, text)| part(kind, text)).collect();
    let mut results = Vec::new();
    for call in said.calls {
        results.extend(call.result.map(|answer| result_of(&call.id, &call.tool, answer)));
        content.push(
            json_object! { "type": "toolCall", "id": call.id, "name": call.tool, "arguments": call.input },
        );
    }
    messages.push(with_some([
        ("role", Some("assistant".into())),
        ("content", Some(content.into())),
        ("model", model),
    ]));
    messages.extend(results);
}

fn part(kind: &str, text: Text) -> Value {
    object([("type", kind.into()), (kind, text.into())])
}
