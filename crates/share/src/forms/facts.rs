//! What a manifest tells of a session, beside its words.

use knowledgepulse_formats::trace::{SESSION, UNANSWERED, project_of};
use knowledgepulse_json::{Object, Value};
use knowledgepulse_trace::facts::Fact;

use super::{
    messages::recorded_tools,
    model_of, session_of, text_at,
    turns::{Turn, turns_of},
};
use crate::manifest::number_of;

/// Returns the facts about a trace, which is not clean yet, and neither are these.
pub(crate) fn facts_of(trace: &Value) -> Object {
    let mut facts = Object::new();
    let turns = turns_of(trace);
    let (mut users, mut calls, mut failed) = (0, 0, 0);
    for turn in &turns {
        match turn {
            Turn::User(_) => users += 1,
            Turn::Agent(said) => calls += said.calls.len() as u64,
            Turn::Result(answer) => failed += u64::from(answer.failed),
        }
    }
    let is_answer =
        |turn: &Turn| matches!(turn, Turn::Agent(said) if !said.text.is_empty() && said.calls.is_empty());
    let left_out = trace
        .at(&["metadata", "imported", "left_out"])
        .and_then(Value::as_object);
    let left_out = |is_wanted: fn(&str) -> bool| -> f64 {
        let counts = left_out.into_iter().flatten().filter(|(name, _)| is_wanted(name));
        counts
            .filter_map(|(_, count)| count.as_number())
            .fold(0.0, |sum, count| sum + count)
    };
    let imported = |name| text_at(trace, &["metadata", "imported", name]);
    let steps = trace.get("steps").and_then(Value::as_array).unwrap_or_default();
    facts.insert("session_id", session_of(trace));
    facts.insert(SESSION, imported(SESSION).map_or(Value::Null, Value::from));
    facts.insert("model", model_of(trace).unwrap_or_default());
    facts.insert("project", project_of(trace).map_or(Value::Null, Value::from));
    facts.insert("steps", number_of(steps.len() as u64));
    facts.insert("user_turns", number_of(users));
    facts.insert("calls", number_of(calls));
    facts.insert("failed_calls", number_of(failed));
    facts.insert("calls_without_result", left_out(|name| name == UNANSWERED));
    facts.insert("ends_with_answer", turns.last().is_some_and(is_answer));
    facts.insert("pictures", left_out(|name| name.contains("image")));
    let observed = knowledgepulse_trace::facts::facts_of(trace).into_iter();
    facts.insert("facts", observed.map(Fact::to_value).collect::<Vec<_>>());
    let tools = if recorded_tools(trace).is_some() {
        "recorded"
    } else {
        "inferred"
    };
    facts.insert("tools", if calls > 0 { tools.into() } else { Value::Null });
    facts
}
