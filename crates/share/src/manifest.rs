//! The manifest of a shared folder: a line for each session.

use std::collections::BTreeMap;

use knowledgepulse_clean::{PlaceToReview, places_in_text};
use knowledgepulse_json::{Object, Value, object};

use crate::set::rank_of;

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

/// What the name of a file has: bytes of a date, words, bytes of each, and letters of an id.
const DATE: usize = 10;
const MOST_WORDS: usize = 6;
const MOST_WORD: usize = 20;
const SHORT_ID: usize = 8;

/// What is shared of a session, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// Its rank among the chosen, from 1.
    pub rank: u64,
    /// Its files in the folder: the session, then its sub-agents.
    pub files: Vec<String>,
    /// The SHA-256 of its file or its line, in hexadecimal: a session that somebody has edited is not replaced.
    pub sha256: String,
    /// Its line, where a file has all sessions.
    pub line: Option<u64>,
    /// Its clean `id`, `agent`, `created_at`, the beginning of its `objective`, and facts such as its number of `steps`. The manifest has no
    /// objective with a place to review.
    pub about: Value,
    /// Why it was chosen.
    pub reason: String,
    /// How many sessions it stands for.
    pub stands_for: u64,
    /// Whether it succeeded and how sure that is; `None` where nobody knows.
    pub outcome: Option<(bool, f64)>,
    /// Who told that: the user, or the log.
    pub outcome_from: Option<&'static str>,
    /// How many tokens its files have: a quarter of their bytes.
    pub tokens: u64,
    /// The score of its unit.
    pub quality_score: Option<f64>,
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
    /// The sessions that are new, or longer than before, by rank.
    pub entries: Vec<Entry>,
    /// The lines of the sessions that were shared before and stay.
    pub kept: Vec<Value>,
    /// The sessions that are left out, by the names of their files, each with the reason.
    pub left_out: Vec<(String, String)>,
}

#[allow(clippy::cast_precision_loss)] // Nothing is counted so often.
pub(crate) fn number_of(count: u64) -> Value {
    (count as f64).into()
}

impl Entry {
    /// Returns the name of a file of the session in the folder.
    fn file(&self, at: usize) -> &str {
        self.files.get(at).map_or("", String::as_str)
    }

    /// Returns the beginning of its objective; nothing if there is a place to review in it.
    fn objective(&self) -> &str {
        let objective = self
            .about
            .get("objective")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let is_clean = places_in_text(objective).next().is_none();
        if is_clean { objective } else { "" }
    }

    /// Returns a name for its file, without an ending: when it began, the first words of its objective, and the beginning of its id.
    pub(crate) fn stem(&self) -> String {
        let text = |name| self.about.get(name).and_then(Value::as_str).unwrap_or_default();
        let date = text("created_at").get(..DATE).unwrap_or_default();
        let objective = self.objective().to_lowercase();
        // Without markers of what was redacted.
        let plain = objective
            .split('[')
            .map(|part| part.split_once(']').map_or(part, |(_, after)| after));
        let plain = plain.collect::<Vec<_>>().join(" ");
        let words = plain
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty());
        let id = text("session_id")
            .chars()
            .filter(|letter| letter.is_ascii_alphanumeric())
            .take(SHORT_ID);
        let id: String = id.collect();
        let parts = std::iter::once(date).chain(words.take(MOST_WORDS)).map(|part| {
            let end = part.floor_char_boundary(MOST_WORD);
            &part[..end]
        });
        let parts: Vec<_> = parts
            .chain([id.as_str()])
            .filter(|part| !part.is_empty())
            .collect();
        if parts.is_empty() {
            "session".into()
        } else {
            parts.join("-")
        }
    }

    /// Returns the line of the manifest.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut fields = Object::new();
        fields.insert("rank", number_of(self.rank));
        fields.insert("file", self.file(0));
        if let Some(line) = self.line {
            fields.insert("line", number_of(line));
        }
        let subagents = self.files.iter().skip(1).map(|file| file.as_str().into());
        fields.insert("sha256", self.sha256.as_str());
        fields.insert("subagents", subagents.collect::<Vec<Value>>());
        let about = self.about.as_object().into_iter().flatten();
        fields.extend(about.map(|(name, value)| (name.clone(), value.clone())));
        fields.insert("objective", self.objective());
        fields.insert("tokens", number_of(self.tokens));
        fields.insert("reason", self.reason.as_str());
        fields.insert("stands_for", number_of(self.stands_for));
        let (success, confidence) = self.outcome.unzip();
        fields.insert("success", success.map_or(Value::Null, Value::from));
        fields.insert("confidence", confidence.map_or(Value::Null, Value::from));
        fields.insert("outcome_from", self.outcome_from.map_or(Value::Null, Value::from));
        if let Some(score) = self.quality_score {
            fields.insert("quality_score", score);
        }
        let redactions = self.redactions.iter();
        let redactions = redactions.map(|(kind, count)| (kind.as_str().into(), number_of(*count)));
        fields.insert("redactions", redactions.collect::<Object>());
        fields.insert("lines_left_out", number_of(self.lines_left_out));
        let review = self.review.iter().map(|place| {
            object([
                ("file", self.file(place.file).into()),
                ("line", number_of(place.line)),
                ("field", place.place.path.as_str().into()),
            ])
        });
        fields.insert("review", review.collect::<Vec<_>>());
        fields.into()
    }
}

impl Manifest {
    /// Returns the lines of all sessions of the folder, by rank.
    #[must_use]
    pub fn lines(&self) -> Vec<Value> {
        let entries = self.entries.iter().map(Entry::to_value);
        let mut lines: Vec<_> = self.kept.iter().cloned().chain(entries).collect();
        lines.sort_by_key(rank_of);
        lines
    }

    /// Returns how often each kind was redacted in the sessions that are new.
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
