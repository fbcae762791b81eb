//! The manifest of a shared folder: a line for each session.

use std::collections::BTreeMap;

use knowledgepulse_clean::{PlaceToReview, places_in_text};
use knowledgepulse_json::{Object, Value, object};

/// A place that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The position of its file among those of its session.
    pub file: usize,
    /// The line, from 1.
    pub line: u64,
    /// Its field in the line, and the clean text around it. The manifest has the field alone: what a person removes from a session
    /// must not stay in the manifest.
    pub place: PlaceToReview,
}

/// What is shared of a session, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// Its rank among the chosen, from 1.
    pub rank: u64,
    /// Its files in the folder: the session, then its sub-agents.
    pub files: Vec<String>,
    /// Its line, where a file has all sessions.
    pub line: Option<u64>,
    /// Its clean `id`, `agent`, `created_at`, the beginning of its `objective`, and its number of `steps`. The manifest has no objective
    /// with a place to review.
    pub about: Value,
    /// Why it was chosen.
    pub reason: String,
    /// How many sessions it stands for.
    pub stands_for: u64,
    /// Whether it succeeded and how sure that is; `None` where nobody knows.
    pub outcome: Option<(bool, f64)>,
    /// How often each kind was redacted.
    pub redactions: BTreeMap<String, u64>,
    /// The places to review.
    pub review: Vec<Place>,
    /// How many lines were left out: those that are no JSON objects, and pieces of messages.
    pub lines_left_out: u64,
}

/// What a folder shares.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    /// The sessions by rank.
    pub entries: Vec<Entry>,
    /// The sessions that are left out, by the names of their files, each with the reason.
    pub left_out: Vec<(String, String)>,
}

#[allow(clippy::cast_precision_loss)] // Nothing is counted so often.
fn number(count: u64) -> Value {
    (count as f64).into()
}

impl Entry {
    /// Returns the name of a file of the session in the folder.
    fn file(&self, at: usize) -> &str {
        self.files.get(at).map_or("", String::as_str)
    }

    /// Returns the line of the manifest.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut fields = Object::new();
        fields.insert("rank", number(self.rank));
        fields.insert("file", self.file(0));
        if let Some(line) = self.line {
            fields.insert("line", number(line));
        }
        let subagents = self.files.iter().skip(1).map(|file| file.as_str().into());
        fields.insert("subagents", subagents.collect::<Vec<Value>>());
        let about = self.about.as_object().into_iter().flatten();
        fields.extend(about.map(|(name, value)| (name.clone(), value.clone())));
        let objective = self
            .about
            .get("objective")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if places_in_text(objective).next().is_some() {
            fields.insert("objective", "");
        }
        fields.insert("reason", self.reason.as_str());
        fields.insert("stands_for", number(self.stands_for));
        let (success, confidence) = self.outcome.unzip();
        fields.insert("success", success.map_or(Value::Null, Value::from));
        fields.insert("confidence", confidence.map_or(Value::Null, Value::from));
        let redactions = self.redactions.iter();
        let redactions = redactions.map(|(kind, count)| (kind.as_str().into(), number(*count)));
        fields.insert("redactions", redactions.collect::<Object>());
        fields.insert("lines_left_out", number(self.lines_left_out));
        let review = self.review.iter().map(|place| {
            object([
                ("file", self.file(place.file).into()),
                ("line", number(place.line)),
                ("field", place.place.path.as_str().into()),
            ])
        });
        fields.insert("review", review.collect::<Vec<_>>());
        fields.into()
    }
}

impl Manifest {
    /// Returns the text of the manifest.
    #[must_use]
    pub fn to_json_lines(&self) -> String {
        self.entries
            .iter()
            .map(|entry| entry.to_value().to_json() + "\n")
            .collect()
    }

    /// Returns how often each kind was redacted in all sessions.
    #[must_use]
    pub fn redactions(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (kind, count) in self.entries.iter().flat_map(|entry| &entry.redactions) {
            *all.entry(kind.clone()).or_default() += count;
        }
        all
    }

    /// Returns the places to review: each with its file, line and field, and the text around it.
    pub fn review(&self) -> impl Iterator<Item = (String, &str)> {
        self.entries.iter().flat_map(|entry| {
            entry.review.iter().map(|place| {
                let file = entry.file(place.file);
                let PlaceToReview { path, text, .. } = &place.place;
                (format!("{file}:{} {path}", place.line), text.as_str())
            })
        })
    }
}
