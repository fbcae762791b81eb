//! A session as a conversation: what the user and the agent say, and calls with their results.

use std::collections::BTreeSet;

use knowledgepulse_json::{Text, Value, json_object};
use knowledgepulse_share::{Answer, Call, Shown, Turn, turns_of, with_some};

/// Returns a session as `Conversation` of report/data.d.ts.
pub(super) fn of(shown: &Shown) -> Value {
    let call = |call: Call| {
        let (result, failed) = call.result.map(|answer| (answer.text, answer.failed)).unzip();
        with_some([
            ("tool", Some(call.tool.into())),
            ("input", Some(call.input.into())),
            ("result", result.map(Value::from)),
            ("failed", failed.map(Value::from)),
        ])
    };
    let some = |text: Text| (!text.is_empty()).then(|| text.into());
    let turns = turns_of(&shown.trace).into_iter().map(|turn| match turn {
        Turn::User(text) | Turn::Result(Answer { text, .. }) => {
            json_object! { "by": "user", "text": text }
        }
        Turn::Agent(said) => {
            let calls: Vec<_> = said.calls.into_iter().map(call).collect();
            with_some([
                ("by", Some("agent".into())),
                ("reasoning", some(said.reasoning)),
                ("text", some(said.text)),
                ("calls", (!calls.is_empty()).then(|| calls.into())),
            ])
        }
    });
    let words: BTreeSet<&str> = shown.review.iter().map(|place| place.words.as_str()).collect();
    json_object! {
        "turns": turns.collect::<Value>(),
        "places": words.into_iter().filter(|words| !words.is_empty()).collect::<Value>(),
    }
}
