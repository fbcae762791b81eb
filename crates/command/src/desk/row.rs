//! A line of the list: `SessionRow` of report/data.d.ts, without what depends on other sessions.

use knowledgepulse_formats::{FormatName, trace::known_of};
use knowledgepulse_json::{Object, Text, Value};
use knowledgepulse_share::Shown;
use knowledgepulse_trace::facts::{FactKind, facts_of};

use super::excerpt::{NAME_LENGTH, excerpt_of, name_of};
use crate::{
    json_object,
    show::{
        review::{personal_of, secrets_of, told},
        values::{IntoValue, list},
    },
};

/// The longest objective of the list, in UTF-16 code units.
const EXCERPT_LENGTH: usize = 240;
/// How many bytes count as a token.
const BYTES_PER_TOKEN: usize = 4;

/// Returns the line of a session, whose conversation has this size in bytes.
pub(super) fn of(shown: &Shown, format: FormatName, size: usize) -> Object {
    let text = |path: &[&str]| shown.trace.at(path).and_then(Value::as_text);
    let about = |name: &str| shown.about.get(name).cloned().unwrap_or_default();
    let named = |name: &str| about(name).as_text().and_then(name_of).into_value();
    let agent = text(&["metadata", "imported", "format"]).and_then(name_of);
    let mut row = of_nothing();
    row.insert("id", text(&["id"]).and_then(name_of).unwrap_or_default());
    row.insert(
        "name",
        text(&["task", "objective"])
            .map_or_else(Text::default, |objective| excerpt_of(objective, EXCERPT_LENGTH)),
    );
    row.insert("agent", agent.unwrap_or_else(|| format.name().into()));
    row.insert("model", named("model"));
    row.insert("project", named("project"));
    row.insert(
        "began",
        text(&["metadata", "created_at"]).and_then(name_of).into_value(),
    );
    row.insert("turns", about("user_turns"));
    row.insert("calls", about("calls"));
    row.insert("failedCalls", about("failed_calls"));
    row.insert("tokens", (size / BYTES_PER_TOKEN).into_value());
    let facts = facts_of(&shown.trace).into_iter();
    let facts = facts.filter(|fact| fact.kind != FactKind::Answered);
    row.insert(
        "facts",
        list(facts.map(|fact| {
            json_object! { "words": fact.words(), "good": fact.kind.is_good() }
        })),
    );
    row.insert("replaced", told(&shown.redactions));
    row.insert("secrets", secrets_of(&shown.redactions).into_value());
    row.insert("personal", personal_of(&shown.redactions).into_value());
    row.insert("places", shown.review.len().into_value());
    let success = shown.trace.at(&["metadata", "success"]).and_then(Value::as_bool);
    row.insert(
        "success",
        success.filter(|_| known_of(&shown.trace).success).into_value(),
    );
    row
}

/// Returns the line of a session that could not be read.
pub(super) fn of_nothing() -> Object {
    let nothing = [
        ("id", "".into_value()),
        ("name", "(it could not be read)".into_value()),
        ("agent", "unknown".into_value()),
        ("model", Value::Null),
        ("project", Value::Null),
        ("began", Value::Null),
        ("turns", 0_u64.into_value()),
        ("calls", 0_u64.into_value()),
        ("failedCalls", 0_u64.into_value()),
        ("tokens", 0_u64.into_value()),
        ("facts", list::<Value>([])),
        ("replaced", "".into_value()),
        ("secrets", 0_u64.into_value()),
        ("personal", 0_u64.into_value()),
        ("places", 0_u64.into_value()),
        ("success", Value::Null),
    ];
    nothing
        .into_iter()
        .map(|(name, value)| (Text::from(name), value))
        .collect()
}

/// Returns how a file is called: without its folders, as those who are sent a page need not know them.
pub(super) fn name_of_file(file: &str) -> Text {
    let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
    excerpt_of(&name.into(), NAME_LENGTH)
}
