//! A line of the list: `SessionRow` of report/data.d.ts, without what depends on other sessions.

use knowledgepulse_formats::FormatName;
use knowledgepulse_json::{Text, Value, json_object};
use knowledgepulse_share::{Shown, is_personal, is_secret, outcome_of};
use knowledgepulse_trace::facts::{FactKind, facts_of};

use crate::{MOST_UNITS, label_of, told};

/// The longest objective of the list, in UTF-16 code units.
const EXCERPT_LENGTH: usize = 240;
/// How many bytes count as a token.
const BYTES_PER_TOKEN: usize = 4;

/// Returns the line of a session, whose conversation has this size in bytes.
pub(super) fn of(shown: &Shown, format: FormatName, size: usize) -> Value {
    let Shown {
        trace,
        about,
        redactions,
        review,
    } = shown;
    let text = |path: &[&str]| trace.at(path).and_then(Value::as_text);
    let count = |name: &str| about.get(name).cloned().unwrap_or_else(|| 0.0.into());
    // A trace may be hostile: its names may be megabytes long, and invisible.
    let name_of = |name: &Text| Some(label_of(name, "", MOST_UNITS)).filter(|name| !name.is_empty());
    let named = |name: &str| about.get(name)?.as_text().and_then(name_of);
    let name = text(&["task", "objective"]).map(|objective| label_of(objective, "", EXCERPT_LENGTH));
    let agent = text(&["metadata", "imported", "format"]).and_then(name_of);
    let facts = facts_of(trace).into_iter();
    let facts = facts.filter(|fact| fact.kind != FactKind::Answered);
    let facts = facts.map(|fact| json_object! { "words": fact.words(), "good": fact.kind.is_good() });
    let sum_of = |is_wanted: fn(&str) -> bool| -> u64 {
        let wanted = redactions.iter().filter(|(kind, _)| is_wanted(kind));
        wanted.map(|(_, count)| count).sum()
    };
    json_object! {
        "id": text(&["id"]).and_then(name_of).unwrap_or_default(),
        "name": name.unwrap_or_default(),
        "agent": agent.unwrap_or_else(|| format.name().into()),
        "model": named("model"),
        "project": named("project"),
        "began": text(&["metadata", "created_at"]).and_then(name_of),
        "turns": count("user_turns"),
        "calls": count("calls"),
        "failedCalls": count("failed_calls"),
        "tokens": size / BYTES_PER_TOKEN,
        "facts": facts.collect::<Value>(),
        "replaced": told(redactions),
        "secrets": sum_of(is_secret),
        "personal": sum_of(is_personal),
        "places": review.len(),
        "success": outcome_of(trace).map(|(success, _)| success),
    }
}
