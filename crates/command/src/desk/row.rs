//! A line of the list: `SessionRow` of report/data.d.ts, without what depends on other sessions.

use knowledgepulse_formats::FormatName;
use knowledgepulse_json::{Text, Value, json_object};
use knowledgepulse_share::{Shown, is_personal, is_secret};
use knowledgepulse_trace::facts::FactKind;

use crate::{MOST_UNITS, TraceInfo, label_of, told};

/// How many bytes count as a token.
const BYTES_PER_TOKEN: usize = 4;

/// Returns the line of a session, whose conversation has this size in bytes.
pub(super) fn of(shown: &Shown, format: FormatName, size: usize) -> Value {
    let session = TraceInfo::of(&shown.trace, format);
    let count = |name: &str| shown.about.get(name).cloned().unwrap_or_else(|| 0.0.into());
    // A trace may be hostile: its names may be megabytes long, and invisible.
    let label = |name: &Text| Some(label_of(name, MOST_UNITS)).filter(|name| !name.is_empty());
    let facts = session.facts.into_iter();
    let facts = facts.filter(|fact| fact.kind != FactKind::Answered);
    let facts = facts.map(|fact| json_object! { "words": fact.words(), "good": fact.kind.is_good() });
    let sum_of = |is_wanted: fn(&str) -> bool| -> u64 {
        let wanted = shown.redactions.iter().filter(|(kind, _)| is_wanted(kind));
        wanted.map(|(_, count)| count).sum()
    };
    json_object! {
        "id": session.id.as_ref().and_then(label).unwrap_or_default(),
        "name": label_of(&session.objective, usize::MAX),
        "agent": label(&session.agent).unwrap_or_else(|| format.name().into()),
        "model": shown.about.get("model").and_then(Value::as_text).and_then(label),
        "project": session.project.as_ref().and_then(label),
        "began": session.when.map(Text::from).as_ref().and_then(label),
        "turns": count("user_turns"),
        "calls": count("calls"),
        "failedCalls": count("failed_calls"),
        "tokens": size / BYTES_PER_TOKEN,
        "facts": facts.collect::<Value>(),
        "replaced": told(&shown.redactions),
        "secrets": sum_of(is_secret),
        "personal": sum_of(is_personal),
        "places": shown.review.len(),
        "success": session.success,
    }
}
