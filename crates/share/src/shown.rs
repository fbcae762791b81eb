//! A session as a person reads it before it is shared: its trace, clean by the same identities as what is shared of it.

use std::collections::{BTreeMap, HashSet};

use knowledgepulse_clean::{Cleaner, Identities, PlaceToReview, places_in_json};
use knowledgepulse_json::{Object, Value};

use crate::{
    Form, Log,
    forms::facts::facts_of,
    session::{Cleaning, ReadLog},
};

/// A session that is shown.
#[derive(Debug, Default)]
pub struct Shown {
    /// Its trace, clean, without what it repeats.
    pub trace: Value,
    /// What the manifest tells of it.
    pub about: Object,
    /// How often each kind was redacted in what was said.
    pub redactions: BTreeMap<String, u64>,
    /// The places that a person should look at.
    pub review: Vec<PlaceToReview>,
}

/// Reads and cleans a log. `cleaner` is `None` for its original text.
///
/// # Errors
/// Why it cannot be read or cleaned.
pub fn shown(log: &Log, cleaner: Option<&Cleaner>) -> Result<Shown, String> {
    // No file is shared.
    let how = (Form::Messages, cleaner.is_some_and(Cleaner::replaces_identifiers));
    let mut identities = Identities::default();
    let mut trace = ReadLog::read(log, how, &mut HashSet::new(), &mut identities)?.trace;
    leave_out_repetitions(&mut trace);
    let mut redactions = BTreeMap::new();
    if let Some(cleaner) = cleaner.cloned() {
        let mut cleaning = Cleaning::new(cleaner, identities);
        trace = cleaning.said(&trace)?;
        redactions = cleaning.redactions;
    }
    let review = ["task", "steps"].into_iter().filter_map(|part| trace.get(part));
    let review = review.flat_map(places_in_json).collect();
    Ok(Shown {
        about: facts_of(&trace),
        trace,
        redactions,
        review,
    })
}

/// Leaves out what a trace has twice, so that nothing is counted twice: its last message, and the text of calls whose input it has.
pub(crate) fn leave_out_repetitions(trace: &mut Value) {
    let Value::Object(fields) = trace else { return };
    fields.remove("outcome");
    let Some(Value::Array(steps)) = fields.get_mut("steps") else {
        return;
    };
    for step in steps {
        let tool = step.at(&["tool", "name"]).and_then(Value::as_text).cloned();
        let Some(tool) = tool.filter(|_| step.get("input").is_some()) else {
            continue;
        };
        let content = step.get("content").and_then(Value::as_text);
        if content.is_some_and(|content| content.as_bytes().starts_with(tool.as_bytes()))
            && let Value::Object(step) = step
        {
            step.insert("content", tool);
        }
    }
}
