//! A session as a conversation: what the user and the agent say, and calls with their results.

use std::collections::{BTreeSet, HashMap};

use knowledgepulse_json::{Object, Text, Value, cut, units_of};
use knowledgepulse_share::{Shown, Turn, turns_of};

use crate::show::values::{IntoValue, list};

/// The longest text of a turn, in UTF-16 code units.
const MOST_UNITS: usize = 256 * 1024;

/// Returns a session as `Conversation` of report/data.d.ts.
pub(super) fn of(shown: &Shown) -> Value {
    let mut results = HashMap::new();
    let mut turns: Vec<Object> = Vec::new();
    let all = turns_of(&shown.trace);
    for turn in &all {
        if let Turn::Result(answer) = turn {
            results.insert(answer.id.as_str(), answer);
        }
    }
    let called: BTreeSet<&str> = all
        .iter()
        .flat_map(|turn| match turn {
            Turn::Agent(said) => said.calls.iter().map(|call| call.id.as_str()).collect(),
            _ => Vec::new(),
        })
        .collect();
    for turn in &all {
        let mut fields = Object::new();
        let by = if matches!(turn, Turn::Agent(_)) {
            "agent"
        } else {
            "user"
        };
        fields.insert("by", by);
        match turn {
            Turn::User(text) => fields.insert("text", bounded(text)),
            // A result stands with its call.
            Turn::Result(answer) if called.contains(answer.id.as_str()) => continue,
            Turn::Result(answer) => fields.insert("text", bounded(&answer.text)),
            Turn::Agent(said) => {
                for (name, text) in [("reasoning", &said.reasoning), ("text", &said.text)] {
                    if !text.is_empty() {
                        fields.insert(name, bounded(text));
                    }
                }
                if !said.calls.is_empty() {
                    let calls = said.calls.iter().map(|call| {
                        let mut fields = Object::new();
                        fields.insert("tool", call.tool.clone());
                        fields.insert("input", call.input.clone());
                        if let Some(answer) = results.get(call.id.as_str()) {
                            fields.insert("result", bounded(&answer.text));
                            fields.insert("failed", answer.failed);
                        }
                        fields
                    });
                    fields.insert("calls", list(calls));
                }
            }
        }
        turns.push(fields);
    }
    let words: BTreeSet<&str> = shown.review.iter().map(|place| place.words.as_str()).collect();
    let mut conversation = Object::new();
    conversation.insert("turns", list(turns));
    conversation.insert(
        "places",
        list(words.into_iter().filter(|words| !words.is_empty())),
    );
    conversation.into_value()
}

/// Returns a text, or its beginning and how much is missing.
fn bounded(text: &Text) -> Text {
    let units = units_of(text);
    if units <= MOST_UNITS {
        return text.clone();
    }
    format!(
        "{}\n… {} more characters",
        cut(text, MOST_UNITS),
        units - MOST_UNITS
    )
    .into()
}
