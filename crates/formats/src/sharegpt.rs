//! Conversations of data sets for fine-tuning, as ShareGPT wrote them first, and LLaMA-Factory, Axolotl and Hermes after it.

use knowledgepulse_json::{Object, Value};

use crate::{
    parts::Part,
    tagged,
    values::{first_of, str_of},
    words::tags,
    written,
};

/// Returns whether a value is a turn by somebody who is known.
pub fn is_turn(value: &Value) -> bool {
    value.as_object().is_some_and(|turn| {
        first_of(turn, CONTENTS).is_some() && str_of(turn.get("from")).and_then(role_of).is_some()
    })
}

/// Where turns have what was said.
const CONTENTS: &[&str] = &["value", "content"];

/// The role of turns of the agent that have calls in JSON.
pub const CALLS: &str = "calls";

/// Returns the role that a name of a speaker stands for, in small letters or capitals; `None` for an unknown one.
pub fn role_of(from: &str) -> Option<&'static str> {
    let mut speakers = tags("speaker").iter();
    speakers.find_map(|[name, role]| name.eq_ignore_ascii_case(from).then_some(*role))
}

/// Returns the role of a turn and its parts; `None` for anything else than a turn.
pub fn read(turn: &Object) -> Option<(&str, Vec<Part>)> {
    let from = str_of(turn.get("from"))?;
    let value = first_of(turn, CONTENTS)?;
    let role = match role_of(from) {
        Some(CALLS) => "assistant",
        role => role.unwrap_or(from),
    };
    let calls = value.as_str().and_then(|text| calls_of(from, text));
    Some((role, calls.unwrap_or_else(|| tagged::parts_by(role, Some(value)))))
}

/// Returns the calls in a text by a speaker of this name; `None` where that is no call.
pub fn calls_of(from: &str, text: &str) -> Option<Vec<Part>> {
    (role_of(from) == Some(CALLS)).then(|| written::calls_in(text))?
}
