//! A session as a conversation: what the user and the agent say, and calls with their results.

use std::collections::BTreeSet;

use knowledgepulse_json::{Text, Value, cut, json_object, units_of};
use knowledgepulse_share::{Answer, Call, Shown, Turn, turns_of, with_some};

/// The longest text of a turn, in UTF-16 code units.
const MOST_UNITS: usize = 256 * 1024;

/// Returns a session as `Conversation` of report/data.d.ts.
pub(super) fn of(shown: &Shown) -> Value {
    let call = |call: Call| {
        let result = call.result.as_ref();
        with_some([
            ("tool", Some(call.tool.into())),
            ("input", Some(call.input.into())),
            ("result", result.map(|answer| bounded(&answer.text).into())),
            ("failed", result.map(|answer| answer.failed.into())),
        ])
    };
    let some = |text: &Text| (!text.is_empty()).then(|| bounded(text).into());
    let turns = turns_of(&shown.trace).into_iter().map(|turn| match turn {
        Turn::User(text) | Turn::Result(Answer { text, .. }) => {
            json_object! { "by": "user", "text": bounded(&text) }
        }
        Turn::Agent(said) => {
            let calls: Vec<_> = said.calls.into_iter().map(call).collect();
            with_some([
                ("by", Some("agent".into())),
                ("reasoning", some(&said.reasoning)),
                ("text", some(&said.text)),
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

/// Returns a text, or its beginning and how much is missing.
fn bounded(text: &Text) -> Text {
    let (units, beginning) = (units_of(text), cut(text, MOST_UNITS));
    if units <= MOST_UNITS {
        return text.clone();
    }
    format!("{beginning}\n… {} more characters", units - MOST_UNITS).into()
}
