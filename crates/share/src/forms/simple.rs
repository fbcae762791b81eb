//! The Session Trace Simple Format of the Hub of Hugging Face, whose entries are Pi's.

use knowledgepulse_json::{Text, Value, object};

use super::{
    agent_of, model_of, session_of, time_of,
    turns::{Call, Turn, turns_of},
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
    let model = model_of(trace);
    for (at, turn) in turns_of(trace).into_iter().enumerate() {
        let parent = at.checked_sub(1).map(|parent| Value::from(parent.to_string()));
        entries.push(object([
            ("type", "message".into()),
            ("id", at.to_string().into()),
            ("parentId", parent.unwrap_or_default()),
            ("message", message_of(turn, model.clone())),
        ]));
    }
    entries
}

fn message_of(turn: Turn, model: Option<Value>) -> Value {
    match turn {
        Turn::User(text) => object([("role", "user".into()), ("content", text.into())]),
        Turn::Agent(said) => {
            let texts = [("thinking", said.reasoning), ("text", said.text)];
            let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
            let content = texts.map(|(kind, text)| part(kind, text));
            let content = content.chain(said.calls.into_iter().map(call_of));
            with_some([
                ("role", Some("assistant".into())),
                ("content", Some(content.collect::<Vec<_>>().into())),
                ("model", model),
            ])
        }
        Turn::Result(answer) => object([
            ("role", "toolResult".into()),
            ("toolCallId", answer.id.into()),
            ("toolName", answer.tool.into()),
            ("content", vec![part("text", answer.text)].into()),
            ("isError", answer.failed.into()),
        ]),
    }
}

fn part(kind: &str, text: Text) -> Value {
    object([("type", kind.into()), (kind, text.into())])
}

fn call_of(call: Call) -> Value {
    object([
        ("type", "toolCall".into()),
        ("id", call.id.into()),
        ("name", call.tool.into()),
        ("arguments", call.input.into()),
    ])
}
